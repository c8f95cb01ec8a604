package webhook

// EncodeTry and DecodeTry are how a try is stored and read.
func EncodeTry(t Try) (string, error)    { return encodeTry(t) }
func DecodeTry(text string) (Try, error) { return decodeTry(text) }

// NewEventID and IDFrom are how an event's id carries its time.
var (
	NewEventID = newEventID
	IDFrom     = idFrom
)
