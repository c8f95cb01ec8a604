package filing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"tributary/internal/alert"
	"tributary/internal/correction"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/killpoint"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// Issued is everything a document for people shows.
type Issued struct {
	country.Issue // items with their taxes typed; without its language
	Scope         string
	OperationID   string
	Pack          country.Pack
	Structured    *country.Structured
}

func issued(v *visit, e *ending) Issued {
	o, supplier := e.op, v.lane.supplier
	t := *o.Document
	t.Items = v.lane.pack.TypedItems(country.Case{Transaction: o.Document, Totals: o.Totals, UseCase: o.UseCase, Now: o.AcceptedAt})
	in := Issued{Scope: o.Scope, OperationID: o.ID, Pack: v.lane.pack, Structured: o.structured, Issue: country.Issue{
		Transaction: &t, Totals: o.Totals, Supplier: &supplier, Original: o.refs.Original, Shares: o.refs.Shares, UniqueNumber: o.UniqueNumber(),
		AuthorityID1: e.receipt.AuthorityID1, AuthorityID2: cmp.Or(e.receipt.AuthorityID2, o.filing.AuthorityID), QRCode: cmp.Or(e.receipt.QRCode, o.filing.QRCode),
		Receipt: e.receipt.Document, Live: o.Live, Location: v.lane.location, At: v.s.db.Wall(),
	}}
	if o.filing.Report != nil {
		in.Filing = &o.filing
	}
	return in
}

// Country is what the pack may look at when it says what a document in a
// language must carry.
func (in *Issued) Country(language string) country.Issue {
	issue := in.Issue
	issue.Language = strings.ToUpper(language)
	return issue
}

// structure makes the invoice as data of an operation that is not filed. A
// document that its own law refuses ends the attempt; a defect of ours does not
// undo a sale: the result says so, and a person looks at it.
func structure(ctx context.Context, v *visit, o *op) []fault.Fault {
	if v.lane.pack.Structured == nil || o.Kind == transaction.Response {
		return nil
	}
	in := issued(v, &ending{outcome: outcome{op: o}})
	err := country.Safely("make a structured invoice", func() (err error) {
		defer v.s.turn(ctx, o)()
		o.structured, err = v.lane.pack.Structured(in.Country(o.Document.LanguageCode))
		return err
	})
	var wrong *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Kind == fault.Invalid && len(wrong.Faults) > 0:
		return wrong.Faults
	}
	v.s.log.Error("make a structured invoice", "operation", o.ID, "error", err)
	o.Warnings = append(o.Warnings, fault.Warn("", fault.InternalError, "the structured invoice could not be made; the document for people stands"))
	return nil
}

// restructure learns of a filing that is the invoice as data what paper shows of
// it: the filing may be older than this visit, and than this program.
func restructure(ctx context.Context, v *visit, e *ending) {
	if e.status == Success && e.op.structured == nil && e.op.filing.Report != nil {
		structure(ctx, v, e.op)
	}
}

// issue renders and stores the documents of successes and builds all results.
func issue(ctx context.Context, v *visit, outcomes []outcome) ([]ending, error) {
	if err := loadForRendering(ctx, v, outcomes); err != nil {
		return nil, err
	}
	endings := make([]ending, len(outcomes))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	visuals, reports := make([]*files.File, len(outcomes)), make([]*files.File, len(outcomes))
	for i := range outcomes {
		endings[i].outcome = outcomes[i]
		e := &endings[i]
		restructure(ctx, v, e)
		if e.status == Success && e.op.structured != nil && e.op.filing.Report == nil {
			report := files.NewFile(e.op.structured.Content)
			reports[i] = &report
		}
		if e.status != Success || !visual(v, e.op) {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			defer v.s.turn(ctx, e.op)()
			visuals[i] = render(ctx, v, e)
		})
	}
	wg.Wait()
	var keep []files.File
	for _, f := range slices.Concat(visuals, reports) {
		if f != nil {
			keep = append(keep, *f)
		}
	}
	for i := range endings {
		keep = append(keep, brought(&endings[i])...)
	}
	if err := v.s.cfg.Documents.Keep(ctx, keep...); err != nil {
		return nil, fmt.Errorf("%w: %w", errDocuments, err)
	}
	killpoint.Reach(killpoint.Rendered)
	now := v.s.db.Wall()
	for i := range endings {
		e := &endings[i]
		e.attachments = attach(e, visuals[i], reports[i], now)
		e.result = result.Ended(e.op.Operation, v.lane.pack, v.lane.supplier, result.End{Status: e.status, Faults: e.faults, Filing: e.op.filing, Receipt: e.receipt,
			Structured: e.op.structured, Visual: visuals[i] != nil, At: now}).Encode()
	}
	return endings, nil
}

