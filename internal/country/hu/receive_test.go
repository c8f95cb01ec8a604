package hu_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/hu"
	"tributary/internal/transaction"
)

// buying is a look for what was sold to the buyer of every invoice here.
func (o *office) buying(ch country.Channel, cursor string, change ...func(*country.Inquiry)) (country.Fetched, error) {
	buyer := supplier()
	buyer.ID, buyer.TaxNumber = "b1", buyerNumber
	in := country.Inquiry{Channel: ch, Supplier: buyer, Credentials: credentials(), Cursor: cursor, Limit: country.DocumentsMax,
		From: day.AddDate(0, 0, -300)}
	for _, fn := range change {
		fn(&in)
	}
	return pack().Receive.Fetch.Look(o.t.Context(), in)
}

// bought looks until nothing more is known.
func (o *office) bought(cursor string, change ...func(*country.Inquiry)) (seen map[string]int, end string) {
	o.t.Helper()
	seen = map[string]int{}
	for looks, more := 1, true; more; looks++ {
		got, err := o.buying(o.channel, cursor, change...)
		if err != nil || looks > 200 || got.More && got.Cursor == cursor {
			o.t.Fatalf("look %d from %q to %q: %v", looks, cursor, got.Cursor, err)
		}
		for _, d := range got.Documents {
			seen[d.AuthorityID]++
			if _, err := hu.Read(d.Bytes); err != nil || d.Format != "XML" {
				o.t.Errorf("%s is %s: %v", d.AuthorityID, d.Format, err)
			}
		}
		cursor, more = got.Cursor, got.More
	}
	return seen, cursor
}

func (o *office) sells(name string, n int) {
	o.t.Helper()
	var all []country.Filing
	for i := range n {
		all = append(all, o.prepare(invoice(fmt.Sprintf("%s-%d", name, i))))
	}
	for batch := range slices.Chunk(all, 100) {
		receipts, err := o.channel.Send(o.t.Context(), batch, credentials())
		if err != nil {
			o.t.Fatal(err)
		}
		for i, r := range receipts {
			if r = o.decided(batch[i], r); r.Outcome != country.Accepted {
				o.t.Fatalf("%+v", r)
			}
		}
	}
}

// through is the way to NAV with answers that pass through a change.
func (o *office) through(change func([]byte) []byte) country.Channel {
	o.t.Helper()
	at, client := o.at, *o.at.HTTP
	client.Transport = changed{client.Transport, change}
	at.HTTP = &client
	ch, err := pack().Connect(at)
	if err != nil {
		o.t.Fatal(err)
	}
	return ch
}

func limit(n int) func(*country.Inquiry) { return func(in *country.Inquiry) { in.Limit = n } }

// recent is a look that one list answers.
func recent(in *country.Inquiry) { in.From = day }

func once(t *testing.T, seen map[string]int, n int) {
	t.Helper()
	if len(seen) != n {
		t.Errorf("%d of %d came", len(seen), n)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s came %d times", id, times)
		}
	}
}

// What others reported comes in looks of a few, each once on the way over pages and spans of a year, and again
// where a mark goes back; what the company sold itself does not come.
func TestWhatOthersReportedIsListedAndGot(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.sells("IN", 205)
	seen, mark := o.bought("", limit(7))
	once(t, seen, 205)
	whole, _ := o.bought("")
	once(t, whole, 205)
	for id := range whole {
		if seen[id] != 1 {
			t.Errorf("%s has two names", id)
		}
	}
	if m, err := country.ReadMark(mark); err != nil || time.Since(m.At) < time.Minute-time.Second || m.After != "" {
		t.Errorf("the mark at the end is %q: %v", mark, err)
	}
	other := invoice("IN-0") // of another seller, under the same number
	other.Supplier.TaxNumber = "12345676-2-42"
	o.settle(o.prepare(other))
	if again, _ := o.bought(mark); len(again) != 206 { // those of the last minute come again
		t.Errorf("%d came of the last minute", len(again))
	}
	own := func(in *country.Inquiry) { in.Supplier.TaxNumber = supplierNumber }
	if own, _ := o.bought("", own); len(own) != 0 {
		t.Errorf("the seller is brought %d invoices", len(own))
	}
	early := func(in *country.Inquiry) { in.From = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }
	if got, err := o.buying(o.channel, "", early); err != nil || !strings.HasPrefix(got.Cursor, "2018-07-01T00:00:00") || !got.More {
		t.Errorf("the first look begins at %q: %v", got.Cursor, err)
	}
	corrects := invoice("TAKEN-BACK")
	o.settle(o.prepare(corrects))
	o.settle(o.prepare(correct(transaction.Credit, draft("STORNO-1", homeBuyer(), corrects.Transaction.Items...), corrects)))
	if all, _ := o.bought(""); len(all) != 208 {
		t.Errorf("%d came with a storno", len(all))
	}
}

