package nav

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/navwire"
)

// sold enters a sale on the customer's side, where NAV knows the customer as a taxpayer.
func sold(b *authority.Book, v invoice, number string) {
	customer := v.Customer[0]
	if customer == "" {
		return
	}
	count := purchasesOf(b, customer) + 1
	b.Keep("purchases/"+customer, count)
	b.Put(fmt.Sprintf("purchase/%s/%d", customer, count), key(v.Taxpayer, number))
}

func purchasesOf(b *authority.Book, taxpayer string) int {
	var n int
	b.Load("purchases/"+taxpayer, &n)
	return n
}

// purchase is one of a taxpayer's; they are in the order of their processing.
func purchase(b *authority.Book, taxpayer string, n int) (x row) {
	of, _ := b.Get(fmt.Sprintf("purchase/%s/%d", taxpayer, n))
	_, x.number, _ = strings.Cut(of, "\x00")
	b.Load("invoice/"+of, &x.v)
	return x
}

// purchases are those of a taxpayer between two instants. NAV's times are of whole
// milliseconds, and both ends are within.
func purchases(b *authority.Book, taxpayer string, begin, end time.Time) (rows []row) {
	for n := purchasesOf(b, taxpayer); n > 0; n-- {
		x := purchase(b, taxpayer, n)
		at := x.v.At.Truncate(time.Millisecond)
		if at.Before(begin) {
			break
		}
		if !at.After(end) {
			rows = append(rows, x)
		}
	}
	slices.Reverse(rows)
	return rows
}

// purchaseOf is the one purchase of a taxpayer under a number, of a seller where one is named.
func purchaseOf(b *authority.Book, taxpayer, seller, number string) (v invoice, found bool, code string) {
	if seller != "" {
		found = b.Load("invoice/"+key(seller, number), &v) && v.Customer[0] == taxpayer
		return v, found, ""
	}
	for n := purchasesOf(b, taxpayer); n > 0; n-- {
		x := purchase(b, taxpayer, n)
		switch {
		case x.number != number:
		case found:
			return v, false, navwire.MultipleFound
		default:
			v, found = x.v, true
		}
	}
	return v, found, ""
}
