package en16931

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/amount"
	words "tributary/internal/country/text"
	"tributary/internal/transaction"
)

// Composed is a document made from a transaction, with the way back to the
// client's own fields.
type Composed struct {
	Invoice  *Invoice
	Profile  Profile
	Rounding int64 // BT-114 in minor units
	bySum    bool  // taxes are computed on sums, not taken from the lines

	items      []int // of each line, the index of its item
	allowances []int // of each allowance, likewise
	charges    []int // of each charge, likewise
}

// compose makes the document of a transaction by a profile. Amounts come from
// the transaction's own totals, never from a second calculation; only the tax
// of a category may be computed anew, see [Invoice.Settle].
//
// Credits and cancellations are credit notes with the amounts of the original.
// An adjustment keeps its signs, as it does on paper: a corrected invoice in
// Germany, an invoice that names its original elsewhere.
func (p Page) compose(in country.Issue, profile Profile) Composed {
	t := in.Transaction
	c := composer{page: p, in: in, t: t, profile: profile, out: Composed{Profile: profile}}
	c.decimals, _ = transaction.CurrencyExponent(strings.ToUpper(t.CurrencyCode))
	c.credit = t.Kind == transaction.Credit || t.Kind == transaction.Cancellation
	d := &Invoice{Specification: profile.Specification, Process: profile.Process, TypeCode: "380"}
	switch own := country.SelfBilled(t); {
	case c.credit && own && !profile.German:
		d.TypeCode = "261"
	case c.credit:
		d.TypeCode = "381"
	case own:
		d.TypeCode = "389"
	case t.Kind == transaction.Adjustment && p.Corrected != "" && !profile.Peppol:
		d.TypeCode = p.Corrected
	}
	c.d, c.out.Invoice = d, d
	c.head()
	c.parties()
	c.lines()
	c.payment()
	if p.Shape != nil {
		p.Shape(in, d)
	}
	c.settle()
	if p.Settled != nil {
		p.Settled(in, d)
	}
	return c.out
}

// Compose is the document of a transaction by a profile, for a country that files
// it itself.
func (p Page) Compose(in country.Issue, profile Profile) Composed { return p.compose(in, profile) }

// TaxedBySum reports whether taxes are computed on sums, not taken from the lines.
func (c Composed) TaxedBySum() bool { return c.bySum }

type composer struct {
	page     Page
	in       country.Issue
	t        *transaction.Transaction
	profile  Profile
	d        *Invoice
	decimals int
	credit   bool
	out      Composed
	taxes    []CategoryTax
}

func (c *composer) day(at time.Time) Date {
	return Date(at.In(cmp.Or(c.in.Location, time.UTC)).Format(time.DateOnly))
}

func (c *composer) setting(key string) string { return c.in.Supplier.Settings.Text(key) }

func (c *composer) head() {
	d, t := c.d, c.t
	d.Number = cmp.Or(t.Number, c.in.UniqueNumber)
	d.IssueDate = c.day(t.Date)
	d.Currency = strings.ToUpper(t.CurrencyCode)
	d.Delivery.Date = Date(cmp.Or(t.DeliveryDate, string(d.IssueDate)))
	d.Period = periodOf(t.Period)
	if !c.credit {
		d.DueDate = cmp.Or(Date(t.DueDate), c.dueDate())
		d.PaymentTerms = cmp.Or(t.PaymentTerms, c.setting("payment_terms"))
	}
	d.OrderReference, d.ContractReference, d.ProjectReference = t.References.Order, t.References.Contract, t.References.Project
	if note := words.Note(t.Note); note != "" {
		d.Notes = []Note{{Text: note}}
	}
	for i := range t.Attachments {
		if a := &t.Attachments[i]; !c.credit { // a credit takes the invoice back, not what came with it
			d.Documents = append(d.Documents, Document{Reference: a.Name, Filename: a.Name, MIME: a.Type, Content: a.Content})
		}
	}
	if o := c.in.Original; o != nil {
		d.Preceding = []Preceding{{Number: cmp.Or(o.Transaction.Number, o.UniqueNumber), Date: c.day(o.Transaction.Date)}}
	}
	d.BuyerReference = c.buyerReference()
}

func periodOf(s *transaction.Span) Period {
	if s == nil {
		return Period{}
	}
	return Period{Start: Date(s.From), End: Date(s.To)}
}

// daysDefault is how long a buyer has where the settings do not say.
const daysDefault = 30

func (c *composer) dueDate() Date {
	days := daysDefault
	switch n := c.in.Supplier.Settings["payment_days"].(type) {
	case int:
		days = n
	case int64:
		days = int(n)
	case float64:
		days = int(n)
	}
	// Days are counted where the supplier is: a change of clocks has 23 or 25 hours.
	return Date(c.t.Date.In(cmp.Or(c.in.Location, time.UTC)).AddDate(0, 0, days).Format(time.DateOnly))
}

