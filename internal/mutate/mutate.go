// Package mutate adds inputs to a fuzz target that are made of its corpus, so that
// every run of the tests tries a few hundred more than what is written down.
//
// It owns how an input is changed. Law: in the gate the changes follow from the
// target's name alone, so a run that fails fails again; where needs.IsLong they
// follow from the clock, and the seed is told. What is led by coverage is make fuzz.
package mutate

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tributary/internal/needs"
)

const (
	inputs     = 200 // for each target
	inputsLong = 20_000
)

// Corpus adds changed copies of what testdata/fuzz holds for a target. Call it before f.Fuzz.
func Corpus(f *testing.F) {
	f.Helper()
	if fuzzing := flag.Lookup("test.fuzz"); fuzzing != nil && fuzzing.Value.String() != "" {
		return // Go's own fuzzer mutates
	}
	all := read(f)
	h := fnv.New64a()
	h.Write([]byte(f.Name())) // never fails
	seed, count := h.Sum64(), inputs
	if needs.IsLong() {
		seed, count = uint64(time.Now().UnixNano()), inputsLong
		f.Logf("inputs made with seed %d", seed)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for range count {
		f.Add(changed(random, all)...)
	}
}

// read reads the corpus of a target.
func read(f *testing.F) (all [][]any) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "fuzz", f.Name(), "*"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no corpus in testdata/fuzz/%s: %v", f.Name(), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		var values []any
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
			value, err := parse(line)
			if err != nil {
				f.Fatalf("%s: %v", path, err)
			}
			values = append(values, value)
		}
		all = append(all, values)
	}
	return all
}

// parse reads a value as Go's corpus files have it: []byte("…"), string("…"), bool(true), int(7), byte('x').
func parse(line string) (any, error) {
	e, err := parser.ParseExpr(line)
	if err != nil {
		return nil, err
	}
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil, fmt.Errorf("%q is not a value of a corpus", line)
	}
	kind, text := "", strings.TrimSpace(line[call.Args[0].Pos()-1:call.Args[0].End()-1])
	switch f := call.Fun.(type) {
	case *ast.ArrayType:
		kind = "bytes"
	case *ast.Ident:
		kind = f.Name
	}
	switch kind {
	case "bytes":
		s, err := strconv.Unquote(text)
		return []byte(s), err
	case "string":
		return strconv.Unquote(text)
	case "bool":
		return strconv.ParseBool(text)
	case "int":
		n, err := strconv.ParseInt(text, 0, 64)
		return int(n), err
	case "uint8", "byte":
		if strings.HasPrefix(text, "'") {
			r, _, _, err := strconv.UnquoteChar(text[1:len(text)-1], '\'')
			return byte(r), err
		}
		n, err := strconv.ParseUint(text, 0, 8)
		return byte(n), err
	}
	return nil, fmt.Errorf("%q: no change is known for this kind of value", line)
}

// changed is a copy of one input with up to four changes.
func changed(random *rand.Rand, all [][]any) []any {
	from := all[random.IntN(len(all))]
	out := append([]any(nil), from...)
	for range 1 + random.IntN(4) {
		i := random.IntN(len(out))
		other := all[random.IntN(len(all))]
		switch v := out[i].(type) {
		case []byte:
			out[i] = change(random, v, other[i].([]byte))
		case string:
			out[i] = string(change(random, []byte(v), []byte(other[i].(string))))
		case bool:
			out[i] = !v
		case int:
			out[i] = []int{v + 1, v - 1, -v, 0, math.MaxInt32, math.MinInt32, random.IntN(1000)}[random.IntN(7)]
		case byte:
			out[i] = byte(random.IntN(256))
		}
	}
	return out
}

// Bytes is a text with up to four changes, some of them parts of another one.
func Bytes(random *rand.Rand, text, other []byte) []byte {
	for range 1 + random.IntN(4) {
		text = change(random, text, other)
	}
	return text
}

// tokens are what readers of JSON, XML, PDF, numbers and addresses stumble over.
var tokens = []string{"\x00", "\xff", "\xef\xbb\xbf", "\u202e", "\r\n", "\"", "'", "\\", "<", ">", "&", "&#0;", "<!--",
	"]]>", "<!DOCTYPE a>", "{", "}", "[", "]", ",", ":", "%", "../", "null", "-0", "1e400", "99999999999999999999", "é", "𝄞"}

// change makes one change of a text.
func change(random *rand.Rand, text, other []byte) []byte {
	out := append([]byte(nil), text...)
	from, to := span(random, len(out))
	switch random.IntN(8) {
	case 0: // one bit
		if len(out) > 0 {
			out[random.IntN(len(out))] ^= 1 << random.IntN(8)
		}
	case 1: // without a part
		out = append(out[:from], out[to:]...)
	case 2: // a part twice
		out = append(out[:to], append(append([]byte(nil), out[from:to]...), out[to:]...)...)
	case 3: // the beginning alone
		out = out[:from]
	case 4: // as another one goes on
		cut, _ := span(random, len(other))
		out = append(out[:from], other[cut:]...)
	case 5: // a part of another one in it
		first, last := span(random, len(other))
		out = append(out[:from], append(append([]byte(nil), other[first:last]...), text[from:]...)...)
	default:
		token := tokens[random.IntN(len(tokens))]
		out = append(out[:from], append([]byte(token), text[from:]...)...)
	}
	return out
}

// span is a part of a text.
func span(random *rand.Rand, length int) (from, to int) {
	from = random.IntN(length + 1)
	return from, from + random.IntN(min(64, length-from)+1)
}
