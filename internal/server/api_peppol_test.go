package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/country/packtest"
	"tributary/internal/country/world"
	"tributary/internal/doctor"
	"tributary/internal/endpoint"
	"tributary/internal/needs"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// belgian is a company whose invoices go over the network, and a sale of it.
func belgian(t *testing.T, c *caller, name, number string) func(id string, changes object) object {
	t.Helper()
	supplier, _ := c.onboard(t, object{
		"meta": object{"country_code": "BE", "language_code": "NL", "external_id": name}, "legal_name": "Voorbeeld " + name,
		"company_number": number,
		"address": object{"country_code": "BE", "city": "Brussel", "postal_code": "1000",
			"address_line_1": "Voorbeeldstraat 3"}, "tax_information": object{"tax_number": "BE" + number},
	})
	return func(id string, changes object) object {
		sale := object{
			"country_code": "BE", "currency_code": "EUR", "language_code": "NL", "transaction_date": "2026-11-15T10:00:00Z",
			"transaction_id": id, "transaction_number": id,
			"supplier": object{"id": supplier}, "order_reference": "PO-7",
			"customer": object{"legal_name": "Exemple SA", "type": "BUSINESS", "entity_number": "0202239951",
				"tax_information": object{"tax_number": "BE0202239951"},
				"address": object{"country_code": "BE", "city": "Liège", "postal_code": "4000",
					"address_line_1": "Rue de l'Exemple 1"}},
			"items": []any{object{"number": 1, "name": "Thee", "quantity": 3, "unit_price": 7570,
				"tax_breakdowns": []any{object{"rate": 21, "regime": "VAT"}}}},
		}
		for k, v := range changes {
			sale[k] = v
		}
		return sale
	}
}

// participant changes how somebody on the simulated network behaves.
func (p *program) participant(t *testing.T, who, habits string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.SimulatorsURL()+"/be/participants/"+who,
		strings.NewReader(habits))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusNoContent || answer.Body.Close() != nil {
		t.Fatalf("%v %v", answer, err)
	}
}

// delivered counts the documents under a number that reached a buyer.
func (p *program) delivered(t *testing.T, number string) (n int) {
	t.Helper()
	for _, held := range p.book(t, "BE") {
		if held.(object)["number"] == number {
			n++
		}
	}
	return n
}

