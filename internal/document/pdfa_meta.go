package document

import (
	"bytes"
	"encoding/xml"
	"fmt"
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

func (p *composition) metadata(v *Visual) metadata {
	m := metadata{title: p.title, author: typeset.Clean(v.Supplier.LegalName), at: v.IssuedAt, tag: p.words.tag}
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
// PDF/A-3 and, where there is one, that of a Factur-X invoice.
func (m metadata) xmp(fx *FacturX) []byte {
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
	if fx != nil {
		b.WriteString(fx.xmp())
	}
	b.WriteString("</rdf:RDF></x:xmpmeta>\n<?xpacket end=\"w\"?>")
	return b.Bytes()
}

// xmp writes the invoice's identification and the extension schema that makes
// its names known, as PDF/A asks of every schema of its own (Factur-X 1.0,
// chapter 6; ISO 19005-3, 6.6.2.3).
func (fx FacturX) xmp() string {
	const space = "urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#"
	version := fx.Version
	if version == "" {
		version = "1.0"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<rdf:Description rdf:about=\"\" xmlns:fx=\"%s\"><fx:DocumentType>INVOICE</fx:DocumentType>"+
		"<fx:DocumentFileName>%s</fx:DocumentFileName><fx:Version>%s</fx:Version><fx:ConformanceLevel>%s</fx:ConformanceLevel></rdf:Description>\n",
		space, escapeXML(fx.FileName), escapeXML(version), escapeXML(fx.Level))
	fmt.Fprintf(&b, "<rdf:Description rdf:about=\"\" xmlns:pdfaExtension=\"http://www.aiim.org/pdfa/ns/extension/\""+
		" xmlns:pdfaSchema=\"http://www.aiim.org/pdfa/ns/schema#\" xmlns:pdfaProperty=\"http://www.aiim.org/pdfa/ns/property#\">"+
		"<pdfaExtension:schemas><rdf:Bag><rdf:li rdf:parseType=\"Resource\"><pdfaSchema:schema>Factur-X PDFA Extension Schema</pdfaSchema:schema>"+
		"<pdfaSchema:namespaceURI>%s</pdfaSchema:namespaceURI><pdfaSchema:prefix>fx</pdfaSchema:prefix><pdfaSchema:property><rdf:Seq>", space)
	for _, p := range [][2]string{
		{"DocumentFileName", "The name of the embedded XML document"},
		{"DocumentType", "The type of the hybrid document in capital letters, e.g. INVOICE or ORDER"},
		{"Version", "The actual version of the standard applying to the embedded XML document"},
		{"ConformanceLevel", "The conformance level of the embedded XML document"},
	} {
		fmt.Fprintf(&b, "<rdf:li rdf:parseType=\"Resource\"><pdfaProperty:name>%s</pdfaProperty:name><pdfaProperty:valueType>Text</pdfaProperty:valueType>"+
			"<pdfaProperty:category>external</pdfaProperty:category><pdfaProperty:description>%s</pdfaProperty:description></rdf:li>", p[0], p[1])
	}
	b.WriteString("</rdf:Seq></pdfaSchema:property></rdf:li></rdf:Bag></pdfaExtension:schemas></rdf:Description>\n")
	return b.String()
}

func escapeXML(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a bytes.Buffer takes everything
	return b.String()
}
