package en16931_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/country/packtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// lawful is a document that a law asks for, and what it must say.
type lawful struct {
	name   string
	change func(*transaction.Transaction, *country.Supplier)
	holds  func(*en16931.Invoice) bool
}

func exemptLines(t *transaction.Transaction) {
	for i := range t.Items {
		t.Items[i].Taxes = vat(num.AmountZero, transaction.TaxExempt, transaction.Added)
	}
}

func selfBilled(kind transaction.Kind) func(*transaction.Transaction, *country.Supplier) {
	return func(t *transaction.Transaction, _ *country.Supplier) {
		t.Customer.TaxNumber = cmp.Or(t.Customer.TaxNumber, "EE100594102") // Estonia's buyer has none
		t.Kind, t.Issuer = kind, t.Customer
	}
}

// lawfuls are tried in every country of the family, in the format that it makes by itself.
var lawfuls = []lawful{
	{"self-billed", selfBilled(transaction.Invoice), func(d *en16931.Invoice) bool {
		return d.TypeCode == "389" && (!strings.Contains(d.Specification, "peppol") ||
			strings.HasSuffix(d.Specification, "selfbilling:3.0"))
	}},
	{"self-billed, taken back", selfBilled(transaction.Credit), func(d *en16931.Invoice) bool {
		return d.TypeCode == "261" && d.IsCreditNote()
	}},
	{"a seller without a VAT number", func(t *transaction.Transaction, s *country.Supplier) {
		exemptLines(t)
		s.TaxNumber = ""
	}, func(d *en16931.Invoice) bool { return d.Seller.VATID == "" && d.Seller.TaxID != "" }},
	{"period, delivery and payee", supplied, suppliedSaid},
	{"direct debit", debited, debitSaid},
	{"allowances, charges and attachments", extended, extendedSaid},
	{"shipping beside goods for another member state", shipped, func(d *en16931.Invoice) bool {
		return len(d.Breakdown) == 1 && d.Breakdown[0].Category == "K" && d.Lines[1].Category == "K"
	}},
	{"a seller with a local number", func(t *transaction.Transaction, s *country.Supplier) {
		exemptLines(t)
		s.TaxNumber = "29/815/08157"
	}, func(d *en16931.Invoice) bool { return d.Seller.VATID == "" && d.Seller.TaxID == "29/815/08157" }},
}

// extended is a sale with an allowance of an amount, a charge of a rate and a file.
func extended(t *transaction.Transaction, _ *country.Supplier) {
	rate := num.MakeAmount(5, 0)
	tax := vat(t.Items[0].Taxes[0].Rate, "", transaction.Added)
	for i := range t.Items {
		t.Items[i].Taxes = tax
	}
	base := int64(3*7570 + 6000)
	if len(t.Items) > 2 {
		base += 7 * 1299
	}
	extra := func(number, price int64, kind string, of transaction.Extra) transaction.Item {
		return transaction.Item{Number: number, Name: of.Reason, Quantity: num.MakeAmount(1, 0), UnitPrice: price, Type: kind,
			Taxes: tax, Extra: &of}
	}
	t.Items = append(t.Items, extra(10, -1000, transaction.Discount, transaction.Extra{Amount: 1000, Reason: "Voucher"}),
		extra(11, (base*5+50)/100, transaction.Goods, transaction.Extra{Charge: true, Rate: &rate, Reason: "Handling"}))
	t.Attachments = []transaction.Attachment{{Name: "times.csv", Type: "text/csv", Content: []byte("day,hours\n")},
		{Name: "plan.pdf", Type: "application/pdf", Content: []byte("%PDF-1.7")}}
}

func extendedSaid(d *en16931.Invoice) bool {
	if len(d.Allowances) != 1 || len(d.Charges) != 1 || len(d.Documents) != 2 {
		return false
	}
	a, c, f := d.Allowances[0], d.Charges[0], d.Documents[1]
	return a.Reason == "Voucher" && a.Amount.String() == "10.00" && c.Reason == "Handling" && c.Percent.String() == "5" &&
		c.Base.Given() && f.Filename == "plan.pdf" && f.MIME == "application/pdf" && string(f.Content) == "%PDF-1.7"
}

// shipped sells goods to another member state, with shipping that says nothing of its own.
func shipped(t *transaction.Transaction, _ *country.Supplier) {
	other := relatives[0]
	if t.CountryCode == other.code {
		other = relatives[1]
	}
	t.Customer = other.customer()
	t.Items = t.Items[:2]
	t.Items[0].Taxes = vat(num.AmountZero, transaction.TaxIntraEU, transaction.Added)
	t.Items[1].Name, t.Items[1].Ancillary = "Shipping", true
	t.Items[1].Taxes = vat(num.AmountZero, "", transaction.Added)
}

