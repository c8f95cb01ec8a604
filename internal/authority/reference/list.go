package reference

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"tributary/internal/authority"
	"tributary/internal/official/xxwire"
	"tributary/internal/transaction"
)

// note is what the authority keeps of a document besides its hash.
type note struct {
	Day       string           `json:"day"`
	Kind      transaction.Kind `json:"kind"`
	Reference string           `json:"reference,omitempty"` // number of the document it corrects
	Currency  string           `json:"currency,omitempty"`
	Gross     *int64           `json:"gross,omitempty"`
	Sales     []string         `json:"sales,omitempty"` // in the document of a period
}

func (d *arrival) note() string {
	n := note{Day: d.Day, Kind: d.Kind, Currency: d.Currency, Gross: &d.Gross}
	if d.Reference != nil {
		n.Reference = d.Reference.Number
	}
	for _, line := range d.Lines {
		if d.Kind == transaction.Period {
			n.Sales = append(n.Sales, line.Name)
		}
	}
	return authority.Note(n)
}

// list serves GET /v1/documents/list?day=…&after=…: what the authority holds
// of the supplier who signed, at most [xxwire.BatchMax] receipts; XX-Next says where to go on.
func (a *double) list(w http.ResponseWriter, r *http.Request) {
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
		w.Header().Set(xxwire.HeaderNext, strconv.Itoa(next))
	}
	if turn.End(w, r) {
		writeReceipts(w, from.key, turn.Wait, page)
	}
}

// listed finds a supplier's documents of a day, from an entry of the book on.
func listed(all []authority.Registration, supplier, day string, after int) (page []xxwire.Receipt, next int) {
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
		if len(page) == xxwire.BatchMax {
			next = i
			break
		}
		entry := registered(r)
		entry.Kind, entry.Reference, entry.Currency, entry.Gross, entry.Sales = string(n.Kind), n.Reference, n.Currency,
			n.Gross, n.Sales
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

// chainHead serves GET /v1/chain: the last link of the supplier who signed.
func (a *double) chainHead(w http.ResponseWriter, r *http.Request) {
	from, ok := a.authenticate(w, r)
	if !ok {
		return
	}
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, busy) {
		return
	}
	said := xxwire.Receipt{Outcome: xxwire.OutcomeAbsent}
	err := a.desk.Write(func(b *authority.Book) {
		if last, ok := b.Get("chain/" + from.supplier); ok {
			said.Outcome = xxwire.OutcomeAccepted
			_, _ = fmt.Sscanf(last, "%d %s", &said.Position, &said.SHA256) // written by head
		}
	})
	if err != nil {
		http.Error(w, "the book cannot be read", http.StatusInternalServerError)
		return
	}
	if turn.End(w, r) {
		writeReceipts(w, from.key, turn.Wait, []xxwire.Receipt{said})
	}
}
