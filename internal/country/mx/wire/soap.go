package wire

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tributary/internal/country"
	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// Sizes of answers. One has the voucher that was sent, escaped, with its stamp; lists of
// a day, and a voucher that is asked for by its id, have no such measure.
const (
	listedBytesMax = 16 << 20
	answerBytes    = 256 << 10
	answerFactor   = 4 // of what was sent
)

// answerBytesMax is what is read of the answer to so many bytes.
func answerBytesMax(sent int) int64 { return min(answerBytes+answerFactor*int64(sent), listedBytesMax) }

// call is one SOAP call.
type call struct {
	url    string
	space  string
	method string
	action string // empty: the method
	args   []argument
	most   int64 // bytes of the answer; 0: by what is sent
}

// argument is one element of a call, with its text.
type argument struct{ name, value string }

// envelope writes a call. Values are escaped; their names are ours.
func (c call) envelope() []byte {
	w := xmltree.NewWriter(4 << 10)
	w.Declare()
	soap.Message{Version: soap.V11, Spaces: []string{"xmlns:q", c.space}, Body: func(w *xmltree.Writer) {
		w.Start("q:" + c.method)
		for _, a := range c.args {
			w.Leaf("q:"+a.name, a.value)
		}
		w.End()
	}}.WriteTo(w)
	return w.Bytes()
}

// fault in an answer: the call went wrong, and nothing is known of its effect.
var errSOAPFault = errors.New("the provider answered with a SOAP fault")

// ask makes a SOAP call and answers the element named result in its answer.
//
// Failure policy: only an answer of the right form counts. Any other status
// than 200, a page, a SOAP fault, a body cut short: nothing is known.
func (ch *Client) ask(ctx context.Context, c call, result string) (*xmltree.Element, []byte, error) {
	action := cmp.Or(c.action, c.method)
	envelope := c.envelope()
	most := cmp.Or(c.most, answerBytesMax(len(envelope)))
	reply, err := country.Request{URL: c.url,
		Header: []string{"Content-Type", soap.V11.ContentType(action), "SOAPAction", `"` + action + `"`},
		Body:   envelope, BytesMax: most}.Do(ctx, ch.at.HTTP)
	if err != nil {
		return nil, nil, err
	}
	m, err := soap.Read(reply.Body, xmltree.Limits{Bytes: int(most), Depth: satwire.VoucherDepthMax})
	if err != nil {
		return nil, nil, fmt.Errorf("calling %s: status %d without an answer of the protocol: %w", c.method, reply.Status, err)
	}
	if m.Fault != nil {
		return nil, nil, fmt.Errorf("calling %s: %w with status %d: %s %s", c.method, errSOAPFault, reply.Status,
			m.Fault.Code, m.Fault.Reason)
	}
	found := m.Content.At(result)
	if reply.Status != http.StatusOK || found == nil {
		return nil, nil, fmt.Errorf("calling %s: status %d without a %s", c.method, reply.Status, result)
	}
	return found, reply.Body, nil
}

// stampSOAP calls stamp or stamped with a voucher.
func (ch *Client) stampSOAP(ctx context.Context, method string, f country.Filing, c country.Credentials) (Answer, error) {
	result, raw, err := ch.ask(ctx, call{url: ch.base + satwire.PathSOAPStamp, space: satwire.SpaceSOAPStamp,
		method: method, args: []argument{
			{"xml", base64.StdEncoding.EncodeToString(f.Report)}, {"username", c.Username}, {"password", c.Secret},
		}}, method+"Result")
	if err != nil {
		return Answer{}, err
	}
	said := Answer{Document: []byte(result.Value("xml")), Raw: raw}
	if incident := result.At("Incidencias", "Incidencia"); incident != nil {
		said.Code, said.Message = incident.Value("CodigoError"),
			Tidy(incident.Value("MensajeIncidencia")+" "+incident.Value("ExtraInfo"))
	}
	if said.Code == "" && len(said.Document) == 0 {
		return Answer{}, fmt.Errorf("%w: neither a voucher nor a reason", ErrAwkward)
	}
	return said, nil
}

// cancelled is what a provider said of a cancellation, in either protocol.
type cancelled struct {
	status  string // EstatusUUID, or the code of the call when it has none
	state   string // EstatusCancelacion
	message string
	receipt string // SAT's Acuse
	raw     []byte
}

func (ch *Client) cancelSOAP(ctx context.Context, f country.Filing, e Errand, c country.Credentials) (cancelled, error) {
	result, raw, err := ch.ask(ctx, call{url: ch.base + satwire.PathSOAPCancel, space: satwire.SpaceSOAPCancel,
		method: "cancel_signature", args: []argument{
			{"xml", base64.StdEncoding.EncodeToString(f.Report)}, {"username", c.Username}, {"password", c.Secret},
			{"store_pending", "false"},
		}}, "cancel_signatureResult")
	if err != nil {
		return cancelled{}, err
	}
	said := cancelled{receipt: result.Value("Acuse"), raw: raw}
	if folio := result.At("Folios", "Folio"); folio != nil && strings.EqualFold(folio.Value("UUID"), e.UUID) {
		said.status, said.state = folio.Value("EstatusUUID"), folio.Value("EstatusCancelacion")
	}
	if said.status == "" {
		said.status, said.message, _ = strings.Cut(result.Value("CodEstatus"), " ")
	}
	if said.status == "" {
		return cancelled{}, fmt.Errorf("%w: no state of %s", ErrAwkward, e.UUID)
	}
	return said, nil
}

// stateSOAP asks SAT about a voucher through the provider.
func (ch *Client) stateSOAP(ctx context.Context, f country.Filing, e Errand, c country.Credentials) (State, error) {
	result, raw, err := ch.ask(ctx, call{url: ch.base + satwire.PathSOAPCancel, space: satwire.SpaceSOAPCancel,
		method: "get_sat_status", args: []argument{
			{"username", c.Username}, {"password", c.Secret}, {"taxpayer_id", f.Supplier}, {"rtaxpayer_id", e.Receiver},
			{"uuid", e.UUID}, {"total", e.Total},
		}}, "get_sat_statusResult")
	if err != nil {
		return State{}, err
	}
	if text := result.Value("error"); text != "" {
		return State{}, fmt.Errorf("%w: %s", ErrAwkward, text)
	}
	return stateIn(result.At("sat"), raw)
}
