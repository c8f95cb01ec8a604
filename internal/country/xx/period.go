package xx

import (
	"encoding/json"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// periodNone is the setting of a company whose sales are filed one by one.
const periodNone = "none"

// What one document of a period takes.
const (
	periodLinesMax = 100
	periodBytesMax = 64 << 10
)

func periods() *country.Periods {
	return &country.Periods{Gather: gather, LinesMax: periodLinesMax, BytesMax: periodBytesMax, Within: 24 * time.Hour,
		Withdraw: "a sale has left"}
}

// span is the period that a document says it is of.
type span struct {
	Cadence country.Cadence `json:"cadence"`
	First   string          `json:"first"`
	Last    string          `json:"last"`
}

// named reports whether a customer has a tax number: such a sale is filed by itself.
func named(c *transaction.Party) bool { return c != nil && c.TaxNumber != "" }

// gather enlists sales to customers without a tax number, and says what
// corrections make of them.
func gather(in country.Draft) (*country.Gathered, error) {
	t := &in.Transaction
	if t.Kind == transaction.Invoice {
		cadence := country.Cadence(in.Supplier.Settings.Text(settingPeriod))
		if named(t.Customer) || cadence != country.Daily && cadence != country.Weekly && cadence != country.Monthly {
			return nil, nil
		}
		where := in.Location
		if where == nil {
			where = time.UTC
		}
		return entered(country.SpanOf(cadence, t.Date.In(where)), in.Totals.Gross, in.Totals.Net, in.Totals.Tax)
	}
	if in.Original == nil || in.Original.Gathered == nil {
		return nil, nil
	}
	at := in.Original.Gathered
	switch {
	case t.Kind == transaction.Cancellation:
		return &country.Gathered{Leaves: true}, nil
	case t.Kind == transaction.Adjustment && named(t.Customer):
		return &country.Gathered{Leaves: true, Filed: true}, nil
	case at.Data == nil:
		return nil, nil // it refers to the document that has the sale
	case t.Kind == transaction.Credit:
		return &country.Gathered{Leaves: true}, nil
	}
	var was docLine
	if err := json.Unmarshal(at.Data, &was); err != nil {
		return nil, fmt.Errorf("reading a gathered sale: %w", err)
	}
	gross, net := was.Gross+in.Totals.Gross, was.Net+in.Totals.Net
	if gross < 0 {
		return nil, fault.New(fault.Invalid, "the sale has less").With(fault.At("items", fault.ReferenceExceeded,
			"give back more than is left of the sale in its period"))
	}
	return entered(country.Span{}, gross, net, gross-net)
}

func entered(s country.Span, gross, net, tax int64) (*country.Gathered, error) {
	data, err := json.Marshal(docLine{Gross: gross, Net: net})
	if err != nil {
		return nil, fmt.Errorf("writing a gathered sale: %w", err)
	}
	return &country.Gathered{Span: s, Lines: 1, Data: data, Gross: gross, Net: net, Tax: tax}, nil
}

// summary fills in the document of a period: one line for each sale.
func (d *document) summary(p *country.Period) error {
	d.Number, d.Day = p.Number, p.First.Format(time.DateOnly)
	d.Period = &span{Cadence: p.Cadence, First: d.Day, Last: p.Next.AddDate(0, 0, -1).Format(time.DateOnly)}
	for i, sale := range p.Sales {
		var line docLine
		if err := json.Unmarshal(sale.Data, &line); err != nil {
			return fmt.Errorf("reading a gathered sale: %w", err)
		}
		line.Number, line.Name, line.Quantity = int64(i+1), sale.Number, "1"
		d.Lines = append(d.Lines, line)
		d.Gross, d.Net = d.Gross+line.Gross, d.Net+line.Net
	}
	d.Tax = d.Gross - d.Net
	return nil
}
