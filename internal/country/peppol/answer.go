package peppol

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/fault"
	"tributary/internal/incoming"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// What a company answers to an invoice goes to its seller as an Invoice Response (Peppol BIS Invoice Response 3), over
// the same channel and by the same identifiers as invoices.

const (
	responseProcess = "urn:fdc:peppol.eu:poacc:bis:invoice_response:3"
	responseRoot    = spaceResponse + "::ApplicationResponse"

	reasonOther = "OTH"
)

// answerCodes are the answers by their codes (UNCL4343).
var answerCodes = map[string]string{transaction.Accepted: "AP", transaction.Rejected: "RE", transaction.Disputed: "UQ", transaction.Paid: "PD"}

// reasonCodes are those of OPStatusReason that a client may give.
var reasonCodes = []string{"REF", "LEG", "REC", "QUA", "DEL", "PRI", "QTY", "ITM", "PAY", "UNR", "FIN", "PPD", reasonOther}

// responses is what may be answered over the network.
func responses() *country.Responses {
	return &country.Responses{Statuses: transaction.AnswerStatuses(),
		Rule: "invoices and credit notes in UBL or CII that name the electronic addresses of both sides, of companies that send over Peppol; reason is a code of OPStatusReason, and a note says why where it is OTH or absent"}
}

// canAnswer finds why an answer cannot go over the network.
func canAnswer(page en16931.Page) func(country.Supplier, transaction.Answer) []fault.Fault {
	return func(s country.Supplier, a transaction.Answer) []fault.Fault {
		to := a.To
		switch {
		case !page.Delivered(&s, nil, nil):
			return country.Unanswerable("", "the company does not use Peppol (settings.delivery), so its answers reach nobody")
		case to.Format != incoming.UBL && to.Format != incoming.CII || to.Number == "":
			return country.Unanswerable("", "the document is no invoice of the network: it is %s", cmp.Or(to.Format, "unknown"))
		case !networked(to.Sender.Electronic) || !networked(to.Receiver.Electronic):
			return country.Unanswerable("", "the document does not name the electronic addresses of its sender and its receiver on Peppol")
		}
		if a.Reason != "" && !slices.Contains(reasonCodes, a.Reason) {
			return []fault.Fault{fault.At("reason", fault.FieldNotValid, "must be one of %s", strings.Join(reasonCodes, ", "))}
		}
		if a.Reason == "PPD" && a.Status != transaction.Paid {
			return []fault.Fault{fault.At("reason", fault.ValidationMatchInvalid, "PPD is said of %s alone", transaction.Paid)}
		}
		says := a.Note != "" || a.Reason != "" && a.Reason != reasonOther && a.Reason != "PPD"
		if owed := a.Status == transaction.Rejected || a.Status == transaction.Disputed || a.Reason != ""; owed && !says {
			return []fault.Fault{fault.At("note", fault.FieldRequired, "is needed to say why, where reason does not")}
		}
		return nil
	}
}

func networked(e *transaction.ElectronicAddress) bool {
	return e != nil && onNetwork(en16931.Identifier{Scheme: e.Scheme, ID: e.ID})
}

// answer makes the response of a draft.
func answer(d *country.Draft) (country.Filing, error) {
	a := d.Transaction.Answer
	from, to := a.To.Receiver.Electronic, a.To.Sender.Electronic
	e := envelope{Instance: instanceOf(d.OperationID), Country: d.Supplier.CountryCode, At: d.Now.UTC().Truncate(time.Second),
		Sender: participant{from.Scheme, from.ID}, Receivers: []participant{{to.Scheme, to.ID}},
		Document: responseRoot + "##" + invoiceResponse + "::2.1", Process: responseProcess}
	report := writeResponse(a, &d.Supplier, e)
	sum := sha256.Sum256(report)
	extra, err := json.Marshal(e)
	if err != nil {
		return country.Filing{}, fmt.Errorf("writing the envelope: %w", err)
	}
	return country.Filing{OperationID: d.OperationID, Number: e.Instance, Supplier: e.Sender.value(), Kind: d.Transaction.Kind,
		Report: report, Format: "XML", SHA256: hex.EncodeToString(sum[:]), DedupeKey: e.Instance, Extra: extra}, nil
}

// writeResponse writes the document; its id is that of its envelope.
func writeResponse(a *transaction.Answer, s *country.Supplier, e envelope) []byte {
	w := xmltree.NewWriter(4096)
	w.Declare()
	w.Start("ApplicationResponse", "xmlns", spaceResponse, "xmlns:cac", "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2",
		"xmlns:cbc", "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2")
	w.Leaf("cbc:CustomizationID", invoiceResponse)
	w.Leaf("cbc:ProfileID", responseProcess)
	w.Leaf("cbc:ID", e.Instance)
	w.Leaf("cbc:IssueDate", e.At.Format(time.DateOnly))
	w.Leaf("cbc:IssueTime", e.At.Format("15:04:05")+"Z")
	party := func(name string, of participant, legal string) {
		w.Start("cac:" + name)
		w.Leaf("cbc:EndpointID", of.ID, "schemeID", of.Scheme)
		w.Start("cac:PartyLegalEntity")
		w.Leaf("cbc:RegistrationName", cmp.Or(legal, of.ID))
		w.End()
		w.End()
	}
	party("SenderParty", e.Sender, s.LegalName)
	party("ReceiverParty", e.Receivers[0], a.To.Sender.LegalName)
	w.Start("cac:DocumentResponse")
	w.Start("cac:Response")
	w.Leaf("cbc:ResponseCode", answerCodes[a.Status], "listID", "UNCL4343OpSubset")
	if a.Reason != "" || a.Note != "" || a.Status == transaction.Rejected || a.Status == transaction.Disputed {
		w.Start("cac:Status")
		w.Leaf("cbc:StatusReasonCode", cmp.Or(a.Reason, reasonOther), "listID", "OPStatusReason")
		w.Maybe("cbc:StatusReason", a.Note)
		w.End()
	}
	w.End()
	w.Start("cac:DocumentReference")
	w.Leaf("cbc:ID", a.To.Number)
	w.Leaf("cbc:IssueDate", a.To.Day)
	w.Maybe("cbc:DocumentTypeCode", a.To.TypeCode)
	w.End()
	w.End()
	w.End()
	return append(w.Bytes(), '\n')
}
