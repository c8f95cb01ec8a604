package reference

import (
	"crypto/hmac"
	"net/http"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/xxwire"
)

// Guarded is the authority that lets nobody in who does not say for which
// platform he calls: with its certificate and its key.
func Guarded(d *authority.Desk) http.Handler { return platforms(New(d), true) }

// platforms checks in whose name a call is made, where the caller says so or has to.
func platforms(next http.Handler, required bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := strangePlatform(r, required); why != "" {
			refusal{http.StatusUnauthorized, xxwire.CodePlatform, why}.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// strangePlatform says why a platform is not believed, or nothing.
func strangePlatform(r *http.Request, required bool) string {
	cert, err := authority.ClientCertificate(r)
	given := r.Header.Get(xxwire.HeaderPlatform)
	switch {
	case err != nil:
		return "the platform's certificate cannot be read"
	case cert == nil && required:
		return "the platform shows no certificate"
	case cert != nil && time.Now().After(cert.NotAfter):
		return "the platform's certificate has expired"
	case given == "" && required:
		return xxwire.HeaderPlatform + " is missing"
	case given == "":
		return ""
	}
	name := ""
	if cert != nil {
		name = cert.Subject.CommonName
	}
	if !hmac.Equal([]byte(given), []byte(xxwire.PlatformMAC(xxwire.PlatformKey(name), xxwire.SignedText(r, r.URL.Path)))) {
		return "the platform's key is not the one that belongs to its certificate"
	}
	return ""
}
