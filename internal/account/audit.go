package account

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"tributary/internal/alert"
	"tributary/internal/db"
)

// Actor is who makes a change.
type Actor struct {
	Name string `json:"name"`          // an operator, "command line", "demo"
	Kid  string `json:"kid,omitempty"` // the API key it was made with, if any
	IP   string `json:"ip,omitempty"`
}

const actorBytesMax = 200

// settled makes the texts fit for a column of either engine.
func (a Actor) settled() Actor {
	fit := func(text string) string {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
		if len(text) > actorBytesMax {
			cut := actorBytesMax
			for !utf8.RuneStart(text[cut]) {
				cut--
			}
			text = text[:cut]
		}
		return text
	}
	return Actor{Name: strings.TrimSpace(fit(a.Name)), Kid: fit(a.Kid), IP: fit(a.IP)}
}

// digest is a SHA-256; all zero where there is nothing to hash.
type digest [sha256.Size]byte

// What an entry is about. Subjects of keys and data keys carry their name.
const (
	subjectConfig  = "config"
	subjectKey     = "key "
	subjectDataKey = "data key "
	subjectSecret  = "webhook secret "
)

// Entry is one line of a client's audit log. Each holds the hash of the one
// before it, so a changed, removed or inserted line shows.
type Entry struct {
	ClientID string
	Seq      int64
	At       time.Time
	Actor    Actor
	Action   string
	Subject  string

	before, after digest // hashes of the subject's stored state
	prev, hash    digest
	mac           []byte // by the audit key; nil: without one
}

// MarshalJSON writes hashes in hexadecimal.
func (e Entry) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ClientID string    `json:"client_id"`
		Seq      int64     `json:"seq"`
		At       time.Time `json:"at"`
		Actor    Actor     `json:"actor"`
		Action   string    `json:"action"`
		Subject  string    `json:"subject"`
		Before   string    `json:"before_hash"`
		After    string    `json:"after_hash"`
		Prev     string    `json:"prev_hash"`
		Hash     string    `json:"hash"`
	}{e.ClientID, e.Seq, e.At, e.Actor, e.Action, e.Subject,
		hex.EncodeToString(e.before[:]), hex.EncodeToString(e.after[:]), hex.EncodeToString(e.prev[:]), e.Hash()})
}

// Hash is the entry's own hash in hexadecimal; of the last entry it is the head of the log.
func (e Entry) Hash() string { return hex.EncodeToString(e.hash[:]) }

func (e *Entry) row() []any {
	return []any{e.ClientID, e.Seq, db.Micros(e.At), e.Actor.Name, e.Actor.Kid, e.Actor.IP, e.Action, e.Subject,
		e.before[:], e.after[:], e.prev[:], e.hash[:], e.mac}
}

func scanEntry(scan func(...any) error) (Entry, error) {
	var e Entry
	var at int64
	var before, after, prev, hash []byte
	err := scan(&e.ClientID, &e.Seq, &at, &e.Actor.Name, &e.Actor.Kid, &e.Actor.IP, &e.Action, &e.Subject, &before, &after, &prev, &hash, &e.mac)
	e.At = db.FromMicros(at)
	for _, h := range []struct {
		to   *digest
		from []byte
	}{{&e.before, before}, {&e.after, after}, {&e.prev, prev}, {&e.hash, hash}} {
		copy(h.to[:], h.from)
	}
	return e, err
}

// compute is the hash of everything but the hash. The encoding is part of what
// is stored: it never changes, a new form gets a new label.
func (e *Entry) compute() digest {
	return hashOf("tributary account audit v1", []byte(e.ClientID), number(e.Seq), number(db.Micros(e.At)),
		[]byte(e.Actor.Name), []byte(e.Actor.Kid), []byte(e.Actor.IP), []byte(e.Action), []byte(e.Subject),
		e.before[:], e.after[:], e.prev[:])
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// hashOf hashes fields with their lengths, so that no two lists of fields give the same bytes.
func hashOf(label string, fields ...[]byte) (sum digest) {
	h := sha256.New()
	write := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
		h.Write(b)
	}
	write([]byte(label))
	for _, f := range fields {
		write(f)
	}
	h.Sum(sum[:0])
	return sum
}

func configHash(live bool, text string) digest {
	environment := "test"
	if live {
		environment = "live"
	}
	return hashOf("tributary client v1", []byte(environment), []byte(text))
}

func (k *Key) hash() digest {
	return hashOf("tributary api key v1", []byte(k.Kid), []byte(k.State), k.digest[:])
}

func dataKeyHash(purpose string, wrapped []byte) digest {
	return hashOf("tributary data key v1", []byte(purpose), wrapped)
}

// Audit reads a client's log from an entry on, oldest first.
func (a *Accounts) Audit(r db.Reader, clientID string, afterSeq int64, limit int) ([]Entry, error) {
	all, err := db.Collect(r, scanEntry, auditPageSQL, clientID, afterSeq, limit)
	if err != nil {
		return nil, fmt.Errorf("read the audit log of client %s: %w", clientID, err)
	}
	return all, nil
}

// Verdict is the result of verifying one audit log.
type Verdict struct {
	ClientID string `json:"client_id"`
	Entries  int64  `json:"entries"`          // that verified
	Head     string `json:"head"`             // hash of the last one that did; keep it elsewhere to prove later that nothing was rewritten
	Broken   *Break `json:"broken,omitempty"` // nil: the log is whole and says what the tables say
}

// Break is the first place where a log does not hold.
type Break struct {
	Seq    int64  `json:"seq"` // 0: the log itself holds, the client's rows differ from it
	Reason string `json:"reason"`
}

