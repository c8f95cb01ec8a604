package reference

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/xxwire"
	"tributary/internal/transaction"
)

// registrar decides about documents of one supplier, with the book open.
type registrar struct {
	book     *authority.Book
	supplier string
}

// take decides about one document, in the order in which an authority would:
// can it be read, is it here already, do its sums, its reference and its chain
// hold, and only then what the script wants.
func (reg *registrar) take(d *arrival, step authority.Step) xxwire.Receipt {
	if step.Outcome == authority.Unavailable {
		return xxwire.Receipt{Number: d.Number, Outcome: xxwire.OutcomeNotTaken}
	}
	if code, message := reg.flawOf(d); code != "" {
		return rejected(d.Number, code, message)
	}
	if held, ok := reg.known(d); ok {
		return duplicate(held, d.Number)
	}
	if open, ok := reg.open(d.Number); ok && d.Class != byNothing && (open.SHA256 == d.sha256 || !open.Rejected) {
		return open.receiptFor(d)
	}
	if step.Outcome == authority.Duplicate {
		return reg.alreadyHere(d, step)
	}
	if code, message := reg.misfit(d); code != "" {
		return rejected(d.Number, code, message)
	}
	reg.enter(d, step.Outcome != authority.Reject)
	switch {
	case step.Outcome == authority.Reject:
		return rejected(d.Number, xxwire.CodeRefused, "the authority does not accept the document")
	case step.Outcome == authority.Suspend || d.Acceptance || d.callsBack() || d.byMail():
		if d.callsBack() {
			step.Delay = callbackMost
		}
		if d.byMail() {
			step.Delay = xxwire.MailboxMost
			reg.mail(d)
		}
		open := openDocument{SHA256: d.sha256, Key: reg.keyOf(d), Note: d.note(), Due: time.Now().Add(step.Delay),
			Awaiting: d.Acceptance}
		reg.keepOpen(d.Number, open)
		return open.receipt(d.Number)
	}
	return registered(reg.register(d.Number, d.sha256, reg.keyOf(d), d.note()))
}

// flawOf finds what is wrong with a document by itself.
func (reg *registrar) flawOf(d *arrival) (code, message string) {
	if d.flaw != "" {
		return xxwire.CodeStructure, d.flaw
	}
	switch {
	case d.Number == "" || len(d.Number) > 400:
		return xxwire.CodeStructure, "number is missing or too long"
	case d.Supplier != reg.supplier:
		return xxwire.CodeStructure, "supplier is not the one who signed"
	case d.Key == "":
		return xxwire.CodeStructure, "key is missing"
	case len(d.Currency) != 3:
		return xxwire.CodeStructure, "currency must have three letters"
	case len(d.Lines) == 0 && d.Kind != transaction.Cancellation:
		return xxwire.CodeStructure, "lines are missing"
	case (d.Chain != nil) != (d.Class == byChain):
		return xxwire.CodeStructure, "chain belongs to class C, and to it only"
	}
	switch d.Class {
	case byNumber, byHash, byKey, byChain, byNothing:
	default:
		return xxwire.CodeStructure, "class must be Q, H, K, C or N"
	}
	switch d.Kind {
	case transaction.Invoice:
	case transaction.Adjustment, transaction.Credit, transaction.Cancellation:
		// one that names the customer of a gathered sale stands by itself
		if d.Reference == nil && !(d.Kind == transaction.Adjustment && d.Gross > 0) {
			return xxwire.CodeStructure, "reference is missing in a correction"
		}
	case transaction.Period:
		if message := periodFlaw(&d.document); message != "" {
			return xxwire.CodeStructure, message
		}
	default:
		return xxwire.CodeStructure, "kind must be INVOICE, ADJUSTMENT, CREDIT, CANCELLATION or PERIOD"
	}
	if _, err := time.Parse(time.DateOnly, d.Day); err != nil {
		return xxwire.CodeStructure, "day must be like 2026-01-31"
	}
	if _, err := time.Parse(time.RFC3339, d.At); err != nil {
		return xxwire.CodeStructure, "at must be like 2026-01-31T10:00:00Z"
	}
	return sumsOf(&d.document)
}

// periodFlaw finds what is wrong with the document of a period: its days, and
// sales without a number.
func periodFlaw(d *document) string {
	if d.Period == nil {
		return "period is missing in a document of kind PERIOD"
	}
	first, err := time.Parse(time.DateOnly, d.Period.First)
	last, wrong := time.Parse(time.DateOnly, d.Period.Last)
	if err != nil || wrong != nil || last.Before(first) {
		return "period must go from a day to the same or a later one"
	}
	for _, l := range d.Lines {
		if l.Name == "" {
			return "period has a sale without a number"
		}
	}
	return ""
}

func sumsOf(d *document) (code, message string) {
	var gross, net int64
	for _, l := range d.Lines {
		gross += l.Gross
		net += l.Net
	}
	if gross != d.Gross || net != d.Net || d.Net+d.Tax != d.Gross {
		return xxwire.CodeSums, fmt.Sprintf("gross %d, net %d and tax %d do not fit each other and the lines (%d, %d)",
			d.Gross, d.Net, d.Tax, gross, net)
	}
	return "", ""
}

// known looks for the document in the way of its class. Class H also knows
// numbers, so that another document cannot take one that is in use.
func (reg *registrar) known(d *arrival) (authority.Registration, bool) {
	switch d.Class {
	case byKey:
		return reg.book.FindKey(reg.keyOf(d))
	case byHash:
		if held, ok := reg.book.FindKey(reg.keyOf(d)); ok {
			return held, true
		}
	case byNothing:
		return authority.Registration{}, false
	}
	return reg.book.Find(reg.supplier, d.Number)
}

