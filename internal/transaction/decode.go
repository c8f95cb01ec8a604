package transaction

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// Lengths in characters and other limits of a body, as docs/specification.md lists them.
// What it leaves open has a limit here too: nothing in a document is unbounded.
const (
	bodyBytesMax    = 1 << 20
	itemsMax        = 5000
	paymentsMax     = 100
	thirdMax        = 20
	orderMax        = 500
	roleMax         = 30
	identifierMax   = 150
	numberMax       = 50
	nameMax         = 450
	itemTextMax     = 200
	itemCodeMax     = 60
	eanMax          = 13
	unitMax         = 20
	noteMax         = 3000
	regimeMax       = 10
	taxCodeMax      = 10
	paymentCodeMax  = 32
	addressMax      = 200
	entityNumberMax = 100
	taxNumberMax    = 50
	reasonMax       = 200
	authorityIDMax  = 200
	referenceMax    = 100
	termsMax        = 500
	emailMax        = 254
	phoneMax        = 50
	fiscalCodeMax   = 28
	schemeMax       = 20
	electronicMax   = 100
	classesMax      = 20
	classMax        = 50
	ibanMax         = 42 // the longest with a blank after every four characters
	remittanceMax   = 140
	itemsFirst      = 4
	taxesFirst      = 8
	aliasTaxes      = "tax_breakdown" // is read like tax_breakdowns
)

// Reading is what a body says, as far as it could be read, and what is wrong
// with its shape. Whoever knows more than the body (a country) goes on from it.
type Reading struct {
	Transaction    *Transaction
	Faults         fault.List    // of its shape: JSON types, values, lengths, members that the kind requires
	Warnings       []fault.Fault // members nobody knows
	ItemsFaulty    bool          // amounts cannot be worked out
	PaymentsFaulty bool
	aliased        []int // items whose taxes came under the other name
}

// Read reads a body and checks everything that the body alone decides. The
// error is a [fault.Error] of kind Invalid, for what is no JSON that we accept.
func Read(kind Kind, body []byte) (*Reading, error) {
	if kind == Response {
		return readAnswer(body)
	}
	d := decodeBody(kind, body)
	if err := d.tooLarge(body); err != nil {
		return nil, err
	}
	if err := d.in.Err(); err != nil {
		return nil, err
	}
	return &Reading{
		Transaction: d.tx, Faults: d.in.Faults, Warnings: d.in.Warnings(),
		ItemsFaulty: d.itemsFaulty, PaymentsFaulty: d.paymentsFault, aliased: d.aliased,
	}, nil
}

// Spelled turns the path of a tax entry into the name the client used.
func (r *Reading) Spelled(f fault.Fault) fault.Fault {
	for _, i := range r.aliased {
		item := "items." + strconv.Itoa(i) + "."
		if strings.HasPrefix(f.Field, item+"tax_breakdowns") {
			f.Field = strings.Replace(f.Field, "tax_breakdowns", aliasTaxes, 1)
			f.Message = strings.ReplaceAll(f.Message, item+"tax_breakdowns", item+aliasTaxes)
		}
	}
	return r.Transaction.Spelled(f)
}

// Decode is [Read] for whoever wants the transaction alone. It is nil only when
// the JSON itself could not be read; otherwise it has what was good, so that a
// stored body that an earlier version accepted is still read back. The error
// has all faults.
func Decode(kind Kind, body []byte) (*Transaction, []fault.Fault, error) {
	r, err := Read(kind, body)
	if err != nil {
		return nil, nil, err
	}
	return r.Transaction, r.Warnings, r.Faults.Err("the transaction")
}

// decoder reads one transaction.
type decoder struct {
	in            reader
	tx            *Transaction
	taxes         []Tax // of all items in one block
	itemsFaulty   bool  // amounts cannot be worked out
	paymentsFault bool
	contentBytes  int   // of attachments, as sent
	extrasFaulty  bool  // allowances or charges have faults
	aliased       []int // items whose taxes came under the other name
}

// reader reads values: codes, days, amounts, addresses.
type reader struct {
	strictjson.Reader
	soughtCurrency string // found ahead of its turn, for a hint
}

