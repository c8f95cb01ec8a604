package pl

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country/amount"
	"tributary/internal/country/taxid"
	"tributary/internal/country/text"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// write writes FA(3). The order of elements is the schema's.
func (d *document) write() []byte {
	w := xmltree.NewWriter(2048 + 512*len(d.lines))
	w.Declare()
	w.Start("Faktura", "xmlns", ksefwire.SpaceFA3)
	d.writeHeader(w)
	d.writeSeller(w)
	d.writeBuyer(w)
	d.writeIssuer(w)
	d.writeThirdParties(w)
	w.Start("Fa")
	d.writeSums(w)
	d.writeNotes(w)
	w.Leaf("RodzajFaktury", d.form)
	d.writeOriginal(w)
	d.writeParts(w)
	d.writeMarks(w)
	d.writeDescriptions(w)
	d.writeAdvances(w)
	for i := range d.lines {
		if d.listed(i) {
			d.writeLine(w, i)
		}
	}
	d.writeSettling(w)
	d.writePayment(w)
	d.writeTerms(w)
	d.writeOrder(w)
	w.End()
	d.writeFooter(w)
	w.End()
	return w.Bytes()
}

func (d *document) writeHeader(w *xmltree.Writer) {
	w.Start("Naglowek")
	w.Leaf("KodFormularza", ksefwire.FormValue, "kodSystemowy", ksefwire.SystemCode, "wersjaSchemy", ksefwire.SchemaVersion)
	w.Leaf("WariantFormularza", "3")
	w.Maybe("DataWytworzeniaFa", d.Draft.Now.UTC().Format(time.RFC3339))
	w.Maybe("SystemInfo", systemInfo)
	w.End()
}

func (d *document) writeSeller(w *xmltree.Writer) {
	s := &d.Draft.Supplier
	w.Start("Podmiot1")
	if d.used[zeroIntraEU] || d.used[outsideToEU] || d.triangular {
		w.Leaf("PrefiksPodatnika", home) // art. 97 sec. 10 points 2 and 3, art. 136 sec. 1 point 3
	}
	w.Group("DaneIdentyfikacyjne", "?NIP", d.nip, "?Nazwa", token(s.LegalName, nameMax))
	writeAddress(w, s.Address)
	w.End()
}

func (d *document) writeBuyer(w *xmltree.Writer) {
	w.Start("Podmiot2")
	writeParty(w, d.Customer)
	if d.Customer != nil {
		w.Maybe("NrKlienta", token(d.Customer.EntityNumber, textMax))
	}
	w.Leaves("JST", flag(d.has(roleLocalUnit)), "GV", flag(d.has(roleGroupMember)))
	w.End()
}

// writeParty writes how a buyer is named: number, name and address.
func writeParty(w *xmltree.Writer, c *transaction.Party) {
	w.Start("DaneIdentyfikacyjne")
	identify(c).write(w)
	if c != nil {
		w.Maybe("Nazwa", token(c.LegalName, nameMax))
	}
	w.End()
	if c != nil && c.Address != nil {
		writeAddress(w, *c.Address)
	}
}

// writeIssuer writes who issues in the supplier's name as a third party with
// role 5. A buyer who issues is no third party: P_17 says so.
func (d *document) writeIssuer(w *xmltree.Writer) {
	i := d.Issuer
	if i == nil || d.SelfBilled() || taxid.Same(home, i.TaxNumber, d.Draft.Supplier.TaxNumber) {
		return
	}
	w.Start("Podmiot3")
	writeParty(w, i)
	w.Leaf("Rola", "5")
	w.End()
}

func (d *document) writeSums(w *xmltree.Writer) {
	w.Leaves("KodWaluty", strings.ToUpper(d.CurrencyCode), "P_1", d.Day(d.issued), "?P_1M",
		token(d.Draft.Supplier.Address.City, textMax), "?P_2", d.Number())
	switch {
	case d.Period != nil:
		w.Group("OkresFa", "P_6_Od", d.Period.From, "P_6_Do", d.Period.To)
	case d.supplied != d.Day(d.issued):
		w.Maybe("P_6", d.supplied)
	}
	for c, at := range columns {
		if !d.used[c] {
			continue
		}
		w.Leaf(at.net, d.money(d.net[c]))
		if at.tax == "" {
			continue
		}
		w.Leaf(at.tax, d.money(d.tax[c]))
		if own, ok := d.inOwnMoney(d.tax[c]); ok && d.Foreign() && column(c) != oneStop {
			w.Leaf(at.tax+"W", amount.Text(own, 2))
		}
	}
	w.Leaf("P_15", d.money(d.total()))
	if d.form == typeAdvance && d.Foreign() && d.ExchangeRate != nil {
		w.Leaf("KursWalutyZ", d.ExchangeRate.MinimalString())
	}
}

