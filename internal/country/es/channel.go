package es

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/aeatwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

const (
	answerBytesMax = 4 << 20  // of 1,000 records, some 900 bytes each
	listBytesMax   = 24 << 20 // an answer to a query has up to 10,000 records
	waitsMax       = 10_000

	// firstWait is AEAT's TiempoEsperaEnvio until an answer says otherwise.
	firstWait = time.Minute

	// lateAfter is when a record counts as late. AEAT lets 240 s pass between a
	// record's own time and its arrival; ten of them are left for the journey.
	lateAfter = 230 * time.Second

	// visibleAfter is when AEAT's "no data" can be believed; its double has no delay.
	visibleAfter = time.Minute

	// duplicatesAsked bounds how many duplicates of one call are looked up in
	// it; of the others the caller asks one by one.
	duplicatesAsked = 25
)

// channel is the wire to AEAT.
type channel struct {
	pack *pack
	at   country.Endpoint

	callers country.Callers

	waits country.Memory[string, time.Duration] // by supplier: what the last answer asked for
}

func (p *pack) connect(at country.Endpoint) (country.Channel, error) {
	if _, err := at.Base(""); err != nil {
		return nil, err
	}
	return &channel{pack: p, at: at, waits: country.Memory[string, time.Duration]{Max: waitsMax}}, nil
}

// Limits: a chain of one writer, up to 1,000 records a call, as much waiting
// as each answer asks for.
func (ch *channel) Limits() country.Limits {
	l := country.Limits{Batch: batchMax, Parallel: 1, Chain: true, Class: country.ByChain, CallTimeout: time.Minute}
	if ch.at.Real() {
		l.VisibleAfter = visibleAfter
	}
	return l
}

// restOf is what is left of the wait that a lost answer asked for. The answer
// is gone, so it is taken to have said what the one before it said.
func (ch *channel) restOf(supplier string, answered time.Time) time.Duration {
	wait, known := ch.waits.Get(supplier)
	if !known {
		wait = firstWait
		if !ch.at.Real() {
			wait = aeatwire.SimulatedWait
		}
	}
	// AEAT's times are whole seconds.
	return max(0, time.Until(answered.Add(time.Second+wait)))
}

// client answers the HTTP client that shows the supplier's certificate.
func (ch *channel) client(c country.Credentials) (*http.Client, error) {
	id, err := ch.pack.keeper.Open(c.Certificate(), time.Now())
	if err != nil {
		return nil, err
	}
	return ch.callers.Client(ch.at, id.TLS()), nil
}

// call makes one SOAP call and answers the element in the body of the answer.
func (ch *channel) call(ctx context.Context, body []byte, bytesMax int64,
	c country.Credentials) (*xmltree.Element, country.Reply, error) {
	client, err := ch.client(c)
	if err != nil {
		return nil, country.Reply{}, err
	}
	reply, err := country.Request{URL: ch.at.BaseURL + aeatwire.ServicePath,
		Header: []string{"Content-Type", soap.V11.ContentType(""), "SOAPAction", `""`},
		Body:   body, BytesMax: bytesMax}.Do(ctx, client)
	if err != nil {
		// A TLS alert from the other side: in TLS 1.3 a certificate is refused
		// after the handshake, when the request has left and was not read.
		var refused *net.OpError
		if errors.As(err, &refused) && refused.Op == "remote error" {
			return nil, reply, fmt.Errorf("calling AEAT: %w: %w", country.ErrCredentials, err)
		}
		return nil, reply, err
	}
	if reply.Status == http.StatusUnauthorized || reply.Status == http.StatusForbidden {
		return nil, reply, fmt.Errorf("calling AEAT: %w: status %d", country.ErrCredentials, reply.Status)
	}
	answer, err := readBody(reply.Body)
	var refused *soapFault
	switch {
	case errors.As(err, &refused):
		return nil, reply, err
	case err != nil:
		return nil, reply, fmt.Errorf("AEAT answered with status %d and no answer of the service: %w", reply.Status, err)
	case reply.Status != http.StatusOK:
		return nil, reply, fmt.Errorf("AEAT answered with status %d", reply.Status)
	}
	return answer, reply, nil
}

// readBody is the only element in the body of an answer; a fault is an error.
func readBody(source []byte) (*xmltree.Element, error) {
	m, err := soap.Read(source, limits())
	switch {
	case err != nil:
		return nil, err
	case m.Fault != nil:
		return nil, readFault(m.Fault)
	case m.Content == nil || m.Version != soap.V11:
		return nil, fmt.Errorf("reading AEAT's answer: %w", soap.ErrEnvelope)
	}
	return m.Content, nil
}

// soapFault is a refused call.
type soapFault struct {
	code string // AEAT's own, "" when the fault has none
	text string
	kind error // ErrNotTaken, ErrCredentials or nil
}

func (f *soapFault) Error() string {
	return "AEAT refused the call: " + f.text
}

func (f *soapFault) Unwrap() error { return f.kind }

