package mx

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/mx/wire"
	"tributary/internal/country/text"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// A receipt of payment (complement Pagos 2.0) is a voucher of type P: it says
// when and how money came, for which vouchers with MetodoPago PPD, and what is
// still owed of each. Its own amounts are nothing (Guía de llenado del
// comprobante al que se le incorpore el complemento para recepción de pagos).
const (
	productPayment = "84111506"
	textPayment    = "Pago"
	currencyNone   = "XXX"
	usePayment     = "CP01"
)

// debt is a voucher that is paid.
type debt struct {
	uuid, serie, folio string
	currency           string
	decimals           int
	total              int64         // minor units
	owed               int64         // before this payment
	part               int           // NumParcialidad of the next payment
	taxes              []transferSum // of the whole voucher
	receiver           taxpayer
}

// remittance is one way in which money came, and what it was for.
type remittance struct {
	payment *transaction.Payment
	shares  []portion
}

// portion is the part of a remittance that is for one debt.
type portion struct {
	debt         *debt
	part         int
	before, paid int64
}

// receipt writes the voucher of a payment, without seal and certificate.
func receipt(cat *catalog, in *country.Draft) (*plan, *xmltree.Element, error) {
	t := &in.Transaction
	p := &plan{kind: satwire.TypePayment, currency: t.CurrencyCode, place: placeOf(&in.Supplier), issuer: issuerOf(&in.Supplier)}
	p.serie, p.folio = split(t.Number)
	p.at = in.Now.In(cat.zone(p.place, in.Location))
	debts := make([]*debt, len(in.Shares))
	var found []fault.Fault
	for i := range in.Shares {
		d, f := debtOf(cat, in, i)
		if f != nil {
			found = append(found, *f)
			continue
		}
		debts[i] = d
		if i > 0 && debts[0] != nil && d.receiver.rfc != debts[0].receiver.rfc {
			found = append(found, fault.At("references", fault.ValidationMatchInvalid,
				"must be of one customer: a receipt of payment has one Receptor"))
		}
	}
	rate, f := exchange(t)
	if f != nil {
		found = append(found, *f)
	}
	if len(found) == 0 {
		found = p.convert(in, debts)
	}
	if len(found) > 0 {
		return nil, nil, invalid(found...)
	}
	p.receiver = debts[0].receiver
	p.receiver.use = usePayment
	p.rate = rate
	came := t.Date.In(cat.zone(p.place, in.Location))
	return p, p.receiptOf(spread(in, debts), came), nil
}

// convert finds EquivalenciaDR: how much of the documents' currency one unit of
// the payment's is worth, by what was received and what it paid (Pagos 2.0). It is
// rounded up at its tenth decimal, so that what is paid never comes to more than
// what came (CRP20217).
func (p *plan) convert(in *country.Draft, debts []*debt) []fault.Fault {
	t := &in.Transaction
	var received, settled int64
	for i := range t.Payments {
		received += t.Payments[i].Amount
	}
	for i := range in.Shares {
		settled += in.Shares[i].Amount
	}
	other := slices.ContainsFunc(debts, func(d *debt) bool { return !strings.EqualFold(d.currency, p.currency) })
	switch {
	case !other && received != settled:
		return []fault.Fault{fault.At("references", fault.ValidationMatchInvalid,
			"must add up to what was received, %d, but add up to %d", received, settled)}
	case !other:
		return nil
	case slices.ContainsFunc(debts, func(d *debt) bool { return d.currency != debts[0].currency }):
		return []fault.Fault{fault.At("references", fault.ValidationMatchInvalid, "must be in one currency")}
	case len(t.Payments) > 1:
		return []fault.Fault{fault.At("payments", fault.ValidationMatchInvalid,
			"must be one where sales in another currency are paid: report each by itself")}
	case received == settled:
		return []fault.Fault{fault.At("references", fault.FieldRequired,
			"must say what was paid of each sale in its own currency, %s: one %s is not one %s", debts[0].currency,
			strings.ToUpper(p.currency), debts[0].currency)}
	}
	decimals, _ := transaction.CurrencyExponent(strings.ToUpper(p.currency))
	p.worth = worthOf(settled, debts[0].decimals, received, decimals)
	return nil
}

