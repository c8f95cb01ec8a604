package es

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/official/aeatwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// firstDay is the first day that may stand on a filed invoice, the one on
// which Orden HAC/1177/2024 came into force (AEAT, "Validaciones" 1.2.0,
// section 3.1.3).
const firstDay = "2024-10-28"

// invalid ends an attempt: the document cannot be filed as it is.
func invalid(faults ...fault.Fault) error {
	return fault.New(fault.Invalid, "the document cannot be filed with the tax authority").With(faults...)
}

// enclosure is what Send and Find need of a filing beyond its report.
type enclosure struct {
	ID      invoiceID      `json:"id"`
	Cancels bool           `json:"cancels,omitempty"`
	Huella  string         `json:"huella"`
	At      time.Time      `json:"at"`
	Name    string         `json:"name"` // of the supplier, for the header
	Agent   aeatwire.Agent `json:"agent,omitzero"`
	Late    bool           `json:"late,omitempty"`
	Ref     string         `json:"ref"`
}

// Prepare writes the record and takes the next place in the supplier's chain.
// It is pure: the same draft gives the same bytes.
func (ch *channel) Prepare(in country.Draft) (country.Filing, error) {
	r, err := ch.pack.record(&in)
	if err != nil {
		return country.Filing{}, err
	}
	r.seal()
	w := newWriter(3 << 10)
	r.write(w)
	h := aeatwire.Header{Name: r.issuerName, NIF: r.id.Issuer, Agent: agentOf(in.Supplier), Late: r.late}
	text := aeatwire.Report(h, w.Bytes())
	f, err := in.Filing(text, r.id.Number, r.id.Issuer,
		enclosure{ID: r.id, Cancels: r.cancels, Huella: r.huella, At: in.Now, Name: h.Name, Agent: h.Agent, Late: r.late,
			Ref: r.reference})
	f.DedupeKey, f.AuthorityID, f.Late, f.Unprinted = r.reference, r.huella, in.Late, r.unprinted
	f.Link = country.Link{Position: in.Previous.Position + 1, Hash: r.huella, Extra: r.id.Day + " " + r.id.Number,
		Name: r.software.id + "/" + r.software.installation}
	if len(r.effects) > 1 {
		f.Effects = r.effects
	} else if len(r.effects) == 1 {
		f.Effect = &r.effects[0]
	}
	if r.cancels {
		f.Number = ch.pack.by.NumberOf(&in.Transaction, in.UniqueNumber)
	} else {
		f.QRCode = qrText(bool(in.Live), r.id, euros(r.sums.total()))
	}
	return f, err
}

// record turns a draft into a record without its huella.
func (p *pack) record(in *country.Draft) (*record, error) {
	if in.Transaction.Kind == transaction.Backfill {
		return nil, invalid(fault.Fault{Code: fault.UnsupportedOperation, Type: fault.General,
			Message: "a backfill is known here and filed nowhere"})
	}
	nif := taxid.NIF(in.Supplier.TaxNumber)
	if nif == "" {
		return nil, invalid(fault.At("supplier.id", fault.FieldNotValid, "names a company whose tax number is not a Spanish NIF"))
	}
	where := cmp.Or(in.Location, p.by.Zone)
	r := &record{
		late: in.Late, issuerName: plain(in.Supplier.LegalName, nameMax), software: softwareOf(in.Supplier),
		at: in.Now.In(where).Format(instantForm),
	}
	if err := r.follow(in.Previous, nif); err != nil {
		return nil, err
	}
	if in.Original != nil && in.Original.Transaction.Kind == transaction.Adjustment &&
		in.Original.Transaction.Reason == reasonMend {
		return nil, invalid(mendsOnly("reference_transaction_id", &in.Original.Transaction))
	}
	own := invoiceID{Issuer: nif, Number: p.by.NumberOf(&in.Transaction, in.UniqueNumber), Day: day(in.Transaction.Date, where)}
	if in.Transaction.Kind == transaction.Cancellation {
		return r, p.cancel(r, in, own, where)
	}
	r.id, r.reference = own, referenceText(in.Late, in.OperationID)
	if faults := slices.Concat(p.checkNumber(own.Number), p.checkDay(in.Transaction.Date, in.Now, where)); len(faults) > 0 {
		return nil, invalid(faults...)
	}
	if refusedAs(in, own, false) { // "alta por rechazo": AEAT, "Validaciones" 1.2.0, annex 6.1
		r.amends, r.rejected = true, "X"
	}
	return r, p.fill(r, in, where)
}

// follow links the record to the one before. A refused record keeps its place:
// its huella is the previous one of the next (AEAT, annex 6.1; Orden
// HAC/1177/2024, article 7).
func (r *record) follow(last country.Link, nif string) error {
	if last == (country.Link{}) {
		return nil
	}
	day, number, ok := strings.Cut(last.Extra, " ")
	if !ok || !wellFormedHuella(last.Hash) {
		return fmt.Errorf("linking a record to position %d: the link is not one of this chain", last.Position)
	}
	r.previous, r.before = &invoiceID{Issuer: nif, Number: number, Day: day}, last.Hash
	return nil
}

