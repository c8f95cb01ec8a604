// Package bench measures the service on the machine it runs on.
package bench

import (
	"context"
	"errors"
	"io"
)

// Config says what to measure.
type Config struct {
	Database string
	Stored   int
	JSON     bool
	Compare  string
	Plot     string
	Out, Err io.Writer
}

// Run measures and prints.
func Run(ctx context.Context, cfg Config) error { return errors.New("being written") }
