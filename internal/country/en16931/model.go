// Package en16931 is the European invoice: the semantic model of EN 16931-1 as
// Go types, its business rules, and the two syntaxes that carry it, UBL 2.1
// and UN/CEFACT CII, written and read.
//
// It owns the terms (BT and BG numbers stand beside the fields), the code
// lists, the electronic addresses, the rounding of a document and the making
// of an [Invoice] from a transaction. It refuses to own a country: what is
// national comes in as a [Profile] and as data of the packs. Law: a document
// that [Check] finds nothing in is accepted by the official rules of its
// profile, and reading what was written gives the same model.
//
// The sums of lines are always the transaction's own: BT-106, BT-109 and BT-116 are
// exact in every category, and nothing is ever spread over lines to make a total
// fit. What differs is the tax, and how is docs/decisions/0033. What nobody reads
// of a received document is reported by its path, so that an invoice is never
// silently poorer than it was.
package en16931

// Invoice is one document of EN 16931: an invoice or a credit note.
type Invoice struct {
	Number              string // BT-1
	IssueDate           Date   // BT-2
	TypeCode            string // BT-3, UNTDID 1001
	Currency            string // BT-5
	TaxCurrency         string // BT-6
	TaxPointDate        Date   // BT-7
	TaxPointCode        string // BT-8, UNTDID 2005: 3, 35 or 432
	DueDate             Date   // BT-9
	BuyerReference      string // BT-10
	ProjectReference    string // BT-11
	ContractReference   string // BT-12
	OrderReference      string // BT-13
	SalesOrderReference string // BT-14
	ReceiptReference    string // BT-15
	DespatchReference   string // BT-16
	TenderReference     string // BT-17
	Object              Identifier
	AccountingReference string // BT-19
	PaymentTerms        string // BT-20
	Notes               []Note // BG-1
	Process             string // BT-23
	Specification       string // BT-24

	Preceding []Preceding // BG-3

	Seller            Party  // BG-4
	Buyer             Party  // BG-7
	Payee             *Party // BG-10: name, one identifier, legal identifier
	TaxRepresentative *Party // BG-11: name, VAT identifier, address

	Delivery Delivery // BG-13
	Period   Period   // BG-14

	Payment Payment // BG-16

	Allowances []AllowanceCharge // BG-20
	Charges    []AllowanceCharge // BG-21

	Totals    Totals        // BG-22
	Breakdown []TaxSubtotal // BG-23
	Documents []Document    // BG-24
	Lines     []Line        // BG-25
}

// Date is a day, written YYYY-MM-DD; empty means that the document has none.
type Date string

// Identifier is an identifier with the scheme it belongs to, where it has one.
type Identifier struct {
	ID     string
	Scheme string
}

// Note is BG-1.
type Note struct {
	Subject string // BT-21, UNTDID 4451
	Text    string // BT-22
}

// Preceding is an earlier invoice that this document refers to, BG-3.
type Preceding struct {
	Number string // BT-25
	Date   Date   // BT-26
}

// Party is a seller, a buyer, a payee or a tax representative. The numbers are
// those of the seller and the buyer.
type Party struct {
	Name       string       // BT-27, BT-44
	TradeName  string       // BT-28, BT-45
	IDs        []Identifier // BT-29, BT-46 (one)
	LegalID    Identifier   // BT-30, BT-47
	VATID      string       // BT-31, BT-48
	TaxID      string       // BT-32, sellers only
	LegalForm  string       // BT-33, sellers only
	Electronic Identifier   // BT-34, BT-49
	Address    Address      // BG-5, BG-8
	Contact    Contact      // BG-6, BG-9
}

// Address is BG-5, BG-8, BG-12 or BG-15.
type Address struct {
	Line1       string // BT-35, 50, 64, 75
	Line2       string // BT-36, 51, 65, 76
	Line3       string // BT-162, 163, 164, 165
	City        string // BT-37, 52, 66, 77
	PostCode    string // BT-38, 53, 67, 78
	Subdivision string // BT-39, 54, 68, 79
	Country     string // BT-40, 55, 69, 80
}

// Contact is BG-6 or BG-9.
type Contact struct {
	Name  string // BT-41, BT-56
	Phone string // BT-42, BT-57
	Email string // BT-43, BT-58
}

