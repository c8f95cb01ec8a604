package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"tributary/internal/fault"
)

const (
	seriesAnswerMax = 8 << 20
	seriesTimeout   = 30 * time.Second
)

// Series lists or makes a client's number series.
type Series struct {
	URL, APIKey string
	JSON        bool
	New         map[string]any // nil: list
}

// seriesRow is one as the service shows it.
type seriesRow struct {
	ID         string `json:"id"`
	SupplierID string `json:"supplier_id"`
	Kind       string `json:"kind"`
	Country    string `json:"country_code"`
	Pattern    string `json:"pattern"`
	Next       int64  `json:"next"`
	Yearly     bool   `json:"yearly"`
	Gaps       []struct {
		From, To, Reason, At string
	} `json:"gaps"`
}

// Run asks the service and prints its answer. What it refuses is fault.Invalid.
func (s Series) Run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, seriesTimeout)
	defer cancel()
	if s.New != nil {
		body, _ := json.Marshal(s.New) // plain data always encodes
		text, err := s.call(ctx, http.MethodPost, "", body)
		if err != nil {
			return err
		}
		return s.print(out, text, []json.RawMessage{text})
	}
	all := seriesPage{Data: []json.RawMessage{}}
	for query := "?limit=100"; ; {
		text, err := s.call(ctx, http.MethodGet, query, nil)
		if err != nil {
			return err
		}
		var page seriesPage
		if err := json.Unmarshal(text, &page); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		all.Data = append(all.Data, page.Data...)
		if page.Next == nil {
			break
		}
		query = "?limit=100&cursor=" + url.QueryEscape(*page.Next)
	}
	text, _ := json.Marshal(all) // it was JSON before
	return s.print(out, text, all.Data)
}

// seriesPage is a part of the list, and of what is printed the whole.
type seriesPage struct {
	Data []json.RawMessage `json:"data"`
	Next *string           `json:"next_cursor"`
}

// call answers what the service says.
func (s Series) call(ctx context.Context, method, query string, body []byte) ([]byte, error) {
	address := strings.TrimSuffix(s.URL, "/") + "/v1/series" + query
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fault.New(fault.Invalid, "--url: %v", err)
	}
	r.Header.Set("Authorization", "Bearer "+s.APIKey)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("call the service: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, seriesAnswerMax))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return nil, refused(answer.StatusCode, text)
	}
	return text, nil
}

// refused tells what the service said.
func refused(status int, text []byte) error {
	var told struct {
		Message string        `json:"message"`
		Errors  []fault.Fault `json:"errors"`
	}
	if json.Unmarshal(text, &told) != nil || told.Message == "" {
		return fmt.Errorf("the service answers %d", status)
	}
	return fault.New(fault.Invalid, "%s", told.Message).With(told.Errors...)
}

// print writes the answer as it came, or its rows as a table.
func (s Series) print(out io.Writer, text []byte, rows []json.RawMessage) error {
	if s.JSON {
		_, err := fmt.Fprintln(out, string(text))
		return err
	}
	list := make([]seriesRow, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row, &list[i]); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERIES\tSUPPLIER\tCOUNTRY\tKIND\tPATTERN\tNEXT\tYEARLY")
	for _, one := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%t\n", one.ID, one.SupplierID, one.Country, one.Kind, one.Pattern, one.Next,
			one.Yearly)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, one := range list {
		for _, gap := range one.Gaps {
			fmt.Fprintf(out, "%s left out %s to %s: %s, %s\n", one.ID, gap.From, gap.To, gap.Reason, gap.At)
		}
	}
	return nil
}
