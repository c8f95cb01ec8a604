package sdi

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official"
	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// A public body says by NotificaEsito whether it takes an invoice, and is told at once whether that is taken. The
// transmitter hears it as an NE. What is refused leaves nothing.

// esito is what a public body says of an invoice.
type esito struct {
	id   string // of the call
	name string
	file []byte
	root *xmltree.Element
	wrong
}

// wrong is why what a body says is not taken: EN00 or EN01; empty: it is.
type wrong struct{ code, text string }

func esitoKey(id string) string { return "esito/" + id }

// notify serves NotificaEsito of SdIRiceviNotifica.
func (a *double) notify(w http.ResponseWriter, r *http.Request) {
	who, body := called(w, r, controlBytesMax)
	if who == nil {
		return
	}
	in, reason := readEsito(r, body)
	if reason != "" {
		failed(w, reason)
		return
	}
	turn := a.desk.Turn(authority.Arrival{Supplier: who.Subject.CommonName, Number: in.name})
	if !turn.Begin(w, func(w http.ResponseWriter) { a.decided(w, in, sdiwire.AnswerUnavailable) }) {
		return
	}
	in.read()
	var queued []notice
	err := a.desk.Write(func(b *authority.Book) { queued = queue(b, a.hear(b, &in, turn.Steps[0])...) })
	if err != nil {
		failed(w, "the book cannot be written")
		return
	}
	a.tell(queued)
	if !turn.End(w, r) {
		return
	}
	code := sdiwire.AnswerTaken
	if in.code != "" {
		code = sdiwire.AnswerRefused
	}
	a.decided(w, in, code)
}

// readEsito reads the call; a reason is why it is answered with a fault.
func readEsito(r *http.Request, body []byte) (in esito, reason string) {
	if action := strings.Trim(r.Header.Get("SOAPAction"), `"`); action != sdiwire.ActionAnswer {
		return in, "the operation " + action + " is not known"
	}
	packed, err := sdiwire.Open(r.Header.Get("Content-Type"), body)
	if err != nil {
		return in, err.Error()
	}
	call, err := soap.Read(packed.Envelope, xmltree.Limits{})
	switch {
	case err != nil:
		return in, err.Error()
	case call.Version != soap.V11 || !call.Content.Is(sdiwire.SpaceReceiving, sdiwire.ElementGiven):
		return in, "the body is no " + sdiwire.ElementGiven
	}
	var names []string
	for _, c := range call.Content.Children {
		names = append(names, c.Space+c.Local) // children stand in no namespace
	}
	if !slices.Equal(names, []string{"IdentificativoSdI", "NomeFile", "File"}) {
		return in, "IdentificativoSdI, NomeFile and File are expected, without a namespace"
	}
	in.id, in.name = call.Content.Value("IdentificativoSdI"), call.Content.Value("NomeFile")
	if !sdiwire.Callable(in.name) || in.id == "" || len(in.id) > sdiwire.IDDigits || strings.Trim(in.id, "0123456789") != "" {
		return in, "Internal Error"
	}
	if in.file, err = packed.File(call.Content.At("File")); err != nil {
		return in, err.Error()
	}
	return in, ""
}

// read judges the file by itself (EN00).
func (in *esito) read() {
	malformed := func(text string) { in.wrong = wrong{sdiwire.EsitoMalformed, text} }
	doc, err := xmltree.Limits{Bytes: controlBytesMax}.Read(in.file)
	if err != nil {
		malformed(err.Error())
		return
	}
	in.root = doc.Root
	flaw := official.SdIMessages.Schema().First(in.root)
	_, named := sdiwire.ParseAnswerName(in.name)
	switch {
	case !in.root.Is(sdiwire.SpacePublicMessages, sdiwire.RootEsito):
		malformed("il file non contiene una " + sdiwire.RootEsito)
	case flaw != nil:
		malformed(flaw.Error())
	case !named:
		malformed("nome file non valido: " + in.name)
	case in.root.Value("IdentificativoSdI") != in.id:
		malformed("IdentificativoSdI diverso da quello della chiamata")
	}
}

