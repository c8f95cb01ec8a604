package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/official/sdiwire"
	"tributary/internal/server"
)

// A refused body is read on for a while, so that the refusal arrives: whoever
// writes all of it before reading sees no reset.
func TestRefusalsOfLargeBodiesArrive(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	post := func(key, media string, size int) (int, error) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL(), "http://"))
		if err != nil {
			return 0, err
		}
		defer func() { _ = conn.Close() }() // only a reader of one answer
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return 0, err
		}
		head := fmt.Sprintf("POST /v1/transactions HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", media, key, size)
		if _, err := conn.Write([]byte(head + strings.Repeat("x", size))); err != nil {
			return 0, fmt.Errorf("writing: %w", err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0, fmt.Errorf("reading: %w", err)
		}
		return answer.StatusCode, answer.Body.Close()
	}
	for _, c := range []struct {
		key, media string
		size, want int
	}{
		{demoKey, "application/json", 1_050_000, 413}, {demoKey, "application/json", 15 << 20, 413},
		{"none", "application/json", 2_000_000, 401}, {demoKey, "text/plain", 2_000_000, 415},
	} {
		for range 5 {
			if got, err := post(c.key, c.media, c.size); err != nil || got != c.want {
				t.Fatalf("%d bytes as %s: %d %v, want %d", c.size, c.media, got, err, c.want)
			}
		}
	}
	// A limit of requests lets one through now and then; the answer arrives in any case.
	limited, refused := p.as(p.limited), 0
	for try := 0; refused < 5; try++ {
		limited.do(t, "GET", "/v1/countries/XX", nil) // spends what it has
		got, err := post(p.limited, "application/json", 2_000_000)
		if err != nil || got != 429 && got != 413 || try > 500 {
			t.Fatalf("past the limit of requests: %d %v after %d tries", got, err, try)
		}
		if got == 429 {
			refused++
		}
	}
}

