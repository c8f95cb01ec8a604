package country

import (
	"context"
	"time"
)

// Bounds of one look into a mailbox.
const (
	FetchMessagesMax = 1000
	FetchBytesMax    = 5 << 20 // of everything that the messages carry

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
	Limit       int    // messages at most
}

// Fetched is what a look has brought.
type Fetched struct {
	Messages []Message
	Cursor   string        // where the next look begins
	More     bool          // there is more behind it
	Wait     time.Duration // flow control: no look for this company before that
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
