package account

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"tributary/internal/db"
)

// HeadsFormat names the form of [Heads]. It never changes, a new form gets a new name.
const HeadsFormat = "tributary audit heads v1"

// HeadsBytesMax bounds what is written and read as heads: about 60,000 clients.
const HeadsBytesMax = 8 << 20

// Heads is where all audit logs stood at one time. Kept outside, signed, it shows
// later that a log was cut off or rewritten, whoever owns the database.
type Heads struct {
	Format    string    `json:"format"`
	At        time.Time `json:"at"`
	PublicKey string    `json:"public_key"` // Ed25519, base64
	Logs      []LogHead `json:"logs"`
}

// scopePrefix keeps a client that is named like another log apart from it.
const scopePrefix = "client "

func clientScope(id string) string { return scopePrefix + id }

// LogHead is the last entry of one log.
type LogHead struct {
	Log  string `json:"log"` // "client ID", or "operators"
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

type headsSignature struct {
	Signature string `json:"signature"` // Ed25519 of the line before, without its end
}

// SignHeads writes heads as they are kept: a line of JSON and a line with its signature.
func (k *AuditKey) SignHeads(h Heads) ([]byte, error) {
	if !k.loaded() {
		return nil, errors.New("sign the heads of audit logs: there is no audit key")
	}
	h.Format, h.PublicKey = HeadsFormat, k.PublicKey()
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	signature, err := json.Marshal(headsSignature{base64.StdEncoding.EncodeToString(ed25519.Sign(k.sign, line))})
	if err != nil {
		return nil, err
	}
	text := append(append(append(line, '\n'), signature...), '\n')
	if len(text) > HeadsBytesMax {
		return nil, fmt.Errorf("sign the heads of audit logs: %d bytes are more than %d", len(text), HeadsBytesMax)
	}
	return text, nil
}

// PublicKey is what others verify heads with, in base64; "" without a key.
func (k *AuditKey) PublicKey() string {
	if !k.loaded() {
		return ""
	}
	return base64.StdEncoding.EncodeToString(k.sign.Public().(ed25519.PublicKey))
}

// ReadHeads reads what SignHeads wrote and verifies it: by the key, or without
// one by the public key in it, which proves only that nothing was changed since.
func (k *AuditKey) ReadHeads(text []byte) (h Heads, err error) {
	line, rest, ok := bytes.Cut(text, []byte("\n"))
	var s headsSignature
	if !ok || json.Unmarshal(line, &h) != nil || json.Unmarshal(rest, &s) != nil || h.Format != HeadsFormat {
		return h, fmt.Errorf("these are no heads of audit logs: want the form %q", HeadsFormat)
	}
	key, errKey := base64.StdEncoding.DecodeString(h.PublicKey)
	signature, errSignature := base64.StdEncoding.DecodeString(s.Signature)
	if errKey != nil || errSignature != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, line, signature) {
		return h, fmt.Errorf("the heads of %s: their signature does not hold", h.At.Format(time.RFC3339))
	}
	if k.loaded() && h.PublicKey != k.PublicKey() {
		return h, fmt.Errorf("the heads of %s were signed by another audit key than the one of this database: it is another database, or its key was replaced", h.At.Format(time.RFC3339))
	}
	return h, nil
}

// Heads reads where the logs of all clients stand.
func (a *Accounts) Heads(r db.Reader) ([]LogHead, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (h LogHead, err error) {
		var hash []byte
		err = scan(&h.Log, &h.Seq, &hash)
		h.Log, h.Hash = clientScope(h.Log), hex.EncodeToString(hash)
		return h, err
	}, headsSQL)
	if err != nil {
		return nil, fmt.Errorf("read the heads of clients' audit logs: %w", err)
	}
	return list, nil
}

// Against says how a client's log differs from a head of it that was kept
// outside; nil: what the head knew is still there.
func (a *Accounts) Against(r db.Reader, head LogHead) (*Break, error) {
	var hash []byte
	return CompareHead(head, &hash, r.Row(entryHashSQL, strings.TrimPrefix(head.Log, scopePrefix), head.Seq).Scan(&hash))
}

// CompareHead judges an entry that was looked for by a head: hash and err are
// the answer of the database.
func CompareHead(head LogHead, hash *[]byte, err error) (*Break, error) {
	switch {
	case head.Seq == 0:
		return nil, nil
	case errors.Is(err, db.ErrNoRows):
		return &Break{Seq: head.Seq, Reason: "a head kept outside knows this entry, and it is gone"}, nil
	case err != nil:
		return nil, fmt.Errorf("read entry %d of the audit log of %s: %w", head.Seq, head.Log, err)
	case hex.EncodeToString(*hash) != head.Hash:
		return &Break{Seq: head.Seq, Reason: "a head kept outside knows this entry otherwise: the log was rewritten"}, nil
	}
	return nil, nil
}
