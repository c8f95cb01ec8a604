// Package result is the wire form of what a client reads of an operation: the
// members of docs/specification.md, section 6, made of the body, and completed when the operation ends.
//
// Results are stored with the operation by the package filing, in the commit that
// settles it. Reading one looks at the tables operations, retired_operations and
// period_entries: the authority's ids of a sale that was gathered by period are
// those of its period's document.
package result

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/operation"
	"tributary/internal/transaction"
)

// The types of this file are components of the published API description under the
// names that they have here.

// Result is what GET /v1/transactions/{operation_id} answers: every member
// is always there, null or empty while it is unknown (docs/specification.md, section 6).
type Result struct {
	Row
	Attachments []Attachment     `json:"attachments"`
	Items       []ResultItem     `json:"items"`
	Allowances  []ResultExtra    `json:"allowances,omitempty"`
	Charges     []ResultExtra    `json:"charges,omitempty"`
	TaxSummary  []ResultTaxSum   `json:"tax_summary,omitempty"`
	Payments    []ResultPayment  `json:"payments"`
	OrderItems  []ResultItem     `json:"order_items,omitempty"`
	References  []ResultShare    `json:"references,omitempty"`
	Lifecycle   []LifecycleEntry `json:"lifecycle"`
	Related     []Related        `json:"related,omitempty"`
}

// Related is another document that this one belongs to, in the other direction or of the same sender.
type Related struct {
	OperationID string   `json:"operation_id"`
	Direction   string   `json:"direction"`
	Relation    Relation `json:"relation"`
}

// Relation says how a related document belongs to the one that names it.
type Relation string

// The relations.
const (
	SameDocument Relation = "SAME_DOCUMENT" // one company of the client sent it, another received it
	RefersTo     Relation = "REFERS_TO"
	ReferredBy   Relation = "REFERRED_BY"
	Answers      Relation = "ANSWERS" // of a response
	AnsweredBy   Relation = "ANSWERED_BY"
)

// The directions of documents.
const (
	Sent     = "SENT"
	Received = "RECEIVED"
)

// Optional is a text that prints as null where it is empty.
type Optional string

// MarshalJSON prints it.
func (o Optional) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(o))
}

// UnmarshalJSON reads null as the empty text.
func (o *Optional) UnmarshalJSON(text []byte) error {
	var s *string
	err := json.Unmarshal(text, &s)
	*o = Optional(Text(s))
	return err
}

// Row is a result as lists show it: without what grows with the document.
type Row struct {
	OperationID     string           `json:"operation_id"`
	TransactionID   Optional         `json:"transaction_id"`
	Number          *string          `json:"transaction_number"`
	UniqueNumber    *string          `json:"unique_transaction_number"`
	Date            string           `json:"transaction_date"`
	GeneratedAt     *string          `json:"document_generated_at"`
	ReportedAt      *string          `json:"reported_at"`
	AuthorityID1    *string          `json:"tax_authority_id_1"`
	AuthorityID2    *string          `json:"tax_authority_id_2"`
	Status          operation.Status `json:"status"`
	Kind            transaction.Kind `json:"kind"`
	ReferenceID     *string          `json:"reference_transaction_id"`
	BusinessModel   string           `json:"business_model"`
	Direction       string           `json:"direction"`
	OperationRegime string           `json:"operation_regime"`
	Type            string           `json:"type"`
	Response        *ResultAnswer    `json:"response,omitempty"`        // of an answer to a received document
	DocumentFormat  string           `json:"document_format,omitempty"` // of a received document
	DocumentType    string           `json:"document_type,omitempty"`   // its own word for what it is
	CountryCode     string           `json:"country_code"`
	CurrencyCode    *string          `json:"currency_code"`
	LanguageCode    *string          `json:"language_code"`
	Supplier        ResultSupplier   `json:"supplier"`
	Customer        *ResultParty     `json:"customer"`
	Issuer          *ResultParty     `json:"issuer"`
	ThirdParties    []*ResultParty   `json:"third_parties,omitempty"`
	Note            *string          `json:"note"`
	ExchangeRate    *digits          `json:"exchange_rate"`
	ExchangeDate    *string          `json:"exchange_rate_date"`
	QRCode          *string          `json:"qr_code"`
	TotalAmount     *int64           `json:"total_amount"`
	TotalNetAmount  *int64           `json:"total_net_amount"`
	TotalTaxAmount  *int64           `json:"total_tax_amount"`
	TotalWithheld   *int64           `json:"total_withheld_amount"`
	Series          *string          `json:"series"`
	RoundingAmount  int64            `json:"rounding_amount"`
	LatestBy        *string          `json:"latest_by"`
	ResultTerms
	Corrections []CorrectionEntry `json:"corrections"`
	Errors      []fault.Fault     `json:"errors"`
}

