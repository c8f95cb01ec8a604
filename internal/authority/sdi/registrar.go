package sdi

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/sdiwire"
)

// idsFrom is what the identifiers of a double begin behind.
const idsFrom = 100_000_000

// record is what is kept of a file by its name.
type record struct {
	SdI      int64      `json:"sdi"`
	File     string     `json:"file"`
	SHA256   string     `json:"sha256"`
	Received time.Time  `json:"received"`
	Channel  string     `json:"channel"`
	To       string     `json:"to"`
	Buyer    bool       `json:"buyer,omitempty"` // has a VAT number: it is reached
	PEC      bool       `json:"pec,omitempty"`
	Public   bool       `json:"public,omitempty"`
	Number   string     `json:"number,omitempty"`
	Year     string     `json:"year,omitempty"`
	Invoices []numbered `json:"invoices,omitempty"`
	Receiver string     `json:"receiver,omitempty"` // under which somebody receives it here
	Format   string     `json:"format,omitempty"`
}

// numbered is an invoice of a file, for the book.
type numbered struct {
	Issuer string `json:"issuer"`
	Entry  entry  `json:"entry"`
}

func nameKey(file string) string { return "name/" + file }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// registrar decides about one file, with the book open.
type registrar struct {
	book    *authority.Book
	in      *arrival
	at      time.Time
	notices []notice
}

// take gives the file an identifier, uses up its name and decides what becomes
// of it; what is to be said is left in notices.
func (reg *registrar) take(steps []authority.Step) int64 {
	of := reg.record()
	of.SdI = idsFrom + next(reg.book, "sdi")
	if _, used := reg.book.Get(nameKey(of.File)); used {
		reg.refuse(of, flawf(sdiwire.NameUsed, "%s", of.File))
		return of.SdI
	}
	if of.Receiver = reg.receiver(of); of.Receiver != "" {
		reg.book.Put(fileKey(of.SdI), base64.StdEncoding.EncodeToString(reg.in.file))
	}
	reg.book.Keep(nameKey(of.File), of)
	step := steps[0]
	for _, s := range steps { // a lotto stands or falls as a whole
		if s.Outcome != authority.Accept {
			step = s
		}
	}
	switch flaws := append(reg.in.flaws, reg.duplicates(of)...); {
	case len(flaws) > 0:
		reg.refuse(of, flaws...)
	case step.Outcome == authority.Duplicate:
		return reg.alreadyHere(of, step)
	case step.Outcome == authority.Suspend:
		n := of.notice("", reg.at.Add(max(step.Delay, soon)))
		n.Open = &of
		reg.notices = append(reg.notices, n)
	default:
		reg.decide(of, step)
	}
	return of.SdI
}

func fileKey(id int64) string { return "file/" + itoa(id) }

// receiver is the name under which somebody receives the file here; "": nobody does.
func (reg *registrar) receiver(of record) string {
	if reg.in.invoice == nil {
		return ""
	}
	buyer := reg.in.invoice.buyer
	for _, name := range []string{of.To, buyer.country + buyer.number, buyer.code, "IT" + buyer.code} {
		if to, _ := reg.book.Get(recipientKey(name)); to != "" {
			return name
		}
	}
	return ""
}

func (reg *registrar) record() record {
	in := reg.in
	of := record{File: in.name, SHA256: in.sha256, Received: reg.at, Channel: in.channel}
	if in.invoice == nil {
		return of
	}
	sent := in.invoice.head.At("DatiTrasmissione")
	of.To, of.PEC, of.Public = sent.Value("CodiceDestinatario"), sent.Value("PECDestinatario") != "",
		in.invoice.format == sdiwire.Public
	of.Buyer, of.Format = in.invoice.buyer.number != "", in.invoice.format
	for _, b := range in.invoice.bodies {
		of.Invoices = append(of.Invoices, numbered{in.invoice.issuer(b), b.entry()})
	}
	of.Number, of.Year = in.invoice.bodies[0].number, in.invoice.bodies[0].date[:4]
	return of
}

// decide accepts or refuses a file that has passed every check, unless its number
// was taken while it waited.
func (reg *registrar) decide(of record, step authority.Step) {
	if taken := reg.duplicates(of); len(taken) > 0 {
		reg.refuse(of, taken...)
		return
	}
	if step.Outcome == authority.Reject {
		reg.refuse(of, flawf(sdiwire.AddressUnknown, "%s", of.To)) // a check that needs a register
		return
	}
	reg.register(of, of.SHA256)
	reg.deliver(of)
}

