package identity

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
	"sync"
	"time"

	pkcs12 "software.sslmate.com/src/go-pkcs12"
)

const (
	testCertificateFor = 2 * 365 * 24 * time.Hour
	testKeyBits        = 2048
)

// testKey is the key of all test certificates that a process makes: a fresh one
// for each took a demo longer than everything else it does before it is ready.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, testKeyBits) })

// Test makes a PKCS#12 with a fresh, self-signed RSA certificate
// whose subject carries a tax number, and its password. Simulated authorities
// take it, real ones never: it is for demos and tests.
func Test(taxNumber, name string, now time.Time) (file []byte, password string, err error) {
	key, err := testKey()
	if err != nil {
		return nil, "", fmt.Errorf("make a test certificate: %w", err)
	}
	serial := make([]byte, 16)
	hidden := make([]byte, 12)
	rand.Read(serial) // never fails: the runtime ends the program instead
	rand.Read(hidden) // likewise
	serial[0] &= 0x7f
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		Subject: pkix.Name{CommonName: name, Organization: []string{name}, SerialNumber: taxNumber,
			ExtraNames: []pkix.AttributeTypeAndValue{{Type: oidOrganizationIdentifier, Value: taxNumber}}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(testCertificateFor),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, "", fmt.Errorf("make a test certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, "", fmt.Errorf("make a test certificate: %w", err)
	}
	password = hex.EncodeToString(hidden)
	file, err = pkcs12.Modern2023.Encode(key, cert, nil, password)
	if err != nil {
		return nil, "", fmt.Errorf("make a test certificate: %w", err)
	}
	return file, password, nil
}
