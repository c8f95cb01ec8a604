package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/secret"
)

// ServiceKeys are secrets of the service itself: made once, sealed under the
// master key, shared by all nodes.
type ServiceKeys struct {
	DB     *db.DB
	Master *secret.Master
}

// Names of service keys. They are stored.
const (
	DocumentAddresses = "document_addresses"
	OperatorDevices   = "operator_devices" // what browsers of operators are remembered by

	OperatorFactors = "operator_factors" // seals second factors of operators

	AuditLogs = "audit_logs" // authenticates entries and signs heads

	previousSuffix = ".previous"
)

// ServiceKey is one secret, with the one that it has replaced.
type ServiceKey struct {
	Current  secret.Secret
	Previous secret.Secret // zero: there is none
	Since    time.Time     // of the current one
}

const (
	serviceKeyBytes = 32

	serviceKeySQL    = "SELECT wrapped, sealed, created_at FROM service_keys WHERE name = $1"
	serviceKeysSQL   = "SELECT name, wrapped FROM service_keys ORDER BY name"
	rewrapServiceSQL = "UPDATE service_keys SET wrapped = $1 WHERE name = $2 AND wrapped = $3"
	putServiceKeySQL = `INSERT INTO service_keys (name, wrapped, sealed, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (name) DO UPDATE SET wrapped = excluded.wrapped, sealed = excluded.sealed, created_at = excluded.created_at`
	firstServiceKeySQL = "INSERT INTO service_keys (name, wrapped, sealed, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING"
)

func aboutService(name string) secret.Context { return secret.Context{Purpose: name, Version: 1} }

// Key answers a service key, and makes it the first time: the first node to come wins.
func (s ServiceKeys) Key(ctx context.Context, name string) (ServiceKey, error) {
	k, err := s.read(ctx, name)
	if errors.Is(err, db.ErrNoRows) {
		wrapped, sealed, err := s.seal(name, freshKey())
		if err != nil {
			return ServiceKey{}, err
		}
		if err := s.DB.Write(ctx, func(tx *db.Tx) error {
			return tx.Exec(firstServiceKeySQL, name, wrapped, sealed, db.Micros(tx.Now()))
		}); err != nil {
			return ServiceKey{}, fmt.Errorf("store the service key %s: %w", name, err)
		}
		return s.read(ctx, name)
	}
	return k, err
}

// AuditKey is the key of the audit logs, with those that it has replaced.
func (s ServiceKeys) AuditKey() *audit.Key { return audit.NewKey(s.auditRing, auditSince) }

func (s ServiceKeys) auditRing(ctx context.Context) (ring audit.Ring, err error) {
	k, err := s.Key(ctx, AuditLogs)
	if err != nil {
		return ring, err
	}
	for n := 1; ; n++ {
		older, _, err := s.open(ctx, replacedName(n))
		if errors.Is(err, db.ErrNoRows) {
			break
		}
		if err != nil {
			return ring, fmt.Errorf("read the service key %s: %w", replacedName(n), err)
		}
		ring.Keys = append(ring.Keys, older)
	}
	ring.Keys, ring.Since = append(ring.Keys, k.Current), db.Micros(k.Since)
	return ring, nil
}

// auditSince reads when the key was made. In a write the row stays as it is until
// the commit: no entry of a replaced key follows the renewal.
func auditSince(r db.Reader) (at int64, err error) {
	sql := "SELECT created_at FROM service_keys WHERE name = $1"
	if tx, writes := r.(*db.Tx); writes && tx.Engine() == "postgres" {
		sql += " FOR SHARE"
	}
	err = r.Row(sql, AuditLogs).Scan(&at)
	return at, err
}

// replacedName is that of the audit key that was replaced n-th.
func replacedName(n int) string { return AuditLogs + "." + strconv.Itoa(n) }

// RenewAudit replaces the audit key. The one before is kept: it proves what it made.
func (s ServiceKeys) RenewAudit(ctx context.Context) error {
	ring, err := s.auditRing(ctx)
	if err != nil {
		return err
	}
	old := replacedName(len(ring.Keys))
	before, sealedBefore, err := s.seal(old, ring.Keys[len(ring.Keys)-1])
	if err != nil {
		return fmt.Errorf("renew the audit key: %w", err)
	}
	wrapped, sealed, err := s.seal(AuditLogs, freshKey())
	if err != nil {
		return fmt.Errorf("renew the audit key: %w", err)
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		at := db.Micros(tx.Now())
		if err := tx.ExecOne("UPDATE service_keys SET wrapped = $1, sealed = $2, created_at = $3 WHERE name = $4 AND created_at = $5",
			wrapped, sealed, max(at, ring.Since+1), AuditLogs, ring.Since); err != nil {
			return err // somebody else renewed it meanwhile
		}
		return tx.Insert("service_keys", "name,wrapped,sealed,created_at", []any{old, before, sealedBefore, at})
	})
	if err != nil {
		return fmt.Errorf("renew the audit key: %w", err)
	}
	return nil
}

func freshKey() secret.Secret {
	fresh := make([]byte, serviceKeyBytes)
	rand.Read(fresh) // never fails: the runtime ends the program instead
	return secret.New(fresh)
}

func (s ServiceKeys) seal(name string, key secret.Secret) (wrapped, sealed []byte, err error) {
	if wrapped, err = s.Master.NewKey(aboutService(name)); err != nil {
		return nil, nil, err
	}
	sealer, err := s.Master.Open(wrapped, aboutService(name))
	if err != nil {
		return nil, nil, err
	}
	sealed, err = sealer.Seal(key, aboutService(name))
	return wrapped, sealed, err
}

