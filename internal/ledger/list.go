package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/result"
)

// HistoryEntry is one attempt of a transaction.
type HistoryEntry struct {
	OperationID string        `json:"operation_id"`
	Status      filing.Status `json:"status"`
}

// History lists the attempts of a transaction, oldest first; empty when it is unknown.
func (s *Ledger) History(ctx context.Context, scope, transactionID string) (history []HistoryEntry, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		history, err = db.Collect(r, func(scan func(...any) error) (h HistoryEntry, err error) {
			return h, scan(&h.OperationID, &h.Status)
		},
			"SELECT operation_id, status FROM operations WHERE client_id = $1 AND transaction_id = $2 ORDER BY attempt", scope,
			transactionID)
		return err
	})
	return history, err
}

// Filter narrows a list. Zero members do not narrow.
type Filter struct {
	Direction  Direction
	Status     filing.Status
	Country    string // upper case
	SupplierID string
	Number     string
	From, To   time.Time // of transaction_date, both inclusive
	Limit      int
	After      string // operation id of the last entry seen
}

// pageBytesMax bounds what is read for one page: results have up to 5,000 lines,
// and a hundred of them would hold a node's memory for one caller. The row that
// passes it is the page's last.
const pageBytesMax = 4 << 20

// headMax is what a list reads of a stored result: its row has some three KiB.
const headMax = 16 << 10

// listLooks are how many candidates one page of a list looks at, in lengths of
// itself. Most pages are full after the first: filters have an index, and only
// what several of them leave out together is walked past.
var listLooks = []int{1, 8, 64}

// List answers operations, newest accepted first, and where to go on. A page may
// be shorter than its limit where documents are large, and where most of what one
// filter finds is left out by another: a page looks at a bounded number. What it
// reads is weighed first.
func (s *Ledger) List(ctx context.Context, scope string, f Filter) (list []*result.Row, next string, err error) {
	switch f.Direction {
	case Received:
		return s.listReceived(ctx, scope, f)
	case All:
		return s.listAll(ctx, scope, f)
	}
	return s.listSent(ctx, scope, f)
}

func (s *Ledger) listSent(ctx context.Context, scope string, f Filter) (list []*result.Row, next string, err error) {
	var weight int64
	read := func(weighed bool) error {
		return s.db.Read(ctx, func(r db.Reader) error {
			ids, after, err := s.listed(r, scope, f)
			if err != nil {
				return fmt.Errorf("list operations: %w", err)
			}
			next = after
			of, err := s.outcomesOf(r, scope, ids)
			if err != nil {
				return err
			}
			if n := pageOf(of); n < len(of) {
				of, next = of[:n], of[n-1].id
			}
			if weight = s.weightOf(of); weight > readSmall && !weighed {
				return nil
			}
			list, err = s.rows(r, scope, of)
			return err
		})
	}
	if err = read(false); err != nil || list != nil {
		return list, next, err
	}
	leave, err := s.reads.Enter(ctx, scope, weight)
	if err != nil {
		return nil, "", err
	}
	defer leave()
	err = read(true)
	return list, next, err
}

// outcomesOf finds results without reading them, newest first.
func (s *Ledger) outcomesOf(r db.Reader, scope string, ids []string) ([]outcome, error) {
	of, err := db.Collect(r, scanOutcome, outcomesSQL+s.db.In("o.operation_id", "$2")+" ORDER BY o.operation_id DESC", scope,
		db.Strings(ids))
	if err != nil {
		return nil, fmt.Errorf("find the results of a list: %w", err)
	}
	return of, nil
}

// pageOf is how many of them fill a page.
func pageOf(of []outcome) (n int) {
	for sum := int64(0); n < len(of) && sum <= pageBytesMax; n++ {
		sum += max(of[n].length, of[n].size)
	}
	return n
}

// weightOf is what the rows of a page cost: of settled ones their heads on PostgreSQL;
// SQLite reads a text to its end for them.
func (s *Ledger) weightOf(of []outcome) (sum int64) {
	for i := range of {
		weight := of[i].weight()
		if of[i].settled && s.db.Engine() == "postgres" {
			weight = min(weight, headMax)
		}
		sum += weight
	}
	return sum
}

