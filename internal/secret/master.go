package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"
	"github.com/tink-crypto/tink-go/v2/tink"
)

const (
	fileScheme = "file:"
	envScheme  = "env:"

	envNameBytesMax = 64

	// Every Tink ciphertext begins with this byte and four bytes of key id.
	tinkPrefixByte  = 1
	tinkPrefixBytes = 5
)

// ErrUnknownKey says that a data key was wrapped by a master key that this
// master does not hold: a lost or exchanged key file, or the wrong KMS.
var ErrUnknownKey = errors.New("wrapped by a master key that is not here")

// Master wraps the data keys of the clients. It lives outside the database, so
// that a stolen database or backup opens nothing. It is safe for concurrent use.
//
// Failure policy: a wrapped key whose id is not known makes a file master read
// its file again, once per call, before it gives up. So one process can rotate
// the file and re-wrap every data key while others keep working; nothing needs
// a restart and no signature is missed.
type Master struct {
	source string // for error texts; holds no secret
	path   string // file masters only
	kek    atomic.Pointer[kek]
}

// kek is the key-encryption key as it was last read.
type kek struct {
	aead    tink.AEAD
	handle  *keyset.Handle // nil when the key stays in a KMS
	service *vaultClient   // the KMS; nil otherwise
}

// OpenMaster opens the master key named by source: "file:PATH" for a Tink
// keyset made by [CreateMasterFile], "env:NAME" for a variable that holds the
// base64 of such a file, or "hcvault://HOST:PORT/MOUNT/keys/NAME" for a key in
// Vault's transit engine (token and CA as Vault's own clients take them from
// VAULT_TOKEN, VAULT_CACERT and VAULT_NAMESPACE).
//
// A source that is none of these is not repeated in the error: somebody may
// have put the key itself there.
func OpenMaster(source string) (*Master, error) {
	m := &Master{source: source}
	var k *kek
	var err error
	switch {
	case strings.HasPrefix(source, fileScheme):
		m.path = strings.TrimPrefix(source, fileScheme)
		k, err = readMasterFile(m.path)
	case strings.HasPrefix(source, envScheme):
		k, err = readMasterEnv(strings.TrimPrefix(source, envScheme))
	case strings.HasPrefix(source, vaultScheme):
		k, err = openVault(source)
	default:
		err = errors.New("the source must be file:PATH, env:NAME or hcvault://HOST:PORT/MOUNT/keys/NAME")
	}
	if err != nil {
		return nil, fmt.Errorf("open master key: %w", err)
	}
	m.kek.Store(k)
	return m, nil
}

func readMasterEnv(name string) (*kek, error) {
	if !isEnvName(name) {
		return nil, errors.New("env: must be followed by the name of a variable, not by its value")
	}
	value, set := os.LookupEnv(name)
	if !set || value == "" {
		return nil, fmt.Errorf("environment variable %s is not set", name)
	}
	content, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	if err != nil {
		return nil, fmt.Errorf("environment variable %s is not base64; make it with: base64 -w0 MASTER_KEY_FILE", name)
	}
	defer clear(content)
	k, err := parseKeyset(content)
	if err != nil {
		return nil, fmt.Errorf("environment variable %s: %w", name, err)
	}
	return k, nil
}

func isEnvName(name string) bool {
	if name == "" || len(name) > envNameBytesMax || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// parseKeyset reads a keyset from its JSON form. Causes are left out of its
// errors on purpose: a JSON decoder quotes what it stumbles over, and that is
// key material.
func parseKeyset(content []byte) (*kek, error) {
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(content)))
	if err != nil {
		return nil, errors.New("is not a Tink keyset in JSON")
	}
	return newKEK(handle)
}

func newKEK(handle *keyset.Handle) (*kek, error) {
	for _, info := range handle.KeysetInfo().GetKeyInfo() {
		if info.GetOutputPrefixType() != tinkpb.OutputPrefixType_TINK {
			return nil, errors.New("has a key without a Tink prefix; its data keys could not tell which key wrapped them")
		}
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, errors.New("is not a keyset for authenticated encryption (AEAD)")
	}
	return &kek{aead: primitive, handle: handle}, nil
}

