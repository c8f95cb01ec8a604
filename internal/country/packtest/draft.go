package packtest

import (
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// Seller is whose invoices a pack's tests make.
type Seller struct {
	Supplier country.Supplier
	Currency string
	Day      time.Time // of the invoices; a minute later is now
	Zone     *time.Location
}

// Draft is an invoice with totals worked out as the service does.
func (s Seller) Draft(number string, customer *transaction.Party, items ...transaction.Item) country.Draft {
	for i := range items {
		items[i].Number = int64(i + 1)
	}
	totals, faults := transaction.Calculate(items)
	if len(faults) > 0 {
		panic(faults)
	}
	code := s.Supplier.CountryCode
	return country.Draft{
		OperationID: "0199b0de-0000-7000-8000-" + number, UniqueNumber: code + "-" + number, Sequence: 1,
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: code, LanguageCode: code, CurrencyCode: s.Currency, Date: s.Day,
			Number: number, ID: "tx-" + number, SupplierID: s.Supplier.ID, Items: items, Customer: customer,
		},
		Totals: totals, Supplier: s.Supplier, Location: s.Zone, Now: s.Day.Add(time.Minute),
	}
}

// Correct turns a draft into a correction of an original that the authority
// knows by an id.
func Correct(kind transaction.Kind, d, original country.Draft, id string) country.Draft {
	d.Transaction.Kind, d.Transaction.ReferenceID = kind, original.Transaction.ID
	d.Original = &country.Original{Transaction: original.Transaction, Totals: original.Totals,
		UniqueNumber: original.UniqueNumber, AuthorityID1: id}
	return d
}

// Zone is a time zone that every machine of a test knows.
func Zone(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

// Amount is a decimal.
func Amount(text string) num.Amount {
	a, err := num.AmountFromString(text)
	if err != nil {
		panic(err)
	}
	return a
}

// VAT is a tax entry of a rate.
func VAT(rate, mode string) transaction.Tax {
	return transaction.Tax{Rate: Amount(rate), Regime: transaction.VAT, Mode: mode}
}
