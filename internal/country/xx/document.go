package xx

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// document is what is filed: one line of JSON. The hash of a document is that
// of the line, without the line break.
type document struct {
	Number     string           `json:"number"`
	Supplier   string           `json:"supplier"`
	Kind       transaction.Kind `json:"kind"`
	Class      country.Class    `json:"class"`
	Key        string           `json:"key"` // chosen by the sender, the same on every sending
	Day        string           `json:"day"` // in the supplier's time zone
	At         string           `json:"at"`
	Currency   string           `json:"currency"`
	Gross      int64            `json:"gross"`
	Net        int64            `json:"net"`
	Tax        int64            `json:"tax"`
	Withheld   int64            `json:"withheld,omitempty"`
	Customer   *party           `json:"customer,omitempty"`
	Lines      []docLine        `json:"lines"`
	Reference  *reference       `json:"reference,omitempty"`
	Reason     string           `json:"reason,omitempty"`
	Acceptance bool             `json:"acceptance,omitempty"` // the buyer must agree first
	Late       bool             `json:"late,omitempty"`
	Chain      *chain           `json:"chain,omitempty"`
	Period     *span            `json:"period,omitempty"`   // of kind PERIOD
	Sequence   int64            `json:"sequence,omitempty"` // never used before at this authority
}

type party struct {
	Name      string `json:"name"`
	TaxNumber string `json:"tax_number,omitempty"`
	Country   string `json:"country,omitempty"`
}

type docLine struct {
	Number   int64     `json:"number"`
	Name     string    `json:"name"`
	Quantity string    `json:"quantity"`
	Gross    int64     `json:"gross"`
	Net      int64     `json:"net"`
	Taxes    []lineTax `json:"taxes,omitempty"`
}

type lineTax struct {
	Regime string `json:"regime"`
	Type   string `json:"type,omitempty"`
	Rate   string `json:"rate"`
	Amount int64  `json:"amount"`
}

// reference names the document that this one corrects.
type reference struct {
	Number      string `json:"number"`
	AuthorityID string `json:"authority_id,omitempty"`
	Elsewhere   bool   `json:"elsewhere,omitempty"` // issued elsewhere: the authority need not know it
	Index       int    `json:"index,omitempty"`     // which correction of it this is
	After       string `json:"after,omitempty"`     // number of the one before
}

// chain is a link: the hash of the supplier's document before this one.
type chain struct {
	Position int64  `json:"position"`
	Previous string `json:"previous,omitempty"`
	Refusal  string `json:"refusal,omitempty"` // "stops": a refused link is no link
	Order    string `json:"order,omitempty"`   // "any": links may arrive in any order
}

// Prepare writes the document. It is pure: the same draft gives the same bytes.
func (ch *channel) Prepare(in country.Draft) (country.Filing, error) {
	t := &in.Transaction
	doc, err := ch.draftDocument(&in)
	if err != nil {
		return country.Filing{}, err
	}
	report, err := json.Marshal(doc)
	if err != nil {
		return country.Filing{}, fmt.Errorf("writing the document of %s: %w", t.ID, err)
	}
	sum := sha256.Sum256(report)
	hash := hex.EncodeToString(sum[:])
	f := country.Filing{
		OperationID: in.OperationID,
		Number:      doc.Number,
		Supplier:    doc.Supplier,
		Kind:        doc.Kind,
		Report:      report,
		Format:      "JSON",
		SHA256:      hash,
		DedupeKey:   doc.Key,
		AuthorityID: hash,
		QRCode:      qrCode(doc, hash),
		Extra:       []byte(doc.Class),
		PreparedAt:  in.Now,
		Late:        in.Late,
	}
	if o := in.Original; o != nil && o.Gathered != nil && named(t.Customer) {
		f.Effect = &country.Effect{Amount: -in.Totals.Gross, Exact: true}
	}
	if doc.Chain != nil {
		f.Link = country.Link{Position: doc.Chain.Position, Hash: hash, Extra: doc.Number}
	}
	return f, nil
}

