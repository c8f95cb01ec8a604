package fault

// Code is the stable name of a fault. Once published a code never changes its meaning.
type Code string

// The published codes.
const (
	FieldRequired             Code = "field_required"
	FieldNotValid             Code = "field_not_valid"
	FieldUnknown              Code = "field_unknown"
	UnsupportedField          Code = "unsupported_field"
	ValidationMatchInvalid    Code = "validation_match_invalid"
	UnsupportedOperation      Code = "unsupported_operation"
	UnsupportedCountry        Code = "unsupported_country"
	SupplierUnknown           Code = "supplier_unknown"
	ReferenceUnknown          Code = "reference_unknown"
	ReferenceNotSuccessful    Code = "reference_not_successful"
	ReferenceAlreadyCorrected Code = "reference_already_corrected"
	ReferenceExceeded         Code = "reference_exceeded"
	AuthorityRejected         Code = "authority_rejected"
	AuthorityNumberUsed       Code = "authority_number_already_used"
	AuthorityUnavailable      Code = "authority_unavailable"
	AuthorityIDUnavailable    Code = "authority_id_unavailable"
	AuthorityNotConfigured    Code = "authority_not_configured"
	AuthorityUnreachable      Code = "authority_unreachable"
	AuthorityError            Code = "authority_error"
	AuthorityWait             Code = "authority_wait"
	ChainStopped              Code = "chain_stopped"
	DocumentsUnavailable      Code = "documents_unavailable"
	BehindAnother             Code = "behind_another"
	Held                      Code = "held"
	OutcomeUnknown            Code = "outcome_unknown"
	AwaitingAcceptance        Code = "awaiting_acceptance"
	CredentialsInvalid        Code = "credentials_invalid"
	PayloadDiffers            Code = "payload_differs"
	NumberReused              Code = "number_reused"
	RateUnusual               Code = "rate_unusual"
	TaxNumberDoubtful         Code = "tax_number_doubtful"
	LanguageFallback          Code = "language_fallback"
	DateMoved                 Code = "date_moved"
	WaitsForPeriod            Code = "waits_for_period"
	ScriptUnavailable         Code = "script_unavailable"
	AlreadyOnboarded          Code = "already_onboarded"
	JSONNotValid              Code = "json_not_valid"
	CodeUnauthenticated       Code = "unauthenticated"
	CodeForbidden             Code = "forbidden"
	CodeNotFound              Code = "not_found"
	MethodNotAllowed          Code = "method_not_allowed"
	CodeConflict              Code = "conflict"
	CodeExpired               Code = "expired"
	BodyTooLarge              Code = "body_too_large"
	MediaTypeUnsupported      Code = "media_type_unsupported"
	RateLimited               Code = "rate_limited"
	CodeOverloaded            Code = "overloaded"
	InternalError             Code = "internal_error"
)

// Codes lists every published code with what it means and what a client does
// about it; the API reference and the client guide are made from it.
func Codes() []CodeMeaning { return append([]CodeMeaning(nil), codeMeanings...) }

// CodeMeaning explains one code to a client.
type CodeMeaning struct {
	Code    Code
	Meaning string
	Action  string
}

