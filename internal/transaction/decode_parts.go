package transaction

import (
	"strings"

	"tributary/internal/fault"
)

// items reads the lines. Beyond the limit they are passed over: a body of
// 100,000 lines gives one fault, not 100,000.
func (d *decoder) items() state {
	before := d.faults.Count()
	st := d.array(func(i int) {
		if i >= itemsMax {
			d.skip()
		} else {
			d.item()
		}
		if i == itemsMax {
			d.depth-- // the fault is the array's
			d.refuse(fault.FieldNotValid, "must not have more than %d entries", itemsMax)
			d.depth++
		}
	})
	if st == taken && len(d.tx.Items) == 0 {
		st = absent
	}
	d.uniqueNumbers()
	d.itemsFaulty = d.faults.Count() > before
	return st
}

func (d *decoder) item() {
	const gotNumber, gotName, gotQuantity, gotPrice given = 1, 2, 4, 8
	var got given
	item := Item{Type: Goods}
	breakdowns := "" // the name the client gave them
	st := d.object(func(name string) {
		switch name {
		case "number":
			got.note(gotNumber, d.itemNumber(&item.Number))
		case "name":
			got.note(gotName, d.line(&item.Name, itemTextMax))
		case "quantity":
			got.note(gotQuantity, d.positive(&item.Quantity))
		case "unit_price":
			got.note(gotPrice, d.integer(&item.UnitPrice))
		case "unit":
			d.line(&item.Unit, unitMax)
		case "type":
			d.choice(&item.Type, Goods, Services, Discount)
		case "description":
			d.line(&item.Description, itemTextMax)
		case "code":
			d.line(&item.Code, itemCodeMax)
		case "ean":
			d.line(&item.EAN, eanMax)
		case "tax_breakdowns", aliasTaxes:
			if breakdowns != "" && !d.null() {
				d.refuse(fault.ValidationMatchInvalid, "says the same as %s; send one of them", breakdowns)
				d.skip()
			} else if d.breakdowns(&item) != absent {
				breakdowns = name
			}
		default:
			d.unknown()
		}
	})
	if st == absent {
		d.refuse(fault.FieldNotValid, "must be an object")
	}
	if breakdowns == aliasTaxes {
		d.aliased = append(d.aliased, len(d.tx.Items))
	}
	if d.tx.Items == nil {
		d.tx.Items = make([]Item, 0, itemsFirst)
	}
	d.tx.Items = append(d.tx.Items, item) // a faulty one too: later items keep their index
	if st != taken {
		return
	}
	for i, name := range [...]string{"number", "name", "quantity", "unit_price"} {
		if got&(1<<i) == 0 {
			d.missing(name)
		}
	}
}

func (d *decoder) itemNumber(into *int64) state {
	st := d.integer(into)
	if st == taken && *into <= 0 {
		return d.refuse(fault.FieldNotValid, "must be greater than 0")
	}
	return st
}

// uniqueNumbers finds item numbers that stand twice. Zero is a number that was refused.
func (d *decoder) uniqueNumbers() {
	items := d.tx.Items
	ascending := true
	for i := 1; i < len(items) && ascending; i++ {
		ascending = items[i].Number > items[i-1].Number
	}
	if ascending {
		return // as nearly everybody sends them
	}
	seen := make(map[int64]int, len(items))
	for i := range items {
		first, twice := seen[items[i].Number]
		if !twice {
			seen[items[i].Number] = i
		} else if items[i].Number > 0 {
			d.refuseAt(Place{Entry: i}, "items.*.number", "must be unique, but items.%d.number is %d too", first, items[i].Number)
		}
	}
}

// refuseAt collects a fault of a member that has been read already.
func (s *scanner) refuseAt(at Place, path, format string, args ...any) {
	if s.faults.Full() {
		s.faults.Skip()
		return
	}
	s.faults.Add(fault.At(at.Path(path), fault.FieldNotValid, format, args...))
}

func (d *decoder) breakdowns(item *Item) state {
	if d.taxes == nil {
		d.taxes = make([]Tax, 0, taxesFirst)
	}
	start := len(d.taxes)
	st := d.array(func(int) { d.tax() })
	if n := len(d.taxes); n > start {
		item.Taxes = d.taxes[start:n:n]
	}
	return st
}

