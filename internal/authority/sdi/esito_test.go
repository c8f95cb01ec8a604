package sdi_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"tributary/internal/official"
	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

const signature = `<ds:Signature xmlns:ds="` + sdiwire.SpaceSignature + `"><ds:SignedInfo><ds:CanonicalizationMethod Algorithm="a"/>` +
	`<ds:SignatureMethod Algorithm="a"/><ds:Reference><ds:DigestMethod Algorithm="a"/><ds:DigestValue>AA==</ds:DigestValue></ds:Reference>` +
	`</ds:SignedInfo><ds:SignatureValue>AA==</ds:SignatureValue></ds:Signature>`

// public sends a signed invoice to a public body that receives here.
func (x *exchange) public(number string) (name, id string) {
	x.t.Helper()
	if status := x.control("PUT", sdiwire.PathRecipients+"ABC123", `{"callback":"http://127.0.0.1:1/nobody"}`); status != http.StatusNoContent {
		x.t.Fatal(status)
	}
	name = x.name()
	file := strings.NewReplacer("FPR12", "FPA12", "ABC1234", "ABC123", "</p:FatturaElettronica>", signature+"</p:FatturaElettronica>").
		Replace(base(x.t, number))
	id, code := x.send(name, file)
	if m := x.hears(); code != "" || m.kind != sdiwire.Delivered {
		x.t.Fatalf("%s %+v", code, m)
	}
	return name, id
}

func esitoOf(id, code, number string) string {
	return `<t:NotificaEsitoCommittente xmlns:t="` + sdiwire.SpacePublicMessages + `" versione="1.0"><IdentificativoSdI>` + id +
		`</IdentificativoSdI><RiferimentoFattura><NumeroFattura>` + number + `</NumeroFattura><AnnoFattura>2026</AnnoFattura></RiferimentoFattura>` +
		`<Esito>` + code + `</Esito><Descrizione>manca il CIG</Descrizione><MessageIdCommittente>1</MessageIdCommittente></t:NotificaEsitoCommittente>`
}

// says calls NotificaEsito and answers what was decided, with the code of a refusal.
func (x *exchange) says(id, name, file string) (esito, scarto string) {
	x.t.Helper()
	body := `<e:Envelope xmlns:e="` + soap.Space11 + `" xmlns:t="` + sdiwire.SpaceReceiving + `"><e:Body><t:fileSdI><IdentificativoSdI>` + id +
		`</IdentificativoSdI><NomeFile>` + name + `</NomeFile><File>` + base64.StdEncoding.EncodeToString([]byte(file)) +
		`</File></t:fileSdI></e:Body></e:Envelope>`
	r, err := http.NewRequestWithContext(x.t.Context(), http.MethodPost, x.server.URL+sdiwire.PathAnswers, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "text/xml; charset=utf-8")
	r.Header.Set("SOAPAction", `"`+sdiwire.ActionAnswer+`"`)
	r.Header.Set(sdiwire.HeaderClient, ":"+base64.StdEncoding.EncodeToString(x.client.Raw)+":")
	resp, err := x.server.Client().Do(r)
	if err != nil {
		return "", ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	doc, err := xmltree.Read(text)
	if err != nil {
		x.t.Fatal(err)
	}
	said := doc.Root.Find(sdiwire.SpaceReceiving, sdiwire.ElementDecided)
	if said == nil {
		return "fault", ""
	}
	if text := said.Value("ScartoEsito", "File"); text != "" {
		why, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			x.t.Fatal(err)
		}
		doc, err := xmltree.Read(why)
		if err != nil {
			x.t.Fatal(err)
		}
		if flaw := official.SdIMessages.Schema().First(doc.Root); flaw != nil {
			x.t.Errorf("%v", flaw)
		}
		if err := verified(doc); err != nil {
			x.t.Error(err)
		}
		scarto = doc.Root.Value("Scarto")
	}
	return said.Value("Esito"), scarto
}

// A public body is heard once about an invoice that it got, and its seller hears it; all else is refused and leaves nothing.
func TestAPublicBodyIsHeardOnce(t *testing.T) {
	x := open(t)
	name, id := x.public("F-1")
	private := x.name()
	privateID, _ := x.send(private, base(t, "F-2"))
	x.hears()
	answer := sdiwire.AnswerName(name, "001")
	for _, c := range []struct{ what, id, name, file, esito, scarto string }{
		{"no XML", id, answer, "no XML", "ES00", "EN00"},
		{"another code", id, answer, esitoOf(id, "EC03", "F-1"), "ES00", "EN00"},
		{"the id of another", id, answer, esitoOf("1", "EC01", "F-1"), "ES00", "EN00"},
		{"a name that is none", id, strings.Replace(answer, "_EC_", "_XX_", 1), esitoOf(id, "EC01", "F-1"), "ES00", "EN00"},
		{"another invoice", id, answer, esitoOf(id, "EC01", "F-9"), "ES00", "EN01"},
		{"an id of nobody", "5", answer, esitoOf("5", "EC01", "F-1"), "ES00", "EN01"},
		{"between private parties", privateID, sdiwire.AnswerName(private, "001"), esitoOf(privateID, "EC01", "F-2"), "ES00", "EN01"},
		{"no number", "x", answer, esitoOf("x", "EC01", "F-1"), "fault", ""},
	} {
		if esito, scarto := x.says(c.id, c.name, c.file); esito != c.esito || scarto != c.scarto {
			t.Errorf("%s: %s %s", c.what, esito, scarto)
		}
	}
	if held := x.held(); len(held) != 2 {
		t.Fatalf("what was refused is held: %+v", held)
	}
	if esito, _ := x.says(id, answer, esitoOf(id, "EC02", "F-1")); esito != "ES01" {
		t.Fatal(esito)
	}
	m := x.hears()
	if said := m.root.At("EsitoCommittente"); m.kind != sdiwire.Outcome || said.Value("Esito") != "EC02" || said.Value("Descrizione") != "manca il CIG" {
		t.Errorf("the seller hears %+v", m)
	}
	if held := x.held(); len(held) != 3 || held[2].Number != answer || held[2].AuthorityID != id {
		t.Errorf("%+v", held)
	}
	if esito, scarto := x.says(id, sdiwire.AnswerName(name, "002"), esitoOf(id, "EC01", "F-1")); esito != "ES00" || scarto != "EN01" {
		t.Errorf("a second answer: %s %s", esito, scarto)
	}
}
