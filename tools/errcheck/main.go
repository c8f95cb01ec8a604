// Command errcheck is errcheck as a tool of go vet, which hands it what the compiler has made of the imports and keeps
// what it found of packages that stay as they are. errcheck by itself types every dependency from its source, each time.
//
//	go vet -vettool="$(go -C tools tool -n errcheck)" -errcheck.exclude="$PWD/tools/errcheck/exclude" ./...
package main

import (
	_ "embed"

	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// The list is read from the file. It is part of the tool as well, because go vet
// looks at the tool to know whether what it has kept still holds.
//
//go:embed exclude
var _ string

func main() { unitchecker.Main(errcheck.Analyzer) }
