package hu

import (
	"time"

	"tributary/internal/country"
)

// Sign is requestSignature of a call with pairs of operation and data.
func Sign(id string, at time.Time, key string, pairs ...[2]string) string {
	var batch []entry
	for _, p := range pairs {
		batch = append(batch, entry{p[0], p[1]})
	}
	return sign(id, at, key, batch)
}

var Opened = opened

// Bound sets the limits of a search after a lost answer.
func Bound(ch country.Channel, pages, transactions int) {
	ch.(*channel).bounds = bounds{pages: pages, transactions: transactions}
}

// UnitNames are the words for units, each with NAV's own.
var UnitNames = unitNames
