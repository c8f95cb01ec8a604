package xx

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tributary/internal/country"
)

// note is what the authority keeps of a document besides its hash.
type note struct {
	Day       string       `json:"day"`
	Kind      country.Kind `json:"kind"`
	Reference string       `json:"reference,omitempty"` // number of the document it corrects
}

func (d *arrival) note() string {
	n := note{Day: d.Day, Kind: d.Kind}
	if d.Reference != nil {
		n.Reference = d.Reference.Number
	}
	text, err := json.Marshal(n)
	if err != nil {
		panic(fmt.Sprintf("encoding a note: %v", err)) // strings only: cannot happen
	}
	return string(text)
}

// list serves GET /v1/documents/list?day=…&after=…: what the authority holds
// of the supplier who signed, at most batchMax receipts; XX-Next says where to go on.
func (a *authority) list(w http.ResponseWriter, r *http.Request) {
	from, ok := a.authenticate(w, r)
	if !ok {
		return
	}
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, busy) {
		return
	}
	all, err := a.desk.Registrations()
	if err != nil {
		http.Error(w, "the book cannot be read", http.StatusInternalServerError)
		return
	}
	after, _ := strconv.Atoi(r.URL.Query().Get("after")) // absent: from the beginning
	page, next := listed(all, from.supplier, r.URL.Query().Get("day"), max(after, 0))
	if next > 0 {
		w.Header().Set(headerNext, strconv.Itoa(next))
	}
	if turn.End(w, r) {
		writeReceipts(w, from.key, turn.Wait, page)
	}
}

// listed finds a supplier's documents of a day, from an entry of the book on.
func listed(all []country.Registration, supplier, day string, after int) (page []receipt, next int) {
	cancelled := map[string]bool{}
	for i, r := range all {
		var n note
		if r.Supplier != supplier || json.Unmarshal([]byte(r.Note), &n) != nil {
			continue
		}
		if n.Kind == country.Cancellation {
			cancelled[n.Reference] = true
		}
		if n.Day != day || i < after {
			continue
		}
		if len(page) == batchMax {
			next = i
			break
		}
		page = append(page, registered(r))
	}
	for _, r := range all[max(next, 0):] { // a cancellation may stand behind the page
		var n note
		if next > 0 && r.Supplier == supplier && json.Unmarshal([]byte(r.Note), &n) == nil && n.Kind == country.Cancellation {
			cancelled[n.Reference] = true
		}
	}
	for i := range page {
		page[i].Cancelled = cancelled[page[i].Number]
	}
	return page, next
}

// Registered lists what the authority holds: see [country.Register].
func (ch *channel) Registered(ctx context.Context, s country.Supplier, day country.Day, c country.Credentials) ([]country.Entry, error) {
	supplier := supplierNumber(s)
	key := signingKey(supplier, c.Secret)
	var all []country.Entry
	for after := ""; ; {
		query := url.Values{"day": {day.String()}, "after": {after}}
		reply, err := ch.call(ctx, request{method: http.MethodGet, path: pathList, query: query.Encode(), supplier: supplier}, c)
		if err != nil {
			return nil, fmt.Errorf("listing documents of %s: %w", day, err)
		}
		for line := range bytes.SplitSeq(bytes.TrimSuffix(reply.Body, []byte{'\n'}), []byte{'\n'}) {
			if len(line) == 0 {
				continue
			}
			r, err := openReceipt(line, key)
			if err != nil {
				return nil, fmt.Errorf("listing documents of %s: %w", day, err)
			}
			at, _ := time.Parse(time.RFC3339, r.At) // absent is zero
			all = append(all, country.Entry{Number: r.Number, AuthorityID1: r.AuthorityID, Cancelled: r.Cancelled, At: at})
		}
		if after = reply.Header.Get(headerNext); after == "" {
			return all, nil
		}
	}
}
