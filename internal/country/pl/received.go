package pl

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/text"
	"tributary/internal/incoming"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// spaceFA2 is the form before FA(3); what is read here is alike in both.
const spaceFA2 = "http://crd.gov.pl/wzor/2023/06/29/12648/"

func formats() []country.Format {
	read := func(document []byte) ([]*incoming.Document, error) { return incoming.One(Read(document)) }
	return []country.Format{{Name: incoming.FA, Space: ksefwire.SpaceFA3, Root: "Faktura", Read: read},
		{Name: incoming.FA, Space: spaceFA2, Root: "Faktura", Read: read}}
}

// Read reads an invoice of KSeF.
func Read(document []byte) (*incoming.Document, error) {
	s, err := incoming.Parse(document)
	if err != nil {
		return nil, err
	}
	if !s.Root.Is(ksefwire.SpaceFA3, "Faktura") && !s.Root.Is(spaceFA2, "Faktura") {
		return nil, fmt.Errorf("%w: the root {%s}%s is neither FA(3) nor FA(2)", incoming.ErrInvalid, s.Root.Space, s.Root.Local)
	}
	d := &incoming.Document{Format: incoming.FA, Kind: transaction.Invoice}
	r := taking{Source: s, d: d, fa: s.Root.At("Fa")}
	s.Ignore(s.Root, "Naglowek")
	d.Sender, d.Receiver = r.party(s.Root.At("Podmiot1")), r.party(s.Root.At("Podmiot2"))
	d.Receiver.EntityNumber = s.Text(s.Root, "Podmiot2", "NrKlienta")
	s.Usual(s.Root, flag(false), "Podmiot2", "JST")
	s.Usual(s.Root, flag(false), "Podmiot2", "GV")
	for _, e := range s.Root.All("Podmiot3") {
		third := r.party(e)
		third.Role = cmp.Or(s.Text(e, "Rola"), s.Text(e, "OpisRoli"))
		third.Share = s.Maybe(e, "Udzial")
		d.Others = append(d.Others, third)
	}
	r.head()
	r.lines()
	r.sums()
	r.notes()
	r.payment()
	registers := s.Root.At("Stopka", "Rejestry")
	if d.Sender.EntityNumber = s.Text(registers, "KRS"); d.Sender.EntityNumber == "" {
		d.Sender.EntityNumber = s.Text(registers, "REGON")
	}
	return s.Finish(d, s.Root)
}

// Lines downloads an invoice and reads its own: the list has sums alone. Advances, and what
// settles them, have no lines of their own.
func (ch *channel) Lines(ctx context.Context, s country.Supplier, e country.Entry, c country.Credentials) ([]int64, error) {
	body, err := ch.Invoice(ctx, s, e.AuthorityID1, c)
	if err != nil {
		return nil, err
	}
	d, err := Read(body)
	switch {
	case err != nil: // another program wrote it
		return []int64{}, nil
	case d.TypeCode != typeInvoice:
		return nil, nil
	}
	return d.LineNets(), nil
}

// taking is a document that is being read.
type taking struct {
	*incoming.Source
	d    *incoming.Document
	fa   *xmltree.Element
	rate map[string]bool // what P_12 of the lines says
}

// party: a number is Polish, of the Union or of elsewhere.
func (r *taking) party(e *xmltree.Element) transaction.Party {
	id := e.At("DaneIdentyfikacyjne")
	p := transaction.Party{LegalName: r.Text(id, "Nazwa"), TaxNumber: r.Text(id, "NIP"),
		Email: r.Text(e, "DaneKontaktowe", "Email"), Phone: r.Text(e, "DaneKontaktowe", "Telefon")}
	r.Usual(id, "1", "BrakID")
	if p.TaxNumber == "" {
		p.TaxNumber = cmp.Or(r.Text(id, "KodUE")+r.Text(id, "NrVatUE"), r.Text(id, "NrID"))
	}
	if a := e.At("Adres"); a != nil {
		p.Address = &transaction.Address{CountryCode: r.Text(a, "KodKraju"), AddressLine1: r.Text(a, "AdresL1"), AddressLine2: r.Text(a, "AdresL2")}
	}
	return p
}

