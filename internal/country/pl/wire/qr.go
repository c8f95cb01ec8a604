package wire

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
)

// Addresses of the verification pages, by environment (ksef-docs, kody-qr.md).
const (
	qrLive = "https://qr.ksef.mf.gov.pl"
	qrDemo = "https://qr-demo.ksef.mf.gov.pl"
	qrTest = "https://qr-test.ksef.mf.gov.pl"
)

// QRBase is the verification page that belongs to an endpoint. A simulator
// has none of its own: documents made with it point to the test environment.
func QRBase(at country.Endpoint) string {
	switch {
	case strings.Contains(at.BaseURL, "//api-demo.ksef.mf.gov.pl"):
		return qrDemo
	case bool(at.Live):
		return qrLive
	}
	return qrTest
}

// CodeOne is KOD I, by which anybody can ask whether KSeF holds the invoice.
func CodeOne(base, nip string, issued time.Time, sum [sha256.Size]byte) string {
	return base + "/invoice/" + nip + "/" + issued.Format("02-01-2006") + "/" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// CodeTwo is KOD II, by which anybody can verify the issuer of an invoice that
// KSeF does not hold yet: the address without its scheme, signed with the key
// of a KSeF certificate.
func CodeTwo(base, nip string, sum [sha256.Size]byte, id *identity.Identity) (string, error) {
	path := base + "/certificate/Nip/" + nip + "/" + nip + "/" + serial(id.Leaf) + "/" +
		base64.RawURLEncoding.EncodeToString(sum[:])
	digest := sha256.Sum256([]byte(strings.TrimPrefix(path, "https://")))
	var signature []byte
	var err error
	switch id.Key.Public().(type) {
	case *rsa.PublicKey:
		signature, err = id.Key.Sign(rand.Reader, digest[:], &rsa.PSSOptions{SaltLength: sha256.Size, Hash: crypto.SHA256})
	default:
		signature, err = signFixed(id.Key, digest[:])
	}
	if err != nil {
		return "", fmt.Errorf("signing the second code: %w", err)
	}
	return path + "/" + base64.RawURLEncoding.EncodeToString(signature), nil
}

// serial is a certificate's number as KSeF prints it: upper-case hexadecimal
// of whole bytes.
func serial(leaf *x509.Certificate) string {
	return fmt.Sprintf("%X", leaf.SerialNumber.Bytes())
}

// signFixed signs a digest with an elliptic key and writes the signature as
// R || S of equal length, the form both KSeF and XML signatures want.
func signFixed(key crypto.Signer, digest []byte) ([]byte, error) {
	public, ok := key.Public().(*ecdsa.PublicKey)
	if !ok {
		return nil, errors.New("the key is neither RSA nor EC")
	}
	der, err := key.Sign(rand.Reader, digest, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	var pair struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &pair); err != nil {
		return nil, err
	}
	size := (public.Curve.Params().BitSize + 7) / 8
	out := make([]byte, 2*size)
	pair.R.FillBytes(out[:size])
	pair.S.FillBytes(out[size:])
	return out, nil
}

// signsOffline reports whether a certificate may sign KOD II: one that KSeF
// issued, of type Offline. KSeF issues certificates of two types: Authentication
// with the key usage Digital Signature, Offline with Non-Repudiation; only the
// second confirms issuers (ksef-docs, certyfikaty-KSeF.md). A qualified seal has
// Non-Repudiation as well, and the verification page does not know it.
func signsOffline(leaf *x509.Certificate) bool {
	return issuedByKSeF(leaf) && leaf.KeyUsage&x509.KeyUsageContentCommitment != 0
}

func issuedByKSeF(leaf *x509.Certificate) bool {
	return strings.Contains(strings.ToUpper(leaf.Issuer.String()), "KSEF")
}

// authenticates reports whether a certificate may open the API: all but KSeF's
// own of type Offline, which have Non-Repudiation alone. Qualified ones have
// Non-Repudiation too, so the issuer decides.
func authenticates(leaf *x509.Certificate) bool {
	if leaf.KeyUsage == 0 || leaf.KeyUsage&x509.KeyUsageDigitalSignature != 0 {
		return true
	}
	return !issuedByKSeF(leaf)
}
