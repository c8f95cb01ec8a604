package mutate

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestValuesOfACorpusAreRead(t *testing.T) {
	for line, want := range map[string]any{
		`[]byte("a\x00b")`: []byte("a\x00b"), `string("a\"b")`: `a"b`, `bool(true)`: true, `int(-7)`: -7,
		`byte('\x05')`: byte(5), `uint8(7)`: byte(7), `byte('a')`: byte('a'),
	} {
		got, err := parse(line)
		if b, ok := want.([]byte); ok && err == nil && bytes.Equal(got.([]byte), b) {
			continue
		}
		if _, ok := want.([]byte); ok || err != nil || got != want {
			t.Errorf("%s: %v %v", line, got, err)
		}
	}
	for _, line := range []string{``, `float64(1)`, `string("a"`, `x`} {
		if got, err := parse(line); err == nil {
			t.Errorf("%s is read as %v", line, got)
		}
	}
}

// One seed makes the same inputs each time, another seed makes others, and what is
// changed is a copy.
func TestChangesFollowFromTheSeed(t *testing.T) {
	corpus := [][]any{{[]byte(`{"a":1}`), "text", 3, true, byte(1)}, {[]byte(``), "", 0, false, byte(0)}}
	made := func(seed uint64) (all [][]any) {
		random := rand.New(rand.NewPCG(seed, 1))
		for range 500 {
			all = append(all, changed(random, corpus))
		}
		return all
	}
	same := func(a, b []any) bool {
		return bytes.Equal(a[0].([]byte), b[0].([]byte)) && a[1] == b[1] && a[2] == b[2] && a[3] == b[3] && a[4] == b[4]
	}
	first, again, other := made(1), made(1), made(2)
	differ := 0
	for i := range first {
		if !same(first[i], again[i]) {
			t.Fatalf("input %d differs: %v %v", i, first[i], again[i])
		}
		if !same(first[i], other[i]) {
			differ++
		}
	}
	if differ < 400 {
		t.Errorf("only %d of 500 inputs differ by the seed", differ)
	}
	if string(corpus[0][0].([]byte)) != `{"a":1}` {
		t.Errorf("the corpus was changed: %s", corpus[0][0])
	}
}

func FuzzNothing(f *testing.F) {
	Corpus(f)
	f.Fuzz(func(t *testing.T, text []byte, word string) {})
}
