package en16931

import (
	"slices"
	"strings"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

const settingDelivery = "delivery"

// The values of settings.delivery.
const (
	DeliveryNone   = "none"
	DeliveryPeppol = "peppol"
)

// DeliverySetting is settings.delivery of a country that has a way to buyers.
func (p Page) DeliverySetting() country.Setting {
	s := country.Setting{Key: settingDelivery, Type: "string", Values: []string{DeliveryNone, DeliveryPeppol},
		Description: "how invoices to businesses reach them: " + DeliveryPeppol + " sends them over the Peppol network, " + DeliveryNone + " leaves it to you"}
	if p.Network == nil {
		s.Default = DeliveryNone
	} else {
		s.Description += "; empty: " + DeliveryPeppol + " where the law wants it, to businesses in the same country"
	}
	return s
}

// Delivered reports whether an invoice goes to its buyer over the network: as the
// company's settings say, else as the law of its country does. Of no transaction
// (nil) it reports whether any may, of no company (nil) whether it may be.
func (p Page) Delivered(s *country.Supplier, t *transaction.Transaction, _ *country.Original) bool {
	var sale Sale
	switch {
	case s == nil:
		return saleOf(&country.Supplier{}, t).Business
	case t != nil && country.SelfBilled(t):
		return false // its sender on the network would be the customer
	case t != nil:
		sale = saleOf(s, t)
	}
	switch s.Settings.Text(settingDelivery) {
	case DeliveryPeppol:
		return t == nil || sale.Business
	case DeliveryNone:
		return false
	}
	return p.Network != nil && travels(s.Settings.Text("format")) && (t == nil || p.Network(sale))
}

// travels reports whether what settings.format asks for can be sent over the network.
func travels(format string) bool {
	profile, named := profileNamed(format)
	return format != FormatNone && (!named || profile.travels())
}

func (p Profile) travels() bool { return p.Peppol || p.German }

// travelling leaves of an offer what receivers on the network take. There is
// always Peppol BIS: everybody who takes invoices there takes it.
func travelling(offer []Profile) []Profile {
	kept := slices.DeleteFunc(offer, func(p Profile) bool { return !p.travels() })
	if len(kept) == 0 {
		kept = []Profile{PeppolBIS()}
	}
	return kept
}

// saleOf is what the choice of a profile depends on.
func saleOf(supplier *country.Supplier, t *transaction.Transaction) Sale {
	s := Sale{SellerCountry: strings.ToUpper(supplier.Address.CountryCode)}
	if supplier.CountryCode != "" {
		s.SellerCountry = supplier.CountryCode
	}
	if b := t.Customer; b != nil {
		s.Business = b.Type == transaction.Business
		id, _ := routed(t)
		s.Leitweg = id != ""
		if b.Address != nil {
			s.BuyerCountry = strings.ToUpper(b.Address.CountryCode)
		}
	}
	return s
}
