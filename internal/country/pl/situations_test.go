package pl_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"
	pkcs12 "software.sslmate.com/src/go-pkcs12"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/country/pl"
	"tributary/internal/fault"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
)

// situation is something that happens every day: what is sent, and what the
// filed document says, or why it is refused.
type situation struct {
	name   string
	draft  country.Draft
	files  []string
	not    []string
	refuse string // part of the message of a fault
	field  string // of that fault
	stays  bool   // it stays outside KSeF
}

func typed(kind string) transaction.Tax { return coded(vat("0", transaction.Added), kind, "") }

func goods(tax transaction.Tax) transaction.Item { return item("Towar", one(), 100_00, tax) }

func work(tax transaction.Tax) transaction.Item { return service(item("Usługa", one(), 100_00, tax)) }

func marked(i transaction.Item, scheme, code string) transaction.Item {
	i.Classifications = append(i.Classifications, transaction.Classification{Scheme: scheme, Code: code})
	return i
}

func german() *transaction.Party { return foreignBuyer("DE", "DE136695976", transaction.Business) }

// zeroSituations are the lines of the table of zero rates.
func zeroSituations() []situation {
	irish := foreignBuyer("GB", "XI110305878", transaction.Business)
	return []situation{
		{name: "Goods to a business in Germany with its VAT number",
			draft: draft("S/1", german(), goods(typed(transaction.TaxIntraEU))),
			files: []string{"<P_12>0 WDT</P_12>", "<P_13_6_2>100.00<", "<PrefiksPodatnika>PL<", "<P_18>2<"}},
		{name: "Goods to a business in Germany without a VAT number",
			draft:  draft("S/2", foreignBuyer("DE", "", transaction.Business), goods(typed(transaction.TaxIntraEU))),
			refuse: "VAT number of another member state", field: "items.0.tax_breakdowns.0.type"},
		{name: "Services called INTRA_EU", draft: draft("S/3", german(), work(typed(transaction.TaxIntraEU))),
			refuse: "REVERSE", field: "items.0.tax_breakdowns.0.type"},
		{name: "Services to a business in Germany", draft: draft("S/4", german(), work(typed(transaction.TaxReverse))),
			files: []string{"<P_12>np II</P_12>", "<P_13_9>100.00<", "<P_18>1<"}},
		{name: "Services taxed in Germany, called OUTSIDE",
			draft: draft("S/5", german(), work(typed(transaction.TaxOutside))),
			files: []string{"<P_12>np II</P_12>", "<P_18>1<"}},
		{name: "Services on a building in Germany (NP1)",
			draft: draft("S/6", german(), work(coded(vat("0", transaction.Added), "", "NP1"))),
			files: []string{"<P_12>np I</P_12>", "<P_13_8>100.00<", "<P_18>2<"}},
		{name: "Goods installed in Germany, the buyer owes the tax",
			draft: draft("S/7", german(), goods(typed(transaction.TaxReverse))),
			files: []string{"<P_12>np I</P_12>", "<P_18>1<"}},
		{name: "Services to a business in Switzerland",
			draft: draft("S/8", foreignBuyer("CH", "", transaction.Business), work(typed(transaction.TaxReverse))),
			files: []string{"<P_12>np I</P_12>", "<P_18>1<"}},
		{name: "Reverse charge to a person in Switzerland",
			draft:  draft("S/9", foreignBuyer("CH", "", transaction.Individual), work(typed(transaction.TaxReverse))),
			refuse: "OUTSIDE", field: "items.0.tax_breakdowns.0.type"},
		{name: "Goods exported to the United States",
			draft: draft("S/10", foreignBuyer("US", "12-3456789", transaction.Business), goods(typed(transaction.TaxExport))),
			files: []string{"<P_12>0 EX</P_12>", "<P_13_6_3>100.00<"}},
		{name: "Services called EXPORT", draft: draft("S/11", foreignBuyer("US", "", transaction.Business),
			work(typed(transaction.TaxExport))), refuse: "OUTSIDE", field: "items.0.tax_breakdowns.0.type"},
		{name: "Goods to a business in Northern Ireland (XI)",
			draft: draft("S/12", irish, goods(typed(transaction.TaxIntraEU))),
			files: []string{"<P_12>0 WDT</P_12>", "<KodUE>XI<"}},
		{name: "Services to a business in Northern Ireland (XI)",
			draft: draft("S/13", irish, work(typed(transaction.TaxReverse))), files: []string{"<P_12>np I</P_12>", "<P_18>1<"}},
		{name: "Reverse charge to a Polish business",
			draft: draft("S/14", polishBuyer(), goods(typed(transaction.TaxReverse))),
			files: []string{"<P_12>oo</P_12>", "<P_13_10>100.00<", "<P_18>1<"}},
		{name: "Reverse charge to a consumer", draft: draft("S/15", person(), goods(typed(transaction.TaxReverse))),
			refuse: "NIP", field: "items.0.tax_breakdowns.0.type"},
		{name: "A zero that does not say which", draft: draft("S/16", polishBuyer(), goods(vat("0", transaction.Added))),
			refuse: "which zero", field: "items.0.tax_breakdowns.0.type"},
		{name: "A zero rate in Poland", draft: draft("S/17", polishBuyer(), goods(typed(transaction.TaxZero))),
			files: []string{"<P_12>0 KR</P_12>", "<P_13_6_1>100.00<"}},
		{name: "An exempt lesson of a small taxpayer",
			draft: draft("S/18", person(), work(coded(vat("0", transaction.Included), "", "113"))),
			files: []string{"<P_12>zw</P_12>", "<P_19A>art. 113"}},
	}
}

