package pl

import (
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
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
	w.Maybe("RodzajFaktury", d.kind())
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
	d.writeDeductions(w)
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
	w.Maybe("DataWytworzeniaFa", d.in.Now.UTC().Format(time.RFC3339))
	w.Maybe("SystemInfo", systemInfo)
	w.End()
}

func (d *document) writeSeller(w *xmltree.Writer) {
	s := &d.in.Supplier
	w.Start("Podmiot1")
	if d.used[zeroIntraEU] || d.used[outsideToEU] {
		w.Leaf("PrefiksPodatnika", "PL") // art. 97 sec. 10 points 2 and 3
	}
	w.Start("DaneIdentyfikacyjne")
	w.Maybe("NIP", d.nip)
	w.Maybe("Nazwa", token(s.LegalName, nameMax))
	w.End()
	writeAddress(w, s.Address, "PL")
	w.End()
}

// supplierNIP is how KSeF knows a supplier. Its digits were checked when the
// company was onboarded.
func supplierNIP(s *country.Supplier) string {
	return strings.TrimPrefix(taxid.Bare(s.TaxNumber), "PL")
}

func (d *document) writeBuyer(w *xmltree.Writer) {
	w.Start("Podmiot2")
	writeParty(w, d.t.Customer)
	if c := d.t.Customer; c != nil {
		w.Maybe("NrKlienta", token(c.EntityNumber, textMax))
	}
	flag(w, "JST", d.has(roleLocalUnit))
	flag(w, "GV", d.has(roleGroupMember))
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
		writeAddress(w, *c.Address, "PL")
	}
}

// writeIssuer writes who issues in the supplier's name as a third party with
// role 5. A buyer who issues is no third party: P_17 says so.
func (d *document) writeIssuer(w *xmltree.Writer) {
	i := d.t.Issuer
	if i == nil || d.selfBilled() || sameParty(i.TaxNumber, d.in.Supplier.TaxNumber) {
		return
	}
	w.Start("Podmiot3")
	w.Start("DaneIdentyfikacyjne")
	identify(i).write(w)
	w.Maybe("Nazwa", token(i.LegalName, nameMax))
	w.End()
	if i.Address != nil {
		writeAddress(w, *i.Address, "PL")
	}
	w.Leaf("Rola", "5")
	w.End()
}

func (d *document) writeSums(w *xmltree.Writer) {
	w.Maybe("KodWaluty", strings.ToUpper(d.t.CurrencyCode))
	w.Maybe("P_1", d.day.Format(time.DateOnly))
	w.Maybe("P_1M", token(d.in.Supplier.Address.City, textMax))
	w.Maybe("P_2", d.number())
	if d.supplied != d.day.Format(time.DateOnly) {
		w.Maybe("P_6", d.supplied)
	}
	for c := range column(columnsCount) {
		if !d.used[c] {
			continue
		}
		net, tax := c.fields()
		w.Maybe(net, d.money(d.net[c]))
		if tax == "" {
			continue
		}
		w.Maybe(tax, d.money(d.tax[c]))
		if own, ok := d.inOwnMoney(d.tax[c]); ok && d.foreign() && c != oneStop {
			w.Maybe(tax+"W", decimal(own, 2))
		}
	}
	w.Maybe("P_15", d.money(d.sign*d.in.Totals.Gross))
	if d.kind() == typeAdvance && d.foreign() && d.t.ExchangeRate != nil {
		w.Maybe("KursWalutyZ", d.t.ExchangeRate.MinimalString())
	}
}

func (d *document) writeNotes(w *xmltree.Writer) {
	w.Start("Adnotacje")
	flag(w, "P_16", d.cashMethod())
	flag(w, "P_17", d.selfBilled())
	flag(w, "P_18", d.reversed)
	flag(w, "P_18A", d.splitPayment())
	w.Start("Zwolnienie")
	if len(d.grounds) == 0 {
		w.Leaf("P_19N", "1")
	} else {
		w.Leaf("P_19", "1")
		w.Maybe(d.grounds[0].field, token(joinGrounds(d.grounds), textMax))
	}
	w.End()
	w.Start("NoweSrodkiTransportu")
	w.Leaf("P_22N", "1")
	w.End()
	flag(w, "P_23", false)
	d.writeMargin(w)
	w.End()
}

func joinGrounds(grounds []basis) string {
	texts := make([]string, len(grounds))
	for i, g := range grounds {
		texts[i] = g.text
	}
	return strings.Join(texts, "; ")
}

