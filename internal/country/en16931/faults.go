package en16931

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/fault"
)

// quantityOne is one of anything.
var quantityOne = num.MakeAmount(1, 0)

// audience says who can do something about a finding.
type audience uint8

const (
	ofBody    audience = iota // the client, in the body of a transaction
	ofCompany                 // the company, in its onboarding
	ofAll
)

// faults tells findings in the client's own words: its path, and the name of
// the official rule.
func (c Composed) faults(who audience) []fault.Fault {
	var list fault.List
	for _, f := range Check(c.Invoice, c.Profile) {
		path, company := c.path(f)
		if who == ofBody && company || who == ofCompany && !company {
			continue
		}
		code := fault.FieldNotValid
		if f.Missing {
			code = fault.FieldRequired
		}
		list.AddNew(fault.At(path, code, "%s (%s, rule %s)", f.Text, f.Term, f.Rule))
	}
	return list.Listed()
}

// Faults are what the official rules would refuse, of the body and of the company.
func (c Composed) Faults() []fault.Fault { return c.faults(ofAll) }

// BodyFaults are those that a client can mend in the body of a transaction.
func (c Composed) BodyFaults() []fault.Fault { return c.faults(ofBody) }

// CompanyFaults are those that the company's onboarding has to mend.
func (c Composed) CompanyFaults() []fault.Fault { return c.faults(ofCompany) }

// path is where a client finds a term: in the body, or in the company.
func (c Composed) path(f Finding) (path string, company bool) {
	if path, ok := companyPaths[f.Term]; ok {
		return path, true
	}
	if member, ok := linePaths[f.Term]; ok && f.Index >= 0 && f.Index < len(c.items) {
		return place("items", c.items[f.Index]) + "." + member, false
	}
	if member, ok := allowancePaths[f.Term]; ok && f.Index >= 0 && f.Index < len(c.allowances) {
		return place("items", c.allowances[f.Index]) + "." + member, false
	}
	if member, ok := chargePaths[f.Term]; ok && f.Index >= 0 && f.Index < len(c.charges) {
		return place("items", c.charges[f.Index]) + "." + member, false
	}
	if path, ok := bodyPaths[f.Term]; ok {
		return path, false
	}
	return "items", false // sums and the breakdown come from them
}

// place joins a dotted path of names and indices.
func place(parts ...any) string {
	words := make([]string, len(parts))
	for i, p := range parts {
		switch p := p.(type) {
		case int:
			words[i] = strconv.Itoa(p)
		default:
			words[i] = fmt.Sprint(p)
		}
	}
	return strings.Join(words, ".")
}

// companyPaths are the terms that come from the company and its settings.
var companyPaths = map[string]string{
	"BT-27": "legal_name", "BT-28": "legal_name", "BT-29": "company_number", "BT-30": "company_number",
	"BT-31": "tax_information.tax_number", "BT-32": "tax_information.tax_number", "BT-34": "settings.endpoint_id",
	"BG-5": "address", "BT-35": "address.address_line_1", "BT-36": "address.address_line_2", "BT-37": "address.city", "BT-39": "address.province", "BT-38": "address.postal_code", "BT-40": "address.country_code",
	"BG-6": "settings.contact_name", "BT-41": "settings.contact_name", "BT-42": "settings.contact_phone", "BT-43": "settings.contact_email",
	"BG-16": "settings.iban", "BG-17": "settings.iban", "BT-84": "settings.iban", "BT-81": "settings.iban",
	"BT-23": "settings.format", "BT-24": "settings.format",
}

// bodyPaths are the terms of the document that come from the body.
var bodyPaths = map[string]string{
	"BT-1": "transaction_number", "BT-2": "transaction_date", "BT-3": "transaction_id", "BT-5": "currency_code", "BT-6": "exchange_rate",
	"BT-9": "due_date", "BT-10": "buyer_reference", "BT-11": "project_reference", "BT-12": "contract_reference", "BT-13": "order_reference", "BT-20": "payment_terms", "BT-22": "note", "BT-25": "reference_transaction_id",
	"BT-44": "customer.legal_name", "BT-45": "customer.trade_name", "BT-46": "customer.entity_number", "BT-47": "customer.entity_number",
	"BT-48": "customer.tax_information.tax_number", "BT-49": "customer.electronic_address",
	"BG-8": "customer.address", "BT-50": "customer.address.address_line_1", "BT-51": "customer.address.address_line_2", "BT-57": "customer.phone", "BT-58": "customer.email", "BT-52": "customer.address.city", "BT-53": "customer.address.postal_code",
	"BT-54": "customer.address.province", "BT-55": "customer.address.country_code",
	"BT-77": "customer.address.city", "BT-78": "customer.address.postal_code", "BT-80": "customer.address.country_code",
	"BT-70": "delivery.name", "BT-75": "delivery.address.address_line_1", "BT-76": "delivery.address.address_line_2", "BT-79": "delivery.address.province",
	"BT-83": "payments", "BT-120": "items", "BT-125": "attachments",
	"BT-72": "delivery_date", "BT-74": "period.to", "BT-59": "payee.name", "BT-89": "payments", "BT-90": "payments", "BT-91": "payments", "BT-111": "exchange_rate",
}

// linePaths are the members of an item that a line's terms come from.
var linePaths = map[string]string{
	"BT-126": "number", "BT-129": "quantity", "BT-130": "unit", "BT-131": "unit_price", "BT-146": "unit_price", "BT-149": "quantity", "BT-150": "unit",
	"BT-151": "tax_breakdowns.0.type", "BT-152": "tax_breakdowns.0.rate", "BT-153": "name", "BT-154": "description", "BT-155": "code", "BT-157": "ean",
	"BT-134": "period.from", "BT-135": "period.to", "BT-136": "discount", "BT-139": "discount", "BT-158": "classification", "BT-160": "classification", "BT-161": "classification",
}

// allowancePaths are those of a discount.
var allowancePaths = map[string]string{
	"BT-92": "unit_price", "BT-95": "tax_breakdowns.0.type", "BT-96": "tax_breakdowns.0.rate", "BT-97": "name", "BT-98": "name",
}

// chargePaths are those of a charge of the document.
var chargePaths = map[string]string{
	"BT-99": "unit_price", "BT-102": "tax_breakdowns.0.type", "BT-103": "tax_breakdowns.0.rate", "BT-104": "name", "BT-105": "name",
}
