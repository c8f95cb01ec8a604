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

// writer writes a document as FA(3), in the order of the schema.
type writer struct {
	*xmltree.Writer
	d *document
}

func (d *document) writer() writer { return writer{xmltree.NewWriter(2048 + 512*len(d.lines)), d} }

// write writes FA(3). The order of elements is the schema's.
func (w writer) write() []byte {
	w.Declare()
	w.Start("Faktura", "xmlns", ksefwire.SpaceFA3)
	w.writeHeader()
	w.writeSeller()
	w.writeBuyer()
	w.writeIssuer()
	w.writeThirdParties()
	w.Start("Fa")
	w.writeSums()
	w.writeNotes()
	w.Leaf("RodzajFaktury", w.d.form)
	w.writeOriginal()
	w.writeParts()
	w.writeMarks()
	w.writeDescriptions()
	w.writeAdvances()
	for i := range w.d.lines {
		if w.listed(i) {
			w.writeLine(i)
		}
	}
	w.writeSettling()
	w.writePayment()
	w.writeTerms()
	w.writeOrder()
	w.End()
	w.writeFooter()
	w.End()
	return w.Bytes()
}

func (w writer) writeHeader() {
	w.Start("Naglowek")
	w.Leaf("KodFormularza", ksefwire.FormValue, "kodSystemowy", ksefwire.SystemCode, "wersjaSchemy", ksefwire.SchemaVersion)
	w.Leaf("WariantFormularza", "3")
	w.Maybe("DataWytworzeniaFa", w.d.Draft.Now.UTC().Format(time.RFC3339))
	w.Maybe("SystemInfo", systemInfo)
	w.End()
}

func (w writer) writeSeller() {
	s := &w.d.Draft.Supplier
	w.Start("Podmiot1")
	if w.d.used[zeroIntraEU] || w.d.used[outsideToEU] || w.d.triangular {
		w.Leaf("PrefiksPodatnika", home) // art. 97 sec. 10 points 2 and 3, art. 136 sec. 1 point 3
	}
	w.Group("DaneIdentyfikacyjne", "?NIP", w.d.nip, "?Nazwa", token(s.LegalName, nameMax))
	writeAddress(w.Writer, s.Address)
	w.End()
}

