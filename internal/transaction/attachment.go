package transaction

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// memberAttachments lists files of the client's own that go with the document.
const memberAttachments = "attachments"

const (
	// BodyBytesMax is the largest body: of one with attachments, whose contents
	// count apart. Everything else of it is at most bodyBytesMax.
	BodyBytesMax = 8 << 20

	attachmentsMax     = 5
	attachmentBytesMax = 5 << 20 // of all of them, decoded
	attachmentNameMax  = 60      // what the strictest country takes (IT NomeAttachment)
)

// Attachment is a file of the client's own.
type Attachment struct {
	Name    string // no two of a document are alike
	Type    string // media type, of attachmentTypes
	Content []byte
}

// attachmentTypes are the kinds of files that every country with a place for them
// takes (EN 16931 BT-125), with how they begin. Text begins as it likes.
var attachmentTypes = []struct{ media, short, magic string }{
	{"application/pdf", "PDF", "%PDF-"},
	{"image/png", "PNG", "\x89PNG\r\n\x1a\n"},
	{"image/jpeg", "JPEG", "\xff\xd8\xff"},
	{"text/csv", "CSV", ""},
}

// Short is the kind of file in one word, as results name it.
func (a *Attachment) Short() string {
	for _, t := range attachmentTypes {
		if t.media == a.Type {
			return t.short
		}
	}
	return ""
}

// looksRight reports whether the content is what its type says.
func (a *Attachment) looksRight() bool {
	for _, t := range attachmentTypes {
		if t.media == a.Type {
			return bytes.HasPrefix(a.Content, []byte(t.magic)) && (t.magic != "" || utf8.Valid(a.Content) && !bytes.ContainsRune(a.Content, 0))
		}
	}
	return false
}

func (d *decoder) attachments() {
	count, size, names := 0, 0, map[string]bool{}
	d.in.Array(func(i int) {
		if count = i + 1; count > attachmentsMax {
			d.in.Skip()
			return
		}
		a := d.attachment(attachmentBytesMax - size)
		size += len(a.Content)
		if a.Name != "" && names[strings.ToLower(a.Name)] {
			d.in.RefuseMember("name", fault.FieldNotValid, "must be another than those of the other attachments")
		}
		names[strings.ToLower(a.Name)] = true
		d.tx.Attachments = append(d.tx.Attachments, a)
	})
	if count > attachmentsMax {
		d.in.Refuse(fault.FieldNotValid, "must not have more than %d entries", attachmentsMax)
	}
}

// attachment reads one file of at most so many bytes.
func (d *decoder) attachment(bytesMax int) (a Attachment) {
	name, media, content := strictjson.Absent, strictjson.Absent, strictjson.Absent
	st := d.in.Object(func(member string) {
		switch member {
		case "name":
			name = d.fileName(&a.Name)
		case "type":
			media = d.in.choice(&a.Type, "application/pdf", "image/png", "image/jpeg", "text/csv")
		case "content":
			content = d.content(&a.Content, bytesMax)
		default:
			d.in.Unknown()
		}
	})
	if st == strictjson.Absent {
		d.in.Refuse(fault.FieldNotValid, "must be an object")
	}
	if st != strictjson.Taken {
		return a
	}
	for i, member := range [...]string{"name", "type", "content"} {
		if [...]strictjson.State{name, media, content}[i] == strictjson.Absent {
			d.in.Missing(member)
		}
	}
	if media == strictjson.Taken && content == strictjson.Taken && !a.looksRight() {
		d.in.RefuseMember("content", fault.FieldNotValid, "is not what its type says")
	}
	return a
}

// fileName reads a name that no file system and no browser reads as a path.
func (d *decoder) fileName(into *string) strictjson.State {
	st := d.in.Line(into, attachmentNameMax)
	if st == strictjson.Taken && (strings.ContainsAny(*into, `/\:*?"<>|`) || strings.HasPrefix(*into, ".")) {
		*into = ""
		return d.in.Refuse(fault.FieldNotValid, `must be a file name without / \ : * ? " < > | that does not begin with a dot`)
	}
	return st
}

// content reads base64, with or without line breaks.
func (d *decoder) content(into *[]byte, bytesMax int) strictjson.State {
	var text string
	st := d.in.Text(&text)
	if st != strictjson.Taken {
		return st
	}
	d.contentBytes += len(text)
	if text == "" {
		return strictjson.Absent
	}
	// Line breaks are at most two for every 64 characters.
	if len(text) > base64.StdEncoding.EncodedLen(bytesMax)*33/32+4 {
		return d.in.Refuse(fault.FieldNotValid, "must not be more than %d bytes, decoded, with all other attachments", attachmentBytesMax)
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return d.in.Refuse(fault.FieldNotValid, "must be base64")
	case len(decoded) == 0:
		return d.in.Refuse(fault.FieldNotValid, "must not be empty")
	case len(decoded) > bytesMax:
		return d.in.Refuse(fault.FieldNotValid, "must not be more than %d bytes, decoded, with all other attachments", attachmentBytesMax)
	}
	*into = decoded
	return strictjson.Taken
}

// tooLarge finds bodies that are large without contents of attachments.
func (d *decoder) tooLarge(body []byte) error {
	if len(body)-d.contentBytes <= bodyBytesMax {
		return nil
	}
	return fault.New(fault.TooLarge, "the body is larger than %d bytes without the contents of attachments", bodyBytesMax).
		With(fault.Fault{Code: fault.BodyTooLarge, Type: fault.General, Message: "the body is too large"})
}

func (t *Transaction) eachAttachmentField(path string, visit func(Place, string)) bool {
	if path == "" {
		visit(Place{}, count(len(t.Attachments)))
		return true
	}
	member, ok := strings.CutPrefix(path, "*.")
	if !ok {
		return false
	}
	_, known := (&Attachment{}).field(member)
	for i := range t.Attachments {
		text, _ := t.Attachments[i].field(member)
		visit(Place{Entry: i}, text)
	}
	return known
}

func (a *Attachment) field(member string) (string, bool) {
	switch member {
	case "name":
		return a.Name, true
	case "type":
		return a.Type, true
	case "content":
		return base64.StdEncoding.EncodeToString(a.Content), true
	}
	return "", false
}
