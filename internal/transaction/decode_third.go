package transaction

import (
	"github.com/invopop/gobl/num"

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
	d.in.Array(func(i int) {
		if count = i + 1; count > orderMax {
			d.in.Skip()
		} else {
			d.item()
		}
	})
	if count > orderMax {
		d.in.Refuse(fault.FieldNotValid, "must not have more than %d entries", orderMax)
	}
	d.tx.OrderItems, d.tx.Items, d.aliased = d.tx.Items, own, aliased
}

func (d *decoder) thirdParties() {
	count := 0
	d.in.Array(func(i int) {
		if count = i + 1; count > thirdMax {
			d.in.Skip()
			return
		}
		role := strictjson.Absent
		p := d.party(memberThird, func(name string, p *Party) bool {
			switch name {
			case "role":
				role = d.in.word(&p.Role, roleMax)
			case "share":
				var percent num.Amount
				if d.in.percentage(&percent) == strictjson.Taken {
					p.Share = &percent
				}
			default:
				return false
			}
			return true
		})
		if p == nil {
			d.in.Refuse(fault.FieldNotValid, "must be an object")
			p = &Party{} // later ones keep their index
		} else if role == strictjson.Absent {
			d.in.Missing("role")
		}
		d.tx.ThirdParties = append(d.tx.ThirdParties, *p)
	})
	if count > thirdMax {
		d.in.Refuse(fault.FieldNotValid, "must not have more than %d entries", thirdMax)
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
	member := path[2:]
	_, known := (&Party{}).thirdField(member)
	for i := range t.ThirdParties {
		text, _ := t.ThirdParties[i].thirdField(member)
		visit(Place{Entry: i}, text)
	}
	return known
}

// thirdField is a member of a third party, which has more than other parties.
func (p *Party) thirdField(member string) (string, bool) {
	switch member {
	case "role":
		return p.Role, true
	case "share":
		return minimal(p.Share), true
	}
	return p.field(member)
}