// ancillary is shipping of 20.00 that goes with the goods.
func ancillary(tax transaction.Tax) transaction.Item {
	i := service(item("Transport", one(), 20_00, tax))
	i.Ancillary = true
	return i
}

// placed is a business at an address whose postal code decides.
func placed(code, postal, number string) *transaction.Party {
	p := foreignBuyer(code, number, transaction.Business)
	p.Address.PostalCode = postal
	return p
}

// placeSituations are buyers whose country alone does not say whether they are in
// the Union's VAT.
func placeSituations() []situation {
	open := vat("0", transaction.Added)
	const french, spanish = "FR61954506077", "ESA28015865"
	return []situation{
		{name: "Goods to a business in Réunion", draft: draft("T/1", placed("FR", "97400", french), goods(open)),
			files: []string{"<P_12>0 EX</P_12>", "<P_13_6_3>100.00<", "<KodKraju>FR</KodKraju><NrID>FR61954506077<"},
			not:   []string{"KodUE", "WDT"}},
		{name: "Goods to a business in Åland", draft: draft("T/2", placed("AX", "22100", "FI20774740"), goods(open)),
			files: []string{"<P_12>0 EX</P_12>"}, not: []string{"KodUE"}},
		{name: "Goods to a business in the Canary Islands", draft: draft("T/3", placed("IC", "35001", spanish), goods(open)),
			files: []string{"<P_12>0 EX</P_12>", "<KodKraju>ES</KodKraju>"}, not: []string{"KodUE", "WDT"}},
		{name: "Goods to a business in the Canary Islands, called INTRA_EU",
			draft:  draft("T/4", placed("ES", "35001", spanish), goods(typed(transaction.TaxIntraEU))),
			refuse: "VAT does not hold in the Canary Islands", field: "items.0.tax_breakdowns.0.type"},
		{name: "Services to a business in the Canary Islands",
			draft: draft("T/5", placed("ES", "35001", spanish), work(open)), files: []string{"<P_12>np I</P_12>"},
			not: []string{"np II"}},
		{name: "Goods to a business in Monaco", draft: draft("T/6", placed("MC", "98000", french), goods(open)),
			files: []string{"<P_12>0 WDT</P_12>", "<KodUE>FR<"}},
		{name: "Goods to a business in Northern Ireland that says no type",
			draft: draft("T/7", placed("GB", "BT1 5GS", "XI110305878"), goods(open)),
			files: []string{"<P_12>0 WDT</P_12>", "<KodUE>XI<"}},
		{name: "Goods to Germany and their shipping", draft: draft("T/10", german(), goods(open), ancillary(open)),
			files: []string{"<P_13_6_2>120.00<"}, not: []string{"np II", "P_13_9"}},
		{name: "Goods to the United States and their shipping",
			draft: draft("T/11", foreignBuyer("US", "12-3456789", transaction.Business), goods(typed(transaction.TaxExport)),
				ancillary(typed(transaction.TaxExport))),
			files: []string{"<P_13_6_3>120.00<"}, not: []string{"np I"}},
		{name: "Goods to Germany and shipping that does not say what it is",
			draft: draft("T/12", german(), goods(open), work(open)), refuse: "must be true for shipping",
			field: "items.1.ancillary"},
		{name: "Goods to Germany and shipping called INTRA_EU",
			draft: draft("T/13", german(), goods(open), work(typed(transaction.TaxIntraEU))), refuse: "ancillary: true",
			field: "items.1.tax_breakdowns.0.type"},
		{name: "Goods to Germany and an assembly there",
			draft: draft("T/14", german(), goods(open), work(typed(transaction.TaxReverse))),
			files: []string{"<P_13_6_2>100.00<", "<P_13_9>100.00<"}},
		{name: "Goods at 0 to a consumer in Germany",
			draft: draft("T/15", foreignBuyer("DE", "", transaction.Individual), goods(open)), refuse: "which zero",
			field: "items.0.tax_breakdowns.0.type"},
		{name: "Goods to a business in Northern Ireland, called EXPORT",
			draft:  draft("T/8", placed("GB", "BT1 5GS", "XI110305878"), goods(typed(transaction.TaxExport))),
			refuse: "in the Union for goods", field: "items.0.tax_breakdowns.0.type"},
	}
}

