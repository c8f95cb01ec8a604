package es

import (
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/country/taxid"
	"tributary/internal/country/territory"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// land is where somebody is, as the law of indirect taxes divides the world.
// Spain has three taxes: IVA on the mainland and the Balearic Islands (Ley
// 37/1992, article 3), IGIC on the Canary Islands (Ley 20/1991), IPSI in Ceuta
// and Melilla (Ley 8/1991). To each of them the others are abroad.
type land string

const (
	mainland  land = "mainland"
	canary    land = "canary"
	cities    land = "cities"    // Ceuta and Melilla
	union     land = "union"     // another member state
	elsewhere land = "elsewhere" // outside the Union
)

// canaryZone is the time of the islands, an hour behind the mainland.
const canaryZone = "Atlantic/Canary"

// landOf is where an address lies; none is on the mainland.
func landOf(a *transaction.Address) land {
	return landOfParty(&transaction.Party{Address: a}, true)
}

// landOfParty is where somebody is, for goods or for services.
func landOfParty(p *transaction.Party, services bool) land {
	switch at := territory.Of(home, p, lawDay, services); {
	case at.Apart == territory.Canary:
		return canary
	case at.Country == home && at.Apart != "":
		return cities
	case at.Country == home:
		return mainland
	case at.Union:
		return union
	}
	return elsewhere
}

// province is the part of a Spanish postal code that names the province.
func province(postal string) string {
	postal = strings.TrimSpace(postal)
	if len(postal) != 5 || strings.Trim(postal, "0123456789") != "" {
		return ""
	}
	return postal[:2]
}

// timeZoneOf is the clock of a company's address.
func timeZoneOf(a transaction.Address) string {
	if landOf(&a) == canary {
		return canaryZone
	}
	return ""
}

// landOfTax is the part of Spain in which a tax is levied.
func landOfTax(tax string) land {
	switch tax {
	case taxIGIC:
		return canary
	case taxIPSI:
		return cities
	}
	return mainland
}

func landOfCustomer(t *transaction.Transaction) land {
	if t.Customer == nil {
		return mainland
	}
	return landOf(t.Customer.Address)
}

func (l land) spanish() bool { return l == mainland || l == canary || l == cities }

// isAway reports whether the customer is outside the territory of a tax. Who
// names none is served where the supplier is.
func isAway(t *transaction.Transaction, tax string) bool {
	return t.Customer != nil && landOfCustomer(t) != landOfTax(tax)
}

// localTo reports whether the customer of a reverse charge is one of the tax's
// own territory: a Spanish NIF wins over a foreign address.
func localTo(t *transaction.Transaction, tax string) bool {
	if !isAway(t, tax) {
		return true
	}
	return !landOfCustomer(t).spanish() && spanishNumber(t.Customer)
}

// spanishNumber reports whether a party carries a Spanish NIF, wherever it lives.
func spanishNumber(p *transaction.Party) bool {
	from := homeOf(p)
	return p != nil && p.TaxNumber != "" && taxid.NIF(p.TaxNumber) != "" &&
		(from == "ES" || !taxid.Check(from, p.TaxNumber).Valid || hasPrefix(p.TaxNumber, "ES"))
}

func hasPrefix(number, code string) bool {
	return strings.HasPrefix(strings.ToUpper(strings.TrimSpace(number)), code)
}

// northernIrish reports whether a party is in Northern Ireland, which is in the
// Union for goods (protocol, article 8).
func northernIrish(p *transaction.Party) bool {
	return territory.Of(home, p, lawDay, false).Country == territory.NorthernIreland
}

// zeroType is what a rate of 0 without a type means: see derivations.
func zeroType(t *transaction.Transaction, i int, tax string) string {
	services := country.IsServices(t.Items, i) && !followsGoods(t.Items)
	business := t.Customer != nil && t.Customer.Type == transaction.Business
	where := landOfCustomer(t)
	switch {
	case !isAway(t, tax) && tax == taxIVA:
		return transaction.TaxExempt
	case !isAway(t, tax):
		return transaction.TaxZero // IGIC and IPSI have a rate of 0
	case tax != taxIVA && services, where.spanish() && services && business:
		return transaction.TaxOutside
	case where.spanish() && services:
		return transaction.TaxExempt // taxed like a consumer of the mainland (article 69.Dos)
	case tax != taxIVA || where.spanish():
		return transaction.TaxExport
	case (where == union || northernIrish(t.Customer) && !services) && !(business && t.Customer.TaxNumber != ""):
		return transaction.TaxExempt // a consumer in the Union is taxed like one at home
	case where == union && services:
		return transaction.TaxReverse
	case where == union, northernIrish(t.Customer) && !services:
		return transaction.TaxIntraEU
	case services:
		return transaction.TaxOutside
	}
	return transaction.TaxExport
}

// silentZeroes refuses a rate of 0 of IVA of which nothing says why: Spain has no
// such rate, and an exemption by article 20 follows from no customer. Items are typed.
func silentZeroes(t *transaction.Transaction, items []transaction.Item) (found []fault.Fault) {
	_, decided := country.TreatmentOfGoods(items)
	for i := range items {
		if items[i].Ancillary && decided {
			continue // its goods say why
		}
		for j, tax := range t.Items[i].Taxes {
			grade, _, _ := readCode(tax.Code)
			if tax.Type != "" || grade != "" || onMargin(tax.Code) || tax.Withheld() || !tax.Rate.IsZero() ||
				taxOf(tax.Regime) != taxIVA || items[i].Taxes[j].Type != transaction.TaxExempt {
				continue
			}
			found = append(found, fault.At(sale.TaxPath(i, j, "type"), fault.FieldRequired, "must say which zero it is: %s",
				choicesFor(t, i)))
		}
	}
	return found
}

// choicesFor names what a line without tax may be, by where its customer is.
func choicesFor(t *transaction.Transaction, i int) string {
	const all = "EXEMPT (E1, article 20), REVERSE (S2, article 84), OUTSIDE (N1, article 7), or a grade as code (E1 to E6, N1, N2)"
	services := country.IsServices(t.Items, i) && !followsGoods(t.Items)
	where := landOfParty(t.Customer, services)
	switch {
	case where == union && t.Customer.Type == transaction.Business:
		return "goods to a business of another member state are INTRA_EU and services REVERSE with its VAT number, without one IVA is due as at home; else " + all
	case where == union:
		return "consumers of another member state pay IVA, or the tax of their country in the one stop shop (regime OSS; articles 68, 69, 73); else " + all
	case where.spanish() && where != mainland:
		return "services to consumers in the rest of Spain bear IVA (article 69.Uno.2); else " + all
	}
	return all
}

// followsGoods reports whether services of a document belong to its goods, as
// their shipping does (Ley 37/1992, articles 21.5 and 25; what is accessory
// shares the fate of what it belongs to): there are goods, and none is taxed.
func followsGoods(items []transaction.Item) bool {
	goods := false
	for i := range items {
		if items[i].Type == transaction.Services || items[i].Type == transaction.Discount {
			continue
		}
		for _, tax := range items[i].Taxes {
			if taxOf(tax.Regime) != "" && !tax.Rate.IsZero() {
				return false
			}
		}
		goods = true
	}
	return goods
}
