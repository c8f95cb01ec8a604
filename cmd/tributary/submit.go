package main

import (
	"time"

	"tributary/internal/client"
)

// submitCommand is the client's own tool: files in, results out.
type submitCommand struct {
	Paths []string `arg:"" optional:"" name:"file" help:"Files or folders: .json (one transaction or an array), .jsonl or .ndjson, .csv."`
	URL   string   `help:"Base URL of the service." default:"http://127.0.0.1:8080" placeholder:"URL" name:"url"`
	keyFlags
	Operation   string        `help:"Kind of the entries: transaction, adjustment, credit, cancellation, payment or backfill." enum:"transaction,adjustment,credit,cancellation,payment,backfill" default:"transaction"`
	Wait        bool          `help:"Wait for all results."`
	WaitFor     time.Duration `help:"Maximum time to wait; 0: no limit." default:"0s"`
	Concurrency int           `help:"Parallel requests." default:"8"`
	RetryFor    time.Duration `help:"How long to retry a request while the service is unreachable or busy." default:"5m"`
	RetryFailed bool          `help:"Submit failed entries again even if unchanged."`
	State       string        `help:"File that records accepted entries; default: the first file's name with .submitted appended." placeholder:"FILE"`
	Report      string        `help:"Write results to this file, .csv or .json." placeholder:"FILE"`
	JSON        bool          `help:"Print the results as JSON instead of a table." name:"json"`
	Template    bool          `help:"Print the CSV columns with an example and exit." name:"csv-template" setting:"-"`
}

// Run submits. Exit code 0: everything was accepted and, with --wait, ended in
// SUCCESS; 1: something was not, or the run was interrupted; 2: the call or the
// files are not valid, and nothing was sent.
func (s *submitCommand) Run(c *command) error {
	if s.Template {
		_, err := c.out.Write(client.CSVTemplate())
		return err
	}
	key, err := s.key()
	if err != nil {
		return err
	}
	return client.Submission{
		Paths: s.Paths, URL: s.URL, APIKey: key.RevealText(), Operation: s.Operation, Wait: s.Wait, WaitFor: s.WaitFor,
		Concurrency: s.Concurrency,
		RetryFor:    s.RetryFor, RetryFailed: s.RetryFailed, State: s.State, Report: s.Report, JSON: s.JSON,
	}.Run(c.ctx, c.both())
}
