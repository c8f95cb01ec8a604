package es

import (
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// reasonMend asks for a Subsanacion: the invoice stands as it was issued, and
// only what AEAT holds of it is wrong ("Validaciones" 1.2.0, section 4.3.1).
const reasonMend = "S"

// mend makes the record a new one of the original itself. It says everything
// anew but what the invoice is: its number, day, type, amounts, and what it
// corrects. Those are changed by a corrective invoice.
func (p *pack) mend(r *record, in *country.Draft, about original, where *time.Location) error {
	t := &in.Transaction
	var found []fault.Fault
	if len(in.Shares) > 1 {
		found = append(found, fault.At("references", fault.ValidationMatchInvalid,
			"must have one entry with the reason S: a record is mended by itself"))
	}
	if t.Number != "" && t.Number != about.id.Number {
		found = append(found, fault.At("transaction_number", fault.ValidationMatchInvalid,
			"must be that of the original, %s: the invoice stays the same", about.id.Number))
	}
	if day(t.Date, where) != about.id.Day {
		found = append(found, fault.At("transaction_date", fault.ValidationMatchInvalid,
			"must lie on the day of the original, %s: the invoice stays the same", about.id.Day))
	}
	total, quota, known := p.filedAmounts(in.Original, about)
	if !known || total != euros(r.sums.total()) || quota != euros(r.sums.quota()) {
		found = append(found, fault.At("items", fault.ValidationMatchInvalid,
			"must add up to what the original says, %s with a tax of %s: other amounts need a corrective invoice (R1 to R5)",
			total, quota))
	}
	if len(found) > 0 {
		return invalid(found...)
	}
	r.id, r.kind, r.amends, r.unprinted = about.id, about.kind, true, true
	if r.kind == "" {
		r.kind = map[bool]string{true: "F2", false: "F1"}[about.simplified]
	}
	r.unnamed = about.simplified && t.Customer != nil && r.sums.numberless()
	r.rejected = ""
	switch {
	case neverFiled(in.Original):
		r.rejected = "X" // "alta de subsanación sin registro previo"
	case refusedAs(in, about.id, false):
		r.rejected = "S"
	}
	r.copyReferences(about.filed)
	r.effects = []country.Effect{{}}
	return nil
}

// neverFiled reports whether AEAT cannot hold anything of an original: it was
// issued elsewhere, and nobody knows an id of it there.
func neverFiled(o *country.Original) bool {
	return o.Backfilled && o.AuthorityID1 == "" && o.Transaction.AuthorityID1 == ""
}

// filedAmounts are ImporteTotal and CuotaTotal of an original.
func (p *pack) filedAmounts(o *country.Original, about original) (total, quota string, known bool) {
	if about.filed != nil {
		return about.filed.Value("ImporteTotal"), about.filed.Value("CuotaTotal"), true
	}
	sums, wrong := p.amounts(&o.Transaction, o.Totals)
	return euros(sums.total()), euros(sums.quota()), len(wrong) == 0 && len(o.Transaction.Items) > 0
}

// copyReferences takes over what a corrective invoice says of those it
// corrects, which the invoice itself decides.
func (r *record) copyReferences(filed *xmltree.Element) {
	if filed == nil {
		return
	}
	r.method = filed.Value("TipoRectificativa")
	r.rectified = readIDs(filed.At("FacturasRectificadas").All("IDFacturaRectificada"))
	r.replaced = readIDs(filed.At("FacturasSustituidas").All("IDFacturaSustituida"))
	if amounts := filed.At("ImporteRectificacion"); amounts != nil {
		r.substitute = &breakdown{
			base: readEuros(amounts.Value("BaseRectificada")), tax: readEuros(amounts.Value("CuotaRectificada")),
			extra: readEuros(amounts.Value("CuotaRecargoRectificado")),
		}
	}
}

func readIDs(list []*xmltree.Element) (out []invoiceID) {
	for _, e := range list {
		out = append(out, readID(e))
	}
	return out
}

// lastMended is the customer that the last Subsanacion of an original names;
// nil where it has none.
func lastMended(o *country.Original) *transaction.Party {
	for i := len(o.Corrections) - 1; i >= 0; i-- {
		if e := &o.Corrections[i]; e.Transaction.Kind == transaction.Adjustment && e.Transaction.Reason == reasonMend &&
			!e.Cancelled {
			return e.Transaction.Customer
		}
	}
	return nil
}

// fullInvoiceOf is the number of the F3 that took the place of a simplified
// invoice; "" without one.
func fullInvoiceOf(o *country.Original) string {
	for i := range o.Corrections {
		e := &o.Corrections[i]
		if filing, err := limits().Read(e.Report); err == nil && !e.Cancelled &&
			filing.Root.Value("RegistroFactura", "RegistroAlta", "TipoFactura") == "F3" {
			return e.Number
		}
	}
	return ""
}