func (d *document) writeNotes(w *xmltree.Writer) {
	w.Start("Adnotacje")
	w.Leaves("P_16", flag(d.Set(settingCashMethod)), "P_17", flag(d.SelfBilled()), "P_18", flag(d.reversed), "P_18A",
		flag(d.split))
	if len(d.grounds) == 0 {
		w.Group("Zwolnienie", "P_19N", "1")
	} else {
		w.Group("Zwolnienie", "P_19", "1", d.grounds[0].field, token(joinGrounds(d.grounds), textMax))
	}
	w.Group("NoweSrodkiTransportu", "P_22N", "1")
	w.Leaf("P_23", flag(d.triangular))
	d.writeMargin(w)
	w.End()
}

func joinGrounds(grounds []ground) string {
	texts := make([]string, len(grounds))
	for i, g := range grounds {
		texts[i] = g.words
	}
	return strings.Join(texts, "; ")
}

// writeDescriptions writes what FA(3) has no element of its own for.
func (d *document) writeDescriptions(w *xmltree.Writer) {
	pair := func(row, key, value string) {
		if value = token(value, textMax); value != "" {
			w.Group("DodatkowyOpis", "?NrWiersza", row, "Klucz", key, "Wartosc", value)
		}
	}
	if d.Customer != nil {
		pair("", "Nazwa handlowa nabywcy", d.Customer.TradeName)
	}
	if d.Foreign() {
		pair("", "Data kursu waluty", d.ExchangeRateDate)
	}
	if d.triangular {
		pair("", "Procedura uproszczona", triangular)
	}
	for i := range d.lines {
		if d.listed(i) {
			pair(d.row(i), "Opis", d.lines[i].Item.Description)
		}
	}
}

// row is a line's number: the client's, unless one of them is too large.
func (d *document) row(i int) string {
	if d.renumbered {
		return strconv.Itoa(i + 1)
	}
	return strconv.FormatInt(d.lines[i].Item.Number, 10)
}

func (d *document) writeLine(w *xmltree.Writer, i int) {
	l := &d.lines[i]
	quantity, price := l.Item.Quantity, l.Item.UnitPrice
	if d.correction() {
		// What comes back is a negative quantity at the original's price; a lower
		// price is a negative price of the quantity that stays.
		negative := (price < 0) != (d.Sign < 0)
		whole := d.Kind == transaction.Credit || !negative || d.returned(l)
		price = max(price, -price)
		switch {
		case negative && whole:
			quantity = quantity.Invert()
		case negative:
			price = -price
		}
	}
	priced, total, sum := "P_9A", "P_11", l.Net
	if l.included {
		priced, total, sum = "P_9B", "P_11A", l.Gross
	}
	var discount, tax, annex, rate string
	if l.Discount != 0 {
		discount = d.money(l.Discount) // in the terms of the price; quantity × price − P_10 is the line
	}
	if columns[l.column].tax != "" {
		tax = d.money(l.Tax) // art. 106e sec. 10: the total is the sum of the lines' tax
	}
	if l.annexed && d.split {
		annex = "1"
	}
	if d.Foreign() && d.ExchangeRate != nil {
		rate = d.ExchangeRate.MinimalString()
	}
	w.Group("FaWiersz", "NrWierszaFa", d.row(i), "?P_7", token(l.Item.Name, nameMax), "?Indeks",
		token(l.Item.Code, foreignMax), "?GTIN", token(l.Item.EAN, 20),
		"P_8A", unit(l.Item), "P_8B", quantity.MinimalString(), priced, d.money(price), "?P_10", discount, total,
		d.money(sum), "?P_11Vat", tax,
		"?P_12", l.mark, "?P_12_XII", l.foreignRate, "?P_12_Zal_15", annex, "?GTU", gtu(l.Item), "?KursWaluty", rate)
}

func unit(item *transaction.Item) string {
	if text := token(item.Unit, textMax); text != "" {
		return text
	}
	if item.Type == transaction.Services {
		return "usł."
	}
	return "szt."
}

// writePayment says whether, when and how the total is paid. Payments are made
// when the transaction is submitted: with all of it paid the invoice is paid on
// its day, with a part of it partly. FA(3) has one form for the whole; several
// are described in words.
func (d *document) writePayment(w *xmltree.Writer) {
	accounts, factor := d.accounts(), ""
	if d.Payee != nil {
		factor = taxid.Bare(d.Payee.IBAN)
	}
	if len(d.Payments) == 0 && len(accounts) == 0 && factor == "" && d.DueDate == "" {
		return
	}
	w.Start("Platnosc")
	d.writePaid(w)
	if d.DueDate != "" {
		w.Group("TerminPlatnosci", "Termin", d.DueDate)
	}
	if form, words := d.payment(); form != "" {
		w.Maybe("FormaPlatnosci", form)
	} else if words != "" {
		w.Leaves("PlatnoscInna", "1", "OpisPlatnosci", words)
	}
	for _, account := range accounts {
		w.Group("RachunekBankowy", "NrRB", account)
	}
	if factor != "" {
		w.Group("RachunekBankowyFaktora", "NrRB", factor, "?OpisRachunku", token(d.Payee.Name, textMax))
	}
	w.End()
}

