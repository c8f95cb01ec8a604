package pa

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"tributary/internal/authority"
)

const (
	limitDefault = 25
	limitMax     = 100
)

// search serves /v1/flows/search: the flows of a company, the oldest change first.
func (a *double) search(w http.ResponseWriter, r *http.Request) {
	turn, ok := a.question(w)
	if !ok {
		return
	}
	var body struct {
		Limit int `json:"limit"`
		Where struct {
			Tracking  string    `json:"trackingId"`
			After     time.Time `json:"updatedAfter"`
			Before    time.Time `json:"updatedBefore"`
			Type      []string  `json:"flowType"`
			Direction []string  `json:"flowDirection"`
			Ack       string    `json:"ackStatus"`
		} `json:"where"`
	}
	if !readJSON(w, r, &body) {
		return
	}
	if body.Limit == 0 {
		body.Limit = limitDefault
	}
	if body.Limit < 1 || body.Limit > limitMax {
		refuse(w, http.StatusBadRequest, "BAD_REQUEST", "limit is from 1 to 100")
		return
	}
	where, org := body.Where, r.Header.Get("Organization-Id")
	results := []shown{}
	if a.desk.Write(func(b *authority.Book) {
		a.mature(b, org)
		types := where.Type
		switch {
		case len(types) > 0:
		case slices.Equal(where.Direction, []string{"In"}):
			types = []string{typePurchase, typeStatus}
		default:
			types = []string{typeInvoice, typeReport, typeStatus}
		}
		var ids []string
		if where.Tracking != "" {
			ids = b.Words("track/" + org + "/" + where.Tracking)
		} else {
			for _, kind := range types {
				ids = append(ids, a.after(b, org+"/"+kind, where.After)...)
			}
		}
		for _, id := range ids {
			var e entry
			if !b.Load("flow/"+id, &e) || !slices.Contains(types, e.Type) || len(where.Direction) > 0 && !slices.Contains(where.Direction, e.Direction) ||
				!e.Updated.After(where.After) || !where.Before.IsZero() && !e.Updated.Before(where.Before) || where.Ack != "" && e.Ack.Status != where.Ack {
				continue
			}
			results = append(results, e.shown)
		}
	}) != nil || !turn.End(w, r) {
		return
	}
	slices.SortStableFunc(results, func(x, y shown) int { return x.Updated.Compare(y.Updated) })
	authority.WriteJSON(w, http.StatusOK, map[string]any{"limit": body.Limit, "filters": where, "results": results[:min(body.Limit, len(results))]})
}

// after lists flows of a kind from the first that may have changed after an
// instant; what a company sent changes after it came, what it gets never.
func (a *double) after(b *authority.Book, list string, since time.Time) (ids []string) {
	var count int
	b.Load("count/"+list, &count)
	first := 0
	if strings.HasSuffix(list, "/"+typeStatus) || strings.HasSuffix(list, "/"+typePurchase) {
		first = sort.Search(count, func(n int) bool {
			var e entry
			b.Load("flow/"+b.Text(fmt.Sprintf("list/%s/%d", list, n)), &e)
			return e.Updated.After(since)
		})
	}
	for n := first; n < count && len(ids) < 2*limitMax; n++ {
		ids = append(ids, b.Text(fmt.Sprintf("list/%s/%d", list, n)))
	}
	return ids
}

// mature decides what waits for being asked about, and says what is due.
func (a *double) mature(b *authority.Book, org string) {
	b.KeepWords("pending/"+org, func(id string) bool { return !a.ask(b, id) })
	b.KeepWords("later/"+org, func(due string) bool {
		parts := strings.SplitN(due, "=", 3)
		at, err := time.Parse(time.RFC3339Nano, parts[2])
		if err != nil || a.now().Before(at) {
			return true
		}
		if x, ok := arrivalOf(b, parts[0]); ok {
			x.org = org
			a.say(b, &x, parts[1], nil)
		}
		return false
	})
}

// ask counts a question about a flow that waits, and decides it when it has
// waited enough; false: not yet.
func (a *double) ask(b *authority.Book, id string) bool {
	var e entry
	if !b.Load("flow/"+id, &e) || e.Ack.Status != ackPending {
		return true
	}
	if e.Asked++; e.Asked <= e.Wait || a.now().Before(e.Due) {
		b.Keep("flow/"+id, e)
		return false
	}
	step := a.desk.Decide()
	if step.Outcome == authority.Suspend {
		e.Due = a.now().Add(step.Delay)
		b.Keep("flow/"+id, e)
		return false
	}
	x, _ := arrivalOf(b, id)
	a.decide(b, &e, &x, step)
	return true
}

// arrivalOf reads the file of a flow again.
func arrivalOf(b *authority.Book, id string) (arrival, bool) {
	var e entry
	if !b.Load("flow/"+id, &e) {
		return arrival{}, false
	}
	file, err := base64.StdEncoding.DecodeString(b.Text("data/" + id))
	return read(file, e.Syntax), err == nil
}

// show serves /v1/flows/{id}.
func (a *double) show(w http.ResponseWriter, r *http.Request) {
	turn, ok := a.question(w)
	if !ok {
		return
	}
	id, kind := r.PathValue("id"), r.URL.Query().Get("docType")
	var e entry
	known := false
	var file []byte
	if a.desk.Write(func(b *authority.Book) {
		if known = b.Load("flow/"+id, &e) && e.Org == r.Header.Get("Organization-Id"); known {
			a.mature(b, e.Org)
			b.Load("flow/"+id, &e)
			file, _ = base64.StdEncoding.DecodeString(b.Text("data/" + cmp.Or(e.Of, id)))
		}
	}) != nil || !turn.End(w, r) {
		return
	}
	switch {
	case !known:
		refuse(w, http.StatusNotFound, "NOT_FOUND", "there is no flow "+id)
	case kind == "Original" || kind == "":
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(file) // a caller that left is nobody to tell
	case kind == "Metadata":
		authority.WriteJSON(w, http.StatusOK, e.shown)
	default:
		refuse(w, http.StatusBadRequest, "BAD_REQUEST", "docType "+kind)
	}
}
