package webhook

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// The events by the names the other slices use.
const (
	TransactionCompleted  = EventTransactionCompleted
	LookupBatchCompleted  = EventBatchValidationCompleted
	LookupSingleCompleted = EventSingleValidationCompleted
	TransactionUpdated    = EventTransactionUpdated
	TransactionReceived   = EventTransactionReceived
)

// EventTypes lists every event a client can be told of.
func EventTypes() []string {
	return append(commonEvents(), TransactionUpdated, TransactionReceived)
}

// commonEvents are those that one address for all events covers. Every other
// type came later: it exists for a client only if it asked for it by name, so
// that no receiver is sent what it has never seen.
func commonEvents() []string {
	return []string{TransactionCompleted, LookupBatchCompleted, LookupSingleCompleted}
}

// Event is something a client wants to hear of.
type Event struct {
	ClientID     string // an opaque scope: a client, or its test side
	Type         string // one of EventTypes
	ResourceID   string
	ResourcePath string // appended to the public base URL, begins with a slash

	// Series orders first tries: the first try of an event is made after the first
	// try of the one notified before it in the same series. Who notifies events of
	// one series does it in writes that follow one another. Empty: no order.
	Series string
}

func (e Event) check() error {
	switch {
	case e.ClientID == "" || e.Type == "" || e.ResourceID == "":
		return fmt.Errorf("notify %s of %q: client, type and resource are needed", e.Type, e.ResourceID)
	case strings.Contains(e.ClientID, laneSeparator):
		return fmt.Errorf("notify %s of %q: client %q has a blank in it", e.Type, e.ResourceID, e.ClientID)
	case !strings.HasPrefix(e.ResourcePath, "/"):
		return fmt.Errorf("notify %s of %q: path %q does not begin with a slash", e.Type, e.ResourceID, e.ResourcePath)
	}
	return nil
}

// Status is where an event stands.
type Status string

// The statuses of docs/specification.md, section 8.
const (
	Pending      Status = "pending"      // tries are being made
	Delivered    Status = "delivered"    // a receiver answered 2xx
	Discarded    Status = "discarded"    // given up after the last retry
	Unsubscribed Status = "unsubscribed" // no address is configured, or none any more
)

func (s Status) valid() bool {
	return s == Pending || s == Delivered || s == Discarded || s == Unsubscribed
}

// A lane is what shares one configured address: a client and an event type. It
// does not change when the address does, so that rows which wait need no rewriting.
const laneSeparator = " "

func laneOf(clientID, eventType string) string { return clientID + laneSeparator + eventType }

func splitLane(lane string) (clientID, eventType string) {
	clientID, eventType, _ = strings.Cut(lane, laneSeparator)
	return clientID, eventType
}

// A webhook_id begins with its time and a serial number.
const (
	idTimeBytes   = 6 // milliseconds
	idSerialBytes = 3
)

// newEventID returns a webhook_id that begins with the time and, within a
// millisecond, a serial number: new events are neighbours in the index, and lists
// go by it. 88 random bits follow, so that nodes never meet.
func newEventID(now time.Time, serial uint32) string {
	var b [idBytes]byte
	binary.BigEndian.PutUint64(b[:], uint64(now.UnixMilli())<<16)
	binary.BigEndian.PutUint32(b[idTimeBytes:], serial<<8)
	rand.Read(b[idTimeBytes+idSerialBytes:]) // never fails: the runtime ends the program instead
	return hex.EncodeToString(b[:])
}

// idFrom is the smallest webhook_id of events created at or after an instant.
func idFrom(at time.Time) string {
	ms := at.UnixMilli()
	if at.After(time.UnixMilli(ms)) {
		ms++
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(max(ms, 0))<<16)
	return hex.EncodeToString(b[:idTimeBytes])
}
