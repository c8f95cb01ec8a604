package transaction

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/gobl/num"
)

// FieldPaths lists every member that a request may have, as dotted paths with
// "*" for any index. Rules of [Facts] may name these and no others; the reader
// of requests and this list are held together by a test.
func FieldPaths() []string {
	paths := []string{"country_code", "language_code", "currency_code", "transaction_date", "transaction_number",
		"transaction_id", "reference_transaction_id", "reason", "note", "exchange_rate", "exchange_rate_date",
		"tax_authority_id_1", "supplier", "supplier.id", "supplier.external_id", "buyer_reference", "order_reference",
		"contract_reference",
		"project_reference", "due_date", "delivery_date", "payment_terms", "period", "period.from", "period.to",
		"payee", "payee.name", "payee.id", "payee.iban", "delivery", "delivery.name", "delivery.address", memberTotal,
		memberTotalNet, memberTotalTax}
	for _, items := range []string{"items", memberOrder} {
		paths = append(paths, below(items, "number", "name", "quantity", "unit", "unit_price", "type", "description", "code", "ean",
			"net_price", "discount", "discount.amount", "discount.rate", "ancillary", "period", "period.from", "period.to")...)
		paths = append(paths, below(items+".*.tax_breakdowns", taxMembers...)...)
		paths = append(paths, below(items+".*.classification", "scheme", "code")...)
	}
	paths = append(paths, below(memberAttachments, "name", "type", "content")...)
	for _, extras := range []string{memberAllowances, memberCharges} {
		paths = append(paths, below(extras, "amount", "rate", "reason")...)
		paths = append(paths, below(extras+".*.tax_breakdowns", taxMembers...)...)
	}
	paths = append(paths, below("payments", "type", "code", "amount", "iban", "reference", "date", "mandate",
		"mandate.reference", "mandate.creditor_id")...)
	paths = append(paths, below(memberShares, "transaction_id", "amount")...)
	paths = append(paths, "customer.id", "customer.email", "customer.phone", "customer.tax_information.fiscal_code",
		"customer.tax_information.use")
	paths = append(paths, memberThird, memberThird+".*.role", memberThird+".*.share")
	for _, party := range []string{"customer", "issuer", memberThird + ".*"} {
		if party != memberThird+".*" {
			paths = append(paths, party)
		}
		for _, member := range []string{"legal_name", "trade_name", "entity_number", "type", "tax_information",
			"tax_information.tax_number", "tax_information.regime", "address", "address.country_code", "address.city",
			"address.postal_code", "address.address_line_1", "address.address_line_2", "address.province", "address.region",
			"address.state", "address.district", "address.canton", "address.city_code", "address.neighbourhood",
			"address.number", "address.prefix", "address.suffix", "electronic_address", "electronic_address.scheme",
			"electronic_address.id"} {
			paths = append(paths, party+"."+member)
		}
	}
	for _, member := range addressMembers {
		paths = append(paths, "delivery.address."+member)
	}
	slices.Sort(paths)
	return paths
}

var taxMembers = []string{"rate", "regime", "application_mode", "type", "code", "amount", "quota", "quota_base"}

var addressMembers = []string{"country_code", "city", "postal_code", "address_line_1", "address_line_2", "province",
	"region", "state", "district",
	"canton", "city_code", "neighbourhood", "number", "prefix", "suffix"}

// below returns an array's own path and those of the members of its entries.
func below(array string, members ...string) []string {
	paths := []string{array}
	for _, member := range members {
		paths = append(paths, array+".*."+member)
	}
	return paths
}

// Place says which entry of an array is meant: the index of an item or a
// payment, and of a tax entry or a classification within an item.
type Place struct {
	Entry, Tax int
}

// Path puts the indices into a path with "*".
func (p Place) Path(path string) string {
	path = strings.Replace(path, "*", strconv.Itoa(p.Entry), 1)
	return strings.Replace(path, "*", strconv.Itoa(p.Tax), 1)
}

// EachField visits every place of the transaction that a path of [FieldPaths]
// names, with the value as text; empty means that the client sent none.
// Numbers are visited as the client could have written them.
//
// A member of a party or of an array's entry is visited once for each party or
// entry that is there, whether or not the objects between them are: without a
// customer, nothing below "customer" is missing; with one,
// "customer.address.city" is missing also when there is no address. It reports
// false when the path is none of the list's.
func (t *Transaction) EachField(path string, visit func(at Place, text string)) bool {
	head, rest, _ := strings.Cut(path, ".")
	switch head {
	case "items":
		return t.eachItemField(rest, visit)
	case "payments":
		return t.eachPaymentField(rest, visit)
	case memberShares:
		return t.eachShareField(rest, visit)
	case memberOrder:
		return (&Transaction{Items: t.OrderItems}).eachItemField(rest, visit)
	case memberThird:
		return t.eachThirdField(rest, visit)
	case memberAttachments:
		return t.eachAttachmentField(rest, visit)
	case memberAllowances, memberCharges:
		return t.eachExtraField(head, rest, visit)
	case "customer":
		return t.Customer.eachField(rest, visit)
	case "issuer":
		return t.Issuer.eachField(rest, visit)
	case "supplier":
		if rest == "external_id" {
			visit(Place{}, t.SupplierOwnID)
			return true
		}
		visit(Place{}, t.SupplierID)
		return rest == "" || rest == "id"
	}
	if text, known := t.field(path); known {
		visit(Place{}, text)
		return true
	}
	return t.supplyField(path, visit)
}

