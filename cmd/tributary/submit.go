package main

import (
	"time"

	"tributary/internal/client"
)

// submitCommand is the client's own tool: files in, results out.
type submitCommand struct {
	Paths []string `arg:"" optional:"" name:"file" help:"Files or folders: .json (one transaction or an array), .jsonl or .ndjson, .csv."`
	URL   string   `help:"Base address of the service." default:"http://127.0.0.1:8080" placeholder:"URL" name:"url"`
	keyFlags
	Operation   string        `help:"What the entries are: transaction, adjustment, credit, cancellation, payment or backfill." enum:"transaction,adjustment,credit,cancellation,payment,backfill" default:"transaction"`
	Wait        bool          `help:"Wait until every result is there."`
	WaitFor     time.Duration `help:"Give up waiting after this long; 0 waits as long as it takes." default:"0s"`
	Concurrency int           `help:"Requests at the same time." default:"8"`
	RetryFor    time.Duration `help:"How long one request is tried again when the service cannot be reached or is busy." default:"5m"`
	RetryFailed bool          `help:"Submit what ended in FAILURE again, also when its content has not changed."`
	State       string        `help:"File that remembers what was accepted; default: beside the first file, with .submitted at the end." placeholder:"FILE"`
	Report      string        `help:"Write the results to this file, .csv or .json." placeholder:"FILE"`
	JSON        bool          `help:"Print the results as JSON instead of a table." name:"json"`
	Template    bool          `help:"Print the columns of a CSV file with an example, and end." name:"csv-template" setting:"-"`
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
		Paths: s.Paths, URL: s.URL, APIKey: key.RevealText(), Operation: s.Operation, Wait: s.Wait, WaitFor: s.WaitFor, Concurrency: s.Concurrency,
		RetryFor: s.RetryFor, RetryFailed: s.RetryFailed, State: s.State, Report: s.Report, JSON: s.JSON,
	}.Run(c.ctx, c.both())
}