func (r *taking) head() {
	d, fa := r.d, r.fa
	d.TypeCode, d.Number, d.Day, d.Currency = r.Text(fa, "RodzajFaktury"), r.Text(fa, "P_2"), r.Day(fa, "P_1"), r.Text(fa, "KodWaluty")
	r.Money(d.Currency)
	d.DeliveryDay, d.Period = r.Day(fa, "P_6"), r.Span(fa.At("OkresFa"), "P_6_Od", "P_6_Do")
	d.ExchangeRate = r.Maybe(fa, "KursWalutyZ")
	if strings.HasPrefix(d.TypeCode, "KOR") {
		d.Kind = transaction.Adjustment
	}
	for _, e := range fa.All("DaneFaKorygowanej") {
		r.Usual(e, "1", "NrKSeF")
		r.Usual(e, "1", "NrKSeFN")
		d.Earlier = append(d.Earlier, incoming.Reference{Number: r.Text(e, "NrFaKorygowanej"), Day: r.Day(e, "DataWystFaKorygowanej"),
			AuthorityID: r.Text(e, "NrKSeFFaKorygowanej")})
	}
	for _, e := range fa.All("FakturaZaliczkowa") {
		r.Usual(e, "1", "NrKSeFZN")
		d.Earlier = append(d.Earlier, incoming.Reference{Number: r.Text(e, "NrFaZaliczkowej"), AuthorityID: r.Text(e, "NrKSeFFaZaliczkowej"),
			Relation: typeAdvance})
	}
	d.References.Contract = r.Text(fa, "WarunkiTransakcji", "Umowy", "NrUmowy")
	d.References.Order = r.Text(fa, "WarunkiTransakcji", "Zamowienia", "NrZamowienia")
}

func (r *taking) lines() {
	r.rate = map[string]bool{}
	for i, e := range r.fa.All("FaWiersz") {
		r.d.Lines = append(r.d.Lines, r.line(i, e))
		rate := r.Maybe(e, "KursWaluty")
		switch {
		case rate == nil:
		case r.d.ExchangeRate == nil:
			r.d.ExchangeRate = rate
		case r.d.ExchangeRate.Compare(*rate) != 0:
			r.Miss(e.At("KursWaluty"))
		}
	}
	order := r.fa.At("Zamowienie")
	for i, e := range order.All("ZamowienieWiersz") {
		r.d.Ordered = append(r.d.Ordered, incoming.Line{Number: r.Counted(i, e, "NrWierszaZam"), Name: r.Text(e, "P_7Z"), Code: r.Text(e, "IndeksZ"),
			EAN: r.Text(e, "GTINZ"), Quantity: r.Number(e, "P_8BZ"), Unit: r.Text(e, "P_8AZ"), UnitPrice: r.Number(e, "P_9AZ"),
			Net: r.Amount(e, "P_11NettoZ"), Taxes: r.taxes(e, "P_12Z", "P_11VatZ")})
	}
}

func (r *taking) line(i int, e *xmltree.Element) incoming.Line {
	l := incoming.Line{Number: r.Counted(i, e, "NrWierszaFa"), Name: r.Text(e, "P_7"), Code: r.Text(e, "Indeks"), EAN: r.Text(e, "GTIN"),
		Quantity: r.Number(e, "P_8B"), Unit: r.Text(e, "P_8A"), Before: r.Text(e, "StanPrzed") == "1", Taxes: r.taxes(e, "P_12", "P_11Vat")}
	if l.Gross = e.At("P_11") == nil && e.At("P_11A") != nil; l.Gross {
		l.UnitPrice, l.Net = r.Number(e, "P_9B"), r.Amount(e, "P_11A")
	} else {
		l.UnitPrice, l.Net = r.Number(e, "P_9A"), r.Amount(e, "P_11")
	}
	if off := r.Amount(e, "P_10"); off != 0 {
		l.Allowances = []incoming.Extra{{Code: "P_10", Amount: off}}
	}
	for _, scheme := range []string{"PKWiU", "CN", "PKOB", "GTU", "Procedura"} {
		if code := r.Text(e, scheme); code != "" {
			l.Classes = append(l.Classes, transaction.Classification{Scheme: scheme, Code: code})
		}
	}
	return l
}

