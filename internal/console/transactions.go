package console

import (
	"cmp"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/operator"
	"tributary/internal/recovery"
	"tributary/internal/result"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

// salesPages shows transactions, finds them and does things with many.
type salesPages struct {
	cfg *Config
	log *slog.Logger
	now func() time.Time
	dir *directory
}

// searchForm is a search as it stands in the address.
type searchForm struct {
	Text, Status, Stage, Country, Client, Kind, Amount, From, To, Reason, Environment string
	Supplier, Number, Error, DatedFrom, DatedTo, Direction                            string
}

func readSearch(query url.Values) searchForm {
	return searchForm{Text: query.Get("q"), Status: query.Get("status"), Stage: query.Get("stage"),
		Country: query.Get("country"), Client: query.Get("client"),
		Kind: query.Get("kind"), Amount: query.Get("amount"), From: query.Get("from"), To: query.Get("to"),
		Reason: query.Get("reason"), Environment: query.Get("environment"),
		Supplier: query.Get("supplier"), Number: query.Get("number"), Error: query.Get("error"),
		DatedFrom: query.Get("dated_from"), DatedTo: query.Get("dated_to"), Direction: query.Get("direction")}
}

// Narrowed reports whether anything was asked for.
func (f searchForm) Narrowed() bool { return f != searchForm{} }

// More reports whether a filter is set that is folded away otherwise.
func (f searchForm) More() bool {
	return f.Number+f.Kind+f.Stage+f.Error+f.Environment+f.Amount+f.DatedFrom+f.DatedTo != ""
}

type transactionsBody struct {
	Form      searchForm
	Page      ledger.Page
	Faults    []fault.Fault
	Countries []countryOption
	Clients   []account.Client
	Lines     []ledger.Line
	Views     []view
	Reasons   []ledger.Meaning
	Errors    []fault.CodeMeaning
	Order     order
	NextAt    string
	ExportAt  string
	Here      string // the address of the list, without its place in it
	Query     string // of Here; "" for the whole list
	Acts      []string
	First     bool
}

type countryOption struct{ Code, Name string }

func statusOptions() []filing.Status {
	return []filing.Status{filing.Processing, filing.Success, filing.Failure}
}

func stageOptions() []filing.Stage {
	return []filing.Stage{filing.Received, filing.Prepared, filing.Sent, filing.Pending, filing.Waiting, filing.Blocked,
		filing.Quarantined}
}

func kindOptions() []transaction.Kind {
	return []transaction.Kind{transaction.Invoice, transaction.Adjustment, transaction.Credit, transaction.Cancellation,
		transaction.Backfill, transaction.PaymentReport, transaction.Period, transaction.Response}
}

// lineColumns are those by which the list of transactions can be sorted.
var lineColumns = columns[ledger.Line]{
	"number": func(a, b ledger.Line) int {
		return alphabetical(cmp.Or(a.Number, a.TransactionID), cmp.Or(b.Number, b.TransactionID))
	},
	"status": func(a, b ledger.Line) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason))
	},
	"total": func(a, b ledger.Line) int {
		known := func(l ledger.Line) int64 {
			if l.Total == nil {
				return math.MinInt64
			}
			return *l.Total
		}
		return cmp.Compare(known(a), known(b))
	},
	"customer": func(a, b ledger.Line) int { return alphabetical(a.Customer, b.Customer) },
	"supplier": func(a, b ledger.Line) int { return alphabetical(a.Supplier, b.Supplier) },
	"client":   func(a, b ledger.Line) int { return alphabetical(a.ClientID, b.ClientID) },
	"dated":    func(a, b ledger.Line) int { return a.DatedAt.Compare(b.DatedAt) },
	"accepted": func(a, b ledger.Line) int { return a.AcceptedAt.Compare(b.AcceptedAt) },
}

