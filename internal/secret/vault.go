package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/vault/api"
	"github.com/tink-crypto/tink-go-hcvault/v2/integration/hcvault"
	"github.com/tink-crypto/tink-go/v2/tink"

	"tributary/internal/fault"
)

const (
	vaultScheme   = "hcvault://"
	vaultIDPrefix = "vault:"
	labelProbe    = "tributary probe v1"

	vaultTimeout = 10 * time.Second
)

var errNotUnderstood = errors.New("the key service's answer cannot be understood")

// transit is a key in Vault's transit engine. Its errors carry the status of
// the answer and never its body: a proxy between us and Vault may well answer
// with the request it did not like, and the request holds a data key.
type transit struct {
	remote tink.AEAD
}

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
	config := api.DefaultConfig()
	if config.Error != nil {
		return nil, errors.New("the VAULT_… variables of the environment are not usable")
	}
	config.Address = "https://" + u.Host
	config.AgentAddress = "" // the address given to us wins over VAULT_AGENT_ADDR
	config.MaxRetries = 0
	config.DisableRedirects = true
	if os.Getenv(api.EnvVaultClientTimeout) == "" {
		config.Timeout = vaultTimeout
	}
	client, err := api.NewClient(config)
	if err != nil {
		return nil, errors.New("the VAULT_… variables of the environment are not usable")
	}
	// A line break at the end is the usual slip, and Vault's client reports it
	// only with the first call.
	if strings.ContainsFunc(client.Token(), func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }) {
		return nil, errors.New("VAULT_TOKEN has a character that no token has, such as a space or a line break")
	}
	// Not hcvault.NewClient: it sends the associated data as "context", which
	// Vault ignores for ordinary keys.
	kms, err := hcvault.NewClientWithAEADOptions(vaultScheme+u.Host, client.Logical())
	if err != nil {
		return nil, fmt.Errorf("key service: %w", err)
	}
	remote, err := kms.GetAEAD(uri)
	if err != nil {
		return nil, errors.New("the path of the address must be /MOUNT/keys/NAME")
	}
	k := &kek{aead: transit{remote: remote}, token: client.Auth().Token()}
	return k, probeBinding(k.aead)
}

// RenewToken prolongs the token with which a key service is asked, where the
// service lets it, and answers how long it lasts; 0: without an end, or the
// master key is in no key service.
func (m *Master) RenewToken(ctx context.Context) (left time.Duration, err error) {
	token := m.kek.Load().token
	if token == nil {
		return 0, nil
	}
	refused := errors.New("the key service does not accept the token")
	about, err := token.LookupSelfWithContext(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask how long the token lasts: %w", explainVault(err, refused))
	}
	if left, err = about.TokenTTL(); err != nil {
		return 0, fmt.Errorf("ask how long the token lasts: %w", errNotUnderstood)
	}
	if can, err := about.TokenIsRenewable(); err != nil || !can || left == 0 {
		return left, nil
	}
	longer, err := token.RenewSelfWithContext(ctx, 0)
	if err != nil {
		return left, fmt.Errorf("renew the token: %w", explainVault(err, refused))
	}
	if again, err := longer.TokenTTL(); err == nil && again > 0 {
		left = again
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

func (t transit) Encrypt(plain, bound []byte) ([]byte, error) {
	sealed, err := t.remote.Encrypt(plain, bound)
	if err != nil {
		return nil, explainVault(err, errors.New("the key service refused to encrypt with this key"))
	}
	return sealed, nil
}

func (t transit) Decrypt(sealed, bound []byte) ([]byte, error) {
	plain, err := t.remote.Decrypt(sealed, bound)
	if err != nil {
		return nil, explainVault(err, ErrBroken)
	}
	if len(plain) == 0 {
		// Tink's client takes an answer without a plaintext, such as a redirect
		// or a 204, for an empty one. Nothing of ours is empty.
		return nil, errNotUnderstood
	}
	return plain, nil
}

// explainVault decides what an error of Vault means; refused is the meaning of
// a 400.
func explainVault(err, refused error) error {
	var answer *api.ResponseError
	if !errors.As(err, &answer) {
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
	status := fmt.Errorf("key service answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	switch {
	case answer.StatusCode == http.StatusBadRequest:
		return fmt.Errorf("%w: %w", status, refused)
	case answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500:
		return fault.New(fault.Unavailable, "the key service is not available, please retry").Because(status)
	case answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: the token in VAULT_TOKEN may not use this key, or has expired", status)
	default:
		return status
	}
}