func (w writer) writeBuyer() {
	w.Start("Podmiot2")
	writeParty(w.Writer, w.d.Customer)
	if w.d.Customer != nil {
		w.Maybe("NrKlienta", token(w.d.Customer.EntityNumber, textMax))
	}
	w.Leaves("JST", flag(w.d.has(roleLocalUnit)), "GV", flag(w.d.has(roleGroupMember)))
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
func (w writer) writeIssuer() {
	i := w.d.Issuer
	if i == nil || w.d.SelfBilled() || taxid.Same(home, i.TaxNumber, w.d.Draft.Supplier.TaxNumber) {
		return
	}
	w.Start("Podmiot3")
	writeParty(w.Writer, i)
	w.Leaf("Rola", "5")
	w.End()
}

func (w writer) writeSums() {
	w.Leaves("KodWaluty", strings.ToUpper(w.d.CurrencyCode), "P_1", w.d.Day(w.d.issued), "?P_1M",
		token(w.d.Draft.Supplier.Address.City, textMax), "?P_2", w.d.Number())
	switch {
	case w.d.Period != nil:
		w.Group("OkresFa", "P_6_Od", w.d.Period.From, "P_6_Do", w.d.Period.To)
	case w.d.supplied != w.d.Day(w.d.issued):
		w.Maybe("P_6", w.d.supplied)
	}
	for c, at := range columns {
		if !w.d.used[c] {
			continue
		}
		w.Leaf(at.net, w.d.money(w.d.net[c]))
		if at.tax == "" {
			continue
		}
		w.Leaf(at.tax, w.d.money(w.d.tax[c]))
		if own, ok := w.d.inOwnMoney(w.d.tax[c]); ok && w.d.Foreign() && column(c) != oneStop {
			w.Leaf(at.tax+"W", amount.Text(own, 2))
		}
	}
	w.Leaf("P_15", w.d.money(w.d.total()))
	if w.d.form == typeAdvance && w.d.Foreign() && w.d.ExchangeRate != nil {
		w.Leaf("KursWalutyZ", w.d.ExchangeRate.MinimalString())
	}
}

func (w writer) writeNotes() {
	w.Start("Adnotacje")
	w.Leaves("P_16", flag(w.d.Set(settingCashMethod)), "P_17", flag(w.d.SelfBilled()), "P_18", flag(w.d.reversed), "P_18A",
		flag(w.d.split))
	if len(w.d.grounds) == 0 {
		w.Group("Zwolnienie", "P_19N", "1")
	} else {
		w.Group("Zwolnienie", "P_19", "1", w.d.grounds[0].field, token(joinGrounds(w.d.grounds), textMax))
	}
	w.Group("NoweSrodkiTransportu", "P_22N", "1")
	w.Leaf("P_23", flag(w.d.triangular))
	w.writeMargin()
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
func (w writer) writeDescriptions() {
	pair := func(row, key, value string) {
		if value = token(value, textMax); value != "" {
			w.Group("DodatkowyOpis", "?NrWiersza", row, "Klucz", key, "Wartosc", value)
		}
	}
	if w.d.Customer != nil {
		pair("", "Nazwa handlowa nabywcy", w.d.Customer.TradeName)
	}
	if w.d.Foreign() {
		pair("", "Data kursu waluty", w.d.ExchangeRateDate)
	}
	if w.d.triangular {
		pair("", "Procedura uproszczona", triangular)
	}
	for i := range w.d.lines {
		if w.listed(i) {
			pair(w.d.row(i), "Opis", w.d.lines[i].Item.Description)
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

func (w writer) writeLine(i int) {
	l := &w.d.lines[i]
	quantity, price := l.Item.Quantity, l.Item.UnitPrice
	if w.d.correction() {
		// What comes back is a negative quantity at the original's price; a lower
		// price is a negative price of the quantity that stays.
		negative := (price < 0) != (w.d.Sign < 0)
		whole := w.d.Kind == transaction.Credit || !negative || w.d.returned(l)
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
		discount = w.d.money(l.Discount) // in the terms of the price; quantity × price − P_10 is the line
	}
	if columns[l.column].tax != "" {
		tax = w.d.money(l.Tax) // art. 106e sec. 10: the total is the sum of the lines' tax
	}
	if l.annexed && w.d.split {
		annex = "1"
	}
	if w.d.Foreign() && w.d.ExchangeRate != nil {
		rate = w.d.ExchangeRate.MinimalString()
	}
	w.Group("FaWiersz", "NrWierszaFa", w.d.row(i), "?P_7", token(l.Item.Name, nameMax), "?Indeks",
		token(l.Item.Code, foreignMax), "?GTIN", token(l.Item.EAN, 20),
		"P_8A", unit(l.Item), "P_8B", quantity.MinimalString(), priced, w.d.money(price), "?P_10", discount, total,
		w.d.money(sum), "?P_11Vat", tax,
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
func (w writer) writePayment() {
	accounts, factor := w.accounts(), ""
	if w.d.Payee != nil {
		factor = taxid.Bare(w.d.Payee.IBAN)
	}
	if len(w.d.Payments) == 0 && len(accounts) == 0 && factor == "" && w.d.DueDate == "" {
		return
	}
	w.Start("Platnosc")
	w.writePaid()
	if w.d.DueDate != "" {
		w.Group("TerminPlatnosci", "Termin", w.d.DueDate)
	}
	if form, words := w.payment(); form != "" {
		w.Maybe("FormaPlatnosci", form)
	} else if words != "" {
		w.Leaves("PlatnoscInna", "1", "OpisPlatnosci", words)
	}
	for _, account := range accounts {
		w.Group("RachunekBankowy", "NrRB", account)
	}
	if factor != "" {
		w.Group("RachunekBankowyFaktora", "NrRB", factor, "?OpisRachunku", token(w.d.Payee.Name, textMax))
	}
	w.End()
}

// accounts are those that payments name, else the company's; the money of a claim
// that somebody else takes goes to that payee alone.
func (w writer) accounts() (list []string) {
	for i := range w.d.Payments {
		if account := taxid.Bare(w.d.Payments[i].IBAN); account != "" && !slices.Contains(list, account) {
			list = append(list, account)
		}
	}
	elsewhere := w.d.Payee != nil && w.d.Payee.IBAN != ""
	if account := taxid.Bare(w.d.Setting(settingBankAccount, "")); len(list) == 0 && account != "" && !elsewhere {
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
func (w writer) writePaid() {
	parts, paid := w.d.paid()
	last := ""
	for i := range parts {
		last = max(last, w.d.paidOn(&parts[i]))
	}
	switch {
	case paid <= 0:
	case paid >= w.d.Draft.Totals.Payable():
		w.Leaves("Zaplacono", "1", "DataZaplaty", last)
	default:
		w.Leaf("ZnacznikZaplatyCzesciowej", "1")
		for _, p := range parts {
			code, _ := paymentForm(p)
			w.Group("ZaplataCzesciowa", "KwotaZaplatyCzesciowej", w.d.money(p.Amount), "DataZaplatyCzesciowej", w.d.paidOn(&p),
				"?FormaPlatnosci", code)
		}
	}
}

// writeTerms names the buyer's contract and order.
func (w writer) writeTerms() {
	contract, order := token(w.d.References.Contract, textMax), token(w.d.References.Order, textMax)
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
func (w writer) payment() (form, words string) {
	var parts []string
	for i, p := range w.d.Payments {
		code, name := paymentForm(p)
		if i == 0 {
			form = code
		} else if code != form {
			form = ""
		}
		parts = append(parts, name+" "+w.d.money(p.Amount))
	}
	if form != "" {
		return form, ""
	}
	if len(parts) == 1 {
		_, name := paymentForm(w.d.Payments[0])
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

func (w writer) writeFooter() {
	number := taxid.Bare(w.d.Draft.Supplier.CompanyNumber)
	register := ""
	if text.Digits(number) {
		switch len(number) {
		case 10:
			register = "KRS"
		case 9, 14:
			register = "REGON"
		}
	}
	note := w.d.note
	if w.d.correction() && w.d.Reason == "" && token(note, textMax) == token(note, footerMax) {
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
