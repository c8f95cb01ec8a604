package xx

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tributary/internal/transaction"

	"tributary/internal/country"
)

// note is what the authority keeps of a document besides its hash.
type note struct {
	Day       string           `json:"day"`
	Kind      transaction.Kind `json:"kind"`
	Reference string           `json:"reference,omitempty"` // number of the document it corrects
	Currency  string           `json:"currency,omitempty"`
	Gross     *int64           `json:"gross,omitempty"`
}

func (d *arrival) note() string {
	n := note{Day: d.Day, Kind: d.Kind, Currency: d.Currency, Gross: &d.Gross}
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
		if n.Kind == transaction.Cancellation {
			cancelled[n.Reference] = true
		}
		if n.Day != day || i < after {
			continue
		}
		if len(page) == batchMax {
			next = i
			break
		}
		entry := registered(r)
		entry.Kind, entry.Reference, entry.Currency, entry.Gross = n.Kind, n.Reference, n.Currency, n.Gross
		page = append(page, entry)
	}
	for _, r := range all[max(next, 0):] { // a cancellation may stand behind the page
		var n note
		if next > 0 && r.Supplier == supplier && json.Unmarshal([]byte(r.Note), &n) == nil && n.Kind == transaction.Cancellation {
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
			all = append(all, r.entry(supplier, day.String()))
		}
		if after = reply.Header.Get(headerNext); after == "" {
			return all, nil
		}
	}
}

// entry is a line of a list in the words of the contract. The second id and
// the code are what Prepare made of the same document.
func (r *receipt) entry(supplier, day string) country.Entry {
	at, _ := time.Parse(time.RFC3339, r.At) // absent is zero
	e := country.Entry{
		Number: r.Number, AuthorityID1: r.AuthorityID, AuthorityID2: r.SHA256, Cancelled: r.Cancelled, At: at,
		Kind: r.Kind, Reference: r.Reference, SHA256: r.SHA256, Gross: r.Gross,
	}
	if r.Gross != nil && len(r.SHA256) == hex.EncodedLen(sha256.Size) {
		e.QRCode = qrCode(document{Supplier: supplier, Number: r.Number, Day: day, Gross: *r.Gross, Currency: r.Currency}, r.SHA256)
	}
	return e
}

// chainHead serves GET /v1/chain: the last link of the supplier who signed.
func (a *authority) chainHead(w http.ResponseWriter, r *http.Request) {
	from, ok := a.authenticate(w, r)
	if !ok {
		return
	}
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, busy) {
		return
	}
	said := receipt{Outcome: outcomeAbsent}
	err := a.desk.Write(func(b *country.Book) {
		if last, ok := b.Get("chain/" + from.supplier); ok {
			said.Outcome = outcomeAccepted
			fmt.Sscanf(last, "%d %s", &said.Position, &said.SHA256) //nolint:errcheck // written by head
		}
	})
	if err != nil {
		http.Error(w, "the book cannot be read", http.StatusInternalServerError)
		return
	}
	if turn.End(w, r) {
		writeReceipts(w, from.key, turn.Wait, []receipt{said})
	}
}

// Head asks where a supplier's chain stands: see [country.ChainKeeper].
func (ch *channel) Head(ctx context.Context, s country.Supplier, c country.Credentials) (country.Link, bool, error) {
	supplier := supplierNumber(s)
	reply, err := ch.call(ctx, request{method: http.MethodGet, path: pathChain, supplier: supplier}, c)
	if err != nil {
		return country.Link{}, false, fmt.Errorf("asking for the head of the chain: %w", err)
	}
	r, err := openReceipt(bytes.TrimSuffix(reply.Body, []byte{'\n'}), signingKey(supplier, c.Secret))
	if err != nil {
		return country.Link{}, false, fmt.Errorf("asking for the head of the chain: %w", err)
	}
	switch {
	case r.Outcome == outcomeAbsent:
		return country.Link{}, false, nil
	case r.Outcome == outcomeAccepted && r.Position > 0 && r.SHA256 != "":
		return country.Link{Position: r.Position, Hash: r.SHA256}, true, nil
	}
	return country.Link{}, false, fmt.Errorf("asking for the head of the chain: the answer is %q at position %d", r.Outcome, r.Position)
}