// Delivery is BG-13.
type Delivery struct {
	Name     string     // BT-70
	Location Identifier // BT-71
	Date     Date       // BT-72
	Address  Address    // BG-15
}

// Period is BG-14 or BG-26.
type Period struct {
	Start Date // BT-73, BT-134
	End   Date // BT-74, BT-135
}

// Payment is BG-16. Both syntaxes repeat the means for each account; the terms
// of the whole instruction stand here once.
type Payment struct {
	Means      []PaymentMeans
	Remittance string // BT-83
	Mandate    string // BT-89
	Creditor   string // BT-90
}

// PaymentMeans is one way to pay.
type PaymentMeans struct {
	Code         string  // BT-81, UNTDID 4461
	Text         string  // BT-82
	Account      Account // BG-17
	Card         Card    // BG-18
	DebitAccount string  // BT-91
}

// Account is BG-17.
type Account struct {
	ID   string // BT-84
	Name string // BT-85
	BIC  string // BT-86
}

// Card is BG-18.
type Card struct {
	Number string // BT-87
	Holder string // BT-88
}

// AllowanceCharge is BG-20, BG-21, or without its tax BG-27, BG-28.
type AllowanceCharge struct {
	Amount     Decimal // BT-92, 99, 136, 141
	Base       Decimal // BT-93, 100, 137, 142
	Percent    Decimal // BT-94, 101, 138, 143
	Category   string  // BT-95, 102
	Rate       Decimal // BT-96, 103
	Reason     string  // BT-97, 104, 139, 144
	ReasonCode string  // BT-98, 105, 140, 145
}

// Totals is BG-22.
type Totals struct {
	Lines         Decimal // BT-106
	Allowances    Decimal // BT-107
	Charges       Decimal // BT-108
	Net           Decimal // BT-109
	Tax           Decimal // BT-110
	TaxAccounting Decimal // BT-111, in the currency of BT-6
	Gross         Decimal // BT-112
	Paid          Decimal // BT-113
	Rounding      Decimal // BT-114
	Due           Decimal // BT-115
}

// TaxSubtotal is BG-23.
type TaxSubtotal struct {
	Taxable    Decimal // BT-116
	Tax        Decimal // BT-117
	Category   string  // BT-118
	Rate       Decimal // BT-119
	Reason     string  // BT-120
	ReasonCode string  // BT-121
}

// Document is BG-24.
type Document struct {
	Reference   string // BT-122
	Description string // BT-123
	Location    string // BT-124
	Content     []byte // BT-125
	MIME        string
	Filename    string
}

// Line is BG-25.
type Line struct {
	ID                  string     // BT-126
	Note                string     // BT-127
	Object              Identifier // BT-128
	Quantity            Decimal    // BT-129
	Unit                string     // BT-130
	Net                 Decimal    // BT-131
	OrderLine           string     // BT-132
	AccountingReference string     // BT-133
	Period              Period     // BG-26
	Allowances          []AllowanceCharge
	Charges             []AllowanceCharge
	Price               Price
	Category            string  // BT-151
	Rate                Decimal // BT-152
	Item                Item    // BG-31
}

// Price is BG-29.
type Price struct {
	Net          Decimal // BT-146
	Discount     Decimal // BT-147
	Gross        Decimal // BT-148
	BaseQuantity Decimal // BT-149
	BaseUnit     string  // BT-150
}

// Item is BG-31.
type Item struct {
	Name        string // BT-153
	Description string // BT-154
	SellerID    string // BT-155
	BuyerID     string // BT-156
	StandardID  Identifier
	Classes     []Class     // BT-158
	Origin      string      // BT-159
	Attributes  []Attribute // BG-32
}

// Class is one classification of an item, BT-158.
type Class struct {
	Code    string
	Scheme  string // UNTDID 7143
	Version string
}

// Attribute is BG-32.
type Attribute struct {
	Name  string // BT-160
	Value string // BT-161
}

// IsCreditNote reports whether UBL writes the document as a CreditNote: the
// type codes of UNTDID 1001 that lower what is owed.
func (d *Invoice) IsCreditNote() bool { return among(creditNoteTypes, d.TypeCode) }
