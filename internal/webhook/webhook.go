// Package webhook tells clients what happened to their resources.
//
// It owns events and the record of every try, the notification and its signature,
// the sending of one notification (dial guard, redirects, limits on what a receiver
// may do to us), the ladder of retries and the pacing of each receiver. It does not own the resources it
// speaks of, the clients' configuration or their keys; those are handed in.
//
// The law of [Hooks.Notify]: an event exists if and only if the write that made it
// news does, and from then on it is sent until a receiver takes it, its ladder ends
// or its address is removed; whatever became of it, it can be sent again.
//
// The law of [Sender.Send]: one call is one try. It always comes back within the
// exchange time with a [Try] that says what happened, it never connects to an
// address the [Guard] refuses, and a receiver whose status line said 2xx has
// received the notification whatever it does afterwards.
//
// Failure policy: delivery is at least once. A try that was cut before its status
// line counts as failed although the receiver may have read it; the next try
// carries the same webhook_id, so the receiver can tell. Nothing here gives up on
// its own: only the end of the ladder discards a delivery, and an open [Receiver]
// only postpones tries.
//
// Choices that a reader might make otherwise:
//
//   - HTTP/1.1 only, with a redirect loop of our own, and the status is read
//     from the first line: a 2xx counts even if headers never end. Reply heads
//     are bounded (8 KiB a line, 256 lines); a redirect past that is a failed
//     try.
//   - Ports 443 and from 1024 on, 80 in the demo alone: a receiver is no way to
//     reach services of the machine it stands on. Metadata addresses open only
//     when named as a single address. IPv4 inside of NAT64, 6to4 and Teredo is
//     checked as IPv4.
//   - An event waits for the first try of the one before it, never for retries
//     or redeliveries: one receiver that fails must not hold up a transaction's
//     later news for days.
//   - A successful first try is stored inside of its event, every other try is
//     a row of its own: nearly all events cost one row.
//   - Without a usable signing key the client's deliveries wait and spend no
//     tries; a removed address closes waiting rows as unsubscribed; a try that
//     our own shutdown interrupts is not counted; a kept connection that turns
//     out dead is replaced within the same try.
//   - Breakers live in each node's memory, because a node may be cut off alone;
//     the alert is stored and seen everywhere.
package webhook
