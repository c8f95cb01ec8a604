package hu

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/navwire"
	"tributary/internal/xmltree"
)

// What others report of sales to a company NAV lists by when it has processed it
// (queryInvoiceDigest, INBOUND), and gives each by its seller and number
// (queryInvoiceData): to the buyer's technical user alone. The lists have what NAV still
// reads later than they should, by more than ten minutes in a slow hour.
const (
	lookEvery = 2 * time.Second  // at a double
	lookPause = 15 * time.Minute // at NAV itself
	lookAgain = 2 * time.Hour    // how late NAV may list what it has processed
	lookTwice = time.Minute      // the same of a double
	listLeast = time.Second
)

// reportedSince is the day on which reporting began (act CXXVII of 2007, annex 10):
// NAV has nothing older, and a list covers 35 days.
func reportedSince() time.Time { return time.Date(2018, time.July, 1, 0, 0, 0, 0, time.UTC) }

// look asks for what others have reported of sales to a company.
func look(ctx context.Context, in country.Inquiry) (country.Fetched, error) {
	ch, ours := in.Channel.(*channel)
	if !ours {
		return country.Fetched{}, fmt.Errorf("looking for received invoices: the channel is a %T", in.Channel)
	}
	n, _ := readNumber(in.Supplier.TaxNumber)
	u, err := ch.user(n.payer, in.Credentials)
	if err != nil {
		return country.Fetched{}, fmt.Errorf("looking for invoices to %s: %w", n.payer, err)
	}
	if oldest := reportedSince(); in.From.Before(oldest) {
		in.From = oldest
	}
	lists := country.Lists{Span: navwire.RangeMax - time.Minute, Least: listLeast, Again: lookTwice, List: u.bought, Get: u.purchase}
	if ch.at.Real() {
		lists.Again, lists.Pause = lookAgain, lookPause
	}
	got, err := lists.Look(ctx, in, ch.now())
	if err != nil {
		return country.Fetched{}, fmt.Errorf("looking for invoices to %s: %w", n.payer, err)
	}
	return got, nil
}

// bought lists what was reported of sales to the taxpayer.
func (u user) bought(ctx context.Context, from, to time.Time, most int) (list []country.Listed, more bool, err error) {
	for page := 1; page <= u.ch.bounds.pages; page++ {
		digests, last, err := u.digests(ctx, page, navwire.Inbound, "insDate", "dateTimeFrom", from.UTC().Format(navwire.TimeLayout),
			"dateTimeTo", to.UTC().Format(navwire.TimeLayout))
		if err != nil {
			return nil, false, err
		}
		for _, d := range digests {
			l, err := listed(d)
			if err != nil {
				return nil, false, err
			}
			list = append(list, l)
		}
		switch {
		case most > 0 && len(list) > most:
			return list, true, nil
		case last:
			return list, false, nil
		}
	}
	return nil, false, fmt.Errorf("NAV's list has more than %d pages between %s and %s", u.ch.bounds.pages, from, to)
}

// listed is an entry of NAV's list. Its name is that of the report, because the number of
// an invoice is its seller's and may be used again once its report was annulled; what a
// person typed into NAV's own pages has no transaction.
func listed(d *xmltree.Element) (l country.Listed, err error) {
	number, seller, part := d.Value("invoiceNumber"), d.Value("supplierTaxNumber"), d.Value("batchIndex")
	if l.At, err = time.Parse(time.RFC3339, d.Value("insDate")); err != nil || number == "" || seller == "" {
		return l, fmt.Errorf("NAV lists %q of %q at %q, which names no invoice", number, seller, d.Value("insDate"))
	}
	l.Name = seller + "/" + number + "/" + d.Value("insDate")
	if id := d.Value("transactionId"); id != "" {
		l.Name = id + "/" + cmp.Or(d.Value("index"), "1")
	}
	if part != "" {
		l.Name += "/" + part
	}
	l.Of = strings.Join([]string{seller, part, number}, "/")
	return l, nil
}

// purchase gets the data of a listed invoice.
func (u user) purchase(ctx context.Context, l country.Listed) (country.Document, error) {
	part := strings.SplitN(l.Of, "/", 3)
	result, _, err := u.invoice(ctx, "invoiceNumber", part[2], "invoiceDirection", navwire.Inbound, "?batchIndex", part[1],
		"supplierTaxNumber", part[0])
	if err == nil && result == nil {
		err = errors.New("NAV lists it and does not show it")
	}
	if err != nil {
		return country.Document{}, err
	}
	data, err := dataOf(result)
	return country.Document{Format: "XML", Bytes: data}, err
}

// dataOf is the InvoiceData of an answer, unpacked where its sender has packed it.
func dataOf(result *xmltree.Element) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(result.Value("invoiceData")))
	if err != nil || result.Value("compressedContentIndicator") != "true" {
		return data, err
	}
	packed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpacking the invoice: %w", err)
	}
	data, err = io.ReadAll(io.LimitReader(packed, country.DocumentBytesMax+1))
	if err == nil && len(data) > country.DocumentBytesMax {
		err = fmt.Errorf("it has more than %d bytes", country.DocumentBytesMax)
	}
	if err != nil {
		return nil, fmt.Errorf("unpacking the invoice: %w", err)
	}
	return data, nil
}
