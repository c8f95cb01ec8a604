package mx_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/mx"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

func report(t *testing.T, d country.Draft) []byte {
	t.Helper()
	f, err := channelTo(t, "http://127.0.0.1:1").Prepare(d)
	if err != nil {
		t.Fatal(err)
	}
	return f.Report
}

func TestPaymentsBecomeMethodAndForm(t *testing.T) {
	for _, c := range []struct {
		name, method, form string
		payments           []transaction.Payment
	}{
		{"none", "PPD", "99", nil},
		{"cash", "PUE", "01", []transaction.Payment{{Type: "CASH", Code: "PUE", Amount: 1}}},
		{"cheque", "PUE", "02", []transaction.Payment{{Type: "CHECK", Amount: 1}}},
		{"transfer", "PUE", "03", []transaction.Payment{{Type: "TRANSFER", Code: "PUE", Amount: 1}}},
		{"card", "PUE", "04", []transaction.Payment{{Type: "CARD", Code: "PUE", Amount: 1}}},
		{"debit card", "PUE", "28", []transaction.Payment{{Type: "CARD", Code: "PUE:28", Amount: 1}}},
		{"other", "PUE", "31", []transaction.Payment{{Type: "OTHER", Code: "PUE", Amount: 1}}},
		{"on credit", "PPD", "99", []transaction.Payment{{Type: "CREDIT", Amount: 1}}},
		{"credit at once", "PUE", "04", []transaction.Payment{{Type: "CREDIT", Code: "PUE", Amount: 1}}},
		{"later", "PPD", "99", []transaction.Payment{{Type: "TRANSFER", Code: "PPD", Amount: 1}}},
		{"the largest", "PUE", "03", []transaction.Payment{{Type: "CASH", Amount: 1}, {Type: "TRANSFER", Amount: 3},
			{Type: "CARD", Amount: 3}}},
	} {
		raw := report(t, draft("P-1", func(d *country.Draft) { d.Transaction.Payments = c.payments }))
		if m, f := mx.Attribute(raw, "MetodoPago"), mx.Attribute(raw, "FormaPago"); m != c.method || f != c.form {
			t.Errorf("%s: %s %s", c.name, m, f)
		}
	}
}

func TestDateIsThatOfThePlaceOfIssue(t *testing.T) {
	for _, c := range []struct{ place, zone string }{
		{"06000", "America/Mexico_City"}, {"22000", "America/Tijuana"}, {"77500", "America/Cancun"},
		{"83000", "America/Hermosillo"},
		{"80000", "America/Mazatlan"}, {"32000", "America/Ciudad_Juarez"}, {"88000", "America/Matamoros"},
		{"88500", "America/Matamoros"}, {"87400", "America/Matamoros"}, {"26000", "America/Matamoros"},
		{"26200", "America/Matamoros"}, {"26340", "America/Mexico_City"},
		{"32881", "America/Ojinaga"}, {"31000", "America/Chihuahua"}, {"63732", "America/Bahia_Banderas"},
		{"63000", "America/Mazatlan"},
		// Acuña, Jiménez, Zaragoza, Morelos, Allende, Villa Unión, Guerrero, Hidalgo, Ocampo, Anáhuac
		{"26328", "America/Matamoros"}, {"26400", "America/Matamoros"}, {"26450", "America/Matamoros"},
		{"26500", "America/Matamoros"}, {"26530", "America/Matamoros"},
		{"26600", "America/Matamoros"}, {"26640", "America/Matamoros"}, {"26695", "America/Matamoros"},
		{"26696", "America/Mexico_City"}, {"27500", "America/Matamoros"},
		{"27549", "America/Mexico_City"}, {"65000", "America/Matamoros"}, {"65060", "America/Mexico_City"},
		{"88900", "America/Matamoros"},
		// Ascensión, Janos, Práxedis G. Guerrero, Coyame del Sotol, Manuel Benavides; Ahumada and Aldama are not on the
		// border
		{"31820", "America/Ciudad_Juarez"}, {"31840", "America/Ciudad_Juarez"}, {"31850", "America/Chihuahua"},
		{"32797", "America/Ciudad_Juarez"}, {"32800", "America/Chihuahua"},
		{"32850", "America/Ojinaga"}, {"32900", "America/Chihuahua"}, {"32980", "America/Ojinaga"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Skipf("no time zones: %v", err)
		}
		d := draft("P-1", func(d *country.Draft) { d.Supplier.Settings["place_of_issue"] = c.place })
		raw := report(t, d)
		if got, want := mx.Attribute(raw, "Fecha"),
			d.Transaction.Date.In(zone).Format("2006-01-02T15:04:05"); got != want ||
			mx.Attribute(raw, "LugarExpedicion") != c.place {
			t.Errorf("%s: %s instead of %s", c.place, got, want)
		}
	}
	ahead := draft("P-2", func(d *country.Draft) { d.Transaction.Date = now.Add(4 * time.Minute) })
	zone, err := time.LoadLocation("America/Mexico_City")
	if err != nil {
		t.Fatal(err)
	}
	if got := mx.Attribute(report(t, ahead), "Fecha"); got != now.In(zone).Format("2006-01-02T15:04:05") {
		t.Errorf("a clock that is ahead: %s", got)
	}
}