func (d *decoder) tax() {
	const gotRate, gotRegime given = 1, 2
	var got given
	tax := Tax{Mode: Included}
	typeState := absent
	st := d.object(func(name string) {
		switch name {
		case "rate":
			got.note(gotRate, d.percentage(&tax.Rate))
		case "regime":
			got.note(gotRegime, d.word(&tax.Regime, regimeMax))
		case "application_mode":
			d.choice(&tax.Mode, Included, Added)
		case "type":
			typeState = d.word(&tax.Type, regimeMax)
		case "code":
			d.line(&tax.Code, taxCodeMax)
		default:
			d.unknown()
		}
	})
	if st == absent {
		d.refuse(fault.FieldNotValid, "must be an object")
	}
	if tax.Withheld() {
		tax.Mode = ""
	}
	d.taxes = append(d.taxes, tax) // a faulty one too: later entries keep their index
	if st != taken {
		return
	}
	if got&gotRate == 0 {
		d.missing("rate")
	}
	if got&gotRegime == 0 {
		d.missing("regime")
	}
	if !tax.Withheld() && typeState == taken && tax.Regime != "" && !taxTypeKnown(tax.Type) {
		// Only now: type may stand before the regime that says what it means.
		d.depth++
		d.steps[d.depth-1] = step{name: "type", index: -1}
		d.refuse(fault.FieldNotValid, "must be one of STANDARD, REDUCED, ZERO, EXEMPT, REVERSE, EXPORT, INTRA_EU, OUTSIDE")
		d.depth--
	}
}

func taxTypeKnown(t string) bool {
	switch t {
	case TaxStandard, TaxReduced, TaxZero, TaxExempt,
		TaxReverse, TaxExport, TaxIntraEU, TaxOutside:
		return true
	}
	return false
}

// party reads a customer or an issuer; nil when there is none.
func (d *decoder) party() *Party {
	const gotName, gotType given = 1, 2
	var got given
	p := &Party{}
	st := d.object(func(name string) {
		switch name {
		case "legal_name":
			got.note(gotName, d.line(&p.LegalName, nameMax))
		case "trade_name":
			d.line(&p.TradeName, nameMax)
		case "entity_number":
			d.line(&p.EntityNumber, entityNumberMax)
		case "type":
			got.note(gotType, d.choice(&p.Type, Individual, Business))
		case "address":
			p.Address = d.address()
		case "tax_information":
			d.taxInformation(p)
		default:
			d.unknown()
		}
	})
	if st != taken {
		return nil
	}
	if got&gotName == 0 {
		d.missing("legal_name")
	}
	if got&gotType == 0 {
		d.missing("type")
	}
	return p
}

func (d *decoder) taxInformation(p *Party) {
	d.object(func(name string) {
		switch name {
		case "tax_number":
			d.line(&p.TaxNumber, taxNumberMax)
		case "regime":
			d.line(&p.TaxRegime, regimeMax)
		default:
			d.unknown()
		}
	})
}

func (d *decoder) address() *Address {
	a := &Address{}
	code := absent
	st := d.object(func(name string) {
		switch into := a.Member(name); {
		case into == nil:
			d.unknown()
		case name == "country_code":
			code = d.countryCode(into)
		default:
			d.line(into, addressMax)
		}
	})
	if st != taken {
		return nil
	}
	if code == absent {
		d.missing("country_code")
	}
	return a
}

// countryCode reads the code of a place.
func (d *decoder) countryCode(into *string) state {
	st := d.code(into, 2, "two-letter country code")
	if st == taken && !CountryKnown(upperCode(*into)) {
		*into = ""
		return d.refuse(fault.FieldNotValid, "must be a country code of ISO 3166-1")
	}
	return st
}

func (d *decoder) payments() {
	before := d.faults.Count()
	d.array(func(int) {
		const gotType, gotAmount given = 1, 2
		var got given
		var p Payment
		st := d.object(func(name string) {
			switch name {
			case "type":
				got.note(gotType, d.choice(&p.Type, "CREDIT", "CARD", "CASH", "TRANSFER", "CHECK", "OTHER"))
			case "code":
				d.line(&p.Code, paymentCodeMax)
			case "amount":
				got.note(gotAmount, d.integer(&p.Amount))
			default:
				d.unknown()
			}
		})
		if st == absent {
			d.refuse(fault.FieldNotValid, "must be an object")
		}
		d.tx.Payments = append(d.tx.Payments, p)
		if st != taken {
			return
		}
		if got&gotType == 0 {
			d.missing("type")
		}
		if got&gotAmount == 0 {
			d.missing("amount")
		}
	})
	d.paymentsFault = d.faults.Count() > before
}

// upperCode is a code as it is compared: a copy only when it has small letters.
func upperCode(code string) string { return strings.ToUpper(code) }
