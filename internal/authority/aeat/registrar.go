package aeat

import (
	"maps"
	"slices"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/aeatwire"
	"tributary/internal/xmltree"
)

// arrival is one record of a call, read.
type arrival struct {
	e         *xmltree.Element
	cancels   bool
	id        invoiceID
	number    string // under which it stands in the list of registrations
	reference string
	huella    string
	sha256    string // of its report, as its sender keeps it
	chain     string // name of the chain it belongs to
	illegible string // the field that cannot be read, "" when all can
}

// holding is what AEAT keeps of an invoice: its last record and its state.
type holding struct {
	ID        invoiceID `json:"id"`
	Huella    string    `json:"huella"`
	Reference string    `json:"reference,omitempty"`
	Kind      string    `json:"kind,omitempty"`
	State     string    `json:"state"`
	Code      string    `json:"code,omitempty"`
	Presenter string    `json:"presenter"`
	At        time.Time `json:"at"`
	Request   string    `json:"request"`
	Before    string    `json:"before,omitempty"` // the invoice of the month that came before this one
	Says      content   `json:"says,omitzero"`
}

// registrar decides about the records of one call, with the book open.
//
// Failure policy: heads of chains and months are written once, by close, after
// the records they point to. A desk appends lines in order and cuts only a
// torn last one, and nothing of a call is confirmed before all of it is on
// disk; so a head never points to what was lost.
type registrar struct {
	book    *authority.Book
	nif     string
	csv     string
	request string
	late    bool
	now     time.Time
	heads   map[string]string // chains and months that this call has moved
	taken   int
}

func invoiceKey(nif string, place string) string { return "factura/" + nif + "/" + place }

func placeIn(id invoiceID) string { return id.Day + "/" + id.Number }

func monthKey(nif, day string) string { return "mes/" + nif + "/" + day[3:] }

func (reg *registrar) head(key string) string {
	if text, ok := reg.heads[key]; ok {
		return text
	}
	text, _ := reg.book.Get(key)
	return text
}

func (reg *registrar) close() {
	for _, key := range slices.Sorted(maps.Keys(reg.heads)) {
		reg.book.Put(key, reg.heads[key])
	}
}

func lookUp(book *authority.Book, nif, place string) (holding, bool) {
	var h holding
	known := book.Load(invoiceKey(nif, place), &h)
	return h, known
}

func (reg *registrar) keep(h holding) {
	reg.book.Keep(invoiceKey(reg.nif, placeIn(h.ID)), h)
}

// take decides about one record, in the order in which AEAT would: can it be
// read, does it break a rule, is it here already, what does the script want,
// and what is to be remarked about it.
func (reg *registrar) take(a *arrival, step authority.Step) answerLine {
	line := answerLine{
		id: a.id, operation: "Alta", reference: a.reference, state: aeatwire.StateCorrect,
		amends: a.e.Value("Subsanacion"), rejected: a.e.Value("RechazoPrevio"), unknown: a.e.Value("SinRegistroPrevio"),
	}
	if a.cancels {
		line.operation = "Anulacion"
	}
	here, exists := lookUp(reg.book, reg.nif, placeIn(a.id))
	if exists && here.Huella == a.huella {
		return reg.again(line, a, here)
	}
	link := reg.follow(a)
	if code, detail := reg.flaw(a); code != "" {
		return refuse(line, code, detail)
	}
	if step.Outcome == authority.Duplicate && !exists {
		here, exists = reg.anothers(a, step), true
	}
	if code := misplacedRecord(a, exists); code != "" {
		line = refuse(line, code, "")
		if code == "3000" {
			line.duplicate, line.request, line.heldState = true, here.Request, heldState(here.State)
			if here.Code != "" {
				line.heldCode, line.heldText = here.Code, Message(here.Code)
			}
		}
		return line
	}
	if step.Outcome == authority.Reject {
		return refuse(line, "1109", "")
	}
	code := remark(a.e, a.cancels, reg.late, reg.now)
	if code == "" {
		code = link
	}
	if code != "" {
		line.state, line.code, line.text = aeatwire.StateFlawed, code, Message(code)
	}
	reg.register(a, line, here, exists)
	return line
}

// again answers a record that is here already, itself: an alta is a
// duplicate; to cancel what is cancelled is no error (annex 6.2, OK 8), and
// makes no second registration.
func (reg *registrar) again(line answerLine, a *arrival, here holding) answerLine {
	if a.cancels {
		reg.taken++
		return line
	}
	line = refuse(line, "3000", "")
	line.duplicate, line.request, line.heldState = true, here.Request, heldState(here.State)
	return line
}

