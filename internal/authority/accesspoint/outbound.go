package accesspoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official"
	"tributary/internal/xmltree"
)

const (
	schemeParticipant = "iso6523-actorid-upis"
	schemeDocument    = "busdox-docid-qns"
	schemeProcess     = "cenbii-procid-ubl"

	pathEnvelopes = "/sbd"

	failedToSubmit = "Failed to submit outbound transaction"
)

// The states of a transaction (EOutboundStatus).
const (
	stateSent   = "sent"
	stateFailed = "failed" // it is tried again
	stateLost   = "permanently_failed"
)

// transaction is what the access point keeps of a document (OutboundTransactionResponse).
type transaction struct {
	ID        string `json:"id"`
	Type      string `json:"transactionType"`
	Sender    string `json:"senderID"`
	Receiver  string `json:"receiverID"`
	Document  string `json:"docTypeID"`
	Process   string `json:"processID"`
	Instance  string `json:"sbdhInstanceID"`
	Status    string `json:"status"`
	Attempts  int    `json:"attemptCount"`
	Created   string `json:"createdDT"`
	Completed string `json:"completedDT,omitempty"`
	Reporting string `json:"reportingStatus"`
	Retry     string `json:"nextRetryDT,omitempty"`
	Error     string `json:"errorDetails,omitempty"`
	MLS       string `json:"mlsStatus,omitempty"`
	Custom1   string `json:"custom1,omitempty"`
}

// kept is a transaction with what the double needs to deliver it later.
type kept struct {
	transaction
	Number string        `json:"number"`
	Code   string        `json:"code,omitempty"` // type of the document, UNCL1001
	SHA256 string        `json:"sha256"`
	After  time.Duration `json:"after,omitempty"` // when it may be decided
	Since  time.Time     `json:"since"`
	Body   []byte        `json:"body,omitempty"` // of one that is tried again, for a backend of ours
}

// report is the answer to a submission (Phase4PeppolSendingReport).
type report struct {
	Now        string `json:"currentDateTimeUTC"`
	Instance   string `json:"sbdhInstanceIdentifier"`
	Sender     string `json:"senderId"`
	Receiver   string `json:"receiverId"`
	Document   string `json:"docTypeId"`
	Process    string `json:"processId"`
	Country    string `json:"countryC1"`
	Message    string `json:"as4MessageId,omitempty"`
	Lookup     string `json:"lookupError,omitempty"`
	Result     string `json:"sendingResult,omitempty"`
	Sending    bool   `json:"sendingSuccess"`
	Overall    bool   `json:"overallSuccess"`
	Duration   int    `json:"overallDurationMillis"`
	Validation bool   `json:"c3CertCheckResult,omitempty"`
}

var (
	participantForm = regexp.MustCompile(`^` + schemeParticipant + `::([0-9]{4}):([A-Za-z0-9._~/+:-]{1,50})$`)
	documentForm    = regexp.MustCompile(`^` + schemeDocument + `::(.+)::([A-Za-z]+)##(.+)::([0-9A-Z.]+)$`)
	processForm     = regexp.MustCompile(`^` + schemeProcess + `::(\S+)$`)
	countryForm     = regexp.MustCompile(`^[A-Z]{2}$`)
)

// submit serves POST /api/outbound/submit/….
func (a *accessPoint) submit(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Token") == "" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	k := kept{transaction: transaction{Type: "business_document", Sender: r.PathValue("sender"),
		Receiver: r.PathValue("receiver"), Document: r.PathValue("document"),
		Process: r.PathValue("process"), Instance: r.URL.Query().Get("sbdhInstanceID"),
		Custom1: r.URL.Query().Get("custom1"), Reporting: "pending", MLS: "pending"}}
	for what, ok := range map[string]bool{
		"sending participant ID '" + k.Sender + "'":         participantForm.MatchString(k.Sender),
		"receiving participant ID '" + k.Receiver + "'":     participantForm.MatchString(k.Receiver),
		"document type ID '" + k.Document + "'":             documentForm.MatchString(k.Document),
		"process ID '" + k.Process + "'":                    processForm.MatchString(k.Process),
		"country code '" + r.PathValue("country") + "'":     countryForm.MatchString(r.PathValue("country")),
		"SBDH instance identifier '" + k.Instance + "'":     len(k.Instance) == 36,
		"'custom1' field, which exceeds the maximum length": len(k.Custom1) <= customMax,
	} {
		if !ok {
			words(w, http.StatusBadRequest, "Failed to parse the %s", what)
			return
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, documentBytesMax))
	if err != nil {
		words(w, http.StatusUnprocessableEntity, failedToSubmit)
		return
	}
	if k.Number, k.Code, err = examine(body, k.transaction); err != nil {
		words(w, http.StatusUnprocessableEntity, "%s: %s", failedToSubmit, err)
		return
	}
	a.file(w, r, k, body)
}