// supplied says all that a client can of how a sale is supplied and who is paid.
func supplied(t *transaction.Transaction, _ *country.Supplier) {
	t.Period = &transaction.Span{From: "2026-11-01", To: "2026-11-30"}
	t.Items[1].Period = &transaction.Span{From: "2026-11-03", To: "2026-11-05"}
	t.Delivery = &transaction.Delivery{Name: "Warehouse 2",
		Address: &transaction.Address{CountryCode: t.CountryCode, City: "Elsewhere", PostalCode: "10115",
			AddressLine1: "Dock 4"}}
	t.Payee = &transaction.Payee{Name: "Factor & Co", ID: "F-4711", IBAN: "DE02120300000000202051"}
}

func suppliedSaid(d *en16931.Invoice) bool {
	return d.Period == (en16931.Period{Start: "2026-11-01", End: "2026-11-30"}) &&
		d.Lines[1].Period == (en16931.Period{Start: "2026-11-03", End: "2026-11-05"}) &&
		d.Delivery.Name == "Warehouse 2" && d.Delivery.Address.City == "Elsewhere" && d.Payee != nil &&
		d.Payee.Name == "Factor & Co" &&
		d.Payee.IDs[0].ID == "F-4711" && d.Payment.Means[0].Account.ID == "DE02120300000000202051"
}

func debited(t *transaction.Transaction, _ *country.Supplier) {
	totals, _ := transaction.Calculate(t.Items)
	t.Payments = []transaction.Payment{{Type: "OTHER", Amount: totals.Gross, IBAN: "DE02120300000000202051",
		Mandate: &transaction.Mandate{Reference: "M-2026-1", CreditorID: "DE98ZZZ09999999999"}}}
}

func debitSaid(d *en16931.Invoice) bool {
	m := d.Payment.Means[0]
	return (m.Code == "59" || m.Code == "49" && d.Currency != "EUR") && d.Payment.Mandate == "M-2026-1" &&
		d.Payment.Creditor == "DE98ZZZ09999999999" &&
		m.DebitAccount == "DE02120300000000202051" && m.Account == (en16931.Account{})
}

// lawTrials: what the law asks for is said, and the official rules take it.
func lawTrials(t *testing.T, court *court) {
	t.Helper()
	packs := family(t)
	for _, r := range relatives {
		for _, l := range lawfuls {
			tx, s := r.sale(), r.supplier(nil)
			l.change(tx, s)
			made, err := packs[r.code].Structured(issue(t, packs[r.code], tx, s))
			if err != nil || made == nil {
				t.Errorf("%s, %s: %v %s", r.code, l.name, made, explain(err))
				continue
			}
			d, unknown, err := en16931.Read(made.Content)
			if err != nil || len(unknown) > 0 || !l.holds(d) {
				t.Errorf("%s, %s: %v %v\n%s", r.code, l.name, err, unknown, made.Content)
				continue
			}
			sets := rulesOf(t, profileOf(made.Name))
			if strings.Contains(d.Specification, "selfbilling") {
				sets[1] = needs.Schemas(t, "peppol-bis3", "xslt", "PEPPOL-EN16931-UBL-SB.xslt")
			}
			for _, rules := range sets {
				court.try(rules, made.Content, func(v packtest.Verdict) {
					if v.Fired == 0 || len(v.Errors) > 0 {
						t.Errorf("%s, %s: refused: %s\n%s", r.code, l.name, strings.Join(v.Texts, "\n"), made.Content)
					}
				})
			}
			for _, err := range (packtest.XSD{Path: schemaOf(t, profileOf(made.Name), d)}).CheckAll(t, [][]byte{made.Content}) {
				if err != nil {
					t.Errorf("%s, %s: %v", r.code, l.name, err)
				}
			}
		}
	}
}

// A self-billed document is headed as the law has it, and not sent by the seller.
func TestSelfBilledDocumentsAreHeadedAndKept(t *testing.T) {
	pack := family(t)["DE"]
	r := relatives[slices.IndexFunc(relatives, func(r relative) bool { return r.code == "DE" })]
	tx, s := r.sale(), r.supplier(country.Settings{"delivery": "peppol"})
	in := issue(t, pack, tx, s)
	if !pack.Files.Of(s, tx, nil) {
		t.Error("an ordinary sale is not sent")
	}
	tx.Issuer, in.Transaction.Issuer, in.Language = tx.Customer, tx.Customer, "DE"
	if out := pack.Printed(in); out.Title != "Gutschrift" || !slices.Contains(out.Texts, "Gutschrift") {
		t.Errorf("%+v", out)
	}
	if pack.Files.Of(s, tx, nil) {
		t.Error("the seller sends what the buyer issues")
	}
	found := pack.Check(country.Case{Transaction: tx, Totals: in.Totals, UseCase: country.Invoicing, Now: tx.Date})
	if !slices.ContainsFunc(found, func(f fault.Fault) bool {
		return f.Field == "issuer" && f.Type == fault.Warning && strings.Contains(f.Message, "not sent over Peppol")
	}) {
		t.Errorf("nobody is told: %+v", found)
	}
}

