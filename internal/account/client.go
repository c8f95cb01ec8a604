package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/ids"
	"tributary/internal/secret"
)

const clientIDMax = 64

// Client is one client with its keys, revoked ones included, oldest first.
type Client struct {
	ID     string `json:"client_id"`
	Live   bool   `json:"live"`
	Config Config `json:"configuration"`
	Keys   []Key  `json:"keys"`
	// LimitedKeys are those that sign nothing, revoked and expired ones included.
	LimitedKeys []LimitedKey `json:"limited_keys,omitempty"`
	// WebhookSecrets are those of Standard Webhooks, revoked ones included.
	WebhookSecrets []WebhookSecret `json:"webhook_secrets,omitempty"`
	CreatedAt      time.Time       `json:"created_at"`
	UpdatedAt      time.Time       `json:"updated_at"`
}

// Environment is the name of the client's side: live or test.
func (c Client) Environment() string {
	if c.Live {
		return "live"
	}
	return "test"
}

// NewClient is what a client begins with.
type NewClient struct {
	ID     string // empty: 32 random hex characters
	Live   bool
	Config Config
	Logo   []byte        // PNG or JPEG; empty: none
	Key    secret.Secret // empty: a new key is made
}

// CreateClient stores a client with its first key, which is active at once. The
// key text is returned here and never shown again.
func (a *Accounts) CreateClient(ctx context.Context, by audit.Actor, in NewClient) (Client, secret.Secret, error) {
	if in.ID == "" {
		in.ID = ids.New()
	}
	if !isClientID(in.ID) {
		return Client{}, secret.Secret{}, invalid(fault.At("client_id", fault.FieldNotValid,
			"must be 1 to %d of a-z, 0-9 and -, and begin with a letter or digit", clientIDMax))
	}
	key, err := firstKey(in)
	if err != nil {
		return Client{}, secret.Secret{}, err
	}
	if in.Config.Logo = nil; len(in.Logo) > 0 {
		if in.Config.Logo, err = ReadLogo(ctx, in.ID, in.Logo); err != nil {
			return Client{}, secret.Secret{}, err
		}
	}
	if err := a.rules.settle(&in.Config, in.Live, Config{}); err != nil {
		return Client{}, secret.Secret{}, err
	}
	if err := a.storeClient(ctx, by, in, key); err != nil {
		return Client{}, secret.Secret{}, fmt.Errorf("create client %s: %w", in.ID, err)
	}
	c, err := a.client(ctx, in.ID)
	return c, key.Text(), err
}

func firstKey(in NewClient) (secret.APIKey, error) {
	if in.Key.IsZero() {
		return secret.NewAPIKey(in.Live), nil
	}
	return parseKey(in.Key, in.Live)
}

// storeClient seals before it writes: a master key may be a network away, and
// a write function does no network work.
func (a *Accounts) storeClient(ctx context.Context, by audit.Actor, in NewClient, key secret.APIKey) error {
	if a.master == nil {
		return errNoMaster
	}
	wrapped, err := a.master.NewKey(dataKey{in.ID, PurposeAPIKeys}.context())
	if err != nil {
		return err
	}
	sealer, err := a.master.Open(wrapped, dataKey{in.ID, PurposeAPIKeys}.context())
	if err != nil {
		return err
	}
	sealed, err := sealer.Seal(key.Text(), keyContext(in.ID, key.Kid()))
	if err != nil {
		return err
	}
	text, err := json.Marshal(in.Config)
	if err != nil {
		return err
	}
	return a.edit(ctx, by, in.ID, func(e *edit) error {
		if e.exists {
			return fault.New(fault.Conflict, "client %q already exists", in.ID)
		}
		now := db.Micros(e.tx.Now())
		err := e.tx.Insert("clients", newClientColumns,
			[]any{in.ID, in.Live, string(text), now, now, int64(0), logoColumn(in.Logo)})
		if err != nil {
			return err
		}
		e.exists, e.live = true, in.Live
		e.record("client.created", subjectConfig, audit.Digest{}, configHash(in.Live, string(text)))
		if err := e.addDataKey(PurposeAPIKeys, wrapped); err != nil {
			return err
		}
		return e.addKey(key, sealed, Active)
	})
}

