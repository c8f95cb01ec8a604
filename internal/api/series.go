package api

import (
	"net/http"

	"tributary/internal/ids"
	"tributary/internal/series"
	"tributary/internal/strictjson"
	"tributary/internal/transaction"
)

const seriesTextMax = 150 // characters of a member of a series

func (a *API) listSeries(c *call) error {
	q := c.query("limit", "cursor")
	limit, after := q.limit(), q.cursor()
	if after != "" && !ids.Valid(after) {
		q.wrong("cursor", "must be a next_cursor of an earlier response")
	}
	if err := q.err(); err != nil {
		return err
	}
	list, next, err := a.cfg.Transactions.Series.List(c.Context(), c.caller.ClientID, after, limit)
	if err != nil {
		return err
	}
	return answerPage(c, pageOf(list, next))
}

func (a *API) createSeries(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	in, err := readSeries(body)
	if err != nil {
		return err
	}
	made, err := a.cfg.Transactions.Series.Create(c.Context(), c.caller.ClientID, in)
	if err != nil {
		return err
	}
	return c.answer(http.StatusCreated, made)
}

// readSeries reads the shape; what a series may be is the transactions' matter.
func readSeries(body []byte) (in series.Series, err error) {
	r := &strictjson.Reader{}
	r.Open(body, bodyBytesMax)
	supplier, pattern := strictjson.Absent, strictjson.Absent
	r.Body(func(name string) {
		switch name {
		case "supplier_id":
			supplier = r.Line(&in.SupplierID, seriesTextMax)
		case "kind":
			r.Line((*string)(&in.Kind), seriesTextMax)
		case "country_code":
			r.Line(&in.Country, seriesTextMax)
		case "pattern":
			pattern = r.Line(&in.Pattern, seriesTextMax)
		case "next":
			if r.Integer(&in.Next, transaction.AmountMax) == strictjson.Taken && in.Next == 0 {
				in.Next = -1 // said, and not possible
			}
		case "yearly":
			r.Bool(&in.Yearly)
		default:
			r.Unknown()
		}
	})
	if supplier == strictjson.Absent {
		r.Missing("supplier_id")
	}
	if pattern == strictjson.Absent {
		r.Missing("pattern")
	}
	if err := r.Err(); err != nil {
		return in, err
	}
	return in, r.Faults.Err("the series")
}
