package operator

import "time"

// HashCost reads the cost in a stored hash.
func HashCost(text string) (Cost, error) {
	c, _, _, err := parseHash(text)
	return c, err
}

// CostDefault is what production uses.
func CostDefault() Cost { return costDefault() }

// MomentPassed lets a provider that was away be looked for again at once.
func MomentPassed(x *OIDC) { x.again = time.Time{} }
