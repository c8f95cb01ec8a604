package mx_test

import (
	"slices"
	"testing"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/transaction"
)

type situation = packtest.Situation

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

// local is a tax of a state that is withheld, by its name.
func local(rate int64, decimals uint32, code string) transaction.Tax {
	x := withheldAt(rate, decimals, "LOCAL")
	x.Code = code
	return x
}

// issuedAt is a draft of a place of issue.
func issuedAt(place string, d country.Draft) country.Draft {
	d.Supplier.Settings["place_of_issue"] = place
	return d
}

func sold(number string, list ...transaction.Item) country.Draft {
	return draft(number, func(d *country.Draft) { d.Transaction.Items = list })
}

// used is a sale to a person who deducts it in a way of their own.
func used(number, use string) country.Draft {
	return draft(number, func(d *country.Draft) {
		d.Transaction.Customer = &transaction.Party{LegalName: "XOCHILT CASAS CHAVEZ", Type: transaction.Individual,
			TaxNumber: "CACX7605101P8", TaxRegime: "612", TaxUse: use,
			Address: &transaction.Address{CountryCode: "MX", PostalCode: "36257"}}
	})
}

func american() *transaction.Party {
	return &transaction.Party{LegalName: "Acme Inc.", Type: transaction.Business, TaxNumber: "12-3456789",
		Address: &transaction.Address{CountryCode: "US", PostalCode: "10001"}}
}

func publicSituations() []situation {
	return []situation{
		{Name: "A sale over the counter", Draft: anonymous("S-1", func(d *country.Draft) {
			d.Transaction.Payments = paidBy("CARD", "PUE:28", 116000)
		}),
			Files: []string{`<cfdi:InformacionGlobal Periodicidad="01"`, `Nombre="PUBLICO EN GENERAL"`,
				`ClaveProdServ="01010101" NoIdentificacion="S-1" Cantidad="1" ClaveUnidad="ACT" Descripcion="Venta" ValorUnitario="1000.00"`, `FormaPago="28"`, `MetodoPago="PUE"`, `UsoCFDI="S01"`}},
		{Name: "A sale over the counter that does not say how it was paid", Draft: anonymous("S-2", nil), Warns: "payments",
			Files: []string{`FormaPago="01"`, `MetodoPago="PUE"`}},
		{Name: "Several things at one rate over the counter", Draft: anonymous("S-3", func(d *country.Draft) {
			d.Transaction.Items = items(333, 333, 333, 333, 333, 333, 333)
		}),
			Files: []string{` Total="23.31"`, `Descripcion="Venta" ValorUnitario="20.09" Importe="20.09"`,
				`Base="20.09" Impuesto="002" TipoFactor="Tasa" TasaOCuota="0.160000" Importe="3.22"`}, Not: []string{"Café"}},
		{Name: "Bread and a pan over the counter", Draft: anonymous("S-4", func(d *country.Draft) {
			d.Transaction.Items = []transaction.Item{taxed(items(5000)[0], iva(0)), taxed(items(0, 11600)[1], iva(16))}
		}), Files: []string{`ValorUnitario="50.00"`, `TasaOCuota="0.000000"`, `ValorUnitario="100.00"`,
			`TasaOCuota="0.160000"`, ` Total="166.00"`}},
		{Name: "The general public on credit", Draft: anonymous("S-5", func(d *country.Draft) {
			d.Transaction.Payments = paidBy("CREDIT", "", 116000)
		}), Refuse: "must be PUE", Field: "payments.0.code"},
		{Name: "The general public withholds", Draft: anonymous("S-6", func(d *country.Draft) {
			d.Transaction.Items = []transaction.Item{work(116000, iva(16), withheldAt(10, 0, "ISR"))}
		}),
			Refuse: "general public", Field: "items.0.tax_breakdowns.1"},
		{Name: "A consumer with a name and no RFC", Draft: draft("S-7", func(d *country.Draft) {
			d.Transaction.Customer = &transaction.Party{LegalName: "Óscar Núñez", Type: transaction.Individual}
			d.Transaction.Payments = paidBy("CASH", "", 116000)
		}), Files: []string{`Rfc="XAXX010101000" Nombre="ÓSCAR NÚÑEZ"`, `Descripcion="Café`},
			Not: []string{"InformacionGlobal"}},
		{Name: "A credit to the general public", Draft: correction(transaction.Credit, "S-8", anonymous("S-8-1", nil), nil),
			Files: []string{`TipoDeComprobante="E"`, `Nombre="PUBLICO EN GENERAL"`, `TipoRelacion="01"`},
			Not:   []string{"InformacionGlobal"}},
	}
}