func TestFourFaultsOfFourSortsComeInOneAnswer(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	body := p.sale(t, "", object{"country_code": "MX", "currency_code": "USD",
		"payments":         []any{object{"type": "CARD", "code": "PUE", "amount": 1}},
		"transaction_date": time.Now().UTC().Format(time.RFC3339), "customer": nil, "issuer": nil,
		"items": []any{object{"number": 0, "name": "a", "quantity": 1, "unit_price": 1160, "code": "12345678",
			"tax_breakdowns": []any{object{"rate": 16, "regime": "VAT"}}}}})
	var found []string
	for _, f := range p.as(demoKey).want(t, 400, "POST", "/v1/transactions", body).json(t)["errors"].([]any) {
		found = append(found, f.(object)["code"].(string)+" "+f.(object)["field"].(string))
	}
	slices.Sort(found)
	want := []string{"field_not_valid items.0.code", "field_not_valid items.0.number", "field_not_valid payments",
		"field_required exchange_rate", "field_required transaction_id"}
	if !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

func TestCorrectionsCanBeTriedWithoutBeingStored(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(demoKey)
	short := object{"country_code": "XX", "transaction_date": "2026-01-31T10:00:00Z", "transaction_id": "tried",
		"reference_transaction_id": "o"}
	for _, kind := range []string{"CREDIT", "CANCELLATION"} {
		if got := c.want(t, 200, "POST", "/v1/transactions/validate?kind="+kind, short).json(t); got["valid"] != true {
			t.Errorf("%s: %v", kind, got)
		}
	}
	c.want(t, 400, "POST", "/v1/transactions/validate", short)
	c.want(t, 400, "POST", "/v1/transactions/validate?kind=ADJUSTMENT", short)
	whole := p.sale(t, "tried", object{"reference_transaction_id": "o"})
	c.want(t, 200, "POST", "/v1/transactions/validate?kind=ADJUSTMENT", whole)
	c.want(t, 400, "POST", "/v1/transactions/validate?kind=ADJUSTMENT", p.sale(t, "tried", nil))
	c.want(t, 400, "POST", "/v1/transactions/validate?kind=BACKFILL", short)
	c.want(t, 404, "GET", "/v1/transactions/history/tried", nil)
}

func TestCountriesSayWhatTheClientMayUse(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	use := func(query string) map[string]any {
		t.Helper()
		all := map[string]any{}
		for _, one := range p.as(demoKey).want(t, 200, "GET", "/v1/countries"+query, nil).json(t)["data"].([]any) {
			all[one.(object)["country_code"].(string)] = one.(object)["enabled_use_case"]
		}
		return all
	}
	all, enabled, others := use(""), use("?enabled=true"), use("?enabled=false")
	if len(all) != len(enabled)+len(others) || enabled["ES"] != "BOTH" || len(others) != 0 {
		t.Errorf("%d countries, %d enabled, %d not; ES %v", len(all), len(enabled), len(others), enabled["ES"])
	}
	p.as(demoKey).want(t, 400, "GET", "/v1/countries?enabled=perhaps", nil)
}

func TestANumberThatAsksForAnOutcomeWhereNothingIsFiledIsWarnedOf(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	warned := func(code, number string) int {
		return len(p.as(demoKey).want(t, 200, "POST", "/v1/transactions/validate",
			p.sale(t, "asks", object{"country_code": code, "transaction_number": number})).json(t)["warnings"].([]any))
	}
	if plain := warned("IE", "1"); warned("IE", "1-REJECT") != plain+1 || warned("XX", "1-REJECT") != warned("XX", "1") {
		t.Error("-REJECT is warned of in Ireland, and in no country with an authority")
	}
}

func TestTransactionsGetNumbersFromASeries(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(p.stranger)
	company := c.onboarded(t, "series-company", "XX")
	sale := func(id string) object {
		b := p.sale(t, id, object{"supplier": object{"external_id": "series-company"}, "transaction_number": nil})
		delete(b, "transaction_number")
		return b
	}
	c.want(t, 400, "POST", "/v1/transactions", sale("numbered-0"))
	made := c.want(t, 201, "POST", "/v1/series", object{"supplier_id": company, "pattern": "S-{N:4}", "next": 41}).json(t)
	c.want(t, 409, "POST", "/v1/series", object{"supplier_id": company, "pattern": "T-{N:4}"})
	c.want(t, 400, "POST", "/v1/series", object{"supplier_id": company, "pattern": "no count", "kind": "CREDIT"})
	if same := c.want(t, 409, "POST", "/v1/series", object{"supplier_id": company, "pattern": "s-{N:2}",
		"kind": "CREDIT"}); !strings.Contains(string(same.body), made["id"].(string)) {
		t.Errorf("the numbers of two series meet: %s", same.body)
	}
	c.want(t, 200, "POST", "/v1/transactions/validate", sale("numbered-0"))
	for i, want := range []string{"S-0041", "S-0042"} {
		result := c.outcome(t, c.submit(t, "/v1/transactions", sale(fmt.Sprintf("numbered-%d", i))))
		if result["status"] != "SUCCESS" || result["transaction_number"] != want || result["series"] != made["id"] ||
			result["supplier"].(object)["id"] != company {
			t.Errorf("got %v %v of %v for %v, want %s", result["status"], result["transaction_number"], result["series"],
				result["supplier"], want)
		}
		if fmt.Sprint(result["total_withheld_amount"]) != "0" {
			t.Errorf("withheld %v", result["total_withheld_amount"])
		}
		tax := result["items"].([]any)[0].(object)["tax_breakdown"].([]any)[0].(object)
		if tax["application_mode"] != "INCLUDED_IN_UNIT_PRICE" {
			t.Errorf("tax %v", tax)
		}
	}
	credits := c.want(t, 201, "POST", "/v1/series",
		object{"supplier_id": company, "pattern": "C-{N:4}", "kind": "CREDIT"}).json(t)
	first := c.want(t, 200, "GET", "/v1/series?limit=1", nil).json(t)
	rest := c.want(t, 200, "GET", "/v1/series?limit=1&cursor="+first["next_cursor"].(string), nil).json(t)
	if seen := rest["data"].([]any); len(first["data"].([]any)) != 1 || rest["next_cursor"] != nil || len(seen) != 1 ||
		seen[0].(object)["id"] != credits["id"] {
		t.Errorf("by pages: %v, then %v", first, rest)
	}
	c.want(t, 400, "GET", "/v1/series?limit=0", nil)
	c.want(t, 400, "GET", "/v1/series?kind=CREDIT", nil)
	list := c.want(t, 200, "GET", "/v1/series", nil).json(t)["data"].([]any)
	if len(list) != 2 || fmt.Sprint(list[0].(object)["next"]) != "43" {
		t.Errorf("series %v", list)
	}
	if others := p.as(p.limited).do(t, "GET", "/v1/series",
		nil); others.status == 200 && len(others.json(t)["data"].([]any)) != 0 {
		t.Error("another client sees the series")
	}
	unknown := c.outcome(t, c.submit(t, "/v1/transactions",
		p.sale(t, "of nobody", object{"supplier": object{"external_id": "nobody"}})))
	if unknown["status"] != "FAILURE" || unknown["errors"].([]any)[0].(object)["code"] != "supplier_unknown" ||
		unknown["supplier"].(object)["external_id"] != "nobody" {
		t.Errorf("unknown external_id: %v", unknown)
	}
	c.want(t, 400, "POST", "/v1/transactions",
		p.sale(t, "both", object{"supplier": object{"id": company, "external_id": "series-company"}}))
}

// onboarded makes a company and answers its id.
func (c *caller) onboarded(t testing.TB, external, code string) string {
	t.Helper()
	job := c.want(t, 202, "POST", "/onboarding/v2/companies",
		object{"meta": object{"country_code": code, "external_id": external}, "legal_name": external,
			"address": object{"country_code": code}, "tax_information": object{"tax_number": "T-" + external}}).json(
		t)["data"].(object)["job_id"].(string)
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got := c.want(t, 200, "GET", "/onboarding/v2/jobs/"+job, nil).json(t)
		if got["status"] == "success" {
			return got["data"].(object)["id"].(string)
		}
		if got["status"] == "failed" || time.Now().After(until) {
			t.Fatalf("onboarding: %v", got)
		}
	}
}

