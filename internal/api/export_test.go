package api

import (
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"
)

// Routes lists the table as "METHOD path".
func (a *API) Routes() (all []string) {
	for _, r := range a.routes() {
		all = append(all, r.method+" "+r.path)
	}
	return all
}

// Details lists the members of answers that are described, as "Schema.member".
func Details() (all []string) {
	return slices.Collect(maps.Keys(details))
}

// Refusals is the memory that keeps the log quiet under overload.
func Refusals() func(now time.Time) (silent int64, speak bool) { return new(refusals).next }

// Query is what a query says, read with all the readers of parameters.
type Query struct {
	Limit    int
	Cursor   string
	From, To time.Time
	Status   string
	Country  string
}

// ReadQuery reads a query that may say all of it.
func ReadQuery(raw string) (Query, error) {
	c := &call{Request: &http.Request{URL: &url.URL{RawQuery: raw}}}
	q := c.query("limit", "cursor", "from", "to", "status", "country_code")
	got := Query{q.limit(), q.cursor(), q.time("from"), q.time("to"), q.oneOf("status", "SUCCESS", "FAILURE"),
		q.matching("country_code", countryForm, "a country")}
	return got, q.err()
}

// NextCursor is how a list says where it goes on.
func NextCursor(plain string) string {
	if next := pageOf([]int(nil), plain).Next; next != nil {
		return *next
	}
	return ""
}

// What is taken from the head of a request.
func KeyOf(r *http.Request) string {
	key, _ := keyOf(r)
	return key
}
func RequestID(r *http.Request) string { return requestID(r) }

func AddressOf(r *http.Request) netip.Addr { return (&API{cfg: Config{TrustProxy: true}}).addressOf(r) }

// RefusedQuery is what is wrong with a query where these parameters are known.
func RefusedQuery(raw string, known ...string) error {
	return (&call{Request: &http.Request{URL: &url.URL{RawQuery: raw}}}).query(known...).err()
}
