package xxwire

// HeaderCallback says where the authority may call back about the documents of a call.
const HeaderCallback = "XX-Callback"

// SuffixCallback at the end of a number asks for a decision by callback;
// SuffixCallbackRefused for one that refuses.
const (
	SuffixCallback        = "-CALLBACK"
	SuffixCallbackRefused = "-REFUSED-CALLBACK"
)

// Callback is what the authority posts. [HeaderPlatform] is its MAC with the
// key of the platform that filed: so the platform knows who calls.
type Callback struct {
	ID      string  `json:"id"`  // of the message; a repetition has the same
	Key     string  `json:"key"` // of the document it speaks of
	Receipt Receipt `json:"receipt"`
}
