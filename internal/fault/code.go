package fault

import (
	_ "embed"
	"strings"
)

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
	AuthorityRemark           Code = "authority_remark"
	BuyerMustBeTold           Code = "buyer_must_be_told"
	ValueAssumed              Code = "value_assumed"
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
func Codes() (list []CodeMeaning) {
	for line := range strings.Lines(codes) {
		part := strings.Split(strings.TrimSpace(line), " | ")
		list = append(list, CodeMeaning{Code(part[0]), part[1], part[2]})
	}
	return list
}

// Advice explains the codes of some faults, each once; warnings need no advice.
func Advice(faults []Fault) (list []CodeMeaning) {
	found := map[Code]bool{}
	for _, f := range faults {
		found[f.Code] = found[f.Code] || f.Type != Warning
	}
	for _, m := range Codes() {
		if found[m.Code] {
			list = append(list, m)
		}
	}
	return list
}

//go:embed codes.txt
var codes string

// CodeMeaning explains one code to a client.
type CodeMeaning struct {
	Code    Code
	Meaning string
	Action  string
}
