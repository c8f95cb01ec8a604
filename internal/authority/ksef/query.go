package ksef

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/ksefwire"
)

const (
	queryShownMax  = 10_000
	queryMonthsMax = ksefwire.QueryMonthsMax
)

// sum adds decimals exactly.
type sum struct{ total big.Rat }

func (s *sum) add(text string) {
	if value, ok := new(big.Rat).SetString(strings.TrimSpace(text)); ok {
		s.total.Add(&s.total, value)
	}
}

func (s *sum) String() string { return s.total.FloatString(2) }

func readNote(text string) summary {
	var s summary
	if text == "" {
		return s
	}
	authority.ReadNote(text, &s)
	return s
}

// filter is a query with its instants read.
type filter struct {
	ksefwire.MetadataRequest
	from, to     time.Time
	offset, size int
	newest       bool // first
}

// query serves POST /invoices/query/metadata. It knows the filters that a seller needs to
// find its own invoices, and a buyer those it was sent, and refuses the others.
func (k *listing) query(w http.ResponseWriter, r *http.Request) {
	k.access.asked(w, r, func(c claims) (any, bool) {
		var in ksefwire.MetadataRequest
		if !readJSON(w, r, &in) {
			return nil, false
		}
		f, err := k.readFilter(r, in)
		if err != nil {
			refuse(w, r, http.StatusBadRequest, invalidInput(err.Error()))
			return nil, false
		}
		mark := highWater(k.now(), f.to)
		out := k.page(f, k.matching(f, c.NIP))
		if f.DateRange.DateType == "PermanentStorage" {
			out.HighWater = &mark
		}
		return out, true
	})
}

func (k *listing) readFilter(r *http.Request, in ksefwire.MetadataRequest) (filter, error) {
	f := filter{MetadataRequest: in, size: 10}
	var err error
	if f.from, err = k.readInstant("dateRange.from", in.DateRange.From, time.Time{}); err != nil {
		return f, err
	}
	if f.to, err = k.readInstant("dateRange.to", in.DateRange.To, k.now()); err != nil {
		return f, err
	}
	switch in.DateRange.DateType {
	case "Issue", "Invoicing", "PermanentStorage":
	default:
		return f, fmt.Errorf("dateType %q", in.DateRange.DateType)
	}
	if f.from.IsZero() || f.to.Before(f.from) || f.to.After(f.from.AddDate(0, queryMonthsMax, 0)) {
		return f, fmt.Errorf("dateRange must be at most %d months long", queryMonthsMax)
	}
	switch in.SubjectType {
	case "Subject1", "Subject2", "Subject3", "SubjectAuthorized":
	default:
		return f, fmt.Errorf("subjectType %q", in.SubjectType)
	}
	q := r.URL.Query()
	if text := q.Get("pageSize"); text != "" {
		if f.size, err = strconv.Atoi(text); err != nil || f.size < 10 || f.size > 250 {
			return f, fmt.Errorf("pageSize %q", text)
		}
	}
	if text := q.Get("pageOffset"); text != "" {
		if f.offset, err = strconv.Atoi(text); err != nil || f.offset < 0 {
			return f, fmt.Errorf("pageOffset %q", text)
		}
	}
	switch text := q.Get("sortOrder"); text {
	case "", "Asc":
	case "Desc":
		f.newest = true
	default:
		return f, fmt.Errorf("sortOrder %q", text)
	}
	return f, nil
}

