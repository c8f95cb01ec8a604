package nav

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/navwire"
	"tributary/internal/xmltree"
)

// arrival is one invoice of a report.
type arrival struct {
	operation string
	data      []byte
	hash      string
	number    string
	root      *xmltree.Element // nil: it is no XML
	flaws     []remark
}

// remark is a validation message.
type remark struct {
	Technical bool   `json:"technical,omitempty"`
	Severity  string `json:"severity"`
	Code      string `json:"code"`
	Text      string `json:"text"`
	Line      string `json:"line,omitempty"`
}

// report is what the book keeps of a transaction.
type report struct {
	Taxpayer string    `json:"taxpayer"`
	Login    string    `json:"login"`
	At       time.Time `json:"at"`
	Items    []item    `json:"items"`
	Annuls   bool      `json:"annuls,omitempty"` // a technical annulment
}

type item struct {
	Operation string    `json:"operation"`
	Number    string    `json:"number"`
	Hash      string    `json:"hash"`
	Status    string    `json:"status"`
	Remarks   []remark  `json:"remarks,omitempty"`
	Due       time.Time `json:"due,omitzero"`    // in work: when it is decided
	Asked     bool      `json:"asked,omitempty"` // in work: somebody has seen it so
}

// invoice is what the book keeps of a registered invoice.
type invoice struct {
	Taxpayer  string    `json:"taxpayer"`
	Operation string    `json:"operation"`
	Issued    string    `json:"issued"`
	Original  string    `json:"original,omitempty"`
	Index     int       `json:"index,omitempty"` // modificationIndex
	Category  string    `json:"category"`
	Supplier  string    `json:"supplier"`
	Report    string    `json:"report"`
	Position  int       `json:"position"`
	At        time.Time `json:"at"`
	Lines     int       `json:"lines"`
	Customer  [2]string `json:"customer,omitzero"` // the taxpayer's number, and the name
	Currency  string    `json:"currency"`
	Net       [2]string `json:"net"` // in the invoice's currency, in forints
	VAT       [2]string `json:"vat"`
}

// mayReport checks what every report has: indexes in their order and a token.
func (a *double) mayReport(c *call, ops []*xmltree.Element) bool {
	for i, op := range ops {
		if op.Value("index") != itoa(i+1) {
			return c.refuse(http.StatusBadRequest, navwire.IndexNotSequential, "Az indexek nem sorfolytonosak!")
		}
	}
	if !a.takeToken(c) {
		return c.refuse(http.StatusBadRequest, navwire.InvalidToken, "Érvénytelen adatszolgáltatási token!")
	}
	return true
}

// manageInvoice takes invoices: synchronously only the call is judged.
func (a *double) manageInvoice(c *call) {
	ops := c.root.At("invoiceOperations").All("invoiceOperation")
	if !a.mayReport(c, ops) {
		return
	}
	arrivals := make([]*arrival, len(ops))
	docs := make([]authority.Arrival, len(ops))
	for i, op := range ops {
		arrivals[i] = a.open(op)
		docs[i] = authority.Arrival{Supplier: c.taxpayer, Number: arrivals[i].number}
	}
	turn := a.desk.Turn(docs...)
	if !turn.Begin(c.w, c.busy) {
		return
	}
	var id string
	err := a.desk.Write(func(b *authority.Book) { id = a.take(b, c, arrivals, turn.Steps) })
	if err != nil {
		c.refuse(http.StatusInternalServerError, navwire.OperationFailed, "Sikertelen művelet!")
		return
	}
	if !turn.End(c.w, c.r) {
		return
	}
	if a.fails(arrivals) {
		c.refuse(http.StatusInternalServerError, navwire.OperationFailed, "Sikertelen művelet!")
		return
	}
	c.answer(func(w *xmltree.Writer) { w.Leaf("transactionId", id) })
}

// fails reports whether a number asks for OPERATION_FAILED, which it does once.
func (a *double) fails(arrivals []*arrival) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range arrivals {
		if strings.HasSuffix(x.number, "-OPFAILED") && !a.failed[x.number] {
			a.failed[x.number] = true
			return true
		}
	}
	return false
}

