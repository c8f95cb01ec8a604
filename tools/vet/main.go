// Command vet is go vet with errcheck beside its own analyzers, so that every package is read once. go vet hands a tool
// what the compiler has made of the imports and keeps what it found of packages that stay as they are.
//
//	go vet -vettool="$(go -C tools tool -n tributary/tools/vet)" -errcheck.exclude="$PWD/tools/vet/exclude" ./...
package main

import (
	_ "embed"

	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// The list is read from the file. It is part of the tool as well, because go vet
// looks at the tool to know whether what it has kept still holds.
//
//go:embed exclude
var _ string

func main() { unitchecker.Main(append(vet.Suite, errcheck.Analyzer)...) }
