package operator

// HashCost reads the cost in a stored hash.
func HashCost(text string) (Cost, error) {
	c, _, _, err := parseHash(text)
	return c, err
}

// CostDefault is what production uses.
func CostDefault() Cost { return costDefault() }
