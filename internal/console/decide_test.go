package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/hold"
	"tributary/internal/operator"
)

// After a restore a sale waits behind its supplier, whose authority has no list. An
// operator who finds it in the portal says so on its page; it is adopted when the
// supplier is released, and never filed.
func TestAHeldTransactionIsDecidedOnItsPage(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	at := filing.Place{Scope: clientID, Code: "XX", SupplierID: h.supplier}
	must(t, h.db.Write(t.Context(), func(tx *db.Tx) error {
		return hold.Hold{Place: at, Reason: fault.Held, Why: "this authority cannot list its documents"}.Store(tx)
	}))
	h.run()
	id := h.submit("INV-1")
	b := h.as(operator.Acting)
	b.await("/transactions/"+id, "cannot list its documents", "Look in the authority", "adopt it", `name="number"`)
	if page := b.get("/transactions/" + id); strings.Contains(page, "not registered: file it") {
		t.Error("it offers to file what its supplier's release will file")
	}
	if page := h.as(operator.Viewer).get("/transactions/" + id); strings.Contains(page, "adopt it") {
		t.Error("a viewer is offered what a viewer may not do")
	}
	to := "/transactions/" + id + "/decide"
	for wrong, status := range map[string]int{"": http.StatusBadRequest, "adopt": http.StatusBadRequest} {
		if resp := b.post(to, url.Values{"decision": {wrong}}); resp.StatusCode != status {
			t.Errorf("the decision %q without a number: %d", wrong, resp.StatusCode)
		}
	}
	if resp := b.post("/transactions/nobody/decide", url.Values{"decision": {"file"}}); resp.StatusCode != http.StatusNotFound {
		t.Errorf("about an operation that is not there: %d", resp.StatusCode)
	}
	if list := h.audited("restored.decided"); len(list) != 0 {
		t.Errorf("the log has %+v", list)
	}
	b.noticed(b.post(to, url.Values{"decision": {"adopt"}, "number": {" INV-1 "}, "id": {"A-7"}}), "decided")
	if list := h.audited("restored.decided"); len(list) != 1 || list[0].Subject != id || list[0].Actor.Name != "operator" ||
		!strings.Contains(list[0].After, "A-7") {
		t.Errorf("the log has %+v", list)
	}
	must(t, h.db.Write(t.Context(), func(tx *db.Tx) error { return h.service.Release(tx, at) }))
	b.await("/transactions/"+id, "Succeeded after", "A-7")
	if resp := b.post(to, url.Values{"decision": {"file"}}); resp.StatusCode != http.StatusConflict {
		t.Errorf("about what has ended: %d", resp.StatusCode)
	}
}
