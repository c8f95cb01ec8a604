package client

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// How an entry ended. The first three are the service's own words.
const (
	rowSuccess    = "SUCCESS"
	rowFailure    = "FAILURE"
	rowProcessing = "PROCESSING"    // accepted, and waited for in vain
	rowAccepted   = "ACCEPTED"      // accepted, and not waited for
	rowRefused    = "REFUSED"       // answered with 400: nothing is stored
	rowNotSent    = "NOT_SUBMITTED" // no answer; run again
)

// Row is one line of the report.
type Row struct {
	Source        string        `json:"source"`
	TransactionID string        `json:"transaction_id"`
	Number        string        `json:"transaction_number"`
	Status        string        `json:"status"`
	OperationID   string        `json:"operation_id"`
	UniqueNumber  string        `json:"unique_transaction_number"`
	AuthorityID   string        `json:"tax_authority_id_1"`
	Currency      string        `json:"currency_code"`
	Total         *int64        `json:"total_amount"`
	Message       string        `json:"message"`
	Errors        []fault.Fault `json:"errors"`
}

// rows is the report, in the order of the input.
func (s *submission) rows() []Row {
	rows := make([]Row, len(s.entries))
	for i, e := range s.entries {
		r := Row{Source: e.source, TransactionID: e.id, Number: e.number, Status: rowNotSent, Errors: []fault.Fault{}}
		o := s.outcomes[i]
		switch {
		case o.result != nil:
			r.Status, r.UniqueNumber, r.AuthorityID = o.result.Status, o.result.UniqueNumber, o.result.AuthorityID
			r.Currency, r.Total = o.result.Currency, o.result.Total
			r.Errors = append(r.Errors, o.result.Errors...)
		case o.refused != nil:
			r.Status, r.Message = rowRefused, o.refused.Message
			r.Errors = append(r.Errors, o.refused.Errors...)
		case o.operation != "":
			r.Status = rowAccepted
			if s.waited {
				r.Status = rowProcessing
			}
		}
		for i, f := range r.Errors {
			if cell := cellOf(f.Field, e.lines); e.lines != nil && cell != "" {
				r.Errors[i].Message += " (" + cell + ")"
			}
		}
		r.OperationID = o.operation
		if o.trouble != nil {
			r.Message = o.trouble.Error()
		}
		rows[i] = r
	}
	return rows
}

// what says in one line why a row is as it is.
func (r *Row) what() string {
	parts := make([]string, 0, len(r.Errors)+1)
	for _, f := range r.Errors {
		text := f.Message
		if !strings.Contains(text, f.Field) {
			text = f.Field + ": " + text
		}
		parts = append(parts, string(f.Code)+": "+text)
	}
	if len(parts) == 0 && r.Message != "" {
		parts = append(parts, r.Message)
	}
	return strings.Join(parts, "; ")
}

// summary counts rows by status.
func summary(rows []Row) string {
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.Status]++
	}
	var parts []string
	for _, status := range []string{rowSuccess, rowFailure, rowProcessing, rowAccepted, rowRefused, rowNotSent} {
		if n := counts[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return strings.Join(parts, ", ")
}

// tableRowsMax is how many rows a terminal is shown; past it only those that
// failed, and past that again the report has them.
const tableRowsMax = 50

func printRows(w io.Writer, rows []Row) error {
	shown := rows
	if len(rows) > tableRowsMax {
		shown = nil
		for _, r := range rows {
			if r.Status != rowSuccess && r.Status != rowAccepted && len(shown) < tableRowsMax {
				shown = append(shown, r)
			}
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(shown) > 0 {
		fmt.Fprintln(table, "TRANSACTION\tSTATUS\tTOTAL\tAUTHORITY\tWHAT")
	}
	for _, r := range shown {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", fault.Printable(r.TransactionID), r.Status, money(r.Total, r.Currency),
			fault.Printable(r.AuthorityID), fault.Printable(r.what()))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	printHints(w, shown)
	_, err := fmt.Fprintf(w, "%s: %s\n", fault.Count(len(rows), "transaction"), summary(rows))
	return err
}

// printHints says once of each error that is shown what to do about it.
func printHints(w io.Writer, rows []Row) {
	var all []fault.Fault
	for _, r := range rows {
		all = append(all, r.Errors...)
	}
	for _, m := range fault.Advice(all) {
		fmt.Fprintf(w, "%s: %s\n", m.Code, m.Action)
	}
}

// writeReport writes all rows to a file, CSV or JSON by its name. The file is
// replaced as a whole: a half-written report is never there.
func writeReport(path string, rows []Row) (err error) {
	draft, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("--report: %w", err), os.Remove(draft.Name()))
		}
	}()
	write := writeJSONReport
	if strings.EqualFold(filepath.Ext(path), ".csv") {
		write = writeCSVReport
	}
	if err := errors.Join(write(draft, rows), draft.Close()); err != nil {
		return err
	}
	return os.Rename(draft.Name(), path)
}

func writeJSONReport(w io.Writer, rows []Row) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(rows)
}

func writeCSVReport(w io.Writer, rows []Row) error {
	out := csv.NewWriter(w)
	// told by Error
	_ = out.Write([]string{"source", "transaction_id", "transaction_number", "status", "operation_id",
		"unique_transaction_number",
		"tax_authority_id_1", "currency_code", "total_amount", "what"})
	for _, r := range rows {
		total := ""
		if r.Total != nil {
			total = strconv.FormatInt(*r.Total, 10) // a number, never a text somebody chose
		}
		// told by Error
		_ = out.Write([]string{db.Cell(r.Source), db.Cell(r.TransactionID), db.Cell(r.Number), r.Status, r.OperationID,
			db.Cell(r.UniqueNumber),
			db.Cell(r.AuthorityID), db.Cell(r.Currency), total, db.Cell(r.what())})
	}
	out.Flush()
	return out.Error()
}
