package it_test

import (
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/it"
	"tributary/internal/country/packtest"
	"tributary/internal/transaction"
)

type situation = packtest.Situation

// taxed is the ordinary rate on top of a price.
var taxed = vat("22", transaction.Added)

func free(kind, code string) transaction.Tax { return untaxed(kind, code) }

// goods and work are of 100.00.
func goods(taxes ...transaction.Tax) transaction.Item { return item("Merce", "1", 10000, taxes...) }

func work(taxes ...transaction.Tax) transaction.Item {
	return service(item("Lavoro", "1", 10000, taxes...))
}

func cheap(name string) transaction.Item { return item(name, "1", 99, vat("22", transaction.Included)) }

func contribution(code string, price int64, taxes ...transaction.Tax) transaction.Item {
	return with(service(item("Contributo", "1", price, taxes...)), func(i *transaction.Item) {
		i.Classifications = []transaction.Classification{{Scheme: "CASSA", Code: code}}
	})
}

func intended(code string) transaction.Item {
	return with(goods(free(transaction.TaxExport, "N3.5")), func(i *transaction.Item) {
		i.Classifications = []transaction.Classification{{Scheme: "INTENTO", Code: code}}
	})
}

func association() *transaction.Party {
	return &transaction.Party{LegalName: "Associazione", Type: transaction.Business, TaxNumber: "80012345676",
		Address: &transaction.Address{CountryCode: "IT", AddressLine1: "Via Po 1", PostalCode: "10124", City: "Torino"}}
}

func german() *transaction.Party { return abroad("DE", "DE136695976", transaction.Business) }

func american() *transaction.Party { return abroad("US", "12-3456789", transaction.Business) }

func french() *transaction.Party { return abroad("FR", "", transaction.Individual) }

func operator() *transaction.Party { return abroad("SM", "SM12345", transaction.Business) }

func canary() *transaction.Party {
	p := abroad("ES", "ESB58378431", transaction.Business)
	p.Address.PostalCode = "35001"
	return p
}

func livigno() *transaction.Party {
	p := business()
	p.Address.PostalCode, p.Address.City, p.Electronic = "23041", "Livigno", nil
	return p
}

// company changes a setting of the company.
func company(d country.Draft, key string, value any) country.Draft {
	d.Supplier.Settings[key] = value // of this draft alone: supplier makes them anew
	return d
}

func flat(number string, buyer *transaction.Party, items ...transaction.Item) country.Draft {
	return company(draft(number, buyer, items...), "fiscal_regime", "RF19")
}

// professional is a person who bills a fee, by transfer.
func professional(number string, items ...transaction.Item) country.Draft {
	return with(company(reason(draft(number, business(), items...), "TD06"), "iban", "IT60X0542811101000000123456"),
		func(d *country.Draft) {
			d.Supplier.Type = transaction.Individual
		})
}

// dated is an invoice of a day over a sale of another.
func dated(number, kind, issued, supplied string) country.Draft {
	return with(reason(draft(number, business(), goods(taxed)), kind), func(d *country.Draft) {
		d.Transaction.Date, _ = time.ParseInLocation(time.DateOnly, issued, rome())
		d.Transaction.DeliveryDate, d.Now = supplied, d.Transaction.Date.Add(time.Hour)
	})
}

func delivered(d country.Draft, document string) country.Draft {
	d.Transaction.Items[0].Classifications = []transaction.Classification{{Scheme: "DDT", Code: document}}
	return d
}

// Each situation is filed and taken by SdI, or refused before it is filed, and
// what is filed is valid. The table in the country's page has a line for each.
func TestEverydaySituations(t *testing.T) {
	all := append(shopSituations(), freelanceSituations()...)
	all = append(all, abroadSituations()...)
	all = append(all, homeSituations()...)
	all = append(all, daySituations()...)
	all = append(all, boughtSituations()...)
	all = append(all, correctionSituations()...)
	ch, send := packtest.Beside(t, pack(), packtest.Options{})
	var reports [][]byte
	packtest.Bench{
		Pack: it.Pack(), Page: "../../../docs/countries/it.md", Channel: ch, Strict: true,
		Send: func(t *testing.T, f country.Filing) country.Receipt {
			reports = append(reports, f.Report)
			return send(t, f)
		},
	}.Try(t, all)
	schema(t, reports)
}