func saleSituations() []situation {
	annexed := func(d country.Draft) country.Draft {
		d.Supplier.Settings = country.Settings{"split_payment": true}
		return d
	}
	big := func(c *transaction.Party, taxes transaction.Tax) country.Draft {
		return annexed(draft("S/20", c, item("Stal", one(), 16_000_00, taxes)))
	}
	paid := func(number string, change func(*transaction.Transaction), payments ...transaction.Payment) country.Draft {
		d := invoice(number)
		d.Transaction.Payments = payments
		change(&d.Transaction)
		return d
	}
	still := func(*transaction.Transaction) {}
	apart := func(d country.Draft) country.Draft {
		d.Supplier.Settings = country.Settings{"consumers": "document"}
		return d
	}
	return []situation{
		{name: "A consumer with name and address", draft: draft("S/30", person(), goods(vat("23", transaction.Included))),
			files: []string{"<BrakID>1<", "<Nazwa>Łucja Ćwikła<", "<AdresL1>ul. Wiejska 4<"}},
		{name: "A consumer without an address",
			draft: draft("S/31", &transaction.Party{LegalName: "Łucja Ćwikła", Type: transaction.Individual},
				goods(vat("23", transaction.Included))),
			refuse: "name and address", field: "customer.address.address_line_1"},
		{name: "A consumer of a company that keeps consumers outside KSeF",
			draft: apart(draft("S/35", person(), goods(vat("23", transaction.Included)))), stays: true},
		{name: "A sole trader of such a company",
			draft: apart(draft("S/36", &transaction.Party{LegalName: "Jan Nowak", Type: transaction.Individual,
				TaxNumber: buyerNIP, Address: person().Address}, goods(vat("23", transaction.Included)))),
			files: []string{"<NIP>" + buyerNIP + "<"}},
		{name: "A correction of a consumer's invoice that is in KSeF",
			draft: apart(correct(transaction.Adjustment,
				draft("S/37", person(), item("Rabat", one(), -10_00, vat("23", transaction.Included))),
				draft("S/38", person(), goods(vat("23", transaction.Included))))),
			files: []string{"<RodzajFaktury>KOR<", "<BrakID>1<"}},
		{name: "A sale that was rung up (FP)",
			draft: draft("S/32", polishBuyer(), marked(goods(vat("23", transaction.Included)), "PL", "FP")),
			files: []string{"<FP>1</FP>"}, not: []string{"<TP>"}},
		{name: "A sale to a related company (TP)",
			draft: draft("S/33", polishBuyer(), marked(goods(vat("23", transaction.Included)), "PL", "TP")),
			files: []string{"<TP>1</TP>"}},
		{name: "Goods of a group (GTU)", draft: draft("S/34", polishBuyer(),
			marked(goods(vat("23", transaction.Included)), "GTU", "06")), files: []string{"<GTU>GTU_06</GTU>"}},
		{name: "Steel above 15,000 PLN to a Polish business", draft: big(polishBuyer(), vat("23", transaction.Added)),
			files: []string{"<P_18A>1<", "<P_12_Zal_15>1<"}},
		{name: "Steel above 15,000 PLN to a German business", draft: big(german(), vat("23", transaction.Added)),
			files: []string{"<P_18A>2<"}, not: []string{"P_12_Zal_15"}},
		{name: "Steel above 15,000 PLN without tax", draft: big(polishBuyer(), typed(transaction.TaxReverse)),
			files: []string{"<P_18A>2<"}},
		{name: "One line of annex 15 among others (ZAL15)",
			draft: draft("S/21", polishBuyer(), marked(item("Stal", one(), 16_000_00, vat("23", transaction.Added)), "PL",
				"ZAL15"), goods(vat("23", transaction.Added))),
			files: []string{"<P_18A>1<", "<P_12>23</P_12><P_12_Zal_15>1</P_12_Zal_15></FaWiersz><FaWiersz>",
				"<P_12>23</P_12></FaWiersz>"}},
		{name: "A correction of a split payment",
			draft: correct(transaction.Adjustment,
				annexed(draft("S/22", polishBuyer(), item("Rabat", one(), -100_00, vat("23", transaction.Added)))),
				big(polishBuyer(), vat("23", transaction.Added))),
			files: []string{"<P_18A>1<"}},
		{name: "Paid by a transfer that came on another day",
			draft: paid("S/45", still, transaction.Payment{Type: "TRANSFER", Amount: 22710, Date: "2025-10-03"}),
			files: []string{"<Zaplacono>1</Zaplacono><DataZaplaty>2025-10-03</DataZaplaty>", "<FormaPlatnosci>6<"}},
		{name: "Paid by card", draft: paid("S/40", still, transaction.Payment{Type: "CARD", Amount: 22710}),
			files: []string{"<Zaplacono>1</Zaplacono><DataZaplaty>2025-10-07</DataZaplaty>", "<FormaPlatnosci>2<"}},
		{name: "To be paid by transfer within two weeks", draft: paid("S/41", func(t *transaction.Transaction) {
			t.DueDate = "2025-10-21"
		}, transaction.Payment{Type: "TRANSFER", Amount: 22710}),
			files: []string{"<TerminPlatnosci><Termin>2025-10-21</Termin></TerminPlatnosci>", "<FormaPlatnosci>6<"},
			not:   []string{"Zaplacono"}},
		{name: "Paid by a transfer that is known",
			draft: paid("S/42", still, transaction.Payment{Type: "TRANSFER", Amount: 22710, Reference: "P24-1"}),
			files: []string{"<Zaplacono>1<"}},
		{name: "Paid in part, the rest on credit",
			draft: paid("S/43", still, transaction.Payment{Type: "CASH", Amount: 10000},
				transaction.Payment{Type: "CREDIT", Amount: 12710}),
			files: []string{"<ZnacznikZaplatyCzesciowej>1<",
				"<KwotaZaplatyCzesciowej>100.00</KwotaZaplatyCzesciowej><DataZaplatyCzesciowej>2025-10-07<"},
			not: []string{"<Zaplacono>"}},
		{name: "An order and a contract of the buyer", draft: paid("S/44", func(t *transaction.Transaction) {
			t.References.Order, t.References.Contract = "ZAM/7", "UM/3"
		}),
			files: []string{"<WarunkiTransakcji><Umowy><NrUmowy>UM/3</NrUmowy></Umowy><Zamowienia><NrZamowienia>ZAM/7</NrZamowienia></Zamowienia></WarunkiTransakcji>"}},
	}
}