// Between Belgian businesses an invoice goes to its buyer over the network, once,
// whatever gets lost on the way; what the access point said is attached.
func TestABelgianSaleGoesOverTheNetwork(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	sale := belgian(t, c, "sends", "0417497106")
	r := c.outcome(t, c.submit(t, "/v1/transactions", sale("BE-1", nil)))
	id, message := fmt.Sprint(r["tax_authority_id_1"]), fmt.Sprint(r["tax_authority_id_2"])
	if r["status"] != "SUCCESS" || len(r["errors"].([]any)) != 0 || len(id) != 36 || id[14] != '5' ||
		!strings.Contains(message, "@") || p.delivered(t, "BE-1") != 1 {
		t.Fatalf("%v %v %s %s, %d delivered", r["status"], r["errors"], id, message, p.delivered(t, "BE-1"))
	}
	kinds := map[string]int{}
	for _, a := range r["attachments"].([]any) {
		a := a.(object)
		kinds[fmt.Sprint(a["kind"], " ", a["type"])]++
		if a["kind"] == "RECEIPT" {
			said := c.want(t, 200, "GET", "/invoicing/v1/invoices/"+a["resource_id"].(string)+"/json", nil).json(t)
			if said["sbdhInstanceIdentifier"] != id || said["overallSuccess"] != true {
				t.Errorf("the receipt says %v", said)
			}
		}
	}
	if fmt.Sprint(kinds) != "map[RECEIPT JSON:1 REPORT XML:1 VISUAL PDF:1]" {
		t.Errorf("attachments %v", kinds)
	}
	document := c.report(t, r)
	d, unknown, err := en16931.Read(document)
	if err != nil || len(unknown) > 0 || d.Buyer.Electronic != (en16931.Identifier{ID: "0202239951", Scheme: "0208"}) {
		t.Errorf("%v %v %+v", err, unknown, d)
	}
	rules := needs.Schemas(t, "peppol-bis3", "xslt", "PEPPOL-EN16931-UBL.xslt")
	if v := packtest.Judge(t, []packtest.Trial{{Rules: rules, Document: document}})[0]; len(v.Errors) > 0 || v.Fired == 0 {
		t.Errorf("the official rules refuse it: %v", v.Texts)
	}

	if lost := c.outcome(t, c.submit(t, "/v1/transactions", sale("BE-2-LOST", nil))); lost["status"] != "SUCCESS" ||
		lost["tax_authority_id_2"] != nil || !strings.Contains(fmt.Sprint(lost["errors"]), "authority_id_unavailable") ||
		p.delivered(t, "BE-2-LOST") != 1 {
		t.Errorf("an answer that was lost: %v %v, %d delivered", lost["status"], lost["errors"], p.delivered(t, "BE-2-LOST"))
	}
	if no := c.outcome(t, c.submit(t, "/v1/transactions", sale("BE-3-REJECT", nil))); no["status"] != "FAILURE" ||
		p.delivered(t, "BE-3-REJECT") != 0 {
		t.Errorf("422 with words: %v %v", no["status"], no["errors"])
	}
	credit := c.outcome(t, c.submit(t, "/v1/transactions/credit",
		example(t, "credit", object{"country_code": "BE", "transaction_id": "BE-1-C", "transaction_number": "BE-1-C",
			"reference_transaction_id": "BE-1"})))
	if d, _, err := en16931.Read(c.report(t, credit)); credit["status"] != "SUCCESS" || err != nil ||
		d.TypeCode != "381" || p.delivered(t, "BE-1-C") != 1 {
		t.Errorf("credit: %v %v %v", credit["status"], credit["errors"], err)
	}
	// A consumer is on no network: paper alone, and nothing is asked of anybody.
	private := c.outcome(t, c.submit(t, "/v1/transactions",
		sale("BE-4", object{"customer": object{"legal_name": "Jan Peeters", "type": "INDIVIDUAL",
			"address": object{"country_code": "BE", "city": "Gent"}}})))
	if private["status"] != "SUCCESS" || private["tax_authority_id_1"] != nil || p.delivered(t, "BE-4") != 0 {
		t.Errorf("a consumer: %v %v %v", private["status"], private["errors"], private["tax_authority_id_1"])
	}
	// What the receiver's side says later is an entry of the life cycle.
	late := c.submit(t, "/v1/transactions", sale("BE-5-REFUSED", nil))
	if r := c.outcome(t, late); r["status"] != "SUCCESS" {
		t.Fatalf("%v %v", r["status"], r["errors"])
	}
	entry := c.lifecycle(t, late, 1)[0].(object)
	if entry["code"] != "RE" || entry["source"] != "ACCESS_POINT" || entry["severity"] != "PROBLEM" {
		t.Errorf("%v", entry)
	}
}

