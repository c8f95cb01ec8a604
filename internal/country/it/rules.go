package it

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/amount"
	"tributary/internal/fault"
	"tributary/internal/official/sdiwire"
)

// rule is one of SdI's checks that can be made without its registers: Elenco dei
// controlli 2.0 of 31/01/2025, and Allegato A 1.9.1 where it differs for FPR12.
// What a document keeps by the way it is made (sums, natures, check digits) is
// not here: the schema and the double prove it.
// SdI refuses a document for each; here it is refused before it is sent, with
// the client's own path.
type rule struct {
	code   string
	kinds  string // TipoDocumento that it is of; empty: all
	path   string
	text   string // what is wrong there; {kind}, {format} and {original} are the document's
	broken func(d *invoice) bool
}

// lineRule is one of a line; path is below its item,
// {at} the place of its tax there; {natura} and {net} are the line's.
type lineRule struct {
	code, path, text string
	broken           func(d *invoice, l *line) bool
}

// saying tells a finding: a path, and what is wrong there.
type saying func(path, format string, args ...any)

// judged finds what SdI would refuse, and what the law does not let it take. today is that of Rome; empty: nobody asks.
func (d *invoice) judged(today string) []fault.Fault {
	var found []fault.Fault
	say := func(code, path, format string, args ...any) {
		found = append(found, fault.At(path, fault.FieldNotValid, format+" (%s)", append(args, code)...))
	}
	for _, r := range documentRules {
		if (r.kinds == "" || strings.Contains(r.kinds, d.kind.code)) && r.broken(d) {
			say(r.code, r.path, "%s", strings.NewReplacer("{kind}", d.kind.code, "{format}", d.format, "{original}",
				d.original.date).Replace(r.text))
		}
	}
	for _, r := range lineRules {
		for i := range d.lines {
			if l := &d.lines[i]; r.broken(d, l) {
				say(r.code, fmt.Sprintf("items.%d.", i)+strings.ReplaceAll(r.path, "{at}", strconv.Itoa(l.At)), "%s",
					strings.NewReplacer("{natura}", l.natura, "{net}", euros(l.Net)).Replace(r.text))
			}
		}
	}
	if today != "" && d.date > today {
		say(sdiwire.DateAhead, "transaction_date", "must not be after today, %s in Rome", today)
	}
	return append(found, d.lawful()...)
}

func todayInRome(now time.Time) string {
	if now.IsZero() {
		return ""
	}
	return now.In(rome()).Format(time.DateOnly)
}

// pecOfSdI are mailboxes of SdI itself.
var pecOfSdI = regexp.MustCompile(`(?i)^sdi[0-9]{2}@pec\.fatturapa\.it$`)

const (
	atAddress = "customer.electronic_address.id"
	atNumber  = "customer.tax_information.tax_number"
)

// documentRules are of parties and of TipoDocumento. At submit the company is not
// known; what compares it with the customer is found when the document is made.
var documentRules = []rule{
	{sdiwire.AddressLength, "", atAddress,
		"must have 7 characters: 6 are those of a public office, whose invoices (FPA12) must be signed with a qualified signature, which is not made here",
		func(d *invoice) bool { return len(d.recipient) != len(sdiwire.NoAddress) }},
	{sdiwire.AddressNotForeign, "", atAddress, "is for buyers abroad; use 0000000, or nothing",
		func(d *invoice) bool {
			return d.recipient == sdiwire.ForeignAddress && (d.buyer.id == "" || d.buyer.country == home)
		}},
	{sdiwire.PECOfSdI, "", atAddress, "is a mailbox of SdI itself: it must be the buyer's",
		func(d *invoice) bool { return pecOfSdI.MatchString(d.pec) }},
	{sdiwire.BuyerNumberMissing, "", atNumber,
		"must not be empty: a buyer in Italy is named by a VAT number or a codice fiscale, which may also stand in fiscal_code",
		func(d *invoice) bool { return d.kind.side == selling && d.buyer.id == "" && d.buyer.code == "" }},
	{sdiwire.BothForeign, "", atNumber, "and the seller's are both foreign: one party must be Italian",
		func(d *invoice) bool {
			return d.seller.id != "" && d.buyer.id != "" && d.seller.country != home && d.buyer.country != home
		}},
	{sdiwire.SamePerson, "TD01 TD02 TD03 TD06 TD16 TD17 TD18 TD19 TD20 TD24 TD25 TD28 TD29", atNumber,
		"must not be the company's own: {kind} needs two parties; a sale to oneself is TD27",
		func(d *invoice) bool { return d.seller.same(d.buyer) }},
	{sdiwire.NotSamePerson, "TD21 TD27", "customer", "must be the company itself in {kind}",
		func(d *invoice) bool { return d.seller.id != "" && !d.seller.same(d.buyer) }},
	{sdiwire.SellerCountryWrong, "TD17 TD18 TD19 TD28", atNumber,
		"must be foreign: {kind} is for sellers abroad, TD16 for those in Italy",
		func(d *invoice) bool { return d.seller.country == home }},
	{sdiwire.SellerCountryWrong, "TD29", atNumber, "must be Italian: TD29 is about sellers in Italy",
		func(d *invoice) bool { return d.seller.country != "" && d.seller.country != home }},
	{sdiwire.BuyerVATMissing, "TD16 TD17 TD18 TD19 TD20 TD22 TD23 TD28 TD29", "supplier",
		"must have a VAT number: it is the buyer in {kind}",
		func(d *invoice) bool { return d.seller.country != "" && d.buyer.id == "" && d.buyer.name != "" }},
	{sdiwire.BeforeOriginal, "TD04", "transaction_date", "must not be before the day of the original, {original}",
		func(d *invoice) bool { return d.original.date != "" && d.date < d.original.date }},
	{sdiwire.NumberWithoutDigit, "", "transaction_number", "must have a digit",
		func(d *invoice) bool { return d.Number() != "" && !strings.ContainsAny(d.Number(), "0123456789") }},
}

var lineRules = []lineRule{
	{sdiwire.SelfSupplyUntaxed, "tax_breakdowns.{at}.rate", "must not be 0 in TD21",
		func(d *invoice, l *line) bool { return d.kind.code == "TD21" && l.rate.IsZero() }},
	{sdiwire.RateFraction, "tax_breakdowns", "must not have a rate below 1 %: 22 is written as 22",
		func(_ *invoice, l *line) bool { return !l.rate.IsZero() && l.rate.Compare(num.MakeAmount(1, 0)) < 0 }},
	{sdiwire.LineDiscountEmpty, "discount", "must take something",
		func(_ *invoice, l *line) bool { return l.discount != nil && l.discount.Sign() == 0 }},
	{sdiwire.LineTotalWrong, "quantity", "is so large that a price with eight decimals does not come to the line's {net}",
		func(_ *invoice, l *line) bool { return l.fund.kind == "" && l.off() }},
}

// off reports whether a line is a cent or more from its price times its quantity.
func (l *line) off() bool {
	price := l.price.Rat()
	if l.discount != nil {
		price.Sub(price, l.discount.Rat())
	}
	off := price.Mul(price, amount.Of(l.quantity).Rat()).Sub(price, amount.New(l.Net, cents).Rat())
	return off.Abs(off).Cmp(big.NewRat(1, 100)) >= 0
}
