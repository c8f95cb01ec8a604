package pl

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
)

// extra is what a filing carries beyond its document. It is stored with the
// filing, so names once used keep their meaning.
type extra struct {
	Auth    string `json:"auth,omitempty"`
	Issued  string `json:"issued"`          // P_1
	Type    string `json:"type"`            // RodzajFaktury
	CodeTwo string `json:"code2,omitempty"` // KOD II: the invoice can be declared offline
	Moved   bool   `json:"moved,omitempty"` // P_1 is not the transaction's day
}

// offline reports whether an invoice that KSeF takes on a day was issued
// offline: KSeF was away when it was made, and it comes after its day. One that
// still comes on its day is an invoice like any other, however often KSeF was
// away in between (art. 106nda of the VAT act).
func (x extra) offline(day string) bool { return x.CodeTwo != "" && day > x.Issued }

// noted adds what the client must know of an accepted invoice.
func (x extra) noted(r country.Receipt) country.Receipt {
	if x.Moved && r.Outcome == country.Accepted {
		r.Faults = append(r.Faults, fault.Warn("transaction_date", fault.DateMoved,
			"is before the previous working day: the invoice was issued on %s (P_1), with that day as the day of supply (P_6)", x.Issued))
	}
	return r
}

func readExtra(f country.Filing) (extra, error) {
	var x extra
	if err := json.Unmarshal(f.Extra, &x); err != nil {
		return x, fmt.Errorf("reading what the filing of %s carries: %w", f.Number, err)
	}
	return x, nil
}

// Prepare writes FA(3) and the codes of its printed form.
//
// A filing that is made while KSeF is away gets the second code where a
// certificate can sign it. It is declared as issued offline (offline24, art.
// 106nda) only when KSeF takes it on a later day; without the code it goes as any
// other, and KSeF itself marks it as offline when its day has passed.
func (ch *channel) Prepare(in country.Draft) (country.Filing, error) {
	t := &in.Transaction
	if err := country.Preparable(&in, func() []fault.Fault { return correctable(&in) }, "KSeF has no document for the operation",
		"an invoice in KSeF cannot be cancelled, only corrected to zero: use a credit"); err != nil {
		return country.Filing{}, err
	}
	d := compose(&in, &ch.facts, ch.plain)
	report := d.write()
	if len(report) > ksefwire.DocumentBytesMax {
		return country.Filing{}, tooLarge(len(report))
	}
	sum := sha256.Sum256(report)
	x := extra{Auth: in.Supplier.Settings.Text(settingAuth), Issued: d.day.Format(time.DateOnly), Type: d.kind(), Moved: d.moved}
	if in.Late {
		code, err := ch.offlineCode(&in, d.nip, sum)
		if err != nil {
			return country.Filing{}, err
		}
		x.CodeTwo = code
	}
	carried, err := json.Marshal(x)
	if err != nil {
		return country.Filing{}, fmt.Errorf("writing the filing of %s: %w", t.ID, err)
	}
	f := country.Filing{
		OperationID: in.OperationID,
		Number:      d.number(),
		Supplier:    d.nip,
		Kind:        t.Kind,
		Report:      report,
		Format:      "XML",
		SHA256:      hex.EncodeToString(sum[:]),
		QRCode:      codeOne(ch.qr, d.nip, d.day, sum),
		Extra:       carried,
		PreparedAt:  in.Now,
		Late:        x.CodeTwo != "",
	}
	switch {
	case completes(t): // those before stand as they are
		f.Effect, f.Effects = &country.Effect{}, make([]country.Effect, len(in.Shares))
	case settles(t) && len(in.Shares) == 0:
		f.Effect = &country.Effect{Amount: deducted(t, in.Totals)}
	}
	return f, nil
}

// correctedBuyer finds what a correction may not say of the buyer of an original:
// another NIP, which KSeF keeps the invoice under, and zero rates that do not fit
// the buyer.
func correctedBuyer(in *country.Draft, was *transaction.Party) []fault.Fault {
	t := &in.Transaction
	if t.Customer == nil {
		if t.Kind != transaction.Adjustment {
			return nil
		}
		items := classify(facts(), country.Case{Transaction: t, Totals: in.Totals, Now: in.Now})
		return zeroes(t.Items, items, was, t.Date)
	}
	if before, after := identify(was).nip, identify(t.Customer).nip; was != nil && before != after {
		return []fault.Fault{fault.At("customer.tax_information.tax_number", fault.ValidationMatchInvalid,
			"differs from the original's: a correction cannot move an invoice to another NIP; credit the original and issue a new invoice")}
	}
	return nil
}

func tooLarge(size int) error {
	return fault.New(fault.Invalid, "the document is too large for KSeF").With(fault.At("items", fault.FieldNotValid,
		"make a document of %d bytes; KSeF takes at most %d", size, ksefwire.DocumentBytesMax))
}

// offlineCode is KOD II, or "" where no certificate can sign it.
//
// Failure policy: the code is an addition. A certificate that cannot be opened
// does not hold the invoice back when a token does the filing.
func (ch *channel) offlineCode(in *country.Draft, nip string, sum [sha256.Size]byte) (string, error) {
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
	return codeTwo(ch.qr, nip, sum, id)
}
