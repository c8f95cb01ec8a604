package country

import (
	"iter"
	"time"
)

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

	// Within is how long after the end of a period the law wants its document,
	// where [Span].Due does not say it.
	Within time.Duration

	// Withdraw is the reason of the cancellation by which an accepted document is
	// taken back when a sale leaves it; the others go into a new one.
	Withdraw string

	// Replaces says that a period has one document, and that each takes the place of
	// the one before as a whole: LinesMax, BytesMax and Withdraw mean nothing then. A
	// sale that comes late, changes or leaves makes a new one with all sales of the
	// period, at the end of that day, or at once on the last day of the law.
	Replaces bool

	// Sum adds up the sales of a period's document, oldest first, where it does not
	// name each: they are read one after another, however many there are, and the
	// document gets what comes of it, [Period].Sum, in place of its Sales. It is pure.
	// Nil: Sales are all in memory.
	Sum func(sales iter.Seq2[PeriodSale, error]) ([]byte, error)
}

// Cadence is how long a period is.
type Cadence string

// The cadences.
const (
	Daily      Cadence = "daily"
	Weekly     Cadence = "weekly"
	TenDay     Cadence = "ten_day" // 1–10, 11–20, 21 to the end of the month
	Monthly    Cadence = "monthly"
	TwoMonthly Cadence = "two_monthly" // from January on
)

// Span is a period: from the first instant of its first day up to that of the
// day behind it, in the time zone of the supplier.
type Span struct {
	Cadence     Cadence
	First, Next time.Time

	// Due is the first instant at which its document is late; zero: [Periods].Within
	// after the period's end.
	Due time.Time
	// Report tells apart what is told of the same days in documents of their own, in
	// one lower-case word; "" where there is one.
	Report string
}

// SpanOf is the period in which an instant lies, in that instant's time zone.
// Weeks begin on Monday.
func SpanOf(c Cadence, at time.Time) Span {
	day := func(month time.Month, day int) time.Time {
		return time.Date(at.Year(), month, day, 0, 0, 0, 0, at.Location())
	}
	span := func(first, next time.Time) Span { return Span{Cadence: c, First: first, Next: next} }
	switch month, today := at.Month(), at.Day(); c {
	case Weekly:
		monday := today - (int(at.Weekday())+6)%7
		return span(day(month, monday), day(month, monday+7))
	case TenDay:
		if today > 20 {
			return span(day(month, 21), day(month+1, 1))
		}
		first := (today-1)/10*10 + 1
		return span(day(month, first), day(month, first+10))
	case Monthly:
		return span(day(month, 1), day(month+1, 1))
	case TwoMonthly:
		first := (month-1)/2*2 + 1
		return span(day(first, 1), day(first+2, 1))
	default:
		c = Daily
		return span(day(month, today), day(month, today+1))
	}
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
	// Span is when a sale was. A correction or a payment with one has a place of its
	// own; one without changes the sale that it corrects.
	Span Span

	Lines           int    // that the period's document has of the sale
	Data            []byte // what the document says of it; the pack's own
	Gross, Net, Tax int64
	Currency        string // of these, and of the period; "": the sale's

	// Leaves, of a correction: nothing of the sale stays in its period. Where an
	// accepted document has it, that one is withdrawn and made anew without it.
	Leaves bool
	// Filed, of a correction that leaves nothing: it is filed by itself, and the
	// sale leaves when it is accepted.
	Filed bool
}

// InPeriod is where a gathered sale stands.
type InPeriod struct {
	// Data is what the period's document will say of it; nil: a document has it, whose
	// ids are the original's. With [Periods].Replaces it is never nil.
	Data   []byte
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

	Sum   []byte // what [Periods].Sum made of its sales, which are not here then
	Count int64  // of sales
	// Replaces is the number of the accepted document whose place it takes; "": it is
	// the first. Where every sale has left, it has those that were in that one, with Left.
	Replaces string
	// Refused is what was said last of a document of the period that was refused after
	// a platform had accepted it, [News].Refuses; "": nothing.
	Refused string
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
	Left            bool // nothing of it stays: the document that is replaced has it
}
