package client

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// column is one column of the CSV form: where its value goes in the body.
type column struct {
	name    string
	path    []string // member names; from the item, the payment or the transaction
	part    part
	number  bool
	example string
}

// part is what a column speaks of.
type part uint8

const (
	ofTransaction part = iota // once per transaction
	ofItem                    // once per row
	ofTax                     // once per row and tax; path[0] is its index
	ofPayment                 // once per row that has one
)

// taxesMax is how many taxes a row can carry.
const taxesMax = 3

// csvColumns are the documented columns, in the order of the template. They
// follow the members of the request one to one: amounts are minor units and
// quantities have a decimal point, as in JSON.
func csvColumns() []column {
	text := func(name, example string, path ...string) column {
		return column{name: name, path: path, example: example}
	}
	columns := []column{
		text("transaction_id", "order-1001", "transaction_id"), text("country_code", "XX", "country_code"),
		text("language_code", "EN", "language_code"),
		text("currency_code", "EUR", "currency_code"), text("transaction_date", "2026-03-31T10:00:00Z", "transaction_date"),
		text("transaction_number", "INV-1001", "transaction_number"), text("supplier_id", "SUPPLIER_ID", "supplier", "id"),
		text("reference_transaction_id", "", "reference_transaction_id"), text("note", "", "note"), text("reason", "", "reason"),
		text("tax_authority_id_1", "", "tax_authority_id_1"),
		{name: "exchange_rate", path: []string{"exchange_rate"}, number: true},
		text("exchange_rate_date", "", "exchange_rate_date"),
	}
	for _, name := range []string{"due_date", "delivery_date", "payment_terms", "buyer_reference", "order_reference",
		"contract_reference", "project_reference"} {
		columns = append(columns, text(name, "", name))
	}
	columns = append(columns, partyColumns("customer", map[string]string{"legal_name": "Jane Doe", "type": "INDIVIDUAL"})...)
	columns = append(columns, text("customer_email", "", "customer", "email"), text("customer_phone", "", "customer", "phone"),
		text("customer_fiscal_code", "", "customer", "tax_information", "fiscal_code"),
		text("customer_use", "", "customer", "tax_information", "use"))
	columns = append(columns, partyColumns("issuer", nil)...)
	item := func(name, example string, number bool) column {
		return column{name: "item_" + name, path: []string{name}, part: ofItem, number: number, example: example}
	}
	columns = append(columns, item("number", "1", true), item("name", "Tea, 100 g", false),
		item("description", "", false), item("code", "", false), item("ean", "", false),
		item("quantity", "3", true), item("unit", "piece", false), item("unit_price", "7570", true), item("type", "GOODS", false),
		column{name: "item_discount_amount", path: []string{"discount", "amount"}, part: ofItem, number: true},
		column{name: "item_discount_rate", path: []string{"discount", "rate"}, part: ofItem, number: true})
	for n := range taxesMax {
		prefix := "tax_"
		if n > 0 {
			prefix = "tax_" + strconv.Itoa(n+1) + "_"
		}
		for _, m := range []string{"rate", "regime", "type", "code", "application_mode"} {
			c := column{name: prefix + m, path: []string{strconv.Itoa(n), m}, part: ofTax, number: m == "rate"}
			if n == 0 {
				c.example = map[string]string{"rate": "25", "regime": "VAT"}[m]
			}
			columns = append(columns, c)
		}
	}
	return append(columns,
		column{name: "payment_type", path: []string{"type"}, part: ofPayment, example: "CARD"},
		column{name: "payment_code", path: []string{"code"}, part: ofPayment},
		column{name: "payment_amount", path: []string{"amount"}, part: ofPayment, number: true, example: "22710"},
		column{name: "payment_iban", path: []string{"iban"}, part: ofPayment},
		column{name: "payment_reference", path: []string{"reference"}, part: ofPayment},
		column{name: "payment_date", path: []string{"date"}, part: ofPayment})
}

