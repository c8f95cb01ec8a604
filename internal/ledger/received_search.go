package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tributary/internal/db"
	"tributary/internal/filing"
	"tributary/internal/operation"
	"tributary/internal/result"
)

// Received documents are few beside what clients submit, and have no index of terms: a search walks along them, the
// newest first, a bounded stretch for each page.

// receivedColumns are those of a summary. A received document is one attempt, of nobody's transaction.
const receivedColumns = `o.operation_id, '', o.client_id, o.country, o.number, o.sender_id, '', o.live, o.kind, '',
	CASE WHEN o.status = 'PROCESSING' THEN 'received' ELSE 'settled' END, o.status, 1, 0, o.crashes, o.accepted_at, o.dated_at,
	CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), o.settled_at, o.due_at, '', CAST(NULL AS TEXT), '', ''`

func scanReceived(scan func(...any) error) (Summary, error) {
	one, err := scanSummary(scan)
	one.Received = true
	return one, err
}

// searchReceived finds received documents of all clients, newest first.
func (s *Ledger) searchReceived(r db.Reader, q Query) (page Page, err error) {
	if q.Stage != "" || q.Reason != "" {
		return page, nil // they wait for nobody
	}
	after := q.After
	for _, window := range windows {
		ids, err := receivedCandidates(r, q, after, window)
		if err != nil || len(ids) == 0 {
			return page, err
		}
		text, args := s.receivedPick(ids, q, q.Limit-len(page.List)+1)
		found, err := db.Collect(r, scanReceived, text, args...)
		if err != nil {
			return page, fmt.Errorf("search received documents: %w", err)
		}
		if page.List = append(page.List, found...); len(page.List) > q.Limit {
			page.List = page.List[:q.Limit]
			page.Next = page.List[q.Limit-1].OperationID
			break
		}
		if page.Next = ""; len(ids) < window {
			return page, nil
		}
		after = ids[len(ids)-1]
		page.Next = after
	}
	page.SearchedTo = madeAt(page.Next)
	return page, nil
}

func receivedCandidates(r db.Reader, q Query, after string, window int) ([]string, error) {
	where, args := "1 = 1", []any{}
	add := func(condition string, value any) {
		args = append(args, value)
		where += " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	if q.ClientID != "" {
		add("client_id =", q.ClientID)
	}
	if after != "" {
		add("operation_id <", after)
	}
	if !q.From.IsZero() {
		add("operation_id >=", operation.IDAt(q.From))
	}
	if !q.To.IsZero() {
		add("operation_id <", operation.IDAt(q.To))
	}
	return collectIDs(r, "SELECT operation_id FROM received WHERE "+where+" ORDER BY operation_id DESC LIMIT "+strconv.Itoa(window),
		args...)
}

// receivedPick asks for those of some ids that a query allows.
func (s *Ledger) receivedPick(ids []string, q Query, limit int) (string, []any) {
	where, args := s.db.In("o.operation_id", "$1"), []any{db.Strings(ids)}
	add := func(condition string, value any) {
		args = append(args, value)
		where += " AND (" + strings.ReplaceAll(condition, "?", "$"+strconv.Itoa(len(args))) + ")"
	}
	for _, narrow := range [][2]string{{"o.status = ?", string(q.Status)}, {"o.country = ?", q.Country}, {"o.kind = ?", string(q.Kind)}} {
		if narrow[1] != "" {
			add(narrow[0], narrow[1])
		}
	}
	if q.Live != nil {
		add("o.live = ?", *q.Live)
	}
	if !q.DatedFrom.IsZero() {
		add("o.dated_at >= ?", db.Micros(q.DatedFrom))
	}
	if !q.DatedTo.IsZero() {
		add("o.dated_at < ?", db.Micros(q.DatedTo))
	}
	like := func(condition, text string) { add(condition, "%"+likeLiteral.Replace(strings.ToLower(text))+"%") }
	if q.Number != "" {
		add("lower(o.number) LIKE ? ESCAPE '\\'", likeLiteral.Replace(strings.ToLower(q.Number))+"%")
	}
	if q.Error != "" {
		like("o.result LIKE ? ESCAPE '\\'", `"code":"`+string(q.Error)+`"`)
	}
	if q.Amount != nil {
		n := strconv.FormatInt(*q.Amount, 10)
		add("o.result LIKE ?", `%"total_amount":`+n+`,%`)
	}
	if q.Supplier != "" {
		like(`lower(o.sender_key) LIKE ? ESCAPE '\' OR lower(o.sender_id) LIKE ? ESCAPE '\' OR lower(o.company_id) LIKE ? ESCAPE '\'`, q.Supplier)
	}
	if q.Text != "" {
		like(`lower(o.operation_id) LIKE ? ESCAPE '\' OR lower(o.number) LIKE ? ESCAPE '\' OR lower(o.authority_id) LIKE ? ESCAPE '\'
			OR lower(o.sender_key) LIKE ? ESCAPE '\'`, q.Text)
	}
	return "SELECT " + receivedColumns + " FROM received o WHERE " + where + " ORDER BY o.operation_id DESC LIMIT " + strconv.Itoa(limit), args
}

