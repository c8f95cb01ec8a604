package filing

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/webhook"
)

// SUCCESS never changes, but others may speak later: the authority, a platform,
// an access point, the buyer. What they say is the document's life cycle, beside
// the operation that filed it. It is learned in three ways: a receipt carries
// it, Poll is asked on after SUCCESS (see listen.go), or the authority calls us
// ([Service.Hear]).
//
// Failure policy: an entry is stored in the commit that learned of it, once per
// message of its source, whoever says it again; its event is in the same commit.

// Bounds of what is kept of an entry; longer texts are cut.
const (
	newsKeyMax     = 200
	newsTextMax    = 200 // code, name
	newsMessageMax = 2000
)

// subject is the operation of which something is said.
type subject struct {
	id, scope, transactionID string
	succeeded                bool
}

// LifecycleEntry is one entry of a result's life cycle.
type LifecycleEntry struct {
	At       string           `json:"at"`
	Code     string           `json:"code"`
	Name     string           `json:"name"`
	Source   country.Source   `json:"source"`
	Severity country.Severity `json:"severity"`
	Message  string           `json:"message"`
}

// Lifecycle is what was said of an operation's document, oldest first.
func Lifecycle(r db.Reader, operationID string) ([]LifecycleEntry, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (e LifecycleEntry, err error) {
		var at int64
		err = scan(&at, &e.Code, &e.Name, &e.Source, &e.Severity, &e.Message)
		e.At = Stamp(db.FromMicros(at))
		return e, err
	}, "SELECT at, code, name, source, severity, message FROM lifecycle WHERE operation_id = $1 ORDER BY at, learned_at, message_key", operationID)
	if err != nil {
		return nil, fmt.Errorf("read the life cycle of %s: %w", operationID, err)
	}
	return append([]LifecycleEntry{}, list...), nil
}

var insertNews = db.Insert{
	Table: "lifecycle", Columns: "operation_id,source,message_key,client_id,at,code,name,severity,message,learned_at",
	Suffix: "ON CONFLICT (operation_id, source, message_key) DO NOTHING RETURNING message_key",
}

// appendNews stores what is new of what was said, and answers how much that was.
// A problem is told to a person.
func (s *Service) appendNews(tx *db.Tx, about subject, news []country.News) (added int, err error) {
	for _, n := range news {
		n = s.kept(n)
		row := []any{about.id, string(n.Source), n.Key, about.scope, db.Micros(n.At), n.Code, n.Name, string(n.Severity), n.Message, db.Micros(tx.Now())}
		fresh := false
		if err := tx.InsertReturning(insertNews, [][]any{row}, func(*db.Rows) error { fresh = true; return nil }); err != nil {
			return added, fmt.Errorf("store news of %s: %w", about.id, err)
		}
		if !fresh {
			continue
		}
		added++
		if n.Severity == country.Problem {
			err := s.cfg.Alerts.RaiseIn(tx, alert.OutcomeContested, about.id,
				strings.TrimSpace(fmt.Sprintf("%s says of operation %s: %s %s %s", n.Source, about.id, n.Code, n.Name, n.Message)))
			if err != nil {
				return added, err
			}
		}
	}
	return added, nil
}

// kept is an entry as it is stored. Whatever a pack leaves out has a meaning:
// no key is the content's own, no time is now.
func (s *Service) kept(n country.News) country.News {
	if n.Key == "" || len(n.Key) > newsKeyMax {
		text, _ := json.Marshal([]any{n.Key, n.At.UnixMicro(), n.Code, n.Name, n.Message}) // plain data always encodes
		sum := sha256.Sum256(text)
		n.Key = "sha256:" + hex.EncodeToString(sum[:])
	}
	if n.At.IsZero() {
		n.At = s.db.Wall()
	}
	if !slices.Contains([]country.Source{country.FromAuthority, country.FromPlatform, country.FromAccessPoint, country.FromBuyer}, n.Source) {
		n.Source = country.FromAuthority
	}
	if !slices.Contains([]country.Severity{country.Info, country.Caution, country.Problem}, n.Severity) {
		n.Severity = country.Info
	}
	n.Code, n.Name, n.Message = fault.Clip(n.Code, newsTextMax), fault.Clip(n.Name, newsTextMax), fault.Clip(n.Message, newsMessageMax)
	return n
}

