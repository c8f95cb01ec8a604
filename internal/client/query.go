package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Query asks the service and prints what it says, for people or as JSON.
type Query struct {
	URL    string
	APIKey string
	JSON   bool
}

const (
	lookFor     = 30 * time.Second // one question is tried again so long
	pageLimit   = 100              // entries asked for at once
	LookRowsMax = 10_000           // of a list
)

func (l Query) open(warn io.Writer) (*service, error) {
	s := Submission{URL: l.URL, APIKey: l.APIKey, Operation: "transaction", Paths: []string{"-"}, Concurrency: 1,
		RetryFor: lookFor}
	if err := s.check(warn); err != nil {
		return nil, err
	}
	return newService(&s, warn), nil
}

// ask reads one answer; a 404 is an error in the service's own words.
func (c *service) ask(ctx context.Context, path string, into any) ([]byte, error) {
	status, answer, err := c.exchangeAny(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if status != http.StatusNotFound {
		err = c.fatal(status, answer)
	}
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		var said refusal
		_ = json.Unmarshal(answer, &said) // without a message the status must do
		return nil, fault.New(fault.Invalid, "the service answers %d: %s", status, said.Message).With(said.Errors...)
	}
	if into == nil {
		return answer, nil
	}
	return answer, json.Unmarshal(answer, into)
}

// shown is what is printed of a result, or of a row of a list.
type shown struct {
	result
	OperationID   string `json:"operation_id"`
	TransactionID string `json:"transaction_id"`
	Number        string `json:"transaction_number"`
	Date          string `json:"transaction_date"`
	Kind          string `json:"kind"`
	Country       string `json:"country_code"`
	ReportedAt    string `json:"reported_at"`
	Attachments   []struct {
		Kind        string `json:"kind"`
		Type        string `json:"type"`
		ResourceURL string `json:"resource_url"`
	} `json:"attachments"`
	Corrections []struct {
		TransactionID string `json:"transaction_id"`
		Kind          string `json:"kind"`
		Status        string `json:"status"`
	} `json:"corrections"`
}

var operationID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Get prints one operation, or all attempts of a transaction.
func (l Query) Get(ctx context.Context, id string, to Streams) error {
	c, err := l.open(to.Err)
	if err != nil {
		return err
	}
	if operationID.MatchString(id) {
		return l.get(ctx, c, id, to)
	}
	var h struct {
		History []struct {
			OperationID string `json:"operation_id"`
		} `json:"history"`
	}
	if _, err := c.ask(ctx, "/v1/transactions/history/"+url.PathEscape(id), &h); err != nil {
		return err
	}
	for i, attempt := range h.History {
		if i > 0 && !l.JSON {
			fmt.Fprintln(to.Out)
		}
		if err := l.get(ctx, c, attempt.OperationID, to); err != nil {
			return err
		}
	}
	return nil
}

func (l Query) get(ctx context.Context, c *service, id string, to Streams) error {
	var r shown
	answer, err := c.ask(ctx, "/v1/transactions/"+id, &r)
	if err != nil {
		return err
	}
	if l.JSON {
		return printIndented(to.Out, answer)
	}
	w := tabwriter.NewWriter(to.Out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, fault.Printable(value))
		}
	}
	line("transaction", r.TransactionID)
	line("operation", r.OperationID)
	line("status", r.Status)
	line("kind", strings.ToLower(r.Kind)+" in "+r.Country)
	line("number", r.Number)
	line("dated", r.Date)
	line("total", money(r.Total, r.Currency))
	line("authority", r.AuthorityID)
	line("reported", r.ReportedAt)
	for _, f := range r.Errors {
		line(string(f.Type), string(f.Code)+": "+f.Message)
		for _, c := range explain(r.Country, f.Message) {
			line("", c.Code+" means: "+c.Meaning+" What to do: "+c.Do)
		}
	}
	for _, x := range r.Corrections {
		line("corrected by", x.TransactionID+", "+strings.ToLower(x.Kind)+" "+x.Status)
	}
	for _, a := range r.Attachments {
		line(strings.ToLower(a.Kind), a.ResourceURL)
	}
	return w.Flush()
}

// explain says what the codes of a country's authority mean that stand in a message.
func explain(code, message string) []country.AuthorityCode {
	packs, err := world.Packs()
	at := slices.IndexFunc(packs, func(p country.Pack) bool { return p.Code == code })
	if err != nil || at < 0 {
		return nil // the message says it in the authority's own words
	}
	return packs[at].Explain(message)
}

// Wanted narrows a list.
type Wanted struct {
	Query url.Values
	Rows  int // at most
}

// List prints transactions, newest first.
func (l Query) List(ctx context.Context, wanted Wanted, to Streams) error {
	return l.print(ctx, wanted, to, listing{"/v1/transactions",
		"TRANSACTION\tNUMBER\tDATED\tCOUNTRY\tKIND\tSTATUS\tTOTAL\tWHY", func(entry []byte) (string, error) {
			var r shown
			if err := json.Unmarshal(entry, &r); err != nil {
				return "", err
			}
			why := Row{Errors: r.Errors}
			return strings.Join([]string{r.TransactionID, r.Number, r.Date, r.Country, strings.ToLower(r.Kind), r.Status,
				money(r.Total, r.Currency), why.what()}, "\t"), nil
		}})
}