func partyColumns(party string, examples map[string]string) (columns []column) {
	add := func(name string, path ...string) {
		columns = append(columns, column{name: party + "_" + name, path: append([]string{party}, path...), example: examples[name]})
	}
	add("legal_name", "legal_name")
	add("trade_name", "trade_name")
	add("entity_number", "entity_number")
	add("type", "type")
	add("electronic_address_scheme", "electronic_address", "scheme")
	add("electronic_address_id", "electronic_address", "id")
	add("tax_number", "tax_information", "tax_number")
	add("tax_regime", "tax_information", "regime")
	for _, m := range []string{"country_code", "city", "postal_code", "address_line_1", "address_line_2", "province",
		"region", "state", "district", "canton",
		"city_code", "neighbourhood", "number", "prefix", "suffix"} {
		add("address_"+m, "address", m)
	}
	return columns
}

// Column is a column as the guide lists it.
type Column struct {
	Name    string
	Target  string // the member of the request it becomes
	Example string
}

// CSVColumns are the columns of the CSV form, in the order of the template.
func CSVColumns() (list []Column) {
	for _, c := range csvColumns() {
		target := strings.Join(c.path, ".")
		switch c.part {
		case ofItem:
			target = "items[]." + target
		case ofTax:
			target = "items[].tax_breakdowns[" + c.path[0] + "]." + c.path[1]
		case ofPayment:
			target = "payments[]." + target
		}
		if c.number {
			target += " (number)"
		}
		list = append(list, Column{c.name, target, c.example})
	}
	return list
}

// CSVTemplate is a file to begin with: all columns and one row.
func CSVTemplate() []byte {
	var header, example []string
	for _, c := range csvColumns() {
		header, example = append(header, c.name), append(example, c.example)
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	_ = w.Write(header)  // into memory
	_ = w.Write(example) // into memory
	w.Flush()
	return out.Bytes()
}

// csvGroup is the rows of one transaction.
type csvGroup struct {
	source string
	body   map[string]any
	items  []any
	paid   []any
	lines  []int // of the items
}

// readCSV takes one row per item; rows of one transaction share a transaction_id.
func (in *input) readCSV(path string, r io.Reader) error {
	buffered := bufio.NewReader(r)
	rows := csv.NewReader(buffered)
	rows.FieldsPerRecord = -1 // told by name below
	if first, _ := buffered.Peek(4096); semicolons(first) {
		rows.Comma = ';'
	}
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("is empty")
	} else if err != nil {
		return err
	}
	columns, err := matchColumns(header)
	if err != nil {
		return err
	}
	groups := map[string]*csvGroup{}
	var order []*csvGroup
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		line, _ := rows.FieldPos(0)
		source := fmt.Sprintf("%s:%d", path, line)
		if !slices.ContainsFunc(row, func(cell string) bool { return strings.TrimSpace(cell) != "" }) {
			continue
		}
		if len(row) != len(columns) {
			in.fault(source, "has %d cells, the header has %d", len(row), len(columns))
			continue
		}
		id := strings.TrimSpace(row[slices.IndexFunc(columns, func(c column) bool { return c.name == "transaction_id" })])
		if id == "" {
			in.fault(source, "has no transaction_id")
			continue
		}
		g := groups[id]
		if g == nil {
			g = &csvGroup{source: source, body: map[string]any{}}
			groups[id] = g
			order = append(order, g)
		}
		in.addRow(g, source, columns, row)
		for len(g.lines) < len(g.items) {
			g.lines = append(g.lines, line)
		}
	}
	for _, g := range order {
		in.add(g.source, g.json(), append([]int{}, g.lines...))
	}
	return nil
}

// semicolons reports whether a file was saved where the comma is a decimal sign.
func semicolons(start []byte) bool {
	header, _, _ := bytes.Cut(start, []byte("\n"))
	return bytes.Count(header, []byte(";")) > bytes.Count(header, []byte(","))
}

func matchColumns(header []string) ([]column, error) {
	known := map[string]column{}
	for _, c := range csvColumns() {
		known[c.name] = c
	}
	var columns []column
	var wrong []error
	seen := map[string]bool{}
	for _, cell := range header {
		name := strings.ToLower(strings.TrimSpace(cell))
		c, ok := known[name]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Errorf("unknown column %q; `tributary submit --csv-template` prints all columns", cell))
		case seen[name]:
			wrong = append(wrong, fmt.Errorf("column %q appears twice", cell))
		}
		seen[name] = true
		columns = append(columns, c)
	}
	if !seen["transaction_id"] {
		wrong = append(wrong, errors.New("column transaction_id is missing"))
	}
	return columns, errors.Join(wrong...)
}