// transactions is the search. Everything it depends on is in the address, so a
// search can be kept and passed on.
func (c *salesPages) transactions(v *request) (page, error) {
	query := v.r.URL.Query()
	f := readSearch(query)
	body := &transactionsBody{Form: f, First: query.Get("after") == "", Views: c.views(v), Reasons: ledger.Meanings(),
		Errors: fault.Codes(), Order: readOrder(v, Root+"/transactions"), Acts: []string{actRetry, actRedeliver}}
	body.Here, body.Query = body.Order.here(), body.Order.query.Encode()
	body.ExportAt = Root + "/transactions.csv?" + body.Query
	p := page{Title: "Transactions", Place: "Transactions", Client: f.Client, Body: body}
	var err error
	if body.Clients, err = c.dir.clientList(v); err != nil {
		return p, err
	}
	for _, code := range c.cfg.Atlas.Codes() {
		body.Countries = append(body.Countries, countryOption{code, c.dir.countryName(code)})
	}
	q, faults := f.query()
	if body.Faults = faults; len(faults) > 0 {
		return p, nil
	}
	lines, after, err := inOrder(&body.Order, query.Get("after"), lineColumns,
		func(after string, limit int) ([]ledger.Line, string, error) {
			q.After, q.Limit = after, limit
			var err error
			if body.Page, err = c.cfg.Ledger.Search(v.ctx, q); err != nil {
				return nil, "", err
			}
			lines, err := c.cfg.Ledger.Lines(v.ctx, body.Page.List)
			return lines, body.Page.Next, err
		})
	if fault.KindOf(err) == fault.Invalid {
		body.Faults = faultsOf(err)
		return p, nil
	}
	body.Lines, body.NextAt = lines, body.Order.next(after)
	return p, err
}

// query reads the form; a field that cannot be understood is told, not ignored.
func (f searchForm) query() (q ledger.Query, faults []fault.Fault) {
	q = ledger.Query{Text: strings.TrimSpace(f.Text), Status: filing.Status(f.Status), Stage: filing.Stage(f.Stage),
		Country:  strings.ToUpper(f.Country),
		ClientID: f.Client, Kind: transaction.Kind(f.Kind), Reason: fault.Code(f.Reason),
		Supplier: f.Supplier, Number: f.Number, Error: fault.Code(f.Error), Direction: ledger.Direction(f.Direction)}
	switch f.Environment {
	case "":
	case "live", "test":
		q.Live = new(f.Environment == "live")
	default:
		faults = append(faults, fault.At("environment", fault.FieldNotValid, "must be live or test"))
	}
	if f.Amount != "" {
		amount, err := minorUnits(f.Amount)
		if err != nil {
			faults = append(faults, fault.At("amount", fault.FieldNotValid,
				"must be a number such as 227.10; write all decimals of the currency"))
		}
		q.Amount = &amount
	}
	var wrong []fault.Fault
	q.From, q.To, wrong = stretch(f.From, f.To, "")
	faults = append(faults, wrong...)
	q.DatedFrom, q.DatedTo, wrong = stretch(f.DatedFrom, f.DatedTo, "dated_")
	return q, append(faults, wrong...)
}

// stretch reads two fields of a form: from inclusive, to exclusive, where a day is
// meant as a whole.
func stretch(from, to, prefix string) (begin, end time.Time, faults []fault.Fault) {
	const how = "must be a date or a time, such as 2026-11-15 or 2026-11-15T08:30"
	var err error
	if begin, err = readMoment(from); err != nil {
		faults = append(faults, fault.At(prefix+"from", fault.FieldNotValid, how))
	}
	if end, err = readMoment(to); err != nil {
		faults = append(faults, fault.At(prefix+"to", fault.FieldNotValid, how))
	} else if len(to) == len(time.DateOnly) {
		end = end.AddDate(0, 0, 1)
	}
	return begin, end, faults
}

// minorUnits reads an amount as printed, 1 227.10 or 1227,10, into minor units:
// the digits count, whatever the currency.
func minorUnits(text string) (int64, error) {
	text = strings.TrimLeft(strings.TrimSpace(text), "-−")
	digits := strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\u00a0', '\u202f', '.', ',', '\'':
			return -1
		}
		return r
	}, text)
	n, err := strconv.ParseUint(digits, 10, 63) // a sign behind a separator is no amount
	return int64(n), err
}

func readMoment(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var err error
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04:05",
		time.RFC3339} {
		var t time.Time
		if t, err = time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, err
}

