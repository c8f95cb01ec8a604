package ksef

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
	"time"

	"tributary/internal/country/identity"
	"tributary/internal/official/ksefwire"
)

var nipPattern = regexp.MustCompile(`^[1-9](\d[1-9]|[1-9]\d)\d{7}$`)

// Endings of a KSeF token by which a client asks the double to refuse it.
const (
	tokenRevoked = "-REVOKED"
	tokenInvalid = "-INVALID"
	tokenPowers  = "-POWERLESS"
)

// verdict is how an authentication ends.
type verdict struct {
	code   int
	text   string
	detail string
}

func authenticated() verdict {
	return verdict{ksefwire.StatusSuccess, "Uwierzytelnianie zakończone sukcesem", ""}
}

func wrongToken(detail string) verdict {
	return verdict{ksefwire.StatusSemantics, "Uwierzytelnianie zakończone niepowodzeniem z powodu błędnego tokenu", detail}
}

func powerless() verdict {
	return verdict{ksefwire.StatusAttachment, "Uwierzytelnianie zakończone niepowodzeniem", "Brak przypisanych uprawnień"}
}

// byToken serves POST /auth/ksef-token.
func (a *access) byToken(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ksefwire.TokenRequest
		Policy any `json:"authorizationPolicy"`
	}
	if !readJSON(w, r, &in) {
		return
	}
	if err := a.keys.prepareKeys(); err != nil {
		broken(w)
		return
	}
	if in.Context.Type != "Nip" || !nipPattern.MatchString(in.Context.Value) {
		refuse(w, r, http.StatusBadRequest, invalidInput("contextIdentifier must be a Nip"))
		return
	}
	if in.PublicKeyID != "" && in.PublicKeyID != a.keys.keyID() {
		refuse(w, r, http.StatusBadRequest, unknownKey(in.PublicKeyID))
		return
	}
	at, ok := a.meet(in.Challenge)
	if !ok {
		refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeChallenge,
			Description: "Nieprawidłowe wyzwanie autoryzacyjne."})
		return
	}
	cipher, err := base64.StdEncoding.DecodeString(in.EncryptedToken)
	if err != nil {
		refuse(w, r, http.StatusBadRequest, invalidInput("encryptedToken is no Base64"))
		return
	}
	sum := sha256.Sum256(cipher)
	a.begin(w, claims{
		NIP: in.Context.Value, Method: "Token", Document: base64.StdEncoding.EncodeToString(sum[:]),
	}, a.judgeToken(cipher, in.Context.Value, at))
}

func unknownKey(id string) ksefwire.ProblemError {
	return ksefwire.ProblemError{Code: ksefwire.CodeKey,
		Description: "Przesłany identyfikator klucza jest nieznany lub wskazuje na wycofany klucz.",
		Details:     []string{"Klucz o identyfikatorze " + id + " nie jest wspierany."}}
}

// judgeToken decrypts and reads "token|milliseconds". Any token is good, but
// one that names another taxpayer and those with the endings above.
func (a *access) judgeToken(cipher []byte, nip string, at time.Time) verdict {
	text, err := rsa.DecryptOAEP(sha256.New(), nil, a.keys.key, cipher, nil)
	if err != nil {
		return wrongToken("Nieprawidłowy token")
	}
	last := strings.LastIndexByte(string(text), '|')
	if last < 0 || parseMillis(string(text[last+1:])) != at.UnixMilli() {
		return wrongToken("Nieprawidłowy czas tokena")
	}
	token := string(text[:last])
	for part := range strings.SplitSeq(token, "|") {
		if named, ok := strings.CutPrefix(part, "nip-"); ok && named != nip {
			return wrongToken("Nieprawidłowy token")
		}
	}
	switch {
	case token == "" || strings.HasSuffix(token, tokenInvalid):
		return wrongToken("Nieprawidłowy token")
	case strings.HasSuffix(token, tokenRevoked):
		return wrongToken("Token unieważniony")
	case strings.HasSuffix(token, tokenPowers):
		return powerless()
	}
	if why := a.knownToken(token); why != "" {
		return wrongToken(why)
	}
	return authenticated()
}

// bySignature serves POST /auth/xades-signature.
func (a *access) bySignature(w http.ResponseWriter, r *http.Request) {
	body, err := readAll(w, r)
	if err != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), ksefwire.TypeXML) {
		refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeUnreadable, Description: "Nieczytelna treść."})
		return
	}
	signed, flaw := verifySigned(body)
	if flaw != nil {
		refuse(w, r, http.StatusBadRequest, *flaw)
		return
	}
	if _, ok := a.meet(signed.challenge); !ok {
		refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeChallenge,
			Description: "Nieprawidłowe wyzwanie autoryzacyjne."})
		return
	}
	if err := a.keys.prepareKeys(); err != nil {
		broken(w)
		return
	}
	v := authenticated()
	now := a.now()
	switch {
	case now.After(signed.leaf.NotAfter), now.Before(signed.leaf.NotBefore):
		v = verdict{ksefwire.StatusCertificate, "Uwierzytelnianie zakończone niepowodzeniem z powodu błędu certyfikatu",
			"Nieważny certyfikat"}
	case offlineOnly(signed.leaf):
		v = verdict{ksefwire.StatusCertificate, "Uwierzytelnianie zakończone niepowodzeniem z powodu błędu certyfikatu",
			"Niepoprawny certyfikat"}
	case !identity.Names(signed.leaf, "PL", signed.nip):
		v = powerless()
	}
	sum := sha256.Sum256(body)
	a.begin(w, claims{NIP: signed.nip, Method: "QualifiedSeal", Document: base64.StdEncoding.EncodeToString(sum[:])}, v)
}