func (t *Transaction) field(path string) (string, bool) {
	switch path {
	case "country_code":
		return t.CountryCode, true
	case "language_code":
		return t.LanguageCode, true
	case "currency_code":
		return t.CurrencyCode, true
	case "transaction_date":
		if t.Date.IsZero() {
			return "", true
		}
		return t.Date.UTC().Format(time.RFC3339), true
	case "transaction_number":
		return t.Number, true
	case "transaction_id":
		return t.ID, true
	case "reference_transaction_id":
		return t.ReferenceID, true
	case "reason":
		return t.Reason, true
	case "note":
		return t.Note, true
	case "exchange_rate":
		if t.ExchangeRate == nil {
			return "", true
		}
		return t.ExchangeRate.MinimalString(), true
	case "exchange_rate_date":
		return t.ExchangeRateDate, true
	case "tax_authority_id_1":
		return t.AuthorityID1, true
	case "due_date":
		return t.DueDate, true
	case "delivery_date":
		return t.DeliveryDate, true
	case "payment_terms":
		return t.PaymentTerms, true
	case memberTotal:
		return integer(t.Stated.Gross), true
	case memberTotalNet:
		return integer(t.Stated.Net), true
	case memberTotalTax:
		return integer(t.Stated.Tax), true
	}
	reference := t.References.member(path)
	if reference == nil {
		return "", false
	}
	return *reference, true
}

// member returns the reference with the name it has in a request, or nil.
func (r *References) member(name string) *string {
	switch name {
	case "buyer_reference":
		return &r.Buyer
	case "order_reference":
		return &r.Order
	case "contract_reference":
		return &r.Contract
	case "project_reference":
		return &r.Project
	}
	return nil
}

// integer is an amount as it could have been written; nothing for none.
func integer(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// count stands for an array: how many entries it has, or nothing.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (t *Transaction) eachItemField(path string, visit func(Place, string)) bool {
	if path == "" {
		visit(Place{}, count(len(t.Lines())))
		return true
	}
	member, ok := strings.CutPrefix(path, "*.")
	if !ok {
		return false
	}
	if member, ok := strings.CutPrefix(member, "tax_breakdowns.*."); ok {
		_, known := (&Tax{}).field(member)
		for i := range t.Items {
			for j := range t.Items[i].Taxes {
				text, _ := t.Items[i].Taxes[j].field(member)
				visit(Place{Entry: i, Tax: j}, text)
			}
		}
		return known
	}
	if member, ok := strings.CutPrefix(member, "classification.*."); ok {
		_, known := (&Classification{}).field(member)
		for i := range t.Items {
			for j := range t.Items[i].Classifications {
				text, _ := t.Items[i].Classifications[j].field(member)
				visit(Place{Entry: i, Tax: j}, text)
			}
		}
		return known
	}
	_, known := (&Item{}).field(member)
	for i := range t.Items {
		if t.Items[i].Extra != nil && member != "tax_breakdowns" {
			continue // it has no such members
		}
		text, _ := t.Items[i].field(member)
		visit(Place{Entry: i}, text)
	}
	return known
}

func (i *Item) field(member string) (string, bool) {
	switch member {
	case "number":
		return strconv.FormatInt(i.Number, 10), true
	case "name":
		return i.Name, true
	case "quantity":
		return i.Quantity.MinimalString(), true
	case "unit":
		return i.Unit, true
	case "unit_price":
		return strconv.FormatInt(i.UnitPrice, 10), true
	case "type":
		return i.Type, true
	case "description":
		return i.Description, true
	case "code":
		return i.Code, true
	case "ean":
		return i.EAN, true
	case "tax_breakdowns":
		return count(len(i.Taxes)), true
	case "classification":
		return count(len(i.Classifications)), true
	case "net_price":
		return integer(i.StatedNet), true
	case "ancillary":
		if !i.Ancillary {
			return "", true
		}
		return "true", true
	}
	if strings.HasPrefix(member, "discount") {
		return i.Discount.field(member)
	}
	if strings.HasPrefix(member, "period") {
		return i.Period.field(member)
	}
	return "", false
}

func (d *LineDiscount) field(member string) (string, bool) {
	amount, rate := "", ""
	switch {
	case d == nil:
	case d.Rate != nil:
		rate = d.Rate.MinimalString()
	default:
		amount = strconv.FormatInt(d.Amount, 10)
	}
	switch member {
	case "discount":
		return amount + rate, true
	case "discount.amount":
		return amount, true
	case "discount.rate":
		return rate, true
	}
	return "", false
}

