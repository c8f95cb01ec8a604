package fault

import "slices"

// ListMax is how many faults one answer lists.
const ListMax = 100

// List keeps the first faults and counts the rest: a hostile body can have very many.
type List struct {
	listed []Fault
	count  int
}

// Add keeps a fault, or only counts it.
func (l *List) Add(f Fault) {
	if l.count++; l.count <= ListMax {
		l.listed = append(l.listed, f)
	}
}

// AddNew leaves out what is listed with the same code at the same field.
func (l *List) AddNew(f Fault) {
	if f.Field == "" || !slices.ContainsFunc(l.listed, func(known Fault) bool {
		return known.Code == f.Code && known.Field == f.Field
	}) {
		l.Add(f)
	}
}

// At adds a fault of a field; one that is only counted is never formatted.
func (l *List) At(field string, code Code, format string, args ...any) {
	if l.Full() {
		l.count++
		return
	}
	l.Add(At(field, code, format, args...))
}

// Full reports that a further fault would only be counted.
func (l *List) Full() bool { return l.count >= ListMax }

// Skip counts a fault that nobody will read.
func (l *List) Skip() { l.count++ }

// Count is the number of faults, listed or not.
func (l *List) Count() int { return l.count }

// Listed are the faults that were kept.
func (l *List) Listed() []Fault { return l.listed }

// Err refuses what was read, naming it; nil without faults.
func (l *List) Err(subject string) error {
	switch {
	case l.count == 0:
		return nil
	case l.count == 1:
		return New(Invalid, "%s is not valid: 1 fault", subject).With(l.listed...)
	case l.count > ListMax:
		return New(Invalid, "%s is not valid: %d faults, the first %d are listed", subject, l.count, ListMax).With(l.listed...)
	}
	return New(Invalid, "%s is not valid: %d faults", subject, l.count).With(l.listed...)
}