// accounts are those that payments name, else the company's; the money of a claim
// that somebody else takes goes to that payee alone.
func (d *document) accounts() (list []string) {
	for i := range d.Payments {
		if account := taxid.Bare(d.Payments[i].IBAN); account != "" && !slices.Contains(list, account) {
			list = append(list, account)
		}
	}
	elsewhere := d.Payee != nil && d.Payee.IBAN != ""
	if account := taxid.Bare(d.Setting(settingBankAccount, "")); len(list) == 0 && account != "" && !elsewhere {
		list = []string{account}
	}
	return list
}

// paid are the payments that were made. Cash, cards and other means are; a
// transfer or a check is when it carries the reference or the day of the payment,
// otherwise it is only the agreed form, and so is credit. Corrections do not say:
// their difference is settled elsewhere.
func (d *document) paid() (parts []transaction.Payment, sum int64) {
	for _, p := range d.Payments {
		agreed := (p.Type == "TRANSFER" || p.Type == "CHECK") && p.Reference == "" && p.Date == ""
		if d.correction() || p.Type == "CREDIT" || agreed {
			continue
		}
		parts = append(parts, p)
		sum += p.Amount
	}
	return parts, sum
}

// writePaid writes Zaplacono, or the parts that are paid, each on the day that the
// payment names or the transaction's.
func (d *document) writePaid(w *xmltree.Writer) {
	parts, paid := d.paid()
	last := ""
	for i := range parts {
		last = max(last, d.paidOn(&parts[i]))
	}
	switch {
	case paid <= 0:
	case paid >= d.Draft.Totals.Payable():
		w.Leaves("Zaplacono", "1", "DataZaplaty", last)
	default:
		w.Leaf("ZnacznikZaplatyCzesciowej", "1")
		for _, p := range parts {
			code, _ := paymentForm(p)
			w.Group("ZaplataCzesciowa", "KwotaZaplatyCzesciowej", d.money(p.Amount), "DataZaplatyCzesciowej", d.paidOn(&p),
				"?FormaPlatnosci", code)
		}
	}
}

// writeTerms names the buyer's contract and order.
func (d *document) writeTerms(w *xmltree.Writer) {
	contract, order := token(d.References.Contract, textMax), token(d.References.Order, textMax)
	if contract == "" && order == "" {
		return
	}
	w.Start("WarunkiTransakcji")
	if contract != "" {
		w.Group("Umowy", "NrUmowy", contract)
	}
	if order != "" {
		w.Group("Zamowienia", "NrZamowienia", order)
	}
	w.End()
}

// payment is FormaPlatnosci, or a description where there is none for it.
func (d *document) payment() (form, words string) {
	var parts []string
	for i, p := range d.Payments {
		code, name := paymentForm(p)
		if i == 0 {
			form = code
		} else if code != form {
			form = ""
		}
		parts = append(parts, name+" "+d.money(p.Amount))
	}
	if form != "" {
		return form, ""
	}
	if len(parts) == 1 {
		_, name := paymentForm(d.Payments[0])
		return "", token(name, textMax)
	}
	return "", token(strings.Join(parts, "; "), textMax)
}

// paymentForm is TFormaPlatnosci with its name.
func paymentForm(p transaction.Payment) (code, name string) {
	switch p.Type {
	case "CASH":
		return "1", "gotówka"
	case "CARD":
		return "2", "karta"
	case "CHECK":
		return "4", "czek"
	case "CREDIT":
		return "5", "kredyt"
	case "TRANSFER":
		return "6", "przelew"
	}
	return "", text.Join(" ", "inna", p.Code)
}

func (d *document) writeFooter(w *xmltree.Writer) {
	number := taxid.Bare(d.Draft.Supplier.CompanyNumber)
	register := ""
	if text.Digits(number) {
		switch len(number) {
		case 10:
			register = "KRS"
		case 9, 14:
			register = "REGON"
		}
	}
	note := d.note
	if d.correction() && d.Reason == "" && token(note, textMax) == token(note, footerMax) {
		note = "" // PrzyczynaKorekty has all of it
	}
	if note == "" && register == "" {
		return
	}
	w.Start("Stopka")
	if note != "" {
		w.Group("Informacje", "StopkaFaktury", note)
	}
	if register != "" {
		w.Group("Rejestry", register, number)
	}
	w.End()
}
