package hu

import (
	"strconv"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/taxid"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

func flag(w *xmltree.Writer, name string, yes bool) { w.Leaf(name, strconv.FormatBool(yes)) }

func itoa(n int) string { return strconv.Itoa(n) }

// writeLine writes a line. A correction's lines are new ones of the chain: NAV
// takes no other change of a line since September 2023 (INVALID_LINE_OPERATION).
func (d *document) writeLine(w *xmltree.Writer, i int) {
	l := &d.lines[i]
	w.Start("line")
	w.Leaf("lineNumber", itoa(i+1))
	if d.correction() && d.in.Original != nil {
		w.Start("lineModificationReference")
		w.Leaf("lineNumberReference", itoa(d.firstLine()+i))
		w.Leaf("lineOperation", navwire.Create)
		w.End()
	}
	writeCodes(w, l.item)
	w.Leaf("lineExpressionIndicator", "true")
	w.Leaf("lineNatureIndicator", l.nature())
	w.Leaf("lineDescription", l.description())
	d.writePrice(w, l)
	w.Start("lineAmountsNormal")
	d.pair(w, "lineNetAmountData", "lineNetAmount", l.net)
	l.rate.write(w, "lineVatRate")
	d.pair(w, "lineVatData", "lineVatAmount", l.vat)
	d.pair(w, "lineGrossAmountData", "lineGrossAmountNormal", money{l.net.own + l.vat.own, l.net.huf + l.vat.huf})
	w.End()
	w.End()
}

func (l *line) nature() string {
	switch {
	case l.item.Type == transaction.Discount:
		return "OTHER"
	case l.services:
		return "SERVICE"
	}
	return "PRODUCT"
}

func (l *line) description() string {
	for _, text := range []string{l.item.Name, l.item.Description} {
		if text = words(text, navwire.DescriptionMax); text != "" {
			return text
		}
	}
	return "-"
}

// writeCodes writes the client's own code and the article number; codes of
// lists that others keep have names of NAV's where they are customs tariff
// numbers or product codes of statistics.
func writeCodes(w *xmltree.Writer, item *transaction.Item) {
	var codes [][2]string
	for _, c := range item.Classifications {
		scheme := strings.ToUpper(c.Scheme)
		if scheme == "VTSZ" || scheme == "SZJ" || scheme == "KN" || scheme == "TESZOR" {
			if value := taxid.Bare(c.Code); len(value) >= 2 && len(value) <= 30 {
				codes = append(codes, [2]string{scheme, value})
			}
		}
	}
	if code := words(item.Code, navwire.DetailMax); code != "" {
		codes = append(codes, [2]string{"OWN", code})
	}
	if ean := taxid.Bare(item.EAN); len(ean) >= 2 && len(ean) <= 30 {
		codes = append(codes, [2]string{"OTHER", ean})
	}
	if len(codes) == 0 {
		return
	}
	w.Start("productCodes")
	for _, c := range codes {
		w.Start("productCode")
		w.Leaf("productCodeCategory", c[0])
		if c[0] == "OWN" {
			w.Leaf("productCodeOwnValue", c[1])
		} else {
			w.Leaf("productCodeValue", c[1])
		}
		w.End()
	}
	w.End()
}

// writePrice writes quantity, unit and price without tax. A credit takes goods
// back, so its quantities are negative; prices keep their sign.
func (d *document) writePrice(w *xmltree.Writer, l *line) {
	quantity := l.item.Quantity
	if quantity.IsZero() {
		quantity = num.MakeAmount(1, 0)
	}
	before := d.sign * (l.net.own + l.discount)
	text := quantity.MinimalString()
	if d.sign < 0 {
		text = "-" + text
	}
	w.Leaf("quantity", text)
	unit, own := unitOf(l.item.Unit)
	w.Leaf("unitOfMeasure", unit)
	w.Maybe("unitOfMeasureOwn", own)
	price := perUnit(before, d.decimals, quantity)
	w.Leaf("unitPrice", price)
	w.Leaf("unitPriceHUF", d.hufPrice(before, quantity, price))
	if l.discount != 0 {
		w.Start("lineDiscountData")
		w.Leaf("discountDescription", "Engedmény")
		w.Leaf("discountValue", d.own(l.discount)) // with the sign of the line: quantity × price less this is the net
		w.End()
	}
}

func (d *document) hufPrice(before int64, quantity num.Amount, price string) string {
	if !d.foreign() || d.t.ExchangeRate == nil {
		return price
	}
	const finer = 4 // more decimals than the sum has, so that a price of many units stays exact
	huf, ok := scaled(before, hufDecimals+finer-d.decimals, *d.t.ExchangeRate)
	if !ok {
		m := d.money(before)
		return perUnit(m.huf, hufDecimals, quantity)
	}
	return perUnit(huf, hufDecimals+finer, quantity)
}

// unitOf is NAV's own word for a unit, or OWN with the client's.
func unitOf(unit string) (code, own string) {
	text := words(unit, navwire.UnitMax)
	switch strings.ToLower(strings.TrimSuffix(text, ".")) {
	case "", "db", "pcs", "pc", "piece", "pieces", "unit", "h87", "c62", "ea", "stk", "szt":
		return "PIECE", ""
	case "kg", "kgm", "kilogram":
		return "KILOGRAM", ""
	case "t", "tne", "tonna":
		return "TON", ""
	case "kwh":
		return "KWH", ""
	case "nap", "day", "days":
		return "DAY", ""
	case "óra", "h", "hour", "hours", "hur":
		return "HOUR", ""
	case "perc", "min", "minute", "minutes":
		return "MINUTE", ""
	case "hó", "hónap", "month", "months", "mon":
		return "MONTH", ""
	case "l", "liter", "litre", "ltr":
		return "LITRE", ""
	case "km", "kmt":
		return "KILOMETER", ""
	case "m3", "mtq":
		return "CUBIC_METER", ""
	case "m", "mtr", "méter":
		return "METER", ""
	case "fm", "folyóméter":
		return "LINEAR_METER", ""
	case "doboz", "karton", "carton", "ct":
		return "CARTON", ""
	case "csomag", "pack", "pk":
		return "PACK", ""
	}
	return "OWN", text
}
