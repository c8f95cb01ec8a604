package wire

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"tributary/internal/country/identity"
	"tributary/internal/official/ksefwire"
	"tributary/internal/xmltree"
)

// Ids inside of a signature.
const (
	idSignature  = "signature"
	idProperties = "signed-properties"
)

// SignedRequest is AuthTokenRequest with an enveloped XAdES-BES signature.
//
// Everything that is signed is written in its exclusive canonical form at
// once: namespaces on the elements that use them, attributes in order, no
// empty-element tags. So the text that is hashed is the text that is sent.
func SignedRequest(challenge, nip string, id *identity.Identity, now time.Time) ([]byte, error) {
	head := `<AuthTokenRequest xmlns="` + ksefwire.SpaceAuth + `">` +
		`<Challenge>` + escaped(challenge) + `</Challenge>` +
		`<ContextIdentifier><Nip>` + escaped(nip) + `</Nip></ContextIdentifier>` +
		`<SubjectIdentifierType>` + ksefwire.SubjectType + `</SubjectIdentifierType>`
	const tail = `</AuthTokenRequest>`
	properties := signedProperties(id, now)
	method := ksefwire.RSASHA256
	if _, ok := id.Key.Public().(*rsa.PublicKey); !ok {
		method = ksefwire.ECDSASHA256
	}
	info := `<ds:SignedInfo xmlns:ds="` + ksefwire.SpaceSignature + `">` +
		algorithm("CanonicalizationMethod", xmltree.AlgorithmExclusive) + algorithm("SignatureMethod", method) +
		`<ds:Reference URI=""><ds:Transforms>` + algorithm("Transform", ksefwire.Enveloped) +
		algorithm("Transform", xmltree.AlgorithmExclusive) + `</ds:Transforms>` +
		digest(head+tail) + `</ds:Reference>` +
		`<ds:Reference Type="` + ksefwire.TypeSignedProperties + `" URI="#` + idProperties + `"><ds:Transforms>` +
		algorithm("Transform", xmltree.AlgorithmExclusive) + `</ds:Transforms>` +
		digest(properties) + `</ds:Reference></ds:SignedInfo>`
	value, err := signInfo(id.Key, info)
	if err != nil {
		return nil, fmt.Errorf("signing the challenge: %w", err)
	}
	signature := `<ds:Signature xmlns:ds="` + ksefwire.SpaceSignature + `" Id="` + idSignature + `">` + info +
		`<ds:SignatureValue>` + value + `</ds:SignatureValue>` +
		`<ds:KeyInfo><ds:X509Data><ds:X509Certificate>` + base64.StdEncoding.EncodeToString(id.Leaf.Raw) +
		`</ds:X509Certificate></ds:X509Data></ds:KeyInfo>` +
		`<ds:Object><xades:QualifyingProperties xmlns:xades="` + ksefwire.SpaceXAdES + `" Target="#` + idSignature + `">` +
		properties +
		`</xades:QualifyingProperties></ds:Object></ds:Signature>`
	return []byte(`<?xml version="1.0" encoding="utf-8"?>` + "\n" + head + signature + tail), nil
}

// signedProperties says when and with which certificate is signed.
func signedProperties(id *identity.Identity, now time.Time) string {
	sum := sha256.Sum256(id.Leaf.Raw)
	ds := ` xmlns:ds="` + ksefwire.SpaceSignature + `"`
	return `<xades:SignedProperties xmlns:xades="` + ksefwire.SpaceXAdES + `" Id="` + idProperties +
		`"><xades:SignedSignatureProperties>` +
		`<xades:SigningTime>` + now.UTC().Format(time.RFC3339) + `</xades:SigningTime>` +
		`<xades:SigningCertificate><xades:Cert><xades:CertDigest>` +
		`<ds:DigestMethod` + ds + ` Algorithm="` + ksefwire.SHA256 + `"></ds:DigestMethod>` +
		`<ds:DigestValue` + ds + `>` + base64.StdEncoding.EncodeToString(sum[:]) + `</ds:DigestValue>` +
		`</xades:CertDigest><xades:IssuerSerial>` +
		`<ds:X509IssuerName` + ds + `>` + escaped(identity.IssuerName(id.Leaf)) + `</ds:X509IssuerName>` +
		`<ds:X509SerialNumber` + ds + `>` + id.Leaf.SerialNumber.String() + `</ds:X509SerialNumber>` +
		`</xades:IssuerSerial></xades:Cert></xades:SigningCertificate>` +
		`</xades:SignedSignatureProperties></xades:SignedProperties>`
}

func algorithm(element, name string) string {
	return `<ds:` + element + ` Algorithm="` + name + `"></ds:` + element + `>`
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return algorithm("DigestMethod", ksefwire.SHA256) + `<ds:DigestValue>` + base64.StdEncoding.EncodeToString(sum[:]) +
		`</ds:DigestValue>`
}

func signInfo(key crypto.Signer, info string) (string, error) {
	sum := sha256.Sum256([]byte(info))
	var value []byte
	var err error
	if _, ok := key.Public().(*rsa.PublicKey); ok {
		value, err = key.Sign(rand.Reader, sum[:], crypto.SHA256)
	} else {
		value, err = signFixed(key, sum[:])
	}
	return base64.StdEncoding.EncodeToString(value), err
}

// escaped is text as canonical XML has it, without characters that are none.
func escaped(text string) string {
	return string(xmltree.AppendText(nil, strings.Map(func(r rune) rune {
		if !ksefwire.Allowed(r) {
			return -1
		}
		return r
	}, text)))
}
