package document

import (
	"crypto/md5"
	"fmt"
	"mime"
	"slices"
	"strings"

	"tributary/internal/document/typeset"
)

// Limits of what a PDF carries beside its pages.
const (
	attachmentsMax      = 16
	attachmentBytesMax  = 16 << 20
	attachmentNameMax   = 120
	facturXFileName     = "factur-x.xml"
	xrechnungFileName   = "xrechnung.xml"
	zugferdFileNamePast = "ZUGFeRD-invoice.xml"
)

// checkFiles refuses what would make a broken file or another document.
func (v *Visual) checkFiles() error {
	if len(v.Files) > attachmentsMax {
		return invalid("a document carries at most %d attachments, not %d", attachmentsMax, len(v.Files))
	}
	bytes := 0
	for i, a := range v.Files {
		if !usableFileName(a.Name) {
			return invalid("attachment %d has no usable file name", i)
		}
		if slices.ContainsFunc(v.Files[:i], func(b EmbeddedFile) bool { return b.Name == a.Name }) {
			return invalid("two attachments are named %s", a.Name)
		}
		if kind, _, err := mime.ParseMediaType(a.MIME); err != nil || !strings.Contains(kind, "/") {
			return invalid("attachment %s has no media type", a.Name)
		}
		if a.Relationship != "" && !slices.Contains([]Relationship{Alternative, Source, Data, Supplement, Unspecified}, a.Relationship) {
			return invalid("attachment %s has an unknown relationship", a.Name)
		}
		bytes += len(a.Content)
	}
	if bytes > attachmentBytesMax {
		return invalid("attachments have at most %d bytes together, not %d", attachmentBytesMax, bytes)
	}
	return v.checkFacturX()
}

// usableFileName reports a name that is one on every system and in either string encoding of PDF.
func usableFileName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < 0x20 || c > 0x7E || strings.IndexByte(`/\:*?"<>|`, c) >= 0 {
			return false
		}
	}
	return name != "" && name != "." && name != ".." && len(name) <= attachmentNameMax
}

func (v *Visual) checkFacturX() error {
	if v.FacturX == nil {
		return nil
	}
	if !slices.Contains([]string{facturXFileName, xrechnungFileName, zugferdFileNamePast}, v.FacturX.FileName) {
		return invalid("a Factur-X file is named %s or %s, not %q", facturXFileName, xrechnungFileName, v.FacturX.FileName)
	}
	if !slices.ContainsFunc(v.Files, func(a EmbeddedFile) bool { return a.Name == v.FacturX.FileName }) {
		return invalid("the Factur-X file %s is not attached", v.FacturX.FileName)
	}
	levels := []string{"MINIMUM", "BASIC WL", "BASIC", "EN 16931", "EXTENDED", "XRECHNUNG"}
	if !slices.Contains(levels, v.FacturX.Level) {
		return invalid("Factur-X has no level %q", v.FacturX.Level)
	}
	return nil
}

// writeFiles writes the files and returns the catalog's entries for them
// (ISO 19005-3, 6.8: both names, a media type, a relationship and an
// association with the document).
func (f *pdfFile) writeFiles(files []EmbeddedFile) string {
	if len(files) == 0 {
		return ""
	}
	var associated, names []byte
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b EmbeddedFile) int { return strings.Compare(a.Name, b.Name) }) // a name tree is sorted
	for _, a := range sorted {
		relationship := a.Relationship
		if relationship == "" {
			relationship = Unspecified
		}
		kind, _, _ := mime.ParseMediaType(a.MIME) // checked before
		content := f.pack(fmt.Sprintf("/Type/EmbeddedFile/Subtype%s/Params<</Size %d/ModDate%s/CheckSum<%x>>>",
			pdfName(kind), len(a.Content), pdfDate(a.ModifiedAt), md5.Sum(a.Content)), a.Content)
		description := ""
		if a.Description != "" {
			description = "/Desc" + pdfText(typeset.Clean(a.Description))
		}
		spec := f.add("<</Type/Filespec/F%s/UF%s/AFRelationship%s%s/EF<</F %d 0 R/UF %d 0 R>>>>",
			pdfText(a.Name), pdfText(a.Name), pdfName(string(relationship)), description, content, content)
		associated = fmt.Appendf(associated, "%d 0 R ", spec)
		names = fmt.Appendf(names, "%s %d 0 R ", pdfText(a.Name), spec)
	}
	return fmt.Sprintf("/AF[%s]/Names<</EmbeddedFiles<</Names[%s]>>>>", associated, names)
}
