package filing

import (
	"tributary/internal/country"
	"tributary/internal/db"
)

// An authority may say what it likes, as long as it likes. What is logged,
// stored and shown of it is bounded where it comes in, so that no later place
// needs to think of it.
const (
	wordsMax       = 2000 // bytes of one fault, or of one error
	faultsMax      = 100  // of one receipt
	authorityIDMax = 500  // bytes
)

// bounded cuts the words of receipts and of an error.
func bounded(receipts []country.Receipt, err error) ([]country.Receipt, error) {
	for i := range receipts {
		receipts[i] = boundedReceipt(receipts[i])
	}
	return receipts, boundedError(err)
}

func boundedReceipt(r country.Receipt) country.Receipt {
	r.Faults = r.Faults[:min(len(r.Faults), faultsMax)]
	for i := range r.Faults {
		r.Faults[i].Message = db.Clip(r.Faults[i].Message, wordsMax)
	}
	r.AuthorityID1, r.AuthorityID2 = db.Clip(r.AuthorityID1, authorityIDMax), db.Clip(r.AuthorityID2, authorityIDMax)
	return r
}

// shortError is an error whose text is cut; what it is stays.
type shortError struct{ whole error }

func (e shortError) Error() string { return db.Clip(e.whole.Error(), wordsMax) }
func (e shortError) Unwrap() error { return e.whole }

func boundedError(err error) error {
	if err == nil || len(err.Error()) <= wordsMax {
		return err
	}
	return shortError{err}
}
