package alert

import (
	_ "embed"
	"strings"
)

// Name is the stable name of an alert: rules of a monitoring system match on
// it, so a published name never changes its meaning.
type Name string

// The alerts of the service. Each has a line in alerts.txt.
const (
	StorageFailed           Name = "storage_failed"
	AuthorityUnavailable24h Name = "authority_unavailable_24h"
	AuthorityUnavailable48h Name = "authority_unavailable_48h"
	OutcomeUnknown24h       Name = "outcome_unknown_24h"
	OutcomeUnknown48h       Name = "outcome_unknown_48h"
	AwaitingAcceptance24h   Name = "awaiting_acceptance_24h"
	AwaitingAcceptance48h   Name = "awaiting_acceptance_48h"
	OperationQuarantined    Name = "operation_quarantined"
	LanePausedCredentials   Name = "lane_paused_credentials"
	ChainMismatch           Name = "chain_mismatch"
	ChainRemarked           Name = "chain_remarked"
	OutcomeContested        Name = "outcome_contested"
	PeriodRefused           Name = "period_refused"
	MailboxUnread           Name = "mailbox_unread"
	ReceivedAside           Name = "received_aside"
	AuthorityNotConfigured  Name = "authority_not_configured"
	FilingMissing           Name = "filing_missing"
	Restoring               Name = "restoring"
	RestoredUnasked         Name = "restored_unasked"
	RestoredGaps            Name = "restored_gaps"
	OperationHeld           Name = "operation_held"
	WebhookBreakerOpen      Name = "webhook_breaker_open"
	WebhookAddressRefused   Name = "webhook_address_refused"
	WebhookDiscarded        Name = "webhook_discarded"
	CredentialsExpiring30d  Name = "credentials_expiring_30d"
	CredentialsExpiring7d   Name = "credentials_expiring_7d"
	CredentialsExpiring1d   Name = "credentials_expiring_1d"
	AuthFailuresSpike       Name = "auth_failures_spike"
	AuditBroken             Name = "audit_broken"
	AuditHeadsFailed        Name = "audit_heads_failed"
	SigningKeyMissing       Name = "signing_key_missing"
	KeyServiceToken         Name = "key_service_token"
	ClockSkew               Name = "clock_skew"
	JobDiscarded            Name = "job_discarded"
	RetentionFailed         Name = "retention_failed"
	DocumentsUnavailable    Name = "documents_unavailable"
	DocumentsContested      Name = "documents_contested"
	DocumentDamaged         Name = "document_damaged"
	DocumentFailed          Name = "document_failed"
	WorkerPanic             Name = "worker_panic"
)

// Meaning explains one alert to an operator.
type Meaning struct {
	Name     Name
	Severity Severity
	Title    string // a few words for people
	Subject  string // what the alert's subject names
	Meaning  string
	Action   string
}

//go:embed alerts.txt
var alerts string

// Meanings lists every alert, in the order of the operations guide, which is made from it.
func Meanings() (list []Meaning) {
	for line := range strings.Lines(alerts) {
		part := strings.Split(strings.TrimSpace(line), " | ")
		list = append(list, Meaning{Name(part[0]), Severity(part[1]), part[2], part[3], part[4], part[5]})
	}
	return list
}

// Title is an alert's name in words; "" of an unknown one.
func (n Name) Title() (title string) {
	for _, m := range Meanings() {
		if m.Name == n {
			title = m.Title
		}
	}
	return title
}