// buyerReference: the client's own, a routing identifier, what the settings
// say, else the transaction_id where the profile cannot do without (BR-DE-15, R003).
func (c *composer) buyerReference() string {
	if c.t.References.Buyer != "" {
		return c.t.References.Buyer
	}
	if id, _ := routed(c.t); id != "" {
		return id
	}
	if s := c.setting("buyer_reference"); s != "" {
		return s
	}
	if c.profile.German || c.profile.Peppol && c.t.References.Order == "" {
		return c.t.ID
	}
	return ""
}

func (c *composer) settle() {
	s := Settlement{Decimals: c.decimals, Gross: c.in.Totals.Gross, Taxes: c.taxes, ByCategory: c.page.ByCategory}
	if !c.credit {
		for _, p := range c.t.Payments {
			if settledAtOnce(p.Type) {
				s.Paid += p.Amount
			}
		}
	}
	c.out.Rounding = c.d.Settle(s)
	for i, own := range c.taxes {
		c.out.bySum = c.out.bySum || minor(c.d.Breakdown[i].Tax, c.decimals) != own.Amount
	}
	if c.profile.German || c.profile.Peppol && !c.profile.SelfBilled && c.d.Seller.Address.Country == "DE" && c.d.Buyer.Address.Country == "DE" {
		for i := range c.d.Breakdown {
			if !c.d.Breakdown[i].Rate.Given() {
				c.d.Breakdown[i].Rate = Dec(0, 0) // BR-DE-14 wants one even where there is no VAT
			}
		}
	}
	c.accounting()
}

// accounting states the tax in the country's own currency as well, where the
// client gave a rate.
func (c *composer) accounting() {
	own, rate := c.page.currency(), c.t.ExchangeRate
	if rate == nil || own == "" || own == c.d.Currency {
		return
	}
	decimals, _ := transaction.CurrencyExponent(own)
	tax, _ := amount.Scaled(c.d.Totals.Tax.unscaled, decimals-c.d.Totals.Tax.Decimals(), *rate)
	c.d.TaxCurrency, c.d.Totals.TaxAccounting = own, Dec(tax, decimals)
}

// currency of the country's books, for those outside the euro.
func (p Page) currency() string {
	return cmp.Or(map[string]string{"DK": "DKK", "NO": "NOK", "RO": "RON", "SE": "SEK"}[p.Code], "EUR")
}

// lines makes lines of items, and allowances of discounts.
func (c *composer) lines() {
	whole := slices.ContainsFunc(c.t.Items, func(i transaction.Item) bool { return i.Type != transaction.Discount })
	c.d.Lines = make([]Line, 0, len(c.t.Items))
	for i := range c.t.Items {
		item := &c.t.Items[i]
		net := c.in.Totals.Lines[i].Net
		category, rate := c.classify(i, item)
		switch extra := item.Extra; {
		case whole && item.Type == transaction.Discount && net <= 0:
			c.d.Allowances = append(c.d.Allowances, c.extra(i, AllowanceCharge{Amount: Dec(-net, c.decimals), Category: category, Rate: rate, Reason: item.Name, ReasonCode: "95"}))
			c.out.allowances = append(c.out.allowances, i)
			continue
		case extra != nil && extra.Charge && net >= 0:
			c.d.Charges = append(c.d.Charges, c.extra(i, AllowanceCharge{Amount: Dec(net, c.decimals), Category: category, Rate: rate, Reason: item.Name}))
			c.out.charges = append(c.out.charges, i)
			continue
		}
		c.d.Lines = append(c.d.Lines, c.line(item, c.in.Totals.Lines[i], category, rate))
		c.out.items = append(c.out.items, i)
	}
}

// extra adds what an allowance or a charge is a percentage of: the lines with the
// same taxes, without tax. Where prices include tax, cents may keep the two apart;
// the amount stands alone then (PEPPOL-EN16931-R040).
func (c *composer) extra(i int, a AllowanceCharge) AllowanceCharge {
	item := &c.t.Items[i]
	if item.Extra == nil || item.Extra.Rate == nil {
		return a
	}
	base := int64(0)
	for j := range c.t.Lines() {
		if transaction.SameTaxes(c.t.Items[j].Taxes, item.Taxes) {
			base += c.in.Totals.Lines[j].Net
		}
	}
	percent := decimalOf(*item.Extra.Rate)
	row := subtotalRow{tax: CategoryTax{Rate: percent}, taxable: base}
	if row.computed(c.decimals) == minor(a.Amount, c.decimals) {
		a.Base, a.Percent = Dec(base, c.decimals), percent
	}
	return a
}

