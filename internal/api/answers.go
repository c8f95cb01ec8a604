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
	reflect.TypeFor[account.Appearance]():        "CompanyBranding",
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
	"Error.message": about("What was rejected, in one sentence."), "Error.errors": about("All errors, at most 100; the message says if there are more."),
	"Fault.code": about("Stable error code; explained in x-codes."), "Fault.message": about("Human-readable message."),
	"Fault.type":  about("Which party the error concerns; a warning blocks nothing."),
	"Fault.field": {about: "Dotted path with indices from 0, as you spelled it; empty if no field is concerned.", with: object{"examples": []any{"items.0.tax_breakdowns.1.rate"}}},

	"AcceptedOperation.operation_id": {about: "Id of this attempt.", with: object{"format": "uuid", "examples": []any{"0199b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"}}},
	"ValidTransaction.valid":         aboutValues("Always true; an invalid transaction gets 400.", true),
	"ValidTransaction.totals":        about("Totals of the transaction."), "ValidTransaction.warnings": about("Warnings its result would have."),
	"Totals.total_amount": amountOf("With tax."), "Totals.total_net_amount": amountOf("Without tax."), "Totals.total_tax_amount": amountOf("The tax."), "Totals.total_withheld_amount": amountOf("What the customer withholds."),
	"History.history": about("Attempts, oldest first."), "HistoryEntry.operation_id": {about: "Id of the attempt.", with: object{"format": "uuid"}}, "HistoryEntry.status": about("Status of the attempt."),
	"UnknownTransaction.message": about("States that the transaction is unknown."), "UnknownTransaction.transaction_id": about("As requested."),

	"TransactionResult.operation_id":              {about: "Id of this attempt.", with: object{"format": "uuid"}},
	"TransactionResult.transaction_id":            about("Your transaction id."),
	"TransactionResult.transaction_number":        about("Your document number."),
	"TransactionResult.unique_transaction_number": about("Number assigned by the service, unique across it; null until SUCCESS."),
	"TransactionResult.transaction_date":          aboutStamp("As submitted, in UTC."),
	"TransactionResult.document_generated_at":     aboutStamp("When the visual document was created."),
	"TransactionResult.reported_at":               aboutStamp("When the authority accepted it."),
	"TransactionResult.tax_authority_id_1":        about("Identifier in the authority's system."),
	"TransactionResult.tax_authority_id_2":        about("Second identifier, in some countries."),
	"TransactionResult.status":                    about("Status of the attempt; SUCCESS never changes."),
	"TransactionResult.kind":                      about("Kind of the transaction."),
	"TransactionResult.reference_transaction_id":  about("transaction_id of the original, for a correction."),
	"TransactionResult.attachments":               about("Generated documents; download them promptly, their URLs expire."),
	"TransactionResult.business_model":            aboutValues("Derived from the customer's type.", transaction.B2C, transaction.B2B),
	"TransactionResult.direction":                 aboutValues("Always SENT.", "SENT"),
	"TransactionResult.operation_regime":          aboutValues("Derived from taxes and parties.", transaction.General, transaction.Export, transaction.SelfBilling),
	"TransactionResult.type":                      aboutValues("SIMPLIFIED without a full customer.", transaction.Full, transaction.Simplified),
	"TransactionResult.country_code":              about("As submitted."), "TransactionResult.currency_code": about("As submitted; for a credit the original's."),
	"TransactionResult.language_code": about("As submitted, or the country's first language."),
	"TransactionResult.items":         about("Lines with their amounts; negated for a credit or cancellation."), "TransactionResult.payments": about("As submitted; negated for a credit or cancellation."),
	"TransactionResult.order_items": about("What was ordered, on an advance invoice; otherwise absent."), "Country.advance_invoices": about("Whether order_items turn an invoice into an advance invoice."), "CountryCorrection.deducting_reasons": about("Reasons whose references are deducted in lines of the document: their amounts add up to those lines."),
	"TransactionResult.third_parties": about("Other parties of the document; absent if none."), "ResultParty.role": about("Role of a third party; otherwise absent."), "ResultParty.share": about("Share of a third party, as submitted; otherwise absent."), "Country.quota_regimes": about("Tax regimes that may have a quota instead of a rate; absent if none."), "Country.third_party_roles": about("Roles for third_parties; empty: not supported."),
	"TransactionResult.supplier": about("The seller."), "TransactionResult.customer": about("The buyer."), "TransactionResult.issuer": about("Who issued it on the supplier's behalf."),
	"TransactionResult.note": about("As submitted."), "TransactionResult.exchange_rate": about("As submitted."), "TransactionResult.exchange_rate_date": {about: "As submitted.", with: object{"format": "date"}},
	"TransactionResult.qr_code":      about("Content of the QR code on the document, in some countries."),
	"TransactionResult.total_amount": amountOf("With tax; null while there are no items."), "TransactionResult.total_net_amount": amountOf("Sum of net_price."), "TransactionResult.total_tax_amount": amountOf("total_amount less total_net_amount."),
	"TransactionResult.total_withheld_amount": amountOf("Amount withheld by the customer; it lowers the amount payable, not the totals."), "TransactionResult.series": about("Id of the series that assigned the number; null if the number was submitted."),
	"ResultTax.application_mode": about("Whether the price includes the tax; null for a withheld tax."), "ResultTax.tax_reason": about("Meaning of the code, in the country's own words; null without one."),
	"Me.client_id": about("Client id."), "Me.environment": aboutValues("Environment of the client and all its keys.", "test", "live"), "Me.key_id": about("Key id, the third part of the key."), "Me.scopes": about("Scopes of the key."), "Me.expires_at": aboutStamp("Expiry of the key; null: never."), "Me.limits": about("Limits of this caller."),
	"CallerLimits.requests_per_second": about("Null: no limit."), "CallerLimits.burst": about("Null: no limit."), "CallerLimits.per_node": about("True: requests_per_second and burst apply per node of the service, so behind a load balancer the effective limit grows with the number of nodes."), "CallerLimits.body_bytes_max": about("Maximum size of a request body."), "CallerLimits.networks": about("Networks from which the key may be used; empty: any."),
	"Series.id": aboutForm("Series id.", hex32), "Series.supplier_id": about("Company id of the supplier."), "Series.kind": about("Kind of the numbered transactions."), "Series.country_code": about("Country of the numbered transactions."), "Series.pattern": about("Number pattern."), "Series.next": about("Next number, of the current year if the series restarts yearly."), "Series.yearly": about("Whether it restarts every year."),
	"TransactionResult.rounding_amount": amountOf("Rounding in the structured invoice to match total_amount (EN 16931 BT-114); 0 if none."),
	"TransactionResult.buyer_reference": about("As submitted; for a credit the original's, like the other references."), "TransactionResult.order_reference": about("As submitted."), "TransactionResult.contract_reference": about("As submitted."), "TransactionResult.project_reference": about("As submitted."),
	"TransactionResult.due_date": {about: "As submitted.", with: object{"format": "date"}}, "TransactionResult.delivery_date": {about: "As submitted.", with: object{"format": "date"}}, "TransactionResult.payment_terms": about("As submitted."),
	"TransactionResult.latest_by":   aboutStamp("Legal reporting deadline, if any."),
	"TransactionResult.corrections": about("Corrections of this transaction; its own status never changes."), "TransactionResult.errors": about("Errors of a FAILURE, and warnings; empty if none."),
	"TransactionResult.lifecycle": about("What the authority, a platform, an access point or the buyer reported after SUCCESS, oldest first. It does not change the status; each entry creates an event transactions.transaction_updated."),

	"LifecycleEntry.at":   aboutStamp("By the source's clock."),
	"LifecycleEntry.code": about("The source's own code."), "LifecycleEntry.name": about("The source's own name."),
	"LifecycleEntry.source":   aboutValues("Who reported it.", string(country.FromAuthority), string(country.FromPlatform), string(country.FromAccessPoint), string(country.FromBuyer)),
	"LifecycleEntry.severity": aboutValues("Severity; a PROBLEM contests the outcome.", string(country.Info), string(country.Caution), string(country.Problem)),
	"LifecycleEntry.message":  about("In the source's words; may be empty."),

	"Attachment.kind":        aboutValues("VISUAL: human-readable, REPORT: as sent to the authority, RECEIPT: as received from it.", "VISUAL", "REPORT", "RECEIPT"),
	"Attachment.resource_id": aboutForm("Document id.", hex32), "Attachment.resource_url": {about: "Signed URL, valid for a short time; do not share it.", with: object{"format": "uri"}},
	"Attachment.type":   aboutValues("Format.", "PDF", "XML", "JSON"),
	"ResultItem.number": about("As submitted."), "ResultItem.name": about("As submitted."), "ResultItem.description": about("As submitted."), "ResultItem.code": about("As submitted."), "ResultItem.ean": about("As submitted."),
	"ResultItem.unit": about("As submitted."), "ResultItem.quantity": about("As submitted."), "ResultItem.unit_price": amountOf("As submitted."), "ResultItem.net_price": amountOf("Net amount of the whole line."),
	"ResultItem.type": aboutValues("GOODS if absent.", transaction.Goods, transaction.Services, transaction.Discount), "ResultItem.tax_breakdown": about("Taxes with their amounts."),
	"ResultItem.discount": about("Discount on the line; absent if none."), "ResultDiscount.amount": amountOf("In the same terms as the price, with the sign of the line."), "ResultDiscount.rate": about("As submitted; null if an amount was."),
	"ResultItem.classification": about("As submitted."), "ResultClassification.scheme": about("As submitted."), "ResultClassification.code": about("As submitted."),
	"ResultTax.amount": amountOf("The tax."), "ResultTax.rate": about("Percentage."), "ResultTax.regime": about("As submitted."), "ResultTax.type": about("As submitted, or derived by the country's rules."), "ResultTax.code": about("As submitted or derived; absent if none."),
	"ResultPayment.type": aboutValues("As submitted.", "CREDIT", "CARD", "CASH", "TRANSFER", "CHECK", "OTHER"), "ResultPayment.code": about("As submitted."), "ResultPayment.amount": amountOf("As submitted."), "ResultPayment.iban": about("As submitted."), "ResultPayment.reference": about("As submitted."), "ResultTax.quota": about("As submitted; absent if the tax has a rate."), "ResultTax.quota_base": about("As submitted; absent if it is the line's quantity."), "ResultPayment.date": about("As submitted; absent if not submitted."),
	"ResultSupplier.id": about("Company id."), "ResultSupplier.external_id": about("Your own company id; null while unknown."),
	"ResultParty.id":         {about: "Company id, if the customer was given by id; otherwise absent."},
	"ResultParty.legal_name": about("As submitted."), "ResultParty.trade_name": about("As submitted."), "ResultParty.entity_number": about("As submitted."), "ResultParty.address": about("As submitted."),
	"ResultParty.tax_information": about("As submitted."), "ResultParty.type": aboutValues("As submitted.", transaction.Individual, transaction.Business),
	"ResultParty.electronic_address": about("As submitted."), "ResultParty.email": about("As submitted, for a customer."), "ResultParty.phone": about("As submitted, for a customer."),
	"ResultElectronic.scheme": about("As submitted."), "ResultElectronic.id": about("As submitted."),
	"ResultTaxNumber.tax_number": about("As submitted."), "ResultTaxNumber.regime": about("As submitted."), "ResultTaxNumber.fiscal_code": about("As submitted, for a customer."), "ResultTaxNumber.use": about("As submitted, for a customer."),
	"ResultCorrection.transaction_id": about("transaction_id of the correction."), "ResultCorrection.operation_id": {about: "Id of the correction's attempt.", with: object{"format": "uuid"}}, "ResultCorrection.kind": about("Kind of the correction."), "ResultCorrection.status": about("Status of the correction."),

	"JobEnvelope.status":      aboutValues("Status of the job.", onboarding.Pending, onboarding.Processing, onboarding.Success, onboarding.Failed),
	"JobEnvelope.data":        about("The job while it runs, the company once onboarded, null if the job failed."),
	"JobEnvelope.message":     about("Human-readable message."),
	"JobEnvelope.errors":      {about: "Errors; null unless the job failed.", orNull: true},
	"JobData.job_id":          aboutForm("Job id.", hex32),
	"JobData.id":              aboutForm("Company id: supplier.id of its transactions.", hex32),
	"OnboardedCompany.id":     aboutForm("Company id, to use as supplier.id.", hex32),
	"OnboardedCompany.status": aboutValues("closed: nothing more is issued on its behalf.", "active", "closed"),
	"OnboardedCompany.meta":   about("As submitted."), "OnboardedCompany.legal_name": about("As submitted."), "OnboardedCompany.type": aboutValues("A business or a person.", "BUSINESS", "INDIVIDUAL"), "OnboardedCompany.company_number": about("As submitted."), "OnboardedCompany.address": about("As submitted."), "OnboardedCompany.tax_information": about("As submitted."),
	"JobData.visit":          {about: "Authorization that a person must grant before the job can finish: open the URL and approve. Absent if none is required."},
	"OnboardedCompany.visit": {about: "Authorization that a person must grant before a change of the company can finish. Absent if none is required."},
	"Visit.url":              {about: "URL to open in a browser.", with: object{"format": "uri"}}, "Visit.expires_at": {about: "Expiry of the URL; request a fresh one afterwards."},
	"JobData.job_status_location": {about: "URL of the job.", with: object{"format": "uri"}}, "JobData.location": {about: "URL of the company.", with: object{"format": "uri"}},
	"OnboardedCompany.settings": about("Country-specific settings, with defaults."), "OnboardedCompany.credentials": about("Which credentials exist; never their content."),
	"OnboardedCompany.branding": about("Appearance of its documents; absent: the client's."),
	"CompanyBranding.logo":      about("Metadata of the logo."), "CompanyBranding.logo_placement": aboutValues("Logo position; absent: the client's.", "left", "center", "right"),
	"CompanyBranding.colours": about("Colours of its documents."), "CompanyBranding.font": aboutValues("Font family; absent: the client's.", "sans", "serif"),
	"CompanyBranding.template": aboutValues("Document template; absent: the client's.", "classic", "modern", "receipt"), "CompanyBranding.footer": about("Footer text of every page; absent: the client's."),
	"CompanyColours.accent": about("Lines and titles, #RRGGBB."), "CompanyColours.ink": about("Text, #RRGGBB."),
	"CompanyLogo.media_type": aboutValues("Image type.", "image/png", "image/jpeg"), "CompanyLogo.sha256": {about: "SHA-256 of the image.", with: object{"pattern": `^[0-9a-f]{64}$`}},
	"CompanyLogo.width": about("In pixels."), "CompanyLogo.height": about("In pixels."), "CompanyLogo.bytes": about("Size of the file."),
	"OnboardedCompany.created_at": aboutStamp("When it was onboarded."), "OnboardedCompany.updated_at": aboutStamp("When it last changed."),
	"CompanyMeta.country_code": about("As submitted."), "CompanyMeta.language_code": about("As submitted."), "CompanyMeta.external_id": about("Your own id."),
	"CompanyTaxInformation.tax_number": about("As submitted."), "CompanyTaxInformation.regime": about("As submitted."),
	"CompanyCredential.kind": aboutValues("Kind of credential.", onboarding.CertificateCredential, onboarding.LoginCredential), "CompanyCredential.subject": about("Subject of the certificate."),
	"CompanyCredential.fingerprint": {about: "SHA-256 of the certificate.", with: object{"pattern": `^[0-9a-f]{64}$`}}, "CompanyCredential.expires_at": aboutStamp("Expiry of the certificate."),

	"BatchValidation.batch_id": aboutForm("Batch id.", hex32), "BatchValidation.batch_name": about("As submitted."), "BatchValidation.validations": about("Entries in the order submitted."),
	"BatchValidation.requested_at": aboutStamp("When it was accepted."), "BatchValidation.status": about("Status of the batch."), "BatchValidation.batch_validation_result_url": {about: "URL of the results.", with: object{"format": "uri"}},
	"BatchValidation.next_cursor":       about("Cursor of the next page, null at the end; absent in the answer to the POST, which has all entries."),
	"TaxNumberValidation.validation_id": aboutForm("Validation id.", hex32), "TaxNumberValidation.country_iso_code": about("As submitted."), "TaxNumberValidation.tax_identification_number": about("As submitted."),
	"TaxNumberValidation.format": about("Whether the text has the format of a tax number of the country."), "TaxNumberValidation.status": about("Progress and result of the validation."),
	"TaxNumberValidation.is_business": about("Whether the number belongs to a business."), "TaxNumberValidation.business_name": about("As registered."), "TaxNumberValidation.business_address": about("As registered."),
	"TaxNumberValidation.error_code": about("Why there is no result: a code from x-codes, or in capitals the register's own."),
	"SingleValidation.requested_at":  aboutStamp("When it was accepted."), "SingleValidation.single_validation_result_url": {about: "URL of the result.", with: object{"format": "uri"}},

	"WebhookEvent.webhook_id": aboutForm("Idempotency key of the event.", hex40), "WebhookEvent.event_type": {about: "Type of the event.", with: object{"enum": list(webhook.EventTypes()...)}},
	"WebhookEvent.resource_id": about("Id of the resource."), "WebhookEvent.resource_url": {about: "URL of the resource.", with: object{"format": "uri"}}, "WebhookEvent.status": about("Delivery status."),
	"WebhookEvent.tries": about("Delivery attempts so far."), "WebhookEvent.next_try_at": aboutStamp("When the next attempt is due."), "WebhookEvent.last_status": about("HTTP status of the last response."), "WebhookEvent.created_at": aboutStamp("When the event occurred."),
	"RedeliveredEvent.webhook_id": aboutForm("As requested.", hex40),
}