var codeMeanings = []CodeMeaning{
	{FieldRequired, "A field that must be present is missing or empty.", "Send the field."},
	{FieldNotValid, "A field breaks a rule named in the message.", "Correct the value."},
	{FieldUnknown, "A field the service does not know was sent; it was kept and otherwise ignored.", "Check the spelling; nothing else is needed."},
	{UnsupportedField, "A field is forbidden in this country, use case or operation.", "Leave the field out."},
	{ValidationMatchInvalid, "Two fields do not fit together.", "Correct one of them."},
	{UnsupportedOperation, "The country has no such correction, or its deadline has passed.", "Use another correction; the country's page lists them."},
	{UnsupportedCountry, "The country is unknown or not enabled for the client and use case.", "Ask the provider to enable it."},
	{SupplierUnknown, "No onboarded company of this client has the supplier id.", "Onboard the company, then submit again."},
	{ReferenceUnknown, "The referenced transaction is not known.", "Submit or backfill the original first."},
	{ReferenceNotSuccessful, "The referenced transaction did not succeed.", "Bring the original to SUCCESS first."},
	{ReferenceAlreadyCorrected, "The original was already credited or cancelled.", "Nothing; look at the original's corrections."},
	{ReferenceExceeded, "The adjustments would exceed the original.", "Lower the adjustment."},
	{AuthorityRejected, "The tax authority refused the document; the message carries its own code and text.", "Correct the content and submit again."},
	{AuthorityNumberUsed, "The authority holds another document under this number.", "Use another number."},
	{AuthorityUnavailable, "The authority could not be reached; as an error the attempt ended without registration.", "As a warning wait; as an error submit again."},
	{AuthorityNotConfigured, "A warning: no address of the country's authority is configured for this kind of key; the transaction waits.", "Nothing; the provider has been told."},
	{AuthorityUnreachable, "A warning: the authority does not answer; the transaction waits and is tried again.", "Nothing."},
	{AuthorityError, "A warning: the authority answers with an error of its own that says nothing about the document; it is tried again.", "Nothing."},
	{AuthorityWait, "A warning: the authority asked for a pause, which is obeyed.", "Nothing."},
	{ChainStopped, "A warning: the supplier's chain of documents is stopped because the authority's last link is not ours.", "Nothing; the provider has been told."},
	{DocumentsUnavailable, "A warning: the document cannot be stored at the moment; what the authority said is kept and the result follows.", "Nothing."},
	{BehindAnother, "A warning: the transaction waits for an earlier attempt, or for what it corrects.", "Nothing."},
	{Held, "A warning: the provider holds the transaction back, after a restored backup or because a person must look at it.", "Nothing; the provider has been told."},
	{AuthorityIDUnavailable, "The document is registered, but the authority's id can no longer be had after a lost answer.", "Nothing."},
	{OutcomeUnknown, "The authority may hold the document; it has not said so yet.", "Wait; do not issue the document elsewhere."},
	{AwaitingAcceptance, "The authority waits for somebody else, for example the buyer's acceptance of a cancellation.", "Wait for the webhook."},
	{CredentialsInvalid, "The supplier's credentials are missing, expired, revoked or refused.", "Patch the company with new credentials."},
	{PayloadDiffers, "The body differs from the one that was registered under this transaction_id; the registered one stands.", "Use a new transaction_id for other content."},
	{NumberReused, "The transaction_number was used before by this supplier.", "Check the numbering."},
	{RateUnusual, "The tax rate is not in the country's table.", "Check the rate."},
	{TaxNumberDoubtful, "The tax number fails the country's own check.", "Check the number."},
	{DateMoved, "The document was issued on the day it was filed, because the country lets none bear an earlier day; the submitted day is the day of supply.", "Nothing; submit on the day of issue to keep it."},
	{WaitsForPeriod, "The sale is gathered with others of its period and told to the authority in one document, after the period has ended; nothing was filed for it by itself.", "Nothing; its life cycle says when the document is accepted, and the authority's ids are filled in then."},
	{LanguageFallback, "The language is not available for documents; English was used.", "Nothing, or send another language_code."},
	{ScriptUnavailable, "No font for a script is installed; the document gives its text in Latin letters and says so.", "Ask the operator to install a font (--fonts), then submit again if a new document is wanted."},
	{AlreadyOnboarded, "A company with this country and tax number is already onboarded.", "Use the company named in the message."},
	{JSONNotValid, "The body is not acceptable JSON; the message says where.", "Correct the body."},
	{CodeUnauthenticated, "No API key, or not a valid one.", "Send a valid key."},
	{CodeForbidden, "The key may not do this, or a signed address is forged.", "Use another key or a fresh address."},
	{CodeNotFound, "There is no such resource for this client.", "Check the id."},
	{MethodNotAllowed, "The path does not know the method.", "See the Allow header."},
	{CodeConflict, "The request contradicts what is stored.", "Read the message."},
	{CodeExpired, "The address has expired, or the record's years are over.", "Fetch the resource again for a fresh address; a record whose years are over is destroyed."},
	{BodyTooLarge, "The body is larger than allowed.", "Send less."},
	{MediaTypeUnsupported, "The content type is not application/json.", "Send JSON."},
	{RateLimited, "Too many requests, or too many waiting attempts of one transaction.", "Wait for Retry-After."},
	{CodeOverloaded, "The service has more work than it can take.", "Wait for Retry-After."},
	{InternalError, "A defect on our side; the request id helps the operator find it.", "Retry; if it stays, contact the operator."},
}
