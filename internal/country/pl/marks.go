package pl

import (
	"regexp"
	"strings"

	"tributary/internal/transaction"
)

// Schemes and codes of items.*.classification that FA(3) has marks for.
const (
	schemeGTU   = "GTU"
	schemeAnnex = "PL"
	codeAnnexed = "ZAL15"
	codeRungUp  = "FP" // of any line: the sale is on a cash register's roll (art. 106h)
	codeRelated = "TP" // of any line: buyer and seller are related (art. 32 sec. 2)
	gtuPrefix   = "GTU_"

	codeSimplified = "UPR" // of any line: a simplified invoice
)

var gtuPattern = regexp.MustCompile(`^(GTU_)?(0[1-9]|1[0-3])$`)

// gtu is the group of goods and services that an item names (§ 10 sec. 3 of the
// decree on VAT records): GTU_01 to GTU_13, or "".
func gtu(item *transaction.Item) string {
	for _, c := range item.Classifications {
		code := strings.ToUpper(strings.TrimSpace(c.Code))
		if strings.EqualFold(c.Scheme, schemeGTU) && gtuPattern.MatchString(code) {
			return gtuPrefix + strings.TrimPrefix(code, gtuPrefix)
		}
	}
	return ""
}

func marked(item *transaction.Item, code string) bool {
	for _, c := range item.Classifications {
		if strings.EqualFold(c.Scheme, schemeAnnex) && strings.EqualFold(c.Code, code) {
			return true
		}
	}
	return false
}

// says reports whether any line carries a mark of the document.
func (d *document) says(code string) bool {
	for i := range d.lines {
		if marked(d.lines[i].Item, code) {
			return true
		}
	}
	return false
}

// writeMarks writes FP and TP, which are the document's and said by any line.
func (w writer) writeMarks() {
	for _, code := range []string{codeRungUp, codeRelated} {
		if w.d.says(code) {
			w.Leaf(code, "1")
		}
	}
}
