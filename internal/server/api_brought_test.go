package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/server"
	"tributary/internal/webhook"
)

// neighbours are two companies of one client of which one sells to the other, over the
// way by which a country's invoices go.
type neighbours struct {
	code           string
	company        func(name string) object // the two differ in name and number
	seller, buyer  string                   // tax numbers
	sale           object                   // but for supplier, ids and customer
	customer       object
	enveloped      bool // what comes is not byte for byte what was sent
	authorityIDOne bool // the seller's first id is the buyer's
}

func (n neighbours) onboard(t *testing.T, c *caller, name, number string, receives bool) string {
	t.Helper()
	body := n.company(number)
	body["meta"] = object{"country_code": n.code, "external_id": n.code + " " + name}
	body["legal_name"], body["tax_information"] = name, object{"tax_number": number}
	if receives {
		settings, _ := body["settings"].(object)
		if settings == nil {
			settings = object{}
		}
		settings["receive"] = object{"from": time.Now().UTC().AddDate(0, 0, -3).Format(time.DateOnly)}
		body["settings"] = settings
	}
	id, _ := c.onboard(t, body)
	return id
}

func polishNeighbours() neighbours {
	return neighbours{code: "PL", seller: "PL5250012343", buyer: "PL7010002062", authorityIDOne: true,
		company: func(number string) object {
			nip := strings.TrimPrefix(number, "PL")
			return object{"address": object{"country_code": "PL", "city": "Warszawa", "postal_code": "00-001", "address_line_1": "ul. Prosta 1"},
				"tax_credentials": object{"password": "20251006-EC-0123456789-ABCDEF0123-4A|nip-" + nip + "|" + strings.Repeat("ab", 32)}}
		},
		sale: object{"country_code": "PL", "currency_code": "PLN", "language_code": "PL",
			"items": []any{object{"number": 1, "name": "Krzesło", "quantity": 2, "unit_price": 12300,
				"tax_breakdowns": []any{object{"rate": 23, "regime": "VAT"}}}}},
		customer: object{"legal_name": "Kupujący", "type": "BUSINESS", "tax_information": object{"tax_number": "PL7010002062"},
			"address": object{"country_code": "PL", "city": "Kraków", "postal_code": "30-001", "address_line_1": "ul. Długa 2"}},
	}
}

// sells submits a sale of one to the other.
func (n neighbours) sells(t *testing.T, c *caller, seller, which string) (operation string) {
	t.Helper()
	sale := object{"transaction_id": "to a neighbour " + n.code + which, "transaction_number": "N/" + which + "/" + n.code,
		"transaction_date": time.Now().UTC().Format(time.RFC3339), "supplier": object{"id": seller}, "customer": n.customer}
	for name, value := range n.sale {
		sale[name] = value
	}
	return c.submit(t, "/v1/transactions", sale)
}

// awaitReceived waits for the documents that a company has received.
func (c *caller) awaitReceived(t *testing.T, n int) []string {
	t.Helper()
	for late := time.Now().Add(patience); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
		list := c.want(t, http.StatusOK, "GET", "/v1/transactions?direction=RECEIVED&limit=100", nil).json(t)["data"].([]any)
		if len(list) < n {
			continue
		}
		var ids []string
		for _, row := range list {
			ids = append(ids, row.(object)["operation_id"].(string))
		}
		return ids
	}
	t.Fatalf("%d received documents did not come", n)
	return nil
}