func (s ServiceKeys) read(ctx context.Context, name string) (k ServiceKey, err error) {
	if k.Current, k.Since, err = s.open(ctx, name); err != nil {
		return ServiceKey{}, fmt.Errorf("read the service key %s: %w", name, err)
	}
	k.Previous, _, err = s.open(ctx, name+previousSuffix)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return ServiceKey{}, fmt.Errorf("read the service key before %s: %w", name, err)
	}
	return k, nil
}

func (s ServiceKeys) open(ctx context.Context, name string) (key secret.Secret, since time.Time, err error) {
	var wrapped, sealed []byte
	var at int64
	err = s.DB.Read(db.AsService(ctx), func(r db.Reader) error {
		return r.Row(serviceKeySQL, name).Scan(&wrapped, &sealed, &at)
	})
	if err != nil {
		return secret.Secret{}, time.Time{}, err
	}
	sealer, err := s.Master.Open(wrapped, aboutService(name))
	if err != nil {
		return secret.Secret{}, time.Time{}, err
	}
	key, err = sealer.Open(sealed, aboutService(name))
	return key, db.FromMicros(at), err
}

// Sealer answers what seals under a service key's data key, for secrets that have
// rows of their own. Such a key is renewed by Reseal: else nothing would open what
// it has sealed.
func (s ServiceKeys) Sealer(ctx context.Context, name string) (*secret.Sealer, error) {
	if _, err := s.Key(ctx, name); err != nil {
		return nil, err
	}
	var wrapped, sealed []byte
	var at int64
	if err := s.DB.Read(db.AsService(ctx), func(r db.Reader) error {
		return r.Row(serviceKeySQL, name).Scan(&wrapped, &sealed, &at)
	}); err != nil {
		return nil, fmt.Errorf("read the service key %s: %w", name, err)
	}
	return s.Master.Open(wrapped, aboutService(name))
}

// Renew replaces a service key; the one before is kept beside it.
func (s ServiceKeys) Renew(ctx context.Context, name string) error {
	now, err := s.Key(ctx, name)
	if err != nil {
		return err
	}
	before, sealedBefore, err := s.seal(name+previousSuffix, now.Current)
	if err != nil {
		return fmt.Errorf("renew the service key %s: %w", name, err)
	}
	wrapped, sealed, err := s.seal(name, freshKey())
	if err != nil {
		return fmt.Errorf("renew the service key %s: %w", name, err)
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		at := db.Micros(tx.Now())
		return errors.Join(tx.Exec(putServiceKeySQL, name+previousSuffix, before, sealedBefore, at),
			tx.Exec(putServiceKeySQL, name, wrapped, sealed, at))
	})
	if err != nil {
		return fmt.Errorf("renew the service key %s: %w", name, err)
	}
	return nil
}

// Reseal replaces the data key of a service key that seals rows of others, in one write with those rows: move opens each
// with the old one and seals it with the fresh one. What somebody else seals with the old one meanwhile is lost to him.
func (s ServiceKeys) Reseal(ctx context.Context, name string, move func(tx *db.Tx, old, fresh *secret.Sealer) error) error {
	old, err := s.Sealer(ctx, name)
	if err != nil {
		return err
	}
	wrapped, sealed, err := s.seal(name, freshKey())
	if err != nil {
		return fmt.Errorf("renew the service key %s: %w", name, err)
	}
	fresh, err := s.Master.Open(wrapped, aboutService(name))
	if err != nil {
		return fmt.Errorf("renew the service key %s: %w", name, err)
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		if err := move(tx, old, fresh); err != nil {
			return err
		}
		return tx.Exec(putServiceKeySQL, name, wrapped, sealed, db.Micros(tx.Now()))
	})
	if err != nil {
		return fmt.Errorf("renew the service key %s: %w", name, err)
	}
	return nil
}

// Rewrap moves every service key to the current master key and returns how many it moved.
func (s ServiceKeys) Rewrap(ctx context.Context) (moved int, err error) {
	current, err := s.Master.KeyID()
	if err != nil {
		return 0, fmt.Errorf("re-wrap service keys: %w", err)
	}
	type row struct {
		name    string
		wrapped []byte
	}
	var all []row
	err = s.DB.Read(db.AsService(ctx), func(r db.Reader) (err error) {
		all, err = db.Collect(r, func(scan func(...any) error) (o row, err error) {
			return o, scan(&o.name, &o.wrapped)
		}, serviceKeysSQL)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("re-wrap service keys: %w", err)
	}
	for _, one := range all {
		if id, err := secret.KeyID(one.wrapped); err == nil && id == current {
			continue
		}
		again, err := s.Master.Rewrap(one.wrapped, aboutService(one.name))
		if err != nil {
			return moved, fmt.Errorf("re-wrap the service key %s: %w", one.name, err)
		}
		err = s.DB.Write(ctx, func(tx *db.Tx) error { return tx.ExecOne(rewrapServiceSQL, again, one.name, one.wrapped) })
		switch {
		case errors.Is(err, db.ErrStale): // renewed, or moved by another run, meanwhile
		case err != nil:
			return moved, fmt.Errorf("re-wrap the service key %s: %w", one.name, err)
		default:
			moved++
		}
	}
	return moved, nil
}
