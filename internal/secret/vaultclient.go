package secret

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	vaultTimeout = 10 * time.Second
	// A wrapped key and its frame are below two kilobytes; what is longer comes
	// from somebody else.
	vaultAnswerBytesMax = 1 << 20
)

// vaultClient asks one Vault over HTTPS: the two calls of the transit engine
// and the two about our own token (Vault API documentation, "Transit secrets
// engine" and "Token auth method"). The package comment says why it is ours.
type vaultClient struct {
	http    *http.Client
	base    string // https://HOST:PORT/v1/
	headers http.Header
	timeout time.Duration
}

// vaultStatus is an answer that is none: its status, never its body.
type vaultStatus int

func (s vaultStatus) Error() string {
	return fmt.Sprintf("key service answered %d %s", int(s), http.StatusText(int(s)))
}

// vaultAnswer is what we read of an answer: the transit engine and lookup-self
// fill data, renew-self fills auth.
type vaultAnswer struct {
	Data struct {
		Ciphertext string
		Plaintext  string
		TTL        json.Number
		Renewable  bool
	}
	Auth *struct {
		Lease json.Number `json:"lease_duration"`
	}
}

// newVaultClient reads the environment of Vault's clients. What is there and
// cannot be used is an error that names the variable and not its value: a
// token may have been put into the wrong one.
func newVaultClient(host string) (*vaultClient, error) {
	c := &vaultClient{base: "https://" + host + "/v1/", headers: http.Header{}, timeout: vaultTimeout}
	token := os.Getenv("VAULT_TOKEN")
	// A line break at the end is the usual slip, and would be found only with
	// the first call.
	if strings.ContainsFunc(token, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }) {
		return nil, errors.New("VAULT_TOKEN has a character that no token has, such as a space or a line break")
	}
	if err := c.addHeaders(os.Getenv("VAULT_HEADERS")); err != nil {
		return nil, err
	}
	c.headers.Set("X-Vault-Token", token)
	c.headers.Set("X-Vault-Request", "true") // listeners can be told to refuse who does not say it
	c.headers.Set("Content-Type", "application/json")
	if namespace := os.Getenv("VAULT_NAMESPACE"); namespace != "" {
		c.headers.Set("X-Vault-Namespace", namespace)
	}
	if text := os.Getenv("VAULT_CLIENT_TIMEOUT"); text != "" {
		wait, err := vaultSeconds(text)
		if err != nil || wait <= 0 {
			return nil, unusable("VAULT_CLIENT_TIMEOUT")
		}
		c.timeout = wait
	}
	if on := os.Getenv("VAULT_SRV_LOOKUP"); on != "" && on != "0" && on != "false" {
		return nil, errors.New("VAULT_SRV_LOOKUP is not supported: name the host and its port in the address")
	}
	transport, err := vaultTransport()
	if err != nil {
		return nil, err
	}
	// An answer that leads elsewhere would take the token there.
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return c, nil
}

func unusable(variable string) error {
	return fmt.Errorf("the environment variable %s is not usable", variable)
}

// vaultSeconds reads a duration as Vault writes it: seconds, or with a unit.
func vaultSeconds(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, nil
	}
	return time.ParseDuration(text)
}

// addHeaders takes the headers that a proxy in front of Vault wants, as a JSON
// object of texts.
func (c *vaultClient) addHeaders(text string) error {
	if text == "" {
		return nil
	}
	var more map[string]string
	if json.Unmarshal([]byte(text), &more) != nil {
		return unusable("VAULT_HEADERS")
	}
	for name, value := range more {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), "X-Vault-") {
			return unusable("VAULT_HEADERS") // these are Vault's own, and ours to set
		}
		c.headers.Set(name, value)
	}
	return nil
}

