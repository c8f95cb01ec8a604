package pa

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"tributary/internal/authority"
)

// Acknowledgements of flows.
const (
	ackPending = "Pending"
	ackOk      = "Ok"
	ackError   = "Error"
)

// Types of flows.
const (
	typeInvoice  = "CustomerInvoice"
	typePurchase = "SupplierInvoice" // the same at its buyer
	typeStatus   = "CustomerInvoiceLC"
	typeReport   = "MultiFlowReport"
	typeAnswer   = "SupplierInvoiceLC" // a buyer's status of an invoice that it received

	syntaxStatus = "CDAR"
)

// detail is a reason of an acknowledgement.
type detail struct {
	Level   string `json:"level"`
	Item    string `json:"item"`
	Code    string `json:"reasonCode"`
	Message string `json:"reasonMessage"`
}

type acknowledgement struct {
	Status  string   `json:"status"`
	Details []detail `json:"details,omitempty"`
}

// shown is a flow as the interface shows it.
type shown struct {
	ID        string           `json:"flowId"`
	Submitted time.Time        `json:"submittedAt"`
	Updated   time.Time        `json:"updatedAt,omitzero"`
	Tracking  string           `json:"trackingId,omitempty"`
	Name      string           `json:"name"`
	Syntax    string           `json:"flowSyntax"`
	Profile   string           `json:"flowProfile,omitempty"`
	Rule      string           `json:"processingRule"`
	Type      string           `json:"flowType,omitempty"`
	Direction string           `json:"flowDirection,omitempty"`
	SHA256    string           `json:"sha256,omitempty"`
	Ack       *acknowledgement `json:"acknowledgement,omitempty"`
}

// entry is what the book keeps of a flow.
type entry struct {
	shown
	Org   string    `json:"org"`
	Asked int       `json:"asked,omitempty"`
	Due   time.Time `json:"due,omitzero"`
	Wait  int       `json:"wait,omitempty"` // questions before it is decided
	Of    string    `json:"of,omitempty"`   // the flow that has its file, of another company
}

// submission is a file with what is said of it.
type submission struct {
	info    shown
	file    []byte
	arrived *arrival
	org     string
}

// submit takes a file under a new flow; only the call is judged here.
func (a *double) submit(w http.ResponseWriter, r *http.Request) {
	info, file, ok := form(w, r)
	if !ok {
		return
	}
	arrived := read(file, info.Syntax)
	if a.endings.Obey(arrived.number, "-LIMIT", 1) {
		w.Header().Set("Retry-After", "2")
		refuse(w, http.StatusTooManyRequests, "TOO_MANY_REQUESTS", "too many flows")
		return
	}
	turn := a.desk.Turn(authority.Arrival{Supplier: arrived.seller.siren, Number: arrived.number})
	if !turn.Begin(w, nil) {
		return
	}
	var answer shown
	s := submission{info, file, &arrived, r.Header.Get("Organization-Id")}
	if a.desk.Write(func(b *authority.Book) { answer = a.take(b, s, turn.Steps[0]) }) != nil {
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		return
	}
	if turn.End(w, r) {
		answer.Ack, answer.Updated, answer.Type, answer.Direction = nil, time.Time{}, "", ""
		authority.WriteJSON(w, http.StatusAccepted, answer)
	}
}

