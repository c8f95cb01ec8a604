package pl

import (
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// write writes FA(3). The order of elements is the schema's.
func (d *document) write() []byte {
	w := &xmlWriter{out: make([]byte, 0, 2048+512*len(d.lines))}
	w.out = append(w.out, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"...)
	w.out = append(w.out, `<Faktura xmlns="`+namespace+`">`...)
	w.open = append(w.open, "Faktura")
	d.writeHeader(w)
	d.writeSeller(w)
	d.writeBuyer(w)
	d.writeIssuer(w)
	w.start("Fa")
	d.writeSums(w)
	d.writeNotes(w)
	w.element("RodzajFaktury", d.kind())
	d.writeOriginal(w)
	d.writeDescriptions(w)
	for i := range d.lines {
		d.writeLine(w, i)
	}
	d.writeDeductions(w)
	d.writePayment(w)
	w.end()
	d.writeFooter(w)
	w.end()
	return w.out
}

func (d *document) writeHeader(w *xmlWriter) {
	w.start("Naglowek")
	w.out = append(w.out, `<KodFormularza kodSystemowy="`+systemCode+`" wersjaSchemy="`+schema+`">`+formCode+`</KodFormularza>`...)
	w.element("WariantFormularza", "3")
	w.element("DataWytworzeniaFa", d.in.Now.UTC().Format(time.RFC3339))
	w.element("SystemInfo", systemInfo)
	w.end()
}

func (d *document) writeSeller(w *xmlWriter) {
	s := &d.in.Supplier
	w.start("Podmiot1")
	if d.used[zeroIntraEU] || d.used[outsideToEU] {
		w.element("PrefiksPodatnika", "PL") // art. 97 sec. 10 points 2 and 3
	}
	w.start("DaneIdentyfikacyjne")
	w.element("NIP", d.nip)
	w.element("Nazwa", token(s.LegalName, nameMax))
	w.end()
	writeAddress(w, s.Address, "PL")
	w.end()
}

// supplierNIP is how KSeF knows a supplier. Its digits were checked when the
// company was onboarded.
func supplierNIP(s *country.Supplier) string { return strings.TrimPrefix(bare(s.TaxNumber), "PL") }

func (d *document) writeBuyer(w *xmlWriter) {
	c := d.t.Customer
	w.start("Podmiot2")
	w.start("DaneIdentyfikacyjne")
	d.buyer.write(w)
	if c != nil {
		w.element("Nazwa", token(c.LegalName, nameMax))
	}
	w.end()
	if c != nil && c.Address != nil {
		writeAddress(w, *c.Address, "PL")
	}
	if c != nil {
		w.element("NrKlienta", token(c.EntityNumber, textMax))
	}
	w.flag("JST", false)
	w.flag("GV", false)
	w.end()
}

// writeIssuer writes who issues in the supplier's name as a third party with
// role 5. A buyer who issues is no third party: P_17 says so.
func (d *document) writeIssuer(w *xmlWriter) {
	i := d.t.Issuer
	if i == nil || d.selfBilled() || sameParty(i.TaxNumber, d.in.Supplier.TaxNumber) {
		return
	}
	w.start("Podmiot3")
	w.start("DaneIdentyfikacyjne")
	identify(i).write(w)
	w.element("Nazwa", token(i.LegalName, nameMax))
	w.end()
	if i.Address != nil {
		writeAddress(w, *i.Address, "PL")
	}
	w.element("Rola", "5")
	w.end()
}

func (d *document) writeSums(w *xmlWriter) {
	w.element("KodWaluty", strings.ToUpper(d.t.CurrencyCode))
	w.element("P_1", d.day.Format(time.DateOnly))
	w.element("P_1M", token(d.in.Supplier.Address.City, textMax))
	w.element("P_2", d.number())
	for c := range column(columnsCount) {
		if !d.used[c] {
			continue
		}
		net, tax := c.fields()
		w.element(net, d.money(d.net[c]))
		if tax == "" {
			continue
		}
		w.element(tax, d.money(d.tax[c]))
		if own, ok := d.inOwnMoney(d.tax[c]); ok && d.foreign() {
			w.element(tax+"W", decimal(own, 2))
		}
	}
	w.element("P_15", d.money(d.sign*d.in.Totals.Gross))
}

func (d *document) writeNotes(w *xmlWriter) {
	w.start("Adnotacje")
	w.flag("P_16", d.cashMethod())
	w.flag("P_17", d.selfBilled())
	w.flag("P_18", d.reversed())
	w.flag("P_18A", d.splitPayment())
	w.start("Zwolnienie")
	if len(d.grounds) == 0 {
		w.element("P_19N", "1")
	} else {
		w.element("P_19", "1")
		w.element(d.grounds[0].field, token(joinGrounds(d.grounds), textMax))
	}
	w.end()
	w.start("NoweSrodkiTransportu")
	w.element("P_22N", "1")
	w.end()
	w.flag("P_23", false)
	w.start("PMarzy")
	w.element("P_PMarzyN", "1")
	w.end()
	w.end()
}

func joinGrounds(grounds []basis) string {
	texts := make([]string, len(grounds))
	for i, g := range grounds {
		texts[i] = g.text
	}
	return strings.Join(texts, "; ")
}

// writeOriginal names the corrected invoice by its KSeF number, or says that
// it was issued outside KSeF.
func (d *document) writeOriginal(w *xmlWriter) {
	o := d.in.Original
	if !d.correction() || o == nil {
		return
	}
	w.element("PrzyczynaKorekty", token(d.reason, textMax))
	w.start("DaneFaKorygowanej")
	w.element("DataWystFaKorygowanej", o.Transaction.Date.In(d.zone).Format(time.DateOnly))
	w.element("NrFaKorygowanej", documentNumber(&o.Transaction, o.UniqueNumber))
	if id := strings.TrimSpace(o.AuthorityID1); looksLikeKSeF(id) {
		w.element("NrKSeF", "1")
		w.element("NrKSeFFaKorygowanej", id)
	} else {
		w.element("NrKSeFN", "1")
	}
	w.end()
}

// writeDescriptions writes what FA(3) has no element of its own for.
func (d *document) writeDescriptions(w *xmlWriter) {
	pair := func(row, key, value string) {
		if value = token(value, textMax); value == "" {
			return
		}
		w.start("DodatkowyOpis")
		w.element("NrWiersza", row)
		w.element("Klucz", key)
		w.element("Wartosc", value)
		w.end()
	}
	if c := d.t.Customer; c != nil {
		pair("", "Nazwa handlowa nabywcy", c.TradeName)
	}
	if d.foreign() {
		pair("", "Data kursu waluty", d.t.ExchangeRateDate)
	}
	for i := range d.lines {
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

func (d *document) writeLine(w *xmlWriter, i int) {
	l := &d.lines[i]
	quantity, price := l.item.Quantity, l.item.UnitPrice
	if d.correction() {
		// A difference is written as a negative quantity at the original price.
		negative := (price < 0) != (d.sign < 0)
		if price < 0 {
			price = -price
		}
		if negative {
			quantity = quantity.Invert()
		}
	}
	w.start("FaWiersz")
	w.element("NrWierszaFa", d.row(i))
	w.element("P_7", token(l.item.Name, nameMax))
	w.element("Indeks", token(l.item.Code, foreignMax))
	w.element("GTIN", token(l.item.EAN, 20))
	w.element("P_8A", unit(l.item))
	w.element("P_8B", quantity.MinimalString())
	if l.included {
		w.element("P_9B", d.money(price))
	} else {
		w.element("P_9A", d.money(price))
	}
	if l.discount != 0 {
		w.element("P_10", d.money(l.discount)) // in the terms of the price; quantity × price − P_10 is the line
	}
	if l.included {
		w.element("P_11A", d.money(l.gross))
	} else {
		w.element("P_11", d.money(l.net))
	}
	if _, tax := l.column.fields(); tax != "" {
		w.element("P_11Vat", d.money(l.tax)) // art. 106e sec. 10: the total is the sum of the lines' tax
	}
	w.element("P_12", l.mark)
	if d.foreign() && d.t.ExchangeRate != nil {
		w.element("KursWaluty", d.t.ExchangeRate.MinimalString())
	}
	w.end()
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
func (d *document) writeDeductions(w *xmlWriter) {
	var withheld int64
	for i := range d.lines {
		withheld += d.lines[i].withheld
	}
	if withheld == 0 {
		return
	}
	w.start("Rozliczenie")
	w.start("Odliczenia")
	w.element("Kwota", d.money(withheld))
	w.element("Powod", "Podatek pobrany u źródła")
	w.end()
	w.element("SumaOdliczen", d.money(withheld))
	w.element("DoZaplaty", d.money(d.sign*d.in.Totals.Gross-withheld))
	w.end()
}

// writePayment says how the total is paid. FA(3) has one form for the whole;
// several are described in words, because partial payments would have to name
// days on which they were made.
func (d *document) writePayment(w *xmlWriter) {
	account := bare(d.in.Supplier.Settings.Text(settingBankAccount))
	if len(d.t.Payments) == 0 && account == "" {
		return
	}
	w.start("Platnosc")
	if form, words := d.payment(); form != "" {
		w.element("FormaPlatnosci", form)
	} else if words != "" {
		w.element("PlatnoscInna", "1")
		w.element("OpisPlatnosci", words)
	}
	if account != "" {
		w.start("RachunekBankowy")
		w.element("NrRB", account)
		w.end()
	}
	w.end()
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

func (d *document) writeFooter(w *xmlWriter) {
	number := bare(d.in.Supplier.CompanyNumber)
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
	w.start("Stopka")
	if note != "" {
		w.start("Informacje")
		w.element("StopkaFaktury", note)
		w.end()
	}
	if register != "" {
		w.start("Rejestry")
		w.element(register, number)
		w.end()
	}
	w.end()
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
