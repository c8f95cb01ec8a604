package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/server"
	"tributary/internal/webhook"
)

func (c *caller) answers(t *testing.T, status int, document string, body object) answer {
	t.Helper()
	return c.want(t, status, "POST", "/v1/transactions/"+document+"/response", body)
}

// hears has the simulated network hand on to us what is sent to a participant.
func (p *program) hears(t *testing.T, participant string) {
	t.Helper()
	body, err := json.Marshal(object{"callback": p.CallbacksURL() + "/authorities/be/test/inbound"})
	if err != nil {
		t.Fatal(err)
	}
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.SimulatorsURL()+"/be/recipients/"+participant, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(ask)
	if err != nil || reply.StatusCode != http.StatusNoContent || reply.Body.Close() != nil {
		t.Fatalf("%v %v", reply, err)
	}
}

// One company invoices another, which is the demo's, over the network, and the buyer answers: each answer is an operation of its own, sent
// once and in order, and both sides have it in their life cycles.
func TestABuyerAnswersOverTheNetwork(t *testing.T) {
	t.Parallel()
	p := demoAt(t, "", func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
	c := receives(t, p)
	sent := c.submit(t, "/v1/transactions", belgian(t, c, "seller", "0417497106")("IMR-9", nil))
	document := c.upload(t, "application/xml", c.report(t, c.outcome(t, sent)))
	if r := c.read(t, document); r["status"] != "SUCCESS" {
		t.Fatalf("%v %v", r["status"], r["errors"])
	}
	for name, wrong := range map[string]struct {
		body   object
		status int
		code   string
	}{
		"no status":          {object{}, 400, "field_required"},
		"an unknown status":  {object{"status": "MAYBE"}, 400, "field_not_valid"},
		"an unknown reason":  {object{"status": "REJECTED", "reason": "WHY"}, 400, "field_not_valid"},
		"a refusal in vain":  {object{"status": "REJECTED"}, 400, "field_required"},
		"PPD of no payment":  {object{"status": "ACCEPTED", "reason": "PPD", "note": "half"}, 400, "validation_match_invalid"},
		"a note of a book":   {object{"status": "PAID", "note": strings.Repeat("x", 501)}, 400, "field_not_valid"},
		"a reason too long":  {object{"status": "PAID", "reason": strings.Repeat("X", 21)}, 400, "field_not_valid"},
		"as long as may be ": {object{"status": "PAID", "reason": strings.Repeat("X", 20)}, 400, "field_not_valid"},
	} {
		if got := c.answers(t, wrong.status, document, wrong.body); got.code(t) != wrong.code {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	c.answers(t, 404, sent, object{"status": "ACCEPTED"}) // what we sent, others answer

	p.hears(t, "0208:0417497106") // the seller's access point hands on to us as well
	ask := object{"status": "DISPUTED", "reason": "PRI", "note": "too much"}
	first := c.answers(t, 202, document, ask).json(t)["operation_id"].(string)
	second := c.answers(t, 202, document, object{"status": "ACCEPTED"}).json(t)["operation_id"].(string)
	third := c.answers(t, 202, document, object{"status": "PAID"}).json(t)["operation_id"].(string)
	instances := map[string]string{}
	for _, id := range []string{first, second, third} {
		r := c.outcome(t, id)
		if r["status"] != "SUCCESS" || r["kind"] != "RESPONSE" || r["response"].(object)["operation_id"] != document ||
			fmt.Sprint(r["related"]) != fmt.Sprint([]any{object{"operation_id": document, "direction": "RECEIVED", "relation": "ANSWERS"}}) {
			t.Fatalf("%v %v %v", r["status"], r["errors"], r["related"])
		}
		instances[id] = r["tax_authority_id_1"].(string)
		if attachmentsOf(r)["REPORT/XML"] == nil || attachmentsOf(r)["RECEIPT/JSON"] == nil || attachmentsOf(r)["VISUAL/PDF"] != nil {
			t.Errorf("its files are %v", r["attachments"])
		}
		if n := p.inbox.await(t, id, 1)[0]; n.EventType != webhook.TransactionCompleted {
			t.Errorf("the event is %s", n.EventType)
		}
		if p.delivered(t, instances[id]) != 1 {
			t.Errorf("%s was delivered %d times", id, p.delivered(t, instances[id]))
		}
	}
	if again := c.answers(t, 202, document, ask).json(t)["operation_id"]; again != first {
		t.Errorf("the same answer is %s and %s", first, again)
	}
	var order []string
	for _, held := range p.book(t, "BE") {
		for id, instance := range instances {
			if held.(object)["number"] == instance {
				order = append(order, id)
			}
		}
	}
	if fmt.Sprint(order) != fmt.Sprint([]string{first, second, third}) {
		t.Errorf("they went out as %v", order)
	}
	bothSidesHear(t, p, c, document, sent)
}

func bothSidesHear(t *testing.T, p *program, c *caller, document, sent string) {
	t.Helper()
	var said []string
	for _, one := range c.lifecycle(t, document, 3) {
		said = append(said, fmt.Sprint(one.(object)["code"], " ", one.(object)["source"], " ", one.(object)["message"]))
	}
	if want := "[DISPUTED BUYER PRI too much ACCEPTED BUYER  PAID BUYER ]"; fmt.Sprint(said) != want {
		t.Errorf("the buyer's document says %v", said)
	}
	r := c.want(t, 200, "GET", "/v1/transactions/"+document, nil).json(t)
	answered := 0
	for _, one := range r["related"].([]any) {
		if one.(object)["relation"] == "ANSWERED_BY" {
			answered++
		}
	}
	if got := p.inbox.await(t, document, 4); answered != 3 || got[len(got)-1].EventType != webhook.TransactionUpdated {
		t.Errorf("%d answers are related, the events are %v", answered, got)
	}
	var heard []string
	for _, one := range c.lifecycle(t, sent, 3) {
		heard = append(heard, fmt.Sprint(one.(object)["code"]))
	}
	for _, code := range []string{"IMR_UQ", "IMR_AP", "IMR_PD"} {
		if !strings.Contains(fmt.Sprint(heard), code) {
			t.Errorf("the seller hears %v", heard)
		}
	}
}

// What has no way back is refused at once: a network that the company or the document is not on, a country without a
// place for answers, a document that could not be read.
func TestWhatCannotBeAnsweredIsRefused(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := receives(t, p)
	seller := trader(t, c, "seller of no answers", "DE200000110")
	trader(t, c, "buyer of no answers", "DE200000128")
	_, document := sold(t, c, seller, "unanswered-1", "DE200000128")
	op := c.upload(t, "application/xml", document)
	if r := c.read(t, op); r["status"] != "SUCCESS" {
		t.Fatalf("%v", r["errors"])
	}
	if got := c.answers(t, 400, op, object{"status": "ACCEPTED"}); got.code(t) != "unsupported_operation" {
		t.Errorf("%s", got.body)
	}
	p.as(p.stranger).answers(t, 404, op, object{"status": "ACCEPTED"})
	broken := c.upload(t, "application/xml", []byte("<never read/>"))
	c.read(t, broken)
	if got := c.answers(t, 409, broken, object{"status": "ACCEPTED"}); got.code(t) != "conflict" {
		t.Errorf("%s", got.body)
	}
}

// An answer that is lost on the way goes once, whatever is lost, as a sale does.
func TestAnAnswerThatGetsLostGoesOnce(t *testing.T) {
	t.Parallel()
	p := demoAt(t, dbtest.MigratedURL(t), nil)
	c := receives(t, p)
	sent := c.submit(t, "/v1/transactions", belgian(t, c, "seller", "0417497106")("IMR-10", nil))
	document := c.upload(t, "application/xml", c.report(t, c.outcome(t, sent)))
	c.read(t, document)
	for _, step := range []string{"drop_answer", "unavailable", "duplicate"} {
		p.scripted(t, "be", `{"outcome":"`+step+`","times":1}`)
		id := c.answers(t, 202, document, object{"status": "DISPUTED", "reason": "REF", "note": step}).json(t)["operation_id"].(string)
		r := c.outcome(t, id)
		if step == "duplicate" {
			continue // another's document under our identifier is told as such
		}
		if r["status"] != "SUCCESS" || p.delivered(t, r["tax_authority_id_1"].(string)) != 1 {
			t.Errorf("%s: %v %v", step, r["status"], r["errors"])
		}
	}
	p.participant(t, "0208:0417497106", `{"documents":["Invoice-2::Invoice##x"]}`)
	refused := object{"status": "PAID"}
	id := c.answers(t, 202, document, refused).json(t)["operation_id"].(string)
	if r := c.outcome(t, id); r["status"] != "FAILURE" {
		t.Errorf("a seller that takes no answers: %v", r["status"])
	}
	p.participant(t, "0208:0417497106", `{}`)
	again := c.answers(t, 202, document, refused).json(t)["operation_id"].(string)
	if r := c.outcome(t, again); again == id || r["status"] != "SUCCESS" {
		t.Errorf("tried again: %v %v", r["status"], r["errors"])
	}
}

// In France an answer is a status that the buyer's platform brings to the seller's: both companies of ours see it.
func TestAFrenchBuyerAnswersThroughItsPlatform(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := receives(t, p)
	a := realAuthorities(t)["FR"]
	sale := p.abroad(t, a, "FR-ANSWERED")
	buyer := sale["customer"].(object)
	c.onboard(t, object{"meta": object{"country_code": "FR", "language_code": "FR", "external_id": "french buyer"}, "legal_name": buyer["legal_name"],
		"company_number": buyer["entity_number"], "tax_information": buyer["tax_information"], "address": buyer["address"],
		"tax_credentials": object{"client_id": "client", "client_secret": "secret"}})
	sent := c.submit(t, "/v1/transactions", sale)
	r := c.outcome(t, sent)
	a.checkSuccess(t, c, "FR", r)
	document := c.upload(t, "application/xml", c.report(t, r))
	if r := c.read(t, document); r["status"] != "SUCCESS" {
		t.Fatalf("%v %v", r["status"], r["errors"])
	}
	if got := c.answers(t, 400, document, object{"status": "REJECTED"}); got.code(t) != "field_required" {
		t.Errorf("%s", got.body)
	}
	id := c.answers(t, 202, document, object{"status": "DISPUTED", "reason": "TX_TVA_ERR", "note": "10 %"}).json(t)["operation_id"].(string)
	if r := c.outcome(t, id); r["status"] != "SUCCESS" || r["kind"] != "RESPONSE" || attachmentsOf(r)["REPORT/XML"] == nil {
		t.Fatalf("%v %v", r["status"], r["errors"])
	}
	if one := c.lifecycle(t, document, 1)[0].(object); one["code"] != "DISPUTED" || one["message"] != "TX_TVA_ERR 10 %" {
		t.Errorf("the buyer's document says %v", one)
	}
	eventually(t, "the seller hears it", func() bool {
		for _, one := range c.want(t, 200, "GET", "/v1/transactions/"+sent, nil).json(t)["lifecycle"].([]any) {
			if e := one.(object); e["code"] == "207" && e["source"] == "BUYER" && strings.Contains(fmt.Sprint(e["message"]), "TX_TVA_ERR: 10 %") {
				return true
			}
		}
		return false
	})
}

func romanianNeighbours() neighbours {
	at := func(city string) object {
		return object{"country_code": "RO", "province": "Cluj", "city": city, "postal_code": "400001", "address_line_1": "Strada Memorandumului 2"}
	}
	return neighbours{code: "RO", seller: "RO28645198", buyer: "RO14399840", authorityIDOne: true,
		company: func(string) object {
			return object{"company_number": "J40/1/2020", "address": at("Cluj-Napoca"), "tax_credentials": object{"refresh_token": "demo-refresh-token"}}
		},
		sale: object{"country_code": "RO", "currency_code": "RON", "language_code": "RO",
			"items": []any{object{"number": 1, "name": "Scaun", "quantity": 2, "unit_price": 12100,
				"tax_breakdowns": []any{object{"rate": 21, "regime": "VAT"}}}}},
		customer: object{"legal_name": "Kupujący", "type": "BUSINESS", "tax_information": object{"tax_number": "RO14399840"}, "address": at("Turda")},
	}
}

// In Romania an answer is a message to the issuer, once each, in order, whatever gets lost on the way.
func TestARomanianBuyerAnswersThroughANAF(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		p := demoAt(t, url, func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
		c := receives(t, p)
		romanianNeighbours().sees(t, p, c)
		document := c.awaitReceived(t, 1)[0]
		if got := c.answers(t, 400, document, object{"status": "REJECTED"}); got.code(t) != "field_required" {
			t.Errorf("%s", got.body)
		}
		var sent []string
		for _, step := range []struct{ script, status, note string }{
			{"drop_answer", "DISPUTED", "prea scump"}, {"unavailable", "ACCEPTED", ""}, {"pending", "PAID", ""},
		} {
			p.scripted(t, "ro", `{"outcome":"`+step.script+`","times":1}`)
			ask := object{"status": step.status, "note": step.note}
			id := c.answers(t, 202, document, ask).json(t)["operation_id"].(string)
			r := c.outcome(t, id)
			if r["status"] != "SUCCESS" || r["kind"] != "RESPONSE" || attachmentsOf(r)["REPORT/XML"] == nil || attachmentsOf(r)["RECEIPT/ZIP"] == nil {
				t.Fatalf("%s: %v %v", step.script, r["status"], r["errors"])
			}
			if again := c.answers(t, 202, document, ask).json(t)["operation_id"]; again != id {
				t.Errorf("the same answer is %s and %s", id, again)
			}
			sent = append(sent, r["tax_authority_id_1"].(string))
		}
		var held []string
		for _, one := range p.book(t, "RO") {
			if strings.HasPrefix(one.(object)["number"].(string), "RASP ") {
				held = append(held, one.(object)["authority_id"].(string))
			}
		}
		if fmt.Sprint(held) != fmt.Sprint(sent) {
			t.Errorf("ANAF holds %v, sent were %v", held, sent)
		}
		p.scripted(t, "ro", `{"outcome":"reject","times":1}`)
		refused := object{"status": "REJECTED", "note": "nu e a noastra"}
		id := c.answers(t, 202, document, refused).json(t)["operation_id"].(string)
		if r := c.outcome(t, id); r["status"] != "FAILURE" {
			t.Errorf("what ANAF refuses: %v", r["status"])
		}
		again := c.answers(t, 202, document, refused).json(t)["operation_id"].(string)
		if r := c.outcome(t, again); again == id || r["status"] != "SUCCESS" {
			t.Errorf("tried again: %v %v", r["status"], r["errors"])
		}
		if said := c.lifecycle(t, document, 4); len(said) != 4 {
			t.Errorf("the document says %v", said)
		}
	})
}
