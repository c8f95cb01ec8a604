package mx

import (
	"fmt"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/text"
	"tributary/internal/incoming"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

func formats() []country.Format {
	read := func(document []byte) ([]*incoming.Document, error) { return incoming.One(Read(document)) }
	return []country.Format{{Name: incoming.CFDI, Space: satwire.SpaceCFDI, Root: "Comprobante", Read: read}}
}

// Read reads a voucher of income, of expense or of payments. Its seals are not
// verified, and it says so.
func Read(document []byte) (*incoming.Document, error) {
	s, err := incoming.Parse(document)
	if err != nil {
		return nil, err
	}
	root := s.Root
	if !root.Is(satwire.SpaceCFDI, "Comprobante") {
		return nil, fmt.Errorf("%w: the root {%s}%s is not CFDI 4.0", incoming.ErrInvalid, root.Space, root.Local)
	}
	d := &incoming.Document{Format: incoming.CFDI, TypeCode: s.Text(root, "@TipoDeComprobante"), Day: s.Day(root, "@Fecha"),
		Number: s.Text(root, "@Serie") + s.Text(root, "@Folio"), Currency: s.Text(root, "@Moneda")}
	r := taking{Source: s, d: d}
	for _, name := range []string{"@Version", "@NoCertificado", "@Certificado"} {
		s.Text(root, name)
	}
	if s.Text(root, "@Sello") != "" {
		s.MissAt("Comprobante/@Sello: not verified")
	}
	r.parties()
	r.stamp()
	r.related()
	switch d.TypeCode {
	case satwire.TypeIncome:
		d.Kind = transaction.Invoice
	case satwire.TypeExpense:
		d.Kind = transaction.Credit
	case satwire.TypePayment:
		d.Kind = transaction.PaymentReport
		r.paymentsOf(root.At("Complemento").All("Pagos"))
		return s.Finish(d, root)
	default:
		return nil, fmt.Errorf("%w: a voucher of type %q is no invoice", incoming.ErrInvalid, d.TypeCode)
	}
	r.Money(d.Currency)
	r.sale()
	return s.Finish(d, root)
}

// taking is a document that is being read.
type taking struct {
	*incoming.Source
	d *incoming.Document
}

func (r *taking) parties() {
	from, to := r.Root.At("Emisor"), r.Root.At("Receptor")
	r.d.Sender = transaction.Party{TaxNumber: r.Text(from, "@Rfc"), LegalName: r.Text(from, "@Nombre"), TaxRegime: r.Text(from, "@RegimenFiscal")}
	if place := r.Text(r.Root, "@LugarExpedicion"); place != "" {
		r.d.Sender.Address = &transaction.Address{PostalCode: place, CountryCode: "MX"}
	}
	r.d.Receiver = transaction.Party{TaxNumber: r.Text(to, "@Rfc"), LegalName: r.Text(to, "@Nombre"), TaxUse: r.Text(to, "@UsoCFDI"),
		TaxRegime: r.Text(to, "@RegimenFiscalReceptor"), EntityNumber: r.Text(to, "@NumRegIdTrib")}
	if place := r.Text(to, "@DomicilioFiscalReceptor"); place != "" {
		r.d.Receiver.Address = &transaction.Address{PostalCode: place}
	}
}

// stamp reads SAT's own id of the voucher.
func (r *taking) stamp() {
	for _, all := range r.Root.All("Complemento") {
		for _, e := range all.All("TimbreFiscalDigital") {
			if !e.Is(satwire.SpaceStamp, e.Local) || r.d.AuthorityID != "" {
				continue
			}
			r.d.AuthorityID = r.Text(e, "@UUID")
			r.Ignore(e)
			r.MissAt(e.Path() + "/@SelloSAT: not verified")
		}
	}
}

func (r *taking) related() {
	for _, list := range r.Root.All("CfdiRelacionados") {
		relation := r.Text(list, "@TipoRelacion")
		for _, e := range list.All("CfdiRelacionado") {
			r.d.Earlier = append(r.d.Earlier, incoming.Reference{AuthorityID: r.Text(e, "@UUID"), Relation: relation})
		}
	}
}

func (r *taking) sale() {
	d, root := r.d, r.Root
	r.Usual(root, "01", "@Exportacion")
	if form := r.Text(root, "@FormaPago"); form != "" {
		d.Payments = []transaction.Payment{{Type: formOf(form), Code: form}}
	}
	d.PaymentTerms = text.Join(" ", r.Text(root, "@MetodoPago"), r.Text(root, "@CondicionesDePago"))
	d.ExchangeRate = r.Maybe(root, "@TipoCambio")
	for i, e := range root.At("Conceptos").All("Concepto") {
		d.Lines = append(d.Lines, r.line(i, e))
	}
	taxes := root.At("Impuestos")
	d.Tax, d.Withheld = r.Amount(taxes, "@TotalImpuestosTrasladados"), r.Amount(taxes, "@TotalImpuestosRetenidos")
	d.Taxes = r.taxes(taxes, "")
	d.Net = r.Amount(root, "@SubTotal") - r.Amount(root, "@Descuento")
	r.locals()
	d.Payable = r.Amount(root, "@Total")
	d.Gross = r.Plus(root, d.Payable, d.Withheld) // Total is less what is withheld
}

func (r *taking) line(i int, e *xmltree.Element) incoming.Line {
	l := incoming.Line{Number: int64(i) + 1, Name: r.Text(e, "@Descripcion"), Code: r.Text(e, "@NoIdentificacion"), Quantity: r.Number(e, "@Cantidad"),
		Unit: r.Text(e, "@ClaveUnidad"), UnitPrice: r.Number(e, "@ValorUnitario"), Taxes: r.taxes(e.At("Impuestos"), ""),
		Classes: []transaction.Classification{{Scheme: "ClaveProdServ", Code: r.Text(e, "@ClaveProdServ")}}}
	off := r.Amount(e, "@Descuento")
	if l.Net = r.Amount(e, "@Importe") - off; off != 0 {
		l.Allowances = []incoming.Extra{{Code: "Descuento", Amount: off}}
	}
	for _, goes := range []string{"01", "02"} { // without taxes, and with those that stand there
		r.Usual(e, goes, "@ObjetoImp")
	}
	return l
}

// taxes reads what is charged and what is withheld, in the elements of a voucher or,
// with an ending, of its payments.
func (r *taking) taxes(e *xmltree.Element, ending string) (all []incoming.Tax) {
	for _, kind := range [][2]string{{"Traslados", "Traslado"}, {"Retenciones", "Retencion"}} {
		for _, x := range e.At(kind[0] + ending).All(kind[1] + ending) {
			tax := r.Text(x, "@Impuesto"+ending)
			t := incoming.Tax{Regime: tax, Code: tax, Base: r.Amount(x, "@Base"+ending), Amount: r.Amount(x, "@Importe"+ending),
				Rate: r.Percent(x, "@TasaOCuota"+ending)}
			factor := r.Text(x, "@TipoFactor"+ending)
			switch {
			case kind[0] == "Retenciones":
				t.Regime = transaction.Withholding
			case tax == taxIVA:
				t.Regime = transaction.VAT
			case tax == taxIEPS:
				t.Regime = transaction.IEPS
			}
			switch {
			case factor == "Exento":
				t.Type = transaction.TaxExempt
			case factor == factorQuota:
				t.Rate, t.Reason = num.Amount{}, factor+" "+x.Attr("TasaOCuota"+ending)
			case t.Regime == transaction.VAT && t.Rate.IsZero():
				t.Type = transaction.TaxZero
			}
			all = append(all, t)
		}
	}
	return all
}

// locals reads taxes that are none of SAT's, which count in Total alone.
func (r *taking) locals() {
	d := r.d
	for _, all := range r.Root.All("Complemento") {
		for _, e := range all.All("ImpuestosLocales") {
			r.Text(e, "@version")
			d.Tax = r.Plus(e, d.Tax, r.Amount(e, "@TotaldeTraslados"))
			d.Withheld = r.Plus(e, d.Withheld, r.Amount(e, "@TotaldeRetenciones"))
			for _, x := range e.All("TrasladosLocales") {
				d.Taxes = append(d.Taxes, incoming.Tax{Regime: "LOCAL", Code: r.Text(x, "@ImpLocTrasladado"), Rate: r.Number(x, "@TasadeTraslado"),
					Amount: r.Amount(x, "@Importe")})
			}
			for _, x := range e.All("RetencionesLocales") {
				d.Taxes = append(d.Taxes, incoming.Tax{Regime: transaction.Withholding, Code: r.Text(x, "@ImpLocRetenido"),
					Rate: r.Number(x, "@TasadeRetencion"), Amount: r.Amount(x, "@Importe")})
			}
		}
	}
}

// paymentsOf reads the payments of a voucher, which has no amounts of its own. They
// are in the money of the first; one in other money is listed, not read.
func (r *taking) paymentsOf(complements []*xmltree.Element) {
	d := r.d
	r.Ignore(r.Root.At("Conceptos")) // the same for all of them
	for _, name := range []string{"@SubTotal", "@Total", "@Exportacion"} {
		r.Text(r.Root, name)
	}
	for _, complement := range complements {
		r.Text(complement, "@Version")
		for _, e := range complement.All("Pago") {
			currency := e.Attr("MonedaP")
			if len(d.Payments) == 0 {
				d.Currency = currency
				r.Money(currency)
				d.ExchangeRate = r.Maybe(e, "@TipoCambioP")
			}
			if currency != d.Currency {
				r.Miss(e)
				continue
			}
			r.Text(e, "@MonedaP")
			r.payment(e)
		}
	}
	if len(d.Payments) == 0 {
		r.Wrong(r.Root, "a voucher of payments has none")
	}
}

func (r *taking) payment(e *xmltree.Element) {
	d, form := r.d, r.Text(e, "@FormaDePagoP")
	d.Payments = append(d.Payments, transaction.Payment{Type: formOf(form), Code: form, Amount: r.Amount(e, "@Monto"), Date: r.Day(e, "@FechaPago"),
		Reference: r.Text(e, "@NumOperacion"), IBAN: r.Text(e, "@CtaBeneficiario")})
	for _, x := range e.All("DoctoRelacionado") {
		paid := incoming.Reference{AuthorityID: r.Text(x, "@IdDocumento"), Number: r.Text(x, "@Serie") + r.Text(x, "@Folio"), Relation: "Pago"}
		if x.Attr("MonedaDR") == d.Currency {
			r.Text(x, "@MonedaDR")
			r.Usual(x, "1", "@EquivalenciaDR")
			paid.Amount = r.Amount(x, "@ImpPagado")
		}
		d.Earlier = append(d.Earlier, paid)
	}
	d.Taxes = append(d.Taxes, r.taxes(e.At("ImpuestosP"), "P")...)
}

// formOf is FormaPago in the words of a transaction.
func formOf(code string) string {
	switch code {
	case "01":
		return "CASH"
	case "02":
		return "CHECK"
	case "03":
		return "TRANSFER"
	case "04", "28":
		return "CARD"
	}
	return "OTHER"
}
