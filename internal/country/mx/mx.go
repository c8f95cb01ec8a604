// Package mx is Mexico: vouchers in the form CFDI 4.0, sealed with the
// taxpayer's certificate and stamped by a provider whom SAT authorised (PAC).
//
// It owns the voucher, its original string and seal, and the request that cancels
// one; the wire to providers and SAT is mx/wire. It refuses to own payroll, waybills and foreign trade. Law: a
// transaction is registered when a stamp is held whose SelloCFD is our seal and
// whose SelloSAT was verified with SAT's certificate; nothing less is believed.
//
// Failure policy: a provider recognises what it stamped by its content (error
// 307), so a lost answer is settled by showing the same bytes again: class H.
// The seal decides whether what it holds is ours. A cancellation is settled by
// SAT's own state of the voucher, and stays pending while the receiver may
// still refuse it.
//
// What was chosen where SAT's guides leave it open is docs/decisions/0028; how a
// transaction becomes a voucher, in short:
//
//   - An adjustment below nothing is a voucher E, above nothing a voucher I.
//     The reason of a cancellation with a substitute is written 01:UUID.
//   - Discount lines go to the lines with the same taxes, largest remainders
//     first; Total never changes, so single cents may stand in the discount
//     instead of the tax.
//   - Refunds take the form in which the money came: that of the original's
//     voucher, else of the last payment reported for it. 15 (Condonación) is
//     left for what was never paid, 30 for advances.
//   - What SAT accepts and we had to guess (a receiver's regime, cash) is a
//     warning of code value_assumed: the sale is filed, and the client learns
//     what to send.
//   - A receipt of payment is cancelled by an ordinary cancellation; adjusting
//     or crediting one is refused, because SAT wants it cancelled and made
//     anew. In it payments.code may be a form of payment alone (28): PUE and
//     PPD say nothing of money that has come.
//   - The states' tax on lodging (ISH) and local taxes that are withheld stand
//     in the complement Impuestos Locales 1.0 and in Total alone. The names of
//     the latter are no list of SAT's, so they are not checked; two that
//     everybody writes are longer than a code and have short forms.
//   - CuentaPredial and InformacionAduanera are classifications of a line
//     (PREDIAL, PEDIMENTO).
//   - Time zones follow the law of 2022; of postal prefixes that belong to two
//     zones the single codes of the border are listed.
package mx

import (
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/mx/wire"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
)

// version is stored with every operation; bytes made by one version are sent unchanged by the next.
const version = "mx-cfdi40-1"

// Names of the company's settings.
const (
	settingRegime  = "fiscal_regime"
	settingPlace   = "place_of_issue"
	settingUse     = "cfdi_use"
	settingProduct = "product_key"
	settingUnit    = "unit_key"
	settingPAC     = "pac"
)

// productNone is the key of what SAT's catalogue does not have.
const productNone = "01010101"

// Pack is Mexico.
func Pack() country.Pack {
	cat, keys := openCatalog(), identity.NewKeeper()
	return country.Pack{
		Code:    "MX",
		Name:    "Mexico",
		Version: version,
		Sources: sources(),
		Facts:   cat.facts,
		Checks:  checks(cat),
		Classify: func(in country.Case) []transaction.Item {
			return typed(cat, in.Transaction, in.Totals)
		},
		Connect: func(at country.Endpoint) (country.Channel, error) { return connect(at, cat, keys) },
		CheckCompany: func(s country.Supplier, c country.Credentials) []fault.Fault {
			return checkCompany(cat, keys, s, c)
		},
		Imprint: imprint,
		Periods: periods(cat),
		Formats: formats(),
		Example: example(),
		Codes:   country.ReadCodes(codesFile),
	}
}

func sources() []string {
	return []string{
		// articles 29 and 29-A: vouchers, their contents, cancellation
		"https://www.diputados.gob.mx/LeyesBiblio/pdf/CFF.pdf",
		// rates, base, withholding
		"https://www.diputados.gob.mx/LeyesBiblio/pdf/LIVA.pdf",
		// RMF 2.7.1.7, 2.7.1.21, 2.7.1.34, 2.7.1.35, 2.7.1.47, 2.7.2.9
		"https://www.sat.gob.mx/minisitio/NormatividadRMFyRGCE/normatividad_rmf_rgce2026.html",
		// Anexo 20, CFDI 4.0
		"http://omawww.sat.gob.mx/tramitesyservicios/Paginas/anexo_20.htm",
		// the schema
		"http://www.sat.gob.mx/sitio_internet/cfd/4/cfdv40.xsd",
		// the original string
		"http://www.sat.gob.mx/sitio_internet/cfd/4/cadenaoriginal_4_0/cadenaoriginal_4_0.xslt",
		// the stamp
		"http://www.sat.gob.mx/sitio_internet/cfd/TimbreFiscalDigital/TimbreFiscalDigitalv11.xsd",
		// cancellation
		"http://omawww.sat.gob.mx/tramitesyservicios/Paginas/documentos/Esquema_cancelacion.pdf",
		// two providers
		"https://wiki.finkok.com/home/webservices/ws_timbrado/stamp", "https://developers.sw.com.mx/knowledge-base/timbradov4-cfdi",
	}
}

