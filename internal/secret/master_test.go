package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"
	"pgregory.net/rapid"

	"tributary/internal/mutate"
	"tributary/internal/secret"
)

var whose = secret.Context{Client: "c1", Kid: "k1", Purpose: "api-key", Version: 1}

func newMaster(t testing.TB) (*secret.Master, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master.json")
	if err := secret.CreateMasterFile(path); err != nil {
		t.Fatal(err)
	}
	return openMaster(t, "file:"+path), path
}

func openMaster(t testing.TB, source string) *secret.Master {
	t.Helper()
	m, err := secret.OpenMaster(source)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newKey(t testing.TB, m *secret.Master, c secret.Context) ([]byte, *secret.Sealer) {
	t.Helper()
	wrapped, err := m.NewKey(c)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := m.Open(wrapped, c)
	if err != nil {
		t.Fatal(err)
	}
	return wrapped, sealer
}

func writeFile(t *testing.T, content []byte, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func keysetJSON(t *testing.T, template *tinkpb.KeyTemplate) []byte {
	t.Helper()
	handle, err := keyset.NewHandle(template)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&buf)); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestAMasterFileIsForItsOwnerAndNeverOverwritten(t *testing.T) {
	_, path := newMaster(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o400 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	before, _ := os.ReadFile(path)
	if err := secret.CreateMasterFile(path); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("second creation: %v", err)
	}
	after, _ := os.ReadFile(path)
	if !bytes.Equal(before, after) {
		t.Fatal("the key was overwritten")
	}
	alone(t, path)
}

// alone asserts that no draft stayed beside the file.
func alone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("beside the master key: %v, %v", entries, err)
	}
}

func TestOfManyCreatorsOneWins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.json")
	results := make(chan error, 16)
	var group sync.WaitGroup
	for range cap(results) {
		group.Go(func() { results <- secret.CreateMasterFile(path) })
	}
	group.Wait()
	close(results)
	won := 0
	for err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d creators won", won)
	}
	openMaster(t, "file:"+path)
	alone(t, path)
}