func (ch *channel) draftDocument(in *country.Draft) (document, error) {
	t := &in.Transaction
	where := in.Location
	if where == nil {
		where = time.UTC
	}
	doc := document{
		Number: t.Number, Supplier: supplierNumber(in.Supplier), Kind: t.Kind, Class: ch.classOf(in.Supplier),
		Key: in.OperationID, Day: t.Date.In(where).Format(time.DateOnly), At: t.Date.UTC().Format(time.RFC3339),
		Currency: t.CurrencyCode,
		Gross:    in.Totals.Gross, Net: in.Totals.Net, Tax: in.Totals.Tax, Withheld: in.Totals.Withheld,
		Lines: lines(t.Items, in.Totals.Lines), Reason: t.Reason, Late: in.Late,
	}
	if doc.Number == "" {
		doc.Number = in.UniqueNumber // credits and cancellations may come without a number of their own
	}
	if t.Kind == transaction.Backfill {
		return doc, fault.New(fault.Invalid, "a document issued elsewhere is not filed again").
			With(fault.Fault{Code: fault.UnsupportedOperation, Type: fault.General,
				Message: "a backfill is known here and filed nowhere"})
	}
	if t.Customer != nil {
		doc.Customer = &party{Name: t.Customer.LegalName, TaxNumber: t.Customer.TaxNumber}
		if t.Customer.Address != nil {
			doc.Customer.Country = t.Customer.Address.CountryCode
		}
	}
	if in.Period != nil {
		doc.Gross, doc.Net, doc.Tax = 0, 0, 0
		if err := doc.summary(in.Period); err != nil {
			return doc, err
		}
	}
	if o := in.Original; o != nil && !(o.Gathered != nil && named(t.Customer)) {
		doc.Reference = &reference{Number: o.Transaction.Number, AuthorityID: o.AuthorityID1, Elsewhere: o.Backfilled}
		if o.Gathered != nil {
			doc.Reference.Number = o.Gathered.Number // the sale itself was never filed
		}
		if doc.Reference.Number == "" {
			doc.Reference.Number = o.UniqueNumber
		}
	}
	if t.Kind == transaction.Cancellation {
		doc.Acceptance, _ = in.Supplier.Settings[settingAcceptance].(bool)
	}
	if doc.Class == country.ByChain {
		doc.Chain = &chain{Position: in.Previous.Position + 1, Previous: in.Previous.Hash}
	}
	return doc, ch.habits.mark(&doc, in)
}

func lines(items []transaction.Item, amounts []transaction.Line) []docLine {
	all := make([]docLine, len(items))
	for i := range items {
		all[i] = docLine{Number: items[i].Number, Name: items[i].Name, Quantity: items[i].Quantity.MinimalString()}
		if i >= len(amounts) {
			continue // the authority will say that the sums do not fit
		}
		all[i].Gross, all[i].Net = amounts[i].Gross, amounts[i].Net
		if len(items[i].Taxes) == 0 {
			continue
		}
		all[i].Taxes = make([]lineTax, len(items[i].Taxes))
		for j, tax := range items[i].Taxes {
			all[i].Taxes[j] = lineTax{Regime: tax.Regime, Type: tax.Type, Rate: tax.Rate.MinimalString()}
			if j < len(amounts[i].Taxes) {
				all[i].Taxes[j].Amount = amounts[i].Taxes[j]
			}
		}
	}
	return all
}

// qrCode is the text by which anybody could ask the authority for the document.
func qrCode(doc document, hash string) string {
	return "https://authority.invalid/xx/check?s=" + url.QueryEscape(doc.Supplier) + "&n=" + url.QueryEscape(doc.Number) +
		"&d=" + doc.Day + "&t=" + strconv.FormatInt(doc.Gross, 10) + "&c=" + doc.Currency + "&h=" + hash[:16]
}

// supplierNumber is how the authority knows a supplier.
func supplierNumber(s country.Supplier) string {
	if s.TaxNumber != "" {
		return s.TaxNumber
	}
	return s.ID
}
