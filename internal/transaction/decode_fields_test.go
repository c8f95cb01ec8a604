package transaction_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

// kindOf finds a kind whose body has the member, and a valid body of it.
func kindOf(t *testing.T, path string) (transaction.Kind, string) {
	head, _, _ := strings.Cut(path, ".")
	switch head {
	case "reason", "reference_transaction_id":
		return transaction.Cancellation,
			`{"country_code":"ZZ","transaction_date":"2026-03-01T12:30:00Z","transaction_id":"c1","reference_transaction_id":"o1"}`
	case "references":
		return transaction.PaymentReport,
			`{"country_code":"ZZ","transaction_date":"2026-03-01T12:30:00Z","transaction_id":"c1","payments":[{"type":"CASH","amount":5}],"references":[{"transaction_id":"o1","amount":5}]}`
	case "tax_authority_id_1":
		return transaction.Backfill,
			`{"country_code":"ZZ","transaction_date":"2026-03-01T12:30:00Z","transaction_id":"c1","transaction_number":"1"}`
	}
	return transaction.Invoice, string(transactiontest.Edit(t, transactiontest.Typical,
		map[string]any{"issuer": map[string]any{"legal_name": "i", "type": "BUSINESS"}}))
}

func concrete(path string) string { return transaction.Place{}.Path(path) }

// The list of fields that rules may name and the members that bodies may have
// are the same, in both directions.
func TestDecoderAndFieldPathsAgree(t *testing.T) {
	paths := transaction.FieldPaths()
	if !slices.IsSorted(paths) || len(slices.Compact(slices.Clone(paths))) != len(paths) {
		t.Error("the list must be sorted and without duplicates")
	}
	for _, path := range paths {
		kind, body := kindOf(t, path)
		// A boolean is the wrong type of every member but one, so a known one has a fault of its own.
		var wrong any = true
		if strings.HasSuffix(path, ".ancillary") {
			wrong = "true"
		}
		_, _, err := transaction.Decode(kind, transactiontest.Edit(t, body, map[string]any{concrete(path): wrong}))
		if got := transactiontest.FaultsIn(t, err); !slices.ContainsFunc(got, func(f fault.Fault) bool {
			return f.Code == fault.FieldNotValid && f.Field == concrete(path)
		}) {
			t.Errorf("%s is in the list, but the decoder does not read it: %v", path, got)
		}
	}
	objects := []string{"", "supplier.", "items.*.", "items.*.tax_breakdowns.*.", "items.*.classification.*.",
		"items.*.discount.", "payments.*.", "references.*."}
	for _, party := range []string{"customer.", "issuer."} {
		objects = append(objects, party, party+"address.", party+"tax_information.", party+"electronic_address.")
	}
	for _, name := range namesInSource(t) {
		for _, object := range objects {
			path := object + name
			if slices.Contains(paths, path) || path == "items.*.tax_breakdown" {
				continue
			}
			kind, body := kindOf(t, path)
			_, warnings, err := transaction.Decode(kind, transactiontest.Edit(t, body, map[string]any{concrete(path): true}))
			if !slices.ContainsFunc(warnings, func(f fault.Fault) bool { return f.Field == concrete(path) }) {
				t.Errorf("the decoder reads %s, which is not in the list: %v", path, err)
			}
		}
	}
}

// namesInSource are all words of the decoder's own source that could be a member's name.
func namesInSource(t *testing.T) []string {
	files, err := filepath.Glob("decode*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "fields.go")
	word := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	found := []string{"anything"}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && word.MatchString(text) {
					found = append(found, text)
				}
			}
			return true
		})
	}
	slices.Sort(found)
	if found = slices.Compact(found); len(found) < 50 {
		t.Fatalf("only %d names found in the source", len(found))
	}
	return found
}

