// Package client is what a client of the service does from its own machine:
// submit files and collect the results, verify the signature of a webhook,
// receive webhooks during development.
//
// It owns the reading of files, the state file that lets a run go on where it
// stopped, the polite talk with the service and the report. It knows nothing of
// the inside of the service: what it needs goes through HTTP, as for every
// other client. It does not own flags and exit codes, which are the command
// line's. The law of [Submission.Run]: an entry that was accepted is in the
// state file, synced, before it counts as done.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"tributary/internal/fault"
)

// ConcurrencyMax keeps one client from spending its whole rate limit on connections.
const ConcurrencyMax = 64

// Streams are where results and everything else that is said go.
type Streams struct{ Out, Err io.Writer }

// Submission is one run: files in, results out. Faults name its members by the
// flags that set them.
//
// Failure policy: what was accepted is written to the state file and synced
// before it counts as done. An entry whose answer was lost, by a cut line or
// because this process was killed, is submitted again; the service makes that
// harmless, because a transaction_id is an idempotency key. So the state file
// saves work, it never guards against filing twice.
type Submission struct {
	Paths       []string // files and folders
	URL         string   // base address of the service
	APIKey      string
	Operation   string        // transaction, adjustment, credit, cancellation, payment or backfill
	Wait        bool          // for every result
	WaitFor     time.Duration // at most; 0: as long as it takes
	Concurrency int           // requests at the same time, 1 to ConcurrencyMax
	RetryFor    time.Duration // how long one request is tried again
	RetryFailed bool          // submit what ended in FAILURE again
	State       string        // file that remembers what was accepted; default beside the first path
	Report      string        // file for the results, .csv or .json; empty: none
	JSON        bool          // print JSON instead of a table
}

// Run submits and prints the results. The error is nil when everything was
// accepted and, with Wait, ended in SUCCESS; it is fault.Invalid when settings
// or files are not valid, and nothing was sent.
func (s Submission) Run(ctx context.Context, to Streams) error {
	if err := s.check(to.Err); err != nil {
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
	run := &submission{entries: entries, state: state, service: newService(&s, to.Err), progress: to.Err, retryFailed: s.RetryFailed}
	err = s.exchange(ctx, run)
	run.service.http.CloseIdleConnections()
	err = errors.Join(err, state.Close())
	rows := run.rows()
	return errors.Join(err, s.tell(to.Out, rows), verdict(rows, s.Wait))
}

// exchange submits and, where it is wanted, waits.
func (s *Submission) exchange(ctx context.Context, run *submission) error {
	if err := run.submitAll(ctx, s.Concurrency); err != nil {
		return err
	}
	if s.Wait {
		waiting, cancel := ctx, context.CancelFunc(func() {})
		if s.WaitFor > 0 {
			waiting, cancel = context.WithTimeout(ctx, s.WaitFor)
		}
		defer cancel()
		if err := run.waitAll(waiting, s.Concurrency); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return nil
}

// tell writes the report and prints the rows.
func (s *Submission) tell(out io.Writer, rows []Row) (err error) {
	if s.Report != "" {
		err = writeReport(s.Report, rows)
	}
	if !s.JSON {
		return errors.Join(err, printRows(out, rows))
	}
	text := json.NewEncoder(out)
	text.SetIndent("", "  ")
	return errors.Join(err, text.Encode(rows))
}

var errInterrupted = errors.New("interrupted: run the same command again to resume")

func (s *Submission) check(warn io.Writer) error {
	var faults []fault.Fault
	wrong := func(flag, format string, args ...any) {
		faults = append(faults, fault.At(flag, fault.FieldNotValid, format, args...))
	}
	if len(s.Paths) == 0 {
		wrong("FILE", "is required: files or folders, or --csv-template")
	}
	if s.APIKey == "" {
		wrong("--api-key", "is required: give it, or set TRIBUTARY_API_KEY")
	}
	if s.Concurrency < 1 || s.Concurrency > ConcurrencyMax {
		wrong("--concurrency", "must be 1 to %d", ConcurrencyMax)
	}
	if s.RetryFor < 0 || s.WaitFor < 0 {
		wrong("--retry-for", "and --wait-for must not be negative")
	}
	if x := strings.ToLower(filepath.Ext(s.Report)); s.Report != "" && x != ".csv" && x != ".json" {
		wrong("--report", "%q must end in .csv or .json", s.Report)
	}
	s.URL = strings.TrimSuffix(s.URL, "/")
	base, err := url.Parse(s.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" ||
		base.User != nil {
		wrong("--url", "%q is not of the form https://HOST", s.URL)
	} else if base.Scheme == "http" && !loopbackHost(base.Hostname()) {
		fmt.Fprintf(warn, "warning: the API key is sent unencrypted to %s: use https\n", base.Host)
	}
	if len(faults) > 0 {
		return fault.New(fault.Invalid, "Invalid command").With(faults...)
	}
	return nil
}

func loopbackHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (s *Submission) statePath() string {
	if s.State != "" {
		return s.State
	}
	return filepath.Clean(s.Paths[0]) + ".submitted"
}

// verdict is the error that makes the exit code 1, or nil.
func verdict(rows []Row, wait bool) error {
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
	return fmt.Errorf("%d of %d failed (%s)", len(rows)-good, len(rows), summary(rows))
}
