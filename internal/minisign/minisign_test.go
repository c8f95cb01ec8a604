package minisign_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/minisign"
	"tributary/internal/needs"
)

const comment = "tributary v1.2.3"

func pair(t testing.TB) minisign.SecretKey {
	t.Helper()
	s, err := minisign.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sign(t testing.TB, s minisign.SecretKey, message string) string {
	t.Helper()
	file, err := s.Sign([]byte(message), comment)
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

func TestASignatureHoldsForItsMessageAndKeyAlone(t *testing.T) {
	t.Parallel()
	s := pair(t)
	file := sign(t, s, "a list")
	if got, err := s.Public().Verify([]byte("a list"), []byte(file)); err != nil || got != comment {
		t.Fatalf("%q, %v", got, err)
	}
	if got, err := s.Public().Verify([]byte("a list"), []byte(strings.ReplaceAll(file, "\n", "\r\n"))); err != nil ||
		got != comment {
		t.Errorf("with line ends of Windows: %q, %v", got, err)
	}
	other := pair(t).Public()
	for name, c := range map[string]struct {
		message, file, want string
		key                 minisign.PublicKey
	}{
		"message": {"a List", file, "does not hold", s.Public()},
		"comment": {"a list", strings.Replace(file, "v1.2.3", "v1.2.4", 1), "comment has been changed", s.Public()},
		"key":     {"a list", file, "made with key " + s.Public().ID() + ", not with key " + other.ID(), other},
		"empty":   {"a list", "", "no signature", s.Public()},
		"cut":     {"a list", file[:len(file)-20], "no signature", s.Public()},
		"letters": {"a list", strings.Replace(file, "\nRU", "\n??", 1), "no signature", s.Public()},
		"long":    {"a list", file + strings.Repeat("\n", 20<<10), "no signature", s.Public()},
	} {
		if _, err := c.key.Verify([]byte(c.message), []byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Sign(nil, "two\nlines"); err == nil {
		t.Error("a comment of two lines was signed")
	}
}

func TestKeysAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	s := pair(t)
	again, err := minisign.ParseSecretKey(s.File())
	if err != nil || again.Public().Text() != s.Public().Text() {
		t.Fatal(err)
	}
	for _, text := range []string{s.Public().Text(), string(s.Public().File()), s.Public().Text() + "\n"} {
		if p, err := minisign.ParsePublicKey([]byte(text)); err != nil || p.ID() != s.Public().ID() {
			t.Errorf("%q: %v", text, err)
		}
	}
	damaged := []byte(strings.Replace(string(s.File()), "AAAA", "AAAB", 1))
	damaged[len(damaged)-60] ^= 1
	for _, text := range []string{"", "RW", string(damaged), string(s.Public().File())} {
		if _, err := minisign.ParseSecretKey([]byte(text)); err == nil {
			t.Errorf("%q is a secret key", text)
		}
		if text == string(s.Public().File()) {
			continue
		}
		if _, err := minisign.ParsePublicKey([]byte(text)); err == nil {
			t.Errorf("%q is a public key", text)
		}
	}
}

// The tool itself judges ours, and we judge the tool's.
func TestTheToolAndWeAgree(t *testing.T) {
	t.Parallel()
	tool := needs.Tool(t, "minisign", "minisign")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(tool, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	message := at("SHA256SUMS")
	write(t, message, []byte("a list"))
	ours := pair(t)
	write(t, at("our.pub"), ours.Public().File())
	write(t, at("our.key"), ours.File())
	write(t, message+".minisig", []byte(sign(t, ours, "a list")))
	if out := run("-V", "-p", at("our.pub"), "-m", message); !strings.Contains(out, comment) {
		t.Errorf("the tool says %s", out)
	}
	run("-V", "-P", ours.Public().Text(), "-m", message)

	run("-S", "-s", at("our.key"), "-m", message, "-t", "by the tool with our key")
	verify(t, ours.Public(), message, "by the tool with our key")
	run("-G", "-W", "-p", at("their.pub"), "-s", at("their.key"))
	run("-S", "-s", at("their.key"), "-m", message, "-t", "all theirs")
	theirs, err := minisign.ParsePublicKey(read(t, at("their.pub")))
	if err != nil {
		t.Fatal(err)
	}
	verify(t, theirs, message, "all theirs")
	secret, err := minisign.ParseSecretKey(read(t, at("their.key")))
	if err != nil || secret.Public().Text() != theirs.Text() {
		t.Fatal(err)
	}
	file, err := secret.Sign([]byte("a list"), "ours with their key")
	if err != nil {
		t.Fatal(err)
	}
	write(t, message+".minisig", file)
	run("-V", "-p", at("their.pub"), "-m", message)
	write(t, message, []byte("another list"))
	if out, err := exec.Command(tool, "-V", "-p", at("their.pub"), "-m", message).CombinedOutput(); err == nil {
		t.Errorf("the tool holds it for good: %s", out)
	}
}

func verify(t *testing.T, key minisign.PublicKey, path, want string) {
	t.Helper()
	if got, err := key.Verify(read(t, path), read(t, path+".minisig")); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
