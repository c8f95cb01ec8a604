package peppol

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/xmltree"
)

// Where the access point hands on what others send, below our address, and what answers
// of buyers are (Peppol BIS Invoice Response 3.1).
const (
	pathInbound     = "/inbound"
	spaceResponse   = "urn:oasis:names:specification:ubl:schema:xsd:ApplicationResponse-2"
	invoiceResponse = "urn:fdc:peppol.eu:poacc:trns:invoice_response:3"

	secretInbound   = "inbound_token"
	simulatedToken  = "simulated" // of the double, on this machine
	responseMost    = 1 << 20     // bytes of a document
	handleMost      = 300
	invoiceClass    = "invoice"
	creditNoteClass = "credit"
)

// standing is what a code of UNCL4343 means of an invoice.
type standing struct {
	name, words string
	severity    country.Severity
}

var standings = map[string]standing{
	"AB": {"Received", "the buyer has received the invoice", country.Info},
	"IP": {"In process", "the buyer is processing the invoice", country.Info},
	"UQ": {"Under query", "the buyer has questions and does not go on until they are answered", country.Caution},
	"CA": {"Conditionally accepted", "the buyer accepts the invoice under conditions", country.Caution},
	"RE": {"Rejected", "the buyer does not accept the invoice", country.Problem},
	"AP": {"Accepted", "the buyer has accepted the invoice", country.Info},
	"PD": {"Paid", "the buyer has paid the invoice", country.Info},
}

// clarifications are the codes of OPStatusReason and OPStatusAction in words.
var clarifications = map[string]string{
	"REF": "references are wrong", "LEG": "legal information is wrong", "REC": "the receiver is unknown",
	"QUA": "the quality is insufficient", "DEL": "the delivery is not as agreed", "PRI": "prices are wrong",
	"QTY": "quantities are wrong", "ITM": "items are wrong", "PAY": "payment terms are wrong",
	"UNR": "the purchase is not recognised", "FIN": "amounts are wrong", "PPD": "it is paid in part",
	"PIN": "the buyer wants information", "NIN": "the buyer wants a new invoice",
	"CNF": "the buyer wants a credit note for all of it", "CNP": "the buyer wants a credit note for a part",
	"CNA": "the buyer wants a credit note for the amount",
}

// responseHandle is the name under which a buyer speaks of an invoice: whose it
// is, the buyer itself, and the number. Nobody else's word about it counts.
func responseHandle(seller, buyer participant, class, number string) string {
	return strings.Join([]string{"imr", known(seller), known(buyer), class, number}, "|")
}

// known is a participant as both of its Belgian names have it.
func known(p participant) string {
	value := p.value()
	if number, ok := strings.CutPrefix(value, "9925:be"); ok {
		return "0208:" + number
	}
	return value
}

