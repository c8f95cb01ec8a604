// Package series gives numbers: to transactions that come without one, from the
// client's own series, and to filings, where an authority wants a number that was
// never used at its endpoint.
//
// It owns number_series, series_counters, series_gaps, drawn_numbers and sequences. Whoever
// accepts or files draws in a write of their own.
package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/onboarding"
	"tributary/internal/transaction"
)

const (
	numberMax  = 50              // characters: as long as a transaction_number may be
	widthMax   = 12              // digits that {N:…} may ask for
	countMax   = 999_999_999_999 // the last number
	nextMax    = countMax        // with which a series may begin
	patternMax = numberMax       // bytes

	// Max is how many series one client has.
	Max = 1000
)

// Series gives numbers to transactions that come without one.
//
// Law: a number belongs to the transaction_id. It is drawn in the commit that
// accepts the first attempt and kept by all later ones, whatever becomes of
// them; the count has no gaps and no number is drawn twice. After a restored
// backup, and only then, numbers are left out: see leap.go.
//
// A FAILURE keeps its number: the document may have been printed, and the next
// attempt is the same document. A number of a transaction that is never submitted
// again is spent; no gaps in drawing is what can be promised. Years are those of
// the document's day where the supplier is, each with a counter of its own: a sale
// of 31 December that comes in January continues the old year.
//
// There is one series for a supplier, country and kind: choosing among several
// would need a member of the body that no client of this family of APIs sends.
// Corrections draw from a series of their own kind, a credit or cancellation from
// that of its original's supplier, and get the service's unique number where there
// is none.
type Series struct {
	ID         string           `json:"id"`
	SupplierID string           `json:"supplier_id"`
	Kind       transaction.Kind `json:"kind"`
	Country    string           `json:"country_code"`
	Pattern    string           `json:"pattern"`
	Next       int64            `json:"next"`
	Yearly     bool             `json:"yearly"`
	Gaps       []SeriesGap      `json:"gaps,omitempty"` // numbers that were left out
}

// Store keeps the series of all clients.
type Store struct {
	DB        *db.DB
	Atlas     *country.Atlas
	Companies *onboarding.Companies
}

var (
	countMark = regexp.MustCompile(`\{N:([0-9]{1,2})\}`)
	anyMark   = regexp.MustCompile(`\{[^}]*\}?|\}`)
)

// Create stores a series. Its fault is Invalid for a pattern that could
// give one number twice or one that the country refuses, NotFound for an unknown
// supplier, Conflict where the supplier has one for this kind and country, or one
// that could give the same numbers.
func (s Store) Create(ctx context.Context, scope string, in Series) (Series, error) {
	in.Kind = cmp.Or(in.Kind, transaction.Invoice)
	in.Next = cmp.Or(in.Next, 1)
	var supplier country.Supplier
	err := s.DB.Read(ctx, func(r db.Reader) (err error) {
		supplier, err = s.Companies.Supplier(r, scope, in.SupplierID)
		return err
	})
	if fault.KindOf(err) == fault.NotFound {
		return Series{}, invalidSeries(fault.At("supplier_id", fault.SupplierUnknown, "is not a company of this client"))
	}
	if err != nil {
		return Series{}, err
	}
	in.Country = strings.ToUpper(cmp.Or(in.Country, supplier.CountryCode))
	pack, known := s.Atlas.Pack(in.Country)
	if !known {
		return Series{}, invalidSeries(fault.At("country_code", fault.UnsupportedCountry, "is not a country of this service"))
	}
	if faults := in.check(pack.Facts); len(faults) > 0 {
		return Series{}, invalidSeries(faults...)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Series{}, fmt.Errorf("make the id of a series: %w", err)
	}
	in.ID = strings.ReplaceAll(id.String(), "-", "")
	now := s.DB.Wall()
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Lock("series " + scope); err != nil { // two at once: one finds the other
			return err
		}
		var there int64
		err := tx.Row("SELECT count(*) FROM number_series WHERE client_id = $1 AND (supplier_id = $2 AND country = $3 AND kind = $4 OR $5 <= (SELECT count(*) FROM number_series WHERE client_id = $1))",
			scope, in.SupplierID, in.Country, string(in.Kind), Max).Scan(&there)
		if err != nil {
			return err
		}
		if there > 0 {
			return fault.New(fault.Conflict,
				"the supplier has a series of this kind and country, or the client has %d series", Max).
				With(fault.Fault{Code: fault.CodeConflict, Type: fault.General, Message: "there is such a series already"})
		}
		if err := refuseOverlap(tx, scope, in); err != nil {
			return err
		}
		err = tx.Insert("number_series", "series_id,client_id,supplier_id,country,kind,pattern,yearly,created_at",
			[]any{in.ID, scope, in.SupplierID, in.Country, string(in.Kind), in.Pattern, in.Yearly, db.Micros(tx.Now())})
		if err != nil {
			return err
		}
		return tx.Insert("series_counters", "series_id,year,next,room,at",
			[]any{in.ID, in.year(now, s.Atlas.Zone(supplier.Address, pack)), in.Next, Burst, db.Micros(tx.Now())})
	})
	if err != nil {
		return Series{}, fmt.Errorf("store a series: %w", err)
	}
	return in, nil
}

