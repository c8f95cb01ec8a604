package en16931

import (
	"fmt"

	"tributary/internal/incoming"
	"tributary/internal/xmltree"
)

// bytesMax is how large a document that is read may be; embedded files make
// most of it.
const bytesMax = 32 << 20

// Write writes the document in the syntax of its profile.
func Write(d *Invoice, p Profile) []byte {
	if p.CII {
		return WriteCII(d)
	}
	return WriteUBL(d)
}

// WriteUBL writes an Invoice or a CreditNote of UBL 2.1. Equal documents give
// equal bytes.
func WriteUBL(d *Invoice) []byte {
	root, space, parts := "Invoice", spaceInvoice, ublInvoice()
	if d.IsCreditNote() {
		root, space, parts = "CreditNote", spaceCreditNote, ublCreditNote()
	}
	if d.Payment.Creditor != "" {
		d = withCreditor(d)
	}
	w := newWriter(d)
	w.out = append(w.out, "<"+root+` xmlns="`+space+`" xmlns:cac="`+namespaces["cac"]+`" xmlns:cbc="`+namespaces["cbc"]+`">`...)
	writeAll(w, d, parts)
	return append(w.out, "</"+root+">\n"...)
}

// WriteCII writes a CrossIndustryInvoice.
func WriteCII(d *Invoice) []byte {
	w := newWriter(d)
	w.out = append(w.out, `<rsm:CrossIndustryInvoice xmlns:rsm="`+namespaces["rsm"]+`" xmlns:ram="`+namespaces["ram"]+
		`" xmlns:udt="`+namespaces["udt"]+`" xmlns:qdt="`+namespaces["qdt"]+`">`...)
	writeAll(w, d, ciiInvoice())
	return append(w.out, "</rsm:CrossIndustryInvoice>\n"...)
}

// newWriter begins a document with room for it: a line takes about 1.2 kB.
func newWriter(d *Invoice) *writer {
	w := &writer{out: make([]byte, 0, 6<<10+1300*len(d.Lines)), currency: d.Currency, taxCurrency: d.TaxCurrency}
	w.out = append(w.out, xmltree.Declaration...)
	return w
}

// sepa marks the creditor identifier among the identifiers of a party: UBL has
// no other place for BT-90.
const sepa = "SEPA"

func withCreditor(d *Invoice) *Invoice {
	own, creditor := *d, Identifier{ID: d.Payment.Creditor, Scheme: sepa}
	if d.Payee != nil {
		payee := *d.Payee
		payee.IDs = append(payee.IDs[:len(payee.IDs):len(payee.IDs)], creditor)
		own.Payee = &payee
		return &own
	}
	own.Seller.IDs = append(own.Seller.IDs[:len(own.Seller.IDs):len(own.Seller.IDs)], creditor)
	return &own
}

// Read reads a document of either syntax. It answers the model and what it did
// not understand: elements and attributes that are no terms of EN 16931, as
// paths. The error says why it is no invoice at all: not well-formed, too
// large, another root, an amount or a day that is none.
func Read(document []byte) (*Invoice, []string, error) {
	d, _, unknown, err := readWithin(xmltree.Limits{Bytes: bytesMax, Depth: 32, Instructions: true}, document)
	return d, unknown.List(), err
}

// readWithin reads a document and answers in which syntax it is.
func readWithin(limits xmltree.Limits, document []byte) (*Invoice, string, incoming.Unread, error) {
	tree, err := limits.Read(document)
	if err != nil {
		return nil, "", incoming.Unread{}, fmt.Errorf("reading an invoice: %w", err)
	}
	r := &reader{taken: map[*xmltree.Element]bool{}}
	d, syntax := &Invoice{}, incoming.UBL
	var parts []part[Invoice]
	switch root := tree.Root; {
	case root.Is(spaceInvoice, "Invoice"):
		parts = ublInvoice()
	case root.Is(spaceCreditNote, "CreditNote"):
		parts = ublCreditNote()
	case root.Is(namespaces["rsm"], "CrossIndustryInvoice"):
		parts, syntax = ciiInvoice(), incoming.CII
		r.currency = currencyOf(root)
	default:
		return nil, "", incoming.Unread{}, fmt.Errorf("%w: the root {%s}%s is neither UBL nor CII", errContent, root.Space, root.Local)
	}
	readAll(r, tree.Root, d, parts)
	if r.err != nil {
		return nil, "", incoming.Unread{}, r.err
	}
	r.leftovers(tree.Root)
	d.takeCreditor()
	return d, syntax, r.unknown, nil
}

// currencyOf looks ahead: in CII lines stand before the currency.
func currencyOf(root *xmltree.Element) string {
	return root.Value("SupplyChainTradeTransaction", "ApplicableHeaderTradeSettlement", "InvoiceCurrencyCode")
}

// takeCreditor brings the creditor identifier from the parties to the payment.
func (d *Invoice) takeCreditor() {
	for _, p := range []*Party{&d.Seller, d.Payee} {
		if p == nil {
			continue
		}
		for i, id := range p.IDs {
			if id.Scheme == sepa {
				d.Payment.Creditor = id.ID
				p.IDs = append(p.IDs[:i], p.IDs[i+1:]...)
				if len(p.IDs) == 0 {
					p.IDs = nil
				}
				break
			}
		}
	}
}
