package it_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/it"
	"tributary/internal/official/sdiwire"
)

// bringing is a call of RiceviFatture as SdI makes it.
type bringing struct {
	id, hash string
	file     []byte
	action   string
	path     string
	about    string // in place of SdI's file about the invoice
}

func (b bringing) call() country.Call {
	about := b.about
	if about == "" {
		about = fmt.Sprintf(`<?xml version="1.0"?><ns3:FileMetadati xmlns:ns3="%s" versione="1.0"><IdentificativoSdI>%s</IdentificativoSdI><NomeFile>IT01234567897_00001.xml</NomeFile><Hash>%s</Hash><CodiceDestinatario>0000000</CodiceDestinatario><Formato>FPR12</Formato><TentativiInvio>1</TentativiInvio><MessageId>1</MessageId></ns3:FileMetadati>`,
			sdiwire.SpaceMessages, b.id, b.hash)
	}
	body := fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><r:fileSdIConMetadati xmlns:r="%s"><IdentificativoSdI>%s</IdentificativoSdI><NomeFile>IT01234567897_00001.xml</NomeFile><File>%s</File><NomeFileMetadati>IT01234567897_00001_MT_001.xml</NomeFileMetadati><Metadati>%s</Metadati></r:fileSdIConMetadati></s:Body></s:Envelope>`,
		sdiwire.SpaceReceiving, b.id, base64.StdEncoding.EncodeToString(b.file), base64.StdEncoding.EncodeToString([]byte(about)))
	return country.Call{Method: "POST", Path: b.path, Body: []byte(body),
		Header: map[string][]string{"Content-Type": {"text/xml; charset=utf-8"}, "Soapaction": {`"` + b.action + `"`}}}
}

const invoiceToUs = `<?xml version="1.0" encoding="UTF-8"?><p:FatturaElettronica xmlns:p="http://ivaservizi.agenziaentrate.gov.it/docs/xsd/fatture/v1.2" versione="FPR12"><FatturaElettronicaHeader><CessionarioCommittente><DatiAnagrafici><IdFiscaleIVA><IdPaese>IT</IdPaese><IdCodice>00743110157</IdCodice></IdFiscaleIVA><CodiceFiscale>00743110157</CodiceFiscale></DatiAnagrafici></CessionarioCommittente></FatturaElettronicaHeader></p:FatturaElettronica>`

func good(file string) bringing {
	sum := sha256.Sum256([]byte(file))
	return bringing{id: "32477911", hash: hex.EncodeToString(sum[:]), file: []byte(file), action: sdiwire.ActionReceived, path: "/RicezioneFatture"}
}

// What SdI brings is read with its id, byte for byte, for whom it says; what is not what
// SdI speaks of is refused, and strangers are.
func TestInvoicesThatSdIBringsAreRead(t *testing.T) {
	t.Parallel()
	read := it.ReadReceived
	list, reply, err := read(good(invoiceToUs).call())
	if err != nil || len(list) != 1 || reply.Status != 200 || !strings.Contains(string(reply.Body), "<Esito>ER01</Esito>") {
		t.Fatalf("%+v %+v %v", list, reply, err)
	}
	d := list[0].Document
	if d.AuthorityID != "32477911" || string(d.Bytes) != invoiceToUs || d.To.TaxNumber != "IT00743110157" || d.To.FiscalCode != "00743110157" ||
		d.Format != "XML" || list[0].Key != "RF/32477911" {
		t.Errorf("%+v", d)
	}
	if list, _, err := read(good("no XML at all").call()); err != nil || list[0].Document.To.TaxNumber != "" {
		t.Errorf("a file that cannot be read is not kept: %v", err)
	}
	for name, spoil := range map[string]func(*bringing){
		"another file":      func(b *bringing) { b.hash = strings.Repeat("a", 64) },
		"another id":        func(b *bringing) { b.about = strings.Replace(metadata(b), ">32477911<", ">1<", 1) },
		"no number":         func(b *bringing) { b.id = "x"; b.about = "" },
		"no metadata":       func(b *bringing) { b.about = "<a/>" },
		"metadata cut":      func(b *bringing) { b.about = strings.Replace(metadata(b), "<Formato>FPR12</Formato>", "", 1) },
		"another operation": func(b *bringing) { b.action = "http://www.fatturapa.it/RicezioneFatture/NotificaDecorrenzaTermini" },
	} {
		b := good(invoiceToUs)
		spoil(&b)
		if list, _, err := read(b.call()); err == nil {
			t.Errorf("%s is taken: %+v", name, list)
		}
	}
	b := good(invoiceToUs)
	if _, _, err := it.Pack().Callbacks.Read(country.Endpoint{Simulated: true}, b.call()); err == nil {
		t.Error("a caller without a certificate is heard")
	}
}

func metadata(b *bringing) string {
	call := string(b.call().Body)
	_, rest, _ := strings.Cut(call, "<Metadati>")
	text, _, _ := strings.Cut(rest, "</Metadati>")
	about, _ := base64.StdEncoding.DecodeString(text)
	return string(about)
}