// open decodes an invoice. What it is worth is decided later.
func (a *double) open(op *xmltree.Element) *arrival {
	x := &arrival{operation: op.Value("invoiceOperation")}
	data, err := base64.StdEncoding.DecodeString(op.Value("invoiceData"))
	if err != nil {
		x.flaws = append(x.flaws, technical("Az invoiceData nem BASE64 kódolású."))
		return x
	}
	sum := sha256.Sum256(data)
	x.data, x.hash = data, hex.EncodeToString(sum[:])
	doc, err := xmltree.Limits{Bytes: navwire.BodyBytesMax}.Read(data)
	if err != nil {
		x.flaws = append(x.flaws, technical(err.Error()))
		return x
	}
	x.root, x.number = doc.Root, doc.Root.Value("invoiceNumber")
	return x
}

func technical(text string) remark {
	return remark{Technical: true, Severity: navwire.Error, Code: navwire.SchemaViolation, Text: clipped(text, 1000)}
}

// take enters a report in the book. It decides at once what nobody asked to be
// slow: a real NAV does so within seconds.
func (a *double) take(b *authority.Book, c *call, arrivals []*arrival, steps []authority.Step) string {
	now, id := a.now().UTC(), freeID(b, c.taxpayer)
	r := report{Taxpayer: c.taxpayer, Login: c.login, At: now}
	seen := map[string]int{}
	for _, x := range arrivals {
		seen[x.number]++
	}
	for i, x := range arrivals {
		b.Put(dataKey(id, i+1), base64.StdEncoding.EncodeToString(x.data))
		it := item{Operation: x.operation, Number: x.number, Hash: x.hash, Status: navwire.Processing}
		if x.number != "" && seen[x.number] > 1 {
			x.flaws = append(x.flaws, remark{Technical: true, Severity: navwire.Error, Code: navwire.DuplicateInRequest,
				Text: "A kérésben többször szerepel a számla."})
		}
		if steps[i].Outcome == authority.Suspend {
			it.Due = now.Add(steps[i].Delay)
		} else {
			a.decide(b, entrant{&it, place{id, i + 1, c.taxpayer, now}, x, steps[i]})
		}
		r.Items = append(r.Items, it)
	}
	keepReport(b, id, r)
	return id
}

// freeID is an id of a transaction that is not taken.
func freeID(b *authority.Book, taxpayer string) string {
	id := fmt.Sprintf("4%015X", b.Count()*1000+reportsOf(b, taxpayer)+1)
	for {
		if _, taken := b.Get("report/" + id); !taken {
			return id
		}
		id += "X"
	}
}

func keepReport(b *authority.Book, id string, r report) {
	b.Keep("report/"+id, r)
	count := reportsOf(b, r.Taxpayer) + 1
	b.Keep("reports/"+r.Taxpayer, count)
	b.Put(fmt.Sprintf("reported/%s/%d", r.Taxpayer, count), id)
}

func reportsOf(b *authority.Book, taxpayer string) int {
	var n int
	b.Load("reports/"+taxpayer, &n)
	return n
}

func dataKey(id string, index int) string { return "data/" + id + "/" + itoa(index) }

// place is where an invoice stands.
type place struct {
	report   string
	position int
	taxpayer string
	at       time.Time
}

// entrant is an invoice about which something is decided.
type entrant struct {
	it   *item
	at   place
	x    *arrival
	step authority.Step
}

