package peppol_test

import (
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/incoming"
	"tributary/internal/transaction"
)

// What cannot be said over the network is refused before it is stored, each with its field.
func TestAnswersThatTheNetworkDoesNotTake(t *testing.T) {
	t.Parallel()
	pack := packOf(t, "BE")
	at := func(scheme, id string) *transaction.ElectronicAddress {
		return &transaction.ElectronicAddress{Scheme: scheme, ID: id}
	}
	good := transaction.Answer{Status: transaction.Accepted, To: transaction.Answered{Format: incoming.UBL, Number: "1",
		Sender: transaction.Party{Electronic: at("0208", "0417497106")}, Receiver: transaction.Party{Electronic: at("0208", "0202239951")}}}
	for name, c := range map[string]struct {
		change func(*transaction.Answer, *country.Supplier)
		field  string // "-": it is taken
	}{
		"as it should be": {func(*transaction.Answer, *country.Supplier) {}, "-"},
		"CII":             {func(a *transaction.Answer, _ *country.Supplier) { a.To.Format = incoming.CII }, "-"},
		"why, in words":   {func(a *transaction.Answer, _ *country.Supplier) { a.Status, a.Note = transaction.Rejected, "no" }, "-"},
		"why, by a code":  {func(a *transaction.Answer, _ *country.Supplier) { a.Status, a.Reason = transaction.Disputed, "QTY" }, "-"},
		"paid in part": {func(a *transaction.Answer, _ *country.Supplier) {
			a.Status, a.Reason, a.Note = transaction.Paid, "PPD", "half"
		}, "-"},
		"paid in part, no words": {func(a *transaction.Answer, _ *country.Supplier) { a.Status, a.Reason = transaction.Paid, "PPD" }, "note"},
		"OTH without words":      {func(a *transaction.Answer, _ *country.Supplier) { a.Status, a.Reason = transaction.Rejected, "OTH" }, "note"},
		"an unknown code":        {func(a *transaction.Answer, _ *country.Supplier) { a.Reason = "NON" }, "reason"},
		"PPD of a refusal": {func(a *transaction.Answer, _ *country.Supplier) {
			a.Status, a.Reason, a.Note = transaction.Rejected, "PPD", "x"
		}, "reason"},
		"not on the network": {func(_ *transaction.Answer, s *country.Supplier) { s.Settings = country.Settings{"delivery": "none"} }, ""},
		"mail":               {func(a *transaction.Answer, _ *country.Supplier) { a.To.Sender.Electronic = at("EM", "a@b.example") }, ""},
		"no address of ours": {func(a *transaction.Answer, _ *country.Supplier) { a.To.Receiver.Electronic = nil }, ""},
		"no number":          {func(a *transaction.Answer, _ *country.Supplier) { a.To.Number = "" }, ""},
		"of another country": {func(a *transaction.Answer, _ *country.Supplier) { a.To.Format = incoming.FA }, ""},
	} {
		a, s := good, country.Supplier{CountryCode: "BE", LegalName: "Koper", CompanyNumber: "0202239951", TaxNumber: "BE0202239951"}
		c.change(&a, &s)
		found := pack.Answerable(s, a)
		if taken := len(found) == 0; taken != (c.field == "-") || !taken && (len(found) != 1 || found[0].Field != c.field ||
			c.field == "" && !strings.Contains(string(found[0].Code), "unsupported_operation")) {
			t.Errorf("%s: %v", name, found)
		}
	}
}
