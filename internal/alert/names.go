package alert

import "slices"

// Name is the stable name of an alert: rules of a monitoring system match on
// it, so a published name never changes its meaning.
type Name string

// The alerts of the service. Each has an entry in meanings.
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
	AuthorityNotConfigured  Name = "authority_not_configured"
	FilingMissing           Name = "filing_missing"
	Restoring               Name = "restoring"
	RestoredUnasked         Name = "restored_unasked"
	RestoredGaps            Name = "restored_gaps"
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
	DocumentDamaged         Name = "document_damaged"
	DocumentFailed          Name = "document_failed"
	WorkerPanic             Name = "worker_panic"
)

// Meaning explains one alert to an operator.
type Meaning struct {
	Name    Name
	Subject string // what the alert's subject names
	Meaning string
	Action  string
}

// Meanings lists every alert, in the order of the operations guide, which is made from it.
func Meanings() []Meaning { return slices.Clone(meanings) }

func known(n Name) bool {
	return slices.ContainsFunc(meanings, func(m Meaning) bool { return m.Name == n })
}

var meanings = []Meaning{
	{StorageFailed, "node", "The database could not sync to disk or is damaged; the process ended rather than lose data.",
		"Check the disk, then start again: an integrity check runs first. Restore a backup if it fails."},
	{AuthorityUnavailable24h, "supplier", "Nothing could be filed with a tax authority for 24 hours, for the reason that the message names; transactions wait.",
		"Do what the table of reasons below says for the named one."},
	{AuthorityUnavailable48h, "supplier", "Nothing could be filed with a tax authority for 48 hours; transactions that were never registered end in FAILURE.",
		"Tell the client; what is in a chain is still sent when the authority returns."},
	{OutcomeUnknown24h, "operation", "A filing was sent 24 hours ago and the authority has not said whether it holds it.",
		"Look it up at the authority's portal; do not file it again elsewhere."},
	{OutcomeUnknown48h, "operation", "A filing was sent 48 hours ago and its outcome is still unknown; the client sees a warning.",
		"Resolve it with the authority; the operation stays PROCESSING until then."},
	{AwaitingAcceptance24h, "operation", "A cancellation or filing has waited 24 hours for somebody else's acceptance.",
		"Nothing, or ask the client to remind the buyer."},
	{AwaitingAcceptance48h, "operation", "A cancellation or filing has waited 48 hours for somebody else's acceptance.",
		"Ask the client to remind the buyer; it ends at the country's own deadline."},
	{OperationQuarantined, "operation", "An operation crashed its worker three times and is set aside.",
		"Look at the operation's error, fix the cause, then release it in the console."},
	{LanePausedCredentials, "supplier", "The authority refuses a supplier's credentials; its filings wait and lose nothing.",
		"Ask the client for new credentials."},
	{ChainMismatch, "supplier", "The chain's head at the authority differs from ours; the chain is stopped so that it cannot fork.",
		"Run reconcile and find out who added the links: this follows a restored backup or a second system that files for the same supplier. Then `tributary restored resume`."},
	{ChainRemarked, "supplier", "The authority took a link of a chain and remarks that it does not follow the last one it held; the chain goes on behind it.",
		"Find out whether a second system files for the same supplier: each needs a chain of its own."},
	{OutcomeContested, "operation", "After the end of an operation somebody says the opposite: the authority, a platform or the buyer has a problem with a document that was registered, or accepts one that failed.",
		"Read the life cycle of the transaction; SUCCESS stays. Correct the document where the law asks for it."},
	{PeriodRefused, "period", "The document in which a period's sales are gathered was not accepted, or could not be withdrawn after a sale had left it; its sales carry a PROBLEM entry until a new one is accepted.",
		"Read the authority's reason (tributary periods), correct the company or its settings; it is tried again by itself."},
	{MailboxUnread, "supplier", "What waits for a company at its authority has not been fetched for an hour, or its credentials are refused there: decisions and news may lie there unread.",
		"Look at the message: ask the client for new credentials, or check the authority's own notices and our way to it. Nothing is lost; fetching goes on by itself."},
	{AuthorityNotConfigured, "country", "Transactions of a country wait because its authority has no address for this kind of key, or asks for an identity that is not set.",
		"`tributary authority set CC.live --url https://…`, with `--secret` or `--certificate` where `authority list` names what is missing; after 48 hours they end in FAILURE."},
	{FilingMissing, "operation", "An operation that was prepared or sent has lost its bytes; it is neither sent nor ended.",
		"Look for damage of the database or for writes of another program; compare with the authority, then release the operation."},
	{Restoring, "service", "A backup was restored; transactions are refused until the authorities were asked what it does not know.",
		"Wait; the log says which suppliers are left."},
	{RestoredUnasked, "supplier", "After a restored backup the authority could not be asked what it holds of a supplier; nothing of it is filed.",
		"Mend what the message names; it is asked again. Where the authority has no list, compare with its portal and release the supplier."},
	{RestoredGaps, "supplier", "The authority holds documents that the restored backup does not know.",
		"Ask the client to submit everything since the backup again: they are adopted, not filed twice."},
	{WebhookBreakerOpen, "client", "A receiver of webhooks keeps failing; it gets single probes until it answers.",
		"Tell the client; the notifications are kept and sent again."},
	{WebhookAddressRefused, "client", "A webhook address leads to a network that is not allowed.",
		"Have the address corrected; if the network is meant, allow its range by name."},
	{WebhookDiscarded, "client", "A notification was given up after its last retry.",
		"Tell the client; events can be sent again in the console or by API."},
	{CredentialsExpiring30d, "company or authority", "A certificate ends within 30 days: a supplier's, or the operator's own at an authority.",
		"Ask the client for a new one; for an authority `tributary authority set CC.live --certificate P12`."},
	{CredentialsExpiring7d, "company or authority", "A certificate ends within 7 days: a supplier's, or the operator's own at an authority.",
		"Ask the client for a new one; for an authority `tributary authority set CC.live --certificate P12`."},
	{CredentialsExpiring1d, "company or authority", "A certificate ends within a day: a supplier's, or the operator's own at an authority; afterwards filings wait.",
		"Ask the client for a new one now; for an authority `tributary authority set CC.live --certificate P12`."},
	{AuthFailuresSpike, "service", "Unusually many requests came with a wrong API key.",
		"Find the addresses in the log: a client with an old key, or somebody guessing."},
	{AuditBroken, "log", "The audit log of a client or of the operators does not verify: an entry was changed, removed or forged, or is not what heads kept outside know.",
		"Treat it as an intrusion: compare with a backup, revoke the client's keys."},
	{AuditHeadsFailed, "heads", "The heads of the audit logs cannot be written outside, or the last ones cannot be read; logs that are cut off meanwhile are not found.",
		"Look at the folder, store or listener that --audit-heads names; it is tried again every hour."},
	{KeyServiceToken, "master key", "The token with which the key service is asked is refused, or ends within a day and cannot be prolonged; afterwards nothing sealed opens.",
		"Give the service a token that lasts (VAULT_TOKEN) and restart the nodes one by one; prefer a renewable, periodic one."},
	{SigningKeyMissing, "client", "A client has no key that can sign its webhooks; deliveries wait.",
		"Give the client a key and promote it, or restore the master key that sealed it."},
	{ClockSkew, "authority", "Our clock and an authority's differ by more than 60 seconds.",
		"Check time synchronisation on this machine: filings with a wrong time are refused."},
	{JobDiscarded, "job", "A background job failed on its last attempt.",
		"Look at its error in the console; periodic jobs run again at their next time."},
	{RetentionFailed, "client, `partitions` or `clock`", "What has had its time could not be forgotten for a client; the others' was. `partitions`: those of the days to come were not made, or those that are over not dropped. `clock`: a round came over a month after the one before, so no record is destroyed for a week.",
		"Read the message; the next round tries it again. `clock`: correct the machine's clock if it is wrong."},
	{DocumentsUnavailable, "documents", "The document store takes nothing. What is registered at authorities is kept; results and notifications wait for their documents.",
		"Look at the folder's disk or at the object store, its credentials and our way to it; everything goes on by itself within minutes."},
	{DocumentDamaged, "document", "A stored document is missing or its bytes have changed; it is not served.",
		"Restore the file that the message names from a backup of the document store; of a pack (`.tar`) its members are named by their SHA-256."},
	{DocumentFailed, "operation", "A document for people could not be made; the registration stands without it.",
		"Read the log line of the operation; make the document again once the cause is fixed."},
	{WorkerPanic, "queue", "A worker met a defect and gave its row up; it is tried again when its lease ends. Log line only.",
		"Read the stack in the log line and report it."},
}
