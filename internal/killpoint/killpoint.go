// Package killpoint names the places at which a kill of the process is most
// dangerous, so that kill runs can hit each of them.
//
// It owns the names and, in programs built with the tag killpoints, the kill
// itself: the process that is started with TRIBUTARY_KILL_AT=NAME:N ends by
// SIGKILL when it reaches NAME for the N-th time. In every other build [Reach]
// is empty and is compiled away. It does not own what must hold afterwards.
package killpoint

// Point is a place, named after what was done last.
type Point string

// The places, in the order in which a transaction passes them.
const (
	Accepted  Point = "accepted"  // a submission is on disk, its 202 has not left
	Taken     Point = "taken"     // a worker has counted its visit to operations
	Prepared  Point = "prepared"  // bytes on disk, nothing marked as sent
	Sent      Point = "sent"      // marked as sent, no byte has left
	Answered  Point = "answered"  // the authority has decided, we have not stored it
	Rendered  Point = "rendered"  // documents on disk, the commit that names them is not
	Settled   Point = "settled"   // outcome and event on disk, nothing delivered
	Left      Point = "left"      // the lane is given back
	Delivered Point = "delivered" // a receiver has answered, we have not stored it
	Enrolled  Point = "enrolled"  // the authority has enrolled a company, we have not stored it
	Heard     Point = "heard"     // a message of an authority is on disk, its answer has not left
	Uploaded  Point = "uploaded"  // a batch of filings is with the authority, which was not told to take it
	Closed    Point = "closed"    // it was told, and we have not stored it
	Gathered  Point = "gathered"  // the document of a period has its sales, nothing of it is made
)

// Points are all of them.
func Points() []Point {
	return []Point{Accepted, Taken, Prepared, Sent, Answered, Rendered, Settled, Left, Delivered, Enrolled, Heard,
		Uploaded, Closed, Gathered}
}
