package it_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/it"
	"tributary/internal/fault"
	"tributary/internal/incoming"
	"tributary/internal/official"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// said is what a public body says of an invoice that came some days ago.
func said(status, note string, days int) transaction.Answer {
	now := time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)
	return transaction.Answer{Status: status, Note: note, Date: now, To: transaction.Answered{Source: "IT.test", AuthorityID: "32477911",
		AuthorityID2: "IT01234567897_00001.xml", At: now.AddDate(0, 0, -days), Format: incoming.FatturaPA, Number: "F-1", Day: "2026-03-02",
		Receiver: transaction.Party{TaxNumber: "IT00743110157", Electronic: &transaction.ElectronicAddress{Scheme: transaction.SchemeSDI, ID: "UFABC1"}}}}
}

// A public body answers what SdI brought it, in time and with a reason where it refuses; everybody else is told why not.
func TestOnlyAPublicBodyAnswersAtSdI(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*transaction.Answer)
		want   fault.Code
	}{
		"accepted":               {func(*transaction.Answer) {}, ""},
		"on the last day":        {func(a *transaction.Answer) { a.To.At = a.Date.AddDate(0, 0, -sdiwire.EsitoDays) }, ""},
		"a day late":             {func(a *transaction.Answer) { a.To.At = a.Date.AddDate(0, 0, -sdiwire.EsitoDays-1) }, fault.UnsupportedOperation},
		"to a business":          {func(a *transaction.Answer) { a.To.Receiver.Electronic.ID = "ABC1234" }, fault.UnsupportedOperation},
		"to a certified mailbox": {func(a *transaction.Answer) { a.To.Receiver.Electronic.Scheme = transaction.SchemePEC }, fault.UnsupportedOperation},
		"to nobody's address":    {func(a *transaction.Answer) { a.To.Receiver.Electronic = nil }, fault.UnsupportedOperation},
		"uploaded":               {func(a *transaction.Answer) { a.To.AuthorityID = "" }, fault.UnsupportedOperation},
		"a file without a name":  {func(a *transaction.Answer) { a.To.AuthorityID2 = "" }, fault.UnsupportedOperation},
		"UBL":                    {func(a *transaction.Answer) { a.To.Format = incoming.UBL }, fault.UnsupportedOperation},
		"a code of others":       {func(a *transaction.Answer) { a.Reason = "QTY" }, fault.ValidationMatchInvalid},
		"refused without words":  {func(a *transaction.Answer) { a.Status = transaction.Rejected }, fault.FieldRequired},
		"words that fit":         {func(a *transaction.Answer) { a.Note = strings.Repeat("è", sdiwire.EsitoTextMax) }, ""},
		"words that do not":      {func(a *transaction.Answer) { a.Note = strings.Repeat("è", sdiwire.EsitoTextMax+1) }, fault.FieldNotValid},
	} {
		a := said(transaction.Accepted, "", 3)
		c.change(&a)
		var got fault.Code
		if found := pack().Answerable(country.Supplier{}, a); len(found) > 0 {
			got = found[0].Code
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if r := pack().Facts.Responses; !r.Once || fmt.Sprint(r.Statuses) != "[ACCEPTED REJECTED]" {
		t.Errorf("%+v", r)
	}
}

func answering(t *testing.T, at country.Endpoint, a transaction.Answer, sequence int64) (country.Channel, country.Filing) {
	t.Helper()
	ch, err := it.Pack().Connect(at)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ch.Prepare(country.Draft{OperationID: "op", Sequence: sequence, Now: a.Date,
		Transaction: transaction.Transaction{Kind: transaction.Response, Answer: &a}})
	if err != nil {
		t.Fatal(err)
	}
	return ch, f
}

// What is sent is SdI's NotificaEsitoCommittente, under a name of its own each time.
func TestAnAnswerIsAnEsitoCommittente(t *testing.T) {
	t.Parallel()
	at := country.Endpoint{BaseURL: "http://127.0.0.1:1/ricevi_file", HTTP: http.DefaultClient, Simulated: true}
	names := map[string]bool{}
	for n, c := range []struct{ status, note, code string }{
		{transaction.Accepted, "", sdiwire.EsitoAccepted}, {transaction.Rejected, "manca il CIG", sdiwire.EsitoRefused},
	} {
		_, f := answering(t, at, said(c.status, c.note, 1), int64(46_656+n))
		doc, err := xmltree.Read(f.Report)
		if err != nil {
			t.Fatal(err)
		}
		if flaw := official.SdIMessages.Schema().First(doc.Root); flaw != nil || doc.Root.Local != sdiwire.RootEsito {
			t.Errorf("%s: %v", f.Report, flaw)
		}
		if doc.Root.Value("Esito") != c.code || doc.Root.Value("Descrizione") != c.note || doc.Root.Value("IdentificativoSdI") != "32477911" ||
			doc.Root.Value("RiferimentoFattura", "NumeroFattura") != "F-1" || doc.Root.Value("RiferimentoFattura", "AnnoFattura") != "2026" {
			t.Errorf("%s", f.Report)
		}
		if file, ok := sdiwire.ParseAnswerName(f.DedupeKey); !ok || file != "IT01234567897_00001.xml" || names[f.DedupeKey] {
			t.Errorf("the name %q", f.DedupeKey)
		}
		names[f.DedupeKey] = true
	}
}

// Only what SdI decides is a decision: it takes an answer, refuses it with a code, or is not there; all else is unknown.
func TestWhatSdISaysOfAnAnswer(t *testing.T) {
	t.Parallel()
	unfit := func(id, code string) string {
		const method = `Algorithm="a"`
		return base64.StdEncoding.EncodeToString([]byte(`<t:ScartoEsitoCommittente xmlns:t="` + sdiwire.SpacePublicMessages +
			`" versione="1.0"><IdentificativoSdI>` + id + `</IdentificativoSdI><Scarto>` + code + `</Scarto><MessageId>1</MessageId><Note>già</Note>` +
			`<ds:Signature xmlns:ds="` + sdiwire.SpaceSignature + `"><ds:SignedInfo><ds:CanonicalizationMethod ` + method + `/><ds:SignatureMethod ` +
			method + `/><ds:Reference><ds:DigestMethod ` + method + `/><ds:DigestValue>AA==</ds:DigestValue></ds:Reference></ds:SignedInfo>` +
			`<ds:SignatureValue>AA==</ds:SignatureValue></ds:Signature></t:ScartoEsitoCommittente>`))
	}
	answer := func(inner string) string {
		return `<s:Envelope xmlns:s="` + soap.Space11 + `"><s:Body><r:rispostaSdINotificaEsito xmlns:r="` + sdiwire.SpaceReceiving + `">` + inner +
			`</r:rispostaSdINotificaEsito></s:Body></s:Envelope>`
	}
	refused := func(file string) string {
		return answer("<Esito>ES00</Esito><ScartoEsito><NomeFile>IT01234567897_00001_SE_001.xml</NomeFile><File>" + file + "</File></ScartoEsito>")
	}
	for name, c := range map[string]struct {
		body      string
		want      country.Outcome // "": unknown
		duplicate bool
	}{
		"taken":                 {answer("<Esito>ES01</Esito>"), country.Accepted, false},
		"unavailable":           {answer("<Esito>ES02</Esito>"), country.NotTaken, false},
		"malformed":             {refused(unfit("32477911", "EN00")), country.Rejected, false},
		"not admitted":          {refused(unfit("32477911", "EN01")), country.Rejected, true},
		"reasons of another":    {refused(unfit("1", "EN01")), "", false},
		"a code of nobody's":    {refused(unfit("32477911", "EN02")), "", false},
		"reasons that are none": {refused("QQ=="), "", false},
		"no reasons":            {answer("<Esito>ES00</Esito>"), "", false},
		"another code":          {answer("<Esito>ES03</Esito>"), "", false},
		"another element":       {strings.ReplaceAll(answer(""), "NotificaEsito", "RiceviFile"), "", false},
		"a page":                {"<html/>", "", false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != sdiwire.PathAnswers || r.Header.Get("SOAPAction") != `"`+sdiwire.ActionAnswer+`"` {
				t.Errorf("%s: %s %s", name, r.URL.Path, r.Header.Get("SOAPAction"))
			}
			w.Header().Set("Content-Type", "text/xml; charset=utf-8")
			_, _ = w.Write([]byte(c.body))
		}))
		ch, f := answering(t, country.Endpoint{BaseURL: server.URL, HTTP: server.Client(), Simulated: true}, said(transaction.Accepted, "", 1), 7)
		got, err := ch.Send(t.Context(), []country.Filing{f}, country.Credentials{})
		server.CloseClientConnections()
		server.Close()
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%s is believed: %+v", name, got)
		case c.want != "" && (err != nil || got[0].Outcome != c.want || got[0].Duplicate != c.duplicate):
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}
