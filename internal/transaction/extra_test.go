package transaction_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

// Allowances and charges count by their taxes, in the terms of prices.
func TestAllowancesAndChargesCount(t *testing.T) {
	tax := func(rate int, mode string) []any {
		return []any{map[string]any{"rate": rate, "regime": "VAT", "application_mode": mode}}
	}
	line := func(n, price, rate int, mode string) any {
		return map[string]any{"number": n, "name": "x", "quantity": 1, "unit_price": price, "tax_breakdowns": tax(rate, mode)}
	}
	body := transactiontest.Edit(t, transactiontest.Typical, map[string]any{
		"payments": nil,
		"items":    []any{line(4, 12500, 25, transaction.Included), line(9, 10000, 10, transaction.Added)},
		"allowances": []any{
			map[string]any{"amount": 2500, "reason": "Voucher", "tax_breakdowns": tax(25, transaction.Included)},
			map[string]any{"rate": 12.5, "reason": "Loyalty", "tax_breakdowns": tax(10, transaction.Added)},
		},
		"charges": []any{map[string]any{"amount": 500, "reason": "Freight", "tax_breakdown": tax(10, transaction.Added)}},
	})
	tx, _, err := transaction.Decode(transaction.Invoice, body)
	if err != nil {
		t.Fatal(err)
	}
	totals, wrong := transaction.Calculate(tx.Items)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	// 100.00 − 20.00 at 25 %, 100.00 − 12.50 + 5.00 at 10 %.
	if totals.Net != 8000+9250 || totals.Tax != 2000+925 || totals.Gross != 20175 {
		t.Errorf("totals %+v", totals)
	}
	if len(tx.Lines()) != 2 || len(tx.Items) != 5 || tx.Items[2].Number != 10 || tx.Items[4].Type != transaction.Goods {
		t.Errorf("items %+v", tx.Items)
	}
	for i, want := range []string{"items.1.unit_price", "items.1.name", "allowances.0.amount", "allowances.0.reason",
		"allowances.1.rate", "allowances.1.reason", "charges.0.amount", "charges.0.reason"} {
		field := transaction.Place{Entry: i/2 + 1}.Path("items.*." + []string{"unit_price", "name"}[i%2])
		if got := tx.Spelled(fault.At(field, fault.FieldNotValid, "is wrong")); got.Field != want ||
			!strings.HasPrefix(got.Message, want+" ") {
			t.Errorf("%s is told as %q: %s, want %s", field, got.Field, got.Message, want)
		}
	}
}

func TestFaultsOfAllowancesAndCharges(t *testing.T) {
	one := func(more map[string]any) []any {
		e := map[string]any{"amount": 1, "reason": "r", "tax_breakdowns": []any{map[string]any{"rate": 25, "regime": "VAT"}}}
		for name, value := range more {
			if e[name] = value; value == nil {
				delete(e, name)
			}
		}
		return []any{e}
	}
	many := func(n int) (list []any) {
		for range n {
			list = append(list, one(nil)...)
		}
		return list
	}
	for name, c := range map[string]struct {
		sent  []any
		field string
		code  fault.Code
	}{
		"twenty":             {many(20), "", ""},
		"twenty-one":         {many(21), "charges", fault.FieldNotValid},
		"negative":           {one(map[string]any{"amount": -1}), "charges.0.amount", fault.FieldNotValid},
		"neither":            {one(map[string]any{"amount": nil}), "charges.0", fault.FieldRequired},
		"both":               {one(map[string]any{"rate": 5}), "charges.0", fault.ValidationMatchInvalid},
		"no reason":          {one(map[string]any{"reason": nil}), "charges.0.reason", fault.FieldRequired},
		"both taxes":         {one(map[string]any{"tax_breakdown": []any{}}), "charges.0.tax_breakdowns", fault.ValidationMatchInvalid},
		"of no line's taxes": {one(map[string]any{"amount": nil, "rate": 5, "tax_breakdowns": nil}), "charges.0.rate", fault.ValidationMatchInvalid},
	} {
		_, _, err := transaction.Decode(transaction.Invoice,
			transactiontest.Edit(t, transactiontest.Typical, map[string]any{"payments": nil, "charges": c.sent}))
		if c.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got := transactiontest.FaultsIn(t, err); len(got) != 1 || got[0].Field != c.field || got[0].Code != c.code {
			t.Errorf("%s: %+v, want %s at %s", name, got, c.code, c.field)
		}
	}
}

