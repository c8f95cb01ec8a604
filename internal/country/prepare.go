package country

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Preparable refuses what never becomes a document of an authority that knows
// sales, adjustments and credits: a correction without its original or with flaws
// that corrects finds, lines without amounts, and every other operation. none
// says that there is no document for it, instead what the client does about it.
func Preparable(in *Draft, corrects func() []fault.Fault, none, instead string) error {
	t := &in.Transaction
	switch t.Kind {
	case transaction.Invoice:
	case transaction.Adjustment, transaction.Credit:
		if in.Original == nil {
			return fmt.Errorf("preparing %s: a correction without its original", t.ID)
		}
		if flaws := corrects(); len(flaws) > 0 {
			return fault.New(fault.Invalid, "the correction cannot be written").With(flaws...)
		}
	default:
		return fault.New(fault.Invalid, "%s",
			none).With(fault.Fault{Code: fault.UnsupportedOperation, Type: fault.General, Message: instead})
	}
	if len(in.Totals.Lines) != len(t.Items) {
		return fmt.Errorf("preparing %s: %d lines with %d amounts", t.ID, len(t.Items), len(in.Totals.Lines))
	}
	return nil
}

// Filing makes the filing of a draft: its document with the hash, the number and
// the supplier's own under which the authority knows it, and extra as JSON, which
// Send and Find read again with [Filing.Carried].
func (in *Draft) Filing(report []byte, number, supplier string, extra any) (Filing, error) {
	carried, err := json.Marshal(extra)
	if err != nil {
		return Filing{}, fmt.Errorf("writing the filing of %s: %w", in.Transaction.ID, err)
	}
	return Filing{
		OperationID: in.OperationID, Number: number, Supplier: supplier, Kind: in.Transaction.Kind,
		Report: report, Format: "XML", SHA256: SHA256(report), Extra: carried, PreparedAt: in.Now,
	}, nil
}

// SHA256 is a hash as filings and receipts carry it.
func SHA256(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Carried reads what a filing carries beyond its document.
func (f Filing) Carried(into any) error {
	if err := json.Unmarshal(f.Extra, into); err != nil {
		return fmt.Errorf("reading what the filing of %s carries: %w", f.Number, err)
	}
	return nil
}

// Draft is the issue as it was prepared, or would be now where nothing is filed.
func (in Issue) Draft() *Draft {
	d := &Draft{Transaction: *in.Transaction, Totals: in.Totals, Supplier: *in.Supplier, Original: in.Original,
		Shares:       in.Shares,
		UniqueNumber: in.UniqueNumber, Location: in.Location, Now: in.At}
	if in.Filing != nil {
		d.Now = in.Filing.PreparedAt // when its days were decided
	}
	return d
}

// Drafted reports whether the issue has all that a draft of it needs.
func (in Issue) Drafted() bool {
	return in.Transaction != nil && in.Supplier != nil && len(in.Totals.Lines) == len(in.Transaction.Items)
}

// Draft is the case as far as it is known at submit: without its company.
func (c Case) Draft(zone *time.Location) *Draft {
	return &Draft{Transaction: *c.Transaction, Totals: c.Totals, Location: zone, Now: c.Now}
}

// Base is the address of the authority without a slash at its end, and with the
// path below which its service is.
func (e Endpoint) Base(path string) (string, error) {
	if e.BaseURL == "" || e.HTTP == nil {
		return "", ErrNoAddress
	}
	return strings.TrimSuffix(strings.TrimSuffix(e.BaseURL, "/"), path) + path, nil
}

// Real reports whether the authority itself is behind the address: doubles are
// plain HTTP, and show at once what they took.
func (e Endpoint) Real() bool { return strings.HasPrefix(e.BaseURL, "https://") }

// Structured is the invoice of a transaction as data, where nothing is filed
// with anybody: what becomes the REPORT attachment, and is carried inside of
// the document for people where the format is a hybrid one.
type Structured struct {
	Format   string // "XML"
	Content  []byte
	Name     string // of the format, as settings.format calls it
	Rounding int64  // minor units between the sum of the lines and the document's own total
	// TaxedBySum says that its taxes are computed on the sum of each rate, not
	// taken from the lines: paper shows the same.
	TaxedBySum bool

	// Embedded says under which name and level the PDF carries it; nil: it does not.
	Embedded *Embedding
}

// Embedding is how a hybrid document names the data inside of it.
type Embedding struct {
	FileName string // factur-x.xml
	Level    string // "EN 16931"
}
