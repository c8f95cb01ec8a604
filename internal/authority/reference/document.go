package reference

import "tributary/internal/transaction"

// document is what the authority reads of a filed line. It is written here from
// the protocol's description, not shared with the sender: a misreading on one
// side is a refusal, not an agreement.
type document struct {
	Number     string           `json:"number"`
	Supplier   string           `json:"supplier"`
	Kind       transaction.Kind `json:"kind"`
	Class      string           `json:"class"`
	Key        string           `json:"key"`
	Day        string           `json:"day"`
	At         string           `json:"at"`
	Currency   string           `json:"currency"`
	Gross      int64            `json:"gross"`
	Net        int64            `json:"net"`
	Tax        int64            `json:"tax"`
	Lines      []amounts        `json:"lines"`
	Reference  *reference       `json:"reference"`
	Acceptance bool             `json:"acceptance"`
	Chain      *chain           `json:"chain"`
	Sequence   int64            `json:"sequence"`
	Period     *period          `json:"period"`
}

// period says of which days a document of kind PERIOD is.
type period struct {
	Cadence string `json:"cadence"`
	First   string `json:"first"`
	Last    string `json:"last"`
}

// amounts are what is added up of a line.
type amounts struct {
	Name  string `json:"name"`
	Gross int64  `json:"gross"`
	Net   int64  `json:"net"`
}

// reference names the document that is corrected.
type reference struct {
	Number    string `json:"number"`
	Elsewhere bool   `json:"elsewhere"` // issued elsewhere: it need not be known here
	Index     int    `json:"index"`     // which correction of it this is; 0: they are not numbered
	After     string `json:"after"`     // number of the one before
}

// chain is a link: its position and the hash of the document before it.
type chain struct {
	Position int64  `json:"position"`
	Previous string `json:"previous"`
	Refusal  string `json:"refusal"` // "stops": a refused link is none
	Order    string `json:"order"`   // "any": links may arrive in any order
}

// The classes: how the authority recognises what it already has.
const (
	byNumber  = "Q"
	byHash    = "H"
	byKey     = "K"
	byChain   = "C"
	byNothing = "N"
)
