package transaction

import (
	"strings"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// items reads the lines. Beyond the limit they are passed over: a body of
// 100,000 lines gives one fault, not 100,000.
func (d *decoder) items() strictjson.State {
	before, count := d.in.Faults.Count(), 0
	st := d.in.Array(func(i int) {
		if count = i + 1; count > itemsMax {
			d.in.Skip()
		} else {
			d.item()
		}
	})
	if count > itemsMax {
		d.in.Refuse(fault.FieldNotValid, "must not have more than %d entries", itemsMax)
	}
	if st == strictjson.Taken && len(d.tx.Items) == 0 {
		st = strictjson.Absent
	}
	d.uniqueNumbers()
	d.itemsFaulty = d.amountsFaulty(before)
	return st
}

// amountsFaulty reports whether something is wrong, beyond the first so many
// faults, with what amounts are worked out from: a line without a name still
// has a price.
func (d *decoder) amountsFaulty(before int) bool {
	listed := d.in.Faults.Listed()
	if d.in.Faults.Count() > len(listed) {
		return true // nobody knows what the others are about
	}
	for _, f := range listed[before:] {
		parts := strings.Split(f.Field, ".")
		if len(parts) < 3 {
			return true // an entry as a whole
		}
		switch parts[2] {
		case "quantity", "unit_price", "discount", "type", "tax_breakdowns", aliasTaxes:
			return true
		}
	}
	return false
}

func (d *decoder) item() {
	const gotNumber, gotName, gotQuantity, gotPrice given = 1, 2, 4, 8
	var got given
	item := Item{Type: Goods}
	breakdowns := "" // the name the client gave them
	st := d.in.Object(func(name string) {
		switch name {
		case "number":
			got.note(gotNumber, d.itemNumber(&item.Number))
		case "name":
			got.note(gotName, d.in.Line(&item.Name, itemTextMax))
		case "quantity":
			got.note(gotQuantity, d.in.positive(&item.Quantity))
		case "unit_price":
			got.note(gotPrice, d.in.minor(&item.UnitPrice))
		case "unit":
			d.in.Line(&item.Unit, unitMax)
		case "type":
			d.in.choice(&item.Type, Goods, Services, Discount)
		case "description":
			d.in.Line(&item.Description, itemTextMax)
		case "code":
			d.in.Line(&item.Code, itemCodeMax)
		case "ean":
			d.in.Line(&item.EAN, eanMax)
		case "net_price":
			d.in.stated(&item.StatedNet)
		case "ancillary":
			d.in.Bool(&item.Ancillary)
		case "classification":
			d.in.classification(&item)
		case "discount":
			item.Discount = d.in.discount()
		case "period":
			item.Period = d.in.period()
		case "tax_breakdowns", aliasTaxes:
			breakdowns = d.breakdownsOnce(&item, name, breakdowns)
		default:
			d.in.Unknown()
		}
	})
	if st == strictjson.Absent {
		d.in.Refuse(fault.FieldNotValid, "must be an object")
	}
	if breakdowns == aliasTaxes {
		d.aliased = append(d.aliased, len(d.tx.Items))
	}
	if d.tx.Items == nil {
		d.tx.Items = make([]Item, 0, itemsFirst)
	}
	d.tx.Items = append(d.tx.Items, item) // a faulty one too: later items keep their index
	if st != strictjson.Taken {
		return
	}
	for i, name := range [...]string{"number", "name", "quantity", "unit_price"} {
		if got&(1<<i) == 0 {
			d.in.Missing(name)
		}
	}
}

func (d *decoder) itemNumber(into *int64) strictjson.State {
	st := d.in.Integer(into, AmountMax)
	if st == strictjson.Taken && *into <= 0 {
		return d.in.Refuse(fault.FieldNotValid, "must be greater than 0")
	}
	return st
}

// uniqueNumbers finds item numbers that stand twice. Zero is a number that was strictjson.Refused.
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
func (d *decoder) refuseAt(at Place, path, format string, args ...any) {
	if d.in.Faults.Full() {
		d.in.Faults.Skip()
		return
	}
	d.in.Faults.Add(fault.At(at.Path(path), fault.FieldNotValid, format, args...))
}

// breakdownsOnce reads taxes under one of their two names, and answers it; before is
// the one they came under already.
func (d *decoder) breakdownsOnce(item *Item, name, before string) string {
	if before != "" && !d.in.Null() {
		d.in.Refuse(fault.ValidationMatchInvalid, "says the same as %s; send one of them", before)
		d.in.Skip()
	} else if d.breakdowns(item) != strictjson.Absent {
		return name
	}
	return before
}

func (d *decoder) breakdowns(item *Item) strictjson.State {
	if d.taxes == nil {
		d.taxes = make([]Tax, 0, taxesFirst)
	}
	start := len(d.taxes)
	st := d.in.Array(func(int) { d.tax() })
	if n := len(d.taxes); n > start {
		item.Taxes = d.taxes[start:n:n]
	}
	return st
}

func (d *decoder) tax() {
	const gotRate, gotRegime given = 1, 2
	var got given
	tax := Tax{Mode: Included}
	typeState := strictjson.Absent
	st := d.in.Object(func(name string) {
		switch name {
		case "rate":
			got.note(gotRate, d.in.percentage(&tax.Rate))
		case "regime":
			got.note(gotRegime, d.in.word(&tax.Regime, regimeMax))
		case "application_mode":
			d.in.choice(&tax.Mode, Included, Added)
		case "type":
			typeState = d.in.word(&tax.Type, regimeMax)
		case "code":
			d.in.Line(&tax.Code, taxCodeMax)
		case "amount":
			d.in.stated(&tax.Stated)
		case "quota":
			tax.Quota = d.in.perUnit(d.in.quota)
		case "quota_base":
			tax.QuotaBase = d.in.perUnit(d.in.positive)
		default:
			d.in.Unknown()
		}
	})
	if st == strictjson.Absent {
		d.in.Refuse(fault.FieldNotValid, "must be an object")
	}
	if tax.Withheld() {
		tax.Mode = ""
	}
	d.taxes = append(d.taxes, tax) // a faulty one too: later entries keep their index
	if st != strictjson.Taken {
		return
	}
	if got&gotRate == 0 {
		d.in.Missing("rate")
	}
	if got&gotRegime == 0 {
		d.in.Missing("regime")
	}
	switch {
	case tax.Quota == nil && tax.QuotaBase != nil:
		d.in.RefuseMember("quota_base", fault.ValidationMatchInvalid, "is what a quota is for, and there is none")
	case tax.Quota != nil && (!tax.Rate.IsZero() || tax.Withheld()):
		d.in.RefuseMember("quota", fault.ValidationMatchInvalid,
			"stands in place of a rate: the rate is 0, and nothing is withheld by quota")
	}
	if !tax.Withheld() && typeState == strictjson.Taken && tax.Regime != "" && !taxTypeKnown(tax.Type) {
		// Only now: type may stand before the regime that says what it means.
		d.in.RefuseMember("type", fault.FieldNotValid,
			"must be one of STANDARD, REDUCED, ZERO, EXEMPT, REVERSE, EXPORT, INTRA_EU, OUTSIDE")
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

// party reads a customer, an issuer or a third party; nil when there is none. more
// reads what one has beyond the others and reports whether it knew the member.
func (d *decoder) party(who string, more func(name string, p *Party) bool) *Party {
	const gotName, gotType given = 1, 2
	var got given
	p := &Party{}
	st := d.in.Object(func(name string) {
		switch name {
		case "legal_name":
			got.note(gotName, d.in.Line(&p.LegalName, nameMax))
		case "trade_name":
			d.in.Line(&p.TradeName, nameMax)
		case "entity_number":
			d.in.Line(&p.EntityNumber, entityNumberMax)
		case "type":
			got.note(gotType, d.in.choice(&p.Type, Individual, Business))
		case "address":
			p.Address = d.in.address()
		case "tax_information":
			d.taxInformation(p, who == "customer")
		case "electronic_address":
			p.Electronic = d.in.electronicAddress()
		default:
			if more == nil || !more(name, p) {
				d.in.Unknown()
			}
		}
	})
	if st != strictjson.Taken {
		return nil
	}
	if p.ID != "" {
		d.factsBesideID(p, got&gotName != 0, got&gotType != 0)
		return p
	}
	if got&gotName == 0 {
		d.in.Missing("legal_name")
	}
	if got&gotType == 0 {
		d.in.Missing("type")
	}
	return p
}

// factsBesideID refuses what would contradict, or repeat, the company that an id
// names. How the buyer is reached, and what for, is the sale's own.
func (d *decoder) factsBesideID(p *Party, named, typed bool) {
	for _, fact := range []struct {
		member string
		sent   bool
	}{
		{"legal_name", named || p.LegalName != ""}, {"type", typed || p.Type != ""}, {"trade_name", p.TradeName != ""},
		{"entity_number", p.EntityNumber != ""},
		{"address", p.Address != nil}, {"tax_information.tax_number", p.TaxNumber != ""},
		{"tax_information.regime", p.TaxRegime != ""},
	} {
		if fact.sent {
			d.in.RefuseMember(fact.member, fault.ValidationMatchInvalid, "is the company's own, which id names; send one of them")
		}
	}
}

func (d *decoder) taxInformation(p *Party, customer bool) {
	d.in.Object(func(name string) {
		switch {
		case name == "tax_number":
			d.in.Line(&p.TaxNumber, taxNumberMax)
		case name == "regime":
			d.in.Line(&p.TaxRegime, regimeMax)
		case name == "fiscal_code" && customer:
			d.in.fiscalCode(&p.FiscalCode)
		case name == "use" && customer:
			d.in.word(&p.TaxUse, regimeMax)
		default:
			d.in.Unknown()
		}
	})
}

func (in *reader) address() *Address {
	a := &Address{}
	code := strictjson.Absent
	st := in.Object(func(name string) {
		switch into := a.Member(name); {
		case into == nil:
			in.Unknown()
		case name == "country_code":
			code = in.countryCode(into)
		default:
			in.Line(into, addressMax)
		}
	})
	if st != strictjson.Taken {
		return nil
	}
	if code == strictjson.Absent {
		in.Missing("country_code")
	}
	return a
}

// countryCode reads the code of a place.
func (in *reader) countryCode(into *string) strictjson.State {
	st := in.code(into, 2, "two-letter country code")
	if st == strictjson.Taken && !CountryKnown(upperCode(*into)) {
		*into = ""
		return in.Refuse(fault.FieldNotValid, "must be a country code of ISO 3166-1")
	}
	return st
}

func (d *decoder) payments() strictjson.State {
	before, count := d.in.Faults.Count(), 0
	state := d.in.Array(func(i int) {
		if count = i + 1; count > paymentsMax {
			d.in.Skip()
			return
		}
		const gotType, gotAmount given = 1, 2
		var got given
		var p Payment
		st := d.in.Object(func(name string) {
			switch name {
			case "type":
				got.note(gotType, d.in.choice(&p.Type, "CREDIT", "CARD", "CASH", "TRANSFER", "CHECK", "OTHER"))
			case "code":
				d.in.Line(&p.Code, paymentCodeMax)
			case "amount":
				got.note(gotAmount, d.in.minor(&p.Amount))
			case "iban":
				d.in.iban(&p.IBAN)
			case "reference":
				d.in.Line(&p.Reference, remittanceMax)
			case "mandate":
				p.Mandate = d.in.mandate()
			case "date":
				d.in.day(&p.Date)
			default:
				d.in.Unknown()
			}
		})
		if st == strictjson.Absent {
			d.in.Refuse(fault.FieldNotValid, "must be an object")
		}
		d.tx.Payments = append(d.tx.Payments, p)
		if st != strictjson.Taken {
			return
		}
		if got&gotType == 0 {
			d.in.Missing("type")
		}
		if got&gotAmount == 0 {
			d.in.Missing("amount")
		}
	})
	if count > paymentsMax {
		d.in.Refuse(fault.FieldNotValid, "must not have more than %d entries", paymentsMax)
	}
	d.paymentsFault = d.in.Faults.Count() > before
	return state
}

// upperCode is a code as it is compared: a copy only when it has small letters.
func upperCode(code string) string { return strings.ToUpper(code) }
