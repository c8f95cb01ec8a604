package recovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
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
		if reads, ok := c.(country.LineReader); ok {
			return legible{prompt{c}, reads}, err
		}
		return prompt{c}, err
	}
	return examples{pack, credentialsOf(t, pack), time.Now().Add(-time.Minute)}
}

// opened are the credentials of examples, made once: their keys take longer than most tests.
var opened struct {
	sync.Mutex
	by map[string]country.Credentials
}

func credentialsOf(t *testing.T, pack country.Pack) country.Credentials {
	t.Helper()
	opened.Lock()
	defer opened.Unlock()
	if creds, known := opened.by[pack.Code]; known {
		return creds
	}
	creds, err := pack.Example.Open(time.Now())
	must(t, err)
	if opened.by == nil {
		opened.by = map[string]country.Credentials{}
	}
	opened.by[pack.Code] = creds
	return creds
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

// legible is one whose documents can be read.
type legible struct {
	prompt
	country.LineReader
}

// The countries' own packs and doubles: what is lost comes back under its number
// and registration, whoever gave the number, and a new sale gets its own.
func TestTheMatrixOfRestoresInCountries(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"ES", "HU", "MX", "PL", "RO"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			restoreExample(t, examplesOf(t, code))
		})
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

// restoreExample loses two sales, one with a number of the client and one with a
// number of a series.
func restoreExample(t *testing.T, x examples) {
	a := newAuthorities(t, x.pack)
	s := a.Setup()
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	supplier := n.Supplier(x.pack.Code, "s1", x.company)
	counts(t, n, series.Series{SupplierID: supplier, Pattern: "F-{N:4}"})
	both := func(n *node, id string) (numbers []string) {
		for of, number := range map[string]any{"m-": "M-1" + id, "f-": nil} {
			got := n.Settled(n.File(x.sale(t, supplier, of+id, number)))
			same(t, of+id, got.Status, filing.Success)
			numbers = append(numbers, of+*got.Number)
		}
		slices.Sort(numbers)
		return numbers
	}
	both(n, "a")
	restored := photographed(t, n.DB, url)
	lost := both(n, "b")
	n.Stop()
	before := a.Registered(x.pack.Code)

	m := restore(t, restored, s).Start()
	complete(m)
	resume(t, m, n, filing.Place{Scope: client, Code: x.pack.Code, SupplierID: supplier})
	if reason := holdOf(t, m, supplier); reason != "" {
		t.Fatalf("the supplier is %s: %s", reason,
			one[string](t, restored, "SELECT state || ' ' || trouble FROM restored_suppliers"))
	}
	same(t, "numbers", fmt.Sprint(both(m, "b")), fmt.Sprint(lost))
	same(t, "what the authority holds", fmt.Sprint(a.Registered(x.pack.Code)), fmt.Sprint(before))
	both(m, "c")
	once(t, a.Registered(x.pack.Code))
	same(t, "documents", len(a.Registered(x.pack.Code)), len(before)+2)
}

// What the authority holds under a number of the same day, with another sum or for
// another buyer, is another document: it is never adopted. Where it names a buyer and
// the sale has none, or the lines are others (HU, MX, PL and RO show them), a person looks.
func TestAnotherDocumentOfTheSameNumberAndDayIsNotAdopted(t *testing.T) {
	t.Parallel()
	for code, buyer := range map[string]string{
		"ES": "A28015865", "HU": "10773381-2-44", "MX": "XIA190128J61", "PL": "7740001454", "RO": "",
	} {
		for what, change := range map[string]func(paper){
			"sum": func(p paper) {
				line := p["items"].([]any)[0].(map[string]any)
				line["quantity"] = line["quantity"].(float64) + 1
			},
			"buyer": func(p paper) {
				p["customer"].(map[string]any)["tax_information"].(map[string]any)["tax_number"] = buyer
			},
			"nobody": func(p paper) { delete(p, "customer") },
			"lines": func(p paper) { // two pieces on a line of their own each
				line := p["items"].([]any)[0].(map[string]any)
				line["quantity"] = 1
				second := maps.Clone(line)
				second["number"] = 2
				if code == "PL" { // prices with tax: so the tax of the lines comes to the same
					line["unit_price"], second["unit_price"] = 20000, 4200
				}
				p["items"] = []any{line, second}
			},
		} {
			if code == "PL" && what == "nobody" {
				continue // every invoice names its buyer
			}
			if code == "RO" && what != "lines" || code == "ES" && what == "lines" {
				continue
			}
			t.Run(code+"/"+what, func(t *testing.T) {
				t.Parallel()
				submitOther(t, examplesOf(t, code), what == "nobody" || what == "lines", change)
			})
		}
	}
}

