package pa

import (
	"bytes"
	"compress/zlib"
	"io"
	"regexp"
)

var embeddedFile = regexp.MustCompile(`/Type\s*/EmbeddedFile[^\0]{0,400}?>>\s*stream\r?\n`)

// embedded is the invoice as data inside of a PDF; nil: there is none. It looks for
// the stream of an embedded file and no further: a double judges data, not pages.
func embedded(file []byte) []byte {
	if !bytes.HasPrefix(file, []byte("%PDF-")) || !bytes.Contains(file, []byte("factur-x.xml")) {
		return nil
	}
	for _, at := range embeddedFile.FindAllIndex(file, -1) {
		rest := file[at[1]:]
		end := bytes.Index(rest, []byte("endstream"))
		if end < 0 {
			continue
		}
		text := rest[:end]
		if bytes.Contains(file[at[0]:at[1]], []byte("FlateDecode")) {
			from, err := zlib.NewReader(bytes.NewReader(text))
			if err != nil {
				continue
			}
			if text, err = io.ReadAll(io.LimitReader(from, fileBytesMax)); err != nil {
				continue
			}
		}
		if text = bytes.TrimSpace(text); bytes.Contains(text, []byte("CrossIndustryInvoice")) {
			return text
		}
	}
	return nil
}