// readInstant reads an instant of a call; without an offset it is one of Warsaw,
// and a day alone begins at its midnight.
func (k *listing) readInstant(name, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, form := range []string{"2006-01-02T15:04:05.999999999", time.DateOnly} {
		if at, err := time.ParseInLocation(form, text, k.zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s: wartość %q nie jest datą w formacie ISO 8601 (RRRR-MM-DDTGG:MM:SS)", name, text)
}

// matching lists the registrations that a filter shows to a taxpayer.
func (k *listing) matching(f filter, nip string) []authority.Registration {
	sold, bought := f.SubjectType == "Subject1", f.SubjectType == "Subject2"
	if !sold && !bought || sold && f.SellerNIP != "" && f.SellerNIP != nip ||
		f.FormType != "" && f.FormType != ksefwire.FormValue {
		return nil
	}
	var found []authority.Registration
	if sold && f.InvoiceNumber != "" {
		k.desk.Read(func(b *authority.Book) {
			for _, kind := range []string{"VAT", "KOR", "ZAL", "ROZ", "UPR", "KOR_ZAL", "KOR_ROZ"} {
				if held, ok := b.FindKey(uniqueKey(nip, kind, f.InvoiceNumber)); ok {
					found = append(found, held)
				}
			}
		})
	} else if all, err := k.desk.Registrations(); err == nil {
		found = all
	}
	var shown []authority.Registration
	for _, held := range found {
		switch {
		case sold && held.Supplier != nip, bought && f.SellerNIP != "" && f.SellerNIP != held.Supplier,
			bought && f.InvoiceNumber != "" && f.InvoiceNumber != held.Number,
			f.KSeFNumber != "" && held.AuthorityID != f.KSeFNumber, f.DateRange.DateType == "PermanentStorage" && !f.within(held.At):
			continue
		}
		if about := readNote(held.Note); (!bought || about.Buyer.Type == "Nip" && about.Buyer.Value == nip) && k.shows(f, held, about) {
			shown = append(shown, held)
		}
	}
	if f.newest {
		slices.Reverse(shown)
	}
	return shown
}

func (f *filter) within(at time.Time) bool { return !at.Before(f.from) && !at.After(f.to) }

func (k *listing) shows(f filter, held authority.Registration, about summary) bool {
	if len(f.InvoiceTypes) > 0 {
		wanted := false
		for _, kind := range f.InvoiceTypes {
			wanted = wanted || strings.EqualFold(strings.ReplaceAll(about.Type, "_", ""), kind)
		}
		if !wanted {
			return false
		}
	}
	at := about.Sent
	switch f.DateRange.DateType {
	case "Issue":
		day, err := time.ParseInLocation(time.DateOnly, about.Issued, k.zone)
		if err != nil {
			return false
		}
		at = day
	case "PermanentStorage":
		at = held.At
	}
	return f.within(at)
}

// page cuts a list into pages; past 10,000 nothing is shown.
func (k *listing) page(f filter, all []authority.Registration) ksefwire.MetadataResponse {
	out := ksefwire.MetadataResponse{Invoices: []ksefwire.Metadata{}}
	start := f.offset * f.size
	end := min(start+f.size, len(all), queryShownMax)
	for i := start; i < end; i++ {
		out.Invoices = append(out.Invoices, metadataOf(all[i]))
	}
	out.HasMore = end < len(all) && start < len(all)
	out.Truncated = out.HasMore && end >= queryShownMax
	return out
}

func metadataOf(held authority.Registration) ksefwire.Metadata {
	about := readNote(held.Note)
	hash, _ := hex.DecodeString(held.SHA256)
	kind := ""
	for part := range strings.SplitSeq(about.Type, "_") {
		kind += part[:1] + strings.ToLower(part[1:])
	}
	return ksefwire.Metadata{
		KSeFNumber: held.AuthorityID, InvoiceNumber: held.Number, IssueDate: about.Issued,
		InvoicingDate: about.Sent, AcquisitionDate: held.At, StorageDate: held.At,
		Seller: ksefwire.PartyInfo{NIP: held.Supplier, Name: about.Seller},
		Buyer:  ksefwire.PartyInfo{Identifier: &about.Buyer, Name: about.BuyerIs},
		Net:    json.Number(about.Net), Gross: json.Number(about.Gross), VAT: json.Number(about.VAT), Currency: about.Currency,
		InvoicingMode: mode(about.Offline), InvoiceType: kind,
		FormCode: fa3(), SelfInvoicing: about.Self, Hash: hash,
	}
}
