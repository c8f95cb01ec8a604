// Package sdi is a strict double of Italy's Sistema di Interscambio, as the
// transmitter of invoices meets it through SdICoop.
//
// It takes files by RiceviFile from whoever shows a client certificate, judges
// them by the official structure and by the official list of checks as far as
// that needs no register (Elenco dei controlli 2.0; for invoices between private
// parties Allegato A where the two differ), and calls the transmitter's
// TrasmissioneFatture with signed messages until they are answered. It knows
// nothing of the pack whose files it judges.
//
// Law: a file name is used up by whatever came under it, and what is registered
// is on disk with the messages about it before RiceviFile is answered.
//
// A public body that receives here answers its invoices by NotificaEsito: once, within 15
// days, which is decided at once; the transmitter hears it.
//
// Where it calls: the address that PUT /channels/{name} gave to a channel, which
// is named by the common name of its certificate, or the last one that a call of
// it carried in the header SdI-Callback. GET /channel has the CA behind its own
// certificate. POST /messages sends any message about a file that was taken.
// Endings of Numero that ask for something are in [sdiwire].
//
// The real exchange checks files after it has taken them; this one decides in the
// write that takes the file and only tells later, so that what it holds is never in
// doubt and a crash of either side loses nothing. A script's "pending" is the
// exception. Messages wait on disk and are sent until they are answered, each by
// itself: SdI promises no order. Tolerances are open intervals, as in the Elenco:
// exactly 0.01 and exactly 1.00 are refused. Registers are not simulated: of tax
// numbers the check digits are looked at (00300 to 00306), addresses, subjects,
// declarations of intent and offices are always in order. Signatures of files are
// looked for, not verified, since that needs the list of qualified CAs. A consumer
// without an address is not reached, a business is: that is what most senders see.
// NE, DT and AT about an invoice to a business do not exist; a number can ask for
// them all the same, because a program that hears them must not fall over.
package sdi

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/sdiwire"
	"tributary/internal/strictjson"
)

// bodyBytesMax lets a file of the largest size through, and one that is too
// large for SdI: that is refused with a code.
const bodyBytesMax = 16 << 20

const controlBytesMax = 1 << 16

// double is SdI on its desk. Keys of its book: "name/" what came under a file
// name, "of/" the numbers of an issuer in a year, "channel/" a transmitter's
// channel, "notice/" a message that is not delivered yet, "count/" counters, "recipient/"
// where a taxpayer receives, "file/" a file for one, until it was delivered, "esito/" the
// answer to an invoice by its id.
type double struct {
	desk *authority.Desk
	now  func() time.Time
}

// New is SdI behind a desk. What it had not yet told when it was stopped it tells now.
func New(desk *authority.Desk) http.Handler {
	a := &double{desk: desk, now: time.Now}
	a.resume()
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+sdiwire.Path, a.receive)
	mux.HandleFunc("POST "+sdiwire.PathAnswers, a.notify)
	mux.HandleFunc("GET "+sdiwire.Path, describe)
	mux.HandleFunc("GET /channel", trusted)
	mux.HandleFunc("PUT /channels/{name}", a.setChannel)
	mux.HandleFunc("PUT "+sdiwire.PathRecipients+"{number}", a.setRecipient)
	mux.HandleFunc("POST /messages", a.say)
	return mux
}

// rome is the zone in which SdI counts days.
var rome = sync.OnceValue(func() *time.Location {
	zone, err := time.LoadLocation(sdiwire.Zone)
	if err != nil {
		panic(fmt.Sprintf("the zone of Italy: %v", err)) // a defect of the build
	}
	return zone
})

// trusted serves the CA that a transmitter has to trust.
func trusted(w http.ResponseWriter, _ *http.Request) {
	keys, err := keysOf()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: keys.ca})
	// a caller that left is nobody to tell
	_ = json.NewEncoder(w).Encode(map[string]string{"ca": string(text), "certificate": keys.leaf.Subject.CommonName})
}

// channel is what the accreditation of a transmitter says.
type channel struct {
	Callback string `json:"callback"`           // address of its TrasmissioneFatture
	Disabled bool   `json:"disabled,omitempty"` // EI03
}

func channelKey(name string) string { return "channel/" + name }

// setChannel serves PUT /channels/{name}.
func (a *double) setChannel(w http.ResponseWriter, r *http.Request) {
	var c channel
	if !readControl(w, r, "the channel", &c) {
		return
	}
	a.write(w, func(b *authority.Book) bool {
		b.Keep(channelKey(r.PathValue("name")), c)
		return true
	})
}

func recipientKey(number string) string { return "recipient/" + number }

// setRecipient serves PUT /recipients/{number}: invoices to a tax number, or to a codice
// destinatario, are brought to an address.
func (a *double) setRecipient(w http.ResponseWriter, r *http.Request) {
	var c channel
	if !readControl(w, r, "the recipient", &c) {
		return
	}
	a.write(w, func(b *authority.Book) bool {
		b.Put(recipientKey(r.PathValue("number")), c.Callback)
		return true
	})
}

// saying is the body of POST /messages.
type saying struct {
	File  string       `json:"file"`
	Kind  sdiwire.Kind `json:"kind"`
	Esito string       `json:"esito"` // of an NE
	Code  string       `json:"code"`  // of an NS
	Times int          `json:"times"` // 0 is once
}

// timesMax bounds how often a message is repeated.
const timesMax = 100

// say serves POST /messages: a message about a file, whatever became of it.
func (a *double) say(w http.ResponseWriter, r *http.Request) {
	var s saying
	if !readControl(w, r, "the message", &s) {
		return
	}
	if _, known := sdiwire.MessageOf(s.Kind); !known || s.Times < 0 || s.Times > timesMax ||
		(s.Esito != "") != (s.Kind == sdiwire.Outcome) {
		http.Error(w, "a message has file, kind (RC, MC, NS, NE, DT or AT), times up to 100, and NE an esito",
			http.StatusBadRequest)
		return
	}
	var queued []notice
	a.write(w, func(b *authority.Book) bool {
		var of record
		if !b.Load(nameKey(s.File), &of) {
			return false
		}
		n := of.notice(s.Kind, a.now())
		n.Esito, n.Times = s.Esito, s.Times
		if s.Kind == sdiwire.Refused {
			n.Flaws = []flaw{flawf(s.Code, "")}
		}
		queued = queue(b, n)
		return true
	})
	a.tell(queued)
}

func readControl(w http.ResponseWriter, r *http.Request, what string, into any) bool {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, controlBytesMax))
	if err == nil {
		err = strictjson.Unmarshal(text, controlBytesMax, what, into)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

// write lets fn change the book and answers 204, or 404 where fn found nothing.
func (a *double) write(w http.ResponseWriter, fn func(*authority.Book) bool) {
	found := false
	if err := a.desk.Write(func(b *authority.Book) { found = fn(b) }); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if !found {
		http.Error(w, "no such file was taken", http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// next counts.
func next(b *authority.Book, what string) int64 {
	var n int64
	b.Load("count/"+what, &n) // zero at the beginning
	b.Keep("count/"+what, n+1)
	return n + 1
}
