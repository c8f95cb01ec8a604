package period

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lifecycle"
	"tributary/internal/webhook"
)

// AtOnceDefault is how many sales are told in one commit; the others are told by
// whoever holds the period, in as many.
const AtOnceDefault = 1000

// told is what sales of a document are told, and how far that has come.
type told struct {
	document, upto string
	news           country.News
	fills          bool // the document's ids are filled in with it
}

// tell tells the first sales of a document something, and keeps what the others
// are still to be told. It answers how many were told now.
func (p *Periods) tell(tx *db.Tx, d document, news country.News) (events []webhook.Event, now int, err error) {
	t := told{document: d.id, news: news, fills: d.replaces && news.Code == filed}
	events, now, more, err := p.tellSome(tx, &t)
	if err != nil || !more {
		return events, now, err
	}
	text, err := json.Marshal(keptNews{News: t.news, Key: t.news.Key, Fills: t.fills})
	if err != nil {
		return nil, 0, err
	}
	return events, now, firstOf(
		tx.Insert("period_news", "document_id,key,news,said_at,upto", []any{d.id, t.news.Key, string(text), db.Micros(tx.Now()), t.upto}),
		hurryPeriod(tx, d.periodID, tx.Now()),
	)
}

// keptNews is news as they are stored; their key is not among what others read of them.
type keptNews struct {
	country.News
	Key   string `json:"key"`
	Fills bool   `json:"fills"`
}

// tellSome tells the next sales. more: there are others.
func (p *Periods) tellSome(tx *db.Tx, t *told) (events []webhook.Event, n int, more bool, err error) {
	sales, err := subjects(tx, fmt.Sprintf("e.document_id = $1 AND e.operation_id > $2 AND e.left_at IS NULL ORDER BY e.operation_id LIMIT %d", p.AtOnce),
		t.document, t.upto)
	if err != nil || len(sales) == 0 {
		return nil, 0, false, err
	}
	from := t.upto
	t.upto = sales[len(sales)-1].ID
	if t.fills {
		err = tx.Exec(`UPDATE period_entries SET authority_id_1 = d.authority_id_1, authority_id_2 = d.authority_id_2 FROM period_documents d
			WHERE d.operation_id = $1 AND period_entries.document_id = $1 AND period_entries.operation_id > $2 AND period_entries.operation_id <= $3
				AND period_entries.authority_id_1 IS NULL`, t.document, from, t.upto)
	}
	if err == nil {
		events, err = p.Cycle.TellAll(tx, sales, t.news)
	}
	return events, len(sales), len(sales) == p.AtOnce, err
}

// tellMore goes on with what sales of a period have still to be told.
func (p *Periods) tellMore(tx *db.Tx, period string) (more bool, err error) {
	var t told
	var text string
	err = tx.Row(`SELECT n.document_id, n.key, n.news, n.upto FROM period_documents d JOIN period_news n ON n.document_id = d.operation_id
		WHERE d.period_id = $1 AND d.state <> 'open' ORDER BY n.said_at, n.key LIMIT 1`, period).Scan(&t.document, &t.news.Key, &text, &t.upto)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	var kept keptNews
	if err == nil {
		err = json.Unmarshal([]byte(text), &kept)
	}
	if err != nil {
		return false, fmt.Errorf("read what is told of a period: %w", err)
	}
	t.news, t.news.Key, t.fills = kept.News, kept.Key, kept.Fills
	events, _, more, err := p.tellSome(tx, &t)
	if err == nil && more {
		err = tx.Exec("UPDATE period_news SET upto = $3 WHERE document_id = $1 AND key = $2", t.document, t.news.Key, t.upto)
	} else if err == nil {
		err = tx.Exec("DELETE FROM period_news WHERE document_id = $1 AND key = $2", t.document, t.news.Key)
	}
	if err != nil {
		return false, err
	}
	return true, p.Cycle.Hooks.Notify(tx, events...)
}

