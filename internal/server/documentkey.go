package server

import (
	"context"
	"crypto/rand"
	"fmt"

	"tributary/internal/db"
	"tributary/internal/secret"
)

// documentKey is the secret that signs document addresses: separate from all
// other keys, made once, sealed under the master key, shared by all nodes.
func (s *Server) documentKey(ctx context.Context) (secret.Secret, error) {
	about := secret.Context{Purpose: "document_addresses", Version: 1}
	wrapped, err := s.masterKey.NewKey(about)
	if err != nil {
		return secret.Secret{}, err
	}
	sealer, err := s.masterKey.Open(wrapped, about)
	if err != nil {
		return secret.Secret{}, err
	}
	fresh := make([]byte, 32)
	rand.Read(fresh) // crypto/rand.Read never fails
	sealed, err := sealer.Seal(secret.New(fresh), about)
	if err != nil {
		return secret.Secret{}, err
	}
	// The first node to come wins; everybody reads what is stored then.
	if err := s.db.Write(ctx, func(tx *db.Tx) error {
		return tx.Exec("INSERT INTO service_keys (name, wrapped, sealed, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING",
			about.Purpose, wrapped, sealed, db.Micros(tx.Now()))
	}); err != nil {
		return secret.Secret{}, err
	}
	if err := s.db.Read(ctx, func(r db.Reader) error {
		return r.Row("SELECT wrapped, sealed FROM service_keys WHERE name = $1", about.Purpose).Scan(&wrapped, &sealed)
	}); err != nil {
		return secret.Secret{}, fmt.Errorf("read the key: %w", err)
	}
	if sealer, err = s.masterKey.Open(wrapped, about); err != nil {
		return secret.Secret{}, err
	}
	return sealer.Open(sealed, about)
}
