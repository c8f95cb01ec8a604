package country

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Bounds of one look into a mailbox.
const (
	FetchMessagesMax = 1000
	FetchBytesMax    = 5 << 20 // of everything that the messages carry

	// of one look for received documents
	DocumentsMax      = 100
	DocumentsBytesMax = 32 << 20

	fetchEveryDefault = time.Minute
	fetchTimeDefault  = 30 * time.Second
	fetchTimeMax      = time.Minute
)

// Fetch is the optional ability of a pack whose authority keeps messages until
// somebody asks for them, company by company. What comes takes the same way as
// what an authority tells us by a call, see [Callbacks]: a message that comes on
// both ways has one Key and is taken once.
//
// The caller stores the messages and the cursor behind them in one commit. So
// whoever asks with a cursor has everything before it on disk, and an authority
// that forgets what was confirmed may forget it then. A look whose answer was
// lost is made again with the same cursor.
type Fetch struct {
	// Look asks for what waits behind a cursor. An error says only "not known";
	// one that wraps [ErrCredentials] is told to a person at once.
	Look func(ctx context.Context, in Inquiry) (Fetched, error)

	// Wanted reports whether anything can wait for a company. Nil: for every one.
	Wanted func(Supplier) bool

	Every   time.Duration // between two looks that bring nothing; zero: a minute
	Timeout time.Duration // of one look, at most a minute; zero: 30 s
}

// Inquiry is one look into a company's mailbox.
type Inquiry struct {
	Channel     Channel // the pack's own, as the atlas has connected it
	Supplier    Supplier
	Credentials Credentials
	Cursor      string // where the last look ended, the pack's own words; "" at the beginning
	Limit       int    // messages, or documents, at most

	From time.Time // of received documents: what came before is left out
	// Stored answers which documents of the company are here already, by their
	// [Document].AuthorityID; nil: none is known to be.
	Stored func(ctx context.Context, ids []string) (map[string]bool, error)
}

// Fetched is what a look has brought.
type Fetched struct {
	Messages  []Message
	Documents []Document    // in place of messages, where the look is that of [Receive]
	Cursor    string        // where the next look begins; that of documents begins with a time, see [Mark]
	More      bool          // there is more behind it
	Wait      time.Duration // flow control: no look for this company before that
}

// Wants reports whether a company's mailbox is looked into.
func (f *Fetch) Wants(s Supplier) bool {
	return f != nil && !s.Closed && (f.Wanted == nil || f.Wanted(s))
}

// Pause is the time between two looks that bring nothing.
func (f *Fetch) Pause() time.Duration {
	if f.Every <= 0 {
		return fetchEveryDefault
	}
	return f.Every
}

// Within is how long one look may take.
func (f *Fetch) Within() time.Duration {
	if f.Timeout <= 0 {
		return fetchTimeDefault
	}
	return min(f.Timeout, fetchTimeMax)
}

// Speaks reports whether the authority may say something that no call of ours
// asked for: by calling us, or into a mailbox.
func (p Pack) Speaks() bool { return p.Callbacks != nil || p.Fetch != nil }

// Mailbox is whose a message was. The zero value: nobody's, the authority called.
type Mailbox struct {
	Scope      string // of the client; live and test keys have different ones
	SupplierID string
}

// Receive is the optional ability of a pack whose authority, or network, brings the
// documents that others send to companies. A company has it switched on by its
// setting [SettingReceive].
type Receive struct {
	// Fetch asks for documents, company by company; its looks bring [Fetched].Documents
	// alone. Nil: the authority calls, and [Callbacks] reads them out of its calls.
	Fetch *Fetch

	// Check finds why a company cannot receive, when it is onboarded. Nil: every one can.
	Check func(Supplier) []fault.Fault

	// Enrol tells the authority, or the network, where documents for a company go, where
	// a program can tell that. Nil: nobody asks.
	Enrol func(ctx context.Context, in Enrolment) []fault.Fault
}

// Enrols reports whether something has to be told for a company.
func (r *Receive) Enrols(s *Supplier) bool {
	return r != nil && r.Enrol != nil && s.ReceivesFrom() != ""
}

// Fetching is how documents are asked for; nil where nobody asks.
func (r *Receive) Fetching() *Fetch {
	if r == nil {
		return nil
	}
	return r.Fetch
}

// Document is one that somebody else sent to a company.
type Document struct {
	// AuthorityID is the authority's own name of it, one for each company that receives it.
	AuthorityID string
	// AuthorityID2 is another name that an answer to it needs; "": there is none.
	AuthorityID2 string
	Format       string // "XML", "PDF" or "P7M" (signed XML)
	Bytes        []byte `json:"-"`

	// To is who receives it, by the numbers that the call or the document has, where
	// the authority has called. What was asked for a company is that company's.
	To transaction.Party
}

