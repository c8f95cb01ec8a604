package transaction_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"
	"pgregory.net/rapid"

	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

func TestDecodeReadsEveryMemberAsSubmitted(t *testing.T) {
	body := transactiontest.Edit(t, transactiontest.Typical, map[string]any{
		"country_code": "de", "currency_code": "eur", "transaction_date": "2026-03-01T12:30:00.25+02:00",
		"items.0.description": "large", "items.0.code": "43232408", "items.0.ean": "4006381333931",
		"items.0.tax_breakdowns.0.type": "STANDARD", "items.0.tax_breakdowns.0.code": "E5",
		"items.0.tax_breakdowns.1": map[string]any{"rate": 15, "regime": "RET", "type": "IRPF",
			"application_mode": transaction.Added},
		"items.1.type":  nil,
		"exchange_rate": json.Number("1.0850"), "exchange_rate_date": "2026-02-28", "note": "one\n\ttwo <b>",
		"buyer_reference": "B", "order_reference": "O", "contract_reference": "C", "project_reference": "P",
		"due_date": "2026-03-31", "delivery_date": "2026-02-27", "payment_terms": "net\n30",
		"customer.electronic_address": map[string]any{"scheme": "9930", "id": "DE123456789"},
		"customer.email":              "k@example.de", "customer.phone": "030 123",
		"customer.tax_information.fiscal_code": "RSSMRA85T10A562S", "customer.tax_information.use": "G03",
		"payments.0.iban": "DE89 3704 0044 0532 0130 00", "payments.0.reference": "R",
		"items.0.classification": []any{map[string]any{"scheme": "CPV", "code": "1"}},
		"issuer": map[string]any{"legal_name": "Market", "type": "BUSINESS", "trade_name": "M",
			"entity_number": "HRB 1"},
	})
	tx, warnings, err := transaction.Decode(transaction.Invoice, body)
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	if tx.Kind != transaction.Invoice || tx.CountryCode != "de" || tx.CurrencyCode != "eur" || tx.LanguageCode != "EN" ||
		tx.Number != "INV-2026-000123" || tx.ID != "7d0f6c1e-order-000123" ||
		tx.SupplierID != "3f2a1b4c5d6e7f8091a2b3c4d5e6f708" {
		t.Errorf("head: %+v", tx)
	}
	if !tx.Date.Equal(time.Date(2026, 3, 1, 10, 30, 0, 250e6, time.UTC)) {
		t.Errorf("date %v", tx.Date)
	}
	if tx.Note != "one\n\ttwo <b>" || tx.ExchangeRate.String() != "1.085" || tx.ExchangeRateDate != "2026-02-28" {
		t.Errorf("note %q, exchange rate %v of %s", tx.Note, tx.ExchangeRate, tx.ExchangeRateDate)
	}
	first := transaction.Item{
		Number: 1, Name: "Widget, blue", Quantity: num.MakeAmount(3, 0), Unit: "piece", UnitPrice: 7570,
		Type:        transaction.Goods,
		Description: "large", Code: "43232408", EAN: "4006381333931", Taxes: []transaction.Tax{
			{Rate: num.MakeAmount(25, 0), Regime: "VAT", Mode: transaction.Included, Type: "STANDARD", Code: "E5"},
			{Rate: num.MakeAmount(15, 0), Regime: "RET", Type: "IRPF"},
		},
		Classifications: []transaction.Classification{{Scheme: "CPV", Code: "1"}},
	}
	if fmt.Sprintf("%+v", tx.Items[0]) != fmt.Sprintf("%+v", first) {
		t.Errorf("item %+v, want %+v", tx.Items[0], first)
	}
	if tx.Items[1].Type != transaction.Goods || tx.Items[1].Quantity != num.MakeAmount(15, 1) ||
		tx.Items[2].UnitPrice != -500 {
		t.Errorf("items %+v", tx.Items)
	}
	customer := transaction.Party{
		LegalName: "Müller & Söhne GmbH", Type: transaction.Business, TaxNumber: "DE123456789", TaxRegime: "VAT",
		Address: tx.Customer.Address, Electronic: tx.Customer.Electronic, Email: "k@example.de", Phone: "030 123",
		FiscalCode: "RSSMRA85T10A562S", TaxUse: "G03",
	}
	if *tx.Customer.Electronic != (transaction.ElectronicAddress{Scheme: "9930", ID: "DE123456789"}) {
		t.Errorf("electronic address %+v", tx.Customer.Electronic)
	}
	if tx.References != (transaction.References{Buyer: "B", Order: "O", Contract: "C", Project: "P"}) ||
		tx.DueDate != "2026-03-31" || tx.DeliveryDate != "2026-02-27" || tx.PaymentTerms != "net\n30" {
		t.Errorf("references %+v, days %s and %s, terms %q", tx.References, tx.DueDate, tx.DeliveryDate, tx.PaymentTerms)
	}
	if *tx.Customer != customer || *tx.Customer.Address !=
		(transaction.Address{CountryCode: "DE", City: "Berlin", PostalCode: "10115", AddressLine1: "Invalidenstraße 1"}) {
		t.Errorf("customer %+v %+v", tx.Customer, tx.Customer.Address)
	}
	if *tx.Issuer != (transaction.Party{LegalName: "Market", Type: "BUSINESS", TradeName: "M", EntityNumber: "HRB 1"}) {
		t.Errorf("issuer %+v", tx.Issuer)
	}
	if len(tx.Payments) != 1 || tx.Payments[0] !=
		(transaction.Payment{Type: "CARD", Amount: 40210, IBAN: "DE89 3704 0044 0532 0130 00", Reference: "R"}) {
		t.Errorf("payments %+v", tx.Payments)
	}
}

