package ro

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// channel is the sender's side of e-Factura.
type channel struct {
	at       country.Endpoint
	base     string
	ministry *x509.Certificate
	now      func() time.Time
	held     country.Memory[string, string] // hashes of what an index holds that is not ours to ask for again: it never changes
	read     country.Memory[string, archived]
	lists    *listings
}

func connect(at country.Endpoint) (*channel, error) {
	base, err := at.Base(path)
	if err != nil {
		return nil, err
	}
	ministry, err := ministryOf(at.Identity.Secrets[secretMinistry])
	if err != nil {
		return nil, err
	}
	return &channel{at: at, base: base, ministry: ministry, now: time.Now, lists: newListings(at.Real())}, nil
}

const (
	// visibleAfter is how long ANAF's list may lack what it has taken.
	visibleAfter = 10 * time.Minute
	// limitWait is the pause after a limit that was reached all the same.
	limitWait = 15 * time.Minute
	// downloadsMax are the archives that one search fetches; the next goes on.
	downloadsMax = 100
	// clocksApart is how much earlier than its filing a document may be listed.
	clocksApart = 5 * time.Minute
)

// Limits are ANAF's. Its time-outs have made doubles of who was impatient.
func (ch *channel) Limits() country.Limits {
	l := country.Limits{Batch: 1, Parallel: 4, Class: country.ByNumber, CallTimeout: 90 * time.Second, PollEvery: 2 * time.Second, Quotas: quotas(),
		Named: true}
	if ch.at.Real() {
		l.PollEvery, l.VisibleAfter = 10*time.Second, visibleAfter // ANAF itself; a double shows at once what it took
	}
	return l
}

// Send uploads one document: what comes back is an index to ask about.
func (ch *channel) Send(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	if len(filings) == 0 {
		return nil, nil
	}
	if len(filings) > 1 {
		return nil, fmt.Errorf("%w: %d documents: e-Factura takes one a call", country.ErrNotTaken, len(filings))
	}
	f := filings[0]
	index, raw, err := ch.upload(ctx, f, c)
	var no *refusal
	switch {
	case errors.As(err, &no) && !errors.Is(err, country.ErrCredentials) && no.limited():
		r := country.Receipt{Wait: limitWait, Raw: raw}.Untaken("ANAF takes no more for now: %s", no.text)
		return []country.Receipt{r}, nil
	case errors.As(err, &no) && !errors.Is(err, country.ErrCredentials):
		return []country.Receipt{rejected(country.Receipt{Raw: raw, Document: raw, Format: "XML"}, []string{no.text})}, nil
	case err != nil:
		return nil, fmt.Errorf("uploading %s: %w", f.Number, err)
	}
	return []country.Receipt{{Outcome: country.Pending, AuthorityID1: index, Handle: index, Raw: raw}}, nil
}

// Poll asks what became of an upload, and fetches its archive.
func (ch *channel) Poll(ctx context.Context, f country.Filing, last country.Receipt,
	c country.Credentials) (country.Receipt, error) {
	if !digits(last.Handle) {
		return country.Receipt{}, fmt.Errorf("polling %s: %q is no index", f.Number, last.Handle)
	}
	r, err := ch.decided(ctx, f, last.Handle, c)
	var no *refusal
	if errors.As(err, &no) && !errors.Is(err, country.ErrCredentials) && no.limited() {
		return country.Receipt{Outcome: country.Pending, AuthorityID1: last.Handle, Handle: last.Handle, Wait: limitWait}, nil
	}
	if err != nil {
		return country.Receipt{}, fmt.Errorf("polling %s: %w", f.Number, err)
	}
	return r, nil
}

// decided is what ANAF has made of an index. An archive that holds another
// document than the one that was sent under the index is no answer.
func (ch *channel) decided(ctx context.Context, f country.Filing, index string, c country.Credentials) (country.Receipt, error) {
	r := country.Receipt{Outcome: country.Pending, AuthorityID1: index, Handle: index}
	state, id, err := ch.state(ctx, index, c)
	switch {
	case err != nil:
		return r, err
	case state == stateWorking:
		return r, nil
	case strings.HasPrefix(state, "XML cu erori"):
		return rejected(r, []string{state}), nil
	case state != stateOK && state != stateNOK:
		return r, fmt.Errorf("ANAF has a state %q of %s that is not known here", state, index)
	}
	a, err := ch.fetch(ctx, id, index, c)
	if err != nil {
		return r, err
	}
	said := a.refusals()
	if (state == stateNOK) != (len(said) > 0) {
		return r, fmt.Errorf("the archive of %s does not fit its state %s", index, state)
	}
	if state == stateOK {
		if a.holds(f) != f.SHA256 {
			return r, fmt.Errorf("the archive of %s holds another document", index)
		}
		return accepted(r, f, a, id), nil
	}
	r.AuthorityID2, r.Document, r.Format = id, a.zip, "ZIP"
	if first := earlier(said); first != "" && first != index {
		return ch.adopt(ctx, f, first, r, c)
	}
	return rejected(r, said), nil
}

