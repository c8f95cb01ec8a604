package mx

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"tributary/internal/country/identity"
	"tributary/internal/country/mx/wire"
	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

// seal puts certificate and seal into a voucher.
func seal(voucher *xmltree.Element, with *identity.Identity) error {
	voucher.Set("NoCertificado", satwire.CertificateNumber(with.Leaf))
	voucher.Set("Certificado", base64.StdEncoding.EncodeToString(with.Leaf.Raw))
	text, err := original(voucher)
	if err != nil {
		return err
	}
	signature, err := sign(with.Key, crypto.SHA256, text)
	if err != nil {
		return fmt.Errorf("sealing a voucher: %w", err)
	}
	voucher.Set("Sello", signature)
	return nil
}

func sign(key crypto.Signer, hash crypto.Hash, text []byte) (string, error) {
	if _, ok := key.Public().(*rsa.PublicKey); !ok {
		return "", errors.New("the key is not an RSA key")
	}
	h := hash.New()
	h.Write(text)
	signature, err := key.Sign(rand.Reader, h.Sum(nil), hash)
	return base64.StdEncoding.EncodeToString(signature), err
}

// verify checks an RSA signature in base64.
func verify(leaf *x509.Certificate, hash crypto.Hash, text []byte, signature string) error {
	key, ok := leaf.PublicKey.(*rsa.PublicKey)
	if !ok {
		return errors.New("the certificate has no RSA key")
	}
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return fmt.Errorf("reading a signature: %w", err)
	}
	h := hash.New()
	h.Write(text)
	return rsa.VerifyPKCS1v15(key, hash, h.Sum(nil), raw)
}

// stamped is a voucher with its stamp, read from a provider's answer.
type stamped struct {
	voucher *xmltree.Element
	stamp   *xmltree.Element
	raw     []byte
}

// readStamped reads a stamped voucher without believing it yet.
func readStamped(raw []byte) (*stamped, error) {
	voucher, err := readXML(raw)
	if err != nil {
		return nil, err
	}
	s := &stamped{voucher: voucher, raw: raw}
	if !voucher.Is(satwire.SpaceCFDI, "Comprobante") {
		return nil, errors.New("it is no voucher")
	}
	each(voucher, func(complement *xmltree.Element) {
		for _, c := range complement.Children {
			if c.Is(satwire.SpaceStamp, "TimbreFiscalDigital") {
				s.stamp = c
			}
		}
	}, "Complemento")
	if s.stamp == nil {
		return nil, errors.New("it is no stamped voucher")
	}
	if !uuidPattern.MatchString(s.uuid()) || len(s.number()) != 20 {
		return nil, errors.New("its stamp has no UUID or no certificate")
	}
	return s, nil
}

func (s *stamped) uuid() string   { return strings.ToUpper(s.stamp.Attr("UUID")) }
func (s *stamped) number() string { return s.stamp.Attr("NoCertificadoSAT") }

// believe checks the stamp: it must be of the voucher that it stands in, and
// signed by the holder of SAT's certificate.
func (s *stamped) believe(sat *x509.Certificate) error {
	if s.stamp.Attr("SelloCFD") != s.voucher.Attr("Sello") {
		return errors.New("the stamp is of another voucher: SelloCFD differs from Sello")
	}
	if sat == nil {
		return nil
	}
	if satwire.CertificateNumber(sat) != s.number() {
		return errors.New("the stamp names another certificate than SAT's repository gave")
	}
	if err := verify(sat, crypto.SHA256, originalOfStamp(s.stamp), s.stamp.Attr("SelloSAT")); err != nil {
		return fmt.Errorf("the stamp is not SAT's: %w", err)
	}
	return nil
}

// at is the moment of the stamp, which is written in the time of central Mexico.
func (s *stamped) at(cat *catalog) time.Time {
	at, err := time.ParseInLocation(satwire.LocalTime, s.stamp.Attr("FechaTimbrado"), cat.zone("", nil))
	if err != nil {
		return time.Time{}
	}
	return at
}

// address is the one under which anybody can verify the voucher (Anexo 20, II.D):
// UUID, both RFCs, the total without needless zeros, the end of the seal.
func (s *stamped) address() string {
	rfc := func(party string) string {
		return url.QueryEscape(child(s.voucher, party).Attr("Rfc"))
	}
	seal := s.voucher.Attr("Sello")
	return verifyAddress + "?id=" + s.uuid() + "&re=" + rfc("Emisor") + "&rr=" + rfc("Receptor") +
		"&tt=" + wire.Total(s.voucher.Attr("Total")) + "&fe=" + strings.ReplaceAll(wire.Tail(seal, 8), "+", "%2B")
}

const verifyAddress = "https://verificacfdi.facturaelectronica.sat.gob.mx/default.aspx"
