package it

import (
	"cmp"
	"slices"
	"strings"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
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
// electronic invoice, 1.9, TD16–TD23). The original says which it is; at submit,
// where it is not known, the reason.
func typed(in *country.Draft) (kind docKind, sign int64) {
	t := &in.Transaction
	reason := strings.ToUpper(t.Reason)
	if t.Kind == transaction.Adjustment || t.Kind == transaction.Credit {
		if in.Original != nil {
			reason = issuedAs(in.Original)
		}
		k, known := docKindOf(reason)
		switch lowers := t.Kind == transaction.Credit || in.Totals.Gross < 0; {
		case known && k.side != selling && t.Kind == transaction.Credit:
			return k, -1
		case known && k.side != selling:
			return k, 1
		case lowers && t.Kind == transaction.Adjustment:
			return docKind{code: tdCredit}, -1
		case lowers:
			return docKind{code: tdCredit}, 1
		}
		return docKind{code: tdDebit}, 1
	}
	if k, known := docKindOf(reason); known {
		return k, 1
	}
	return docKind{code: tdInvoice}, 1
}

// issuedAs is TipoDocumento of an original: what was filed, else what the client
// asked for.
func issuedAs(o *country.Original) string {
	if doc, err := xmltree.Read(o.Report); err == nil {
		if kind := doc.Root.Value("FatturaElettronicaBody", "DatiGenerali", "DatiGeneraliDocumento", "TipoDocumento"); kind != "" {
			return kind
		}
	}
	return strings.ToUpper(o.Transaction.Reason)
}

// mistyped refuses an adjustment whose reason is not what its original makes of
// it: with another type the parties would change places.
func mistyped(in *country.Draft) []fault.Fault {
	reason := strings.ToUpper(in.Transaction.Reason)
	if in.Transaction.Kind != transaction.Adjustment || reason == "" {
		return nil
	}
	if kind, _ := typed(in); kind.code != reason {
		return []fault.Fault{fault.At("reason", fault.ValidationMatchInvalid,
			"must be %s, or be left out: the original is %s, and a correction is of its original's kind",
			kind.code, cmp.Or(issuedAs(in.Original), tdInvoice))}
	}
	return nil
}

func among(list []country.Meaning, code string) bool {
	return slices.ContainsFunc(list, func(m country.Meaning) bool { return m.Code == code })
}
