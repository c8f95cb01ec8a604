package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/ledger"
)

// frenchSales are consumer sales of a shop on two days: sums by day, currency and
// category, as the shop's own books have them.
type frenchSales struct {
	files []string // bodies
	sums  map[string]*frenchSum
}

type frenchSum struct{ net, tax, count int64 }

// frenchKinds are what the shop sells: for how much without tax, at which rate.
var frenchKinds = []struct {
	kind, category, rate string
	price, tax           int64
}{
	{"GOODS", "TLB1", "20", 1250, 250}, {"GOODS", "TLB1", "5.5", 2000, 110}, {"SERVICES", "TPS1", "10", 3000, 300}, {"SERVICES", "TPS1", "20", 500, 100},
}

// sellInFrance makes so many sales in a period of ten days: each of one line, some in
// Swiss francs at 1.05 euro.
func sellInFrance(supplier string, n int, days []time.Time) frenchSales {
	s := frenchSales{sums: map[string]*frenchSum{}}
	for i := range n {
		k, day, currency, rate := frenchKinds[i%len(frenchKinds)], days[i%7%len(days)], "EUR", ""
		tax := k.tax
		if i%10 == 9 {
			currency, rate = "CHF", fmt.Sprintf(`"exchange_rate":1.05,"exchange_rate_date":%q,`, day.Format(time.DateOnly))
			tax = (k.tax*105 + 50) / 100
		}
		quantity := int64(i%3 + 1)
		if quantity > 1 && currency == "CHF" {
			quantity = 1 // the rounding of one amount is enough here
		}
		s.files = append(s.files, fmt.Sprintf(`{"country_code":"FR","currency_code":%q,%s"transaction_date":%q,"transaction_number":"CAISSE-%d","transaction_id":"fr-%d",
			"supplier":{"id":%q},"items":[{"number":1,"name":"Article","type":%q,"quantity":%d,"unit_price":%d,
			"tax_breakdowns":[{"rate":%s,"regime":"VAT","application_mode":"ADD_TO_UNIT_PRICE"}]}]}`, currency, rate, day.Format(time.RFC3339), i, i, supplier, k.kind, quantity, k.price, k.rate))
		key := day.Format("20060102") + " " + currency + " " + k.category
		if s.sums[key] == nil {
			s.sums[key] = &frenchSum{}
		}
		s.sums[key].net += quantity * k.price
		s.sums[key].tax += quantity * tax
		s.sums[key].count++
	}
	return s
}

// frenchReport is what of a report of flow 10 is compared.
type frenchReport struct {
	Type   string `xml:"ReportDocument>TypeCode"`
	Groups []struct {
		Day      string `xml:"Date"`
		Currency string `xml:"TransactionsCurrency"`
		Category string `xml:"CategoryCode"`
		Net      string `xml:"TaxExclusiveAmount"`
		Tax      string `xml:"TaxTotal"`
		Count    int64  `xml:"TransactionsCount"`
	} `xml:"TransactionsReport>Transactions"`
}

// 500 sales to consumers in the demo are one report of their period, with one
// aggregate for each day, currency and category, whose sums are those of the sales.
func TestConsumerSalesInFranceAreOneReportOfTheirPeriod(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo := spawn(t, demoArgs(t, dir)...)
	url := demo.waitReady()
	var shop struct{ ID string }
	get(t, url+"/onboarding/v2/companies/demo-FR?external-id=true", &shop)
	zone, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().In(zone)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 1, 0, zone)
	days := []time.Time{midnight}
	if d := now.Day(); d != 1 && d != 11 && d != 21 {
		days = append(days, midnight.AddDate(0, 0, -1))
	}
	sold := sellInFrance(shop.ID, 500, days)
	files := t.TempDir()
	for i, body := range sold.files {
		write(t, filepath.Join(files, strconv.Itoa(i)+".json"), body)
	}
	if code, out, errs := call(t, "submit", files, "--url", url, "--api-key", testKey, "--wait"); code != 0 {
		t.Fatalf("%d %s%s", code, tailOf(out), tailOf(errs))
	}
	demo.stop()
	d := dbtest.Open(t, db.Config{URL: "sqlite:" + filepath.Join(dir, "tributary.db"), NoWorkers: true})
	if err := d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec("UPDATE periods SET due_at = 1") }); err != nil { // its end, as midnight brings it
		t.Fatal(err)
	}
	demo = spawn(t, demoArgs(t, dir)...)
	url = demo.waitReady()
	var told struct {
		Lifecycle []struct{ Code string }
		ID        *string `json:"tax_authority_id_1"`
	}
	last := operationOf(t, url, "fr-499")
	for late := time.Now().Add(patience); told.ID == nil || len(told.Lifecycle) == 0; <-time.After(50 * time.Millisecond) {
		if get(t, url+"/v1/transactions/"+last, &told); time.Now().After(late) {
			t.Fatalf("no report was filed: %+v", told)
		}
	}
	var list []ledger.Period
	if err := d.Read(t.Context(), func(r db.Reader) (err error) {
		list, _, err = ledger.Periods(r, ledger.PeriodFilter{SupplierID: shop.ID, Limit: 10})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || len(list[0].Documents) != 1 || list[0].Sales != 500 {
		t.Fatalf("%+v", list)
	}
	compareFrench(t, reportOf(t, url, list[0].Documents[0].OperationID), sold.sums)
}

// compareFrench compares a report with what was sold.
func compareFrench(t *testing.T, text []byte, sums map[string]*frenchSum) {
	t.Helper()
	var report frenchReport
	if err := xml.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if report.Type != "IN" || len(report.Groups) != len(sums) {
		t.Fatalf("%s with %d groups instead of %d:\n%s", report.Type, len(report.Groups), len(sums), text)
	}
	cents := func(amount string) int64 {
		whole, part, _ := strings.Cut(amount, ".")
		n, err := strconv.ParseInt(whole+(part + "00")[:2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, g := range report.Groups {
		key := g.Day + " " + g.Currency + " " + g.Category
		want := sums[key]
		if want == nil || cents(g.Net) != want.net || cents(g.Tax) != want.tax || g.Count != want.count {
			t.Errorf("%s: %+v instead of %+v", key, g, want)
		}
		delete(sums, key)
	}
}

// reportOf reads what was filed by an operation.
func reportOf(t *testing.T, url, operation string) []byte {
	t.Helper()
	var result struct {
		Attachments []struct {
			Kind string
			ID   string `json:"resource_id"`
		}
	}
	get(t, url+"/v1/transactions/"+operation, &result)
	for _, a := range result.Attachments {
		if a.Kind == "REPORT" {
			return fetched(t, url+"/invoicing/v1/invoices/"+a.ID+"/xml")
		}
	}
	t.Fatalf("no report among %+v", result)
	return nil
}

// fetched downloads a document.
func fetched(t *testing.T, address string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", address, resp.StatusCode, err)
	}
	return text
}

// operationOf is the operation of a transaction.
func operationOf(t *testing.T, url, transaction string) string {
	t.Helper()
	var page struct {
		History []struct {
			ID string `json:"operation_id"`
		}
	}
	if status := get(t, url+"/v1/transactions/history/"+transaction, &page); status != http.StatusOK || len(page.History) != 1 {
		t.Fatalf("%s: %d %+v", transaction, status, page)
	}
	return page.History[0].ID
}

func tailOf(text string) string { return text[max(0, len(text)-2000):] }
