package received

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/incoming"
	"tributary/internal/lease"
	"tributary/internal/operation"
	"tributary/internal/result"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

// told is the event of a document that was read, or cannot be.
func told(scope, id string) webhook.Event {
	return webhook.Event{ClientID: scope, Type: webhook.TransactionReceived, ResourceID: id,
		ResourcePath: "/v1/transactions/" + id}
}

// outcome is what became of a document.
type outcome struct {
	result.Arrival
	visual   *files.File
	embedded []files.Attachment
	aside    string // what the operator is told; "": nothing
}

// work reads a document and stores what it says.
func (d *Documents) work(ctx context.Context, l *lease.Lease[row]) error {
	if l.Row.crashes > 0 && d.db.Now().Before(d.grownUp) {
		return d.giveBack(ctx, l, d.grownUp)
	}
	defer d.room(&l.Row)()
	var crashes int64
	err := d.db.Write(ctx, func(tx *db.Tx) error {
		if err := l.Guard(tx); err != nil {
			return err
		}
		return tx.Row(beginSQL, l.ID).Scan(&crashes)
	})
	if errors.Is(err, db.ErrStale) {
		return nil // somebody else's
	}
	if err != nil {
		return fmt.Errorf("begin to read %s: %w", l.ID, err)
	}
	o, err := d.judge(ctx, l, crashes)
	if err == nil {
		err = d.end(ctx, l, o)
	}
	if err == nil || errors.Is(err, db.ErrStale) {
		return nil
	}
	return errors.Join(err, d.giveBack(context.WithoutCancel(ctx), l, d.db.Now().Add(retryOwn), restSQL))
}