func submitOther(t *testing.T, x examples, held bool, change func(paper)) {
	a := newAuthorities(t, x.pack)
	s := a.Setup()
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	supplier := n.Supplier(x.pack.Code, "s1", x.company)
	restored := photographed(t, n.DB, url)
	same(t, "the lost one", n.Settled(n.File(x.sale(t, supplier, "b", "M-1b"))).Status, filing.Success)
	n.Stop()
	m := restore(t, restored, s).Start()
	complete(m)
	resume(t, m, n, filing.Place{Scope: client, Code: x.pack.Code, SupplierID: supplier})
	other := x.sale(t, supplier, "z", "M-1b")
	change(other)
	id := m.File(other)
	if held {
		m.Until("it waits for a person", func() bool {
			return m.Stage(id) == string(filing.Quarantined) || m.Show(id).Status != filing.Processing
		})
		same(t, "its stage", m.Stage(id), string(filing.Quarantined))
	} else {
		m.Fails(id, fault.AuthorityNumberUsed)
	}
	same(t, "documents", len(a.Registered(x.pack.Code)), 1)
	same(t, "the lost one comes again", m.Settled(m.File(x.sale(t, supplier, "b", "M-1b"))).Status, filing.Success)
	same(t, "documents", len(a.Registered(x.pack.Code)), 1)
}

// Corrections of countries: what the list says decides whether they are known again
// or a person has to look (held). A correction with a number of the client is known
// by that, one with a number of a series by its sums, a cancellation by what it corrects.
func TestTheMatrixOfRestoresOfCorrectionsInCountries(t *testing.T) {
	t.Parallel()
	for _, c := range []correctionCase{
		{code: "ES", kind: transaction.Credit}, {code: "ES", kind: transaction.Credit, numbered: true},
		{code: "ES", kind: transaction.Adjustment, reason: "R1"}, {code: "ES", kind: transaction.Cancellation},
		{code: "HU", kind: transaction.Credit}, {code: "HU", kind: transaction.Credit, numbered: true},
		{code: "HU", kind: transaction.Adjustment}, {code: "HU", kind: transaction.Adjustment, numbered: true},
		{code: "MX", kind: transaction.Credit, held: true}, {code: "MX", kind: transaction.Credit, numbered: true},
		{code: "MX", kind: transaction.Adjustment, reason: "01", held: true},
		{code: "MX", kind: transaction.Cancellation, reason: "02"},
		{code: "PL", kind: transaction.Credit, held: true}, {code: "PL", kind: transaction.Credit, numbered: true},
		{code: "PL", kind: transaction.Adjustment, reason: "2", held: true},
		{code: "PL", kind: transaction.Adjustment, reason: "2", numbered: true},
	} {
		t.Run(fmt.Sprintf("%s/%s/numbered=%v", c.code, c.kind, c.numbered), func(t *testing.T) {
			t.Parallel()
			c.restore(t)
		})
	}
}

type correctionCase struct {
	code     string
	kind     transaction.Kind
	reason   string
	numbered bool // by the client; otherwise by a series
	held     bool // the list does not say enough
}

// body is the correction of the example's sale.
func (c correctionCase) body(t *testing.T, x examples, supplier string) paper {
	p := paper{"country_code": c.code, "transaction_date": x.day.Format(time.RFC3339), "note": "returned"}
	if c.kind == transaction.Adjustment {
		p = x.sale(t, supplier, "x", nil)
		line := p["items"].([]any)[0].(map[string]any)
		line["quantity"], line["unit_price"] = 1, -line["unit_price"].(float64)
	}
	if c.reason != "" {
		p["reason"] = c.reason
	}
	if c.numbered {
		p["transaction_number"] = "M-x"
	}
	return p.With("transaction_id", "x").With("reference_transaction_id", "a")
}

