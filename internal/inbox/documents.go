package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lease"
	"tributary/internal/onboarding"
)

// Documents that others send to companies come on the two ways of messages: out of a
// mailbox that is looked into, or by a call. What is done with them is the matter of
// the package received; here is only that none is lost on its way there.
//
// Failure policy: the cursor of a look is stored in the commit that stores its
// documents, whose bytes are on disk by then; a process that dies before makes the
// same look again, and what comes twice is nothing. So a document that cannot be taken
// is not gone over: the looks fail, and a person is told. One that came by a call is
// stored before it is answered, and looked at again for two days while no company
// wants it: it may be onboarded late.

// Delivery is a document on its way to a company.
type Delivery struct {
	Scope     string
	Live      bool
	Source    string // CC.live or CC.test
	CompanyID string
	Document  country.Document
}

// most is how many messages or documents one look may bring.
func (m *mailbox) most() int {
	if m.documents {
		return country.DocumentsMax
	}
	return country.FetchMessagesMax
}

func (m *mailbox) what() string {
	if m.documents {
		return "received documents"
	}
	return "messages"
}

// wanted reports whether anything can wait for a company, and says of documents from
// when on. A day that was moved back begins again there: what it has is nothing.
func (i *Inbox) wanted(m *mailbox, f *country.Fetch, in *country.Inquiry) bool {
	if m.documents {
		in.From = i.cfg.Atlas.ReceivesSince(&in.Supplier)
		if in.From.IsZero() {
			return false
		}
		if in.From.Before(m.since) {
			in.Cursor = ""
		}
		if i.cfg.Stored != nil {
			in.Stored = func(ctx context.Context, ids []string) (map[string]bool, error) {
				return i.cfg.Stored(ctx, m.of, m.at.String(), ids)
			}
		}
	}
	return f.Wants(in.Supplier)
}

func deliveries(m *mailbox, documents []country.Document) []Delivery {
	list := make([]Delivery, len(documents))
	for n, d := range documents {
		list[n] = Delivery{m.of.Scope, bool(m.at.Live), m.at.String(), m.of.SupplierID, d}
	}
	return list
}

// soundDocuments refuses what a look for documents may not bring.
func soundDocuments(got country.Fetched, limit int) error {
	if len(got.Messages) > 0 || len(got.Documents) > limit {
		return fmt.Errorf("the look returned %d messages and %d documents, %d documents were requested", len(got.Messages),
			len(got.Documents), limit)
	}
	if len(got.Cursor) > cursorMax || !db.Storable(got.Cursor) {
		return fmt.Errorf("the cursor of %d bytes is too long", len(got.Cursor))
	}
	if _, err := country.ReadMark(got.Cursor); err != nil {
		return err
	}
	size := 0
	for n := range got.Documents {
		if err := soundDocument(&got.Documents[n]); err != nil {
			return err
		}
		size += len(got.Documents[n].Bytes)
	}
	if size > country.DocumentsBytesMax {
		return fmt.Errorf("the documents of one look have %d bytes, more than %d", size, country.DocumentsBytesMax)
	}
	return nil
}

func soundDocument(d *country.Document) error {
	switch {
	case d.AuthorityID == "" || len(d.AuthorityID) > KeyBytesMax || !db.Storable(d.AuthorityID):
		return fmt.Errorf("a received document has an id of %d bytes", len(d.AuthorityID))
	case len(d.AuthorityID2) > KeyBytesMax || !db.Storable(d.AuthorityID2):
		return fmt.Errorf("the received document %s has a second id of %d bytes", d.AuthorityID, len(d.AuthorityID2))
	case len(d.Bytes) == 0 || len(d.Bytes) > country.DocumentBytesMax:
		return fmt.Errorf("the received document %s has %d bytes; 1 to %d are taken", d.AuthorityID, len(d.Bytes), country.DocumentBytesMax)
	case d.Format != "XML" && d.Format != "PDF" && d.Format != "P7M":
		return fmt.Errorf("the received document %s is of the format %q", d.AuthorityID, d.Format)
	}
	return nil
}

