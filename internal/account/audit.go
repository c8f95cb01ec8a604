package account

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
)

// What an entry is about. Subjects of keys and data keys carry their name.
const (
	subjectConfig  = "config"
	subjectKey     = "key "
	subjectDataKey = "data key "
	subjectSecret  = "webhook secret "
)

// Entry is one line of a client's audit log.
type Entry struct {
	ClientID string `json:"client_id"`
	audit.Link
	Actor   audit.Actor  `json:"actor"`
	Action  string       `json:"action"`
	Subject string       `json:"subject"`
	Before  audit.Digest `json:"before_hash"` // of the subject's stored state
	After   audit.Digest `json:"after_hash"`
}

func (e *Entry) row() []any {
	return []any{e.ClientID, e.Seq, db.Micros(e.At), e.Actor.Name, e.Actor.Kid, e.Actor.IP, e.Action, e.Subject,
		e.Before[:], e.After[:], e.Prev[:], e.Own[:], e.MAC}
}

func scanEntry(scan func(...any) error) (Entry, error) {
	var e Entry
	var at int64
	var before, after, prev, own []byte
	err := scan(&e.ClientID, &e.Seq, &at, &e.Actor.Name, &e.Actor.Kid, &e.Actor.IP, &e.Action, &e.Subject, &before,
		&after, &prev, &own, &e.MAC)
	e.At, e.Before, e.After = db.FromMicros(at), audit.DigestOf(before), audit.DigestOf(after)
	e.Prev, e.Own = audit.DigestOf(prev), audit.DigestOf(own)
	return e, err
}

// compute is the hash of everything but the hash.
func (e *Entry) compute() audit.Digest {
	return audit.Hash("tributary account audit v1", []byte(e.ClientID), audit.Number(e.Seq), audit.Number(db.Micros(e.At)),
		[]byte(e.Actor.Name), []byte(e.Actor.Kid), []byte(e.Actor.IP), []byte(e.Action), []byte(e.Subject),
		e.Before[:], e.After[:], e.Prev[:])
}

// scopePrefix keeps a client that is named like another log apart from it.
const scopePrefix = "client "

func clientScope(id string) string { return scopePrefix + id }

func configHash(live bool, text string) audit.Digest {
	environment := "test"
	if live {
		environment = "live"
	}
	return audit.Hash("tributary client v1", []byte(environment), []byte(text))
}

func (k *Key) hash() audit.Digest {
	return audit.Hash("tributary api key v1", []byte(k.Kid), []byte(k.State), k.digest[:])
}

func dataKeyHash(purpose string, wrapped []byte) audit.Digest {
	return audit.Hash("tributary data key v1", []byte(purpose), wrapped)
}

// AuditKey is what entries are authenticated with; nil: nothing.
func (a *Accounts) AuditKey() *audit.Key { return a.audit }

// Audit reads a client's log from an entry on, oldest first.
func (a *Accounts) Audit(r db.Reader, clientID string, afterSeq int64, limit int) ([]Entry, error) {
	all, err := db.Collect(r, scanEntry, auditPageSQL, clientID, afterSeq, limit)
	if err != nil {
		return nil, fmt.Errorf("read the audit log of client %s: %w", clientID, err)
	}
	return all, nil
}

// VerifyAudit walks a client's log and reports the first break: an entry that
// was changed, removed, inserted or reordered, a tail that was cut off, or a
// configuration, key or data key that was changed past the log, or one that was
// not written by who holds the audit key. What whoever owns the database cut off
// at the end is found by heads kept outside: see [Accounts.Against].
func (a *Accounts) VerifyAudit(r db.Reader, clientID string) (audit.Verdict, error) {
	states := map[string]audit.Digest{} // by subject, as the log leaves them
	rows, err := r.Query(auditSQL, clientID)
	if err != nil {
		return audit.Verdict{}, fmt.Errorf("read the audit log of client %s: %w", clientID, err)
	}
	v, err := a.audit.Verify(clientScope(clientID), rows, func(scan func(...any) error) (audit.Proof, error) {
		e, err := scanEntry(scan)
		p := audit.Proof{Link: e.Link, Sum: e.compute()}
		if e.Before != states[e.Subject] {
			p.Wrong = "it changes a state that was never recorded"
		}
		states[e.Subject] = e.After
		return p, err
	})
	v.ClientID = clientID
	if err != nil {
		return v, fmt.Errorf("read the audit log of client %s: %w", clientID, err)
	}
	if v.Broken == nil {
		err = compare(r, &v, states)
	}
	return v, err
}