func TestAMasterFileThatOthersCanReadIsRefusedWithTheFix(t *testing.T) {
	content := keysetJSON(t, aead.AES256GCMKeyTemplate())
	for _, mode := range []os.FileMode{0o440, 0o404, 0o644, 0o420, 0o410, 0o401, 0o402, 0o777} {
		path := writeFile(t, content, mode)
		_, err := secret.OpenMaster("file:" + path)
		if err == nil || !strings.Contains(err.Error(), "chmod 0400 "+path) ||
			!strings.Contains(err.Error(), fmt.Sprintf("%04o", mode)) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	for _, mode := range []os.FileMode{0o400, 0o600} {
		openMaster(t, "file:"+writeFile(t, content, mode))
	}
}

func TestUnusableMastersAreRefused(t *testing.T) {
	good := keysetJSON(t, aead.AES256GCMKeyTemplate())
	padded := func(n int) []byte {
		return append(good[:len(good):len(good)], bytes.Repeat([]byte(" "), n-len(good))...)
	}
	openMaster(t, "file:"+writeFile(t, padded(64<<10), 0o400))
	t.Setenv("MASTER_EMPTY", "")
	t.Setenv("MASTER_JUNK", "%%%")
	t.Setenv("MASTER_NO_KEYSET", base64.StdEncoding.EncodeToString([]byte("{}")))
	for name, source := range map[string]string{
		"nothing": "", "unknown scheme": "vault://x/y", "bare path": "/etc/master.json", "no path": "file:",
		"missing file": "file:" + filepath.Join(t.TempDir(), "none"), "folder": "file:" + t.TempDir(),
		"empty file": "file:" + writeFile(t, nil, 0o400), "no JSON": "file:" + writeFile(t, []byte("x"), 0o400),
		"past the size":  "file:" + writeFile(t, padded(64<<10+1), 0o400),
		"key without id": "file:" + writeFile(t, keysetJSON(t, aead.AES256GCMNoPrefixKeyTemplate()), 0o400),
		"key for MACs":   "file:" + writeFile(t, keysetJSON(t, mac.HMACSHA256Tag256KeyTemplate()), 0o400),
		"no name":        "env:", "unset": "env:MASTER_UNSET", "empty": "env:MASTER_EMPTY", "junk": "env:MASTER_JUNK",
		"no keyset": "env:MASTER_NO_KEYSET", "value for name": "env:" + strings.Repeat("A", 65), "digit": "env:1A",
		"dash":    "env:A-B",
		"no host": "hcvault:///transit/keys/k", "no key": "hcvault://127.0.0.1:1/transit",
		"token": "hcvault://t@127.0.0.1/transit/keys/k",
		"query": "hcvault://127.0.0.1/transit/keys/k?a=b",
	} {
		if m, err := secret.OpenMaster(source); err == nil || m != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTheEnvironmentHoldsTheFileInBase64(t *testing.T) {
	m, path := newMaster(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name := "M" + strings.Repeat("_", 63)
	t.Setenv(name, base64.StdEncoding.EncodeToString(content)+"\n")
	env := openMaster(t, "env:"+name)
	wrapped, _ := newKey(t, m, whose)
	if _, err := env.Open(wrapped, whose); err != nil {
		t.Error(err)
	}
	if _, err := env.Rotate(); err == nil {
		t.Error("an environment variable cannot be rotated")
	}
	if _, err := env.Rewrap(wrapped, whose); err != nil {
		t.Error(err)
	}
}

func TestSealedOpensOnlyInItsOwnContext(t *testing.T) {
	m, _ := newMaster(t)
	wrapped, sealer := newKey(t, m, whose)
	fields := func(t *rapid.T, name string) string {
		return rapid.OneOf(rapid.SampledFrom([]string{"", "a", "aa", "|", "a|", "|a"}), rapid.StringN(0, 8, 32)).Draw(t, name)
	}
	draw := func(t *rapid.T, n string) secret.Context {
		return secret.Context{Client: fields(t, n+".client"), Kid: fields(t, n+".kid"),
			Purpose: "p" + fields(t, n+".purpose"), Version: rapid.IntRange(0, 3).Draw(t, n+".version")}
	}
	rapid.Check(t, func(t *rapid.T) {
		one, other := draw(t, "one"), draw(t, "other")
		plain := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "plain")
		sealed, err := sealer.Seal(secret.New(plain), one)
		if err != nil {
			t.Fatal(err)
		}
		back, err := sealer.Open(sealed, one)
		if err != nil || !bytes.Equal(back.Reveal(), plain) {
			t.Fatalf("does not open: %v", err)
		}
		got, err := sealer.Open(sealed, other)
		if one != other && (!errors.Is(err, secret.ErrBroken) || !got.IsZero()) {
			t.Fatalf("opens as %+v: %v", other, err)
		}
		if _, err := m.Open(wrapped, one); one != whose && !errors.Is(err, secret.ErrBroken) {
			t.Fatalf("the data key opens as %+v: %v", one, err)
		}
	})
}

// The classic confusions of joined texts, and of each field alone.
func TestContextsThatLookAlikeStayApart(t *testing.T) {
	m, _ := newMaster(t)
	_, sealer := newKey(t, m, whose)
	contexts := []secret.Context{
		{"ab", "c", "p", 1}, {"a", "bc", "p", 1}, {"abc", "", "p", 1}, {"", "abc", "p", 1}, {"ab", "c", "p1", 0},
		{"ab|c", "", "p", 1}, {"ab", "c", "p", 0}, {"ab", "c", "p", 256}, {"ab", "c", "p", 1 << 40}, {"ab", "", "cp", 1},
		{"ab\x01c", "", "p", 1},
	}
	for i, one := range contexts {
		sealed, err := sealer.Seal(secret.FromText("x"), one)
		if err != nil {
			t.Fatal(err)
		}
		for j, other := range contexts {
			if _, err := sealer.Open(sealed, other); (err == nil) != (i == j) {
				t.Errorf("sealed as %+v, opened as %+v: %v", one, other, err)
			}
		}
	}
}

func TestContextLimits(t *testing.T) {
	m, _ := newMaster(t)
	wrapped, sealer := newKey(t, m, whose)
	at, past := strings.Repeat("x", 255), strings.Repeat("x", 256)
	if _, err := sealer.Seal(secret.FromText("x"), secret.Context{Client: at, Kid: at, Purpose: at}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	for name, c := range map[string]secret.Context{
		"client": {Client: past, Purpose: "p"}, "kid": {Kid: past, Purpose: "p"}, "purpose": {Purpose: past},
		"no purpose": {Client: "c"}, "version": {Purpose: "p", Version: -1},
	} {
		if _, err := sealer.Seal(secret.FromText("x"), c); err == nil {
			t.Errorf("%s: sealed", name)
		}
		if _, err := sealer.Open([]byte("x"), c); err == nil {
			t.Errorf("%s: opened", name)
		}
		if _, err := m.NewKey(c); err == nil {
			t.Errorf("%s: made a key", name)
		}
		if _, err := m.Open(wrapped, c); err == nil {
			t.Errorf("%s: opened a key", name)
		}
		if _, err := m.Rewrap(wrapped, c); err == nil {
			t.Errorf("%s: re-wrapped a key", name)
		}
	}
}

func TestEveryChangedBitIsNoticed(t *testing.T) {
	m, _ := newMaster(t)
	wrapped, sealer := newKey(t, m, whose)
	sealed, err := sealer.Seal(secret.FromText("the key"), whose)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(sealed) {
		b := bytes.Clone(sealed)
		b[i/8] ^= 1 << (i % 8)
		if _, err := sealer.Open(b, whose); !errors.Is(err, secret.ErrBroken) {
			t.Fatalf("bit %d of a sealed value: %v", i, err)
		}
	}
	for i := range 8 * len(wrapped) {
		b := bytes.Clone(wrapped)
		b[i/8] ^= 1 << (i % 8)
		if _, err := m.Open(b, whose); !errors.Is(err, secret.ErrBroken) && !errors.Is(err, secret.ErrUnknownKey) {
			t.Fatalf("bit %d of a data key: %v", i, err)
		}
	}
	for n := range len(sealed) {
		if _, err := sealer.Open(sealed[:n], whose); !errors.Is(err, secret.ErrBroken) {
			t.Fatalf("first %d bytes: %v", n, err)
		}
	}
	for n := range len(wrapped) {
		if _, err := m.Open(wrapped[:n], whose); !errors.Is(err, secret.ErrBroken) {
			t.Fatalf("first %d bytes of a data key: %v", n, err)
		}
	}
}

func TestOneClientsKeyOpensNothingOfAnother(t *testing.T) {
	m, _ := newMaster(t)
	other := whose
	other.Client = "c2"
	wrapped, sealer := newKey(t, m, whose)
	_, foreign := newKey(t, m, other)
	sealed, err := sealer.Seal(secret.FromText("x"), whose)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := foreign.Open(sealed, whose); !errors.Is(err, secret.ErrBroken) {
		t.Errorf("another data key opens it: %v", err)
	}
	// A data key must not pass as a sealed value, nor the other way round.
	if _, err := sealer.Open(wrapped, whose); !errors.Is(err, secret.ErrBroken) {
		t.Errorf("a wrapped key opens as a value: %v", err)
	}
	if _, err := m.Open(sealed, whose); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("a value opens as a key: %v", err)
	}
	again, err := sealer.Seal(secret.FromText("x"), whose)
	if err != nil || bytes.Equal(again, sealed) {
		t.Error("sealing twice gives the same bytes")
	}
}

func TestAnotherMasterIsNamedInTheError(t *testing.T) {
	m, _ := newMaster(t)
	stranger, path := newMaster(t)
	wrapped, _ := newKey(t, m, whose)
	id, err := secret.KeyID(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	_, err = stranger.Open(wrapped, whose)
	if !errors.Is(err, secret.ErrUnknownKey) || !strings.Contains(err.Error(), id) ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("the operator cannot tell which key is missing: %v", err)
	}
}

func TestAdoptMovesADataKeyToAnotherMaster(t *testing.T) {
	from, _ := newMaster(t)
	to, _ := newMaster(t)
	wrapped, sealer := newKey(t, from, whose)
	sealed, err := sealer.Seal(secret.FromText("x"), whose)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := to.Adopt(from, wrapped, whose)
	if err != nil {
		t.Fatal(err)
	}
	s, err := to.Open(moved, whose)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(sealed, whose); err != nil {
		t.Error(err)
	}
	if _, err := from.Open(moved, whose); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("the old master still opens it: %v", err)
	}
}

// vector is stored data of format 1. It must open for ever: a change that
// needs -update here makes every stored secret unreadable.
type vector struct {
	Master, Wrapped, Sealed, Plain string
	Context                        secret.Context
}

func TestWhatWasStoredByEarlierVersionsOpens(t *testing.T) {
	golden := filepath.Join("testdata", "stored-v1.json")
	if *update {
		m, path := newMaster(t)
		wrapped, sealer := newKey(t, m, whose)
		sealed, err := sealer.Seal(secret.FromText("an old secret"), whose)
		if err != nil {
			t.Fatal(err)
		}
		content, _ := os.ReadFile(path)
		out, _ := json.MarshalIndent(vector{string(content), base64.StdEncoding.EncodeToString(wrapped),
			base64.StdEncoding.EncodeToString(sealed), "an old secret", whose}, "", "  ")
		if err := os.WriteFile(golden, append(out, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var v vector
	if err := json.Unmarshal(content, &v); err != nil {
		t.Fatal(err)
	}
	wrapped, _ := base64.StdEncoding.DecodeString(v.Wrapped)
	sealed, _ := base64.StdEncoding.DecodeString(v.Sealed)
	s, err := openMaster(t, "file:"+writeFile(t, []byte(v.Master), 0o400)).Open(wrapped, v.Context)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := s.Open(sealed, v.Context); err != nil || back.RevealText() != v.Plain {
		t.Errorf("opened %q, %v", back.RevealText(), err)
	}
}

func FuzzOpen(f *testing.F) {
	m, _ := newMaster(f)
	wrapped, _ := newKey(f, m, whose)
	f.Add([]byte(nil))
	f.Add([]byte("vault:v1:AAAA"))
	f.Add([]byte("vault:v:"))
	f.Add([]byte{1, 0, 0, 0, 0, 0})
	f.Add(wrapped[:len(wrapped)-1])
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		_, idErr := secret.KeyID(b)
		_, err := m.Open(b, whose)
		if err == nil {
			t.Fatal("opened bytes that this master never made")
		}
		if idErr != nil && !errors.Is(err, secret.ErrBroken) {
			t.Fatalf("no key id, but %v", err)
		}
	})
}

func BenchmarkOpenDataKey(b *testing.B) {
	m, _ := newMaster(b)
	wrapped, _ := newKey(b, m, whose)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Open(wrapped, whose); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenSealed(b *testing.B) {
	m, _ := newMaster(b)
	wrapped, _ := newKey(b, m, whose)
	s, err := m.Open(wrapped, whose)
	if err != nil {
		b.Fatal(err)
	}
	sealed, err := s.Seal(secret.NewAPIKey(true).Text(), whose)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Open(sealed, whose); err != nil {
			b.Fatal(err)
		}
	}
}