func (c correctionCase) restore(t *testing.T) {
	x := examplesOf(t, c.code)
	a := newAuthorities(t, x.pack)
	s := a.Setup()
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	supplier := n.Supplier(c.code, "s1", x.company)
	for _, kind := range []transaction.Kind{transaction.Credit, transaction.Adjustment} {
		counts(t, n, series.Series{SupplierID: supplier, Pattern: string(kind[:1]) + "-{N:4}", Kind: kind})
	}
	n.Settled(n.File(x.sale(t, supplier, "a", "M-a")))
	restored := photographed(t, n.DB, url)
	lost := n.Settled(n.Hand(c.kind, c.body(t, x, supplier)))
	if lost.Status != filing.Success {
		t.Fatalf("the lost one: %+v", lost.Errors)
	}
	n.Stop()
	before := a.Registered(c.code)
	m := restore(t, restored, s).Start()
	complete(m)
	resume(t, m, n, filing.Place{Scope: client, Code: c.code, SupplierID: supplier})
	id := m.Hand(c.kind, c.body(t, x, supplier))
	m.Until("it has ended, or waits for a person", func() bool {
		return m.Stage(id) == string(filing.Quarantined) || m.Show(id).Status != filing.Processing
	})
	same(t, "held", m.Stage(id) == string(filing.Quarantined), c.held)
	if c.held {
		must(t, m.Decide(t.Context(), id, recovery.Word{Adopt: true}, nil))
	}
	again := m.Settled(id)
	if again.Status != filing.Success {
		t.Errorf("it comes again: %+v", again.Errors)
	}
	if c.kind != transaction.Cancellation {
		same(t, "its number", *again.Number, *lost.Number)
	}
	same(t, "what the authority holds", fmt.Sprint(a.Registered(c.code)), fmt.Sprint(before))
}

// resume lets a chain go on whose authority cannot say its head: a person gives the last link.
func resume(t *testing.T, m, n *node, at filing.Place) {
	t.Helper()
	if restoredState(m, at.SupplierID) != "chain" {
		return
	}
	_, err := m.ResumeChain(t.Context(), at, recovery.From{Head: headOf(t, n, at)}, nil)
	must(t, err)
}

// Where an authority has no list nothing goes out again before a person has looked;
// what they found is adopted one by one, and then the supplier is released. BE's
// network and IT's SdI have none; those of the others are taken away.
func TestTheMatrixOfRestoresInCountriesWithoutAList(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"BE", "FR", "IT", "HU", "MX", "PL"} {
		for _, drawn := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/series=%v", code, drawn), func(t *testing.T) {
				t.Parallel()
				restoreWithoutList(t, examplesOf(t, code), drawn)
			})
		}
	}
}

func restoreWithoutList(t *testing.T, x examples, drawn bool) {
	code := x.pack.Code
	a := newAuthorities(t, x.pack)
	s := withoutLists(a.Setup())
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	ear := listens(t, x.pack)
	n := ear.hears(newNode(t, dbtest.Open(t, db.Config{URL: url}), s)).Start()
	supplier := n.Supplier(code, "s1", x.company)
	number := func(id string) any { return "M-1" + id }
	if drawn {
		counts(t, n, series.Series{SupplierID: supplier, Pattern: "F-{N:4}"})
		number = func(string) any { return nil }
	}
	sells := func(n *node, id string) string { return n.File(x.sale(t, supplier, id, number(id))) }
	arrives := func(n *node, many int) {
		t.Helper()
		n.Until("it has arrived", func() bool { return len(a.Registered(code)) == many })
	}
	sells(n, "a")
	arrives(n, 1)
	restored := photographed(t, n.DB, url)
	lost := sells(n, "b")
	arrives(n, 2)
	n.Stop()
	before := a.Registered(code)
	m := ear.hears(restore(t, restored, s)).Start()
	complete(m)
	same(t, "state", restoredState(m, supplier), "unlisted")
	id := sells(m, "b")
	m.Until("the lane rests", func() bool {
		return one[int64](t, restored, "SELECT count(*) FROM lanes WHERE reason = 'held'") > 0
	})
	same(t, "what the authority holds", fmt.Sprint(a.Registered(code)), fmt.Sprint(before))

	had := one[string](t, n.DB, "SELECT number FROM operations WHERE operation_id = $1", lost)
	must(t, m.Decide(t.Context(), id, recovery.Word{Adopt: true, Number: had, ID: "A-7"}, nil))
	must(t, m.Recovery.Release(t.Context(), client, supplier, nil))
	got := m.Settled(id)
	if got.Status != filing.Success || *got.AuthorityID1 != "A-7" || *got.Number != had {
		t.Errorf("what a person found: %s %+v", got.Status, got.Errors)
	}
	sells(m, "c")
	arrives(m, 3)
	once(t, a.Registered(code))
}