// updated are the events of so many new entries. They are of the series of the
// completed events: none is tried before the completed event was.
func updated(about subject, entries int) (list []webhook.Event) {
	for range entries {
		e := completed(about.scope, about.transactionID, about.id)
		e.Type = webhook.TransactionUpdated
		list = append(list, e)
	}
	return list
}

func (o *operation) subject() subject {
	return subject{id: o.id, scope: o.scope, transactionID: o.transactionID}
}

// keepSaid stores what came with receipts that decide nothing. Its events wait
// for the completed event, see writeNews.
func (b *batch) keepSaid(tx *db.Tx, ops []*operation) error {
	for _, o := range ops {
		if _, err := b.appendNews(tx, o.subject(), o.receipt.News); err != nil {
			return err
		}
	}
	return b.keepHandles(tx, ops, func(o *operation) string { return o.receipt.Handle })
}

// writeNews stores what came with the receipts that ended operations. Of a
// success it answers the events of everything that was said so far, and from now
// on somebody listens, where the authority may speak later.
func (b *batch) writeNews(tx *db.Tx, endings []ending) (events []webhook.Event, err error) {
	if b.channel == nil {
		return nil, nil
	}
	var ops []*operation
	byID := map[string]*operation{}
	for _, e := range endings {
		e.op.receipt = e.receipt
		ops = append(ops, e.op)
		if e.status == Success {
			byID[e.op.id] = e.op
		}
	}
	if err := b.keepSaid(tx, ops); err != nil {
		return nil, err
	}
	if err := b.forgetTold(tx, ops); err != nil || len(byID) == 0 {
		return nil, err
	}
	ids := make([]string, 0, len(byID))
	for id := range byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	type count struct {
		id string
		n  int
	}
	counts, err := db.Collect(tx, func(scan func(...any) error) (c count, err error) { return c, scan(&c.id, &c.n) },
		"SELECT operation_id, count(*) FROM lifecycle WHERE "+b.db.In("operation_id", "$1")+" GROUP BY operation_id ORDER BY operation_id", db.Strings(ids))
	if err != nil {
		return nil, fmt.Errorf("count news: %w", err)
	}
	for _, c := range counts {
		events = append(events, updated(byID[c.id].subject(), c.n)...)
	}
	return events, b.beginListening(tx, byID, ids)
}

