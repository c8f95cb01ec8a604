// Package transaction is the business document: its types, its arithmetic
// ([Calculate]), the strict reading of a client's JSON ([Read]) and the faults of
// its shape. It is pure: no storage, no clock, no country. Law: amounts are
// integers of minor units or exact decimals; nothing here is a float.
package transaction

import (
	"time"

	"github.com/invopop/gobl/num"
)

// Kind is what a transaction does in the books.
type Kind string

// The kinds of transactions.
const (
	Invoice      Kind = "INVOICE"
	Adjustment   Kind = "ADJUSTMENT"   // a part of an original, with the whole payload
	Credit       Kind = "CREDIT"       // all of an original
	Cancellation Kind = "CANCELLATION" // the original should not exist
	Backfill     Kind = "BACKFILL"     // issued elsewhere, known here so that it can be corrected

	PaymentReport Kind = "PAYMENT" // money received for earlier transactions

	// Period is a document in which sales of a period are gathered. The service
	// makes it; no client submits one.
	Period Kind = "PERIOD"

	Response Kind = "RESPONSE" // what a company of ours answers to a document that it received
)

// Values of the enumerated fields, as docs/specification.md lists them.
const (
	Goods    = "GOODS"
	Services = "SERVICES"
	Discount = "DISCOUNT"

	Individual = "INDIVIDUAL"
	Business   = "BUSINESS"

	B2C = "B2C"
	B2B = "B2B"

	General     = "GENERAL"
	Export      = "EXPORT"
	SelfBilling = "SELF_BILLING"

	Full       = "FULL"
	Simplified = "SIMPLIFIED"

	VAT         = "VAT"
	Withholding = "RET"
	IEPS        = "IEPS" // Mexico's tax on single goods, which other taxes are due on as well

	Included = "INCLUDED_IN_UNIT_PRICE"
	Added    = "ADD_TO_UNIT_PRICE"

	// Types of a tax entry that is not withheld.
	TaxStandard = "STANDARD"
	TaxReduced  = "REDUCED"
	TaxZero     = "ZERO"
	TaxExempt   = "EXEMPT"
	TaxReverse  = "REVERSE"
	TaxExport   = "EXPORT"
	TaxIntraEU  = "INTRA_EU"
	TaxOutside  = "OUTSIDE"
)

// Transaction is the business document, read strictly from the client's JSON.
// Codes and texts stand as submitted; compare codes with [Transaction.Country],
// [Transaction.Currency] and [Transaction.Language], which are upper case.
type Transaction struct {
	Kind             Kind
	CountryCode      string
	LanguageCode     string
	CurrencyCode     string
	Date             time.Time // the instant; the day on a document is that of Draft.Location
	Number           string
	ID               string
	Items            []Item
	SupplierID       string
	SupplierOwnID    string // the client's own id of the supplier, in place of SupplierID
	Customer         *Party
	Issuer           *Party
	Answer           *Answer `json:",omitempty"` // of a Response
	OrderItems       []Item  `json:",omitempty"` // advance invoices: what was ordered
	ThirdParties     []Party `json:",omitempty"` // beside supplier, customer and issuer, each with its role
	Note             string  // as sent; documents sanitise it
	Payments         []Payment
	ReferenceID      string // transaction_id of the original of a correction or a payment; with several the first
	Reason           string // cancellations and adjustments, where a country has reasons to choose from
	ExchangeRate     *num.Amount
	ExchangeRateDate string
	AuthorityID1     string // backfill only
	References       References
	DueDate          string // YYYY-MM-DD, as DeliveryDate; empty: not said
	DeliveryDate     string
	PaymentTerms     string // may have several lines

	Period   *Span     `json:",omitempty"`
	Delivery *Delivery `json:",omitempty"`
	Payee    *Payee    `json:",omitempty"`

	Extras []Extra `json:",omitempty"` // allowances and charges as sent; Items has them behind the lines

	Attachments []Attachment `json:",omitempty"`

	Stated Stated

	Shares []Share `json:",omitempty"` // of payment reports at least one; of adjustments where they correct several transactions
}

// Share is how much of what was received, or of an adjustment, belongs to an
// earlier transaction.
type Share struct {
	TransactionID string
	Amount        int64 // minor units of that transaction's currency
}

// Stated are the totals as the client worked them out; nil: not said. They are
// compared with ours and never used.
type Stated struct {
	Gross, Net, Tax *int64
}

// References are what the buyer wants to find on the document.
type References struct {
	Buyer, Order, Contract, Project string
}

// Paid is what all payments come to.
func (t *Transaction) Paid() (sum int64) {
	for i := range t.Payments {
		sum += t.Payments[i].Amount
	}
	return sum
}