func faultsOf(err error) []fault.Fault {
	told := asFault(err)
	if told == nil {
		return nil
	}
	if len(told.Faults) > 0 {
		return told.Faults
	}
	return []fault.Fault{{Message: told.Message}}
}

type transactionBody struct {
	*ledger.Life
	Client   string
	Supplier string
	Events   []eventWithTries
	Country  string
	Alike    int    // others that wait for the same reason
	Paper    string // resource of the document that is shown beside the timeline
	Now      time.Time
}

type eventWithTries struct {
	webhook.EventRow
	List  []webhook.Try
	Probe time.Time // see Console.probeOf
}

// explained is an error or warning with what its code means.
type explained struct {
	fault.Fault
	Meaning, Do string
	Told        bool // the headline says it
}

// Errors are what the client was told, with what the guide says about each code.
// Why it waits is not among them: the lines above say that.
func (b transactionBody) Errors() (list []explained) {
	if b.Result == nil {
		return nil
	}
	headline := b.Headline()
	for _, f := range b.Result.Errors {
		if b.Wait != nil && f.Code == fault.Code(b.Wait.Why) {
			continue
		}
		e := explained{Fault: f, Told: strings.Contains(headline, strings.TrimPrefix(f.Message, f.Field+": "))}
		for _, m := range fault.Codes() {
			if m.Code == f.Code {
				e.Meaning, e.Do = m.Meaning, m.Action
			}
		}
		list = append(list, e)
	}
	return list
}

