package api

import (
	_ "embed"
	"reflect"
	"strings"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/result"
	"tributary/internal/series"
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
	reflect.TypeFor[result.Result]():             "TransactionResult",
	reflect.TypeFor[result.CorrectionEntry]():    "ResultCorrection",
	reflect.TypeFor[result.Row]():                "TransactionRow",
	reflect.TypeFor[page[result.Row]]():          "TransactionRowPage",
	reflect.TypeFor[transaction.Address]():       "ResultAddress",
	reflect.TypeFor[page[series.Series]]():       "SeriesPage",
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
	reflect.TypeFor[filing.Status](): list(filing.Success, filing.Processing, filing.Failure),
	reflect.TypeFor[transaction.Kind](): list(transaction.Invoice, transaction.Adjustment, transaction.Credit,
		transaction.Cancellation, transaction.Backfill, transaction.PaymentReport, transaction.Period, transaction.Response),
	reflect.TypeFor[result.Relation](): list(result.SameDocument, result.RefersTo, result.ReferredBy, result.Answers,
		result.AnsweredBy),
	reflect.TypeFor[country.UseCase](): list(country.Reporting, country.Invoicing, country.Both),
	reflect.TypeFor[lookup.Format]():   list(lookup.FormatValid, lookup.FormatInvalid),
	reflect.TypeFor[lookup.Status](): list(lookup.StatusPending, lookup.StatusRegistered, lookup.StatusNotRegistered,
		lookup.StatusInvalid,
		lookup.StatusNotChecked, lookup.StatusUnknown, lookup.StatusCanceled),
	reflect.TypeFor[lookup.Business](): list(lookup.BusinessYes, lookup.BusinessNo, lookup.BusinessUnknown),
	reflect.TypeFor[lookup.Progress](): list(lookup.Running, lookup.Completed, lookup.Canceled),
	reflect.TypeFor[webhook.Status]():  list(webhook.Pending, webhook.Delivered, webhook.Discarded, webhook.Unsubscribed),
	reflect.TypeFor[fault.Type](): list(fault.Validation, fault.Authentication, fault.TaxAuthority, fault.Warning,
		fault.General),
	reflect.TypeFor[fault.Code](): codes(),
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

func stampShape() detail                 { return detail{with: stampSchema()} }
func patternShape(pattern string) detail { return detail{with: object{"pattern": pattern}} }
func enumShape(values ...any) detail     { return detail{with: object{"enum": values}} }

// amountShape is an amount in an answer.
func amountShape() detail { return detail{with: object{"examples": []any{18168}}} }

func stampSchema() object {
	return object{"format": "date-time", "pattern": stampPattern, "examples": []any{"2026-03-31T10:00:00Z"}}
}

//go:embed answers.txt
var answerTexts string

// details describes every member of every answer: a line of answers.txt each,
// with its shape. A test finds members without a line and lines without a member.
var details = describe(answerTexts, shapes)

func describe(texts string, shapes map[string]detail) map[string]detail {
	all := map[string]detail{}
	for line := range strings.Lines(texts) {
		key, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		d := shapes[key]
		d.about = text
		all[key] = d
	}
	return all
}

// shapes are what members of answers may be beyond their types.
var shapes = map[string]detail{
	"Fault.field": {with: object{"examples": []any{"items.0.tax_breakdowns.1.rate"}}},
	"AcceptedOperation.operation_id": {with: object{"format": "uuid",
		"examples": []any{"0199b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"}}},
	"ValidTransaction.valid":                  enumShape(true),
	"Totals.total_amount":                     amountShape(),
	"Totals.total_net_amount":                 amountShape(),
	"Totals.total_tax_amount":                 amountShape(),
	"Totals.total_withheld_amount":            amountShape(),
	"HistoryEntry.operation_id":               {with: object{"format": "uuid"}},
	"TransactionResult.operation_id":          {with: object{"format": "uuid"}},
	"TransactionResult.transaction_date":      stampShape(),
	"TransactionResult.document_generated_at": stampShape(),
	"TransactionResult.reported_at":           stampShape(),
	"TransactionResult.business_model":        enumShape(transaction.B2C, transaction.B2B),
	"TransactionResult.direction":             enumShape(result.Sent, result.Received),
	"TransactionResult.operation_regime":      enumShape(transaction.General, transaction.Export, transaction.SelfBilling),
	"TransactionResult.type":                  enumShape(transaction.Full, transaction.Simplified),
	"TransactionResult.exchange_rate_date":    {with: object{"format": "date"}},
	"TransactionResult.total_amount":          amountShape(),
	"TransactionResult.total_net_amount":      amountShape(),
	"TransactionResult.total_tax_amount":      amountShape(),
	"TransactionResult.total_withheld_amount": amountShape(),
	"Me.environment":                          enumShape("test", "live"),
	"Me.expires_at":                           stampShape(),
	"Series.id":                               patternShape(hex32),
	"TransactionResult.rounding_amount":       amountShape(),
	"TransactionResult.due_date":              {with: object{"format": "date"}},
	"TransactionResult.delivery_date":         {with: object{"format": "date"}},
	"TransactionResult.latest_by":             stampShape(),
	"LifecycleEntry.at":                       stampShape(),
	"LifecycleEntry.source": enumShape(string(country.FromAuthority),
		string(country.FromPlatform), string(country.FromAccessPoint), string(country.FromBuyer), string(country.FromService)),
	"LifecycleEntry.severity": enumShape(string(country.Info), string(country.Caution),
		string(country.Problem)),
	"Attachment.kind":               enumShape(files.Original, "VISUAL", "REPORT", "RECEIPT", "CLIENT"),
	"Attachment.resource_id":        patternShape(hex32),
	"Attachment.resource_url":       {with: object{"format": "uri"}},
	"Attachment.type":               enumShape("PDF", "XML", "JSON", "PNG", "JPEG", "CSV", "ZIP"),
	"ResultItem.unit_price":         amountShape(),
	"ResultItem.net_price":          amountShape(),
	"ResultItem.type":               enumShape(transaction.Goods, transaction.Services, transaction.Discount),
	"ResultDiscount.amount":         amountShape(),
	"ResultExtra.amount":            amountShape(),
	"ResultExtra.net_price":         amountShape(),
	"ResultTax.amount":              amountShape(),
	"ResultTaxSum.base":             amountShape(),
	"ResultTaxSum.amount":           amountShape(),
	"Related.operation_id":          {with: object{"format": "uuid"}},
	"Related.direction":             enumShape(result.Sent, result.Received),
	"ResultPayment.type":            enumShape("CREDIT", "CARD", "CASH", "TRANSFER", "CHECK", "OTHER"),
	"ResultPayment.amount":          amountShape(),
	"ResultParty.type":              enumShape(transaction.Individual, transaction.Business),
	"ResultCorrection.operation_id": {with: object{"format": "uuid"}},
	"JobEnvelope.status": enumShape(onboarding.Pending, onboarding.Processing,
		onboarding.Success, onboarding.Failed),
	"JobEnvelope.errors":                            {orNull: true},
	"JobData.job_id":                                patternShape(hex32),
	"JobData.id":                                    patternShape(hex32),
	"OnboardedCompany.id":                           patternShape(hex32),
	"OnboardedCompany.status":                       enumShape("active", "closed"),
	"OnboardedCompany.type":                         enumShape("BUSINESS", "INDIVIDUAL"),
	"Visit.url":                                     {with: object{"format": "uri"}},
	"JobData.job_status_location":                   {with: object{"format": "uri"}},
	"JobData.location":                              {with: object{"format": "uri"}},
	"CompanyBranding.logo_placement":                enumShape("left", "center", "right"),
	"CompanyBranding.font":                          enumShape("sans", "serif"),
	"CompanyBranding.template":                      enumShape("classic", "modern", "receipt"),
	"CompanyLogo.media_type":                        enumShape("image/png", "image/jpeg"),
	"CompanyLogo.sha256":                            {with: object{"pattern": `^[0-9a-f]{64}$`}},
	"OnboardedCompany.created_at":                   stampShape(),
	"OnboardedCompany.updated_at":                   stampShape(),
	"CompanyCredential.kind":                        enumShape(onboarding.CertificateCredential, onboarding.LoginCredential),
	"CompanyCredential.fingerprint":                 {with: object{"pattern": `^[0-9a-f]{64}$`}},
	"CompanyCredential.expires_at":                  stampShape(),
	"BatchValidation.batch_id":                      patternShape(hex32),
	"BatchValidation.requested_at":                  stampShape(),
	"BatchValidation.batch_validation_result_url":   {with: object{"format": "uri"}},
	"TaxNumberValidation.validation_id":             patternShape(hex32),
	"SingleValidation.requested_at":                 stampShape(),
	"SingleValidation.single_validation_result_url": {with: object{"format": "uri"}},
	"WebhookEvent.webhook_id":                       patternShape(hex40),
	"WebhookEvent.event_type":                       {with: object{"enum": list(webhook.EventTypes()...)}},
	"WebhookEvent.resource_url":                     {with: object{"format": "uri"}},
	"WebhookEvent.next_try_at":                      stampShape(),
	"WebhookEvent.created_at":                       stampShape(),
	"RedeliveredEvent.webhook_id":                   patternShape(hex40),
	"DateRule.earliest":                             {with: object{"format": "date"}},
	"DateRule.latest":                               {with: object{"format": "date"}},
	"ResultAnswer.operation_id":                     {with: object{"format": "uuid"}},
	"ResultAnswer.status":                           enumShape(list(transaction.AnswerStatuses()...)...),
	"ResultShare.amount":                            amountShape(),
	"FieldRule.business_model":                      enumShape(transaction.B2C, transaction.B2B),
	"Rate.since":                                    {with: object{"format": "date"}},
	"Rate.until":                                    {with: object{"format": "date"}},
	"CountrySetting.type":                           enumShape("string", "boolean", "integer", "object"),
}

func detailOf(key string) (detail, bool) {
	d, ok := details[key]
	if member, row := strings.CutPrefix(key, "TransactionRow."); row && !ok {
		d, ok = details["TransactionResult."+member] // a row is part of a result
	}
	return d, ok
}