// exchange is TipoCambioP: 1 in pesos.
func exchange(t *transaction.Transaction) (string, *fault.Fault) {
	if strings.EqualFold(t.CurrencyCode, "MXN") {
		return "1", nil
	}
	if t.ExchangeRate == nil || !t.ExchangeRate.IsPositive() {
		f := fault.At("exchange_rate", fault.FieldRequired, "must say the pesos of one %s on the day of the payment",
			strings.ToUpper(t.CurrencyCode))
		return "", &f
	}
	return t.ExchangeRate.MinimalString(), nil
}

// spread gives each way of paying what it is for: both in the order in which
// they were sent, the first debt from the first payment.
func spread(in *country.Draft, debts []*debt) []remittance {
	list := make([]remittance, 0, len(in.Transaction.Payments))
	left := make([]int64, len(debts))
	other := debts[0].currency != strings.ToUpper(in.Transaction.CurrencyCode)
	for i := range debts {
		left[i] = in.Shares[i].Amount
	}
	for i := range in.Transaction.Payments {
		r := remittance{payment: &in.Transaction.Payments[i]}
		rest := r.payment.Amount
		if other {
			rest = math.MaxInt64 // the one payment is for all, see convert
		}
		for k, d := range debts {
			paid := min(rest, left[k])
			if paid == 0 {
				continue
			}
			r.shares = append(r.shares, portion{debt: d, part: d.part, before: d.owed, paid: paid})
			d.part++
			d.owed -= paid
			left[k] -= paid
			rest -= paid
		}
		list = append(list, r)
	}
	return list
}

// receiptOf writes the voucher.
func (p *plan) receiptOf(list []remittance, came time.Time) *xmltree.Element {
	n := xmltree.New("cfdi:Comprobante", "xmlns:cfdi", satwire.SpaceCFDI, "xmlns:pago20", satwire.SpacePagos, "xmlns:xsi",
		xmltree.SpaceXSI,
		"xsi:schemaLocation",
		satwire.SpaceCFDI+" http://www.sat.gob.mx/sitio_internet/cfd/4/cfdv40.xsd "+satwire.SpacePagos+
			" http://www.sat.gob.mx/sitio_internet/cfd/Pagos/Pagos20.xsd", "Version", "4.0")
	n.Set("Serie", p.serie)
	n.Set("Folio", p.folio)
	n.Set("Fecha", p.at.Format(satwire.LocalTime))
	n.Set("SubTotal", "0")
	n.Set("Moneda", currencyNone)
	n.Set("Total", "0")
	n.Set("TipoDeComprobante", p.kind)
	n.Set("Exportacion", "01")
	n.Set("LugarExpedicion", p.place)
	p.parties(n)
	n.Add(xmltree.New("cfdi:Conceptos")).Add(xmltree.New("cfdi:Concepto", "ClaveProdServ", productPayment, "Cantidad",
		"1", "ClaveUnidad", unitActivity,
		"Descripcion", textPayment, "ValorUnitario", "0", "Importe", "0", "ObjetoImp", "01"))
	pagos := n.Add(xmltree.New("cfdi:Complemento")).Add(xmltree.New("pago20:Pagos", "Version", "2.0"))
	totals := pagos.Add(xmltree.New("pago20:Totales"))
	sum := newPaySums(p.rate)
	for i := range list {
		pagos.Add(p.remitted(&list[i], came, sum))
	}
	sum.write(totals)
	return n
}