func refuse(line answerLine, code, detail string) answerLine {
	line.state, line.code, line.text = aeatwire.StateRefused, code, Message(code)
	if detail != "" {
		line.text += ": " + detail
	}
	return line
}

func (reg *registrar) flaw(a *arrival) (code, detail string) {
	if a.illegible != "" {
		return codeOf(a.illegible), a.illegible
	}
	if a.cancels {
		return cancellationFlaw(a.e, reg.nif), ""
	}
	return invoiceFlaw(a.e, reg.nif, reg.now), ""
}

// misplacedRecord knows which records AEAT admits before, after and after the
// cancellation of another ("Validaciones" 1.2.0, annex 6).
func misplacedRecord(a *arrival, exists bool) string {
	fresh := a.e.Value("Subsanacion") != "S" || a.e.Value("RechazoPrevio") == "X"
	if a.cancels {
		fresh = a.e.Value("SinRegistroPrevio") == "S"
	}
	switch {
	case fresh && exists:
		return "3000"
	case !fresh && !exists:
		return "3002"
	}
	return ""
}

// follow moves the chain's head to the record and says what is wrong with the
// link. A refused record keeps its place. AEAT itself remarks only that a
// first record is not the first; that a link leads elsewhere than to the last
// record seen is remarked here in addition, so that a broken chain shows.
//
// A record that was seen before, and was refused or has been replaced since,
// comes again after a lost answer: its place in the chain is where it was.
func (reg *registrar) follow(a *arrival) string {
	seen := "huella/" + a.huella
	if _, again := reg.book.Get(seen); again || !wellFormedHuella(a.huella) {
		return ""
	}
	reg.book.Put(seen, a.chain)
	last := reg.head(a.chain)
	reg.heads[a.chain] = a.huella
	previous := a.e.At("Encadenamiento", "RegistroAnterior")
	switch {
	case last == "":
		return ""
	case previous == nil:
		return "2007"
	case previous.Value("Huella") != last:
		return "2003"
	}
	return ""
}

// anothers plays a script's duplicate: somebody's record, or this one, came
// under the same name before.
func (reg *registrar) anothers(a *arrival, step authority.Step) holding {
	other := *a
	if step.Of != authority.OfOurs {
		other.huella = strings.ToUpper(sha256Hex([]byte("another's record\n" + a.huella)))
		other.sha256 = sha256Hex([]byte("another's record\n" + a.sha256))
	}
	return reg.register(&other, answerLine{state: aeatwire.StateCorrect}, holding{}, false)
}

// register enters an accepted record.
func (reg *registrar) register(a *arrival, line answerLine, here holding, exists bool) holding {
	h := holding{
		ID: a.id, Huella: a.huella, Reference: a.reference, Kind: a.e.Value("TipoFactura"), State: line.state, Code: line.code,
		Presenter: reg.nif, At: reg.now, Request: reg.request, Before: here.Before, Says: readContent(a.e),
	}
	if a.cancels {
		h.State, h.Kind = aeatwire.StateAnnulled, here.Kind
	}
	if !exists {
		month := monthKey(reg.nif, a.id.Day)
		h.Before = reg.head(month)
		reg.heads[month] = placeIn(a.id)
	}
	reg.keep(h)
	reg.book.Register(authority.Registration{Supplier: reg.nif, Number: a.number, SHA256: a.sha256, AuthorityID: reg.csv,
		At: reg.now})
	reg.taken++
	return h
}

// heldState is how an answer about a duplicate spells the state of what is held.
func heldState(state string) string {
	switch state {
	case aeatwire.StateFlawed:
		return "AceptadaConErrores"
	case aeatwire.StateAnnulled:
		return "Anulada"
	}
	return "Correcta"
}

// listed is a holding as an answer to a query has it.
func (h *holding) listed(where *time.Location) entry {
	out := entry{
		id: h.ID, huella: h.Huella, reference: h.Reference, kind: h.Kind, state: h.State, code: h.Code,
		presenter: h.Presenter, at: h.At.In(where).Format(aeatwire.InstantForm), request: h.Request, says: h.Says,
	}
	if h.State == aeatwire.StateAnnulled {
		out.kind = ""
	}
	if h.Code != "" {
		out.text = Message(h.Code)
	}
	return out
}