// ResultAnswer is what a company answered to a document that it received.
type ResultAnswer struct {
	OperationID string `json:"operation_id"` // of the document
	Status      string `json:"status"`
	Reason      string `json:"reason,omitempty"`
	Note        string `json:"note,omitempty"`
}

// ResultTerms are references and terms of the document as submitted.
type ResultTerms struct {
	BuyerReference    *string `json:"buyer_reference"`
	OrderReference    *string `json:"order_reference"`
	ContractReference *string `json:"contract_reference"`
	ProjectReference  *string `json:"project_reference"`
	DueDate           *string `json:"due_date"`
	DeliveryDate      *string `json:"delivery_date"`
	PaymentTerms      *string `json:"payment_terms"`

	Period   *transaction.Span     `json:"period,omitempty"`
	Delivery *transaction.Delivery `json:"delivery,omitempty"`
	Payee    *transaction.Payee    `json:"payee,omitempty"`
}

// Attachment points to a document; its address is fresh and short-lived.
type Attachment struct {
	Kind        string `json:"kind"`
	ResourceID  string `json:"resource_id"`
	ResourceURL string `json:"resource_url"`
	Type        string `json:"type"`
	Name        string `json:"name,omitempty"` // CLIENT: as submitted
}

// ResultItem is a line with its amounts.
type ResultItem struct {
	Number      int64       `json:"number"`
	Name        string      `json:"name"`
	Description *string     `json:"description"`
	Code        *string     `json:"code"`
	EAN         *string     `json:"ean"`
	Unit        *string     `json:"unit"`
	Quantity    digits      `json:"quantity"`
	UnitPrice   int64       `json:"unit_price"`
	NetPrice    int64       `json:"net_price"`
	Type        string      `json:"type"`
	Taxes       []ResultTax `json:"tax_breakdown"`

	Discount        *ResultDiscount        `json:"discount,omitempty"`
	Allowances      []ResultExtra          `json:"allowances,omitempty"` // of a received line
	Charges         []ResultExtra          `json:"charges,omitempty"`
	Period          *transaction.Span      `json:"period,omitempty"`
	Classifications []ResultClassification `json:"classification,omitempty"`
}

// ResultDiscount is what was taken from a line, in the terms of its price.
type ResultDiscount struct {
	Amount int64   `json:"amount"`
	Rate   *digits `json:"rate"`
}

// ResultExtra is an allowance or a charge of the document with its amounts: Amount
// in the terms of prices, NetPrice without tax.
type ResultExtra struct {
	Reason   string      `json:"reason"`
	Code     string      `json:"code,omitempty"` // a received document's own word for it
	Amount   int64       `json:"amount"`
	Rate     *digits     `json:"rate"`
	NetPrice int64       `json:"net_price"`
	Taxes    []ResultTax `json:"tax_breakdown"`
}

// ResultClassification is a classification as submitted.
type ResultClassification struct {
	Scheme string `json:"scheme"`
	Code   string `json:"code"`
}

// ResultTax is one tax entry with its amount.
type ResultTax struct {
	Amount int64   `json:"amount"`
	Rate   digits  `json:"rate"`
	Regime string  `json:"regime"`
	Type   string  `json:"type"`
	Code   *string `json:"code,omitempty"`
	Mode   *string `json:"application_mode"`
	Reason *string `json:"tax_reason"` // the country's own words for the code

	Quota     *digits `json:"quota,omitempty"`
	QuotaBase *digits `json:"quota_base,omitempty"`
}