// remitted writes one Pago.
func (p *plan) remitted(r *remittance, came time.Time, sum *paySums) *xmltree.Element {
	decimals, _ := transaction.CurrencyExponent(strings.ToUpper(p.currency))
	_, form := methodOf(r.payment)
	at := came.Format(satwire.LocalTime)
	if day := r.payment.Date; day != "" && day != came.Format(time.DateOnly) {
		at = r.payment.Date + "T12:00:00" // Guía de llenado, FechaPago: where the hour is not known
	}
	n := xmltree.New("pago20:Pago", "FechaPago", at, "FormaDePagoP", form, "MonedaP", strings.ToUpper(p.currency),
		"TipoCambioP", p.rate, "Monto", money(r.payment.Amount, decimals))
	n.Set("NumOperacion", text.Cut(wire.Tidy(r.payment.Reference), 100))
	taxes := &payTaxes{worth: p.worth}
	for _, s := range r.shares {
		n.Add(s.document(taxes))
	}
	if e := taxes.element(); e != nil {
		n.Add(e)
	}
	sum.add(r.payment.Amount, decimals, taxes)
	return n
}

// debtOf reads what is known of a voucher that is paid: from the voucher itself
// where it was filed here, else from what the backfill said.
func debtOf(cat *catalog, in *country.Draft, i int) (*debt, *fault.Fault) {
	paid := &in.Shares[i]
	refuse := func(code fault.Code, format string, args ...any) (*debt, *fault.Fault) {
		f := fault.At("reference_transaction_id", code, format, args...)
		if len(in.Shares) > 1 {
			f = fault.At(fmt.Sprintf("references.%d.transaction_id", i), code, format, args...)
		}
		return nil, &f
	}
	if !uuidPattern.MatchString(paid.AuthorityID1) {
		return refuse(fault.ReferenceNotSuccessful,
			"has no folio fiscal (UUID): a document issued elsewhere is backfilled with it as tax_authority_id_1")
	}
	d := &debt{uuid: strings.ToUpper(paid.AuthorityID1), currency: strings.ToUpper(paid.Transaction.CurrencyCode), part: 1}
	d.decimals, _ = transaction.CurrencyExponent(d.currency)
	if v, err := readXML(paid.Report); err == nil && v.Is(satwire.SpaceCFDI, "Comprobante") {
		if v.Attr("TipoDeComprobante") != satwire.TypeIncome {
			return refuse(fault.UnsupportedOperation, "is no invoice: nobody pays a voucher of type %s", v.Attr("TipoDeComprobante"))
		}
		if v.Attr("MetodoPago") != satwire.MethodPartial {
			return refuse(fault.UnsupportedOperation, "was paid at once (PUE): only what is paid later (PPD) has receipts of payment")
		}
		d.read(v)
	} else if f := d.backfilled(cat, in, paid); f != nil {
		return nil, f
	}
	d.owed = d.total
	d.settle(paid)
	if paid.Amount > d.owed {
		return refuse(fault.ReferenceExceeded, "is owed %s and would be paid %s", money(max(d.owed, 0), d.decimals),
			money(paid.Amount, d.decimals))
	}
	return d, nil
}

// settle lowers a debt by what was paid or credited before. What was cancelled
// does not count.
func (d *debt) settle(paid *country.Share) {
	for _, e := range paid.Corrections {
		switch {
		case e.Cancelled:
		case e.Transaction.Kind == transaction.PaymentReport:
			d.part += d.parts(e.Report)
			for _, p := range e.Transaction.Shares {
				if p.TransactionID == paid.Transaction.ID {
					d.owed -= p.Amount
				}
			}
		case e.Transaction.Kind == transaction.Credit:
			d.owed = 0
		case e.Transaction.Kind == transaction.Adjustment && e.Totals.Gross < 0:
			d.owed += e.Totals.Payable()
		}
	}
}

// parts counts the payments for the debt that an earlier receipt has.
func (d *debt) parts(report []byte) (n int) {
	v, err := readXML(report)
	if err != nil {
		return 1
	}
	for e := range v.Walk() {
		if e.Is(satwire.SpacePagos, "DoctoRelacionado") && strings.EqualFold(e.Attr("IdDocumento"), d.uuid) {
			n++
		}
	}
	return n
}