func partySituations() []situation {
	named := func(number, name string) country.Draft {
		return draft(number, func(d *country.Draft) { d.Transaction.Customer.LegalName = name })
	}
	return []situation{
		{Name: "A company buys on credit", Draft: draft("S-10", nil),
			Files: []string{`MetodoPago="PPD"`, `FormaPago="99"`, `RegimenFiscalReceptor="601" UsoCFDI="G03"`}},
		{Name: "A company pays by transfer", Draft: draft("S-11", func(d *country.Draft) {
			d.Transaction.Payments = paidBy("TRANSFER", "PUE", 116000)
		}), Files: []string{`MetodoPago="PUE"`, `FormaPago="03"`}},
		{Name: "A name with SA DE CV", Draft: named("S-12", "Comercial Azteca, S.A. de C.V."),
			Refuse: "did you mean COMERCIAL AZTECA?", Field: "customer.legal_name"},
		{Name: "A name with S. de R.L.", Draft: named("S-13", "Talleres Unidos S. de R.L."),
			Refuse: "did you mean TALLERES UNIDOS?", Field: "customer.legal_name"},
		{Name: "A name that ends in letters of its own", Draft: named("S-14", "Grupo AC"),
			Files: []string{`Nombre="GRUPO AC"`}},
		{Name: "A supplier whose name has SA DE CV", Draft: draft("S-15", func(d *country.Draft) {
			d.Supplier.LegalName = "Escuela Kemper Urgate SA de CV"
		}), Refuse: "ESCUELA KEMPER URGATE?", Field: "supplier.id"},
		{Name: "A company that does not say its regime", Draft: draft("S-16", func(d *country.Draft) {
			d.Transaction.Customer.TaxRegime = ""
		}), Warns: "customer.tax_information.regime", Files: []string{`RegimenFiscalReceptor="601"`}},
		{Name: "A patient pays a doctor (D01)", Draft: draft("S-17", func(d *country.Draft) {
			d.Transaction.Customer = &transaction.Party{LegalName: "Xochilt Casas Chávez", Type: transaction.Individual,
				TaxNumber: "CACX7605101P8", TaxRegime: "605", TaxUse: "D01",
				Address: &transaction.Address{CountryCode: "MX", PostalCode: "36257"}}
			d.Transaction.Items = []transaction.Item{work(80000, tax(percent(0, 0), transaction.VAT, transaction.TaxExempt))}
		}), Files: []string{`RegimenFiscalReceptor="605" UsoCFDI="D01"`, `TipoFactor="Exento"`},
			Not: []string{"TotalImpuestosTrasladados"}},
		{Name: "Services for a company in the United States", Draft: draft("S-18", func(d *country.Draft) {
			d.Transaction.Customer, d.Transaction.Items = american(), []transaction.Item{work(100000, iva(0))}
		}), Files: []string{`Rfc="XEXX010101000"`, `ResidenciaFiscal="USA" NumRegIdTrib="123456789"`, `Exportacion="01"`,
			`TasaOCuota="0.000000"`}},
		{Name: "Goods exported to the United States", Draft: draft("S-19", func(d *country.Draft) {
			d.Transaction.Customer, d.Transaction.Items = american(), []transaction.Item{taxed(items(100000)[0], iva(0))}
		}), Refuse: "Comercio Exterior", Field: "items.0.tax_breakdowns.0.type"},
		{Name: "Food sold here to somebody from abroad", Draft: draft("S-20", func(d *country.Draft) {
			d.Transaction.Customer, d.Transaction.Items = american(),
				[]transaction.Item{taxed(items(5000)[0], tax(percent(0, 0), transaction.VAT, transaction.TaxZero))}
		}), Files: []string{`Rfc="XEXX010101000"`, `Exportacion="01"`}},
	}
}

