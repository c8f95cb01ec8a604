package it

import (
	"slices"
	"strings"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// Types of documents that are named here.
const (
	tdInvoice = "TD01"
	tdCredit  = "TD04"
	tdDebit   = "TD05"
)

// side says where the company stands in a document.
type side int

const (
	selling side = iota
	buying       // it integrates or issues for a seller: the customer of the transaction is the seller
	alone        // it sells to itself
)

// docKind is a TipoDocumento that a client may ask for by reason.
type docKind struct {
	code  string
	side  side
	means string
}

func docKinds() []docKind {
	return []docKind{
		{"TD01", selling, "invoice"},
		{"TD02", selling, "advance on an invoice"},
		{"TD03", selling, "advance on a fee"},
		{"TD06", selling, "fee (parcella)"},
		{"TD16", buying, "integration of a domestic reverse-charge invoice"},
		{"TD17", buying, "integration or self-invoice for services from abroad"},
		{"TD18", buying, "integration for goods from the Union"},
		{"TD19", buying, "integration or self-invoice for goods of art. 17 c. 2"},
		{"TD20", buying, "self-invoice for an irregular or missing invoice"},
		{"TD21", alone, "self-invoice for exceeding the ceiling"},
		{"TD22", buying, "extraction of goods from a VAT warehouse"},
		{"TD23", buying, "extraction of goods from a VAT warehouse with payment of VAT"},
		{"TD24", selling, "deferred invoice (art. 21 c. 4 a)"},
		{"TD25", selling, "deferred invoice (art. 21 c. 4 b)"},
		{"TD26", selling, "sale of depreciable assets, internal transfers (art. 36)"},
		{"TD27", alone, "own consumption, or given away without recourse"},
		{"TD28", buying, "purchase from San Marino with VAT on paper"},
		{"TD29", buying, "report of a missing or irregular invoice to the authority"},
	}
}

func docKindOf(code string) (docKind, bool) {
	for _, k := range docKinds() {
		if k.code == code {
			return k, true
		}
	}
	return docKind{}, false
}

// saleReasons are those of a sale, and the only ones.
func saleReasons() []country.Meaning {
	var all []country.Meaning
	for _, k := range docKinds() {
		all = append(all, country.Meaning{Code: k.code, Meaning: k.means})
	}
	return all
}

// adjustReasons are of documents that are corrected by others of their own type.
func adjustReasons() []country.Meaning {
	all := []country.Meaning{{Code: tdCredit, Meaning: "credit note"}, {Code: tdDebit, Meaning: "debit note"}}
	for _, k := range docKinds() {
		if k.side != selling {
			all = append(all, country.Meaning{Code: k.code, Meaning: k.means})
		}
	}
	return all
}

// typed is what a document is and with which sign its amounts are written. A
// credit note has positive amounts; a correction of what the company issued as a
// buyer is the same type again with negative ones (guide of AdE to the
// electronic invoice, 1.9, TD16–TD23).
func typed(in *country.Draft) (kind docKind, sign int64) {
	t := &in.Transaction
	reason := strings.ToUpper(t.Reason)
	switch t.Kind {
	case transaction.Credit:
		if in.Original != nil {
			if k, known := docKindOf(strings.ToUpper(in.Original.Transaction.Reason)); known && k.side != selling {
				return k, -1
			}
		}
		return docKind{code: tdCredit}, 1
	case transaction.Adjustment:
		if k, known := docKindOf(reason); known && k.side != selling {
			return k, 1
		}
		if in.Totals.Gross < 0 {
			return docKind{code: tdCredit}, -1
		}
		return docKind{code: tdDebit}, 1
	}
	if k, known := docKindOf(reason); known {
		return k, 1
	}
	return docKind{code: tdInvoice}, 1
}

func among(list []country.Meaning, code string) bool {
	return slices.ContainsFunc(list, func(m country.Meaning) bool { return m.Code == code })
}