func accepted(r country.Receipt, f country.Filing, a archive, id string) country.Receipt {
	r.Outcome, r.AuthorityID1, r.AuthorityID2, r.SHA256 = country.Accepted, a.index, id, f.SHA256
	r.Handle, r.Document, r.Format = a.index, a.zip, "ZIP"
	return r
}

func rejected(r country.Receipt, said []string) country.Receipt {
	r.Outcome = country.Rejected
	for _, text := range said {
		r.Faults = append(r.Faults, fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: told(text)})
	}
	return r
}

var again = regexp.MustCompile(`transmisa anterior cu index\s*=\s*([0-9]{1,20})`)

// earlier is the index under which ANAF says that it has the document already.
func earlier(said []string) string {
	for _, text := range said {
		if found := again.FindStringSubmatch(text); found != nil {
			return found[1]
		}
	}
	return ""
}

// adopt looks whose document stands under the index that ANAF names: ours from an
// upload whose answer was lost, or another with the number.
func (ch *channel) adopt(ctx context.Context, f country.Filing, index string, refused country.Receipt,
	c country.Credentials) (country.Receipt, error) {
	state, id, err := ch.state(ctx, index, c)
	if err != nil {
		return refused, fmt.Errorf("asking about index %s: %w", index, err)
	}
	if state != stateOK {
		return refused, fmt.Errorf("ANAF names index %s, which is %q", index, state)
	}
	a, err := ch.fetch(ctx, id, index, c)
	if err != nil {
		return refused, err
	}
	if a.holds(f) == f.SHA256 {
		return accepted(refused, f, a, id), nil
	}
	refused.Outcome, refused.Duplicate, refused.SHA256 = country.Rejected, true, a.holds(f)
	refused.AuthorityID1, refused.AuthorityID2 = index, id
	refused.Faults = []fault.Fault{{Code: fault.AuthorityNumberUsed, Type: fault.TaxAuthority, Field: "transaction_number",
		Message: "DUPLICATE: ANAF has another document under this number, index " + index}}
	return refused, nil
}

// Find looks an upload up whose answer was lost: ANAF's list since it was made, which
// lookups of a company share, and every archive in it that belongs to no other filing and that nobody has looked
// into. What ANAF refused is not found, and is refused again when it is sent again.
func (ch *channel) Find(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	filter, kind := filterSent, typeSent
	if f.Kind == transaction.Response {
		filter, kind = filterAnswers, typeAnswer
	}
	all, err := ch.sentSince(ctx, f, filter, c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
	}
	others, err := ch.others(ctx, f, all)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
	}
	fetched := 0
	var unread error // of an archive that is not given any more today; it may be this one's
	for _, m := range all {
		if !digits(m.Index) || m.Type != "" && !strings.HasPrefix(m.Type, kind) || others[m.Index] {
			continue
		}
		if held, known := ch.held.Get(m.Index); known && held != f.SHA256 {
			continue
		}
		if fetched++; fetched > downloadsMax {
			return country.Receipt{}, fmt.Errorf("finding %s: there is more to look through", f.Number)
		}
		a, err := ch.fetch(ctx, m.ID, m.Index, c)
		if used := new(country.Exhausted); errors.As(err, &used) && used.Quota == quotaDownloads {
			unread = err
			continue
		}
		if err != nil {
			return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
		}
		if a.holds(f) == f.SHA256 {
			return accepted(country.Receipt{}, f, a, m.ID), nil
		}
		if err := ch.belongs(ctx, f, a); err != nil {
			return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
		}
	}
	if unread != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, unread)
	}
	return country.Receipt{Outcome: country.Absent}, nil
}

// belongs remembers what an archive holds that is not the one looked for.
func (ch *channel) belongs(ctx context.Context, f country.Filing, a archive) error {
	sum := country.SHA256(a.content)
	ch.held.Put(a.index, sum)
	if ch.at.Names == nil {
		return nil
	}
	return ch.at.Names.Belongs(ctx, f.OperationID, a.index, sum)
}

// others are the indexes in a list under which other filings of ours were uploaded.
func (ch *channel) others(ctx context.Context, f country.Filing, all []message) (map[string]bool, error) {
	if ch.at.Names == nil || len(all) == 0 {
		return nil, nil
	}
	indexes := make([]string, len(all))
	for i, m := range all {
		indexes[i] = m.Index
	}
	return ch.at.Names.Others(ctx, f.OperationID, indexes)
}

// told is ANAF's text with the name of its rule, or of its kind, in front.
func told(text string) string {
	for _, k := range kinds {
		if strings.Contains(strings.ToLower(text), k[0]) {
			return k[1] + ": " + text
		}
	}
	if rule := ruleName.FindString(text); rule != "" {
		return strings.ReplaceAll(rule, "-", "_") + ": " + text
	}
	return "EFACTURA: " + text
}

var ruleName = regexp.MustCompile(`BR-[A-Z0-9-]+`)

// kinds are ANAF's refusals without a code of their own, by what they say.
var kinds = [][2]string{
	{"transmisa anterior", "DUPLICATE"},
	{"erori nepreluat", "UNREADABLE"},
	{"dimensiune", "TOO_LARGE"},
	{"schema", "SCHEMA"},
	{"cif", "CIF"},
}
