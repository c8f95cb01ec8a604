package recovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"tributary/internal/chain"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/filing/filingtest"
	"tributary/internal/onboarding"
	"tributary/internal/recovery"
	"tributary/internal/series"
	"tributary/internal/transaction"
)

// examples says how a country's own example is onboarded and sold.
type examples struct {
	pack  country.Pack
	creds country.Credentials
	day   time.Time
}

func examplesOf(t *testing.T, code string) examples {
	t.Helper()
	packs, err := world.Packs()
	must(t, err)
	pack := packs[slices.IndexFunc(packs, func(p country.Pack) bool { return p.Code == code })]
	connect := pack.Connect
	pack.Connect = func(e country.Endpoint) (country.Channel, error) {
		c, err := connect(e)
		if _, lists := c.(country.Register); !lists {
			return c, err
		}
		return prompt{c}, err
	}
	creds, err := pack.Example.Open(time.Now())
	must(t, err)
	return examples{pack, creds, time.Now().Add(-time.Minute)}
}

func (x examples) company(c *onboarding.NewCompany) {
	e := x.pack.Example.Company
	c.CountryCode, c.LegalName, c.CompanyNumber, c.Address, c.TaxNumber, c.TaxRegime, c.Settings = x.pack.Code,
		e.LegalName, e.CompanyNumber, e.Address, e.TaxNumber, e.TaxRegime, e.Settings
	c.Credentials = x.creds
}

// sale is the country's example, of so many pieces of everything.
func (x examples) sale(t *testing.T, supplier, id string, number any) paper {
	t.Helper()
	text, err := x.pack.ExampleSale(country.SaleID{Transaction: id, Number: id, Supplier: supplier, Date: x.day})
	must(t, err)
	p := paper{}
	must(t, json.Unmarshal(text, &p))
	delete(p, "transaction_number")
	if number != nil {
		p["transaction_number"] = number
	}
	return p
}

// prompt is a way to an authority that shows at once what it took, as its double does.
type prompt struct{ country.Channel }

func (p prompt) Limits() country.Limits {
	l := p.Channel.Limits()
	l.VisibleAfter = 0
	return l
}

func (p prompt) Registered(ctx context.Context, s country.Supplier, day country.Day,
	c country.Credentials) ([]country.Entry, error) {
	return p.Channel.(country.Register).Registered(ctx, s, day, c)
}

// The countries' own packs and doubles: what is lost comes back under its number
// and registration, whoever gave the number, and a new sale gets its own.
func TestTheMatrixOfRestoresInCountries(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"ES", "HU", "MX", "PL", "RO"} {
		for _, drawn := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/series=%v", code, drawn), func(t *testing.T) {
				t.Parallel()
				restoreExample(t, examplesOf(t, code), drawn)
			})
		}
	}
}

// headOf is the last link of a supplier's chain.
func headOf(t *testing.T, n *node, at filing.Place) (head country.Link) {
	t.Helper()
	must(t, n.DB.Read(t.Context(), func(r db.Reader) (err error) {
		head, err = chain.HeadOf(r, at.Lane(0))
		return err
	}))
	return head
}

func restoreExample(t *testing.T, x examples, drawn bool) {
	a := newAuthorities(t, x.pack)
	s := a.Setup()
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	supplier := n.Supplier(x.pack.Code, "s1", x.company)
	number := func(text string) any { return "M-1" + text }
	if drawn {
		counts(t, n, series.Series{SupplierID: supplier, Pattern: "F-{N:4}"})
		number = func(string) any { return nil }
	}
	file := func(n *node, id string) string { return n.File(x.sale(t, supplier, id, number(id))) }
	n.Settled(file(n, "a"))
	restored := copier(t, url)()
	lost := n.Settled(file(n, "b"))
	same(t, "the lost one", lost.Status, filing.Success)
	n.Stop()
	before := a.Registered(x.pack.Code)

	m := restore(t, restored, s).Start()
	complete(m)
	if restoredState(m, supplier) == "chain" { // its authority cannot say its head: a person gives the last link
		at := filing.Place{Scope: client, Code: x.pack.Code, SupplierID: supplier}
		_, err := m.ResumeChain(t.Context(), at, recovery.From{Head: headOf(t, n, at)}, nil)
		must(t, err)
	}
	if reason := holdOf(t, m, supplier); reason != "" {
		t.Fatalf("the supplier is %s: %s", reason,
			one[string](t, restored, "SELECT state || ' ' || trouble FROM restored_suppliers"))
	}
	got := m.Settled(file(m, "b"))
	same(t, "status", got.Status, filing.Success)
	same(t, "number", *got.Number, *lost.Number)
	same(t, "what the authority holds", fmt.Sprint(a.Registered(x.pack.Code)), fmt.Sprint(before))
	fresh := m.Settled(file(m, "c"))
	same(t, "a new one", fresh.Status, filing.Success)
	once(t, a.Registered(x.pack.Code))
	same(t, "documents", len(a.Registered(x.pack.Code)), len(before)+1)
}

