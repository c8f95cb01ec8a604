package client

import (
	"fmt"
	"io"
	"os"
	"regexp"

	"golang.org/x/term"
)

// outcomeWords are those that a terminal shows in colour; in JSON they stand
// between quotation marks and stay as they are.
var outcomeWords = regexp.MustCompile(`(^|[^"\w])(SUCCESS|delivered|FAILURE|discarded|PROCESSING|pending)\b`)

// colours of outcomes.
func colour(word string) string {
	switch word {
	case "SUCCESS", "delivered":
		return "32"
	case "FAILURE", "discarded":
		return "31"
	}
	return "33"
}

// painter puts outcomes in colour.
type painter struct{ w io.Writer }

// Write paints whole words: tables and reports write them in one piece.
func (p painter) Write(text []byte) (int, error) {
	painted := outcomeWords.ReplaceAllFunc(text, func(found []byte) []byte {
		m := outcomeWords.FindSubmatch(found)
		return fmt.Appendf(nil, "%s\x1b[%sm%s\x1b[0m", m[1], colour(string(m[2])), m[2])
	})
	if _, err := p.w.Write(painted); err != nil {
		return 0, err
	}
	return len(text), nil
}

// InColour paints what a terminal shows, unless NO_COLOR asks for none.
func InColour(w io.Writer) io.Writer {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || !term.IsTerminal(int(file.Fd())) {
		return w
	}
	return painter{w}
}
