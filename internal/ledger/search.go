package ledger

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/operation"
	"tributary/internal/transaction"
)

// The length of a page of a search.
const (
	searchDefault = 50
	searchMax     = 200
	textMax       = 256
	openMax       = 5000 // unsettled operations that are sorted instead of walked past
	companiesMax  = 20   // companies that one text may mean
	piecesMax     = 2000 // operations that a piece of a text may mean
)

// windows are how many candidates are looked at in one page, a few first: most
// pages are full at once, and no query may take for ever.
var windows = []int{256, 768, 2048}

// Query is what an operator looks for, over all clients. Zero members do not narrow.
type Query struct {
	// Text is any id, number, tax number, authority's id or total, or the
	// beginning of a word of one, or of a customer's or supplier's name. Case,
	// accents, blanks and punctuation do not matter. Of a supplier all operations
	// are found.
	Text     string
	Status   filing.Status
	Stage    filing.Stage
	Country  string // upper case
	ClientID string
	Kind     transaction.Kind
	Live     *bool      // nil: live and test
	Reason   fault.Code // why it waits
	Error    fault.Code // among what its result says
	Amount   *int64     // the total; its sign does not matter
	Number   string     // the beginning of its number; case does not matter
	// Supplier is an id, external_id or tax number as a whole, or the beginning of
	// a word of the name.
	Supplier           string
	From, To           time.Time // of acceptance; From inclusive, To exclusive
	DatedFrom, DatedTo time.Time // of the document's own date; the same
	Limit              int       // default 50, at most 200
	After              string    // Page.Next
	Direction          Direction // "": Sent

	suppliers []string // whom Supplier means
}

// Page is a part of what was found, newest first.
type Page struct {
	List []Summary
	// Next is where to go on, or "". A search stops after a bounded stretch, so
	// there may be a next page although this one is short or empty.
	Next       string
	SearchedTo time.Time // how far back this page went; zero at the end
	Cut        bool      // the text is a piece of so many that only some are here: more of it narrows
	IndexedTo  time.Time // see Service.IndexedTo
}

// Summary is an operation in a list.
type Summary struct {
	filing.OperationState
	TransactionID                string
	Country, Number              string
	SupplierID, ReferenceID      string
	Live                         bool
	Kind                         transaction.Kind
	UseCase                      country.UseCase
	Attempt                      int64
	AcceptedAt, DatedAt          time.Time
	StartedAt, SentAt, SettledAt time.Time     // zero: not, or not yet
	Doubt                        string        // code of a warning
	Said                         []fault.Fault // in which words, where the authority had its own for this one
	SettledBy                    string        // the attempt that succeeded in this one's place
	Received                     bool          // somebody else's document: SupplierID is the company of the client that sent it, if one did
}

const summaryColumns = `o.operation_id, o.transaction_id, o.client_id, o.country, o.number, o.supplier_id, coalesce(o.reference_id, ''), o.live, o.kind, o.use_case,
	o.stage, o.status, o.attempt, o.tries, o.crashes, o.accepted_at, o.dated_at, o.started_at, o.sent_at, o.settled_at, o.due_at, o.doubts, o.said, coalesce(o.settled_by, ''), o.lane`

func scanSummary(scan func(...any) error) (s Summary, err error) {
	var accepted, dated int64
	var said *string
	err = scan(&s.OperationID, &s.TransactionID, &s.ClientID, &s.Country, &s.Number, &s.SupplierID, &s.ReferenceID,
		&s.Live, &s.Kind, &s.UseCase,
		&s.Stage, &s.Status, &s.Attempt, &s.Tries, &s.Crashes, &accepted, &dated,
		db.NullInstant(&s.StartedAt), db.NullInstant(&s.SentAt), db.NullInstant(&s.SettledAt), db.NullInstant(&s.DueAt),
		&s.Doubt, &said, &s.SettledBy, &s.Lane)
	s.Said = operation.ReadFaults(said)
	s.AcceptedAt, s.DatedAt = db.FromMicros(accepted), db.FromMicros(dated)
	return s, err
}

