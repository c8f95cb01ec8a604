package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
	"tributary/internal/lease"
)

// queue leases messages that wait for their filing.
var queue = &lease.Queue[stored]{
	Table: "inbox_messages", ID: "message_id", Key: "endpoint", Longest: fmt.Sprint((2 * pauseMax).Microseconds()),
	Columns: "country, live, name, handle, receipt, raw, received_at, tries, client_id, company_id", Scan: scanStored,
}

// stored is a message as it waits.
type stored struct {
	at         country.Environment
	of         country.Mailbox // in which it lay
	message    country.Message
	receivedAt time.Time
	tries      int64
}

// kept is the receipt of a message with the names of its news, which a
// receipt's own form leaves out, or what is known of a received document.
type kept struct {
	Receipt  country.Receipt
	Names    []string          `json:",omitempty"`
	Document *country.Document `json:",omitempty"`
}

func scanStored(scan func(...any) error) (s stored, err error) {
	var text string
	var received int64
	var client, company *string
	err = scan(&s.at.Code, (*bool)(&s.at.Live), &s.message.Key, &s.message.Handle, &text, &s.message.Raw, &received,
		&s.tries, &client, &company)
	if err != nil {
		return s, err
	}
	if client != nil && company != nil {
		s.of = country.Mailbox{Scope: *client, SupplierID: *company}
	}
	s.receivedAt = db.FromMicros(received)
	var k kept
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return s, fmt.Errorf("read message %q: %w", s.message.Key, err)
	}
	for n := range k.Receipt.News {
		if n < len(k.Names) {
			k.Receipt.News[n].Key = k.Names[n]
		}
	}
	s.message.Receipt = k.Receipt
	if s.message.Document = k.Document; k.Document != nil {
		s.message.Document.Bytes, s.message.Raw = s.message.Raw, nil
	}
	return s, nil
}

const (
	knownSQL = "SELECT 1 FROM inbox_messages WHERE country = $1 AND live = $2 AND name = $3"
	columns  = "message_id,endpoint,country,live,name,handle,receipt,raw,received_at,due_at,client_id,company_id," +
		"caller,bytes"
	lostSQL    = "UPDATE inbox_messages SET tries = tries + 1 WHERE message_id = $1"
	takenSQL   = "UPDATE inbox_messages SET operation_id = $1, taken_at = $2 WHERE message_id = $3"
	unknownSQL = `SELECT message_id, country, live, name, handle, substr(raw, 1, 4096), received_at, tries FROM inbox_messages
		WHERE taken_at IS NULL AND tries > 0 ORDER BY message_id DESC LIMIT $1`
)

// batch is messages of one place with their stored form.
type batch struct {
	messages []country.Message
	texts    []string
	caller   string // whose address brought them; "": they were fetched
}

// encode makes the stored form of messages.
func encode(at country.Environment, messages []country.Message) ([]string, error) {
	texts := make([]string, len(messages))
	for n, m := range messages {
		k := kept{Receipt: m.Receipt, Document: m.Document}
		for _, news := range m.Receipt.News {
			k.Names = append(k.Names, news.Key)
		}
		text, err := json.Marshal(k)
		if err != nil {
			return nil, fmt.Errorf("encode message %q of %s: %w", m.Key, at, err)
		}
		texts[n] = string(text)
	}
	return texts, nil
}

// Store keeps messages, each once by the authority's own name, and answers how
// many were new. When it returns they are on disk.
func (i *Inbox) Store(ctx context.Context, at country.Environment, messages []country.Message) (fresh int, err error) {
	return i.StoreFrom(ctx, at, "", messages)
}

// StoreFrom stores what a caller brings, unless too much of it waits already.
func (i *Inbox) StoreFrom(ctx context.Context, at country.Environment, caller string,
	messages []country.Message) (fresh int, err error) {
	if len(messages) == 0 {
		return 0, nil
	}
	texts, err := encode(at, messages)
	if err != nil {
		return 0, err
	}
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		fresh, err = i.insert(tx, at, country.Mailbox{}, batch{messages, texts, caller})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("store %d messages of %s: %w", len(messages), at, err)
	}
	killpoint.Reach(killpoint.Heard)
	return fresh, nil
}

// insert stores what is new of messages, in the caller's write.
func (i *Inbox) insert(tx *db.Tx, at country.Environment, of country.Mailbox, b batch) (fresh int, err error) {
	if len(b.messages) == 0 {
		return 0, nil
	}
	// Two calls with one message must not both find it new.
	if err := tx.Lock("inbox|" + at.String()); err != nil {
		return 0, err
	}
	size := func(n int) int64 { return int64(len(bytesOf(&b.messages[n])) + len(b.texts[n])) }
	sum := int64(0)
	for n := range b.messages {
		sum += size(n)
	}
	if err := roomFor(tx, b.caller, sum); err != nil {
		return 0, err
	}
	var client, company any
	if of != (country.Mailbox{}) {
		client, company = of.Scope, of.SupplierID
	}
	for n := range b.messages {
		m := &b.messages[n]
		var one int
		err := tx.Row(knownSQL, at.Code, bool(at.Live), name(m)).Scan(&one)
		if err == nil {
			continue
		}
		if !errors.Is(err, db.ErrNoRows) {
			return 0, err
		}
		id, err := uuid.NewV7()
		if err != nil {
			return 0, err
		}
		fresh++
		now := db.Micros(tx.Now())
		row := []any{id.String(), at.String(), at.Code, bool(at.Live), name(m), m.Handle, b.texts[n], bytesOf(m), now, now, client,
			company, db.Null(b.caller), size(n)}
		if err := tx.Insert("inbox_messages", columns, row); err != nil {
			return 0, err
		}
	}
	tx.Wake(queue.Table)
	return fresh, nil
}

// Message is one that nobody could be found for, as an operator sees it.
type Message struct {
	ID         string
	At         country.Environment
	Key        string
	Handle     string
	Raw        string // its first 4 KiB
	ReceivedAt time.Time
	Tries      int64
}

// Unknown lists messages that speak of no filing of ours, newest first.
func Unknown(r db.Reader, limit int) ([]Message, error) {
	if limit < 1 || limit > 500 {
		return nil, fault.New(fault.Invalid, "limit must be 1 to 500")
	}
	list, err := db.Collect(r, func(scan func(...any) error) (m Message, err error) {
		var raw []byte
		var received int64
		err = scan(&m.ID, &m.At.Code, (*bool)(&m.At.Live), &m.Key, &m.Handle, &raw, &received, &m.Tries)
		m.Raw, m.ReceivedAt = string(raw), db.FromMicros(received)
		return m, err
	}, unknownSQL, limit)
	if err != nil {
		return nil, fmt.Errorf("list messages without a filing: %w", err)
	}
	return list, nil
}
