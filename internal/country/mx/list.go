package mx

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/mx/wire"
	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

var errNoList = fmt.Errorf("%w: a REST provider does not list what it stamped", country.ErrNoList)

// Registered lists what the provider stamped for a supplier with a date on a
// day. The provider lists UUIDs by the time of their stamp, which is at most
// 72 hours after the date; number and date are in the voucher itself, so each
// is fetched, and SAT is asked whether it still stands.
func (ch *channel) Registered(ctx context.Context, s country.Supplier, day country.Day,
	c country.Credentials) ([]country.Entry, error) {
	if s.Settings.Text(settingPAC) == wire.REST {
		return nil, fmt.Errorf("listing %s: %w", day, errNoList)
	}
	rfc, zone := rfcOf(s.TaxNumber), ch.cat.zone("", nil)
	// Two hours before: the day begins earlier in Cancún than in central Mexico.
	from := time.Date(day.Year, day.Month, day.Day, -2, 0, 0, 0, zone)
	to := time.Date(day.Year, day.Month, day.Day+1, 0, 0, 0, 0, zone).Add(satwire.StampWithin + 2*time.Hour)
	uuids, err := ch.Listed(ctx, rfc, from, to, c)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", day, err)
	}
	var list []country.Entry
	for _, uuid := range uuids {
		e, date, err := ch.entry(ctx, rfc, uuid, c)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", day, err)
		}
		if date == day.String() {
			list = append(list, e)
		}
	}
	return list, nil
}

// entry is one voucher that the provider holds, and the day on it.
func (ch *channel) entry(ctx context.Context, rfc, uuid string, c country.Credentials) (country.Entry, string, error) {
	raw, err := ch.Voucher(ctx, rfc, uuid, c)
	if err != nil {
		return country.Entry{}, "", err
	}
	got, err := readStamped(raw)
	if err != nil {
		return country.Entry{}, "", fmt.Errorf("reading %s: %w", uuid, err)
	}
	v := got.voucher
	issuer, receiver := child(v, "Emisor"), child(v, "Receptor")
	if issuer == nil || receiver == nil || issuer.Attr("Rfc") != rfc {
		return country.Entry{}, "", fmt.Errorf("reading %s: it is another's", uuid)
	}
	now, err := ch.State(ctx, country.Filing{Supplier: rfc},
		wire.Errand{UUID: got.uuid(), Receiver: receiver.Attr("Rfc"), Total: v.Attr("Total")}, c)
	if err != nil {
		return country.Entry{}, "", err
	}
	day, _, _ := strings.Cut(v.Attr("Fecha"), "T")
	e := country.Entry{
		Number: v.Attr("Serie") + v.Attr("Folio"), AuthorityID1: got.uuid(), AuthorityID2: got.number(),
		Cancelled: now.Voucher == satwire.VoucherCancelled, At: got.at(ch.cat),
	}
	if to := receiver.Attr("Rfc"); to != satwire.RFCPublic && to != satwire.RFCForeign {
		e.Customer = to
	}
	if child(v, "InformacionGlobal") != nil {
		e.Sales = soldIn(v)
	} else if v.Attr("TipoDeComprobante") == satwire.TypeIncome && v.Attr("Moneda") == "MXN" && !withheld(v) {
		gross := minor(v.Attr("Total"), 2)
		e.Gross, e.Lines = &gross, linesOf(v)
	} else if v.Attr("TipoDeComprobante") == satwire.TypePayment {
		e.Reference, e.Gross = paidIn(v)
	}
	return e, day, nil
}

// paidIn reads a voucher of type P: the number of the first sale that is paid, and
// how much came, where that is in pesos.
func paidIn(v *xmltree.Element) (number string, amount *int64) {
	sum, pesos := int64(0), true
	for e := range v.Walk() {
		switch {
		case e.Is(satwire.SpacePagos, "DoctoRelacionado") && number == "":
			number = e.Attr("Serie") + e.Attr("Folio")
		case e.Is(satwire.SpacePagos, "Pago"):
			sum, pesos = sum+minor(e.Attr("Monto"), 2), pesos && e.Attr("MonedaP") == "MXN"
		}
	}
	if !pesos {
		return number, nil
	}
	return number, &sum
}

// linesOf is what each concept amounts to before taxes.
func linesOf(v *xmltree.Element) (amounts []int64) {
	for _, c := range child(v, "Conceptos").All("Concepto") {
		amounts = append(amounts, minor(c.Attr("Importe"), 2)-minor(c.Attr("Descuento"), 2))
	}
	return amounts
}

// soldIn are the numbers of the sales in a global invoice, each once.
func soldIn(v *xmltree.Element) (numbers []string) {
	for _, c := range child(v, "Conceptos").All("Concepto") {
		if number := c.Attr("NoIdentificacion"); !slices.Contains(numbers, number) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// withheld reports whether a voucher's total is less than what was sold.
func withheld(v *xmltree.Element) bool {
	taxes := child(v, "Impuestos")
	return taxes != nil && taxes.Attr("TotalImpuestosRetenidos") != ""
}