func vaultTransport() (*http.Transport, error) {
	secured, err := vaultTLS()
	if err != nil {
		return nil, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = secured
	for _, variable := range []string{"VAULT_PROXY_ADDR", "VAULT_HTTP_PROXY"} { // the first that is there
		text := os.Getenv(variable)
		if text == "" {
			continue
		}
		proxy, err := url.Parse(text)
		if err != nil || proxy.Host == "" {
			return nil, unusable(variable)
		}
		t.Proxy = http.ProxyURL(proxy)
		break
	}
	return t, nil
}

func vaultTLS() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: os.Getenv("VAULT_TLS_SERVER_NAME")}
	if text := os.Getenv("VAULT_SKIP_VERIFY"); text != "" {
		skip, err := strconv.ParseBool(text)
		if err != nil {
			return nil, unusable("VAULT_SKIP_VERIFY")
		}
		c.InsecureSkipVerify = skip
	}
	certificate, key := os.Getenv("VAULT_CLIENT_CERT"), os.Getenv("VAULT_CLIENT_KEY")
	if certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, errors.New("the environment variables VAULT_CLIENT_CERT and VAULT_CLIENT_KEY name no certificate with its key")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	var err error
	c.RootCAs, err = vaultRoots()
	return c, err
}

// vaultRoots are the authorities that may have signed Vault's certificate; nil:
// those of the system. As with Vault's clients a file goes before its content,
// and both before a folder.
func vaultRoots() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if path := os.Getenv("VAULT_CACERT"); path != "" {
		content, err := os.ReadFile(path)
		if err != nil || !pool.AppendCertsFromPEM(content) {
			return nil, unusable("VAULT_CACERT")
		}
		return pool, nil
	}
	if content := os.Getenv("VAULT_CACERT_BYTES"); content != "" {
		if !pool.AppendCertsFromPEM([]byte(content)) {
			return nil, unusable("VAULT_CACERT_BYTES")
		}
		return pool, nil
	}
	folder := os.Getenv("VAULT_CAPATH")
	if folder == "" {
		return nil, nil
	}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && !pool.AppendCertsFromPEM(content) {
			err = errNotUnderstood
		}
		return err
	})
	if err != nil {
		return nil, unusable("VAULT_CAPATH")
	}
	return pool, nil
}

// call asks once. An error is a *url.Error where nobody answered, a vaultStatus
// where the answer is a refusal, context.DeadlineExceeded where it broke off,
// and errNotUnderstood otherwise.
func (c *vaultClient) call(ctx context.Context, method, path string, in any) (out vaultAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return out, errNotUnderstood
		}
		defer clear(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return out, errNotUnderstood
	}
	request.Header = c.headers.Clone()
	response, err := c.http.Do(request)
	if err != nil {
		return out, err
	}
	defer func() { _ = response.Body.Close() }() // read or given up
	if response.StatusCode != http.StatusOK {
		return out, vaultStatus(response.StatusCode)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, vaultAnswerBytesMax+1))
	defer clear(content)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return out, context.DeadlineExceeded
	case err != nil || len(content) > vaultAnswerBytesMax || json.Unmarshal(content, &out) != nil:
		return vaultAnswer{}, errNotUnderstood
	}
	return out, nil
}

// transit is a key in Vault's transit engine. Its errors carry the status of
// the answer and never its body: a proxy between us and Vault may well answer
// with the request it did not like, and the request holds a data key.
type transit struct {
	client *vaultClient
	mount  string
	name   string
}

// Encrypt sends what is bound as associated_data: a "context" would be ignored
// for ordinary keys.
func (t transit) Encrypt(plain, bound []byte) ([]byte, error) {
	answer, err := t.client.call(context.Background(), http.MethodPut, t.mount+"/encrypt/"+t.name, map[string]string{
		"plaintext": base64.StdEncoding.EncodeToString(plain), "associated_data": base64.StdEncoding.EncodeToString(bound)})
	if err != nil {
		return nil, explainVault(err, errors.New("the key service refused to encrypt with this key"))
	}
	if answer.Data.Ciphertext == "" {
		return nil, errNotUnderstood
	}
	return []byte(answer.Data.Ciphertext), nil
}

func (t transit) Decrypt(sealed, bound []byte) ([]byte, error) {
	answer, err := t.client.call(context.Background(), http.MethodPut, t.mount+"/decrypt/"+t.name, map[string]string{
		"ciphertext": string(sealed), "associated_data": base64.StdEncoding.EncodeToString(bound)})
	if err != nil {
		return nil, explainVault(err, ErrBroken)
	}
	plain, err := base64.StdEncoding.DecodeString(answer.Data.Plaintext)
	if err != nil || len(plain) == 0 { // nothing of ours is empty
		return nil, errNotUnderstood
	}
	return plain, nil
}
