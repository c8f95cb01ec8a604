package it

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/country/text"
	"tributary/internal/fault"
	"tributary/internal/incoming"
	"tributary/internal/official"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// A public body says once whether it takes an invoice that SdI brought it: by a NotificaEsitoCommittente (EC), within 15
// days, after which the invoice counts as taken. Nobody else has an answer at SdI: invoices between private parties are
// neither accepted nor refused there. Sources: Istruzioni per il servizio SDICoop – Ricezione; DM 55/2013; DM 132/2020.

// publicCode is the length of a public body's CodiceDestinatario: that of the office in the index of the administration (00427).
const publicCode = 6

func responses() *country.Responses {
	return &country.Responses{Statuses: []string{transaction.Accepted, transaction.Rejected}, Once: true,
		Rule: "invoices to a public body (FPA12) that SdI brought, once, within 15 days: ACCEPTED is EC01, REJECTED is EC02 and needs a note that says which of the reasons of DM 132/2020 it has"}
}

// canAnswer finds why a document has no answer at SdI.
func canAnswer(_ country.Supplier, a transaction.Answer) []fault.Fault {
	to := a.To
	switch {
	case to.Format != incoming.FatturaPA:
		return country.Unanswerable("", "the document is no FatturaPA: it is %s", cmp.Or(to.Format, "unknown"))
	case to.Receiver.Electronic == nil || to.Receiver.Electronic.Scheme != transaction.SchemeSDI || len(to.Receiver.Electronic.ID) != publicCode:
		return country.Unanswerable("", "only a public body answers an invoice at SdI (FPA12); this one was sent to a business or a person")
	case !numbered(to.AuthorityID) || to.AuthorityID2 == "":
		return country.Unanswerable("", "the document was not brought by SdI: who got it from there answers it")
	case expired(to.At, a.Date):
		return country.Unanswerable("", "the invoice came on %s: after %d days it counts as accepted, and SdI takes no answer",
			to.At.In(rome()).Format(time.DateOnly), sdiwire.EsitoDays)
	}
	switch n := utf8.RuneCountInString(a.Note); {
	case a.Reason != "":
		return []fault.Fault{fault.At("reason", fault.ValidationMatchInvalid, "has no place at SdI: say it in note")}
	case a.Status == transaction.Rejected && strings.TrimSpace(a.Note) == "":
		return []fault.Fault{fault.At("note", fault.FieldRequired, "is needed to say why (Descrizione)")}
	case n > sdiwire.EsitoTextMax:
		return []fault.Fault{fault.At("note", fault.FieldNotValid, "must have at most %d characters (Descrizione), it has %d", sdiwire.EsitoTextMax, n)}
	}
	return nil
}

// expired reports whether the days are over in which an invoice that came is answered: days of Rome, the first is the one after.
func expired(came, now time.Time) bool {
	last := came.In(rome()).AddDate(0, 0, sdiwire.EsitoDays).Format(time.DateOnly)
	return now.In(rome()).Format(time.DateOnly) > last
}

// answerMarks are how many names an answer may have: three letters or digits.
const answerMarks = 36 * 36 * 36

// answer makes the EC of a draft. Its name is that of the invoice with a mark, which is never another's of that invoice.
func answer(in *country.Draft) (country.Filing, error) {
	a := in.Transaction.Answer
	if in.Sequence <= 0 {
		return country.Filing{}, fmt.Errorf("naming the answer %s: there is no number", in.OperationID)
	}
	mark := strings.ToUpper(strconv.FormatInt(in.Sequence%answerMarks, 36))
	name := sdiwire.AnswerName(a.To.AuthorityID2, strings.Repeat("0", 3-len(mark))+mark)
	if !sdiwire.Callable(name) {
		return country.Filing{}, fault.New(fault.Invalid, "SdI would not take the answer").
			With(country.Unanswerable("", "the invoice's file %q has a name of which no answer's can be made", a.To.AuthorityID2)...)
	}
	report := writeEsito(a, strconv.FormatInt(in.Sequence, 10))
	f, err := in.Filing(report, name, cmp.Or(taxid.Bare(a.To.Receiver.TaxNumber), taxid.Bare(a.To.Receiver.FiscalCode)),
		extra{SdI: a.To.AuthorityID})
	f.DedupeKey = name
	return f, err
}

