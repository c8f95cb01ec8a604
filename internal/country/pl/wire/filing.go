// Package wire is the wire to KSeF 2.0: authentication, encrypted interactive and
// batch sessions, the limits of calls, status, UPO and queries, and the
// verification codes of printed invoices.
//
// It owns how an invoice gets there and what became of it. It refuses to own the
// invoice itself, which the package above writes, retries and storage. Law: an
// invoice exists when KSeF has given it a number; whatever was lost on the way is
// asked for by number and compared by hash.
package wire

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
)

// SettingAuth is the company's setting that says how it authenticates where it
// has both kinds of credentials, and its values.
const (
	SettingAuth = "auth"
	AuthToken   = "token"
	AuthXAdES   = "xades"
)

// NIP is how KSeF knows a supplier. Its digits were checked when the company was
// onboarded.
func NIP(s *country.Supplier) string { return strings.TrimPrefix(taxid.Bare(s.TaxNumber), "PL") }

// Extra is what a filing carries beyond its document. It is stored with the
// filing, so names once used keep their meaning.
type Extra struct {
	Auth    string `json:"auth,omitempty"`
	Issued  string `json:"issued"`           // P_1
	Type    string `json:"type"`             // RodzajFaktury
	CodeTwo string `json:"code2,omitempty"`  // KOD II: the invoice can be declared offline
	Moved   bool   `json:"moved,omitempty"`  // P_1 is not the transaction's day
	Unsaid  string `json:"unsaid,omitempty"` // an exempt entry whose ground nobody named
	Rate    string `json:"rate,omitempty"`   // a correction was told another rate than its original's, which is this
}

// Offline reports whether an invoice that KSeF takes on a day was issued
// offline: KSeF was away when it was made, and it comes after its day. One that
// still comes on its day is an invoice like any other, however often KSeF was
// away in between (art. 106nda of the VAT act).
func (x Extra) Offline(day string) bool { return x.CodeTwo != "" && day > x.Issued }

// noted adds what the client must know of an accepted invoice.
func (x Extra) noted(r country.Receipt) country.Receipt {
	if x.Moved && r.Outcome == country.Accepted {
		r.Faults = append(r.Faults, fault.Warn("transaction_date", fault.DateMoved,
			"is before the previous working day: the invoice was issued on %s (P_1), with that day as the day of supply (P_6)",
			x.Issued))
	}
	if x.Unsaid != "" && r.Outcome == country.Accepted {
		r.Faults = append(r.Faults, fault.Warn(x.Unsaid, fault.ValueAssumed,
			"does not say on which ground the sale is exempt: art. 43 sec. 1 was filed without its point (P_19A, art. 106e sec. 1 point 19 of the VAT act); say 43.1.N, 113 or another code, or the company's exemption_basis"))
	}
	if x.Rate != "" && r.Outcome == country.Accepted {
		r.Faults = append(r.Faults, fault.Warn("exchange_rate", fault.RateUnusual,
			"differs from the original's, %s, which was filed: a correction is converted at the rate of what it corrects (art. 31b of the VAT act)", x.Rate))
	}
	return r
}

// Filing is the filing of an invoice that was written: with the first code of its
// printed form, and the second where KSeF is away and a certificate can sign it.
func (ch *Client) Filing(in *country.Draft, report []byte, number string, x Extra) (f country.Filing, err error) {
	day, err := time.Parse(time.DateOnly, x.Issued)
	if err != nil {
		return f, fmt.Errorf("preparing %s: %w", in.Transaction.ID, err)
	}
	nip, sum := NIP(&in.Supplier), sha256.Sum256(report)
	x.Auth = in.Supplier.Settings.Text(SettingAuth)
	if in.Late {
		if x.CodeTwo, err = ch.codeTwo(in, nip, sum); err != nil {
			return f, err
		}
	}
	f, err = in.Filing(report, number, nip, x)
	f.QRCode, f.Late = CodeOne(ch.qr, nip, day, sum), x.CodeTwo != ""
	return f, err
}

// codeTwo is KOD II, or "" where no certificate can sign it.
//
// Failure policy: the code is an addition. A certificate that cannot be opened
// does not hold the invoice back when a token does the filing.
func (ch *Client) codeTwo(in *country.Draft, nip string, sum [sha256.Size]byte) (string, error) {
	if len(in.Credentials.PKCS12) == 0 {
		return "", nil
	}
	id, err := ch.identities.Open(in.Credentials.Certificate(), in.Now)
	if err != nil {
		if in.Credentials.Secret != "" {
			return "", nil
		}
		return "", err
	}
	if !signsOffline(id.Leaf) {
		return "", nil
	}
	return CodeTwo(ch.qr, nip, sum, id)
}

// Refused tries the credentials of a company once: which member of them KSeF does
// not take, and why; nothing where it does, or cannot be reached.
func (ch *Client) Refused(ctx context.Context, s *country.Supplier, c country.Credentials) (member, why string) {
	a, err := ch.visit(NIP(s), s.Settings.Text(SettingAuth), c)
	if err == nil {
		_, err = a.bearer(ctx)
	}
	switch {
	case !errors.Is(err, country.ErrCredentials):
		return "", ""
	case a.account != nil && a.account.auth == AuthXAdES:
		return "certificate_base64", plainCause(err)
	}
	return "password", plainCause(err)
}

// plainCause is KSeF's own status where there is one.
func plainCause(err error) string {
	var no *Refusal
	if errors.As(err, &no) {
		return no.text
	}
	var told *refusedStatus
	if errors.As(err, &told) {
		return told.Text()
	}
	return "the credentials do not work"
}