func invalidSeries(faults ...fault.Fault) error {
	return fault.New(fault.Invalid, "the series is not valid").With(faults...)
}

// check finds what cannot become numbers.
func (in *Series) check(facts country.Facts) (found []fault.Fault) {
	refuse := func(field, format string, args ...any) {
		found = append(found, fault.At(field, fault.FieldNotValid, format, args...))
	}
	switch in.Kind {
	case transaction.Invoice, transaction.Adjustment, transaction.Credit, transaction.Cancellation:
	default:
		refuse("kind", "must be one of INVOICE, ADJUSTMENT, CREDIT, CANCELLATION")
	}
	if in.Next < 1 || in.Next > nextMax {
		refuse("next", "must be from 1 to %d", int64(nextMax))
	}
	years := strings.Contains(in.Pattern, "{YYYY}") || strings.Contains(in.Pattern, "{YY}")
	marks := countMark.FindAllStringSubmatch(in.Pattern, -1)
	rest := anyMark.FindAllString(strings.NewReplacer("{YYYY}", "", "{YY}",
		"").Replace(countMark.ReplaceAllString(in.Pattern, "")), -1)
	switch {
	case in.Pattern == "":
		found = append(found, fault.At("pattern", fault.FieldRequired, "must not be empty"))
	case len(in.Pattern) > patternMax || !utf8.ValidString(in.Pattern):
		refuse("pattern", "must be at most %d bytes of text", patternMax)
	case len(marks) != 1 || len(rest) > 0:
		refuse("pattern", "must have {N:width} once, and besides it {YYYY} and {YY} only, like F{YYYY}-{N:6}")
	case marks[0][1] == "0" || marks[0][1] == "00" || len(marks[0][1]) == 2 && marks[0][1] > fmt.Sprint(widthMax):
		refuse("pattern", "must have a width from 1 to %d in {N:width}", widthMax)
	case in.Yearly && !years:
		refuse("pattern", "must have {YYYY} or {YY} where the series counts by years: numbers would come twice")
	case fault.Printable(in.Pattern) != in.Pattern || strings.TrimSpace(in.Pattern) != in.Pattern:
		refuse("pattern", "must be of printable characters, without blanks at its ends")
	default:
		found = append(found, in.refusedBy(facts)...)
	}
	return found
}

// refusedBy tries the longest and the first number by the country's own rules.
func (in *Series) refusedBy(facts country.Facts) (found []fault.Fault) {
	for _, number := range []string{in.number(in.Next, 2026), in.number(countMax, 2026)} {
		if utf8.RuneCountInString(number) > numberMax {
			return []fault.Fault{fault.At("pattern", fault.FieldNotValid, "must not give numbers of more than %d characters",
				numberMax)}
		}
		for _, rule := range facts.Patterns {
			if rule.Field == "transaction_number" && !rule.Pattern.Match(number) {
				return []fault.Fault{fault.At("pattern", fault.FieldNotValid, "gives numbers that the country refuses: %s", rule.Reason)}
			}
		}
		for _, rule := range facts.MaxLengths {
			if rule.Field == "transaction_number" && utf8.RuneCountInString(number) > rule.Max {
				return []fault.Fault{fault.At("pattern", fault.FieldNotValid,
					"must not give numbers of more than %d characters in this country", rule.Max)}
			}
		}
	}
	return nil
}

