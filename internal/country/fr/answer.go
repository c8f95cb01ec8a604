package fr

import (
	"cmp"
	"slices"
	"strings"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/incoming"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// What a buyer answers is a status of the invoice's life cycle (CDAR), which its own platform takes as a flow and
// brings to the seller's. Rules: BR-FR-CDV (external specifications 3.2, § 3.6.4; Schematron CDAR 1.4.0).

// standing is an answer by the official table: its status, and the code of the message, "" where the rules give none.
type standing struct{ status, code string }

var standings = map[string]standing{
	transaction.Accepted: {"205", "1"}, transaction.Rejected: {"210", ""}, transaction.Disputed: {"207", "46"}, transaction.Paid: {"211", "47"},
}

// reasonsOf are the reasons that the rules take for a status (BR-FR-CDV-CL-09).
func reasonsOf(status string) []string {
	refused := []string{"TX_TVA_ERR", "MONTANTTOTAL_ERR", "CALCUL_ERR", "NON_CONFORME", "DOUBLON", "DEST_ERR", "TRANSAC_INC", "EMMET_INC",
		"CONTRAT_TERM", "DOUBLE_FACT", "CMD_ERR", "ADR_ERR", "REF_CT_ABSENT"}
	switch status {
	case transaction.Rejected:
		return refused
	case transaction.Disputed:
		disputed := slices.DeleteFunc(slices.Clone(refused), func(r string) bool { return r == "ADR_ERR" })
		return append(disputed, "AUTRE", "COORD_BANC_ERR", "DEST_INC", "SIRET_ERR", "CODE_ROUTAGE_ERR", "REF_ERR")
	}
	return nil
}

func responses() *country.Responses {
	return &country.Responses{Statuses: transaction.AnswerStatuses(),
		Rule: "invoices and credit notes in UBL or CII between businesses of France that name the seller's SIREN; REJECTED (210) and DISPUTED (207) need a reason of the official list, such as TX_TVA_ERR or DOUBLON"}
}

// canAnswer finds why a status cannot be given.
func canAnswer(s country.Supplier, a transaction.Answer) []fault.Fault {
	seller, own := buyer(&a.To.Sender), company(&s)
	switch {
	case a.To.Format != incoming.UBL && a.To.Format != incoming.CII || a.To.Number == "" || a.To.Day == "":
		return country.Unanswerable("", "the document is no invoice of a platform: it is %s", cmp.Or(a.To.Format, "unknown"))
	case seller.siren == "" || own.siren == "":
		return country.Unanswerable("", "the document does not name the SIREN of its seller, by which platforms know it")
	}
	known := reasonsOf(a.Status)
	switch {
	case known == nil && a.Reason != "":
		return []fault.Fault{fault.At("reason", fault.ValidationMatchInvalid, "has no place beside %s", a.Status)}
	case known != nil && !slices.Contains(known, a.Reason):
		code := fault.FieldNotValid
		if a.Reason == "" {
			code = fault.FieldRequired
		}
		return []fault.Fault{fault.At("reason", code, "must be one of %s", strings.Join(known, ", "))}
	}
	return nil
}

// answer makes the status of a draft.
func (ch *channel) answer(in *country.Draft) (country.Filing, error) {
	own := company(&in.Supplier)
	number := in.Transaction.Answer.To.Number
	name := strings.NewReplacer("/", "-", "+", "-").Replace(number) + "_" + standings[in.Transaction.Answer.Status].status + ".xml"
	id := tracking(in.OperationID)
	f, err := in.Filing(writeStatus(in, own, id), id, own.siren, extra{Syntax: syntaxStatus, Name: name, Rule: string(betweenBusinesses)})
	f.DedupeKey = id
	return f, err
}

// writeStatus writes the message; its id is the flow's tracking id.
func writeStatus(in *country.Draft, own register, id string) []byte {
	const aggregates = "urn:un:unece:uncefact:data:standard:"
	a, seller := in.Transaction.Answer, buyer(&in.Transaction.Answer.To.Sender)
	at := in.Now.In(paris()).Format("20060102150405")
	w := xmltree.NewWriter(4 << 10)
	nested := func(value string, names ...string) {
		for _, name := range names[:len(names)-1] {
			w.Start(name)
		}
		w.Leaf(names[len(names)-1], value)
		for range len(names) - 1 {
			w.End()
		}
	}
	moment := func(name, inner, value, format string) {
		w.Start(name)
		w.Leaf(inner, value, "format", format)
		w.End()
	}
	w.Declare()
	w.Start("rsm:CrossDomainAcknowledgementAndResponse", "xmlns:rsm", spaceStatus, "xmlns:ram", aggregates+"ReusableAggregateBusinessInformationEntity:100",
		"xmlns:qdt", aggregates+"QualifiedDataType:100", "xmlns:udt", aggregates+"UnqualifiedDataType:100")
	w.Start("rsm:ExchangedDocumentContext")
	nested("REGULATED", "ram:BusinessProcessSpecifiedDocumentContextParameter", "ram:ID")
	nested("urn.cpro.gouv.fr:1p0:CDV:invoice", "ram:GuidelineSpecifiedDocumentContextParameter", "ram:ID")
	w.End()
	w.Start("rsm:ExchangedDocument")
	w.Leaf("ram:ID", id)
	moment("ram:IssueDateTime", "udt:DateTimeString", at, "204")
	nested("WK", "ram:SenderTradeParty", "ram:RoleCode")
	w.Start("ram:IssuerTradeParty")
	w.Leaf("ram:GlobalID", own.siren, "schemeID", schemeSIREN)
	w.Leaf("ram:Name", in.Supplier.LegalName)
	w.Leaf("ram:RoleCode", "BY")
	w.End()
	w.Start("ram:RecipientTradeParty")
	w.Leaf("ram:GlobalID", seller.siren, "schemeID", schemeSIREN)
	w.Maybe("ram:Name", a.To.Sender.LegalName)
	w.Leaf("ram:RoleCode", "SE")
	w.Start("ram:URIUniversalCommunication")
	address := seller.siren
	if e := a.To.Sender.Electronic; e != nil && e.Scheme == schemeRouting {
		address = e.ID
	}
	w.Leaf("ram:URIID", address, "schemeID", schemeRouting)
	w.End()
	w.End()
	w.End()
	w.Start("rsm:AcknowledgementDocument")
	nested("false", "ram:MultipleReferencesIndicator", "udt:Indicator")
	w.Leaf("ram:TypeCode", "23")
	moment("ram:IssueDateTime", "udt:DateTimeString", at, "204")
	w.Start("ram:ReferenceReferencedDocument")
	w.Leaf("ram:IssuerAssignedID", a.To.Number)
	w.Maybe("ram:StatusCode", standings[a.Status].code)
	w.Leaf("ram:TypeCode", cmp.Or(a.To.TypeCode, "380"))
	moment("ram:FormattedIssueDateTime", "qdt:DateTimeString", strings.ReplaceAll(a.To.Day, "-", ""), "102")
	w.Leaf("ram:ProcessConditionCode", standings[a.Status].status)
	w.Leaf("ram:ProcessCondition", meanings[standings[a.Status].status].name)
	w.Start("ram:IssuerTradeParty")
	w.Leaf("ram:GlobalID", seller.siren, "schemeID", schemeSIREN)
	w.End()
	why(w, a, at)
	w.End()
	w.End()
	w.End()
	return append(w.Bytes(), '\n')
}

// why writes what a status says beside itself: its reason, or what is paid.
func why(w *xmltree.Writer, a *transaction.Answer, at string) {
	if a.Reason == "" && a.Note == "" && a.Status != transaction.Paid {
		return
	}
	w.Start("ram:SpecifiedDocumentStatus")
	w.Maybe("ram:ReasonCode", a.Reason)
	w.Maybe("ram:Reason", a.Note)
	w.Leaf("ram:SequenceNumeric", "1")
	if decimals, known := transaction.CurrencyExponent(a.To.Currency); known && a.Status == transaction.Paid {
		w.Start("ram:SpecifiedDocumentCharacteristic")
		w.Leaf("ram:TypeCode", "MPA")
		w.Start("ram:ValueChangedIndicator")
		w.Leaf("udt:IndicatorString", "false")
		w.End()
		w.Leaf("ram:ValueAmount", incoming.Units(a.To.Gross, decimals), "currencyID", a.To.Currency)
		w.Start("ram:ValueDateTime")
		w.Leaf("udt:DateTimeString", at[:8], "format", "102")
		w.End()
		w.End()
	}
	w.End()
}
