package secret_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tributary/internal/fault"
	"tributary/internal/secret"
)

const vaultToken = "hvs.test-token"

// vault speaks the encrypt and decrypt calls of Vault's transit engine
// (Vault API documentation, "Transit secrets engine") over TLS.
type vault struct {
	*httptest.Server
	mu     sync.Mutex
	keys   []cipher.AEAD // version n is keys[n-1]
	calls  int
	mood   string // how to misbehave
	seen   strings.Builder
	hangup chan struct{}
	front  func(w http.ResponseWriter, r *http.Request) // looks at every call before it is answered
	token  func(w http.ResponseWriter, renew bool)      // what it says of the caller's token
}

func startVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{hangup: make(chan struct{})}
	v.rotate(t)
	v.Server = httptest.NewUnstartedServer(v)
	v.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are part of these tests
	v.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	v.StartTLS()
	t.Cleanup(v.Close)
	t.Cleanup(func() { close(v.hangup) })
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VAULT_CACERT", ca)
	t.Setenv("VAULT_TOKEN", vaultToken)
	t.Setenv("VAULT_ADDR", "https://127.0.0.1:1")       // must not win over the address given
	t.Setenv("VAULT_AGENT_ADDR", "https://127.0.0.1:1") // nor this
	return v
}

func (v *vault) uri() string {
	return "hcvault://" + strings.TrimPrefix(v.URL, "https://") + "/transit/keys/tributary"
}

func (v *vault) rotate(t *testing.T) {
	t.Helper()
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	block, err := aes.NewCipher(raw)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys = append(v.keys, gcm)
}

func (v *vault) be(mood string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mood = mood
}

func (v *vault) watch(front func(w http.ResponseWriter, r *http.Request)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.front = front
}

func (v *vault) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.calls
}

func (v *vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	v.calls++
	v.seen.Write(body)
	mood, keys := v.mood, v.keys
	if v.front != nil {
		v.front(w, r)
	}
	v.mu.Unlock()
	switch mood {
	case "unavailable":
		refuse(w, 503, "Vault is sealed")
		return
	case "limited":
		refuse(w, 429, "slow down")
		return
	case "echo": // a proxy that shows what it did not like
		w.WriteHeader(502)
		_, _ = fmt.Fprintf(w, "<html>%v %s</html>", r.Header, body)
		return
	case "echo 400":
		refuse(w, 400, fmt.Sprintf("%v %s", r.Header, body))
		return
	case "garbage":
		_, _ = io.WriteString(w, "<html>"+string(body))
		return
	case "redirect":
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		return
	case "hang":
		select {
		case <-r.Context().Done():
		case <-v.hangup:
		}
		return
	}
	var in struct {
		Plaintext  string `json:"plaintext"`
		Ciphertext string `json:"ciphertext"`
		Associated string `json:"associated_data"`
	}
	if r.Header.Get("X-Vault-Token") != vaultToken {
		refuse(w, 403, "permission denied")
		return
	}
	if strings.HasPrefix(r.URL.Path, "/v1/auth/token/") {
		v.token(w, strings.HasSuffix(r.URL.Path, "/renew-self"))
		return
	}
	if err := json.Unmarshal(body, &in); err != nil || r.Method != http.MethodPut {
		refuse(w, 400, "bad request")
		return
	}
	bound, err := base64.StdEncoding.DecodeString(in.Associated)
	if err != nil || mood == "deaf" {
		bound = nil
	}
	switch r.URL.Path {
	case "/v1/transit/encrypt/tributary":
		if mood == "lie" {
			in.Plaintext = base64.StdEncoding.EncodeToString([]byte("something else"))
		}
		encrypt(w, keys, in.Plaintext, bound)
	case "/v1/transit/decrypt/tributary":
		decrypt(w, keys, in.Ciphertext, bound)
	default:
		refuse(w, 404, "no handler for route")
	}
}

func encrypt(w http.ResponseWriter, keys []cipher.AEAD, plaintext string, bound []byte) {
	plain, err := base64.StdEncoding.DecodeString(plaintext)
	if err != nil {
		refuse(w, 400, "bad plaintext")
		return
	}
	key, nonce := keys[len(keys)-1], make([]byte, 12)
	_, _ = rand.Read(nonce)
	answer(w, "ciphertext", fmt.Sprintf("vault:v%d:%s", len(keys),
		base64.StdEncoding.EncodeToString(key.Seal(nonce, nonce, plain, bound))))
}

func decrypt(w http.ResponseWriter, keys []cipher.AEAD, ciphertext string, bound []byte) {
	parts := strings.SplitN(ciphertext, ":", 3)
	if len(parts) != 3 {
		refuse(w, 400, "invalid ciphertext: no prefix")
		return
	}
	version, _ := strconv.Atoi(strings.TrimPrefix(parts[1], "v"))
	raw, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || version < 1 || version > len(keys) || len(raw) < 12 {
		refuse(w, 400, "invalid ciphertext")
		return
	}
	plain, err := keys[version-1].Open(nil, raw[:12], raw[12:], bound)
	if err != nil {
		refuse(w, 400, "cipher: message authentication failed")
		return
	}
	answer(w, "plaintext", base64.StdEncoding.EncodeToString(plain))
}

func answer(w http.ResponseWriter, name, value string) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{name: value}})
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []string{text}})
}