// shopSituations are sales of shops and marketplaces, to businesses and consumers.
func shopSituations() []situation {
	return []situation{
		{Name: "A shop sells to a business", Draft: draft("SH-1", business(), goods(taxed)),
			Files: []string{"<TipoDocumento>TD01<", "<CodiceDestinatario>ABC1234<",
				"<IdPaese>IT</IdPaese><IdCodice>00743110157<", "<Imposta>22.00<"}, Not: []string{"DatiBollo", "Natura"}},
		{Name: "A shop sells to a person", Draft: draft("SH-2", person(), goods(taxed)),
			Files: []string{"<CodiceDestinatario>0000000<", "<CodiceFiscale>RSSMRA80A01H501U<"}},
		{Name: "A person in Italy without a codice fiscale", Draft: draft("SH-3", with(person(), func(p **transaction.Party) {
			(*p).FiscalCode = ""
		}), goods(taxed)),
			Refuse: "00417", Field: "customer.tax_information.tax_number"},
		{Name: "A business without an address for invoices",
			Draft: draft("SH-4", with(business(), func(p **transaction.Party) {
				(*p).Electronic = nil
			}), goods(taxed)),
			Files: []string{"<CodiceDestinatario>0000000<"}, Not: []string{"PECDestinatario"}},
		{Name: "A buyer with certified mail", Draft: draft("SH-5", with(business(), func(p **transaction.Party) {
			(*p).Electronic = &transaction.ElectronicAddress{Scheme: transaction.SchemePEC, ID: "acquisti@pec.example.it"}
		}), goods(taxed)),
			Files: []string{"<CodiceDestinatario>0000000</CodiceDestinatario><PECDestinatario>acquisti@pec.example.it<"}},
		{Name: "An association with a numeric code", Draft: draft("SH-6", association(), goods(taxed)),
			Files: []string{"<CessionarioCommittente><DatiAnagrafici><CodiceFiscale>80012345676<"}},
		{Name: "An office of the public administration", Draft: draft("SH-7", with(business(), func(p **transaction.Party) {
			(*p).Electronic.ID = "UF1234"
		}), goods(taxed)),
			Refuse: "qualified signature", Field: "customer.electronic_address.id"},
		{Name: "Bread, a meal and a chair on one invoice",
			Draft: draft("SH-8", business(), goods(vat("4", transaction.Added)), work(vat("10", transaction.Added)),
				goods(taxed)),
			Files: []string{"<AliquotaIVA>4.00</AliquotaIVA><ImponibileImporto>100.00</ImponibileImporto><Imposta>4.00<",
				"<Imposta>10.00<", "<Imposta>22.00<"}},
		{Name: "A discount on a line", Draft: lowered(),
			Files: []string{"<ScontoMaggiorazione><Tipo>SC</Tipo>"}},
		{Name: "A discount as a line", Draft: draft("SH-9", business(), goods(taxed),
			with(item("Sconto", "1", -500, taxed), func(i *transaction.Item) {
				i.Type = transaction.Discount
			})),
			Files: []string{"<TipoCessionePrestazione>SC<", "<PrezzoTotale>-5.00<", "<ImponibileImporto>95.00<"}},
		{Name: "Five prices with tax that do not add up",
			Draft: draft("SH-10", business(), cheap("A"), cheap("B"), cheap("C"), cheap("D"), cheap("E")),
			Files: []string{"<Imposta>0.89<", "<ImportoTotaleDocumento>4.95</ImportoTotaleDocumento><Arrotondamento>0.01<"}},
		{Name: "Paid by card, the rest by transfer",
			Draft: with(draft("SH-11", business(), goods(taxed)), func(d *country.Draft) {
				d.Transaction.Payments = []transaction.Payment{{Type: "CARD", Amount: 2200},
					{Type: "TRANSFER", Amount: 10000, IBAN: "IT60X0542811101000000123456"}}
			}),
			Files: []string{"<CondizioniPagamento>TP01<", "<ModalitaPagamento>MP08</ModalitaPagamento><ImportoPagamento>22.00<",
				"<ModalitaPagamento>MP05</ModalitaPagamento><ImportoPagamento>100.00<"}},
		{Name: "A marketplace issues for the seller",
			Draft: with(draft("SH-12", person(), goods(taxed)), func(d *country.Draft) {
				d.Transaction.Issuer = &transaction.Party{LegalName: "Mercato Online S.r.l.", Type: transaction.Business,
					TaxNumber: "07643520567"}
			}),
			Files: []string{"<TerzoIntermediarioOSoggettoEmittente>", "<SoggettoEmittente>TZ<"}},
		{Name: "The buyer issues for the seller",
			Draft: with(draft("SH-13", business(), goods(taxed)), func(d *country.Draft) {
				d.Transaction.Issuer = business()
			}),
			Files: []string{"<SoggettoEmittente>CC<"}, Not: []string{"TerzoIntermediario"}},
		{Name: "The company sells to itself", Draft: draft("SH-14", with(business(), func(p **transaction.Party) {
			(*p).TaxNumber = supplierNumber
		}), goods(taxed)),
			Refuse: "00471", Field: "customer.tax_information.tax_number"},
		{Name: "Second-hand goods", Draft: draft("SH-15", person(), goods(free(transaction.TaxExempt, "N5"))),
			Files: []string{"<Natura>N5<"}, Not: []string{"DatiBollo"}},
	}
}

