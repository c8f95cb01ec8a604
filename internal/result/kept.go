package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"tributary/internal/operation"
)

// Kept is a stored result as it stands, whole or its beginning, and the authority's
// ids of a sale that was gathered by period.
type Kept struct {
	Text     string
	ID1, ID2 *string
}

// A stored result begins with its row, goes on with its lines and ends with the life
// cycle. Neither mark can stand in a text of the client: there a quote has a backslash.
const (
	rowEnd   = `,"attachments":[],`
	linesEnd = `,"lifecycle":[]}`
)

// ErrCut says that a stored result ends before its row does, or is in no form of ours.
var ErrCut = errors.New("the row of the stored result is cut")

// Row reads the row. lines is what stands behind it, in the form of the answer; it is
// neither decoded nor copied, and a cut text has only a part of it.
func (t Kept) Row() (row *Row, lines string, err error) {
	head, lines, ok := strings.Cut(t.Text, rowEnd)
	if !ok {
		return nil, "", ErrCut
	}
	row = &Row{}
	if err := json.Unmarshal([]byte(head+"}"), row); err != nil {
		return nil, "", fmt.Errorf("read the row of a result: %w", err)
	}
	row.gathered(t)
	return row, lines, nil
}

func (row *Row) gathered(t Kept) {
	if row.Status == operation.Success && row.AuthorityID1 == nil && t.ID1 != nil {
		row.AuthorityID1, row.AuthorityID2 = t.ID1, t.ID2
	}
}

// Answer is a result as JSON, in pieces: its row, documents and life cycle around
// lines that are as they were stored. Large documents cost their row.
func (r *Result) Answer(lines string) (pieces [][]byte, err error) {
	lines, ok := strings.CutSuffix(lines, linesEnd)
	if !ok {
		return nil, ErrCut
	}
	for _, part := range []any{r.Row, r.Attachments, r.Lifecycle} {
		text, err := json.Marshal(part)
		if err != nil {
			return nil, fmt.Errorf("encode a result: %w", err)
		}
		pieces = append(pieces, text)
	}
	row, attachments, life := pieces[0], pieces[1], pieces[2]
	pieces = [][]byte{row[:len(row)-1], []byte(`,"attachments":`), attachments, []byte(","), []byte(lines), []byte(`,"lifecycle":`),
		life}
	if len(r.Related) > 0 {
		related, err := json.Marshal(r.Related)
		if err != nil {
			return nil, fmt.Errorf("encode a result: %w", err)
		}
		pieces = append(pieces, []byte(`,"related":`), related)
	}
	return append(pieces, []byte("}")), nil
}