func facts() country.Facts {
	return country.Facts{
		TaxNumberName: "RFC", Currency: "MXN", Languages: []string{"ES", "EN"}, TimeZone: satwire.ZoneCentre,
		UseCases:       []country.UseCase{country.Reporting, country.Invoicing, country.Both},
		NumberOptional: true,
		Required:       required(), Patterns: patterns(), TaxesPerLine: 3, NumberExample: "URE180429TM6",
		Dates: &country.DateRule{Past: int(satwire.StampWithin.Hours()), Ahead: int(aheadMax.Minutes()),
			Reason: "SAT stamps nothing later, and nothing before its date (error 401)"},
		Allowed: []country.ValueRule{
			{Field: "currency_code", Values: transaction.Currencies(currency), Reason: "the currencies of SAT's catalogue"},
			{Field: "items.*.tax_breakdowns.*.regime",
				Values: []string{transaction.VAT, regimeIVA, regimeIEPS, regimeISH, transaction.Withholding},
				Reason: "VAT and IVA are the same tax"},
		},
		MaxLengths: []country.LengthRule{
			{Field: "customer.legal_name", Max: 300, Reason: "Nombre has at most 300 characters"},
		},
		Regimes: []string{transaction.VAT, regimeIVA, regimeIEPS, regimeISH},
		ReasonCodes: []country.Meaning{
			{Code: taxISR, Meaning: "ISR, withheld: tax_breakdowns with regime RET and type ISR"},
			{Code: taxIVA, Meaning: "IVA: regime VAT or IVA; withheld: regime RET and type IVA"},
			{Code: taxIEPS, Meaning: "IEPS: regime IEPS; IVA beside it is due on the price with IEPS"},
		},
		Quotas: []string{regimeIEPS},
		Rates:  rates(), StrictRates: true, StrictNumbers: true,
		Corrections: corrections(), Settings: settings(),
		Credentials:    []string{"certificate_base64", "certificate_password", "username", "password"},
		CertificateKey: "RSA",
		Formats:        []string{"PDF", "XML"},
		Authority: &country.Authority{
			Name: "Servicio de Administración Tributaria (SAT)", System: "CFDI 4.0 through an authorised provider (PAC)",
			Protocol: "SOAP or REST with the provider; RSA-SHA256 seals",
		},
		Derivations:  derivations(),
		DeadlineDays: 3, // 72 hours, see satwire.StampWithin
	}
}

// rfcText is how people write an RFC, with separators or the country's letters.
const rfcText = `(?i)^(MX)?([A-Z&Ñ][ ./-]*){3,4}([0-9][ ./-]*){6}([A-Z0-9][ ./-]*){3}$`

// numberText is a number that a voucher repeats as it is. Serie and Folio are
// what is before the last forty characters and those: neither may begin or end
// with a blank.
const numberText = `^[^|\pZ\pC]+( [^|\pZ\pC]+)*$`

// withRFC is met by customers who are on SAT's file: the RFCs of the public and
// of foreigners are nobody's.
func withRFC() []country.Condition {
	return []country.Condition{{
		Field: "customer.tax_information.tax_number", Matches: country.Matching(rfcText),
		Unless: country.Matching(`(?i)^X(AXX|EXX)[ ./-]*010101[ ./-]*000$`),
	}}
}

func required() []country.FieldRule {
	return []country.FieldRule{
		{Field: "customer.tax_information.tax_number", BusinessModel: transaction.B2B,
			When: []country.Condition{country.In("MX")}, Reason: "an invoice to a business in Mexico names its RFC"},
		{Field: "customer.address.postal_code", When: withRFC(), Reason: "SAT compares it with the one it has on file for the RFC"},
		{Field: "exchange_rate", When: []country.Condition{country.OtherThan("MXN")},
			Reason: "SAT asks for the pesos of one unit of a foreign currency"},
	}
}

