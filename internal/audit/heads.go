package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	Logs      []Head    `json:"logs"`

	// Accepted is set where somebody took logs that differ from the heads before: after a restored backup.
	Accepted *Acceptance `json:"accepted,omitempty"`
	// Renewed is set on the first heads that a renewed key signed.
	Renewed *Renewal `json:"renewed,omitempty"`
}

// Renewal is who renewed the audit key, and why.
type Renewal struct {
	Before string `json:"before"` // the public key until then
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// Acceptance is who took logs that earlier heads do not fit, and why.
type Acceptance struct {
	Before time.Time `json:"before"` // of the earlier heads
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Broken []string  `json:"broken"` // how the logs differ from them
}

// Head is the last entry of one log.
type Head struct {
	Log  string `json:"log"` // "client ID", or "operators"
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

type headsSignature struct {
	Signature string `json:"signature"` // Ed25519 of the line before, without its end
}

// SignHeads writes heads as they are kept: a line of JSON and a line with its signature.
func (k *Key) SignHeads(h Heads) ([]byte, error) {
	ring := k.keys()
	if len(ring) == 0 {
		return nil, errors.New("sign the heads of audit logs: no audit key")
	}
	key := ring[len(ring)-1]
	h.Format, h.PublicKey = HeadsFormat, publicKey(key)
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	signature, err := json.Marshal(headsSignature{base64.StdEncoding.EncodeToString(ed25519.Sign(key.sign, line))})
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
func (k *Key) PublicKey() string {
	ring := k.keys()
	if len(ring) == 0 {
		return ""
	}
	return publicKey(ring[len(ring)-1])
}

func publicKey(d derived) string {
	return base64.StdEncoding.EncodeToString(d.sign.Public().(ed25519.PublicKey))
}

// ReadHeads reads what SignHeads wrote and verifies it: by the key or one that it replaced, or without
// one by the public key in it, which proves only that nothing was changed since.
func (k *Key) ReadHeads(text []byte) (h Heads, err error) {
	line, rest, ok := bytes.Cut(text, []byte("\n"))
	var s headsSignature
	if !ok || json.Unmarshal(line, &h) != nil || json.Unmarshal(rest, &s) != nil || h.Format != HeadsFormat {
		return h, fmt.Errorf("these are not audit heads: want the form %q", HeadsFormat)
	}
	key, errKey := base64.StdEncoding.DecodeString(h.PublicKey)
	signature, errSignature := base64.StdEncoding.DecodeString(s.Signature)
	if errKey != nil || errSignature != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, line, signature) {
		return h, fmt.Errorf("the heads of %s: invalid signature", h.At.Format(time.RFC3339))
	}
	if ring := k.keys(); len(ring) > 0 && !slices.ContainsFunc(ring, func(d derived) bool { return publicKey(d) == h.PublicKey }) {
		return h, fmt.Errorf("the heads of %s were signed by another audit key than those of this database: it is another database, or its keys were replaced", h.At.Format(time.RFC3339))
	}
	return h, nil
}

// Against says how a log differs from a head of it that was kept outside, by the
// row with the hash of the entry that the head knows; nil: it is still there.
func (head Head) Against(row *db.Row) (*Break, error) {
	var hash []byte
	err := row.Scan(&hash)
	switch {
	case head.Seq == 0:
		return nil, nil
	case errors.Is(err, db.ErrNoRows):
		return &Break{Seq: head.Seq, Reason: "an exported head has this entry, but it is missing"}, nil
	case err != nil:
		return nil, fmt.Errorf("read entry %d of the audit log of %s: %w", head.Seq, head.Log, err)
	case hex.EncodeToString(hash) != head.Hash:
		return &Break{Seq: head.Seq, Reason: "an exported head has a different entry: the log was rewritten"}, nil
	}
	return nil, nil
}