func decodeBody(kind Kind, body []byte) *decoder {
	d := &decoder{tx: &Transaction{Kind: kind}}
	d.in.Open(body, BodyBytesMax)
	d.transaction()
	return d
}

// kinds is a set of kinds of transactions.
type kinds uint8

const (
	invoices kinds = 1 << iota
	adjustments
	credits
	cancellations
	backfills
	reports // of payments
	periods // made by the service itself

	whole = invoices | adjustments // bring a whole document of their own
	every = whole | credits | cancellations | backfills | reports | periods
)

func kindSet(k Kind) kinds {
	switch k {
	case Invoice:
		return invoices
	case Adjustment:
		return adjustments
	case Credit:
		return credits
	case Cancellation:
		return cancellations
	case Backfill:
		return backfills
	case PaymentReport:
		return reports
	case Period:
		return periods
	}
	panic(fmt.Sprintf("transaction: kind %q has no body", k)) // a caller's defect, never a client's
}

// memberKinds says which kinds of bodies have a member; none: nobody knows it.
func memberKinds(name string) kinds {
	switch name {
	case "country_code", "transaction_date", "transaction_id", "transaction_number":
		return every
	case "currency_code":
		return whole | backfills | periods | reports
	case "supplier":
		return whole | backfills | periods
	case "customer", "items", memberAllowances, memberCharges:
		return whole | backfills
	case "payments", "exchange_rate", "exchange_rate_date":
		return whole | reports
	case "language_code", "issuer", memberThird, memberOrder, "due_date", "delivery_date", "payment_terms", "period",
		"delivery", "payee", memberAttachments,
		"buyer_reference", "order_reference", "contract_reference", "project_reference", memberTotal, memberTotalNet,
		memberTotalTax:
		return whole
	case "note":
		return every &^ backfills &^ periods
	case "reference_transaction_id":
		return adjustments | credits | cancellations | reports
	case memberShares:
		return reports | adjustments
	case "reason":
		return whole | cancellations
	case "tax_authority_id_1":
		return backfills
	}
	return 0
}

// The totals that a client may state.
const (
	memberTotal    = "total_amount"
	memberTotalNet = "total_net_amount"
	memberTotalTax = "total_tax_amount"
)

func isTotal(name string) bool {
	return name == memberTotal || name == memberTotalNet || name == memberTotalTax
}

// given remembers which required members were there, strictjson.Refused ones included:
// those have their own fault already.
type given uint16

const (
	gotCountry given = 1 << iota
	gotCurrency
	gotDate
	gotNumber
	gotID
	gotReference
	gotSupplier
	gotItems
	gotPayments
	gotShares
)

func (g *given) note(bit given, st strictjson.State) {
	if st != strictjson.Absent {
		*g |= bit
	}
}

func (d *decoder) transaction() {
	var got given
	kind := kindSet(d.tx.Kind)
	d.in.Body(func(name string) {
		switch in := memberKinds(name); {
		case in == 0, in&kind == 0 && isTotal(name): // nothing here to compare a total with
			d.in.Unknown()
		case in&kind != 0:
			d.member(name, &got)
		case !d.in.Null():
			d.in.Refuse(fault.UnsupportedField, "does not belong to this operation")
			d.in.Skip()
		}
	})
	if d.in.Broken() {
		return
	}
	d.requireMembers(kind, got)
	d.addExtras()
}

