package operator

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed trivial.txt
var trivialText string

// trivialWords are what lists of leaked passwords are made of: words, names and
// runs of keys, each of at least four letters, longer passwords being made of
// them. Whole passwords of twelve and more characters are rarely found in such
// lists but as these with digits around them.
var trivialWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.Fields(trivialText) {
		words[w] = true
	}
	return words
})

const (
	ownCharactersMin = 5 // that are in no word, run or repetition
	runMin           = 3
	wordMax          = 26
	unitMax          = 6
)

// trivial reports whether a password is guessed early: made of well-known words,
// runs of keys, years and repetitions, with next to nothing of its own.
func trivial(password string) bool {
	plain := strings.ToLower(password)
	return repeats(plain) || own(plain) < ownCharactersMin || own(unleet.Replace(plain)) < ownCharactersMin
}

// unleet takes back what everybody writes for letters.
var unleet = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")

// repeats reports whether a text is a short unit again and again.
func repeats(text string) bool {
	for unit := 1; unit <= unitMax && 2*unit <= len(text); unit++ {
		if strings.HasPrefix(text[unit:], text[:len(text)-unit]) {
			return true
		}
	}
	return false
}

// own is how many letters and digits are left when as many as possible belong to
// words, runs and numbers. It is found from the end: left[i] is the best for text[i:].
func own(text string) int {
	left := make([]int, len(text)+1)
	for i := len(text) - 1; i >= 0; i-- {
		left[i] = left[i+1]
		if isKey(text[i]) {
			left[i]++
		}
		for _, end := range piecesAt(text, i) {
			left[i] = min(left[i], left[end])
		}
	}
	return left[0]
}

func isKey(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80 }

// piecesAt answers where pieces end that begin at a place: a word, a run, digits.
func piecesAt(text string, from int) (ends []int) {
	for end := from + 4; end <= len(text) && end <= from+wordMax; end++ {
		if trivialWords()[text[from:end]] {
			ends = append(ends, end)
		}
	}
	if end := run(text, from); end-from >= runMin {
		ends = append(ends, end)
	}
	digits := from
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	if digits > from { // a year, a day, a number: never worth much
		ends = append(ends, digits)
	}
	return ends
}

// run is where characters end that follow each other upwards, downwards or not at all.
func run(text string, from int) int {
	if from+1 >= len(text) {
		return from + 1
	}
	step := int(text[from+1]) - int(text[from])
	if step < -1 || step > 1 {
		return from + 1
	}
	end := from + 2
	for end < len(text) && int(text[end])-int(text[end-1]) == step {
		end++
	}
	return end
}
