package accesspoint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/xmltree"
)

// What buyers answer is judged by the rules of Peppol's transaction T111 (Invoice Response 3): its elements and their
// order, its codes, and PEPPOL-T111-R001 to R005. Structures of UBL's ApplicationResponse are not among those at hand.

const responseDocument = "::ApplicationResponse##" + responseType + "::2.1"

// The codes of T111.
var (
	responseCodes = []string{"AB", "AP", "RE", "IP", "UQ", "CA", "PD"}
	reasonLists   = map[string][]string{
		"OPStatusReason": {"NON", "REF", "LEG", "REC", "QUA", "DEL", "PRI", "QTY", "ITM", "PAY", "PPD", "UNR", "FIN", "OTH"},
		"OPStatusAction": {"NOA", "PIN", "NIN", "CNF", "CNP", "CNA", "OTH"},
	}
)

// shape is the children that an element may have, in their order; "!" before those that must be there.
type shape []string

var responseShapes = map[string]shape{
	"ApplicationResponse": {"!CustomizationID", "!ProfileID", "!ID", "!IssueDate", "IssueTime", "Note", "!SenderParty", "!ReceiverParty",
		"!DocumentResponse"},
	"SenderParty":       {"!EndpointID", "PartyIdentification", "!PartyLegalEntity", "Contact"},
	"ReceiverParty":     {"!EndpointID", "PartyIdentification", "!PartyLegalEntity"},
	"PartyLegalEntity":  {"!RegistrationName"},
	"DocumentResponse":  {"!Response", "!DocumentReference", "IssuerParty", "RecipientParty"},
	"Response":          {"!ResponseCode", "EffectiveDate", "Status"},
	"Status":            {"StatusReasonCode", "StatusReason", "Condition"},
	"DocumentReference": {"!ID", "IssueDate", "DocumentTypeCode", "VersionID"},
}

// examineResponse holds an Invoice Response against the rules and against what the call says of it.
func examineResponse(root *xmltree.Element, t transaction) (number, code string, err error) {
	if err := shaped(root); err != nil {
		return "", "", err
	}
	if root.Value("CustomizationID") != responseType || root.Value("ProfileID") != responseProcess ||
		t.Process != schemeProcess+"::"+responseProcess {
		return "", "", fmt.Errorf("the document is not of the type %s and the process %s", responseType, responseProcess)
	}
	for party, who := range map[string]string{"SenderParty": t.Sender, "ReceiverParty": t.Receiver} {
		e := root.At(party, "EndpointID")
		if id := e.Attr("schemeID") + ":" + strings.TrimSpace(e.Text); !strings.EqualFold(schemeParticipant+"::"+id, who) {
			return "", "", fmt.Errorf("%s is %s, the call names %s", party, id, who)
		}
	}
	if _, err := time.Parse(time.DateOnly, root.Value("IssueDate")); err != nil {
		return "", "", fmt.Errorf("PEPPOL-COMMON-R030: %w", err)
	}
	for _, said := range root.All("DocumentResponse") {
		if err := examineStanding(said.At("Response")); err != nil {
			return "", "", err
		}
	}
	return root.Value("ID"), "", nil
}

// shaped refuses what is missing, foreign, out of order or empty.
func shaped(e *xmltree.Element) error {
	if len(e.Children) == 0 && strings.TrimSpace(e.Text) == "" {
		return fmt.Errorf("PEPPOL-COMMON-R001: %s is empty", e.Path())
	}
	allowed, known := responseShapes[e.Local]
	at := 0
	for _, c := range e.Children {
		if known {
			next := slices.IndexFunc(allowed, func(name string) bool { return strings.TrimPrefix(name, "!") == c.Local })
			if next < at {
				return fmt.Errorf("%s has no place for %s there", e.Path(), c.Local)
			}
			at = next
		}
		if err := shaped(c); err != nil {
			return err
		}
	}
	for _, name := range allowed {
		if local, must := strings.CutPrefix(name, "!"); must && e.At(local) == nil {
			return fmt.Errorf("%s has no %s", e.Path(), local)
		}
	}
	return nil
}

func examineStanding(said *xmltree.Element) error {
	code := said.Value("ResponseCode")
	if !slices.Contains(responseCodes, code) {
		return fmt.Errorf("PEPPOL-T111-B03001: %q is no response", code)
	}
	reasons := 0
	for _, s := range said.All("Status") {
		reason := s.At("StatusReasonCode")
		if reason == nil {
			continue
		}
		reasons++
		list, word := reason.Attr("listID"), strings.TrimSpace(reason.Text)
		switch {
		case !slices.Contains(reasonLists[list], word):
			return fmt.Errorf("%q is no code of %q", word, list)
		case word == "PPD" && code != "PD":
			return fmt.Errorf("PEPPOL-T111-R005: PPD goes with PD alone")
		case (word == "PPD" || word == "OTH") && s.Value("StatusReason") == "":
			return fmt.Errorf("PEPPOL-T111-R002: %s without words", word) // a warning there, an error here
		}
	}
	if reasons == 0 && slices.Contains([]string{"CA", "UQ", "RE"}, code) {
		return fmt.Errorf("PEPPOL-T111-R001: %s without a clarification", code)
	}
	return nil
}
