package transaction

import (
	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// What a document says of how it is supplied and paid, beyond days and accounts.

// Span is from when to when something is supplied, both days included.
type Span struct {
	From string `json:"from"` // YYYY-MM-DD
	To   string `json:"to"`
}

// Delivery is where goods go, where that is not the customer's address.
type Delivery struct {
	Name    string   `json:"name,omitempty"`
	Address *Address `json:"address,omitempty"`
}

// Payee is who gets the money, where that is not the supplier: a factor, for one.
type Payee struct {
	Name string `json:"name"`
	ID   string `json:"id,omitempty"`
	IBAN string `json:"iban,omitempty"`
}

// Mandate lets the payee collect the money: direct debit. The payment's account
// is then the one that is debited.
type Mandate struct {
	Reference  string `json:"reference"`
	CreditorID string `json:"creditor_id,omitempty"`
}

// Debited reports whether the payment is collected by direct debit.
func (p *Payment) Debited() bool { return p.Mandate != nil }

// period reads two days; nil where there are none.
func (in *reader) period() *Span {
	var p Span
	from, to := strictjson.Absent, strictjson.Absent
	st := in.Object(func(name string) {
		switch name {
		case "from":
			from = in.day(&p.From)
		case "to":
			to = in.day(&p.To)
		default:
			in.Unknown()
		}
	})
	if st != strictjson.Taken {
		return nil
	}
	if from == strictjson.Absent {
		in.Missing("from")
	}
	if to == strictjson.Absent {
		in.Missing("to")
	}
	if from == strictjson.Taken && to == strictjson.Taken && p.To < p.From {
		in.RefuseMember("to", fault.ValidationMatchInvalid, "must not be before the beginning of the period")
	}
	return &p
}

func (in *reader) delivery() *Delivery {
	var out Delivery
	st := in.Object(func(name string) {
		switch name {
		case "name":
			in.Line(&out.Name, nameMax)
		case "address":
			out.Address = in.address()
		default:
			in.Unknown()
		}
	})
	if st != strictjson.Taken {
		return nil
	}
	if out.Address == nil {
		in.Missing("address")
	}
	return &out
}

func (in *reader) payee() *Payee {
	var p Payee
	name := strictjson.Absent
	st := in.Object(func(member string) {
		switch member {
		case "name":
			name = in.Line(&p.Name, nameMax)
		case "id":
			in.Line(&p.ID, entityNumberMax)
		case "iban":
			in.iban(&p.IBAN)
		default:
			in.Unknown()
		}
	})
	if st != strictjson.Taken {
		return nil
	}
	if name == strictjson.Absent {
		in.Missing("name")
	}
	return &p
}

func (in *reader) mandate() *Mandate {
	var m Mandate
	reference := strictjson.Absent
	st := in.Object(func(name string) {
		switch name {
		case "reference":
			reference = in.Line(&m.Reference, mandateMax)
		case "creditor_id":
			in.Line(&m.CreditorID, mandateMax)
		default:
			in.Unknown()
		}
	})
	if st != strictjson.Taken {
		return nil
	}
	if reference == strictjson.Absent {
		in.Missing("reference")
	}
	return &m
}

// mandateMax is the length of a mandate's reference and of a creditor's id (SEPA: 35 each).
const mandateMax = 35

func (p *Span) field(member string) (string, bool) {
	if p == nil {
		p = &Span{}
	}
	switch member {
	case "period":
		return p.From + p.To, true
	case "period.from":
		return p.From, true
	case "period.to":
		return p.To, true
	}
	return "", false
}

// supplyField is a member of how the document is supplied and paid. Below an
// object that is not there nothing is visited.
func (t *Transaction) supplyField(path string, visit func(Place, string)) bool {
	say := func(there bool, text string) bool {
		if there {
			visit(Place{}, text)
		}
		return true
	}
	if text, known := t.Period.field(path); known {
		return say(path == "period" || t.Period != nil, text)
	}
	p, d := t.Payee, t.Delivery
	if p == nil {
		p = &Payee{}
	}
	if d == nil {
		d = &Delivery{}
	}
	a := d.Address
	if a == nil {
		a = &Address{}
	}
	switch path {
	case "payee":
		return say(true, p.Name)
	case "payee.name":
		return say(t.Payee != nil, p.Name)
	case "payee.id":
		return say(t.Payee != nil, p.ID)
	case "payee.iban":
		return say(t.Payee != nil, p.IBAN)
	case "delivery":
		return say(true, d.Name+a.CountryCode)
	case "delivery.name":
		return say(t.Delivery != nil, d.Name)
	case "delivery.address":
		return say(true, a.CountryCode)
	}
	if len(path) > len("delivery.address.") && path[:len("delivery.address.")] == "delivery.address." {
		if into := a.Member(path[len("delivery.address."):]); into != nil {
			return say(t.Delivery != nil, *into)
		}
	}
	return false
}