// examine reads a document as the access point's validation would, and holds it
// against what the call says of it.
func examine(body []byte, t transaction) (number, code string, err error) {
	doc, err := xmltree.Read(body)
	if err != nil {
		return "", "", err
	}
	root := doc.Root
	named := documentForm.FindStringSubmatch(t.Document)
	if !root.Is(named[1], named[2]) {
		return "", "", fmt.Errorf("the document is a {%s}%s", root.Space, root.Local)
	}
	if root.Local == "ApplicationResponse" {
		return examineResponse(root, t)
	}
	standard := official.UBL
	if root.Local == "CrossIndustryInvoice" {
		standard = official.CII
	}
	if flaw := standard.Schema().First(root); flaw != nil {
		return "", "", flaw
	}
	if standard == official.CII {
		head := root.At("ExchangedDocumentContext")
		if head.Value("GuidelineSpecifiedDocumentContextParameter", "ID") != named[3] {
			return "", "", fmt.Errorf("the document is not of the type %s", named[3])
		}
		return root.Value("ExchangedDocument", "ID"), root.Value("ExchangedDocument", "TypeCode"), nil
	}
	if root.Value("CustomizationID") != named[3] || schemeProcess+"::"+root.Value("ProfileID") != t.Process {
		return "", "", fmt.Errorf("the document is not of the type %s and the process %s", named[3], t.Process)
	}
	seller, buyer := endpoint(root, "AccountingSupplierParty"), endpoint(root, "AccountingCustomerParty")
	if !strings.EqualFold(schemeParticipant+"::"+seller, t.Sender) {
		return "", "", fmt.Errorf("the seller is %s, the sender %s", seller, t.Sender)
	}
	if !strings.EqualFold(schemeParticipant+"::"+buyer, t.Receiver) && !sameBelgian(buyer, t.Receiver) {
		return "", "", fmt.Errorf("the buyer is %s, the receiver %s", buyer, t.Receiver)
	}
	return root.Value("ID"), root.Value("InvoiceTypeCode") + root.Value("CreditNoteTypeCode"), nil // it has one of them
}

func endpoint(root *xmltree.Element, party string) string {
	e := root.At(party, "Party", "EndpointID")
	if e == nil {
		return ""
	}
	return e.Attr("schemeID") + ":" + strings.TrimSpace(e.Text)
}

// sameBelgian: an enterprise's VAT number is its number behind the letters BE.
func sameBelgian(buyer, receiver string) bool {
	number, ok := strings.CutPrefix(buyer, "0208:")
	return ok && strings.EqualFold(receiver, schemeParticipant+"::9925:be"+number)
}

// file decides about a document by the script, keeps it and delivers it.
func (a *accessPoint) file(w http.ResponseWriter, r *http.Request, k kept, body []byte) {
	sum := sha256.Sum256(body)
	k.SHA256 = hex.EncodeToString(sum[:])
	k.ID, k.Created, k.Since, k.Attempts = "tx-"+k.Instance, stamp(time.Now()), time.Now(), 1
	turn := a.desk.Turn(authority.Arrival{Supplier: value(k.Sender), Number: k.Number})
	var busy func(http.ResponseWriter)
	if r.URL.Path == pathEnvelopes {
		busy = later
	}
	if !turn.Begin(w, busy) {
		return
	}
	step := turn.Steps[0]
	out := report{Now: stamp(time.Now()), Instance: k.Instance, Sender: k.Sender, Receiver: k.Receiver,
		Document: k.Document, Process: k.Process, Country: r.PathValue("country")}
	to := a.habitsOf(value(k.Receiver))
	switch {
	case step.Outcome == authority.Reject:
		words(w, http.StatusUnprocessableEntity, failedToSubmit)
		return
	case to.Unregistered || !to.takes(k.Document):
		k.Status, k.Error, out.Lookup = stateFailed, "the receiver is not registered for the document type", "not registered"
	case step.Outcome == authority.Suspend && r.URL.Path != pathEnvelopes: // there nobody could ask how it ended
		k.Status, k.Error, k.After, out.Result = stateFailed, "HTTP 503 from C3", step.Delay, "TRANSPORT_ERROR"
	default:
		k.Status, k.Completed = stateSent, stamp(time.Now())
		out.Message, out.Result, out.Sending, out.Overall = messageID(k.Instance), "SUCCESS", true, true
	}
	duplicate := step.Outcome == authority.Duplicate
	if duplicate && step.Of != authority.OfOurs {
		other := sha256.Sum256(append(sum[:], 'x'))
		k.SHA256 = hex.EncodeToString(other[:])
		k.Custom1 = k.SHA256
	}
	var handed *handing
	err := a.desk.Write(func(b *authority.Book) {
		if k.Status == stateFailed {
			k.Body = body
		}
		enter(b, k)
		handed = hand(b, k, body)
	})
	a.deliver(err, handed)
	switch {
	case err != nil || duplicate:
		// It holds a document under this identifier, and the call says nothing of it.
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
	case !turn.End(w, r):
	case out.Overall:
		answer(w, http.StatusOK, out)
	default:
		answer(w, http.StatusUnprocessableEntity, out)
	}
}

