package mx

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
)

// guesses warns of what the client did not say and the voucher must: a guess
// that SAT accepts may still be wrong for those who read the voucher.
func (c *checker) guesses() {
	t := c.in.Transaction
	to := receiverOf(t.Customer, "", satwire.TypeIncome, "")
	named := to.rfc != satwire.RFCPublic && to.rfc != satwire.RFCForeign
	if named && regimePattern.FindStringSubmatch(t.Customer.TaxRegime) == nil {
		c.found = append(c.found, fault.Warn("customer.tax_information.regime", fault.ValueAssumed,
			"does not say the customer's fiscal regime: %s was assumed, which SAT compares with its file (CFDI40158)", to.regime))
	}
	if t.Kind == transaction.Invoice && len(t.Payments) == 0 && to.rfc == satwire.RFCPublic {
		c.found = append(c.found, fault.Warn("payments", fault.ValueAssumed,
			"do not say how the sale was paid: cash (FormaPago 01) was assumed"))
	}
}

// cards warns of cards of which nobody said whether they are of credit or debit,
// and of a form of payment of nothing.
func (c *checker) cards() {
	t := c.in.Transaction
	for i := range t.Payments {
		if said := codePattern.FindStringSubmatch(t.Payments[i].Code); t.Payments[i].Type == "CARD" &&
			(said == nil || said[2]+said[3] == "") {
			c.found = append(c.found, fault.Warn(fmt.Sprintf("payments.%d.code", i), fault.ValueAssumed,
				"does not say which card: credit (FormaPago 04) was assumed; say PUE:28 for a debit card, PUE:29 for a service card, PUE:04 for credit"))
		}
	}
	to := receiverOf(t.Customer, "", satwire.TypeIncome, "")
	if t.Kind == transaction.Invoice && len(t.Payments) == 0 && len(t.Items) > 0 && c.in.Totals.Payable() == 0 &&
		to.rfc != satwire.RFCPublic {
		c.found = append(c.found, fault.Warn("payments", fault.ValueAssumed,
			"do not say how a sale of nothing was paid: PUE in cash (FormaPago 01) was assumed, because nothing can be paid later"))
	}
}

// public checks a sale to the general public, which becomes a global invoice:
// it is paid, and nobody withholds anything.
func (c *checker) public() {
	t := c.in.Transaction
	to := receiverOf(t.Customer, "", satwire.TypeIncome, "")
	if to.rfc != satwire.RFCPublic || to.name != satwire.NamePublic || c.in.Totals.Gross < 0 {
		return
	}
	for i := range t.Items {
		for j := range t.Items[i].Taxes {
			if t.Items[i].Taxes[j].Quota != nil {
				c.add(fmt.Sprintf("items.%d.tax_breakdowns.%d.quota", i, j), fault.ValidationMatchInvalid,
					"must not be stated to the general public, whose price has the tax in it (LIEPS, article 19 II): name the customer with an RFC")
			}
			if tax := &t.Items[i].Taxes[j]; tax.Withheld() && !tax.Rate.IsZero() {
				c.add(fmt.Sprintf("items.%d.tax_breakdowns.%d", i, j), fault.ValidationMatchInvalid,
					"must not be withheld by the general public: name the customer with an RFC")
			}
		}
	}
	for i := range t.Payments {
		if method, _ := methodOf(&t.Payments[i]); method == satwire.MethodPartial {
			c.add(fmt.Sprintf("payments.%d.code", i), fault.ValidationMatchInvalid,
				"must be PUE: what the general public buys is paid at once; name the customer for a sale on credit")
		}
	}
}

// sealing refuses a certificate that signs for a person (e.firma, FIEL) in
// place of one that seals vouchers (CSD): providers refuse it with 306.
func sealing(keys *identity.Keeper, with country.Credentials) []fault.Fault {
	if len(with.PKCS12) == 0 {
		return nil
	}
	id, err := keys.Open(with.Certificate(), time.Now())
	if err != nil || !signsForAPerson(id.Leaf) {
		return nil // whether it can be opened is somebody else's question
	}
	return []fault.Fault{fault.At("tax_credentials.certificate_base64", fault.CredentialsInvalid,
		"is an e.firma (FIEL): vouchers are sealed with a certificado de sello digital (CSD), which SAT's CertiSAT gives")}
}

// signsForAPerson tells an e.firma from a CSD: SAT's certificates have a number
// of twenty digits; those of e.firmas are for clients and mail, and name no
// branch (OU), which every CSD does.
func signsForAPerson(leaf *x509.Certificate) bool {
	if slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageEmailProtection) &&
		slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		return true
	}
	return satwire.IssuedBySAT(leaf) && len(leaf.Subject.OrganizationalUnit) == 0
}