// The setting that switches receiving on, and its one member.
const (
	SettingReceive = "receive"
	receiveFrom    = "from"
)

// receiveSetting is listed among the settings of every country that can receive.
func receiveSetting() Setting {
	return Setting{Key: SettingReceive, Type: "object", Description: "documents that others send to the company are brought from the authority: " +
		`{"from": "YYYY-MM-DD"}, the day from which on they are wanted; without it clients upload them`}
}

// ReceivesFrom is the day from which on a company wants what others send to it; ""
// where it has not switched that on.
func (s *Supplier) ReceivesFrom() string {
	switched, _ := s.Settings[SettingReceive].(map[string]any)
	day, _ := switched[receiveFrom].(string)
	return day
}

// ReceivesSince is the first instant of that day where the company is; zero where it
// does not receive.
func (a *Atlas) ReceivesSince(s *Supplier) time.Time {
	pack, ok := a.Pack(s.CountryCode)
	day := s.ReceivesFrom()
	if !ok || pack.Receive == nil || day == "" || s.Closed {
		return time.Time{}
	}
	at, err := time.ParseInLocation(time.DateOnly, day, a.Zone(s.Address, pack))
	if err != nil {
		return time.Time{} // refused at onboarding
	}
	return at
}

// CheckReceive finds what is wrong with a company's wish to receive.
func (p Pack) CheckReceive(s *Supplier) []fault.Fault {
	value, there := s.Settings[SettingReceive]
	if !there || p.Receive == nil {
		return nil
	}
	const path = "settings." + SettingReceive
	switched, ok := value.(map[string]any)
	if !ok {
		return []fault.Fault{fault.At(path, fault.FieldNotValid, "must be an object with the member from")}
	}
	for key := range switched {
		if key != receiveFrom {
			return []fault.Fault{fault.At(path+"."+fault.Clip(key, 50), fault.UnsupportedField, "is no member of it: it has from alone")}
		}
	}
	if day := s.ReceivesFrom(); !isDay(day) {
		return []fault.Fault{fault.At(path+"."+receiveFrom, fault.FieldNotValid, "must be a day, YYYY-MM-DD, from 2000 on")}
	}
	if p.Receive.Check == nil {
		return nil
	}
	return p.Receive.Check(*s)
}

func isDay(text string) bool {
	day, err := time.Parse(time.DateOnly, text)
	return err == nil && day.Year() >= 2000
}

// Mark is how far the documents of a company were brought, as the cursor of a look:
// everything before At is on disk. After is what a pack needs besides to go on within
// an instant, or within what it has in hand. A mark may go back at any time, and what
// comes again is nothing; it never goes on over what is not on disk.
type Mark struct {
	At    time.Time
	After string
}

const markForm = "2006-01-02T15:04:05.000000Z"

// String is the mark as a cursor; "" of the zero one.
func (m Mark) String() string {
	switch {
	case m.At.IsZero():
		return ""
	case m.After == "":
		return m.At.UTC().Format(markForm)
	}
	return m.At.UTC().Format(markForm) + "|" + m.After
}

// ReadMark reads a cursor; "" is the zero mark.
func ReadMark(cursor string) (Mark, error) {
	if cursor == "" {
		return Mark{}, nil
	}
	text, after, _ := strings.Cut(cursor, "|")
	at, err := time.Parse(markForm, text)
	if err != nil {
		return Mark{}, fmt.Errorf("the cursor %q begins with no time", fault.Clip(cursor, 100))
	}
	return Mark{at, after}, nil
}

// Mark is where a look for documents begins: at its cursor, and never before the day
// from which on the company wants them.
func (in Inquiry) Mark() (Mark, error) {
	m, err := ReadMark(in.Cursor)
	if err == nil && m.At.Before(in.From) {
		m = Mark{At: in.From}
	}
	return m, err
}

// validate finds what a pack says of receiving that cannot be so.
func (r *Receive) validate(p Pack) error {
	switch {
	case r == nil:
		return nil
	case p.Connect == nil:
		return errors.New("received documents without a channel")
	case r.Fetch == nil && p.Callbacks == nil:
		return errors.New("received documents that nobody brings")
	case r.Fetch != nil && r.Fetch.Look == nil:
		return errors.New("received documents that nobody can look for")
	}
	return nil
}

// DocumentBytesMax is the largest received document that is taken.
const DocumentBytesMax = 20 << 20

// Listed is a received document in an authority's list.
type Listed struct {
	At   time.Time // by which the list is asked for
	Name string    // one for the receiver: [Document].AuthorityID
	Of   string    // what the pack needs to get it
}