func patterns() []country.PatternRule {
	list := []country.PatternRule{
		{Field: "customer.address.postal_code", Pattern: country.Matching(`^\s*[0-9]{5}\s*$`), When: withRFC(),
			Example: "86991", Reason: "five digits"},
		{Field: "items.*.unit_price", Pattern: country.Matching(`^-?[1-9]`), Example: "100",
			Reason: "SAT takes no line without a price (CFDI40166): what is given away has its price and a discount of 100 %"},
		{Field: "items.*.code", Pattern: country.Matching(`^[0-9]{8}$`), Example: productNone,
			Reason: "a key of c_ClaveProdServ, " + productNone + " where none fits"},
		{Field: "payments.*.code", Pattern: country.Matching(`^((PUE|PPD)(:[0-9]{2})?|[0-9]{2})$`), Example: "PUE",
			Reason: "the method, or either with a form of payment like PUE:03, or the form alone"},
	}
	list = append(list, country.PatternRule{Field: "transaction_number", Pattern: country.Matching(numberText), Example: "A 1",
		Reason: "no character |, no blanks but single spaces inside, and no invisible characters: SAT's schema draws blanks together, and the voucher would have another number"})
	for _, field := range []string{"customer.legal_name", "customer.tax_information.tax_number", "items.*.name",
		"items.*.description", "items.*.unit", "items.*.ean"} {
		list = append(list, country.PatternRule{Field: field, Pattern: country.Matching(`^[^|]*$`), Example: "a",
			Reason: "no character |, which separates the parts of the original string"})
	}
	return list
}

// rates are those of c_TasaOCuota that are transferred. IEPS has many; the
// table says which exist, not which goods have them.
func rates() []country.Rate {
	var list []country.Rate
	for _, regime := range []string{transaction.VAT, regimeIVA} {
		list = append(list,
			country.Rate{Regime: regime, Type: transaction.TaxStandard, Percent: "16", Since: "2010-01-01"},
			// northern and southern border regions
			country.Rate{Regime: regime, Type: transaction.TaxReduced, Percent: "8", Since: "2019-01-01"},
			// to customers abroad: goods that stay, or that leave
			country.Rate{Regime: regime, Type: transaction.TaxZero, Percent: "0", Typed: true})
	}
	list = append(list, country.Rate{Regime: regimeIEPS, Type: transaction.TaxStandard, Percent: "8"})
	for percent := range strings.FieldsSeq("53 50 30.4 30 26.5 25 9 7 6 3") {
		list = append(list, country.Rate{Regime: regimeIEPS, Type: transaction.TaxReduced, Percent: percent})
	}
	for percent := range strings.FieldsSeq("5 4 3.5 3 2.5 2") { // taxes on lodging, of the states
		list = append(list, country.Rate{Regime: regimeISH, Type: transaction.TaxStandard, Percent: percent})
	}
	return append(list, country.Rate{Regime: regimeIEPS, Type: transaction.TaxZero, Percent: "0", Typed: true})
}

func corrections() []country.Correction {
	const until = "until the end of the month in which the issuer's annual income tax return for the year of issue is due: March for companies, April for people (CFF 29-A; RMF 2.7.1.47)"
	return []country.Correction{
		{Kind: transaction.Adjustment,
			Deadline: "none: below nothing it is a voucher of type E, above it one of type I; the reason is the relation to the original", Reasons: relations(), ReasonPattern: relationPattern},
		{Kind: transaction.Credit, Deadline: "none: a voucher of type E for the whole"},
		{Kind: transaction.Cancellation, Deadline: until, Reasons: motives(), ReasonRequired: true, ReasonPattern: motivePattern},
		{Kind: transaction.PaymentReport,
			Deadline: "by the fifth day of the month after the payment (RMF 2.7.1.32): a voucher of type P for what was sold as PPD"},
		{Kind: transaction.Backfill},
	}
}