// number writes a count as the pattern says; one that outgrows its width is longer.
func (in *Series) number(count, year int64) string {
	text := strings.NewReplacer("{YYYY}", fmt.Sprintf("%04d", year), "{YY}", fmt.Sprintf("%02d", year%100)).Replace(in.Pattern)
	return countMark.ReplaceAllStringFunc(text, func(mark string) string {
		return fmt.Sprintf("%0*d", width(mark), count)
	})
}

func width(mark string) (n int) {
	for _, digit := range countMark.FindStringSubmatch(mark)[1] {
		n = 10*n + int(digit-'0')
	}
	return n
}

// year is the one that a document's number counts in; 0: in none.
func (in *Series) year(at time.Time, zone *time.Location) int64 {
	if !in.Yearly {
		return 0
	}
	return int64(at.In(zone).Year())
}

// List lists a client's series behind one of them, oldest first, and where to go
// on; "" at the end. next is that of this year where the series counts by years.
func (s Store) List(ctx context.Context, scope, after string, limit int) (list []Series, next string, err error) {
	year := int64(s.DB.Wall().UTC().Year())
	err = s.DB.Read(ctx, func(r db.Reader) error {
		list, err = db.Collect(r, func(scan func(...any) error) (one Series, err error) {
			return one, scan(&one.ID, &one.SupplierID, &one.Kind, &one.Country, &one.Pattern, &one.Yearly, &one.Next)
		}, `SELECT s.series_id, s.supplier_id, s.kind, s.country, s.pattern, s.yearly, coalesce(c.next, 1) FROM number_series s
			LEFT JOIN series_counters c ON c.series_id = s.series_id AND c.year = CASE WHEN s.yearly THEN $2 ELSE 0 END
			WHERE s.client_id = $1 AND s.series_id > $3 ORDER BY s.series_id LIMIT $4`, scope, year, after, limit+1)
		if err != nil {
			return err
		}
		if next = ""; len(list) > limit {
			list, next = list[:limit], list[limit-1].ID
		}
		return withGaps(r, scope, list)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list series: %w", err)
	}
	return list, next, nil
}

// Draw is a series from which a submission gets its number, in a year.
type Draw struct {
	Series
	of   int64 // year of the document's day
	from int64 // year that is counted in
}

// For finds the series of a transaction without a number; nil: there is none.
func (s Store) For(r db.Reader, scope, code string, t *transaction.Transaction) (*Draw, error) {
	supplierID := t.SupplierID
	if t.Kind == transaction.Credit || t.Kind == transaction.Cancellation {
		err := r.Row(`SELECT supplier_id FROM operations WHERE client_id = $1 AND transaction_id = $2 AND supplier_id <> '' ORDER BY attempt DESC LIMIT 1`, scope, t.ReferenceID).Scan(&supplierID)
		if errors.Is(err, db.ErrNoRows) {
			return nil, nil // its original is not known: it will fail for that
		}
		if err != nil {
			return nil, err
		}
	}
	d := &Draw{Series: Series{SupplierID: supplierID, Kind: t.Kind, Country: code}}
	err := r.Row("SELECT series_id, pattern, yearly FROM number_series WHERE client_id = $1 AND supplier_id = $2 AND country = $3 AND kind = $4",
		scope, supplierID, code, string(t.Kind)).Scan(&d.ID, &d.Pattern, &d.Yearly)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a series: %w", err)
	}
	supplier, err := s.Companies.Supplier(r, scope, supplierID)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return nil, err
	}
	pack, _ := s.Atlas.Pack(code)
	zone := s.Atlas.Zone(supplier.Address, pack)
	d.of, d.from = int64(t.Date.In(zone).Year()), d.year(t.Date, zone)
	return d, nil
}