func (q *Query) check() error {
	var wrong []fault.Fault
	if q.Limit == 0 {
		q.Limit = searchDefault
	}
	if q.Limit < 1 || q.Limit > searchMax {
		wrong = append(wrong, fault.At("limit", fault.FieldNotValid, "must be 1 to %d", searchMax))
	}
	for name, text := range map[string]*string{"number": &q.Number, "supplier": &q.Supplier} {
		if *text = strings.TrimSpace(*text); len(*text) > textMax {
			wrong = append(wrong, fault.At(name, fault.FieldNotValid, "must have at most %d bytes", textMax))
		}
	}
	if q.Text = strings.TrimSpace(q.Text); len(q.Text) > textMax {
		wrong = append(wrong, fault.At("text", fault.FieldNotValid, "must have at most %d bytes", textMax))
	} else if q.Text != "" && termOf(q.Text) == "" {
		wrong = append(wrong, fault.At("text", fault.FieldNotValid, "must have a letter or a digit"))
	}
	switch q.Status {
	case "", filing.Processing, filing.Success, filing.Failure:
	default:
		wrong = append(wrong, fault.At("status", fault.FieldNotValid, "must be %s, %s or %s", filing.Processing,
			filing.Success, filing.Failure))
	}
	switch q.Direction {
	case "", Sent, Received, All:
	default:
		wrong = append(wrong, fault.At("direction", fault.FieldNotValid, "must be %s, %s or %s", Sent, Received, All))
	}
	if q.After != "" {
		if _, ok := operationIn(q.After); !ok {
			wrong = append(wrong, fault.At("after", fault.FieldNotValid, "is not a valid cursor"))
		}
	}
	if len(wrong) > 0 {
		return fault.New(fault.Invalid, "invalid search").With(wrong...)
	}
	return nil
}

// Search finds operations of all clients, newest first. It reads candidates
// from the narrowest index the query allows and looks at a bounded number of
// them, so that no search scans the whole store.
func (s *Ledger) Search(ctx context.Context, q Query) (page Page, err error) {
	if err := q.check(); err != nil {
		return page, err
	}
	err = s.db.Read(ctx, func(r db.Reader) error {
		if err := s.db.PlanByValue(r); err != nil {
			return err
		}
		switch q.Direction {
		case Received:
			page, err = s.searchReceived(r, q)
		case All:
			page, err = s.searchAll(r, q)
		default:
			page, err = s.search(r, q)
		}
		return err
	})
	if err != nil {
		return Page{}, fmt.Errorf("search: %w", err)
	}
	return page, nil
}

func (s *Ledger) search(r db.Reader, q Query) (page Page, err error) {
	if page.IndexedTo, err = s.indexedTo(r); err != nil {
		return page, err
	}
	q.suppliers, err = s.suppliersOf(r, q.Supplier)
	if err != nil || q.Supplier != "" && len(q.suppliers) == 0 {
		return page, err
	}
	sources, err := s.sources(r, q)
	if err != nil {
		return page, err
	}
	for _, src := range sources {
		page.Cut = page.Cut || src.cut
	}
	span := span{after: q.After}
	if !q.From.IsZero() {
		span.from = operation.IDAt(q.From)
	}
	if !q.To.IsZero() {
		span.before = operation.IDAt(q.To)
	}
	for _, window := range windows {
		ids, err := candidates(r, sources, span, window)
		if err != nil {
			return page, err
		}
		found, err := s.pick(r, ids, q, q.Limit-len(page.List)+1)
		if err != nil {
			return page, err
		}
		page.List = append(page.List, found...)
		if len(page.List) > q.Limit {
			page.List = page.List[:q.Limit]
			page.Next = page.List[q.Limit-1].OperationID
			break
		}
		if len(ids) < window {
			return page, nil // the end
		}
		span.after = ids[len(ids)-1]
		page.Next = span.after
	}
	page.SearchedTo = madeAt(page.Next)
	return page, nil
}

// span is the part of the ids that is looked at, newest first.
type span struct{ from, before, after string }

// source gives candidates by descending id: an index, or a list made before.
type source struct {
	where string // of a table, its parameters from $1 on
	table string
	args  []any
	list  []string // instead; sorted downwards
	walk  walk     // instead
	cut   bool     // the list is not all there is
}

// walk asks for the newest ids of a stretch of an index.
type walk interface {
	text(sp span, window int) (string, []any)
}