func settings() []country.Setting {
	return []country.Setting{
		{Key: settingRegime, Type: "string", Default: "", Values: append([]string{""}, satwire.Regimes()...),
			Description: "RegimenFiscal of the issuer (c_RegimenFiscal). Empty: 601 for companies, 612 for people."},
		{Key: settingPlace, Type: "string", Default: "", Pattern: `^([0-9]{5})?$`,
			Description: "LugarExpedicion, the postal code of the place of issue; it decides the time zone. Empty: that of the company's address."},
		{Key: settingUse, Type: "string", Default: "G03", Values: satwire.Uses(),
			Description: "UsoCFDI of customers with an RFC who name none. Where the customer's regime does not have it: S01."},
		{Key: settingProduct, Type: "string", Default: productNone, Pattern: `^[0-9]{8}$`,
			Description: "ClaveProdServ of items without a code."},
		{Key: settingUnit, Type: "string", Default: "", Pattern: `^[0-9A-Z]{0,3}$`,
			Description: "ClaveUnidad of items whose unit is no key of c_ClaveUnidad. Empty: H87 for goods, E48 for services."},
		{Key: settingThirds, Type: "object", Default: map[string]any{},
			Description: "Those on whose account the company sells (ACuentaTerceros), by RFC: {\"RFC\": {\"name\", \"regime\", \"postal_code\"}}. A line names one with classification {scheme: TERCERO, code: RFC}."},
		{Key: settingGlobal, Type: "string", Default: globalNone,
			Values:      []string{globalNone, string(country.Daily), string(country.Weekly), string(country.Monthly)},
			Description: "For how long sales in pesos to the general public are gathered into one global invoice; weeks begin on Monday and end with the month. none: a global invoice for each sale."},
		{Key: settingPAC, Type: "string", Default: wire.SOAP, Values: []string{wire.SOAP, wire.REST},
			Description: "The provider's protocol: soap (Finkok) or rest (SW). Its address is the installation's."},
	}
}

func derivations() []string {
	return append(country.DerivationRules(),
		"A withheld entry (RET) without a type is IVA at 5.3333, 6, 8, 10.6667 or 16 %, and ISR at 1, 1.25, 2.1, 2.5, 10, 20, 25, 30 or 35 %; at any other rate, and at 4 %, the type must be given. Type LOCAL is a tax of a state, or a duty on public works, with its name as code: CEDULAR, 5MILLAR.",
		"IEPS by quota (TipoFactor Cuota) is an entry of rate 0 with quota, in centavos a unit, and quota_base, in litres or whatever the law counts; IVA beside it is due on the price with it. Not to the general public, and in pesos.",
		"IVA of 8 % is for invoices whose place of issue, or on whose account a line is sold, has a postal code of the northern or the southern border region.",
		"Exempt lines say so with type EXEMPT, lines that are no object of the tax with OUTSIDE or without tax_breakdowns; a rate of 0 alone is the rate of 0 %.",
		"TipoDeComprobante is I for invoices and for adjustments above nothing, E for credits and for adjustments below nothing (all signs change).",
		"TipoRelacion of an adjustment is its reason: 01, 02, 03, 04 or 07, also with further vouchers as in 01:UUID,UUID. Without a reason it is 02 above nothing; below it 03 when every line of an adjustment is of type GOODS and takes back an item of the original of the same name and unit price, in no larger quantity; otherwise 01.",
		"A negative line of an invoice (a positive one of an adjustment below nothing) becomes Descuento of the lines with the same taxes, in proportion to their net amounts, the largest remainders first; the total stays exact.",
		"MetodoPago is payments.code: PUE or PPD, also with a form as in PUE:03; without a code CREDIT is PPD and everything else PUE; without payments PPD, or PUE in cash where the receiver is the general public. FormaPago is 99 with PPD, else that of the largest payment: CASH 01, CHECK 02, TRANSFER 03, CARD and CREDIT 04, OTHER 31. A type E is PUE in its own form, else that of the original or of the last payment for it, else 15; with relation 07 it is 30.",
		"Folio is transaction_number; of one longer than 40 characters the first ones are Serie. Without a number Folio is the service's own unique number.",
		"Receptor: a customer with an RFC is named by it, with UsoCFDI from tax_information.use, RegimenFiscalReceptor and UsoCFDI from tax_information.regime written 601 or 601/G01, else 601 for companies, 616 for individuals, 612 for other people, and settings.cfdi_use (G02 in a type E), or S01 where the regime does not have it. A customer abroad is XEXX010101000, any other XAXX010101000, both 616 and S01 at the place of issue.",
		"A receiver XAXX010101000 named PUBLICO EN GENERAL, which is also the customer of a transaction without one, makes a global invoice of one day (InformacionGlobal 01) where it is of type I: per combination of taxes one line 01010101, ACT, Venta, with the sale's number; PUE, without withholding. With settings.global_invoice such sales in pesos are gathered by day, week or month (Periodicidad 01, 02, 04) and filed after its end in one voucher, in the form in which most was paid.",
		"Fecha is transaction_date in the time zone of the place of issue; a date up to five minutes ahead of the service's clock becomes the moment of sealing.",
	)
}
