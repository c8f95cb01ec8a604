package mx_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// counter is a sale over the counter of a shop that gathers them.
func counter(number, cadence string, edit func(*country.Draft)) country.Draft {
	return anonymous(number, func(d *country.Draft) {
		d.Supplier.Settings["global_invoice"] = cadence
		if edit != nil {
			edit(d)
		}
	})
}

func gathered(t *testing.T, d country.Draft) *country.Gathered {
	t.Helper()
	g, err := pack().Periods.Gather(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// global is the document of a period with these sales.
func global(t *testing.T, number string, sales ...country.Draft) country.Draft {
	t.Helper()
	p := &country.Period{Number: number}
	for _, sale := range sales {
		g := gathered(t, sale)
		if g == nil {
			t.Fatalf("%s is not gathered", sale.Transaction.Number)
		}
		p.Span = g.Span
		p.Sales = append(p.Sales, country.PeriodSale{TransactionID: sale.Transaction.ID, Number: sale.Transaction.Number,
			Data: g.Data, Gross: g.Gross, Net: g.Net, Tax: g.Tax})
	}
	d := draft(number, nil)
	d.Transaction = transaction.Transaction{Kind: transaction.Period, CountryCode: "MX", CurrencyCode: "MXN", Date: now,
		Number: number, ID: "period:" + number, SupplierID: "s1"}
	d.Totals, d.Period = transaction.Totals{}, p
	return d
}

// inGlobal is a correction of a sale that no document has yet, or, without data, that one has.
func inGlobal(kind transaction.Kind, number string, sale country.Draft, data []byte,
	edit func(*country.Draft)) country.Draft {
	return correction(kind, number, sale, func(d *country.Draft) {
		d.Original.Gathered = &country.InPeriod{Data: data, Number: "D-1"}
		if data != nil {
			d.Original.AuthorityID1 = ""
		}
		if edit != nil {
			edit(d)
		}
	})
}

func nominative(d *country.Draft) { d.Transaction.Customer, d.Transaction.Reason = business(), "04" }

func periodSituations(t *testing.T) []situation {
	t.Helper()
	cash := counter("S-100-1", "daily", func(d *country.Draft) { d.Transaction.Payments = paidBy("CASH", "", 116000) })
	card := counter("S-100-2", "daily", func(d *country.Draft) {
		d.Transaction.Items, d.Transaction.Payments = items(232000), paidBy("CARD", "PUE:28", 232000)
	})
	bread := counter("S-101-1", "monthly", func(d *country.Draft) {
		d.Transaction.Items = []transaction.Item{taxed(items(5000)[0], iva(0)), taxed(items(0, 11600)[1], iva(16))}
	})
	odd := counter("S-102-1", "weekly", func(d *country.Draft) { d.Transaction.Items = items(333, 333, 333) })
	data := gathered(t, cash).Data
	month := now.In(time.FixedZone("", -6*3600)) // central Mexico
	return []situation{
		{Name: "A day's sales over the counter", Draft: global(t, "D20261116-MXN-1", cash, card),
			Files: []string{fmt.Sprintf(`<cfdi:InformacionGlobal Periodicidad="01" Meses="%s" Año="%s"/>`, month.Format("01"),
				month.Format("2006")),
				`NoIdentificacion="S-100-1" Cantidad="1" ClaveUnidad="ACT" Descripcion="Venta" ValorUnitario="1000.00"`,
				`NoIdentificacion="S-100-2" Cantidad="1" ClaveUnidad="ACT" Descripcion="Venta" ValorUnitario="2000.00"`,
				`FormaPago="28"`, `MetodoPago="PUE"`, ` Total="3480.00"`, `Folio="D20261116-MXN-1"`, `Nombre="PUBLICO EN GENERAL"`},
			Not: []string{"Café", "CfdiRelacionados", "Retencion"}},
		{Name: "A month's sales at two rates", Draft: global(t, "M202611-MXN-1", bread, counter("S-101-2", "monthly", nil)),
			Files: []string{`Periodicidad="04"`, `TasaOCuota="0.000000"`, ` Total="1326.00"`,
				`TotalImpuestosTrasladados="176.00"`}},
		{Name: "A week's sales", Draft: global(t, "W20261116-MXN-1", odd),
			Files: []string{`Periodicidad="02"`, ` Total="9.99"`, `FormaPago="01"`}},
		{Name: "A sale that leaves before its global invoice",
			Draft: inGlobal(transaction.Adjustment, "S-103", cash, data, nominative),
			Files: []string{`Rfc="URE180429TM6"`, `TipoDeComprobante="I"`, `Descripcion="Café`, ` Total="1160.00"`},
			Not:   []string{"CfdiRelacionados", "InformacionGlobal"}},
		{Name: "A customer of a global invoice asks for an invoice",
			Draft: inGlobal(transaction.Adjustment, "S-104", cash, nil, nominative),
			Files: []string{`TipoDeComprobante="I"`, `Rfc="URE180429TM6"`},
			Not:   []string{"CfdiRelacionados", "InformacionGlobal"}},
		{Name: "A refund of a sale in a global invoice",
			Draft: inGlobal(transaction.Credit, "S-105", counter("S-105-1", "daily", nil), nil, nil),
			Files: []string{`TipoDeComprobante="E"`,
				`TipoRelacion="01"><cfdi:CfdiRelacionado UUID="11111111-2222-3333-4444-555555555555"/>`, `FormaPago="01"`,
				`Nombre="PUBLICO EN GENERAL"`}, Not: []string{"InformacionGlobal"}},
		{Name: "A global invoice that a sale has left", Draft: inGloballess(cash), Files: []string{`Motivo="04"`},
			Unsent: true},
	}
}

// inGloballess is the withdrawal of a document: a cancellation of its own kind.
func inGloballess(sale country.Draft) country.Draft {
	return correction(transaction.Cancellation, "S-106", sale, func(d *country.Draft) {
		d.Original.Transaction.Kind, d.Transaction.Reason = transaction.Period, pack().Periods.Withdraw
	})
}

// Who is gathered, and who is not.
func TestWhoIsInAGlobalInvoice(t *testing.T) {
	dollars := num.MakeAmount(185, 1)
	for name, c := range map[string]struct {
		draft country.Draft
		in    bool
	}{
		"no customer": {counter("G-1", "daily", nil), true},
		"público en general": {counter("G-2", "weekly", func(d *country.Draft) {
			d.Transaction.Customer = &transaction.Party{LegalName: "Público en general", Type: transaction.Individual}
		}), true},
		"somebody with a name": {counter("G-3", "daily", func(d *country.Draft) {
			d.Transaction.Customer = &transaction.Party{LegalName: "Ana", Type: transaction.Individual}
		}), false},
		"a company with an RFC": {counter("G-4", "daily", func(d *country.Draft) {
			d.Transaction.Customer = business()
		}), false},
		"dollars": {counter("G-5", "daily", func(d *country.Draft) {
			d.Transaction.CurrencyCode, d.Transaction.ExchangeRate = "USD", &dollars
		}), false},
		"a shop that wants none": {counter("G-6", "none", nil), false},
		"a shop that says none":  {anonymous("G-7", nil), false},
	} {
		if got := gathered(t, c.draft) != nil; got != c.in {
			t.Errorf("%s: gathered is %t", name, got)
		}
	}
}

// Weeks begin on Monday, in the time zone of the shop, and end with the month: a global invoice names one.
func TestSpansOfGlobalInvoices(t *testing.T) {
	tijuana, err := time.LoadLocation("America/Tijuana")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"2026-11-16T07:59:00Z daily":   "2026-11-15 2026-11-16",
		"2026-11-16T08:00:00Z daily":   "2026-11-16 2026-11-17",
		"2026-11-18T12:00:00Z weekly":  "2026-11-16 2026-11-23",
		"2026-11-30T12:00:00Z weekly":  "2026-11-30 2026-12-01",
		"2026-12-02T12:00:00Z weekly":  "2026-12-01 2026-12-07",
		"2026-12-31T20:00:00Z monthly": "2026-12-01 2027-01-01",
		"2027-01-01T07:00:00Z monthly": "2026-12-01 2027-01-01",
	} {
		when, cadence, _ := strings.Cut(at, " ")
		instant, err := time.Parse(time.RFC3339, when)
		if err != nil {
			t.Fatal(err)
		}
		g := gathered(t, counter("G-9", cadence, func(d *country.Draft) {
			d.Transaction.Date, d.Now, d.Location = instant, instant.Add(time.Minute), tijuana
			d.Supplier.Settings["place_of_issue"] = "22000"
		}))
		if got := g.Span.First.Format(time.DateOnly) + " " + g.Span.Next.Format(time.DateOnly); got != want ||
			g.Span.First.Hour() != 0 {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}

// Corrections before the voucher is made change what it says: it stays valid and exact.
func TestCorrectionsBeforeAGlobalInvoice(t *testing.T) {
	b := open(t)
	sale := counter("G-20", "daily", func(d *country.Draft) {
		d.Transaction.Items = []transaction.Item{taxed(items(5000)[0], iva(0)), taxed(items(0, 33333)[1], iva(16))}
	})
	was := gathered(t, sale)
	adjust := func(data []byte, lines ...transaction.Item) country.Draft {
		return inGlobal(transaction.Adjustment, "G-21", sale, data, func(d *country.Draft) { d.Transaction.Items = lines })
	}
	back := gathered(t, adjust(was.Data, taxed(items(-777)[0], iva(16)), taxed(items(0, -5000)[1], iva(0))))
	if back.Leaves || back.Lines != 1 || back.Gross != 33333-777 || back.Net+back.Tax != back.Gross {
		t.Fatalf("%+v %s", back, back.Data)
	}
	more := gathered(t, adjust(back.Data, taxed(items(100)[0], iva(0))))
	if more.Lines != 2 || more.Gross != 33333-777+100 {
		t.Fatalf("%+v", more)
	}
	d := global(t, "D-20", sale)
	d.Period.Sales[0].Data = more.Data
	f := b.prepare(t, d)
	if r := b.send(t, f); r.Outcome != country.Accepted {
		t.Errorf("%+v", r.Faults)
	}
	if !strings.Contains(string(f.Report), ` Total="326.56"`) {
		t.Errorf("%s", f.Report)
	}
	if g := gathered(t, adjust(back.Data, taxed(items(-(33333 - 777))[0], iva(16)))); !g.Leaves {
		t.Errorf("nothing is left, and it does not leave: %+v", g)
	}
	if g := gathered(t, inGlobal(transaction.Credit, "G-22", sale, was.Data, nil)); !g.Leaves || g.Filed {
		t.Errorf("a credit: %+v", g)
	}
	if g := gathered(t, inGlobal(transaction.Cancellation, "G-23", sale, was.Data, nil)); !g.Leaves || g.Filed {
		t.Errorf("a cancellation: %+v", g)
	}
	if g := gathered(t, inGlobal(transaction.Adjustment, "G-24", sale, was.Data, nominative)); !g.Leaves || !g.Filed {
		t.Errorf("an invoice with a name: %+v", g)
	}
	if f := b.prepare(t, inGlobal(transaction.Adjustment, "G-25", sale, was.Data, nominative)); f.Effect == nil ||
		!f.Effect.Exact || f.Effect.Amount != -38333 {
		t.Errorf("it takes the whole sale: %+v", f.Effect)
	}
}

// What a global invoice cannot say, or SAT would refuse, is refused.
func TestRefusedCorrectionsOfGlobalInvoices(t *testing.T) {
	sale := counter("G-30", "daily", nil)
	data := gathered(t, sale).Data
	noted := func(d *country.Draft) { d.Original.Gathered.Noted = true }
	for name, c := range map[string]struct {
		draft country.Draft
		field string
		code  fault.Code
	}{
		"more than is left": {inGlobal(transaction.Adjustment, "G-31", sale, data, func(d *country.Draft) {
			d.Transaction.Items = items(-116001)
		}), "items", fault.ReferenceExceeded},
		"other taxes": {inGlobal(transaction.Adjustment, "G-32", sale, data, func(d *country.Draft) {
			d.Transaction.Items = []transaction.Item{taxed(items(-100)[0], iva(8))}
		}), "items", fault.ReferenceExceeded},
		"a cancellation with 02": {inGlobal(transaction.Cancellation, "G-33", sale, nil, func(d *country.Draft) {
			d.Transaction.Reason = "02"
		}), "reason", fault.ValidationMatchInvalid},
		"a name, and a note": {inGlobal(transaction.Adjustment, "G-34", sale, nil, func(d *country.Draft) {
			nominative(d)
			noted(d)
		}), "reference_transaction_id", fault.ReferenceAlreadyCorrected},
		"a cancellation, a note": {inGlobal(transaction.Cancellation, "G-35", sale, nil, func(d *country.Draft) {
			d.Transaction.Reason = "04"
			noted(d)
		}), "reference_transaction_id", fault.ReferenceAlreadyCorrected},
	} {
		_, err := pack().Periods.Gather(c.draft)
		var told *fault.Error
		if !errors.As(err, &told) || len(told.Faults) == 0 || told.Faults[0].Field != c.field ||
			told.Faults[0].Code != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a sale leaves in the database is small: no names, no lines.
func TestAGatheredSaleIsSmall(t *testing.T) {
	sale := counter("G-40", "daily", func(d *country.Draft) {
		d.Transaction.Items = nil
		for i := range 500 {
			line := items(116)[0]
			line.Number = int64(i + 1)
			d.Transaction.Items = append(d.Transaction.Items, line)
		}
	})
	g := gathered(t, sale)
	if g.Lines != 1 || len(g.Data) > 200 || !json.Valid(g.Data) {
		t.Errorf("%d lines, %d bytes: %s", g.Lines, len(g.Data), g.Data)
	}
}
