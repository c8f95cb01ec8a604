package accesspoint

import (
	"io"
	"net/http"
	"strings"

	"tributary/internal/xmltree"
)

const spaceSBDH = "http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader"

// takeEnvelope serves POST /sbd: a document in its envelope, and no more than that.
func (a *accessPoint) takeEnvelope(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, documentBytesMax))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	k, inner, flaw := openEnvelope(body)
	if flaw == "" {
		k.Number, k.Code, err = examine(inner, k.transaction)
		if err != nil {
			flaw = err.Error()
		}
	}
	if flaw != "" {
		http.Error(w, flaw, http.StatusUnprocessableEntity)
		return
	}
	a.file(w, r, k, inner)
}

// openEnvelope reads a Standard Business Document as the Peppol Business Message
// Envelope 2.0 has it.
func openEnvelope(body []byte) (k kept, inner []byte, flaw string) {
	doc, err := xmltree.Read(body)
	if err != nil {
		return k, nil, err.Error()
	}
	root, head := doc.Root, doc.Root.At("StandardBusinessDocumentHeader")
	switch {
	case !root.Is(spaceSBDH, "StandardBusinessDocument") || !head.Is(spaceSBDH, "StandardBusinessDocumentHeader"):
		return k, nil, "this is no Standard Business Document"
	case head.Value("HeaderVersion") != "1.0" || len(root.Children) != 2:
		return k, nil, "the envelope is not one of version 1.0 around one document"
	}
	party := func(name string) string {
		e := head.At(name, "Identifier")
		if e == nil || e.Attr("Authority") != schemeParticipant {
			return ""
		}
		return schemeParticipant + "::" + strings.TrimSpace(e.Text)
	}
	scopes := map[string]string{}
	for _, s := range head.At("BusinessScope").All("Scope") {
		scopes[s.Value("Type")] = strings.TrimPrefix(s.Value("Identifier")+"::"+s.Value("InstanceIdentifier"), "::")
	}
	about := head.At("DocumentIdentification")
	k.transaction = transaction{Type: "business_document", Sender: party("Sender"), Receiver: party("Receiver"),
		Document: scopes["DOCUMENTID"], Process: scopes["PROCESSID"],
		Instance: about.Value("InstanceIdentifier"), Reporting: "pending", MLS: "pending"}
	content := root.Children[1]
	named := documentForm.FindStringSubmatch(k.Document)
	switch {
	case !participantForm.MatchString(k.Sender) || !participantForm.MatchString(k.Receiver):
		return k, nil, "sender and receiver are participants"
	case named == nil || !processForm.MatchString(k.Process) || !countryForm.MatchString(scopes["COUNTRY_C1"]):
		return k, nil, "the scopes DOCUMENTID, PROCESSID and COUNTRY_C1 are needed"
	case about.Value("Standard") != content.Space || about.Value("Type") != content.Local ||
		about.Value("TypeVersion") != named[4] || len(k.Instance) != 36:
		return k, nil, "the identification is not that of the document"
	}
	return k, []byte(xmltree.Declaration + doc.Raw(content) + "\n"), "" // a file of its own
}
