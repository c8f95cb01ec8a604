package ledger

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tributary/internal/db"
)

// piecesSQL reads backwards: numbers grow, so the newest come first, and so they
// do where many share one word.
const (
	piecesSQL    = "SELECT operation_id FROM operation_parts WHERE part >= $1 AND part < $2 ORDER BY part DESC, operation_id DESC LIMIT $3"
	namesakesSQL = "SELECT company_id FROM company_parts WHERE part >= $1 AND part < $2 ORDER BY part, company_id LIMIT $3"
)

var hexDigits = regexp.MustCompile(`^[0-9a-f]{6,8}(-[0-9a-f]{0,4}){0,3}(-[0-9a-f]{0,12})?$`)

// pieceSources are where a text is a piece of something: of a number, an id, a
// customer's name, an amount, and the companies of whose name it is one.
func (s *Ledger) pieceSources(r db.Reader, text string) (list []source, companies []string, err error) {
	for _, amount := range amountsOf(text) {
		list = append(list, source{table: "operation_terms", where: "term = $1", args: []any{amountTerm(amount)}})
	}
	if id := strings.ToLower(text); hexDigits.MatchString(id) {
		list = append(list, source{table: "operations", where: "operation_id >= $1 AND operation_id < $2",
			args: []any{id, id + "g"}})
	}
	part := partOf(text)
	if len(part) < partMin {
		return list, nil, nil
	}
	ids, err := collectIDs(r, piecesSQL, part, after(part), piecesMax)
	if err != nil {
		return nil, nil, fmt.Errorf("read pieces: %w", err)
	}
	cut := len(ids) == piecesMax
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(b, a) })
	list = append(list, source{list: slices.Compact(ids), cut: cut})
	companies, err = namesakes(r, text, companiesMax)
	return list, companies, err
}

// namesakes are the companies of whose name a text is a piece.
func namesakes(r db.Reader, text string, limit int) ([]string, error) {
	part := partOf(text)
	if len(part) < partMin {
		return nil, nil
	}
	ids, err := collectIDs(r, namesakesSQL, part, after(part), limit)
	if err != nil {
		return nil, fmt.Errorf("read names of companies: %w", err)
	}
	return ids, nil
}

// Namesakes answers the companies of any client of whose name a text is a piece.
func (s *Ledger) Namesakes(ctx context.Context, text string, limit int) (ids []string, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		ids, err = namesakes(r, text, limit)
		return err
	})
	return ids, err
}

var printedAmount = regexp.MustCompile(`^[0-9]{1,3}([ .,'\x{a0}\x{202f}]?[0-9]{3})*([.,][0-9]{1,3})?$`)

// amountsOf are the totals that a text may be, in minor units: as it is printed,
// 1 227.10 or 1227,10, and without decimals also as whole units.
func amountsOf(text string) (list []int64) {
	if !printedAmount.MatchString(text) {
		return nil
	}
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
	minor, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || minor == 0 {
		return nil
	}
	list = []int64{minor}
	if i := strings.LastIndexAny(text, ".,"); (i < 0 || len(text)-i > 3) && minor < 1<<53 {
		list = append(list, minor*100)
	}
	return list
}