// compare says where the client's rows differ from what the log has recorded.
func compare(r db.Reader, v *audit.Verdict, states map[string]audit.Digest) error {
	clientID := v.ClientID
	var live bool
	var text string
	var seq int64
	var head []byte
	err := r.Row(clientHeadSQL, clientID).Scan(&live, &text, &seq, &head)
	if errors.Is(err, db.ErrNoRows) {
		return unknownClient(clientID)
	}
	if err != nil {
		return fmt.Errorf("read client %s: %w", clientID, err)
	}
	if v.EndsAt(seq, head); v.Broken != nil {
		return nil
	}
	now := map[string]audit.Digest{subjectConfig: configHash(live, text)}
	keys, err := db.Collect(r, scanKey, clientKeysSQL, clientID)
	if err != nil {
		return fmt.Errorf("read the keys of client %s: %w", clientID, err)
	}
	for _, k := range keys {
		now[subjectKey+k.Kid] = k.hash()
	}
	limited, err := db.Collect(r, scanLimited, clientLimitedSQL, clientID)
	if err != nil {
		return fmt.Errorf("read the restricted keys of client %s: %w", clientID, err)
	}
	for _, k := range limited {
		now[subjectLimited+k.Kid] = k.hash()
	}
	secrets, err := db.Collect(r, scanWebhookSecret, clientSecretsSQL, clientID)
	if err != nil {
		return fmt.Errorf("read the webhook secrets of client %s: %w", clientID, err)
	}
	for _, s := range secrets {
		now[subjectSecret+s.ID] = s.hash()
	}
	wrapped, err := readDataKeys(r, ofClient, clientID)
	if err != nil {
		return err
	}
	for _, k := range wrapped {
		now[subjectDataKey+k.purpose] = dataKeyHash(k.purpose, k.wrapped)
	}
	v.Broken = firstDifference(states, now)
	return nil
}

func firstDifference(logged, now map[string]audit.Digest) *audit.Break {
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
	return &audit.Break{Reason: fmt.Sprintf("%s differs from the log", subject)}
}

// VerifyAudits verifies every client's log and raises an alert for each that
// does not hold. A periodic job calls it.
func (a *Accounts) VerifyAudits(ctx context.Context) ([]audit.Verdict, error) {
	var verdicts []audit.Verdict
	err := a.read(ctx, func(r db.Reader) error {
		verdicts = nil
		if err := a.audit.Current(r); err != nil {
			return err
		}
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
			message := fmt.Sprintf("the audit log of client %s %s", v.ClientID, v.Broken)
			err = errors.Join(err, a.alerts.Raise(ctx, alert.AuditBroken, v.ClientID, message))
		}
	}
	return verdicts, err
}

// Heads reads where the logs of all clients stand.
func (a *Accounts) Heads(r db.Reader) ([]audit.Head, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (h audit.Head, err error) {
		var hash []byte
		err = scan(&h.Log, &h.Seq, &hash)
		h.Log, h.Hash = clientScope(h.Log), hex.EncodeToString(hash)
		return h, err
	}, headsSQL)
	if err != nil {
		return nil, fmt.Errorf("read the heads of clients' audit logs: %w", err)
	}
	return list, nil
}

// Against says how a client's log differs from a head of it that was kept outside.
func (a *Accounts) Against(r db.Reader, head audit.Head) (*audit.Break, error) {
	return head.Against(r.Row(entryHashSQL, strings.TrimPrefix(head.Log, scopePrefix), head.Seq))
}
