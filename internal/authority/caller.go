package authority

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// CertificateHeader carries the certificate where TLS ends before the simulator (RFC 9440, section 2.2).
const CertificateHeader = "Client-Cert"

// ClientCertificate is a simulator's view of who calls: the certificate of the
// TLS connection, or on a plain listener that of the Client-Cert header. Nil
// without an error means that the caller showed none.
func ClientCertificate(r *http.Request) (*x509.Certificate, error) {
	if r.TLS != nil {
		if len(r.TLS.PeerCertificates) == 0 {
			return nil, nil
		}
		return r.TLS.PeerCertificates[0], nil
	}
	text := r.Header.Get(CertificateHeader)
	if text == "" {
		return nil, nil
	}
	der, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(strings.TrimPrefix(text, ":"), ":"))
	if err != nil {
		return nil, fmt.Errorf("reading the %s header: %w", CertificateHeader, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the %s header: %w", CertificateHeader, err)
	}
	return cert, nil
}
