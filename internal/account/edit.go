package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/secret"
)

// edit is one change of one client: it collects the audit entries while the
// rows change, so that no change can be stored without its entry.
type edit struct {
	tx       *db.Tx
	by       audit.Actor
	clientID string
	exists   bool
	live     bool
	text     string // the configuration as stored
	seq      int64  // head of the audit log before this change
	head     audit.Digest
	keys     []Key
	entries  []Entry
	audit    *audit.Key
}

// change edits an existing client.
func (a *Accounts) change(ctx context.Context, by audit.Actor, clientID string, fn func(*edit) error) error {
	return a.edit(ctx, by, clientID, func(e *edit) error {
		if !e.exists {
			return unknownClient(clientID)
		}
		return fn(e)
	})
}

// edit runs fn in one write under the client's lock, and makes the change known
// in this process. Where fn changes nothing, nothing is written.
func (a *Accounts) edit(ctx context.Context, by audit.Actor, clientID string, fn func(*edit) error) error {
	by = by.Settled()
	if by.Name == "" {
		return errors.New("a change of a client needs an actor")
	}
	changed := false
	err := a.db.Write(ctx, func(tx *db.Tx) error {
		e, err := begin(tx, by, clientID)
		if err != nil {
			return err
		}
		e.audit = a.audit
		if err := fn(e); err != nil {
			return err
		}
		changed = len(e.entries) > 0
		return e.finish()
	})
	if err == nil && changed {
		a.catchUp(ctx)
	}
	return err
}

func begin(tx *db.Tx, by audit.Actor, clientID string) (*edit, error) {
	e := &edit{tx: tx, by: by, clientID: clientID}
	if err := tx.Lock("account " + clientID); err != nil {
		return nil, err
	}
	var head []byte
	err := tx.Row(clientHeadSQL, clientID).
		Scan(&e.live, &e.text, &e.seq, &head)
	if errors.Is(err, db.ErrNoRows) {
		return e, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the client: %w", err)
	}
	e.exists = true
	e.head = audit.DigestOf(head)
	e.keys, err = db.Collect(tx, scanKey, clientKeysSQL, clientID)
	if err != nil {
		return nil, fmt.Errorf("read the client's keys: %w", err)
	}
	return e, nil
}

// finish stores the entries and counts up the version. The version row orders
// all changes of all clients: whoever has counted holds it until the commit, so
// a look "since version N" can miss nothing.
func (e *edit) finish() error {
	if len(e.entries) == 0 {
		return nil
	}
	if err := e.audit.Current(e.tx); err != nil {
		return err
	}
	var version int64
	if err := e.tx.Row(nextVersionSQL).Scan(&version); err != nil {
		return fmt.Errorf("count up the version of accounts: %w", err)
	}
	if err := e.tx.ExecOne(countedSQL, version, db.Micros(e.tx.Now()), e.clientID, e.seq); err != nil {
		return err
	}
	tail := audit.Tail{Log: clientScope(e.clientID), Key: e.audit, Seq: e.seq, Head: e.head}
	rows := make([][]any, len(e.entries))
	for i := range e.entries {
		tail.Add(&e.entries[i].Link, e.entries[i].compute)
		rows[i] = e.entries[i].row()
	}
	if err := e.tx.Insert("account_audit", auditColumns, rows...); err != nil {
		return fmt.Errorf("store the audit log: %w", err)
	}
	return nil // each entry has moved the head
}

// record notes one change of one subject.
func (e *edit) record(action, subject string, before, after audit.Digest) {
	e.entries = append(e.entries, Entry{
		ClientID: e.clientID, Link: audit.Link{At: e.tx.Now()}, Actor: e.by, Action: action, Subject: subject,
		Before: before, After: after,
	})
}

func (e *edit) config() (Config, error) {
	var c Config
	if err := json.Unmarshal([]byte(e.text), &c); err != nil {
		return c, fmt.Errorf("read the stored configuration: %w", err)
	}
	return c, nil
}

func (e *edit) configure(c Config) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if string(text) == e.text {
		return nil
	}
	if err := e.tx.ExecOne(configureSQL, string(text), e.clientID); err != nil {
		return err
	}
	e.record("client.configured", subjectConfig, configHash(e.live, e.text), configHash(e.live, string(text)))
	e.text = string(text)
	return nil
}

func (e *edit) addDataKey(purpose string, wrapped []byte) error {
	err := e.tx.Insert("client_data_keys", newDataKeyColumns,
		[]any{e.clientID, purpose, wrapped, db.Micros(e.tx.Now())})
	if err != nil {
		return err
	}
	e.record("data_key.created", subjectDataKey+purpose, audit.Digest{}, dataKeyHash(purpose, wrapped))
	return nil
}

func (e *edit) addKey(key secret.APIKey, sealed []byte, state State) error {
	now := e.tx.Now()
	k := Key{Kid: key.Kid(), State: state, CreatedAt: now, digest: key.Digest()}
	if state == Active {
		k.PromotedAt = now
	}
	err := e.tx.Insert("api_keys", newKeyColumns,
		[]any{k.Kid, e.clientID, string(state), k.digest[:], sealed, db.Micros(now), microsOrNull(k.PromotedAt)})
	if err != nil {
		return err
	}
	e.record("key.created", subjectKey+k.Kid, audit.Digest{}, k.hash())
	e.keys = append(e.keys, k)
	return nil
}

// moveKey brings a key into another state.
func (e *edit) moveKey(k *Key, to State) error {
	from, before := k.State, k.hash()
	k.State = to
	action := "key.retired"
	switch to {
	case Active:
		k.PromotedAt, k.RevokedAt = e.tx.Now(), time.Time{}
		action = "key.promoted"
	case Revoked:
		k.RevokedAt = e.tx.Now()
		action = "key.revoked"
	}
	err := e.tx.ExecOne(moveKeySQL, string(to), microsOrNull(k.PromotedAt), microsOrNull(k.RevokedAt), k.Kid, e.clientID,
		string(from))
	if err != nil {
		return err
	}
	e.record(action, subjectKey+k.Kid, before, k.hash())
	return nil
}

// key finds a key of the client by kid, or nil.
func (e *edit) key(kid string) *Key {
	for i := range e.keys {
		if e.keys[i].Kid == kid {
			return &e.keys[i]
		}
	}
	return nil
}

// keyIn finds the client's key in a state, or nil. There is at most one in each but revoked.
func (e *edit) keyIn(s State) *Key {
	for i := range e.keys {
		if e.keys[i].State == s {
			return &e.keys[i]
		}
	}
	return nil
}

func (e *edit) usable() (n int) {
	for _, k := range e.keys {
		if k.State != Revoked {
			n++
		}
	}
	return n
}
