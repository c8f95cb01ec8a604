package doctor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tributary/internal/fault"
	"tributary/internal/minisign"
)

// checksumsBytesMax bounds the files of a release that are read whole.
const checksumsBytesMax = 1 << 20

// Genuine asks whether a program is the one that was released.
type Genuine struct {
	Program   string // its file
	Checksums string // the release's SHA256SUMS, its signature beside it; default: beside the program
	Key       string // public key of minisign, or a file with it; default: BuiltIn
	BuiltIn   string
}

// Verify says what the program is, or what does not fit.
func (g Genuine) Verify() (string, error) {
	key, whose, err := g.publicKey()
	if err != nil {
		return "", err
	}
	at := g.Checksums
	if at == "" {
		at = filepath.Join(filepath.Dir(g.Program), "SHA256SUMS")
	}
	list, err := released(at, "the release's checksums", "give them with --checksums, or put them next to the binary")
	if err != nil {
		return "", err
	}
	signature, err := released(at+".minisig", "the signature of the checksums",
		"it is part of the release and belongs next to them")
	if err != nil {
		return "", err
	}
	comment, err := key.Verify(list, signature)
	if err != nil {
		return "", fault.New(fault.Invalid, "not verified: %s: %v", at+".minisig", err)
	}
	sum, err := digestOf(g.Program)
	if err != nil {
		return "", fmt.Errorf("read this program's file: %w", err)
	}
	name, listed := listedAs(list, sum)
	if !listed {
		return "", fault.New(fault.Invalid, "not verified: the checksums are valid (%s), but none matches this binary (%s): it was changed, or is from another release", comment, sum)
	}
	return fmt.Sprintf("this binary is %s of release %q, signed with key %s (%s)", name, comment, key.ID(), whose), nil
}

// publicKey is the key given, or the one built in. A key that came with the
// program proves that it was not damaged; one from elsewhere, who made it.
func (g Genuine) publicKey() (key minisign.PublicKey, whose string, err error) {
	text := g.BuiltIn
	whose = "built in: a forged binary would bring its own, compare it with the published one"
	if g.Key != "" {
		text, whose = g.Key, "given"
		if file, err := os.ReadFile(g.Key); err == nil {
			text = string(file)
		}
	}
	if text == "" {
		return key, "", fault.New(fault.Invalid, "not verified: this binary was built without a release key; give one with --key")
	}
	if key, err = minisign.ParsePublicKey([]byte(text)); err != nil {
		return key, "", fault.New(fault.Invalid, "not verified: --key: %v", err)
	}
	return key, whose, nil
}

// released reads a small file of a release.
func released(path, what, advice string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Invalid, "not verified: %s does not exist: %s; %s", path, what, advice)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "not verified: %s cannot be read: %v", what, err)
	}
	defer func() { _ = f.Close() }() // read
	text, err := io.ReadAll(io.LimitReader(f, checksumsBytesMax+1))
	if err != nil || len(text) > checksumsBytesMax {
		return nil, fault.New(fault.Invalid, "not verified: %s: %s is not readable, or too long", path, what)
	}
	return text, nil
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// listedAs looks for a checksum in the form of sha256sum. The name under which
// a program is installed is its owner's choice.
func listedAs(list []byte, sum string) (name string, found bool) {
	for line := range strings.Lines(string(list)) {
		digest, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && digest == sum {
			return strings.TrimLeft(rest, " *"), true
		}
	}
	return "", false
}