// Deadline is when the law wants the document filed; zero where it names no day,
// or where that was done.
func (b transactionBody) Deadline() (at time.Time) {
	if b.Result == nil || b.Result.LatestBy == nil || b.Status == filing.Success {
		return at
	}
	at, err := time.Parse(time.RFC3339, *b.Result.LatestBy)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Headline is the answer to "why is it stuck", or to "what became of it".
func (b transactionBody) Headline() string {
	switch {
	case b.Wait != nil && b.Wait.Text != "":
		return b.Wait.Text
	case b.Status == filing.Success && b.remarked():
		return "Registered, with a remark of the authority"
	case b.Status == filing.Success && b.Received:
		return "Received and read" + b.took() + "."
	case b.Status == filing.Success:
		return "Succeeded" + b.took() + "."
	case b.Status == filing.Failure:
		return b.failure()
	}
	return "Being processed."
}

// remarked reports whether the authority took the document and found something about it.
func (b transactionBody) remarked() bool {
	return b.Result != nil && slices.ContainsFunc(b.Result.Errors, func(f fault.Fault) bool {
		return f.Code == fault.AuthorityRemark
	})
}

// failure is the reason of a failure: the first error that is no warning.
func (b transactionBody) failure() string {
	if b.Result == nil {
		return "Failed" + b.took()
	}
	for _, f := range b.Result.Errors {
		switch text := strings.TrimPrefix(f.Message, f.Field+": "); f.Type {
		case fault.Warning:
		case fault.General:
			return "Failed: " + text
		default:
			return "Rejected: " + text
		}
	}
	return "Failed" + b.took()
}

func (b transactionBody) took() string {
	if b.SettledAt.IsZero() {
		return ""
	}
	return " after " + span(b.SettledAt.Sub(b.AcceptedAt))
}

// BadgeClass is the colour of the headline.
func (b transactionBody) BadgeClass() string { return badgeClass(b.Status) }

// timelineMoment is a line of the timeline.
type timelineMoment struct {
	ledger.Moment
	Date       string // where a new day begins
	BadgeClass string
	Times      int       // how often the same happened in a row
	Last       time.Time // when the last of them did
}

// sourcePort is our own port in an error of the network, another one each time.
var sourcePort = regexp.MustCompile(`:\d+->`)

// Timeline is what happened. Calls that fail alike, one after the other, are one
// line with their number: of a night of retries the first and the last count.
func (b transactionBody) Timeline() (lines []timelineMoment) {
	run := map[string]int{} // lines of the calls that have failed since something else happened
	for _, m := range b.Moments {
		line := timelineMoment{Moment: m, BadgeClass: b.momentBadgeClass(m), Times: 1, Last: m.At}
		if m.What == "next" {
			line.Text = "next attempt"
		}
		key := sourcePort.ReplaceAllString(m.Text, "->")
		if m.Exchange == nil || line.BadgeClass != "bad" && line.BadgeClass != "busy" {
			clear(run)
		} else if i, before := run[key]; before {
			lines[i].Times, lines[i].Last, lines[i].Exchange = lines[i].Times+1, m.At, m.Exchange
			continue
		} else {
			run[key] = len(lines)
		}
		lines = append(lines, line)
	}
	day := ""
	for i := range lines {
		if date := lines[i].At.UTC().Format("2 January 2006"); date != day {
			lines[i].Date, day = date, date
		}
	}
	return lines
}

func (b transactionBody) momentBadgeClass(m ledger.Moment) string {
	switch {
	case m.What == "settled":
		return badgeClass(b.Status)
	case m.What == "next":
		return "busy next"
	case m.Severity == country.Problem:
		return "bad"
	case m.Severity == country.Info, m.What == "accepted":
		return "good"
	case m.Exchange != nil:
		return callBadgeClass(*m.Exchange)
	}
	return ""
}

// callBadgeClass is good only where the authority said yes: an answer may be a no.
func callBadgeClass(x ledger.Exchange) string {
	switch {
	case !x.Answered, x.Refused():
		return "bad"
	case x.Decision == string(country.Accepted):
		return "good"
	case x.Decision == string(country.Pending), x.Decision == string(country.NotTaken):
		return "busy"
	}
	return ""
}

func (c *salesPages) transaction(v *request) (page, error) {
	life, err := c.cfg.Ledger.Life(v.ctx, v.r.PathValue("operation"))
	if err != nil {
		return page{}, err
	}
	body := &transactionBody{Life: life, Client: life.ClientID, Country: c.dir.countryName(life.Country), Now: c.now()}
	for _, d := range life.Documents {
		if d.Kind == shownKind && d.ResourceID == v.r.URL.Query().Get("paper") {
			body.Paper = d.ResourceID
		}
	}
	if body.Alike, err = c.alike(v, life); err != nil {
		return page{}, err
	}
	if profile, err := c.cfg.Accounts.Profile(v.ctx, life.ClientID); err == nil {
		body.Client = cmp.Or(profile.Config.DisplayName, life.ClientID)
	}
	err = c.cfg.DB.Read(v.ctx, func(r db.Reader) error {
		supplier, err := c.cfg.Companies.Supplier(r, life.ClientID, life.SupplierID)
		if fault.KindOf(err) == fault.NotFound {
			return nil // an unknown supplier is a reason to look at a transaction
		}
		body.Supplier = supplier.LegalName
		return err
	})
	if err != nil {
		return page{}, err
	}
	for _, e := range life.Events {
		tries, err := c.cfg.Hooks.Tries(v.ctx, webhook.AnyClient, e.WebhookID)
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return page{}, err
		}
		body.Events = append(body.Events, eventWithTries{e, tries, c.dir.probeOf(v, life.ClientID, e.EventType)})
	}
	title := cmp.Or(life.Number, life.TransactionID, life.OperationID)
	if life.Received && life.Result != nil && life.Result.Supplier.ResultParty != nil {
		body.Supplier = life.Result.Supplier.LegalName
	}
	return page{Title: title, Place: "Transactions", Crumbs: []crumb{{"Transactions", Root + "/transactions"}},
		Client: life.ClientID, Body: body}, nil
}

// retry makes an operation due now, in one commit with its entry in the log.
func (c *salesPages) retry(v *request) (string, error) {
	id := v.r.PathValue("operation")
	_, err := c.cfg.Transactions.Retry(v.ctx, id, func(tx *db.Tx, before, after filing.OperationState) error {
		return c.cfg.Operators.RecordIn(tx, v.by(),
			operator.Act{Action: "transaction.retried", Subject: id, ClientID: before.ClientID, Before: retryState(before),
				After: retryState(after)})
	})
	if err != nil {
		return "", err
	}
	return Root + "/transactions/" + url.PathEscape(id) + "?notice=retried", nil
}