func withheldSituations() []situation {
	return []situation{
		{Name: "A freelancer works for a company",
			Draft: sold("S-30", work(116000, iva(16), withheldAt(10, 0, "ISR"), withheldAt(106667, 4, ""))),
			Files: []string{`TotalImpuestosRetenidos="206.67"`,
				`Impuesto="001" TipoFactor="Tasa" TasaOCuota="0.100000" Importe="100.00"`,
				`TasaOCuota="0.106667" Importe="106.67"`, ` Total="953.33"`}},
		{Name: "Freight, IVA withheld at 4 %", Draft: sold("S-31", work(116000, iva(16), withheldAt(4, 0, "IVA"))),
			Files: []string{`Impuesto="002" TipoFactor="Tasa" TasaOCuota="0.040000" Importe="40.00"`}},
		{Name: "Lodging, ISR withheld at 4 %", Draft: sold("S-32", work(116000, iva(16), withheldAt(4, 0, "ISR"))),
			Files: []string{`Impuesto="001" TipoFactor="Tasa" TasaOCuota="0.040000" Importe="40.00"`}},
		{Name: "4 % withheld that does not say of which tax",
			Draft: sold("S-33", work(116000, iva(16), withheldAt(4, 0, ""))), Refuse: "freight",
			Field: "items.0.tax_breakdowns.1.type"},
		{Name: "A taxpayer of the simplified regime (RESICO)",
			Draft: sold("S-34", work(116000, iva(16), withheldAt(125, 2, ""))),
			Files: []string{`Impuesto="001" TipoFactor="Tasa" TasaOCuota="0.012500" Importe="12.50"`}},
		{Name: "A shop in the border region", Draft: issuedAt("22000", sold("S-35", taxed(items(10800)[0], iva(8)))),
			Files: []string{`TasaOCuota="0.080000" Importe="8.00"`}},
		{Name: "A shop in the southern border region",
			Draft: issuedAt("30700", sold("S-38", taxed(items(10800)[0], iva(8)))),
			Files: []string{`TasaOCuota="0.080000" Importe="8.00"`}},
		{Name: "A shop in the border region that does not use the stimulus",
			Draft: issuedAt("22000", sold("S-39", taxed(items(11600)[0], iva(16)))),
			Files: []string{`TasaOCuota="0.160000" Importe="16.00"`}},
		{Name: "The rate of the border elsewhere", Draft: sold("S-92", taxed(items(10800)[0], iva(8))),
			Refuse: "border region", Field: "items.0.tax_breakdowns.0.rate"},
		{Name: "Public works, 5 al millar withheld", Draft: sold("S-93", work(116000, iva(16), local(5, 1, "5MILLAR"))),
			Files: []string{`<implocal:ImpuestosLocales version="1.0" TotaldeRetenciones="5.00" TotaldeTraslados="0.00"><implocal:RetencionesLocales ImpLocRetenido="5 AL MILLAR" TasadeRetencion="0.50" Importe="5.00"/>`, ` Total="1155.00"`}, Not: []string{"TotalImpuestosRetenidos"}},
		{Name: "Rent, the state's tax and ISR withheld",
			Draft: sold("S-94", work(116000, iva(16), withheldAt(10, 0, "ISR"), local(2, 0, "CEDULAR"))),
			Files: []string{`ImpLocRetenido="CEDULAR" TasadeRetencion="2.00" Importe="20.00"`,
				`TotalImpuestosRetenidos="100.00"`, ` Total="1040.00"`}},
		{Name: "A local tax that is withheld and has no name", Draft: sold("S-95", work(116000, iva(16), local(2, 0, ""))),
			Refuse: "must name the local tax", Field: "items.0.tax_breakdowns.1.code"},
		{Name: "A local tax that is withheld at three decimals",
			Draft: sold("S-96", work(116000, iva(16), local(1125, 3, "CEDULAR"))), Refuse: "2 decimals",
			Field: "items.0.tax_breakdowns.1.rate"},
		{Name: "A discount on the whole sale", Draft: sold("S-36", items(11600, -1160)...),
			Files: []string{` Descuento="10.00" Moneda`, `Base="90.00"`, ` Total="104.40"`}},
		{Name: "A line that is not taxed", Draft: sold("S-37", taxed(items(5000)[0])), Files: []string{`ObjetoImp="01"`},
			Not: []string{"cfdi:Impuestos"}},
	}
}

