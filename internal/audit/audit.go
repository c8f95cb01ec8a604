// Package audit is the chain that audit logs are: each entry holds the hash of the
// one before it, so a changed, removed or inserted one shows, and proves by a key
// that who holds the master key wrote it.
//
// It owns how entries are hashed, linked, authenticated and verified, and the
// signed heads that are kept outside. What an entry says, its table and who may
// add one are the owners': package account for the logs of clients, package
// operator for that of operators.
package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"tributary/internal/db"
)

// Actor is who makes a change.
type Actor struct {
	Name string `json:"name"`          // an operator, "command line", "demo"
	Kid  string `json:"kid,omitempty"` // the API key it was made with, if any
	IP   string `json:"ip,omitempty"`
}

const actorBytesMax = 200

// Settled makes the texts fit for a column of either engine.
func (a Actor) Settled() Actor {
	fit := func(text string) string {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
		if len(text) > actorBytesMax {
			cut := actorBytesMax
			for !utf8.RuneStart(text[cut]) {
				cut--
			}
			text = text[:cut]
		}
		return text
	}
	return Actor{Name: strings.TrimSpace(fit(a.Name)), Kid: fit(a.Kid), IP: fit(a.IP)}
}

// Digest is a SHA-256; all zero where there is nothing to hash.
type Digest [sha256.Size]byte

// DigestOf is a stored digest; all zero where none is stored.
func DigestOf(stored []byte) (d Digest) {
	copy(d[:], stored)
	return d
}

// MarshalText writes hexadecimal.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// Hash hashes fields with their lengths, so that no two lists of fields give the
// same bytes. The encoding is part of what is stored: it never changes, a new
// form gets a new label.
func Hash(label string, fields ...[]byte) (sum Digest) {
	h := sha256.New()
	write := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
		h.Write(b)
	}
	write([]byte(label))
	for _, f := range fields {
		write(f)
	}
	h.Sum(sum[:0])
	return sum
}

// Number is a number as a field of [Hash].
func Number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// Link is the place of an entry in the chain of its log.
type Link struct {
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`
	Prev Digest    `json:"prev_hash"`
	Own  Digest    `json:"hash"`

	MAC []byte `json:"-"` // by the audit key; nil: without one
}

// Hash is the entry's own hash in hexadecimal; of the last entry it is the head of the log.
func (l Link) Hash() string { return hex.EncodeToString(l.Own[:]) }

// Tail is where a log stands while entries are added to it.
type Tail struct {
	Log  string // its name among the logs
	Key  *Key
	Seq  int64
	Head Digest
}

// Add links an entry behind the last one. hash is of everything that the entry
// says, and of its link but for Own and MAC.
func (t *Tail) Add(l *Link, hash func() Digest) {
	t.Seq++
	l.Seq, l.Prev = t.Seq, t.Head
	l.Own = hash()
	l.MAC = t.Key.sum(t.Log, l.Own)
	t.Head = l.Own
}

// Verdict is the result of verifying one audit log.
type Verdict struct {
	ClientID string `json:"client_id"` // or the name of the log, where it is no client's
	Entries  int64  `json:"entries"`   // that verified
	// hash of the last one that did; keep it elsewhere to prove later that nothing was rewritten
	Head   string `json:"head"`
	Broken *Break `json:"broken,omitempty"` // nil: the log is whole and says what the tables say

	// Unproven are entries for which nobody can vouch, wherever the log breaks: not
	// what was hashed, or not written with the key.
	Unproven []Span `json:"unproven,omitempty"`

	Log  string  `json:"-"` // its name in heads
	last []int64 // by key of the ring: the last entry that it made
}

// Span is a row of entries.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

func (s Span) String() string {
	if s.From == s.To {
		return fmt.Sprintf("entry %d", s.From)
	}
	return fmt.Sprintf("entries %d to %d", s.From, s.To)
}

// doubt adds an entry to those that are not proven.
func (v *Verdict) doubt(seq int64) {
	if last := len(v.Unproven) - 1; last >= 0 && v.Unproven[last].To+1 == seq {
		v.Unproven[last].To = seq
		return
	}
	if len(v.Unproven) < unprovenMax {
		v.Unproven = append(v.Unproven, Span{seq, seq})
	}
}

// unprovenMax bounds what is listed of a log in which nothing holds any more.
const unprovenMax = 100

// Break is the first place where a log does not hold.
type Break struct {
	Seq    int64  `json:"seq"` // 0: the log itself holds, the client's rows differ from it
	Reason string `json:"reason"`
}

// String tells of it behind the name of the log.
func (b Break) String() string { return fmt.Sprintf("is broken at entry %d: %s", b.Seq, b.Reason) }

// Proof is what an entry brings to be believed.
type Proof struct {
	Link
	Sum   Digest // of what it says
	Wrong string // what its owner finds wrong with it
}

// Verify walks a log and reports the first entry that was changed, removed,
// inserted or reordered, or was not written by who holds the key. Where the log
// should end says [Verdict.EndsAt]; what whoever owns the database cut off there
// is found by heads kept outside.
func (k *Key) Verify(log string, rows *db.Rows, read func(scan func(...any) error) (Proof, error)) (v Verdict, err error) {
	ring, newest := k.keys(), 0
	v.ClientID, v.Log, v.last = log, log, make([]int64, len(ring))
	var last Link
	err = rows.Each(func(scan func(...any) error) error {
		p, err := read(scan)
		if err != nil {
			return err
		}
		by, forged := maker(ring, log, &p)
		if forged == "" && by < newest {
			forged = replacedWhy
		}
		if len(ring) > 0 && (p.Sum != p.Own || forged != "") {
			v.doubt(p.Seq)
		}
		if v.Broken != nil {
			return nil
		}
		if why := cmp.Or(p.unlinked(&last), p.Wrong, forged); why != "" {
			v.Broken = &Break{Seq: p.Seq, Reason: why}
			return nil
		}
		if newest = by; len(ring) > 0 {
			v.last[by] = p.Seq
		}
		last = p.Link
		v.Entries, v.Head = p.Seq, p.Hash()
		return nil
	})
	return v, err
}

// EndsAt breaks a log that ends elsewhere than the rows of its owner say.
func (v *Verdict) EndsAt(seq int64, head []byte) {
	if v.Broken == nil && (seq != v.Entries || seq > 0 && hex.EncodeToString(head) != v.Head) {
		v.Broken = &Break{Seq: v.Entries + 1, Reason: fmt.Sprintf("the log ends at %d, its head says %d", v.Entries, seq)}
	}
}

// unlinked says why an entry cannot stand after the last one, or nothing.
func (p *Proof) unlinked(last *Link) string {
	switch {
	case p.Seq != last.Seq+1:
		return fmt.Sprintf("entry %d is missing", last.Seq+1)
	case p.Prev != last.Own:
		return "it does not continue the entry before it"
	case p.Sum != p.Own:
		return "its content is not what was hashed"
	}
	return ""
}
