// Package pa is a strict double of an approved platform of France: its flows and
// its directory as AFNOR XP Z12-013 describes them, and its OAuth2 server.
// It reads invoices as CII and UBL and reports (FRR), no PDF.
//
// It judges what a sender hands over without knowing the pack that made it: the
// token, the parts and the hash of the call, the structure of the file, and of the
// official rules those that everybody breaks first. As a platform does it takes
// everything under a new flow and acknowledges it later; a tracking id that it has
// already gets AlreadyExistingFlow. An invoice that is in order is deposited (200);
// one that is not, or whose number is used, is rejected (213). What is deposited is
// with its buyer at once, who has the same platform (SupplierInvoice). Reports have the
// official structure of flow 10; what the administration makes of one by its rules
// and periods follows as a status (300, 301). Of statuses it takes 212, of an invoice
// that it has deposited.
//
// Numbers that end in -WORKING are acknowledged when somebody asks for the third
// time, those in -LIMIT meet a limit once, and one that ends in -201 to -213 gets
// that status behind 200 and 203. Invoices to the SIREN 801234568 are made available
// (203) after two seconds and approved (205) after four. Every SIREN is in the
// directory but 999000003, which nobody has registered, and 999000011, whose line is
// of no platform yet; 432109874 receives at an establishment alone. A client whose
// secret is "wrong" gets no token.
package pa

import (
	"encoding/json"
	"net/http"
	"time"

	"tributary/internal/authority"
)

const (
	fileBytesMax = 100 << 20
	bodyBytesMax = 1 << 20
	tokenFor     = 5 * time.Minute
)

type double struct {
	desk    *authority.Desk
	now     func() time.Time
	endings authority.Endings
}

// New is a platform behind a desk.
func New(desk *authority.Desk) http.Handler {
	a := &double{desk: desk, now: time.Now}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/token", a.token)
	mux.HandleFunc("POST /v1/flows", a.authorized(a.submit))
	mux.HandleFunc("POST /v1/flows/search", a.authorized(a.search))
	mux.HandleFunc("GET /v1/flows/{id}", a.authorized(a.show))
	mux.HandleFunc("GET /v1/healthcheck", a.authorized(a.healthy))
	mux.HandleFunc("POST /v1/siren/search", a.authorized(a.searchSIREN))
	mux.HandleFunc("GET /v1/siren/{code}", a.authorized(a.showSIREN))
	mux.HandleFunc("GET /v1/siret/{code}", a.authorized(a.showSIRET))
	mux.HandleFunc("POST /v1/directory-line/search", a.authorized(a.searchLines))
	mux.HandleFunc("GET /v1/directory-line/{code}", a.authorized(a.showLine))
	return mux
}

// refuse answers an error of the interface.
func refuse(w http.ResponseWriter, status int, code, text string) {
	authority.WriteJSON(w, status, map[string]string{"errorCode": code, "errorMessage": text})
}

// readJSON reads a body; false: it was refused.
func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyBytesMax)).Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "BAD_REQUEST", err.Error())
		return false
	}
	return true
}

// question takes the turn of a call that asks; false: it was answered.
func (a *double) question(w http.ResponseWriter) (authority.Turn, bool) {
	turn := a.desk.QueryTurn()
	return turn, turn.Begin(w, nil)
}

// healthy serves the healthcheck.
func (a *double) healthy(w http.ResponseWriter, r *http.Request) {
	if turn, ok := a.question(w); ok && turn.End(w, r) {
		authority.WriteJSON(w, http.StatusOK, map[string]string{"status": "UP"})
	}
}