// lawSituations: addresses, accounts, deposits, currencies.
func lawSituations() []situation {
	full := vat("23", transaction.Included)
	homeless := polishBuyer()
	homeless.Address = nil
	deposit := item("Kaucja za butelki", one(), 5_00, coded(vat("0", transaction.Added), "", "POZA"))
	accounts := invoice("L/1")
	accounts.Transaction.Payments = []transaction.Payment{{Type: "TRANSFER", Amount: 22710,
		IBAN: "PL61 1090 1014 0000 0712 1981 2874"}}
	factored := invoice("L/13")
	factored.Supplier.Settings = country.Settings{"bank_account": "PL10105000997603123456789123"}
	factored.Transaction.Payee = &transaction.Payee{Name: "Faktor S.A.", IBAN: "PL61 1090 1014 0000 0712 1981 2874"}
	dollars := draft("L/12", foreignBuyer("US", "12-3456789", transaction.Business), work(typed(transaction.TaxOutside)))
	dollars.Transaction.CurrencyCode = "USD"
	advance := draft("L/2", polishBuyer(), item("Zaliczka", one(), 246_00, full))
	advance.Transaction.OrderItems = []transaction.Item{item("Kuchnia", one(), 1230_00, full)}
	advance.Transaction.Payments = []transaction.Payment{{Type: "TRANSFER", Amount: 246_00, Date: "2025-10-02"}}
	return []situation{
		{name: "A transfer to the account that the payment names", draft: accounts,
			files: []string{"<RachunekBankowy><NrRB>PL61109010140000071219812874</NrRB></RachunekBankowy>"}},
		{name: "Money that goes to a factor", draft: factored,
			files: []string{"<RachunekBankowyFaktora><NrRB>PL61109010140000071219812874</NrRB><OpisRachunku>Faktor S.A.</OpisRachunku></RachunekBankowyFaktora>"},
			not:   []string{"<RachunekBankowy>"}},
		{name: "A business without an address", draft: draft("L/3", homeless, goods(full)),
			refuse: "names its buyer with the address", field: "customer.address.address_line_1"},
		{name: "An advance that is invoiced after the money came", draft: advance,
			files: []string{"<RodzajFaktury>ZAL<", "<P_1>2025-10-07<", "<P_6>2025-10-02<"}},
		{name: "A sale below zero", draft: draft("L/5", polishBuyer(), item("Zwrot", one(), -100_00, full)),
			refuse: "as an adjustment of the original", field: "items"},
		{name: "A deposit for bottles", draft: draft("L/6", polishBuyer(), goods(full), deposit),
			files: []string{"<P_15>100.00<",
				"<Rozliczenie><Obciazenia><Kwota>5.00</Kwota><Powod>Kaucja za butelki</Powod></Obciazenia><SumaObciazen>5.00</SumaObciazen><DoZaplaty>105.00</DoZaplaty></Rozliczenie>"}, not: []string{"P_13_8", "<P_7>Kaucja"}},
		{name: "The deposit is given back", draft: correct(transaction.Credit,
			draft("L/7", polishBuyer(), goods(full), deposit), draft("L/6", polishBuyer(), goods(full), deposit)),
			files: []string{"<P_15>-100.00<", "<Odliczenia><Kwota>5.00</Kwota>", "<DoZaplaty>-105.00<"}},
		{name: "Damages alone", draft: draft("L/8", polishBuyer(), deposit), refuse: "billed by a note",
			field: "items.0.tax_breakdowns.0.code"},
		{name: "Goods sold on by the second of three (art. 135)",
			draft: draft("L/10", german(), goods(coded(vat("0", transaction.Added), "", "135"))),
			files: []string{"<PrefiksPodatnika>PL<", "<KodUE>DE<", "<P_13_8>100.00<", "<P_18>1<", "<P_23>1<", "<P_12>np I<",
				"<Wartosc>VAT: Faktura WE uproszczona na mocy art. 135-138 ustawy o ptu; podatek z tytułu"}},
		{name: "Goods sold on by the second of three to a buyer in Switzerland",
			draft: draft("L/11", foreignBuyer("CH", "", transaction.Business),
				goods(coded(vat("0", transaction.Added), transaction.TaxReverse, "135"))),
			refuse: "another member state", field: "items.0.tax_breakdowns.0.type"},
		{name: "Services in dollars that are taxed in the United States", draft: dollars,
			files: []string{"<KodWaluty>USD<", "<P_13_8>100.00<", "<P_12>np I<"}, not: []string{"KursWaluty", "P_14"}},
		{name: "OUTSIDE to a buyer in Poland that does not say what it is",
			draft: draft("L/9", polishBuyer(), goods(full), goods(typed(transaction.TaxOutside))), refuse: "POZA for a deposit",
			field: "items.1.tax_breakdowns.0.type"},
	}
}

func dateSituations() []situation {
	at := func(number string, now time.Time, change func(*transaction.Transaction)) country.Draft {
		d := invoice(number)
		d.Now = now
		change(&d.Transaction)
		return d
	}
	still := func(*transaction.Transaction) {}
	friday := time.Date(2025, 10, 10, 12, 0, 0, 0, warsaw())
	monday := friday.AddDate(0, 0, 3)
	return []situation{
		{name: "Delivered a week before the invoice", draft: at("S/50", day, func(t *transaction.Transaction) {
			t.DeliveryDate = "2025-09-30"
		}), files: []string{"<P_1>2025-10-07<", "<P_6>2025-09-30<"}},
		{name: "A subscription of a month", draft: at("S/59P", day, func(t *transaction.Transaction) {
			t.Period = &transaction.Span{From: "2025-09-01", To: "2025-09-30"}
		}),
			files: []string{"<OkresFa><P_6_Od>2025-09-01</P_6_Od><P_6_Do>2025-09-30</P_6_Do></OkresFa>"},
			not:   []string{"<P_6>"}},
		{name: "Delivered on the day of the invoice", draft: at("S/51", day, func(t *transaction.Transaction) {
			t.DeliveryDate = "2025-10-07"
		}), files: []string{"<P_1>2025-10-07<"}, not: []string{"P_6"}},
		{name: "Submitted on the next working day", draft: at("S/52", monday, func(t *transaction.Transaction) {
			t.Date = friday
		}), files: []string{"<P_1>2025-10-10<"}, not: []string{"P_6"}},
		{name: "Submitted later than the next working day", draft: at("S/53", monday, still),
			files: []string{"<P_1>2025-10-13<", "<P_6>2025-10-07<"}},
		{name: "Submitted after a public holiday",
			draft: at("S/54", time.Date(2026, 1, 7, 9, 0, 0, 0, warsaw()), func(t *transaction.Transaction) {
				t.Date = time.Date(2026, 1, 5, 9, 0, 0, 0, warsaw())
			}),
			files: []string{"<P_1>2026-01-05<"}},
	}
}

