package db

// RedactURL is how an address is shown.
func RedactURL(text string) string { return redactURL(text) }
