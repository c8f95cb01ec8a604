package mx_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// situation is something that happens every day: what is sent, and what the
// filed voucher says, or why it is refused.
type situation struct {
	name   string
	draft  country.Draft
	files  []string
	not    []string
	warns  string // field of a warning
	refuse string // part of the message of a fault
	field  string // of that fault
	only   bool   // it is not sent: its original is not at the simulator
}

func paidBy(kind, code string, amount int64) []transaction.Payment {
	return []transaction.Payment{{Type: kind, Code: code, Amount: amount}}
}

// anonymous is a sale without a customer.
func anonymous(number string, edit func(*country.Draft)) country.Draft {
	return draft(number, func(d *country.Draft) {
		d.Transaction.Customer = nil
		if edit != nil {
			edit(d)
		}
	})
}

func taxed(i transaction.Item, taxes ...transaction.Tax) transaction.Item {
	i.Taxes = taxes
	return i
}

func work(price int64, taxes ...transaction.Tax) transaction.Item {
	i := taxed(items(price)[0], taxes...)
	i.Type, i.Unit, i.Name = transaction.Services, "", "Honorarios"
	return i
}

func withheldAt(rate int64, decimals uint32, kind string) transaction.Tax {
	return tax(percent(rate, decimals), transaction.Withholding, kind)
}

func sold(number string, list ...transaction.Item) country.Draft {
	return draft(number, func(d *country.Draft) { d.Transaction.Items = list })
}

func american() *transaction.Party {
	return &transaction.Party{LegalName: "Acme Inc.", Type: transaction.Business, TaxNumber: "12-3456789", Address: &transaction.Address{CountryCode: "US", PostalCode: "10001"}}
}

func publicSituations() []situation {
	return []situation{
		{name: "A sale over the counter", draft: anonymous("S-1", func(d *country.Draft) { d.Transaction.Payments = paidBy("CARD", "PUE:28", 116000) }),
			files: []string{`<cfdi:InformacionGlobal Periodicidad="01"`, `Nombre="PUBLICO EN GENERAL"`, `ClaveProdServ="01010101" NoIdentificacion="S-1" Cantidad="1" ClaveUnidad="ACT" Descripcion="Venta" ValorUnitario="1000.00"`, `FormaPago="28"`, `MetodoPago="PUE"`, `UsoCFDI="S01"`}},
		{name: "A sale over the counter that does not say how it was paid", draft: anonymous("S-2", nil), warns: "payments", files: []string{`FormaPago="01"`, `MetodoPago="PUE"`}},
		{name: "Several things at one rate over the counter", draft: anonymous("S-3", func(d *country.Draft) { d.Transaction.Items = items(333, 333, 333, 333, 333, 333, 333) }),
			files: []string{` Total="23.31"`, `Descripcion="Venta" ValorUnitario="20.09" Importe="20.09"`, `Base="20.09" Impuesto="002" TipoFactor="Tasa" TasaOCuota="0.160000" Importe="3.22"`}, not: []string{"Café"}},
		{name: "Bread and a pan over the counter", draft: anonymous("S-4", func(d *country.Draft) {
			d.Transaction.Items = []transaction.Item{taxed(items(5000)[0], iva(0)), taxed(items(0, 11600)[1], iva(16))}
		}), files: []string{`ValorUnitario="50.00"`, `TasaOCuota="0.000000"`, `ValorUnitario="100.00"`, `TasaOCuota="0.160000"`, ` Total="166.00"`}},
		{name: "The general public on credit", draft: anonymous("S-5", func(d *country.Draft) { d.Transaction.Payments = paidBy("CREDIT", "", 116000) }), refuse: "must be PUE", field: "payments.0.code"},
		{name: "The general public withholds", draft: anonymous("S-6", func(d *country.Draft) {
			d.Transaction.Items = []transaction.Item{work(116000, iva(16), withheldAt(10, 0, "ISR"))}
		}),
			refuse: "general public", field: "items.0.tax_breakdowns.1"},
		{name: "A consumer with a name and no RFC", draft: draft("S-7", func(d *country.Draft) {
			d.Transaction.Customer = &transaction.Party{LegalName: "Óscar Núñez", Type: transaction.Individual}
			d.Transaction.Payments = paidBy("CASH", "", 116000)
		}), files: []string{`Rfc="XAXX010101000" Nombre="ÓSCAR NÚÑEZ"`, `Descripcion="Café`}, not: []string{"InformacionGlobal"}},
		{name: "A credit to the general public", draft: correction(transaction.Credit, "S-8", anonymous("S-8-1", nil), nil),
			files: []string{`TipoDeComprobante="E"`, `Nombre="PUBLICO EN GENERAL"`, `TipoRelacion="01"`}, not: []string{"InformacionGlobal"}},
	}
}