// decide judges an invoice and registers it, in NAV's order: can it be read, does
// it obey the rules, is its number free; and only then what the script wants.
func (a *double) decide(b *authority.Book, e entrant) {
	it, at, x, step := e.it, e.at, e.x, e.step
	it.Due = time.Time{}
	remarks := x.flaws
	if len(remarks) == 0 {
		remarks = a.judge(b, at.taxpayer, x)
	}
	if step.Outcome == authority.Duplicate {
		a.plant(b, at, x, step)
	}
	if _, taken := b.FindKey(key(at.taxpayer, x.number)); taken && x.number != "" {
		remarks = append(remarks, remark{Severity: navwire.Error, Code: navwire.NumberNotUnique,
			Text: "A megadott számlasorszámmal már történt adatszolgáltatás."})
	}
	if original := x.root.Value("invoiceMain", "invoice", "invoiceReference",
		"originalInvoiceNumber"); original != "" && annulling(b, at.taxpayer, original) {
		remarks = append(remarks, inProgress())
	}
	if step.Outcome == authority.Reject {
		remarks = append(remarks, remark{Severity: navwire.Error, Code: navwire.InvalidVATData,
			Text: "A tesztforgatókönyv szerint elutasítva."})
	}
	if strings.HasSuffix(x.number, "-WARN") {
		remarks = append(remarks, remark{Severity: navwire.Warning, Code: "LINE_SUMMARY_GROSS_AMOUNT_MISMATCH",
			Text: "A tételek összege eltér az összesítőtől.", Line: "1"})
	}
	it.Remarks = remarks
	for _, m := range remarks {
		if m.Severity == navwire.Error {
			it.Status = navwire.Aborted
			return
		}
	}
	it.Status = navwire.Done
	a.register(b, at, x, x.hash)
}

func key(taxpayer, number string) string { return taxpayer + "\x00" + number }

// plant registers what a script says is already there: ours from a call before,
// or another's under the number.
func (a *double) plant(b *authority.Book, at place, x *arrival, step authority.Step) {
	if step.Of == authority.OfOurs {
		a.register(b, at, x, x.hash)
		return
	}
	other := []byte("another's\n" + x.number)
	sum := sha256.Sum256(other)
	at.report += "P"
	b.Put(dataKey(at.report, at.position), base64.StdEncoding.EncodeToString(other))
	a.register(b, at, x, hex.EncodeToString(sum[:]))
}

// readSums reads what lists show of the buyer and of the sums.
func (v *invoice) readSums(main *xmltree.Element) {
	head, sums := main.At("invoiceHead"), main.At("invoiceSummary", "summaryNormal")
	buyer := head.At("customerInfo")
	v.Customer = [2]string{buyer.Value("customerVatData", "customerTaxNumber", "taxpayerId"), buyer.Value("customerName")}
	v.Currency = head.Value("invoiceDetail", "currencyCode")
	v.Net = [2]string{sums.Value("invoiceNetAmount"), sums.Value("invoiceNetAmountHUF")}
	v.VAT = [2]string{sums.Value("invoiceVatAmount"), sums.Value("invoiceVatAmountHUF")}
}

func (a *double) register(b *authority.Book, at place, x *arrival, hash string) {
	main := x.root.At("invoiceMain", "invoice")
	v := invoice{
		Taxpayer: at.taxpayer, Operation: x.operation, Issued: x.root.Value("invoiceIssueDate"),
		Category: main.Value("invoiceHead", "invoiceDetail", "invoiceCategory"),
		Supplier: main.Value("invoiceHead", "supplierInfo", "supplierName"), Report: at.report, Position: at.position, At: at.at,
		Original: main.Value("invoiceReference", "originalInvoiceNumber"), Lines: len(main.At("invoiceLines").All("line")),
	}
	v.readSums(main)
	_, _ = fmt.Sscanf(main.Value("invoiceReference", "modificationIndex"), "%d", &v.Index) // none on an original
	if v.Original != "" {
		var chain []string
		b.Load("chain/"+key(at.taxpayer, v.Original), &chain)
		b.Keep("chain/"+key(at.taxpayer, v.Original), append(chain, x.number))
	}
	b.Keep("invoice/"+key(at.taxpayer, x.number), v)
	var day []string
	b.Load("day/"+key(at.taxpayer, v.Issued), &day)
	b.Keep("day/"+key(at.taxpayer, v.Issued), append(day, x.number))
	if hash == x.hash { // what a script plants is nobody's document
		sold(b, v, x.number)
	}
	b.Register(authority.Registration{Supplier: at.taxpayer, Number: x.number, SHA256: hash, AuthorityID: at.report,
		At: at.at, Key: key(at.taxpayer, x.number)})
}