func (l Listed) compare(o Listed) int {
	return cmp.Or(l.At.Compare(o.At), strings.Compare(l.Name, o.Name))
}

// mark is where a list goes on behind it.
func (l Listed) mark() string { return l.At.UTC().Format(time.RFC3339Nano) + "|" + l.Name }

// stored answers which of a list are here already.
func (in Inquiry) stored(ctx context.Context, list []Listed) (map[string]bool, error) {
	if in.Stored == nil || len(list) == 0 {
		return nil, nil
	}
	names := make([]string, len(list))
	for n := range list {
		names[n] = list[n].Name
	}
	return in.Stored(ctx, names)
}

// Lists are the looks of a pack whose authority lists what came by when it came, and
// gives each document by itself.
//
// Failure policy: an authority may list something later than the instant under which it
// does: a list that was read to its end is read again from Again before it, and what is
// stored is not got again, since authorities count downloads. A time with more in it than one look may bring is halved until it
// has less; within the shortest one documents are told apart by their names. Whatever is
// listed and cannot be got fails the look: it is never gone over.
type Lists struct {
	Span  time.Duration // the longest that one list is of
	Least time.Duration // the shortest that can be asked for
	Again time.Duration
	Pause time.Duration // between two looks that bring nothing, beyond the pack's own

	// List answers what came between two instants. more: there is more than so many, or
	// than one list shows; what it answers besides is not looked at then, but for the
	// shortest time, of which all is asked for by a most of 0.
	List func(ctx context.Context, from, to time.Time, most int) (list []Listed, more bool, err error)
	// Get answers [ErrAnothers] of what is not the company's: it is gone over.
	Get func(ctx context.Context, l Listed) (Document, error)
}

// ErrAnothers says that a listed document is for another company.
var ErrAnothers = errors.New("the document is for another company")

// getTimeMin is what must be left of a look for a further document to be begun.
const getTimeMin = 10 * time.Second

// Look is a look of [Receive].Fetch, at an instant.
func (l Lists) Look(ctx context.Context, in Inquiry, now time.Time) (got Fetched, err error) {
	mark, err := in.Mark()
	if err != nil {
		return got, err
	}
	began, after := mark.After != "", Listed{At: mark.At}
	if at, name, inside := strings.Cut(mark.After, "|"); inside {
		after.Name = name
		if after.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return got, fmt.Errorf("the mark %q: %w", mark.After, err)
		}
	}
	now = now.UTC()
	from, to := after.At.Truncate(l.Least), now
	if to.Sub(from) > l.Span {
		to = from.Add(l.Span)
	}
	list, to, err := l.within(ctx, from, to, in.Limit)
	if err != nil {
		return got, err
	}
	list = slices.DeleteFunc(list, func(one Listed) bool { // it was brought, or the next list has it
		return began && one.compare(after) <= 0 || to.Before(now) && !one.At.Before(to)
	})
	stored, err := in.stored(ctx, list)
	if err != nil {
		return got, err
	}
	whole, size, asked := true, 0, 0
	for _, one := range list {
		if stored[one.Name] {
			mark.After = one.mark()
			continue
		}
		end, limited := ctx.Deadline()
		if asked > 0 && (asked == in.Limit || size > DocumentsBytesMax-DocumentBytesMax || limited && time.Until(end) < getTimeMin) {
			whole = false
			break
		}
		asked++
		d, err := l.Get(ctx, one)
		if err != nil && !errors.Is(err, ErrAnothers) {
			return Fetched{}, fmt.Errorf("getting %s: %w", one.Name, err)
		}
		if err == nil {
			d.AuthorityID = one.Name
			got.Documents, size = append(got.Documents, d), size+len(d.Bytes)
		}
		mark.After = one.mark()
	}
	switch {
	case !whole:
		got.More = true
	case to.Before(now): // it goes on behind the end of this list
		mark.After, got.More = Listed{At: to}.mark(), true
	default:
		if end := now.Add(-l.Again); end.After(mark.At) {
			mark.At = end
		}
		mark.After, got.Wait = "", l.Pause
	}
	got.Cursor = mark.String()
	return got, nil
}

// within lists what came between two instants, in its order; the second one moves to where
// there is no more than a look can bring.
func (l Lists) within(ctx context.Context, from, to time.Time, most int) (list []Listed, end time.Time, err error) {
	for {
		var more bool
		if list, more, err = l.List(ctx, from, to, most); err != nil || !more {
			break
		}
		half := to.Sub(from) / 2
		if half < l.Least {
			to = from.Add(l.Least)
			list, _, err = l.List(ctx, from, to, 0)
			break
		}
		to = from.Add(half).Truncate(l.Least)
	}
	slices.SortFunc(list, Listed.compare)
	return list, to, err
}
