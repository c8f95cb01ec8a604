package transaction

import (
	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// memberThird lists who has to do with the document beside supplier, customer and
// issuer, where a country's document names such parties.
const memberThird = "third_parties"

// memberOrder lists what was ordered, on an invoice for money that came before.
const memberOrder = "order_items"

// orderItems reads lines like those of the document, which count in no total.
func (d *decoder) orderItems() {
	own, aliased := d.tx.Items, d.aliased
	d.tx.Items = nil
	count := 0
	d.Array(func(i int) {
		if count = i + 1; count > orderMax {
			d.Skip()
		} else {
			d.item()
		}
	})
	if count > orderMax {
		d.Refuse(fault.FieldNotValid, "must not have more than %d entries", orderMax)
	}
	d.tx.OrderItems, d.tx.Items, d.aliased = d.tx.Items, own, aliased
}

func (d *decoder) thirdParties() {
	count := 0
	d.Array(func(i int) {
		if count = i + 1; count > thirdMax {
			d.Skip()
			return
		}
		role := strictjson.Absent
		p := d.party(memberThird, func(name string, p *Party) bool {
			if name == "role" {
				role = d.word(&p.Role, roleMax)
			}
			return name == "role"
		})
		if p == nil {
			d.Refuse(fault.FieldNotValid, "must be an object")
			p = &Party{} // later ones keep their index
		} else if role == strictjson.Absent {
			d.Missing("role")
		}
		d.tx.ThirdParties = append(d.tx.ThirdParties, *p)
	})
	if count > thirdMax {
		d.Refuse(fault.FieldNotValid, "must not have more than %d entries", thirdMax)
	}
}

func (t *Transaction) eachThirdField(path string, visit func(Place, string)) bool {
	if path == "" {
		visit(Place{}, count(len(t.ThirdParties)))
		return true
	}
	if len(path) < 3 || path[:2] != "*." {
		return false
	}
	member, known := path[2:], false
	if member == "role" {
		known = true
	} else {
		_, known = (&Party{}).field(member)
	}
	for i := range t.ThirdParties {
		text := t.ThirdParties[i].Role
		if member != "role" {
			text, _ = t.ThirdParties[i].field(member)
		}
		visit(Place{Entry: i}, text)
	}
	return known
}
