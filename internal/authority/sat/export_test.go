package sat

import "crypto/x509"

// Original is the original string of a voucher in XML, as the double makes it.
func Original(raw []byte) ([]byte, error) {
	doc, err := readVoucher(raw)
	if err != nil {
		return nil, err
	}
	return newSheet().original(doc.Root), nil
}

// ReadRequest answers the UUID in a request whose signature is right, and who signed it.
func ReadRequest(raw []byte) (string, *x509.Certificate, error) {
	r, leaf, err := readRequest(raw)
	return r.uuid, leaf, err
}

// Expression is one part of a printed expression.
func Expression(text, name string) string { return expression(text).Get(name) }