// loadForRendering makes sure that every operation can be shown: its body is read, a
// credit knows what it takes back, a document names what it corrects, and
// successes learn whether their number was used before.
func loadForRendering(ctx context.Context, v *visit, outcomes []outcome) error {
	var needOriginal []*op
	numbers := map[string]bool{}
	for _, e := range outcomes {
		o := e.op
		if err := o.Decode(); err != nil {
			v.s.log.Error("settle an operation", "operation", o.ID, "error", err)
			o.Document = &transaction.Transaction{Kind: o.Kind, ID: o.TransactionID, CountryCode: o.Code, Number: o.Number, SupplierID: o.SupplierID}
		}
		unshown := e.status == Success && o.refs.Original == nil && (visual(v, o) || v.lane.pack.Structured != nil)
		if o.Correction() && (unshown || o.Bare()) {
			needOriginal = append(needOriginal, o)
		}
		if e.status == Success && o.Document.Number != "" {
			numbers[o.Document.Number] = true
		}
	}
	if len(needOriginal) == 0 && len(numbers) == 0 {
		return nil
	}
	return v.s.db.ReadEach(ctx, func(r db.Reader) error { // what they correct is settled and stays as it is
		for _, o := range needOriginal {
			refs, err := correction.Remember(r, o.Operation)
			if err != nil {
				return err
			}
			o.refs = refs
		}
		return warnReused(r, v, outcomes, slices.Collect(maps.Keys(numbers)))
	})
}

// warnReused warns of numbers that the supplier used for another successful
// transaction. It hinders nothing: some countries restart their numbers.
func warnReused(r db.Reader, v *visit, outcomes []outcome, numbers []string) error {
	if len(numbers) == 0 || v.lane.at.SupplierID == "" {
		return nil
	}
	type use struct{ number, first, last string }
	used, err := db.Collect(r, func(scan func(...any) error) (u use, err error) { return u, scan(&u.number, &u.first, &u.last) },
		"SELECT number, min(transaction_id), max(transaction_id) FROM operations WHERE client_id = $1 AND "+v.s.db.In("number", "$2")+
			" AND supplier_id = $3 AND status = 'SUCCESS' GROUP BY number", v.lane.at.Scope, db.Strings(numbers), v.lane.at.SupplierID)
	if err != nil {
		return fmt.Errorf("look for numbers in use: %w", err)
	}
	users := map[string][]string{}
	for _, u := range used {
		users[u.number] = []string{u.first, u.last}
	}
	for i := range outcomes {
		o := outcomes[i].op
		if outcomes[i].status != Success || o.Document.Number == "" || o.filing.Unprinted {
			continue
		}
		number := o.Document.Number
		if slices.ContainsFunc(users[number], func(id string) bool { return id != o.TransactionID }) {
			outcomes[i].faults = append(outcomes[i].faults, fault.Warn("transaction_number", fault.NumberReused,
				"was used by this supplier for another successful transaction"))
		}
		users[number] = append(users[number], o.TransactionID) // the next one in this very batch
	}
	return nil
}

func visual(v *visit, o *op) bool {
	return v.s.cfg.Render != nil && (o.UseCase != country.Reporting || o.unfiled) && o.Kind != transaction.Backfill && o.Kind != transaction.Response && !o.filing.Unprinted
}

// render makes the document for people. A document that cannot be made does
// not undo a registration: the result says so and a person is told.
func render(ctx context.Context, v *visit, e *ending) *files.File {
	var made document.Rendering
	err := country.Safely("render a document", func() (err error) {
		made, err = v.s.cfg.Render(ctx, issued(v, e))
		return err
	})
	if err != nil {
		v.s.log.Error("render a document", "operation", e.op.ID, "error", err)
		_ = v.s.cfg.Alerts.Raise(ctx, alert.DocumentFailed, e.op.ID, "the document of operation "+e.op.ID+" could not be made") // it is logged in any case
		e.faults = append(e.faults, fault.Warn("", fault.InternalError, "the document for people could not be made; the registration stands"))
		return nil
	}
	if made.English {
		e.faults = append(e.faults, fault.Warn("language_code", fault.LanguageFallback, "is not available for documents; English was used"))
	}
	if len(made.Missing) > 0 {
		e.faults = append(e.faults, fault.Warn("", fault.ScriptUnavailable, "no font is installed for %s: the document has that text in Latin letters", strings.Join(made.Missing, ", ")))
	}
	file := files.NewFile(made.PDF)
	return &file
}

// attach lists the attachments of an ending.
func attach(e *ending, visual, report *files.File, now time.Time) []files.Attachment {
	if e.status != Success {
		return nil
	}
	var list []files.Attachment
	add := func(kind, typ, place string, f files.File) {
		list = append(list, files.Attachment{
			ClientID: e.op.Scope, OperationID: e.op.ID, Kind: kind, Type: typ, Place: place, SHA256: f.SHA256, Size: f.Size, CreatedAt: now,
		})
	}
	if visual != nil {
		add("VISUAL", "PDF", files.InStore, *visual)
	}
	if report != nil {
		add("REPORT", e.op.structured.Format, files.InStore, *report)
	}
	if e.op.filing.Report != nil {
		add("REPORT", e.op.filing.Format, files.InRecord, files.NewFile(e.op.filing.Report))
	}
	if e.receipt.Document != nil {
		add("RECEIPT", e.receipt.Format, files.InRecord, files.NewFile(e.receipt.Document))
	}
	for i, f := range brought(e) {
		sent := &e.op.Document.Attachments[i]
		add("CLIENT", sent.Short(), files.InStore, f)
		list[len(list)-1].Name = sent.Name
	}
	return list
}

// brought are the files that the client sent with a success.
func brought(e *ending) (list []files.File) {
	if e.status != Success || e.op.Document == nil {
		return nil
	}
	for i := range e.op.Document.Attachments {
		list = append(list, files.NewFile(e.op.Document.Attachments[i].Content))
	}
	return list
}
