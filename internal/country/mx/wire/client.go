// Package wire is the way of vouchers to a provider whom SAT authorised (PAC), over
// SOAP as Finkok documents it or REST as SW does, and to SAT's own services.
//
// It owns what is said there and what an answer means. It refuses to own vouchers,
// which the package above writes and believes, retries and storage. Law: only an
// answer of the right form counts; of anything else nothing is known.
package wire

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"tributary/internal/country"
	"tributary/internal/country/text"
	"tributary/internal/official/satwire"
)

// Kinds of providers.
const (
	SOAP = "soap"
	REST = "rest"
)

// Client calls one provider, and SAT.
type Client struct {
	at   country.Endpoint
	base string

	certificates country.Memory[string, *x509.Certificate] // SAT's, by number
	tokens       country.Memory[string, token]             // of REST providers, by user
}

// Connect answers the way to the provider behind an endpoint.
func Connect(at country.Endpoint) (*Client, error) {
	base, err := at.Base("")
	if err != nil {
		return nil, err
	}
	return &Client{at: at, base: base}, nil
}

// Simulated reports whether the address is a simulator's: only those are plain http.
func (ch *Client) Simulated() bool { return strings.HasPrefix(ch.base, "http://") }

// Errand is what a provider and SAT are asked about a voucher, beside the report.
// It is stored with the filing, so names once used keep their meaning.
type Errand struct {
	PAC      string `json:"pac"`
	UUID     string `json:"uuid,omitempty"` // the voucher that is cancelled
	Receiver string `json:"receiver,omitempty"`
	Total    string `json:"total,omitempty"`
	Tail     string `json:"tail,omitempty"` // last eight characters of its seal
}

// ErrAwkward is an answer that says neither yes nor no.
var ErrAwkward = errors.New("the provider's answer gives no status")

// Answer is what a provider said of a stamping, in either protocol.
type Answer struct {
	Document []byte // the stamped voucher; empty when there is none
	Code     string // "" when stamped just now
	Message  string
	Raw      []byte
}

// Stamp has a voucher stamped, by either protocol.
func (ch *Client) Stamp(ctx context.Context, f country.Filing, e Errand, c country.Credentials) (Answer, error) {
	if e.PAC == REST {
		return ch.stampREST(ctx, f, c)
	}
	said, err := ch.stampSOAP(ctx, "stamp", f, c)
	if err != nil || said.Code != satwire.CodeStampedBefore || len(said.Document) > 0 {
		return said, err
	}
	// "Al llamar a stamp dos veces … puede no regresar los datos": then they are asked for.
	if said, err = ch.Stamped(ctx, f, c); err != nil {
		return said, fmt.Errorf("%w: %s", ErrAwkward, err) // it is stamped: never "not taken"
	}
	if said.Code != satwire.CodeNotStamped {
		said.Code = satwire.CodeStampedBefore
	}
	return said, nil
}

// Stamped asks a SOAP provider for a voucher that it stamped before.
func (ch *Client) Stamped(ctx context.Context, f country.Filing, c country.Credentials) (Answer, error) {
	return ch.stampSOAP(ctx, "stamped", f, c)
}

// Listed are the UUIDs of what a SOAP provider stamped between two instants, in
// the time of central Mexico.
func (ch *Client) Listed(ctx context.Context, rfc string, from, to time.Time,
	c country.Credentials) (uuids []string, err error) {
	result, _, err := ch.ask(ctx, call{url: ch.base + satwire.PathSOAPList, space: satwire.SpaceSOAPList,
		method: "report_uuid", most: listedBytesMax, args: []argument{
			{"username", c.Username}, {"password", c.Secret}, {"taxpayer_id", rfc},
			{"date_from", from.Format(satwire.LocalTime)}, {"date_to", to.Format(satwire.LocalTime)}, {"invoice_type", "I"},
		}}, "report_uuidResult")
	if err == nil && result.Value("error") != "" {
		err = fmt.Errorf("%w: %s", ErrAwkward, result.Value("error"))
	}
	if err != nil {
		return nil, err
	}
	for _, held := range result.At("invoices").All("ReportUUID") {
		uuids = append(uuids, held.Value("uuid"))
	}
	return uuids, nil
}

// Voucher fetches one that a SOAP provider holds.
func (ch *Client) Voucher(ctx context.Context, rfc, uuid string, c country.Credentials) ([]byte, error) {
	result, _, err := ch.ask(ctx, call{url: ch.base + satwire.PathSOAPList, space: satwire.SpaceSOAPList,
		method: "get_xml", most: listedBytesMax, args: []argument{
			{"username", c.Username}, {"password", c.Secret}, {"uuid", uuid}, {"taxpayer_id", rfc}, {"invoice_type", "I"},
		}}, "get_xmlResult")
	return []byte(result.Value("xml")), err
}

// Tidy is text as an attribute may carry it: no control characters, one blank
// for any run of blanks, none at the ends. SAT's schemas collapse blanks and
// measure what is left.
func Tidy(s string) string {
	return text.Words(s, len(s), func(r rune) bool {
		return unicode.IsSpace(r) || r < ' ' || r == 0x7f || r == '\uFFFE' || r == '\uFFFF' || r == '\uFEFF'
	})
}

// Tail is the last n bytes of a text.
func Tail(text string, n int) string { return text[max(0, len(text)-n):] }

// Total is a total without needless zeros, with one decimal at least.
func Total(total string) string {
	if !strings.Contains(total, ".") {
		return total + ".0"
	}
	total = strings.TrimRight(total, "0")
	if strings.HasSuffix(total, ".") {
		return total + "0"
	}
	return total
}

// Escaped is a text as an attribute of canonical XML has it: > stays.
func Escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;").Replace(text)
}
