package hu

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// bounds are those of a search after a lost answer: more than that is not known,
// and a person is asked.
type bounds struct {
	pages        int
	transactions int
}

func usualBounds() bounds { return bounds{pages: 200, transactions: 2000} }

// processed is what NAV says of one transaction.
type processed struct {
	id      string
	raw     []byte
	results []processing

	verification string // of an annulment: whether a person has agreed
}

// processing is the state of one invoice of it.
type processing struct {
	index    int
	status   string
	messages []message
	sha256   string // of the original request, where it was asked for
}

type message struct {
	severity, code, text string
	line                 string
}

func (t *processed) at(index int) (processing, bool) {
	for _, p := range t.results {
		if p.index == index {
			return p, true
		}
	}
	return processing{}, false
}

func (p processing) has(code string) bool {
	for _, m := range p.messages {
		if m.code == code && m.severity == navwire.Error {
			return true
		}
	}
	return false
}

func (p processing) text(code string) string {
	for _, m := range p.messages {
		if m.code == code {
			return m.text
		}
	}
	return ""
}

func (m message) String() string {
	text := strings.TrimSpace(m.code + ": " + m.text)
	if m.line != "" {
		text += " (line " + m.line + ")"
	}
	return text
}

// warnings are what NAV found of an invoice that it took.
func (p processing) warnings() []fault.Fault {
	var found []fault.Fault
	for _, m := range p.messages {
		if m.severity == navwire.Warning || m.severity == navwire.Info {
			found = append(found, fault.Warn("", fault.AuthorityRemark, "accepted with a remark, %s", m))
		}
	}
	return found
}

// refusals are why NAV did not take it. Severity is read from the answer: NAV
// turns warnings into errors from one day to another.
func (p processing) refusals() []fault.Fault {
	var found []fault.Fault
	for _, m := range p.messages {
		if m.severity == navwire.Warning || m.severity == navwire.Info {
			continue
		}
		found = append(found, fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: m.String()})
	}
	if len(found) == 0 {
		found = append(found, fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority,
			Message: "NAV refused the report without a reason"})
	}
	return found
}

// transaction asks what became of a transaction; with its original requests where
// they are to be compared.
func (u user) transaction(ctx context.Context, id string, originals bool) (*processed, error) {
	bytesMax := int64(answerBytesMax)
	if originals {
		bytesMax = originalBytesMax
	}
	root, raw, err := u.call(ctx, navwire.QueryTransactionStatus,
		u.request(navwire.QueryTransactionStatus, nil, func(w *xmltree.Writer) {
			w.Leaves("transactionId", id, "returnOriginalRequest", strconv.FormatBool(originals))
		}), bytesMax)
	if err != nil {
		return nil, err
	}
	t := &processed{id: id, raw: raw, verification: root.Value("processingResults", "annulmentData",
		"annulmentVerificationStatus")}
	for _, r := range root.At("processingResults").All("processingResult") {
		p := processing{status: r.Value("invoiceStatus")}
		if p.index, err = strconv.Atoi(r.Value("index")); err != nil {
			return nil, fmt.Errorf("reading transaction %s: %w", id, err)
		}
		for _, m := range append(r.All("technicalValidationMessages"), r.All("businessValidationMessages")...) {
			p.messages = append(p.messages, message{m.Value("validationResultCode"), m.Value("validationErrorCode"),
				m.Value("message"), m.Value("pointer", "line")})
		}
		if text := r.Value("originalRequest"); text != "" {
			if p.sha256, err = digest(text); err != nil {
				return nil, fmt.Errorf("reading transaction %s: %w", id, err)
			}
		}
		t.results = append(t.results, p)
	}
	return t, nil
}

func digest(encoded string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return "", err
	}
	return country.SHA256(data), nil
}

// invoice asks for the invoice of a query; nil: NAV shows none.
func (u user) invoice(ctx context.Context, query ...string) (result *xmltree.Element, raw []byte, err error) {
	root, raw, err := u.call(ctx, navwire.QueryInvoiceData, u.request(navwire.QueryInvoiceData, nil, func(w *xmltree.Writer) {
		w.Group("invoiceNumberQuery", query...)
	}), originalBytesMax)
	if err != nil {
		return nil, nil, err
	}
	return root.At("invoiceDataResult"), raw, nil
}

// own is the query of an invoice that the taxpayer itself has issued.
func own(number string) []string {
	return []string{"invoiceNumber", number, "invoiceDirection", navwire.Outbound}
}

