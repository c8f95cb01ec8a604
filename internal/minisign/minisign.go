// Package minisign signs and verifies files as the tool of that name does
// (https://jedisct1.github.io/minisign/, "Signature format" and "Key format").
//
// It owns the form of keys and signatures: Ed25519 over the BLAKE2b-512 of a
// file, and a second signature over the first and its trusted comment. It
// refuses to own secret keys with a password: a release is signed where nobody
// types. Law: what the tool verifies, we verify, and the other way round.
package minisign

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/blake2b"
)

const (
	algorithmKey    = "Ed" // of keys
	algorithmHashed = "ED" // of signatures over the hash of a file
	algorithmSum    = "B2"
	untrusted       = "untrusted comment: "
	trusted         = "trusted comment: "

	idBytes     = 8
	publicBytes = 2 + idBytes + ed25519.PublicKeySize
	// algorithm, key derivation, checksum, salt, two limits, id, key, checksum
	secretBytes    = 2 + 2 + 2 + 32 + 8 + 8 + idBytes + ed25519.PrivateKeySize + blake2b.Size256
	signatureBytes = 2 + idBytes + ed25519.SignatureSize
	fileBytesMax   = 16 << 10 // of keys and signatures, comments included
)

// PublicKey verifies.
type PublicKey struct {
	id  [idBytes]byte
	key ed25519.PublicKey
}

// SecretKey signs.
type SecretKey struct {
	id  [idBytes]byte
	key ed25519.PrivateKey
}

// Generate makes a pair.
func Generate() (SecretKey, error) {
	var s SecretKey
	var err error
	if _, err = rand.Read(s.id[:]); err == nil {
		_, s.key, err = ed25519.GenerateKey(rand.Reader)
	}
	return s, err
}

// ID is how the tool prints a key's number.
func (p PublicKey) ID() string { return fmt.Sprintf("%016X", binary.LittleEndian.Uint64(p.id[:])) }

// Public is the other half.
func (s SecretKey) Public() PublicKey {
	return PublicKey{id: s.id, key: s.key.Public().(ed25519.PublicKey)}
}

// Text is the key as one line, as the tool's option -P takes it.
func (p PublicKey) Text() string {
	return base64.StdEncoding.EncodeToString(append(append([]byte(algorithmKey), p.id[:]...), p.key...))
}

// File is the key as the tool writes it.
func (p PublicKey) File() []byte {
	return fmt.Appendf(nil, "%sminisign public key %s\n%s\n", untrusted, p.ID(), p.Text())
}

// ParsePublicKey reads a key: its one line, or a file with a comment before it.
func ParsePublicKey(text []byte) (PublicKey, error) {
	raw, err := lastLine(text, publicBytes)
	if err != nil || string(raw[:2]) != algorithmKey {
		return PublicKey{}, errors.New("this is no public key of minisign: want 56 letters that begin with RW, or a file with them")
	}
	p := PublicKey{key: raw[2+idBytes:]}
	copy(p.id[:], raw[2:])
	return p, nil
}

// lastLine decodes the line after the comment, if there is one.
func lastLine(text []byte, size int) ([]byte, error) {
	if len(text) > fileBytesMax {
		return nil, errors.New("too long")
	}
	line := strings.TrimSpace(string(text))
	if strings.HasPrefix(line, untrusted) {
		_, line, _ = strings.Cut(line, "\n")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(line))
	if err == nil && len(raw) != size {
		err = errors.New("of another length")
	}
	return raw, err
}

func (s SecretKey) sum() [blake2b.Size256]byte {
	return blake2b.Sum256(append(append([]byte(algorithmKey), s.id[:]...), s.key...))
}

// File is the key as minisign -G -W writes it, without a password.
func (s SecretKey) File() []byte {
	var raw []byte
	raw = append(raw, algorithmKey+"\x00\x00"+algorithmSum...)
	raw = append(raw, make([]byte, 32+8+8)...) // salt and limits of a password that is not there
	raw = append(append(raw, s.id[:]...), s.key...)
	sum := s.sum()
	return fmt.Appendf(nil, "%sminisign secret key\n%s\n", untrusted, base64.StdEncoding.EncodeToString(append(raw, sum[:]...)))
}