// logoColumn is NULL for no logo: a nil slice in an interface is not nil to every driver.
func logoColumn(raw []byte) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

// Configure changes a client's configuration: change edits a copy, the result
// is checked as a whole, and stored unless it is what was there. change may run
// twice. The logo is not its business; see SetLogo.
func (a *Accounts) Configure(ctx context.Context, by audit.Actor, clientID string,
	change func(*Config) error) (Client, error) {
	err := a.change(ctx, by, clientID, func(e *edit) error {
		config, err := e.config()
		if err != nil {
			return err
		}
		logo, before := config.Logo, config
		// change may edit these in place
		before.Webhooks.ByEvent, before.WebhookCIDRs = maps.Clone(config.Webhooks.ByEvent), slices.Clone(config.WebhookCIDRs)
		if err := change(&config); err != nil {
			return err
		}
		config.Logo = logo
		if err := a.rules.settle(&config, e.live, before); err != nil {
			return err
		}
		return e.configure(config)
	})
	if err != nil {
		return Client{}, fmt.Errorf("configure client %s: %w", clientID, err)
	}
	return a.client(ctx, clientID)
}

// client reads a client after a change of ours.
func (a *Accounts) client(ctx context.Context, id string) (c Client, err error) {
	err = a.read(context.WithoutCancel(ctx), func(r db.Reader) error {
		c, err = a.Client(r, id)
		return err
	})
	return c, err
}

// Client reads one client. Unknown: fault.NotFound.
func (a *Accounts) Client(r db.Reader, id string) (Client, error) {
	all, err := readClients(r, ofClient, id)
	if err != nil {
		return Client{}, fmt.Errorf("read client %s: %w", id, err)
	}
	if len(all) == 0 {
		return Client{}, unknownClient(id)
	}
	return all[0], nil
}

// List reads every client, oldest first.
func (a *Accounts) List(r db.Reader) ([]Client, error) {
	all, err := readClients(r, "")
	if err != nil {
		return nil, fmt.Errorf("list clients: %w", err)
	}
	return all, nil
}

func readClients(r db.Reader, where string, args ...any) ([]Client, error) {
	clients, err := db.Collect(r, scanClient, fmt.Sprintf(clientsSQL, where), args...)
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(clients))
	for i, c := range clients {
		at[c.ID] = i
	}
	rows, err := r.Query(fmt.Sprintf(keysSQL, where), args...)
	if err != nil {
		return nil, err
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id string
		k, err := scanKey(func(dest ...any) error { return scan(append([]any{&id}, dest...)...) })
		if i, known := at[id]; known && err == nil {
			clients[i].Keys = append(clients[i].Keys, k)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if rows, err = r.Query(fmt.Sprintf(limitedSQL, where), args...); err != nil {
		return nil, err
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id string
		k, err := scanLimited(func(dest ...any) error { return scan(append([]any{&id}, dest...)...) })
		if i, known := at[id]; known && err == nil {
			clients[i].LimitedKeys = append(clients[i].LimitedKeys, k)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if rows, err = r.Query(fmt.Sprintf(secretsSQL, where), args...); err != nil {
		return nil, err
	}
	return clients, rows.Each(func(scan func(...any) error) error {
		var id string
		s, err := scanWebhookSecret(func(dest ...any) error { return scan(append([]any{&id}, dest...)...) })
		if i, known := at[id]; known && err == nil {
			clients[i].WebhookSecrets = append(clients[i].WebhookSecrets, s)
		}
		return err
	})
}

func scanClient(scan func(...any) error) (Client, error) {
	var c Client
	var text string
	var created, updated int64
	if err := scan(&c.ID, &c.Live, &text, &created, &updated); err != nil {
		return c, err
	}
	c.CreatedAt, c.UpdatedAt = db.FromMicros(created), db.FromMicros(updated)
	if err := json.Unmarshal([]byte(text), &c.Config); err != nil {
		return c, fmt.Errorf("read the configuration of client %s: %w", c.ID, err)
	}
	return c, nil
}

func isClientID(id string) bool {
	if id == "" || len(id) > clientIDMax || id[0] == '-' {
		return false
	}
	for i := range len(id) {
		if c := id[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

var errNoMaster = errors.New("no master key is configured")
