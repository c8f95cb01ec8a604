package server

import (
	"context"
	"errors"
	"time"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/secret"
)

const (
	keysEvery = 5 * time.Second
	// A renewed key signs when every node has had time to learn it: an address
	// is opened at any of them.
	keyKnownAfter = 3 * keysEvery

	tokenEvery    = time.Hour
	tokenSoonest  = 10 * time.Second
	tokenAlarm    = 24 * time.Hour // of what is left
	tokenPatience = 15 * time.Second
)

func (s *Server) serviceKeys() account.ServiceKeys {
	return account.ServiceKeys{DB: s.db, Master: s.masterKey}
}

// documentKeys are the secrets of document addresses, separate from all other
// keys: the one that signs, and the one that is accepted beside it.
func (s *Server) documentKeys(ctx context.Context) (signs, beside secret.Secret, err error) {
	key, err := s.serviceKeys().Key(ctx, account.DocumentAddresses)
	if err != nil {
		return secret.Secret{}, secret.Secret{}, err
	}
	if !key.Previous.IsZero() && s.db.Now().Before(key.Since.Add(keyKnownAfter)) {
		return key.Previous, key.Current, nil
	}
	return key.Current, key.Previous, nil
}

// followKeys learns of renewed keys, of document addresses and of the audit logs.
func (s *Server) followKeys(ctx context.Context) error {
	for every(ctx, keysEvery) {
		if err := s.auditKey.Follow(ctx, s.db); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("read the audit key", "error", err)
		}
		signs, beside, err := s.documentKeys(ctx)
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Warn("read the key of document URLs", "error", err)
			}
			continue // what it has is good
		}
		s.docs.SetKeys(signs, beside)
	}
	return nil
}

// keepToken renews the token of the key service and says when it cannot.
//
// Failure policy: a token that ends stops everything that must be opened, at a
// moment that nobody chose. So the alert comes a day before, or at once where
// less is left, and every hour again until somebody acted.
func (s *Server) keepToken(ctx context.Context) error {
	for {
		next := s.renewToken(ctx)
		if !every(ctx, next) {
			return nil
		}
	}
}

func (s *Server) renewToken(ctx context.Context) (next time.Duration) {
	asking, cancel := context.WithTimeout(ctx, tokenPatience)
	defer cancel()
	left, err := s.masterKey.RenewToken(asking)
	var message string
	switch {
	case ctx.Err() != nil:
		return tokenEvery
	case err != nil:
		message = err.Error()
	case left > 0 && left < tokenAlarm:
		message = "the token of the key service expires in " + left.Round(time.Second).String() + " and could not be renewed"
	}
	if message != "" {
		if err := s.alerts.Raise(ctx, alert.KeyServiceToken, "master key", message); err != nil && ctx.Err() == nil {
			s.cfg.Log.Error(message, "alert", string(alert.KeyServiceToken), "error", err)
		}
	}
	if left > 0 {
		return min(tokenEvery, max(left/3, tokenSoonest))
	}
	return tokenEvery
}

// every waits; false: ctx has ended.
func every(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// KeyUse is how many data keys a master key wraps, of what.
type KeyUse struct {
	KeyID string `json:"key_id"`
	Of    string `json:"of"`
	Count int    `json:"count"`
}

// wrappedTables are all tables with wrapped data keys, and what they are called.
var wrappedTables = map[string]string{
	"client_data_keys":    "clients",
	"service_keys":        "the service itself",
	"authority_endpoints": "authorities",
}

// KeysInUse tells which master keys are needed to open what a database holds.
func KeysInUse(ctx context.Context, d *db.DB) (list []KeyUse, err error) {
	counts := map[KeyUse]int{}
	for table, of := range wrappedTables {
		err = errors.Join(err, d.Read(ctx, func(r db.Reader) error {
			all, err := db.Collect(r, func(scan func(...any) error) (w []byte, err error) {
				return w, scan(&w)
			}, "SELECT wrapped FROM "+table+" WHERE wrapped IS NOT NULL")
			for _, w := range all {
				id, err := secret.KeyID(w)
				if err != nil {
					return err
				}
				counts[KeyUse{KeyID: id, Of: of}]++
			}
			return err
		}))
	}
	for use, n := range counts {
		use.Count = n
		list = append(list, use)
	}
	return list, err
}
