package es

import (
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// sharesOf are the originals of a correction with what of it is for each: of one
// original all of it.
func sharesOf(in *country.Draft) []country.Share {
	if len(in.Shares) > 0 {
		return in.Shares
	}
	return []country.Share{{Original: *in.Original, Amount: in.Totals.Gross}}
}

// originalPath is where the client named an original.
func originalPath(in *country.Draft, i int) string {
	if len(in.Shares) == 0 {
		return "reference_transaction_id"
	}
	return fmt.Sprintf("references.%d.transaction_id", i)
}

// originalsOf reads the originals of a correction. One corrective invoice may
// correct several (Real Decreto 1619/2012, article 15.4), which must be of one
// customer, and either simplified or not: R5 corrects the one kind, R1 to R4 the
// other.
func originalsOf(in *country.Draft, nif string, where *time.Location) ([]original, error) {
	var of []original
	for i, share := range sharesOf(in) {
		about := readOriginal(&share.Original, nif, where)
		if mended, _ := partyID(lastMended(&share.Original), "customer"); mended != nil {
			about.customer = mended
		}
		of = append(of, about)
		path := originalPath(in, i)
		first, was := &of[0], &share.Transaction
		switch number := fullInvoiceOf(&share.Original); {
		case number != "":
			return nil, invalid(fault.At(path, fault.ReferenceAlreadyCorrected, "was replaced by the full invoice %s: correct that one", number))
		case was.Kind == transaction.Adjustment && was.Reason == reasonMend:
			return nil, invalid(mendsOnly(path, was))
		case about.simplified != first.simplified || about.unnamed != first.unnamed:
			return nil, invalid(fault.At(path, fault.ValidationMatchInvalid, "is of another kind than the first original: simplified and full invoices are corrected apart (R5, R1 to R4)"))
		case about.customer != first.customer && !about.customer.same(first.customer):
			return nil, invalid(fault.At(path, fault.ValidationMatchInvalid, "has another customer than the first original: a corrective invoice has one"))
		}
	}
	return of, nil
}

func mendsOnly(path string, was *transaction.Transaction) fault.Fault {
	return fault.At(path, fault.UnsupportedOperation, "mends the record of an invoice and is none itself: refer to %s", was.ReferenceID)
}