// giveBack has a document read later; also is what changes besides.
func (d *Documents) giveBack(ctx context.Context, l *lease.Lease[row], due time.Time, also ...string) error {
	err := d.db.Write(ctx, func(tx *db.Tx) error {
		if err := l.Finish(tx, due); err != nil {
			return err
		}
		for _, text := range also {
			if err := tx.Exec(text, l.ID); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, db.ErrStale) {
		return nil // somebody else's
	}
	return err
}

// judge decides what becomes of a document; it writes nothing but files.
func (d *Documents) judge(ctx context.Context, l *lease.Lease[row], crashes int64) (*outcome, error) {
	o := &outcome{Arrival: result.Arrival{ID: l.ID, At: l.Row.acceptedAt, AuthorityID: l.Row.authorityID, AuthorityID2: l.Row.authorityID2}}
	if crashes > crashMost {
		o.aside = "the service ended each time it read the document of operation " + l.ID + "; it is given up"
		return o.fails(fault.Fault{Code: fault.InternalError, Type: fault.General, Message: "the document could not be read"}), nil
	}
	data, err := d.original(ctx, l.Row.scope, l.ID)
	if err != nil {
		return nil, err
	}
	err = country.Safely("read a received document", func() (err error) {
		o.Document, err = d.cfg.Read(data)
		return err
	})
	if err != nil {
		o.Document = nil
		return o.fails(d.unreadable(l.ID, err)), nil
	}
	if err := d.parties(ctx, l, o); err != nil {
		return nil, err
	}
	o.Faults = slices.Concat(o.Faults, result.Broken(o.Document.Broken), result.NotRead(o.Document.NotRead), result.Unplaced(o.Document))
	if o.Company == nil {
		o.aside = fmt.Sprintf("a received document is addressed to no company of the client; it is kept as operation %s", l.ID)
		return o.fails(fault.Fault{Code: fault.CodeNotFound, Type: fault.Validation, Field: "customer", Message: fmt.Sprintf(
			"customer: no company of yours has the number of the receiver, %q; onboard it and send the document again",
			fault.Clip(o.Document.Receiver.TaxNumber, 50))}), nil
	}
	o.Status = operation.Success
	if err := d.unpack(ctx, l.Row.scope, o); err != nil {
		return nil, err
	}
	if err := d.show(ctx, l.Row.live, o); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *outcome) fails(f fault.Fault) *outcome {
	o.Status, o.Faults = operation.Failure, append([]fault.Fault{f}, o.Faults...)
	return o
}

// unreadable says why a document is none; a panic is a defect of ours, which is logged.
func (d *Documents) unreadable(id string, err error) fault.Fault {
	if errors.Is(err, country.ErrPanic) {
		d.log.Error("a reader panicked", "operation_id", id, "error", err)
		return fault.Fault{Code: fault.InternalError, Type: fault.General, Message: "the document could not be read"}
	}
	var known *fault.Error
	if errors.As(err, &known) && len(known.Faults) > 0 {
		return known.Faults[0]
	}
	return fault.Fault{Code: fault.FieldNotValid, Type: fault.Validation,
		Message: "the document could not be read: " + fault.Clip(err.Error(), 500)}
}

// original reads the bytes that came.
func (d *Documents) original(ctx context.Context, scope, id string) ([]byte, error) {
	var list []files.Attachment
	err := d.db.Read(ctx, func(r db.Reader) (err error) {
		list, err = d.cfg.Files.Of(r, scope, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if a.Kind != files.Original {
			continue
		}
		c, err := d.cfg.Files.Open(ctx, files.Request{ResourceID: a.ResourceID, Format: strings.ToLower(a.Type), ClientID: scope})
		if err != nil {
			return nil, err
		}
		defer func() { _ = c.Close() }() // only read
		return io.ReadAll(c)
	}
	return nil, fmt.Errorf("operation %s has no original", id)
}

// parties finds who of both is a company of the client.
func (d *Documents) parties(ctx context.Context, l *lease.Lease[row], o *outcome) error {
	return d.db.Read(ctx, func(r db.Reader) error {
		ours, found, err := country.Supplier{}, false, error(nil)
		if l.Row.companyID != "" {
			ours, err = d.cfg.Companies.Supplier(r, l.Row.scope, l.Row.companyID)
			found = err == nil
			if fault.KindOf(err) == fault.NotFound {
				err = nil
			}
		} else {
			ours, found, err = d.cfg.Companies.Holder(r, l.Row.scope, o.Document.Receiver)
		}
		if err != nil {
			return err
		}
		if o.Company = nil; found {
			o.Company = &ours
		}
		sender, known, err := d.cfg.Companies.Holder(r, l.Row.scope, o.Document.Sender)
		if o.Sender = nil; known && err == nil {
			o.Sender = &sender
		}
		return err
	})
}

// senderKey tells senders apart by what their documents say of them.
func senderKey(p *transaction.Party) string {
	return cmp.Or(taxid.Bare(p.TaxNumber), taxid.Bare(p.FiscalCode), strings.ToUpper(p.LegalName))
}

// end stores an outcome, its document for people, its event and what the operator is told, in one commit.
func (d *Documents) end(ctx context.Context, l *lease.Lease[row], o *outcome) error {
	text := result.Arrived(o.Arrival).Encode()
	doc := o.Document
	if doc == nil {
		doc = &incoming.Document{Kind: transaction.Invoice}
	}
	dated := l.Row.acceptedAt
	if day, err := time.Parse(time.DateOnly, doc.Day); err == nil {
		dated = day
	}
	companyID := l.Row.companyID // what was brought and cannot be read is that company's all the same
	var senderID, code string
	if o.Company != nil {
		companyID, code = o.Company.ID, o.Company.CountryCode
	}
	if o.Sender != nil {
		senderID = o.Sender.ID
	}
	return d.db.Write(ctx, func(tx *db.Tx) error {
		if err := l.Finish(tx, time.Time{}); err != nil {
			return err
		}
		err := tx.ExecOne(endSQL, string(o.Status), db.Micros(tx.Now()), companyID, senderID, senderKey(&doc.Sender), code,
			string(doc.Kind), doc.Number, db.Micros(dated), text, l.ID)
		if err != nil {
			return err
		}
		if err := d.refer(tx, l, o); err != nil {
			return err
		}
		if err := d.cfg.Files.Attach(tx, o.files(l.Row.scope)...); err != nil {
			return err
		}
		if o.aside != "" {
			if err := d.cfg.Alerts.RaiseIn(tx, alert.ReceivedAside, l.Row.scope, o.aside); err != nil {
				return err
			}
		}
		return d.cfg.Hooks.Notify(tx, told(l.Row.scope, l.ID))
	})
}

// files are what was made of a document.
func (o *outcome) files(scope string) []files.Attachment {
	list := slices.Clip(o.embedded)
	if o.visual == nil {
		return list
	}
	return append(list, files.Attachment{ClientID: scope, OperationID: o.ID, Kind: "VISUAL", Type: "PDF", Place: files.InStore,
		SHA256: o.visual.SHA256, Size: o.visual.Size})
}

const (
	referencesMax = 100
	numberMax     = 100 // longer ones name nothing of ours
)

// refer keeps which earlier documents this one speaks of.
func (d *Documents) refer(tx *db.Tx, l *lease.Lease[row], o *outcome) error {
	if err := tx.Exec(unreferSQL, l.Row.scope, l.ID); err != nil || o.Status != operation.Success {
		return err
	}
	seen := map[string]bool{}
	var rows [][]any
	for _, e := range o.Document.Earlier {
		if e.Number == "" || len(e.Number) > numberMax || seen[e.Number] || len(rows) == referencesMax {
			continue
		}
		seen[e.Number] = true
		rows = append(rows, []any{l.Row.scope, l.ID, o.Company.ID, senderKey(&o.Document.Sender), e.Number})
	}
	if len(rows) == 0 {
		return nil
	}
	return tx.Insert("received_references", "client_id,operation_id,company_id,sender_key,number", rows...)
}
