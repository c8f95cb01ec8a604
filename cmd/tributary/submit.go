package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"tributary/internal/fault"
)

// submitCommand is the client's own tool: files in, results out.
//
// Failure policy: what was accepted is written to the state file and synced
// before it counts as done. An entry whose answer was lost, by a cut line or
// because this process was killed, is submitted again; the service makes that
// harmless, because a transaction_id is an idempotency key. So the state file
// saves work, it never guards against filing twice.
type submitCommand struct {
	Paths       []string      `arg:"" optional:"" name:"file" help:"Files or folders: .json (one transaction or an array), .jsonl or .ndjson, .csv."`
	URL         string        `help:"Base address of the service." default:"http://127.0.0.1:8080" placeholder:"URL" name:"url"`
	APIKey      string        `help:"The client's API key." placeholder:"KEY" name:"api-key"`
	Operation   string        `help:"What the entries are: transaction, adjustment, credit, cancellation or backfill." enum:"transaction,adjustment,credit,cancellation,backfill" default:"transaction"`
	Wait        bool          `help:"Wait until every result is there."`
	WaitFor     time.Duration `help:"Give up waiting after this long; 0 waits as long as it takes." default:"0s"`
	Concurrency int           `help:"Requests at the same time." default:"8"`
	RetryFor    time.Duration `help:"How long one request is tried again when the service cannot be reached or is busy." default:"5m"`
	RetryFailed bool          `help:"Submit what ended in FAILURE again, also when its content has not changed."`
	State       string        `help:"File that remembers what was accepted; default: beside the first file, with .submitted at the end." placeholder:"FILE"`
	Report      string        `help:"Write the results to this file, .csv or .json." placeholder:"FILE"`
	JSON        bool          `help:"Print the results as JSON instead of a table." name:"json"`
	Template    bool          `help:"Print the columns of a CSV file with an example, and end." name:"csv-template"`
}

// concurrencyMax keeps one client from spending its whole rate limit on connections.
const concurrencyMax = 64

// Run submits. Exit code 0: everything was accepted and, with --wait, ended in
// SUCCESS; 1: something was not, or the run was interrupted; 2: the call or the
// files are not valid, and nothing was sent.
func (s *submitCommand) Run(c *command) error {
	if s.Template {
		_, err := c.out.Write(csvTemplate())
		return err
	}
	if err := s.check(c); err != nil {
		return err
	}
	entries, err := readEntries(s.Paths)
	if err != nil {
		return err
	}
	state, err := openState(s.statePath(), stateHead{Version: stateVersion, URL: s.URL, Operation: s.Operation})
	if err != nil {
		return err
	}
	run := &submission{entries: entries, state: state, client: newSubmitClient(s), progress: c.err, retryFailed: s.RetryFailed}
	err = run.submitAll(c.ctx, s.Concurrency)
	if err == nil && s.Wait {
		ctx, cancel := c.ctx, context.CancelFunc(func() {})
		if s.WaitFor > 0 {
			ctx, cancel = context.WithTimeout(c.ctx, s.WaitFor)
		}
		err = run.waitAll(ctx, s.Concurrency)
		cancel()
	}
	if err == nil && c.ctx.Err() != nil {
		err = errInterrupted
	}
	run.client.http.CloseIdleConnections()
	err = errors.Join(err, state.Close())
	rows := run.rows()
	if s.Report != "" {
		err = errors.Join(err, writeReport(s.Report, rows))
	}
	if s.JSON {
		out := json.NewEncoder(c.out)
		out.SetIndent("", "  ")
		err = errors.Join(err, out.Encode(rows))
	} else {
		err = errors.Join(err, printRows(c.out, rows))
	}
	return errors.Join(err, verdict(rows, s.Wait))
}

var errInterrupted = errors.New("interrupted: run the same command again and it goes on where it stopped")

func (s *submitCommand) check(c *command) error {
	var faults []fault.Fault
	wrong := func(flag, format string, args ...any) {
		faults = append(faults, fault.At(flag, fault.FieldNotValid, format, args...))
	}
	if len(s.Paths) == 0 {
		wrong("FILE", "is missing: name files or folders, or ask for --csv-template")
	}
	if s.APIKey == "" {
		wrong("--api-key", "is missing: give it, or set TRIBUTARY_API_KEY")
	}
	if s.Concurrency < 1 || s.Concurrency > concurrencyMax {
		wrong("--concurrency", "must be 1 to %d", concurrencyMax)
	}
	if s.RetryFor < 0 || s.WaitFor < 0 {
		wrong("--retry-for", "and --wait-for must not be negative")
	}
	if x := strings.ToLower(filepath.Ext(s.Report)); s.Report != "" && x != ".csv" && x != ".json" {
		wrong("--report", "%q must end in .csv or .json", s.Report)
	}
	s.URL = strings.TrimSuffix(s.URL, "/")
	base, err := url.Parse(s.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.User != nil {
		wrong("--url", "%q is not of the form https://HOST", s.URL)
	} else if base.Scheme == "http" && !loopbackHost(base.Hostname()) {
		fmt.Fprintf(c.err, "the API key travels in clear text to %s: use https\n", base.Host)
	}
	if len(faults) > 0 {
		return fault.New(fault.Invalid, "the call is not valid").With(faults...)
	}
	return nil
}

func loopbackHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (s *submitCommand) statePath() string {
	if s.State != "" {
		return s.State
	}
	return filepath.Clean(s.Paths[0]) + ".submitted"
}

// verdict is the error that makes the exit code 1, or nil.
func verdict(rows []reportRow, wait bool) error {
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.Status]++
	}
	good := counts[rowSuccess]
	if !wait {
		good += counts[rowAccepted] + counts[rowProcessing]
	}
	if good == len(rows) {
		return nil
	}
	return fmt.Errorf("%d of %d did not end well (%s)", len(rows)-good, len(rows), summary(rows))
}