// addRow puts the cells of one row where they belong.
func (in *input) addRow(g *csvGroup, source string, columns []column, row []string) {
	item, payment := map[string]any{}, map[string]any{}
	taxes := make([]map[string]any, taxesMax)
	for i, c := range columns {
		cell := strings.TrimSpace(row[i])
		if cell == "" {
			continue
		}
		value, err := cellValue(c, cell)
		if err != nil {
			in.fault(source, "column %s: %v", c.name, err)
			continue
		}
		switch c.part {
		case ofItem:
			place(item, c.path, value) // a row has each column once: nothing to contradict
		case ofPayment:
			payment[c.path[0]] = value
		case ofTax:
			n, _ := strconv.Atoi(c.path[0]) // written by csvColumns
			if taxes[n] == nil {
				taxes[n] = map[string]any{}
			}
			taxes[n][c.path[1]] = value
		default:
			if before, same := place(g.body, c.path, value); !same {
				in.fault(source, "column %s: %q contradicts %q of an earlier row of this transaction", c.name, cell, before)
			}
		}
	}
	var list []any
	for _, t := range taxes {
		if t != nil {
			list = append(list, t)
		}
	}
	if len(list) > 0 {
		item["tax_breakdowns"] = list
	}
	if len(item) > 0 {
		if item["number"] == nil {
			item["number"] = len(g.items) + 1
		}
		g.items = append(g.items, item)
	}
	if len(payment) > 0 {
		g.paid = append(g.paid, payment)
	}
}

// cellOf says where in a CSV file a member of the request stands; "" where no
// column is its own.
func cellOf(field string, lines []int) string {
	parts, line := strings.Split(field, "."), 0
	of, path := ofTransaction, field
	if n := index(parts, "items"); n >= 0 {
		if of, path = ofItem, strings.Join(parts[2:], "."); n < len(lines) {
			line = lines[n]
		}
		if k := index(parts[2:], "tax_breakdowns"); k >= 0 {
			of, path = ofTax, strconv.Itoa(k)+"."+strings.Join(parts[4:], ".")
		}
	} else if index(parts, "payments") >= 0 {
		of, path = ofPayment, strings.Join(parts[2:], ".")
	}
	for _, c := range csvColumns() {
		switch {
		case c.part != of || strings.Join(c.path, ".") != path:
		case line > 0:
			return fmt.Sprintf("line %d, column %s", line, c.name)
		default:
			return "column " + c.name
		}
	}
	return ""
}

// index is N of a path that begins with name.N and goes on; -1 of others.
func index(parts []string, name string) int {
	if len(parts) < 3 || parts[0] != name {
		return -1
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return -1
	}
	return n
}

// cellValue reads a cell. A number is passed on as it is written: nothing here
// rounds money.
func cellValue(c column, cell string) (any, error) {
	if !c.number {
		return cell, nil
	}
	number := json.Number(cell)
	if !json.Valid([]byte(cell)) || strings.Trim(cell, "+-.0123456789eE") != "" {
		return nil, fmt.Errorf("%q is not a number such as 3 or 0.5", cell)
	}
	return number, nil
}

// place sets a member of the transaction; false when an earlier row said otherwise.
func place(body map[string]any, path []string, value any) (before any, same bool) {
	for _, name := range path[:len(path)-1] {
		next, ok := body[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			body[name] = next
		}
		body = next
	}
	last := path[len(path)-1]
	if before, ok := body[last]; ok {
		return before, before == value
	}
	body[last] = value
	return nil, true
}

func (g *csvGroup) json() []byte {
	if len(g.items) > 0 {
		g.body["items"] = g.items
	}
	if len(g.paid) > 0 {
		g.body["payments"] = g.paid
	}
	text, _ := json.Marshal(g.body) // texts and checked numbers always encode
	return text
}