// ResultTaxSum is the tax of one rate or exemption, as a received document states it.
type ResultTaxSum struct {
	Base   int64   `json:"base"`
	Amount int64   `json:"amount"`
	Rate   digits  `json:"rate"`
	Regime string  `json:"regime"`
	Type   string  `json:"type"`
	Code   *string `json:"code"`
	Reason *string `json:"tax_reason"`
}

// ResultPayment is a payment as submitted; negated in credits and cancellations.
type ResultPayment struct {
	Type      string  `json:"type"`
	Code      *string `json:"code"`
	Amount    int64   `json:"amount"`
	IBAN      *string `json:"iban"`
	Reference *string `json:"reference"`
	Date      *string `json:"date,omitempty"`

	Mandate *transaction.Mandate `json:"mandate,omitempty"`
}

// ResultShare is what a payment was for, or what an adjustment of several corrects; of a received document what it
// says of an earlier one, which has no transaction_id.
type ResultShare struct {
	TransactionID Optional `json:"transaction_id"`
	Amount        int64    `json:"amount"`
	Number        string   `json:"transaction_number,omitempty"`
	Date          string   `json:"transaction_date,omitempty"`
	AuthorityID1  string   `json:"tax_authority_id_1,omitempty"`
	Relation      string   `json:"relation,omitempty"`
}

// ResultSupplier names the supplier by both ids. Of a received document it is the sender as a party.
type ResultSupplier struct {
	ID         *string `json:"id"`
	ExternalID *string `json:"external_id"`
	*ResultParty
}

// ResultParty is a party as submitted.
type ResultParty struct {
	Role           string               `json:"role,omitempty"` // of a third party
	Share          *digits              `json:"share,omitempty"`
	ID             string               `json:"id,omitempty"`          // of the company whose facts these are, where it was named so
	ExternalID     string               `json:"external_id,omitempty"` // of the company that a document was sent to
	LegalName      string               `json:"legal_name"`
	TradeName      *string              `json:"trade_name"`
	EntityNumber   *string              `json:"entity_number"`
	Address        *transaction.Address `json:"address"`
	TaxInformation *ResultTaxNumber     `json:"tax_information"`
	Type           string               `json:"type"`
	Electronic     *ResultElectronic    `json:"electronic_address"`
	Email          *string              `json:"email"`
	Phone          *string              `json:"phone"`
}

// ResultElectronic is an electronic address as submitted.
type ResultElectronic struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
}

// ResultTaxNumber is how a party is known to its tax authority.
type ResultTaxNumber struct {
	TaxNumber  *string `json:"tax_number"`
	Regime     *string `json:"regime"`
	FiscalCode *string `json:"fiscal_code"`
	Use        *string `json:"use"`
}

// CorrectionEntry is a correction in its original's result.
type CorrectionEntry struct {
	TransactionID string           `json:"transaction_id"`
	OperationID   string           `json:"operation_id"`
	Kind          transaction.Kind `json:"kind"`
	Status        operation.Status `json:"status"`
}

// LifecycleEntry is one entry of a result's life cycle.
type LifecycleEntry struct {
	At       string           `json:"at"`
	Code     string           `json:"code"`
	Name     string           `json:"name"`
	Source   country.Source   `json:"source"`
	Severity country.Severity `json:"severity"`
	Message  string           `json:"message"`
}

// digits prints as a JSON number with exactly its digits.
type digits string

func (d digits) MarshalJSON() ([]byte, error) { return []byte(d), nil }

// UnmarshalJSON keeps the digits.
func (d *digits) UnmarshalJSON(text []byte) error {
	*d = digits(text)
	return nil
}

func decimalOf(a num.Amount) digits {
	text := a.String()
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return digits(text)
}

// perhaps is a number that need not be there.
func perhaps(a *num.Amount) *digits {
	if a == nil {
		return nil
	}
	d := decimalOf(*a)
	return &d
}

// Stamp is how every instant is printed.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// UnknownSupplier begins the id of a supplier whose external_id no company has:
// the attempt ends as one with an unknown id does.
const UnknownSupplier = "external_id:"