// decide takes an operator's word on a transaction that may be registered since
// before a backup was restored, in one commit with its entry in the log.
func (c *salesPages) decide(v *request) (string, error) {
	id := v.r.PathValue("operation")
	said := recovery.Word{Number: strings.TrimSpace(v.r.PostFormValue("number")), ID: strings.TrimSpace(v.r.PostFormValue("id"))}
	switch v.r.PostFormValue("decision") {
	case "adopt":
		said.Adopt = true
	case "file":
		said = recovery.Word{}
	default:
		return "", fault.New(fault.Invalid, "Say whether the authority holds it already, or it is to be filed.")
	}
	err := c.cfg.Recovery.Decide(v.ctx, id, said, func(tx *db.Tx, h recovery.Held) error {
		return c.cfg.Operators.RecordIn(tx, v.by(),
			operator.Act{Action: "restored.decided", Subject: id, ClientID: h.ClientID, After: said})
	})
	if err != nil {
		return "", err
	}
	return Root + "/transactions/" + url.PathEscape(id) + "?notice=decided", nil
}

// retryState is the part of an operation that a retry changes.
func retryState(s filing.OperationState) map[string]any {
	return map[string]any{"stage": s.Stage, "tries": s.Tries, "due_at": result.Stamp(s.DueAt)}
}

// fetchStored answers what was made for the authority or what the client sent,
// byte for byte and also of a transaction that failed; who took it is recorded.
func (c *salesPages) fetchStored(v *request) error {
	id, what := v.r.PathValue("operation"), v.r.PathValue("what")
	life, err := c.cfg.Ledger.Life(v.ctx, id)
	if err != nil {
		return err
	}
	var content []byte
	ending := ".json"
	switch {
	case what == "request" && !life.Received:
		content = life.Body
	case what == "filing" && life.Filing != nil:
		content = life.Filing.Report
		if strings.EqualFold(life.Filing.Format, "XML") {
			ending = ".xml"
		}
	default:
		return fault.New(fault.NotFound, "This transaction has no such file.")
	}
	err = c.cfg.Operators.Record(v.ctx, v.by(),
		operator.Act{Action: "document.fetched", Subject: id, ClientID: life.ClientID, After: map[string]any{"kind": what}})
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/octet-stream")
	v.w.Header().Set("Content-Disposition", `attachment; filename="`+id+"-"+what+ending+`"`)
	v.w.Write(content)
	return nil
}

// shownKind is the only kind of document that a page of ours shows: we made it. What a client or a stranger made is
// downloaded.
const shownKind = "VISUAL"

// showPaper answers a PDF to be shown beside the timeline.
func (c *salesPages) showPaper(v *request) error {
	return c.document(v, func(h http.Header) {
		h.Set("Content-Disposition", "inline")
		h.Set("Content-Security-Policy", documentPolicy)
		h.Set("X-Frame-Options", "SAMEORIGIN")
	})
}

// fetchDocument answers a document as a download: never part of a page of ours.
func (c *salesPages) fetchDocument(v *request) error { return c.document(v, func(http.Header) {}) }

// document answers a document of an operation, and records who read it:
// documents hold customers' names and addresses.
func (c *salesPages) document(v *request, adapt func(http.Header)) error {
	id, resource := v.r.PathValue("operation"), v.r.PathValue("resource")
	life, err := c.cfg.Ledger.Life(v.ctx, id)
	if err != nil {
		return err
	}
	for _, a := range life.Documents {
		if a.ResourceID != resource {
			continue
		}
		content, err := c.cfg.Documents.Open(v.ctx,
			files.Request{ResourceID: resource, Format: strings.ToLower(a.Type), ClientID: life.ClientID})
		if err != nil {
			return err
		}
		defer func() { _ = content.Close() }() // it only reads
		err = c.cfg.Operators.Record(v.ctx, v.by(),
			operator.Act{Action: "document.fetched", Subject: id, ClientID: life.ClientID,
				After: map[string]any{"resource_id": resource, "kind": a.Kind, "type": a.Type}})
		if err != nil {
			return err
		}
		maps.Copy(v.w.Header(), files.Headers(content))
		if a.Kind == shownKind {
			adapt(v.w.Header())
		}
		_, _ = io.Copy(v.w, content) // the reader left; the length tells that it is cut
		return nil
	}
	return fault.New(fault.NotFound, "This transaction has no such document.")
}