// Attachments are bounded in number and bytes, and are what they say.
func TestAttachmentsAreBoundedAndTrue(t *testing.T) {
	file := func(name, media, content string) map[string]any {
		return map[string]any{"name": name, "type": media, "content": base64.StdEncoding.EncodeToString([]byte(content))}
	}
	sized := func(n int) string { return strings.Repeat("a", n) }
	csv := func(n int) (list []any) {
		for i := range n {
			list = append(list, file(string(rune('a'+i))+".csv", "text/csv", "1,2"))
		}
		return list
	}
	const most = 5 << 20
	for name, c := range map[string]struct {
		sent  []any
		field string
	}{
		"five":            {csv(5), ""},
		"six":             {csv(6), "attachments"},
		"all that fits":   {[]any{file("a.csv", "text/csv", sized(most-3)), file("b.csv", "text/csv", "1,2")}, ""},
		"one byte more":   {[]any{file("a.csv", "text/csv", sized(most-2)), file("b.csv", "text/csv", "1,2")}, "attachments.1.content"},
		"one alone":       {[]any{file("a.csv", "text/csv", sized(most+1))}, "attachments.0.content"},
		"a PDF":           {[]any{file("a.pdf", "application/pdf", "%PDF-1.7")}, ""},
		"no PDF":          {[]any{file("a.pdf", "application/pdf", "<html>")}, "attachments.0.content"},
		"no text":         {[]any{file("a.csv", "text/csv", "\xff\xfe")}, "attachments.0.content"},
		"a page":          {[]any{file("a.html", "text/html", "<html>")}, "attachments.0.type"},
		"a path":          {[]any{file("../a.csv", "text/csv", "1")}, "attachments.0.name"},
		"the same name":   {[]any{file("a.csv", "text/csv", "1"), file("A.csv", "text/csv", "2")}, "attachments.1.name"},
		"nothing":         {[]any{file("a.csv", "text/csv", "")}, "attachments.0.content"},
		"no base64":       {[]any{map[string]any{"name": "a.csv", "type": "text/csv", "content": "a_b"}}, "attachments.0.content"},
		"a long name":     {[]any{file(sized(61), "text/csv", "1")}, "attachments.0.name"},
		"broken in lines": {[]any{map[string]any{"name": "a.csv", "type": "text/csv", "content": "MSwy\r\nLDMs"}}, ""},
	} {
		tx, _, err := transaction.Decode(transaction.Invoice,
			transactiontest.Edit(t, transactiontest.Typical, map[string]any{"attachments": c.sent}))
		switch {
		case c.field != "":
			if got := transactiontest.FaultsIn(t, err); len(got) != 1 || got[0].Field != c.field {
				t.Errorf("%s: %+v, want one at %s", name, got, c.field)
			}
		case err != nil || len(tx.Attachments) != len(c.sent):
			t.Errorf("%s: %d of %d attachments, %v", name, len(tx.Attachments), len(c.sent), err)
		}
	}
}

// What is large without the contents of attachments is too large.
func TestOnlyContentsOfAttachmentsMayBeLarge(t *testing.T) {
	content := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", 2<<20)))
	with := transactiontest.Edit(t, transactiontest.Typical, map[string]any{
		"attachments": []any{map[string]any{"name": "a.csv", "type": "text/csv", "content": content}}})
	if _, err := transaction.Read(transaction.Invoice, with); err != nil {
		t.Errorf("a body with 2 MiB of attachments: %v", err)
	}
	without := transactiontest.Edit(t, transactiontest.Typical, map[string]any{"nobody_knows": content})
	if _, err := transaction.Read(transaction.Invoice, without); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("a body of %d bytes without attachments: %v", len(without), err)
	}
}
