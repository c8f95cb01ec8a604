package alert

// Expiry is an alarm about a certificate that ends within so many days.
type Expiry struct {
	Days int
	Name Name
}

// Expiring lists the alarms about certificates, the nearest end first. They are
// the same for a supplier's certificate and for the operator's own.
func Expiring() []Expiry {
	return []Expiry{{1, CredentialsExpiring1d}, {7, CredentialsExpiring7d}, {30, CredentialsExpiring30d}}
}
