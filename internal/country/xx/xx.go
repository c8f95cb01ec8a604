// Package xx is country XX, whose authority speaks a small signed
// JSON-over-HTTP protocol of our own (official/xxwire) with every habit that a
// real authority can have. docs/countries/xx.md describes the protocol.
//
// It owns the sender's side; the authority is authority/reference. It refuses to
// own any real country's law: any currency, rate and party passes, and no live
// key ever reaches it. Law: what the authority confirms it holds for ever, so
// exactly-once can be proved by counting.
package xx

import (
	"context"
	_ "embed"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// codesFile is what the codes of the reference authority mean, in our own words.
//
//go:embed codes.txt
var codesFile string

// version is stored with every operation; bytes made by one version are sent unchanged by the next.
const version = "xx-1"

// Names of the company's settings.
const (
	settingClass      = "class"
	settingAcceptance = "acceptance"
	settingPeriod     = "period"
)

// Variant is the reference authority under a code: XX, or one of XA to XZ, which
// are free for users. A company chooses by its setting "class" how the authority
// recognises what it already has: by number (Q), by hash (H), by the sender's key
// (K) or not at all (N); class is that of every company that chooses no other.
//
// The class travels inside each filing, because Limits has no supplier: XX as
// a whole calls itself Q, and Find of a filing of class H or K asks in the way
// that class allows, by showing the same bytes again. Chains need order and
// one writer for all filings of a supplier, which Limits must announce, so a
// chained authority is a pack of its own: of class C every filing is a link of
// the supplier's chain, whatever the company chooses.
func Variant(code string, class country.Class) country.Pack {
	return WithHabits(code, class, Habits{})
}

// WithHabits is a variant whose authority has habits that XX by itself does not show.
func WithHabits(code string, class country.Class, habits Habits) country.Pack {
	classes := []string{string(country.ByNumber), string(country.ByHash), string(country.ByKey), string(country.ByNothing)}
	if class == country.ByChain {
		classes = []string{string(country.ByChain)}
	}
	return country.Pack{
		Code:    code,
		Name:    "Reference authority",
		Version: version,
		Sources: []string{
			"https://www.rfc-editor.org/rfc/rfc2104", // HMAC: the signatures of both sides
			"https://www.rfc-editor.org/rfc/rfc8259", // JSON: documents and receipts, one a line
		},
		Facts: facts(class, classes),
		Codes: country.ReadCodes(codesFile),
		Connect: func(at country.Endpoint) (country.Channel, error) {
			ch, err := connect(at, class)
			if err != nil {
				return nil, err
			}
			ch.habits = habits
			return ch, nil
		},
		Sequence:  habits.Sequence,
		Enrol:     enrolThrough(func(at country.Endpoint) (*channel, error) { return connect(at, country.ByNumber) }),
		Identity:  platformRule(false),
		Callbacks: callbacks(),
		Fetch:     fetch(),
		Periods:   periods(),
		Example:   example(code),
	}
}

func facts(class country.Class, classes []string) country.Facts {
	return country.Facts{
		Currency:  "EUR",
		Languages: []string{"EN"},
		TimeZone:  "UTC",
		UseCases:  []country.UseCase{country.Reporting, country.Invoicing, country.Both},
		Corrections: []country.Correction{
			{Kind: transaction.Adjustment}, {Kind: transaction.Credit}, {Kind: transaction.Cancellation}, {Kind: transaction.Backfill},
		},
		Settings: []country.Setting{
			{
				Key: settingClass, Type: "string", Default: string(class), Values: classes,
				Description: "How the authority recognises what it already has: by number (Q), by hash (H), by the sender's key (K), by chain (C) or not at all (N).",
			},
			{
				Key: settingAcceptance, Type: "boolean", Default: false,
				Description: "Cancellations stay pending until the buyer accepts them.",
			},
			{
				Key: settingPeriod, Type: "string", Default: periodNone,
				Values:      []string{periodNone, string(country.Daily), string(country.Weekly), string(country.Monthly)},
				Description: "Sales to customers without a tax number are gathered by day, week or month and filed in one document after its end.",
			},
			{
				Key: settingMailbox, Type: "boolean", Default: false,
				Description: "The company's mailbox at the authority is looked into: decisions and notices may lie there.",
			},
			{
				Key: settingGrant, Type: "boolean", Default: false,
				Description: "A person must agree at the authority before the company is onboarded: the job has an address to visit.",
			},
		},
		Credentials: []string{},
		Secrets:     []country.SecretRule{grantSecret()},
		Formats:     []string{"PDF", "JSON"},
		Authority: &country.Authority{
			Name: "Reference authority", System: "Simulated only", Protocol: "Signed JSON lines over HTTP",
		},
		Derivations: country.DerivationRules(),
	}
}

// enrolThrough makes the supplier's signing key known to the authority, in place of any before.
func enrolThrough(open func(country.Endpoint) (*channel, error)) func(context.Context, country.Enrolment) country.Enrolled {
	return func(ctx context.Context, in country.Enrolment) country.Enrolled {
		ch, err := open(in.At)
		var done country.Enrolled
		if err == nil && wantsGrant(in) {
			if in.Grant == nil {
				return visit(in)
			}
			if done = ch.exchange(ctx, in); len(done.Faults) > 0 {
				return done
			}
			in.Credentials = granted(in.Credentials, done.Keep)
		}
		if err == nil {
			err = ch.enrol(ctx, supplierNumber(in.Supplier), in.Credentials, true)
		}
		if err != nil {
			return country.Enrolled{Faults: []fault.Fault{{
				Code: fault.AuthorityUnavailable, Type: fault.TaxAuthority,
				Message: "the reference authority could not enrol the supplier's key; please try again",
			}}}
		}
		return done
	}
}
