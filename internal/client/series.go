package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	method, body := http.MethodGet, []byte(nil)
	if s.New != nil {
		method = http.MethodPost
		body, _ = json.Marshal(s.New) // plain data always encodes
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(s.URL, "/")+"/v1/series", bytes.NewReader(body))
	if err != nil {
		return fault.New(fault.Invalid, "--url: %v", err)
	}
	r.Header.Set("Authorization", "Bearer "+s.APIKey)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("call the service: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, seriesAnswerMax))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return refused(answer.StatusCode, text)
	}
	return s.print(out, text)
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

func (s Series) print(out io.Writer, text []byte) error {
	if s.JSON {
		_, err := fmt.Fprintln(out, string(text))
		return err
	}
	var list struct {
		Data []seriesRow `json:"data"`
	}
	var err error
	if s.New != nil {
		list.Data = make([]seriesRow, 1)
		err = json.Unmarshal(text, &list.Data[0])
	} else {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERIES\tSUPPLIER\tCOUNTRY\tKIND\tPATTERN\tNEXT\tYEARLY")
	for _, one := range list.Data {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%t\n", one.ID, one.SupplierID, one.Country, one.Kind, one.Pattern, one.Next,
			one.Yearly)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, one := range list.Data {
		for _, gap := range one.Gaps {
			fmt.Fprintf(out, "%s left out %s to %s: %s, %s\n", one.ID, gap.From, gap.To, gap.Reason, gap.At)
		}
	}
	return nil
}
