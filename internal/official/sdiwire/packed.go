package sdiwire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"strings"

	"tributary/internal/xmltree"
)

const (
	spaceInclude = "http://www.w3.org/2004/08/xop/include"
	typeRelated  = "multipart/related"
	typeXOP      = "application/xop+xml"

	partsMax = 8
)

// Packed is the body of a call or of an answer: an envelope alone, or one with
// its files beside it (MTOM, which SdI uses as it likes).
type Packed struct {
	Envelope []byte
	files    map[string][]byte // by Content-ID, without the brackets
}

// Open reads a body by its content type.
func Open(contentType string, body []byte) (Packed, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != typeRelated {
		return Packed{Envelope: body}, nil // whether it is XML is for the reader of the envelope to say
	}
	if params["boundary"] == "" {
		return Packed{}, errors.New("a body of many parts without a boundary")
	}
	p := Packed{files: map[string][]byte{}}
	in := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for n := 0; ; n++ {
		part, err := in.NextRawPart()
		if errors.Is(err, io.EOF) && p.Envelope != nil {
			return p, nil
		}
		if err != nil || n == partsMax {
			return Packed{}, fmt.Errorf("a body of many parts breaks off at part %d, or has too many", n+1)
		}
		id, text, err := readPart(part)
		if err != nil {
			return Packed{}, fmt.Errorf("part %d: %w", n+1, err)
		}
		start := strings.Trim(params["start"], "<>")
		if p.Envelope == nil && (start == "" || start == id) {
			p.Envelope = text
			continue
		}
		if _, twice := p.files[id]; twice {
			return Packed{}, fmt.Errorf("two parts are called %q", id)
		}
		p.files[id] = text
	}
}

func readPart(part *multipart.Part) (id string, text []byte, err error) {
	id = strings.Trim(part.Header.Get("Content-ID"), "<>")
	in := io.Reader(part)
	switch encoding := strings.ToLower(part.Header.Get("Content-Transfer-Encoding")); encoding {
	case "", "binary", "8bit", "7bit":
	case "base64":
		in = base64.NewDecoder(base64.StdEncoding, part)
	default:
		return id, nil, fmt.Errorf("the encoding %q is not known", encoding)
	}
	text, err = io.ReadAll(in)
	return id, text, err
}

// File is the content of an element that carries one: as base64, or by
// reference to a part.
func (p Packed) File(e *xmltree.Element) ([]byte, error) {
	if e == nil {
		return nil, errors.New("there is no file")
	}
	if len(e.Children) == 0 {
		return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(e.Text), ""))
	}
	include := e.Children[0]
	if len(e.Children) != 1 || !include.Is(spaceInclude, "Include") {
		return nil, errors.New("a file is base64 or a reference to a part")
	}
	id, named := strings.CutPrefix(include.Attr("href"), "cid:")
	id, err := url.PathUnescape(id)
	text, there := p.files[id]
	if !named || err != nil || !there {
		return nil, fmt.Errorf("there is no part %q", include.Attr("href"))
	}
	return text, nil
}

// Names of the parts that Pack writes.
const (
	partEnvelope = "envelope@sdi"
	partFile     = "file@sdi"
	boundary     = "=_sdi_part_boundary"
)

// Include refers to the file that [Pack] puts beside an envelope, in place of base64.
const Include = `<xop:Include xmlns:xop="` + spaceInclude + `" href="cid:` + partFile + `"/>`

// Pack puts an envelope and, where it has one, the file that it includes into
// one body. soapType is the content type that the envelope has by itself.
func Pack(envelope, file []byte, soapType string) (contentType string, body []byte) {
	var out bytes.Buffer
	parts := multipart.NewWriter(&out)
	_ = parts.SetBoundary(boundary) // a constant that is allowed
	add := func(kind, id string, text []byte) {
		w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {kind}, "Content-Transfer-Encoding": {"binary"},
			"Content-ID": {"<" + id + ">"}})
		if err == nil {
			_, _ = w.Write(text) // to memory
		}
	}
	inner := mime.FormatMediaType(typeXOP, map[string]string{"charset": "UTF-8", "type": soapType})
	add(inner, partEnvelope, envelope)
	if file != nil {
		add("application/octet-stream", partFile, file)
	}
	_ = parts.Close() // to memory
	return mime.FormatMediaType(typeRelated,
			map[string]string{"boundary": boundary, "type": typeXOP, "start": "<" + partEnvelope + ">", "start-info": soapType}),
		out.Bytes()
}
