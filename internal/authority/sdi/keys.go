package sdi

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"
)

const primeBits = 1024

// keyPair is the double's key with its certificates: it signs messages and
// shows itself when it calls.
type keyPair struct {
	ca   []byte // DER
	leaf *x509.Certificate
	key  *rsa.PrivateKey
}

// keysOf are the double's keys, the same in every process, so that whoever
// trusts [sdiwire.SimulatedCA] believes any double. They are derived from words
// that everybody can read: good for tests, and worth nothing as a secret.
var keysOf = sync.OnceValues(func() (*keyPair, error) {
	authority, err := derivedKey("simulated SdI: authority")
	if err != nil {
		return nil, err
	}
	own, err := derivedKey("simulated SdI: exchange")
	if err != nil {
		return nil, err
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Simulated SdI CA", Country: []string{"IT"}},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	ca, err := x509.CreateCertificate(rand.Reader, root, root, authority.Public(), authority)
	if err != nil {
		return nil, fmt.Errorf("making the double's CA: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "SistemaInterscambioFatturaPASimulated",
			Country: []string{"IT"}},
		NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, root, own.Public(), authority)
	if err != nil {
		return nil, fmt.Errorf("making the double's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	return &keyPair{ca: ca, leaf: leaf, key: own}, err
})

// certificate is what the double shows on a connection.
func (k *keyPair) certificate() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{k.leaf.Raw, k.ca}, PrivateKey: k.key, Leaf: k.leaf}
}

// derivedKey is the RSA key that belongs to some words.
func derivedKey(words string) (*rsa.PrivateKey, error) {
	const exponent = 65537
	p, q := derivedPrime(words+" p", exponent), derivedPrime(words+" q", exponent)
	one := big.NewInt(1)
	phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	d := new(big.Int).ModInverse(big.NewInt(exponent), phi)
	if d == nil {
		return nil, errors.New("the words give no key")
	}
	key := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: exponent}, D: d, Primes: []*big.Int{p, q}}
	key.Precompute()
	return key, key.Validate()
}

// derivedPrime is the first prime behind a number made of hashes, such that
// the exponent has an inverse.
func derivedPrime(words string, exponent int64) *big.Int {
	var text []byte
	for n := uint32(0); len(text) < primeBits/8; n++ {
		sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(words), n))
		text = append(text, sum[:]...)
	}
	p := new(big.Int).SetBytes(text)
	p.SetBit(p, primeBits-1, 1).SetBit(p, primeBits-2, 1).SetBit(p, 0, 1)
	two, e := big.NewInt(2), big.NewInt(exponent)
	for rest := new(big.Int); ; p.Add(p, two) {
		if rest.Mod(p, e); rest.Cmp(big.NewInt(1)) != 0 && p.ProbablyPrime(20) {
			return p
		}
	}
}