// readInbound understands what the access point hands on, in its envelope or alone: an
// Invoice Response, or a document that somebody sends. The answer is what phoss-ap wants
// of a backend: the country of the receiver.
func readInbound(code string) func(country.Endpoint, country.Call) ([]country.Message, country.CallReply, error) {
	return func(at country.Endpoint, c country.Call) ([]country.Message, country.CallReply, error) {
		if c.Path != pathInbound {
			return nil, country.CallReply{}, fault.New(fault.NotFound, "access points call %s only", pathInbound)
		}
		if c.Method != http.MethodPost {
			return nil, country.CallReply{Status: http.StatusMethodNotAllowed, Header: http.Header{"Allow": {http.MethodPost}}}, nil
		}
		if err := fromAccessPoint(at, c.Header); err != nil {
			return nil, country.CallReply{}, err
		}
		m, err := inbound(c)
		if err != nil {
			return nil, country.CallReply{}, fault.New(fault.Invalid, "this is no Invoice Response, invoice or credit note: %s", err)
		}
		body, _ := json.Marshal(map[string]string{"countryCodeC4": code}) // plain texts always encode
		return []country.Message{m}, country.CallReply{Status: http.StatusOK,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
	}
}

// fromAccessPoint refuses who does not show the token that the operator has set.
func fromAccessPoint(at country.Endpoint, h http.Header) error {
	want := at.Identity.Secrets[secretInbound]
	if want == "" && at.Simulated {
		want = simulatedToken
	}
	shown := h.Get(headerToken)
	if bearer, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok && shown == "" {
		shown = bearer
	}
	switch {
	case shown == "":
		return fault.New(fault.Unauthenticated, "the access point shows the token %s", secretInbound)
	case want == "" || subtle.ConstantTimeCompare([]byte(shown), []byte(want)) != 1:
		return fault.New(fault.Forbidden, "the token is not the one that is set as %s", secretInbound)
	}
	return nil
}

// response reads one Invoice Response.
func response(body []byte, root *xmltree.Element, now time.Time) (country.Message, error) {
	if len(body) > responseMost {
		return country.Message{}, fmt.Errorf("%w: more than %d bytes", xmltree.ErrLimit, responseMost)
	}
	sender := ""
	if root.Is(spaceSBDH, "StandardBusinessDocument") {
		sender = strings.ToLower(root.Value("StandardBusinessDocumentHeader", "Sender", "Identifier"))
		root = root.Find(spaceResponse, "ApplicationResponse")
	}
	if !root.Is(spaceResponse, "ApplicationResponse") || !strings.HasPrefix(root.Value("CustomizationID"), invoiceResponse) {
		return country.Message{}, fmt.Errorf("it is not of the type %s", invoiceResponse)
	}
	said := root.All("DocumentResponse")
	buyer, seller := endpointOf(root.At("SenderParty")), endpointOf(root.At("ReceiverParty"))
	id := root.Value("ID")
	switch {
	case len(said) != 1 || id == "" || seller.ID == "" || buyer.ID == "":
		return country.Message{}, fmt.Errorf("it needs an ID, both parties and one DocumentResponse")
	case sender != "" && sender != buyer.value():
		return country.Message{}, fmt.Errorf("its sender is %s, that of the envelope %s", buyer.value(), clipped(sender))
	}
	about, number := said[0].At("DocumentReference"), said[0].Value("DocumentReference", "ID")
	news, err := newsOf(root, said[0].At("Response"), now)
	if err != nil || number == "" {
		return country.Message{}, fmt.Errorf("it names an invoice and says one of the standings of an invoice: %w", err)
	}
	sum := sha256.Sum256([]byte(buyer.value() + "\n" + seller.value() + "\n" + id))
	news.Key = "imr/" + hex.EncodeToString(sum[:])
	handle := responseHandle(seller, buyer, classOf(about.Value("DocumentTypeCode")), number)
	return country.Message{Key: news.Key, Handle: strings.ToValidUTF8(handle[:min(len(handle), handleMost)], ""),
		Receipt: country.Receipt{News: []country.News{news}}, Raw: body}, nil
}

func endpointOf(party *xmltree.Element) participant {
	e := party.At("EndpointID")
	if e == nil {
		return participant{}
	}
	return participant{e.Attr("schemeID"), strings.TrimSpace(e.Text)}
}

// classOf: a credit note may have the number of an invoice.
func classOf(code string) string {
	if slices.Contains([]string{"81", "83", "261", "308", "381", "396", "420", "458", "532"}, code) {
		return creditNoteClass
	}
	return invoiceClass
}

// newsOf is a response as an entry of the life cycle: what it says, why, and what
// the buyer wants, in words.
func newsOf(root, said *xmltree.Element, now time.Time) (country.News, error) {
	code := said.Value("ResponseCode")
	s, ok := standings[code]
	if !ok {
		return country.News{}, fmt.Errorf("%q is none", clipped(code))
	}
	words := []string{s.words}
	for _, status := range said.All("Status") {
		text := clarifications[status.Value("StatusReasonCode")]
		if own := status.Value("StatusReason"); own != "" && text != "" {
			text += " (" + own + ")"
		} else if own != "" {
			text = own
		}
		if text != "" {
			words = append(words, text)
		}
	}
	return country.News{At: issued(root, now), Code: "IMR_" + code, Name: s.name, Source: country.FromBuyer,
		Severity: s.severity, Message: clipped(strings.Join(words, "; "))}, nil
}

// issued is when the buyer spoke; a response need not say the hour.
func issued(root *xmltree.Element, now time.Time) time.Time {
	day, hour := root.Value("IssueDate"), root.Value("IssueTime")
	for _, form := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(form, day+"T"+hour); err == nil && !at.After(now) {
			return at
		}
	}
	return now
}