func (c *Classification) field(member string) (string, bool) {
	switch member {
	case "scheme":
		return c.Scheme, true
	case "code":
		return c.Code, true
	}
	return "", false
}

func (t *Tax) field(member string) (string, bool) {
	switch member {
	case "rate":
		return t.Rate.MinimalString(), true
	case "regime":
		return t.Regime, true
	case "application_mode":
		return t.Mode, true
	case "amount":
		return integer(t.Stated), true
	case "quota":
		return minimal(t.Quota), true
	case "quota_base":
		return minimal(t.QuotaBase), true
	case "type":
		return t.Type, true
	case "code":
		return t.Code, true
	}
	return "", false
}

func (t *Transaction) eachPaymentField(path string, visit func(Place, string)) bool {
	if path == "" {
		visit(Place{}, count(len(t.Payments)))
		return true
	}
	member, ok := strings.CutPrefix(path, "*.")
	if !ok {
		return false
	}
	_, known := (&Payment{}).field(member)
	for i := range t.Payments {
		text, _ := t.Payments[i].field(member)
		visit(Place{Entry: i}, text)
	}
	return known
}

func (t *Transaction) eachShareField(path string, visit func(Place, string)) bool {
	switch path {
	case "":
		visit(Place{}, count(len(t.Shares)))
	case "*.transaction_id":
		for i := range t.Shares {
			visit(Place{Entry: i}, t.Shares[i].TransactionID)
		}
	case "*.amount":
		for i := range t.Shares {
			visit(Place{Entry: i}, strconv.FormatInt(t.Shares[i].Amount, 10))
		}
	default:
		return false
	}
	return true
}

func (p *Payment) field(member string) (string, bool) {
	switch member {
	case "type":
		return p.Type, true
	case "code":
		return p.Code, true
	case "amount":
		return strconv.FormatInt(p.Amount, 10), true
	case "iban":
		return p.IBAN, true
	case "reference":
		return p.Reference, true
	case "date":
		return p.Date, true
	}
	m := p.Mandate
	if m == nil {
		m = &Mandate{}
	}
	switch member {
	case "mandate", "mandate.reference":
		return m.Reference, true
	case "mandate.creditor_id":
		return m.CreditorID, true
	}
	return "", false
}

func (p *Party) eachField(path string, visit func(Place, string)) bool {
	if path == "" {
		text := ""
		if p != nil {
			text = "1"
		}
		visit(Place{}, text)
		return true
	}
	if p == nil {
		_, known := (&Party{}).field(path)
		return known
	}
	text, known := p.field(path)
	if known {
		visit(Place{}, text)
	}
	return known
}

func (p *Party) field(path string) (string, bool) {
	switch path {
	case "legal_name":
		return p.LegalName, true
	case "trade_name":
		return p.TradeName, true
	case "entity_number":
		return p.EntityNumber, true
	case "type":
		return p.Type, true
	case "id":
		return p.ID, true
	case "email":
		return p.Email, true
	case "phone":
		return p.Phone, true
	case "tax_information":
		return p.TaxNumber + p.TaxRegime + p.FiscalCode + p.TaxUse, true
	case "tax_information.fiscal_code":
		return p.FiscalCode, true
	case "tax_information.use":
		return p.TaxUse, true
	case "tax_information.tax_number":
		return p.TaxNumber, true
	case "tax_information.regime":
		return p.TaxRegime, true
	case "address":
		if p.Address == nil {
			return "", true
		}
		return "1", true
	}
	if strings.HasPrefix(path, "electronic_address") {
		return p.Electronic.field(path)
	}
	member, ok := strings.CutPrefix(path, "address.")
	if !ok {
		return "", false
	}
	address := p.Address
	if address == nil {
		address = &Address{}
	}
	text := address.Member(member)
	if text == nil {
		return "", false
	}
	return *text, true
}

func (e *ElectronicAddress) field(path string) (string, bool) {
	if e == nil {
		e = &ElectronicAddress{}
	}
	switch path {
	case "electronic_address", "electronic_address.id":
		return e.ID, true
	case "electronic_address.scheme":
		return e.Scheme, true
	}
	return "", false
}

// Member returns the member of an address with the name it has in a request,
// or nil when an address has no such member.
func (a *Address) Member(name string) *string {
	switch name {
	case "country_code":
		return &a.CountryCode
	case "city":
		return &a.City
	case "postal_code":
		return &a.PostalCode
	case "address_line_1":
		return &a.AddressLine1
	case "address_line_2":
		return &a.AddressLine2
	case "province":
		return &a.Province
	case "region":
		return &a.Region
	case "state":
		return &a.State
	case "district":
		return &a.District
	case "canton":
		return &a.Canton
	case "city_code":
		return &a.CityCode
	case "neighbourhood":
		return &a.Neighbourhood
	case "number":
		return &a.Number
	case "prefix":
		return &a.Prefix
	case "suffix":
		return &a.Suffix
	}
	return nil
}

// minimal is a number that need not be there.
func minimal(a *num.Amount) string {
	if a == nil {
		return ""
	}
	return a.MinimalString()
}