func TestAClosedCompanyIssuesNothingAndKeepsItsHistory(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(p.stranger)
	id := c.onboarded(t, "to-close", "XX")
	at := "/onboarding/v2/companies/" + id
	sold := c.submit(t, "/v1/transactions", p.sale(t, "before-closing", object{"supplier": object{"id": id}}))
	c.outcome(t, sold)
	// While one waits for the authority the company stays.
	slow := c.submit(t, "/v1/transactions",
		p.sale(t, "slow-closing", object{"supplier": object{"id": id}, "transaction_number": "CLOSING-SLOW"}))
	if got := c.do(t, "DELETE", at, nil); got.status != 409 {
		t.Errorf("closed while work is open: %d %s", got.status, got.body)
	}
	c.outcome(t, slow)
	p.as(demoKey).want(t, 404, "DELETE", at, nil)
	c.want(t, 204, "DELETE", at, nil)
	c.want(t, 204, "DELETE", at, nil)
	if company := c.want(t, 200, "GET", at, nil).json(t); company["status"] != "closed" ||
		len(company["credentials"].([]any)) != 0 {
		t.Errorf("closed company %v", company)
	}
	c.want(t, 409, "PATCH", at, object{"company_number": "1"})
	if result := c.outcome(t, c.submit(t, "/v1/transactions",
		p.sale(t, "after-closing", object{"supplier": object{"id": id}}))); result["status"] != "FAILURE" ||
		result["errors"].([]any)[0].(object)["code"] != "supplier_unknown" {
		t.Errorf("a closed company sells: %v", result)
	}
	if result := c.outcome(t, sold); result["status"] != "SUCCESS" ||
		result["supplier"].(object)["external_id"] != "to-close" {
		t.Errorf("history %v", result)
	}
	again := c.want(t, 202, "POST", "/onboarding/v2/companies",
		object{"meta": object{"country_code": "XX", "external_id": "opened-again"}, "legal_name": "again",
			"address": object{"country_code": "XX"}, "tax_information": object{"tax_number": "T-to-close"}}).json(
		t)["data"].(object)["job_id"].(string)
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got := c.want(t, 200, "GET", "/onboarding/v2/jobs/"+again, nil).json(t)
		if got["status"] == "success" {
			return
		}
		if got["status"] == "failed" || time.Now().After(until) {
			t.Fatalf("its tax number is not free: %v", got)
		}
	}
}

