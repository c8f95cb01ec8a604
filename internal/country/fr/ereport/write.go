package ereport

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/amount"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// Head is who reports, and through whom.
type Head struct {
	At       time.Time // of the report's making
	Where    *time.Location
	Platform string // its registration number, four characters (TT-8)
	Name     string // of the platform
	SIREN    string // of the company
	Company  string // its name
	Buys     bool   // it reports as a buyer
	There    bool   // the administration has a report of the period that is not known here
}

// idMax is how long a report's identifier may be.
const idMax = 50

// ID is the identifier of a period's report: the company's and the period's.
func (h Head) ID(number string) string {
	id := h.SIREN + "-" + number
	return id[:min(len(id), idMax)]
}

// Write makes the report of a period whose [country.Period].Sum was made by [Sum]. One
// that takes the place of another is of type RE and has everything.
func Write(h Head, p *country.Period) ([]byte, error) {
	var c Contribution
	if err := json.Unmarshal(p.Sum, &c); err != nil {
		return nil, fmt.Errorf("reading the sum of %s: %w", p.Number, err)
	}
	w := &xmltree.Writer{Lines: true}
	w.Declare()
	w.Start("Report")
	h.document(w, p)
	if p.Report == Payments {
		if len(c.Settled)+len(c.Paid) == 0 {
			return nil, fmt.Errorf("the report %s would be empty", p.Number)
		}
		payments(w, p, &c)
	} else {
		if len(c.Invoices)+len(c.Groups) == 0 {
			return nil, fmt.Errorf("the report %s would be empty", p.Number)
		}
		transactions(w, p, &c)
	}
	w.End()
	return w.Bytes(), nil
}

func (h Head) document(w *xmltree.Writer, p *country.Period) {
	kind, role := "IN", "SE"
	if p.Replaces != "" || h.There {
		kind = "RE"
	}
	if h.Buys {
		role = "BY"
	}
	at := h.At
	if h.Where != nil {
		at = at.In(h.Where)
	}
	w.Start("ReportDocument")
	w.Leaf("Id", h.ID(p.Number))
	w.Start("IssueDateTime")
	w.Leaf("DateTimeString", at.Format("20060102150405"))
	w.End()
	w.Leaf("TypeCode", kind)
	w.Start("Sender")
	w.Leaf("Id", h.Platform, "schemeId", "0238")
	w.Leaf("Name", h.Name)
	w.Leaf("RoleCode", "WK")
	w.End()
	w.Start("Issuer")
	w.Leaf("Id", h.SIREN, "schemeId", SchemeSIREN)
	w.Leaf("Name", h.Company)
	w.Leaf("RoleCode", role)
	w.End()
	w.End()
}

func period(w *xmltree.Writer, p *country.Period) {
	w.Start("ReportPeriod")
	w.Leaf("StartDate", p.First.Format("20060102"))
	w.Leaf("EndDate", p.Next.AddDate(0, 0, -1).Format("20060102"))
	w.End()
}

func transactions(w *xmltree.Writer, p *country.Period, c *Contribution) {
	w.Start("TransactionsReport")
	period(w, p)
	for i := range c.Invoices {
		c.Invoices[i].write(w)
	}
	for i := range c.Groups {
		g := &c.Groups[i]
		w.Start("Transactions")
		w.Leaf("Date", g.Day)
		w.Leaf("TransactionsCurrency", g.Currency)
		w.Maybe("TaxDueDateTypeCode", g.Due)
		w.Leaf("CategoryCode", g.Category)
		w.Leaf("TaxExclusiveAmount", money(g.Net, g.Currency))
		var tax int64
		for _, r := range g.Rates {
			tax += r.Tax
		}
		w.Leaf("TaxTotal", money(tax, Euro))
		w.Leaf("TransactionsCount", strconv.FormatInt(g.Count, 10))
		for _, r := range g.Rates {
			w.Start("TaxSubtotal")
			w.Leaf("TaxPercent", r.Percent)
			w.Leaf("TaxableAmount", money(r.Base, Euro))
			w.Leaf("TaxTotal", money(r.Tax, Euro))
			w.End()
		}
		w.End()
	}
	w.End()
}

func (v *Invoice) write(w *xmltree.Writer) {
	w.Start("Invoice")
	w.Leaf("ID", v.Number)
	w.Leaf("IssueDate", v.Issued)
	w.Leaf("TypeCode", v.Type)
	w.Leaf("CurrencyCode", v.Currency)
	w.Maybe("TaxDueDateTypeCode", v.Due)
	w.Start("BusinessProcess")
	w.Leaf("ID", v.Process)
	w.Leaf("TypeID", "urn.cpro.gouv.fr:1p0:ereporting")
	w.End()
	if v.Original != "" {
		w.Start("ReferencedDocument")
		w.Leaf("ID", v.Original)
		w.Leaf("IssueDate", v.Dated)
		w.End()
	}
	v.Seller.write(w, "Seller")
	v.Buyer.write(w, "Buyer")
	w.Start("Delivery")
	w.Leaf("Date", v.Supplied)
	w.End()
	var tax int64
	for _, s := range v.Taxes {
		tax += s.Tax
	}
	w.Start("MonetaryTotal")
	w.Leaf("TaxExclusiveAmount", money(v.Net, v.Currency))
	w.Leaf("TaxAmount", money(tax, Euro), "CurrencyCode", Euro)
	w.End()
	for _, s := range v.Taxes {
		w.Start("TaxSubTotal")
		w.Leaf("TaxableAmount", money(s.Base, Euro))
		w.Leaf("TaxAmount", money(s.Tax, Euro))
		w.Start("TaxCategory")
		w.Leaf("Code", s.Category)
		w.Leaf("Percent", s.Percent)
		w.Maybe("TaxExemptionReason", s.Reason)
		w.Maybe("TaxExemptionReasonCode", s.Code)
		w.End()
		w.End()
	}
	w.End()
}

func (p *Party) write(w *xmltree.Writer, name string) {
	w.Start(name)
	w.Leaf("CompanyId", p.ID, "schemeId", p.Scheme)
	if p.VAT != "" {
		w.Leaf("TaxRegistrationId", p.VAT, "qualifyingId", "VAT")
	}
	w.Start("PostalAddress")
	w.Leaf("CountryId", p.Country)
	w.End()
	w.End()
}

func payments(w *xmltree.Writer, p *country.Period, c *Contribution) {
	w.Start("PaymentsReport")
	period(w, p)
	for _, s := range c.Settled {
		w.Start("Invoice")
		w.Leaf("InvoiceID", s.Number)
		w.Leaf("IssueDate", s.Issued)
		paid(w, s.Day, s.Rates)
		w.End()
	}
	for _, g := range c.Paid {
		w.Start("Transactions")
		paid(w, g.Day, g.Rates)
		w.End()
	}
	w.End()
}

func paid(w *xmltree.Writer, day string, rates []Rate) {
	w.Start("Payment")
	w.Leaf("Date", day)
	for _, r := range rates {
		w.Start("SubTotals")
		w.Leaf("TaxPercent", r.Percent)
		w.Leaf("CurrencyCode", Euro)
		w.Leaf("Amount", money(r.Base, Euro))
		w.End()
	}
	w.End()
}

// money is an amount with at most two decimals, which is what reports have.
func money(minor int64, currency string) string {
	decimals, _ := transaction.CurrencyExponent(currency)
	if decimals > 2 {
		return amount.New(minor, decimals).Rounded(2).String()
	}
	return amount.Text(minor, decimals)
}
