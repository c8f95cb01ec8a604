package it_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/it"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// warned is what the pack warns of at submit.
func warned(d country.Draft, now time.Time) (fields []string) {
	for _, f := range it.Pack().Check(country.Case{Transaction: &d.Transaction, Totals: d.Totals, UseCase: country.Both,
		Now: now}) {
		if f.Type == fault.Warning {
			fields = append(fields, f.Field)
		}
	}
	return fields
}

// What FatturaPA has no room for is filed shortened, and told.
func TestWhatIsCutIsTold(t *testing.T) {
	long := business()
	long.LegalName = strings.Repeat("Società ", 12)
	long.Address.AddressLine1 = strings.Repeat("Viale ", 12)
	d := draft("L-1", long, item("Penna", "1", 99, vat("22", transaction.Included)))
	if got := strings.Join(warned(d, d.Now), " "); got != "customer.address.address_line_1 customer.legal_name" {
		t.Errorf("warned of %s", got)
	}
	if got := warned(sale("L-2"), d.Now); len(got) > 0 {
		t.Errorf("an everyday sale: %v", got)
	}
	s := supplier()
	s.LegalName = strings.Repeat("Società ", 12)
	if found := it.Pack().CheckCompany(s, country.Credentials{}); len(found) != 1 || found[0].Field != "legal_name" {
		t.Errorf("%+v", found)
	}
}

// An invoice is late by the day on which SdI gets it.
func TestLatenessIsOfTheDayOfFiling(t *testing.T) {
	d := sale("T-1")
	for days, want := range map[int]bool{0: false, 12: false, 13: true} {
		if got := slices.Contains(warned(d, d.Transaction.Date.AddDate(0, 0, days)), "transaction_date"); got != want {
			t.Errorf("after %d days: %t", days, got)
		}
	}
}

func TestFormsOfPaymentAreThoseOfTheList(t *testing.T) {
	for code, want := range map[string]string{"MP0A": "refused", "MP24": "refused", "MP00": "refused", "mp23": "MP23",
		"MP08": "MP08", "CHASE": "MP05"} {
		d := sale("M-1")
		d.Transaction.Payments = []transaction.Payment{{Type: "TRANSFER", Code: code, Amount: d.Totals.Payable()}}
		list := found(d)
		if (want == "refused") != (len(list) == 1 && list[0].Field == "payments.0.code") {
			t.Errorf("%s: %+v", code, list)
		}
		f, err := offline(t).Prepare(d)
		if want != "refused" && (err != nil || !strings.Contains(string(f.Report), "<ModalitaPagamento>"+want+"<")) {
			t.Errorf("%s: %v\n%s", code, err, f.Report)
		}
	}
}

// A bare bracket in a note swallows nothing of what is filed.
func TestANoteIsFiledWhole(t *testing.T) {
	d := sale("N-1")
	d.Transaction.Note = "ordine <Muster, consegna 3 giorni"
	f, err := offline(t).Prepare(d)
	if err != nil || !strings.Contains(string(f.Report), "<Causale>ordine &lt;Muster, consegna 3 giorni<") {
		t.Errorf("%v\n%s", err, f.Report)
	}
}

// Every message leaves an entry of the life cycle, whichever comes first; times
// without an offset are Rome's.
func TestEveryMessageOfSdIIsAnEntry(t *testing.T) {
	var codes []string
	for _, c := range keptCalls(t) {
		list, _, err := it.Pack().Callbacks.Read(simulated, c.call())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list[0].Receipt.News {
			codes = append(codes, n.Code)
			if n.At.IsZero() || n.Key == "" || n.Name == "" || n.Source != country.FromAuthority {
				t.Errorf("%+v", n)
			}
		}
	}
	if !slices.Contains(codes, "RC") || !slices.Contains(codes, "MC") {
		t.Errorf("entries %v", codes)
	}
	for text, want := range map[string]string{
		"2026-11-18T10:00:00":           "2026-11-18T09:00:00Z",
		"2026-07-18T10:00:00.000":       "2026-07-18T08:00:00Z",
		"2026-07-18T10:00:00.000+02:00": "2026-07-18T08:00:00Z",
		"2026-07-18T10:00:00Z":          "2026-07-18T10:00:00Z",
		"soon":                          "0001-01-01T00:00:00Z",
	} {
		if got := it.Instant(text).UTC().Format(time.RFC3339); got != want {
			t.Errorf("%s is %s", text, got)
		}
	}
}