// sees reads both sides of a document that went from one company to the other.
func (n neighbours) sees(t *testing.T, p *program, c *caller) {
	t.Helper()
	seller, buyer := n.onboard(t, c, "Sprzedawca", n.seller, false), n.onboard(t, c, "Kupujący", n.buyer, true)
	before := len(c.want(t, http.StatusOK, "GET", "/v1/transactions?direction=RECEIVED&limit=100", nil).json(t)["data"].([]any))
	sent := n.sells(t, c, seller, "1")
	r := c.outcome(t, sent)
	if r["status"] != "SUCCESS" {
		t.Fatalf("sent: %v %v", r["status"], r["errors"])
	}
	op := c.awaitReceived(t, before+1)[0]
	got := c.read(t, op)
	if got["status"] != "SUCCESS" || got["direction"] != "RECEIVED" || got["total_amount"] != r["total_amount"] ||
		got["transaction_number"] != "N/1/"+n.code {
		t.Errorf("%v %v: %v of %v, %v", got["status"], got["direction"], got["total_amount"], r["total_amount"], got["errors"])
	}
	if n.authorityIDOne && got["tax_authority_id_1"] != r["tax_authority_id_1"] {
		t.Errorf("the buyer's id is %v, the seller's %v", got["tax_authority_id_1"], r["tax_authority_id_1"])
	}
	if from, to := got["supplier"].(object), got["customer"].(object); from["id"] != seller || to["id"] != buyer {
		t.Errorf("from %v to %v", from, to)
	}
	if n := p.inbox.await(t, op, 1)[0]; n.EventType != webhook.TransactionReceived {
		t.Errorf("the event is %s", n.EventType)
	}
	if want := fmt.Sprint([]any{object{"operation_id": sent, "direction": "SENT", "relation": "SAME_DOCUMENT"}}); fmt.Sprint(got["related"]) != want {
		t.Errorf("the buyer's side is related to %v", got["related"])
	}
	theirs := c.want(t, http.StatusOK, "GET", "/v1/transactions/"+sent, nil).json(t)
	if want := fmt.Sprint([]any{object{"operation_id": op, "direction": "RECEIVED", "relation": "SAME_DOCUMENT"}}); fmt.Sprint(theirs["related"]) != want {
		t.Errorf("the seller's side is related to %v", theirs["related"])
	}
	n.says(t, c, got, r)
	p.looksAgain(t, buyer)
	if list := c.awaitReceived(t, before+1); len(list) != before+1 {
		t.Errorf("%d documents were received", len(list)-before)
	}
}

// says compares what a received document says with what was sent.
func (n neighbours) says(t *testing.T, c *caller, got, sent object) {
	t.Helper()
	rate := n.sale["items"].([]any)[0].(object)["tax_breakdowns"].([]any)[0].(object)["rate"]
	row, _ := got["tax_summary"].([]any)[0].(object)
	if len(got["items"].([]any)) != 1 || len(got["tax_summary"].([]any)) != 1 || fmt.Sprint(row["rate"]) != fmt.Sprint(rate) ||
		row["base"] != sent["total_net_amount"] || row["amount"] != sent["total_tax_amount"] ||
		got["total_net_amount"] != sent["total_net_amount"] || got["total_tax_amount"] != sent["total_tax_amount"] {
		t.Errorf("the taxes are %v, %v of %v and %v of %v", got["tax_summary"], got["total_net_amount"], sent["total_net_amount"],
			got["total_tax_amount"], sent["total_tax_amount"])
	}
	if from := got["supplier"].(object); from["legal_name"] != "Sprzedawca" {
		t.Errorf("from %v", from)
	}
	file := attachmentsOf(got)["ORIGINAL/XML"]
	if file == nil {
		t.Fatalf("no original: %v", got["attachments"])
	}
	original := c.want(t, http.StatusOK, "GET", "/invoicing/v1/invoices/"+file["resource_id"].(string)+"/xml", nil).body
	if report := c.report(t, sent); string(original) != string(report) && !n.enveloped {
		t.Errorf("the original is %.200s", original)
	}
}

// looksAgain waits for another look for the documents of a company, where it is one that is asked for.
func (p *program) looksAgain(t *testing.T, company string) {
	t.Helper()
	looked := func() (at int64) {
		return p.count(t, "SELECT COALESCE(MAX(looked_at), 0) FROM inbox_mailboxes WHERE documents AND company_id = $1", company)
	}
	if before := looked(); before > 0 {
		eventually(t, "another look", func() bool { return looked() > before })
	}
}

func TestACompanyIsBroughtWhatAnotherSentOverKSeF(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		p := demoAt(t, url, func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
		polishNeighbours().sees(t, p, receives(t, p))
	})
}

func hungarianNeighbours() neighbours {
	return neighbours{code: "HU", seller: "12345676-2-42", buyer: "13774721-2-41",
		company: func(string) object {
			return object{"address": object{"country_code": "HU", "city": "Budapest", "postal_code": "1011", "address_line_1": "Fő utca 1."},
				"tax_credentials": object{"username": "peldauser123456", "password": "demo-password",
					"signature_key": "ce-8f5e-215119fa7dd621DLMRHRLH2S", "exchange_key": "7893DEMO21DLMR45"}}
		},
		sale: object{"country_code": "HU", "currency_code": "HUF", "language_code": "HU",
			"items": []any{object{"number": 1, "name": "Szék", "quantity": 2, "unit_price": 127000,
				"tax_breakdowns": []any{object{"rate": 27, "regime": "VAT"}}}}},
		customer: object{"legal_name": "Kupujący", "type": "BUSINESS", "tax_information": object{"tax_number": "13774721-2-41"},
			"address": object{"country_code": "HU", "city": "Pécs", "postal_code": "7621", "address_line_1": "Király utca 2."}},
	}
}

