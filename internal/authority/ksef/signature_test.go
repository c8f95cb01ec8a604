package ksef_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority/ksef"
	"tributary/internal/country/identity"
	"tributary/internal/xmltree"
)

const (
	nip       = "5265877635"
	challenge = "20250625-CR-20F5EE4000-DA48AE4124-46"
	spaceDS   = "http://www.w3.org/2000/09/xmldsig#"
)

func opened(t testing.TB) *identity.Identity {
	t.Helper()
	file, password, err := identity.Test(nip, "Obca Spółka", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	parsed, reason := identity.Read(file)
	if reason != "" {
		t.Fatal(reason)
	}
	id, problem := parsed.Open(password)
	if problem != nil {
		t.Fatal(problem)
	}
	return id
}

// enveloping is a request that its signature carries, as XML or as Base64,
// written as another program would: other prefixes, SHA-512, RSA-PSS, the
// inclusive canonical form, the second edition of SigningCertificate.
func enveloping(t testing.TB, id *identity.Identity, packed bool) string {
	t.Helper()
	request := `<AuthTokenRequest xmlns="http://ksef.mf.gov.pl/auth/token/2.1"><Challenge>` + challenge +
		`</Challenge><ContextIdentifier><Nip>` + nip +
		`</Nip></ContextIdentifier><SubjectIdentifierType>certificateSubject</SubjectIdentifierType></AuthTokenRequest>`
	sum := sha256.Sum256(id.Leaf.Raw)
	object, transform := request, ""
	if packed {
		object = base64.StdEncoding.EncodeToString([]byte(request))
		transform = `<Transforms><Transform Algorithm="` + spaceDS + `base64"/></Transforms>`
	}
	text := `<Signature xmlns="` + spaceDS + `" Id="s"><SignedInfo><CanonicalizationMethod Algorithm="` +
		xmltree.AlgorithmInclusive + `"/>` +
		`<SignatureMethod Algorithm="http://www.w3.org/2007/05/xmldsig-more#sha512-rsa-MGF1"/>` +
		`<Reference URI="#o">` + transform +
		`<DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha512"/><DigestValue>{ONE}</DigestValue></Reference>` +
		`<Reference URI="#p" Type="http://uri.etsi.org/01903#SignedProperties"><DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha512"/><DigestValue>{TWO}</DigestValue></Reference>` +
		`</SignedInfo><SignatureValue>{VALUE}</SignatureValue><KeyInfo><X509Data><X509Certificate>` +
		base64.StdEncoding.EncodeToString(id.Leaf.Raw) +
		`</X509Certificate></X509Data></KeyInfo><Object Id="o">` + object + `</Object>` +
		`<Object><q:QualifyingProperties xmlns:q="http://uri.etsi.org/01903/v1.3.2#" Target="#s"><q:SignedProperties Id="p"><q:SignedSignatureProperties>` +
		`<q:SigningTime>` + time.Now().UTC().Format(time.RFC3339) +
		`</q:SigningTime><q:SigningCertificateV2><q:Cert><q:CertDigest>` +
		`<DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/><DigestValue>` +
		base64.StdEncoding.EncodeToString(sum[:]) + `</DigestValue>` +
		`</q:CertDigest></q:Cert></q:SigningCertificateV2></q:SignedSignatureProperties></q:SignedProperties></q:QualifyingProperties></Object></Signature>`
	canonical := func(find func(*xmltree.Element) *xmltree.Element) []byte {
		doc, err := xmltree.Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		form, _ := xmltree.CanonicalBy(xmltree.AlgorithmInclusive)
		return form.Bytes(find(doc.Root))
	}
	digest := func(of []byte) string {
		sum := sha512.Sum512(of)
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	one := digest([]byte(request))
	if !packed {
		one = digest(canonical(func(e *xmltree.Element) *xmltree.Element { return e.At("Object") }))
	}
	two := digest(canonical(func(e *xmltree.Element) *xmltree.Element {
		return e.All("Object")[1].At("QualifyingProperties", "SignedProperties")
	}))
	text = strings.NewReplacer("{ONE}", one, "{TWO}", two).Replace(text)
	sum512 := sha512.Sum512(canonical(func(e *xmltree.Element) *xmltree.Element { return e.At("SignedInfo") }))
	value, err := id.Key.Sign(rand.Reader, sum512[:],
		&rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA512})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(text, "{VALUE}", base64.StdEncoding.EncodeToString(value), 1)
}

func TestSignatureAroundTheRequestIsTaken(t *testing.T) {
	id := opened(t)
	for _, packed := range []bool{false, true} {
		text := enveloping(t, id, packed)
		got, who, code := ksef.VerifySigned([]byte(text))
		if got != challenge || who != nip || code != 0 {
			t.Fatalf("packed=%v: %q %q %d", packed, got, who, code)
		}
		// The corners that a signature could be turned around at.
		for what, spoilt := range map[string]string{
			"another object is signed": strings.Replace(text, `<Object Id="o">`, `<Object Id="o"><x/></Object><Object Id="n">`,
				1),
			"two objects of one Id":    strings.Replace(text, `<Object Id="o">`, `<Object Id="o">x</Object><Object Id="o">`, 1),
			"a reference to elsewhere": strings.Replace(text, `URI="#o"`, `URI="http://example.org/"`, 1),
			"no reference to it": strings.Replace(text, `URI="#o"`,
				`URI="#p" Type="http://uri.etsi.org/01903#SignedProperties"`, 1),
			"another time":   strings.Replace(text, "<q:SigningTime>20", "<q:SigningTime>19", 1),
			"another method": strings.Replace(text, "#sha512-rsa-MGF1", "#sha256-rsa-MGF1", 1),
		} {
			if spoilt == text {
				t.Fatalf("%s: nothing was changed", what)
			}
			if _, _, code := ksef.VerifySigned([]byte(spoilt)); code != 9105 {
				t.Errorf("packed=%v, %s: code %d", packed, what, code)
			}
		}
	}
	unknown := strings.ReplaceAll(enveloping(t, id, false), "certificateSubject", "certificateSubjekt")
	if _, _, code := ksef.VerifySigned([]byte(unknown)); code != 9105 {
		t.Errorf("a changed request: code %d", code)
	}
}
