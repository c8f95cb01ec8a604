package server_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/country/identity"
	"tributary/internal/official/sdiwire"
	"tributary/internal/server"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// transmitter sends invoices by SdICoop, as any other channel than ours does, and hears what SdI says of them.
type transmitter struct {
	p        *program
	cert     string
	receiver *httptest.Server
	mu       sync.Mutex
	heard    []string // messages of SdI
}

func newTransmitter(t *testing.T, p *program) *transmitter {
	t.Helper()
	file, password, err := identity.Test("12345678903", "Trasmittente Srl", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := identity.NewKeeper().Open(identity.PKCS12{File: file, Password: password}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	x := &transmitter{p: p, cert: base64.StdEncoding.EncodeToString(pair.Leaf.Raw)}
	x.receiver = httptest.NewServer(http.HandlerFunc(x.hear))
	t.Cleanup(x.receiver.Close)
	return x
}

func (x *transmitter) hear(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	packed, err := sdiwire.Open(r.Header.Get("Content-Type"), body)
	if err != nil {
		return
	}
	call, err := soap.Read(packed.Envelope, xmltree.Limits{})
	if err != nil {
		return
	}
	if file, err := packed.File(call.Content.At("File")); err == nil {
		x.mu.Lock()
		x.heard = append(x.heard, string(file))
		x.mu.Unlock()
	}
}

func (x *transmitter) hears(text string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.Contains(strings.Join(x.heard, "\n"), text)
}

// sends hands an invoice to a buyer over; to a public body it is signed.
func (x *transmitter) sends(t *testing.T, name, number, code string) {
	t.Helper()
	text, err := os.ReadFile("../authority/sdi/testdata/fattura.xml")
	if err != nil {
		t.Fatal(err)
	}
	file := strings.NewReplacer("{numero}", number, "ABC1234", code, "07643520567", "00743110157", "BNCGNN80A41F205A", "00743110157").Replace(string(text))
	if len(code) == 6 {
		file = strings.NewReplacer("FPR12", "FPA12", "</p:FatturaElettronica>", signedBySomebody+"</p:FatturaElettronica>").Replace(file)
	}
	body := `<e:Envelope xmlns:e="` + soap.Space11 + `" xmlns:t="` + sdiwire.SpaceTypes + `"><e:Body><t:fileSdIAccoglienza><NomeFile>` + name +
		`</NomeFile><File>` + base64.StdEncoding.EncodeToString([]byte(file)) + `</File></t:fileSdIAccoglienza></e:Body></e:Envelope>`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.p.SimulatorsURL()+"/it"+sdiwire.Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "text/xml; charset=utf-8", "SOAPAction": `"` + sdiwire.ActionFile + `"`,
		sdiwire.HeaderCallback: x.receiver.URL, sdiwire.HeaderClient: ":" + x.cert + ":"} {
		r.Header.Set(name, value)
	}
	if a := exchange(t, r); a.status != http.StatusOK || !strings.Contains(string(a.body), "IdentificativoSdI") {
		t.Fatalf("%d %s", a.status, a.body)
	}
}

const signedBySomebody = `<ds:Signature xmlns:ds="` + sdiwire.SpaceSignature + `"><ds:SignedInfo><ds:CanonicalizationMethod Algorithm="a"/>` +
	`<ds:SignatureMethod Algorithm="a"/><ds:Reference><ds:DigestMethod Algorithm="a"/><ds:DigestValue>AA==</ds:DigestValue></ds:Reference>` +
	`</ds:SignedInfo><ds:SignatureValue>AA==</ds:SignatureValue></ds:Signature>`

// esiti are the answers that SdI holds about a file.
func (p *program) esiti(t *testing.T, file string) (n int) {
	t.Helper()
	for _, held := range p.book(t, "IT") {
		if invoice, ok := sdiwire.ParseAnswerName(held.(object)["number"].(string)); ok && invoice == file {
			n++
		}
	}
	return n
}

// answersAtOnce is a client that lost our replies: it gives one answer many times at once, and hears of one operation.
func (c *caller) answersAtOnce(t *testing.T, document string, body object) string {
	t.Helper()
	ids := make(chan string, 8)
	for range cap(ids) {
		go func() {
			defer func() { ids <- "" }()
			if a := c.do(t, "POST", "/v1/transactions/"+document+"/response", body); a.status == http.StatusAccepted {
				ids <- a.json(t)["operation_id"].(string)
			}
		}()
	}
	var all []string
	for ended := 0; ended < cap(ids); {
		if id := <-ids; id == "" {
			ended++
		} else {
			all = append(all, id)
		}
	}
	if slices.Sort(all); len(all) != cap(ids) || len(slices.Compact(all)) != 1 {
		t.Fatalf("the operations are %v", all)
	}
	return all[0]
}

// A public body answers an invoice through SdI: once, whatever gets lost on the way, and its seller hears it. A business has nothing to answer.
func TestAPublicBodyAnswersThroughSdI(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		p := demoAt(t, url, func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
		c, n, x := receives(t, p), italianNeighbours(), newTransmitter(t, p)
		n.onboard(t, c, "Comune", n.buyer, true)
		receive := func(name, number, code string) string {
			before := len(c.want(t, 200, "GET", "/v1/transactions?direction=RECEIVED&limit=100", nil).json(t)["data"].([]any))
			x.sends(t, name, number, code)
			op := c.awaitReceived(t, before+1)[0]
			if r := c.read(t, op); r["status"] != "SUCCESS" || r["tax_authority_id_2"] != name {
				t.Fatalf("%v %v %v", r["status"], r["tax_authority_id_2"], r["errors"])
			}
			return op
		}
		first := receive("IT12345678903_00001.xml", "PA-1", "UFABC1")
		for name, wrong := range map[string]struct {
			body object
			code string
		}{
			"nothing of the kind": {object{"status": "PAID"}, "unsupported_operation"},
			"a refusal in vain":   {object{"status": "REJECTED"}, "field_required"},
			"a code of others":    {object{"status": "ACCEPTED", "reason": "QTY"}, "validation_match_invalid"},
		} {
			if got := c.answers(t, 400, first, wrong.body); got.code(t) != wrong.code {
				t.Errorf("%s: %s", name, got.body)
			}
		}
		p.scripted(t, "it", `{"outcome":"drop_answer","times":1}`)
		refusal := object{"status": "REJECTED", "note": "manca il CIG"}
		id := c.answers(t, 202, first, refusal).json(t)["operation_id"].(string)
		r := c.outcome(t, id)
		if r["status"] != "SUCCESS" || r["kind"] != "RESPONSE" || !strings.Contains(fmt.Sprint(r["errors"]), "authority_remark") ||
			attachmentsOf(r)["REPORT/XML"] == nil || attachmentsOf(r)["RECEIPT/XML"] == nil {
			t.Fatalf("%v %v", r["status"], r["errors"])
		}
		if again := c.answers(t, 202, first, refusal).json(t)["operation_id"]; again != id || p.esiti(t, "IT12345678903_00001.xml") != 1 {
			t.Errorf("%v was sent again as %v, SdI holds %d", id, again, p.esiti(t, "IT12345678903_00001.xml"))
		}
		if got := c.answers(t, 409, first, object{"status": "ACCEPTED"}); got.code(t) != "conflict" {
			t.Errorf("%s", got.body)
		}
		eventually(t, "the seller hears it", func() bool { return x.hears("<Esito>EC02</Esito><Descrizione>manca il CIG<") })
		if one := c.lifecycle(t, first, 1)[0].(object); one["code"] != "REJECTED" || one["message"] != "manca il CIG" {
			t.Errorf("the document says %v", one)
		}

		second := receive("IT12345678903_00002.xml", "PA-2", "UFABC1")
		p.scripted(t, "it", `{"outcome":"unavailable","times":2}`)
		id = c.answersAtOnce(t, second, object{"status": "ACCEPTED"})
		if r := c.outcome(t, id); r["status"] != "SUCCESS" || p.esiti(t, "IT12345678903_00002.xml") != 1 {
			t.Errorf("after an outage: %v %v, SdI holds %d", r["status"], r["errors"], p.esiti(t, "IT12345678903_00002.xml"))
		}
		if again := c.answersAtOnce(t, second, object{"status": "ACCEPTED"}); again != id {
			t.Errorf("asked again it is %s, not %s", again, id)
		}
		if n := p.inbox.await(t, id, 1); len(n) != 1 {
			t.Errorf("%d events of one answer", len(n))
		}
		third := receive("IT12345678903_00003.xml", "PA-3", "UFABC1")
		p.scripted(t, "it", `{"outcome":"duplicate","times":1}`)
		if r := c.outcome(t, c.answers(t, 202, third, object{"status": "ACCEPTED"}).json(t)["operation_id"].(string)); r["status"] != "FAILURE" ||
			!strings.Contains(fmt.Sprint(r["errors"]), "EN01") {
			t.Errorf("answered elsewhere: %v %v", r["status"], r["errors"])
		}
		// What failed is no answer: another one may be given, which SdI decides.
		if r := c.outcome(t, c.answers(t, 202, third, object{"status": "REJECTED", "note": "CIG"}).json(t)["operation_id"].(string)); r["status"] != "FAILURE" {
			t.Errorf("another answer: %v %v", r["status"], r["errors"])
		}
		business := receive("IT12345678903_00004.xml", "B-1", "ABC1234")
		if got := c.answers(t, 400, business, object{"status": "ACCEPTED"}); got.code(t) != "unsupported_operation" {
			t.Errorf("%s", got.body)
		}
	})
}