func TestACompanyIsBroughtWhatAnotherReportedToNAV(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		p := demoAt(t, url, func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
		hungarianNeighbours().sees(t, p, receives(t, p))
	})
}

func frenchNeighbours() neighbours {
	return neighbours{code: "FR", seller: "FR83404833048", buyer: "FR96552100554",
		company: func(number string) object {
			return object{"company_number": number[4:],
				"address": object{"country_code": "FR", "city": "Paris", "postal_code": "75001", "address_line_1": "1 rue de l'Exemple"}}
		},
		sale: object{"country_code": "FR", "currency_code": "EUR", "language_code": "FR",
			"items": []any{object{"number": 1, "name": "Chaise", "quantity": 2, "unit_price": 12000,
				"tax_breakdowns": []any{object{"rate": 20, "regime": "VAT"}}}}},
		customer: object{"legal_name": "Acheteur SAS", "type": "BUSINESS", "entity_number": "552100554",
			"tax_information": object{"tax_number": "FR96552100554"},
			"address":         object{"country_code": "FR", "city": "Lyon", "postal_code": "69001", "address_line_1": "2 place Bellecour"}},
	}
}

func TestACompanyIsBroughtWhatAnotherHandedToAPlatform(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		p := demoAt(t, url, func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
		frenchNeighbours().sees(t, p, receives(t, p))
	})
}

func italianNeighbours() neighbours {
	return neighbours{code: "IT", seller: "IT01234567897", buyer: "IT00743110157", authorityIDOne: true,
		company: func(string) object {
			return object{"address": object{"country_code": "IT", "city": "Roma", "postal_code": "00184", "address_line_1": "Via Roma 1"}}
		},
		sale: object{"country_code": "IT", "currency_code": "EUR", "language_code": "IT",
			"items": []any{object{"number": 1, "name": "Sedia", "quantity": 2, "unit_price": 12200,
				"tax_breakdowns": []any{object{"rate": 22, "regime": "VAT"}}}}},
		customer: object{"legal_name": "Kupujący", "type": "BUSINESS", "tax_information": object{"tax_number": "IT00743110157"},
			"address": object{"country_code": "IT", "city": "Milano", "postal_code": "20121", "address_line_1": "Via Dante 2"}},
	}
}

func TestACompanyIsBroughtWhatAnotherSentOverSdI(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		p := demoAt(t, url, func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
		italianNeighbours().sees(t, p, receives(t, p))
	})
}

func belgianNeighbours() neighbours {
	return neighbours{code: "BE", seller: "BE0428759497", buyer: "BE0403170701", authorityIDOne: true, enveloped: true,
		company: func(number string) object {
			return object{"company_number": strings.TrimPrefix(number, "BE"),
				"address": object{"country_code": "BE", "city": "Brussel", "postal_code": "1000", "address_line_1": "Voorbeeldstraat 3"}}
		},
		sale: object{"country_code": "BE", "currency_code": "EUR", "language_code": "NL",
			"items": []any{object{"number": 1, "name": "Stoel", "quantity": 2, "unit_price": 12100,
				"tax_breakdowns": []any{object{"rate": 21, "regime": "VAT"}}}}},
		customer: object{"legal_name": "Exemple SA", "type": "BUSINESS", "entity_number": "0403170701",
			"tax_information": object{"tax_number": "BE0403170701"},
			"address":         object{"country_code": "BE", "city": "Liège", "postal_code": "4000", "address_line_1": "Rue de l'Exemple 1"}},
	}
}

func TestACompanyIsBroughtWhatAnotherSentOverPeppol(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		p := demoAt(t, url, func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
		belgianNeighbours().sees(t, p, receives(t, p))
	})
}

// A company wants documents of a country that brings none, or says no day: it is told.
func TestReceivingIsRefusedWhereNobodyBringsDocuments(t *testing.T) {
	t.Parallel()
	c := busy(t).as(demoKey)
	body := example(t, "company", object{"settings": object{"receive": object{"from": "2026-01-01"}}})
	body["meta"].(object)["external_id"], body["meta"].(object)["country_code"] = "wants to receive", "ES"
	got := c.want(t, http.StatusBadRequest, "POST", "/onboarding/v2/companies", body)
	if !strings.Contains(string(got.body), "settings.receive") || !strings.Contains(string(got.body), "upload them") {
		t.Errorf("%s", got.body)
	}
}