func correctionSituations() []situation {
	original := invoice("FV/1")
	change := func(d country.Draft, with func(*country.Draft)) country.Draft {
		with(&d)
		return d
	}
	lower := draft("S/60", polishBuyer(), item("Rabat", num.MakeAmount(3, 0), -1000, vat("23", transaction.Included)))
	back := draft("S/61", polishBuyer(), item("Herbata", one(), -7570, vat("23", transaction.Included)))
	renamed := polishBuyer()
	renamed.LegalName = "Nowa Nazwa sp. z o.o."
	other := polishBuyer()
	other.TaxNumber = "1060000062"
	return []situation{
		{name: "A price is lowered", draft: correct(transaction.Adjustment, lower, original),
			files: []string{"<P_8B>3</P_8B><P_9B>-10.00</P_9B>", "<TypKorekty>2<"}},
		{name: "Goods come back", draft: correct(transaction.Adjustment, back, original),
			files: []string{"<P_8B>-1</P_8B><P_9B>75.70</P_9B>", "<TypKorekty>2<"}},
		{name: "The original was wrong from the beginning",
			draft: change(correct(transaction.Adjustment, back, original), func(d *country.Draft) {
				d.Transaction.Reason, d.Transaction.Note = "1", "Błędna ilość"
			}),
			files: []string{"<PrzyczynaKorekty>Błędna ilość</PrzyczynaKorekty><TypKorekty>1<"}},
		{name: "A price is raised", draft: correct(transaction.Adjustment,
			draft("S/62", polishBuyer(), item("Dopłata", one(), 500, vat("23", transaction.Included))), original),
			not: []string{"TypKorekty"}, files: []string{"<P_8B>1</P_8B><P_9B>5.00<"}},
		{name: "The buyer's name is corrected",
			draft: change(correct(transaction.Adjustment, back, original), func(d *country.Draft) {
				d.Transaction.Customer = renamed
			}),
			files: []string{"<Nazwa>Nowa Nazwa sp. z o.o.<",
				"<Podmiot2K><DaneIdentyfikacyjne><NIP>" + buyerNIP + "</NIP><Nazwa>Spółdzielnia „Łąka” &amp; Synowie<"}},
		{name: "A correction that does not repeat the buyer",
			draft: change(correct(transaction.Adjustment, back, original), func(d *country.Draft) {
				d.Transaction.Customer = nil
			}),
			files: []string{"<NIP>" + buyerNIP + "<"}, not: []string{"Podmiot2K", "BrakID"}},
		{name: "The buyer's NIP is corrected",
			draft: change(correct(transaction.Adjustment, back, original), func(d *country.Draft) {
				d.Transaction.Customer = other
			}),
			refuse: "issue a new invoice", field: "customer.tax_information.tax_number"},
	}
}

