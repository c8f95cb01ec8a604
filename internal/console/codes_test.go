package console_test

import (
	"strings"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
)

// What the authority said stays as it said it; what its code means and what to do
// stand beside it, in the list as well.
func TestACodeOfTheAuthorityIsExplainedBesideItsOwnWords(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	h.script(authority.Step{Outcome: authority.Reject})
	id := h.submit("INV-REFUSED")
	b := h.as(operator.Viewer)
	b.await("/transactions/"+id, "Rejected: ")
	pack, _ := h.atlas.Pack("XX")
	life, err := h.ledger.Life(t.Context(), id)
	must(t, err)
	said := life.Result.Errors[0].Message
	codes := pack.Explain(said)
	if len(codes) != 1 || codes[0].Code != "refused" {
		t.Fatalf("%q is explained by %v", said, codes)
	}
	page := b.get("/transactions/" + id)
	for _, want := range []string{said, "means: " + codes[0].Meaning, codes[0].Do, "Client action:"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, gist(page))
		}
	}
	b.await("/transactions", "refused: "+codes[0].Meaning)
}

func TestWhatHasNoKnownCodeIsShownAsItIs(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	h.script(authority.Step{Outcome: authority.Garbage, Times: 100_000, On: authority.OnAny})
	id := h.submit("INV-GARBAGE")
	b := h.as(operator.Viewer)
	b.await("/transactions/"+id, "Last error: ")
	for _, path := range []string{"/transactions/" + id, "/transactions", "/",
		"/suppliers/" + clientID + "/" + h.supplier} {
		if page := b.get(path); strings.Contains(page, "means: ") {
			t.Errorf("%s explains what is no code:\n%s", path, gist(page))
		}
	}
}
