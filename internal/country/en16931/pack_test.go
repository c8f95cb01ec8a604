package en16931_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/country/packtest"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// at finds a relative by its country.
func kin(code string) relative {
	return relatives[slices.IndexFunc(relatives, func(r relative) bool { return r.code == code })]
}

// made is what a pack makes of a sale, read back.
func made(t *testing.T, code string, settings country.Settings,
	change func(tx *transaction.Transaction)) (*country.Structured, *en16931.Invoice, []fault.Fault) {
	t.Helper()
	r, pack := kin(code), family(t)[code]
	tx := r.sale()
	change(tx)
	out, err := pack.Structured(issue(t, pack, tx, r.supplier(settings)))
	var wrong *fault.Error
	if errors.As(err, &wrong) {
		return nil, nil, wrong.Faults
	}
	if err != nil {
		t.Fatal(err)
	}
	if out == nil {
		return nil, nil, nil
	}
	d, unknown, err := en16931.Read(out.Content)
	if err != nil || len(unknown) > 0 {
		t.Fatalf("%v %v", err, unknown)
	}
	return out, d, nil
}

func same(*transaction.Transaction) {}

func TestPacksOfTheFamilyAreConsistent(t *testing.T) {
	for code, p := range family(t) {
		if p.Structured == nil || !slices.ContainsFunc(relatives, func(r relative) bool { return r.code == code }) {
			continue
		}
		t.Run(code, func(t *testing.T) {
			r := kin(code)
			// the way over the network has its own suite
			p.Connect, p.Simulator, p.Callbacks, p.Receive, p.Files, p.Facts.Authority = nil, nil, nil, nil, country.Filed{}, nil
			packtest.Exercise(t, p, packtest.Options{Name: code,
				Cases: []packtest.Case{{Name: "sale", Draft: country.Draft{Transaction: *r.sale(), Now: r.sale().Date}}}})
			if len(p.Sources) < 2 || p.Version == "generic-1" {
				t.Errorf("sources %v, version %s", p.Sources, p.Version)
			}
		})
	}
}

// Which format is made depends on the buyer, unless the settings say more.
func TestTheFormatIsChosenByTheBuyer(t *testing.T) {
	public := func(tx *transaction.Transaction) { tx.References.Buyer = "04011000-12345-03" }
	numberless := func(tx *transaction.Transaction) { tx.Customer.TaxNumber, tx.Customer.EntityNumber = "", "" }
	consumer := func(tx *transaction.Transaction) { tx.Customer.Type = transaction.Individual }
	for _, c := range []struct {
		name, code, format string
		change             func(*transaction.Transaction)
		want               string
		embedded           bool
	}{
		{"a German business", "DE", "", same, "ZUGFERD", true},
		{"a German authority", "DE", "", public, "XRECHNUNG_UBL", false},
		{"as asked", "DE", "XRECHNUNG_CII", same, "XRECHNUNG_CII", false},
		{"a German consumer", "DE", "", consumer, "", false},
		{"a consumer, asked for", "DE", "ZUGFERD", consumer, "ZUGFERD", true},
		{"nobody", "DE", "ZUGFERD", func(tx *transaction.Transaction) { tx.Customer = nil }, "", false},
		{"nothing wanted", "DE", "NONE", same, "", false},
		{"a Belgian business", "BE", "", same, "PEPPOL_UBL", false},
		{"an Irish business", "IE", "", same, "PEPPOL_UBL", false},
		{"an Irish business nobody can address", "IE", "", numberless, "EN16931_UBL", false},
	} {
		settings := country.Settings{}
		if c.format != "" {
			settings["format"] = c.format
		}
		out, _, faults := made(t, c.code, settings, c.change)
		got := ""
		if out != nil {
			got = out.Name
		}
		if got != c.want || len(faults) > 0 || out != nil && (out.Embedded != nil) != c.embedded {
			t.Errorf("%s: %q instead of %q, %v", c.name, got, c.want, faults)
		}
	}
}