func (d *decoder) member(name string, got *given) {
	tx := d.tx
	switch name {
	case "country_code":
		got.note(gotCountry, d.in.code(&tx.CountryCode, 2, "two-letter country code"))
	case "language_code":
		d.in.code(&tx.LanguageCode, 2, "two-letter language code")
	case "currency_code":
		got.note(gotCurrency, d.currency())
	case "transaction_date":
		got.note(gotDate, d.in.instant(&tx.Date))
	case "transaction_number":
		got.note(gotNumber, d.in.Line(&tx.Number, numberMax))
	case "transaction_id":
		got.note(gotID, d.in.identifier(&tx.ID))
	case "reference_transaction_id":
		got.note(gotReference, d.in.identifier(&tx.ReferenceID))
	case "reason":
		d.in.Line(&tx.Reason, reasonMax)
	case "note":
		d.in.Lines(&tx.Note, noteMax)
	case "exchange_rate":
		d.exchangeRate()
	case "exchange_rate_date":
		d.in.day(&tx.ExchangeRateDate)
	case "tax_authority_id_1":
		d.in.Line(&tx.AuthorityID1, authorityIDMax)
	case "supplier":
		got.note(gotSupplier, d.supplier())
	case "customer":
		tx.Customer = d.party("customer", d.in.customerMember)
	case "issuer":
		tx.Issuer = d.party(name, nil)
	case memberThird:
		d.thirdParties()
	case memberOrder:
		d.orderItems()
	case "items":
		got.note(gotItems, d.items())
	case "payments":
		got.note(gotPayments, d.payments())
	case memberAttachments:
		d.attachments()
	case memberAllowances, memberCharges:
		d.readExtras(name == memberCharges)
	case memberShares:
		got.note(gotShares, d.shares())
	case memberTotal:
		d.in.stated(&tx.Stated.Gross)
	case memberTotalNet:
		d.in.stated(&tx.Stated.Net)
	case memberTotalTax:
		d.in.stated(&tx.Stated.Tax)
	case "due_date":
		d.in.day(&tx.DueDate)
	case "delivery_date":
		d.in.day(&tx.DeliveryDate)
	case "period":
		tx.Period = d.in.period()
	case "delivery":
		tx.Delivery = d.in.delivery()
	case "payee":
		tx.Payee = d.in.payee()
	case "payment_terms":
		d.in.Lines(&tx.PaymentTerms, termsMax)
	default:
		d.in.Line(tx.References.member(name), referenceMax)
	}
}

// requireMembers names what the kind requires and the body lacks.
// transaction_number of a whole document is the country's matter.
func (d *decoder) requireMembers(kind kinds, got given) {
	require := func(in kinds, bit given, name string) {
		if in&kind != 0 && got&bit == 0 {
			d.in.Missing(name)
		}
	}
	require(every, gotCountry, "country_code")
	require(whole, gotCurrency, "currency_code")
	if got&gotItems != 0 {
		require(backfills, gotCurrency, "currency_code") // amounts without a currency say nothing
	}
	require(every, gotDate, "transaction_date")
	require(backfills, gotNumber, "transaction_number")
	require(every, gotID, "transaction_id")
	require(credits|cancellations, gotReference, "reference_transaction_id")
	require(reports, gotPayments, "payments")
	d.requireShares(kind, got)
	require(whole, gotSupplier, "supplier")
	require(whole, gotItems, "items")
}

func (d *decoder) currency() strictjson.State {
	st := d.in.code(&d.tx.CurrencyCode, 3, "three-letter currency code")
	if st != strictjson.Taken {
		return st
	}
	if _, known := CurrencyExponent(upperCode(d.tx.CurrencyCode)); !known {
		d.tx.CurrencyCode = ""
		return d.in.Refuse(fault.FieldNotValid, "must be a currency of ISO 4217 that has a minor unit")
	}
	return strictjson.Taken
}

func (d *decoder) exchangeRate() {
	var rate num.Amount
	if d.in.positive(&rate) == strictjson.Taken {
		d.tx.ExchangeRate = &rate
	}
}

func (d *decoder) supplier() strictjson.State {
	st, external := strictjson.Absent, strictjson.Absent
	if own := d.in.Object(func(name string) {
		switch name {
		case "id":
			st = d.in.Line(&d.tx.SupplierID, identifierMax)
		case "external_id":
			external = d.in.Line(&d.tx.SupplierOwnID, identifierMax)
		default:
			d.in.Unknown()
		}
	}); own != strictjson.Taken {
		return own
	}
	switch {
	case st == strictjson.Absent && external == strictjson.Absent:
		d.in.Missing("id")
	case st != strictjson.Absent && external != strictjson.Absent:
		d.in.RefuseMember("external_id", fault.ValidationMatchInvalid, "stands in place of id; send one of them")
	}
	return strictjson.Taken
}
