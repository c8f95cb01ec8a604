package xx

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/xxwire"
	"tributary/internal/transaction"
)

// Registered lists what the authority holds: see [country.Register].
func (ch *channel) Registered(ctx context.Context, s country.Supplier, day country.Day,
	c country.Credentials) ([]country.Entry, error) {
	supplier := supplierNumber(s)
	key := xxwire.SigningKey(supplier, c.Secret)
	var all []country.Entry
	for after := ""; ; {
		query := url.Values{"day": {day.String()}, "after": {after}}
		reply, err := ch.call(ctx, request{method: http.MethodGet, path: xxwire.PathList, query: query.Encode(),
			supplier: supplier}, c)
		if err != nil {
			return nil, fmt.Errorf("listing documents of %s: %w", day, err)
		}
		for line := range bytes.SplitSeq(bytes.TrimSuffix(reply.Body, []byte{'\n'}), []byte{'\n'}) {
			if len(line) == 0 {
				continue
			}
			r, err := xxwire.OpenReceipt(line, key)
			if err != nil {
				return nil, fmt.Errorf("listing documents of %s: %w", day, err)
			}
			all = append(all, entryOf(r, supplier, day.String()))
		}
		if after = reply.Header.Get(xxwire.HeaderNext); after == "" {
			return all, nil
		}
	}
}

// entryOf is a line of a list in the words of the contract. The second id and
// the code are what Prepare made of the same document.
func entryOf(r xxwire.Receipt, supplier, day string) country.Entry {
	at, _ := time.Parse(time.RFC3339, r.At) // absent is zero
	e := country.Entry{
		Number: r.Number, AuthorityID1: r.AuthorityID, AuthorityID2: r.SHA256, Cancelled: r.Cancelled, At: at,
		Kind: transaction.Kind(r.Kind), Reference: r.Reference, SHA256: r.SHA256, Gross: r.Gross, Sales: r.Sales,
	}
	if r.Gross != nil && len(r.SHA256) == hex.EncodedLen(sha256.Size) {
		e.QRCode = qrCode(document{Supplier: supplier, Number: r.Number, Day: day, Gross: *r.Gross, Currency: r.Currency}, r.SHA256)
	}
	return e
}

// Head asks where a supplier's chain stands: see [country.ChainKeeper].
func (ch *channel) Head(ctx context.Context, s country.Supplier, c country.Credentials) (country.Link, bool, error) {
	supplier := supplierNumber(s)
	reply, err := ch.call(ctx, request{method: http.MethodGet, path: xxwire.PathChain, supplier: supplier}, c)
	if err != nil {
		return country.Link{}, false, fmt.Errorf("asking for the head of the chain: %w", err)
	}
	r, err := xxwire.OpenReceipt(bytes.TrimSuffix(reply.Body, []byte{'\n'}), xxwire.SigningKey(supplier, c.Secret))
	if err != nil {
		return country.Link{}, false, fmt.Errorf("asking for the head of the chain: %w", err)
	}
	switch {
	case r.Outcome == xxwire.OutcomeAbsent:
		return country.Link{}, false, nil
	case r.Outcome == xxwire.OutcomeAccepted && r.Position > 0 && r.SHA256 != "":
		return country.Link{Position: r.Position, Hash: r.SHA256}, true, nil
	}
	return country.Link{}, false, fmt.Errorf("asking for the head of the chain: the answer is %q at position %d",
		r.Outcome, r.Position)
}
