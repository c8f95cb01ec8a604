package fr

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/xmltree"
)

const spaceStatus = "urn:un:unece:uncefact:data:standard:CrossDomainAcknowledgementAndResponse:100"

// Statuses that decide.
const (
	deposited = "200"
	rejected  = "213"

	reportRefused = "301" // by the administration, of a report
)

// meaning is what a status of an invoice says (external specifications 3.2, § 3.6.4).
type meaning struct {
	name, words string
	source      country.Source
	severity    country.Severity
}

var meanings = map[string]meaning{
	"200": {"Déposée", "the platform has deposited the invoice", country.FromPlatform, country.Info},
	"201": {"Émise par la plateforme", "the platform has sent the invoice to the buyer's", country.FromPlatform, country.Info},
	"202": {"Reçue par la plateforme", "the buyer's platform has received the invoice", country.FromPlatform, country.Info},
	"203": {"Mise à disposition", "the buyer can see the invoice", country.FromPlatform, country.Info},
	"204": {"Prise en charge", "the buyer is processing the invoice", country.FromBuyer, country.Info},
	"205": {"Approuvée", "the buyer has approved the invoice", country.FromBuyer, country.Info},
	"206": {"Approuvée partiellement", "the buyer has approved a part of the invoice", country.FromBuyer, country.Caution},
	"207": {"En litige", "the buyer disputes the invoice", country.FromBuyer, country.Caution},
	"208": {"Suspendue", "the buyer waits for something that is missing", country.FromBuyer, country.Caution},
	"209": {"Complétée", "what was missing was sent", country.FromPlatform, country.Info},
	"210": {"Refusée", "the buyer refuses the invoice: book an internal credit note, and do not send it", country.FromBuyer, country.Problem},
	"211": {"Paiement transmis", "the buyer has ordered the payment", country.FromBuyer, country.Info},
	"212": {"Encaissée", "the payment was received", country.FromPlatform, country.Info},
	"300": {"Déposée", "the administration has the report", country.FromAuthority, country.Info},
	"301": {"Rejetée", "the administration refuses the report", country.FromAuthority, country.Problem},
	"213": {"Rejetée", "a platform rejects the invoice: book an internal credit note, and do not send it", country.FromPlatform, country.Problem},
}

// status is one message of a life cycle (CDAR).
type status struct {
	id     string // of the message
	code   string
	handle string // of the invoice, see alias
	siren  string // of its seller
	at     time.Time
	why    []reason
	text   []byte
}

type reason struct{ code, text string }

// readStatus understands a message. One that is not of an invoice's life is no
// message of ours, and gives nothing.
func readStatus(text []byte) (*status, error) {
	doc, err := xmltree.Limits{Bytes: answerBytesMax}.Read(text)
	if err != nil {
		return nil, fmt.Errorf("reading a status: %w", err)
	}
	if !doc.Root.Is(spaceStatus, "CrossDomainAcknowledgementAndResponse") {
		return nil, fmt.Errorf("reading a status: its root is {%s}%s", doc.Root.Space, doc.Root.Local)
	}
	about := doc.Root.At("AcknowledgementDocument", "ReferenceReferencedDocument")
	s := &status{id: doc.Root.Value("ExchangedDocument", "ID"), code: about.Value("ProcessConditionCode"),
		siren: about.Value("IssuerTradeParty", "GlobalID"), text: text}
	s.handle = alias(s.siren, about.Value("TypeCode"), about.Value("IssuerAssignedID"), about.Value("FormattedIssueDateTime", "DateTimeString"))
	if strings.HasPrefix(s.code, "3") { // of a report, not of an invoice
		s.handle = reportAlias(s.siren, about.Value("IssuerAssignedID"))
	}
	s.at, err = time.ParseInLocation("20060102150405", doc.Root.Value("AcknowledgementDocument", "IssueDateTime", "DateTimeString"), paris())
	if s.id == "" || s.siren == "" || about.Value("IssuerAssignedID") == "" || err != nil {
		return nil, nil
	}
	for _, why := range about.All("SpecifiedDocumentStatus") {
		s.why = append(s.why, reason{why.Value("ReasonCode"), strings.TrimSpace(why.Value("Reason"))})
	}
	return s, nil
}

// said is why, in the platform's words.
func (s *status) said() string {
	var list []string
	for _, r := range s.why {
		list = append(list, strings.TrimSuffix(r.code+": "+r.text, ": "))
	}
	return strings.Join(list, "; ")
}

// news is the entry of the life cycle; nil: it is the outcome itself, or is not known.
func (s *status) news() []country.News {
	m, known := meanings[s.code]
	if !known || s.code == deposited {
		return nil
	}
	words := m.words
	if why := s.said(); why != "" {
		words += "; " + why
	}
	return []country.News{{Key: "cdv/" + s.id, At: s.at, Code: s.code, Name: m.name, Source: m.source, Severity: m.severity, Message: words,
		Refuses: s.code == reportRefused}}
}

// receipt is what a status decides, beside what it tells.
func (s *status) receipt() country.Receipt {
	r := country.Receipt{At: s.at, News: s.news(), Raw: s.text}
	switch s.code {
	case deposited:
		r.Outcome, r.Document, r.Format = country.Accepted, s.text, "XML"
	case rejected:
		r.Outcome, r.Document, r.Format = country.Rejected, s.text, "XML"
		r.Faults = s.faults()
	}
	return r
}

// duplicate reports whether another document has the number: SIREN, number and
// year are one invoice (G1.42).
func (s *status) duplicate() bool {
	return slices.ContainsFunc(s.why, func(r reason) bool { return r.code == "DOUBLON" || r.code == "REJ_UNI" })
}

// faults of an invoice that was rejected before it was deposited. A number that
// is used is told as such.
func (s *status) faults() (list []fault.Fault) {
	for _, why := range s.why {
		f := fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: why.code + ": " + why.text}
		if s.duplicate() {
			f.Code, f.Field = fault.AuthorityNumberUsed, "transaction_number"
		}
		list = append(list, f)
	}
	if list == nil {
		list = []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: "213: the platform rejects the invoice and does not say why"}}
	}
	return list
}
