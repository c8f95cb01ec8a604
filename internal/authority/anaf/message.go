package anaf

import (
	"strings"
	"unicode/utf8"

	"tributary/internal/authority"
	"tributary/internal/xmltree"
)

// A buyer's message to the issuer of an invoice (RASP): one element that names the index of the invoice.
const (
	standardMessage = "RASP"
	spaceMessage    = "mfp:anaf:dgti:spv:reqMesaj:v1"
	messageMax      = 4000 // characters
)

// message reads one; cif of the call is the buyer's.
func (x *arrival) message(root *xmltree.Element) {
	index, text := root.Attr("index_incarcare"), root.Attr("message")
	x.about, x.number = index, standardMessage+" "+index
	switch {
	case !root.Is(spaceMessage, "header") || len(root.Children) > 0:
		x.flaws = append(x.flaws, "Structura fisierului nu corespunde cu standard=RASP (schema)")
	case index == "" || strings.Trim(index, "0123456789") != "":
		x.flaws = append(x.flaws, "E: index_incarcare nu este valid")
	case strings.TrimSpace(text) == "" || utf8.RuneCountInString(text) > messageMax:
		x.flaws = append(x.flaws, "E: mesajul este gol sau are prea multe caractere (schema)")
	}
	if x.about == "" {
		x.about = "?" // it is a message all the same
	}
}

// addressed is who hears a message: the issuer of the invoice, which must be one to the buyer that sends it.
func (x *arrival) addressed(b *authority.Book) string {
	if x.about == "" || len(x.flaws) > 0 {
		return ""
	}
	var of entry
	switch known := b.Load("entry/"+x.about, &of); {
	case !known || of.State != good || of.Buyer == "":
		x.flaws = append(x.flaws, "E: nu exista factura cu index_incarcare="+x.about)
	case of.Buyer != x.seller:
		x.flaws = append(x.flaws, "E: factura cu index_incarcare="+x.about+" nu are beneficiar cif="+x.seller)
	}
	return of.CIF
}
