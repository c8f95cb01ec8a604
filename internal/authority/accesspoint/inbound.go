package accesspoint

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/xmltree"
)

// What is sent to a participant that receives at a backend of ours is handed on to it, as
// phoss-ap does (http_post_sync), until it says that it has it.
const (
	handAgain = 250 * time.Millisecond

	// inboundToken is what the double shows to a backend.
	inboundToken = "simulated"
)

// handing is a document on its way to a backend.
type handing struct {
	N        int64  `json:"n"`
	To       string `json:"to"` // a participant
	Instance string `json:"instance"`
	Body     []byte `json:"body"` // in its envelope
}

func recipientKey(participant string) string { return "recipient/" + strings.ToLower(participant) }

func handingKey(n int64) string { return "handing/" + strconv.FormatInt(n, 10) }

// setRecipient serves PUT /recipients/{participant}: what is sent to it is handed on to an
// address.
func (a *accessPoint) setRecipient(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Callback string `json:"callback"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, controlBytesMax)).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.put(w, map[string]string{recipientKey(r.PathValue("participant")): in.Callback})
}

// hand keeps a document that was sent for its receiver's backend, with the book open; nil:
// it has none.
func hand(b *authority.Book, k kept, body []byte) *handing {
	to := value(k.Receiver)
	if at, _ := b.Get(recipientKey(to)); at == "" || k.Status != stateSent {
		return nil
	}
	var n int64
	b.Load("count/handings", &n) // zero before the first
	b.Keep("count/handings", n+1)
	h := &handing{N: n + 1, To: to, Instance: k.Instance, Body: k.enveloped(body, time.Now().UTC())}
	b.Keep(handingKey(h.N), h)
	return h
}

// resume goes on with what was not handed on when the double was stopped.
func (a *accessPoint) resume() {
	var open []*handing
	a.desk.Read(func(b *authority.Book) {
		var count int64
		b.Load("count/handings", &count)
		for n := int64(1); n <= count; n++ {
			h := &handing{}
			if b.Load(handingKey(n), h) {
				open = append(open, h)
			}
		}
	})
	for _, h := range open {
		a.deliver(nil, h)
	}
}

// deliver hands a document on until the backend has it, where the book has it.
func (a *accessPoint) deliver(broken error, h *handing) {
	if broken != nil || h == nil {
		return
	}
	a.desk.Go(func(ctx context.Context) {
		for {
			var to string
			a.desk.Read(func(b *authority.Book) { to, _ = b.Get(recipientKey(h.To)) })
			if status, country, err := handOn(ctx, handedTo{to, inboundToken, h.Instance}, h.Body); err == nil &&
				status == http.StatusOK && countryForm.MatchString(country) {
				break
			}
			if !authority.Pause(ctx, handAgain) {
				return
			}
		}
		_ = a.desk.Write(func(b *authority.Book) { b.Put(handingKey(h.N), "") }) // a broken book says so to the next caller
	})
}

// enveloped is a document as the network carries it.
func (k kept) enveloped(body []byte, at time.Time) []byte {
	named := documentForm.FindStringSubmatch(k.Document)
	return heading{Sender: value(k.Sender), Receiver: value(k.Receiver), Standard: named[1], Version: named[4], Instance: k.Instance,
		Type: named[2], Document: strings.TrimPrefix(k.Document, schemeDocument+"::"),
		Process: strings.TrimPrefix(k.Process, schemeProcess+"::"), At: at}.around(func(w *xmltree.Writer) {
		text := string(body)
		if at := strings.Index(text, "?>"); strings.HasPrefix(text, "<?xml") && at > 0 {
			text = text[at+2:]
		}
		w.Raw([]byte(strings.TrimSpace(text)))
	})
}

// heading is what an envelope says of the document inside.
type heading struct {
	Sender, Receiver, Standard, Version, Instance, Type, Document, Process string
	At                                                                     time.Time
}

// around is an envelope with a document inside.
func (h heading) around(document func(*xmltree.Writer)) []byte {
	w := xmltree.NewWriter(4096)
	w.Declare()
	w.Start("StandardBusinessDocument", "xmlns", spaceSBDH)
	w.Start("StandardBusinessDocumentHeader")
	w.Leaf("HeaderVersion", "1.0")
	for _, side := range [][2]string{{"Sender", h.Sender}, {"Receiver", h.Receiver}} {
		w.Start(side[0])
		w.Leaf("Identifier", side[1], "Authority", schemeParticipant)
		w.End()
	}
	w.Start("DocumentIdentification")
	w.Leaf("Standard", h.Standard)
	w.Leaf("TypeVersion", h.Version)
	w.Leaf("InstanceIdentifier", h.Instance)
	w.Leaf("Type", h.Type)
	w.Leaf("CreationDateAndTime", h.At.Format(time.RFC3339))
	w.End()
	w.Start("BusinessScope")
	for _, scope := range [][3]string{{"DOCUMENTID", h.Document, schemeDocument}, {"PROCESSID", h.Process, schemeProcess}} {
		w.Start("Scope")
		w.Leaf("Type", scope[0])
		w.Leaf("InstanceIdentifier", scope[1])
		w.Leaf("Identifier", scope[2])
		w.End()
	}
	w.End()
	w.End()
	document(w)
	w.End()
	return w.Bytes()
}