func partySituations() []situation {
	named := func(number, name string) country.Draft {
		return draft(number, func(d *country.Draft) { d.Transaction.Customer.LegalName = name })
	}
	return []situation{
		{name: "A company buys on credit", draft: draft("S-10", nil), files: []string{`MetodoPago="PPD"`, `FormaPago="99"`, `RegimenFiscalReceptor="601" UsoCFDI="G03"`}},
		{name: "A company pays by transfer", draft: draft("S-11", func(d *country.Draft) { d.Transaction.Payments = paidBy("TRANSFER", "PUE", 116000) }), files: []string{`MetodoPago="PUE"`, `FormaPago="03"`}},
		{name: "A name with SA DE CV", draft: named("S-12", "Comercial Azteca, S.A. de C.V."), refuse: "did you mean COMERCIAL AZTECA?", field: "customer.legal_name"},
		{name: "A name with S. de R.L.", draft: named("S-13", "Talleres Unidos S. de R.L."), refuse: "did you mean TALLERES UNIDOS?", field: "customer.legal_name"},
		{name: "A name that ends in letters of its own", draft: named("S-14", "Grupo AC"), files: []string{`Nombre="GRUPO AC"`}},
		{name: "A supplier whose name has SA DE CV", draft: draft("S-15", func(d *country.Draft) { d.Supplier.LegalName = "Escuela Kemper Urgate SA de CV" }), refuse: "ESCUELA KEMPER URGATE?", field: "supplier.id"},
		{name: "A company that does not say its regime", draft: draft("S-16", func(d *country.Draft) { d.Transaction.Customer.TaxRegime = "" }), warns: "customer.tax_information.regime", files: []string{`RegimenFiscalReceptor="601"`}},
		{name: "A patient pays a doctor (D01)", draft: draft("S-17", func(d *country.Draft) {
			d.Transaction.Customer = &transaction.Party{LegalName: "Xochilt Casas Chávez", Type: transaction.Individual, TaxNumber: "CACX7605101P8", TaxRegime: "605", TaxUse: "D01", Address: &transaction.Address{CountryCode: "MX", PostalCode: "36257"}}
			d.Transaction.Items = []transaction.Item{work(80000, tax(percent(0, 0), transaction.VAT, transaction.TaxExempt))}
		}), files: []string{`RegimenFiscalReceptor="605" UsoCFDI="D01"`, `TipoFactor="Exento"`}, not: []string{"TotalImpuestosTrasladados"}},
		{name: "Services for a company in the United States", draft: draft("S-18", func(d *country.Draft) {
			d.Transaction.Customer, d.Transaction.Items = american(), []transaction.Item{work(100000, iva(0))}
		}), files: []string{`Rfc="XEXX010101000"`, `ResidenciaFiscal="USA" NumRegIdTrib="123456789"`, `Exportacion="01"`, `TasaOCuota="0.000000"`}},
		{name: "Goods exported to the United States", draft: draft("S-19", func(d *country.Draft) {
			d.Transaction.Customer, d.Transaction.Items = american(), []transaction.Item{taxed(items(100000)[0], iva(0))}
		}), refuse: "Comercio Exterior", field: "items.0.tax_breakdowns.0.type"},
		{name: "Food sold here to somebody from abroad", draft: draft("S-20", func(d *country.Draft) {
			d.Transaction.Customer, d.Transaction.Items = american(), []transaction.Item{taxed(items(5000)[0], tax(percent(0, 0), transaction.VAT, transaction.TaxZero))}
		}), files: []string{`Rfc="XEXX010101000"`, `Exportacion="01"`}},
	}
}

