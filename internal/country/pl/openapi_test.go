package pl_test

import (
	"net/http"
	"strings"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/needs"
)

// watch puts KSeF's own description between both sides: every request of ours
// and every answer of the double must be one of it.
func watch(t *testing.T, pack *country.Pack) *packtest.Description {
	t.Helper()
	d := packtest.Describe(t, needs.Schemas(t, "pl-ksef", "open-api.json"), "/v2")
	inner := pack.Simulator
	pack.Simulator = func(desk *authority.Desk) http.Handler {
		if err := seed(desk, ministryKey()); err != nil {
			t.Error(err)
		}
		stored := func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/storage/") } // these are not described
		return d.Watch(t, inner(desk), stored)
	}
	return d
}