// A routing identifier is told by its form; wrong check digits are a warning.
func TestARoutingIdentifierIsToldByItsForm(t *testing.T) {
	pack := family(t)["DE"]
	r := relatives[slices.IndexFunc(relatives, func(r relative) bool { return r.code == "DE" })]
	for id, want := range map[string]struct {
		format string
		warned bool
	}{
		"04011000-1234512345-06": {"XRECHNUNG_UBL", false},
		"991-33333TEST-33":       {"XRECHNUNG_UBL", false},
		"04011000-12345-35":      {"XRECHNUNG_UBL", true},
		"2026-17":                {"ZUGFERD", false},
		"HRB 4711":               {"ZUGFERD", false},
	} {
		for _, field := range []string{"customer.entity_number", "buyer_reference"} {
			tx := r.sale()
			tx.Customer.EntityNumber = ""
			if field == "buyer_reference" {
				tx.References.Buyer = id
			} else {
				tx.Customer.EntityNumber = id
			}
			in := issue(t, pack, tx, r.supplier(nil))
			made, err := pack.Structured(in)
			if err != nil || made.Name != want.format {
				t.Fatalf("%s: %+v %s", id, made, explain(err))
			}
			if d, _, _ := en16931.Read(made.Content); want.format == "XRECHNUNG_UBL" &&
				(d.BuyerReference != id || d.Buyer.Electronic != (en16931.Identifier{ID: id, Scheme: "0204"})) {
				t.Errorf("%s: %+v %s", id, d.Buyer.Electronic, d.BuyerReference)
			}
			found := pack.Check(country.Case{Transaction: tx, Totals: in.Totals, UseCase: country.Invoicing, Now: tx.Date})
			warned := slices.ContainsFunc(found, func(f fault.Fault) bool {
				return f.Field == field && f.Type == fault.Warning && f.Code == fault.TaxNumberDoubtful
			})
			if warned != want.warned || len(errorsOf(found)) > 0 {
				t.Errorf("%s in %s: %+v", id, field, found)
			}
		}
	}
}

// A Norwegian seller has the VAT number that it has: none is made of its number
// in the register of organisations.
func TestNoNumberIsInventedForANorwegianSeller(t *testing.T) {
	pack := family(t)["NO"]
	r := relatives[slices.IndexFunc(relatives, func(r relative) bool { return r.code == "NO" })]
	for number, want := range map[string]string{"987654325": "", "NO987654325": "", "NO987654325MVA": "NO987654325MVA",
		"987 654 325 mva": "NO987654325MVA"} {
		tx, s := r.sale(), r.supplier(country.Settings{"foretaksregisteret": true})
		exemptLines(tx)
		s.TaxNumber, s.CompanyNumber = number, ""
		made, err := pack.Structured(issue(t, pack, tx, s))
		if err != nil {
			t.Fatalf("%s: %s", number, explain(err))
		}
		d, _, _ := en16931.Read(made.Content)
		if d.Seller.VATID != want || d.Seller.LegalID.ID != "987654325" || d.Seller.TaxID != "Foretaksregisteret" ||
			made.Name != "PEPPOL_UBL" {
			t.Errorf("%s: %s %+v", number, made.Name, d.Seller)
		}
	}
}

// The default due date is so many days later where the supplier is, also across
// a change of clocks.
func TestDueDatesAreCountedInDays(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	r := relatives[slices.IndexFunc(relatives, func(r relative) bool { return r.code == "DE" })]
	for at, want := range map[string]en16931.Date{
		"2026-10-09T22:30:00Z": "2026-11-09", // 00:30 on the 10th in summer
		"2026-03-09T23:30:00Z": "2026-04-09", // 00:30 on the 10th in winter
		"2026-06-09T12:00:00Z": "2026-07-09",
	} {
		tx := r.sale()
		tx.Date, _ = time.Parse(time.RFC3339, at)
		in := issue(t, family(t)["DE"], tx, r.supplier(nil))
		in.Location = berlin
		made, err := family(t)["DE"].Structured(in)
		if err != nil {
			t.Fatal(explain(err))
		}
		if d, _, _ := en16931.Read(made.Content); d.DueDate != want {
			t.Errorf("%s and 30 days are %s", at, d.DueDate)
		}
	}
}

// The bank of the company's account is not that of another account.
func TestABankIsNamedWithItsOwnAccountAlone(t *testing.T) {
	t.Parallel()
	for iban, want := range map[string]string{"": "COBADEFFXXX", "DE89 3704 0044 0532 0130 00": "COBADEFFXXX",
		"DE02 1203 0000 0000 2020 51": ""} {
		_, d, faults := made(t, "DE", country.Settings{"format": "XRECHNUNG_UBL", "bic": "COBADEFFXXX"},
			func(tx *transaction.Transaction) {
				totals, _ := transaction.Calculate(tx.Items)
				tx.Payments = []transaction.Payment{{Type: "TRANSFER", Amount: totals.Gross, IBAN: iban}}
			})
		if len(faults) > 0 || d.Payment.Means[0].Account.BIC != want {
			t.Errorf("%q: %v %+v", iban, faults, d.Payment.Means)
		}
	}
}
