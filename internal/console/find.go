package console

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/operator"
)

// find is the search that stands on every page: one hit opens, several are
// listed; a text that is only a supplier's leads to the suppliers.
func (c *salesPages) find(v *request) error {
	text := strings.TrimSpace(v.r.URL.Query().Get("q"))
	to := Root + "/transactions?q=" + url.QueryEscape(text)
	if text == "" {
		to = Root + "/transactions"
	} else if found, err := c.cfg.Ledger.Search(v.ctx, ledger.Query{Text: text, Limit: 2}); err == nil {
		switch {
		case len(found.List) == 1 && found.Next == "":
			to = Root + "/transactions/" + url.PathEscape(found.List[0].OperationID)
		case len(found.List) == 0 && found.Next == "":
			if ids, err := c.cfg.Ledger.Namesakes(v.ctx, text, 1); err == nil && len(ids) > 0 {
				to = Root + "/suppliers?q=" + url.QueryEscape(text)
			}
		}
	} else if fault.KindOf(err) != fault.Invalid { // the list says what is wrong with it
		return err
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// exportMax is how many rows one file has; the last row of a longer one says so.
const exportMax = 10_000

// export is the list of transactions as a file, with the same narrowing. It holds
// customers' names, so who took it is recorded.
func (c *salesPages) export(v *request) error {
	f := readSearch(v.r.URL.Query())
	q, faults := f.query()
	if len(faults) > 0 {
		return fault.New(fault.Invalid, "Invalid list request.").With(faults...)
	}
	err := c.cfg.Operators.Record(v.ctx, v.by(),
		operator.Act{Action: "transactions.exported", Subject: "list", ClientID: f.Client,
			After: map[string]any{"query": v.r.URL.RawQuery}})
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.w.Header().Set("Content-Disposition", `attachment; filename="transactions.csv"`)
	out := csv.NewWriter(v.w)
	// who left is told nothing
	_ = out.Write([]string{"operation_id", "transaction_id", "number", "status", "stage", "reason", "message", "kind",
		"country", "client", "supplier", "customer", "total_minor_units", "currency", "accepted_at", "settled_at"})
	q.Limit = 200
	for n := 0; n < exportMax; {
		page, err := c.cfg.Ledger.Search(v.ctx, q)
		if err != nil {
			return c.cutExport(v, out, err)
		}
		lines, err := c.cfg.Ledger.Lines(v.ctx, page.List)
		if err != nil {
			return c.cutExport(v, out, err)
		}
		for _, l := range lines {
			_ = out.Write(exported(l)) // the reader left: Flush says nothing more
		}
		if n += len(lines); page.Next == "" {
			break
		}
		q.After = page.Next
	}
	out.Flush()
	return nil
}

// cutExport ends a file that has begun: its last line tells.
func (c *salesPages) cutExport(v *request, out *csv.Writer, err error) error {
	c.log.Error("export transactions", "error", err)
	_ = out.Write([]string{"the list is incomplete because of an error"}) // the log has it
	out.Flush()
	return nil
}

func exported(l ledger.Line) []string {
	total, settled := "", ""
	if l.Total != nil {
		total = strconv.FormatInt(*l.Total, 10)
	}
	if !l.SettledAt.IsZero() {
		settled = l.SettledAt.UTC().Format(time.RFC3339)
	}
	row := []string{l.OperationID, l.TransactionID, l.Number, string(l.Status), string(l.Stage), l.Reason, l.Message,
		string(l.Kind), l.Country, l.ClientID,
		l.Supplier, l.Customer, total, l.Currency, l.AcceptedAt.UTC().Format(time.RFC3339), settled}
	for i, cell := range row {
		if i != 12 { // a number, never a text somebody chose
			row[i] = db.Cell(cell)
		}
	}
	return row
}

// together is how many transactions one click retries.
const together = 1000

type togetherBody struct {
	Reason, Country string
	Advice          string
	Count           int
	More            bool
	Lines           []ledger.Line
	Reasons         []ledger.Meaning
}

// retryPreview says how many transactions wait for one reason, and which, before
// anything is done.
func (c *salesPages) retryPreview(v *request) (page, error) {
	query := v.r.URL.Query()
	body := &togetherBody{Reason: query.Get("reason"), Country: strings.ToUpper(query.Get("country")),
		Reasons: ledger.Meanings()}
	p := page{Title: "Retry by reason", Place: "Transactions", Crumbs: []crumb{{"Transactions", Root + "/transactions"}},
		Body: body}
	if body.Reason == "" {
		return p, nil
	}
	ids, more, err := c.waitingFor(v, body.Reason, body.Country)
	if err != nil {
		return p, err
	}
	body.Count, body.More, body.Advice = len(ids), more, ledger.Why(body.Reason).Advice()
	body.Lines, err = c.cfg.Ledger.Lines(v.ctx, ids[:min(len(ids), 10)])
	return p, err
}

func (c *salesPages) waitingFor(v *request, reason, code string) (list []ledger.Summary, more bool, err error) {
	q := ledger.Query{Reason: fault.Code(reason), Country: code, Limit: 200}
	for len(list) < together {
		found, err := c.cfg.Ledger.Search(v.ctx, q)
		if err != nil {
			return nil, false, err
		}
		list = append(list, found.List...)
		if found.Next == "" {
			return list, false, nil
		}
		q.After = found.Next
	}
	return list[:together], true, nil
}

// retryTogether makes all that wait for one reason due now. One entry of the
// log says how many; each that could not be is left as it was.
func (c *salesPages) retryTogether(v *request) (string, error) {
	reason, code := v.r.PostFormValue("reason"), strings.ToUpper(v.r.PostFormValue("country"))
	if reason == "" {
		return "", fault.New(fault.Invalid, "Choose a reason.")
	}
	list, _, err := c.waitingFor(v, reason, code)
	if err != nil {
		return "", err
	}
	act := operator.Act{Action: "transactions.retried", Subject: reason,
		Before: map[string]any{"waiting": len(list), "country": code}}
	err = c.dir.do(v, act, func() (any, error) {
		done := 0
		for _, o := range list {
			switch _, err := c.cfg.Transactions.Retry(v.ctx, o.OperationID,
				func(*db.Tx, filing.OperationState, filing.OperationState) error {
					return nil
				}); {
			case err == nil:
				done++
			case fault.KindOf(err) != fault.Conflict:
				return map[string]any{"retried": done}, fmt.Errorf("retry %s: %w", o.OperationID, err)
			}
		}
		return map[string]any{"retried": done}, nil
	})
	return Root + "/transactions?reason=" + url.QueryEscape(reason) + "&notice=retried-together", err
}

// view is a list that operators want often; it is no more than its address.
type view struct {
	Name, Address string
	Saved         bool // by this operator
}

// saveView gives the list that is shown a name, or takes it away.
func (c *salesPages) saveView(v *request) (string, error) {
	if name := v.r.PostFormValue("remove"); name != "" {
		return Root + "/transactions?notice=view-removed", c.cfg.Operators.RemoveView(v.ctx, v.session, name)
	}
	values, err := url.ParseQuery(v.r.PostFormValue("query"))
	if err != nil {
		return "", fault.New(fault.Invalid, "Invalid view.")
	}
	query := values.Encode()
	err = c.cfg.Operators.SaveView(v.ctx, v.session, operator.View{Name: v.r.PostFormValue("name"), Query: query})
	return noticed(Root+"/transactions?"+query, "view-saved"), err
}

// views are the lists that everybody wants, those that something waits in, and the operator's own.
func (c *salesPages) views(v *request) []view {
	list := []view{
		{Name: "All", Address: "/transactions"}, {Name: "In progress", Address: "/transactions?status=PROCESSING"},
		{Name: "Failed", Address: "/transactions?status=FAILURE"},
		{Name: "Today", Address: "/transactions?from=" + c.now().UTC().Format(time.DateOnly)},
		{Name: "Held", Address: "/transactions?reason=held"},
	}
	waits, err := c.cfg.Ledger.Waits(v.ctx)
	if err != nil {
		c.log.Warn("count what waits", "error", err)
	}
	counts := map[fault.Code]int{}
	for _, w := range waits {
		counts[w.Code] += w.Operations
	}
	for _, m := range ledger.Meanings() {
		if n := counts[m.Code]; n > 0 && m.Code != fault.Held {
			list = append(list, view{Name: strings.ReplaceAll(string(m.Code), "_", " ") + " " + count(n),
				Address: "/transactions?reason=" + string(m.Code)})
		}
	}
	var saved []operator.View
	err = c.cfg.DB.Read(v.ctx, func(r db.Reader) (err error) {
		saved, err = c.cfg.Operators.Views(r, v.session.Name)
		return err
	})
	if err != nil {
		c.log.Warn("read saved views", "error", err)
	}
	for _, s := range saved {
		list = append(list, view{Name: s.Name, Address: "/transactions?" + s.Query, Saved: true})
	}
	return list
}

// alike is how many others wait for the same reason.
func (c *salesPages) alike(v *request, life *ledger.Life) (int, error) {
	if life.Wait == nil {
		return 0, nil
	}
	waits, err := c.cfg.Ledger.Waits(v.ctx)
	at := country.Environment{Code: life.Country, Live: country.Live(life.Live)}
	return max(0, ledger.Alike(waits, at, fault.Code(life.Wait.Why))-1), err
}
