package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tink-crypto/tink-go/v2/tink"

	"tributary/internal/fault"
)

const (
	vaultScheme   = "hcvault://"
	vaultIDPrefix = "vault:"
	labelProbe    = "tributary probe v1"
)

var errNotUnderstood = errors.New("the key service's answer cannot be understood")

// openVault connects to the key that uri names and proves that it can be used
// and that it binds the context.
//
// Failure policy: one try per call, within ten seconds unless
// VAULT_CLIENT_TIMEOUT says otherwise, no redirects. Whoever needs a data key
// has a retry ladder of its own; a second one hidden here would hold its worker.
func openVault(uri string) (*kek, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the address must be hcvault://HOST:PORT/MOUNT/keys/NAME; the token belongs in VAULT_TOKEN")
	}
	parts := strings.Split(u.EscapedPath(), "/")
	n := len(parts)
	if n < 4 || parts[n-2] != "keys" || parts[n-1] == "" {
		return nil, errors.New("the path of the address must be /MOUNT/keys/NAME")
	}
	client, err := newVaultClient(u.Host)
	if err != nil {
		return nil, err
	}
	k := &kek{aead: transit{client: client, mount: strings.Join(parts[1:n-2], "/"), name: parts[n-1]}, service: client}
	return k, probeBinding(k.aead)
}

// RenewToken prolongs the token with which a key service is asked, where the
// service lets it, and answers how long it lasts; 0: without an end, or the
// master key is in no key service.
func (m *Master) RenewToken(ctx context.Context) (left time.Duration, err error) {
	service := m.kek.Load().service
	if service == nil {
		return 0, nil
	}
	refused := errors.New("the key service does not accept the token")
	about, err := service.call(ctx, http.MethodGet, "auth/token/lookup-self", nil)
	if err != nil {
		return 0, fmt.Errorf("ask how long the token lasts: %w", explainVault(err, refused))
	}
	if left, err = vaultSeconds(about.Data.TTL.String()); err != nil {
		return 0, fmt.Errorf("ask how long the token lasts: %w", errNotUnderstood)
	}
	if !about.Data.Renewable || left == 0 {
		return left, nil
	}
	longer, err := service.call(ctx, http.MethodPut, "auth/token/renew-self", map[string]int{"increment": 0})
	if err != nil {
		return left, fmt.Errorf("renew the token: %w", explainVault(err, refused))
	}
	if longer.Auth != nil {
		if again, err := vaultSeconds(longer.Auth.Lease.String()); err == nil && again > 0 {
			left = again
		}
	}
	return left, nil
}

// probeBinding refuses a key that would accept a data key under a foreign
// context. Releases of Vault that do not know associated data ignore it
// silently, and rows could then be swapped between clients.
func probeBinding(key tink.AEAD) error {
	plain, right, wrong := []byte("probe"), []byte(labelProbe), []byte(labelProbe+" of another")
	sealed, err := key.Encrypt(plain, right)
	if err != nil {
		return err
	}
	if _, ok := vaultKeyID(sealed); !ok {
		return errors.New("the key service answered something that is no Vault ciphertext")
	}
	back, err := key.Decrypt(sealed, right)
	if err != nil {
		return err
	}
	if !bytes.Equal(plain, back) {
		return errors.New("the key service returned other bytes than it was given")
	}
	_, err = key.Decrypt(sealed, wrong)
	if err == nil {
		return errors.New("the key service ignores associated data; use a Vault release and a key type that bind it")
	}
	if !errors.Is(err, ErrBroken) {
		return err
	}
	return nil
}

// vaultKeyID reads the version from "vault:v3:…".
func vaultKeyID(wrapped []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(wrapped, []byte(vaultIDPrefix+"v"))
	if !ok {
		return "", false
	}
	version, body, ok := bytes.Cut(rest, []byte(":"))
	if !ok || len(version) == 0 || len(version) > 9 || len(body) == 0 ||
		len(bytes.Trim(version, "0123456789")) != 0 {
		return "", false
	}
	return vaultIDPrefix + "v" + string(version), true
}

// explainVault decides what an error of Vault means; refused is the meaning of
// a 400.
func explainVault(err, refused error) error {
	var status vaultStatus
	if !errors.As(err, &status) {
		var network *url.Error
		unreachable := fault.New(fault.Unavailable, "the key service cannot be reached, please retry")
		switch {
		case errors.As(err, &network):
			return unreachable.Because(network)
		case errors.Is(err, context.DeadlineExceeded): // while reading the answer
			return unreachable.Because(context.DeadlineExceeded)
		default:
			return errNotUnderstood
		}
	}
	switch {
	case status == http.StatusBadRequest:
		return fmt.Errorf("%w: %w", status, refused)
	case status == http.StatusTooManyRequests || status >= 500:
		return fault.New(fault.Unavailable, "the key service is not available, please retry").Because(status)
	case status == http.StatusForbidden:
		return fmt.Errorf("%w: the token in VAULT_TOKEN may not use this key, or has expired", status)
	default:
		return status
	}
}
