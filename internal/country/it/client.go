package it

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/text"
	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// answerBytesMax is of an id, a time and a code in an envelope.
const answerBytesMax = 128 << 10

// errNoEar: a file whose fate nobody could tell us is not handed over.
var errNoEar = errors.New("SdI tells what it decides by a call: give a node --callbacks, and every other one --callbacks-url")

// hand calls RiceviFile once.
//
// Failure policy: only SdI's own word, or the lack of a connection, says that
// nothing was taken; EI01 to EI03 come with status 200 and say so. Anything else
// that is no answer, a fault among them, may hide a file that was taken.
func (ch *channel) hand(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	if ch.at.Callback == "" {
		return country.Receipt{}, fmt.Errorf("%w: %w: %w", country.ErrNotTaken, country.ErrNoAddress, errNoEar)
	}
	client, err := ch.client(c)
	if err != nil {
		return country.Receipt{}, err
	}
	head := []string{"Content-Type", soap.V11.ContentType(sdiwire.ActionFile), "SOAPAction", `"` + sdiwire.ActionFile + `"`}
	if ch.at.Simulated {
		head = append(head, sdiwire.HeaderCallback, ch.at.Callback+pathMessages)
	}
	reply, err := country.Request{URL: ch.address(sdiwire.Path), Header: head, Body: request(sdiwire.SpaceTypes, sdiwire.ElementFile, "", f), BytesMax: answerBytesMax}.Do(ctx, client)
	if err != nil {
		return country.Receipt{}, err
	}
	receipt, err := answered(f, reply)
	if err == nil && receipt.AuthorityID1 != "" && !ch.given.Put(receipt.AuthorityID1, true) {
		return country.Receipt{}, fmt.Errorf("SdI answers with the id %s, which it gave to another call", receipt.AuthorityID1)
	}
	return receipt, err
}

// client shows the transmitter's certificate. A simulated SdI takes any.
func (ch *channel) client(c country.Credentials) (*http.Client, error) {
	file, err := ch.at.Certificate(c)
	if err != nil && ch.at.Simulated {
		file, err = ch.invented()
	}
	if err != nil {
		return nil, err
	}
	id, err := ch.keeper.Open(file, ch.now())
	if err != nil {
		return nil, country.Unidentified(err)
	}
	return ch.callers.Client(ch.at, id.TLS()), nil
}

// address is that of a service, whether or not the operator's ends with that of RiceviFile.
func (ch *channel) address(service string) string {
	return strings.TrimSuffix(strings.TrimSuffix(ch.at.BaseURL, "/"), sdiwire.Path) + service
}

// request is a file in its envelope, with the id of an invoice where it is about one. The types' children are unqualified.
func request(space, element, id string, f country.Filing) []byte {
	w := xmltree.NewWriter(1024 + base64.StdEncoding.EncodedLen(len(f.Report)))
	soap.Message{Version: soap.V11, Spaces: []string{"xmlns:t", space}, Body: func(w *xmltree.Writer) {
		w.Start("t:" + element)
		w.Maybe("IdentificativoSdI", id)
		w.Leaf("NomeFile", f.DedupeKey)
		w.Leaf("File", base64.StdEncoding.EncodeToString(f.Report))
		w.End()
	}}.WriteTo(w)
	return w.Bytes()
}

// said is the element of an answer of SdI's, in its envelope.
func said(reply country.Reply, space, element string) (packed sdiwire.Packed, content *xmltree.Element, err error) {
	if reply.Status == http.StatusUnauthorized || reply.Status == http.StatusForbidden {
		return packed, nil, country.Unidentified(fmt.Errorf("SdI does not let us in: status %d", reply.Status))
	}
	packed, err = sdiwire.Open(reply.Header.Get("Content-Type"), reply.Body)
	if err != nil {
		return packed, nil, fmt.Errorf("status %d without SdI's answer: %w", reply.Status, err)
	}
	message, err := soap.Read(packed.Envelope, xmltree.Limits{Bytes: answerBytesMax})
	switch {
	case err != nil:
		return packed, nil, fmt.Errorf("status %d without SdI's answer: %w", reply.Status, err)
	case message.Fault != nil:
		return packed, nil, fmt.Errorf("status %d: %w", reply.Status, message.Fault)
	case reply.Status != http.StatusOK || !message.Content.Is(space, element):
		return packed, nil, fmt.Errorf("status %d with something that is no %s", reply.Status, element)
	}
	return packed, message.Content, nil
}

// answered reads rispostaSdIRiceviFile, plain or in MTOM.
func answered(f country.Filing, reply country.Reply) (country.Receipt, error) {
	_, content, err := said(reply, sdiwire.SpaceTypes, sdiwire.ElementAnswer)
	if err != nil {
		return country.Receipt{}, err
	}
	id, wrong := strings.TrimSpace(content.Value("IdentificativoSdI")), strings.TrimSpace(content.Value("Errore"))
	switch wrong {
	case "":
	case sdiwire.Unavailable:
		return country.Receipt{Raw: reply.Body}.Untaken("%s: SdI is unavailable", wrong), nil
	case sdiwire.NotEnabled:
		return country.Receipt{}, country.Unidentified(fmt.Errorf("SdI answers %s: the transmitter is not enabled", wrong))
	default:
		return country.Receipt{}, fmt.Errorf("%w: SdI answers %s", country.ErrNotTaken, wrong)
	}
	if !text.Digits(id) || len(id) > sdiwire.IDDigits || strings.Trim(id, "0") == "" {
		return country.Receipt{}, fmt.Errorf("SdI took %s under the id %q, which is none", f.DedupeKey, id)
	}
	at, _ := time.Parse(time.RFC3339, strings.TrimSpace(content.Value("DataOraRicezione"))) // absent is zero
	return country.Receipt{Outcome: country.Pending, AuthorityID1: id, AuthorityID2: f.DedupeKey, Handle: f.DedupeKey,
		At: at, Raw: reply.Body}, nil
}