// Every member of an address lands in the field of its own name.
func TestDecodeReadsTheWholeAddress(t *testing.T) {
	sent := map[string]any{"country_code": "FR"}
	for _, path := range transaction.FieldPaths() {
		if name, ok := strings.CutPrefix(path, "customer.address."); ok && name != "country_code" {
			sent[name] = "the " + name
		}
	}
	tx, _, err := transaction.Decode(transaction.Invoice,
		transactiontest.Edit(t, transactiontest.Typical, map[string]any{"customer.address": sent}))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(sent)
	var back map[string]any
	text, _ := json.Marshal(tx.Customer.Address)
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(back); string(got) != string(want) || len(sent) != 15 {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What the caller does with its buffer afterwards must not reach the transaction.
func TestDecodeKeepsNothingOfTheCallersBuffer(t *testing.T) {
	body := []byte(transactiontest.Typical)
	tx, _, err := transaction.Decode(transaction.Invoice, body)
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	if tx.ID != "7d0f6c1e-order-000123" || tx.Customer.LegalName != "Müller & Söhne GmbH" {
		t.Errorf("got %q, %q", tx.ID, tx.Customer.LegalName)
	}
}

func TestBrokenJSONIsRefusedWithItsPosition(t *testing.T) {
	deep := func(n int) string { return `{"x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}" }
	cases := []struct{ name, body, message string }{
		{"nothing", "", "line 1, column 1 (byte 0): the body is empty"},
		{"blanks", " \n ", "line 2, column 2 (byte 3): the body is empty"},
		{"NUL", "\x00", "line 1, column 1 (byte 0): the body must be an object"},
		{"array", "[]", "line 1, column 1 (byte 0): the body must be an object"},
		{"byte order mark", "\ufeff{}", "line 1, column 1 (byte 0): the body must be an object"},
		{"UTF-16", "{\x00}\x00", "line 1, column 2 (byte 1): found '\\x00' where a name is expected"},
		{"truncated", `{"note":"`, "line 1, column 10 (byte 9): the body ends inside a string"},
		{"truncated escape", `{"note":"\`, "line 1, column 11 (byte 10): the body ends inside a string"},
		{"truncated after name", `{"note"`, "line 1, column 8 (byte 7): the body ends where a colon is expected"},
		{"truncated after value", `{"note":"a"`,
			"line 1, column 12 (byte 11): the body ends where a comma or the end of the object is expected"},
		{"trailing comma", "{\"note\":\"é\",\n }", "line 2, column 2 (byte 15): found '}' where a name is expected"},
		{"trailing comma in an array", `{"items":[1,]}`, "line 1, column 13 (byte 12): found ']' where a value is expected"},
		{"two bodies", "{}{}", "line 1, column 3 (byte 2): something follows the end of the body's object"},
		{"trailing NUL", "{}\x00", "line 1, column 3 (byte 2): something follows the end of the body's object"},
		{"duplicate", `{"note":"a","note":"b"}`, `line 1, column 13 (byte 12): the name "note" stands twice in one object`},
		{"duplicate by escape", `{"note":"a","no\u0074e":"b"}`,
			`line 1, column 13 (byte 12): the name "note" stands twice in one object`},
		{"duplicate nobody knows", `{"x":1,"x":2}`, `line 1, column 8 (byte 7): the name "x" stands twice in one object`},
		{"duplicate below what nobody knows", `{"x":[{"y":1,"y":1}]}`,
			`line 1, column 14 (byte 13): the name "y" stands twice in one object`},
		{"duplicate after many", `{` + names(40) + `,"n7":1}`, `the name "n7" stands twice in one object`},
		{"duplicate of a late one", `{` + names(40) + `,"n39":1}`, `the name "n39" stands twice in one object`},
		{"too deep", deep(33), "nested more than 32 deep"},
		{"far too deep", `{"x":` + strings.Repeat("[", 1_000_000), "nested more than 32 deep"},
		{"invalid UTF-8", "{\"note\":\"ab\xff\"}", "line 1, column 12 (byte 11): the body is not valid UTF-8"},
		{"invalid UTF-8 after an escape", "{\"note\":\"\\n\xc0\xaf\"}",
			"line 1, column 12 (byte 11): the body is not valid UTF-8"},
		{"surrogate in UTF-8", "{\"note\":\"\xed\xa0\x80\"}", "the body is not valid UTF-8"},
		{"invalid UTF-8 outside strings", "{\xff}", "line 1, column 2 (byte 1): the body is not valid UTF-8"},
		{"invalid UTF-8 in a name", "{\"\xff\":1}", "the body is not valid UTF-8"},
		{"half a surrogate pair", `{"note":"\ud83d"}`, "half of a surrogate pair"},
		{"the wrong half", `{"note":"\ude00\ud83d"}`, "half of a surrogate pair"},
		{"broken escape", `{"note":"\u12g4"}`, "broken \\u escape"},
		{"unknown escape", `{"note":"\x41"}`, "an escape that JSON does not know"},
		{"raw control character", "{\"note\":\"a\nb\"}", "control character stands unescaped in a string"},
		{"raw control character after an escape", "{\"note\":\"\\t\x01\"}", "control character stands unescaped in a string"},
		{"leading zero", `{"exchange_rate":01}`, "a number is not well formed"},
		{"plus", `{"exchange_rate":+1}`, "found '+' where a value is expected"},
		{"bare point", `{"exchange_rate":1.}`, "a number is not well formed"},
		{"bare minus", `{"exchange_rate":-}`, "a number is not well formed"},
		{"bare exponent", `{"exchange_rate":1e}`, "a number is not well formed"},
		{"NaN", `{"exchange_rate":NaN}`, "found 'N' where a value is expected"},
		{"hexadecimal", `{"exchange_rate":0x10}`, "found 'x' where a comma or the end of the object is expected"},
		{"misspelt literal", `{"note":nul}`, "where a value is expected"},
		{"single quotes", `{'note':1}`, "found '\\'' where a name is expected"},
		{"comment", `{/* */}`, "found '/' where a name is expected"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, kind := range []transaction.Kind{transaction.Invoice, transaction.Credit, transaction.Backfill} {
				tx, _, err := transaction.Decode(kind, []byte(c.body))
				if tx != nil {
					t.Errorf("%s: got a transaction", kind)
				}
				got := transactiontest.FaultsIn(t, err)
				if len(got) != 1 || got[0].Code != fault.JSONNotValid || got[0].Field != "" ||
					!strings.HasSuffix(got[0].Message, c.message) {
					t.Errorf("%s: got %+v, want %s", kind, got, c.message)
				}
			}
		})
	}
	if _, _, err := transaction.Decode(transaction.Invoice, []byte(deep(32))); strings.Contains(err.Error(), "deep") {
		t.Errorf("a depth of 32 is refused: %v", err)
	}
}

func names(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"n%d":0`, i))
	}
	return strings.Join(all, ",")
}

// A body that is cut anywhere is refused as broken JSON, never with a panic.
func TestEveryTruncationIsBrokenJSON(t *testing.T) {
	for i := range len(transactiontest.Typical) - 1 {
		_, _, err := transaction.Decode(transaction.Invoice, []byte(transactiontest.Typical[:i]))
		if got := transactiontest.FaultsIn(t, err); len(got) != 1 || got[0].Code != fault.JSONNotValid {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

func TestFaultsOfMembers(t *testing.T) {
	cases := []struct {
		path  string
		value any
		want  string // "code message"; empty: accepted
	}{
		{"country_code", "DEU", "field_not_valid country_code must be a two-letter country code"},
		{"country_code", "D1", "field_not_valid country_code must be a two-letter country code"},
		{"country_code", "", "field_required country_code must not be empty"},
		{"country_code", 12, "field_not_valid country_code must be a string"},
		{"language_code", "eng", "field_not_valid language_code must be a two-letter language code"},
		{"language_code", "pl", ""},
		{"currency_code", "EURO", "field_not_valid currency_code must be a three-letter currency code"},
		{"currency_code", "XYZ", "field_not_valid currency_code must be a currency of ISO 4217 that has a minor unit"},
		{"currency_code", "XAU", "field_not_valid currency_code must be a currency of ISO 4217 that has a minor unit"},
		{"transaction_date", "2026-03-01", "field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", "2026-02-30T00:00:00Z",
			"field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", "2026-03-01T24:00:00Z",
			"field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", "2026-03-01T12:00:00",
			"field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", "2026-03-01 12:00:00Z",
			"field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", "2026-03-01T2:00:00Z",
			"field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", "2026-03-01T12:00:00,5Z",
			"field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", "2026-03-01T12:00:00+24:00",
			"field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", "1969-12-31T23:59:59Z", "field_not_valid transaction_date must lie in the years 1970 to 2199"},
		{"transaction_date", "2200-01-01T00:00:00Z", "field_not_valid transaction_date must lie in the years 1970 to 2199"},
		{"transaction_date", "2026-03-01T12:00:00.123456789-11:30", ""},
		{"transaction_date", "2026-03-01t12:30:00z", ""},
		{"transaction_date", "2026-03-01t12:30:00.5+02:00", ""},
		{"transaction_date", "2026-03-01x12:30:00Z",
			"field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", "2016-12-31T23:59:60Z", ""},
		{"transaction_date", "2016-12-31T23:59:61Z",
			"field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", "2016-12-31T23:58:60Z",
			"field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", "2016-12-30T23:59:60Z",
			"field_not_valid transaction_date must be a timestamp like 2006-01-02T15:04:05Z"},
		{"transaction_date", 20260301, "field_not_valid transaction_date must be a string"},
		{"transaction_id", " a", "field_not_valid transaction_id must not begin or end with a blank"},
		{"transaction_id", "a\u00a0", "field_not_valid transaction_id must not begin or end with a blank"},
		{"transaction_id", "a\u200db", "field_not_valid transaction_id must have printable characters only, but has U+200D"},
		{"transaction_id", "a b/ç?%#\"日", ""},
		{"transaction_id", "\t", "field_not_valid transaction_id must not contain the character U+0009"},
		{"transaction_id", "  ", "field_required transaction_id must not be empty"},
		{"supplier", []any{}, "field_not_valid supplier must be an object"},
		{"supplier", nil, "field_required supplier must not be empty"},
		{"supplier.id", "", "field_required supplier.id must not be empty"},
		{"supplier.id", false, "field_not_valid supplier.id must be a string"},
		{"items", nil, "field_required items must not be empty"},
		{"items", []any{}, "field_required items must not be empty"},
		{"items", "x", "field_not_valid items must be an array"},
		{"items.0", nil, "field_not_valid items.0 must be an object"},
		{"items.1", 5, "field_not_valid items.1 must be an object"},
		{"items.0.number", 0, "field_not_valid items.0.number must be greater than 0"},
		{"items.0.number", -1, "field_not_valid items.0.number must be greater than 0"},
		{"items.0.number", json.Number("1.5"), "field_not_valid items.0.number must be an integer"},
		{"items.0.number", "1", "field_not_valid items.0.number must be an integer"},
		{"items.0.number", nil, "field_required items.0.number must not be empty"},
		{"items.2.number", 1, "field_not_valid items.2.number must be unique, but items.0.number is 1 too"},
		{"items.0.name", nil, "field_required items.0.name must not be empty"},
		{"items.0.name", "a\u202eb", "field_not_valid items.0.name must not contain the character U+202E"},
		{"items.0.name", "a\u2066b", "field_not_valid items.0.name must not contain the character U+2066"},
		{"items.0.name", "a\u0000b", "field_not_valid items.0.name must not contain the character U+0000"},
		{"items.0.name", "a\u007fb", "field_not_valid items.0.name must not contain the character U+007F"},
		{"items.0.name", "a\u0085b", "field_not_valid items.0.name must not contain the character U+0085"},
		{"items.0.name", "a\ufffeb", "field_not_valid items.0.name must not contain the character U+FFFE"},
		{"items.0.name", "a\U0001ffffb", "field_not_valid items.0.name must not contain the character U+1FFFF"},
		{"items.0.name", "a\ufdd0b", "field_not_valid items.0.name must not contain the character U+FDD0"},
		{"items.0.name", "a\nb", "field_not_valid items.0.name must not contain the character U+000A"},
		{"items.0.name", "a\u2028b", "field_not_valid items.0.name must not contain the character U+2028"},
		{"items.0.name", "שלום\u200f ]]> 日本 👩\u200d🚀", ""},
		{"note", "a\u202eb", "field_not_valid note must not contain the character U+202E"},
		{"note", "a\u0000", "field_not_valid note must not contain the character U+0000"},
		{"note", "\uffff", "field_not_valid note must not contain the character U+FFFF"},
		{"note", "<script>\r\n\t]]></script>\u2028", ""},
		{"items.0.quantity", 0, "field_not_valid items.0.quantity must be greater than 0"},
		{"items.0.quantity", json.Number("-0"), "field_not_valid items.0.quantity must be greater than 0"},
		{"items.0.quantity", json.Number("-0.5"), "field_not_valid items.0.quantity must be greater than 0"},
		{"items.0.quantity", json.Number("1e400"),
			"field_not_valid items.0.quantity must have at most 12 digits before the point"},
		{"items.0.quantity", json.Number("1e-400"), "field_not_valid items.0.quantity must have at most 6 decimals"},
		{"items.0.quantity", json.Number("1e99999999999999999999"),
			"field_not_valid items.0.quantity must have at most 12 digits before the point"},
		{"items.0.quantity", json.Number("0.12345678901234567"),
			"field_not_valid items.0.quantity must have at most 6 decimals"},
		{"items.0.quantity", json.Number("1." + strings.Repeat("0", 100)), ""},
		{"items.0.quantity", json.Number("1." + strings.Repeat("0", 100) + "1"),
			"field_not_valid items.0.quantity must have at most 6 decimals"},
		{"items.0.quantity", json.Number(strings.Repeat("9", 100)),
			"field_not_valid items.0.quantity must have at most 12 digits before the point"},
		{"items.0.quantity", json.Number("999999999999.999999"), ""},
		{"items.0.quantity", json.Number("1000000000000"),
			"field_not_valid items.0.quantity must have at most 12 digits before the point"},
		{"items.0.quantity", json.Number("0.000001"), ""},
		{"items.0.quantity", json.Number("0.0000001"), "field_not_valid items.0.quantity must have at most 6 decimals"},
		{"items.0.quantity", "3", "field_not_valid items.0.quantity must be a number"},
		{"items.0.quantity", true, "field_not_valid items.0.quantity must be a number"},
		{"items.0.unit_price", json.Number("7570.0"), ""},
		{"items.0.unit_price", json.Number("7570.5"),
			"field_not_valid items.0.unit_price must be an integer in minor units: did you mean 757050?"},
		{"items.0.unit_price", json.Number("75.70"),
			"field_not_valid items.0.unit_price must be an integer in minor units: did you mean 7570?"},
		{"items.0.unit_price", json.Number("75.7"),
			"field_not_valid items.0.unit_price must be an integer in minor units: did you mean 7570?"},
		{"items.0.unit_price", json.Number("75.00"),
			"field_not_valid items.0.unit_price must be an integer in minor units: did you mean 7500?"},
		{"items.0.unit_price", json.Number("-75.7"),
			"field_not_valid items.0.unit_price must be an integer in minor units: did you mean -7570?"},
		{"items.0.unit_price", json.Number("75.705"), "field_not_valid items.0.unit_price must be an integer in minor units"},
		{"items.0.unit_price", json.Number("9007199254740991.5"),
			"field_not_valid items.0.unit_price must be an integer in minor units"},
		{"items.0.unit_price", json.Number("9007199254740992.0"),
			"field_not_valid items.0.unit_price must not be more than 9007199254740991 in size"},
		{"items.0.unit_price", json.Number("0.00"), ""},
		{"items.0.unit_price", "75.70",
			"field_not_valid items.0.unit_price must be an integer in minor units: did you mean 7570?"},
		{"items.0.unit_price", "7570", "field_not_valid items.0.unit_price must be an integer"},
		{"items.0.unit_price", "75,70", "field_not_valid items.0.unit_price must be an integer"},
		{"items.0.unit_price", "", "field_not_valid items.0.unit_price must be an integer"},
		{"items.0.unit_price", false, "field_not_valid items.0.unit_price must be an integer"},
		{"items.0.unit_price", json.Number("1e3"), ""},
		{"items.0.unit_price", json.Number("1500e-2"), ""},
		{"items.0.unit_price", json.Number("1550e-2"),
			"field_not_valid items.0.unit_price must be an integer in minor units: did you mean 1550?"},
		{"items.0.unit_price", json.Number("1e400"),
			"field_not_valid items.0.unit_price must not be more than 9007199254740991 in size"},
		{"items.0.unit_price", json.Number("9007199254740991"), ""},
		{"items.0.unit_price", json.Number("-9007199254740991"), ""},
		{"items.0.unit_price", json.Number("9007199254740992"),
			"field_not_valid items.0.unit_price must not be more than 9007199254740991 in size"},
		{"items.0.unit_price", json.Number("-9007199254740992"),
			"field_not_valid items.0.unit_price must not be more than 9007199254740991 in size"},
		{"items.0.unit_price", json.Number("18446744073709551617"),
			"field_not_valid items.0.unit_price must not be more than 9007199254740991 in size"},
		{"items.0.unit_price", json.Number("-0"), ""},
		{"items.0.unit_price", nil, "field_required items.0.unit_price must not be empty"},
		{"items.0.type", "goods", "field_not_valid items.0.type must be one of GOODS, SERVICES, DISCOUNT"},
		{"items.0.tax_breakdowns", map[string]any{}, "field_not_valid items.0.tax_breakdowns must be an array"},
		{"items.0.tax_breakdowns.0", nil, "field_not_valid items.0.tax_breakdowns.0 must be an object"},
		{"items.0.tax_breakdowns.0.rate", nil, "field_required items.0.tax_breakdowns.0.rate must not be empty"},
		{"items.0.tax_breakdowns.0.rate", "25", "field_not_valid items.0.tax_breakdowns.0.rate must be a number"},
		{"items.0.tax_breakdowns.0.rate", 0, ""},
		{"items.0.tax_breakdowns.0.rate", 100, ""},
		{"items.0.tax_breakdowns.0.rate", json.Number("100.0001"),
			"field_not_valid items.0.tax_breakdowns.0.rate must be between 0 and 100"},
		{"items.0.tax_breakdowns.0.rate", 1000, "field_not_valid items.0.tax_breakdowns.0.rate must be between 0 and 100"},
		{"items.0.tax_breakdowns.0.rate", json.Number("-0.1"),
			"field_not_valid items.0.tax_breakdowns.0.rate must be between 0 and 100"},
		{"items.0.tax_breakdowns.0.rate", json.Number("9.1234"), ""},
		{"items.0.tax_breakdowns.0.rate", json.Number("9.12345"),
			"field_not_valid items.0.tax_breakdowns.0.rate must have at most 4 decimals"},
		{"items.0.tax_breakdowns.0.rate", json.Number("1e400"),
			"field_not_valid items.0.tax_breakdowns.0.rate must be between 0 and 100"},
		{"items.0.tax_breakdowns.0.regime", nil, "field_required items.0.tax_breakdowns.0.regime must not be empty"},
		{"items.0.tax_breakdowns.0.regime", "vat",
			"field_not_valid items.0.tax_breakdowns.0.regime must have capital letters, digits, - and _ only"},
		{"items.0.tax_breakdowns.0.application_mode", "ADDED",
			"field_not_valid items.0.tax_breakdowns.0.application_mode must be one of INCLUDED_IN_UNIT_PRICE, ADD_TO_UNIT_PRICE"},
		{"items.0.tax_breakdowns.0.type", "IRPF",
			"field_not_valid items.0.tax_breakdowns.0.type must be one of STANDARD, REDUCED, ZERO, EXEMPT, REVERSE, EXPORT, INTRA_EU, OUTSIDE"},
		{"items.0.tax_breakdowns.0.type", "INTRA_EU", ""},
		{"customer", "x", "field_not_valid customer must be an object"},
		{"customer.legal_name", nil, "field_required customer.legal_name must not be empty"},
		{"customer.type", nil, "field_required customer.type must not be empty"},
		{"customer.type", "PERSON", "field_not_valid customer.type must be one of INDIVIDUAL, BUSINESS"},
		{"customer.address", []any{1}, "field_not_valid customer.address must be an object"},
		{"customer.address.country_code", nil, "field_required customer.address.country_code must not be empty"},
		{"customer.address.country_code", "ZZ",
			"field_not_valid customer.address.country_code must be a country code of ISO 3166-1"},
		{"customer.address.country_code", "xx", ""},
		{"customer.address.number", 5, "field_not_valid customer.address.number must be a string"},
		{"customer.tax_information", 1, "field_not_valid customer.tax_information must be an object"},
		{"payments", map[string]any{}, "field_not_valid payments must be an array"},
		{"payments.0", nil, "field_not_valid payments.0 must be an object"},
		{"payments.0.type", "card",
			"field_not_valid payments.0.type must be one of CREDIT, CARD, CASH, TRANSFER, CHECK, OTHER"},
		{"payments.0.type", nil, "field_required payments.0.type must not be empty"},
		{"payments.0.amount", nil, "field_required payments.0.amount must not be empty"},
		{"payments.0.amount", json.Number("402.10"),
			"field_not_valid payments.0.amount must be an integer in minor units: did you mean 40210?"},
		{"payments.0.amount", "402.10",
			"field_not_valid payments.0.amount must be an integer in minor units: did you mean 40210?"},
		{"exchange_rate", 0, "field_not_valid exchange_rate must be greater than 0"},
		{"exchange_rate", json.Number("1.1234567"), "field_not_valid exchange_rate must have at most 6 decimals"},
		{"exchange_rate_date", "2026-3-1", "field_not_valid exchange_rate_date must be a day like 2006-01-02"},
		{"due_date", "2026-3-31", "field_not_valid due_date must be a day like 2006-01-02"},
		{"due_date", "2026-02-30", "field_not_valid due_date must be a day like 2006-01-02"},
		{"delivery_date", "2026-03-31T00:00:00Z", "field_not_valid delivery_date must be a day like 2006-01-02"},
		{"delivery_date", "2025-12-31", ""},
		{"payment_terms", "2 % in ten days\n30 days net", ""},
		{"buyer_reference", "04011000-12345-03", ""},
		{"buyer_reference", 7, "field_not_valid buyer_reference must be a string"},
		{"customer.electronic_address", "x", "field_not_valid customer.electronic_address must be an object"},
		{"customer.electronic_address", map[string]any{"id": "0123456789"},
			"field_required customer.electronic_address.scheme must not be empty"},
		{"customer.electronic_address", map[string]any{"scheme": "0208"},
			"field_required customer.electronic_address.id must not be empty"},
		{"customer.electronic_address", map[string]any{"scheme": "0208", "id": "0123456789"}, ""},
		{"customer.electronic_address", map[string]any{"scheme": "EM", "id": "x@example.com"}, ""},
		{"customer.electronic_address", map[string]any{"scheme": "em", "id": "x@example.com"},
			"field_not_valid customer.electronic_address.scheme must be an EAS code such as 0208, IT:SDI or IT:PEC"},
		{"customer.electronic_address", map[string]any{"scheme": "IT:SDI", "id": "ABC1234"}, ""},
		{"customer.electronic_address", map[string]any{"scheme": "IT:SDI", "id": "UFABCD"}, ""},
		{"customer.electronic_address", map[string]any{"scheme": "IT:SDI", "id": "ABC12345"},
			"field_not_valid customer.electronic_address.id must have 7 letters and digits, 6 of a public office"},
		{"customer.electronic_address", map[string]any{"scheme": "IT:PEC", "id": "a@pec.example.it"}, ""},
		{"customer.electronic_address", map[string]any{"scheme": "IT:PEC", "id": "pec.example.it"},
			"field_not_valid customer.electronic_address.id must be an address like name@example.com"},
		{"issuer", map[string]any{"legal_name": "i", "type": "BUSINESS",
			"electronic_address": map[string]any{"scheme": "9930", "id": "DE1"}}, ""},
		{"customer.email", "jane@example.com", ""},
		{"customer.email", "jane", "field_not_valid customer.email must be an address like name@example.com"},
		{"customer.email", "Jane <jane@example.com>",
			"field_not_valid customer.email must be an address like name@example.com"},
		{"customer.email", "a@b@c", "field_not_valid customer.email must be an address like name@example.com"},
		{"customer.phone", "+353 1 234 5678", ""},
		{"customer.phone", "none", "field_not_valid customer.phone must have at least 3 digits"},
		{"customer.tax_information.fiscal_code", "RSSMRA85T10A562S", ""},
		{"customer.tax_information.fiscal_code", "RSSMRA 85",
			"field_not_valid customer.tax_information.fiscal_code must have letters and digits only"},
		{"customer.tax_information.use", "G03", ""},
		{"customer.tax_information.use", "g03",
			"field_not_valid customer.tax_information.use must have capital letters, digits, - and _ only"},
		{"items.0.classification", []any{map[string]any{"scheme": "HSN", "code": "8471.30"},
			map[string]any{"scheme": "CPV", "code": "30213100"}}, ""},
		{"items.0.classification", []any{map[string]any{"code": "1"}},
			"field_required items.0.classification.0.scheme must not be empty"},
		{"items.0.classification", []any{map[string]any{"scheme": "CPV", "code": "1"}, map[string]any{"scheme": "CPV"}},
			"field_required items.0.classification.1.code must not be empty"},
		{"items.0.classification", []any{nil}, "field_not_valid items.0.classification.0 must be an object"},
		{"items.0.classification", map[string]any{}, "field_not_valid items.0.classification must be an array"},
		{"items.0.classification", slices.Repeat([]any{map[string]any{"scheme": "CPV", "code": "1"}}, 20), ""},
		{"items.0.classification", slices.Repeat([]any{map[string]any{"scheme": "CPV", "code": "1"}}, 21),
			"field_not_valid items.0.classification must not have more than 20 entries"},
		{"items.0.discount", map[string]any{"amount": 500}, ""},
		{"items.0.discount", map[string]any{"rate": json.Number("12.3456")}, ""},
		{"items.0.discount", map[string]any{"rate": 100}, ""},
		{"items.0.discount", map[string]any{"amount": 0, "rate": nil}, ""},
		{"items.0.discount", nil, ""},
		{"items.0.discount", map[string]any{}, "field_required items.0.discount must have an amount or a rate"},
		{"items.0.discount", map[string]any{"amount": 5, "rate": 5},
			"validation_match_invalid items.0.discount must have an amount or a rate, not both"},
		{"items.0.discount", 5, "field_not_valid items.0.discount must be an object"},
		{"items.0.discount", map[string]any{"amount": -1},
			"field_not_valid items.0.discount.amount must not be negative: its sign follows the line"},
		{"items.0.discount", map[string]any{"amount": json.Number("5.50")},
			"field_not_valid items.0.discount.amount must be an integer in minor units: did you mean 550?"},
		{"items.0.discount", map[string]any{"rate": json.Number("100.0001")},
			"field_not_valid items.0.discount.rate must be between 0 and 100"},
		{"items.0.discount", map[string]any{"rate": json.Number("1.23456")},
			"field_not_valid items.0.discount.rate must have at most 4 decimals"},
		{"total_amount", json.Number("402.10"),
			"field_not_valid total_amount must be an integer in minor units: did you mean 40210?"},
		{"total_net_amount", "x", "field_not_valid total_net_amount must be an integer"},
		{"total_tax_amount", nil, ""},
		{"items.0.net_price", json.Number("181.68"),
			"field_not_valid items.0.net_price must be an integer in minor units: did you mean 18168?"},
		{"items.0.tax_breakdowns.0.amount", true, "field_not_valid items.0.tax_breakdowns.0.amount must be an integer"},
		{"payments.0.iban", "DE89 3704 0044 0532 0130 00", ""},
		{"payments.0.iban", "GB82WEST12345698765432", ""},
		{"payments.0.iban", "MT84MALT011000012345MTLCAST001S", ""},
		{"payments.0.iban", "DE88370400440532013000",
			"field_not_valid payments.0.iban must be an IBAN with the right check digits"},
		{"payments.0.iban", "de89370400440532013000",
			"field_not_valid payments.0.iban must be an IBAN with the right check digits"},
		{"payments.0.iban", "DE8937040044053201300Ö",
			"field_not_valid payments.0.iban must be an IBAN with the right check digits"},
		{"payments.0.reference", "RF18 5390 0754 7034", ""},
		{"payments.0.date", "2026-02-28", ""},
		{"items.0.tax_breakdowns.0", map[string]any{"rate": 0, "regime": "IEPS", "quota": json.Number("308.1234"),
			"quota_base": json.Number("0.600001")}, ""},
		{"items.0.tax_breakdowns.0", map[string]any{"rate": 0, "regime": "IEPS", "quota": json.Number("308.12345")},
			"field_not_valid items.0.tax_breakdowns.0.quota must have at most 4 decimals"},
		{"items.0.tax_breakdowns.0", map[string]any{"rate": 0, "regime": "IEPS", "quota": json.Number("999999.9999")}, ""},
		{"items.0.tax_breakdowns.0", map[string]any{"rate": 0, "regime": "IEPS", "quota": json.Number("1000000")},
			"field_not_valid items.0.tax_breakdowns.0.quota must be greater than 0, with at most 6 digits before the point"},
		{"items.0.tax_breakdowns.0", map[string]any{"rate": 8, "regime": "IEPS", "quota": 5},
			"validation_match_invalid items.0.tax_breakdowns.0.quota stands in place of a rate: the rate is 0, and nothing is withheld by quota"},
		{"items.0.tax_breakdowns.0", map[string]any{"rate": 0, "regime": "IEPS", "quota_base": 5},
			"validation_match_invalid items.0.tax_breakdowns.0.quota_base is what a quota is for, and there is none"},
		{"payments.0.date", "2026-02-30", "field_not_valid payments.0.date must be a day like 2006-01-02"},
		{"third_parties.0", map[string]any{"legal_name": "A", "type": "BUSINESS", "role": "BUYER",
			"share": json.Number("100")}, ""},
		{"third_parties.0", map[string]any{"legal_name": "A", "type": "BUSINESS", "role": "BUYER",
			"share": json.Number("100.0001")}, "field_not_valid third_parties.0.share must be between 0 and 100"},
		{"reference_transaction_id", "x", "unsupported_field reference_transaction_id does not belong to this operation"},
		{"tax_authority_id_1", "x", "unsupported_field tax_authority_id_1 does not belong to this operation"},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s %.20v", c.path, c.value), func(t *testing.T) {
			body := transactiontest.Edit(t, transactiontest.Typical, map[string]any{c.path: c.value})
			tx, _, err := transaction.Decode(transaction.Invoice, body)
			if tx == nil {
				t.Fatalf("no transaction: %v", err)
			}
			got := transactiontest.FaultsIn(t, err)
			if c.want == "" {
				if len(got) != 0 {
					t.Fatalf("got %v", got)
				}
				return
			}
			if len(got) != 1 || string(got[0].Code)+" "+got[0].Message != c.want {
				t.Fatalf("got %v, want %s", got, c.want)
			}
		})
	}
}

// Lengths count characters, not bytes, and hold at the limit.
func TestLengthsAtAndPastTheLimit(t *testing.T) {
	limits := map[string]int{
		"buyer_reference": 100, "order_reference": 100, "contract_reference": 100, "project_reference": 100,
		"payment_terms": 500, "payments.0.reference": 140,
		"transaction_id": 150, "transaction_number": 50, "note": 3000, "supplier.id": 150,
		"customer.legal_name": 450, "customer.trade_name": 450, "customer.entity_number": 100,
		"customer.tax_information.tax_number": 50, "customer.tax_information.regime": 10, "customer.address.city": 200,
		"items.0.name": 200, "items.0.description": 200, "items.0.unit": 20, "items.0.code": 60, "items.0.ean": 13,
		"items.0.tax_breakdowns.0.code": 10, "payments.0.code": 32,
	}
	for path, limit := range limits {
		for _, letter := range []string{"x", "é", "日", "😀"} {
			if _, _, err := transaction.Decode(transaction.Invoice,
				transactiontest.Edit(t, transactiontest.Typical, map[string]any{path: strings.Repeat(letter, limit)})); err != nil {
				t.Errorf("%s of %d %s: %v", path, limit, letter, err)
			}
			_, _, err := transaction.Decode(transaction.Invoice,
				transactiontest.Edit(t, transactiontest.Typical, map[string]any{path: strings.Repeat(letter, limit+1)}))
			want := fmt.Sprintf("%s must be at most %d characters long", path, limit)
			if got := transactiontest.FaultsIn(t, err); len(got) != 1 || got[0].Message != want {
				t.Errorf("%s past %d %s: %v", path, limit, letter, got)
			}
		}
	}
	for _, n := range []int{10, 11} {
		_, _, err := transaction.Decode(transaction.Invoice,
			transactiontest.Edit(t, transactiontest.Typical,
				map[string]any{"items.0.tax_breakdowns.0.regime": strings.Repeat("A", n)}))
		if (err == nil) != (n == 10) {
			t.Errorf("regime of %d characters: %v", n, err)
		}
	}
}

// The hint counts in the currency's own decimals, wherever the currency stands
// in the body. A price of whole yen may be written with zeros: it is the same
// in either unit.
func TestHintsOfAmountsFollowTheCurrency(t *testing.T) {
	for _, c := range []struct{ currency, price, want string }{
		{`"EUR"`, "75.7", "must be an integer in minor units: did you mean 7570?"},
		{`"kwd"`, "75.7", "must be an integer in minor units: did you mean 75700?"},
		{`"KWD"`, "75.000", "must be an integer in minor units: did you mean 75000?"},
		{`"JPY"`, "75.00", ""},
		{`"JPY"`, "75.7", "must be an integer in minor units"},
		{`"XXX"`, "75.7", "must be an integer in minor units"},
		{`5`, "75.7", "must be an integer in minor units"},
		{`null`, "75.00", "must be an integer in minor units"},
	} {
		for _, form := range []string{`{"items":[{"unit_price":%s}],"currency_code":%s}`,
			`{"currency_code":%[2]s,"items":[{"unit_price":%[1]s}]}`} {
			_, _, err := transaction.Decode(transaction.Invoice, fmt.Appendf(nil, form, c.price, c.currency))
			got := ""
			for _, f := range transactiontest.FaultsIn(t, err) {
				if f.Field == "items.0.unit_price" {
					got = f.Reason()
				}
			}
			if got != c.want {
				t.Errorf("%s in %s: %q, want %q", c.price, c.currency, got, c.want)
			}
		}
	}
}

// What was accepted once is filed as it was understood, although it is refused today.
func TestAnAmountWithZerosIsStillReadBack(t *testing.T) {
	body := transactiontest.Edit(t, transactiontest.Typical, map[string]any{"items.0.unit_price": json.Number("7570.00")})
	if tx, _, err := transaction.Decode(transaction.Invoice, body); err == nil || tx.Items[0].UnitPrice != 7570 {
		t.Errorf("%v, %+v", err, tx.Items[0])
	}
}

func TestInstantsInEveryFormOfRFC3339(t *testing.T) {
	for text, want := range map[string]string{
		"2026-03-01T12:30:00Z":            "2026-03-01T12:30:00Z",
		"2026-03-01t12:30:00z":            "2026-03-01T12:30:00Z",
		"2026-03-01t12:30:00.25+02:00":    "2026-03-01T10:30:00.25Z",
		"2016-12-31T23:59:60Z":            "2016-12-31T23:59:59Z",
		"2016-12-31t23:59:60.75z":         "2016-12-31T23:59:59.75Z",
		"2017-01-01T08:59:60+09:00":       "2016-12-31T23:59:59Z", // the same leap second in Tokyo
		"2016-12-31T15:59:60-08:00":       "2016-12-31T23:59:59Z",
		"2016-12-31T23:59:60+09:00":       "",
		"2016-12-31T23:59:60":             "",
		"2016-02-30T23:59:60Z":            "",
		"2016-12-31T23:60:00Z":            "",
		"2026-03-01T12:30:00ZZ":           "",
		"2026-03-01T12:30:00":             "",
		"2026-03-01T12:30:00+25:00":       "",
		"":                                "",
		"z":                               "",
		"2026-03-01T12:30:00\u017f+00:00": "",
	} {
		at, ok := transaction.ParseInstant(text)
		if got := at.UTC().Format(time.RFC3339Nano); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s, %v, want %q", text, got, ok, want)
		}
	}
}

func TestItemsAtAndPastTheLimit(t *testing.T) {
	if tx, _, err := transaction.Decode(transaction.Invoice, transactiontest.ManyItems(5000)); err != nil ||
		len(tx.Items) != 5000 {
		t.Errorf("5,000 items: %v", err)
	}
	for _, n := range []int{5001, 9000} {
		_, _, err := transaction.Decode(transaction.Invoice, transactiontest.ManyItems(n))
		if got := transactiontest.FaultsIn(t, err); len(got) != 1 ||
			got[0].Message != "items must not have more than 5000 entries" {
			t.Errorf("%d items: %v", n, got)
		}
	}
}

func TestPaymentsAtAndPastTheLimit(t *testing.T) {
	body := func(n int) []byte {
		payments := strings.TrimSuffix(strings.Repeat(`{"type":"CASH","amount":1},`, n), ",")
		return []byte(`{"country_code":"ZZ","transaction_date":"2026-03-01T12:30:00Z","transaction_id":"c1","payments":[` + payments + `],"references":[{"transaction_id":"o1","amount":` + strconv.Itoa(n) + `}]}`)
	}
	if tx, _, err := transaction.Decode(transaction.PaymentReport, body(100)); err != nil || len(tx.Payments) != 100 {
		t.Errorf("100 payments: %v", err)
	}
	_, _, err := transaction.Decode(transaction.PaymentReport, body(101))
	if got := transactiontest.FaultsIn(t, err); len(got) != 1 ||
		got[0].Message != "payments must not have more than 100 entries" {
		t.Errorf("101 payments: %v", got)
	}
}

func TestBodiesAtAndPastTheLimitOfSize(t *testing.T) {
	body := append([]byte(transactiontest.Typical), bytes.Repeat([]byte(" "), 1<<20-len(transactiontest.Typical))...)
	if _, _, err := transaction.Decode(transaction.Invoice, body); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	if tx, _, err := transaction.Decode(transaction.Invoice, append(body, ' ')); tx != nil ||
		fault.KindOf(err) != fault.TooLarge {
		t.Errorf("a byte more: %v", err)
	}
}

func TestAllFaultsComeInOneAnswer(t *testing.T) {
	_, _, err := transaction.Decode(transaction.Invoice, []byte(`{"transaction_id": "", "items": [{"number": 0, "quantity": "x", "tax_breakdown": [{"rate": 101}]}],
		"customer": {"address": {}}, "payments": [{"amount": 1.5}], "supplier": {}}`))
	transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err),
		"field_not_valid items.0.number", "field_not_valid items.0.quantity", "field_not_valid items.0.tax_breakdown.0.rate",
		"field_required items.0.tax_breakdown.0.regime", "field_required items.0.name", "field_required items.0.unit_price",
		"field_required customer.address.country_code", "field_required customer.legal_name", "field_required customer.type",
		"field_not_valid payments.0.amount", "field_required payments.0.type", "field_required supplier.id",
		"field_required country_code", "field_required currency_code", "field_required transaction_date",
		"field_required transaction_id")
	if !strings.Contains(err.Error(), "16 faults") {
		t.Errorf("the message must say how many: %v", err)
	}
}

func TestAtMostAHundredFaultsAreListed(t *testing.T) {
	for _, n := range []int{25, 26, 4000} { // four faults each
		body := transactiontest.Edit(t, transactiontest.Typical, map[string]any{"items": []any{}})
		body = []byte(strings.Replace(string(body), `"items":[]`,
			`"items":[`+strings.TrimSuffix(strings.Repeat("{},", n), ",")+`]`, 1))
		_, _, err := transaction.Decode(transaction.Invoice, body)
		got := transactiontest.FaultsIn(t, err)
		var e *fault.Error
		errors.As(err, &e)
		want := fmt.Sprintf("the transaction is not valid: %d faults", 4*n)
		if n > 25 {
			want += ", the first 100 are listed"
		}
		if len(got) != 100 || e.Message != want {
			t.Errorf("%d faults: %d listed, message %q, want %q", 4*n, len(got), e.Message, want)
		}
	}
}

func TestUnknownFieldsAreWarnings(t *testing.T) {
	body := transactiontest.Edit(t, transactiontest.Typical, map[string]any{
		"colour": map[string]any{"deep": []any{1, "x", nil, true}}, "items.1.weight": 5, "customer.address.planet": "Earth",
		"items.0.tax_breakdowns.0.colour": 1, "payments.0.colour": "x", "issuer.email": "i@example.com",
		"issuer.legal_name": "i", "issuer.type": "BUSINESS", "issuer.tax_information.use": "G03", "supplier.name": "s",
		"customer.tax_information.x": 1,
	})
	_, warnings, err := transaction.Decode(transaction.Invoice, body)
	if err != nil {
		t.Fatal(err)
	}
	transactiontest.WantFaults(t, warnings, "field_unknown colour", "field_unknown customer.address.planet",
		"field_unknown customer.tax_information.x",
		"field_unknown issuer.email", "field_unknown issuer.tax_information.use",
		"field_unknown items.0.tax_breakdowns.0.colour", "field_unknown items.1.weight", "field_unknown payments.0.colour",
		"field_unknown supplier.name")
	if warnings[0].Type != fault.Warning || warnings[0].Message != "colour is not known and was ignored" {
		t.Errorf("got %+v", warnings[0])
	}
}

// Where a body has no items of its own there is nothing to compare a total
// with: it is not refused, and not ignored in silence.
func TestTotalsOfBodiesWithoutItemsAreWarnings(t *testing.T) {
	for kind, body := range map[transaction.Kind]string{
		transaction.Credit:   `{"country_code":"ZZ","transaction_date":"2026-03-01T12:30:00Z","transaction_id":"c1","reference_transaction_id":"o1","total_amount":-5}`,
		transaction.Backfill: `{"country_code":"ZZ","transaction_date":"2026-03-01T12:30:00Z","transaction_id":"c1","transaction_number":"1","total_amount":5}`,
	} {
		_, warnings, err := transaction.Decode(kind, []byte(body))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		transactiontest.WantFaults(t, warnings, "field_unknown total_amount")
	}
}

func TestUnknownNamesCannotFloodOrForgeTheAnswer(t *testing.T) {
	body := strings.Replace(transactiontest.Typical, "{",
		`{"a\u202e\u0000\n`+strings.Repeat("x", 1000)+`":1,`+names(50_000)+",", 1)
	started := time.Now()
	_, warnings, err := transaction.Decode(transaction.Invoice, []byte(body))
	if err != nil || len(warnings) != 100 {
		t.Fatalf("%d warnings, %v", len(warnings), err)
	}
	if took := time.Since(started); took > 20*time.Second && needs.IsLong() {
		t.Errorf("50,000 names take %v", took)
	}
	if f := warnings[0].Field; f != "a\ufffd\ufffd\ufffd"+strings.Repeat("x", 60)+"…" {
		t.Errorf("the name is repeated as %q", f)
	}
	if last := warnings[99]; last.Field != "" || last.Message != "49902 more fields are not known and were ignored" {
		t.Errorf("the last warning is %+v", last)
	}
}

func TestNullIsLikeAbsent(t *testing.T) {
	body := strings.NewReplacer(`"note": "<p>Thank you</p>"`,
		`"note": null, "issuer": null, "exchange_rate": null, "reason": null, "payments": null`,
		`"payments": [{"type": "CARD", "amount": 40210}]`, `"language_code": null`, `"language_code": "EN", `, "",
		`"unit": "piece"`, `"unit": null, "description": null`, `"type": "SERVICES"`,
		`"type": null`).Replace(transactiontest.Typical)
	tx, warnings, err := transaction.Decode(transaction.Invoice, []byte(body))
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	if tx.Note != "" || tx.Issuer != nil || tx.ExchangeRate != nil || tx.Payments != nil || tx.LanguageCode != "" ||
		tx.Items[1].Type != transaction.Goods {
		t.Errorf("got %+v", tx)
	}
}

func TestTaxBreakdownIsReadLikeTaxBreakdowns(t *testing.T) {
	tx, warnings, err := transaction.Decode(transaction.Invoice,
		[]byte(strings.Replace(transactiontest.Typical, "tax_breakdowns", "tax_breakdown", 1)))
	if err != nil || len(warnings) != 0 || len(tx.Items[0].Taxes) != 1 {
		t.Fatal(err, warnings)
	}
	_, _, err = transaction.Decode(transaction.Invoice,
		[]byte(strings.Replace(transactiontest.Typical, `"number": 1`,
			`"number": 1, "tax_breakdown": [{"rate": 1, "regime": "VAT"}]`, 1)))
	transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), "validation_match_invalid items.0.tax_breakdowns")
}

func TestEveryKindHasItsOwnMembers(t *testing.T) {
	correction := `{"country_code": "ZZ", "transaction_date": "2026-03-01T12:30:00Z", "transaction_id": "c1", "reference_transaction_id": "o1", "note": "n", "transaction_number": "C-1"}`
	backfill := `{"country_code": "ZZ", "transaction_date": "2026-03-01T12:30:00Z", "transaction_id": "b1", "transaction_number": "B-1", "tax_authority_id_1": "a"}`
	with := func(body string, changes map[string]any) []byte { return transactiontest.Edit(t, body, changes) }
	cases := []struct {
		name string
		kind transaction.Kind
		body []byte
		want []string
	}{
		{"credit", transaction.Credit, []byte(correction), nil},
		{"credit with a reason", transaction.Credit, with(correction, map[string]any{"reason": "01"}),
			[]string{"unsupported_field reason"}},
		{"credit with items", transaction.Credit,
			with(transactiontest.Typical, map[string]any{"reference_transaction_id": "o1"}),
			[]string{"unsupported_field currency_code", "unsupported_field customer", "unsupported_field items",
				"unsupported_field language_code", "unsupported_field payments", "unsupported_field supplier"}},
		{"credit of nothing", transaction.Credit, []byte("{}"),
			[]string{"field_required country_code", "field_required transaction_date", "field_required transaction_id",
				"field_required reference_transaction_id"}},
		{"credit without note and number", transaction.Credit,
			with(correction, map[string]any{"note": nil, "transaction_number": nil}), nil},
		{"cancellation", transaction.Cancellation, with(correction, map[string]any{"reason": "01"}), nil},
		{"cancellation without a reason", transaction.Cancellation, []byte(correction), nil},
		{"adjustment", transaction.Adjustment,
			with(transactiontest.Typical, map[string]any{"reference_transaction_id": "o1"}), nil},
		{"adjustment without an original", transaction.Adjustment, []byte(transactiontest.Typical),
			[]string{"field_required reference_transaction_id"}},
		{"adjustment without items", transaction.Adjustment, []byte(correction),
			[]string{"field_required currency_code", "field_required supplier", "field_required items"}},
		{"backfill", transaction.Backfill, []byte(backfill), nil},
		{"backfill without a number", transaction.Backfill, with(backfill, map[string]any{"transaction_number": nil}),
			[]string{"field_required transaction_number"}},
		{"backfill with a document", transaction.Backfill,
			with(transactiontest.Typical, map[string]any{"language_code": nil, "note": nil, "payments": nil}), nil},
		{"backfill with items in no currency", transaction.Backfill,
			with(transactiontest.Typical, map[string]any{"language_code": nil, "note": nil, "payments": nil,
				"currency_code": nil}), []string{"field_required currency_code"}},
		{"backfill with a reference", transaction.Backfill,
			with(backfill, map[string]any{"reference_transaction_id": "x", "note": "n"}),
			[]string{"unsupported_field note", "unsupported_field reference_transaction_id"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tx, warnings, err := transaction.Decode(c.kind, c.body)
			transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), c.want...)
			if len(warnings) != 0 || tx.Kind != c.kind {
				t.Errorf("kind %s, warnings %v", tx.Kind, warnings)
			}
		})
	}
}