// keepHandles notes by what names an authority that calls us may speak of filings.
func (b *batch) keepHandles(tx *db.Tx, ops []*operation, handle func(*operation) string) error {
	if !b.pack.Speaks() {
		return nil
	}
	var rows [][]any
	for _, o := range ops {
		if name := handle(o); name != "" && name != o.id { // our own id needs no table
			rows = append(rows, []any{o.code, bool(o.live), name, o.id})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return tx.InsertReturning(db.Insert{Table: "filing_handles", Columns: "country,live,handle,operation_id",
		Suffix: "ON CONFLICT (country, live, handle, operation_id) DO NOTHING RETURNING handle"}, rows, func(*db.Rows) error { return nil })
}

// Hear takes one message of an authority about a filing, in the caller's write,
// which takes no other of this country: news of it, a decision, or both. It answers the operation it belongs to; ""
// means that the handle is not known, and nothing was stored. The same message
// again changes nothing. What lay in a company's mailbox speaks of that company's
// filings alone: a name that two companies use must not end the other's.
//
// A decision does not end anything here: it is left for the holder of the lane,
// who is woken and treats it like an answer. A decision that contradicts how an
// operation has ended changes nothing either: of a SUCCESS it is an entry of
// severity PROBLEM, of a FAILURE an alert.
func (s *Service) Hear(tx *db.Tx, at country.Environment, of country.Mailbox, m country.Message) (operationID string, err error) {
	o, err := s.named(tx, at, of, m.Handle)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the filing %q: %w", m.Handle, err)
	}
	if others, err := s.ofOthers(tx, o.id, m.Receipt.SHA256); err != nil || others {
		return "", err
	}
	if m.Receipt.Outcome == country.Rejected && m.Receipt.Duplicate {
		if what, err := s.echoed(tx, at, o); err != nil || what != noEcho {
			return map[echo]string{echoOfOurs: o.id}[what], err
		}
	}
	about := o.subject()
	news := m.Receipt.News
	switch o.status {
	case Success:
		about.succeeded = true
		news = append(slices.Clone(news), contradiction(m.Receipt)...)
	case Failure:
		if m.Receipt.Outcome == country.Accepted {
			err = s.cfg.Alerts.RaiseIn(tx, alert.OutcomeContested, o.id, fmt.Sprintf("the authority says that it accepted operation %s, which ended in FAILURE", o.id))
		}
	default:
		err = s.tell(tx, o, m)
	}
	if err != nil {
		return "", err
	}
	return o.id, s.announce(tx, about, news)
}

// announce stores news and, of a success, its events.
func (s *Service) announce(tx *db.Tx, about subject, news []country.News) error {
	added, err := s.appendNews(tx, about, news)
	if err != nil || !about.succeeded {
		return err
	}
	return s.cfg.Hooks.Notify(tx, updated(about, added)...)
}

// contradiction is the entry of an authority that takes back what it said.
func contradiction(r country.Receipt) []country.News {
	if r.Outcome != country.Rejected || r.Duplicate {
		return nil
	}
	return []country.News{{Key: "outcome", At: r.At, Code: string(country.Rejected), Name: "Rejected after acceptance", Source: country.FromAuthority,
		Severity: country.Problem, Message: rejection(r)[0].Message}}
}

// named is an operation by a name under which an authority speaks of its filing.
type named struct {
	operation
	status Status
}

// named finds it and holds its row, so that what is read stays until the write ends.
func (s *Service) named(tx *db.Tx, at country.Environment, of country.Mailbox, handle string) (o named, err error) {
	text := `SELECT n.operation_id FROM (SELECT operation_id FROM filing_handles WHERE country = $1 AND live = $2 AND handle = $3
		UNION ALL SELECT operation_id FROM operations WHERE country = $1 AND live = $2 AND operation_id = $3) AS n`
	args := []any{at.Code, bool(at.Live), handle}
	if of != (country.Mailbox{}) {
		text += " JOIN operations o ON o.operation_id = n.operation_id WHERE o.client_id = $4 AND o.supplier_id = $5"
		args = append(args, of.Scope, of.SupplierID)
	}
	err = tx.Row(text+" ORDER BY n.operation_id DESC LIMIT 1", args...).Scan(&o.id)
	if err != nil {
		return o, err
	}
	if err := holdOpen(tx, o.id); err != nil {
		return o, err
	}
	err = tx.Row("SELECT client_id, transaction_id, stage, status FROM operations WHERE operation_id = $1", o.id).Scan(&o.scope, &o.transactionID, &o.stage, &o.status)
	return o, err
}

// tell leaves a decision for the holder of the lane.
func (s *Service) tell(tx *db.Tx, o named, m country.Message) error {
	if m.Receipt.Outcome != country.Accepted && m.Receipt.Outcome != country.Rejected {
		return nil
	}
	key, fresh := fault.Clip(cmp.Or(m.Key, string(m.Receipt.Outcome)), newsKeyMax), false
	row := []any{o.id, key, encodeReceipt(m.Receipt), m.Receipt.Document, m.Raw, db.Micros(tx.Now())}
	err := tx.InsertReturning(db.Insert{Table: "told", Columns: "operation_id,message_key,receipt,document,raw,at",
		Suffix: "ON CONFLICT (operation_id, message_key) DO NOTHING RETURNING message_key"}, [][]any{row}, func(*db.Rows) error { fresh = true; return nil })
	if err != nil || !fresh || o.stage != Sent && o.stage != Pending {
		return err // one that is being made ready finds it when it may be there
	}
	tx.Wake(laneQueue.Table)
	return apply(tx, []transition{{move: spokenOf, id: o.id, from: o.stage, values: []any{db.Micros(tx.Now())}}})
}

// ofOthers reports whether a message names the bytes of another document than
// ours: somebody else has used the name as well.
func (s *Service) ofOthers(tx *db.Tx, operationID, hash string) (bool, error) {
	if hash == "" {
		return false, nil
	}
	var text string
	err := tx.Row("SELECT filing FROM filings WHERE operation_id = $1", operationID).Scan(&text)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look what was filed of %s: %w", operationID, err)
	}
	filed, err := ReadFiling(text, nil)
	return err == nil && filed.SHA256 != hash, err
}

// echo is what a refusal of a name as used means.
type echo int

const (
	noEcho     echo = iota // somebody else has used it
	echoOfOurs             // we have: the first filing lives on
	echoOrNot              // nobody knows yet
)

