package pl_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/pl"
)

const (
	callExport = "POST /invoices/exports"
	callReady  = "GET /invoices/exports/*"
	callPiece  = "GET /storage/*/export-part-1"
)

// buying is a look for what was sold to the buyer of every invoice here.
func (m *ministry) buying(ctx context.Context, cursor string, limit int) (country.Fetched, error) {
	nip := polishBuyer().TaxNumber
	s := supplier()
	s.ID, s.TaxNumber = "b1", nip
	c := country.Credentials{Secret: "20251006-EC-0123456789-ABCDEF0123-4A|nip-" + strings.TrimPrefix(nip, "PL") + "|" + strings.Repeat("ab", 32)}
	return pl.Pack().Receive.Fetch.Look(ctx, country.Inquiry{Channel: m.channel, Supplier: s, Credentials: c, Cursor: cursor, Limit: limit,
		From: m.clock().AddDate(0, -1, 0)})
}

// bought looks until nothing more is known.
func (m *ministry) bought(cursor string, limit int, between func(looks int)) (seen map[string]int, end string) {
	m.t.Helper()
	seen = map[string]int{}
	for looks, more := 1, true; more; looks++ {
		got, err := m.buying(m.t.Context(), cursor, limit)
		if err != nil || len(got.Documents) > limit || looks > 100 {
			m.t.Fatalf("look %d: %d documents, %v", looks, len(got.Documents), err)
		}
		for _, d := range got.Documents {
			if d.Format != "XML" || !strings.Contains(string(d.Bytes), "<Faktura") {
				m.t.Errorf("%s: %.100s", d.AuthorityID, d.Bytes)
			}
			seen[d.AuthorityID]++
		}
		cursor, more = got.Cursor, got.More
		if between != nil {
			between(looks)
		}
	}
	return seen, cursor
}

func (m *ministry) sells(name string, n int) {
	m.t.Helper()
	m.want(name, outcomes(m.sendAll(m.queue(name, n))), country.Accepted, n)
	m.advance(2 * time.Second)
}

// A package is asked for once and handed on in looks of a few; the next one has only what
// came since.
func TestWhatOthersSoldIsGotInPackages(t *testing.T) {
	m := newMinistry(t).strict()
	m.sells("A", 25)
	seen, mark := m.bought("", 10, nil)
	if len(seen) != 25 || m.count(callPiece) != 1 {
		t.Fatalf("%d came in %d packages", len(seen), m.count(callPiece))
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s came %d times", id, times)
		}
	}
	m.advance(time.Minute)
	if seen, _ := m.bought(mark, 10, nil); len(seen) != 0 {
		t.Errorf("%v came again", seen)
	}
	m.sells("B", 3)
	if seen, _ := m.bought(mark, 10, nil); len(seen) != 3 {
		t.Errorf("%v came of three", seen)
	}
	if m.refused() > 0 {
		t.Errorf("KSeF's limits were broken %d times", m.refused())
	}
}

// A process that dies in the middle of a package asks for another one from its mark on.
func TestAPackageThatWasLostIsAskedForAgain(t *testing.T) {
	m := newMinistry(t)
	m.sells("A", 25)
	seen, _ := m.bought("", 10, func(looks int) {
		if looks < 3 {
			m.reconnect()
		}
	})
	if len(seen) != 25 || m.count(callPiece) < 2 {
		t.Errorf("%d came in %d packages", len(seen), m.count(callPiece))
	}
}

// Whatever is wrong with a package brings nothing of it, and it is asked for again.
func TestPackagesThatAreNotWhatKSeFSaysBringNothing(t *testing.T) {
	m := newMinistry(t)
	m.sells("A", 2)
	for name, spoil := range map[string]func(){
		"another file": func() { m.answer(callPiece, text(200, "application/octet-stream", strings.Repeat("x", 64))) },
		"a page":       func() { m.answer(callPiece, text(503, "text/html", "<html>")) },
		"no package": func() {
			m.answer(callReady, text(200, "application/json", `{"status":{"code":500,"description":"Nieznany błąd"}}`))
		},
		"gone": func() {
			m.answer(callReady, text(200, "application/json", `{"status":{"code":210,"description":"wygasł"}}`))
		},
		"cut somewhere": func() {
			m.answer(callReady, text(200, "application/json", `{"status":{"code":200},"package":{"invoiceCount":1,"isTruncated":true}}`))
		},
		"no reference": func() { m.answer(callExport, text(201, "application/json", `{}`)) },
		"another place": func() {
			m.answer(callReady, text(200, "application/json",
				`{"status":{"code":200},"package":{"invoiceCount":1,"size":1,"parts":[{"ordinalNumber":1,"url":"http://192.0.2.1/x","encryptedPartSize":16}]}}`))
		},
	} {
		spoil()
		if got, err := m.buying(t.Context(), "", 10); err == nil || len(got.Documents) > 0 {
			t.Errorf("%s: %d documents, %v", name, len(got.Documents), err)
		}
	}
	if seen, _ := m.bought("", 10, nil); len(seen) != 2 {
		t.Errorf("%v came at last", seen)
	}
}

// A package that is larger than memory takes is asked for in halves of its time.
func TestALargePackageIsAskedForInHalves(t *testing.T) {
	m := newMinistry(t)
	for n := range 8 {
		m.sells(fmt.Sprint("H", n), 1)
		m.advance(24 * time.Hour)
	}
	pl.SetPieceMax(m.channel, 6<<10)
	seen, _ := m.bought("", 100, func(int) { m.advance(2 * time.Second) })
	if len(seen) != 8 || m.count(callPiece) < 2 {
		t.Errorf("%d came in %d packages", len(seen), m.count(callPiece))
	}
}

func TestAPackageWaitsForKSeF(t *testing.T) {
	m := newMinistry(t)
	m.sells("A", 1)
	working := text(200, "application/json", `{"status":{"code":100,"description":"w toku"}}`)
	m.answer(callReady, working)
	m.answer(callReady, working)
	if seen, _ := m.bought("", 10, nil); len(seen) != 1 || m.count(callExport) != 1 {
		t.Errorf("%v came of %d packages", seen, m.count(callExport))
	}
	// Where the look's time is over the package is looked at in the next one.
	m.answer(callReady, working)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got, err := m.buying(ctx, "", 10)
	if err != nil || len(got.Documents) > 0 || got.More || got.Cursor != "" || got.Wait <= 0 {
		t.Fatalf("%+v %v", got, err)
	}
	if seen, _ := m.bought("", 10, nil); len(seen) != 1 || m.count(callExport) != 2 {
		t.Errorf("%v came of %d packages", seen, m.count(callExport))
	}
	// Limits of KSeF are waited for; a key that it withdrew is replaced; other credentials are a person's.
	m.answer(callExport, problem(http.StatusTooManyRequests, 0, "120"))
	var used *country.Exhausted
	if _, err := m.buying(t.Context(), "", 10); !errors.As(err, &used) || used.Until.Sub(m.clock()) != 2*time.Minute {
		t.Errorf("after 429: %v", err)
	}
	m.answer(callExport, problem(http.StatusForbidden, 0, ""))
	if _, err := m.buying(t.Context(), "", 10); !errors.Is(err, country.ErrCredentials) {
		t.Errorf("after 403: %v", err)
	}
	m.rotateKey()
	if seen, _ := m.bought("", 10, nil); len(seen) != 1 {
		t.Errorf("%v came under another key", seen)
	}
}