// offlineOnly reports whether a certificate is one of KSeF's own that confirm
// issuers of offline invoices: of type Offline, with Non-Repudiation alone. It
// opens nothing (ksef-docs, certyfikaty-KSeF.md).
func offlineOnly(leaf *x509.Certificate) bool {
	const signs, commits = x509.KeyUsageDigitalSignature, x509.KeyUsageContentCommitment
	return leaf.KeyUsage&commits != 0 && leaf.KeyUsage&signs == 0 &&
		strings.Contains(strings.ToUpper(leaf.Issuer.String()), "KSEF")
}

// begin answers the start of an authentication. It is decided already; the
// caller learns it when it asks.
func (a *access) begin(w http.ResponseWriter, c claims, v verdict) {
	now := a.now()
	c.Kind, c.Reference = "authentication", a.newReference("AU")
	c.Code, c.Text, c.Detail = v.code, v.text, v.detail
	c.Started, c.Expires = now.Unix(), now.Add(refreshFor).Unix()
	writeJSON(w, http.StatusAccepted, ksefwire.TypeJSON,
		ksefwire.AuthResponse{ReferenceNumber: c.Reference, Authentication: a.keys.sign(c)})
}

// authentication serves GET /auth/{reference}.
func (a *access) authentication(w http.ResponseWriter, r *http.Request) {
	c, ok := a.caller(w, r, "authentication")
	if !ok {
		return
	}
	if r.PathValue("reference") != c.Reference {
		refuse(w, r, http.StatusBadRequest, unknownAuthentication(r.PathValue("reference")))
		return
	}
	writeJSON(w, http.StatusOK, ksefwire.TypeJSON, statusOfAuth(c))
}

// statusOfAuth is what KSeF tells of an authentication.
func statusOfAuth(c claims) ksefwire.AuthStatus {
	category := "XadesSignature"
	if c.Method == "Token" {
		category = "Token"
	}
	out := ksefwire.AuthStatus{
		StartDate: time.Unix(c.Started, 0).UTC(), Method: c.Method,
		MethodInfo: ksefwire.MethodInfo{Category: category, Code: strings.ToLower(c.Method), DisplayName: c.Method},
		Status:     ksefwire.Status{Code: c.Code, Description: c.Text},
	}
	if c.Detail != "" {
		out.Status.Details = []string{c.Detail}
	}
	return out
}

func unknownAuthentication(reference string) ksefwire.ProblemError {
	return ksefwire.ProblemError{Code: ksefwire.CodeNotAuthenticated, Description: "Brak uwierzytelnienia.",
		Details: []string{"Operacja uwierzytelniania o numerze referencyjnym " + reference + " nie została znaleziona."}}
}

// redeem serves POST /auth/token/redeem, once for each authentication.
func (a *access) redeem(w http.ResponseWriter, r *http.Request) {
	c, ok := a.caller(w, r, "authentication")
	if !ok {
		return
	}
	no := ksefwire.ProblemError{Code: ksefwire.CodeNotAuthorised, Description: "Brak autoryzacji."}
	if c.Code != ksefwire.StatusSuccess {
		no.Details = []string{"Status uwierzytelniania nie pozwala na pobranie tokenów."}
		refuse(w, r, http.StatusBadRequest, no)
		return
	}
	a.mu.Lock()
	again := a.redeemed[c.Reference]
	a.redeemed[c.Reference] = true
	a.mu.Unlock()
	if again {
		no.Details = []string{"Tokeny dla operacji uwierzytelniania " + c.Reference + " zostały już pobrane."}
		refuse(w, r, http.StatusBadRequest, no)
		return
	}
	c.Kind, c.Expires = "refresh", a.now().Add(refreshFor).Unix()
	a.keepActive(c)
	refresh := a.keys.sign(c)
	writeJSON(w, http.StatusOK, ksefwire.TypeJSON, ksefwire.Tokens{Access: a.accessToken(c), Refresh: &refresh})
}

// refresh serves POST /auth/token/refresh.
func (a *access) refresh(w http.ResponseWriter, r *http.Request) {
	if c, ok := a.caller(w, r, "refresh"); ok {
		writeJSON(w, http.StatusOK, ksefwire.TypeJSON, ksefwire.Tokens{Access: a.accessToken(c)})
	}
}

func (a *access) accessToken(c claims) ksefwire.TimedToken {
	c.Kind, c.Expires = "access", a.now().Add(a.lasts).Unix()
	return a.keys.sign(c)
}