// The word on one of a supplier's operations needs a supplier that is held, and a number.
func TestOnlyWhatIsHeldIsDecidedAbout(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	s := withoutLists(a.Setup())
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s)
	supplier := n.Supplier(byNumber, "s1")
	fresh := n.File(invoice(byNumber, supplier, "a"))
	if err := n.Decide(t.Context(), fresh, recovery.Word{Adopt: true, Number: "N-a"}, nil); fault.KindOf(err) != fault.Conflict {
		t.Errorf("without a restore: %v", err)
	}
	m := restore(t, photographed(t, n.DB, url), s).Start()
	complete(m)
	for want, id := range map[fault.Kind]string{fault.Invalid: fresh, fault.NotFound: "nobody"} {
		if err := m.Decide(t.Context(), id, recovery.Word{Adopt: true}, nil); fault.KindOf(err) != want {
			t.Errorf("adopt %s without a number: %v", id, err)
		}
	}
	must(t, m.Decide(t.Context(), fresh, recovery.Word{Adopt: true, Number: "N-b"}, nil))
	must(t, m.Decide(t.Context(), fresh, recovery.Word{}, nil)) // a mistake, taken back
	must(t, m.Recovery.Release(t.Context(), client, supplier, nil))
	m.Succeeds(fresh)
	same(t, "filed", fmt.Sprint(a.Registered(byNumber)), "[N-a]")
}

// A global invoice that the provider has is not made again, and what comes later
// goes into another one.
func TestTheMatrixOfRestoresOfGlobalInvoices(t *testing.T) {
	t.Parallel()
	x := examplesOf(t, "MX")
	a := newAuthorities(t, x.pack)
	s := a.Setup()
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	supplier := n.Supplier("MX", "s1", x.company, func(c *onboarding.NewCompany) {
		c.Settings = country.Settings{"global_invoice": string(country.Daily)}
	})
	sells := func(n *node, id string) string {
		p := x.sale(t, supplier, id, "M-"+id)
		delete(p, "customer")
		op := n.File(p)
		n.Succeeds(op, fault.ValueAssumed, fault.WaitsForPeriod)
		return op
	}
	first := sells(n, "t1")
	restored := photographed(t, n.DB, url)
	lost := sells(n, "t2")
	closePeriods(t, n.DB)
	want := told(n, lost)
	n.Stop()
	before := a.Registered("MX")

	m := restore(t, restored, s).Start()
	closePeriods(t, restored)
	complete(m)
	same(t, "the sale that the backup knew", told(m, first), want)
	again := sells(m, "t2")
	closePeriods(t, restored)
	same(t, "the sale that came again", told(m, again), want)
	same(t, "what the authority holds", fmt.Sprint(a.Registered("MX")), fmt.Sprint(before))
	late := sells(m, "t3")
	closePeriods(t, restored)
	if told(m, late) == want {
		t.Error("a sale that is not in the global invoice was told that it is")
	}
	once(t, a.Registered("MX"))
	same(t, "global invoices", len(a.Registered("MX")), 2)
}