// What a rule sees of a member is what the client sent.
func TestEachFieldVisitsWhatWasSent(t *testing.T) {
	sent := map[string]any{
		"country_code": "ZZ", "language_code": "EN", "currency_code": "EUR", "transaction_date": "2026-03-01T12:30:00Z",
		"items.*.number": json.Number("7"), "items.*.quantity": json.Number("1.5"), "items.*.unit_price": json.Number("-42"),
		"items.*.type":                  "SERVICES",
		"items.*.tax_breakdowns.*.rate": json.Number("12.5"), "items.*.tax_breakdowns.*.regime": "IGIC",
		"items.*.tax_breakdowns.*.type": "REDUCED", "items.*.tax_breakdowns.*.application_mode": transaction.Added,
		"payments.*.type": "CASH", "payments.*.amount": json.Number("5"), "customer.type": "INDIVIDUAL",
		"issuer.type":                   "BUSINESS",
		"customer.address.country_code": "FR", "issuer.address.country_code": "IT",
		"customer.electronic_address.scheme": "0208", "issuer.electronic_address.scheme": "EM", "customer.email": "a@b.c",
		"customer.phone":               "0123",
		"customer.tax_information.use": "G03", "delivery_date": "2026-02-04", "due_date": "2026-04-05",
		"items.*.classification.*.scheme": "CPV",
		"total_amount":                    json.Number("40210"), "total_net_amount": json.Number("-1"),
		"total_tax_amount": json.Number("0"), "items.*.net_price": json.Number("3"), "items.*.ancillary": true,
		"items.*.tax_breakdowns.*.amount": json.Number("4"), "items.*.discount.amount": json.Number("7"),
		"items.*.discount.rate": json.Number("7.5"),
		"references.*.amount":   json.Number("6"),
		"third_parties.*.role":  "PAYER", "third_parties.*.share": json.Number("12.5"), "payments.*.date": "2026-02-05",
		"items.*.tax_breakdowns.*.quota": json.Number("12.5"), "items.*.tax_breakdowns.*.quota_base": json.Number("1.5"),
		"third_parties.*.type": "BUSINESS", "third_parties.*.address.country_code": "PL",
		"third_parties.*.electronic_address.scheme": "EM",
		"payments.*.iban": "GB82WEST12345698765432", "payee.iban": "GB82WEST12345698765432",
		"delivery.address.country_code": "FR",
		"period.from":                   "2026-02-01", "period.to": "2026-02-28", "items.*.period.from": "2026-02-01",
		"items.*.period.to": "2026-02-28",
		"exchange_rate":     json.Number("1.25"), "exchange_rate_date": "2026-02-03",
	}
	sent["attachments.*.type"], sent["attachments.*.content"] = "text/csv", "YSxi"
	for _, extras := range []string{"allowances.*.", "charges.*."} {
		sent[extras+"amount"], sent[extras+"rate"] = json.Number("7"), json.Number("7.5")
		for path, value := range maps.Clone(sent) {
			if member, ok := strings.CutPrefix(path, "items.*.tax_breakdowns"); ok {
				sent[extras+"tax_breakdowns"+member] = value
			}
		}
	}
	containers := map[string]bool{
		"items": true, "items.*.tax_breakdowns": true, "payments": true, "references": true, "supplier": true,
		"customer": true, "issuer": true,
		"items.*.classification": true, "items.*.discount": true, "customer.electronic_address": true,
		"issuer.electronic_address": true, "customer.address": true, "customer.tax_information": true,
		"issuer.address": true, "issuer.tax_information": true,
		"period": true, "items.*.period": true, "delivery": true, "delivery.address": true, "payee": true,
		"payments.*.mandate": true,
		"third_parties":      true, "third_parties.*.address": true, "third_parties.*.tax_information": true,
		"third_parties.*.electronic_address": true,
		"attachments":                        true, "allowances": true, "allowances.*.tax_breakdowns": true, "charges": true,
		"charges.*.tax_breakdowns": true,
	}
	for path, value := range maps.Clone(sent) {
		if strings.HasPrefix(path, "items.") {
			sent["order_"+path] = value
		}
	}
	for path := range maps.Clone(containers) {
		if strings.HasPrefix(path, "items") {
			containers["order_"+path] = true
		}
	}
	for i, path := range transaction.FieldPaths() {
		kind, body := kindOf(t, path)
		want, ok := sent[path]
		if !ok && !containers[path] {
			want = "v" + strconv.Itoa(i)
		}
		if want != nil {
			body = string(transactiontest.Edit(t, body, map[string]any{concrete(path): want}))
		} else if strings.HasPrefix(path, "order_items.*") {
			body = string(transactiontest.Edit(t, body, map[string]any{"order_items.0.name": "x"}))
		} else if path == "attachments.*.name" {
			body = string(transactiontest.Edit(t, body, map[string]any{"attachments.0.type": "text/csv"}))
		} else if head, _, found := strings.Cut(path, ".*"); found && (head == "allowances" || head == "charges") {
			body = string(transactiontest.Edit(t, body, map[string]any{head + ".0.reason": "x"}))
		} else if strings.HasPrefix(path, "third_parties.*") { // no body has any by itself
			body = string(transactiontest.Edit(t, body, map[string]any{"third_parties.0.role": "PAYER"}))
		}
		tx, _, _ := transaction.Decode(kind, []byte(body))
		visited := 0
		known := tx.EachField(path, func(at transaction.Place, text string) {
			if at != (transaction.Place{}) {
				return
			}
			visited++
			if want != nil && text != toText(want) {
				t.Errorf("%s: visited %q, sent %v", path, text, want)
			}
		})
		if !known || visited != 1 {
			t.Errorf("%s: known %v, visited %d times", path, known, visited)
		}
		empty := &transaction.Transaction{}
		if !empty.EachField(path, func(_ transaction.Place, text string) {
			if text != "" {
				t.Errorf("%s of an empty transaction is %q", path, text)
			}
		}) {
			t.Errorf("%s is not known without a value", path)
		}
	}
	for _, path := range []string{"", "x", "items.0.name", "items.name", "items.*.x", "items.*.tax_breakdowns.*.x",
		"customer.x", "customer.address.x", "supplier.x", "payments.*.x", "payments.type"} {
		if (&transaction.Transaction{}).EachField(path, func(transaction.Place, string) {}) {
			t.Errorf("%q must not be known", path)
		}
	}
}

func toText(v any) string {
	if n, ok := v.(json.Number); ok {
		return n.String()
	}
	if b, ok := v.(bool); ok {
		return strconv.FormatBool(b)
	}
	return v.(string)
}
