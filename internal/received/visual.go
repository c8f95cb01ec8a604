package received

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/country/text"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/incoming"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// linesShown is how many lines a document for people has at most; who sends more sends data.
const linesShown = 5000

// show makes the document for people of what the reader understood. One that cannot be made undoes nothing: the
// result says so and a person is told.
func (d *Documents) show(ctx context.Context, live bool, o *outcome) error {
	if len(o.Document.Lines) > linesShown {
		o.Faults = append(o.Faults, fault.Warn("items", fault.FieldNotValid, "are more than %d: no PDF was made", linesShown))
		return nil
	}
	var made document.Rendering
	err := country.Safely("render a received document", func() (err error) {
		made, err = d.cfg.Renderer.Render(ctx, visual(o, live))
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		d.log.Error("render a received document", "operation_id", o.ID, "error", err)
		_ = d.cfg.Alerts.Raise(ctx, alert.DocumentFailed, o.ID, "the document of operation "+o.ID+" could not be made") // it is logged in any case
		o.Faults = append(o.Faults, fault.Warn("", fault.InternalError, "the document for people could not be made; the original stands"))
		return nil
	}
	file := files.NewFile(made.PDF)
	if err := d.cfg.Files.Keep(ctx, file); err != nil {
		return fmt.Errorf("keep the document of %s: %w", o.ID, err)
	}
	o.visual = &file
	return nil
}

// visual is what paper shows: the document's own figures in our own layout, without anybody's look.
func visual(o *outcome, live bool) document.Visual {
	doc := o.Document
	day, err := time.Parse(time.DateOnly, doc.Day)
	if err != nil {
		day = o.At
	}
	t := transaction.Transaction{
		Kind: doc.Kind, ID: o.ID, CountryCode: countryOf(&doc.Sender, o.Company.CountryCode), CurrencyCode: doc.Currency, Date: day,
		Number: doc.Number, Customer: &doc.Receiver, Payments: doc.Payments, References: doc.References, DueDate: doc.DueDay,
		DeliveryDate: doc.DeliveryDay, PaymentTerms: doc.PaymentTerms, Period: doc.Period, Payee: doc.Payee,
		ExchangeRate: doc.ExchangeRate, Delivery: doc.Delivery, ThirdParties: doc.Others,
		Note: strings.ReplaceAll(html.EscapeString(strings.Join(append(slices.Clip(doc.Notes), beside(doc)...), "\n")), "\n", "<br>"),
	}
	v := document.Visual{Transaction: t, Supplier: senderOf(&doc.Sender, t.CountryCode), Language: o.Company.LanguageCode,
		IssuedAt: day, UniqueNumber: o.ID, Rounding: doc.Rounding, Specimen: !live}
	if v.Language == "" {
		v.Language = "EN"
	}
	v.Totals = transaction.Totals{Gross: doc.Total(), Net: doc.Net, Tax: doc.Tax, Withheld: doc.Withheld}
	v.Transaction.Items, v.Totals.Lines = lines(doc)
	v.Imprint = country.Imprint{Language: "EN", Texts: []string{
		"Made from a received document. The document itself is kept as it came, and it alone counts."}}
	if doc.Prepaid != 0 {
		v.Imprint.Advice.Paid = &doc.Prepaid
	}
	if doc.Kind != transaction.Invoice {
		for i, e := range doc.Earlier {
			at, _ := time.Parse(time.DateOnly, e.Day)
			ref := document.Reference{Number: e.Number, Date: at, AuthorityID: e.AuthorityID}
			if i == 0 {
				v.Original = &ref
			} else {
				v.Others = append(v.Others, ref)
			}
		}
	}
	return v
}

// beside are the lines of what paper has no place for.
func beside(doc *incoming.Document) (lines []string) {
	for _, p := range doc.Others {
		lines = append(lines, text.Join(": ", p.Role, text.Join(", ", p.LegalName, p.TaxNumber)))
	}
	for _, due := range doc.Instalments {
		of := ""
		if due.Amount != 0 {
			of = result.Decimal(due.Amount, doc.Currency) + " " + doc.Currency
		}
		lines = append(lines, text.Join(": ", due.Day, of))
	}
	for i := range doc.Ordered {
		l := &doc.Ordered[i]
		lines = append(lines, text.Join(" ", l.Quantity.String(), l.Unit, l.Name, result.Decimal(l.Net, doc.Currency), doc.Currency))
	}
	if doc.Kind == transaction.Invoice {
		for _, e := range doc.Earlier {
			lines = append(lines, text.Join(" ", e.Relation, e.Number, e.Day, e.AuthorityID))
		}
	}
	if doc.TaxCurrency != "" {
		lines = append(lines, result.Decimal(doc.AccountingTax, doc.TaxCurrency)+" "+doc.TaxCurrency)
	}
	for _, a := range doc.Attachments {
		lines = append(lines, safeName(a.Name))
	}
	if len(lines) > besideMost {
		lines = append(lines[:besideMost], "…")
	}
	return lines
}

// besideMost is how many of them one document shows.
const besideMost = 200

func countryOf(p *transaction.Party, otherwise string) string {
	if p.Address != nil && p.Address.CountryCode != "" {
		return strings.ToUpper(p.Address.CountryCode)
	}
	return otherwise
}

func senderOf(p *transaction.Party, code string) country.Supplier {
	s := country.Supplier{CountryCode: code, LegalName: p.LegalName, Type: p.Type, CompanyNumber: p.EntityNumber,
		TaxNumber: p.TaxNumber, TaxRegime: p.TaxRegime}
	if p.Address != nil {
		s.Address = *p.Address
	}
	return s
}

// extrasOf is what is taken from a line, or added to it, in words.
func extrasOf(list []incoming.Extra, sign, currency string) string {
	var all []string
	for _, e := range list {
		of := ""
		switch {
		case e.Amount != 0:
			of = sign + result.Decimal(e.Amount, currency)
		case e.Percent != nil:
			of = sign + e.Percent.String() + " %"
		case e.Unit != nil:
			of = sign + e.Unit.String()
		}
		all = append(all, text.Join(" ", cmp.Or(e.Reason, e.Code), of))
	}
	return strings.Join(all, "; ")
}

// lines are the document's lines, allowances and charges as paper takes them.
func lines(doc *incoming.Document) (items []transaction.Item, amounts []transaction.Line) {
	share := shares(doc)
	add := func(item transaction.Item, l incoming.Line) {
		own := transaction.Line{Net: l.Net, Gross: l.Net}
		for _, tax := range l.Taxes {
			mode := transaction.Added
			if l.Gross {
				mode = transaction.Included
			}
			one := transaction.Tax{Rate: tax.Rate, Regime: tax.Regime, Mode: mode, Type: tax.Type, Code: tax.Code}
			amount := share.take(tax, l.Net)
			switch {
			case one.Withheld():
				one.Mode = ""
			case l.Gross:
				own.Net -= amount
			default:
				own.Gross += amount
			}
			item.Taxes, own.Taxes = append(item.Taxes, one), append(own.Taxes, amount)
		}
		items, amounts = append(items, item), append(amounts, own)
	}
	for _, l := range doc.Lines {
		l = l.Signed()
		price, _ := l.Price(doc.Currency)
		l.Description = text.Join("; ", l.Description, extrasOf(l.Allowances, "-", doc.Currency), extrasOf(l.Charges, "+", doc.Currency))
		add(transaction.Item{Number: l.Number, Name: l.Name, Description: l.Description, Code: l.Code, EAN: l.EAN,
			Quantity: l.Quantity, Unit: l.Unit, UnitPrice: price, Type: transaction.Goods, Classifications: l.Classes, Period: l.Period}, l)
	}
	extra := func(list []incoming.Extra, charge bool) {
		for i, e := range list {
			amount := e.Amount
			if !charge {
				amount = -amount
			}
			add(transaction.Item{Name: cmp.Or(e.Reason, e.Code), Quantity: one(), UnitPrice: amount, Type: transaction.Services,
				Extra: &transaction.Extra{Charge: charge, Index: i, Amount: e.Amount, Reason: e.Reason}},
				incoming.Line{Net: amount, Taxes: e.Taxes})
		}
	}
	extra(doc.Allowances, false)
	extra(doc.Charges, true)
	return items, amounts
}