// lineSituations are what a line may say beside its price.
func lineSituations() []situation {
	ieps := func(rate int64, decimals uint32) transaction.Tax { return tax(percent(rate, decimals), "IEPS", "") }
	marked := func(i transaction.Item, scheme, code string) transaction.Item {
		i.Classifications = []transaction.Classification{{Scheme: scheme, Code: code}}
		return i
	}
	given := items(11600, 5800)
	whole := percent(100, 0)
	given[1].Discount = &transaction.LineDiscount{Rate: &whole}
	free := items(11600, 5800)
	free[1].UnitPrice = 0
	added := iva(16)
	added.Mode = transaction.Added
	sugar := ieps(265, 1)
	sugar.Mode = transaction.Added
	third := func(number, rfc string) country.Draft {
		return draft(number, func(d *country.Draft) {
			d.Transaction.Items = []transaction.Item{marked(items(116000)[0], "TERCERO", rfc)}
			d.Supplier.Settings["third_parties"] = map[string]any{
				"CACX7605101P8": map[string]any{"name": "Xochilt Casas Chávez", "regime": "612", "postal_code": "36257"}}
		})
	}
	quota := func(amount int64, decimals uint32, base int64, places uint32) transaction.Tax {
		q, b := num.MakeAmount(amount, decimals), num.MakeAmount(base, places)
		return transaction.Tax{Regime: "IEPS", Mode: transaction.Added, Quota: &q, QuotaBase: &b}
	}
	ten := func(i transaction.Item) transaction.Item { i.Quantity = num.MakeAmount(10, 0); return i }
	dollars := draft("S-102", func(d *country.Draft) {
		rate := num.MakeAmount(185, 1)
		d.Transaction.CurrencyCode, d.Transaction.ExchangeRate = "USD", &rate
		d.Transaction.Items = []transaction.Item{taxed(items(10000)[0], quota(645, 1, 20, 0), added)}
	})
	atBorder := third("S-97", "CACX7605101P8")
	atBorder.Transaction.Items = []transaction.Item{marked(taxed(items(10800)[0], iva(8)), "TERCERO", "CACX7605101P8")}
	atBorder.Totals, _ = transaction.Calculate(atBorder.Transaction.Items)
	atBorder.Supplier.Settings["third_parties"] = map[string]any{
		"CACX7605101P8": map[string]any{"name": "Xochilt Casas Chávez", "regime": "612", "postal_code": "22000"}}
	return []situation{
		{Name: "Beer for a company that asks for the IEPS",
			Draft: sold("S-80", taxed(items(14674)[0], ieps(265, 1), iva(16))),
			Files: []string{`Importe="100.00" ObjetoImp="02"`,
				`Base="100.00" Impuesto="003" TipoFactor="Tasa" TasaOCuota="0.265000" Importe="26.50"`,
				`Base="126.50" Impuesto="002" TipoFactor="Tasa" TasaOCuota="0.160000" Importe="20.24"`, ` Total="146.74"`}},
		{Name: "Beer at a price without taxes", Draft: sold("S-81", taxed(items(10000)[0], sugar, added)),
			Files: []string{`Base="126.50" Impuesto="002"`, ` Total="146.74"`}},
		{Name: "Telephone, IEPS of 3 %", Draft: sold("S-82", taxed(work(11948), ieps(3, 0), iva(16))),
			Files: []string{`Impuesto="003" TipoFactor="Tasa" TasaOCuota="0.030000" Importe="3.00"`,
				`Base="103.00" Impuesto="002"`}},
		{Name: "Soft drinks for a shop, IEPS by the litre",
			Draft: sold("S-98", ten(taxed(items(1000)[0], quota(30818, 2, 6, 0), added))),
			Files: []string{`Base="6" Impuesto="003" TipoFactor="Cuota" TasaOCuota="3.081800" Importe="18.49"`,
				`Base="118.49" Impuesto="002" TipoFactor="Tasa" TasaOCuota="0.160000" Importe="18.96"`, ` SubTotal="100.00"`,
				` Total="137.45"`}},
		{Name: "Cigarettes, IEPS by the piece", Draft: sold("S-99", taxed(items(10000)[0], quota(645, 1, 20, 0), added)),
			Files: []string{`Base="20" Impuesto="003" TipoFactor="Cuota" TasaOCuota="0.645000" Importe="12.90"`}},
		{Name: "A quota above SAT's list", Draft: sold("S-100", taxed(items(10000)[0], quota(72160501, 4, 1, 0), added)),
			Refuse: "7216.05", Field: "items.0.tax_breakdowns.0.quota"},
		{Name: "A quota over the counter", Draft: anonymous("S-101", func(d *country.Draft) {
			d.Transaction.Items = []transaction.Item{taxed(items(10000)[0], quota(645, 1, 20, 0), added)}
		}), Refuse: "general public", Field: "items.0.tax_breakdowns.0.quota"},
		{Name: "A quota in dollars", Draft: dollars, Refuse: "must be MXN", Field: "items.0.tax_breakdowns.0.quota"},
		{Name: "Beer over the counter", Draft: anonymous("S-83", func(d *country.Draft) {
			d.Transaction.Items = []transaction.Item{taxed(items(3333)[0], ieps(265, 1), iva(16)),
				taxed(items(0, 4777)[1], ieps(265, 1), iva(16))}
			d.Transaction.Payments = paidBy("CASH", "", 8110)
		}), Files: []string{` Total="81.10"`, `Descripcion="Venta"`, `Impuesto="003"`}},
		{Name: "A discount line beside IEPS and IVA",
			Draft: sold("S-84", taxed(items(14674)[0], ieps(265, 1), iva(16)),
				taxed(items(0, -1000)[1], ieps(265, 1), iva(16))), Refuse: "own discount", Field: "items.1.unit_price"},
		{Name: "A room with the state's tax on lodging",
			Draft: sold("S-85", taxed(work(119000), iva(16), tax(percent(3, 0), "ISH", ""))),
			Files: []string{`<implocal:ImpuestosLocales version="1.0" TotaldeRetenciones="0.00" TotaldeTraslados="30.00"><implocal:TrasladosLocales ImpLocTrasladado="ISH" TasadeTraslado="3.00" Importe="30.00"/>`, ` Total="1190.00"`, `TotalImpuestosTrasladados="160.00"`}},
		{Name: "A house is let", Draft: sold("S-86",
			marked(work(100000, tax(percent(0, 0), transaction.VAT, transaction.TaxExempt)), "PREDIAL", "15956011002")),
			Files: []string{`<cfdi:CuentaPredial Numero="15956011002"/>`}},
		{Name: "Imported goods sold at first hand",
			Draft: sold("S-87", marked(items(116000)[0], "PEDIMENTO", "154830090001234")),
			Files: []string{`<cfdi:InformacionAduanera NumeroPedimento="15  48  3009  0001234"/>`}},
		{Name: "A marketplace sells for a shop", Draft: third("S-88", "CACX7605101P8"),
			Files: []string{`<cfdi:ACuentaTerceros RfcACuentaTerceros="CACX7605101P8" NombreACuentaTerceros="XOCHILT CASAS CHÁVEZ" RegimenFiscalACuentaTerceros="612" DomicilioFiscalACuentaTerceros="36257"/>`}},
		{Name: "A marketplace elsewhere sells for a shop at the border", Draft: atBorder,
			Files: []string{`TasaOCuota="0.080000" Importe="8.00"`, `DomicilioFiscalACuentaTerceros="22000"`}},
		{Name: "A marketplace sells for somebody unknown", Draft: third("S-89", "H&E951128469"),
			Refuse: "settings.third_parties", Field: "items.0.classification.0.code"},
		{Name: "Something is given away with a sale", Draft: sold("S-90", given...),
			Files: []string{` Descuento="50.00" ObjetoImp="04"`, ` Total="116.00"`}},
		{Name: "Everything is given away", Draft: sold("S-90-1", given[1]),
			Files: []string{`FormaPago="01"`, `MetodoPago="PUE"`, ` Total="0.00"`}, Warns: "payments"},
		{Name: "A card that does not say which", Draft: draft("S-90-2", func(d *country.Draft) {
			d.Transaction.Payments = paidBy("CARD", "PUE", 116000)
		}), Files: []string{`FormaPago="04"`}, Warns: "payments.0.code"},
		{Name: "A debit card", Draft: draft("S-90-3", func(d *country.Draft) {
			d.Transaction.Payments = paidBy("CARD", "PUE:28", 116000)
		}), Files: []string{`FormaPago="28"`}},
		{Name: "A donation (D04)", Draft: used("S-90-4", "D04"), Refuse: "Donatarias", Field: "customer.tax_information.use"},
		{Name: "Tuition (D10)", Draft: used("S-90-5", "D10"), Refuse: "iedu", Field: "customer.tax_information.use"},
		{Name: "A line with a price of nothing", Draft: sold("S-91", free...), Refuse: "discount of 100 %",
			Field: "items.1.unit_price"},
	}
}