// countryDetails are those of the countries' facts.
var countryDetails = map[string]detail{
	"Country.country_code": about("ISO 3166-1, or XX."), "Country.name": about("English name."), "Country.version": about("Version of the rules; stored with every operation."), "Country.legal_sources": about("Legal sources, as URLs."), "Country.retention_years": about("Legal retention in years, from the end of the calendar year; a client may have more."),
	"Country.enabled_use_case": about("What the country is enabled for; null: not enabled."),
	"Country.currency":         about("Currency of the country."), "Country.languages": about("Languages of documents; the first is the default."), "Country.time_zone": about("Used where the supplier's address does not determine it."), "Country.use_cases": about("Use cases that can be enabled."),
	"Country.filing_obligatory": about("Invoicing also files with the authority."), "Country.transaction_number_optional": about("The number may be omitted."),
	"Country.required_fields": about("Required in addition to the members every country requires."), "Country.forbidden_fields": about("Rejected with unsupported_field."), "Country.allowed_values": about("Members restricted to certain values."), "Country.max_lengths": about("Limits shorter than the general ones."),
	"Country.tax_regimes": about("Known regimes; empty: any."), "Country.tax_codes": about("Country-specific tax reasons."), "Country.sale_reasons": about("Allowed reasons of a sale; empty: none."), "Country.tax_rates": about("Tax rates."), "Country.tax_rates_enforced": about("Other rates are an error, not a warning."), "Country.tax_numbers_enforced": about("Doubtful tax numbers are an error, not a warning."),
	"Country.corrections": about("Supported corrections."), "Country.settings": about("Country-specific company settings."), "Country.credentials": about("Members of tax_credentials required at onboarding."), "Country.certificate_key": about("The only allowed key type of certificates; absent: any."),
	"Country.secrets": about("Further, country-specific members of tax_credentials."), "Country.tax_number_name": about("Common name of a business tax number; empty: the language's general term."),
	"SecretRule.name": about("Member of tax_credentials."), "SecretRule.description": about("Purpose."), "SecretRule.required": about("Required at onboarding."),
	"Country.formats": about("Document formats."), "Country.authority": about("Who receives filings; null: documents only."), "Country.derivation_rules": about("How type and code of a tax are derived where absent."),
	"Country.reporting_deadline_days": about("Days after transaction_date; absent: none."), "Country.exchange_rate_required": about("Another currency requires exchange_rate; see its condition in required_fields."),
	"Country.patterns": about("Format of members, if sent."), "Country.transaction_dates": about("Allowed transaction_date; absent: any."), "Country.taxes_per_line_max": about("Maximum entries of tax_breakdowns that are not withheld; absent: no limit."),
	"Country.tax_number_example": about("An invented tax number that passes the checks."), "Country.simplified_max": about("Maximum total without a customer, in minor units of the currency; absent: none."),
	"FieldRule.when": about("Only if all conditions are met."), "ValueRule.use_case": about("Only with this use case."), "LengthRule.use_case": about("Only with this use case."),
	"Condition.field": about("Dotted path; a member that was not sent counts as empty."), "Condition.matches": about("Regular expression that the member matches."), "Condition.unless": about("Regular expression that it does not match."),
	"PatternRule.field": about("Dotted path with * for any index."), "PatternRule.pattern": about("Regular expression."), "PatternRule.use_case": about("Only with this use case."), "PatternRule.when": about("Only if all conditions are met."), "PatternRule.example": about("A matching value."), "PatternRule.reason": about("Reason."),
	"DateRule.earliest": {about: "Earliest day, in the country's time zone.", with: object{"format": "date"}}, "DateRule.latest": {about: "Latest day.", with: object{"format": "date"}}, "DateRule.past_hours_max": about("Maximum hours in the past; absent: any."), "DateRule.ahead_minutes_max": about("Maximum minutes in the future; absent: any."), "DateRule.not_after_today": about("Not later than today, in the country's time zone."), "DateRule.reason": about("Reason."),
	"Rate.beside":                  about("Rate of the main tax that it accompanies; it is never used alone."),
	"TransactionResult.references": about("What a payment was for, or what an adjustment of several corrects; otherwise absent."),
	"ResultShare.transaction_id":   about("transaction_id of a referenced transaction."),
	"ResultShare.amount":           amountOf("Share of the payment or adjustment."),
	"Rate.type_required":           about("An entry of this rate needs a type or a country code, at least for some customers: the rate alone is ambiguous."),
	"FieldRule.field":              about("Dotted path with * for any index."), "FieldRule.use_case": about("Only with this use case."), "FieldRule.business_model": aboutValues("Only with this business model.", transaction.B2C, transaction.B2B), "FieldRule.kind": about("Only for this kind."), "FieldRule.reason": about("Reason."),
	"ValueRule.field": about("Dotted path with * for any index."), "ValueRule.values": about("Allowed values."), "ValueRule.reason": about("Reason."),
	"LengthRule.field": about("Dotted path with * for any index."), "LengthRule.max": about("Maximum number of characters."), "LengthRule.reason": about("Reason."),
	"Meaning.code": about("The code."), "Meaning.meaning": about("Meaning of the code."),
	"Rate.regime": about("Tax regime."), "Rate.type": about("Type of rate."), "Rate.percent": about("Decimal number."), "Rate.since": {about: "First day.", with: object{"format": "date"}}, "Rate.until": {about: "First day on which it no longer applies.", with: object{"format": "date"}},
	"CountryCorrection.kind": about("Kind of correction."), "CountryCorrection.deadline": about("Deadline in words."), "CountryCorrection.deadline_days": about("Days after the original's date; absent: none."), "CountryCorrection.reasons": about("Allowed values of reason."), "CountryCorrection.reason_pattern": about("Pattern of reasons with more than a listed value, for example 01:UUID."), "CountryCorrection.reason_required": about("Whether reason is required."), "CountryCorrection.several_originals": about("Whether references may name several originals."),
	"CountrySetting.key": about("Name of the setting."), "CountrySetting.type": aboutValues("Type of its value.", "string", "boolean", "integer", "object"), "CountrySetting.default": about("Default value."), "CountrySetting.values": about("Allowed values."), "CountrySetting.pattern": about("Regular expression."),
	"Country.credit_number_required": about("A credit without transaction_number is rejected unless a series of kind CREDIT assigns one."), "Country.obligations": about("Who must file since when."),
	"Country.penalties":    about("Legal penalties for missing or wrong filings."),
	"Country.login_until":  about("Last day on which the authority accepts user names, passwords or tokens; upload a certificate before."),
	"CountryPenalty.since": about("First day, YYYY-MM-DD."), "CountryPenalty.what": about("Offence."), "CountryPenalty.penalty": about("Amount."), "CountryPenalty.source": about("Legal source."),
	"CountryObligation.since": about("First day, YYYY-MM-DD."), "CountryObligation.whom": about("Who must file."), "CountryObligation.source": about("Legal source."),
	"CountrySetting.required": about("Required."), "CountrySetting.description": about("Description."),
	"Authority.name": about("Name."), "Authority.system": about("System."), "Authority.protocol": about("Protocol."),
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
