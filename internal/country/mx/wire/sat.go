package wire

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

// SAT's own services, which need no provider: the state of a voucher and the
// repository of certificates. A simulator has both below its own address.
const (
	hostState     = "https://consultaqr.facturaelectronica.sat.gob.mx"
	hostStateTest = "https://pruebacfdiconsultaqr.cloudapp.net"
	hostRecords   = "https://rdc.sat.gob.mx"

	certificateBytesMax = 64 << 10
)

// State is what SAT says of a voucher.
type State struct {
	code       string // CodigoEstatus
	Voucher    string // Estado
	cancelable string // EsCancelable
	cancelling string // EstatusCancelacion
	Raw        []byte
}

func stateIn(n *xmltree.Element, raw []byte) (State, error) {
	s := State{code: n.Value("CodigoEstatus"), Voucher: n.Value("Estado"), cancelable: n.Value("EsCancelable"),
		cancelling: n.Value("EstatusCancelacion"), Raw: raw}
	if s.Voucher == "" {
		return State{}, fmt.Errorf("%w: SAT names no state: %s", ErrAwkward, s.code)
	}
	return s, nil
}

// Receipt is what a state means for a cancellation; false when SAT knows of none.
func (s State) Receipt(f country.Filing, e Errand, acknowledged string) (country.Receipt, bool) {
	r := country.Receipt{AuthorityID1: e.UUID, SHA256: f.SHA256, Raw: s.Raw, Handle: acknowledged}
	switch {
	case s.Voucher == satwire.VoucherCancelled:
		r.Outcome, r.Document, r.Format = country.Accepted, []byte(acknowledged), "XML"
		if acknowledged == "" {
			r.Document = s.Raw
		}
		r.Handle = ""
	case s.Voucher == satwire.VoucherValid && strings.HasPrefix(s.cancelling, satwire.CancelRefused):
		r.Outcome, r.Handle = country.Rejected, ""
		r.Faults = []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority,
			Message: satwire.CancelRefused + ": the receiver did not accept the cancellation; the voucher stays valid"}}
	case s.Voucher == satwire.VoucherValid && strings.HasPrefix(s.cancelling, satwire.CancelWaiting):
		r.Outcome, r.Awaiting = country.Pending, true
	default:
		return country.Receipt{}, false
	}
	return r, true
}

// State asks SAT about the voucher of an Errand.
func (ch *Client) State(ctx context.Context, f country.Filing, e Errand, c country.Credentials) (State, error) {
	if e.PAC != REST {
		return ch.stateSOAP(ctx, f, e, c)
	}
	host := hostState
	switch {
	case ch.Simulated():
		host = ch.base
	case !bool(ch.at.Live):
		host = hostStateTest
	}
	// An ampersand in an RFC is written as in XML, before the whole is escaped
	// for the envelope: SAT takes the expression apart at the plain ones.
	expression := "?id=" + e.UUID + "&re=" + Escaped(f.Supplier) + "&rr=" + Escaped(e.Receiver) + "&tt=" + Total(e.Total)
	if e.Tail != "" {
		expression += "&fe=" + e.Tail
	}
	result, raw, err := ch.ask(ctx, call{url: host + satwire.PathState, space: satwire.SpaceState, method: "Consulta",
		action: satwire.ActionState,
		args:   []argument{{"expresionImpresa", expression}}}, "ConsultaResult")
	if err != nil {
		return State{}, err
	}
	return stateIn(result, raw)
}

// Cancel asks for a cancellation and looks at what SAT makes of it.
func (ch *Client) Cancel(ctx context.Context, f country.Filing, e Errand, c country.Credentials) (country.Receipt, error) {
	var said cancelled
	var err error
	if e.PAC == REST {
		said, err = ch.cancelREST(ctx, f, e, c)
	} else {
		said, err = ch.cancelSOAP(ctx, f, e, c)
	}
	if err != nil {
		return country.Receipt{}, err
	}
	switch said.status {
	case "201", "202": // taken now, or before
	case satwire.CodeNoSAT:
		return said.notTaken(), nil
	case satwire.CodeNoAccess, satwire.CodeRevoked:
		return country.Receipt{}, fmt.Errorf("%w: %w: %s: %s", country.ErrNotTaken, country.ErrCredentials, said.status,
			said.message)
	case "205":
		// SAT's cancellation service learns of a voucher later than its state does.
		if now, err := ch.State(ctx, f, e, c); err == nil && now.Voucher == satwire.VoucherValid {
			return said.notTaken(), nil
		}
		return said.refused(), nil
	default:
		return said.refused(), nil
	}
	now, err := ch.State(ctx, f, e, c)
	if err != nil {
		if errors.Is(err, country.ErrCredentials) {
			return country.Receipt{}, err
		}
		now = State{} // the request is in: its state can be asked for later
	}
	if r, decided := now.Receipt(f, e, said.receipt); decided {
		return r, nil
	}
	return country.Receipt{Outcome: country.Pending, Handle: said.receipt, Raw: said.raw, AuthorityID1: e.UUID,
		SHA256: f.SHA256, Awaiting: now.cancelable == satwire.NeedsAccept}, nil
}

func (c cancelled) refused() country.Receipt {
	return country.Receipt{Outcome: country.Rejected, Raw: c.raw, Faults: []fault.Fault{{
		Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: c.words(),
	}}}
}

func (c cancelled) notTaken() country.Receipt {
	return country.Receipt{Raw: c.raw}.Untaken("%s", c.words())
}

// words are SAT's, or what its code means.
func (c cancelled) words() string {
	return c.status + ": " + cmp.Or(Tidy(c.message), satwire.CancelMeaning(c.status))
}

// Certificate answers SAT's certificate with a number, from SAT's repository.
//
// Failure policy: with live keys a stamp is believed only with the certificate
// at hand; while the repository cannot be reached the outcome is unknown and
// the same bytes go again later. Providers' test systems seal with
// certificates that no repository publishes: there, and only there, a missing
// certificate lets the stamp pass on SelloCFD alone.
func (ch *Client) Certificate(ctx context.Context, number string) (*x509.Certificate, error) {
	if satwire.CertificatePath(number) == "" {
		return nil, errors.New("checking the stamp: it names no certificate")
	}
	if held, ok := ch.certificates.Get(number); ok {
		return held, nil
	}
	leaf, err := ch.fetchCertificate(ctx, number)
	if err != nil {
		if !bool(ch.at.Live) && !ch.Simulated() {
			return nil, nil
		}
		return nil, fmt.Errorf("fetching SAT's certificate %s: %w", number, err)
	}
	ch.certificates.Put(number, leaf)
	return leaf, nil
}

func (ch *Client) fetchCertificate(ctx context.Context, number string) (*x509.Certificate, error) {
	host := hostRecords
	if ch.Simulated() {
		host = ch.base
	}
	reply, err := country.Request{Method: http.MethodGet, URL: host + satwire.CertificatePath(number),
		BytesMax: certificateBytesMax}.Do(ctx, ch.at.HTTP)
	if err != nil {
		// That no connection was had says nothing of the voucher, which left before.
		return nil, errors.New(err.Error())
	}
	if reply.Status != http.StatusOK {
		return nil, fmt.Errorf("status %d", reply.Status)
	}
	leaf, err := x509.ParseCertificate(reply.Body)
	if err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	if satwire.CertificateNumber(leaf) != number {
		return nil, errors.New("the repository gave another one")
	}
	return leaf, nil
}
