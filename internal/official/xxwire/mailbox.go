package xxwire

import "time"

// A supplier's mailbox holds what the authority has to say until somebody asks:
// GET [PathMailbox]?after=N&limit=M, signed by the supplier, answers at most M
// messages behind the N-th, one a line in the frame of receipts, and how far they
// reach in [HeaderNext]; [HeaderMore] says that there are others behind. Asking
// confirms what lies before N.
const (
	PathMailbox = "/v1/mailbox"
	HeaderMore  = "XX-More"

	MailboxMax = 100 // messages in one answer
)

// SuffixMailbox at the end of a number asks for a decision into the mailbox;
// SuffixMailboxRefused for one that refuses.
const (
	SuffixMailbox        = "-MAILBOX"
	SuffixMailboxRefused = "-REFUSED-MAILBOX"
)

// MailboxMost is when a poll decides after all, should nobody ask the mailbox.
const MailboxMost = time.Minute
