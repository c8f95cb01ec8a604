package received

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"tributary/internal/fault"
	"tributary/internal/files"
)

// Files inside a document are kept as they are, each a download of its own. They are a stranger's: nothing here looks
// into them.
const (
	embeddedMost = 20
	nameMax      = 150 // characters
)

// embeddedTypes are the kinds of files that a document may carry; others stay in the original alone.
var embeddedTypes = map[string]string{"application/pdf": "PDF", "image/png": "PNG", "image/jpeg": "JPEG", "text/csv": "CSV",
	"application/xml": "XML", "text/xml": "XML"}

// unpack keeps the files that stand in a document, and lists those that stay there.
func (d *Documents) unpack(ctx context.Context, scope string, o *outcome) error {
	seen := map[string]bool{}
	for i, a := range o.Document.Attachments {
		kind, name := embeddedTypes[strings.ToLower(a.Type)], safeName(a.Name)
		if kind == "" || len(a.Content) == 0 || len(o.embedded) == embeddedMost {
			o.Faults = append(o.Faults, fault.Warn(fmt.Sprintf("attachments[%d]", i), fault.FieldUnknown,
				"the document carries the file %q (%s), and the original alone has it", name, fault.Clip(a.Type, 50)))
			continue
		}
		if seen[kind+name] {
			name = fmt.Sprintf("%d-%s", i+1, name)
		}
		seen[kind+name] = true
		file := files.NewFile(a.Content)
		if err := d.cfg.Files.Keep(ctx, file); err != nil {
			return fmt.Errorf("keep a file of %s: %w", o.ID, err)
		}
		o.embedded = append(o.embedded, files.Attachment{ClientID: scope, OperationID: o.ID, Kind: "CLIENT", Type: kind, Name: name,
			Place: files.InStore, SHA256: file.SHA256, Size: file.Size})
	}
	return nil
}

// safeName is a file's name without what could mislead whoever reads it.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSpace(name), "_"))
	if runes := []rune(name); len(runes) > nameMax {
		name = string(runes[:nameMax])
	}
	if name == "" {
		return "file"
	}
	return name
}
