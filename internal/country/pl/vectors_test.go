package pl_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"math/big"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/packtest"
	"tributary/internal/country/pl/wire"
	"tributary/internal/needs"
)

const qrTest = "https://qr-test.ksef.mf.gov.pl"

func TestFirstCodeIsTheOfficialOne(t *testing.T) {
	raw, err := base64.RawURLEncoding.DecodeString("UtQp9Gpc51y-u3xApZjIjgkpZ01js-J8KflSPW8WzIE")
	if err != nil {
		t.Fatal(err)
	}
	const want = "https://qr-test.ksef.mf.gov.pl/invoice/1111111111/01-02-2026/UtQp9Gpc51y-u3xApZjIjgkpZ01js-J8KflSPW8WzIE"
	if got := wire.CodeOne(qrTest, "1111111111", time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), [32]byte(raw)); got != want {
		t.Errorf("%s instead of %s", got, want)
	}
}

func TestCodesPointToTheEnvironmentOfTheEndpoint(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.ksef.mf.gov.pl/v2":      "https://qr.ksef.mf.gov.pl",
		"https://api-demo.ksef.mf.gov.pl/v2": "https://qr-demo.ksef.mf.gov.pl",
	} {
		if got := wire.QRBase(country.Endpoint{BaseURL: base, Live: true}); got != want {
			t.Errorf("%s: %s", base, got)
		}
	}
	for _, base := range []string{"https://api-test.ksef.mf.gov.pl/v2", "http://127.0.0.1:8090/pl"} {
		if got := wire.QRBase(country.Endpoint{BaseURL: base}); got != "https://qr-test.ksef.mf.gov.pl" {
			t.Errorf("%s: %s", base, got)
		}
	}
}