// writeDescriptions writes what FA(3) has no element of its own for.
func (d *document) writeDescriptions(w *xmltree.Writer) {
	pair := func(row, key, value string) {
		if value = token(value, textMax); value == "" {
			return
		}
		w.Start("DodatkowyOpis")
		w.Maybe("NrWiersza", row)
		w.Maybe("Klucz", key)
		w.Maybe("Wartosc", value)
		w.End()
	}
	if c := d.t.Customer; c != nil {
		pair("", "Nazwa handlowa nabywcy", c.TradeName)
	}
	if d.foreign() {
		pair("", "Data kursu waluty", d.t.ExchangeRateDate)
	}
	for i := range d.lines {
		if !d.listed(i) {
			continue
		}
		pair(d.row(i), "Opis", d.lines[i].item.Description)
	}
}

// row is a line's number: the client's, unless one of them is too large.
func (d *document) row(i int) string {
	if d.renumbered {
		return strconv.Itoa(i + 1)
	}
	return strconv.FormatInt(d.t.Items[i].Number, 10)
}

func (d *document) writeLine(w *xmltree.Writer, i int) {
	l := &d.lines[i]
	quantity, price := l.item.Quantity, l.item.UnitPrice
	if d.correction() {
		// What comes back is a negative quantity at the original's price; a lower
		// price is a negative price of the quantity that stays.
		negative := (price < 0) != (d.sign < 0)
		whole := d.t.Kind == transaction.Credit || !negative || d.returned(l)
		if price < 0 {
			price = -price
		}
		switch {
		case negative && whole:
			quantity = quantity.Invert()
		case negative:
			price = -price
		}
	}
	w.Start("FaWiersz")
	w.Maybe("NrWierszaFa", d.row(i))
	w.Maybe("P_7", token(l.item.Name, nameMax))
	w.Maybe("Indeks", token(l.item.Code, foreignMax))
	w.Maybe("GTIN", token(l.item.EAN, 20))
	w.Maybe("P_8A", unit(l.item))
	w.Maybe("P_8B", quantity.MinimalString())
	if l.included {
		w.Maybe("P_9B", d.money(price))
	} else {
		w.Maybe("P_9A", d.money(price))
	}
	if l.discount != 0 {
		w.Maybe("P_10", d.money(l.discount)) // in the terms of the price; quantity × price − P_10 is the line
	}
	if l.included {
		w.Maybe("P_11A", d.money(l.gross))
	} else {
		w.Maybe("P_11", d.money(l.net))
	}
	if _, tax := l.column.fields(); tax != "" {
		w.Maybe("P_11Vat", d.money(l.tax)) // art. 106e sec. 10: the total is the sum of the lines' tax
	}
	w.Maybe("P_12", l.mark)
	w.Maybe("P_12_XII", l.foreignRate)
	if l.annexed && d.splitPayment() {
		w.Leaf("P_12_Zal_15", "1")
	}
	w.Maybe("GTU", gtu(l.item))
	if d.foreign() && d.t.ExchangeRate != nil {
		w.Maybe("KursWaluty", d.t.ExchangeRate.MinimalString())
	}
	w.End()
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

// writeDeductions says what is withheld from the total.
func (d *document) writeDeductions(w *xmltree.Writer) {
	var withheld int64
	for i := range d.lines {
		withheld += d.lines[i].withheld
	}
	if withheld == 0 {
		return
	}
	w.Start("Rozliczenie")
	w.Start("Odliczenia")
	w.Maybe("Kwota", d.money(withheld))
	w.Leaf("Powod", "Podatek pobrany u źródła")
	w.End()
	w.Maybe("SumaOdliczen", d.money(withheld))
	w.Maybe("DoZaplaty", d.money(d.sign*d.in.Totals.Gross-withheld))
	w.End()
}

// writePayment says whether, when and how the total is paid. Payments are made
// when the transaction is submitted: with all of it paid the invoice is paid on
// its day, with a part of it partly. FA(3) has one form for the whole; several
// are described in words.
func (d *document) writePayment(w *xmltree.Writer) {
	account := taxid.Bare(d.in.Supplier.Settings.Text(settingBankAccount))
	if len(d.t.Payments) == 0 && account == "" && d.t.DueDate == "" {
		return
	}
	w.Start("Platnosc")
	d.writePaid(w)
	if d.t.DueDate != "" {
		w.Start("TerminPlatnosci")
		w.Leaf("Termin", d.t.DueDate)
		w.End()
	}
	if form, words := d.payment(); form != "" {
		w.Maybe("FormaPlatnosci", form)
	} else if words != "" {
		w.Leaf("PlatnoscInna", "1")
		w.Maybe("OpisPlatnosci", words)
	}
	if account != "" {
		w.Start("RachunekBankowy")
		w.Maybe("NrRB", account)
		w.End()
	}
	w.End()
}

// writePaid writes Zaplacono, or the parts that are paid. Cash, cards and other
// means are paid, on the day that the payment names or the transaction's; a
// transfer or a check is when it carries the reference or the day of the payment,
// otherwise it is only the agreed form, and so is credit. Corrections do not say: their difference is settled elsewhere.
func (d *document) writePaid(w *xmltree.Writer) {
	if d.correction() {
		return
	}
	var paid int64
	var last string
	var parts []transaction.Payment
	for _, p := range d.t.Payments {
		switch p.Type {
		case "CREDIT":
			continue
		case "TRANSFER", "CHECK":
			if p.Reference == "" && p.Date == "" {
				continue
			}
		}
		paid += p.Amount
		parts = append(parts, p)
		last = max(last, d.paidOn(&p))
	}
	switch {
	case paid <= 0:
	case paid >= d.in.Totals.Payable():
		w.Leaf("Zaplacono", "1")
		w.Leaf("DataZaplaty", last)
	default:
		w.Leaf("ZnacznikZaplatyCzesciowej", "1")
		for _, p := range parts {
			w.Start("ZaplataCzesciowa")
			w.Leaf("KwotaZaplatyCzesciowej", d.money(p.Amount))
			w.Leaf("DataZaplatyCzesciowej", d.paidOn(&p))
			if code, _ := paymentForm(p); code != "" {
				w.Leaf("FormaPlatnosci", code)
			}
			w.End()
		}
	}
}

// writeTerms names the buyer's contract and order.
func (d *document) writeTerms(w *xmltree.Writer) {
	contract, order := token(d.t.References.Contract, textMax), token(d.t.References.Order, textMax)
	if contract == "" && order == "" {
		return
	}
	w.Start("WarunkiTransakcji")
	if contract != "" {
		w.Start("Umowy")
		w.Leaf("NrUmowy", contract)
		w.End()
	}
	if order != "" {
		w.Start("Zamowienia")
		w.Leaf("NrZamowienia", order)
		w.End()
	}
	w.End()
}

// payment is FormaPlatnosci, or a description where there is none for it.
func (d *document) payment() (form, words string) {
	var parts []string
	for i, p := range d.t.Payments {
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
		_, name := paymentForm(d.t.Payments[0])
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
	return "", join(" ", "inna", p.Code)
}

func (d *document) writeFooter(w *xmltree.Writer) {
	number := taxid.Bare(d.in.Supplier.CompanyNumber)
	register := ""
	if strings.Trim(number, "0123456789") == "" {
		switch len(number) {
		case 10:
			register = "KRS"
		case 9, 14:
			register = "REGON"
		}
	}
	note := d.note
	if d.correction() && d.t.Reason == "" && token(note, textMax) == token(note, footerMax) {
		note = "" // PrzyczynaKorekty has all of it
	}
	if note == "" && register == "" {
		return
	}
	w.Start("Stopka")
	if note != "" {
		w.Start("Informacje")
		w.Maybe("StopkaFaktury", note)
		w.End()
	}
	if register != "" {
		w.Start("Rejestry")
		w.Maybe(register, number)
		w.End()
	}
	w.End()
}

// exchanged converts minor units to grosz at a rate, rounded half away from
// zero. It is false when the result is larger than any amount may be.
func exchanged(minor int64, decimals int, rate num.Amount) (int64, bool) {
	product := new(big.Int).Mul(big.NewInt(minor), big.NewInt(rate.Value()))
	product.Mul(product, big.NewInt(100))
	divisor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)+int64(rate.Exp())), nil)
	half := new(big.Int).Rsh(divisor, 1)
	if product.Sign() < 0 {
		half.Neg(half)
	}
	product.Add(product, half)
	product.Quo(product, divisor)
	if !product.IsInt64() || product.CmpAbs(big.NewInt(transaction.AmountMax)) > 0 {
		return 0, false
	}
	return product.Int64(), true
}
