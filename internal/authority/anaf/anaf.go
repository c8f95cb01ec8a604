// Package anaf is a strict double of RO e-Factura and of ANAF's OAuth2 server.
//
// It judges what a sender uploads without knowing the pack that made it: the
// token, the parameters of the call, the document by what CIUS-RO wants first.
// As ANAF does it takes everything under a new index and decides later; what it
// has already it refuses then, naming the index before. Its archives are ZIPs
// signed by a test key; its list has only what is decided, and says that it is
// empty in words of an error.
//
// Numbers that end in -LAG are not shown by the list three times, those in -LIMIT
// meet a limit once, in -FIREWALL a page with status 200 once, in -WORKING are in
// work twice when somebody asks. It has no register of persons: everybody may act
// for every company but 999999999, a refresh token that begins with demo- is good
// for ever, and so is the access token "demo-access-token". Other refresh tokens
// die when they are used. Messages of buyers (RASP) name an invoice to them; there may be
// any number.
package anaf

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"tributary/internal/authority"
	"tributary/internal/xmltree"
)

// AccessToken is taken for ever.
const AccessToken = "demo-access-token"

const (
	rest           = "/FCTEL/rest/"
	uploadBytesMax = 10 << 20

	spaceUpload = "mfp:anaf:dgti:spv:respUploadFisier:v1"
	spaceState  = "mfp:anaf:dgti:efactura:stareMesajFactura:v1"
	spaceErrors = "mfp:anaf:dgti:efactura:mesajEroriFactuta:v1"
)

type double struct {
	desk    *authority.Desk
	now     func() time.Time
	endings authority.Endings

	mu    sync.Mutex
	calls map[string]int // limits: call, day and subject
}

// New is ANAF behind a desk.
func New(desk *authority.Desk) http.Handler {
	a := &double{desk: desk, now: time.Now, calls: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+rest+"upload", a.authorized(a.upload))
	mux.HandleFunc("POST "+rest+"uploadb2c", a.authorized(a.upload))
	mux.HandleFunc("GET "+rest+"stareMesaj", a.authorized(a.state))
	mux.HandleFunc("GET "+rest+"descarcare", a.authorized(a.download))
	mux.HandleFunc("GET "+rest+"listaMesajePaginatieFactura", a.authorized(a.list))
	mux.HandleFunc("/anaf-oauth2/v1/authorize", a.authorize)
	mux.HandleFunc("POST /anaf-oauth2/v1/token", a.token)
	return mux
}

// limit counts a call of the day, and refuses what is beyond it.
func (a *double) limit(w http.ResponseWriter, call, subject string, max int) bool {
	key := a.now().UTC().Format(time.DateOnly) + call + subject
	a.mu.Lock()
	a.calls[key]++
	over := a.calls[key] > max
	a.mu.Unlock()
	if over {
		eroare(w, fmt.Sprintf("S-au facut deja %d %s de tipul %s in cursul zilei", max, "apeluri", call))
	}
	return over
}

// eroare answers an error as ANAF does: in JSON, with status 200.
func eroare(w http.ResponseWriter, text string) {
	authority.WriteJSON(w, http.StatusOK, map[string]string{"eroare": text, "titlu": "Lista Mesaje"})
}

func writeXML(w http.ResponseWriter, build func(*xmltree.Writer)) {
	x := xmltree.NewWriter(512)
	x.Declare()
	build(x)
	w.Header().Set("Content-Type", "application/xml")
	_, _ = w.Write(x.Bytes()) // a caller that left is nobody to tell
}

// badRequest is the answer to a call that cannot be meant.
func (a *double) badRequest(w http.ResponseWriter, text string) {
	authority.WriteJSON(w, http.StatusBadRequest, map[string]any{"timestamp": a.now().Format("02-01-2006 15:04:05"), "status": 400,
		"error": "Bad Request", "message": text})
}

// refuse answers an upload that is not taken.
func (a *double) refuse(w http.ResponseWriter, text string) {
	writeXML(w, func(x *xmltree.Writer) {
		x.Start("header", "xmlns", spaceUpload, "ExecutionStatus", "1", "dateResponse", a.now().Format("200601021504"))
		x.Leaf("Errors", "", "errorMessage", text)
		x.End()
	})
}

// firewall is the page of the border in front of ANAF.
func firewall(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = w.Write([]byte("<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult with your administrator.</body></html>"))
}
