// Package accesspoint is the double of a Peppol access point and of the network
// around it: the outbound interface of phoss-ap with its oddities, an address
// that takes documents in their envelopes, the registry of participants (SML)
// as a name server on a free port, their registers (SMP) with signed metadata,
// message level statuses (MLS), and what buyers answer (Invoice Responses).
//
// It knows nothing of the channel whose documents it judges. Law: it delivers
// whatever it has taken, also twice, because phoss-ap does; its book has an
// entry for every delivery.
package accesspoint

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"tributary/internal/authority"
)

const (
	documentBytesMax = 32 << 20
	controlBytesMax  = 1 << 16
	customMax        = 255
)

// accessPoint is the double on its desk. Keys of its book: "tx/" what it was
// handed, by instance identifier; "who/" a participant that is not like others;
// "recipient/" the backend of one that receives here, "handing/" what it has not got yet.
type accessPoint struct {
	desk *authority.Desk
	dns  func() *nameServer // opened when somebody asks for the network

	mu   sync.Mutex
	base string // our own address, as whoever asks for the network reaches us
}

// New returns the access point on a desk.
func New(d *authority.Desk) http.Handler {
	a := &accessPoint{desk: d}
	a.dns = sync.OnceValue(func() *nameServer { return serveNames(d, a.answer) })
	a.resume()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/outbound/submit/{sender}/{receiver}/{document}/{process}/{country}", a.submit)
	mux.HandleFunc("GET /api/outbound/status/{instance}", a.status)
	mux.HandleFunc("POST "+pathEnvelopes, a.takeEnvelope)
	mux.HandleFunc("GET /smp/{participant}", a.group)
	mux.HandleFunc("GET /smp/{participant}/services/{document}", a.metadata)
	mux.HandleFunc("GET /network", a.network)
	mux.HandleFunc("GET /sbd/network", a.network)
	mux.HandleFunc("PUT /participants/{participant}", a.setParticipant)
	mux.HandleFunc("PUT /mls/{instance}", a.setMLS)
	mux.HandleFunc("PUT /recipients/{participant}", a.setRecipient)
	mux.HandleFunc("POST /responses/{instance}", a.respond)
	return mux
}

// network serves what a participant's software is configured with: where the
// registry is, and under whose certificates registers sign.
func (a *accessPoint) network(w http.ResponseWriter, r *http.Request) {
	keys, err := keysOf()
	if err != nil || a.dns().err != nil {
		http.Error(w, "the network cannot be made", http.StatusInternalServerError)
		return
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	a.mu.Lock()
	a.base = scheme + "://" + r.Host + strings.TrimSuffix(strings.TrimSuffix(path, "/network"), "/sbd")
	a.mu.Unlock()
	answer(w, http.StatusOK, map[string]string{"sml_zone": zone, "dns_server": a.dns().address, "smp_ca": string(keys.trusted)})
}

func (a *accessPoint) address() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.base
}

// habits of a participant; the zero value is one that is registered and takes
// every invoice.
type habits struct {
	Unregistered bool     `json:"unregistered,omitempty"`
	Documents    []string `json:"documents,omitempty"` // types it takes, by the end of their names; none: all invoices
	Signature    string   `json:"signature,omitempty"` // "wrong": of a key of its own; "changed": over something else
	Silent       bool     `json:"silent,omitempty"`    // the name server does not answer for it
	Failing      bool     `json:"failing,omitempty"`   // the name server answers with an error
	Elsewhere    string   `json:"elsewhere,omitempty"` // address of its register
	Expired      bool     `json:"expired,omitempty"`   // its endpoint is out of service
	Redirected   bool     `json:"redirected,omitempty"`
	Gone         bool     `json:"gone,omitempty"` // its register answers 500
}

// setParticipant changes how a participant behaves, for tests.
func (a *accessPoint) setParticipant(w http.ResponseWriter, r *http.Request) {
	var h habits
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, controlBytesMax))
	in.DisallowUnknownFields()
	if err := in.Decode(&h); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	who := strings.ToLower(r.PathValue("participant"))
	a.put(w, map[string]string{"who/" + who: authority.Note(h), "label/" + labelOf(who): who})
}

func (a *accessPoint) put(w http.ResponseWriter, values map[string]string) {
	err := a.desk.Write(func(b *authority.Book) {
		for key, value := range values {
			b.Put(key, value)
		}
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// habitsOf answers how a participant behaves, by its number with scheme.
func (a *accessPoint) habitsOf(participant string) (h habits) {
	a.desk.Read(func(b *authority.Book) { b.Load("who/"+strings.ToLower(participant), &h) })
	return h
}

// takes reports whether a participant takes a type of document.
func (h habits) takes(document string) bool {
	if len(h.Documents) == 0 {
		return strings.Contains(document, "Invoice") || strings.Contains(document, "CreditNote") || strings.HasSuffix(document, responseDocument)
	}
	for _, end := range h.Documents {
		if strings.HasSuffix(document, end) {
			return true
		}
	}
	return false
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a caller that left is nobody to tell
}

// words answers a JSON string, as phoss-ap does where it keeps nothing.
func words(w http.ResponseWriter, status int, format string, args ...any) {
	answer(w, status, fmt.Sprintf(format, args...))
}