// rows are what a list shows of them.
func (s *Ledger) rows(r db.Reader, scope string, of []outcome) (list []*result.Row, err error) {
	heads, err := s.headsOf(r, of)
	if err != nil {
		return nil, err
	}
	list = make([]*result.Row, 0, len(of))
	ids := make([]string, 0, len(of))
	for i := range of {
		row, err := s.row(r, scope, &of[i], heads)
		if fault.KindOf(err) == fault.Expired {
			continue // there is nothing left to list
		}
		if err != nil {
			return nil, err
		}
		list, ids = append(list, row), append(ids, string(row.TransactionID))
	}
	corrections, err := s.correctionsOfAll(r, scope, ids)
	for _, row := range list {
		row.Corrections = append(row.Corrections, corrections[string(row.TransactionID)]...)
	}
	return list, err
}

// headsOf reads the beginnings of stored results: no line of a document is sent, so
// none is read further than it stands in the way.
func (s *Ledger) headsOf(r db.Reader, of []outcome) (map[string]string, error) {
	var ids []string
	for i := range of {
		if of[i].settled && of[i].length > 0 {
			ids = append(ids, of[i].winner)
		}
	}
	heads := make(map[string]string, len(ids))
	if len(ids) == 0 {
		return heads, nil
	}
	rows, err := r.Query(fmt.Sprintf(`SELECT operation_id, CASE WHEN octet_length(result) <= %[1]d THEN result ELSE substr(result, 1, %[1]d) END
		FROM operations WHERE `, headMax)+s.db.In("operation_id", "$1"), db.Strings(ids))
	if err != nil {
		return nil, fmt.Errorf("read the results of a list: %w", err)
	}
	return heads, rows.Each(func(scan func(...any) error) error {
		var id, head string
		err := scan(&id, &head)
		heads[id] = head
		return err
	})
}

// row is one of a list, but for its corrections.
func (s *Ledger) row(r db.Reader, scope string, at *outcome, heads map[string]string) (*result.Row, error) {
	if !at.settled {
		whole, err := s.unsettled(r, scope, at.id)
		if err != nil {
			return nil, err
		}
		own := whole.Row // its lines may go
		return &own, nil
	}
	at.text.Text = heads[at.winner]
	row, _, err := at.text.Row()
	if errors.Is(err, result.ErrCut) { // it says more of itself than rows do, or is gone
		var whole *result.Result
		if whole, err = result.Stored(r, at.winner); err == nil {
			row = &whole.Row
		}
	}
	if err != nil {
		return nil, err
	}
	row.OperationID, row.Errors = at.id, append(row.Errors, at.extra...)
	return row, nil
}

// listed are the ids of one page, and the cursor of the next.
func (s *Ledger) listed(r db.Reader, scope string, f Filter) (page []string, next string, err error) {
	if err := s.db.PlanByValue(r); err != nil {
		return nil, "", err
	}
	sources, err := s.listSources(r, scope, f)
	if err != nil {
		return nil, "", err
	}
	sp := span{after: f.After}
	for _, pages := range listLooks {
		window := pages * (f.Limit + 1)
		ids, err := candidates(r, sources, sp, window)
		if err != nil || len(ids) == 0 {
			return page, "", err
		}
		text, args := f.pickText(s.db, ids, f.Limit+1-len(page))
		some, err := collectIDs(r, text, args...)
		if err != nil {
			return nil, "", err
		}
		if page = append(page, some...); len(page) > f.Limit {
			return page[:f.Limit], page[f.Limit-1], nil
		}
		if len(ids) < window {
			return page, "", nil // the end
		}
		sp.after = ids[len(ids)-1]
	}
	return page, sp.after, nil
}

// listSources are where the candidates of a list come from. What is settled has
// indexes for suppliers and days, with entries from then on: a submission pays for
// none of them. What is open is little, or the newest.
func (s *Ledger) listSources(r db.Reader, scope string, f Filter) ([]source, error) {
	var list []source
	for _, status := range []filing.Status{filing.Success, filing.Failure} {
		if f.SupplierID != "" && (f.Status == "" || f.Status == status) {
			list = append(list, s.along("status <> 'PROCESSING'", "client_id supplier_id status", scope, f.SupplierID, string(status)))
		}
	}
	dated := !f.From.IsZero() || !f.To.IsZero()
	bySupplier := f.SupplierID != ""
	if bySupplier && dated {
		// Of many, those of a few days are fewer.
		some, err := candidates(r, list, span{}, supplierFew)
		if err != nil {
			return nil, err
		}
		bySupplier = len(some) < supplierFew
	}
	switch {
	case f.Number != "":
		return []source{{walk: numbered{scope, f.Number}}}, nil
	case f.Status == filing.Processing:
		open, err := s.openOf(r, scope)
		return []source{open}, err
	case bySupplier:
	case dated || f.Country != "":
		list = []source{{walk: days{s.db.Engine(), scope, f}}}
	case f.Status == filing.Failure:
		return []source{s.along("status = 'FAILURE'", "client_id", scope)}, nil
	default:
		return []source{s.along("", "client_id", scope)}, nil
	}
	if f.Status == "" {
		open, err := s.openOf(r, scope)
		return append(list, open), err
	}
	return list, nil
}