func opt(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Text is a member that need not be there.
func Text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Describe fills in what the body says: the same in every state.
func Describe(o *operation.Operation, pack country.Pack, supplier country.Supplier) *Result {
	t := o.Document
	items := pack.TypedItems(country.Case{Transaction: t, Totals: o.Totals, UseCase: o.UseCase, Now: o.AcceptedAt})
	sign := int64(1)
	if o.Whole() {
		sign = -1
	}
	r := &Result{Attachments: []Attachment{}, Items: []ResultItem{}, Payments: []ResultPayment{}, Lifecycle: []LifecycleEntry{}}
	r.Row = Row{
		OperationID: o.ID, TransactionID: Optional(o.TransactionID), Number: opt(t.Number), Date: Stamp(t.Date), Status: operation.Processing, Kind: o.Kind,
		ReferenceID: opt(o.ReferenceID), BusinessModel: country.BusinessModel(t), Direction: Sent,
		OperationRegime: country.OperationRegime(t, items), Type: country.DocumentType(t), CountryCode: t.CountryCode,
		CurrencyCode: opt(t.CurrencyCode), LanguageCode: opt(t.LanguageCode),
		Supplier: ResultSupplier{ID: opt(o.SupplierID), ExternalID: opt(supplier.ExternalID)}, Customer: party(t.Customer), Issuer: party(t.Issuer),
		Series: opt(o.Series), Note: opt(t.Note), ExchangeDate: opt(t.ExchangeRateDate), Corrections: []CorrectionEntry{}, Errors: append([]fault.Fault{}, o.Warnings...),
	}
	r.answer(t.Answer)
	for i := range t.ThirdParties {
		r.ThirdParties = append(r.ThirdParties, party(&t.ThirdParties[i]))
	}
	if own, unknown := strings.CutPrefix(o.SupplierID, UnknownSupplier); unknown {
		r.Supplier = ResultSupplier{ExternalID: opt(own)}
	}
	r.ResultTerms = ResultTerms{
		BuyerReference: opt(t.References.Buyer), OrderReference: opt(t.References.Order), ContractReference: opt(t.References.Contract),
		ProjectReference: opt(t.References.Project), DueDate: opt(t.DueDate), DeliveryDate: opt(t.DeliveryDate), PaymentTerms: opt(t.PaymentTerms),
		Period: t.Period, Delivery: t.Delivery, Payee: t.Payee,
	}
	if r.LanguageCode == nil && len(pack.Facts.Languages) > 0 {
		r.LanguageCode = &pack.Facts.Languages[0]
	}
	if t.ExchangeRate != nil {
		rate := decimalOf(*t.ExchangeRate)
		r.ExchangeRate = &rate
	}
	for i, item := range items {
		line := resultItem(item, o.Totals.Lines[i], sign)
		reasons(line.Taxes, pack.Facts)
		r.add(line, item.Extra)
	}
	order, _ := transaction.Calculate(t.OrderItems)
	for i := range order.Lines {
		r.OrderItems = append(r.OrderItems, resultItem(t.OrderItems[i], order.Lines[i], 1))
	}
	for _, p := range t.Payments {
		r.Payments = append(r.Payments, ResultPayment{Type: p.Type, Code: opt(p.Code), Amount: sign * p.Amount, IBAN: opt(p.IBAN), Reference: opt(p.Reference), Date: opt(p.Date), Mandate: p.Mandate})
	}
	if len(items) > 0 || o.Kind == transaction.Period {
		gross, net, tax := sign*o.Totals.Gross, sign*o.Totals.Net, sign*o.Totals.Tax
		r.TotalAmount, r.TotalNetAmount, r.TotalTaxAmount = &gross, &net, &tax
		withheld := sign * o.Totals.Withheld
		r.TotalWithheld = &withheld
	}
	for _, p := range t.Shares {
		r.References = append(r.References, ResultShare{TransactionID: Optional(p.TransactionID), Amount: p.Amount})
	}
	if o.Kind == transaction.PaymentReport && len(t.Shares) > 0 {
		received := int64(0)
		for i := range t.Payments {
			received += t.Payments[i].Amount
		}
		r.TotalAmount = &received
	}
	if at := pack.LatestBy(t.Date); !at.IsZero() && o.Kind != transaction.PaymentReport && o.Kind != transaction.Period && t.Answer == nil {
		r.LatestBy = opt(Stamp(at))
	}
	return r
}

// answer shows what an answer to a received document says.
func (r *Result) answer(a *transaction.Answer) {
	if a != nil {
		r.BusinessModel = transaction.B2B
		r.Response = &ResultAnswer{OperationID: a.To.OperationID, Status: a.Status, Reason: a.Reason, Note: a.Note}
	}
}

// add keeps a line, or what it stands for: an allowance's amounts are what it takes.
func (r *Result) add(line ResultItem, of *transaction.Extra) {
	if of == nil {
		r.Items = append(r.Items, line)
		return
	}
	e := ResultExtra{Reason: line.Name, Amount: line.UnitPrice, Rate: perhaps(of.Rate), NetPrice: line.NetPrice, Taxes: line.Taxes}
	if of.Charge {
		r.Charges = append(r.Charges, e)
		return
	}
	e.Amount, e.NetPrice = -e.Amount, -e.NetPrice
	for i := range e.Taxes {
		e.Taxes[i].Amount = -e.Taxes[i].Amount
	}
	r.Allowances = append(r.Allowances, e)
}

func resultItem(item transaction.Item, line transaction.Line, sign int64) ResultItem {
	r := ResultItem{
		Number: item.Number, Name: item.Name, Description: opt(item.Description), Code: opt(item.Code), EAN: opt(item.EAN), Unit: opt(item.Unit),
		Quantity: decimalOf(item.Quantity), UnitPrice: sign * item.UnitPrice, NetPrice: sign * line.Net, Type: item.Type, Taxes: []ResultTax{}, Period: item.Period,
	}
	for i, tax := range item.Taxes {
		r.Taxes = append(r.Taxes, ResultTax{Amount: sign * line.Taxes[i], Rate: decimalOf(tax.Rate), Regime: tax.Regime, Type: tax.Type, Code: opt(tax.Code), Mode: opt(string(tax.Mode)), Quota: perhaps(tax.Quota), QuotaBase: perhaps(tax.QuotaBase)})
	}
	if item.Discount != nil {
		r.Discount = &ResultDiscount{Amount: sign * line.Discount}
		if item.Discount.Rate != nil {
			rate := decimalOf(*item.Discount.Rate)
			r.Discount.Rate = &rate
		}
	}
	for _, c := range item.Classifications {
		r.Classifications = append(r.Classifications, ResultClassification(c))
	}
	return r
}

// reasons puts the country's own words beside its codes.
func reasons(taxes []ResultTax, facts country.Facts) {
	for i := range taxes {
		for _, known := range facts.ReasonCodes {
			if taxes[i].Code != nil && strings.EqualFold(known.Code, *taxes[i].Code) {
				taxes[i].Reason = opt(known.Meaning)
			}
		}
	}
}

func party(p *transaction.Party) *ResultParty {
	if p == nil || p.ID != "" && p.LegalName == "" { // a company that nobody knows
		return nil
	}
	r := &ResultParty{Role: p.Role, Share: perhaps(p.Share), ID: p.ID, LegalName: p.LegalName, TradeName: opt(p.TradeName), EntityNumber: opt(p.EntityNumber), Address: p.Address, Type: p.Type, Email: opt(p.Email), Phone: opt(p.Phone)}
	if p.TaxNumber+p.TaxRegime+p.FiscalCode+p.TaxUse != "" {
		r.TaxInformation = &ResultTaxNumber{TaxNumber: opt(p.TaxNumber), Regime: opt(p.TaxRegime), FiscalCode: opt(p.FiscalCode), Use: opt(p.TaxUse)}
	}
	if p.Electronic != nil {
		r.Electronic = &ResultElectronic{Scheme: p.Electronic.Scheme, ID: p.Electronic.ID}
	}
	return r
}
