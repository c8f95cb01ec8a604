package filing

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// operation is one processing attempt as the processor holds it.
type operation struct {
	id            string
	scope         string
	transactionID string
	attempt       int64
	kind          transaction.Kind
	code          string
	live          country.Live
	useCase       country.UseCase
	supplierID    string
	referenceID   string
	number        string // the client's, or drawn from a series
	series        string // that it was drawn from; "" without one
	stage         Stage
	tries         int64
	crashes       int64
	startedAt     time.Time
	sentAt        time.Time
	acceptedAt    time.Time
	dueAt         time.Time
	packVersion   string

	counted  bool // its crash count is raised for the visit and not yet taken back
	doubtful bool // sent before, unresolved, and sent again: "not taken" speaks of the last time only
	told     bool // the authority was asked about it in this visit, and does not hold it
	unfiled  bool // its supplier chose a document alone, where the law leaves the choice

	warnings []fault.Fault
	body     []byte
	customer string // facts of the company that the body names by id, as stored
	digest   string // of what the body says; empty: taken when it is needed
	document *transaction.Transaction
	totals   transaction.Totals
	filing   country.Filing
	receipt  country.Receipt
	original *country.Original
	shares   []country.Share // what a payment report is for, or the originals of an adjustment of several
	earlier  []string        // the operations of original.Corrections

	entry    *entry            // of the original, where that was gathered
	gathered *country.Gathered // it is gathered by period, or changes what is
	waits    bool              // nothing is filed for it by itself
	period   *country.Period   // what is in the document of a period

	structured *country.Structured // the invoice as data, where nothing is filed

	word *country.Receipt // the decision, where it came by itself

	gap *Gap // what the authority holds of it since before a backup was restored
}

const operationFields = `operation_id, client_id, transaction_id, attempt, kind, country, live, use_case, supplier_id,
	coalesce(reference_id, ''), number, stage, tries, crashes, coalesce(started_at, 0), sent_at, accepted_at, pack_version, due_at, coalesce(series, '')`

func scanOperation(scan func(...any) error) (*operation, error) {
	o := &operation{}
	var live bool
	var started, accepted int64
	err := scan(&o.id, &o.scope, &o.transactionID, &o.attempt, &o.kind, &o.code, &live, &o.useCase, &o.supplierID,
		&o.referenceID, &o.number, &o.stage, &o.tries, &o.crashes, &started, db.NullInstant(&o.sentAt), &accepted, &o.packVersion, db.NullInstant(&o.dueAt), &o.series)
	o.live = country.Live(live)
	o.startedAt, o.acceptedAt = db.FromMicros(started), db.FromMicros(accepted)
	return o, err
}

// correction reports whether the operation refers to an original.
func (o *operation) correction() bool { return o.referenceID != "" }

// decode reads the stored body again. An earlier version accepted it, so what
// can be read counts, whatever this version would say about it today.
func (o *operation) decode() error {
	if o.document != nil {
		return nil
	}
	t, _, err := transaction.Decode(o.kind, o.body)
	if t == nil {
		return fmt.Errorf("read the stored body of %s: %w", o.id, err)
	}
	if t.SupplierOwnID != "" {
		t.SupplierID = o.supplierID
	}
	if o.series != "" {
		t.Number = o.number
	}
	WithCustomer(t, o.customer)
	o.document = t
	o.totals, _ = transaction.Calculate(t.Items)
	return nil
}

// whole reports whether the operation takes back all of an original.
func (o *operation) whole() bool {
	return o.kind == transaction.Credit || o.kind == transaction.Cancellation
}

// incomplete reports whether the body leaves something to what it refers to.
func (o *operation) incomplete() bool {
	return (o.whole() || o.kind == transaction.PaymentReport) && o.correction()
}

// bare reports whether what the body leaves to another is still missing.
func (o *operation) bare() bool {
	return o.incomplete() && len(o.document.Items) == 0 && o.document.CurrencyCode == ""
}

// refersTo are the transactions that the operation refers to.
func (o *operation) refersTo() (ids []string) {
	if o.document != nil && len(o.document.Shares) > 0 {
		for _, p := range o.document.Shares {
			ids = append(ids, p.TransactionID)
		}
		return ids
	}
	if o.correction() {
		ids = []string{o.referenceID}
	}
	return ids
}

// complete gives a credit, a cancellation or a payment what its body leaves to
// the original: a payment its parties and currency.
func (o *operation) complete(source *operation) {
	t, from := o.document, source.document
	t.SupplierID = o.supplierID
	t.CurrencyCode = from.CurrencyCode
	t.Customer, t.Issuer, t.ThirdParties = from.Customer, from.Issuer, from.ThirdParties
	t.Period, t.Delivery = from.Period, from.Delivery
	if t.LanguageCode == "" {
		t.LanguageCode = from.LanguageCode
	}
	if o.kind == transaction.PaymentReport {
		return
	}
	t.Items, t.OrderItems = from.Items, from.OrderItems
	t.ExchangeRate, t.ExchangeRateDate = from.ExchangeRate, from.ExchangeRateDate
	t.References = from.References // the buyer finds the credit where the invoice was
	o.totals = source.totals
}

// uniqueNumber is the service's own number of a transaction: unique because
// the operation's id is, and readable on paper.
func uniqueNumber(code, operationID string) string {
	return code + "-" + strings.ToUpper(strings.ReplaceAll(operationID, "-", ""))
}

func encodeFiling(f country.Filing) string {
	f.Report = nil
	text, _ := json.Marshal(f) // plain data always encodes
	return string(text)
}

// ReadFiling reads what is stored of a filing, with its report.
func ReadFiling(text string, report []byte) (f country.Filing, err error) {
	if err = json.Unmarshal([]byte(text), &f); err != nil {
		return f, fmt.Errorf("read a stored filing: %w", err)
	}
	if len(report) > 0 { // of an adopted document nothing is left
		f.Report = report
	}
	return f, nil
}

func encodeReceipt(r country.Receipt) string {
	r.Raw, r.Document, r.News = nil, nil, nil // these have places of their own
	text, _ := json.Marshal(r)                // plain data always encodes
	return string(text)
}