// Lanes begin with their client, and have the collation of bytes.
const (
	openOfDueSQL  = "SELECT operation_id FROM operations WHERE due_at IS NOT NULL AND lane >= $1 AND lane < $2 ORDER BY lane LIMIT $3"
	openOfIdleSQL = "SELECT operation_id FROM operations WHERE client_id = $1 AND status = 'PROCESSING' AND due_at IS NULL ORDER BY operation_id LIMIT $2"
)

// openOf is what a client has open, sorted here: an index for it would cost every
// step of every operation an entry on PostgreSQL. Of too much of it the newest
// operations of the client are looked at: they are what is open.
func (s *Ledger) openOf(r db.Reader, scope string) (source, error) {
	due, err := collectIDs(r, openOfDueSQL, scope+"|", scope+"}", openMax+1)
	if err != nil {
		return source{}, err
	}
	idle, err := collectIDs(r, openOfIdleSQL, scope, openMax+1)
	if err != nil {
		return source{}, err
	}
	ids := append(due, idle...)
	if len(ids) > openMax {
		return s.along("", "client_id", scope), nil
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
	return source{list: ids}, nil
}

const supplierFew = 4096

// pickText asks for those of some ids that a filter allows.
func (f Filter) pickText(d *db.DB, ids []string, limit int) (string, []any) {
	where, args := d.In("operation_id", "$1"), []any{db.Strings(ids)}
	add := func(condition string, value any) {
		args = append(args, value)
		where += " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	for _, narrow := range [][2]string{
		{"status || '' =", string(f.Status)}, // not by an index of what has this status: the ids are known
		{"country =", f.Country}, {"supplier_id =", f.SupplierID},
	} {
		if narrow[1] != "" {
			add(narrow[0], narrow[1])
		}
	}
	if !f.From.IsZero() {
		add("dated_at >=", db.Micros(f.From))
	}
	if !f.To.IsZero() {
		add("dated_at <=", db.Micros(f.To))
	}
	// Documents of periods are the service's own: their sales are listed, and would count twice.
	return "SELECT operation_id FROM operations WHERE " + where +
		" AND NOT EXISTS (SELECT 1 FROM period_documents d WHERE d.operation_id = operations.operation_id)" +
		" ORDER BY operation_id DESC LIMIT " + strconv.Itoa(limit), args
}

// along walks an index whose first columns have these values, and whose last is
// the id.
func (s *Ledger) along(only, columns string, values ...any) source {
	return source{walk: along{s.db.Engine(), only, strings.Fields(columns), values}}
}

type along struct {
	engine  string
	only    string // of a partial index: its condition
	columns []string
	values  []any
}

// text names the order of the index where a planner may take another one that has
// the ids in their order as well: of a client whose operations are many, but old,
// PostgreSQL would read everybody's newer ones first.
func (a along) text(sp span, window int) (string, []any) {
	args, holders := slices.Clone(a.values), make([]string, len(a.values))
	where := []string{}
	for i, column := range a.columns {
		holders[i] = "$" + strconv.Itoa(i+1)
		if a.engine != "postgres" {
			where = append(where, column+" = "+holders[i])
		}
	}
	columns, order := "", ""
	if a.engine == "postgres" {
		columns, order = strings.Join(a.columns, ", ")+", ", strings.Join(a.columns, " DESC, ")+" DESC, "
		where = append(where, fmt.Sprintf("(%s) >= (%s)", strings.TrimSuffix(columns, ", "), strings.Join(holders, ", ")),
			fmt.Sprintf("(%s) <= (%s)", strings.TrimSuffix(columns, ", "), strings.Join(holders, ", ")))
	}
	for _, bound := range [][2]string{{"<", sp.after}, {"<", sp.before}, {">=", sp.from}} {
		if bound[1] == "" {
			continue
		}
		args = append(args, bound[1])
		holder := "$" + strconv.Itoa(len(args))
		if columns != "" {
			holder = "(" + strings.Join(holders, ", ") + ", " + holder + ")"
		}
		where = append(where, fmt.Sprintf("%s %s %s", wrapped(columns+"operation_id"), bound[0], holder))
	}
	if a.only != "" {
		where = append(where, a.only)
	}
	return "SELECT operation_id FROM operations WHERE " + strings.Join(where, " AND ") + " ORDER BY " + order + "operation_id DESC LIMIT " +
		strconv.Itoa(window), args
}

func wrapped(columns string) string {
	if strings.Contains(columns, ", ") {
		return "(" + columns + ")"
	}
	return columns
}

// numbered finds a number. Few have the same: they are sorted, so that no order
// tempts a planner to walk along everything.
type numbered struct{ scope, number string }

func (n numbered) text(sp span, window int) (string, []any) {
	where, args := "client_id = $1 AND number = $2", []any{n.scope, n.number}
	if sp.after != "" {
		where, args = where+" AND operation_id || '' < $3", append(args, sp.after)
	}
	return "SELECT operation_id FROM operations WHERE " + where + " ORDER BY operation_id || '' DESC LIMIT " + strconv.Itoa(window), args
}

// days finds what is settled by the days of its documents. Of one day, country and
// outcome the index has the ids in their order; a list of many days is merged: the
// groups with the newest ids, and the newest of each.
type days struct {
	engine string
	scope  string
	f      Filter
}

const microsOfDay = int64(24 * time.Hour / time.Microsecond)

// text jumps from group to group instead of reading them. Each jump is to the
// last id of the group before: of another outcome, another country, another day.
func (d days) text(sp span, window int) (string, []any) {
	args := []any{d.scope}
	arg := func(condition string, value any) string {
		args = append(args, value)
		return " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	var since, until, before, groups string
	if !d.f.From.IsZero() {
		since = arg("i.dated_on >=", db.Micros(d.f.From)/microsOfDay)
	}
	if !d.f.To.IsZero() {
		until = arg("i.dated_on <=", db.Micros(d.f.To)/microsOfDay)
	}
	if sp.after != "" {
		before = arg("i.operation_id <", sp.after)
	}
	if d.f.Country != "" {
		groups += arg("country =", d.f.Country)
	}
	if d.f.Status != "" {
		groups += arg("status =", string(d.f.Status))
	}
	const settled = "SELECT i.operation_id FROM operations i WHERE i.client_id = $1 AND i.status <> 'PROCESSING'"
	last := func(where, order string) string {
		return "(" + settled + where + " ORDER BY " + order + "i.operation_id DESC LIMIT 1)"
	}
	const day, byDay = " AND i.dated_on = g.dated_on", "i.dated_on DESC, i.country DESC, i.status DESC, "
	own := settled + day + " AND i.country = g.country AND i.status = g.status" + before
	const group = "SELECT x.dated_on, x.country, x.status, x.operation_id FROM "
	limit := strconv.Itoa(window)
	return strings.Join([]string{
		"WITH RECURSIVE g(dated_on, country, status, last) AS (", group, "operations x WHERE x.operation_id = ", last(since+until, byDay),
		" UNION ALL ", group, "g CROSS JOIN operations x WHERE x.operation_id = coalesce(",
		last(day+" AND i.country = g.country AND i.status < g.status", "i.status DESC, "), ", ",
		last(day+" AND i.country < g.country", "i.country DESC, i.status DESC, "), ", ",
		last(since+" AND i.dated_on < g.dated_on", byDay), ")), ",
		"n AS (SELECT dated_on, country, status, ", newestOf(own, before), " AS newest FROM g WHERE 1 = 1", groups, "), ",
		"m AS (SELECT * FROM n WHERE newest IS NOT NULL ORDER BY newest DESC LIMIT ", limit, ") ",
		// Where there are as many groups as ids are wanted, none before all of their newest is among them.
		"SELECT l.operation_id FROM m AS g CROSS JOIN ", d.each(own +
			" AND i.operation_id >= (SELECT CASE WHEN count(*) < " + limit + " THEN '' ELSE min(newest) END FROM m) ORDER BY i.operation_id DESC LIMIT " + limit),
		" ORDER BY l.operation_id DESC LIMIT ", limit,
	}, ""), args
}

// newestOf is the newest id of a group: its last, unless that is on an earlier page.
func newestOf(own, before string) string {
	if before == "" {
		return "last"
	}
	return "(" + own + " ORDER BY i.operation_id DESC LIMIT 1)"
}

// each asks something for each row of a table. SQLite has no LATERAL, but does
// as told by a CROSS JOIN.
func (d days) each(question string) string {
	if d.engine == "postgres" {
		return "LATERAL (" + question + ") AS l"
	}
	return "operations l WHERE l.operation_id IN (" + question + ")"
}