// readFault tells refusals apart. AEAT's list of errors (errores.properties)
// has one chapter of codes that refuse a whole call: nothing of it was taken.
// Any other fault, "102 Error interno en el servidor" among them, says nothing
// about what was.
func readFault(said *soap.Fault) error {
	f := &soapFault{text: said.Reason}
	if _, rest, ok := strings.Cut(f.text, "Codigo["); ok {
		f.code, _, _ = strings.Cut(rest, "]")
	}
	switch {
	case f.code == "4104", f.code == "4107", f.code == "4112", f.code == "4116", f.code == "4132", f.code == "4140":
		f.kind = country.ErrCredentials // the caller, or whom the call speaks for, is not known or not allowed
	case len(f.code) == 4 && f.code >= "4102" && f.code <= "4141":
		f.kind = country.ErrNotTaken
	}
	return f
}

// ofOneRecord reports whether a fault speaks of the structure of some record:
// one of them keeps the whole call from being read.
func (f *soapFault) ofOneRecord() bool {
	switch f.code {
	case "4102", "4106", "4109", "4119", "4136", "4137":
		return true
	}
	return false
}

// Send files up to 1,000 records of one supplier in one call.
//
// Failure policy: a record whose structure AEAT cannot read makes it refuse the
// whole call. The call is then made again with the first half, until the bad
// record stands alone and is refused by itself; what was left out is "not
// taken" and goes with the next call. So no record can stop a supplier's chain.
func (ch *channel) Send(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	if len(filings) == 0 {
		return nil, nil
	}
	if len(filings) > batchMax {
		return nil, fmt.Errorf("filing %d records: at most %d go in one call", len(filings), batchMax)
	}
	for count := len(filings); ; count = (count + 1) / 2 {
		receipts, err := ch.sendAll(ctx, filings[:count], c)
		var refused *soapFault
		if errors.As(err, &refused) && refused.ofOneRecord() {
			if count > 1 {
				continue
			}
			receipts, err = []country.Receipt{{Outcome: country.Rejected, Faults: rejection(refused.code, refused.text)}}, nil
		}
		if err != nil {
			return nil, err
		}
		for range filings[count:] {
			receipts = append(receipts, country.Receipt{Outcome: country.NotTaken, Wait: receipts[0].Wait})
		}
		return receipts, nil
	}
}

func (ch *channel) sendAll(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	own := make([]enclosure, len(filings))
	records := make([][]byte, len(filings))
	size := 0
	for i, f := range filings {
		if err := f.Carried(&own[i]); err != nil {
			return nil, err
		}
		record, ok := recordOf(f.Report)
		if !ok || f.Supplier != filings[0].Supplier {
			return nil, fmt.Errorf("filing %s: a call carries records of one supplier", f.Number)
		}
		records[i] = record
		size += len(record)
	}
	last := own[len(own)-1]
	h := aeatwire.Header{Name: last.Name, NIF: filings[0].Supplier, Agent: last.Agent, Late: late(own, time.Now())}
	body := envelope(size+2048, func(w *xmltree.Writer) { aeatwire.WriteCall(w, h, records...) })
	answer, reply, err := ch.call(ctx, body, answerBytesMax, c)
	if err != nil {
		return nil, err
	}
	given, err := readAnswer(answer)
	if err != nil {
		return nil, err
	}
	ch.waits.Put(filings[0].Supplier, given.wait)
	receipts, err := given.receipts(filings, own, reply.Body)
	if err != nil {
		return nil, err
	}
	ch.resolveDuplicates(ctx, filings, receipts, c)
	return receipts, nil
}

// late reports whether a call must say that something kept it from being made
// at once (Orden HAC/1177/2024, article 17; RemisionVoluntaria/Incidencia).
func late(own []enclosure, now time.Time) bool {
	for i := range own {
		if own[i].Late || now.Sub(own[i].At) > lateAfter {
			return true
		}
	}
	return false
}

// resolveDuplicates asks AEAT what it holds under the name of a record that it
// has already: only the huella tells ours from another's. Where the question
// has no answer the receipt stays open and the caller asks.
func (ch *channel) resolveDuplicates(ctx context.Context, filings []country.Filing, receipts []country.Receipt,
	c country.Credentials) {
	asked := 0
	for i := range receipts {
		if !receipts[i].Duplicate || asked == duplicatesAsked {
			continue
		}
		asked++
		held, err := ch.Find(ctx, filings[i], c)
		if err != nil || held.Outcome != country.Accepted || held.SHA256 == "" {
			continue
		}
		held.Duplicate, held.Wait, held.Raw = true, receipts[i].Wait, receipts[i].Raw
		if held.SHA256 == filings[i].SHA256 {
			held.Faults = append(held.Faults, idLost())
		}
		receipts[i] = held
	}
}

// Poll has nothing to ask: AEAT decides at once.
func (ch *channel) Poll(_ context.Context, f country.Filing, _ country.Receipt,
	_ country.Credentials) (country.Receipt, error) {
	return country.Receipt{}, fmt.Errorf("polling %s: the authority decides at once", f.Number)
}