// specialSituations are sales outside the general rules.
func specialSituations() []situation {
	oss := func(rate string) transaction.Tax {
		tax := vat(rate, transaction.Included)
		tax.Regime = "OSS"
		return tax
	}
	margin := func(code string) transaction.Tax { return coded(vat("0", transaction.Included), "", code) }
	consumer := foreignBuyer("DE", "", transaction.Individual)
	upr := func(number string, c *transaction.Party, price int64) country.Draft {
		return draft(number, c, marked(item("Towar", one(), price, vat("23", transaction.Included)), "PL", "UPR"))
	}
	return []situation{
		{name: "Goods to a consumer in Germany, declared in the one stop shop",
			draft: draft("S/70", consumer, item("Towar", one(), 119_00, oss("19"))),
			files: []string{"<P_13_5>100.00</P_13_5><P_14_5>19.00</P_14_5><P_15>119.00<", "<P_12_XII>19</P_12_XII>"},
			not:   []string{"<P_12>", "P_13_1"}},
		{name: "The one stop shop for a German business",
			draft: draft("S/71", german(), item("Towar", one(), 119_00, oss("19"))), refuse: "INTRA_EU",
			field: "items.0.tax_breakdowns.0.regime"},
		{name: "The one stop shop for a consumer in Poland",
			draft: draft("S/72", person(), item("Towar", one(), 123_00, oss("23"))), refuse: "another member state",
			field: "items.0.tax_breakdowns.0.regime"},
		{name: "The one stop shop without a rate",
			draft:  draft("S/73", consumer, item("Towar", one(), 119_00, coded(oss("0"), transaction.TaxExempt, ""))),
			refuse: "more than 0", field: "items.0.tax_breakdowns.0.rate"},
		{name: "A used car, taxed on its margin",
			draft: draft("S/74", person(), item("Samochód", one(), 30_000_00, margin("MU"))),
			files: []string{"<P_13_11>30000.00<", "<PMarzy><P_PMarzy>1</P_PMarzy><P_PMarzy_3_1>1</P_PMarzy_3_1></PMarzy>",
				"<P_19N>1<", "<P_11A>30000.00<"}, not: []string{"<P_12>", "P_13_7", "P_11Vat"}},
		{name: "A journey of a travel agency",
			draft: draft("S/75", person(), service(item("Wycieczka", one(), 4_000_00, margin("MT")))),
			files: []string{"<P_13_11>4000.00<", "<P_PMarzy_2>1<"}},
		{name: "Two margin schemes on one invoice",
			draft: draft("S/76", person(), item("Obraz", one(), 100_00, margin("MD")),
				item("Zegar", one(), 100_00, margin("MA"))), refuse: "names one", field: "items.1.tax_breakdowns.0.code"},
		{name: "A simplified invoice of 450 PLN (UPR)", draft: upr("S/77", polishBuyer(), 450_00),
			files: []string{"<RodzajFaktury>UPR<"}},
		{name: "A simplified invoice of more than 450 PLN", draft: upr("S/78", polishBuyer(), 450_01), refuse: "450.00 PLN",
			field: "items.0.classification"},
		{name: "A simplified invoice to a consumer", draft: upr("S/79", person(), 100_00), refuse: "NIP",
			field: "items.0.classification"},
		{name: "A taxi ride, whose tax is taken from the gross amount directly",
			draft: draft("S/80", person(), service(item("Przejazd", one(), 13, vat("4", transaction.Included)))),
			files: []string{"<P_13_4>0.12</P_13_4><P_14_4>0.01</P_14_4><P_15>0.13<", "<P_11Vat>0.01<", "<P_12>4<"}},
	}
}

// An exchange rate of another day than the law's is told, and filed as it was sent.
func TestExchangeRateIsOfTheWorkingDayBefore(t *testing.T) {
	for _, c := range []struct {
		rate, delivered string
		told            bool
	}{{"2025-10-06", "", false}, {"2025-10-07", "", true}, {"2025-10-03", "", true}, {"2025-10-03", "2025-10-06", false},
		{"2025-10-06", "2025-10-09", false}} {
		d := invoice("FV/1")
		rate := num.MakeAmount(42512, 4)
		d.Transaction.CurrencyCode, d.Transaction.ExchangeRate, d.Transaction.ExchangeRateDate,
			d.Transaction.DeliveryDate = "EUR", &rate, c.rate, c.delivered
		told := false
		for _, f := range pl.Pack().Check(country.Case{Transaction: &d.Transaction, Totals: d.Totals, Now: d.Now}) {
			if f.Type != fault.Warning {
				t.Errorf("%+v: %+v", c, f)
			}
			told = told || f.Code == fault.RateUnusual && f.Field == "exchange_rate_date"
		}
		if told != c.told {
			t.Errorf("%+v: told %v", c, told)
		}
	}
}

// collectiveSituations are corrections of several invoices.
func collectiveSituations() []situation {
	ids := []string{"5265877635-20250826-0100001AF629-AF", ksefwire.Number(supplierNIP, "20250827", "0100001AF62A")}
	both := func(number, reason string, change func(*country.Draft), items ...transaction.Item) country.Draft {
		d := correct(transaction.Adjustment, draft(number, polishBuyer(), items...), invoice("FV/1"))
		d.Shares = []country.Share{{Original: *d.Original, Amount: -10_00},
			{Original: *d.Original, Amount: d.Totals.Gross + 10_00}}
		d.Shares[1].AuthorityID1, d.Shares[1].Transaction.Number = ids[1], "FV/2"
		d.Original = &d.Shares[0].Original
		d.Transaction.Reason = reason
		change(&d)
		return d
	}
	const day = "2025-10-07" // of the originals, in Warsaw
	rebate := item("Rabat za obrót", one(), -30_00, vat("23", transaction.Included))
	nothing := func(*country.Draft) {}
	return []situation{
		{name: "One correction of several invoices", draft: both("S/90", "", nothing, rebate),
			files: []string{"<RodzajFaktury>KOR<", "<TypKorekty>2</TypKorekty><DaneFaKorygowanej>",
				"<NrKSeF>1</NrKSeF><NrKSeFFaKorygowanej>" + ids[0] + "<",
				"<NrFaKorygowanej>FV/2</NrFaKorygowanej><NrKSeF>1</NrKSeF><NrKSeFFaKorygowanej>" + ids[1] + "<", "<P_15>-30.00<"},
			not: []string{"OkresFaKorygowanej", "Podmiot2K"}},
		{name: "A discount for all that was bought in a period", draft: both("S/91", "2:2025-01-01/"+day, nothing, rebate),
			files: []string{"<TypKorekty>2<", "<OkresFaKorygowanej>2025-01-01 - " + day + "<"}},
		{name: "A discount for a period in which an invoice does not lie",
			draft: both("S/92", "2:2025-01-01/2025-01-31", nothing, rebate), refuse: "outside of the period",
			field: "references.0.transaction_id"},
		{name: "A period that ends before it begins", draft: both("S/93", "2:2025-02-01/2025-01-31", nothing, rebate),
			refuse: "first and the last day", field: "reason"},
		{name: "One correction of invoices to two buyers", draft: both("S/94", "", func(d *country.Draft) {
			d.Shares[1].Transaction.Customer = german()
		}, rebate), refuse: "another buyer", field: "references.1.transaction_id"},
		{name: "One correction of invoices in and outside of KSeF", draft: both("S/95", "", func(d *country.Draft) {
			d.Shares[1].AuthorityID1 = ""
		}, rebate), files: []string{"<NrKSeF>1<", "<NrFaKorygowanej>FV/2</NrFaKorygowanej><NrKSeFN>1<"}},
	}
}