func TestNumberBecomesFolio(t *testing.T) {
	long := "SERIE-2026-" + strings.Repeat("7", 39)
	for number, want := range map[string][2]string{
		"A-123": {"", "A-123"}, strings.Repeat("x", 40): {"", strings.Repeat("x", 40)}, long: {long[:10], long[10:]},
	} {
		raw := report(t, draft(number, nil))
		if got := [2]string{mx.Attribute(raw, "Serie"), mx.Attribute(raw, "Folio")}; got != want {
			t.Errorf("%s: %v", number, got)
		}
	}
}

func TestUseFitsTheRegime(t *testing.T) {
	for _, c := range []struct{ regime, kind, number, want string }{
		{"601", transaction.Business, "URE180429TM6", `RegimenFiscalReceptor="601" UsoCFDI="G03"`},
		{"601/G01", transaction.Business, "URE180429TM6", `RegimenFiscalReceptor="601" UsoCFDI="G01"`},
		{"VAT", transaction.Business, "URE180429TM6", `RegimenFiscalReceptor="601" UsoCFDI="G03"`},
		{"VAT", transaction.Business, "CACX7605101P8", `RegimenFiscalReceptor="612" UsoCFDI="G03"`},
		{"VAT", transaction.Individual, "CACX7605101P8", `RegimenFiscalReceptor="616" UsoCFDI="S01"`},
		{"605", transaction.Individual, "CACX7605101P8", `RegimenFiscalReceptor="605" UsoCFDI="S01"`},
		{"605/D01", transaction.Individual, "CACX7605101P8", `RegimenFiscalReceptor="605" UsoCFDI="D01"`},
	} {
		raw := report(t, draft("P-1", func(d *country.Draft) {
			d.Transaction.Customer.TaxRegime, d.Transaction.Customer.Type, d.Transaction.Customer.TaxNumber = c.regime, c.kind,
				c.number
		}))
		if !strings.Contains(string(raw), c.want) {
			t.Errorf("%+v: %s", c, raw)
		}
	}
}

// A sale's own use wins over the one after the regime and over the setting.
func TestTheUseOfOneSaleIsFiled(t *testing.T) {
	raw := report(t, draft("P-1", func(d *country.Draft) {
		d.Transaction.Customer.TaxRegime, d.Transaction.Customer.TaxUse = "601/G01", "I04"
	}))
	if want := `RegimenFiscalReceptor="601" UsoCFDI="I04"`; !strings.Contains(string(raw), want) {
		t.Errorf("no %s in %s", want, raw)
	}
}

func TestOriginalWithoutFolioCannotBeCorrected(t *testing.T) {
	ch := channelTo(t, "http://127.0.0.1:1")
	d := correction(transaction.Adjustment, "N-1", draft("F-1", nil), func(d *country.Draft) {
		d.Transaction.Items = items(-100)
	})
	d.Original.AuthorityID1 = ""
	if _, err := ch.Prepare(d); fault.KindOf(err) != fault.Invalid {
		t.Errorf("adjustment: %v", err)
	}
	note := correction(transaction.Credit, "N-2", draft("F-1", nil), nil)
	note.Totals.Gross = -note.Totals.Gross
	if _, err := ch.Prepare(note); fault.KindOf(err) != fault.Invalid {
		t.Errorf("credit of a credit note: %v", err)
	}
}

// An RFC may hold an ampersand, which every wire writes in another way.
func TestAmpersandInAnRFCGoesThrough(t *testing.T) {
	for _, pac := range []string{"soap", "rest"} {
		b := open(t)
		original := draft("A&B-1", func(d *country.Draft) {
			d.Supplier = supplier(pac)
			d.Transaction.Customer.TaxNumber = "H&E951128469"
			d.Transaction.Items = items(1000)
		})
		f := b.prepare(t, original)
		r := b.send(t, f)
		if r.Outcome != country.Accepted || !strings.Contains(r.QRCode, "&rr=H%26E951128469&tt=10.0&") {
			t.Fatalf("%s: %+v", pac, r)
		}
		d := correction(transaction.Cancellation, "W-2", original, func(d *country.Draft) {
			d.Transaction.Reason, d.Supplier = "02", supplier(pac)
		})
		d.Original.Report, d.Original.AuthorityID1 = f.Report, r.AuthorityID1
		if r := b.send(t, b.prepare(t, d)); r.Outcome != country.Accepted {
			t.Errorf("%s: %+v", pac, r)
		}
	}
}

// A restarted simulator has another key; what it stamped before stays verifiable.
func TestStampsOutliveTheSimulatorsKey(t *testing.T) {
	dir := t.TempDir()
	run := func(p country.Pack, f *country.Filing) country.Receipt {
		simulators, err := country.NewSimulators(dir, p)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(simulators)
		defer func() {
			server.Close()
			if err := simulators.Close(); err != nil {
				t.Error(err)
			}
		}()
		b := bench{channel: channelTo(t, server.URL)}
		if len(f.Report) == 0 {
			*f = b.prepare(t, draft("K-1", nil))
		}
		return b.send(t, *f)
	}
	var f country.Filing
	first := run(pack(), &f)
	second := run(paired(), &f)
	if second.Outcome != country.Accepted || !second.Duplicate || second.AuthorityID1 != first.AuthorityID1 ||
		second.AuthorityID2 != first.AuthorityID2 {
		t.Errorf("%+v\n%+v", first, second)
	}
	other := country.Filing{}
	if third := run(paired(), &other); third.AuthorityID2 == "" {
		t.Errorf("%+v", third)
	}
}
