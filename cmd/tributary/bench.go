package main

import (
	"fmt"
	"os"

	"tributary/internal/bench"
	"tributary/internal/fault"
)

// --pair and --rounds are of the command line only: set for a machine, they
// would reach the runs that --pair starts, and those would start others.
type benchCommand struct {
	Database string  `help:"sqlite:PATH or postgres://…; default a temporary SQLite file." placeholder:"URL" setting:"bench-database"`
	Stored   int     `help:"First load this many settled transactions and measure again." placeholder:"N"`
	JSON     bool    `help:"Print one JSON object on standard output and nothing else." name:"json"`
	Compare  string  `help:"Show the change against an earlier --json output." placeholder:"FILE"`
	Plot     string  `help:"Plot the results." placeholder:"FILE.svg"`
	Quick    bool    `help:"A fraction of the load: a smoke test, not a measurement."`
	Nodes    int     `help:"Measure instead how throughput scales with this many processes on one PostgreSQL, with a slow authority." placeholder:"N"`
	Received bool    `help:"Measure instead how 10,000 documents that wait for one company at its authority are fetched, stored, read and announced, and the memory that takes."`
	Pair     *string `help:"Compare with another build: run both alternately and print the ratios (this / other) with their spread, on SQLite and, if --database names one, on PostgreSQL." placeholder:"BINARY" setting:"-"`
	Rounds   int     `help:"Runs of each build, 3 to 100; default 3." default:"3" placeholder:"N" setting:"-"`
}

// Run measures.
func (b *benchCommand) Run(c *command) error {
	roomForGarbage() // as the service has it
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program's own file: %w", err)
	}
	cfg := bench.Config{Database: b.Database, Stored: b.Stored, JSON: b.JSON, Compare: b.Compare, Plot: b.Plot,
		Quick: b.Quick, Nodes: b.Nodes, Received: b.Received, Rounds: b.Rounds, Program: program, Out: c.out, Err: c.err}
	switch {
	case b.Pair == nil && b.Rounds != bench.RoundsMin:
		return fault.New(fault.Invalid, "--rounds requires --pair")
	case b.Pair != nil && *b.Pair == "":
		return fault.New(fault.Invalid, "--pair requires a file")
	case b.Pair != nil:
		cfg.Pair = *b.Pair
	}
	return bench.Run(c.ctx, cfg)
}