// What the authority holds under a number of the same day, with another sum or for
// another buyer, is another document: it is never adopted.
func TestAnotherDocumentOfTheSameNumberAndDayIsNotAdopted(t *testing.T) {
	t.Parallel()
	for code, buyer := range map[string]string{
		"ES": "A28015865", "HU": "10773381-2-44", "MX": "XIA190128J61", "PL": "7740001454",
	} {
		for what, change := range map[string]func(paper){
			"sum": func(p paper) {
				line := p["items"].([]any)[0].(map[string]any)
				line["quantity"] = line["quantity"].(float64) + 1
			},
			"buyer": func(p paper) {
				p["customer"].(map[string]any)["tax_information"].(map[string]any)["tax_number"] = buyer
			},
		} {
			t.Run(code+"/"+what, func(t *testing.T) {
				t.Parallel()
				submitOther(t, examplesOf(t, code), change)
			})
		}
	}
}

func submitOther(t *testing.T, x examples, change func(paper)) {
	a := newAuthorities(t, x.pack)
	s := a.Setup()
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	supplier := n.Supplier(x.pack.Code, "s1", x.company)
	restored := copier(t, url)()
	same(t, "the lost one", n.Settled(n.File(x.sale(t, supplier, "b", "M-b"))).Status, filing.Success)
	n.Stop()
	m := restore(t, restored, s).Start()
	complete(m)
	if restoredState(m, supplier) == "chain" {
		at := filing.Place{Scope: client, Code: x.pack.Code, SupplierID: supplier}
		_, err := m.ResumeChain(t.Context(), at, recovery.From{Head: headOf(t, n, at)}, nil)
		must(t, err)
	}
	other := x.sale(t, supplier, "z", "M-b")
	change(other)
	m.Fails(m.File(other), fault.AuthorityNumberUsed)
	same(t, "documents", len(a.Registered(x.pack.Code)), 1)
	same(t, "the lost one comes again", m.Settled(m.File(x.sale(t, supplier, "b", "M-b"))).Status, filing.Success)
	same(t, "documents", len(a.Registered(x.pack.Code)), 1)
}

// Credits with a number of a series are known again by their sums, and cancellations
// by what they correct.
func TestTheMatrixOfRestoresOfCorrectionsInCountries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code string
		kind transaction.Kind
	}{{"ES", transaction.Credit}, {"ES", transaction.Cancellation}, {"HU", transaction.Credit}} {
		t.Run(c.code+"/"+string(c.kind), func(t *testing.T) {
			t.Parallel()
			x := examplesOf(t, c.code)
			a := newAuthorities(t, x.pack)
			s := a.Setup()
			s.Master = filingtest.NewMaster(t)
			url := dbtest.SQLiteURL(t)
			n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
			supplier := n.Supplier(c.code, "s1", x.company)
			counts(t, n, series.Series{SupplierID: supplier, Pattern: "R-{N:4}", Kind: transaction.Credit})
			n.Succeeds(n.File(x.sale(t, supplier, "a", "M-a")))
			restored := copier(t, url)()
			corrects := func(n *node) string {
				return n.Hand(c.kind, paper{"country_code": c.code, "transaction_date": x.day.Format(time.RFC3339),
					"transaction_id": "x", "reference_transaction_id": "a", "note": "returned"})
			}
			same(t, "the lost one", n.Settled(corrects(n)).Status, filing.Success)
			n.Stop()
			before := a.Registered(c.code)
			m := restore(t, restored, s).Start()
			complete(m)
			if restoredState(m, supplier) == "chain" {
				at := filing.Place{Scope: client, Code: c.code, SupplierID: supplier}
				_, err := m.ResumeChain(t.Context(), at, recovery.From{Head: headOf(t, n, at)}, nil)
				must(t, err)
			}
			same(t, "it comes again", m.Settled(corrects(m)).Status, filing.Success)
			same(t, "what the authority holds", fmt.Sprint(a.Registered(c.code)), fmt.Sprint(before))
		})
	}
}

// The network that BE sends over has no list: nothing goes out again before a person has looked.
func TestTheMatrixOfRestoresOverTheNetwork(t *testing.T) {
	t.Parallel()
	const code = "BE"
	x := examplesOf(t, code)
	a := newAuthorities(t, x.pack)
	s := a.Setup()
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	supplier := n.Supplier(code, "s1", x.company)
	sells := func(n *node, id string) { n.File(x.sale(t, supplier, id, "M-1"+id)) }
	arrives := func(many int) {
		n.Until("it has arrived", func() bool { return len(a.Registered(code)) == many })
	}
	sells(n, "a")
	arrives(1)
	restored := copier(t, url)()
	sells(n, "b")
	arrives(2)
	n.Stop()
	before := a.Registered(code)
	m := restore(t, restored, s).Start()
	complete(m)
	same(t, "state", restoredState(m, supplier), "unlisted")
	sells(m, "b")
	m.Until("the lane rests", func() bool {
		return one[int64](t, restored, "SELECT count(*) FROM lanes WHERE reason = 'held'") > 0
	})
	same(t, "what the authority holds", fmt.Sprint(a.Registered(code)), fmt.Sprint(before))
}
