package country

import (
	"fmt"

	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Preparable refuses what never becomes a document of an authority that knows
// sales, adjustments and credits: a correction without its original or with flaws
// that corrects finds, lines without amounts, and every other operation. none
// says that there is no document for it, instead what the client does about it.
func Preparable(in *Draft, corrects func() []fault.Fault, none, instead string) error {
	t := &in.Transaction
	switch t.Kind {
	case transaction.Invoice:
	case transaction.Adjustment, transaction.Credit:
		if in.Original == nil {
			return fmt.Errorf("preparing %s: a correction without its original", t.ID)
		}
		if flaws := corrects(); len(flaws) > 0 {
			return fault.New(fault.Invalid, "the correction cannot be written").With(flaws...)
		}
	default:
		return fault.New(fault.Invalid, "%s", none).With(fault.Fault{Code: fault.UnsupportedOperation, Type: fault.General, Message: instead})
	}
	if len(in.Totals.Lines) != len(t.Items) {
		return fmt.Errorf("preparing %s: %d lines with %d amounts", t.ID, len(t.Items), len(in.Totals.Lines))
	}
	return nil
}
