package es

import (
	"time"

	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// originalsOf reads the originals of a correction. One corrective invoice may
// correct several (Real Decreto 1619/2012, article 15.4), which must be of one
// customer, and either simplified or not: R5 corrects the one kind, R1 to R4 the
// other.
func originalsOf(list []sale.Original, nif string, where *time.Location) ([]original, error) {
	var of []original
	for _, o := range list {
		about := readOriginal(o, nif, where)
		if mended, _ := partyID(lastMended(o.Original), "customer"); mended != nil {
			about.customer = mended
		}
		of = append(of, about)
		path, first, was := o.Path, &of[0], &o.Transaction
		switch number := fullInvoiceOf(o.Original); {
		case number != "":
			return nil, invalid(fault.At(path, fault.ReferenceAlreadyCorrected,
				"was replaced by the full invoice %s: correct that one", number))
		case was.Kind == transaction.Adjustment && was.Reason == reasonMend:
			return nil, invalid(mendsOnly(path, was))
		case about.simplified != first.simplified || about.unnamed != first.unnamed:
			return nil, invalid(fault.At(path, fault.ValidationMatchInvalid,
				"is of another kind than the first original: simplified and full invoices are corrected apart (R5, R1 to R4)"))
		case about.customer != first.customer && !about.customer.same(first.customer):
			return nil, invalid(fault.At(path, fault.ValidationMatchInvalid,
				"has another customer than the first original: a corrective invoice has one"))
		}
	}
	return of, nil
}

func mendsOnly(path string, was *transaction.Transaction) fault.Fault {
	return fault.At(path, fault.UnsupportedOperation, "mends the record of an invoice and is none itself: refer to %s",
		was.ReferenceID)
}