// A number that cannot exist is one fault, and says what about it cannot be.
func TestATaxNumberThatCannotExistIsOneFaultWithItsReason(t *testing.T) {
	t.Parallel()
	c := busy(t).as(demoKey)
	for number, why := range map[string]string{"69061864-2-99": "its last two digits are not a county",
		"69061864-7-02": "its ninth digit is not a VAT code", "69061865-2-02": "check digits"} {
		company := example(t, "company", object{"tax_information": object{"tax_number": number},
			"tax_credentials": object{"username": "technical1", "password": "word", "signature_key": "key",
				"exchange_key": "0123456789abcdef"}})
		company["meta"].(object)["country_code"], company["meta"].(object)["external_id"] = "HU", "none "+number
		var said []string
		for _, f := range c.failedJob(t, company) {
			if f := f.(object); f["field"] == "tax_information.tax_number" {
				said = append(said, f["message"].(string))
			}
		}
		if len(said) != 1 || !strings.Contains(said[0], why) {
			t.Errorf("%s is said to be %q, want %q", number, said, why)
		}
	}
}

// failedJob onboards a company that cannot be, and answers why not.
func (c *caller) failedJob(t testing.TB, company object) []any {
	t.Helper()
	job := c.want(t, 202, "POST", "/onboarding/v2/companies", company).json(t)["data"].(object)["job_id"].(string)
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got := c.want(t, 200, "GET", "/onboarding/v2/jobs/"+job, nil).json(t)
		if got["status"] == "failed" {
			return got["errors"].([]any)
		}
		if got["status"] == "success" || time.Now().After(until) {
			t.Fatalf("onboarding: %v", got)
		}
	}
}

// The guide's example of a refusal is what the service answers.
func TestTheGuidesRefusalIsTheServices(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guide/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```json\n")
	block, _, _ = strings.Cut(block, "\n```")
	p := quiet(t)
	sale := p.sale(t, "nameless", nil)
	delete(sale["items"].([]any)[0].(object), "name")
	got := p.as(demoKey).want(t, 400, "POST", "/v1/transactions", sale).json(t)
	if want := mustJSON(t, []byte(block)); !reflect.DeepEqual(any(got), want) {
		t.Errorf("the guide says\n%s\nthe service\n%s", block, text(t, got))
	}
}

// A demo's key is printed for who sits at the machine, under whatever name others reach it.
func TestTheDemosKeyIsPrintedForLoopbackNamesOnly(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	for host, want := range map[string]bool{"": true, "localhost:8080": true, "[::1]:8080": true, "127.0.0.9": true,
		"docs.example.test": false, "192.0.2.7:8080": false, "localhost.example.test": false} {
		r := p.as("").request(t, "GET", "/docs/postV1Transactions.html", nil)
		if host != "" {
			r.Host = host
		}
		got := exchange(t, r)
		if has := strings.Contains(string(got.body), demoKey); got.status != 200 || has != want {
			t.Errorf("for %q: %d, the key is there: %v", host, got.status, has)
		}
	}
}

// What an authority remarks of a document that it took, and what was derived for
// it, has codes of its own: those of refusals never stand on a SUCCESS.
func TestWarningsOfASuccessHaveCodesOfTheirOwn(t *testing.T) {
	t.Parallel()
	p, all := demoAt(t, "", func(c *server.Config) { c.Callbacks = "127.0.0.1:0" }), realAuthorities(t)
	c := p.as(demoKey)
	undelivered := p.abroad(t, all["IT"], "LETTER-1"+sdiwire.EndingUndelivered)
	unpaid := p.abroad(t, all["MX"], "LETTER-1")
	delete(unpaid, "payments")
	delete(unpaid, "customer")
	for code, body := range map[string]object{"buyer_must_be_told": undelivered, "value_assumed": unpaid} {
		got := c.outcome(t, c.submit(t, "/v1/transactions", body))
		said := text(t, got["errors"])
		if got["status"] != "SUCCESS" || !strings.Contains(said, `"`+code+`"`) || strings.Contains(said, "authority_rejected") ||
			strings.Contains(said, "field_required") {
			t.Errorf("%s: %v %s", code, got["status"], said)
		}
	}
}
