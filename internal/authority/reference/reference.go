// Package reference is the double of the reference authority: it speaks the
// protocol of official/xxwire, judges what it receives, keeps a book and plays
// scripts. It knows nothing of the pack whose filings it judges.
package reference

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/xxwire"
	"tributary/internal/strictjson"
)

// callBytesMax is more than a channel sends, so that one huge document still fits.
const callBytesMax = 2 * xxwire.BatchBytesMax

// double is the other side of the protocol, on a desk that keeps its book
// and its script. Keys of the book: "key/" a supplier's signing key, "chain/"
// its chain's head, "open/" a document that waits for, or has had, a decision.
type double struct{ desk *authority.Desk }

// New returns the authority on a desk.
func New(d *authority.Desk) http.Handler {
	a := &double{desk: d}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+xxwire.PathDocuments, a.file)
	mux.HandleFunc("GET "+xxwire.PathDocuments, a.find)
	mux.HandleFunc("GET "+xxwire.PathStatus, a.status)
	mux.HandleFunc("GET "+xxwire.PathList, a.list)
	mux.HandleFunc("GET "+xxwire.PathChain, a.chainHead)
	mux.HandleFunc("GET "+xxwire.PathMailbox, a.mailbox)
	mux.HandleFunc("PUT "+xxwire.PathSuppliers, a.enrol)
	mux.HandleFunc("GET "+xxwire.PathGrant, a.grant)
	mux.HandleFunc("POST "+xxwire.PathGrant, a.grant)
	mux.HandleFunc("POST "+xxwire.PathToken, a.token)
	mux.HandleFunc("POST "+xxwire.PathNotices, a.hear)
	return platforms(mux, false)
}

// refusal is why a call is not worked on.
type refusal struct {
	status  int
	code    string
	message string
}

func (no refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(no.status)
	taken := false
	_ = json.NewEncoder(w).Encode(xxwire.Problem{Error: no.code, Message: no.message, Taken: &taken}) // the caller went away
}

func busy(w http.ResponseWriter) {
	refusal{http.StatusServiceUnavailable, xxwire.CodeUnavailable, "the authority is closed; nothing was taken"}.write(w)
}

// caller is a call whose signature was checked.
type caller struct {
	supplier string
	key      []byte
	body     []byte
}

func (a *double) authenticate(w http.ResponseWriter, r *http.Request) (caller, bool) {
	c, no := a.identify(w, r)
	if no.code != "" {
		no.write(w)
		return caller{}, false
	}
	return c, true
}

func (a *double) identify(w http.ResponseWriter, r *http.Request) (caller, refusal) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, callBytesMax))
	if err != nil {
		return caller{}, refusal{http.StatusRequestEntityTooLarge, xxwire.CodeCall,
			"the call is longer than " + strconv.Itoa(callBytesMax) + " bytes or broke off"}
	}
	supplier, err := url.QueryUnescape(r.Header.Get(xxwire.HeaderSupplier))
	if err != nil || supplier == "" {
		return caller{}, refusal{http.StatusUnauthorized, xxwire.CodeCall, xxwire.HeaderSupplier + " is missing or not readable"}
	}
	at, err := time.Parse(time.RFC3339, r.Header.Get(xxwire.HeaderDate))
	if skew := time.Since(at); err != nil || skew > xxwire.SkewMax || skew < -xxwire.SkewMax {
		return caller{}, refusal{http.StatusUnauthorized, xxwire.CodeClock,
			xxwire.HeaderDate + " is more than " + xxwire.SkewMax.String() + " away from the authority's clock"}
	}
	digest := sha256.Sum256(body)
	if r.Header.Get(xxwire.HeaderDigest) != hex.EncodeToString(digest[:]) {
		return caller{}, refusal{http.StatusBadRequest, xxwire.CodeCall, xxwire.HeaderDigest + " is not the hash of the body"}
	}
	key, ok := a.keyOf(supplier)
	if !ok {
		return caller{}, refusal{http.StatusUnauthorized, xxwire.CodeKeyUnknown, "no key is enrolled for the supplier"}
	}
	given, err := hex.DecodeString(r.Header.Get(xxwire.HeaderSignature))
	if err != nil || !hmac.Equal(given, xxwire.MAC(key, xxwire.SignedText(r, r.URL.Path))) {
		return caller{}, refusal{http.StatusUnauthorized, xxwire.CodeSignature, "the signature is not made with the supplier's key"}
	}
	if a.ungranted(r, supplier) {
		return caller{}, refusal{http.StatusUnauthorized, xxwire.CodeGrant,
			"the supplier has agreed to a platform whose token the call does not show"}
	}
	return caller{supplier: supplier, key: key, body: body}, refusal{}
}

func (a *double) keyOf(supplier string) ([]byte, bool) {
	var text string
	var ok bool
	a.desk.Read(func(b *authority.Book) { text, ok = b.Get("key/" + supplier) })
	if !ok {
		return nil, false
	}
	key, err := base64.StdEncoding.DecodeString(text)
	return key, err == nil
}

const enrolmentBytesMax = 1 << 16

