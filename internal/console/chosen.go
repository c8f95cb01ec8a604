package console

import (
	"fmt"
	"net/url"
	"slices"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/operator"
	"tributary/internal/webhook"
)

// chosenMax is how many rows of a list one action takes.
const chosenMax = 200

// What is done with chosen rows.
const (
	actRetry     = "retry"
	actRedeliver = "redeliver"
)

// chosenBody is the preview of an action on chosen rows: what it will do, and
// what it will leave alone and why.
type chosenBody struct {
	Act   string
	Rows  []chosenRow
	Count int  // rows that the action does something with
	More  bool // more rows match than one action takes
	Back  string
}

// chosenRow is a transaction or an event that was ticked.
type chosenRow struct {
	Field, ID  string // as the form carries it
	Name, Link string
	About      string
	Left       string // why the action leaves it alone; "": it does not

	event string // what is sent again
}

// chosen shows what would happen, before anything does. It changes nothing, so
// the rows stand in the address.
func (c *salesPages) chosen(v *request) (page, error) {
	query := v.r.URL.Query()
	if query.Get("act") == "" {
		query.Set("act", actRetry)
	}
	body := &chosenBody{Act: query.Get("act"), Back: local(query.Get("back"))}
	p := page{Title: "Retry selected transactions", Place: "Transactions",
		Crumbs: []crumb{{"Transactions", Root + "/transactions"}}, Body: body}
	if body.Act == actRedeliver {
		p.Title, p.Place, p.Crumbs = "Redeliver selected webhooks", "Deliveries", []crumb{{"Deliveries", Root + "/deliveries"}}
	}
	var err error
	if query.Get("all") != "" {
		var field string
		var ids []string
		if field, ids, body.More, err = c.matching(v, body.Back); err != nil {
			return p, err
		}
		query.Del("o")
		query.Del("e")
		query[field] = ids
	}
	if body.Rows, err = c.chosenRows(v, query); err != nil {
		return p, err
	}
	for _, r := range body.Rows {
		if r.Left == "" {
			body.Count++
		}
	}
	return p, nil
}

// chosenRows reads what was ticked: transactions as o, events as e.
func (c *salesPages) chosenRows(v *request, form url.Values) (rows []chosenRow, err error) {
	act := form.Get("act")
	if act != actRetry && act != actRedeliver {
		return nil, fault.New(fault.Invalid, "Selected rows can be retried or redelivered.")
	}
	if n := len(form["o"]) + len(form["e"]); n > chosenMax {
		return nil, fault.New(fault.Invalid, "%d rows are selected; the maximum is %d.", n, chosenMax)
	}
	once := map[string]bool{}
	for _, field := range []string{"o", "e"} {
		for _, id := range form[field] {
			if once[field+id] {
				continue
			}
			once[field+id] = true
			row := chosenRow{Field: field, ID: id, Name: id}
			if field == "o" {
				err = c.chosenTransaction(v, act, &row)
			} else {
				err = c.chosenEvent(v, act, &row)
			}
			if fault.KindOf(err) == fault.NotFound {
				row.Left, err = "it no longer exists", nil
			}
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (c *salesPages) chosenTransaction(v *request, act string, row *chosenRow) error {
	life, err := c.cfg.Ledger.Life(v.ctx, row.ID)
	if err != nil {
		return err
	}
	row.Link, row.About = Root+"/transactions/"+url.PathEscape(row.ID), string(life.Status)
	if row.Name = life.Number; row.Name == "" {
		row.Name = life.TransactionID
	}
	if act == actRetry {
		switch {
		case life.Wait == nil:
			row.Left = "it has finished"
		case !life.Wait.CanRetry:
			row.Left = "a retry would not help: it waits for " + string(life.Wait.Why)
		default:
			row.About = string(life.Wait.Why)
		}
		return nil
	}
	if len(life.Events) == 0 {
		row.Left = "it has no webhook yet"
		return nil
	}
	newest := slices.MaxFunc(life.Events, func(a, b webhook.EventRow) int { return a.CreatedAt.Compare(b.CreatedAt) })
	row.event, row.About = newest.WebhookID, newest.EventType+", "+string(newest.Status)
	return nil
}

func (c *salesPages) chosenEvent(v *request, act string, row *chosenRow) error {
	if act != actRedeliver {
		row.Left = "an event can be redelivered, not retried"
		return nil
	}
	event, _, err := c.cfg.Hooks.Find(v.ctx, row.ID)
	if err != nil {
		return err
	}
	row.Link, row.Name = Root+"/deliveries/events/"+url.PathEscape(row.ID), short(row.ID)
	row.event, row.About = row.ID, event.EventType+", "+string(event.Status)
	return nil
}

// actOnChosen does what was shown. One entry of the log has all ids and says how
// many were done; a row that has changed meanwhile is left as it is.
func (c *salesPages) actOnChosen(v *request) (string, error) {
	rows, err := c.chosenRows(v, v.r.PostForm)
	if err != nil {
		return "", err
	}
	act, notice := operator.Act{Action: "transactions.retried", Subject: "chosen"}, "retried-together"
	do := c.retryChosen
	if v.r.PostFormValue("act") == actRedeliver {
		act.Action, notice, do = "events.redelivered", "redelivered-together", c.redeliverChosen
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	if len(ids) == 0 {
		return "", fault.New(fault.Invalid, "Nothing selected.")
	}
	act.Before = map[string]any{"chosen": ids}
	err = c.dir.do(v, act, func() (any, error) {
		done := 0
		for _, r := range rows {
			if r.Left != "" {
				continue
			}
			switch err := do(v, r); {
			case err == nil:
				done++
			// those have changed since they were shown
			case fault.KindOf(err) != fault.Conflict && fault.KindOf(err) != fault.NotFound:
				return map[string]any{"done": done}, fmt.Errorf("%s %s: %w", act.Action, r.ID, err)
			}
		}
		return map[string]any{"done": done, "left": len(rows) - done}, nil
	})
	if err != nil {
		return "", err
	}
	return noticed(local(v.r.PostFormValue("back")), notice), nil
}

func (c *salesPages) retryChosen(v *request, r chosenRow) error {
	_, err := c.cfg.Transactions.Retry(v.ctx, r.ID, func(*db.Tx, filing.OperationState, filing.OperationState) error {
		return nil
	})
	return err
}

func (c *salesPages) redeliverChosen(v *request, r chosenRow) error {
	return c.cfg.Hooks.Redeliver(v.ctx, webhook.AnyClient, r.event)
}

// noticed is an address of ours with a notice.
func noticed(at, notice string) string {
	u, err := url.Parse(at)
	if err != nil {
		return Root + "/?notice=" + notice
	}
	q := u.Query()
	q.Set("notice", notice)
	u.RawQuery = q.Encode()
	return u.String()
}