func opened(t testing.TB) *identity.Identity {
	t.Helper()
	id, err := identity.NewKeeper().Open(certificate().Certificate(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func elliptical(t *testing.T) *identity.Identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(0x01F20A5D352AE590),
		Subject:      pkix.Name{CommonName: "Test", SerialNumber: "TINPL-" + supplierNIP},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageContentCommitment | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &identity.Identity{Key: key, Leaf: leaf}
}

// split takes a second code apart: the signed text and the signature.
func split(t *testing.T, code string) (digest [32]byte, signature []byte) {
	t.Helper()
	last := strings.LastIndexByte(code, '/')
	signature, err := base64.RawURLEncoding.DecodeString(code[last+1:])
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256([]byte(strings.TrimPrefix(code[:last], "https://"))), signature
}

func TestSecondCodeIsSignedAsKSeFWants(t *testing.T) {
	sum := sha256.Sum256([]byte("invoice"))
	rsaID := opened(t)
	code, err := wire.CodeTwo(qrTest, supplierNIP, sum, rsaID)
	if err != nil {
		t.Fatal(err)
	}
	digest, signature := split(t, code)
	if err := rsa.VerifyPSS(rsaID.Leaf.PublicKey.(*rsa.PublicKey), crypto.SHA256, digest[:], signature,
		&rsa.PSSOptions{SaltLength: 32}); err != nil {
		t.Errorf("RSA: %v", err)
	}

	ecID := elliptical(t)
	code, err = wire.CodeTwo(qrTest, supplierNIP, sum, ecID)
	if err != nil {
		t.Fatal(err)
	}
	want := "https://qr-test.ksef.mf.gov.pl/certificate/Nip/" + supplierNIP + "/" + supplierNIP + "/01F20A5D352AE590/" +
		base64.RawURLEncoding.EncodeToString(sum[:]) + "/"
	if !strings.HasPrefix(code, want) {
		t.Errorf("%s does not begin with %s", code, want)
	}
	digest, signature = split(t, code)
	if len(signature) != 64 || !ecdsa.Verify(ecID.Leaf.PublicKey.(*ecdsa.PublicKey), digest[:],
		new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Errorf("EC: the signature of %d bytes does not verify", len(signature))
	}
}

const challenge = "20250625-CR-20F5EE4000-DA48AE4124-46"

func TestSignedChallengeIsTakenAndAnyChangeIsNot(t *testing.T) {
	for name, id := range map[string]*identity.Identity{"RSA": opened(t), "EC": elliptical(t)} {
		t.Run(name, func(t *testing.T) {
			body, err := wire.SignedRequest(challenge, supplierNIP, id, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if code := verified(t, body); code != 0 {
				t.Fatalf("refused with %d", code)
			}
			for what, change := range map[string][2]string{
				"another taxpayer":         {supplierNIP, buyerNIP},
				"another challenge":        {"20F5EE4000", "20F5EE4001"},
				"another time of signing":  {"<xades:SigningTime>20", "<xades:SigningTime>19"},
				"another method":           {"certificateSubject", "certificateFingerprint"},
				"a reference to elsewhere": {`URI=""`, `URI="#x"`},
				"another canonical form": {`<ds:CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"`,
					`<ds:CanonicalizationMethod Algorithm="http://www.w3.org/2006/12/xml-c14n11"`},
				"a signature value changed": {"<ds:SignatureValue>", "<ds:SignatureValue>AAAA"},
			} {
				spoilt := strings.Replace(string(body), change[0], change[1], 1)
				if spoilt == string(body) {
					t.Fatalf("%s: nothing was changed", what)
				}
				if code := verified(t, []byte(spoilt)); code != 9105 {
					t.Errorf("%s: code %d", what, code)
				}
			}
		})
	}
}

func TestUnsignedAndTwiceSignedChallengesAreRefused(t *testing.T) {
	body, err := wire.SignedRequest(challenge, supplierNIP, opened(t), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	signature := regexp.MustCompile(`(?s)<ds:Signature .*</ds:Signature>`)
	for what, c := range map[string]struct {
		body string
		code int
	}{
		"unsigned":        {signature.ReplaceAllString(string(body), ""), 9102},
		"signed twice":    {signature.ReplaceAllString(string(body), "$0$0"), 9103},
		"a document type": {"<!DOCTYPE x [<!ENTITY y 'z'>]>" + string(body[strings.IndexByte(string(body), '\n'):]), 9101},
		"no XML":          {"hello", 9101},
		"cut short":       {string(body[:len(body)/2]), 9101},
	} {
		if code := verified(t, []byte(c.body)); code != c.code {
			t.Errorf("%s: code %d instead of %d", what, code, c.code)
		}
	}
}

// TestSignedChallengeVerifiesWithAnotherCanonicaliser asks libxml2 for the
// canonical forms: our own writing and our own checking could agree on an error.
func TestSignedChallengeVerifiesWithAnotherCanonicaliser(t *testing.T) {
	needs.Schemas(t, "pl-ksef")
	id := opened(t)
	body, err := wire.SignedRequest(challenge, supplierNIP, id, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	part := func(pattern string) string {
		m := regexp.MustCompile(`(?s)` + pattern).FindString(string(body))
		if m == "" {
			t.Fatalf("there is no %s", pattern)
		}
		return m
	}
	value := func(text, pattern string) string { return regexp.MustCompile(pattern).FindStringSubmatch(text)[1] }
	info := part(`<ds:SignedInfo.*</ds:SignedInfo>`)
	digests := regexp.MustCompile(`<ds:DigestValue>([^<]+)</ds:DigestValue>`).FindAllStringSubmatch(info, -1)
	document := canonicalised(t, strings.Replace(string(body), part(`<ds:Signature .*</ds:Signature>`), "", 1))
	properties := canonicalised(t, part(`<xades:SignedProperties.*</xades:SignedProperties>`))
	for i, text := range [][]byte{document, properties} {
		sum := sha256.Sum256(text)
		if got := base64.StdEncoding.EncodeToString(sum[:]); got != digests[i][1] {
			t.Errorf("digest %d is %s, by libxml2 it is %s", i, digests[i][1], got)
		}
	}
	sum := sha256.Sum256(canonicalised(t, info))
	signature, err := base64.StdEncoding.DecodeString(value(string(body), `<ds:SignatureValue>([^<]+)<`))
	if err != nil {
		t.Fatal(err)
	}
	if err := rsa.VerifyPKCS1v15(id.Leaf.PublicKey.(*rsa.PublicKey), crypto.SHA256, sum[:], signature); err != nil {
		t.Error(err)
	}
	unsigned := strings.Replace(string(body), part(`<ds:Signature .*</ds:Signature>`), "", 1)
	xsd := packtest.XSD{Path: needs.Schemas(t, "pl-ksef", "schemy", "schemat_auth_v2-1.xsd")}
	xsd.Conforms(t, []byte(unsigned), []byte(strings.Replace(unsigned, "<Nip>5", "<Nip>0", 1)))
}

func canonicalised(t *testing.T, text string) []byte {
	t.Helper()
	cmd := exec.Command(needs.Tool(t, "xmllint", "libxml2-utils"), "--nonet", "--exc-c14n", "-")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("xmllint: %v", err)
	}
	return out
}
