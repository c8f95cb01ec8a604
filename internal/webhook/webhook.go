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
package webhook