// form reads the parts of a submission; false: it was refused.
func form(w http.ResponseWriter, r *http.Request) (info shown, file []byte, ok bool) {
	bad := func(format string, args ...any) (shown, []byte, bool) {
		refuse(w, http.StatusBadRequest, "BAD_REQUEST", fmt.Sprintf(format, args...))
		return info, nil, false
	}
	r.Body = http.MaxBytesReader(w, r.Body, fileBytesMax)
	parts, err := r.MultipartReader()
	if err != nil {
		return bad("the body is no form: %v", err)
	}
	var told []byte
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			refuse(w, http.StatusRequestEntityTooLarge, "FILE_SIZE_EXCEEDED", "at most 100 MB")
			return info, nil, false
		}
		if err != nil {
			return bad("a part cannot be read: %v", err)
		}
		text, err := io.ReadAll(p)
		if err != nil {
			return bad("a part cannot be read: %v", err)
		}
		switch p.FormName() {
		case "flowInfo":
			told = text
		case "file":
			file = text
		}
	}
	if err := json.Unmarshal(told, &info); err != nil || file == nil {
		return bad("the parts flowInfo (application/json) and file are needed")
	}
	switch {
	case !slices.Contains([]string{"CII", "UBL", "FRR", syntaxStatus}, info.Syntax):
		return bad("flowSyntax %q", info.Syntax)
	case info.Name == "" || len(info.Tracking) > 36:
		return bad("name is needed, trackingId has at most 36 characters")
	case !slices.Contains([]string{"B2B", "B2BInt", "B2C", "OutOfScope", "ArchiveOnly", "NotApplicable"}, info.Rule):
		return bad("processingRule %q", info.Rule)
	case info.Profile != "" && !slices.Contains([]string{"Basic", "CIUS", "Extended-CTC-FR"}, info.Profile):
		return bad("flowProfile %q", info.Profile)
	}
	return info, file, true
}

// take keeps a flow, and decides it unless the script or its number says later.
func (a *double) take(b *authority.Book, s submission, step authority.Step) shown {
	if step.Outcome == authority.Duplicate {
		a.plant(b, s, step.Of)
	}
	e, x := entry{shown: s.info, Org: s.org}, s.arrived
	e.Type, e.Direction = x.typeOf(e.Syntax), "Out"
	e.Ack = &acknowledgement{Status: ackPending}
	a.keep(b, &e, s.file)
	switch {
	case step.Outcome == authority.Suspend:
		e.Due, e.Wait = a.now().Add(step.Delay), 1 // instants of flows run ahead of the clock
	case strings.HasSuffix(x.number, "-WORKING"):
		e.Wait = 2
	}
	if e.Wait > 0 {
		b.Keep("flow/"+e.ID, e)
		b.AddWord("pending/"+e.Org, e.ID)
		return e.shown
	}
	a.decide(b, &e, x, step)
	return e.shown
}

// typeOf is what a file of a syntax is.
func (x *arrival) typeOf(syntax string) string {
	switch {
	case syntax == "FRR":
		return typeReport
	case syntax == syntaxStatus && x.standing != "":
		return typeAnswer
	case syntax == syntaxStatus:
		return typeStatus
	}
	return typeInvoice
}

// keep gives a flow its id and its place behind all others of the company.
func (a *double) keep(b *authority.Book, e *entry, file []byte) {
	var n int64
	b.Load("last", &n)
	b.Keep("last", n+1)
	e.ID = fmt.Sprintf("flow-%08d", n+1)
	e.Submitted = a.instant(b)
	e.Updated = e.Submitted
	if e.Of == "" {
		b.Put("data/"+e.ID, base64.StdEncoding.EncodeToString(file))
	}
	b.Keep("flow/"+e.ID, e)
	if e.Tracking != "" {
		b.AddWord("track/"+e.Org+"/"+e.Tracking, e.ID)
	}
	list := e.Org + "/" + e.Type
	var count int
	b.Load("count/"+list, &count)
	b.Keep("count/"+list, count+1)
	b.Put(fmt.Sprintf("list/%s/%d", list, count), e.ID)
}

// instant is now, and later than everything before.
func (a *double) instant(b *authority.Book) time.Time {
	now := a.now().UTC().Truncate(time.Millisecond)
	last, err := time.Parse(time.RFC3339Nano, b.Text("clock"))
	if err == nil && !now.After(last) {
		now = last.Add(time.Millisecond)
	}
	b.Put("clock", now.Format(time.RFC3339Nano))
	return now
}

// plant registers what a script says is there already: ours from a call before, or
// another's under the number.
func (a *double) plant(b *authority.Book, s submission, of string) {
	info, file := s.info, s.file
	if of != authority.OfOurs {
		info.Tracking = "another-" + s.arrived.number
		file = []byte(strings.Replace(string(file), "</", "<!-- another --></", 1))
	}
	sum := sha256.Sum256(file)
	info.SHA256 = hex.EncodeToString(sum[:])
	e := entry{shown: info, Org: s.org}
	other := read(file, info.Syntax)
	e.Type, e.Direction, e.Ack = other.typeOf(e.Syntax), "Out", &acknowledgement{Status: ackPending}
	a.keep(b, &e, file)
	a.decide(b, &e, &other, authority.Step{Outcome: authority.Accept})
}