// Any JSON number is the fraction it says, or is refused for what it is.
func TestNumbersAreReadExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Skip("no number")
		}
		body := strings.Replace(transactiontest.Typical, `"unit_price": 7570`, `"unit_price": `+text, 1)
		tx, _, err := transaction.Decode(transaction.Invoice, []byte(body))
		size := new(big.Rat).Abs(exact)
		wanted := exact.IsInt() && size.Cmp(new(big.Rat).SetInt64(transaction.AmountMax)) <= 0
		_, decimals, _ := strings.Cut(text, ".")
		euros := len(decimals) > 1 && !strings.ContainsAny(text, "eE") && exact.Sign() != 0
		if (wanted && !euros) != (err == nil) || wanted && exact.Num().Int64() != tx.Items[0].UnitPrice {
			t.Fatalf("unit_price %s: got %d, %v", text, tx.Items[0].UnitPrice, err)
		}
		body = strings.Replace(transactiontest.Typical, `"quantity": 3`, `"quantity": `+text, 1)
		tx, _, err = transaction.Decode(transaction.Invoice, []byte(body))
		scaled := new(big.Rat).Mul(exact, big.NewRat(1_000_000, 1))
		wanted = scaled.IsInt() && scaled.Sign() > 0 && scaled.Cmp(big.NewRat(1_000_000_000_000_000_000, 1)) < 0
		if wanted != (err == nil) {
			t.Fatalf("quantity %s: %v", text, err)
		}
		if q := tx.Items[0].Quantity; wanted && q.Rescale(6).Value() != scaled.Num().Int64() {
			t.Fatalf("quantity %s is read as %v", text, q)
		}
	})
}