// Whole reports whether the transaction brings a whole document of its own,
// instead of leaving it to an original or to elsewhere.
func (t *Transaction) Whole() bool { return t.Kind == Invoice || t.Kind == Adjustment }

// Item is one line.
type Item struct {
	Number      int64
	Name        string
	Quantity    num.Amount // > 0, at most 6 decimals
	Unit        string
	UnitPrice   int64 // minor units
	Type        string
	Description string
	Code        string
	EAN         string
	Taxes       []Tax

	Discount        *LineDiscount
	Classifications []Classification
	Period          *Span  `json:",omitempty"`
	Extra           *Extra `json:",omitempty"` // it stands for an allowance or a charge of the document; nil: a line
	StatedNet       *int64 // net_price as the client worked it out
	Ancillary       bool   `json:",omitempty"` // shipping, packing, insurance: it shares the treatment of the document's goods
}

// LineDiscount lowers a line, in the terms of its price: with tax where the price
// includes it. Its sign follows the line.
type LineDiscount struct {
	Amount int64       // minor units, at least 0; where there is no rate
	Rate   *num.Amount // a percentage, at most 4 decimals
}

// Classification is a code of a list that others keep: HSN, CPV, UNSPSC, ….
type Classification struct {
	Scheme, Code string
}

// Tax is one tax entry of a line.
type Tax struct {
	Rate   num.Amount // a percentage: 25 or 12.5, at most 4 decimals
	Regime string     // VAT, IGIC, …; RET is withheld
	Mode   string     // Included or Added; empty on a withholding
	Type   string     // as sent, or derived by the pack
	Code   string     // the country's own reason
	Stated *int64     // amount as the client worked it out

	Quota     *num.Amount `json:",omitempty"` // in place of a rate: minor units for one of QuotaBase, at most 4 decimals
	QuotaBase *num.Amount `json:",omitempty"` // litres, pieces …; nil: the line's quantity
}

// Withheld reports whether the entry lowers what is payable instead of adding to the total.
func (t Tax) Withheld() bool { return t.Regime == Withholding }

// OnlyTax is the index of the line's only entry that is not withheld; -1 where
// there is none, or more than one.
func (i *Item) OnlyTax() int {
	at := -1
	for j := range i.Taxes {
		if i.Taxes[j].Withheld() {
			continue
		}
		if at >= 0 {
			return -1
		}
		at = j
	}
	return at
}

// Party is a customer or an issuer.
type Party struct {
	LegalName    string
	TradeName    string
	EntityNumber string
	Address      *Address
	TaxNumber    string
	TaxRegime    string
	Type         string
	Electronic   *ElectronicAddress // where documents are delivered electronically

	// Customers only.
	ID           string `json:",omitempty"` // of an onboarded company, whose facts are taken
	Email, Phone string
	FiscalCode   string // IT codice fiscale
	TaxUse       string // what the buyer uses the document for: MX UsoCFDI

	// Third parties only.
	Role  string      `json:",omitempty"` // the country's word for it
	Share *num.Amount `json:",omitempty"` // percentage of what was bought together
}

// ElectronicAddress is an EAS code with an identifier, or SchemeSDI or SchemePEC.
type ElectronicAddress struct {
	Scheme, ID string
}

// The schemes of electronic addresses that are Italy's own.
const (
	SchemeSDI = "IT:SDI" // a recipient's code of the exchange system, 7 characters, 6 of a public office
	SchemePEC = "IT:PEC" // certified mail
)

// Address is a postal address; countries use different members of it.
type Address struct {
	CountryCode   string `json:"country_code,omitempty"`
	City          string `json:"city,omitempty"`
	PostalCode    string `json:"postal_code,omitempty"`
	AddressLine1  string `json:"address_line_1,omitempty"`
	AddressLine2  string `json:"address_line_2,omitempty"`
	Province      string `json:"province,omitempty"`
	Region        string `json:"region,omitempty"`
	State         string `json:"state,omitempty"`
	District      string `json:"district,omitempty"`
	Canton        string `json:"canton,omitempty"`
	CityCode      string `json:"city_code,omitempty"`
	Neighbourhood string `json:"neighbourhood,omitempty"`
	Number        string `json:"number,omitempty"`
	Prefix        string `json:"prefix,omitempty"`
	Suffix        string `json:"suffix,omitempty"`
}

// Payment is one way the total is paid.
type Payment struct {
	Type   string
	Code   string
	Amount int64 // minor units

	IBAN      string // as sent, blanks and all
	Reference string
	Mandate   *Mandate `json:",omitempty"`
	Date      string   `json:",omitempty"` // YYYY-MM-DD on which the money came; empty: not said
}
