package api

import (
	"reflect"
	"strings"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

// What the schemas of answers say beyond the Go types from which they are made.

const (
	stampPattern = `^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$`
	hex32        = `^[0-9a-f]{32}$`
	hex40        = `^[0-9a-f]{40}$`
)

// answerNames gives types their names in the document where the Go name would not tell.
var answerNames = map[reflect.Type]string{
	reflect.TypeFor[errorBody]():                 "Error",
	reflect.TypeFor[fault.Fault]():               "Fault",
	reflect.TypeFor[operationAnswer]():           "AcceptedOperation",
	reflect.TypeFor[validateAnswer]():            "ValidTransaction",
	reflect.TypeFor[totalsAnswer]():              "Totals",
	reflect.TypeFor[historyAnswer]():             "History",
	reflect.TypeFor[historyUnknown]():            "UnknownTransaction",
	reflect.TypeFor[filing.Result]():             "TransactionResult",
	reflect.TypeFor[filing.CorrectionEntry]():    "ResultCorrection",
	reflect.TypeFor[filing.Row]():                "TransactionRow",
	reflect.TypeFor[page[filing.Row]]():          "TransactionRowPage",
	reflect.TypeFor[transaction.Address]():       "ResultAddress",
	reflect.TypeFor[page[filing.Series]]():       "SeriesPage",
	reflect.TypeFor[meAnswer]():                  "Me",
	reflect.TypeFor[meLimits]():                  "CallerLimits",
	reflect.TypeFor[countryAnswer]():             "Country",
	reflect.TypeFor[page[countryAnswer]]():       "CountryPage",
	reflect.TypeFor[country.Correction]():        "CountryCorrection",
	reflect.TypeFor[country.Setting]():           "CountrySetting",
	reflect.TypeFor[country.Obligation]():        "CountryObligation",
	reflect.TypeFor[country.Penalty]():           "CountryPenalty",
	reflect.TypeFor[onboarding.Envelope]():       "JobEnvelope",
	reflect.TypeFor[onboarding.Reference]():      "JobData",
	reflect.TypeFor[onboarding.Company]():        "OnboardedCompany",
	reflect.TypeFor[account.Look]():              "CompanyBranding",
	reflect.TypeFor[account.Colours]():           "CompanyColours",
	reflect.TypeFor[account.Logo]():              "CompanyLogo",
	reflect.TypeFor[page[onboarding.Company]]():  "OnboardedCompanyPage",
	reflect.TypeFor[onboarding.Meta]():           "CompanyMeta",
	reflect.TypeFor[onboarding.TaxInformation](): "CompanyTaxInformation",
	reflect.TypeFor[onboarding.Credential]():     "CompanyCredential",
	reflect.TypeFor[lookup.Batch]():              "BatchValidation",
	reflect.TypeFor[lookup.Single]():             "SingleValidation",
	reflect.TypeFor[lookup.Validation]():         "TaxNumberValidation",
	reflect.TypeFor[eventAnswer]():               "WebhookEvent",
	reflect.TypeFor[page[eventAnswer]]():         "WebhookEventPage",
	reflect.TypeFor[redeliverAnswer]():           "RedeliveredEvent",
}

// answerValues lists the values of the types that have a few.
var answerValues = map[reflect.Type][]any{
	reflect.TypeFor[filing.Status]():    list(filing.Success, filing.Processing, filing.Failure),
	reflect.TypeFor[transaction.Kind](): list(transaction.Invoice, transaction.Adjustment, transaction.Credit, transaction.Cancellation, transaction.Backfill, transaction.PaymentReport, transaction.Period),
	reflect.TypeFor[country.UseCase]():  list(country.Reporting, country.Invoicing, country.Both),
	reflect.TypeFor[lookup.Format]():    list(lookup.FormatValid, lookup.FormatInvalid),
	reflect.TypeFor[lookup.Status](): list(lookup.StatusPending, lookup.StatusRegistered, lookup.StatusNotRegistered, lookup.StatusInvalid,
		lookup.StatusNotChecked, lookup.StatusUnknown, lookup.StatusCanceled),
	reflect.TypeFor[lookup.Business](): list(lookup.BusinessYes, lookup.BusinessNo, lookup.BusinessUnknown),
	reflect.TypeFor[lookup.Progress](): list(lookup.Running, lookup.Completed, lookup.Canceled),
	reflect.TypeFor[webhook.Status]():  list(webhook.Pending, webhook.Delivered, webhook.Discarded, webhook.Unsubscribed),
	reflect.TypeFor[fault.Type]():      list(fault.Validation, fault.Authentication, fault.TaxAuthority, fault.Warning, fault.General),
	reflect.TypeFor[fault.Code]():      codes(),
}

func codes() (all []any) {
	for _, m := range fault.Codes() {
		all = append(all, m.Code)
	}
	return all
}

// detail is what is said of one member of an answer.
type detail struct {
	about  string
	with   object // keywords beyond those of the type
	orNull bool   // the Go type does not tell that it may be null
}

func about(text string) detail      { return detail{about: text} }
func aboutStamp(text string) detail { return detail{about: text, with: stampSchema()} }
func aboutForm(text, pattern string) detail {
	return detail{about: text, with: object{"pattern": pattern}}
}
func aboutValues(text string, v ...any) detail { return detail{about: text, with: object{"enum": v}} }

// amountOf is an amount in an answer.
func amountOf(text string) detail {
	return detail{about: text + " Minor units.", with: object{"examples": []any{18168}}}
}

func stampSchema() object {
	return object{"format": "date-time", "pattern": stampPattern, "examples": []any{"2026-03-31T10:00:00Z"}}
}

// details describes every member of every answer; a test finds members without
// a line here and lines without a member.
var details = map[string]detail{
	"Error.message": about("What was refused, in one sentence."), "Error.errors": about("Everything that is wrong, at most 100 entries; the message says when there are more."),
	"Fault.code": about("Stable name of the fault; x-codes explains each."), "Fault.message": about("What is wrong, for people."),
	"Fault.type":  about("Which party the fault speaks of; a warning hinders nothing."),
	"Fault.field": {about: "Dotted path with indices from 0, as you spelled it; empty when no field is meant.", with: object{"examples": []any{"items.0.tax_breakdowns.1.rate"}}},

	"AcceptedOperation.operation_id": {about: "Of this attempt.", with: object{"format": "uuid", "examples": []any{"0199b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"}}},
	"ValidTransaction.valid":         aboutValues("Always true; what is not valid is refused with 400.", true),
	"ValidTransaction.totals":        about("What the transaction would amount to."), "ValidTransaction.warnings": about("What its result would warn of."),
	"Totals.total_amount": amountOf("With tax."), "Totals.total_net_amount": amountOf("Without tax."), "Totals.total_tax_amount": amountOf("The tax."), "Totals.total_withheld_amount": amountOf("What the customer withholds."),
	"History.history": about("Attempts, oldest first."), "HistoryEntry.operation_id": {about: "Of the attempt.", with: object{"format": "uuid"}}, "HistoryEntry.status": about("Of the attempt."),
	"UnknownTransaction.message": about("That it is not known."), "UnknownTransaction.transaction_id": about("As asked."),

	"TransactionResult.operation_id":              {about: "Of this attempt.", with: object{"format": "uuid"}},
	"TransactionResult.transaction_id":            about("Your id."),
	"TransactionResult.transaction_number":        about("Your document number."),
	"TransactionResult.unique_transaction_number": about("Number given by the service, unique across it; null until SUCCESS."),
	"TransactionResult.transaction_date":          aboutStamp("As submitted, in UTC."),
	"TransactionResult.document_generated_at":     aboutStamp("When the visual document was made."),
	"TransactionResult.reported_at":               aboutStamp("When the authority took it."),
	"TransactionResult.tax_authority_id_1":        about("Identifier in the authority's system."),
	"TransactionResult.tax_authority_id_2":        about("Second identifier, in some countries."),
	"TransactionResult.status":                    about("SUCCESS never changes."),
	"TransactionResult.kind":                      about("What the transaction does in the books."),
	"TransactionResult.reference_transaction_id":  about("transaction_id of the original of a correction."),
	"TransactionResult.attachments":               about("Generated documents; download them at once, their addresses expire."),
	"TransactionResult.business_model":            aboutValues("From the customer's type.", transaction.B2C, transaction.B2B),
	"TransactionResult.direction":                 aboutValues("Always SENT.", "SENT"),
	"TransactionResult.operation_regime":          aboutValues("From the taxes and parties.", transaction.General, transaction.Export, transaction.SelfBilling),
	"TransactionResult.type":                      aboutValues("SIMPLIFIED without a customer in full.", transaction.Full, transaction.Simplified),
	"TransactionResult.country_code":              about("As submitted."), "TransactionResult.currency_code": about("As submitted; a credit's is the original's."),
	"TransactionResult.language_code": about("As submitted, or the country's first language."),
	"TransactionResult.items":         about("Lines with their amounts; of a credit or cancellation negated."), "TransactionResult.payments": about("As submitted; of a credit or cancellation negated."),
	"TransactionResult.order_items": about("What was ordered, on an advance invoice; absent elsewhere."), "Country.advance_invoices": about("Whether order_items make an invoice one of money that came before the supply."), "CountryCorrection.deducting_reasons": about("Reasons whose references are deducted in lines of the document: their amounts add up to those lines."),
	"TransactionResult.third_parties": about("Who else has to do with the document; absent where nobody has."), "ResultParty.role": about("Of a third party; absent elsewhere."), "ResultParty.share": about("Of a third party, as submitted; absent elsewhere."), "Country.quota_regimes": about("Regimes of taxes that may have a quota in place of a rate; absent where none may."), "Country.third_party_roles": about("Roles of third_parties; empty: documents name none."),
	"TransactionResult.supplier": about("Who sold."), "TransactionResult.customer": about("Who bought."), "TransactionResult.issuer": about("Who issued on the supplier's behalf."),
	"TransactionResult.note": about("As sent."), "TransactionResult.exchange_rate": about("As submitted."), "TransactionResult.exchange_rate_date": {about: "As submitted.", with: object{"format": "date"}},
	"TransactionResult.qr_code":      about("Text of the code on the document, in some countries."),
	"TransactionResult.total_amount": amountOf("With tax; null while there are no items."), "TransactionResult.total_net_amount": amountOf("Sum of net_price."), "TransactionResult.total_tax_amount": amountOf("total_amount less total_net_amount."),
	"TransactionResult.total_withheld_amount": amountOf("What the customer withholds; it lowers what is payable, not the totals."), "TransactionResult.series": about("Id of the series that the number was drawn from; null: it was sent."),
	"ResultTax.application_mode": about("Whether the price includes the tax; null where it is withheld."), "ResultTax.tax_reason": about("What the code means, in the country's own words; null without one."),
	"Me.client_id": about("The client."), "Me.environment": aboutValues("Of the client and all its keys.", "test", "live"), "Me.key_id": about("The third part of the key's text."), "Me.scopes": about("What the key may be used for."), "Me.expires_at": aboutStamp("When the key ends; null: never."), "Me.limits": about("What bounds this caller."),
	"CallerLimits.requests_per_second": about("Null: no limit."), "CallerLimits.burst": about("Null: no limit."), "CallerLimits.per_node": about("True: requests_per_second and burst are counted by each node of the service for itself, so behind a load balancer the whole may take as many times as much as there are nodes."), "CallerLimits.body_bytes_max": about("Of a request's body."), "CallerLimits.networks": about("From which the key may be used; empty: from anywhere."),
	"Series.id": aboutForm("Of the series.", hex32), "Series.supplier_id": about("The company whose transactions are numbered."), "Series.kind": about("What is numbered."), "Series.country_code": about("Of the transactions."), "Series.pattern": about("Of the numbers."), "Series.next": about("The next number to be drawn, of this year where the series counts by years."), "Series.yearly": about("Whether it counts anew in each year."),
	"TransactionResult.rounding_amount": amountOf("What the structured invoice rounds to come out at total_amount (EN 16931 BT-114); 0 where it does not."),
	"TransactionResult.buyer_reference": about("As submitted; a credit's is the original's, as the other references."), "TransactionResult.order_reference": about("As submitted."), "TransactionResult.contract_reference": about("As submitted."), "TransactionResult.project_reference": about("As submitted."),
	"TransactionResult.due_date": {about: "As submitted.", with: object{"format": "date"}}, "TransactionResult.delivery_date": {about: "As submitted.", with: object{"format": "date"}}, "TransactionResult.payment_terms": about("As submitted."),
	"TransactionResult.latest_by":   aboutStamp("Legal deadline of reporting, where there is one."),
	"TransactionResult.corrections": about("Corrections of this transaction; its own status never changes."), "TransactionResult.errors": about("Errors of a FAILURE, and warnings; empty when there is nothing to say."),
	"TransactionResult.lifecycle": about("What was said after SUCCESS, oldest first: by the authority, a platform, an access point or the buyer. It changes nothing of the status; each entry makes an event transactions.transaction_updated."),

	"LifecycleEntry.at":   aboutStamp("By the source's clock."),
	"LifecycleEntry.code": about("The source's own."), "LifecycleEntry.name": about("The source's own."),
	"LifecycleEntry.source":   aboutValues("Who says it.", string(country.FromAuthority), string(country.FromPlatform), string(country.FromAccessPoint), string(country.FromBuyer)),
	"LifecycleEntry.severity": aboutValues("How much it matters; a PROBLEM contests the outcome.", string(country.Info), string(country.Caution), string(country.Problem)),
	"LifecycleEntry.message":  about("In the source's words; may be empty."),

	"Attachment.kind":        aboutValues("VISUAL for people, REPORT as it went to the authority, RECEIPT as it came back.", "VISUAL", "REPORT", "RECEIPT"),
	"Attachment.resource_id": aboutForm("Of the document.", hex32), "Attachment.resource_url": {about: "Signed address, valid for a short time; do not hand it on.", with: object{"format": "uri"}},
	"Attachment.type":   aboutValues("Format.", "PDF", "XML", "JSON"),
	"ResultItem.number": about("As submitted."), "ResultItem.name": about("As submitted."), "ResultItem.description": about("As submitted."), "ResultItem.code": about("As submitted."), "ResultItem.ean": about("As submitted."),
	"ResultItem.unit": about("As submitted."), "ResultItem.quantity": about("As submitted."), "ResultItem.unit_price": amountOf("As submitted."), "ResultItem.net_price": amountOf("Net amount of the whole line."),
	"ResultItem.type": aboutValues("GOODS where absent.", transaction.Goods, transaction.Services, transaction.Discount), "ResultItem.tax_breakdown": about("Taxes with their amounts."),
	"ResultItem.discount": about("What was taken from the line; absent without one."), "ResultDiscount.amount": amountOf("In the terms of the price, with the sign of the line."), "ResultDiscount.rate": about("As submitted; null where an amount was."),
	"ResultItem.classification": about("As submitted."), "ResultClassification.scheme": about("As submitted."), "ResultClassification.code": about("As submitted."),
	"ResultTax.amount": amountOf("The tax."), "ResultTax.rate": about("Percentage."), "ResultTax.regime": about("As submitted."), "ResultTax.type": about("As submitted, or derived by the country's rules."), "ResultTax.code": about("As submitted or derived; absent where there is none."),
	"ResultPayment.type": aboutValues("As submitted.", "CREDIT", "CARD", "CASH", "TRANSFER", "CHECK", "OTHER"), "ResultPayment.code": about("As submitted."), "ResultPayment.amount": amountOf("As submitted."), "ResultPayment.iban": about("As submitted."), "ResultPayment.reference": about("As submitted."), "ResultTax.quota": about("As submitted; absent where the tax has a rate."), "ResultTax.quota_base": about("As submitted; absent where it is the line's quantity."), "ResultPayment.date": about("As submitted; absent where it was not said."),
	"ResultSupplier.id": about("Of the company."), "ResultSupplier.external_id": about("Your own id of the company; null while it is not known."),
	"ResultParty.id":         {about: "Of the company whose facts these are; absent unless the customer was named so."},
	"ResultParty.legal_name": about("As submitted."), "ResultParty.trade_name": about("As submitted."), "ResultParty.entity_number": about("As submitted."), "ResultParty.address": about("As submitted."),
	"ResultParty.tax_information": about("As submitted."), "ResultParty.type": aboutValues("As submitted.", transaction.Individual, transaction.Business),
	"ResultParty.electronic_address": about("As submitted."), "ResultParty.email": about("As submitted, of a customer."), "ResultParty.phone": about("As submitted, of a customer."),
	"ResultElectronic.scheme": about("As submitted."), "ResultElectronic.id": about("As submitted."),
	"ResultTaxNumber.tax_number": about("As submitted."), "ResultTaxNumber.regime": about("As submitted."), "ResultTaxNumber.fiscal_code": about("As submitted, of a customer."), "ResultTaxNumber.use": about("As submitted, of a customer."),
	"ResultCorrection.transaction_id": about("Of the correction."), "ResultCorrection.operation_id": {about: "Of the correction's attempt.", with: object{"format": "uuid"}}, "ResultCorrection.kind": about("Of the correction."), "ResultCorrection.status": about("Of the correction."),

	"JobEnvelope.status":      aboutValues("Of the job.", onboarding.Pending, onboarding.Processing, onboarding.Success, onboarding.Failed),
	"JobEnvelope.data":        about("The job while it runs, the company once it is onboarded, null when the job failed."),
	"JobEnvelope.message":     about("For people."),
	"JobEnvelope.errors":      {about: "What is wrong; null unless the job failed.", orNull: true},
	"JobData.job_id":          aboutForm("Of the job.", hex32),
	"JobData.id":              aboutForm("Of the company: supplier.id of its transactions.", hex32),
	"OnboardedCompany.id":     aboutForm("The id to use as supplier.id.", hex32),
	"OnboardedCompany.status": aboutValues("closed: nothing more is issued in its name.", "active", "closed"),
	"OnboardedCompany.meta":   about("As submitted."), "OnboardedCompany.legal_name": about("As submitted."), "OnboardedCompany.type": aboutValues("A business or a person.", "BUSINESS", "INDIVIDUAL"), "OnboardedCompany.company_number": about("As submitted."), "OnboardedCompany.address": about("As submitted."), "OnboardedCompany.tax_information": about("As submitted."),
	"JobData.visit":          {about: "What a person must do before the job can end: visit the address and agree there. Absent where nothing is asked for."},
	"OnboardedCompany.visit": {about: "What a person must do before a change of the company can end. Absent where nothing is asked for."},
	"Visit.url":              {about: "The address to open in a browser.", with: object{"format": "uri"}}, "Visit.expires_at": {about: "Until when it works; ask again for a fresh one."},
	"JobData.job_status_location": {about: "Where the job is asked about.", with: object{"format": "uri"}}, "JobData.location": {about: "Where the company is.", with: object{"format": "uri"}},
	"OnboardedCompany.settings": about("The country's own keys, defaults filled in."), "OnboardedCompany.credentials": about("That there are some, never what they are."),
	"OnboardedCompany.branding": about("Its own look of documents; absent when it has the client's."),
	"CompanyBranding.logo":      about("That there is one, and which."), "CompanyBranding.logo_placement": aboutValues("Where the logo stands; absent: the client's choice.", "left", "center", "right"),
	"CompanyBranding.colours": about("Of its documents."), "CompanyBranding.font": aboutValues("Family of the text; absent: the client's choice.", "sans", "serif"),
	"CompanyBranding.template": aboutValues("Arrangement; absent: the client's choice.", "classic", "modern", "receipt"), "CompanyBranding.footer": about("Its own words in the foot of every page; absent: the client's."),
	"CompanyColours.accent": about("Lines and titles, #RRGGBB."), "CompanyColours.ink": about("Text, #RRGGBB."),
	"CompanyLogo.media_type": aboutValues("Of the picture.", "image/png", "image/jpeg"), "CompanyLogo.sha256": {about: "SHA-256 of the picture.", with: object{"pattern": `^[0-9a-f]{64}$`}},
	"CompanyLogo.width": about("In pixels."), "CompanyLogo.height": about("In pixels."), "CompanyLogo.bytes": about("Size of the file."),
	"OnboardedCompany.created_at": aboutStamp("When it was onboarded."), "OnboardedCompany.updated_at": aboutStamp("When it last changed."),
	"CompanyMeta.country_code": about("As submitted."), "CompanyMeta.language_code": about("As submitted."), "CompanyMeta.external_id": about("Your own id."),
	"CompanyTaxInformation.tax_number": about("As submitted."), "CompanyTaxInformation.regime": about("As submitted."),
	"CompanyCredential.kind": aboutValues("What it is.", onboarding.CertificateCredential, onboarding.LoginCredential), "CompanyCredential.subject": about("Of the certificate."),
	"CompanyCredential.fingerprint": {about: "SHA-256 of the certificate.", with: object{"pattern": `^[0-9a-f]{64}$`}}, "CompanyCredential.expires_at": aboutStamp("Of the certificate."),

	"BatchValidation.batch_id": aboutForm("Of the batch.", hex32), "BatchValidation.batch_name": about("As sent."), "BatchValidation.validations": about("Entries in the order in which they were sent."),
	"BatchValidation.requested_at": aboutStamp("When it was accepted."), "BatchValidation.status": about("Of the batch."), "BatchValidation.batch_validation_result_url": {about: "Where the results are.", with: object{"format": "uri"}},
	"BatchValidation.next_cursor":       about("Where the next page begins, null at the end; absent in the answer to the POST, which has all entries."),
	"TaxNumberValidation.validation_id": aboutForm("Of the entry.", hex32), "TaxNumberValidation.country_iso_code": about("As sent."), "TaxNumberValidation.tax_identification_number": about("As sent."),
	"TaxNumberValidation.format": about("Whether the text can be a number of the country."), "TaxNumberValidation.status": about("How far the entry has come and what was learnt."),
	"TaxNumberValidation.is_business": about("Whether the number belongs to a business."), "TaxNumberValidation.business_name": about("As the register has it."), "TaxNumberValidation.business_address": about("As the register has it."),
	"TaxNumberValidation.error_code": about("Why nothing was learnt: a code of x-codes, or in capitals the register's own."),
	"SingleValidation.requested_at":  aboutStamp("When it was accepted."), "SingleValidation.single_validation_result_url": {about: "Where the result is.", with: object{"format": "uri"}},

	"WebhookEvent.webhook_id": aboutForm("Idempotency key of the event.", hex40), "WebhookEvent.event_type": {about: "What happened.", with: object{"enum": list(webhook.EventTypes()...)}},
	"WebhookEvent.resource_id": about("Of the resource."), "WebhookEvent.resource_url": {about: "Of the resource.", with: object{"format": "uri"}}, "WebhookEvent.status": about("Of the delivery."),
	"WebhookEvent.tries": about("How many were made."), "WebhookEvent.next_try_at": aboutStamp("When the next one is due."), "WebhookEvent.last_status": about("HTTP status of the last reply."), "WebhookEvent.created_at": aboutStamp("When it happened."),
	"RedeliveredEvent.webhook_id": aboutForm("As asked.", hex40),
}

// countryDetails are those of the countries' facts.
var countryDetails = map[string]detail{
	"Country.country_code": about("ISO 3166-1, or XX."), "Country.name": about("In English."), "Country.version": about("Of the rules; stored with every operation."), "Country.legal_sources": about("The law, as addresses."), "Country.retention_years": about("For which records are kept, from the end of the calendar year; a client may have more."),
	"Country.enabled_use_case": about("What this client may use it for; null: it is not enabled."),
	"Country.currency":         about("Of the country."), "Country.languages": about("Of documents; the first is the default."), "Country.time_zone": about("Where the supplier's address does not decide."), "Country.use_cases": about("What can be configured."),
	"Country.filing_obligatory": about("Invoicing files with the authority as well."), "Country.transaction_number_optional": about("The number may be left out."),
	"Country.required_fields": about("Required beyond the members every country requires."), "Country.forbidden_fields": about("Refused with unsupported_field."), "Country.allowed_values": about("Members with a few values only."), "Country.max_lengths": about("Shorter limits than the general ones."),
	"Country.tax_regimes": about("Known regimes; empty: any."), "Country.tax_codes": about("The country's own reasons."), "Country.sale_reasons": about("What a sale may give as its reason; empty: nothing."), "Country.tax_rates": about("Table of rates."), "Country.tax_rates_enforced": about("Other rates are an error, not a warning."), "Country.tax_numbers_enforced": about("Doubtful tax numbers are an error, not a warning."),
	"Country.corrections": about("Operations the country knows."), "Country.settings": about("Own keys of a company's settings."), "Country.credentials": about("Members of tax_credentials that onboarding needs."), "Country.certificate_key": about("The only kind of key that certificates may have; absent: either."),
	"Country.secrets": about("Further members of tax_credentials, the country's own."), "Country.tax_number_name": about("By which everybody there knows a business's tax number; empty: by the language's words."),
	"SecretRule.name": about("Member of tax_credentials."), "SecretRule.description": about("What it is for."), "SecretRule.required": about("Onboarding needs it."),
	"Country.formats": about("Of documents."), "Country.authority": about("Who receives filings; null: documents only."), "Country.derivation_rules": about("How type and code of a tax are derived where absent."),
	"Country.reporting_deadline_days": about("Days after transaction_date; absent: none."), "Country.exchange_rate_required": about("Another currency needs exchange_rate; required_fields says so with its condition."),
	"Country.patterns": about("How members are written, where they are sent."), "Country.transaction_dates": about("Which transaction_date is taken; absent: any."), "Country.taxes_per_line_max": about("Entries of tax_breakdowns that are not withheld; absent: any number."),
	"Country.tax_number_example": about("An invented one that the rules accept."), "Country.simplified_max": about("The largest total without a customer, in minor units of the currency; absent: none."),
	"FieldRule.when": about("Only while all of these are met."), "ValueRule.use_case": about("Only with this use case."), "LengthRule.use_case": about("Only with this use case."),
	"Condition.field": about("Dotted path; a member that was not sent reads as nothing."), "Condition.matches": about("Regular expression that the member matches."), "Condition.unless": about("Regular expression that it does not match."),
	"PatternRule.field": about("Dotted path with * for any index."), "PatternRule.pattern": about("Regular expression."), "PatternRule.use_case": about("Only with this use case."), "PatternRule.when": about("Only while all of these are met."), "PatternRule.example": about("A value that fits."), "PatternRule.reason": about("Why."),
	"DateRule.earliest": {about: "First day, in the country's time zone.", with: object{"format": "date"}}, "DateRule.latest": {about: "Last day.", with: object{"format": "date"}}, "DateRule.past_hours_max": about("Hours before now; absent: any."), "DateRule.ahead_minutes_max": about("Minutes after now; absent: any."), "DateRule.not_after_today": about("Not on a later day than today, in the country's time zone."), "DateRule.reason": about("Why."),
	"Rate.beside":                  about("The rate of the main tax beside which it stands; it never stands alone."),
	"TransactionResult.references": about("What a payment was for, or what an adjustment of several corrects; absent elsewhere."),
	"ResultShare.transaction_id":   about("Of a transaction that is referred to."),
	"ResultShare.amount":           amountOf("How much of the payment or the adjustment is for it."),
	"Rate.type_required":           about("An entry of this rate must carry a type, or a code of the country, at least to some customers: the rate alone could mean several things."),
	"FieldRule.field":              about("Dotted path with * for any index."), "FieldRule.use_case": about("Only with this use case."), "FieldRule.business_model": aboutValues("Only with this business model.", transaction.B2C, transaction.B2B), "FieldRule.kind": about("Only for this kind."), "FieldRule.reason": about("Why."),
	"ValueRule.field": about("Dotted path with * for any index."), "ValueRule.values": about("Allowed ones."), "ValueRule.reason": about("Why."),
	"LengthRule.field": about("Dotted path with * for any index."), "LengthRule.max": about("Characters."), "LengthRule.reason": about("Why."),
	"Meaning.code": about("The code."), "Meaning.meaning": about("What it stands for."),
	"Rate.regime": about("The tax."), "Rate.type": about("The kind of rate."), "Rate.percent": about("A decimal."), "Rate.since": {about: "First day.", with: object{"format": "date"}}, "Rate.until": {about: "First day on which it no longer holds.", with: object{"format": "date"}},
	"CountryCorrection.kind": about("The operation."), "CountryCorrection.deadline": about("In words."), "CountryCorrection.deadline_days": about("After the original's date; absent: none."), "CountryCorrection.reasons": about("Allowed values of reason."), "CountryCorrection.reason_pattern": about("Form of reasons that carry more than a listed value, for example 01:UUID."), "CountryCorrection.reason_required": about("Whether reason must be sent."), "CountryCorrection.several_originals": about("Whether references may name several originals."),
	"CountrySetting.key": about("Its name."), "CountrySetting.type": aboutValues("Of its value.", "string", "boolean", "integer", "object"), "CountrySetting.default": about("Where it is not sent."), "CountrySetting.values": about("Allowed ones."), "CountrySetting.pattern": about("Regular expression."),
	"Country.credit_number_required": about("A credit without transaction_number is refused unless a series of kind CREDIT gives it one."), "Country.obligations": about("Since when who must file."),
	"Country.penalties":    about("What the law sets on not filing, or on filing wrongly."),
	"Country.login_until":  about("The last day on which the authority takes user names, passwords or tokens; bring a certificate before."),
	"CountryPenalty.since": about("The first day, YYYY-MM-DD."), "CountryPenalty.what": about("What it is for."), "CountryPenalty.penalty": about("How much."), "CountryPenalty.source": about("The law."),
	"CountryObligation.since": about("The first day, YYYY-MM-DD."), "CountryObligation.whom": about("Who."), "CountryObligation.source": about("The law."),
	"CountrySetting.required": about("Must be sent."), "CountrySetting.description": about("What it is."),
	"Authority.name": about("Its name."), "Authority.system": about("Its system."), "Authority.protocol": about("How it is spoken to."),
}

func detailOf(key string) (detail, bool) {
	d, ok := details[key]
	if !ok {
		d, ok = countryDetails[key]
	}
	if member, row := strings.CutPrefix(key, "TransactionRow."); row && !ok {
		d, ok = details["TransactionResult."+member] // a row is part of a result
	}
	return d, ok
}