func correctionSituations() []situation {
	credit := draft("S-40-1", nil)
	paid := draft("S-41-1", func(d *country.Draft) { d.Transaction.Payments = paidBy("CARD", "PUE", 116000) })
	change := func(number string, of country.Draft, reason string, prices ...int64) country.Draft {
		return correction(transaction.Adjustment, number, of, func(d *country.Draft) {
			d.Transaction.Items, d.Transaction.Reason = items(prices...), reason
		})
	}
	cancel := func(number, reason string, earlier ...country.Earlier) country.Draft {
		return correction(transaction.Cancellation, number, credit, func(d *country.Draft) {
			d.Transaction.Reason, d.Original.Corrections = reason, earlier
		})
	}
	const other, another = "AAAAAAAA-2222-3333-4444-555555555555", "BBBBBBBB-2222-3333-4444-555555555555"
	note := country.Earlier{Transaction: transaction.Transaction{Kind: transaction.Adjustment, ID: "N-1"},
		AuthorityID1: other}
	gone := note
	gone.Cancelled = true
	return []situation{
		{Name: "A refund of a sale on credit", Draft: correction(transaction.Credit, "S-40", credit, nil),
			Files: []string{`TipoDeComprobante="E"`, `FormaPago="15"`, `UsoCFDI="G02"`}},
		{Name: "A refund of a sale that was paid by card", Draft: correction(transaction.Credit, "S-41", paid, nil),
			Files: []string{`FormaPago="04"`, `MetodoPago="PUE"`}},
		{Name: "A refund of a sale over the counter",
			Draft: correction(transaction.Credit, "S-42", anonymous("S-42-1", nil), func(d *country.Draft) {
				d.Original.Report = []byte(`<cfdi:Comprobante xmlns:cfdi="http://www.sat.gob.mx/cfd/4" FormaPago="01"/>`)
			}), Files: []string{`FormaPago="01"`}},
		{Name: "Part of the price is given back", Draft: change("S-43", credit, "", -1160),
			Files: []string{`TipoDeComprobante="E"`, `TipoRelacion="01"`, ` Total="11.60"`}},
		{Name: "Goods come back", Draft: change("S-44", credit, "", -116000), Files: []string{`TipoRelacion="03"`}},
		{Name: "Something is added to the price", Draft: change("S-45", credit, "", 1160),
			Files: []string{`TipoDeComprobante="I"`, `TipoRelacion="02"`}},
		{Name: "A wrong invoice is replaced", Draft: change("S-46", credit, "04", 58000),
			Files: []string{`TipoDeComprobante="I"`, `TipoRelacion="04"`}},
		{Name: "A sale that was replaced is credited", Draft: func() country.Draft {
			d := correction(transaction.Credit, "S-46-1", credit, nil)
			d.Original.Corrections = []country.Earlier{
				{Transaction: transaction.Transaction{Kind: transaction.Adjustment, ID: "N-4", Reason: "04"}, AuthorityID1: other}}
			return d
		}(), Refuse: "01:" + other, Field: "reference_transaction_id"},
		{Name: "A sale whose replacement was cancelled is credited", Draft: func() country.Draft {
			d := correction(transaction.Credit, "S-46-2", credit, nil)
			d.Original.Corrections = []country.Earlier{
				{Transaction: transaction.Transaction{Kind: transaction.Adjustment, ID: "N-4", Reason: "04"}, AuthorityID1: other,
					Cancelled: true}}
			return d
		}(), Files: []string{`TipoDeComprobante="E"`}},
		{Name: "A replacement that gives back", Draft: change("S-47", credit, "04", -58000), Refuse: "01, 03 or 07",
			Field: "reason"},
		{Name: "The sale of which an advance was paid", Draft: change("S-48", credit, "07", 232000),
			Files: []string{`TipoDeComprobante="I"`, `TipoRelacion="07"`}},
		{Name: "An advance is applied", Draft: change("S-49", credit, "07", -116000),
			Files: []string{`TipoDeComprobante="E"`, `TipoRelacion="07"`, `FormaPago="30"`}},
		{Name: "A rebate on several invoices", Draft: change("S-50", credit, "01:"+other+","+another, -1160),
			Files: []string{`TipoRelacion="01"><cfdi:CfdiRelacionado UUID="11111111-2222-3333-4444-555555555555"/><cfdi:CfdiRelacionado UUID="` + other + `"/><cfdi:CfdiRelacionado UUID="` + another + `"/>`}},
		{Name: "A cancellation of what a credit note refers to", Draft: cancel("S-51", "02", note),
			Refuse: "cancel that one first", Field: "reference_transaction_id"},
		{Name: "A cancellation after that of its credit note", Draft: cancel("S-52", "02", gone),
			Files: []string{`Motivo="02"`}, Unsent: true},
		{Name: "A cancellation of what was replaced", Draft: cancel("S-53", "01:"+other, note),
			Files: []string{`Motivo="01"`, `FolioSustitucion="` + other + `"`}, Unsent: true},
	}
}