// held asks for the invoice under a number: a positive proof and no negative one.
func (u user) held(ctx context.Context, number string) (country.Receipt, bool, error) {
	result, raw, err := u.invoice(ctx, own(number)...)
	if err != nil || result == nil {
		return country.Receipt{}, false, err
	}
	sum, err := digest(result.Value("invoiceData"))
	if err != nil {
		return country.Receipt{}, false, fmt.Errorf("reading the invoice %s: %w", number, err)
	}
	audit := result.At("auditData")
	r := country.Receipt{
		Outcome: country.Accepted, SHA256: sum, AuthorityID1: audit.Value("transactionId"), AuthorityID2: audit.Value("index"),
		Document: raw, Format: "XML", Raw: raw,
	}
	r.At, _ = time.Parse(time.RFC3339, audit.Value("insdate")) // without a time there is none
	return r, true, nil
}

// search looks for an invoice in what NAV received since it was made, newest
// first: an earlier attempt may have had the same bytes.
func (u user) search(ctx context.Context, f country.Filing) (*processed, processing, error) {
	ids, err := u.since(ctx, f.PreparedAt.Add(-time.Minute))
	if err != nil {
		return nil, processing{}, err
	}
	var echoed *processed
	var echo processing
	for i := len(ids) - 1; i >= 0; i-- {
		index, err := u.position(ctx, ids[i], f.SHA256)
		if err != nil {
			return nil, processing{}, err
		}
		if index == 0 {
			continue
		}
		t, err := u.transaction(ctx, ids[i], false)
		if err != nil {
			return nil, processing{}, err
		}
		p, _ := t.at(index)
		if p.status != navwire.Aborted || !p.has(navwire.NumberNotUnique) {
			return t, p, nil
		}
		if echoed == nil {
			echoed, echo = t, p // the second of two: the first decides
		}
	}
	return echoed, echo, nil
}

// position is the index of a document in a transaction, 0 where it is not in it.
func (u user) position(ctx context.Context, id, sum string) (int, error) {
	key := u.taxpayer + "/" + id
	sums, known := u.ch.seen.Get(key)
	if !known {
		t, err := u.transaction(ctx, id, true)
		if err != nil {
			return 0, err
		}
		if len(t.results) == 0 {
			return 0, fmt.Errorf("NAV lists transaction %s and does not show what is in it", id)
		}
		sums = make([]string, navwire.InvoicesMax)
		for _, p := range t.results {
			if p.sha256 == "" || p.index < 1 || p.index > navwire.InvoicesMax {
				return 0, fmt.Errorf("NAV lists transaction %s and does not show its invoice %d", id, p.index) // nothing is known of it
			}
			sums[p.index-1] = p.sha256
		}
		u.ch.seen.Put(key, sums)
	}
	for i, s := range sums {
		if s == sum {
			return i + 1, nil
		}
	}
	return 0, nil
}

// since lists the transactions that NAV received, oldest first. A list covers at
// most 35 days.
func (u user) since(ctx context.Context, from time.Time) ([]string, error) {
	var ids []string
	now := u.ch.now()
	if from.Before(now.AddDate(-1, 0, 0)) {
		from = now.AddDate(-1, 0, 0)
	}
	for from.Before(now) {
		to := from.Add(navwire.RangeMax - time.Minute)
		for page := 1; ; page++ {
			list, last, err := u.page(ctx, page, from, to)
			if err != nil {
				return nil, err
			}
			ids = append(ids, list...)
			if len(ids) > u.ch.bounds.transactions {
				return nil, fmt.Errorf("NAV received more than %d transactions: a person must look", u.ch.bounds.transactions)
			}
			if !last && page >= u.ch.bounds.pages {
				return nil, fmt.Errorf("NAV's list has more than %d pages: a person must look", u.ch.bounds.pages)
			}
			if last {
				break
			}
		}
		from = to
	}
	return ids, nil
}

func (u user) page(ctx context.Context, page int, from, to time.Time) (ids []string, last bool, err error) {
	root, _, err := u.call(ctx, navwire.QueryTransactionList,
		u.request(navwire.QueryTransactionList, nil, func(w *xmltree.Writer) {
			w.Leaf("page", strconv.Itoa(page))
			w.Group("insDate", "dateTimeFrom", from.UTC().Format(navwire.TimeLayout), "dateTimeTo",
				to.UTC().Format(navwire.TimeLayout))
		}), answerBytesMax)
	if err != nil {
		return nil, false, err
	}
	result := root.At("transactionListResult")
	for _, t := range result.All("transaction") {
		if t.Value("technicalAnnulment") != "true" {
			ids = append(ids, t.Value("transactionId"))
		}
	}
	last, err = lastPage(result, page)
	return ids, last, err
}