// line is one line; its price is before a discount of the line, which stands
// beside it (BG-27).
func (c *composer) line(item *transaction.Item, amounts transaction.Line, category string, rate Decimal) Line {
	quantity, full := decimalOf(item.Quantity), amounts.Net+amounts.NetDiscount
	l := Line{ID: strconv.FormatInt(item.Number, 10), Unit: UnitCode(item.Unit), Net: Dec(amounts.Net, c.decimals), Category: category, Rate: rate,
		Price: PriceFor(full, quantity, c.decimals), Period: periodOf(item.Period),
		Item: Item{Name: item.Name, Description: item.Description, SellerID: item.Code}}
	if full < 0 {
		quantity = quantity.Neg()
	}
	if amounts.NetDiscount != 0 {
		l.Allowances = []AllowanceCharge{{Amount: Dec(amounts.NetDiscount, c.decimals), Reason: "Discount", ReasonCode: "95"}}
	}
	l.Quantity = quantity
	if l.Price.BaseQuantity.Given() {
		l.Price.BaseUnit = l.Unit
	}
	if item.EAN != "" {
		l.Item.StandardID = Identifier{ID: item.EAN, Scheme: "0160"}
	}
	for _, class := range item.Classifications {
		if scheme := c.classScheme(class.Scheme); scheme != "" {
			l.Item.Classes = append(l.Item.Classes, Class{Code: class.Code, Scheme: scheme})
		} else {
			l.Item.Attributes = append(l.Item.Attributes, Attribute{Name: class.Scheme, Value: class.Code})
		}
	}
	return l
}

// classScheme is the code of UNTDID 7143 for a classification; "" where the
// list has none, and an attribute of the item has to carry it. Danish rules want
// the edition of UNSPSC as well (DK-R-003), which nobody tells us.
func (c *composer) classScheme(scheme string) string {
	switch scheme = strings.ToUpper(scheme); scheme {
	case "UNSPSC":
		scheme = "TST"
	case "CPV":
		scheme = "STI"
	}
	if !among(classSchemes, scheme) || scheme == "TST" && c.page.Code == "DK" {
		return ""
	}
	return scheme
}

func decimalOf(a num.Amount) Decimal { return Dec(a.Value(), int(a.Exp())).Trim(0) }

// classify finds the category of an item and counts its tax.
func (c *composer) classify(i int, item *transaction.Item) (string, Decimal) {
	category, rate, code, amount := "", Decimal{}, "", int64(0)
	for j := range item.Taxes {
		if tax := &item.Taxes[j]; !tax.Withheld() {
			category, rate, code = CategoryOf(*tax), decimalOf(tax.Rate), tax.Code
			amount += c.in.Totals.Lines[i].Taxes[j]
		}
	}
	if category == "O" {
		rate = Decimal{}
	}
	for j := range c.taxes {
		row := &c.taxes[j]
		if row.Category == category && row.Rate == rate {
			row.Amount += amount
			row.Lines++
			if other, _ := c.reason(category, code); other != row.ReasonCode {
				row.ReasonCode = "" // one row, several reasons: the text has to do
			}
			return category, rate
		}
	}
	row := CategoryTax{Category: category, Rate: rate, Amount: amount, Lines: 1}
	row.ReasonCode, row.Reason = c.reason(category, code)
	c.taxes = append(c.taxes, row)
	return category, rate
}

// reason is why no VAT is charged: a code of the list of exemptions and a text.
func (c *composer) reason(category, code string) (string, string) {
	switch category {
	case "AE":
		return "VATEX-EU-AE", cmp.Or(c.page.Reasons[category], "Reverse charge")
	case "K":
		return "VATEX-EU-IC", cmp.Or(c.page.Reasons[category], "Intra-Community supply")
	case "G":
		return "VATEX-EU-G", cmp.Or(c.page.Reasons[category], "Export outside the EU")
	case "O":
		return "VATEX-EU-O", cmp.Or(c.page.Reasons[category], "Not subject to VAT")
	case "E":
		text := cmp.Or(c.setting("exemption_text"), c.page.Exempt, "Exempt from VAT")
		for _, try := range []string{code, "VATEX-EU-" + code, "VATEX-" + c.page.Code + "-" + code, c.setting("exemption_code")} {
			if try = strings.ToUpper(try); among(exemptionCodes, try) {
				return try, text
			}
		}
		return "", text
	}
	return "", ""
}

// CategoryOf is the VAT category of a tax entry by its type.
func CategoryOf(tax transaction.Tax) string {
	switch tax.Regime {
	case "IGIC":
		return "L"
	case "IPSI":
		return "M"
	}
	switch tax.Type {
	case transaction.TaxZero:
		return "Z"
	case transaction.TaxExempt:
		return "E"
	case transaction.TaxReverse:
		return "AE"
	case transaction.TaxIntraEU:
		return "K"
	case transaction.TaxExport:
		return "G"
	case transaction.TaxOutside:
		return "O"
	}
	return "S"
}