// KeyID tells which master key wrapped a data key, without opening it. An
// operator compares it with [Master.KeyID] to see what still needs [Master.Rewrap].
func KeyID(wrapped []byte) (string, error) {
	if id, ok := vaultKeyID(wrapped); ok {
		return id, nil
	}
	if len(wrapped) > tinkPrefixBytes && wrapped[0] == tinkPrefixByte {
		return tinkKeyID(binary.BigEndian.Uint32(wrapped[1:tinkPrefixBytes])), nil
	}
	return "", fmt.Errorf("read the key id of a data key: %w", ErrBroken)
}

func tinkKeyID(id uint32) string { return fmt.Sprintf("%08x", id) }

// KeyID returns the id that data keys wrapped from now on carry.
func (m *Master) KeyID() (string, error) {
	k, err := m.fresh()
	if err != nil {
		return "", fmt.Errorf("ask for the current master key: %w", err)
	}
	if k.handle != nil {
		return tinkKeyID(k.handle.KeysetInfo().GetPrimaryKeyId()), nil
	}
	// A KMS tells the version of its key only by using it.
	probe, err := k.aead.Encrypt([]byte("key id"), []byte(labelProbe))
	if err != nil {
		return "", fmt.Errorf("ask for the current master key: %w", err)
	}
	return KeyID(probe)
}

// fresh returns the key as it is now, after rotations by other processes.
func (m *Master) fresh() (*kek, error) {
	if m.path == "" {
		return m.kek.Load(), nil
	}
	k, err := readMasterFile(m.path)
	if err != nil {
		return nil, err
	}
	m.kek.Store(k)
	return k, nil
}

func (k *kek) holds(id string) bool {
	if k.handle == nil {
		return strings.HasPrefix(id, vaultIDPrefix)
	}
	for _, info := range k.handle.KeysetInfo().GetKeyInfo() {
		if tinkKeyID(info.GetKeyId()) == id && info.GetStatus() == tinkpb.KeyStatusType_ENABLED {
			return true
		}
	}
	return false
}

// NewKey makes a data key (AES-256-GCM) and returns it wrapped, to be stored
// with the client. c is bound in.
func (m *Master) NewKey(c Context) (wrapped []byte, err error) {
	bound, err := c.bind(labelWrap)
	if err != nil {
		return nil, fmt.Errorf("make data key: %w", err)
	}
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("make data key: %w", err)
	}
	var plain bytes.Buffer
	defer func() { clear(plain.Bytes()) }()
	if err := insecurecleartextkeyset.Write(handle, keyset.NewBinaryWriter(&plain)); err != nil {
		return nil, fmt.Errorf("make data key: %w", err)
	}
	// As it is now: a key that was retired since must not wrap anything more.
	k, err := m.fresh()
	if err != nil {
		return nil, fmt.Errorf("wrap data key: %w", err)
	}
	wrapped, err = k.aead.Encrypt(plain.Bytes(), bound)
	if err != nil {
		return nil, fmt.Errorf("wrap data key: %w", err)
	}
	return wrapped, nil
}

// Renew adds a fresh key to a data key and wraps it again: what is sealed from
// now on is sealed with the fresh one, and what was sealed before still opens.
func (m *Master) Renew(wrapped []byte, c Context) ([]byte, error) {
	plain, err := m.unwrap(wrapped, c)
	if err != nil {
		return nil, fmt.Errorf("renew data key of client %q: %w", c.Client, err)
	}
	defer clear(plain)
	handle, err := insecurecleartextkeyset.Read(keyset.NewBinaryReader(bytes.NewReader(plain)))
	if err != nil {
		return nil, fmt.Errorf("renew data key of client %q: %w", c.Client, ErrBroken)
	}
	wider, err := withPrimary(handle)
	if err != nil {
		return nil, fmt.Errorf("renew data key of client %q: %w", c.Client, err)
	}
	var again bytes.Buffer
	defer func() { clear(again.Bytes()) }()
	if err := insecurecleartextkeyset.Write(wider, keyset.NewBinaryWriter(&again)); err != nil {
		return nil, fmt.Errorf("renew data key of client %q: %w", c.Client, err)
	}
	bound, err := c.bind(labelWrap)
	if err != nil {
		return nil, fmt.Errorf("renew data key of client %q: %w", c.Client, err)
	}
	k, err := m.fresh()
	if err != nil {
		return nil, fmt.Errorf("renew data key of client %q: %w", c.Client, err)
	}
	return k.aead.Encrypt(again.Bytes(), bound)
}