// thirdSituations are invoices that name more than seller and buyer.
func percent(text string) *num.Amount {
	amount, err := num.AmountFromString(text)
	if err != nil {
		panic(err)
	}
	return &amount
}

func thirdSituations() []situation {
	with := func(number string, buyer *transaction.Party, role, tax string) country.Draft {
		d := draft(number, buyer, goods(vat("23", transaction.Added)))
		d.Transaction.ThirdParties = []transaction.Party{{LegalName: "Szkoła Podstawowa nr 7", Type: transaction.Business,
			TaxNumber: tax, Role: role,
			Address: &transaction.Address{CountryCode: "PL", City: "Gdynia", AddressLine1: "ul. Szkolna 7"}}}
		return d
	}
	together := func(number string, shares ...string) country.Draft {
		d := with(number, polishBuyer(), "BUYER", "5265877635")
		d.Transaction.ThirdParties = append(d.Transaction.ThirdParties,
			transaction.Party{LegalName: "Anna Nowak", Type: transaction.Individual, Role: "BUYER",
				Address: &transaction.Address{CountryCode: "PL", City: "Gdynia", AddressLine1: "ul. Morska 1"}})
		for i, share := range shares {
			if share != "" {
				d.Transaction.ThirdParties[i].Share = percent(share)
			}
		}
		return d
	}
	employed := with("S/120", polishBuyer(), "EMPLOYEE", "")
	employed.Transaction.ThirdParties[0].Share = percent("10")
	back := correct(transaction.Adjustment,
		draft("S/106", nil, item("Rabat", one(), -10_00, vat("23", transaction.Included))),
		with("FV/1", polishBuyer(), "GV_RECIPIENT", "5265877635"))
	return []situation{
		{name: "A school buys in the name of its town (JST)",
			draft: with("S/100", polishBuyer(), "JST_RECIPIENT", buyerNIP+"-00012"),
			files: []string{"<JST>1</JST><GV>2</GV>",
				"<Podmiot3><DaneIdentyfikacyjne><IDWew>" + buyerNIP + "-00012</IDWew><Nazwa>Szkoła Podstawowa nr 7<",
				"<Rola>8</Rola></Podmiot3>"}},
		{name: "A member of a VAT group buys (GV)", draft: with("S/101", polishBuyer(), "GV_RECIPIENT", "5265877635"),
			files: []string{"<JST>2</JST><GV>1</GV>", "<NIP>5265877635</NIP><Nazwa>Szkoła", "<Rola>10<"}},
		{name: "A school without a number", draft: with("S/102", polishBuyer(), "JST_RECIPIENT", ""),
			refuse: "NIP or an internal id", field: "third_parties.0.tax_information.tax_number"},
		{name: "A school whose internal id has a wrong NIP",
			draft: with("S/130", polishBuyer(), "JST_RECIPIENT", "5260250275-00012"), refuse: "no NIP",
			field: "third_parties.0.tax_information.tax_number"},
		{name: "A unit of a buyer abroad", draft: with("S/103", german(), "JST_RECIPIENT", "5265877635"),
			refuse: "buyer with a NIP", field: "third_parties.0.role"},
		{name: "A claim that was sold to a factor", draft: with("S/104", polishBuyer(), "FACTOR", "5265877635"),
			files: []string{"<JST>2</JST><GV>2</GV>", "<Rola>1<"}},
		{name: "An employee travels for the buyer", draft: with("S/105", polishBuyer(), "EMPLOYEE", ""),
			files: []string{"<BrakID>1</BrakID><Nazwa>Szkoła", "<Rola>11<"}},
		{name: "Three buy together, with their shares", draft: together("S/107", "25", "33.3333"),
			files: []string{"<Rola>4</Rola><Udzial>25</Udzial>", "<Rola>4</Rola><Udzial>33.3333</Udzial>"}},
		{name: "Three buy together in equal parts", draft: together("S/108", "", ""),
			files: []string{"<Rola>4</Rola></Podmiot3>"}, not: []string{"Udzial"}},
		{name: "One of two further buyers has no share", draft: together("S/109", "25", ""),
			refuse: "for each further buyer", field: "third_parties"},
		{name: "Shares that leave nothing for the buyer", draft: together("S/118", "60", "40"), refuse: "less than 100",
			field: "third_parties"},
		{name: "A share of nothing", draft: together("S/119", "0", "40"), refuse: "more than 0",
			field: "third_parties.0.share"},
		{name: "A share of an employee", draft: employed, refuse: "further buyer", field: "third_parties.0.share"},
		{name: "A correction of an invoice to a member of a VAT group", draft: back,
			files: []string{"<GV>1</GV>", "<Rola>10<"}},
	}
}

func situations(ch country.Channel) []situation {
	all := slices.Concat(zeroSituations(), placeSituations(), lawSituations(), saleSituations())
	all = append(all, specialSituations()...)
	all = append(all, dateSituations()...)
	all = append(all, correctionSituations()...)
	all = append(all, collectiveSituations()...)
	all = append(all, thirdSituations()...)
	return append(all, advanceSituations(ch)...)
}

