// Package peppol is the way of an invoice to its buyer over the Peppol network,
// through an access point that somebody runs: it looks up who takes the
// document, hands it to the access point, and learns what became of it, and what
// the buyer answers (Invoice Response).
//
// It owns the channel, the two drivers that speak to access points, and the
// lookup of receivers (SML and SMP). It does not own the document, which
// en16931 makes, and it is no access point: AS4, its certificates and the
// reports to OpenPeppol are the operator's provider's. Law: nothing is handed
// over twice. The SBDH instance identifier is made of the operation's id, and
// whenever it is not known what became of a document, the access point is asked
// by that identifier before the same bytes go again.
//
// Receivers are found by the NAPTR record of the registry (SML), then by the
// receiver's own register (SMP), whose signed answer must be about the participant
// and the type of document that were asked for and name an AS4 endpoint in service.
// A signature is one enveloped RSA-SHA256 over the whole answer, nothing else. "Not
// registered" ends the attempt and is not kept: receivers register while one waits.
// Nothing positive is kept either; a lookup costs two round trips beside a sending
// of seconds.
package peppol

import (
	_ "embed"
	"slices"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// codesFile is what the codes of Peppol mean, in our own words.
//
//go:embed codes.txt
var codesFile string

// Names of what the operator, or a supplier, shows and says to an access point.
const (
	secretToken   = "api_token"
	secretDriver  = "driver"
	secretDNS     = "dns_server"
	secretZone    = "sml_zone"
	secretTrusted = "smp_ca"
)

// Extend gives a country of the family the way over the network.
func Extend(base country.Pack, page en16931.Page) country.Pack {
	pack := base
	pack.Facts.Settings = append(slices.Clone(base.Facts.Settings), page.DeliverySetting())
	pack.Facts.Authority = &country.Authority{Name: "Peppol",
		System:   "through an access point, where the company delivers",
		Protocol: "REST (phoss-ap), or a Standard Business Document by POST"}
	pack.Facts.Secrets = append(slices.Clone(base.Facts.Secrets),
		country.SecretRule{Name: secretToken,
			Description: "The company's own token at the access point, in place of the operator's."})
	pack.Facts.Derivations = append(slices.Clone(base.Facts.Derivations),
		"An invoice that is delivered over Peppol goes to customer.electronic_address, or to the address derived from the customer's numbers; in Belgium 0208 first, then 9925.")
	pack.Sources = append(slices.Clone(base.Sources), "https://docs.peppol.eu/edelivery/", "https://docs.peppol.eu/poacc/upgrade-3/profiles/63-invoiceresponse/", "https://github.com/phax/phoss-ap")
	pack.Identity = &country.IdentityRule{Secrets: []country.SecretRule{
		{Name: secretToken, Description: "The token that the access point asks for."},
		{Name: secretDriver, Description: "How the access point is spoken to: phoss (phoss-ap, the default) or plain (the document in its envelope is posted to the address)."},
		{Name: secretDNS, Description: "The name server that is asked for receivers, as host:port; empty: those of the system."},
		{Name: secretZone, Description: "The zone of the register of participants (SML), where it is not OpenPeppol's own."},
		{Name: secretInbound, Description: "The token that the access point shows when it hands on what others send: invoices, and answers of buyers (Invoice Responses)."},
		{Name: secretTrusted, Description: "Certificates (PEM) under which registers (SMP) sign, where they are not OpenPeppol's."},
	}}
	pack.Checks = append(slices.Clone(base.Checks), country.Check{Reads: []string{"issuer", "customer"}, Find: selfBilled})
	pack.Files = country.Filed{By: country.ByCompany, Of: page.Delivered}
	pack.Codes = country.ReadCodes(codesFile)
	pack.Structured = func(in country.Issue) (*country.Structured, error) {
		if in.Filing != nil {
			return structuredOf(in.Filing)
		}
		return base.Structured(in)
	}
	pack.Facts.Responses, pack.CanAnswer = responses(), canAnswer(page)
	pack.Callbacks = &country.Callbacks{Read: readInbound(base.Code)}
	pack.Receive = &country.Receive{Enrol: announce}
	pack.Connect = func(at country.Endpoint) (country.Channel, error) { return connect(at, pack, base.Structured) }
	return pack
}

// selfBilled warns that a document of the buyer's own making is not sent: on the
// network the buyer would be its sender, and the company its receiver.
func selfBilled(in country.Case) []fault.Fault {
	if t := in.Transaction; !country.SelfBilled(t) || t.Customer.Type != transaction.Business {
		return nil
	}
	return []fault.Fault{fault.Warn("issuer", fault.UnsupportedOperation,
		"is the customer: a self-billed invoice is made and not sent over Peppol, where its sender is the customer")}
}

// typed is a draft as an issue: what the invoice is made of.
func typed(pack country.Pack, d *country.Draft) country.Issue {
	t := d.Transaction
	t.Items = pack.TypedItems(country.Case{Transaction: &d.Transaction, Totals: d.Totals, UseCase: country.Invoicing,
		Now: d.Now})
	return country.Issue{Transaction: &t, Totals: d.Totals, Supplier: &d.Supplier, Original: d.Original,
		UniqueNumber: d.UniqueNumber,
		Location:     d.Location, At: d.Now, Live: d.Live}
}

// receiversOf are the participants under which a buyer may be registered, the
// likeliest first: in Belgium everybody is under the number of the enterprise,
// and some under the VAT number alone. What the client says is not guessed at.
func receiversOf(t *transaction.Transaction, buyer en16931.Party) []participant {
	first := participant{buyer.Electronic.Scheme, buyer.Electronic.ID}
	all := []participant{first}
	if first.Scheme == "0208" && (t.Customer == nil || t.Customer.Electronic == nil) {
		all = append(all, participant{"9925", "be" + first.ID})
	}
	return all
}