// withPrimary adds a key to a keyset and makes it the one that seals.
func withPrimary(handle *keyset.Handle) (*keyset.Handle, error) {
	manager := keyset.NewManagerFromHandle(handle)
	id, err := manager.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, err
	}
	if err := manager.SetPrimary(id); err != nil {
		return nil, err
	}
	return manager.Handle()
}

// Open unwraps a data key with the context of its making. Errors are
// [ErrUnknownKey], [ErrBroken], or a fault of kind Unavailable from a KMS.
func (m *Master) Open(wrapped []byte, c Context) (*Sealer, error) {
	plain, err := m.unwrap(wrapped, c)
	if err != nil {
		return nil, fmt.Errorf("open data key of client %q: %w", c.Client, err)
	}
	defer clear(plain)
	handle, err := insecurecleartextkeyset.Read(keyset.NewBinaryReader(bytes.NewReader(plain)))
	if err != nil {
		return nil, fmt.Errorf("open data key of client %q: %w", c.Client, ErrBroken)
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("open data key of client %q: %w", c.Client, ErrBroken)
	}
	return newSealer(primitive), nil
}

func (m *Master) unwrap(wrapped []byte, c Context) ([]byte, error) {
	bound, err := c.bind(labelWrap)
	if err != nil {
		return nil, err
	}
	id, err := KeyID(wrapped)
	if err != nil {
		return nil, err
	}
	k := m.kek.Load()
	if !k.holds(id) {
		if k, err = m.fresh(); err != nil {
			return nil, err
		}
	}
	if !k.holds(id) {
		return nil, fmt.Errorf("key %s in %s: %w", id, m.source, ErrUnknownKey)
	}
	plain, err := k.aead.Decrypt(wrapped, bound)
	if err != nil && k.handle != nil {
		return nil, ErrBroken // Tink's own text says less
	}
	return plain, err
}

// Rewrap wraps a data key again under the current master key. What the data
// key has sealed stays as it is. The caller replaces the old bytes by the new.
func (m *Master) Rewrap(wrapped []byte, c Context) ([]byte, error) { return m.Adopt(m, wrapped, c) }

// Adopt is Rewrap for a data key that another master has wrapped: the way from
// a file to a KMS, or back.
//
// Failure policy: the result is opened once before it is returned, because the
// caller overwrites the only copy with it. A master key that was not written
// to disk, or a KMS that answers nonsense, costs an error and no data.
func (m *Master) Adopt(from *Master, wrapped []byte, c Context) ([]byte, error) {
	plain, err := from.unwrap(wrapped, c)
	if err != nil {
		return nil, fmt.Errorf("re-wrap data key of client %q: %w", c.Client, err)
	}
	defer clear(plain)
	k, err := m.fresh()
	if err != nil {
		return nil, fmt.Errorf("re-wrap data key of client %q: %w", c.Client, err)
	}
	bound, err := c.bind(labelWrap)
	if err != nil {
		return nil, fmt.Errorf("re-wrap data key of client %q: %w", c.Client, err)
	}
	again, err := k.aead.Encrypt(plain, bound)
	if err != nil {
		return nil, fmt.Errorf("re-wrap data key of client %q: %w", c.Client, err)
	}
	back, err := m.unwrap(again, c)
	if err != nil {
		return nil, fmt.Errorf("check the re-wrapped data key of client %q: %w", c.Client, err)
	}
	defer clear(back)
	if !bytes.Equal(plain, back) {
		return nil, fmt.Errorf("check the re-wrapped data key of client %q: %w", c.Client, ErrBroken)
	}
	return again, nil
}
