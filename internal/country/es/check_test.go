package es_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/country/identity"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

func check(d country.Draft) []string {
	var found []string
	for _, f := range es.Pack().Check(country.Case{Transaction: &d.Transaction, Totals: d.Totals, UseCase: country.Both,
		Now: d.Now}) {
		found = append(found, string(f.Code)+" "+f.Field)
	}
	return found
}

func TestWhatAEATWouldRefuseIsRefusedAtOnce(t *testing.T) {
	acme := business("Acme", "ES", "A28015865")
	person := &transaction.Party{LegalName: "Ana", Type: transaction.Individual}
	with := func(rate, regime, kind, code string) transaction.Item {
		return line("x", 1000, "", transaction.Tax{Rate: percent(rate), Regime: regime, Mode: transaction.Included,
			Type: kind, Code: code})
	}
	change := func(fn func(*country.Draft)) country.Draft {
		d := draft("A-1", acme, line("x", 1210, "21"))
		fn(&d)
		return d
	}
	thirteen := make([]transaction.Item, 13)
	for i := range thirteen {
		thirteen[i] = with(fmt.Sprint(i+1), "IGIC", "", "")
	}
	crumbs := make([]transaction.Item, 4000)
	for i := range crumbs {
		crumbs[i] = line("x", 2, "21") // net 2, tax 0
	}
	for _, row := range []struct {
		name  string
		draft country.Draft
		want  string
	}{
		{"number with a quote", change(func(d *country.Draft) {
			d.Transaction.Number = `A"1`
		}), "field_not_valid transaction_number"},
		{"number beyond ASCII", change(func(d *country.Draft) {
			d.Transaction.Number = "Ñ-1"
		}), "field_not_valid transaction_number"},
		{"number with a blank at its end", change(func(d *country.Draft) {
			d.Transaction.Number = "A "
		}), "field_not_valid transaction_number"},
		{"day before the law", change(func(d *country.Draft) {
			d.Transaction.Date = time.Date(2024, 10, 27, 22, 59, 59, 0, time.UTC)
		}), "field_not_valid transaction_date"},
		{"tomorrow", change(func(d *country.Draft) {
			d.Transaction.Date = d.Now.AddDate(0, 0, 1)
		}), "field_not_valid transaction_date"},
		{"wrong NIF", draft("A-1", business("Acme", "ES", "A28015866"), line("x", 1210, "21")),
			"field_not_valid customer.tax_information.tax_number"},
		{"wrong VAT number", draft("A-1", business("Acme", "DE", "DE1"), line("x", 1210, "21")),
			"field_not_valid customer.tax_information.tax_number"},
		{"long foreign number", draft("A-1", business("Acme", "US", strings.Repeat("1", 21)), line("x", 1210, "21")),
			"field_not_valid customer.tax_information.tax_number"},
		{"wrong issuer", change(func(d *country.Draft) {
			d.Transaction.Issuer = business("M", "ES", "B1")
		}), "field_not_valid issuer.tax_information.tax_number"},
		{"large simplified", draft("A-1", nil, line("x", 300_001, "21")), "field_required customer"},
		{"large sale to somebody without a NIF", draft("A-1", person, line("x", 300_001, "21")),
			"field_required customer.tax_information.tax_number"},
		{"margin of used goods", draft("A-1", acme, with("21", "VAT", "", "03")),
			"validation_match_invalid items.0.tax_breakdowns.0.code"},
		{"margin of a travel agency", draft("A-1", acme, with("21", "VAT", "", "S1-05")),
			"validation_match_invalid items.0.tax_breakdowns.0.code"},
		{"reverse charge without a number", draft("A-1", person, with("0", "VAT", transaction.TaxReverse, "")),
			"validation_match_invalid items.0.tax_breakdowns.0.type"},
		{"union supply within Spain", draft("A-1", acme, with("0", "VAT", transaction.TaxIntraEU, "")),
			"validation_match_invalid customer.tax_information.tax_number"},
		{"collection for others to a foreigner", draft("A-1", business("X", "US", "1"), with("0", "VAT", "", "N1-10")),
			"validation_match_invalid customer.tax_information.tax_number"},
		{"no tax", draft("A-1", acme, line("x", 1000, "")), "field_required items.0.tax_breakdowns"},
		{"withholding alone", draft("A-1", acme, line("x", 1000, "", transaction.Tax{Rate: percent("15"), Regime: "RET"})),
			"field_required items.0.tax_breakdowns"},
		{"two taxes", draft("A-1", acme, line("x", 1000, "21",
			transaction.Tax{Rate: percent("7"), Regime: "IGIC", Mode: transaction.Included})),
			"validation_match_invalid items.0.tax_breakdowns.1.regime"},
		{"unknown code", draft("A-1", acme, with("21", "VAT", "", "Z9")),
			"validation_match_invalid items.0.tax_breakdowns.0.code"},
		{"regime of groups", draft("A-1", acme, with("21", "VAT", "", "06")),
			"validation_match_invalid items.0.tax_breakdowns.0.code"},
		{"exempt export in the general regime", draft("A-1", acme, with("0", "VAT", "", "E2-01")),
			"validation_match_invalid items.0.tax_breakdowns.0.code"},
		{"exemption of the islands", draft("A-1", acme, with("0", "VAT", "", "E7")),
			"validation_match_invalid items.0.tax_breakdowns.0.code"},
		{"lease at 10", draft("A-1", acme, with("10", "VAT", "", "11")),
			"validation_match_invalid items.0.tax_breakdowns.0.code"},
		{"exempt with a rate", draft("A-1", acme, with("21", "VAT", transaction.TaxExempt, "")),
			"validation_match_invalid items.0.tax_breakdowns.0.rate"},
		{"three decimals", draft("A-1", acme, with("7.125", "IGIC", "", "")),
			"field_not_valid items.0.tax_breakdowns.0.rate"},
		{"surcharge of another rate", draft("A-1", acme,
			line("x", 1000, "21", transaction.Tax{Rate: percent("1.4"), Regime: "RE", Mode: transaction.Included})),
			"validation_match_invalid items.0.tax_breakdowns.1.rate"},
		{"thirteen details", draft("A-1", acme, thirteen...), "field_not_valid items"},
		{"thirteen digits", draft("A-1", acme, line("x", 100_000_000_000_000, "21")), "field_not_valid items"},
		{"rounded away", draft("A-1", acme, crumbs...), "field_not_valid items"},
		{"nothing printable", draft("A-1", acme, line("\u0001", 1210, "21")), "field_not_valid items.0.name"},
		{"bad debt of a foreigner", change(func(d *country.Draft) {
			d.Transaction.Kind, d.Transaction.Reason, d.Transaction.Customer = transaction.Adjustment, "R3",
				business("X", "US", "1")
		}), "validation_match_invalid customer.tax_information.tax_number"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := strings.Join(check(row.draft), ", "); got != row.want {
				t.Errorf("%q instead of %q", got, row.want)
			}
		})
	}
}

