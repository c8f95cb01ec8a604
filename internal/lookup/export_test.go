package lookup

import "time"

// DecodeBatch is decodeBatch for tests.
func DecodeBatch(body []byte) (name string, entries []Entry, err error) {
	request, err := decodeBatch(body)
	return request.name, request.entries, err
}

// DecodeSingle is decodeSingle for tests.
func DecodeSingle(body []byte) (Entry, error) { return decodeSingle(body) }

// Position is how the list of a batch goes on.
func (c Cursor) Position(entries int) (int, error) { return c.position(entries) }

// RetryAfter reads how long the register asks to wait.
func RetryAfter(text string) time.Duration { return retryAfter(text) }
