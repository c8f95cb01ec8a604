package country_test

import (
	"testing"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

func TestWhatIsFiledIsDecidedByTheLawTheClientOrTheCompany(t *testing.T) {
	connect := func(country.Endpoint) (country.Channel, error) { return nil, nil }
	named := &transaction.Transaction{Customer: &transaction.Party{}}
	toNobody := &transaction.Transaction{}
	sends, keeps := &country.Supplier{LegalName: "sends"}, &country.Supplier{LegalName: "keeps"}
	choice := func(s *country.Supplier, tx *transaction.Transaction, original *country.Original) bool {
		return original != nil && original.Report != nil || (s == nil || s == sends) && (tx == nil || tx.Customer != nil)
	}
	held, unheld := &country.Original{Report: []byte("x")}, &country.Original{}
	law := country.Pack{Connect: connect}
	client := country.Pack{Connect: connect, Files: country.Filed{By: country.ByUseCase}}
	company := country.Pack{Connect: connect, Files: country.Filed{By: country.ByCompany, Of: choice}}
	for name, c := range map[string]struct{ got, want bool }{
		"the law files for invoicing":           {law.Filed(country.Invoicing, keeps, toNobody), true},
		"the law reports":                       {law.Reports() && !law.Chosen() && !law.Keeps(keeps), true},
		"invoicing alone files nothing":         {client.Filed(country.Invoicing, sends, named), false},
		"reporting files":                       {client.Filed(country.Reporting, sends, named), true},
		"a company sends":                       {company.Filed(country.Invoicing, sends, named), true},
		"a company sends nothing to nobody":     {company.Filed(country.Invoicing, sends, toNobody), false},
		"a company keeps":                       {company.Filed(country.Both, keeps, named), false},
		"a correction of what was sent is sent": {company.Filed(country.Both, keeps, named, unheld, held), true},
		"a correction of what was kept is kept": {company.Filed(country.Both, keeps, named, unheld, nil), false},
		"a choice is told to no authority":      {company.Reports(), false},
		"a company that chose to keep is known": {company.Chosen() && company.Keeps(keeps) && !company.Keeps(sends),
			true},
		"what may be sent is known without company": {
			company.MayFile(named) && !company.MayFile(toNobody) && law.MayFile(toNobody), true},
		"without a channel nothing is filed": {
			country.Pack{}.Filed(country.Both, sends, named) || country.Pack{}.MayFile(named), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %t", name, c.got)
		}
	}
}
