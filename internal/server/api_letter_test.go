package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
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
	limited := p.as(p.limited)
	for range 4 { // spend its burst
		limited.do(t, "GET", "/v1/countries/XX", nil)
	}
	for _, c := range []struct {
		key, media string
		size, want int
	}{
		{demoKey, "application/json", 1_050_000, 413}, {demoKey, "application/json", 15 << 20, 413},
		{"none", "application/json", 2_000_000, 401}, {demoKey, "text/plain", 2_000_000, 415}, {p.limited, "application/json", 2_000_000, 429},
	} {
		for range 5 {
			if got, err := post(c.key, c.media, c.size); err != nil || got != c.want {
				t.Fatalf("%d bytes as %s: %d %v, want %d", c.size, c.media, got, err, c.want)
			}
		}
	}
}

func TestFourFaultsOfFourSortsComeInOneAnswer(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	body := p.sale(t, "", object{"country_code": "MX", "currency_code": "USD", "payments": []any{object{"type": "CARD", "code": "PUE", "amount": 1}},
		"transaction_date": time.Now().UTC().Format(time.RFC3339), "customer": nil, "issuer": nil,
		"items": []any{object{"number": 0, "name": "a", "quantity": 1, "unit_price": 1160, "code": "12345678", "tax_breakdowns": []any{object{"rate": 16, "regime": "VAT"}}}}})
	var found []string
	for _, f := range p.as(demoKey).want(t, 400, "POST", "/v1/transactions", body).json(t)["errors"].([]any) {
		found = append(found, f.(object)["code"].(string)+" "+f.(object)["field"].(string))
	}
	slices.Sort(found)
	want := []string{"field_not_valid items.0.code", "field_not_valid items.0.number", "field_not_valid payments", "field_required exchange_rate", "field_required transaction_id"}
	if !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

func TestCorrectionsCanBeTriedWithoutBeingStored(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(demoKey)
	short := object{"country_code": "XX", "transaction_date": "2026-01-31T10:00:00Z", "transaction_id": "tried", "reference_transaction_id": "o"}
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
		return len(p.as(demoKey).want(t, 200, "POST", "/v1/transactions/validate", p.sale(t, "asks", object{"country_code": code, "transaction_number": number})).json(t)["warnings"].([]any))
	}
	if plain := warned("IE", "1"); warned("IE", "1-REJECT") != plain+1 || warned("XX", "1-REJECT") != warned("XX", "1") {
		t.Error("-REJECT is warned of in Ireland, and in no country with an authority")
	}
}