// lastPage reports whether a list has no further page. One that does not say is
// not known to be whole.
func lastPage(result *xmltree.Element, page int) (bool, error) {
	available, err := strconv.Atoi(result.Value("availablePage"))
	if err != nil {
		return false, fmt.Errorf("reading NAV's list: it does not say how many pages it has: %w", err)
	}
	return page >= available, nil
}

// Registered lists what NAV holds of a supplier by day of issue.
func (ch *channel) Registered(ctx context.Context, s country.Supplier, day country.Day,
	c country.Credentials) ([]country.Entry, error) {
	n, _ := readNumber(s.TaxNumber)
	u, err := ch.user(n.payer, c)
	if err != nil {
		return nil, err
	}
	var all []country.Entry
	for page := 1; page <= ch.bounds.pages; page++ {
		list, last, err := u.digests(ctx, page, navwire.Outbound, "invoiceIssueDate", "dateFrom", day.String(), "dateTo", day.String())
		if err != nil {
			return nil, fmt.Errorf("listing the invoices of %s on %s: %w", n.payer, day, err)
		}
		for _, d := range list {
			all = append(all, digested(d))
		}
		if last {
			return all, nil
		}
	}
	return nil, fmt.Errorf("listing the invoices of %s on %s: there is more after %d pages", n.payer, day, ch.bounds.pages)
}

// digests asks for a page of the invoices that a taxpayer has on one side, within a span
// that NAV knows by a name.
func (u user) digests(ctx context.Context, page int, side, by string, span ...string) (list []*xmltree.Element, last bool, err error) {
	root, _, err := u.call(ctx, navwire.QueryInvoiceDigest, u.request(navwire.QueryInvoiceDigest, nil, func(w *xmltree.Writer) {
		w.Leaves("page", strconv.Itoa(page), "invoiceDirection", side)
		w.Start("invoiceQueryParams")
		w.Start("mandatoryQueryParams")
		w.Group(by, span...)
		w.End()
		w.End()
	}), answerBytesMax)
	if err != nil {
		return nil, false, err
	}
	result := root.At("invoiceDigestResult")
	last, err = lastPage(result, page)
	return result.All("invoiceDigest"), last, err
}

// Lines reads those of an invoice from its data: the list has sums alone.
func (ch *channel) Lines(ctx context.Context, s country.Supplier, e country.Entry, c country.Credentials) ([]int64, error) {
	n, _ := readNumber(s.TaxNumber)
	u, err := ch.user(n.payer, c)
	if err != nil {
		return nil, err
	}
	result, _, err := u.invoice(ctx, own(e.Number)...)
	if err == nil && result == nil {
		err = errors.New("NAV lists it and does not show it")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the invoice %s: %w", e.Number, err)
	}
	data, err := dataOf(result)
	if err != nil {
		return []int64{}, nil
	}
	d, err := Read(data)
	if err != nil { // another program wrote it
		return []int64{}, nil
	}
	return d.LineNets(), nil
}

// minor reads an amount of a list; nil: there is none, or it has more decimals than its currency.
func minor(text string, decimals int) *int64 {
	a, err := num.AmountFromString(text)
	if err != nil || text == "" || a.Rescale(uint32(decimals)).Compare(a) != 0 {
		return nil
	}
	value := a.Rescale(uint32(decimals)).Value()
	return &value
}

func digested(d *xmltree.Element) country.Entry {
	e := country.Entry{
		Number: d.Value("invoiceNumber"), AuthorityID1: d.Value("transactionId"), AuthorityID2: d.Value("index"),
		Reference: d.Value("originalInvoiceNumber"), Customer: d.Value("customerTaxNumber"),
	}
	if decimals, known := transaction.CurrencyExponent(d.Value("currency")); known && decimals <= hufDecimals {
		e.Net, e.Tax = minor(d.Value("invoiceNetAmount"), decimals), minor(d.Value("invoiceVatAmount"), decimals)
	}
	e.At, _ = time.Parse(time.RFC3339, d.Value("insDate")) // without a time there is none
	switch d.Value("invoiceOperation") {
	case navwire.Storno:
		e.Kind = transaction.Credit
	case navwire.Modify:
		e.Kind = transaction.Adjustment
	default:
		e.Kind = transaction.Invoice
	}
	return e
}
