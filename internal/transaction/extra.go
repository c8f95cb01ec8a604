package transaction

import (
	"math"
	"strconv"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// Allowances and charges are of the whole document. They are counted, taxed and
// filed as lines are, so they stand behind the client's own lines, marked: what
// shows them apart (EN 16931 BG-20 and BG-21, results, paper) looks at the mark,
// and nobody else has to know.

// The members that list them.
const (
	memberAllowances = "allowances"
	memberCharges    = "charges"

	extrasMax = 20 // of each
)

// Extra is an allowance or a charge of the document.
type Extra struct {
	Charge bool
	Index  int         // in the array that the client sent
	Amount int64       // minor units, in the terms of prices: with tax where its taxes are included
	Rate   *num.Amount // a percentage of the lines with the same taxes, from which Amount was worked out; nil: none
	Reason string
	Taxes  []Tax

	aliased bool // its taxes came under the other name
}

// Member is the array that the client sent it in.
func (e *Extra) Member() string {
	if e.Charge {
		return memberCharges
	}
	return memberAllowances
}

// Lines are the client's own items, without what is of the whole document.
func (t *Transaction) Lines() []Item { return t.Items[:len(t.Items)-t.extras()] }

func (t *Transaction) extras() (n int) {
	for n < len(t.Items) && t.Items[len(t.Items)-1-n].Extra != nil {
		n++
	}
	return n
}

// readExtras reads allowances or charges.
func (d *decoder) readExtras(charge bool) {
	before, count := d.in.Faults.Count(), 0
	d.in.Array(func(i int) {
		if count = i + 1; count > extrasMax {
			d.in.Skip()
			return
		}
		d.extra(Extra{Charge: charge, Index: i})
	})
	if count > extrasMax {
		d.in.Refuse(fault.FieldNotValid, "must not have more than %d entries", extrasMax)
	}
	d.extrasFaulty = d.extrasFaulty || d.in.Faults.Count() > before
}

func (d *decoder) extra(e Extra) {
	var percent num.Amount
	var line Item
	amount, rate, reason := strictjson.Absent, strictjson.Absent, strictjson.Absent
	breakdowns := ""
	st := d.in.Object(func(name string) {
		switch name {
		case "amount":
			if amount = d.in.minor(&e.Amount); amount == strictjson.Taken && e.Amount < 0 {
				amount = d.in.Refuse(fault.FieldNotValid, "must not be negative: allowances lower the total, charges raise it")
			}
		case "rate":
			rate = d.in.percentage(&percent)
		case "reason":
			reason = d.in.Line(&e.Reason, itemTextMax)
		case "tax_breakdowns", aliasTaxes:
			breakdowns = d.breakdownsOnce(&line, name, breakdowns)
		default:
			d.in.Unknown()
		}
	})
	e.Taxes, e.aliased = line.Taxes, breakdowns == aliasTaxes
	if rate == strictjson.Taken {
		e.Rate = &percent
	}
	switch {
	case st == strictjson.Absent:
		d.in.Refuse(fault.FieldNotValid, "must be an object")
	case st == strictjson.Taken && amount == strictjson.Absent && rate == strictjson.Absent:
		d.in.Refuse(fault.FieldRequired, "must have an amount or a rate")
	case amount != strictjson.Absent && rate != strictjson.Absent:
		d.in.Refuse(fault.ValidationMatchInvalid, "must have an amount or a rate, not both")
	}
	if st == strictjson.Taken && reason == strictjson.Absent {
		d.in.Missing("reason")
	}
	d.tx.Extras = append(d.tx.Extras, e) // a faulty one too: later ones keep their index
}

// addExtras puts allowances and charges behind the lines, whose members may stand
// anywhere in the body.
func (d *decoder) addExtras() {
	d.itemsFaulty = d.itemsFaulty || d.extrasFaulty
	lines := d.tx.Items
	if len(d.tx.Extras) == 0 || len(lines) == 0 || d.itemsFaulty {
		return
	}
	next := int64(0)
	for i := range lines {
		next = max(next, lines[i].Number)
	}
	next = min(next, math.MaxInt64-2*extrasMax)
	totals, wrong := Calculate(lines)
	if len(wrong) > 0 {
		return // whoever works out the amounts says so
	}
	for k := range d.tx.Extras {
		e := &d.tx.Extras[k]
		if e.Rate != nil && !e.share(lines, totals) {
			d.in.Faults.Add(fault.At(e.Member()+"."+strconv.Itoa(e.Index)+".rate", fault.ValidationMatchInvalid,
				"is of the items with the same tax_breakdowns, and there are none"))
			d.itemsFaulty = true
			return
		}
		if e.aliased {
			d.aliased = append(d.aliased, len(d.tx.Items))
		}
		d.tx.Items = append(d.tx.Items, e.item(lines, next+1+int64(k)))
	}
}

// share works out the amount of a rate; false where no line has the same taxes.
func (e *Extra) share(lines []Item, totals Totals) bool {
	base, found := int64(0), false
	for i := range lines {
		if !SameTaxes(lines[i].Taxes, e.Taxes) {
			continue
		}
		found = true
		if priceMode(e.Taxes) == Added {
			base += totals.Lines[i].Net
		} else {
			base += totals.Lines[i].Gross
		}
	}
	scaled, ok := scaledRate(*e.Rate)
	if !found || !ok {
		return false
	}
	e.Amount, ok = scale(base, scaled, rateHundred)
	return ok
}

// priceMode is how prices with these taxes are meant.
func priceMode(taxes []Tax) string {
	for i := range taxes {
		if !taxes[i].Withheld() {
			return taxes[i].Mode
		}
	}
	return Included
}

// SameTaxes reports whether two lines are taxed alike.
func SameTaxes(a, b []Tax) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Rate.Equals(b[i].Rate) || a[i].Regime != b[i].Regime || a[i].Mode != b[i].Mode || a[i].Type != b[i].Type ||
			a[i].Code != b[i].Code {
			return false
		}
	}
	return true
}

