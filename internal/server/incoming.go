package server

import (
	"errors"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/en16931"
	"tributary/internal/incoming"
	"tributary/internal/received"
	"tributary/internal/transaction"
)

// readIncoming reads what others sent; for now UBL and CII alone.
func readIncoming(media received.Media, data []byte) (*incoming.Document, error) {
	if media != received.XML {
		return nil, errors.New("only XML is read")
	}
	in, unread, err := en16931.Read(data)
	if err != nil {
		return nil, err
	}
	amount := func(d en16931.Decimal) int64 { return decimal(d).Rescale(2).Value() }
	d := &incoming.Document{Format: incoming.UBL, Kind: transaction.Invoice, TypeCode: in.TypeCode, Number: in.Number,
		Day: string(in.IssueDate), DueDay: string(in.DueDate), Currency: in.Currency, Sender: incomingParty(in.Seller),
		Receiver: incomingParty(in.Buyer), NotRead: unread, Net: amount(in.Totals.Net), Tax: amount(in.Totals.Tax),
		Gross: amount(in.Totals.Gross), Prepaid: amount(in.Totals.Paid), Payable: amount(in.Totals.Due)}
	if in.IsCreditNote() {
		d.Kind = transaction.Credit
	}
	for _, p := range in.Preceding {
		d.Earlier = append(d.Earlier, incoming.Reference{Number: p.Number, Day: string(p.Date)})
	}
	for i, l := range in.Lines {
		d.Lines = append(d.Lines, incoming.Line{Number: int64(i + 1), Name: l.Item.Name, Quantity: decimal(l.Quantity), Unit: l.Unit,
			UnitPrice: decimal(l.Price.Net), Net: amount(l.Net),
			Taxes: []incoming.Tax{{Regime: transaction.VAT, Code: l.Category, Rate: decimal(l.Rate)}}})
	}
	for _, t := range in.Breakdown {
		d.Taxes = append(d.Taxes, incoming.Tax{Regime: transaction.VAT, Code: t.Category, Rate: decimal(t.Rate), Base: amount(t.Taxable),
			Amount: amount(t.Tax)})
	}
	return d, nil
}

func decimal(d en16931.Decimal) num.Amount {
	a, _ := num.AmountFromString(d.String())
	return a
}

func incomingParty(p en16931.Party) transaction.Party {
	out := transaction.Party{LegalName: p.Name, TaxNumber: p.VATID, Type: transaction.Business, EntityNumber: p.LegalID.ID,
		Address: &transaction.Address{CountryCode: p.Address.Country, City: p.Address.City, AddressLine1: p.Address.Line1}}
	if p.Electronic.ID != "" {
		out.Electronic = &transaction.ElectronicAddress{Scheme: p.Electronic.Scheme, ID: p.Electronic.ID}
	}
	return out
}