// Companies prints the suppliers that are onboarded.
func (l Query) Companies(ctx context.Context, wanted Wanted, to Streams) error {
	return l.print(ctx, wanted, to, listing{"/onboarding/v2/companies", "COMPANY\tEXTERNAL ID\tCOUNTRY\tNAME\tSTATUS",
		func(entry []byte) (string, error) {
			var r company
			if err := json.Unmarshal(entry, &r); err != nil {
				return "", err
			}
			return strings.Join([]string{r.ID, r.Meta.ExternalID, r.Meta.Country, r.Name, r.Status}, "\t"), nil
		}})
}

type company struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Name   string `json:"legal_name"`
	Meta   struct {
		Country    string `json:"country_code"`
		ExternalID string `json:"external_id"`
	} `json:"meta"`
}

// Events prints webhook events, newest first.
func (l Query) Events(ctx context.Context, wanted Wanted, to Streams) error {
	return l.print(ctx, wanted, to, listing{"/v1/webhooks/events", "EVENT\tTYPE\tOF\tSTATUS\tTRIES\tLAST ANSWER\tMADE",
		func(entry []byte) (string, error) {
			var r struct {
				ID       string `json:"webhook_id"`
				Type     string `json:"event_type"`
				Resource string `json:"resource_id"`
				Status   string `json:"status"`
				Tries    int    `json:"tries"`
				Last     *int   `json:"last_status"`
				Created  string `json:"created_at"`
			}
			if err := json.Unmarshal(entry, &r); err != nil {
				return "", err
			}
			last := "-"
			if r.Last != nil {
				last = strconv.Itoa(*r.Last)
			}
			return strings.Join([]string{r.ID, r.Type, r.Resource, r.Status, strconv.Itoa(r.Tries), last, r.Created}, "\t"), nil
		}})
}

// listing is a list of the service and how a terminal shows it.
type listing struct {
	path, head string
	line       func(entry []byte) (string, error)
}

// print walks the pages of a list.
func (l Query) print(ctx context.Context, wanted Wanted, to Streams, list listing) error {
	if wanted.Rows < 1 || wanted.Rows > LookRowsMax {
		return fault.New(fault.Invalid, "--limit must be 1 to %d", LookRowsMax)
	}
	c, err := l.open(to.Err)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(to.Out, 0, 0, 2, ' ', 0)
	if !l.JSON {
		fmt.Fprintln(w, list.head)
	}
	shown := 0
	err = c.pages(ctx, list.path, wanted, func(entry json.RawMessage) error {
		shown++
		if l.JSON {
			return printIndented(to.Out, entry)
		}
		text, err := list.line(entry)
		if err != nil {
			return err
		}
		cells := strings.Split(text, "\t")
		for i := range cells {
			cells[i] = fault.Printable(cells[i])
		}
		_, err = fmt.Fprintln(w, strings.Join(cells, "\t"))
		return err
	})
	if err != nil || l.JSON {
		return err
	}
	if shown == 0 {
		fmt.Fprintln(to.Err, "nothing found")
	}
	return w.Flush()
}

// pages hands over the entries of a list, page by page.
func (c *service) pages(ctx context.Context, path string, wanted Wanted, each func(json.RawMessage) error) error {
	query := url.Values{}
	for name, values := range wanted.Query {
		query[name] = values
	}
	for left := wanted.Rows; left > 0; {
		query.Set("limit", strconv.Itoa(min(left, pageLimit)))
		var page struct {
			Data []json.RawMessage `json:"data"`
			Next *string           `json:"next_cursor"`
		}
		if _, err := c.ask(ctx, path+"?"+query.Encode(), &page); err != nil {
			return err
		}
		for _, entry := range page.Data[:min(left, len(page.Data))] {
			if err := each(entry); err != nil {
				return err
			}
		}
		left -= len(page.Data)
		if page.Next == nil {
			return nil
		}
		query.Set("cursor", *page.Next)
	}
	return nil
}

// printIndented prints an answer for people who pipe it into something.
func printIndented(w io.Writer, answer []byte) error {
	var text bytes.Buffer
	if err := json.Indent(&text, answer, "", "  "); err != nil {
		return fmt.Errorf("the service's answer is not JSON: %w", err)
	}
	text.WriteByte('\n')
	_, err := text.WriteTo(w)
	return err
}

func money(amount *int64, currency string) string {
	if amount == nil {
		return ""
	}
	return Money(*amount, currency)
}

// Money prints minor units with the currency's decimals: 22710 EUR is 227.10 EUR.
func Money(amount int64, currency string) string {
	decimals, known := transaction.CurrencyExponent(strings.ToUpper(currency))
	if !known || decimals == 0 {
		return strconv.FormatInt(amount, 10) + " " + currency
	}
	sign, digits := "", strconv.FormatInt(amount, 10)
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	if missing := decimals + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	at := len(digits) - decimals
	return sign + digits[:at] + "." + digits[at:] + " " + currency
}