// VerifyAudit walks a client's log and reports the first break: an entry that
// was changed, removed, inserted or reordered, a tail that was cut off, or a
// configuration, key or data key that was changed past the log, or one that was
// not written by who holds the audit key. What whoever owns the database cut off
// at the end is found by heads kept outside: see [Accounts.Against].
func (a *Accounts) VerifyAudit(r db.Reader, clientID string) (Verdict, error) {
	v := Verdict{ClientID: clientID}
	rows, err := r.Query(auditSQL, clientID)
	if err != nil {
		return v, fmt.Errorf("read the audit log of client %s: %w", clientID, err)
	}
	var last Entry
	states := map[string]digest{} // by subject, as the log leaves them
	err = rows.Each(func(scan func(...any) error) error {
		e, err := scanEntry(scan)
		if err != nil || v.Broken != nil {
			return err
		}
		why := e.follows(&last, states[e.Subject])
		if why == "" {
			why = a.audit.Wrong(clientScope(clientID), Proven{Hash: e.hash[:], MAC: e.mac, At: e.At, Must: true})
		}
		if why != "" {
			v.Broken = &Break{Seq: e.Seq, Reason: why}
			return nil
		}
		states[e.Subject] = e.after
		last = e
		v.Entries, v.Head = e.Seq, e.Hash()
		return nil
	})
	if err != nil {
		return v, fmt.Errorf("read the audit log of client %s: %w", clientID, err)
	}
	if v.Broken == nil {
		v.Broken, err = compare(r, clientID, last, states)
	}
	return v, err
}

// follows says why an entry cannot stand after the last one, or nothing.
func (e *Entry) follows(last *Entry, state digest) string {
	switch {
	case e.Seq != last.Seq+1:
		return fmt.Sprintf("entry %d is missing", last.Seq+1)
	case e.prev != last.hash:
		return "it does not continue the entry before it"
	case e.compute() != e.hash:
		return "its content is not what was hashed"
	case e.before != state:
		return "it changes a state that was never recorded"
	}
	return ""
}

// compare says where the client's rows differ from what the log has recorded.
func compare(r db.Reader, clientID string, last Entry, states map[string]digest) (*Break, error) {
	var live bool
	var text string
	var seq int64
	var head []byte
	err := r.Row(clientHeadSQL, clientID).Scan(&live, &text, &seq, &head)
	if errors.Is(err, db.ErrNoRows) {
		return nil, unknownClient(clientID)
	}
	if err != nil {
		return nil, fmt.Errorf("read client %s: %w", clientID, err)
	}
	if seq != last.Seq || string(head) != string(last.hash[:]) {
		return &Break{Seq: last.Seq + 1, Reason: fmt.Sprintf("the log ends at %d, the client was last changed at %d", last.Seq, seq)}, nil
	}
	now := map[string]digest{subjectConfig: configHash(live, text)}
	keys, err := db.Collect(r, scanKey, clientKeysSQL, clientID)
	if err != nil {
		return nil, fmt.Errorf("read the keys of client %s: %w", clientID, err)
	}
	for _, k := range keys {
		now[subjectKey+k.Kid] = k.hash()
	}
	limited, err := db.Collect(r, scanLimited, clientLimitedSQL, clientID)
	if err != nil {
		return nil, fmt.Errorf("read the keys with limits of client %s: %w", clientID, err)
	}
	for _, k := range limited {
		now[subjectLimited+k.Kid] = k.hash()
	}
	secrets, err := db.Collect(r, scanWebhookSecret, clientSecretsSQL, clientID)
	if err != nil {
		return nil, fmt.Errorf("read the webhook secrets of client %s: %w", clientID, err)
	}
	for _, s := range secrets {
		now[subjectSecret+s.ID] = s.hash()
	}
	wrapped, err := readDataKeys(r, ofClient, clientID)
	if err != nil {
		return nil, err
	}
	for _, k := range wrapped {
		now[subjectDataKey+k.purpose] = dataKeyHash(k.purpose, k.wrapped)
	}
	return firstDifference(states, now), nil
}

func firstDifference(logged, now map[string]digest) *Break {
	subject := ""
	note := func(s string) {
		if subject == "" || s < subject {
			subject = s // the first by name, so that two runs say the same
		}
	}
	for s, d := range now {
		if logged[s] != d {
			note(s)
		}
	}
	for s := range logged {
		if _, there := now[s]; !there {
			note(s)
		}
	}
	if subject == "" {
		return nil
	}
	return &Break{Reason: fmt.Sprintf("%s is not as the log recorded it", subject)}
}

// VerifyAudits verifies every client's log and raises an alert for each that
// does not hold. A periodic job calls it.
func (a *Accounts) VerifyAudits(ctx context.Context) ([]Verdict, error) {
	var verdicts []Verdict
	err := a.read(ctx, func(r db.Reader) error {
		verdicts = nil
		ids, err := db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) }, clientIDsSQL)
		if err != nil {
			return fmt.Errorf("list clients: %w", err)
		}
		for _, id := range ids {
			v, err := a.VerifyAudit(r, id)
			if err != nil {
				return err
			}
			verdicts = append(verdicts, v)
		}
		return nil
	})
	if err != nil || a.alerts == nil {
		return verdicts, err
	}
	for _, v := range verdicts {
		if v.Broken != nil {
			message := fmt.Sprintf("the audit log of client %s breaks at entry %d: %s", v.ClientID, v.Broken.Seq, v.Broken.Reason)
			err = errors.Join(err, a.alerts.Raise(ctx, alert.AuditBroken, v.ClientID, message))
		}
	}
	return verdicts, err
}