func (reg *registrar) keyOf(d *arrival) string {
	switch d.Class {
	case byKey:
		return "K\x00" + reg.supplier + "\x00" + d.Key
	case byHash:
		return "H\x00" + reg.supplier + "\x00" + d.sha256
	}
	return ""
}

// alreadyHere plays a script's duplicate: somebody's document, or this one,
// was registered before. Class N says so without knowing whose.
func (reg *registrar) alreadyHere(d *arrival, step authority.Step) xxwire.Receipt {
	hash := d.sha256
	if step.Of != authority.OfOurs {
		sum := sha256.Sum256(append([]byte("another's document\n"), d.raw...))
		hash = hex.EncodeToString(sum[:])
	}
	held := reg.register(d.Number, hash, reg.keyOf(d), d.note())
	if d.Class == byNothing {
		return xxwire.Receipt{Number: d.Number, Outcome: xxwire.OutcomeDuplicate}
	}
	return duplicate(held, d.Number)
}

// misfit finds what does not fit what the authority holds.
func (reg *registrar) misfit(d *arrival) (code, message string) {
	if d.Reference != nil && !d.Reference.Elsewhere {
		if _, ok := reg.book.Find(reg.supplier, d.Reference.Number); !ok {
			return xxwire.CodeReference, fmt.Sprintf("no document %q is registered", d.Reference.Number)
		}
	}
	if code, message := reg.outOfTurn(d); code != "" || d.Chain == nil {
		return code, message
	}
	if d.Chain.Order == xxwire.AnyOrder {
		return reg.crossing(d)
	}
	last, _ := reg.book.Get("chain/" + reg.supplier)
	if last != head(d.Chain.Position-1, d.Chain.Previous) && !(last == "" && d.Chain.Position == 1 && d.Chain.Previous == "") {
		return xxwire.CodeChain, fmt.Sprintf("position %d does not follow the chain's head", d.Chain.Position)
	}
	return "", ""
}

func head(position int64, hash string) string { return fmt.Sprintf("%d %s", position, hash) }

func (reg *registrar) register(number, hash, key, note string) authority.Registration {
	reg.count(number, note)
	return reg.book.Register(authority.Registration{
		Supplier: reg.supplier, Number: number, SHA256: hash, Key: key, Note: note,
		AuthorityID: fmt.Sprintf("XX-%09d", reg.book.Count()+1),
	})
}

// openDocument is one that is not decided, or was rejected after it had been pending.
type openDocument struct {
	SHA256   string    `json:"sha256"`
	Key      string    `json:"key,omitempty"`
	Note     string    `json:"note,omitempty"`
	Due      time.Time `json:"due"`
	Awaiting bool      `json:"awaiting,omitempty"`
	Rejected bool      `json:"rejected,omitempty"`
}

func (reg *registrar) open(number string) (openDocument, bool) {
	var o openDocument
	known := reg.book.Load("open/"+reg.supplier+"\x00"+number, &o)
	return o, known
}

func (reg *registrar) keepOpen(number string, o openDocument) {
	reg.book.Keep("open/"+reg.supplier+"\x00"+number, o)
}

func (reg *registrar) decide(number string, o openDocument, step authority.Step) {
	switch step.Outcome {
	case authority.Reject:
		o.Rejected = true
		reg.keepOpen(number, o)
	case authority.Suspend:
		o.Due = time.Now().Add(step.Delay)
		reg.keepOpen(number, o)
	default:
		reg.register(number, o.SHA256, o.Key, o.Note)
		reg.book.Put("open/"+reg.supplier+"\x00"+number, "")
	}
}

func (o openDocument) receipt(number string) xxwire.Receipt {
	if o.Rejected {
		r := rejected(number, xxwire.CodeRefused, "the authority has decided not to accept the document")
		r.SHA256 = o.SHA256
		return r
	}
	r := xxwire.Receipt{Number: number, Outcome: xxwire.OutcomePending, SHA256: o.SHA256}
	if o.Awaiting {
		r.Awaiting = "acceptance"
	}
	return r
}

// receiptFor answers a sending of a document whose number is open: its own
// state to the same document, "already here" to another.
func (o openDocument) receiptFor(d *arrival) xxwire.Receipt {
	if o.SHA256 != d.sha256 {
		return xxwire.Receipt{Number: d.Number, Outcome: xxwire.OutcomeDuplicate, SHA256: o.SHA256}
	}
	return o.receipt(d.Number)
}

func registered(r authority.Registration) xxwire.Receipt {
	return xxwire.Receipt{Number: r.Number, Outcome: xxwire.OutcomeAccepted, AuthorityID: r.AuthorityID, SHA256: r.SHA256,
		At: r.At.Format(time.RFC3339)}
}

// duplicate answers what is held, to a document that came under the name number.
func duplicate(r authority.Registration, number string) xxwire.Receipt {
	answer := registered(r)
	answer.Number, answer.Outcome = number, xxwire.OutcomeDuplicate
	return answer
}

func rejected(number, code, message string) xxwire.Receipt {
	return xxwire.Receipt{Number: number, Outcome: xxwire.OutcomeRejected, Code: code, Message: message,
		At: time.Now().UTC().Format(time.RFC3339)}
}
