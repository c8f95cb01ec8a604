package document

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"tributary/internal/document/typeset"
)

const producer = "Tributary"

// metadata says the same twice: in XMP, which PDF/A reads, and in the
// information dictionary, which file browsers read.
type metadata struct {
	title  string
	author string
	at     time.Time
	tag    string // BCP 47 language
}

func (d *content) metadata(v *Visual) metadata {
	m := metadata{title: d.title, author: typeset.Clean(v.Supplier.LegalName), at: v.IssuedAt, tag: d.words.Tag}
	if v.Transaction.Number != "" {
		m.title += " " + typeset.Clean(v.Transaction.Number)
	}
	if m.author == "" {
		m.author = producer
	}
	if m.at.IsZero() {
		m.at = v.Transaction.Date
	}
	return m
}

// xmp writes the metadata packet (ISO 16684-1) with the identification of
// PDF/A-3, of PDF/UA-1 where the document is tagged and, where there is one,
// that of a Factur-X invoice.
func (m metadata) xmp(fx *FacturX, tagged bool) []byte {
	stamp := m.at.UTC().Format("2006-01-02T15:04:05Z")
	var b bytes.Buffer
	b.WriteString("<?xpacket begin=\"\uFEFF\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n" +
		"<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n" +
		"<rdf:Description rdf:about=\"\" xmlns:pdfaid=\"http://www.aiim.org/pdfa/ns/id/\">" +
		"<pdfaid:part>3</pdfaid:part><pdfaid:conformance>U</pdfaid:conformance></rdf:Description>\n")
	fmt.Fprintf(&b, "<rdf:Description rdf:about=\"\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:format>application/pdf</dc:format>"+
		"<dc:title><rdf:Alt><rdf:li xml:lang=\"x-default\">%s</rdf:li></rdf:Alt></dc:title>"+
		"<dc:creator><rdf:Seq><rdf:li>%s</rdf:li></rdf:Seq></dc:creator>"+
		"<dc:language><rdf:Bag><rdf:li>%s</rdf:li></rdf:Bag></dc:language></rdf:Description>\n", escapeXML(m.title), escapeXML(m.author), m.tag)
	fmt.Fprintf(&b, "<rdf:Description rdf:about=\"\" xmlns:pdf=\"http://ns.adobe.com/pdf/1.3/\"><pdf:Producer>%s</pdf:Producer></rdf:Description>\n"+
		"<rdf:Description rdf:about=\"\" xmlns:xmp=\"http://ns.adobe.com/xap/1.0/\"><xmp:CreatorTool>%s</xmp:CreatorTool>"+
		"<xmp:CreateDate>%s</xmp:CreateDate><xmp:ModifyDate>%s</xmp:ModifyDate></rdf:Description>\n", producer, producer, stamp, stamp)
	var schemas []schema
	if tagged {
		fmt.Fprintf(&b, "<rdf:Description rdf:about=\"\" xmlns:pdfuaid=\"%s\"><pdfuaid:part>1</pdfuaid:part></rdf:Description>\n", accessible().space)
		schemas = append(schemas, accessible())
	}
	if fx != nil {
		version := fx.Version
		if version == "" {
			version = "1.0"
		}
		fmt.Fprintf(&b, "<rdf:Description rdf:about=\"\" xmlns:fx=\"%s\"><fx:DocumentType>INVOICE</fx:DocumentType>"+
			"<fx:DocumentFileName>%s</fx:DocumentFileName><fx:Version>%s</fx:Version><fx:ConformanceLevel>%s</fx:ConformanceLevel></rdf:Description>\n",
			hybrid().space, escapeXML(fx.FileName), escapeXML(version), escapeXML(fx.Level))
		schemas = append(schemas, hybrid())
	}
	writeSchemas(&b, schemas)
	b.WriteString("</rdf:RDF></x:xmpmeta>\n<?xpacket end=\"w\"?>")
	return b.Bytes()
}

// schema makes names known that PDF/A does not know itself (ISO 19005-3, 6.6.2.3).
type schema struct {
	name, space, prefix string
	properties          [][4]string // name, type, category, description
}

// accessible is the identification of PDF/UA (ISO 14289-1, 5).
func accessible() schema {
	return schema{"PDF/UA Universal Accessibility Schema", "http://www.aiim.org/pdfua/ns/id/", "pdfuaid", [][4]string{
		{"part", "Integer", "internal", "Indicates, which part of ISO 14289 standard is followed"},
	}}
}

// hybrid is the identification of an invoice with its data (Factur-X 1.0, chapter 6).
func hybrid() schema {
	return schema{"Factur-X PDFA Extension Schema", "urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#", "fx", [][4]string{
		{"DocumentFileName", "Text", "external", "The name of the embedded XML document"},
		{"DocumentType", "Text", "external", "The type of the hybrid document in capital letters, e.g. INVOICE or ORDER"},
		{"Version", "Text", "external", "The actual version of the standard applying to the embedded XML document"},
		{"ConformanceLevel", "Text", "external", "The conformance level of the embedded XML document"},
	}}
}

func writeSchemas(b *bytes.Buffer, schemas []schema) {
	if len(schemas) == 0 {
		return
	}
	b.WriteString("<rdf:Description rdf:about=\"\" xmlns:pdfaExtension=\"http://www.aiim.org/pdfa/ns/extension/\"" +
		" xmlns:pdfaSchema=\"http://www.aiim.org/pdfa/ns/schema#\" xmlns:pdfaProperty=\"http://www.aiim.org/pdfa/ns/property#\"><pdfaExtension:schemas><rdf:Bag>")
	for _, s := range schemas {
		fmt.Fprintf(b, "<rdf:li rdf:parseType=\"Resource\"><pdfaSchema:schema>%s</pdfaSchema:schema>"+
			"<pdfaSchema:namespaceURI>%s</pdfaSchema:namespaceURI><pdfaSchema:prefix>%s</pdfaSchema:prefix><pdfaSchema:property><rdf:Seq>", s.name, s.space, s.prefix)
		for _, p := range s.properties {
			fmt.Fprintf(b, "<rdf:li rdf:parseType=\"Resource\"><pdfaProperty:name>%s</pdfaProperty:name><pdfaProperty:valueType>%s</pdfaProperty:valueType>"+
				"<pdfaProperty:category>%s</pdfaProperty:category><pdfaProperty:description>%s</pdfaProperty:description></rdf:li>", p[0], p[1], p[2], p[3])
		}
		b.WriteString("</rdf:Seq></pdfaSchema:property></rdf:li>")
	}
	b.WriteString("</rdf:Bag></pdfaExtension:schemas></rdf:Description>\n")
}

func escapeXML(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x17F || strings.ContainsRune(`"'&<>`, r) }) {
		return s // names of most
	}
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a bytes.Buffer takes everything
	return b.String()
}
