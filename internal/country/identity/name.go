package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
)

// IssuerName is the issuer of a certificate as signatures name it (RFC 4514):
// its names in the certificate's own order, the last one first.
//
// The standard library's pkix.Name has a fixed order of its own; a verifier that
// compares what it reads in the certificate would not find it again.
func IssuerName(cert *x509.Certificate) string {
	var names pkix.RDNSequence
	if rest, err := asn1.Unmarshal(cert.RawIssuer, &names); err != nil || len(rest) > 0 {
		return cert.Issuer.String() // a certificate that was built, not read
	}
	return names.String()
}
