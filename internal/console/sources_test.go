package console_test

import (
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/onboarding"
	"tributary/internal/operation"
	"tributary/internal/operator"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// receiver is a company that wants what others send to it.
func (h *house) receiver(name string) string {
	h.t.Helper()
	id, err := h.companies.Ensure(h.t.Context(), clientID, onboarding.NewCompany{
		ExternalID: name, CountryCode: "XX", LanguageCode: "en", LegalName: name + " Ltd", TaxNumber: "XX" + name,
		TaxRegime: transaction.VAT, Settings: country.Settings{country.SettingReceive: map[string]any{"from": "2026-11-02"}},
		Address: transaction.Address{CountryCode: "XX", City: "Exampleton", PostalCode: "12345", AddressLine1: "1 Quay"},
	})
	must(h.t, err)
	return id
}

// mailbox is a look of a company's as the inbox keeps it.
func (h *house) mailbox(company string, documents bool, change map[string]any) {
	h.t.Helper()
	looked := time.Now().Add(-90 * time.Second)
	row := map[string]any{"mailbox": clientID + "|XX.live|" + company, "endpoint": "XX.live", "country": "XX", "live": true, "client_id": clientID,
		"company_id": company, "documents": documents, "cursor": country.Mark{At: time.Date(2026, 11, 18, 9, 30, 0, 0, time.UTC)}.String(),
		"brought": 4321, "looked_at": db.Micros(looked), "due_at": db.Micros(looked.Add(15 * time.Minute))}
	if documents {
		row["mailbox"] = row["mailbox"].(string) + "|documents"
	}
	for name, value := range change {
		row[name] = value
	}
	var names []string
	var values []any
	for name, value := range row {
		names, values = append(names, name), append(values, value)
	}
	must(h.t, h.db.Write(h.t.Context(), func(tx *db.Tx) error { return tx.Insert("inbox_mailboxes", strings.Join(names, ","), values) }))
}

// keptAside is a document of a company that could not be read.
func (h *house) keptAside(company, id, why string) {
	h.t.Helper()
	text := result.Arrived(result.Arrival{ID: id, At: time.Now(), Status: operation.Failure, AuthorityID: "A-" + id,
		Faults: []fault.Fault{{Code: fault.CodeConflict, Type: fault.General, Message: why}}}).Encode()
	must(h.t, h.db.Write(h.t.Context(), func(tx *db.Tx) error {
		return tx.Insert("received", "operation_id,client_id,live,source,authority_id,company_id,dated_at,accepted_at,status,media,bytes,sha256,aside,result",
			[]any{id, clientID, true, "XX.live", "A-" + id, company, 1, db.Micros(time.Now()), "FAILURE", "XML", 1, id, true, text})
	}))
}

// sourced is a company whose documents cannot be fetched at the moment, with one that was kept aside.
func (h *house) sourced() string {
	failing := h.receiver("200000013")
	h.mailbox(failing, true, map[string]any{"failures": 7, "failing_since": db.Micros(time.Now().Add(-3 * time.Hour)),
		"problem": "the authority answered with status 503: <b>maintenance</b>"})
	h.mailbox(failing, false, map[string]any{"cursor": "its own words", "brought": 12})
	h.keptAside(failing, "019aa000-0000-7000-8000-000000000001", "XX.live brought another document under the id A-1")
	return failing
}

// A supplier's page tells what brings it messages and documents: since when they are wanted, how far they are here, when
// somebody looked last and why it failed, and what was kept aside.
func TestASupplierShowsItsSources(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		h := build(t, d)
		failing, calm, called := h.sourced(), h.receiver("200000021"), h.receiver("200000039")
		h.mailbox(calm, true, nil)
		for n := range 21 {
			h.keptAside(calm, "019aa000-0000-7000-8000-0000000001"+string(rune('a'+n))+"0", "twice")
		}
		h.keptAside("another company", "019aa000-0000-7000-8000-000000000002", "not theirs")
		b := h.as(operator.Viewer)
		for company, want := range map[string]struct{ has, lacks []string }{
			failing: {[]string{"XX.live", "received documents", "messages", "failing", "3 h", "503: &lt;b&gt;maintenance", "2026-11-02", "2026-11-18 09:30",
				"321</td>", "Documents kept aside", "another document under the id A-1"}, []string{"<b>maintenance", "not theirs"}},
			calm:       {[]string{"received documents", ">ok<", "the newest 20", "2026-11-02"}, []string{"failing"}},
			called:     {[]string{"the authority calls", "2026-11-02"}, []string{"failing", "kept aside"}},
			h.supplier: {nil, []string{"received documents", "kept aside"}},
		} {
			page := b.get("/suppliers/" + clientID + "/" + company)
			for _, text := range want.has {
				if !strings.Contains(page, text) {
					t.Errorf("no %q:\n%s", text, gist(page))
				}
			}
			for _, text := range want.lacks {
				if strings.Contains(page, text) {
					t.Errorf("%q is there:\n%s", text, gist(page))
				}
			}
		}
	})
}

// The page in a browser, wide and narrow, light and dark.
func TestSourcesFitTheScreen(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	at := "/suppliers/" + clientID + "/" + h.sourced()
	c := h.chromium()
	c.signIn("viewer")
	c.views(func(view string) {
		c.open(at)
		c.sees("Documents kept aside")
		c.fits(at)
		c.fair(at)
		c.axe(at)
		c.shot("sources-" + view)
	})
	c.content()
}