// cancel makes the record a RegistroAnulacion of the original.
func (p *pack) cancel(r *record, in *country.Draft, own invoiceID, where *time.Location) error {
	if in.Original == nil {
		return invalid(fault.At("reference_transaction_id", fault.ReferenceUnknown, "is not known"))
	}
	r.cancels, r.id = true, readOriginal(p.by.OriginalsOf(in)[0], own.Issuer, where).id
	r.reference = referenceText(in.Late, own.Number)
	// What was issued elsewhere, and of which nobody knows an id at the
	// authority, is cancelled without a record there (annex 6.2).
	r.unknown = neverFiled(in.Original)
	if refusedAs(in, r.id, true) {
		r.rejected = "S"
	}
	return nil
}

// refusedAs reports whether AEAT refused an earlier attempt under the same
// name. Under another number or day it is another invoice, of which AEAT has
// refused nothing.
func refusedAs(in *country.Draft, id invoiceID, cancels bool) bool {
	return slices.ContainsFunc(in.Refused, func(f country.Filing) bool {
		var e enclosure
		return f.Carried(&e) == nil && e.ID == id && e.Cancels == cancels
	})
}

// original is what a correction must know of the document it corrects.
type original struct {
	id         invoiceID
	kind       string // TipoFactura, where its record is known
	simplified bool   // F2 or R5
	unnamed    bool   // FacturaSinIdentifDestinatarioArt61d
	customer   *person
	filed      *xmltree.Element // its RegistroAlta; nil where it was not filed here
}

// readOriginal reads the original's own record where it was filed here: what
// stands there is what the authority knows.
func readOriginal(o sale.Original, nif string, where *time.Location) original {
	customer, _ := partyID(o.Transaction.Customer, "customer")
	out := original{
		id:         invoiceID{Issuer: nif, Number: o.Number, Day: day(o.Transaction.Date, where)},
		simplified: customer == nil, customer: customer,
	}
	filed := o.Filed.At("RegistroFactura", "RegistroAlta")
	if filed == nil {
		return out
	}
	out.id.Number = filed.Value("IDFactura", "NumSerieFactura")
	out.id.Day = filed.Value("IDFactura", "FechaExpedicionFactura")
	out.filed, out.kind = filed, filed.Value("TipoFactura")
	out.simplified = out.kind == "F2" || out.kind == "R5"
	out.unnamed = filed.Value("FacturaSinIdentifDestinatarioArt61d") == "S"
	return out
}

// fill completes a RegistroAlta.
func (p *pack) fill(r *record, in *country.Draft, where *time.Location) error {
	t := &in.Transaction
	sums, faults := p.amounts(t, in.Totals)
	customer, wrong := partyID(t.Customer, "customer")
	faults = append(faults, wrong...)
	if len(faults) > 0 {
		return invalid(faults...)
	}
	r.sums, r.customer, r.text = sums, customer, describe(t.Items)
	if r.text == "" {
		r.text = "Factura " + r.id.Number
	}
	r.limit, r.qualified = simplifiedLimit(in.Supplier), qualified(t)
	if t.Kind == transaction.Invoice {
		r.chooseInvoice(t)
	} else if err := p.correct(r, in, where); err != nil {
		return err
	}
	if r.kind == "F2" || r.kind == "R5" {
		r.customer = nil
	}
	if err := r.issue(t); err != nil {
		return err
	}
	faults = slices.Concat(foreignTax(t, in.Supplier), r.contradictions(t), r.happened(t, in.Now.In(where)))
	if len(faults) > 0 {
		return invalid(faults...)
	}
	return nil
}

// foreignTax refuses IVA by its general name on documents of suppliers outside
// its territory: theirs is another tax, and VAT would be taken for it.
func foreignTax(t *transaction.Transaction, s country.Supplier) []fault.Fault {
	own := map[land]string{canary: regimeIGIC, cities: regimeIPSI}[landOf(&s.Address)]
	if own == "" {
		return nil
	}
	for i := range t.Items {
		for j, tax := range t.Items[i].Taxes {
			if tax.Regime == transaction.VAT {
				return []fault.Fault{fault.At(sale.TaxPath(i, j, "regime"), fault.ValidationMatchInvalid,
					"must be %s, the tax of the supplier's territory; what it supplies on the mainland is IVA", own)}
			}
		}
	}
	return nil
}

func (p *pack) amounts(t *transaction.Transaction, totals transaction.Totals) (breakdown, []fault.Fault) {
	if len(totals.Lines) != len(t.Items) {
		return breakdown{}, []fault.Fault{fault.At("items", fault.FieldNotValid, "do not have the amounts that belong to them")}
	}
	return breakDown(t, p.classify(country.Case{Transaction: t}), totals)
}

// issue names who issued the invoice in the supplier's place: the customer
// (D), or a third party such as a marketplace (T).
func (r *record) issue(t *transaction.Transaction) error {
	issuer, faults := partyID(t.Issuer, "issuer")
	if len(faults) > 0 {
		return invalid(faults...)
	}
	switch {
	case issuer == nil || issuer.NIF == r.id.Issuer:
	case r.customer.same(issuer):
		r.issuedBy = "D"
	default:
		r.issuedBy, r.third = "T", issuer
	}
	return nil
}
