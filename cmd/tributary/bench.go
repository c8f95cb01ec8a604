package main

import (
	"fmt"
	"os"

	"tributary/internal/bench"
)

type benchCommand struct {
	Database string `help:"sqlite:PATH or postgres://…; default a temporary SQLite file." placeholder:"URL" setting:"bench-database"`
	Stored   int    `help:"First load this many settled transactions, and measure again with them." placeholder:"N"`
	JSON     bool   `help:"Print one JSON object on standard output and nothing else there." name:"json"`
	Compare  string `help:"Show the change against an earlier --json output." placeholder:"FILE"`
	Plot     string `help:"Draw the figures." placeholder:"FILE.svg"`
	Quick    bool   `help:"A fraction of the load: shows that everything works, its figures say little."`
	Nodes    int    `help:"Measure instead how many times as much this many processes settle on one PostgreSQL as one does, with an authority that takes its time." placeholder:"N"`
}

// Run measures.
func (b *benchCommand) Run(c *command) error {
	roomForGarbage() // as the service has it
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program's own file: %w", err)
	}
	return bench.Run(c.ctx, bench.Config{Database: b.Database, Stored: b.Stored, JSON: b.JSON, Compare: b.Compare, Plot: b.Plot, Quick: b.Quick, Nodes: b.Nodes, Program: program, Out: c.out, Err: c.err})
}
