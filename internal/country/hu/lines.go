package hu

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/amount"
	"tributary/internal/country/taxid"
	"tributary/internal/country/text"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// dataPeriod is the name of a line's period, in the form that NAV asks of names.
const dataPeriod = "T00001_TELJESITESI_IDOSZAK"

// writeLine writes a line. A correction's lines are new ones of the chain: NAV
// takes no other change of a line since September 2023 (INVALID_LINE_OPERATION).
func (d *document) writeLine(w *xmltree.Writer, i int) {
	l := &d.lines[i]
	w.Start("line")
	w.Leaf("lineNumber", strconv.Itoa(i+1))
	if d.Correction() && len(d.Originals) > 0 {
		w.Group("lineModificationReference", "lineNumberReference", strconv.Itoa(d.firstLine()+i), "lineOperation", navwire.Create)
	}
	writeCodes(w, l.Item)
	w.Leaves("lineExpressionIndicator", "true", "lineNatureIndicator", l.nature(), "lineDescription", l.description())
	d.writePrice(w, l)
	w.Start("lineAmountsNormal")
	d.pair(w, "lineNetAmountData", "lineNetAmount", l.net)
	l.rate.write(w, "lineVatRate")
	d.pair(w, "lineVatData", "lineVatAmount", l.vat)
	d.pair(w, "lineGrossAmountData", "lineGrossAmountNormal", l.net.plus(l.vat))
	w.End()
	if p := l.Item.Period; p != nil { // a line has no element for it; NAV takes what it calls additional data
		w.Group("additionalLineData", "dataName", dataPeriod, "dataDescription", "A tétel teljesítési időszaka",
			"dataValue", p.From+"/"+p.To)
	}
	w.End()
}

func (l *line) nature() string {
	switch {
	case l.Item.Type == transaction.Discount, l.Item.Extra != nil:
		return "OTHER"
	case l.Item.Type == transaction.Services: // what it is, however it is taxed
		return "SERVICE"
	}
	return "PRODUCT"
}

func (l *line) description() string {
	for _, text := range []string{l.Item.Name, l.Item.Description} {
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
	add := func(category, code string) {
		if code = taxid.Bare(code); len(code) >= 2 && len(code) <= 30 {
			codes = append(codes, [2]string{category, code})
		}
	}
	for _, c := range item.Classifications {
		switch scheme := strings.ToUpper(c.Scheme); scheme {
		case "VTSZ", "SZJ", "KN", "TESZOR":
			add(scheme, c.Code)
		}
	}
	if code := words(item.Code, navwire.DetailMax); code != "" {
		codes = append(codes, [2]string{"OWN", code})
	}
	add("OTHER", item.EAN)
	if len(codes) == 0 {
		return
	}
	w.Start("productCodes")
	for _, c := range codes {
		value := "productCodeValue"
		if c[0] == "OWN" {
			value = "productCodeOwnValue"
		}
		w.Group("productCode", "productCodeCategory", c[0], value, c[1])
	}
	w.End()
}

// writePrice writes quantity, unit and price without tax. A credit takes goods
// back, so its quantities are negative; prices keep their sign.
func (d *document) writePrice(w *xmltree.Writer, l *line) {
	quantity := l.Item.Quantity
	if quantity.IsZero() {
		quantity = num.MakeAmount(1, 0)
	}
	before := d.Sign * (l.Net + l.NetDiscount)
	count := quantity.MinimalString()
	if d.Sign < 0 {
		count = "-" + count
	}
	unit, own := unitOf(l.Item.Unit)
	price := perUnit(before, d.Decimals, quantity)
	w.Leaves("quantity", count, "unitOfMeasure", unit, "?unitOfMeasureOwn", own, "unitPrice", price, "unitPriceHUF",
		d.hufPrice(before, quantity, price))
	if l.NetDiscount != 0 { // with the sign of the line: quantity × price less this is the net
		w.Group("lineDiscountData", "discountDescription", "Engedmény", "discountValue", d.own(l.NetDiscount))
	}
}

// perUnit is the price of one, reported with six decimals less the zeros at its end.
func perUnit(minor int64, decimals int, quantity num.Amount) string {
	return amount.New(minor, decimals).Over(quantity, 6).Trimmed(0)
}

func (d *document) hufPrice(before int64, quantity num.Amount, price string) string {
	if !d.Foreign() || d.ExchangeRate == nil {
		return price
	}
	const finer = 4 // more decimals than the sum has, so that a price of many units stays exact
	huf, ok := amount.Scaled(before, hufDecimals+finer-d.Decimals, *d.ExchangeRate)
	if !ok {
		return perUnit(d.money(before).huf, hufDecimals, quantity)
	}
	return perUnit(huf, hufDecimals+finer, quantity)
}

// unitsFile has NAV's own words for units, each with those that people write.
//
//go:embed units.txt
var unitsFile string

var unitNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{"": "PIECE"}
	for line := range strings.Lines(unitsFile) {
		of := strings.Fields(line)
		for _, name := range of[1:] {
			names[name] = of[0]
		}
	}
	return names
})

// unitOf is NAV's own word for a unit, or OWN with the client's.
func unitOf(unit string) (code, own string) {
	text := words(unit, navwire.UnitMax)
	if code, known := unitNames()[strings.ToLower(strings.TrimSuffix(text, "."))]; known {
		return code, ""
	}
	return "OWN", text
}

// words is a text as NAV's schema has it: single blanks, none at the ends, at
// most max characters.
func words(s string, max int) string {
	return text.Words(s, max, func(r rune) bool { return r <= ' ' || r == 0x7f || r == 0xfffd || r == 0xfffe || r == 0xffff })
}