// payment is a report of money that came for sales that were filed.
func payment(number string, payments []transaction.Payment, edit func(*country.Draft),
	settles ...country.Share) country.Draft {
	d := draft(number, nil)
	t := &d.Transaction
	t.Kind, t.Items, t.Payments, t.Customer = transaction.PaymentReport, nil, payments, nil
	d.Totals = transaction.Totals{}
	for i := range settles {
		t.Shares = append(t.Shares, transaction.Share{TransactionID: settles[i].Transaction.ID, Amount: settles[i].Amount})
		t.CurrencyCode = settles[i].Transaction.CurrencyCode
	}
	d.Shares, t.ReferenceID = settles, t.Shares[0].TransactionID
	if edit != nil {
		edit(&d)
	}
	return d
}

// owing is a sale that was filed and how much is paid for it now.
func owing(t *testing.T, b bench, amount int64, sale country.Draft, earlier ...country.Earlier) country.Share {
	t.Helper()
	f := b.prepare(t, sale)
	r := b.send(t, f)
	if r.Outcome != country.Accepted {
		t.Fatalf("%+v", r.Faults)
	}
	return country.Share{Amount: amount, Original: country.Original{Transaction: sale.Transaction, Totals: sale.Totals,
		Report: f.Report, AuthorityID1: r.AuthorityID1, Corrections: earlier}}
}