// taxes is the rate of a line, or the word for why there is none.
func (r *taking) taxes(e *xmltree.Element, rate, tax string) []incoming.Tax {
	said := r.Text(e, rate)
	t := incoming.Tax{Regime: transaction.VAT, Code: said, Amount: r.Amount(e, tax)}
	r.rate[said] = true
	if n, err := incoming.Decimal(said); err == nil {
		t.Rate = n
	}
	for c := range columns {
		if columns[c].mark == said && said != "" {
			t.Type = typeIn(columns[c].net)
		}
	}
	if own := r.Maybe(e, rate+"_XII"); own != nil { // of another member state
		t.Rate, t.Code = *own, "OSS"
	}
	if said == "" && t.Amount == 0 && t.Code == "" {
		return nil
	}
	return []incoming.Tax{t}
}

// typeIn is what a column of the breakdown is for, where there is no rate.
func typeIn(column string) string {
	switch column {
	case "P_13_6_1":
		return transaction.TaxZero
	case "P_13_6_2":
		return transaction.TaxIntraEU
	case "P_13_6_3":
		return transaction.TaxExport
	case "P_13_7":
		return transaction.TaxExempt
	case "P_13_8":
		return transaction.TaxOutside
	case "P_13_9", "P_13_10":
		return transaction.TaxReverse
	}
	return ""
}

// sums reads the columns of the breakdown. They name no rates: those that may stand
// in a column are looked for among the lines.
func (r *taking) sums() {
	d, fa := r.d, r.fa
	rates := map[string][]string{"P_13_1": {"23", "22"}, "P_13_2": {"8", "7"}, "P_13_3": {"5"}, "P_13_4": {"4", "3"}}
	for c := range columns {
		at := columns[c]
		if fa.At(at.net) == nil {
			continue
		}
		t := incoming.Tax{Regime: transaction.VAT, Code: at.mark, Type: typeIn(at.net), Base: r.Amount(fa, at.net)}
		if at.tax != "" {
			t.Amount = r.Amount(fa, at.tax)
		}
		var said []string
		for _, rate := range rates[at.net] {
			if r.rate[rate] {
				said = append(said, rate)
			}
		}
		if len(said) == 1 {
			t.Code = said[0]
			t.Rate, _ = incoming.Decimal(said[0]) // one of the numbers above
		}
		exemption := fa.At("Adnotacje", "Zwolnienie")
		switch at.net {
		case "P_13_7":
			r.Usual(exemption, "1", "P_19")
			t.Reason = text.Join("; ", r.Text(exemption, "P_19A"), r.Text(exemption, "P_19B"), r.Text(exemption, "P_19C"))
		case "P_13_11":
			t.Code, t.Reason = "margin", r.margin(fa.At("Adnotacje", "PMarzy"))
		}
		d.Net, d.Tax = r.Plus(fa, d.Net, t.Base), r.Plus(fa, d.Tax, t.Amount)
		d.Taxes = append(d.Taxes, t)
	}
	d.Gross = r.Amount(fa, "P_15")
	d.Payable = d.Gross
	r.inZloty()
}

// margin is which margin is taxed, by the name of the element that says so.
func (r *taking) margin(e *xmltree.Element) (reason string) {
	r.Usual(e, "1", "P_PMarzy")
	for _, kind := range []string{"P_PMarzy_2", "P_PMarzy_3_1", "P_PMarzy_3_2", "P_PMarzy_3_3"} {
		if r.Text(e, kind) == "1" {
			reason = text.Join(" ", reason, kind)
		}
	}
	return reason
}

