package it

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/incoming"
	"tributary/internal/official"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// pathReceived is where SdI brings what others have sent, below our address.
const pathReceived = "/RicezioneFatture"

// receivedBytesMax is an invoice of the largest size in base64, with all around it.
const receivedBytesMax = 12 << 20

// readReceived understands a call of RiceviFatture: an invoice that somebody sent, with
// SdI's file about it. It is answered that it was taken, which it is by then.
func readReceived(c country.Call) ([]country.Message, country.CallReply, error) {
	refused := func(err error) ([]country.Message, country.CallReply, error) {
		return nil, country.CallReply{}, fault.New(fault.Invalid, "the invoice cannot be taken").Because(err)
	}
	packed, err := sdiwire.Open(c.Header.Get("Content-Type"), c.Body)
	if err != nil {
		return refused(err)
	}
	call, err := soap.Read(packed.Envelope, xmltree.Limits{Bytes: receivedBytesMax, Elements: envelopeElementsMax})
	if err != nil {
		return refused(err)
	}
	action := strings.Trim(c.Header.Get("SOAPAction"), `" `)
	if action != sdiwire.ActionReceived && action != sdiwire.ActionReceivedBy ||
		!call.Content.Is(sdiwire.SpaceReceiving, sdiwire.ElementReceived) {
		return refused(fmt.Errorf("%q is no operation of RicezioneFatture for what the body has", action))
	}
	file, err := packed.File(call.Content.At("File"))
	if err != nil {
		return refused(err)
	}
	about, err := packed.File(call.Content.At("Metadati"))
	if err != nil {
		return refused(err)
	}
	id := strings.TrimSpace(call.Content.Value("IdentificativoSdI"))
	if err := isAbout(about, id, file); err != nil {
		return refused(err)
	}
	doc := &country.Document{AuthorityID: id, Format: "XML", Bytes: file, To: addressee(file)}
	if name := strings.TrimSpace(call.Content.Value("NomeFile")); sdiwire.Callable(name) {
		doc.AuthorityID2 = name // an answer is named after it
	}
	if IsSigned(file) {
		doc.Format = "P7M"
	}
	return []country.Message{{Key: "RF/" + id, Document: doc}}, taken(), nil
}

// isAbout holds SdI's file of metadata against the invoice that it comes with.
func isAbout(about []byte, id string, file []byte) error {
	doc, err := xmltree.Limits{Bytes: messageBytesMax, Elements: envelopeElementsMax}.Read(about)
	if err != nil {
		return fmt.Errorf("the metadata: %w", err)
	}
	root, standard := doc.Root, official.SdIInvoiceMessages
	switch {
	case root.Is(sdiwire.SpaceMessages, sdiwire.RootMetadata):
	case root.Is(sdiwire.SpacePublicMessages, sdiwire.RootPublicMetadata):
		standard = official.SdIMessages
	default:
		return fmt.Errorf("the metadata are {%s}%s", root.Space, root.Local)
	}
	if flaw := standard.Schema().First(root); flaw != nil {
		return fmt.Errorf("the metadata: %w", flaw)
	}
	if said := strings.TrimSpace(root.Value("IdentificativoSdI")); said != id || !numbered(id) {
		return fmt.Errorf("the metadata are of %q, the invoice is %q", fault.Clip(said, 50), fault.Clip(id, 50))
	}
	sum := sha256.Sum256(file)
	if said := strings.TrimSpace(root.Value("Hash")); said != "" && !strings.EqualFold(said, hex.EncodeToString(sum[:])) {
		return fmt.Errorf("the invoice %s is not the one of which the metadata speak", id)
	}
	return nil
}

func numbered(id string) bool {
	n, err := strconv.ParseUint(id, 10, 64)
	return err == nil && n > 0 && len(id) <= sdiwire.IDDigits
}

// addressee is who an invoice is for, by its numbers. A file that cannot be read names
// nobody: it is kept, and a person looks at it.
func addressee(file []byte) (to transaction.Party) {
	document, _, err := opened(file)
	if err != nil {
		return to
	}
	doc, err := incoming.Limits().Read(document)
	if err != nil {
		return to
	}
	buyer := doc.Root.At("FatturaElettronicaHeader", "CessionarioCommittente")
	said := buyer.At("DatiAnagrafici")
	if said == nil {
		said = buyer.At("IdentificativiFiscali") // of a simplified invoice
	}
	if number := said.Value("IdFiscaleIVA", "IdCodice"); number != "" {
		to.TaxNumber = strings.TrimSpace(said.Value("IdFiscaleIVA", "IdPaese")) + strings.TrimSpace(number)
	}
	to.FiscalCode = strings.TrimSpace(said.Value("CodiceFiscale"))
	return to
}

// taken is the answer of RiceviFatture.
func taken() country.CallReply {
	w := xmltree.NewWriter(512)
	w.Declare()
	soap.Message{Version: soap.V11, NoHeader: true, Body: func(w *xmltree.Writer) {
		w.Start("ns2:"+sdiwire.ElementTaken, "xmlns:ns2", sdiwire.SpaceReceiving)
		w.Leaf("Esito", sdiwire.Taken)
		w.End()
	}}.WriteTo(w)
	return country.CallReply{Status: http.StatusOK, Header: http.Header{"Content-Type": {soap.V11.ContentType("")}}, Body: w.Bytes()}
}

// announce says to a simulated SdI that a company receives here. The real one is told by
// the company itself, on the Agenzia's pages (registrazione dell'indirizzo telematico).
func announce(ctx context.Context, in country.Enrolment) []fault.Fault {
	if in.At.Callback == "" {
		return []fault.Fault{fault.At("settings."+country.SettingReceive, fault.AuthorityNotConfigured,
			"needs an address at which SdI reaches this service; contact the operator")}
	}
	if !in.At.Simulated {
		return nil
	}
	body, err := json.Marshal(map[string]string{"callback": in.At.Callback + pathReceived})
	if err != nil {
		return []fault.Fault{fault.At("settings."+country.SettingReceive, fault.AuthorityUnavailable, "cannot be told to SdI")}
	}
	number := "IT" + strings.TrimPrefix(taxid.Bare(in.Supplier.TaxNumber), "IT")
	reply, err := country.Request{Method: http.MethodPut, URL: strings.TrimSuffix(in.At.BaseURL, "/") + sdiwire.PathRecipients + number,
		Header: []string{"Content-Type", "application/json"}, Body: body, BytesMax: answerBytesMax}.Do(ctx, in.At.HTTP)
	if err == nil && reply.Status != http.StatusNoContent {
		err = fmt.Errorf("SdI answered %d", reply.Status)
	}
	if err != nil {
		return []fault.Fault{fault.At("settings."+country.SettingReceive, fault.AuthorityUnavailable, "cannot be told to SdI: %s",
			fault.Clip(cmp.Or(err.Error(), "no answer"), 200))}
	}
	return nil
}
