package nav

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/navwire"
	"tributary/internal/xmltree"
)

// pageSize is how many entries a list has on a page.
const pageSize = 100

// asked takes a turn of a call that only asks, and reports whether to go on.
func (a *double) asked(c *call) (authority.Turn, bool) {
	turn := a.desk.QueryTurn()
	return turn, turn.Begin(c.w, c.busy)
}

// hidden reports whether a number is one that lists do not show yet.
func (a *double) hidden(number string) bool {
	if !strings.HasSuffix(number, "-LAG") {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lagged[number]++
	return a.lagged[number] <= 3
}

// status serves queryTransactionStatus, and decides what was in work.
func (a *double) status(c *call) {
	turn, ok := a.asked(c)
	if !ok {
		return
	}
	id, originals := c.root.Value("transactionId"), c.root.Value("returnOriginalRequest") == "true"
	var r report
	var data []string
	found := false
	err := a.desk.Write(func(b *authority.Book) {
		if found = b.Load("report/"+id, &r) && r.Taxpayer == c.taxpayer; !found {
			return
		}
		a.progress(b, id, &r)
		for i := range r.Items {
			text, _ := b.Get(dataKey(id, i+1))
			data = append(data, text)
		}
	})
	if err != nil {
		c.refuse(http.StatusInternalServerError, navwire.OperationFailed, "Sikertelen művelet!")
		return
	}
	if !turn.End(c.w, c.r) {
		return
	}
	c.answer(func(w *xmltree.Writer) {
		if !found {
			return // NAV answers OK with nothing
		}
		w.Start("processingResults")
		for i, it := range r.Items {
			w.Start("processingResult")
			w.Leaf("index", itoa(i+1))
			w.Leaf("invoiceStatus", it.Status)
			writeRemarks(w, it.Remarks)
			w.Leaf("compressedContentIndicator", "false")
			if originals {
				w.Leaf("originalRequest", data[i])
			}
			w.End()
		}
		w.Leaf("originalRequestVersion", navwire.RequestVersion)
		if r.Annuls && r.Items[0].Status == navwire.Done {
			w.Start("annulmentData")
			w.Leaf("annulmentVerificationStatus", navwire.VerificationPending)
			w.End()
		}
		w.End()
	})
}

func writeRemarks(w *xmltree.Writer, remarks []remark) {
	for _, wanted := range []bool{true, false} {
		for _, m := range remarks {
			if m.Technical != wanted {
				continue
			}
			name, prefix := "businessValidationMessages", ""
			if m.Technical {
				name, prefix = "technicalValidationMessages", "common:"
			}
			w.Start(name)
			w.Leaf(prefix+"validationResultCode", m.Severity)
			w.Leaf(prefix+"validationErrorCode", m.Code)
			w.Leaf(prefix+"message", clipped(m.Text, 500))
			if m.Line != "" {
				w.Start("pointer")
				w.Leaf("line", m.Line)
				w.End()
			}
			w.End()
		}
	}
}

// progress decides what was in work and whose time has come, at a later question
// than the first.
func (a *double) progress(b *authority.Book, id string, r *report) {
	changed := false
	for i := range r.Items {
		it := &r.Items[i]
		if it.Status != navwire.Processing || a.now().Before(it.Due) {
			continue
		}
		changed = true
		if !it.Asked {
			it.Asked = true
			continue
		}
		step := a.desk.Decide()
		if step.Outcome == authority.Suspend {
			it.Due = a.now().Add(step.Delay).UTC()
			continue
		}
		text, _ := b.Get(dataKey(id, i+1))
		op := xmltree.New("invoiceOperation")
		op.Leaf("invoiceOperation", it.Operation)
		op.Leaf("invoiceData", text)
		a.decide(b, entrant{it, place{id, i + 1, r.Taxpayer, a.now().UTC()}, a.open(op), step})
	}
	if changed {
		b.Keep("report/"+id, *r)
	}
}

// interval reads the days or instants between which a list asks.
func interval(from, to, layout string) (begin, end time.Time, code string) {
	begin, err1 := time.Parse(layout, from)
	end, err2 := time.Parse(layout, to)
	switch {
	case err1 != nil || err2 != nil || end.Before(begin):
		return begin, end, navwire.DatesOverlap
	case end.Sub(begin) > navwire.RangeMax:
		return begin, end, navwire.RangeExceeded
	}
	return begin, end, ""
}

// list serves queryTransactionList.
func (a *double) list(c *call) {
	turn, ok := a.asked(c)
	if !ok {
		return
	}
	span := c.root.At("insDate")
	begin, end, code := interval(span.Value("dateTimeFrom"), span.Value("dateTimeTo"), time.RFC3339)
	if code != "" {
		c.refuse(http.StatusBadRequest, code, "Hibás keresési intervallum!")
		return
	}
	type sent struct {
		id string
		r  report
	}
	var rows []sent
	err := a.desk.Write(func(b *authority.Book) {
		for n := 1; n <= reportsOf(b, c.taxpayer); n++ {
			id, _ := b.Get(fmt.Sprintf("reported/%s/%d", c.taxpayer, n))
			var r report
			if !b.Load("report/"+id, &r) || r.At.Before(begin.Add(-time.Second)) || r.At.After(end) {
				continue
			}
			if slices.ContainsFunc(r.Items, func(it item) bool { return a.hidden(it.Number) }) {
				continue
			}
			rows = append(rows, sent{id, r})
		}
	})
	if err != nil {
		c.refuse(http.StatusInternalServerError, navwire.OperationFailed, "Sikertelen művelet!")
		return
	}
	if !turn.End(c.w, c.r) {
		return
	}
	page, pages, part := paged(c.root.Value("page"), rows)
	c.answer(func(w *xmltree.Writer) {
		w.Start("transactionListResult")
		w.Leaf("currentPage", itoa(page))
		w.Leaf("availablePage", itoa(pages))
		for _, x := range part {
			w.Start("transaction")
			w.Leaf("insDate", x.r.At.Format(navwire.TimeLayout))
			w.Leaf("insCusUser", x.r.Login)
			w.Leaf("source", "MGM")
			w.Leaf("transactionId", x.id)
			w.Leaf("requestStatus", requestStatus(x.r))
			w.Leaf("technicalAnnulment", strconv.FormatBool(x.r.Annuls))
			w.Leaf("originalRequestVersion", navwire.RequestVersion)
			w.Leaf("itemCount", itoa(len(x.r.Items)))
			w.End()
		}
		w.End()
	})
}

func requestStatus(r report) string {
	for _, it := range r.Items {
		if it.Status == navwire.Processing {
			return navwire.Processing
		}
	}
	return "FINISHED"
}

func paged[T any](wanted string, rows []T) (page, pages int, part []T) {
	page, _ = strconv.Atoi(wanted) // the structure has checked it
	pages = (len(rows) + pageSize - 1) / pageSize
	from := min((page-1)*pageSize, len(rows))
	return page, pages, rows[max(from, 0):min(max(from, 0)+pageSize, len(rows))]
}

// invoiceOf reads a query by number, of the supplier or of the customer.
func (a *double) invoiceOf(c *call) (v invoice, data string, found, ok bool) {
	turn, ok := a.asked(c)
	if !ok {
		return v, "", false, false
	}
	q := c.root.At("invoiceNumberQuery")
	inbound, number, code := q.Value("invoiceDirection") == navwire.Inbound, q.Value("invoiceNumber"), ""
	err := a.desk.Write(func(b *authority.Book) {
		found, code = false, ""
		switch {
		case inbound:
			v, found, code = purchaseOf(b, c.taxpayer, q.Value("supplierTaxNumber"), number)
		case q.At("supplierTaxNumber") != nil:
			code = navwire.SupplierNotExpected
		default:
			found = b.Load("invoice/"+key(c.taxpayer, number), &v)
		}
		if found {
			data, _ = b.Get(dataKey(v.Report, v.Position))
		}
	})
	switch {
	case err != nil:
		c.refuse(http.StatusInternalServerError, navwire.OperationFailed, "Sikertelen művelet!")
		return v, "", false, false
	case code != "":
		c.refuse(http.StatusBadRequest, code, "Hibás keresési paraméter!")
		return v, "", false, false
	}
	if a.hidden(number) {
		found = false
	}
	return v, data, found, turn.End(c.w, c.r)
}

// invoiceData serves queryInvoiceData.
func (a *double) invoiceData(c *call) {
	v, data, found, ok := a.invoiceOf(c)
	if !ok {
		return
	}
	c.answer(func(w *xmltree.Writer) {
		if !found {
			return
		}
		w.Start("invoiceDataResult")
		w.Leaf("invoiceData", data)
		w.Start("auditData")
		w.Leaf("insdate", v.At.Format(navwire.TimeLayout))
		w.Leaf("insCusUser", c.login)
		w.Leaf("source", "MGM")
		w.Leaf("transactionId", v.Report)
		w.Leaf("index", itoa(v.Position))
		w.Leaf("originalRequestVersion", navwire.RequestVersion)
		w.End()
		w.Leaf("compressedContentIndicator", "false")
		w.End()
	})
}

// invoiceCheck serves queryInvoiceCheck.
func (a *double) invoiceCheck(c *call) {
	_, _, found, ok := a.invoiceOf(c)
	if ok {
		c.answer(func(w *xmltree.Writer) { w.Leaf("invoiceCheckResult", strconv.FormatBool(found)) })
	}
}

// row is an invoice in a list.
type row struct {
	number string
	v      invoice
}

// digest serves queryInvoiceDigest: of what a taxpayer has sold by day of issue, of what
// it has bought by the time of processing. It knows no other query.
func (a *double) digest(c *call) {
	turn, ok := a.asked(c)
	if !ok {
		return
	}
	params := c.root.At("invoiceQueryParams", "mandatoryQueryParams")
	inbound := c.root.Value("invoiceDirection") == navwire.Inbound
	from, to, layout := params.Value("invoiceIssueDate", "dateFrom"), params.Value("invoiceIssueDate", "dateTo"), time.DateOnly
	if inbound {
		from, to, layout = params.Value("insDate", "dateTimeFrom"), params.Value("insDate", "dateTimeTo"), time.RFC3339
	}
	begin, end, code := interval(from, to, layout)
	if code != "" {
		c.refuse(http.StatusBadRequest, code, "Hibás keresési intervallum!")
		return
	}
	var rows []row
	err := a.desk.Write(func(b *authority.Book) {
		if inbound {
			rows = purchases(b, c.taxpayer, begin, end)
			return
		}
		rows = sales(b, c.taxpayer, begin, end)
	})
	if err != nil {
		c.refuse(http.StatusInternalServerError, navwire.OperationFailed, "Sikertelen művelet!")
		return
	}
	if inbound {
		rows = slices.DeleteFunc(rows, func(x row) bool { return a.hidden(x.number) })
	}
	if !turn.End(c.w, c.r) {
		return
	}
	page, pages, part := paged(c.root.Value("page"), rows)
	c.answer(func(w *xmltree.Writer) {
		w.Start("invoiceDigestResult")
		w.Leaf("currentPage", itoa(page))
		w.Leaf("availablePage", itoa(pages))
		for _, x := range part {
			w.Start("invoiceDigest")
			w.Leaf("invoiceNumber", x.number)
			w.Leaf("invoiceOperation", x.v.Operation)
			w.Leaf("invoiceCategory", x.v.Category)
			w.Leaf("invoiceIssueDate", x.v.Issued)
			w.Leaf("supplierTaxNumber", x.v.Taxpayer)
			w.Leaf("supplierName", x.v.Supplier)
			w.Leaves("?customerTaxNumber", x.v.Customer[0], "?customerName", x.v.Customer[1], "?currency", x.v.Currency,
				"?invoiceNetAmount", x.v.Net[0], "?invoiceNetAmountHUF", x.v.Net[1], "?invoiceVatAmount", x.v.VAT[0],
				"?invoiceVatAmountHUF", x.v.VAT[1])
			w.Leaf("transactionId", x.v.Report)
			w.Leaf("index", itoa(x.v.Position))
			w.Maybe("originalInvoiceNumber", x.v.Original)
			if x.v.Index > 0 {
				w.Leaf("modificationIndex", itoa(x.v.Index))
			}
			w.Leaf("insDate", x.v.At.Format(navwire.TimeLayout))
			w.End()
		}
		w.End()
	})
}

func sales(b *authority.Book, taxpayer string, begin, end time.Time) (rows []row) {
	for day := begin; !day.After(end); day = day.AddDate(0, 0, 1) {
		var numbers []string
		b.Load("day/"+key(taxpayer, day.Format(time.DateOnly)), &numbers)
		for _, number := range numbers {
			var v invoice
			if b.Load("invoice/"+key(taxpayer, number), &v) {
				rows = append(rows, row{number, v})
			}
		}
	}
	return rows
}