func withheldSituations() []situation {
	return []situation{
		{name: "A freelancer works for a company", draft: sold("S-30", work(116000, iva(16), withheldAt(10, 0, "ISR"), withheldAt(106667, 4, ""))),
			files: []string{`TotalImpuestosRetenidos="206.67"`, `Impuesto="001" TipoFactor="Tasa" TasaOCuota="0.100000" Importe="100.00"`, `TasaOCuota="0.106667" Importe="106.67"`, ` Total="953.33"`}},
		{name: "Freight, IVA withheld at 4 %", draft: sold("S-31", work(116000, iva(16), withheldAt(4, 0, "IVA"))), files: []string{`Impuesto="002" TipoFactor="Tasa" TasaOCuota="0.040000" Importe="40.00"`}},
		{name: "Lodging, ISR withheld at 4 %", draft: sold("S-32", work(116000, iva(16), withheldAt(4, 0, "ISR"))), files: []string{`Impuesto="001" TipoFactor="Tasa" TasaOCuota="0.040000" Importe="40.00"`}},
		{name: "4 % withheld that does not say of which tax", draft: sold("S-33", work(116000, iva(16), withheldAt(4, 0, ""))), refuse: "freight", field: "items.0.tax_breakdowns.1.type"},
		{name: "A taxpayer of the simplified regime (RESICO)", draft: sold("S-34", work(116000, iva(16), withheldAt(125, 2, ""))), files: []string{`Impuesto="001" TipoFactor="Tasa" TasaOCuota="0.012500" Importe="12.50"`}},
		{name: "A shop in the border region", draft: sold("S-35", taxed(items(10800)[0], iva(8))), files: []string{`TasaOCuota="0.080000" Importe="8.00"`}},
		{name: "A discount on the whole sale", draft: sold("S-36", items(11600, -1160)...), files: []string{` Descuento="10.00" Moneda`, `Base="90.00"`, ` Total="104.40"`}},
		{name: "A line that is not taxed", draft: sold("S-37", taxed(items(5000)[0])), files: []string{`ObjetoImp="01"`}, not: []string{"cfdi:Impuestos"}},
	}
}

