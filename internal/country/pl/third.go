package pl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/country/text"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Roles of third parties that say more than the role itself: the buyer's unit, or
// the member of its group, for whom the invoice is.
const (
	roleLocalUnit   = "JST_RECIPIENT"
	roleGroupMember = "GV_RECIPIENT"

	roleBuyer = "BUYER" // buys together with the customer
)

// role is one of FA(3)'s roles of third parties (TRolaPodmiotu3).
type role struct{ code, number, words, meaning string }

// roles are those of FA(3) but for 5, who issues: that is issuer.
func roles() []role {
	return []role{
		{"FACTOR", "1", "Faktor", "a factor, to whom the claim was sold (1)"},
		{"RECIPIENT", "2", "Odbiorca", "a unit or branch of the buyer that is no buyer itself (2)"},
		{"PREDECESSOR", "3", "Podmiot pierwotny", "whom the supplier took over, or was before, and who made the supply (3)"},
		{roleBuyer, "4", "Dodatkowy nabywca", "a further buyer (4)"},
		{"PAYER", "6", "Dokonujący płatności", "who pays in the buyer's place (6)"},
		{"JST_ISSUER", "7", "Jednostka samorządu terytorialnego - wystawca", "a unit of local government that issues (7)"},
		{roleLocalUnit, "8", "Jednostka samorządu terytorialnego - odbiorca",
			"the unit of local government for which the buyer bought (8): JST is 1"},
		{"GV_ISSUER", "9", "Członek grupy VAT - wystawca", "a member of a VAT group that issues (9)"},
		{roleGroupMember, "10", "Członek grupy VAT - odbiorca",
			"the member of a VAT group for which the buyer bought (10): GV is 1"},
		{"EMPLOYEE", "11", "Pracownik", "an employee (11)"},
	}
}

func roleMeanings() (list []country.Meaning) {
	for _, r := range roles() {
		list = append(list, country.Meaning{Code: r.code, Meaning: r.meaning})
	}
	return list
}

// internalPattern is TNIPIdWew: the NIP and five digits that KSeF gave a unit.
var internalPattern = regexp.MustCompile(`^[1-9]((\d[1-9])|([1-9]\d))\d{7}-\d{5}$`)

// internalID is IDWew, "" where the number is none.
func internalID(p *transaction.Party) string {
	if number := strings.TrimSpace(p.TaxNumber); internalPattern.MatchString(number) {
		return number
	}
	return ""
}

// thirdParties finds third parties that KSeF could not hand the invoice to: a unit
// or a member is known by NIP or internal id, and so is the buyer it belongs to.
func thirdParties(t *transaction.Transaction) (found []fault.Fault) {
	found = shares(t)
	for i := range t.ThirdParties {
		p := &t.ThirdParties[i]
		at := fmt.Sprintf("third_parties.%d", i)
		if id := internalID(p); id == "" {
			found = append(found, party(at, p)...)
		} else if nip, _, _ := strings.Cut(id, "-"); !taxid.Check(home, nip).Valid {
			found = append(found, fault.At(at+".tax_information.tax_number", fault.FieldNotValid,
				"begins with digits that are no NIP: an internal id is the NIP of the buyer and five digits"))
		}
		if p.Role != roleLocalUnit && p.Role != roleGroupMember {
			continue
		}
		if internalID(p) == "" && identify(p).nip == "" {
			found = append(found, fault.At(at+".tax_information.tax_number", fault.FieldRequired,
				"must be a NIP or an internal id (NIP-12345): by it KSeF hands the invoice to the unit or the member"))
		}
		if t.Customer != nil && identify(t.Customer).nip == "" {
			found = append(found, fault.At(at+".role", fault.ValidationMatchInvalid,
				"does not fit: a unit of local government or a member of a VAT group belongs to a buyer with a NIP"))
		}
	}
	return found
}

// shares finds parts of what was bought together that are none: further buyers
// alone have one, all of them or none, and something is left for the buyer. Without
// any the parts are equal (FA(3), Udzial).
func shares(t *transaction.Transaction) (found []fault.Fault) {
	sum, said, buyers := num.MakeAmount(0, 0), 0, 0
	for i := range t.ThirdParties {
		p, at := &t.ThirdParties[i], fmt.Sprintf("third_parties.%d.share", i)
		if p.Role == roleBuyer {
			buyers++
		}
		switch {
		case p.Share == nil:
		case p.Role != roleBuyer:
			found = append(found, fault.At(at, fault.ValidationMatchInvalid,
				"is of a further buyer (%s), not of other third parties", roleBuyer))
		case !p.Share.IsPositive():
			found = append(found, fault.At(at, fault.FieldNotValid, "must be more than 0"))
		default:
			said++
			sum = sum.RescaleUp(p.Share.Exp()).Add(*p.Share)
		}
	}
	switch {
	case len(found) > 0 || said == 0:
	case said < buyers:
		found = append(found, fault.At("third_parties", fault.ValidationMatchInvalid,
			"must have a share for each further buyer (%s) or for none: without any the shares are equal", roleBuyer))
	case sum.Compare(num.MakeAmount(100, 0)) >= 0:
		found = append(found, fault.At("third_parties", fault.ValidationMatchInvalid,
			"must have shares of less than 100 together: the rest is the customer's"))
	}
	return found
}

// has reports whether a third party of a role is there.
func (d *document) has(code string) bool {
	return slices.ContainsFunc(d.ThirdParties, func(p transaction.Party) bool { return p.Role == code })
}

// writeThirdParties writes who else has to do with the invoice.
func (w writer) writeThirdParties() {
	for i := range w.d.ThirdParties {
		p := &w.d.ThirdParties[i]
		for _, r := range roles() {
			if r.code != p.Role {
				continue
			}
			w.Start("Podmiot3")
			w.Start("DaneIdentyfikacyjne")
			if id := internalID(p); id != "" {
				w.Leaf("IDWew", id)
			} else {
				identify(p).write(w.Writer)
			}
			w.Maybe("Nazwa", token(p.LegalName, nameMax))
			w.End()
			if p.Address != nil {
				writeAddress(w.Writer, *p.Address)
			}
			w.Leaf("Rola", r.number)
			if p.Share != nil {
				w.Leaf("Udzial", p.Share.MinimalString())
			}
			w.Maybe("NrKlienta", token(p.EntityNumber, textMax))
			w.End()
		}
	}
}

// thirdTexts names third parties on paper.
func (d *document) thirdTexts() (texts []string) {
	for i := range d.ThirdParties {
		p := &d.ThirdParties[i]
		for _, r := range roles() {
			if r.code == p.Role {
				number := strings.TrimSpace(p.TaxNumber)
				if number != "" {
					number = "NIP " + number
				}
				part := ""
				if p.Share != nil {
					part = "udział " + p.Share.MinimalString() + " %"
				}
				texts = append(texts, r.words+": "+text.Join(", ", token(p.LegalName, nameMax), number, part))
			}
		}
	}
	return texts
}