// ParseSecretKey reads a file that minisign -G -W wrote. No error repeats any of it.
func ParseSecretKey(text []byte) (SecretKey, error) {
	raw, err := lastLine(text, secretBytes)
	if err != nil || string(raw[:2]) != algorithmKey {
		return SecretKey{}, errors.New("this is no secret key of minisign")
	}
	if string(raw[2:4]) != "\x00\x00" {
		return SecretKey{}, errors.New("the secret key has a password; make one without (minisign -G -W), and keep it where only the release can read it")
	}
	at := 2 + 2 + 2 + 32 + 8 + 8
	s := SecretKey{key: ed25519.PrivateKey(raw[at+idBytes : at+idBytes+ed25519.PrivateKeySize])}
	copy(s.id[:], raw[at:])
	// The tool leaves the checksum of a key without a password empty; then the
	// key's own half must follow from the other.
	sum, kept := s.sum(), raw[secretBytes-blake2b.Size256:]
	whole := subtle.ConstantTimeCompare(sum[:], kept) == 1 || bytes.Equal(kept, make([]byte, blake2b.Size256))
	if string(raw[4:6]) != algorithmSum || !whole || !s.key.Equal(ed25519.NewKeyFromSeed(s.key.Seed())) {
		return SecretKey{}, errors.New("the secret key is damaged: its checksum is another")
	}
	return s, nil
}

// Sign answers the signature of a message as a file. comment is signed with it.
func (s SecretKey) Sign(message []byte, comment string) ([]byte, error) {
	if strings.ContainsAny(comment, "\r\n") {
		return nil, errors.New("a trusted comment is one line")
	}
	sum := blake2b.Sum512(message)
	signature := ed25519.Sign(s.key, sum[:])
	global := ed25519.Sign(s.key, append(bytes.Clone(signature), comment...))
	line := append(append([]byte(algorithmHashed), s.id[:]...), signature...)
	return fmt.Appendf(nil, "%ssignature from minisign secret key\n%s\n%s%s\n%s\n", untrusted,
		base64.StdEncoding.EncodeToString(line), trusted, comment, base64.StdEncoding.EncodeToString(global)), nil
}

// Verify holds a message against a signature file, and answers the trusted comment.
func (p PublicKey) Verify(message, file []byte) (comment string, err error) {
	lines := strings.Split(strings.TrimRight(string(file), "\r\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	malformed := errors.New("this is no signature of minisign")
	if len(file) > fileBytesMax || len(lines) != 4 || !strings.HasPrefix(lines[0], untrusted) ||
		!strings.HasPrefix(lines[2], trusted) {
		return "", malformed
	}
	line, err := base64.StdEncoding.Strict().DecodeString(lines[1])
	global, err2 := base64.StdEncoding.Strict().DecodeString(lines[3])
	if err != nil || err2 != nil || len(line) != signatureBytes || len(global) != ed25519.SignatureSize {
		return "", malformed
	}
	if string(line[:2]) != algorithmHashed {
		return "", errors.New("the signature is of an old form that is not of the file's hash; sign anew")
	}
	if other := (PublicKey{id: [idBytes]byte(line[2 : 2+idBytes])}); other.id != p.id {
		return "", fmt.Errorf("the signature was made with key %s, not with key %s", other.ID(), p.ID())
	}
	signature, sum := line[2+idBytes:], blake2b.Sum512(message)
	if !ed25519.Verify(p.key, sum[:], signature) {
		return "", errors.New("the signature does not hold: what was signed has been changed")
	}
	comment = strings.TrimPrefix(lines[2], trusted)
	if !ed25519.Verify(p.key, append(bytes.Clone(signature), comment...), global) {
		return "", errors.New("the signature's comment has been changed")
	}
	return comment, nil
}
