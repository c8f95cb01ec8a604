package anaf

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"

	"tributary/internal/xmltree"
)

const (
	spaceDSig   = "http://www.w3.org/2000/09/xmldsig#"
	exclusive   = "http://www.w3.org/2001/10/xml-exc-c14n#"
	digest256   = "http://www.w3.org/2001/04/xmlenc#sha256"
	ecdsaSHA256 = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"
)

type keyPair struct {
	key  *ecdsa.PrivateKey
	cert []byte // DER
}

// keysOf is the double's key in place of the ministry's: one for each process.
var keysOf = sync.OnceValues(func() (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("making the double's key: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Simulated Ministerul Finantelor", Country: []string{"RO"}},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return keyPair{}, fmt.Errorf("making the double's certificate: %w", err)
	}
	return keyPair{key, der}, nil
})

// Certificate is that of the double's signatures, in PEM.
func Certificate() (string, error) {
	k, err := keysOf()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.cert})), err
}

// sign makes a detached signature of a file.
func sign(content []byte) ([]byte, error) {
	k, err := keysOf()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	info := xmltree.New("ds:SignedInfo", "xmlns:ds", spaceDSig)
	info.Add(xmltree.New("ds:CanonicalizationMethod", "Algorithm", exclusive))
	info.Add(xmltree.New("ds:SignatureMethod", "Algorithm", ecdsaSHA256))
	ref := info.Add(xmltree.New("ds:Reference", "URI", ""))
	ref.Add(xmltree.New("ds:DigestMethod", "Algorithm", digest256))
	ref.Leaf("ds:DigestValue", base64.StdEncoding.EncodeToString(sum[:]))
	form, _ := xmltree.CanonicalBy(exclusive)
	signed := form.Bytes(info)
	hash := sha256.Sum256(signed)
	value, err := k.key.Sign(rand.Reader, hash[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("signing an archive: %w", err)
	}
	w := xmltree.NewWriter(2048)
	w.Declare()
	w.Start("ds:Signature", "xmlns:ds", spaceDSig)
	w.Raw(signed)
	w.Leaf("ds:SignatureValue", base64.StdEncoding.EncodeToString(value))
	w.Start("ds:KeyInfo")
	w.Start("ds:X509Data")
	w.Leaf("ds:X509Certificate", base64.StdEncoding.EncodeToString(k.cert))
	w.End()
	w.End()
	w.End()
	return w.Bytes(), nil
}