// searchAll merges both directions, as listAll does.
func (s *Ledger) searchAll(r db.Reader, q Query) (page Page, err error) {
	if page, err = s.search(r, q); err != nil {
		return page, err
	}
	others, err := s.searchReceived(r, q)
	if err != nil {
		return page, err
	}
	page.Next = max(page.Next, others.Next)
	page.List = slices.DeleteFunc(append(page.List, others.List...), func(one Summary) bool { return one.OperationID < page.Next })
	slices.SortFunc(page.List, func(a, b Summary) int { return strings.Compare(b.OperationID, a.OperationID) })
	if len(page.List) > q.Limit {
		page.List = page.List[:q.Limit]
		page.Next = page.List[q.Limit-1].OperationID
	}
	page.SearchedTo = madeAt(page.Next)
	return page, nil
}

// receivedLines adds what people want to see to received documents: all of it stands in their results.
func (s *Ledger) receivedLines(r db.Reader, at map[string]*Line) error {
	var ids []string
	for id, l := range at {
		if l.Received {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := r.Query(fmt.Sprintf("SELECT operation_id, coalesce(substr(result, 1, %d), '') FROM received WHERE ", receivedHead)+
		s.db.In("operation_id", "$1"), db.Strings(ids))
	if err != nil {
		return err
	}
	return rows.Each(func(scan func(...any) error) error {
		var id string
		kept := result.Kept{}
		if err := scan(&id, &kept.Text); err != nil || kept.Text == "" {
			return err
		}
		row, _, err := kept.Row()
		if err != nil {
			return err
		}
		text, err := json.Marshal(row)
		if err != nil {
			return err
		}
		if row.Supplier.ResultParty != nil {
			at[id].Supplier = row.Supplier.LegalName
		}
		return at[id].readResult(string(text))
	})
}

// receivedSummary finds a received document of any client.
func receivedSummary(r db.Reader, id string) (Summary, error) {
	one, err := scanReceived(r.Row("SELECT "+receivedColumns+" FROM received o WHERE o.operation_id = $1", id).Scan)
	if errors.Is(err, db.ErrNoRows) {
		return one, filing.Unknown()
	}
	return one, err
}

// receivedLife is what is known of a received document.
func (s *Ledger) receivedLife(r db.Reader, operationID string) (*Life, error) {
	one, err := receivedSummary(r, operationID)
	if err != nil {
		return nil, err
	}
	l := &Life{Summary: one}
	for _, read := range []func(db.Reader, *Life) error{s.lifeResult, s.lifeEvents, s.lifeSaid} {
		if err := read(r, l); err != nil {
			return nil, err
		}
	}
	if l.Status == filing.Processing {
		l.Wait = &Wait{Why: WhyQueued, Text: "being read", NextAt: l.DueAt, Since: l.AcceptedAt}
	}
	l.Moments = l.moments()
	return l, nil
}
