package lookup

// DecodeBatch is decodeBatch for tests.
func DecodeBatch(body []byte) (name string, entries []Entry, err error) {
	request, err := decodeBatch(body)
	return request.name, request.entries, err
}

// DecodeSingle is decodeSingle for tests.
func DecodeSingle(body []byte) (Entry, error) { return decodeSingle(body) }