func TestLimitsAreTakenAtThemselves(t *testing.T) {
	acme := business("Acme", "ES", "A28015865")
	atMidnight := draft("A-1", acme, line("x", 1210, "21"))
	atMidnight.Transaction.Date = time.Date(2024, 10, 27, 23, 0, 0, 0, time.UTC) // 28 October in Madrid
	lateToday := draft("A-1", acme, line("x", 1210, "21"))
	lateToday.Transaction.Date = time.Date(2026, 4, 1, 21, 59, 59, 0, time.UTC) // still today in Madrid
	for name, d := range map[string]country.Draft{
		"first day": atMidnight, "end of today": lateToday,
		"number of 50":       draft(strings.Repeat("1", 50), acme, line("x", 1210, "21")),
		"simplified of 3000": draft("T", nil, line("x", 300_000, "21")),
		"individual of 3000": draft("A-1", &transaction.Party{LegalName: "Ana", Type: transaction.Individual},
			line("x", 300_000, "21")),
		"largest amount": draft("A-1", acme, line("x", 99_999_999_999_999, "21")),
		"number of 20":   draft("A-1", business("Acme", "US", strings.Repeat("1", 20)), line("x", 1210, "21")),
	} {
		if got := check(d); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What only the moment of filing can tell ends the attempt with faults.
func TestDraftsThatCannotBeFiledFailWithFaults(t *testing.T) {
	o := open(t, es.Pack())
	invoice := byName(t, "business")
	change := func(d country.Draft, fn func(*country.Draft)) country.Draft {
		fn(&d)
		return d
	}
	credit := correction(transaction.Credit, "R-1", invoice, line("x", 1, "21"))
	substitution := correction(transaction.Adjustment, "R-2", invoice, line("x", 1210, "21"))
	substitution.Transaction.Reason = "R1-S"
	for name, d := range map[string]country.Draft{
		"backfill":            change(invoice, func(d *country.Draft) { d.Transaction.Kind = transaction.Backfill }),
		"supplier is nobody":  change(invoice, func(d *country.Draft) { d.Supplier.TaxNumber = "X" }),
		"credit in future":    change(credit, func(d *country.Draft) { d.Transaction.Date = d.Now.AddDate(0, 0, 2) }),
		"credit with a quote": change(credit, func(d *country.Draft) { d.Transaction.Number = "R'1" }),
		"credit of nothing":   change(credit, func(d *country.Draft) { d.Original = nil }),
		"cancels nothing": change(invoice, func(d *country.Draft) {
			d.Transaction.Kind = transaction.Cancellation
		}),
		"substitutes the unknown": change(substitution, func(d *country.Draft) {
			d.Original = &country.Original{Transaction: transaction.Transaction{Number: "OLD", Date: day}, Backfilled: true}
		}),
		"amounts are missing": change(invoice, func(d *country.Draft) { d.Totals = transaction.Totals{} }),
	} {
		_, err := o.channel.Prepare(d)
		var known *fault.Error
		if !errors.As(err, &known) || known.Kind != fault.Invalid || len(known.Faults) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := invoice
	broken.Previous = country.Link{Position: 7, Hash: "ABC", Extra: "x"}
	if _, err := o.channel.Prepare(broken); err == nil || fault.KindOf(err) == fault.Invalid {
		t.Errorf("a link of another chain: %v", err)
	}
}

func TestCompaniesAreCheckedForTheirSoftware(t *testing.T) {
	company := func(software any, name, number string) []string {
		var found []string
		s := country.Supplier{LegalName: name, TaxNumber: number, Settings: country.Settings{}}
		if software != nil {
			s.Settings["software"] = software
		}
		for _, f := range es.Pack().CheckCompany(s, country.Credentials{}) {
			found = append(found, string(f.Code)+" "+f.Field)
		}
		return found
	}
	good := map[string]any{"name": "Norte", "tax_number": "B12345674", "system_id": "N1", "verifactu_only": false}
	for _, row := range []struct {
		name     string
		software any
		legal    string
		number   string
		want     string
	}{
		{"defaults", nil, supplier, nif, ""},
		{"facts' default", es.Pack().Facts.Settings[0].Default, supplier, "ES" + nif, ""},
		{"producer in Spain", good, strings.Repeat("ñ", 120), nif, ""},
		{"producer abroad", map[string]any{"name": "Nord GmbH", "tax_number": "DE111111125", "country_code": "DE"}, supplier,
			nif, ""},
		{"long name", nil, strings.Repeat("ñ", 121), nif, "field_not_valid legal_name"},
		{"wrong number", nil, supplier, "B1", "field_not_valid tax_information.tax_number"},
		{"no object", "Norte", supplier, nif, "field_not_valid settings.software"},
		{"name alone", map[string]any{"name": "Norte"}, supplier, nif, "validation_match_invalid settings.software.name"},
		{"wrong producer", map[string]any{"name": "Norte", "tax_number": "B1"}, supplier, nif,
			"field_not_valid settings.software.tax_number"},
		{"system id", map[string]any{"system_id": "Ñ1"}, supplier, nif, "field_not_valid settings.software.system_id"},
		{"long version", map[string]any{"version": strings.Repeat("1", 51)}, supplier, nif,
			"field_not_valid settings.software.version"},
		{"flag", map[string]any{"serves_many": "yes"}, supplier, nif, "field_not_valid settings.software.serves_many"},
		{"unknown key", map[string]any{"colour": "red"}, supplier, nif, "field_not_valid settings.software.colour"},
		{"empty", map[string]any{"version": " "}, supplier, nif, "field_not_valid settings.software.version"},
	} {
		if got := strings.Join(company(row.software, row.legal, row.number), ", "); got != row.want {
			t.Errorf("%s: %q instead of %q", row.name, got, row.want)
		}
	}
}

// Who files for a company, and who does not file at all.
func TestCompaniesAreToldWhatAppliesToThem(t *testing.T) {
	at := func(postal string, settings country.Settings) string {
		s := country.Supplier{LegalName: supplier, TaxNumber: nif, Settings: settings,
			Address: transaction.Address{CountryCode: "ES", PostalCode: postal}}
		var found []string
		for _, f := range es.Pack().CheckCompany(s, country.Credentials{}) {
			found = append(found, string(f.Code)+" "+f.Field)
		}
		return strings.Join(found, ", ")
	}
	agent := func(name, number string) country.Settings {
		return country.Settings{"representative": map[string]any{"name": name, "tax_number": number}}
	}
	const elsewhere = "unsupported_operation address.postal_code"
	for _, row := range []struct {
		postal   string
		settings country.Settings
		want     string
	}{
		{"28001", nil, ""}, {"01001", nil, elsewhere}, {"20001", nil, elsewhere}, {"48001", nil, elsewhere},
		{"31001", nil, elsewhere}, {"02001", nil, ""}, {"35001", nil, ""},
		{"48001", country.Settings{"common_territory": true}, ""},
		{"28001", country.Settings{"sii": true}, "unsupported_operation settings.sii"},
		{"28001", country.Settings{"sii": false}, ""},
		{"28001", agent("Gestoría Norte SL", "B12345674"), ""},
		{"28001", agent("Gestoría Norte SL", "B1"), "field_not_valid settings.representative.tax_number"},
		{"28001", agent("", "B12345674"), "field_not_valid settings.representative.name"},
		{"28001", country.Settings{"representative": "Norte"}, "field_not_valid settings.representative"},
		{"28001", country.Settings{"representative": map[string]any{}}, ""},
	} {
		if got := at(row.postal, row.settings); got != row.want {
			t.Errorf("%s %v: %q instead of %q", row.postal, row.settings, got, row.want)
		}
	}
	days := es.Pack().Facts.Obligations
	if len(days) != 2 || days[0].Since != "2027-01-01" || days[1].Since != "2027-07-01" {
		t.Errorf("%+v", days)
	}
}

// An adviser's certificate files for a company that names the adviser, and asks
// for what it filed.
func TestAdviserFilesForTheCompany(t *testing.T) {
	o := open(t, patient(0, 100))
	file, password, err := identity.Test("B12345674", "Gestoría Norte SL", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	adviser := country.Credentials{PKCS12: file, Password: password}
	own := byName(t, "business")
	if _, err := o.channel.Send(t.Context(), []country.Filing{o.prepare(own, country.Link{})}, adviser); !errors.Is(err,
		country.ErrCredentials) {
		t.Fatalf("an adviser whom the company does not name: %v", err)
	}
	own.Supplier.Settings = country.Settings{"representative": map[string]any{"name": "Gestoría Norte SL",
		"tax_number": "B12345674"}}
	f := o.prepare(own, country.Link{})
	if !strings.Contains(string(f.Report),
		"<sf:Representante>\n<sf:NombreRazon>Gestoría Norte SL</sf:NombreRazon>\n<sf:NIF>B12345674<") {
		t.Errorf("%s", f.Report)
	}
	for _, ask := range []bool{false, true} { // before anything was filed, and after
		found, err := o.channel.Find(t.Context(), f, adviser)
		if ask != (err == nil && found.SHA256 == f.SHA256) {
			t.Fatalf("asked %v: %+v %v", ask, found.Outcome, err)
		}
		if !ask {
			r, err := o.channel.Send(t.Context(), []country.Filing{f}, adviser)
			if err != nil || r[0].Outcome != country.Accepted {
				t.Fatalf("%+v %v", r, err)
			}
		}
	}
	if held := o.registrations(); len(held) != 1 || held[0].SHA256 != f.SHA256 {
		t.Errorf("%+v", held)
	}
}

// The law fixes the words around the code and some others.
func TestImprintCarriesTheWordsOfTheLaw(t *testing.T) {
	o := open(t, es.Pack())
	pack := es.Pack()
	for name, want := range map[string]string{
		"business":                          "Factura",
		"simplified":                        "Factura simplificada",
		"individual without number":         "Factura simplificada",
		"individual abroad without number":  "Factura|Operación exenta (artículo 21 de la Ley 37/1992 del IVA)",
		"adjustment by difference":          "Factura rectificativa|Rectifica la factura A-1 de fecha 01/04/2026",
		"credit of a simplified one":        "Factura simplificada rectificativa|Rectifica la factura A-2 de fecha 01/04/2026",
		"full invoice for a simplified one": "Factura|Sustituye a la factura simplificada T-1 de fecha 01/04/2026",
		"cancellation":                      "Anulación de factura|Anula la factura A-1 de fecha 01/04/2026",
		"reverse charge":                    "Factura|Inversión del sujeto pasivo",
		"exempt":                            "Factura|Operación exenta (artículo 20 de la Ley 37/1992 del IVA)",
		"cash accounting":                   "Factura|Régimen especial del criterio de caja",
		"issued by the customer":            "Factura|Facturación por el destinatario",
		"union services":                    "Factura|Operación no sujeta (Ley 37/1992 del IVA)",
	} {
		d := byName(t, name)
		f := o.prepare(d, country.Link{})
		items := pack.Classify(country.Case{Transaction: &d.Transaction})
		d.Transaction.Items = items
		got := pack.Imprint(country.Issue{
			Transaction: &d.Transaction, Totals: d.Totals, Original: d.Original, QRCode: f.QRCode, AuthorityID1: "A-CSV",
			AuthorityID2: f.AuthorityID,
			Filing:       &f, Language: "ES", Location: d.Location,
		})
		if text := strings.Join(append([]string{got.Title}, got.Texts...), "|"); text != want {
			t.Errorf("%s: %q instead of %q", name, text, want)
		}
		if name == "cancellation" {
			if len(got.Codes) != 0 {
				t.Error("a cancellation has a QR code")
			}
			continue
		}
		if len(got.Codes) != 1 || got.Codes[0].Title != "QR tributario:" ||
			!strings.Contains(got.Codes[0].Caption, "Factura verificable en la sede electrónica de la AEAT") ||
			got.Codes[0].Text != f.QRCode {
			t.Errorf("%s: %+v", name, got.Codes)
		}
		if !got.Codes[0].Leading {
			t.Errorf("%s: the code does not stand at the upper left", name)
		}
		if (got.Kind == transaction.Invoice) != (name == "full invoice for a simplified one") {
			t.Errorf("%s: printed like %q", name, got.Kind)
		}
		if asJSON(got.Identifiers) != asJSON([]country.Identifier{{Label: "CSV", Value: "A-CSV"},
			{Label: "Huella", Value: f.AuthorityID}}) {
			t.Errorf("%s: %+v", name, got.Identifiers)
		}
	}
}

// Amounts of other currencies are filed in euros.
func TestForeignCurrencyIsFiledInEuros(t *testing.T) {
	o := open(t, es.Pack())
	d := draft("Y-1", nil, line("茶", 10000, "10"))
	rate := num.MakeAmount(6123, 6) // 0.006123 euros a yen
	d.Transaction.CurrencyCode, d.Transaction.ExchangeRate = "jpy", &rate
	f := o.prepare(d, country.Link{})
	// 9091 yen net and 909 tax, in euros 55.66 and 5.57
	for _, want := range []string{"NoSujeto>55.66<", "CuotaRepercutida>5.57<", "ImporteTotal>61.23<"} {
		if !strings.Contains(string(f.Report), want) {
			t.Errorf("%s is missing in %s", want, f.Report)
		}
	}
}

// From a hundred million euros on a record says so, on either side of zero.
func TestLargeInvoicesAreMarked(t *testing.T) {
	o := open(t, es.Pack())
	acme := business("Acme", "ES", "A28015865")
	for cents, marked := range map[int64]bool{10_000_000_000: true, 9_999_999_999: false, -10_000_000_000: true,
		-9_999_999_999: false} {
		f := o.prepare(draft("A-1", acme, line("Buque", cents, "21")), country.Link{})
		if strings.Contains(string(f.Report), "<sf:Macrodato>S<") != marked {
			t.Errorf("%d: %s", cents, f.Report)
		}
	}
}
