package country

import "time"

// Periods is the optional ability of a pack whose law lets sales be gathered by
// period and told to the authority in one document: Mexico's global invoice,
// summaries of a day's sales, ten-day reports.
//
// A gathered sale is no filing of its own. It is enlisted in its period, and
// when that has ended Channel.Prepare is asked for the period's document, with
// [Draft].Period; from there on it is a filing like any other.
type Periods struct {
	// Gather says what becomes of a draft. Nil: it is filed by itself. It is
	// pure. A fault.Error of kind Invalid ends the attempt in FAILURE.
	Gather func(in Draft) (*Gathered, error)

	LinesMax int // of one document; what is more goes into another
	BytesMax int // of what its sales say, [Gathered].Data; one sale may be more

	// Within is how long after the end of a period the law wants its document.
	Within time.Duration

	// Withdraw is the reason of the cancellation by which an accepted document is
	// taken back when a sale leaves it; the others go into a new one.
	Withdraw string
}

// Cadence is how long a period is.
type Cadence string

// The cadences.
const (
	Daily   Cadence = "daily"
	Weekly  Cadence = "weekly"
	Monthly Cadence = "monthly"
)

// Span is a period: from the first instant of its first day up to that of the
// day behind it, in the time zone of the supplier.
type Span struct {
	Cadence     Cadence
	First, Next time.Time
}

// SpanOf is the period in which an instant lies, in that instant's time zone.
// Weeks begin on Monday.
func SpanOf(c Cadence, at time.Time) Span {
	day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, at.Location())
	switch c {
	case Weekly:
		first := day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
		return Span{c, first, first.AddDate(0, 0, 7)}
	case Monthly:
		first := day.AddDate(0, 0, 1-day.Day())
		return Span{c, first, first.AddDate(0, 1, 0)}
	}
	return Span{Daily, day, day.AddDate(0, 0, 1)}
}

// WithinMonth cuts a span at the ends of the month in which an instant lies, for
// authorities whose reports name one month.
func (s Span) WithinMonth(at time.Time) Span {
	month := SpanOf(Monthly, at.In(s.First.Location()))
	if s.First.Before(month.First) {
		s.First = month.First
	}
	if s.Next.After(month.Next) {
		s.Next = month.Next
	}
	return s
}

// Gathered is a sale in its period, or what a correction makes of one.
type Gathered struct {
	Span Span // sales only: when it was

	Lines           int    // that the period's document has of the sale
	Data            []byte // what the document says of it; the pack's own
	Gross, Net, Tax int64

	// Leaves, of a correction: nothing of the sale stays in its period. Where an
	// accepted document has it, that one is withdrawn and made anew without it.
	Leaves bool
	// Filed, of a correction that leaves nothing: it is filed by itself, and the
	// sale leaves when it is accepted.
	Filed bool
}

// InPeriod is where a gathered sale stands.
type InPeriod struct {
	Data   []byte // what the period's document will say of it; nil: a document has it, whose ids are the original's
	Number string // of the document that has it
	// Noted says that others of that document were corrected by documents that
	// refer to it: some authorities withdraw nothing then.
	Noted bool
}

// Period is a period whose document is to be made, or a part of it.
type Period struct {
	Span
	Number string // of the document: the same for the same part, never used before by this service
	Sales  []PeriodSale
}

// Numbers are those of its sales.
func (p *Period) Numbers() []string {
	list := make([]string, len(p.Sales))
	for i, s := range p.Sales {
		list[i] = s.Number
	}
	return list
}

// PeriodSale is a sale in a period's document.
type PeriodSale struct {
	TransactionID   string
	Number          string
	Data            []byte
	Gross, Net, Tax int64
}
