package it

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/amount"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// Classifications of lines that FatturaPA has places of its own for.
const (
	// schemeFund is of a line that is the contribution to a professional fund: its
	// kind, and after @ its rate.
	schemeFund = "CASSA"

	// schemeDelivery is of a line whose goods went with a transport document: its
	// number, and after @ its day.
	schemeDelivery = "DDT"
)

// separate (INPS) is the only fund whose contribution is income: tax is withheld
// from it (L. 662/96, art. 1 c. 212). That to the others is not.
const separate = "TC22"

// fund is DatiCassaPrevidenziale.
type fund struct {
	kind string // TipoCassa; empty: a line is none
	rate num.Amount
}

var fundForm = regexp.MustCompile(`^(TC(?:0[1-9]|1[0-9]|2[0-2]))@([0-9]{1,2}(?:\.[0-9]{1,2})?)$`)

func fundOf(item *transaction.Item) (fund, bool) {
	parts := fundForm.FindStringSubmatch(strings.ToUpper(sale.Marked(item, schemeFund)))
	if parts == nil {
		return fund{}, false
	}
	rate, err := num.AmountFromString(parts[2])
	return fund{kind: parts[1], rate: rate}, err == nil
}

// deliveryOf is the transport document of a line.
func deliveryOf(item *transaction.Item) related {
	number, day, _ := strings.Cut(sale.Marked(item, schemeDelivery), "@")
	return related{id: number, date: strings.TrimSpace(day)}
}

// placed finds classifications that cannot be written where they belong.
func placed(i int, item *transaction.Item) []fault.Fault {
	var found []fault.Fault
	at := fmt.Sprintf("items.%d.classification", i)
	if _, ok := fundOf(item); !ok && sale.Marked(item, schemeFund) != "" {
		found = append(found, fault.At(at, fault.FieldNotValid, "of scheme CASSA must be TipoCassa@AlCassa: TC04@4"))
	}
	if by := deliveryOf(item); by.id != "" || by.date != "" {
		if _, err := time.Parse(time.DateOnly, by.date); err != nil || by.id != ascii(by.id, sdiwire.NumberMax) || by.id == "" {
			found = append(found, fault.At(at, fault.FieldNotValid,
				"of scheme DDT must be NUMBER@YYYY-MM-DD, the number with at most 20 letters of ASCII"))
		}
	}
	return found
}

// fundsAreRight: a contribution is a percentage of what else is billed, and no
// more; nothing is withheld from it, but for INPS.
func (d *invoice) fundsAreRight(add saying) {
	base := d.fundBase()
	for i := range d.lines {
		l := &d.lines[i]
		if l.fund.kind == "" {
			continue
		}
		at := fmt.Sprintf("items.%d", i)
		if over(l.Net, base, l.fund.rate) {
			add(at+".unit_price", "is more than %s %% of the %s that is billed (AlCassa)", percent(l.fund.rate), euros(base))
		}
		for _, tax := range l.withheld() {
			if l.fund.kind != separate && ofIncome(tax) {
				add(at+".tax_breakdowns", "must not withhold: the contribution to a fund is no income, but for that to INPS (TC22)")
			}
		}
	}
	if len(d.lines) > 0 && d.details() == 0 {
		add("items", "must not be contributions to funds alone (DettaglioLinee)")
	}
}

// fundBase is what contributions are a percentage of: all that is billed but
// costs advanced (N1) and other contributions.
func (d *invoice) fundBase() (sum int64) {
	for i := range d.lines {
		if l := &d.lines[i]; l.fund.kind == "" && l.natura != "N1" {
			sum += l.Net
		}
	}
	return sum
}

// details is the number of lines that are no contributions.
func (d *invoice) details() (n int) {
	for i := range d.lines {
		if d.lines[i].fund.kind == "" {
			n++
		}
	}
	return n
}

// over reports whether a sum is more than a percentage of another, by more than
// the cent that rounding takes.
func over(sum, of int64, rate num.Amount) bool { return abs(sum) > abs(amount.Percent(of, rate))+1 }

func abs(n int64) int64 { return max(n, -n) }

// writeFund writes DatiCassaPrevidenziale. What the contribution is a percentage
// of stands there where it is all that is billed; else nobody says it.
func (d *invoice) writeFund(w *xmltree.Writer, l *line) {
	of := ""
	if base := d.fundBase(); abs(amount.Percent(base, l.fund.rate)-l.Net) <= 1 {
		of = euros(base)
	}
	w.Group("DatiCassaPrevidenziale", "TipoCassa", l.fund.kind, "AlCassa", percent(l.fund.rate), "ImportoContributoCassa",
		euros(l.Net), "?ImponibileCassa", of,
		"AliquotaIVA", percent(l.rate), "?Ritenuta", l.heldText(), "?Natura", l.natura)
}

// writeDeliveries writes DatiDDT, each transport document with its lines.
func (d *invoice) writeDeliveries(w *xmltree.Writer) {
	var list []related
	lines := map[related][]int{}
	at := 0
	for i := range d.lines {
		l := &d.lines[i]
		if l.fund.kind != "" {
			continue
		}
		at++
		by := deliveryOf(l.Item)
		if by.id == "" {
			continue
		}
		if len(lines[by]) == 0 {
			list = append(list, by)
		}
		lines[by] = append(lines[by], at)
	}
	for _, by := range list {
		w.Start("DatiDDT")
		w.Leaf("NumeroDDT", by.id)
		w.Leaf("DataDDT", by.date)
		if len(lines[by]) < at { // without lines it is of all of them
			for _, n := range lines[by] {
				w.Leaf("RiferimentoNumeroLinea", strconv.Itoa(n))
			}
		}
		w.End()
	}
}