func paymentSituations(t *testing.T, b bench) []situation {
	t.Helper()
	transfer := func(amount int64) []transaction.Payment {
		return []transaction.Payment{{Type: "TRANSFER", Amount: amount, Reference: "SPEI 1"}}
	}
	before := func(amount int64, cancelled bool) country.Earlier {
		return country.Earlier{Cancelled: cancelled, AuthorityID1: "AAAAAAAA-2222-3333-4444-555555555555",
			Transaction: transaction.Transaction{Kind: transaction.PaymentReport,
				Shares: []transaction.Share{{TransactionID: "tx-S-60-1", Amount: amount}}}}
	}
	sale := draft("S-60-1", nil)
	paid := func(amount int64, earlier ...country.Earlier) country.Share {
		return owing(t, b, amount, sale, earlier...)
	}
	fees := sold("S-66-1", work(116000, iva(16), withheldAt(10, 0, "ISR"), withheldAt(106667, 4, "")))
	dollars := draft("S-67-1", func(d *country.Draft) {
		rate := num.MakeAmount(185, 1)
		d.Transaction.CurrencyCode, d.Transaction.ExchangeRate = "USD", &rate
	})
	later := num.MakeAmount(190, 1)
	litre, litres := num.MakeAmount(30818, 2), num.MakeAmount(6, 0)
	drinks := sold("S-75-1", taxed(items(10000)[0],
		transaction.Tax{Regime: "IEPS", Mode: transaction.Added, Quota: &litre, QuotaBase: &litres},
		transaction.Tax{Rate: percent(16, 0), Regime: transaction.VAT, Mode: transaction.Added}))
	return []situation{
		{Name: "A company pays what it owes", Draft: payment("S-60", transfer(116000), nil, paid(116000)),
			Files: []string{`TipoDeComprobante="P"`, `Moneda="XXX"`, `UsoCFDI="CP01"`, `ClaveProdServ="84111506"`,
				`FormaDePagoP="03" MonedaP="MXN" TipoCambioP="1" Monto="1160.00" NumOperacion="SPEI 1"`,
				`NumParcialidad="1" ImpSaldoAnt="1160.00" ImpPagado="1160.00" ImpSaldoInsoluto="0.00" ObjetoImpDR="02"`,
				`TotalTrasladosBaseIVA16="1000.00" TotalTrasladosImpuestoIVA16="160.00" MontoTotalPagos="1160.00"`}},
		{Name: "Two parts that came on different days",
			Draft: payment("S-73", []transaction.Payment{{Type: "TRANSFER", Amount: 16000,
				Date: now.AddDate(0, 0, -3).Format("2006-01-02")}, {Type: "CASH", Amount: 100000}}, nil, paid(116000)),
			Files: []string{`FechaPago="` + now.AddDate(0, 0, -3).Format("2006-01-02") + `T12:00:00" FormaDePagoP="03"`,
				`NumParcialidad="2"`}},
		{Name: "A payment of a day that has not come",
			Draft: payment("S-74", []transaction.Payment{{Type: "TRANSFER", Amount: 116000,
				Date: now.AddDate(0, 0, 2).Format("2006-01-02")}}, nil, paid(116000)), Refuse: "when the money came",
			Field: "payments.0.date"},
		{Name: "A first part is paid", Draft: payment("S-61", transfer(33333), nil, paid(33333)),
			Files: []string{`NumParcialidad="1" ImpSaldoAnt="1160.00" ImpPagado="333.33" ImpSaldoInsoluto="826.67"`,
				`BaseDR="287.353448"`, `ImporteDR="45.976552"`, `TotalTrasladosBaseIVA16="287.35"`}},
		{Name: "The rest is paid", Draft: payment("S-62", transfer(82667), nil, paid(82667, before(33333, false))),
			Files: []string{`NumParcialidad="2" ImpSaldoAnt="826.67" ImpPagado="826.67" ImpSaldoInsoluto="0.00"`}},
		{Name: "A payment after one that was cancelled",
			Draft: payment("S-63", transfer(116000), nil, paid(116000, before(33333, true))),
			Files: []string{`NumParcialidad="1" ImpSaldoAnt="1160.00"`}},
		{Name: "More is paid than is owed", Draft: payment("S-64", transfer(82668), nil, paid(82668, before(33333, false))),
			Refuse: "826.67", Field: "reference_transaction_id"},
		{Name: "One transfer for two invoices",
			Draft: payment("S-65", transfer(150000), nil, paid(116000), owing(t, b, 34000, draft("S-65-1", nil))),
			Files: []string{`Monto="1500.00"`, `ImpPagado="1160.00" ImpSaldoInsoluto="0.00"`,
				`ImpPagado="340.00" ImpSaldoInsoluto="820.00"`}},
		{Name: "Part of a sale with a quota is paid", Draft: payment("S-75", transfer(6873), nil, owing(t, b, 6873, drinks)),
			Files: []string{`BaseDR="3.000218" ImpuestoDR="003" TipoFactorDR="Cuota" TasaOCuotaDR="3.081800" ImporteDR="9.246072"`, `ImpSaldoInsoluto="68.72"`}},
		{Name: "Fees with withholding are paid", Draft: payment("S-66", transfer(95333), nil, owing(t, b, 95333, fees)),
			Files: []string{`ImpSaldoAnt="953.33"`, `TotalRetencionesIVA="106.67" TotalRetencionesISR="100.00"`,
				`<pago20:RetencionP ImpuestoP="001"`}},
		{Name: "Dollars are paid at another rate", Draft: payment("S-67", transfer(116000), func(d *country.Draft) {
			d.Transaction.ExchangeRate = &later
		}, owing(t, b, 116000, dollars)),
			Files: []string{`MonedaP="USD" TipoCambioP="19"`, `MonedaDR="USD" EquivalenciaDR="1"`, `MontoTotalPagos="22040.00"`,
				`TotalTrasladosBaseIVA16="19000.00"`}},
		{Name: "Dollars are paid in pesos", Draft: payment("S-67-2", transfer(2_175_000), func(d *country.Draft) {
			d.Transaction.CurrencyCode = "MXN"
		}, owing(t, b, 116000, dollars)),
			Files: []string{`MonedaP="MXN" TipoCambioP="1" Monto="21750.00"`,
				`MonedaDR="USD" EquivalenciaDR="0.0533333334" NumParcialidad="1" ImpSaldoAnt="1160.00" ImpPagado="1160.00" ImpSaldoInsoluto="0.00"`,
				`BaseDR="1000.000000"`, `BaseP="18749.999977"`, `MontoTotalPagos="21750.00"`,
				`TotalTrasladosBaseIVA16="18750.00"`}},
		{Name: "A part of dollars is paid in pesos", Draft: payment("S-67-3", transfer(1_000_000), func(d *country.Draft) {
			d.Transaction.CurrencyCode = "MXN"
		}, owing(t, b, 50000, dollars)),
			Files: []string{`EquivalenciaDR="0.0500000000" NumParcialidad="1" ImpSaldoAnt="1160.00" ImpPagado="500.00" ImpSaldoInsoluto="660.00"`}},
		{Name: "Pesos are paid in dollars", Draft: payment("S-67-4", transfer(5800), func(d *country.Draft) {
			d.Transaction.CurrencyCode, d.Transaction.ExchangeRate = "USD", &later
		}, paid(110200)),
			Files: []string{`MonedaP="USD" TipoCambioP="19" Monto="58.00"`, `MonedaDR="MXN" EquivalenciaDR="19.0000000000"`,
				`ImpPagado="1102.00" ImpSaldoInsoluto="58.00"`, `MontoTotalPagos="1102.00"`}},
		{Name: "Dollars are paid in pesos, and nobody says how many",
			Draft: payment("S-67-5", transfer(116000), func(d *country.Draft) {
				d.Transaction.CurrencyCode = "MXN"
			}, owing(t, b, 116000, dollars)),
			Refuse: "in its own currency", Field: "references"},
		{Name: "Dollars are paid without a rate",
			Draft: payment("S-68", transfer(116000), nil, owing(t, b, 116000, dollars)), Refuse: "on the day of the payment",
			Field: "exchange_rate"},
		{Name: "A payment for what was paid at once",
			Draft: payment("S-69", transfer(116000), nil, owing(t, b, 116000, draft("S-69-1", func(d *country.Draft) {
				d.Transaction.Payments = paidBy("CARD", "PUE", 116000)
			}))),
			Refuse: "paid at once", Field: "reference_transaction_id"},
		{Name: "A payment that is not money yet",
			Draft:  payment("S-70", []transaction.Payment{{Type: "CREDIT", Amount: 116000}}, nil, paid(116000)),
			Refuse: "how the money came", Field: "payments.0.type"},
		{Name: "Part in cash, part by card", Draft: payment("S-71",
			[]transaction.Payment{{Type: "CASH", Amount: 16000}, {Type: "CARD", Code: "28", Amount: 100000}}, nil, paid(116000)),
			Files: []string{`FormaDePagoP="01"`, `NumParcialidad="1" ImpSaldoAnt="1160.00" ImpPagado="160.00"`,
				`FormaDePagoP="28"`, `NumParcialidad="2" ImpSaldoAnt="1000.00" ImpPagado="1000.00" ImpSaldoInsoluto="0.00"`}},
		{Name: "A payment after part of the price was given back",
			Draft: payment("S-72", transfer(104400), nil,
				paid(104400, country.Earlier{Transaction: transaction.Transaction{Kind: transaction.Adjustment},
					Totals: transaction.Totals{Gross: -11600}})),
			Files: []string{`ImpSaldoAnt="1044.00"`}},
	}
}

func situations() []situation {
	all := append(publicSituations(), partySituations()...)
	all = append(all, withheldSituations()...)
	all = append(all, lineSituations()...)
	return append(all, correctionSituations()...)
}

// Each situation is filed and stamped, or refused before it is. The table in
// the country's page has a line for each of them. One simulator serves all.
func TestEverydaySituations(t *testing.T) {
	b := open(t)
	packtest.Bench{Pack: pack(), Page: "../../../docs/countries/mx.md", Channel: b.channel,
		Send: func(t *testing.T, f country.Filing) country.Receipt {
			return b.send(t, f)
		}}.
		Try(t, slices.Concat(situations(), paymentSituations(t, b), periodSituations(t)))
}