// enter keeps a document, and delivers it where nothing hinders. The status of an
// identifier is that of its first document: there is no rule against a second.
func enter(b *authority.Book, k kept) {
	if _, twice := b.Get("tx/" + k.Instance); !twice {
		b.Keep("tx/"+k.Instance, k)
	}
	if k.Status == stateSent {
		b.Register(authority.Registration{Supplier: value(k.Sender), Number: k.Number, SHA256: k.SHA256,
			AuthorityID: k.Instance, Key: k.Instance})
	}
}

// status serves GET /api/outbound/status/{instance}.
func (a *accessPoint) status(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Token") == "" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, nil) {
		return
	}
	var k kept
	var handed *handing
	found := false
	err := a.desk.Write(func(b *authority.Book) {
		found = b.Load("tx/"+r.PathValue("instance"), &k)
		if found && k.Status == stateFailed && time.Since(k.Since) >= k.After {
			k = a.again(b, k)
			handed = hand(b, k, k.Body)
		}
	})
	a.deliver(err, handed)
	switch {
	case err != nil:
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
	case !turn.End(w, r):
	case !found || r.URL.Query().Get("includeArchive") != "true" && k.Status == stateSent:
		w.WriteHeader(http.StatusNotFound) // what was sent is archived at once
	default:
		if strings.HasSuffix(k.Number, "-REFUSED") && k.Status == stateSent {
			k.MLS = "received_re"
		}
		answer(w, http.StatusOK, k.transaction)
	}
}

// again is a further try of the access point's own.
func (a *accessPoint) again(b *authority.Book, k kept) kept {
	to := habits{}
	b.Load("who/"+strings.ToLower(value(k.Receiver)), &to)
	step := authority.Step{Outcome: authority.Reject}
	if !to.Unregistered && to.takes(k.Document) {
		step = a.desk.Decide()
	}
	k.Attempts++
	switch step.Outcome {
	case authority.Suspend:
		k.Since, k.After = time.Now(), step.Delay
	case authority.Reject:
		k.Status = stateLost
	default:
		k.Status, k.Completed, k.Error = stateSent, stamp(time.Now()), ""
	}
	b.Put("tx/"+k.Instance, "")
	enter(b, k)
	return k
}

// setMLS lets the receiver's access point speak, for tests.
func (a *accessPoint) setMLS(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Status string `json:"status"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, controlBytesMax)).Decode(&in); err != nil ||
		!strings.HasPrefix(in.Status, "received_") {
		http.Error(w, "a status begins with received_", http.StatusBadRequest)
		return
	}
	var k kept
	found := false
	a.desk.Read(func(b *authority.Book) { found = b.Load("tx/"+r.PathValue("instance"), &k) })
	if !found {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	k.MLS = in.Status
	a.put(w, map[string]string{"tx/" + k.Instance: authority.Note(k)})
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// value is an identifier without the name of its scheme.
func value(id string) string {
	_, text, _ := strings.Cut(id, "::")
	return strings.ToLower(text)
}

func messageID(instance string) string {
	sum := sha256.Sum256([]byte(instance))
	return hex.EncodeToString(sum[:16]) + "@phase4"
}

// later is an access point's own word that it took nothing: a proxy's 503 has no Retry-After.
func later(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "later", http.StatusServiceUnavailable)
}
