package country

import (
	"bytes"
	"strings"

	"tributary/internal/fault"
)

// An authority may say what it likes, as long as it likes. What is logged,
// stored and shown of it is bounded where it comes in, so that no later place
// needs to think of it.
const (
	FaultBytesMax       = 2000 // of one fault, or of one error
	FaultsMax           = 100  // of one answer
	AuthorityIDBytesMax = 500
	RawBytesMax         = 16 << 10 // of an answer, in the record of a call
)

// BoundedFaults cuts their number and their texts.
func BoundedFaults(faults []fault.Fault) []fault.Fault {
	faults = faults[:min(len(faults), FaultsMax)]
	for i := range faults {
		faults[i].Message = strings.Clone(fault.Clip(faults[i].Message, FaultBytesMax))
	}
	return faults
}

// Bounded is the receipt with what the authority said in it cut. Nothing of it keeps
// the whole answer in memory.
func (r Receipt) Bounded() Receipt {
	if len(r.Raw) > RawBytesMax {
		r.Raw = bytes.Clone(r.Raw[:RawBytesMax])
	}
	r.Handle = strings.Clone(r.Handle)
	r.Faults = BoundedFaults(r.Faults)
	r.AuthorityID1 = strings.Clone(fault.Clip(r.AuthorityID1, AuthorityIDBytesMax))
	r.AuthorityID2 = strings.Clone(fault.Clip(r.AuthorityID2, AuthorityIDBytesMax))
	return r
}

// Bounded is the answer with what the authority said in it cut.
func (a Annulled) Bounded() Annulled {
	a.ID, a.State, a.Faults = fault.Clip(a.ID, AuthorityIDBytesMax), fault.Clip(a.State, AuthorityIDBytesMax),
		BoundedFaults(a.Faults)
	return a
}

// BoundedError is an error whose text is cut; what it is stays.
func BoundedError(err error) error {
	if err == nil || len(err.Error()) <= FaultBytesMax {
		return err
	}
	return shortError{err}
}

type shortError struct{ whole error }

func (e shortError) Error() string { return fault.Clip(e.whole.Error(), FaultBytesMax) }
func (e shortError) Unwrap() error { return e.whole }