// enrol serves PUT /v1/suppliers. It stands for the authority's own counter,
// where a supplier would show papers; whoever reaches it is believed.
func (a *double) enrol(w http.ResponseWriter, r *http.Request) {
	var in xxwire.Enrolment
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, enrolmentBytesMax))
	if err != nil || strictjson.Unmarshal(text, enrolmentBytesMax, "the enrolment", &in) != nil || in.Supplier == "" {
		refusal{http.StatusBadRequest, xxwire.CodeCall, "an enrolment has supplier, key and replace"}.write(w)
		return
	}
	if key, err := base64.StdEncoding.DecodeString(in.Key); err != nil || len(key) != sha256.Size {
		refusal{http.StatusBadRequest, xxwire.CodeCall, "a key has 32 bytes in base64"}.write(w)
		return
	}
	another := false
	err = a.desk.Write(func(b *authority.Book) {
		old, ok := b.Get("key/" + in.Supplier)
		another = ok && old != in.Key && !in.Replace
		if !another && old != in.Key {
			b.Put("key/"+in.Supplier, in.Key)
		}
	})
	switch {
	case err != nil:
		refusal{http.StatusInternalServerError, xxwire.CodeInternalError, "the book cannot be written"}.write(w)
	case another:
		refusal{http.StatusConflict, xxwire.CodeKeyEnrolled, "another key is enrolled for the supplier"}.write(w)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// arrival is one document of a call, read.
type arrival struct {
	document
	raw    []byte
	sha256 string
	flaw   string // why it cannot be read as a document
}

// file serves POST /v1/documents.
func (a *double) file(w http.ResponseWriter, r *http.Request) {
	from, ok := a.authenticate(w, r)
	if !ok {
		return
	}
	docs, names, no := readBatch(from)
	if no.code != "" {
		no.write(w)
		return
	}
	turn := a.desk.TurnEach(names...)
	if !turn.Begin(w, busy) {
		return
	}
	answers := make([]xxwire.Receipt, len(docs))
	err := a.desk.Write(func(b *authority.Book) {
		gap := false // in a chain nothing is taken behind a link that was not
		for i := range docs {
			if gap {
				turn.Steps[i].Outcome = authority.Unavailable
			}
			answers[i] = (&registrar{book: b, supplier: from.supplier}).take(&docs[i], turn.Steps[i])
			gap = gap || docs[i].Chain != nil && answers[i].Outcome == xxwire.OutcomeNotTaken
		}
	})
	if err != nil {
		// The book may or may not hold it: an answer without "taken" says so.
		http.Error(w, "the book cannot be written", http.StatusInternalServerError)
		return
	}
	a.callBack(r, from, docs, answers)
	if turn.End(w, r) {
		writeReceipts(w, from.key, turn.Wait, answers)
	}
}

func readBatch(from caller) ([]arrival, []authority.Arrival, refusal) {
	count := bytes.Count(from.body, []byte{'\n'})
	if count == 0 || count > xxwire.BatchMax || from.body[len(from.body)-1] != '\n' {
		return nil, nil, refusal{http.StatusBadRequest, xxwire.CodeCall,
			fmt.Sprintf("a call has 1 to %d lines, each ended", xxwire.BatchMax)}
	}
	docs := make([]arrival, 0, count)
	names := make([]authority.Arrival, 0, count)
	for raw := range bytes.SplitSeq(from.body[:len(from.body)-1], []byte{'\n'}) {
		d := readArrival(raw)
		docs = append(docs, d)
		names = append(names, authority.Arrival{Supplier: from.supplier, Number: d.Number})
	}
	return docs, names, refusal{}
}

func readArrival(raw []byte) arrival {
	sum := sha256.Sum256(raw)
	d := arrival{raw: raw, sha256: hex.EncodeToString(sum[:])}
	if err := json.Unmarshal(raw, &d.document); err != nil {
		d.flaw = "the line is no document: " + err.Error()
	}
	return d
}

func writeReceipts(w http.ResponseWriter, key []byte, wait time.Duration, answers []xxwire.Receipt) {
	out := make([]byte, 0, 320*len(answers))
	for _, r := range answers {
		out = append(xxwire.SignReceipt(out, key, r), '\n')
	}
	w.Header().Set("Content-Type", xxwire.TypeLines)
	if wait > 0 {
		seconds := (wait + time.Second - 1) / time.Second
		w.Header().Set(xxwire.HeaderWait, strconv.Itoa(int(seconds)))
	}
	_, _ = w.Write(out) // a caller that left will ask again
}

// find serves GET /v1/documents?number=…
func (a *double) find(w http.ResponseWriter, r *http.Request) {
	a.query(w, r, func(reg *registrar, number string) xxwire.Receipt {
		if held, ok := reg.book.Find(reg.supplier, number); ok {
			return registered(held)
		}
		if open, ok := reg.open(number); ok {
			return open.receipt(number)
		}
		return xxwire.Receipt{Number: number, Outcome: xxwire.OutcomeAbsent}
	})
}

// status serves GET /v1/documents/status?number=… It is the poll: a document
// whose time has come is decided when somebody asks.
func (a *double) status(w http.ResponseWriter, r *http.Request) {
	a.query(w, r, func(reg *registrar, number string) xxwire.Receipt {
		if open, ok := reg.open(number); ok && !open.Rejected && !time.Now().Before(open.Due) {
			reg.decide(number, open, a.desk.Decide())
		}
		if held, ok := reg.book.Find(reg.supplier, number); ok {
			said := registered(held)
			said.News = reg.notices(number)
			return said
		}
		if open, ok := reg.open(number); ok {
			return open.receipt(number)
		}
		return xxwire.Receipt{Number: number, Outcome: xxwire.OutcomeAbsent}
	})
}

func (a *double) query(w http.ResponseWriter, r *http.Request, answer func(*registrar, string) xxwire.Receipt) {
	from, ok := a.authenticate(w, r)
	if !ok {
		return
	}
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, busy) {
		return
	}
	number := r.URL.Query().Get("number")
	var said xxwire.Receipt
	if err := a.desk.Write(func(b *authority.Book) {
		said = answer(&registrar{book: b, supplier: from.supplier}, number)
	}); err != nil {
		http.Error(w, "the book cannot be read", http.StatusInternalServerError)
		return
	}
	if turn.End(w, r) {
		writeReceipts(w, from.key, turn.Wait, []xxwire.Receipt{said})
	}
}
