package nav_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/official"
	"tributary/internal/xmltree"
)

const buyer = "13774721"

// asks is a question whose answer has the official structure.
func (c *caller) asks(operation, taxpayer, body string) (int, string) {
	c.t.Helper()
	status, text := c.call(operation, c.request(operation, taxpayer, body))
	doc, err := xmltree.Limits{Bytes: 1 << 20}.Read([]byte(text))
	if err != nil {
		c.t.Fatal(err)
	}
	if flaw := official.NAV.Schema().First(doc.Root); flaw != nil {
		c.t.Errorf("%s: %v", operation, flaw)
	}
	return status, text
}

func inbound(page string, from, to time.Time) string {
	const layout = "2006-01-02T15:04:05.000Z"
	return "<page>" + page + "</page><invoiceDirection>INBOUND</invoiceDirection><invoiceQueryParams><mandatoryQueryParams><insDate><dateTimeFrom>" +
		from.UTC().Format(layout) + "</dateTimeFrom><dateTimeTo>" + to.UTC().Format(layout) +
		"</dateTimeTo></insDate></mandatoryQueryParams></invoiceQueryParams>"
}

func numbered(number, direction, seller string) string {
	if seller != "" {
		seller = "<supplierTaxNumber>" + seller + "</supplierTaxNumber>"
	}
	return "<invoiceNumberQuery><invoiceNumber>" + number + "</invoiceNumber><invoiceDirection>" + direction + "</invoiceDirection>" +
		seller + "</invoiceNumberQuery>"
}

// A customer's side of what two sellers reported under one number: listed by the time of processing, got by number and
// seller, and nobody else's.
func TestCustomersSeeWhatWasReported(t *testing.T) {
	t.Parallel()
	c := open(t)
	const other = "12345676"
	document := sample(t, "Belfoldi termekertekesites.xml")
	for _, seller := range []string{taxpayer, other} {
		if state, codes := c.report(seller, "CREATE", strings.ReplaceAll(document, taxpayer, seller)); state != "DONE" {
			t.Fatalf("%s %v", state, codes)
		}
	}
	number, now := part(document, "invoiceNumber"), time.Now()
	const list, data = "queryInvoiceDigest", "queryInvoiceData"
	for whose, want := range map[string]int{buyer: 2, taxpayer: 0} {
		if status, text := c.asks(list, whose, inbound("1", now.Add(-time.Hour), now.Add(time.Hour))); status != http.StatusOK ||
			strings.Count(text, "<invoiceDigest>") != want {
			t.Errorf("%s: %d %s", whose, status, text)
		}
	}
	if _, text := c.asks(list, buyer, inbound("1", now.Add(-2*time.Hour), now.Add(-time.Hour))); strings.Contains(text, "<invoiceDigest>") {
		t.Errorf("an hour before: %s", text)
	}
	for name, x := range map[string]struct {
		operation, whose, body string
		status                 int
		wants                  string
	}{
		"35 days":         {list, buyer, inbound("1", now.AddDate(0, 0, -35), now), 200, "<availablePage>1<"},
		"more":            {list, buyer, inbound("1", now.AddDate(0, 0, -36), now), 400, "BAD_QUERY_PARAM_RANGE_EXCEEDED"},
		"its data":        {data, buyer, numbered(number, "INBOUND", other), 200, "<invoiceData>"},
		"of two":          {data, buyer, numbered(number, "INBOUND", ""), 400, "MULTIPLE_QUERY_RESULT_FOUND"},
		"of the supplier": {data, taxpayer, numbered(number, "OUTBOUND", other), 400, "BAD_QUERY_PARAM_SUPPLIER_NOT_EXPECTED"},
	} {
		if status, text := c.asks(x.operation, x.whose, x.body); status != x.status || !strings.Contains(text, x.wants) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	for name, body := range map[string]string{"another's": numbered(number, "INBOUND", taxpayer), "unknown": numbered("?", "INBOUND", "")} {
		if status, text := c.asks(data, other, body); status != http.StatusOK || strings.Contains(text, "invoiceData>") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}
