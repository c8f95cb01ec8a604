package xxwire

// A supplier may be asked to agree, in a browser, that a platform acts for it:
// the platform sends the person to PathGrant with the supplier, a state and the
// address to return to; the browser returns there with the state and a code,
// which the platform exchanges once at PathToken.
const (
	PathGrant = "/v1/grant"
	PathToken = "/v1/token"

	// HeaderGrant shows the token in calls for a supplier that has granted.
	HeaderGrant = "XX-Grant"

	// CodeGrant refuses a code or a token that is not known.
	CodeGrant = "grant"
)

// Exchange is the body of a call that gives a code for a token.
type Exchange struct {
	Supplier string `json:"supplier"`
	Code     string `json:"code"`
}

// Granted is the answer.
type Granted struct {
	Token string `json:"token"`
}