// sources are where candidates come from: the narrowest index first.
func (s *Ledger) sources(r db.Reader, q Query) ([]source, error) {
	term := func(t string) source {
		return source{table: "operation_terms", where: "term = $1", args: []any{t}}
	}
	switch {
	case q.Text != "":
		return s.textSources(r, q.Text, term)
	case termOf(q.Number) != "":
		pieces, _, err := s.pieceSources(r, q.Number)
		return append(pieces, term(termOf(q.Number))), err
	case q.Amount != nil:
		return []source{term(amountTerm(*q.Amount))}, nil
	case q.ClientID != "" && (q.Status == filing.Processing || q.Reason != ""):
		open, err := s.openOf(r, q.ClientID)
		return []source{open}, err
	case q.ClientID != "" && q.Status == filing.Failure:
		return []source{s.along("status = 'FAILURE'", "client_id", q.ClientID)}, nil
	case q.Status == filing.Processing, q.Reason != "":
		if open, all, err := openOperations(r); err != nil || all {
			return []source{{list: open}}, err
		}
	case q.Status == filing.Failure:
		return []source{{table: "operations", where: "status = 'FAILURE'"}}, nil
	}
	switch {
	case len(q.suppliers) > 0:
		var list []source
		for _, id := range q.suppliers {
			list = append(list, term(supplierSign+id))
		}
		return notYetIndexed(r, list...)
	case q.ClientID != "":
		return []source{s.along("", "client_id", q.ClientID)}, nil
	case q.Country != "":
		return notYetIndexed(r, term(countrySign+q.Country))
	}
	return []source{{table: "operations", where: "1 = 1"}}, nil
}

// notYetIndexed adds what terms do not know yet.
func notYetIndexed(r db.Reader, list ...source) ([]source, error) {
	position, err := readCursor(r, cursorNew)
	return append(list, source{table: "operations", where: "operation_id > $1", args: []any{position}}), err
}

// suppliersOf are the companies that a text may mean, at most [companiesMax].
func (s *Ledger) suppliersOf(r db.Reader, text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	list, err := s.cfg.Companies.Named(r, text, companiesMax)
	if err != nil {
		return nil, err
	}
	more, err := namesakes(r, text, companiesMax)
	if err != nil {
		return nil, err
	}
	if list = append(list, more...); len(text) == 32 {
		list = append(list, strings.ToLower(text)) // one that was never onboarded
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// textSources are everything a text may mean.
func (s *Ledger) textSources(r db.Reader, text string, term func(string) source) ([]source, error) {
	list := []source{term(termOf(text))}
	if plain := withoutCountry(termOf(text)); plain != "" {
		list = append(list, term(plain)) // a tax number with the letters of its country
	}
	var direct []string
	if id, ok := operationIn(text); ok {
		direct = append(direct, id)
	}
	resource, err := s.cfg.Hooks.ResourceOf(r, strings.ToLower(text))
	if err != nil {
		return nil, err
	}
	if resource != "" {
		direct = append(direct, resource)
	}
	slices.SortFunc(direct, func(a, b string) int { return strings.Compare(b, a) })
	list = append(list, source{list: direct})
	companies, err := s.cfg.Companies.Named(r, text, companiesMax)
	if err != nil {
		return nil, err
	}
	pieces, more, err := s.pieceSources(r, text)
	if err != nil {
		return nil, err
	}
	list, companies = append(list, pieces...), append(companies, more...)
	slices.Sort(companies)
	companies = slices.Compact(companies)
	if id := strings.ToLower(text); len(id) == 32 && !slices.Contains(companies, id) {
		companies = append(companies, id) // of a supplier that was never onboarded
	}
	for _, id := range companies {
		list = append(list, term(supplierSign+id))
	}
	return list, nil
}

// likeLiteral takes the meaning from the signs of LIKE.
var likeLiteral = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// openOperations lists what is not settled, newest first; all is false when
// there is too much of it.
func openOperations(r db.Reader) (ids []string, all bool, err error) {
	for _, text := range []string{openDueSQL, openIdleSQL} {
		some, err := collectIDs(r, text, openMax+1)
		if err != nil {
			return nil, false, fmt.Errorf("list open operations: %w", err)
		}
		ids = append(ids, some...)
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
	return ids, len(ids) <= openMax, nil
}

// The orders are those of the indexes: without one a planner may read the table.
const (
	openDueSQL  = "SELECT operation_id FROM operations WHERE due_at IS NOT NULL ORDER BY due_at LIMIT $1"
	openIdleSQL = "SELECT operation_id FROM operations WHERE status = 'PROCESSING' AND due_at IS NULL ORDER BY operation_id LIMIT $1"
)

func collectIDs(r db.Reader, sql string, args ...any) ([]string, error) {
	return db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) }, sql, args...)
}

