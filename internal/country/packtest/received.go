package packtest

import (
	"bytes"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/beevik/etree"

	"tributary/internal/incoming"
)

// Filed are the documents that the goldens of a folder hold, by the goldens' names:
// what the pack wrote, for its own reader.
func Filed(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.golden"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no goldens in %s: %v", folder, err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(text, []byte("\n<?xml")); at >= 0 {
			all[strings.TrimSuffix(filepath.Base(path), ".golden")] = text[at+1:]
		}
	}
	return all
}

// Said is a document as another reader of XML sees it.
type Said struct {
	t    testing.TB
	name string
	doc  *etree.Document
}

// Say reads a document by another reader.
func Say(t testing.TB, name string, document []byte) Said {
	t.Helper()
	s := Said{t, name, etree.NewDocument()}
	if err := s.doc.ReadFromBytes(document); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

// Texts are the texts that a path of etree leads to; behind /@ stands an attribute.
func (s Said) Texts(path string) (all []string) {
	path, attribute, _ := strings.Cut(path, "/@")
	for _, e := range s.doc.FindElements(path) {
		if attribute == "" {
			all = append(all, strings.TrimSpace(e.Text()))
		} else if a := e.SelectAttr(attribute); a != nil {
			all = append(all, strings.TrimSpace(a.Value))
		}
	}
	return all
}

// Text is the first of them.
func (s Said) Text(path string) string {
	if all := s.Texts(path); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Sum adds up the numbers that a path leads to, in units of 10^-decimals.
func (s Said) Sum(path string, decimals int) int64 {
	s.t.Helper()
	sum := new(big.Rat)
	for _, text := range s.Texts(path) {
		n, ok := new(big.Rat).SetString(text)
		if !ok {
			s.t.Fatalf("%s: %s is %q", s.name, path, text)
		}
		sum.Add(sum, n)
	}
	sum.Mul(sum, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)))
	text := sum.FloatString(0)
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || !n.IsInt64() {
		s.t.Fatalf("%s: %s comes to %s", s.name, path, text)
	}
	return n.Int64()
}

// Equal compares what a reader answered with what the document says.
func Equal[T comparable](s Said, what string, got, want T) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: %s is %v, the document says %v", s.name, what, got, want)
	}
}

// SumOf adds up the taxes of a regime.
func SumOf(taxes []incoming.Tax, regime string) (base, amount int64) {
	for _, t := range taxes {
		if t.Regime == regime {
			base, amount = base+t.Base, amount+t.Amount
		}
	}
	return base, amount
}