// inZloty is the tax of all rates in złoty, which documents in other money state.
func (r *taking) inZloty() {
	d := r.d
	for c := range columns {
		if own := columns[c].tax + "W"; own != "W" && r.fa.At(own) != nil {
			r.Money("PLN")
			d.TaxCurrency, d.AccountingTax = "PLN", r.Plus(r.fa, d.AccountingTax, r.Amount(r.fa, own))
		}
	}
	r.Money(d.Currency)
}

// notes reads what is said in words, and takes what says that nothing is special.
func (r *taking) notes() {
	d, fa := r.d, r.fa
	marks := fa.At("Adnotacje")
	for _, mark := range []string{"P_16", "P_17", "P_18", "P_18A", "P_23"} {
		r.Usual(marks, flag(false), mark)
	}
	r.Usual(marks, "1", "Zwolnienie", "P_19N")
	r.Usual(marks, "1", "NoweSrodkiTransportu", "P_22N")
	r.Usual(marks, "1", "PMarzy", "P_PMarzyN")
	if reason := r.Text(fa, "PrzyczynaKorekty"); reason != "" {
		d.Notes = append(d.Notes, reason)
	}
	for _, e := range fa.All("DodatkowyOpis") {
		d.Notes = append(d.Notes, text.Join(": ", text.Join(" ", r.Text(e, "NrWiersza"), r.Text(e, "Klucz")), r.Text(e, "Wartosc")))
	}
	for _, e := range r.Root.At("Stopka").All("Informacje") {
		d.Notes = append(d.Notes, r.Texts(e, "StopkaFaktury")...)
	}
}

func (r *taking) payment() {
	d, e := r.d, r.fa.At("Platnosc")
	if settle := r.fa.At("Rozliczenie", "DoZaplaty"); settle != nil {
		d.Payable = r.Amount(settle)
	}
	if r.Text(e, "Zaplacono") == "1" {
		d.Prepaid, d.Payable = d.Payable, 0
	}
	r.Usual(e, "1", "ZnacznikZaplatyCzesciowej")
	for _, part := range e.All("ZaplataCzesciowa") {
		p := transaction.Payment{Amount: r.Amount(part, "KwotaZaplatyCzesciowej"), Date: r.Day(part, "DataZaplatyCzesciowej"), Code: r.Text(part, "FormaPlatnosci")}
		p.Type = formOf(p.Code)
		d.Prepaid = r.Plus(part, d.Prepaid, p.Amount)
		d.Payments = append(d.Payments, p)
	}
	if d.Prepaid != 0 && d.Payable == d.Gross {
		d.Payable = d.Gross - d.Prepaid
	}
	r.Usual(e, "1", "PlatnoscInna")
	form, words, account := r.Text(e, "FormaPlatnosci"), r.Text(e, "OpisPlatnosci"), r.Text(e, "RachunekBankowy", "NrRB")
	if form != "" || words != "" || account != "" {
		d.Payments = append(d.Payments, transaction.Payment{Type: formOf(form), Code: cmp.Or(form, words), IBAN: account, Date: r.Day(e, "DataZaplaty")})
	}
	for _, due := range e.All("TerminPlatnosci") {
		if day := r.Day(due, "Termin"); day != "" {
			d.Instalments = append(d.Instalments, incoming.Instalment{Day: day})
		}
		d.PaymentTerms = text.Join(" ", d.PaymentTerms, r.Text(due, "TerminOpis"))
	}
	if len(d.Instalments) > 0 {
		d.DueDay = d.Instalments[0].Day
	}
	if len(d.Instalments) == 1 {
		d.Instalments = nil
	}
	if factor := e.At("RachunekBankowyFaktora"); factor != nil {
		d.Payee = &transaction.Payee{IBAN: r.Text(factor, "NrRB"), Name: r.Text(factor, "OpisRachunku")}
	}
}

// formOf is FormaPlatnosci in the words of a transaction.
func formOf(code string) string {
	switch code {
	case "1":
		return "CASH"
	case "2":
		return "CARD"
	case "4":
		return "CHECK"
	case "5":
		return "CREDIT"
	case "6":
		return "TRANSFER"
	}
	return "OTHER"
}