// What SdI signed while its certificate was valid is believed after that has ended.
func TestASignatureIsJudgedAtTheMessagesTime(t *testing.T) {
	for _, c := range keptCalls(t) {
		call := c.call()
		call.At = call.At.AddDate(60, 0, 0)
		if err := it.Verified(simulated, call); err != nil {
			t.Errorf("long after: %v", err)
		}
	}
}

// Period, place of delivery, payee and mandate stand where FatturaPA has them.
func TestHowItIsSuppliedAndPaidIsFiled(t *testing.T) {
	d := sale("P-1")
	d.Transaction.Period = &transaction.Span{From: "2025-02-01", To: "2025-02-28"}
	d.Transaction.Delivery = &transaction.Delivery{Name: "Magazzino 2",
		Address: &transaction.Address{CountryCode: "IT", City: "Pisa", PostalCode: "56121", AddressLine1: "Via Aurelia 1",
			Province: "PI"}}
	d.Transaction.Payee = &transaction.Payee{Name: "Factor S.p.A.", IBAN: "IT60X0542811101000000123456"}
	d.Transaction.Payments = []transaction.Payment{{Type: "TRANSFER", Amount: d.Totals.Payable()}}
	d.Sequence = 7
	more := sale("P-3")
	extra := more.Transaction.Items[0]
	extra.Number, extra.Name, extra.UnitPrice, extra.Quantity = 90, "Spese di trasporto", 1500, num.MakeAmount(1, 0)
	extra.Extra = &transaction.Extra{Charge: true, Amount: 1500, Reason: extra.Name}
	more.Transaction.Items = append(more.Transaction.Items, extra)
	more.Totals, _ = transaction.Calculate(more.Transaction.Items)
	more.Transaction.Attachments = []transaction.Attachment{{Name: "ore.csv", Type: "text/csv", Content: []byte("a,b")}}
	more.Transaction.Payments = []transaction.Payment{{Type: "TRANSFER", Code: "MP05", Amount: more.Totals.Payable()}}
	more.Sequence = 9
	debit := sale("P-2")
	debit.Transaction.Payments = []transaction.Payment{{Type: "OTHER", Amount: debit.Totals.Payable(),
		IBAN: "IT60X0542811101000000123456", Mandate: &transaction.Mandate{Reference: "M-1",
			CreditorID: "IT66ZZZA1B2C3D4E5F6G7H8"}}}
	debit.Sequence = 8
	var reports [][]byte
	for _, c := range []struct {
		draft country.Draft
		files []string
	}{
		{d, []string{"<DataInizioPeriodo>2025-02-01</DataInizioPeriodo><DataFinePeriodo>2025-02-28<",
			"<DatiTrasporto><IndirizzoResa><Indirizzo>Via Aurelia 1<", "<Causale>Consegna presso: Magazzino 2<",
			"<Beneficiario>Factor S.p.A.</Beneficiario><ModalitaPagamento>MP05<", "<IBAN>IT60X0542811101000000123456<"}},
		{more, []string{"<TipoCessionePrestazione>AC</TipoCessionePrestazione><Descrizione>Spese di trasporto<",
			"<Allegati><NomeAttachment>ore.csv</NomeAttachment><FormatoAttachment>CSV</FormatoAttachment>" +
				"<Attachment>YSxi</Attachment></Allegati></FatturaElettronicaBody>"}},
		{debit, []string{"<ModalitaPagamento>MP19<", "mandato M-1, creditore IT66ZZZA1B2C3D4E5F6G7H8<"}},
	} {
		f, err := offline(t).Prepare(c.draft)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.files {
			if !strings.Contains(string(f.Report), want) {
				t.Errorf("no %s in %s", want, f.Report)
			}
		}
		reports = append(reports, f.Report)
	}
	if strings.Contains(string(reports[2]), "<IBAN>") {
		t.Error("the account that is debited is filed as one to pay to")
	}
	schema(t, reports)
}