// echoed judges the refusal of a filing whose name an authority knows already. Of
// one that left twice it is the echo of the first. Of one that left once it is
// believed when nothing else was said for as long as the authority may take to
// speak of what it has.
func (s *Service) echoed(tx *db.Tx, at country.Environment, o named) (echo, error) {
	before, err := sentBefore(tx, o.id)
	if err != nil {
		return echoOrNot, err
	}
	if before || o.status != Processing {
		return echoOfOurs, nil
	}
	channel, err := s.cfg.Atlas.Channel(at.Code, at.Live)
	if err != nil {
		return echoOrNot, nil // no address now: it is looked at again
	}
	var sent time.Time
	if err := tx.Row("SELECT sent_at FROM operations WHERE operation_id = $1", o.id).Scan(db.NullInstant(&sent)); err != nil {
		return echoOrNot, fmt.Errorf("look when %s was sent: %w", o.id, err)
	}
	if tx.Now().Before(sent.Add(channel.Limits().VisibleAfter)) {
		return echoOrNot, nil
	}
	return noEcho, nil
}

// sentBefore reports whether a filing left more than once, as far as anybody
// knows: an authority that refuses the name of the second as used echoes the
// first, which lives on. A sending that certainly brought nothing does not count.
func sentBefore(tx *db.Tx, operationID string) (before bool, err error) {
	var one int64
	err = tx.Row(sentBeforeSQL, operationID, string(country.NotTaken)).Scan(&one)
	switch {
	case errors.Is(err, db.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look whether %s was sent before: %w", operationID, err)
	}
	return true, nil
}

// sentBeforeSQL looks at every day: whatever a clock said, a sending that there was is found.
const sentBeforeSQL = `SELECT 1 FROM exchange_operations e WHERE e.operation_id = $1 AND coalesce(e.decision, '') <> $2
	AND (SELECT x.verb = 'send' AND x.at < (SELECT o.sent_at FROM operations o WHERE o.operation_id = e.operation_id) FROM exchanges x WHERE x.exchange_id = e.exchange_id) LIMIT 1`

// loadTold reads decisions that came by themselves, the first of each operation.
func (v *visit) loadTold(r db.Reader, byID map[string]*operation, ids []string) error {
	if !v.pack.Speaks() {
		return nil
	}
	rows, err := r.Query("SELECT operation_id, receipt, document, raw FROM told WHERE "+v.db.In("operation_id", "$1")+" ORDER BY operation_id, at", db.Strings(ids))
	if err != nil {
		return fmt.Errorf("look for decisions: %w", err)
	}
	return rows.Each(func(scan func(...any) error) error {
		var id, text string
		var said country.Receipt
		if err := scan(&id, &text, &said.Document, &said.Raw); err != nil {
			return err
		}
		if byID[id].word != nil {
			return nil
		}
		document, raw := said.Document, said.Raw
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			return fmt.Errorf("read a decision on %s: %w", id, err)
		}
		said.Document, said.Raw = document, raw
		said = said.Bounded()
		byID[id].word = &said
		return nil
	})
}

// forgetTold removes decisions that were acted on.
func (b *batch) forgetTold(tx *db.Tx, ops []*operation) error {
	if !b.pack.Speaks() {
		return nil
	}
	ids := make([]string, len(ops))
	for i, o := range ops {
		ids[i] = o.id
	}
	return tx.Exec("DELETE FROM told WHERE "+b.db.In("operation_id", "$1"), db.Strings(ids))
}

// hurryTold makes operations due at once that were just put off, while a decision
// on them had come: it was stored when the visit had already read them.
func (v *visit) hurryTold(tx *db.Tx, done []transition) error {
	if !v.pack.Speaks() || len(done) == 0 {
		return nil
	}
	return hurryAll(tx, v.db, idsOf(done))
}

// weigh gives an operation that has its bytes to the step that it
// needs: a decision that came by itself is an answer like any other.
func (b *batch) weigh(o *operation) {
	switch {
	case o.word != nil:
		b.record(exchange{verb: "told", at: b.db.Now(), ops: []*operation{o}, receipts: []country.Receipt{*o.word}})
		b.adopt(o, *o.word)
	case o.stage == Prepared:
		b.outgoing = append(b.outgoing, o)
	case o.stage == Sent:
		b.ambiguous = append(b.ambiguous, o)
	default:
		b.pending = append(b.pending, o)
	}
}

// look is when the n-th look for news is made, ±20 %: a day's documents must not all be asked for in one minute.
func (s *Service) look(l country.Listening, n int64) time.Duration {
	pause := l.First
	for range n {
		if pause >= l.Most {
			break
		}
		pause *= 2
	}
	return time.Duration(float64(min(pause, max(l.Most, l.First))) * (0.8 + 0.4*s.jitter()))
}