// freelanceSituations are of professionals, agents and flat-rate businesses.
func freelanceSituations() []situation {
	return []situation{
		{Name: "A professional with withholding", Draft: professional("FR-1", work(taxed, withheld("20", "A"))),
			Files: []string{"<TipoDocumento>TD06<",
				"<TipoRitenuta>RT01</TipoRitenuta><ImportoRitenuta>20.00</ImportoRitenuta><AliquotaRitenuta>20.00</AliquotaRitenuta><CausalePagamento>A<", "<Ritenuta>SI<", "<ImportoTotaleDocumento>122.00<", "<ImportoPagamento>102.00<"}},
		{Name: "A company with withholding", Draft: draft("FR-2", business(), work(taxed, withheld("20", "A"))),
			Files: []string{"<TipoRitenuta>RT02<"}},
		{Name: "A lawyer's fund", Draft: professional("FR-3", work(taxed, withheld("20", "A")),
			contribution("TC01@4", 400, taxed)),
			Files: []string{"<TipoCassa>TC01</TipoCassa><AlCassa>4.00</AlCassa><ImportoContributoCassa>4.00</ImportoContributoCassa><ImponibileCassa>100.00</ImponibileCassa><AliquotaIVA>22.00</AliquotaIVA></DatiCassaPrevidenziale>", "<ImportoRitenuta>20.00<", "<ImportoTotaleDocumento>126.88<", "<ImponibileImporto>104.00</ImponibileImporto><Imposta>22.88<"}, Not: []string{"<NumeroLinea>2<"}},
		{Name: "The contribution to INPS, which is income",
			Draft: professional("FR-4", work(taxed, withheld("20", "A")),
				contribution("TC22@4", 400, taxed, withheld("20", "A"))),
			Files: []string{"<TipoCassa>TC22<",
				"<AliquotaIVA>22.00</AliquotaIVA><Ritenuta>SI</Ritenuta></DatiCassaPrevidenziale>", "<ImportoRitenuta>20.80<"}},
		{Name: "Withholding from the contribution to a fund",
			Draft: professional("FR-5", work(taxed, withheld("20", "A")),
				contribution("TC01@4", 400, taxed, withheld("20", "A"))),
			Refuse: "no income", Field: "items.1.tax_breakdowns"},
		{Name: "A contribution of more than its rate",
			Draft:  professional("FR-6", work(taxed), contribution("TC04@4", 500, taxed)),
			Refuse: "more than 4.00", Field: "items.1.unit_price"},
		{Name: "A contribution to a fund that nobody knows",
			Draft:  professional("FR-7", work(taxed), contribution("TC23@4", 400, taxed)),
			Refuse: "TC04@4", Field: "items.1.classification"},
		{Name: "Withholding by a consumer", Draft: draft("FR-8", person(), work(taxed, withheld("20", "A"))),
			Refuse: "consumer withholds no tax", Field: "items.0.tax_breakdowns"},
		{Name: "Withholding by a buyer abroad",
			Draft:  draft("FR-9", german(), work(free(transaction.TaxReverse, ""), withheld("20", "A"))),
			Refuse: "buyer abroad", Field: "items.0.tax_breakdowns"},
		{Name: "A condominium withholds", Draft: draft("FR-10", association(),
			work(vat("10", transaction.Added), withheld("4", "W"))),
			Files: []string{"<AliquotaRitenuta>4.00</AliquotaRitenuta><CausalePagamento>W<"}},
		{Name: "An agent with Enasarco", Draft: draft("FR-11", business(), work(taxed, withheld("11.5", "RT02:R")),
			work(taxed, withheld("8.5", "RT04:R"))),
			Files: []string{"<TipoRitenuta>RT02<", "<TipoRitenuta>RT04</TipoRitenuta><ImportoRitenuta>8.50<"}},
		{Name: "Costs advanced for a client",
			Draft: professional("FR-12", work(taxed, withheld("20", "A")),
				item("Bolli anticipati", "1", 5000, free(transaction.TaxZero, ""))),
			Files: []string{"<Natura>N1<", "<ImportoRitenuta>20.00<"}, Not: []string{"DatiBollo"}},
		{Name: "A doctor, 77.47 €", Draft: draft("FR-13", person(),
			service(item("Visita", "1", 7747, free(transaction.TaxExempt, "")))),
			Files: []string{"<Natura>N4<"}, Not: []string{"DatiBollo"}},
		{Name: "A doctor, 77.48 €", Draft: draft("FR-14", person(),
			service(item("Visita", "1", 7748, free(transaction.TaxExempt, "")))),
			Files: []string{"<BolloVirtuale>SI</BolloVirtuale><ImportoBollo>2.00<", "<ImportoTotaleDocumento>77.48<"}},
		{Name: "Taxed and exempt on one invoice",
			Draft: draft("FR-15", person(), goods(taxed), service(item("Visita", "1", 7747, free(transaction.TaxExempt, "")))),
			Not:   []string{"DatiBollo"}},
		{Name: "A company that settles stamp duty otherwise",
			Draft: company(draft("FR-16", person(), work(free(transaction.TaxExempt, ""))), "stamp_duty", false),
			Not:   []string{"DatiBollo"}},
		{Name: "A flat-rate professional", Draft: flat("FR-17", business(), work(free(transaction.TaxOutside, ""))),
			Files: []string{"<RegimeFiscale>RF19<", "<Natura>N2.2<",
				"<RiferimentoNormativo>Regime forfettario ex art. 1 commi 54-89 L. 190/2014<", "DatiBollo"}},
		{Name: "A flat-rate professional with a fund",
			Draft: flat("FR-18", business(), work(free(transaction.TaxOutside, "")),
				contribution("TC04@4", 400, free(transaction.TaxOutside, ""))),
			Files: []string{"<TipoCassa>TC04<",
				"<AliquotaIVA>0.00</AliquotaIVA><Natura>N2.2</Natura></DatiCassaPrevidenziale>"}},
		{Name: "A flat-rate business charges VAT", Draft: flat("FR-19", business(), work(taxed)),
			Refuse: "charges no VAT", Field: "items.0.tax_breakdowns"},
		{Name: "Withholding from a flat-rate business",
			Draft:  flat("FR-20", business(), work(free(transaction.TaxOutside, ""), withheld("20", "A"))),
			Refuse: "nothing is withheld", Field: "items.0.tax_breakdowns"},
		{Name: "A flat-rate business works for a German business",
			Draft: flat("FR-21", german(), work(free(transaction.TaxReverse, ""))),
			Files: []string{"<Natura>N2.1<", "INVCONT"}, Not: []string{"N2.2"}},
		{Name: "A flat-rate business sends goods to Germany",
			Draft: flat("FR-22", german(), goods(free(transaction.TaxIntraEU, ""))),
			Files: []string{"<Natura>N2.2<"}},
		{Name: "A flat-rate business with the code N3.2",
			Draft:  flat("FR-23", german(), goods(free(transaction.TaxIntraEU, "N3.2"))),
			Refuse: "flat-rate", Field: "items.0.tax_breakdowns.0.type"},
		{Name: "A flat-rate business exports", Draft: flat("FR-24", american(), goods(free(transaction.TaxExport, ""))),
			Files: []string{"<Natura>N3.1<"}, Not: []string{"DatiBollo"}},
		{Name: "A flat-rate business advances costs",
			Draft: flat("FR-25", business(), work(free(transaction.TaxOutside, "")),
				item("Bolli", "1", 1600, free(transaction.TaxZero, ""))),
			Files: []string{"<Natura>N1<", "<Natura>N2.2<"}},
		{Name: "Cash accounting", Draft: company(draft("FR-26", business(), goods(taxed)), "vat_due", "D"),
			Files: []string{"<EsigibilitaIVA>D<"}},
	}
}