// duplicates finds invoices of the file whose numbers are taken (00404).
func (reg *registrar) duplicates(of record) (found []flaw) {
	for _, n := range of.Invoices {
		for _, held := range reg.held(n) {
			if n.Entry.collides(held) {
				found = append(found, flawf(sdiwire.Duplicate, "%s del %s", held.Number, held.Date))
				break
			}
		}
	}
	return found
}

func heldKey(n numbered) string { return "of/" + n.Issuer + "\x00" + n.Entry.Number }

// held are the invoices of an issuer under one number.
func (reg *registrar) held(n numbered) (all []entry) {
	reg.book.Load(heldKey(n), &all) // none at first
	return all
}

func (reg *registrar) register(of record, sha256 string) {
	for _, n := range of.Invoices {
		reg.book.Keep(heldKey(n), append(reg.held(n), n.Entry))
		reg.book.Register(authority.Registration{Supplier: n.Issuer, Number: n.Entry.Number, SHA256: sha256,
			AuthorityID: itoa(of.SdI), At: reg.at})
	}
}

// alreadyHere plays a script's duplicate. Ours came before under the same name,
// and its answer was lost: this one is refused for its name, the first is
// delivered. Another's has the number.
func (reg *registrar) alreadyHere(of record, step authority.Step) int64 {
	if step.Of != authority.OfOurs {
		reg.register(of, hashOf(append([]byte("another's file\n"), reg.in.file...)))
		reg.refuse(of, flawf(sdiwire.Duplicate, "%s", of.Number))
		return of.SdI
	}
	reg.register(of, of.SHA256)
	again := of
	again.SdI = idsFrom + next(reg.book, "sdi")
	reg.deliver(of)
	reg.refuse(again, flawf(sdiwire.NameUsed, "%s", of.File))
	reg.notices[len(reg.notices)-1].At = reg.at.Add(then)
	return again.SdI
}

func (reg *registrar) refuse(of record, flaws ...flaw) {
	n := of.notice(sdiwire.Refused, reg.at.Add(soon))
	n.Flaws = flaws
	reg.notices = append(reg.notices, n)
}

// notice is a message about the file at an instant.
func (of record) notice(k sdiwire.Kind, at time.Time) notice {
	return notice{Kind: k, SdI: of.SdI, File: of.File, SHA256: of.SHA256, Received: of.Received, To: of.To,
		Public: of.Public, Number: of.Number, Year: of.Year, At: at, Channel: of.Channel}
}

// deliver says what became of a file that is registered: delivered, unless the
// buyer is a consumer without an address, or the number asks for something else.
func (reg *registrar) deliver(of record) {
	first := sdiwire.Delivered
	if of.To == sdiwire.NoAddress && !of.Buyer && !of.PEC {
		first = sdiwire.Undelivered
	}
	say := func(k sdiwire.Kind, after time.Duration) *notice {
		reg.notices = append(reg.notices, of.notice(k, reg.at.Add(after)))
		return &reg.notices[len(reg.notices)-1]
	}
	is := func(ending string) bool { return strings.HasSuffix(of.Number, ending) }
	if of.Receiver != "" {
		n := say(received, soon)
		if n.Receiver, n.Format = of.Receiver, of.Format; is(sdiwire.EndingTwice) {
			n.Times = 2
		}
	}
	switch {
	case is(sdiwire.EndingSilent):
	case is(sdiwire.EndingUndelivered):
		say(sdiwire.Undelivered, soon)
	case is(sdiwire.EndingLate):
		say(first, late)
	case is(sdiwire.EndingTwice):
		say(first, soon).Times = 2
	case is(sdiwire.EndingAgreed):
		say(first, soon)
		say(sdiwire.Outcome, then).Esito = sdiwire.EsitoAccepted
	case is(sdiwire.EndingDisagreed):
		say(first, soon)
		say(sdiwire.Outcome, then).Esito = sdiwire.EsitoRefused
	case is(sdiwire.EndingExpired):
		say(first, soon)
		say(sdiwire.Expired, then)
	case is(sdiwire.EndingAttested):
		say(sdiwire.Undelivered, soon)
		say(sdiwire.Attested, then)
	case is(sdiwire.EndingDisordered):
		say(sdiwire.Outcome, soon).Esito = sdiwire.EsitoAccepted
		say(first, then).Times = 2
	default:
		say(first, soon)
	}
}
