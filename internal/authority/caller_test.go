package authority_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"tributary/internal/authority"
)

func TestABrokenCertificateHeaderIsAnError(t *testing.T) {
	for _, header := range []string{":!:", ":AAAA:"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Client-Cert", header)
		if cert, err := authority.ClientCertificate(r); err == nil || cert != nil {
			t.Errorf("%s: %v %v", header, cert, err)
		}
	}
}