var laterStatus = regexp.MustCompile(`-(20[1-9]|21[0-3])$`)

// decide acknowledges a flow, and gives an invoice its first status.
func (a *double) decide(b *authority.Book, e *entry, x *arrival, step authority.Step) {
	e.Due, e.Wait, e.Updated = time.Time{}, 0, a.instant(b)
	var reasons []detail
	for _, id := range b.Words("track/" + e.Org + "/" + e.Tracking) {
		var other entry
		if id != e.ID && b.Load("flow/"+id, &other) && other.Ack.Status != ackError {
			reasons = append(reasons, detail{"Error", "trackingId", "AlreadyExistingFlow", "the flow " + id + " has this trackingId"})
		}
	}
	if x.hash != e.SHA256 {
		reasons = append(reasons, detail{"Error", "sha256", "ChecksumMismatch", "the file has another hash"})
	}
	reasons = append(reasons, x.unreadable...)
	if e.Type == typeStatus && len(reasons) == 0 {
		reasons = a.said(b, e, x, step)
	}
	if len(reasons) > 0 {
		e.Ack = &acknowledgement{ackError, reasons}
		b.Keep("flow/"+e.ID, e)
		return
	}
	e.Ack = &acknowledgement{Status: ackOk}
	b.Keep("flow/"+e.ID, e)
	r := authority.Registration{Supplier: x.seller.siren, Number: x.number, SHA256: x.hash, AuthorityID: e.ID, At: e.Submitted}
	switch e.Type {
	case typeReport:
		r.Key = "report/" + x.seller.siren + "/" + x.number
		b.Register(r)
		a.administered(b, e, x, step)
	case typeAnswer:
		a.passOn(b, e, x, step)
	case typeStatus:
		r.Number, r.Key = x.id, "status/"+x.seller.siren+"/"+x.id
		b.Register(r)
	default:
		a.judge(b, e, x, step)
	}
}

// judge deposits an invoice, or rejects it.
func (a *double) judge(b *authority.Book, e *entry, x *arrival, step authority.Step) {
	x.org = e.Org
	flaws := x.flaws(e.Rule)
	key := x.seller.siren + "\x00" + x.number + "\x00" + x.day[:min(4, len(x.day))]
	if _, taken := b.FindKey(key); taken {
		flaws = append(flaws, flaw{"DOUBLON", "Facture déjà déposée sous ce numéro"})
	}
	if step.Outcome == authority.Reject {
		flaws = append(flaws, flaw{"REJ_SEMAN", "rejetée par le scénario de test"})
	}
	if len(flaws) > 0 {
		a.say(b, x, "213", flaws)
		return
	}
	b.Register(authority.Registration{Supplier: x.seller.siren, Number: x.number, SHA256: x.hash, AuthorityID: e.ID, At: e.Submitted, Key: key})
	a.say(b, x, "200", nil)
	a.handOver(b, e, x)
	switch asked := laterStatus.FindStringSubmatch(x.number); {
	case asked != nil:
		a.say(b, x, "203", nil)
		if asked[1] != "203" {
			a.say(b, x, asked[1], reasonsOf(asked[1]))
		}
	case x.buyer.siren == prompt:
		b.AddWord("later/"+e.Org, e.ID+"=203="+stamp(e.Updated.Add(2*time.Second)))
		b.AddWord("later/"+e.Org, e.ID+"=205="+stamp(e.Updated.Add(4*time.Second)))
	}
}

// handOver brings an invoice to its buyer. One that the buyer has issued itself stays.
func (a *double) handOver(b *authority.Book, e *entry, x *arrival) {
	if listed(selfBilled, x.kind) {
		return
	}
	to := entry{Org: x.buyer.siren, Of: e.ID}
	to.Name, to.Syntax, to.Profile, to.Rule, to.SHA256 = e.Name, e.Syntax, e.Profile, e.Rule, e.SHA256
	to.Type, to.Direction, to.Ack = typePurchase, "In", &acknowledgement{Status: ackOk}
	a.keep(b, &to, nil)
}

func stampDay(t time.Time) string { return t.UTC().Format("20060102") }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
