package accesspoint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/xmltree"
)

const (
	spaceResponse   = "urn:oasis:names:specification:ubl:schema:xsd:ApplicationResponse-2"
	spaceBasic      = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"
	spaceAggregate  = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
	responseType    = "urn:fdc:peppol.eu:poacc:trns:invoice_response:3"
	responseProcess = "urn:fdc:peppol.eu:poacc:bis:invoice_response:3"

	callTimeout = 30 * time.Second
)

// response is what a buyer answers to an invoice (Invoice Response, T111).
type response struct {
	ID     string `json:"id"`
	Code   string `json:"code"`             // UNCL4343
	Reason string `json:"reason,omitempty"` // OPStatusReason
	Action string `json:"action,omitempty"` // OPStatusAction
	Text   string `json:"text,omitempty"`
	From   string `json:"from,omitempty"` // a participant; empty: the buyer

	To    string `json:"to"` // where the access point hands on what it received
	Token string `json:"token"`
}

// respond lets the buyer of a delivered invoice answer: the answer reaches the
// seller's access point, which hands it on as phoss-ap does (http_post_sync), in
// its envelope, and wants to hear the country of the receiver.
func (a *accessPoint) respond(w http.ResponseWriter, r *http.Request) {
	var in response
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, controlBytesMax)).Decode(&in); err != nil || in.ID == "" || in.To == "" {
		http.Error(w, "an answer has an id, a code and an address", http.StatusBadRequest)
		return
	}
	var k kept
	found := false
	a.desk.Read(func(b *authority.Book) { found = b.Load("tx/"+r.PathValue("instance"), &k) })
	if !found || k.Status != stateSent {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	status, country, err := handOn(r.Context(), handedTo{in.To, in.Token, "imr-" + in.ID}, in.enveloped(k, time.Now().UTC()))
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	case status != http.StatusOK:
		http.Error(w, fmt.Sprintf("the backend answered %d", status), status)
	case !countryForm.MatchString(country):
		http.Error(w, "the backend does not say countryCodeC4", http.StatusBadGateway)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// enveloped is the answer as the network carries it.
func (in response) enveloped(k kept, at time.Time) []byte {
	buyer, seller := value(k.Receiver), value(k.Sender)
	if in.From != "" {
		buyer = in.From
	}
	return heading{Sender: buyer, Receiver: seller, Standard: spaceResponse, Version: "2.1", Instance: "imr-" + in.ID,
		Type: "ApplicationResponse", Document: spaceResponse + "::ApplicationResponse##" + responseType + "::2.1",
		Process: responseProcess, At: at}.around(func(w *xmltree.Writer) { in.write(w, [2]string{buyer, seller}, k, at) })
}

// write is the document inside.
func (in response) write(w *xmltree.Writer, sides [2]string, k kept, at time.Time) {
	party := func(name, who string) {
		scheme, id, _ := strings.Cut(who, ":")
		w.Start("cac:" + name)
		w.Leaf("cbc:EndpointID", id, "schemeID", scheme)
		w.Start("cac:PartyLegalEntity")
		w.Leaf("cbc:RegistrationName", "Somebody")
		w.End()
		w.End()
	}
	w.Start("ApplicationResponse", "xmlns", spaceResponse, "xmlns:cac", spaceAggregate, "xmlns:cbc", spaceBasic)
	w.Leaf("cbc:CustomizationID", responseType)
	w.Leaf("cbc:ProfileID", responseProcess)
	w.Leaf("cbc:ID", in.ID)
	w.Leaf("cbc:IssueDate", at.Format(time.DateOnly))
	w.Leaf("cbc:IssueTime", at.Format("15:04:05"))
	party("SenderParty", sides[0])
	party("ReceiverParty", sides[1])
	w.Start("cac:DocumentResponse")
	w.Start("cac:Response")
	w.Leaf("cbc:ResponseCode", in.Code, "listID", "UNCL4343OpSubset")
	for _, status := range [][2]string{{"OPStatusReason", in.Reason}, {"OPStatusAction", in.Action}} {
		if status[1] == "" {
			continue
		}
		w.Start("cac:Status")
		w.Leaf("cbc:StatusReasonCode", status[1], "listID", status[0])
		if in.Text != "" && status[0] == "OPStatusReason" {
			w.Leaf("cbc:StatusReason", in.Text)
		}
		w.End()
	}
	w.End()
	w.Start("cac:DocumentReference")
	w.Leaf("cbc:ID", k.Number)
	w.Leaf("cbc:DocumentTypeCode", k.Code)
	w.End()
	w.End()
	w.End()
}

// handedTo is a backend, and what it is handed.
type handedTo struct{ address, token, instance string }

// handOn posts a document to the backend and reads the country that it answers.
func handOn(ctx context.Context, to handedTo, body []byte) (status int, country string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.address, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/xml")
	r.Header.Set("X-SBDH-Instance-ID", to.instance)
	if to.token != "" {
		r.Header.Set("X-Token", to.token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer reply.Body.Close()
	var said struct {
		Country string `json:"countryCodeC4"`
	}
	if reply.StatusCode == http.StatusOK {
		err = json.NewDecoder(http.MaxBytesReader(nil, reply.Body, controlBytesMax)).Decode(&said)
	}
	return reply.StatusCode, said.Country, err
}