// candidates merges what the sources have next, at most window of it.
func candidates(r db.Reader, sources []source, sp span, window int) (ids []string, err error) {
	for _, src := range sources {
		some, err := src.next(r, sp, window)
		if err != nil {
			return nil, fmt.Errorf("read candidates: %w", err)
		}
		ids = append(ids, some...)
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
	ids = slices.Compact(ids)
	return ids[:min(len(ids), window)], nil
}

func (src source) next(r db.Reader, sp span, window int) (ids []string, err error) {
	if src.table == "" && src.walk == nil {
		for _, id := range src.list {
			if (sp.after == "" || id < sp.after) && (sp.before == "" || id < sp.before) && id >= sp.from && len(ids) < window {
				ids = append(ids, id)
			}
		}
		return ids, nil
	}
	text, args := src.text(sp, window)
	return collectIDs(r, text, args...)
}

// text is the query of a source; its plan is asserted in the tests.
func (src source) text(sp span, window int) (string, []any) {
	if src.walk != nil {
		return src.walk.text(sp, window)
	}
	where, args := src.where, slices.Clone(src.args)
	for _, bound := range [][2]string{{"<", sp.after}, {"<", sp.before}, {">=", sp.from}} {
		if bound[1] != "" {
			args = append(args, bound[1])
			where += " AND operation_id " + bound[0] + " $" + strconv.Itoa(len(args))
		}
	}
	return "SELECT operation_id FROM " + src.table + " WHERE " + where + " ORDER BY operation_id DESC LIMIT " +
		strconv.Itoa(window), args
}

// pick reads those candidates that the rest of the query allows.
func (s *Ledger) pick(r db.Reader, ids []string, q Query, limit int) ([]Summary, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	text, args := s.pickText(ids, q, limit)
	list, err := db.Collect(r, scanSummary, text, args...)
	if err != nil {
		return nil, fmt.Errorf("read operations: %w", err)
	}
	return list, nil
}

func (s *Ledger) pickText(ids []string, q Query, limit int) (string, []any) {
	where, args := s.db.In("o.operation_id", "$1"), []any{db.Strings(ids)}
	add := func(condition string, value any) {
		args = append(args, value)
		where += " AND " + strings.ReplaceAll(condition, "?", "$"+strconv.Itoa(len(args)))
	}
	for _, narrow := range [][2]string{
		{"o.status = ?", string(q.Status)}, {"o.stage = ?", string(q.Stage)}, {"o.country = ?", q.Country},
		{"o.client_id = ?", q.ClientID}, {"o.kind = ?", string(q.Kind)},
	} {
		if narrow[1] != "" {
			add(narrow[0], narrow[1])
		}
	}
	if q.Live != nil {
		add("o.live = ?", *q.Live)
	}
	if len(q.suppliers) > 0 {
		args = append(args, db.Strings(q.suppliers))
		where += " AND " + s.db.In("o.supplier_id", "$"+strconv.Itoa(len(args)))
	}
	if q.Number != "" {
		add("lower(o.number) LIKE ? ESCAPE '\\'", likeLiteral.Replace(strings.ToLower(q.Number))+"%")
	}
	if q.Error != "" {
		add("o.result LIKE ? ESCAPE '\\'", `%"code":"`+likeLiteral.Replace(string(q.Error))+`"%`)
	}
	if !q.DatedFrom.IsZero() {
		add("o.dated_at >= ?", db.Micros(q.DatedFrom))
	}
	if !q.DatedTo.IsZero() {
		add("o.dated_at < ?", db.Micros(q.DatedTo))
	}
	if q.Amount != nil {
		add("EXISTS (SELECT 1 FROM operation_terms t WHERE t.term = ? AND t.operation_id = o.operation_id)", amountTerm(*q.Amount))
	}
	from := "operations o"
	if q.Reason != "" {
		from += " LEFT JOIN lanes l ON l.lane = o.lane"
		args = append(args, db.Micros(s.db.Now()))
		now := "$" + strconv.Itoa(len(args))
		where += " AND o.status = 'PROCESSING'"
		add(reasonSQL("o", now)+" = ?", string(q.Reason))
	}
	return "SELECT " + summaryColumns + " FROM " + from + " WHERE " + where + " ORDER BY o.operation_id DESC LIMIT " +
		strconv.Itoa(limit), args
}
