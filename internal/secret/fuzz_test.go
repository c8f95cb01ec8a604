package secret_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/mutate"
	"tributary/internal/secret"
)

// A keyset works, or is refused without repeating any of it: whoever mistypes a
// key should not find it in the log.
func FuzzKeyset(f *testing.F) {
	path := filepath.Join(f.TempDir(), "master.json")
	if err := secret.CreateMasterFile(path); err != nil {
		f.Fatal(err)
	}
	made, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(made)
	f.Add(made[:len(made)/2])
	f.Add([]byte(`{"primaryKeyId":1,"key":[]}`))
	const variable = "TRIBUTARY_FUZZED_KEYSET"
	f.Cleanup(func() { _ = os.Unsetenv(variable) }) // ours alone
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.Setenv(variable, base64.StdEncoding.EncodeToString(content)); err != nil {
			t.Fatal(err)
		}
		m, err := secret.OpenMaster("env:" + variable)
		if err != nil {
			harmless(t, err, content)
			return
		}
		wrapped, err := m.NewKey(whose)
		if err != nil {
			harmless(t, err, content)
			return
		}
		if _, err := m.Open(wrapped, whose); err != nil {
			t.Fatalf("what was wrapped does not open: %v", err)
		}
	})
}

// harmless looks whether an error repeats a piece of a secret.
func harmless(t *testing.T, err error, content []byte) {
	t.Helper()
	for i := 0; i+12 <= len(content); i++ {
		if strings.Contains(err.Error(), string(content[i:i+12])) &&
			!strings.Contains("open master key: environment variable TRIBUTARY_FUZZED_KEYSET: is not a Tink keyset in JSON",
				string(content[i:i+12])) {
			t.Fatalf("%v repeats %q", err, content[i:i+12])
		}
	}
}

// The source of a key is never repeated when it is none: it may be the key.
func FuzzMasterSource(f *testing.F) {
	for _, source := range []string{"", "AAAABBBBCCCCDDDD", "env:", "env:a b", "env:9", "file", "hcvault:/", "ENV:HOME",
		"env:HOME\x00"} {
		f.Add(source)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, source string) {
		if strings.HasPrefix(source, "file:") || strings.HasPrefix(source, "hcvault://") {
			t.Skip("leads out of this process")
		}
		_, err := secret.OpenMaster(source)
		if err == nil {
			t.Fatalf("%q is a master key", source)
		}
		if name, named := strings.CutPrefix(source, "env:"); len(source) >= 12 && strings.Contains(err.Error(), source) &&
			!(named && len(name) <= 64) {
			t.Fatalf("%v repeats the source", err)
		}
	})
}

// What is sealed opens in its own context and in no other; what was not sealed
// does not open.
func FuzzSealed(f *testing.F) {
	m, _ := newMaster(f)
	_, sealer := newKey(f, m, whose)
	f.Add([]byte("a password"), "c1", "k1", "api-key", 1)
	f.Add([]byte{}, "", "", "x", 0)
	f.Add([]byte{1, 0, 0, 0, 0}, "c1k", "1", "api-key", -1)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, plain []byte, client, kid, purpose string, version int) {
		c := secret.Context{Client: client, Kid: kid, Purpose: purpose, Version: version}
		if _, err := sealer.Open(plain, c); err == nil {
			t.Fatal("opened bytes that nobody sealed")
		}
		sealed, err := sealer.Seal(secret.New(bytes.Clone(plain)), c)
		if err != nil {
			if purpose != "" && version >= 0 && len(client) <= 255 && len(kid) <= 255 && len(purpose) <= 255 {
				t.Fatal(err)
			}
			return
		}
		if back, err := sealer.Open(sealed, c); err != nil || !bytes.Equal(back.Reveal(), plain) {
			t.Fatalf("%q comes back as %q, %v", plain, back.Reveal(), err)
		}
		for _, other := range []secret.Context{{client + kid, "", purpose, version}, {client, kid, purpose + "x", version},
			{client, kid, purpose, version ^ 1}} {
			if _, err := sealer.Open(sealed, other); other != c && !errors.Is(err, secret.ErrBroken) &&
				len(other.Client) <= 255 && len(other.Purpose) <= 255 {
				t.Fatalf("%+v opens as %+v: %v", c, other, err)
			}
		}
	})
}