// Said passes on to its sales what is said of a period's document; false: it is none.
// What is said before we know that it was accepted is passed on then. One that is
// refused after all is made anew as a whole.
func (p *Periods) Said(tx *db.Tx, about lifecycle.Subject, news []country.News) (of bool, err error) {
	if !strings.HasPrefix(about.TransactionID, ownPrefix) {
		return false, nil // a client's may have such a name, too
	}
	d := document{id: about.ID}
	var supplier, state string
	err = tx.Row(`SELECT d.period_id, d.number, d.state, d.sales, p.replaces, p.supplier_id FROM period_documents d JOIN periods p ON p.period_id = d.period_id
		WHERE d.operation_id = $1 AND d.withdraws IS NULL`, about.ID).Scan(&d.periodID, &d.number, &state, &d.sales, &d.replaces, &supplier)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	if err == nil {
		err = lockPeriods(tx, about.Scope, supplier)
	}
	if err != nil {
		return true, err
	}
	switch {
	case state == docOpen:
		return true, keepNews(tx, d, news)
	case !about.Succeeded:
		return true, nil
	}
	events, err := p.passOn(tx, d, state, news)
	if err == nil {
		err = p.Cycle.Hooks.Notify(tx, events...)
	}
	return true, err
}

// keepNews keeps what is said of a document until its sales can be told.
func keepNews(tx *db.Tx, d document, news []country.News) error {
	rows := make([][]any, len(news))
	for i, n := range news {
		text, err := json.Marshal(keptNews{News: n, Key: n.Key})
		if err != nil {
			return err
		}
		rows[i] = []any{d.id, n.Key, string(text), db.Micros(tx.Now()), ""}
	}
	return tx.Insert("period_news", "document_id,key,news,said_at,upto", rows...)
}

// passKept passes on what was kept of a document that was accepted.
func (p *Periods) passKept(tx *db.Tx, d document) ([]webhook.Event, error) {
	texts, err := db.Collect(tx, func(scan func(...any) error) (text string, err error) { return text, scan(&text) },
		"SELECT news FROM period_news WHERE document_id = $1 AND upto = '' ORDER BY said_at, key", d.id)
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	news := make([]country.News, len(texts))
	for i, text := range texts {
		var kept keptNews
		if err := json.Unmarshal([]byte(text), &kept); err != nil {
			return nil, fmt.Errorf("read what was said of %s: %w", d.number, err)
		}
		news[i], news[i].Key = kept.News, kept.Key
	}
	if err := forgetKept(tx, d); err != nil {
		return nil, err
	}
	return p.passOn(tx, d, docAccepted, news)
}

func forgetKept(tx *db.Tx, d document) error {
	return tx.Exec("DELETE FROM period_news WHERE document_id = $1 AND upto = ''", d.id)
}

// passOn tells the sales of an accepted document what is said of it.
func (p *Periods) passOn(tx *db.Tx, d document, state string, news []country.News) (events []webhook.Event, err error) {
	for _, n := range news {
		why := fmt.Sprintf("%s %s %s", n.Code, n.Name, n.Message)
		n.Message = fmt.Sprintf("document %s: %s", d.number, n.Message)
		if n.Refuses && d.replaces && state == docAccepted {
			state, n.Severity = docFailed, country.Problem
			n.Message += "; it is made anew"
			if err := p.refuse(tx, d, why); err != nil {
				return nil, err
			}
		}
		some, _, err := p.tell(tx, d, n)
		if err != nil {
			return nil, err
		}
		events = append(events, some...)
	}
	return events, nil
}

// refuse takes the acceptance of a document back: what it replaced stands again, and
// the next one has everything.
func (p *Periods) refuse(tx *db.Tx, d document, why string) error {
	return firstOf(
		tx.Exec("UPDATE period_documents SET state = $2 WHERE operation_id = $1", d.id, docFailed),
		tx.Exec(`UPDATE period_documents SET state = $2 WHERE operation_id = (SELECT max(b.operation_id) FROM period_documents b
			WHERE b.period_id = $1 AND b.state = $3)`, d.periodID, docAccepted, docReplaced),
		retryPeriod(tx, d.periodID),
		p.raise(tx, d, why),
	)
}

func (p *Periods) raise(tx *db.Tx, d document, why string) error {
	return p.Alerts.RaiseIn(tx, alert.PeriodRefused, d.periodID,
		fmt.Sprintf("document %s of %s was not accepted: %s; it is created again", d.number, fault.Count(int(d.sales), "sale"), why))
}

// ownPrefix begins the names of the service's own operations for periods.
const ownPrefix = "period:"