// Between Belgian businesses nothing but Peppol will do: who cannot be addressed
// there is a fault, at submit already.
func TestABelgianBuyerMustBeAddressable(t *testing.T) {
	r, pack := kin("BE"), family(t)["BE"]
	tx := r.sale()
	tx.Customer.TaxNumber, tx.Customer.EntityNumber = "", ""
	totals, _ := transaction.Calculate(tx.Items)
	found := errorsOf(pack.Check(country.Case{Transaction: tx, Totals: totals, UseCase: country.Invoicing, Now: tx.Date}))
	if len(found) != 1 || found[0].Field != "customer.tax_information.tax_number" ||
		found[0].Code != fault.FieldRequired || !strings.Contains(found[0].Message, "PEPPOL-EN16931-R010") {
		t.Errorf("%v", found)
	}
	tx.Customer.Electronic = &transaction.ElectronicAddress{Scheme: "0208", ID: "0403170702"}
	found = errorsOf(pack.Check(country.Case{Transaction: tx, Totals: totals, UseCase: country.Invoicing, Now: tx.Date}))
	if len(found) != 1 || found[0].Code != fault.FieldNotValid ||
		!strings.Contains(found[0].Message, "PEPPOL-COMMON-R043") {
		t.Errorf("wrong check digits: %v", found)
	}
	tx.Customer.Electronic.ID = "0403170701"
	if found = errorsOf(pack.Check(country.Case{Transaction: tx, Totals: totals, UseCase: country.Invoicing,
		Now: tx.Date})); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// The client's own members win over settings, and settings over derivations.
func TestWhereTermsComeFrom(t *testing.T) {
	_, d, faults := made(t, "DE", country.Settings{"format": "XRECHNUNG_UBL", "payment_terms": "30 days",
		"buyer_reference": "B-1"}, same)
	if len(faults) > 0 || d.BuyerReference != "B-1" || d.PaymentTerms != "30 days" || d.DueDate != "2026-12-15" ||
		d.Delivery.Date != "2026-11-15" || d.Payment.Means[0].Account.ID != "DE89370400440532013000" {
		t.Errorf("from settings: %v %+v", faults, d)
	}
	_, d, faults = made(t, "DE", country.Settings{"format": "XRECHNUNG_UBL", "payment_terms": "30 days",
		"buyer_reference": "B-1"}, func(tx *transaction.Transaction) {
		tx.References = transaction.References{Buyer: "B-2", Order: "O-2", Contract: "C-2", Project: "P-2"}
		tx.DueDate, tx.DeliveryDate, tx.PaymentTerms = "2026-12-01", "2026-11-01", "#SKONTO#TAGE=10#PROZENT=2.00#\n"
		tx.Customer.Electronic, tx.Customer.Email = &transaction.ElectronicAddress{Scheme: "EM", ID: "in@example.com"},
			"b@example.com"
		totals, _ := transaction.Calculate(tx.Items)
		tx.Payments = []transaction.Payment{{Type: "TRANSFER", Amount: totals.Gross, IBAN: "DE02 1203 0000 0000 2020 51",
			Reference: "RF18"}}
		tx.Items[0].Classifications = []transaction.Classification{{Scheme: "CPV", Code: "30213100"},
			{Scheme: "HSN", Code: "9401"}}
	})
	if len(faults) > 0 || d.BuyerReference != "B-2" || d.OrderReference != "O-2" || d.ContractReference != "C-2" ||
		d.ProjectReference != "P-2" || d.DueDate != "2026-12-01" ||
		d.Delivery.Date != "2026-11-01" || d.PaymentTerms != "#SKONTO#TAGE=10#PROZENT=2.00#\n" ||
		d.Buyer.Electronic.ID != "in@example.com" || d.Buyer.Contact.Email != "b@example.com" ||
		d.Payment.Means[0].Account.ID != "DE02120300000000202051" || d.Payment.Remittance != "RF18" ||
		d.Lines[0].Item.Classes[0].Scheme != "STI" || d.Lines[0].Item.Attributes[0].Name != "HSN" {
		t.Errorf("from the client: %v %+v", faults, d)
	}
	_, d, _ = made(t, "DE", country.Settings{"format": "XRECHNUNG_UBL"}, same)
	if d.BuyerReference != "order-17" || d.Buyer.Electronic.Scheme != "9930" || d.Notes[0].Text != "Thank you" {
		t.Errorf("derived: %+v", d)
	}
}

func TestDiscountsPaymentsAndNegativeLines(t *testing.T) {
	_, d, faults := made(t, "DE", nil, func(tx *transaction.Transaction) {
		tx.Items = tx.Items[:1]
		tx.Items = append(tx.Items,
			transaction.Item{Number: 2, Name: "Loyalty", Quantity: num.MakeAmount(1, 0), UnitPrice: -1190,
				Type: transaction.Discount, Taxes: tx.Items[0].Taxes},
			transaction.Item{Number: 3, Name: "Old chair", Quantity: num.MakeAmount(2, 0), UnitPrice: -595,
				Type: transaction.Goods, Taxes: tx.Items[0].Taxes})
		tx.Payments = []transaction.Payment{{Type: "CARD", Amount: 10330}, {Type: "CASH", Amount: 10000}}
	})
	if len(faults) > 0 || len(d.Lines) != 2 || len(d.Allowances) != 1 || d.Allowances[0].Amount.String() != "10.00" ||
		d.Allowances[0].Reason != "Loyalty" {
		t.Fatalf("%v %+v", faults, d)
	}
	if l := d.Lines[1]; l.Quantity.String() != "-2" || l.Price.Net.String() != "5.00" || l.Net.String() != "-10.00" {
		t.Errorf("a negative line: %+v", l)
	}
	if d.Totals.Paid.String() != "203.30" || d.Totals.Due.Sign() != 0 || d.Payment.Means[0].Code != "1" ||
		d.Payment.Means[0].Text != "CARD, CASH" {
		t.Errorf("paid: %+v %+v", d.Totals, d.Payment)
	}
}

func TestTheRoundingAmountIsTold(t *testing.T) {
	cents := func(count int) func(*transaction.Transaction) {
		return func(tx *transaction.Transaction) {
			item := tx.Items[0]
			item.Quantity, item.UnitPrice, tx.Items = num.MakeAmount(1, 0), 99, nil
			for i := range count {
				item.Number = int64(i + 1)
				tx.Items = append(tx.Items, item)
			}
		}
	}
	for _, c := range []struct {
		code     string
		lines    int
		rounding int64
	}{{"DE", 3, 0}, {"DE", 500, 115}, {"BE", 3, -1}, {"BE", 500, -110}} {
		out, d, faults := made(t, c.code, nil, cents(c.lines))
		if len(faults) > 0 || out.Rounding != c.rounding ||
			d.Totals.Due.String() != en16931.Dec(int64(99*c.lines), 2).String() {
			t.Errorf("%s, %d lines: rounding %d instead of %d, due %s, %v", c.code, c.lines, out.Rounding, c.rounding,
				d.Totals.Due, faults)
		}
	}
}

func TestWhatTheStandardHasNoPlaceForIsRefused(t *testing.T) {
	for name, change := range map[string]func(*transaction.Transaction){
		"items.0.tax_breakdowns.1.regime": func(tx *transaction.Transaction) {
			tx.Items[0].Taxes = append(tx.Items[0].Taxes,
				transaction.Tax{Rate: num.MakeAmount(15, 0), Regime: transaction.Withholding})
		},
		"items.0.tax_breakdowns.1": func(tx *transaction.Transaction) {
			tx.Items[0].Taxes = append(tx.Items[0].Taxes, tx.Items[0].Taxes[0])
		},
		"currency_code": func(tx *transaction.Transaction) { tx.CurrencyCode = "KWD" },
	} {
		r, pack := kin("DE"), family(t)["DE"]
		tx := r.sale()
		change(tx)
		totals, _ := transaction.Calculate(tx.Items)
		found := errorsOf(pack.Check(country.Case{Transaction: tx, Totals: totals, UseCase: country.Invoicing, Now: tx.Date}))
		if len(found) == 0 || found[0].Field != name || found[0].Code != fault.UnsupportedField {
			t.Errorf("%s: %v", name, found)
		}
		if _, _, faults := made(t, "DE", nil, change); len(faults) == 0 || faults[0].Code != fault.UnsupportedField {
			t.Errorf("%s when it is made: %v", name, faults)
		}
	}
}

// What a format wants of the company is asked for at onboarding.
func TestSettingsAreCheckedAtOnboarding(t *testing.T) {
	packs := family(t)
	for _, c := range []struct {
		name, code string
		change     func(s *country.Supplier)
		want       []string
	}{
		{"nothing chosen", "DE", func(s *country.Supplier) { s.Settings = country.Settings{} }, nil},
		{"XRechnung without a contact", "DE", func(s *country.Supplier) {
			s.Settings = country.Settings{"format": "XRECHNUNG_UBL"}
		}, []string{"settings.contact_name"}},
		{"XRechnung without a telephone", "DE", func(s *country.Supplier) {
			s.Settings["format"], s.Settings["contact_phone"] = "XRECHNUNG_UBL", ""
		}, []string{"settings.contact_phone"}},
		{"XRechnung with everything", "DE", func(s *country.Supplier) { s.Settings["format"] = "XRECHNUNG_UBL" }, nil},
		{"an account with wrong check digits", "DE", func(s *country.Supplier) {
			s.Settings["iban"] = "DE89370400440532013001"
		}, []string{"settings.iban"}},
		{"half an address", "BE", func(s *country.Supplier) {
			s.Settings["endpoint_id"] = "0202239951"
		}, []string{"settings.endpoint_id"}},
		{"a scheme that is none", "BE", func(s *country.Supplier) {
			s.Settings["endpoint_id"], s.Settings["endpoint_scheme"] = "1", "9999"
		}, []string{"settings.endpoint_scheme"}},
		{"an address that cannot exist", "BE", func(s *country.Supplier) {
			s.Settings["endpoint_id"], s.Settings["endpoint_scheme"] = "0202239952", "0208"
		}, []string{"settings.endpoint_id"}},
		{"Peppol from the Netherlands without the register", "NL", func(s *country.Supplier) {
			s.Settings["format"], s.CompanyNumber = "PEPPOL_UBL", ""
		}, []string{"company_number"}},
		{"Peppol from Norway without a VAT number", "NO", func(s *country.Supplier) {
			s.Settings["format"], s.TaxNumber = "PEPPOL_UBL", "12"
		}, nil},
	} {
		s := kin(c.code).supplier(nil)
		c.change(s)
		var fields []string
		for _, f := range packs[c.code].CheckCompany(*s, country.Credentials{}) {
			if !slices.Contains(fields, f.Field) {
				fields = append(fields, f.Field)
			}
		}
		if !slices.Equal(fields, c.want) {
			t.Errorf("%s: %v instead of %v", c.name, fields, c.want)
		}
	}
}

// Other member states make a Peppol invoice when they are asked to, and nothing otherwise.
func TestOtherMemberStatesAreAskedFirst(t *testing.T) {
	pack := family(t)["PT"]
	r := relative{code: "PT", currency: "EUR", vat: "PT501442600", buyerVAT: "PT500100144", standard: 230, city: "Lisboa",
		postCode: "1000-001", language: "PT"}
	for format, want := range map[string]bool{en16931.FormatAuto: false, "PEPPOL_UBL": true} {
		out, err := pack.Structured(issue(t, pack, r.sale(), r.supplier(country.Settings{"format": format})))
		if err != nil || (out != nil) != want {
			t.Errorf("%s: %v %v", format, out, explain(err))
		}
	}
	if slices.ContainsFunc(pack.Facts.Required, func(f country.FieldRule) bool {
		return f.Field == "items.*.tax_breakdowns"
	}) {
		t.Error("a country that makes nothing by itself asks for more than before")
	}
}

// Sellers' own texts.
func TestNationalTextsOfSellers(t *testing.T) {
	_, d, _ := made(t, "SE", country.Settings{"f_tax": true}, same)
	if d.Seller.TaxID != "Godkänd för F-skatt" {
		t.Errorf("Sweden: %+v", d.Seller)
	}
	_, d, _ = made(t, "NO", country.Settings{"foretaksregisteret": true}, same)
	if d.Seller.TaxID != "Foretaksregisteret" || d.Seller.VATID != "NO987654325MVA" {
		t.Errorf("Norway: %+v", d.Seller)
	}
}

// The reasons why no VAT is charged are printed as well as filed.
func TestReasonsArePrinted(t *testing.T) {
	for _, r := range relatives {
		pack := family(t)[r.code]
		for kind, english := range map[string]string{transaction.TaxReverse: "Reverse charge",
			transaction.TaxIntraEU: "Intra-Community supply",
			transaction.TaxExport:  "Export outside the EU", transaction.TaxOutside: "Not subject to VAT",
			transaction.TaxExempt: "Exempt from VAT"} {
			tx := r.sale()
			tx.Items = tx.Items[:1]
			tx.Items[0].Taxes = vat(num.AmountZero, kind, transaction.Added)
			in := issue(t, pack, tx, r.supplier(nil))
			texts := pack.Printed(in).Texts
			if own := !slices.Contains(texts, english); len(texts) == 0 ||
				own == (r.code == "IE" || r.code == "NO" && kind == transaction.TaxIntraEU) {
				t.Errorf("%s %s: %q", r.code, kind, texts)
			}
			if kind == transaction.TaxIntraEU {
				continue // between parties of one country no invoice says so
			}
			made, err := pack.Structured(in)
			if err != nil || made == nil || !slices.ContainsFunc(texts, func(text string) bool {
				return bytes.Contains(made.Content, []byte(">"+text+"<"))
			}) {
				t.Errorf("%s %s: the structured invoice does not say %q: %v", r.code, kind, texts, err)
			}
		}
	}
	de := kin("DE")
	tx := de.sale()
	tx.Items[0].Taxes = vat(num.AmountZero, transaction.TaxReverse, transaction.Added)
	if texts := family(t)["DE"].Printed(issue(t, family(t)["DE"], tx, de.supplier(nil))).Texts; !slices.Contains(texts,
		"Steuerschuldnerschaft des Leistungsempfängers") {
		t.Errorf("%v", texts)
	}
}

func TestUnits(t *testing.T) {
	for unit, want := range map[string]string{"": "C62", "pcs": "H87", "Std.": "HUR", "Stück": "H87", "KGM": "KGM",
		"kgm": "KGM", "kg": "KGM", "bunch": "C62", "m²": "MTK"} {
		if got := en16931.UnitCode(unit); got != want {
			t.Errorf("%q is %s, not %s", unit, got, want)
		}
	}
}

// BenchmarkStructured is the whole way from a transaction to bytes.
func BenchmarkStructured(b *testing.B) {
	pack := family(b)["DE"]
	r := kin("DE")
	for _, lines := range []int{10, 1000} {
		for _, format := range []string{"XRECHNUNG_UBL", "ZUGFERD"} {
			tx := r.sale()
			item := tx.Items[0]
			tx.Items = nil
			for i := range lines {
				item.Number, item.UnitPrice = int64(i+1), int64(1000+i)
				tx.Items = append(tx.Items, item)
			}
			in := issue(b, pack, tx, r.supplier(country.Settings{"format": format}))
			b.Run(format+"/"+num.MakeAmount(int64(lines), 0).String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := pack.Structured(in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