func TestVaultWrapsDataKeysAndBindsTheContext(t *testing.T) {
	v := startVault(t)
	m := openMaster(t, v.uri())
	wrapped, sealer := newKey(t, m, whose)
	sealed, err := sealer.Seal(secret.FromText(marker), whose)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := secret.KeyID(wrapped); err != nil || id != "vault:v1" {
		t.Errorf("key id %s, %v", id, err)
	}
	before := v.count()
	if back, err := sealer.Open(sealed, whose); err != nil || back.RevealText() != marker {
		t.Errorf("does not open: %v", err)
	}
	if v.count() != before {
		t.Error("sealing and opening must not call Vault")
	}
	other := whose
	other.Client = "c2"
	if _, err := m.Open(wrapped, other); !errors.Is(err, secret.ErrBroken) {
		t.Errorf("opens for another client: %v", err)
	}
	if strings.Contains(v.seen.String(), base64.StdEncoding.EncodeToString([]byte(marker))) {
		t.Error("Vault saw a client's secret; it must see data keys only")
	}
}

func TestVaultRotationIsSeenAndRewrapped(t *testing.T) {
	v := startVault(t)
	m := openMaster(t, v.uri())
	wrapped, _ := newKey(t, m, whose)
	v.rotate(t)
	if id, err := m.KeyID(); err != nil || id != "vault:v2" {
		t.Errorf("current key %s, %v", id, err)
	}
	again, err := m.Rewrap(wrapped, whose)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := secret.KeyID(again); err != nil || id != "vault:v2" {
		t.Errorf("re-wrapped under %s, %v", id, err)
	}
	for _, w := range [][]byte{wrapped, again} {
		if _, err := m.Open(w, whose); err != nil {
			t.Error(err)
		}
	}
	if _, err := m.Rotate(); err == nil {
		t.Error("a KMS key is rotated in the KMS")
	}
}

func TestDataKeysMoveFromAFileToVault(t *testing.T) {
	v := startVault(t)
	kms := openMaster(t, v.uri())
	file, _ := newMaster(t)
	wrapped, sealer := newKey(t, file, whose)
	sealed, err := sealer.Seal(secret.FromText("x"), whose)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kms.Open(wrapped, whose); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("Vault and a file key: %v", err)
	}
	moved, err := kms.Adopt(file, wrapped, whose)
	if err != nil {
		t.Fatal(err)
	}
	s, err := kms.Open(moved, whose)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(sealed, whose); err != nil {
		t.Error(err)
	}
	if _, err := file.Open(moved, whose); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("a file and a Vault key: %v", err)
	}
}

func TestAWrappingThatDoesNotOpenAgainIsNotHandedOut(t *testing.T) {
	v := startVault(t)
	m := openMaster(t, v.uri())
	wrapped, _ := newKey(t, m, whose)
	v.be("lie")
	if again, err := m.Rewrap(wrapped, whose); !errors.Is(err, secret.ErrBroken) || again != nil {
		t.Errorf("the only copy would be overwritten: %v", err)
	}
}

func TestAVaultThatIgnoresTheContextIsRefused(t *testing.T) {
	v := startVault(t)
	v.be("deaf")
	if _, err := secret.OpenMaster(v.uri()); err == nil || !strings.Contains(err.Error(), "associated data") {
		t.Errorf("accepted: %v", err)
	}
}

func TestVaultTroubleIsUnavailableAndTriedOnce(t *testing.T) {
	v := startVault(t)
	m := openMaster(t, v.uri())
	wrapped, _ := newKey(t, m, whose)
	for _, mood := range []string{"unavailable", "limited", "echo"} {
		v.be(mood)
		before := v.count()
		_, err := m.Open(wrapped, whose)
		if fault.KindOf(err) != fault.Unavailable || errors.Is(err, secret.ErrBroken) {
			t.Errorf("%s: %v", mood, err)
		}
		if n := v.count() - before; n != 1 {
			t.Errorf("%s: %d calls", mood, n)
		}
		if _, err := m.NewKey(whose); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", mood, err)
		}
		if _, err := m.KeyID(); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", mood, err)
		}
	}
	for _, mood := range []string{"garbage", "redirect"} {
		v.be(mood)
		before := v.count()
		if _, err := m.Open(wrapped, whose); err == nil || errors.Is(err, secret.ErrBroken) {
			t.Errorf("%s: %v", mood, err)
		}
		if n := v.count() - before; n != 1 {
			t.Errorf("%s: %d calls", mood, n)
		}
	}
	v.be("")
	if _, err := m.Open(wrapped, whose); err != nil {
		t.Errorf("after the trouble: %v", err)
	}
	v.Close()
	if _, err := m.Open(wrapped, whose); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestASilentVaultIsUnavailableWithinItsTimeout(t *testing.T) {
	v := startVault(t)
	t.Setenv("VAULT_CLIENT_TIMEOUT", "1s")
	m := openMaster(t, v.uri())
	wrapped, _ := newKey(t, m, whose)
	v.be("hang")
	before := v.count()
	if _, err := m.Open(wrapped, whose); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
	if n := v.count() - before; n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestAVaultThatCannotBeUsedIsRefusedAtTheStart(t *testing.T) {
	v := startVault(t)
	for name, set := range map[string]func(t *testing.T) string{
		"unknown token":  func(t *testing.T) string { t.Setenv("VAULT_TOKEN", "hvs.other"); return v.uri() },
		"line break":     func(t *testing.T) string { t.Setenv("VAULT_TOKEN", vaultToken+"\n"); return v.uri() },
		"unknown key":    func(*testing.T) string { return v.uri() + "x" },
		"unknown CA":     func(t *testing.T) string { t.Setenv("VAULT_CACERT", ""); return v.uri() },
		"broken setting": func(t *testing.T) string { t.Setenv("VAULT_CLIENT_TIMEOUT", "soon"); return v.uri() },
		"not available":  func(*testing.T) string { v.be("unavailable"); return v.uri() },
	} {
		t.Run(name, func(t *testing.T) {
			defer v.be("")
			source := set(t)
			if m, err := secret.OpenMaster(source); err == nil || m != nil {
				t.Error("accepted")
			}
		})
	}
}