// writeEsito writes the EC; id is our own name of it (MessageIdCommittente).
func writeEsito(a *transaction.Answer, id string) []byte {
	code := sdiwire.EsitoAccepted
	if a.Status == transaction.Rejected {
		code = sdiwire.EsitoRefused
	}
	w := xmltree.NewWriter(1024)
	w.Declare()
	w.Start("types:"+sdiwire.RootEsito, "xmlns:types", sdiwire.SpacePublicMessages, "versione", "1.0")
	w.Leaf("IdentificativoSdI", a.To.AuthorityID)
	if year, _, dated := strings.Cut(a.To.Day, "-"); dated && a.To.Number != "" {
		w.Start("RiferimentoFattura")
		w.Leaf("NumeroFattura", a.To.Number)
		w.Leaf("AnnoFattura", year)
		w.End()
	}
	w.Leaf("Esito", code)
	w.Maybe("Descrizione", strings.TrimSpace(a.Note))
	w.Leaf("MessageIdCommittente", id)
	w.End()
	return append(w.Bytes(), '\n')
}

// respond calls NotificaEsito once. SdI decides at once.
//
// Failure policy: ES02 took nothing. After a lost answer the same file goes again; if SdI then says EN01, it has an
// answer, which is the first (see [country.Receipt].Duplicate). Anything that is no decision says nothing.
func (ch *channel) respond(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	var x extra
	if err := f.Carried(&x); err != nil {
		return country.Receipt{}, fmt.Errorf("%w: %w", country.ErrNotTaken, err)
	}
	client, err := ch.client(c)
	if err != nil {
		return country.Receipt{}, err
	}
	body := request(sdiwire.SpaceReceiving, sdiwire.ElementGiven, x.SdI, f)
	reply, err := country.Request{URL: ch.address(sdiwire.PathAnswers), Body: body, BytesMax: answerBytesMax,
		Header: []string{"Content-Type", soap.V11.ContentType(sdiwire.ActionAnswer), "SOAPAction", `"` + sdiwire.ActionAnswer + `"`}}.Do(ctx, client)
	if err != nil {
		return country.Receipt{}, err
	}
	return decided(f, x.SdI, reply)
}

// decided reads rispostaSdINotificaEsito.
func decided(f country.Filing, id string, reply country.Reply) (country.Receipt, error) {
	packed, content, err := said(reply, sdiwire.SpaceReceiving, sdiwire.ElementDecided)
	if err != nil {
		return country.Receipt{}, err
	}
	r := country.Receipt{AuthorityID1: id, AuthorityID2: f.DedupeKey, Document: packed.Envelope, Format: "XML", Raw: reply.Body}
	switch code := strings.TrimSpace(content.Value("Esito")); code {
	case sdiwire.AnswerTaken:
		r.Outcome = country.Accepted
	case sdiwire.AnswerUnavailable:
		return r.Untaken("%s: SdI is unavailable", code), nil
	case sdiwire.AnswerRefused:
		file, err := packed.File(content.At("ScartoEsito", "File"))
		if err != nil {
			return country.Receipt{}, fmt.Errorf("SdI refuses an answer to %s and does not say why: %w", id, err)
		}
		return unfitting(r, id, file)
	default:
		return country.Receipt{}, fmt.Errorf("SdI answers %q, which is no decision", code)
	}
	return r, nil
}

// unfitting reads a ScartoEsitoCommittente.
func unfitting(r country.Receipt, id string, file []byte) (country.Receipt, error) {
	doc, err := xmltree.Limits{Bytes: answerBytesMax, Elements: envelopeElementsMax}.Read(file)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("reading why SdI refuses an answer to %s: %w", id, err)
	}
	root := doc.Root
	if flaw := official.SdIMessages.Schema().First(root); flaw != nil || !root.Is(sdiwire.SpacePublicMessages, sdiwire.RootUnfit) ||
		strings.TrimSpace(root.Value("IdentificativoSdI")) != id {
		return country.Receipt{}, fmt.Errorf("what SdI sends in place of the reasons why it refuses an answer to %s is {%s}%s", id, root.Space, root.Local)
	}
	code := strings.TrimSpace(root.Value("Scarto"))
	r.Outcome, r.Document, r.Duplicate = country.Rejected, file, code == sdiwire.EsitoInadmissible
	r.Faults = []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority,
		Message: text.Join(": ", code, cmp.Or(strings.TrimSpace(root.Value("Note")), "SdI refuses the answer"))}}
	return r, nil
}