// A receiver that is not there ends the attempt with its reason; one whose
// register cannot be trusted, or whose name server fails, waits and says for whom
// and why, and holds up nobody else.
func TestAReceiverThatCannotBeReached(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	sale := belgian(t, c, "waits", "0838576480")
	to := func(number string) object {
		return object{"customer": object{"legal_name": "Exemple SA", "type": "BUSINESS", "entity_number": number,
			"tax_information":    object{"tax_number": "BE" + number},
			"electronic_address": object{"scheme": "0208", "id": number},
			"address": object{"country_code": "BE", "city": "Liège", "postal_code": "4000",
				"address_line_1": "Rue de l'Exemple 1"}}}
	}
	p.participant(t, "0208:0404616494", `{"unregistered":true}`)
	r := c.outcome(t, c.submit(t, "/v1/transactions", sale("W-1", to("0404616494"))))
	if r["status"] != "FAILURE" || !strings.Contains(fmt.Sprint(r["errors"]),
		"customer.electronic_address: the receiver is not registered on Peppol (0208:0404616494)") ||
		p.delivered(t, "W-1") != 0 {
		t.Errorf("not registered: %v %v", r["status"], r["errors"])
	}
	p.participant(t, "0208:0404616494", `{}`)
	if r = c.outcome(t, c.submit(t, "/v1/transactions", sale("W-1", to("0404616494")))); r["status"] != "SUCCESS" ||
		p.delivered(t, "W-1") != 1 {
		t.Errorf("registered since: %v %v", r["status"], r["errors"])
	}
	for habits, why := range map[string]string{`{"signature":"wrong"}`: "its register",
		`{"failing":true}`: "the registry's name servers"} {
		p.participant(t, "0208:0403053608", habits)
		number := fmt.Sprint("W-2-", len(habits))
		waiting := c.submit(t, "/v1/transactions", sale(number, to("0403053608")))
		if said := c.warned(t, waiting, "authority_error"); said["field"] != "customer.electronic_address" ||
			!strings.Contains(fmt.Sprint(said["message"]), "0208:0403053608: "+why) {
			t.Errorf("it waits without saying for whom: %v", said)
		}
		if r = c.outcome(t, c.submit(t, "/v1/transactions", sale(number+"-other", nil))); r["status"] != "SUCCESS" {
			t.Errorf("another receiver: %v %v", r["status"], r["errors"])
		}
		p.participant(t, "0208:0403053608", `{}`)
		if r = c.outcome(t, waiting); r["status"] != "SUCCESS" || len(r["errors"].([]any)) != 0 ||
			p.delivered(t, number) != 1 {
			t.Errorf("mended: %v %v", r["status"], r["errors"])
		}
	}
}

// Without an access point what must be sent waits and says so, and what need not
// be goes on; once the operator has set one, the rest goes on as well.
func TestWithoutAnAccessPointPaperGoesOn(t *testing.T) {
	t.Parallel()
	network := busy(t)
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	alone := packs[slices.IndexFunc(packs, func(p country.Pack) bool { return p.Code == "BE" })]
	alone.Simulator = nil
	url := "sqlite:" + t.TempDir() + "/own.db"
	p := demoAt(t, url, func(c *server.Config) { c.Packs = []country.Pack{alone} })
	c := p.as(demoKey)
	sale := belgian(t, c, "unset", "0457741515")
	number := fmt.Sprint("U-", time.Now().UnixNano()) // the network is everybody's
	waiting := c.submit(t, "/v1/transactions", sale(number, nil))
	c.warned(t, waiting, "authority_not_configured")
	private := c.outcome(t, c.submit(t, "/v1/transactions",
		sale("U-2", object{"customer": object{"legal_name": "Jan Peeters", "type": "INDIVIDUAL",
			"address": object{"country_code": "BE", "city": "Gent"}}})))
	if private["status"] != "SUCCESS" {
		t.Errorf("a consumer: %v %v", private["status"], private["errors"])
	}
	found, err := doctor.Examine(t.Context(),
		doctor.Options{Timeout: patience, Config: server.Config{API: true, Worker: true, Listen: "127.0.0.1:0",
			Database: url, MasterKey: "file:" + p.dir + "/master.key", Data: t.TempDir(), Packs: []country.Pack{alone}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if unset := strings.Contains(f.Found,
			"has no address"); unset && f.Subject != "BE.test" && slices.ContainsFunc(packs, func(p country.Pack) bool {
			return p.Chosen() && f.Subject == p.Code+".test"
		}) {
			t.Errorf("nobody sends there: %+v", f)
		}
	}
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Subject == "BE.test" && strings.Contains(f.Found, "has no address")
	}) {
		t.Errorf("the doctor does not miss the access point: %+v", found)
	}
	answer, err := http.Get(network.SimulatorsURL() + "/be/network")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said := map[string]string{}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		t.Fatal(err)
	}
	secrets := map[string]secret.Secret{"api_token": secret.FromText("the operator's")}
	for name, value := range said {
		secrets[name] = secret.FromText(value)
	}
	e, _ := p.besides(t, url)
	address := network.SimulatorsURL() + "/be"
	if _, err := e.Set(t.Context(), audit.Actor{Name: "test"}, country.Environment{Code: "BE"},
		endpoint.Change{URL: &address, Secrets: secrets}); err != nil {
		t.Fatal(err)
	}
	if r := c.outcome(t, waiting); r["status"] != "SUCCESS" || network.delivered(t, number) != 1 {
		t.Errorf("%v %v, %d delivered", r["status"], r["errors"], network.delivered(t, number))
	}
}