// Each situation is filed, or refused before it is, and what is filed is valid.
// The table in the country's page has a line for each of them.
func TestEverydaySituations(t *testing.T) {
	ch, pack := connect(t), pl.Pack()
	all := situations(ch)
	var names []string
	for _, s := range all {
		names = append(names, s.name)
	}
	packtest.Tabled(t, "../../../docs/countries/pl.md", names)
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			faults := pack.Check(country.Case{Transaction: &s.draft.Transaction, Totals: s.draft.Totals, Now: s.draft.Now})
			if stays := !pack.Filed(country.Both, &s.draft.Supplier, &s.draft.Transaction, s.draft.Original); stays != s.stays {
				t.Errorf("stays outside KSeF: %v", stays)
			}
			f, err := ch.Prepare(s.draft)
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
			if len(faults) > 0 {
				t.Fatalf("refused: %v", faults)
			}
			text := string(f.Report)
			if flaw := conforms(f.Report); flaw != "" {
				t.Errorf("%s\n%s", flaw, text)
			}
			for _, want := range s.files {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			for _, wrong := range s.not {
				if strings.Contains(text, wrong) {
					t.Errorf("%q is in\n%s", wrong, text)
				}
			}
		})
	}
}

// issued is a certificate that KSeF issued, of type Offline.
func issued(t testing.TB) country.Credentials {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject: pkix.Name{CommonName: "TEST CCK KSeF", Country: []string{"PL"}}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true}
	template := &x509.Certificate{SerialNumber: big.NewInt(2),
		Subject: pkix.Name{CommonName: "Offline", SerialNumber: "TINPL-" + supplierNIP}, NotBefore: ca.NotBefore,
		NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageContentCommitment}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	file, err := pkcs12.Modern.Encode(key, leaf, nil, "secret")
	if err != nil {
		t.Fatal(err)
	}
	c := token()
	c.PKCS12, c.Password = file, "secret"
	return c
}

// KSeF is away for a moment and returns on the same day: the invoice that was
// made meanwhile is one like any other, on the wire and on paper.
func TestShortOutageMakesNoOfflineInvoice(t *testing.T) {
	m := newMinistry(t)
	c := issued(t)
	d := offline("FV/1", c)
	d.Transaction.Date, d.Now = m.clock(), m.clock()
	f := m.prepare(d)
	r, err := m.sendFiling(f, c)
	if err != nil || r.Outcome != country.Accepted ||
		!strings.Contains(string(r.Document), "<TrybWysylki>Online</TrybWysylki>") {
		t.Fatalf("%+v %v", r.Outcome, err)
	}
	printed := pl.Pack().Printed(country.Issue{Transaction: &d.Transaction, Totals: d.Totals, Supplier: &d.Supplier,
		AuthorityID1: r.AuthorityID1, QRCode: f.QRCode, Filing: &f, Language: "PL"})
	if len(printed.Codes) != 1 || printed.Codes[0].Title == "OFFLINE" {
		t.Errorf("%+v", printed.Codes)
	}
}

// A qualified seal is no certificate of KSeF's: it signs no second code.
func TestSecondCodeNeedsACertificateOfKSeF(t *testing.T) {
	m := newMinistry(t)
	for what, c := range map[string]struct {
		creds country.Credentials
		signs bool
	}{"a seal": {certificate(), false}, "a certificate of type Offline": {issued(t), true}} {
		d := offline("FV/1", c.creds)
		d.Transaction.Date, d.Now = m.clock(), m.clock()
		if f := m.prepare(d); f.Late != c.signs {
			t.Errorf("%s: %v", what, f.Late)
		}
	}
}

// A transaction of last month is issued when it is filed, and its client is told.
func TestMovedDateIsTold(t *testing.T) {
	m := newMinistry(t)
	d := invoice("FV/1")
	d.Now = m.clock()
	f := m.prepare(d)
	r, err := m.sendFiling(f, token())
	if err != nil || r.Outcome != country.Accepted || len(r.Faults) != 1 || r.Faults[0].Code != fault.DateMoved ||
		r.Faults[0].Type != fault.Warning {
		t.Fatalf("%+v %v", r.Faults, err)
	}
	if !strings.Contains(string(r.Document), "<TrybWysylki>Online</TrybWysylki>") {
		t.Errorf("%s", r.Document)
	}
	found, err := m.channel.Find(t.Context(), f, token())
	if err != nil || len(found.Faults) != 1 {
		t.Errorf("found: %+v %v", found.Faults, err)
	}
}

func TestHolidaysAreThoseOfTheLaw(t *testing.T) {
	for day, want := range map[string]bool{
		"2026-04-06": true, "2026-06-04": true, "2026-11-11": true, "2025-12-24": true, "2024-12-24": false,
		"2026-05-03": true, "2026-05-04": false, "2027-03-29": true, "2027-05-27": true,
	} {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		if pl.Holiday(at) != want {
			t.Errorf("%s: %v", day, !want)
		}
	}
}

// offline24 ends with the next working day, where Poland is.
func TestTheDeadlineIsAWorkingDay(t *testing.T) {
	p := pl.Pack()
	for issued, want := range map[string]string{
		"2026-10-06T10:00:00Z": "2026-10-07T21:59:59Z",
		"2026-10-09T10:00:00Z": "2026-10-12T21:59:59Z", // a Friday
		"2026-12-23T22:59:00Z": "2026-12-28T22:59:59Z", // a minute before Christmas Eve, in winter
	} {
		at, err := time.Parse(time.RFC3339, issued)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.LatestBy(at).UTC().Format(time.RFC3339); got != want {
			t.Errorf("issued %s: until %s instead of %s", issued, got, want)
		}
	}
}
