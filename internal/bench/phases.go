package bench

import (
	"fmt"
	"net/url"
	"time"
)

const (
	// connections are as many as keep the server busy: each waits for the disk
	// most of the time.
	connections   = 256
	journeyCount  = 6000
	deliveryCount = 6000
)

// scale shortens everything for tests.
func (r *run) scale(n int) int {
	if r.cfg.Quick {
		return max(1, n/60)
	}
	return n
}

// lasting is a load for so many seconds. In tests it is so many requests: a
// moment may be too short for a single one where other tests run, too.
func (r *run) lasting(l load, seconds int) load {
	if r.cfg.Quick {
		l.total = connections
	} else {
		l.lasts = time.Duration(seconds) * time.Second
	}
	return l
}

// body is a typical sale of about one kilobyte.
func body(id, supplier string) []byte {
	return fmt.Appendf(nil,
		`{"country_code":"XX","language_code":"EN","currency_code":"EUR","transaction_date":"2026-03-31T10:00:00Z","transaction_number":"%[1]s","transaction_id":"%[1]s","supplier":{"id":"%[2]s"},"customer":{"legal_name":"Example Customer Limited","type":"BUSINESS","address":{"country_code":"XX","city":"Exampleton","postal_code":"12345","address_line_1":"17 Long Sample Street"},"tax_information":{"tax_number":"XX987654321","regime":"VAT"}},"items":[{"number":1,"name":"Darjeeling first flush, 100 g","quantity":3,"unit":"piece","unit_price":7570,"type":"GOODS","tax_breakdowns":[{"rate":25,"regime":"VAT"}]},{"number":2,"name":"Tea strainer, stainless steel","quantity":1,"unit":"piece","unit_price":1250,"type":"GOODS","tax_breakdowns":[{"rate":25,"regime":"VAT"}]},{"number":3,"name":"Delivery","quantity":1,"unit":"piece","unit_price":500,"type":"SERVICES","tax_breakdowns":[{"rate":25,"regime":"VAT"}]}],"payments":[{"type":"CARD","amount":24460}],"note":"Thank you for your order."}`, id, supplier)
}

func host(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return u.Host
}