// hear decides what a body says, and keeps it; what its seller is to be told is answered.
func (a *double) hear(b *authority.Book, in *esito, step authority.Step) []notice {
	of, text := a.answerable(b, in)
	if in.code == "" && (text != "" || step.Outcome == authority.Reject) {
		if in.wrong = (wrong{sdiwire.EsitoInadmissible, text}); text == "" {
			in.text = "respinta dallo scenario di test"
		}
	}
	if in.code != "" {
		return nil
	}
	sum := hashOf(in.file)
	if step.Outcome == authority.Duplicate { // somebody was here before, with ours or with another
		in.wrong = wrong{sdiwire.EsitoInadmissible, "esito già notificato"}
		if step.Of != authority.OfOurs {
			sum = hashOf(append([]byte("another's answer\n"), in.file...))
		}
	}
	b.Put(esitoKey(in.id), in.name)
	b.Register(authority.Registration{Supplier: of.Receiver, Number: in.name, SHA256: sum, AuthorityID: in.id, At: a.now()})
	n := of.notice(sdiwire.Outcome, a.now().Add(soon))
	n.Esito, n.Text = in.root.Value("Esito"), in.root.Value("Descrizione")
	return []notice{n}
}

// answerable finds the invoice, or why it has no answer (any more).
func (a *double) answerable(b *authority.Book, in *esito) (of record, text string) {
	if in.code != "" {
		return of, ""
	}
	file, _ := sdiwire.ParseAnswerName(in.name)
	said := in.root.At("RiferimentoFattura")
	about := func(n numbered) bool {
		return n.Entry.Number == said.Value("NumeroFattura") && strings.HasPrefix(n.Entry.Date, said.Value("AnnoFattura")+"-")
	}
	_, before := b.Get(esitoKey(in.id))
	last := func() string { return of.Received.In(rome()).AddDate(0, 0, sdiwire.EsitoDays).Format(time.DateOnly) }
	switch known := b.Load(nameKey(file), &of); {
	case !known || itoa(of.SdI) != in.id || of.Receiver == "":
		return of, "nessuna fattura " + in.id + " recapitata con questo nome"
	case !of.Public:
		return of, "la fattura non è destinata alla pubblica amministrazione"
	case said != nil && !slices.ContainsFunc(of.Invoices, about):
		return of, "RiferimentoFattura non presente nel file"
	case before:
		return of, "esito già notificato"
	case a.now().In(rome()).Format(time.DateOnly) > last():
		return of, "decorrenza dei termini"
	}
	return of, ""
}

// decided answers NotificaEsito.
func (a *double) decided(w http.ResponseWriter, in esito, code string) {
	var reasons []byte
	if code == sdiwire.AnswerRefused {
		var err error
		if reasons, err = a.reasons(in); err != nil {
			failed(w, "the answer cannot be signed")
			return
		}
	}
	out := xmltree.NewWriter(1024 + 2*len(reasons))
	out.Declare()
	soap.Message{Version: soap.V11, NoHeader: true, Body: func(out *xmltree.Writer) {
		out.Start("ns2:"+sdiwire.ElementDecided, "xmlns:ns2", sdiwire.SpaceReceiving)
		out.Leaf("Esito", code)
		if reasons != nil {
			out.Start("ScartoEsito")
			out.Leaf("NomeFile", strings.Replace(in.name, "_EC_", "_SE_", 1))
			out.Leaf("File", base64.StdEncoding.EncodeToString(reasons))
			out.End()
		}
		out.End()
	}}.WriteTo(out)
	w.Header().Set("Content-Type", soap.V11.ContentType(""))
	_, _ = w.Write(out.Bytes()) // a caller that left asks again
}

// reasons is the signed ScartoEsitoCommittente.
func (a *double) reasons(in esito) ([]byte, error) {
	keys, err := keysOf()
	if err != nil {
		return nil, err
	}
	return keys.signed(a.now(), func(sign func(*xmltree.Writer)) []byte {
		w := xmltree.NewWriter(8 << 10)
		w.Declare()
		w.Start("ns3:"+sdiwire.RootUnfit, "xmlns:ns3", sdiwire.SpacePublicMessages, "xmlns:ns2", sdiwire.SpaceSignature, "versione", "1.0")
		w.Leaf("IdentificativoSdI", in.id)
		w.Leaf("Scarto", in.code)
		w.Leaf("MessageId", "1")
		w.Leaf("Note", in.text)
		sign(w)
		w.End()
		return w.Bytes()
	})
}
