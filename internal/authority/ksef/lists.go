package ksef

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/ksefwire"
)

// window is a page of a list whose pages are asked for with a continuation
// token, which KSeF's callers take as it is.
type window struct{ start, size int }

// readWindow reads size and token of a page; false when the call was refused.
func readWindow(w http.ResponseWriter, r *http.Request, sizeMax int) (window, bool) {
	out := window{size: 10}
	if text := r.URL.Query().Get("pageSize"); text != "" {
		size, err := strconv.Atoi(text)
		if err != nil || size < 10 || size > sizeMax {
			refuse(w, r, http.StatusBadRequest, invalidInput(fmt.Sprintf("pageSize: wartość %q nie jest liczbą od 10 do %d.",
				text, sizeMax)))
			return out, false
		}
		out.size = size
	}
	if token := r.Header.Get(ksefwire.HeaderContinuation); token != "" {
		text, err := base64.RawURLEncoding.DecodeString(token)
		start, err2 := strconv.Atoi(string(text))
		if err != nil || err2 != nil || start < 1 {
			refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeContinuation,
				Description: "Przekazany token kontynuacji ma nieprawidłowy format."})
			return out, false
		}
		out.start = start
	}
	return out, true
}

// cut is the part of a list on the page, and the token of the next one.
func cut[T any](all []T, on window) (page []T, next string) {
	start := min(on.start, len(all))
	end := min(start+on.size, len(all))
	if end < len(all) {
		next = base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return append([]T{}, all[start:end]...), next
}

// settle decides the invoices of a closed session whose time has come, so that
// the session reaches its end when somebody asks for it alone.
func (k *double) settle(session string, s sessionRecord) error {
	waiting := false
	k.desk.Read(func(b *authority.Book) {
		t := tallyOf(b, session)
		waiting = s.over(k.now()) && t.Good+t.Bad < t.Sent
	})
	if !waiting {
		return nil
	}
	return k.desk.Write(func(b *authority.Book) {
		for i := range tallyOf(b, session).Sent {
			var rec invoiceRecord
			reference, _ := b.Get(sentKey(session, i+1))
			if b.Load("invoice/"+reference, &rec) && rec.Summary != nil && !k.now().Before(rec.Due) {
				k.decide(b, reference, &rec, k.desk.Decide())
			}
		}
	})
}

// sessionStatus serves GET /sessions/{session}.
func (k *double) sessionStatus(w http.ResponseWriter, r *http.Request) {
	k.access.asked(w, r, func(c claims) (any, bool) {
		reference, s, ok := k.ownSession(w, r, c.NIP)
		if !ok {
			return nil, false
		}
		if k.settle(reference, s) != nil {
			broken(w)
			return nil, false
		}
		var t tally
		k.desk.Read(func(b *authority.Book) { t = tallyOf(b, reference) })
		out := ksefwire.SessionStatus{
			Status: s.state(k.now(), t), DateCreated: s.Created, DateUpdated: s.updated(), ValidUntil: &s.Until,
			Total: t.Sent, Successful: t.Good, Failed: t.Bad,
		}
		if out.Status.Code == ksefwire.StatusSuccess {
			until := k.now().Add(storedFor).UTC()
			out.UPO = &ksefwire.UPO{Pages: []ksefwire.UPOPage{{
				ReferenceNumber: s.UPO, DownloadURL: k.storageURL(r, reference, s.UPO, until), DownloadUntil: until,
			}}}
		}
		return out, true
	})
}

func (s sessionRecord) updated() time.Time {
	if s.Updated.IsZero() {
		return s.Created
	}
	return s.Updated
}

// listSessions serves GET /sessions, the newest first.
func (k *double) listSessions(w http.ResponseWriter, r *http.Request) {
	k.access.asked(w, r, func(c claims) (any, bool) {
		on, ok := readWindow(w, r, 1000)
		if !ok {
			return nil, false
		}
		shows, err := k.readSessionFilter(r)
		if err != nil {
			refuse(w, r, http.StatusBadRequest, invalidInput(err.Error()))
			return nil, false
		}
		var found []ksefwire.SessionItem
		k.desk.Read(func(b *authority.Book) {
			all, _ := b.Get("sessions/" + c.NIP)
			for _, reference := range strings.Fields(all) {
				var s sessionRecord
				if !b.Load("session/"+reference, &s) {
					continue
				}
				t := tallyOf(b, reference)
				item := ksefwire.SessionItem{
					ReferenceNumber: reference, Status: s.state(k.now(), t), DateCreated: s.Created, DateUpdated: s.updated(),
					ValidUntil: &s.Until,
					Total:      t.Sent, Successful: t.Good, Failed: t.Bad,
				}
				if shows(item) {
					found = append(found, item)
				}
			}
		})
		slices.Reverse(found)
		var out ksefwire.SessionsResponse
		out.Sessions, out.Next = cut(found, on)
		return out, true
	})
}

// readSessionFilter reads what narrows a list of sessions.
func (k *double) readSessionFilter(r *http.Request) (func(ksefwire.SessionItem) bool, error) {
	q := r.URL.Query()
	kind := q.Get("sessionType")
	if kind != "Online" && kind != "Batch" {
		return nil, fmt.Errorf("sessionType: wartość %q nie jest rodzajem sesji (Online, Batch)", kind)
	}
	var bounds [4]time.Time
	for i, name := range []string{"dateCreatedFrom", "dateCreatedTo", "dateModifiedFrom", "dateModifiedTo"} {
		var err error
		if bounds[i], err = k.listing.readInstant(name, q.Get(name), time.Time{}); err != nil {
			return nil, err
		}
	}
	within := func(at, from, to time.Time) bool {
		return (from.IsZero() || !at.Before(from)) && (to.IsZero() || !at.After(to))
	}
	return func(s ksefwire.SessionItem) bool {
		state := "Failed"
		switch {
		case s.Status.Code < ksefwire.StatusSuccess:
			state = "InProgress"
		case s.Status.Code == ksefwire.StatusSuccess:
			state = "Succeeded"
		case s.Status.Code == 440:
			state = "Cancelled"
		}
		return (kind == "Batch") == isBatch(s.ReferenceNumber) &&
			(q.Get("referenceNumber") == "" || q.Get("referenceNumber") == s.ReferenceNumber) &&
			(len(q["statuses"]) == 0 || slices.Contains(q["statuses"], state)) &&
			within(s.DateCreated, bounds[0], bounds[1]) && within(s.DateUpdated, bounds[2], bounds[3])
	}, nil
}

// sessionInvoices serves GET /sessions/{session}/invoices.
func (k *double) sessionInvoices(w http.ResponseWriter, r *http.Request) {
	k.listInvoices(w, r, func(invoiceRecord) bool { return true })
}

// failedInvoices serves GET /sessions/{session}/invoices/failed.
func (k *double) failedInvoices(w http.ResponseWriter, r *http.Request) {
	k.listInvoices(w, r, func(rec invoiceRecord) bool { return rec.Status.Code > ksefwire.StatusSuccess })
}

func (k *double) listInvoices(w http.ResponseWriter, r *http.Request, shows func(invoiceRecord) bool) {
	k.access.asked(w, r, func(c claims) (any, bool) {
		session, s, ok := k.ownSession(w, r, c.NIP)
		if !ok {
			return nil, false
		}
		on, ok := readWindow(w, r, 1000)
		if !ok {
			return nil, false
		}
		if k.settle(session, s) != nil {
			broken(w)
			return nil, false
		}
		var found []ksefwire.InvoiceStatus
		k.desk.Read(func(b *authority.Book) {
			for i := range tallyOf(b, session).Sent {
				var rec invoiceRecord
				reference, _ := b.Get(sentKey(session, i+1))
				if b.Load("invoice/"+reference, &rec) && shows(rec) {
					found = append(found, k.statusOf(r, reference, rec))
				}
			}
		})
		var out ksefwire.SessionInvoices
		out.Invoices, out.Next = cut(found, on)
		return out, true
	})
}

// invoiceByNumber serves GET /invoices/ksef/{number}.
func (k *double) invoiceByNumber(w http.ResponseWriter, r *http.Request) {
	c, ok := k.access.caller(w, r, "access")
	if !ok {
		return
	}
	turn := k.desk.QueryTurn()
	if !turn.Begin(w, busy(r, turn.Wait)) {
		return
	}
	number := r.PathValue("number")
	if !ksefwire.LooksLikeNumber(number) {
		refuse(w, r, http.StatusBadRequest, invalidInput("ksefNumber: nieprawidłowy numer KSeF "+number+"."))
		return
	}
	var rec invoiceRecord
	var text string
	var there bool
	k.desk.Read(func(b *authority.Book) {
		reference, _ := b.Get("number/" + number)
		ok = b.Load("invoice/"+reference, &rec) && (rec.NIP == c.NIP || rec.Buyer == c.NIP)
		text, there = b.Get("xml/" + reference)
	})
	switch {
	case !ok:
		refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeInvoiceUnknown,
			Description: "Faktura o podanym identyfikatorze nie istnieje.",
			Details:     []string{"Faktura o numerze KSeF " + number + " nie została znaleziona."}})
	case !there: // planted by a script
		refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeInvoiceLater,
			Description: "Faktura o podanym numerze KSeF nie jest jeszcze dostępna.",
			Details: []string{"Faktura o numerze KSeF " + number +
				" została przetworzona, ale nie jest jeszcze dostępna do pobrania. Spróbuj ponownie później."}})
	case turn.End(w, r):
		sendXML(w, unpacked(text))
	}
}

// packed is an invoice as the book keeps it.
func packed(text []byte) string {
	var out bytes.Buffer
	z, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		if _, err = z.Write(text); err == nil {
			err = z.Close()
		}
	}
	if err != nil {
		panic(fmt.Sprintf("packing an invoice: %v", err)) // memory takes everything
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func unpacked(text string) []byte {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		raw, err = io.ReadAll(flate.NewReader(bytes.NewReader(raw)))
	}
	if err != nil {
		panic(fmt.Sprintf("reading the book of KSeF's double: %v", err))
	}
	return raw
}
