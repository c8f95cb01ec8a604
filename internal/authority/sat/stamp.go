package sat

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

// rfcProvider is the RFC of the simulated provider.
const rfcProvider = "SPR190613I52"

// Seal is the key with which the simulated SAT seals its stamps. It is made
// when it is first needed. Its certificate goes into the book of each desk that
// used it, so that old stamps can be verified after a restart has made another.
// The zero value is ready.
type Seal struct {
	once sync.Once
	key  *rsa.PrivateKey
	leaf *x509.Certificate
	err  error
}

func (s *Seal) open() (*rsa.PrivateKey, *x509.Certificate, error) {
	s.once.Do(func() {
		if s.key, s.err = rsa.GenerateKey(rand.Reader, 2048); s.err != nil {
			return
		}
		sum := sha256.Sum256(s.key.N.Bytes())
		// SAT's certificates have twenty digits in ASCII as their serial number.
		number := fmt.Sprintf("3000100%013d", binary.BigEndian.Uint64(sum[:])%1e13)
		now := time.Now()
		template := &x509.Certificate{
			SerialNumber: new(big.Int).SetBytes([]byte(number)), NotBefore: now.Add(-24 * time.Hour), NotAfter: now.AddDate(4, 0, 0),
			Subject: pkix.Name{CommonName: "SAT (simulated)", Organization: []string{"Simulated authority"}},
		}
		var der []byte
		if der, s.err = x509.CreateCertificate(rand.Reader, template, template, &s.key.PublicKey, s.key); s.err == nil {
			s.leaf, s.err = x509.ParseCertificate(der)
		}
	})
	return s.key, s.leaf, s.err
}

// record is what the simulated SAT keeps of a voucher beside its registration.
type record struct {
	At        string `json:"at"` // FechaTimbrado
	NumberSAT string `json:"number_sat"`
	Seal      string `json:"seal"` // SelloSAT
	Sello     string `json:"sello,omitempty"`
	Receiver  string `json:"receiver"`
	Total     string `json:"total"`
	Year      int    `json:"year"`
	Accept    bool   `json:"accept,omitempty"` // the receiver must agree to a cancellation
	NumberCSD string `json:"number_csd,omitempty"`
	XML       string `json:"xml,omitempty"` // see packed

	Relation string   `json:"relation,omitempty"` // to the vouchers that it refers to
	Refers   []string `json:"refers,omitempty"`
}

// folioOf is the UUID of a voucher. It follows from the seal, so that the same
// voucher never has two.
func folioOf(seal string) string {
	return strings.ToUpper(uuid.NewSHA1(uuid.NameSpaceURL, []byte("cfdi\n"+seal)).String())
}

// stampFor makes the record of a voucher that is stamped now.
func (s *Seal) stampFor(v *xmltree.Element, sello string, at time.Time) (record, error) {
	key, leaf, err := s.open()
	if err != nil {
		return record{}, fmt.Errorf("making SAT's key: %w", err)
	}
	r := record{At: at.Format(satwire.LocalTime), NumberSAT: satwire.CertificateNumber(leaf), Sello: sello,
		Receiver: v.At("Receptor").Attr("Rfc"), Total: v.Attr("Total"), Year: at.Year(), Accept: needsAcceptance(v),
		NumberCSD: v.Attr("NoCertificado"), XML: packed(v)}
	r.Relation, r.Refers = relationOf(v)
	digest := sha256.Sum256(originalOfStamp(r.stamp()))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return record{}, fmt.Errorf("sealing a stamp: %w", err)
	}
	r.Seal = base64.StdEncoding.EncodeToString(signature)
	return r, nil
}

// stamp is the record as the element TimbreFiscalDigital.
func (r record) stamp() *xmltree.Element {
	e := xmltree.New("tfd:TimbreFiscalDigital", "xmlns:tfd", satwire.SpaceStamp, "xmlns:xsi", xmltree.SpaceXSI,
		"xsi:schemaLocation",
		satwire.SpaceStamp+" http://www.sat.gob.mx/sitio_internet/cfd/TimbreFiscalDigital/TimbreFiscalDigitalv11.xsd",
		"Version", "1.1", "UUID", folioOf(r.Sello), "FechaTimbrado", r.At, "RfcProvCertif", rfcProvider,
		"SelloCFD", r.Sello, "NoCertificadoSAT", r.NumberSAT)
	e.Set("SelloSAT", r.Seal)
	return e
}

// named is a name with the prefix under which a voucher knows its namespace.
func named(v *xmltree.Element, local string) string {
	if v.Prefix == "" {
		return local
	}
	return v.Prefix + ":" + local
}

// stampedCopy is a voucher with its stamp, as a provider gives it back: written
// again as it was read, with the complement at its end.
func (r record) stampedCopy(v *xmltree.Element) []byte {
	whole := *v
	whole.Attrs, whole.Children = slices.Clone(v.Attrs), slices.Clone(v.Children)
	whole.Set("Sello", r.Sello)
	complement := xmltree.New(named(v, "Complemento"))
	if i := slices.IndexFunc(whole.Children, func(c *xmltree.Element) bool {
		return c.Is(satwire.SpaceCFDI, "Complemento")
	}); i >= 0 {
		complement.Children = slices.Clone(whole.Children[i].Children)
		whole.Children = slices.Delete(whole.Children, i, i+1)
	}
	whole.Add(complement).Add(r.stamp())
	return whole.AppendTo([]byte(xmltree.Declaration))
}

// packed is a voucher for the double's book. The certificate, which all
// vouchers of a supplier share, is kept once, and not here.
func packed(v *xmltree.Element) string {
	bare := *v
	bare.Attrs = slices.DeleteFunc(slices.Clone(v.Attrs), func(a xmltree.Attr) bool {
		return a.Prefix == "" && a.Local == "Certificado"
	})
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(bare.AppendTo(nil))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("packing a voucher into memory: %v", err)) // a known level, and a buffer: cannot happen
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func unpacked(text, certificate string) (*xmltree.Element, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), 2*satwire.VoucherBytesMax))
	if err != nil {
		return nil, err
	}
	doc, err := xmltree.Read(plain)
	if err != nil {
		return nil, err
	}
	doc.Root.Set("Certificado", certificate)
	return doc.Root, nil
}

// needsAcceptance is the rule of RMF 2.7.1.35, as far as a voucher shows it: no
// acceptance up to 1,000 pesos, for credit notes, the general public and
// foreigners. That of the working day after the issue is left out, because
// every test would end in it.
func needsAcceptance(v *xmltree.Element) bool {
	if v.Attr("TipoDeComprobante") != satwire.TypeIncome || generic(v.At("Receptor").Attr("Rfc")) {
		return false
	}
	rate := int64(1_000_000)
	if v.Attr("Moneda") != "MXN" {
		rate = millionths(v.Attr("TipoCambio"))
	}
	pesos := new(big.Int).Mul(big.NewInt(millionths(v.Attr("Total"))), big.NewInt(rate))
	return pesos.Cmp(big.NewInt(1_000_000_000_000_000)) > 0
}

func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