// item is the line that it counts as. A charge is what it goes with: goods where
// the document has any (Directive 2006/112/EC, article 78).
func (e *Extra) item(lines []Item, number int64) Item {
	item := Item{Number: number, Name: e.Reason, Quantity: num.MakeAmount(1, 0), UnitPrice: -e.Amount, Type: Discount,
		Taxes: append([]Tax(nil), e.Taxes...), Extra: e}
	if !e.Charge {
		return item
	}
	item.UnitPrice, item.Type = e.Amount, Services
	for i := range lines {
		if lines[i].Type == Goods {
			item.Type = Goods
		}
	}
	return item
}

// Spelled turns the path of a line that stands for an allowance or a charge into
// the client's own.
func (t *Transaction) Spelled(f fault.Fault) fault.Fault {
	rest, ok := strings.CutPrefix(f.Field, "items.")
	if !ok {
		return f
	}
	at, member, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(at)
	if err != nil || i < 0 || i >= len(t.Items) || t.Items[i].Extra == nil {
		return f
	}
	e := t.Items[i].Extra
	field := e.Member() + "." + strconv.Itoa(e.Index)
	switch {
	case strings.HasPrefix(member, "tax_breakdown"):
		field += "." + member
	case member == "name":
		field += ".reason"
	case member == "unit_price" && e.Rate == nil:
		field += ".amount"
	case member == "unit_price":
		field += ".rate"
	}
	f.Message = strings.ReplaceAll(f.Message, f.Field, field)
	f.Field = field
	return f
}

// eachExtraField visits a member of the allowances or of the charges.
func (t *Transaction) eachExtraField(head, path string, visit func(Place, string)) bool {
	var list []*Extra
	for i := range t.Extras {
		if t.Extras[i].Member() == head {
			list = append(list, &t.Extras[i])
		}
	}
	if path == "" {
		visit(Place{}, count(len(list)))
		return true
	}
	member, ok := strings.CutPrefix(path, "*.")
	if !ok {
		return false
	}
	if member, ok := strings.CutPrefix(member, "tax_breakdowns.*."); ok {
		_, known := (&Tax{}).field(member)
		for _, e := range list {
			for j := range e.Taxes {
				text, _ := e.Taxes[j].field(member)
				visit(Place{Entry: e.Index, Tax: j}, text)
			}
		}
		return known
	}
	_, known := (&Extra{}).field(member)
	for _, e := range list {
		text, _ := e.field(member)
		visit(Place{Entry: e.Index}, text)
	}
	return known
}

func (e *Extra) field(member string) (string, bool) {
	switch member {
	case "amount":
		if e.Rate != nil {
			return "", true
		}
		return strconv.FormatInt(e.Amount, 10), true
	case "rate":
		return minimal(e.Rate), true
	case "reason":
		return e.Reason, true
	case "tax_breakdowns":
		return count(len(e.Taxes)), true
	}
	return "", false
}
