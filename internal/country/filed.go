package country

import (
	"slices"

	"tributary/internal/transaction"
)

// Will says who decides what is filed.
type Will string

// Those who decide.
const (
	ByLaw     Will = ""         // the law: whatever the client wants of the country
	ByUseCase Will = "use_case" // the client: what it only invoices is not filed
	ByCompany Will = "company"  // the company, which sends to its buyers: no authority is told, and an address may be missing
)

// Filed says what of a country goes through its channel. The zero value: all of
// it, by law. The rest become documents for people.
type Filed struct {
	By Will

	// Of reports whether a transaction goes, where it is neither all nor none of
	// them. It is asked with what is known: of no transaction (nil) whether any of
	// the company's may, of no company (nil) whether the transaction may at all;
	// original is that of a correction. Nil: all go.
	Of func(s *Supplier, t *transaction.Transaction, original *Original) bool
}

func (f Filed) of(s *Supplier, t *transaction.Transaction, original *Original) bool {
	return f.Of == nil || f.Of(s, t, original)
}

// Reports reports whether an authority is told of transactions. What a company
// chooses to send to its buyers is told to none.
func (p Pack) Reports() bool { return p.Connect != nil && p.Files.By != ByCompany }

// Chosen reports whether filing is a company's choice: no address is needed where
// nobody made it.
func (p Pack) Chosen() bool { return p.Connect != nil && p.Files.By == ByCompany }

// Keeps reports whether filing is the company's choice and it files nothing.
func (p Pack) Keeps(s *Supplier) bool { return p.Chosen() && !p.Files.of(s, nil, nil) }

// MayFile reports whether a transaction may go through the channel at all.
func (p Pack) MayFile(t *transaction.Transaction) bool {
	return p.Connect != nil && p.Files.of(nil, t, nil)
}

// Filed decides whether a transaction of a company goes through the channel. Of a
// correction of several what corrects one that was filed is filed.
func (p Pack) Filed(use UseCase, s *Supplier, t *transaction.Transaction, originals ...*Original) bool {
	if p.Connect == nil || p.Files.By == ByUseCase && use == Invoicing {
		return false
	}
	if originals = slices.DeleteFunc(originals, func(o *Original) bool { return o == nil }); len(originals) == 0 {
		return p.Files.of(s, t, nil)
	}
	return slices.ContainsFunc(originals, func(o *Original) bool { return p.Files.of(s, t, o) })
}