func correctionSituations() []situation {
	credit := draft("S-40-1", nil)
	paid := draft("S-41-1", func(d *country.Draft) { d.Transaction.Payments = paidBy("CARD", "PUE", 116000) })
	change := func(number string, of country.Draft, reason string, prices ...int64) country.Draft {
		return correction(transaction.Adjustment, number, of, func(d *country.Draft) { d.Transaction.Items, d.Transaction.Reason = items(prices...), reason })
	}
	cancel := func(number, reason string, earlier ...country.Earlier) country.Draft {
		return correction(transaction.Cancellation, number, credit, func(d *country.Draft) {
			d.Transaction.Reason, d.Original.Corrections = reason, earlier
		})
	}
	const other, another = "AAAAAAAA-2222-3333-4444-555555555555", "BBBBBBBB-2222-3333-4444-555555555555"
	note := country.Earlier{Transaction: transaction.Transaction{Kind: transaction.Adjustment, ID: "N-1"}, AuthorityID1: other}
	gone := note
	gone.Cancelled = true
	return []situation{
		{name: "A refund of a sale on credit", draft: correction(transaction.Credit, "S-40", credit, nil), files: []string{`TipoDeComprobante="E"`, `FormaPago="15"`, `UsoCFDI="G02"`}},
		{name: "A refund of a sale that was paid by card", draft: correction(transaction.Credit, "S-41", paid, nil), files: []string{`FormaPago="04"`, `MetodoPago="PUE"`}},
		{name: "A refund of a sale over the counter", draft: correction(transaction.Credit, "S-42", anonymous("S-42-1", nil), func(d *country.Draft) {
			d.Original.Report = []byte(`<cfdi:Comprobante xmlns:cfdi="http://www.sat.gob.mx/cfd/4" FormaPago="01"/>`)
		}), files: []string{`FormaPago="01"`}},
		{name: "Part of the price is given back", draft: change("S-43", credit, "", -1160), files: []string{`TipoDeComprobante="E"`, `TipoRelacion="01"`, ` Total="11.60"`}},
		{name: "Goods come back", draft: change("S-44", credit, "", -116000), files: []string{`TipoRelacion="03"`}},
		{name: "Something is added to the price", draft: change("S-45", credit, "", 1160), files: []string{`TipoDeComprobante="I"`, `TipoRelacion="02"`}},
		{name: "A wrong invoice is replaced", draft: change("S-46", credit, "04", 58000), files: []string{`TipoDeComprobante="I"`, `TipoRelacion="04"`}},
		{name: "A replacement that gives back", draft: change("S-47", credit, "04", -58000), refuse: "01, 03 or 07", field: "reason"},
		{name: "The sale of which an advance was paid", draft: change("S-48", credit, "07", 232000), files: []string{`TipoDeComprobante="I"`, `TipoRelacion="07"`}},
		{name: "An advance is applied", draft: change("S-49", credit, "07", -116000), files: []string{`TipoDeComprobante="E"`, `TipoRelacion="07"`, `FormaPago="30"`}},
		{name: "A rebate on several invoices", draft: change("S-50", credit, "01:"+other+","+another, -1160),
			files: []string{`TipoRelacion="01"><cfdi:CfdiRelacionado UUID="11111111-2222-3333-4444-555555555555"/><cfdi:CfdiRelacionado UUID="` + other + `"/><cfdi:CfdiRelacionado UUID="` + another + `"/>`}},
		{name: "A cancellation of what a credit note refers to", draft: cancel("S-51", "02", note), refuse: "cancel that one first", field: "reference_transaction_id"},
		{name: "A cancellation after that of its credit note", draft: cancel("S-52", "02", gone), files: []string{`Motivo="02"`}, only: true},
		{name: "A cancellation of what was replaced", draft: cancel("S-53", "01:"+other, note), files: []string{`Motivo="01"`, `FolioSustitucion="` + other + `"`}, only: true},
	}
}

func situations() []situation {
	all := append(publicSituations(), partySituations()...)
	all = append(all, withheldSituations()...)
	return append(all, correctionSituations()...)
}

// Each situation is filed and stamped, or refused before it is. The table in
// the country's page has a line for each of them. One simulator serves all.
func TestEverydaySituations(t *testing.T) {
	page, err := os.ReadFile("../../../docs/countries/mx.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(situations()); n < 40 {
		t.Errorf("only %d situations", n)
	}
	b := open(t)
	for _, s := range situations() {
		t.Run(s.name, func(t *testing.T) {
			if !strings.Contains(string(page), "| "+s.name+" |") {
				t.Errorf("docs/countries/mx.md has no line for it")
			}
			s.check(t, b)
		})
	}
}

func (s situation) check(t *testing.T, b bench) {
	t.Helper()
	faults, warned := found(s.draft), s.warns == ""
	for _, f := range examined(s.draft) {
		warned = warned || f.Type == fault.Warning && f.Field == s.warns
	}
	f, err := b.channel.Prepare(s.draft)
	if err != nil {
		var told *fault.Error
		if !errors.As(err, &told) {
			t.Fatal(err)
		}
		faults = append(faults, told.Faults...)
	}
	if s.refuse != "" {
		for _, f := range faults {
			if f.Field == s.field && strings.Contains(f.Message, s.refuse) {
				return
			}
		}
		t.Fatalf("not refused for %q at %s: %v", s.refuse, s.field, faults)
	}
	if len(faults) > 0 || !warned {
		t.Fatalf("refused or not warned: %v", faults)
	}
	if !s.only {
		if r := b.send(t, f); r.Outcome != country.Accepted {
			t.Errorf("%+v", r.Faults)
		}
	}
	for _, want := range s.files {
		if !strings.Contains(string(f.Report), want) {
			t.Errorf("%q is not in\n%s", want, f.Report)
		}
	}
	for _, wrong := range s.not {
		if strings.Contains(string(f.Report), wrong) {
			t.Errorf("%q is in\n%s", wrong, f.Report)
		}
	}
}
