package ro

import (
	"fmt"
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/text"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// What a buyer answers goes to the invoice's issuer as a message in words (RASP) that names the index of the invoice.
// ANAF's papers name the parameter and give no structure: this is the one that clients in production send. It has no
// place for a code, so the answer stands in front of the words. ANAF takes any number of them.

const (
	spaceMessage   = "mfp:anaf:dgti:spv:reqMesaj:v1"
	standardAnswer = "RASP"
)

// answerWords begin a message.
var answerWords = map[string]string{transaction.Accepted: "Factura a fost acceptata", transaction.Rejected: "Factura a fost refuzata",
	transaction.Disputed: "Factura este contestata", transaction.Paid: "Factura a fost platita"}

func responses() *country.Responses {
	return &country.Responses{Statuses: transaction.AnswerStatuses(),
		Rule: "invoices that ANAF brought (RO e-Factura): a message to the issuer (RASP); REJECTED and DISPUTED need a note that says why"}
}

// canAnswer finds why a document cannot be answered through ANAF.
func canAnswer(_ country.Supplier, a transaction.Answer) []fault.Fault {
	if !strings.HasPrefix(a.To.Source, home+".") || !digits(a.To.AuthorityID) {
		return country.Unanswerable("", "the document was not brought by ANAF: an answer names the index under which ANAF has the invoice")
	}
	owed := a.Status == transaction.Rejected || a.Status == transaction.Disputed
	switch {
	case a.Reason != "":
		return []fault.Fault{fault.At("reason", fault.ValidationMatchInvalid, "has no place at ANAF: say it in note")}
	case owed && strings.TrimSpace(a.Note) == "":
		return []fault.Fault{fault.At("note", fault.FieldRequired, "is needed to say why")}
	}
	return nil
}

// answer makes the message of a draft.
func answer(in *country.Draft) (country.Filing, error) {
	a := in.Transaction.Answer
	words, known := answerWords[a.Status]
	if !known || !digits(a.To.AuthorityID) {
		return country.Filing{}, fmt.Errorf("answering %s: %q of index %q", in.OperationID, a.Status, a.To.AuthorityID)
	}
	w := xmltree.NewWriter(1024)
	w.Declare()
	w.Start("header", "xmlns", spaceMessage, "index_incarcare", a.To.AuthorityID, "message",
		text.Join(": ", words, strings.Join(strings.Fields(a.Note), " ")))
	w.End()
	return in.Filing(append(w.Bytes(), '\n'), a.To.AuthorityID+" "+a.Status, fiscal(in.Supplier.TaxNumber), extra{Standard: standardAnswer})
}