// name is a message's name as it is stored. That of a document ends with its hash: other
// bytes under one id are no repetition, and whoever takes them tells a person.
func name(m *country.Message) string {
	if m.Document == nil {
		return m.Key
	}
	sum := sha256.Sum256(m.Document.Bytes)
	return m.Key + "/" + hex.EncodeToString(sum[:])
}

// bytesOf is what is kept of a message as it came.
func bytesOf(m *country.Message) []byte {
	if m.Document == nil {
		return append([]byte{}, m.Raw...)
	}
	return m.Document.Bytes
}

// hand gives a document to every company that wants it, in one write with the mark that
// it was taken. Its bytes are destroyed here: the companies have them.
func (i *Inbox) hand(ctx context.Context, lease *lease.Lease[stored]) error {
	m := lease.Row
	var list []onboarding.Owned
	err := i.db.Read(ctx, func(r db.Reader) (err error) {
		list, err = i.cfg.Companies.Receivers(r, m.at, m.message.Document.To)
		return err
	})
	if err != nil {
		return err
	}
	var all []Delivery
	for _, c := range list {
		if from := i.cfg.Atlas.ReceivesSince(&c.Supplier); !from.IsZero() && !from.After(m.receivedAt) {
			all = append(all, Delivery{c.ClientID, bool(m.at.Live), m.at.String(), c.Supplier.ID, *m.message.Document})
		}
	}
	if len(all) == 0 {
		return i.db.Write(ctx, func(tx *db.Tx) error { return i.nobody(tx, lease) })
	}
	return i.cfg.TakeDocuments(ctx, all, func(tx *db.Tx, operations []string, _ int) error {
		err := tx.Exec("UPDATE inbox_messages SET operation_id = $1, taken_at = $2, raw = $3, receipt = '{}' WHERE message_id = $4",
			operations[0], db.Micros(tx.Now()), []byte{}, lease.ID)
		if err != nil {
			return err
		}
		return lease.Finish(tx, time.Time{})
	})
}

// nobody keeps a document that no company wants, and tells a person of it once.
func (i *Inbox) nobody(tx *db.Tx, lease *lease.Lease[stored]) error {
	m := lease.Row
	if err := tx.Exec(lostSQL, lease.ID); err != nil {
		return err
	}
	if i.cfg.Alerts != nil && m.tries == 0 {
		to := m.message.Document.To
		number := to.TaxNumber
		if number == "" && to.Electronic != nil {
			number = to.Electronic.ID
		}
		err := i.cfg.Alerts.RaiseIn(tx, alert.ReceivedAside, m.at.String(), fmt.Sprintf(
			"%s brought the document %s for %q, which is no company with the setting %s; it is kept for %d days and delivered if such a company is onboarded within %.0f hours",
			m.at, m.message.Document.AuthorityID, fault.Clip(number, 50), country.SettingReceive, KeptDays, lookFor.Hours()))
		if err != nil {
			return err
		}
	}
	return lease.Finish(tx, again(tx.Now(), m))
}

// errNoDocuments says that this inbox was built without anybody to take documents.
var errNoDocuments = errors.New("nobody takes received documents here")

// Rewind lets the documents of every company be brought again from an instant on, in the
// write that begins a restoration: what the backup has is nothing when it comes again.
func Rewind(tx *db.Tx, to time.Time) error {
	type place struct{ id, cursor string }
	all, err := db.Collect(tx, func(scan func(...any) error) (p place, err error) { return p, scan(&p.id, &p.cursor) },
		"SELECT mailbox, cursor FROM inbox_mailboxes WHERE documents AND cursor <> '' ORDER BY mailbox")
	if err != nil {
		return fmt.Errorf("look for the marks of received documents: %w", err)
	}
	var rows [][]any
	for _, p := range all {
		m, err := country.ReadMark(p.cursor)
		if err == nil && m.At.Before(to) {
			continue
		}
		rows = append(rows, []any{p.id, country.Mark{At: to}.String()})
	}
	if err := tx.ExecEach("UPDATE inbox_mailboxes SET cursor = $2 WHERE mailbox = $1", rows); err != nil {
		return fmt.Errorf("move the marks of received documents back: %w", err)
	}
	return nil
}
