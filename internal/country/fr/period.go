package fr

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/fr/ereport"
	"tributary/internal/country/territory"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// periods are the reports of what is no invoice between businesses in France: sales
// to consumers by day, those to businesses abroad one by one (CGI, art. 290).
func periods() *country.Periods {
	return &country.Periods{Gather: gather, Sum: ereport.Sum, Replaces: true, Within: 10 * 24 * time.Hour}
}

// gather says what a sale, or what corrects one, contributes to the report of its
// own day. What corrects an invoice of the platform is a document of the platform.
func gather(in country.Draft) (*country.Gathered, error) {
	switch in.Transaction.Kind {
	case transaction.Period:
		return nil, nil
	case transaction.PaymentReport:
		return gatherPayment(&in)
	}
	t := whole(&in)
	known, err := readLearned(in.Learned)
	if err != nil {
		return nil, err
	}
	to := routeOf(&t, known.Unlisted)
	if in.Original != nil && to == betweenBusinesses && in.Original.Gathered != nil {
		to = toConsumers // it was told so
	}
	if to == betweenBusinesses || in.Original != nil && in.Original.Gathered == nil && in.Original.AuthorityID1 != "" {
		return nil, nil
	}
	t.Items = country.ClassifyTaxes(facts(), country.Case{Transaction: &t, Totals: in.Totals, Now: in.Now})
	in.Transaction = t
	rules := rulesOf(&in.Supplier)
	sign := int64(1)
	if t.Kind == transaction.Credit {
		sign = -1
	}
	var c *ereport.Contribution
	switch to {
	case abroadBusiness:
		c, err = rules.Invoice(&in, seller(&in.Supplier), abroad(&t))
	case toConsumers:
		c, err = rules.Sale(&in, sign)
	default:
		return nil, fault.New(fault.Invalid, "the sale cannot be told").With(identified(&t)...)
	}
	if err != nil {
		return nil, err
	}
	return gathered(&in, c)
}

// gathered is a contribution in its period, with its sums in euro.
func gathered(in *country.Draft, c *ereport.Contribution) (*country.Gathered, error) {
	data, err := c.Encode()
	if err != nil {
		return nil, err
	}
	g := &country.Gathered{Lines: len(in.Transaction.Items), Data: data, Currency: ownMoney,
		Span: regime(&in.Supplier).Sales(in.Transaction.Date.In(cmp.Or(in.Location, time.UTC)))}
	for _, group := range c.Groups {
		for _, r := range group.Rates {
			g.Net, g.Tax = g.Net+r.Base, g.Tax+r.Tax
		}
	}
	for _, v := range c.Invoices {
		sign := int64(1)
		if v.Type == "381" {
			sign = -1
		}
		for _, s := range v.Taxes {
			g.Net, g.Tax = g.Net+sign*s.Base, g.Tax+sign*s.Tax
		}
	}
	g.Gross = g.Net + g.Tax
	return g, nil
}

// regime is how a company declares VAT, which decides when it reports.
func regime(s *country.Supplier) ereport.Regime {
	return ereport.Regime(cmp.Or(s.Settings.Text(settingRegime), string(ereport.RealMonthly)))
}

func seller(s *country.Supplier) ereport.Party {
	p := ereport.Party{ID: company(s).siren, Scheme: ereport.SchemeSIREN, Country: home}
	if number := strings.ToUpper(strings.ReplaceAll(s.TaxNumber, " ", "")); strings.HasPrefix(number, home) {
		p.VAT = number
	}
	return p
}

// abroad is the buyer of an international invoice. Monaco shares France's VAT and has
// no number of its own in the Union.
func abroad(t *transaction.Transaction) ereport.Party {
	b := t.Customer
	if b.Address == nil {
		return ereport.Abroad(b, home, false)
	}
	code := strings.ToUpper(b.Address.CountryCode)
	return ereport.Abroad(b, code, code != "MC" && territory.Of(home, b, t.Date, true).Union)
}

// platformNumber is how platforms are registered (G6.22).
var platformNumber = regexp.MustCompile(`^[0-9]{4}$`)

// transmitted is why a first report of a period is refused that the administration
// has, as after a restored backup.
const transmitted = "REJ_UNI"

// report writes the report of a period. It is the platform that hands it on, and its
// number stands in the report: without it the report waits for the operator.
func (ch *channel) report(in *country.Draft) (country.Filing, error) {
	platform, err := ch.at.Secret(country.Credentials{}, secretPlatform)
	if err == nil && !platformNumber.MatchString(platform) {
		err = country.Unidentified(fmt.Errorf("%s is not four digits", secretPlatform))
	}
	if err != nil {
		return country.Filing{}, err
	}
	own := company(&in.Supplier)
	head := ereport.Head{At: in.Now, Where: in.Location, Platform: platform,
		Name: cmp.Or(ch.at.Identity.Secrets[secretPlatformName], "Plateforme agréée"), SIREN: own.siren, Company: in.Supplier.LegalName,
		There: strings.Contains(in.Period.Refused, transmitted)}
	text, err := ereport.Write(head, in.Period)
	if err != nil {
		return country.Filing{}, err
	}
	f, err := in.Filing(text, in.Period.Number, own.siren, extra{Syntax: syntaxReport, Name: in.Period.Number + ".xml", Rule: "NotApplicable"})
	f.DedupeKey = tracking(in.OperationID)
	f.Aliases = []string{reportAlias(own.siren, head.ID(in.Period.Number))}
	return f, err
}

// reportAlias is how statuses speak of a report.
func reportAlias(siren, id string) string {
	return strings.Join([]string{"fr", siren, "report", id}, "|")
}