// What NAV shows later than it lists others comes with one of the next looks: the mark stays behind.
func TestWhatNAVListsLateComesAllTheSame(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.settle(o.prepare(invoice("IN-LAG")))
	o.sells("IN", 1)
	mark := ""
	for looks := 1; ; looks++ {
		seen, next := o.bought(mark)
		if len(seen) == 2 {
			break
		}
		if mark = next; looks == 5 {
			t.Fatalf("%v came", seen)
		}
	}
}

// An answer that lacks something brings nothing, and the same look is made again.
func TestAListThatLacksSomethingBringsNothing(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.sells("IN", 101) // two pages of the double's
	for name, pattern := range map[string]string{
		"pages": `<availablePage>[^<]*</availablePage>`, "the list": `<invoiceDigestResult>.*</invoiceDigestResult>`,
		"the time": `<insDate>[^<]*</insDate>`, "the seller": `<supplierTaxNumber>[^<]*</supplierTaxNumber>`,
		"the invoice": `<invoiceDataResult>.*</invoiceDataResult>`, "its data": `<invoiceData>.{9}`, "an answer": `.*`,
	} {
		lacking := regexp.MustCompile("(?s)" + pattern)
		ch := o.through(func(b []byte) []byte { return lacking.ReplaceAll(b, nil) })
		for range 2 {
			if got, err := o.buying(ch, "", recent, limit(200)); err == nil || len(got.Documents) > 0 || got.Cursor != "" {
				t.Errorf("without %s: %d documents, %q, %v", name, len(got.Documents), got.Cursor, err)
			}
		}
	}
	seen, _ := o.bought("")
	once(t, seen, 101)
	pages := regexp.MustCompile(`<availablePage>[^<]*<`)
	ch := o.through(func(b []byte) []byte { return pages.ReplaceAll(b, []byte("<availablePage>9<")) })
	hu.Bound(ch, 1, 1)
	if got, err := o.buying(ch, "", recent, limit(200)); err == nil {
		t.Errorf("a list without end brings %d documents", len(got.Documents))
	}
}

// What its sender has packed is unpacked; what is no package, or has no end, is no document.
func TestPackedInvoicesAreUnpacked(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.sells("IN", 1)
	data := regexp.MustCompile(`<invoiceData>([^<]*)<`)
	packing := func(repeat int) country.Channel {
		return o.through(func(b []byte) []byte {
			found := data.FindSubmatch(b)
			if found == nil {
				return b
			}
			text, err := base64.StdEncoding.DecodeString(string(found[1]))
			if err != nil {
				t.Error(err)
			}
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			for range max(repeat, 1) {
				if _, err := w.Write(text); err != nil {
					t.Error(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if repeat > 0 {
				text = packed.Bytes()
			}
			b = data.ReplaceAll(b, []byte("<invoiceData>"+base64.StdEncoding.EncodeToString(text)+"<"))
			return bytes.Replace(b, []byte("Indicator>false"), []byte("Indicator>true"), 1)
		})
	}
	got, err := o.buying(packing(1), "", recent)
	if err != nil || len(got.Documents) != 1 {
		t.Fatalf("%d documents, %v", len(got.Documents), err)
	}
	if d, err := hu.Read(got.Documents[0].Bytes); err != nil || d.Number != "IN-0" {
		t.Errorf("%+v %v", d, err)
	}
	size := len(got.Documents[0].Bytes)
	for repeat, fine := range map[int]bool{0: false, country.DocumentBytesMax / size: true, country.DocumentBytesMax/size + 1: false} {
		if got, err := o.buying(packing(repeat), "", recent); (err == nil) != fine || len(got.Documents) > 0 != fine {
			t.Errorf("%d times: %d documents, %v", repeat, len(got.Documents), err)
		}
	}
}

// Wrong credentials are a person's, an outage ends by itself; neither brings anything.
func TestLooksThatNAVRefusesSayWhy(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.sells("IN", 1)
	for name, change := range map[string]func(*country.Credentials){
		"password":    func(c *country.Credentials) { c.Secret = "wrong" },
		"signing key": func(c *country.Credentials) { c.Named = map[string]string{"signature_key": "x", "exchange_key": "y"} },
		"none":        func(c *country.Credentials) { *c = country.Credentials{} },
	} {
		got, err := o.buying(o.channel, "", func(in *country.Inquiry) { change(&in.Credentials) })
		if !errors.Is(err, country.ErrCredentials) || len(got.Documents) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	page := o.through(func([]byte) []byte { return []byte("<html>" + http.StatusText(http.StatusGatewayTimeout) + "</html>") })
	if got, err := o.buying(page, "", recent); err == nil || errors.Is(err, country.ErrCredentials) || got.Cursor != "" {
		t.Errorf("a page: %q %v", got.Cursor, err)
	}
}
