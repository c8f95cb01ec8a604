package mx

import (
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
	certificatesMax     = 1024
)

// state is what SAT says of a voucher.
type state struct {
	code       string // CodigoEstatus
	voucher    string // Estado
	cancelable string // EsCancelable
	cancelling string // EstatusCancelacion
	raw        []byte
}

func stateIn(n *xmltree.Element, raw []byte) (state, error) {
	s := state{code: n.Value("CodigoEstatus"), voucher: n.Value("Estado"), cancelable: n.Value("EsCancelable"), cancelling: n.Value("EstatusCancelacion"), raw: raw}
	if s.voucher == "" {
		return state{}, fmt.Errorf("%w: SAT names no state: %s", errAwkward, s.code)
	}
	return s, nil
}

// receipt is what a state means for a cancellation; false when SAT knows of none.
func (s state) receipt(f country.Filing, e errand, acknowledged string) (country.Receipt, bool) {
	r := country.Receipt{AuthorityID1: e.UUID, SHA256: f.SHA256, Raw: s.raw, Handle: acknowledged}
	switch {
	case s.voucher == satwire.VoucherCancelled:
		r.Outcome, r.Document, r.Format = country.Accepted, []byte(acknowledged), "XML"
		if acknowledged == "" {
			r.Document = s.raw
		}
		r.Handle = ""
	case s.voucher == satwire.VoucherValid && strings.HasPrefix(s.cancelling, satwire.CancelRefused):
		r.Outcome, r.Handle = country.Rejected, ""
		r.Faults = []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: satwire.CancelRefused + ": the receiver did not accept the cancellation; the voucher stays valid"}}
	case s.voucher == satwire.VoucherValid && strings.HasPrefix(s.cancelling, satwire.CancelWaiting):
		r.Outcome, r.Awaiting = country.Pending, true
	default:
		return country.Receipt{}, false
	}
	return r, true
}

// stateOf asks SAT about the voucher of an errand.
func (ch *channel) stateOf(ctx context.Context, f country.Filing, e errand, c country.Credentials) (state, error) {
	if e.PAC != pacREST {
		return ch.stateSOAP(ctx, f, e, c)
	}
	host := hostState
	switch {
	case ch.simulated():
		host = ch.base
	case !bool(ch.at.Live):
		host = hostStateTest
	}
	// An ampersand in an RFC is written as in XML, before the whole is escaped
	// for the envelope: SAT takes the expression apart at the plain ones.
	expression := "?id=" + e.UUID + "&re=" + c14n(f.Supplier) + "&rr=" + c14n(e.Receiver) + "&tt=" + plain(e.Total)
	if e.Tail != "" {
		expression += "&fe=" + e.Tail
	}
	result, raw, err := ch.ask(ctx, call{url: host + satwire.PathState, space: satwire.SpaceState, method: "Consulta", action: satwire.ActionState,
		args: []argument{{"expresionImpresa", expression}}}, "ConsultaResult")
	if err != nil {
		return state{}, err
	}
	return stateIn(result, raw)
}

// cancel asks for a cancellation and looks at what SAT makes of it.
func (ch *channel) cancel(ctx context.Context, f country.Filing, e errand, c country.Credentials) (country.Receipt, error) {
	var said cancelled
	var err error
	if e.PAC == pacREST {
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
		return country.Receipt{Outcome: country.NotTaken, Raw: said.raw}, nil
	case satwire.CodeNoAccess, satwire.CodeRevoked:
		return country.Receipt{}, fmt.Errorf("%w: %w: %s: %s", country.ErrNotTaken, country.ErrCredentials, said.status, said.message)
	case "205":
		// SAT's cancellation service learns of a voucher later than its state does.
		if now, err := ch.stateOf(ctx, f, e, c); err == nil && now.voucher == satwire.VoucherValid {
			return country.Receipt{Outcome: country.NotTaken, Raw: said.raw}, nil
		}
		return said.refused(), nil
	default:
		return said.refused(), nil
	}
	now, err := ch.stateOf(ctx, f, e, c)
	if err != nil {
		if errors.Is(err, country.ErrCredentials) {
			return country.Receipt{}, err
		}
		now = state{} // the request is in: its state can be asked for later
	}
	if r, decided := now.receipt(f, e, said.receipt); decided {
		return r, nil
	}
	return country.Receipt{Outcome: country.Pending, Handle: said.receipt, Raw: said.raw, AuthorityID1: e.UUID, SHA256: f.SHA256, Awaiting: now.cancelable == satwire.NeedsAccept}, nil
}

func (c cancelled) refused() country.Receipt {
	message := tidy(c.message)
	if message == "" {
		message = satwire.CancelMeaning(c.status)
	}
	return country.Receipt{Outcome: country.Rejected, Raw: c.raw, Faults: []fault.Fault{{
		Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: c.status + ": " + message,
	}}}
}

// certificate is one of SAT's, or the knowledge that it cannot be had.
type certificate struct{ leaf *x509.Certificate }

// certificateOf answers SAT's certificate with a number, from SAT's repository.
//
// Failure policy: with live keys a stamp is believed only with the certificate
// at hand; while the repository cannot be reached the outcome is unknown and
// the same bytes go again later. Providers' test systems seal with
// certificates that no repository publishes: there, and only there, a missing
// certificate lets the stamp pass on SelloCFD alone.
func (ch *channel) certificateOf(ctx context.Context, number string) (*x509.Certificate, error) {
	if satwire.CertificatePath(number) == "" {
		return nil, errors.New("checking the stamp: it names no certificate")
	}
	ch.mu.Lock()
	held, ok := ch.certificates[number]
	ch.mu.Unlock()
	if ok {
		return held.leaf, nil
	}
	leaf, err := ch.fetchCertificate(ctx, number)
	if err != nil {
		if !bool(ch.at.Live) && !ch.simulated() {
			return nil, nil
		}
		return nil, fmt.Errorf("fetching SAT's certificate %s: %w", number, err)
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if len(ch.certificates) >= certificatesMax {
		clear(ch.certificates)
	}
	ch.certificates[number] = &certificate{leaf: leaf}
	return leaf, nil
}

func (ch *channel) fetchCertificate(ctx context.Context, number string) (*x509.Certificate, error) {
	host := hostRecords
	if ch.simulated() {
		host = ch.base
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, host+satwire.CertificatePath(number), nil)
	if err != nil {
		return nil, err
	}
	reply, err := country.Exchange(ch.at.HTTP, r, certificateBytesMax)
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