// warned waits until an operation that is not settled gives a reason, and answers it.
func (c *caller) warned(t *testing.T, operation, code string) object {
	t.Helper()
	for late := time.Now().Add(patience); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		r := c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation, nil).json(t)
		if r["status"] != "PROCESSING" {
			t.Fatalf("it has ended: %v %v", r["status"], r["errors"])
		}
		for _, e := range r["errors"].([]any) {
			if e := e.(object); e["code"] == code && e["type"] == "warning" {
				return e
			}
		}
	}
	t.Fatalf("%s never warned of %s", operation, code)
	return nil
}

// responds lets a buyer of the simulated network answer an invoice, and gives the
// status with which we took it.
func (p *program) responds(t *testing.T, instance string, answer object) int {
	t.Helper()
	answer["to"] = p.CallbacksURL() + "/authorities/be/test/inbound"
	if answer["token"] == nil {
		answer["token"] = "simulated"
	}
	body, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.Post(p.SimulatorsURL()+"/be/responses/"+instance, "application/json", strings.NewReader(string(body)))
	if err != nil || reply.Body.Close() != nil {
		t.Fatal(err)
	}
	return reply.StatusCode
}

// What a buyer answers (Invoice Response) is an entry of the life cycle of the
// invoice that it is about, once, with its reasons in words. Nobody but the
// access point is heard, and nobody but the buyer counts.
func TestInvoiceResponsesOfBuyersAreEntriesOfTheLifeCycle(t *testing.T) {
	t.Parallel()
	p := demoAt(t, "", func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
	c := p.as(demoKey)
	sale := belgian(t, c, "answered", "0417497106")
	operation := c.submit(t, "/v1/transactions", sale("IMR-1", nil))
	r := c.outcome(t, operation)
	if r["status"] != "SUCCESS" {
		t.Fatalf("%v %v", r["status"], r["errors"])
	}
	id := fmt.Sprint(r["tax_authority_id_1"])
	for what, wrong := range map[string]struct {
		answer object
		want   int
	}{
		"no token":              {object{"id": "A-0", "code": "AP", "token": ""}, http.StatusUnauthorized},
		"another token":         {object{"id": "A-0", "code": "AP", "token": "guessed"}, http.StatusForbidden},
		"no standing":           {object{"id": "A-0", "code": "ZZ"}, http.StatusBadRequest},
		"somebody else's words": {object{"id": "A-0", "code": "RE", "from": "0208:0404616494"}, http.StatusNoContent},
	} {
		if got := p.responds(t, id, wrong.answer); got != wrong.want {
			t.Errorf("%s: %d", what, got)
		}
	}
	query := object{"id": "A-1", "code": "UQ", "reason": "REF", "action": "PIN", "text": "PO number please"}
	for range 2 {
		if got := p.responds(t, id, query); got != http.StatusNoContent {
			t.Errorf("a question: %d", got)
		}
	}
	if got := p.responds(t, id, object{"id": "A-2", "code": "AP", "from": "9925:be0202239951"}); got != http.StatusNoContent {
		t.Errorf("accepted: %d", got)
	}
	said := map[string]object{}
	list := c.lifecycle(t, operation, 2)
	for _, one := range list {
		said[fmt.Sprint(one.(object)["code"])] = one.(object)
	}
	asks := said["IMR_UQ"]
	if len(list) != 2 || asks["source"] != "BUYER" || asks["severity"] != "WARNING" || asks["message"] !=
		"the buyer has questions and does not go on until they are answered; references are wrong (PO number please); the buyer wants information" {
		t.Errorf("%v", list)
	}
	if yes := said["IMR_AP"]; yes["source"] != "BUYER" || yes["severity"] != "INFO" || yes["name"] != "Accepted" {
		t.Errorf("%v", list)
	}
	p.settles(t, "SELECT count(*) FROM inbox_messages WHERE tries > 0 AND taken_at IS NULL", 1) // somebody else's words
}
