package mx

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/mx/wire"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// Namespaces and algorithms of a cancellation request (Anexo 20, "Estándar del
// servicio de cancelación"; the service takes RSA-SHA1 over canonical XML 1.0).
const (
	spaceXSD = "http://www.w3.org/2001/XMLSchema"
)

// request asks for one voucher to be cancelled.
type request struct {
	rfc         string
	at          string // local time of central Mexico
	uuid        string
	motive      string
	replacement string // UUID, with motive 01
}

// canonical is the request as canonical XML: attributes by name, namespaces
// first, no empty-element tags. What is signed is these bytes.
func (r request) canonical() string {
	var b strings.Builder
	b.WriteString(`<Cancelacion xmlns="` + satwire.SpaceCancel + `" xmlns:xsd="` + spaceXSD + `" xmlns:xsi="` + xmltree.SpaceXSI + `" Fecha="` + r.at +
		`" RfcEmisor="` + wire.Escaped(r.rfc) + `"><Folios><Folio`)
	if r.replacement != "" {
		b.WriteString(` FolioSustitucion="` + r.replacement + `"`)
	}
	b.WriteString(` Motivo="` + r.motive + `" UUID="` + r.uuid + `"></Folio></Folios></Cancelacion>`)
	return b.String()
}

// signedInfo is canonical too. In the document it inherits the namespaces of
// the request, so the bytes that are signed repeat them.
func signedInfo(digest string, inherited bool) string {
	space := ""
	if inherited {
		space = ` xmlns="` + satwire.SpaceSignature + `" xmlns:xsd="` + spaceXSD + `" xmlns:xsi="` + xmltree.SpaceXSI + `"`
	}
	return `<SignedInfo` + space + `><CanonicalizationMethod Algorithm="` + xmltree.AlgorithmInclusive +
		`"></CanonicalizationMethod>` +
		`<SignatureMethod Algorithm="` + satwire.SpaceSignature + `rsa-sha1"></SignatureMethod><Reference URI=""><Transforms>` +
		`<Transform Algorithm="` + satwire.SpaceSignature + `enveloped-signature"></Transform></Transforms>` +
		`<DigestMethod Algorithm="` + satwire.SpaceSignature + `sha1"></DigestMethod><DigestValue>` + digest +
		`</DigestValue></Reference></SignedInfo>`
}

func (r request) digest() string {
	sum := sha1.Sum([]byte(r.canonical()))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// signed is the request with its enveloped signature.
func (r request) signed(with *identity.Identity) ([]byte, error) {
	digest := r.digest()
	signature, err := sign(with.Key, crypto.SHA1, []byte(signedInfo(digest, true)))
	if err != nil {
		return nil, fmt.Errorf("signing a cancellation: %w", err)
	}
	key, ok := with.Leaf.PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("signing a cancellation: the certificate has no RSA key")
	}
	encoded := base64.StdEncoding.EncodeToString
	envelope := strings.TrimSuffix(r.canonical(), `</Cancelacion>`) + `<Signature xmlns="` + satwire.SpaceSignature +
		`">` + signedInfo(digest, false) +
		`<SignatureValue>` + signature + `</SignatureValue><KeyInfo><X509Data><X509IssuerSerial><X509IssuerName>` +
		string(xmltree.AppendText(nil, identity.IssuerName(with.Leaf))) + `</X509IssuerName><X509SerialNumber>` +
		satwire.CertificateNumber(with.Leaf) +
		`</X509SerialNumber></X509IssuerSerial><X509Certificate>` + encoded(with.Leaf.Raw) + `</X509Certificate></X509Data>` +
		`<KeyValue><RSAKeyValue><Modulus>` + encoded(key.N.Bytes()) + `</Modulus><Exponent>` +
		encoded(big.NewInt(int64(key.E)).Bytes()) +
		`</Exponent></RSAKeyValue></KeyValue></KeyInfo></Signature></Cancelacion>`
	return []byte(xmltree.Declaration + envelope), nil
}

// cancellation makes the request for a draft.
func (ch *channel) cancellation(in *country.Draft, with *identity.Identity) (country.Filing, error) {
	if in.Original == nil || !uuidPattern.MatchString(in.Original.AuthorityID1) {
		return country.Filing{}, invalid(fault.At("reference_transaction_id", fault.ReferenceNotSuccessful,
			"has no folio fiscal (UUID): a document issued elsewhere is backfilled with it as tax_authority_id_1"))
	}
	motive, replacement, _ := strings.Cut(in.Transaction.Reason, ":")
	switch {
	case motive == "":
		return country.Filing{}, invalid(fault.At("reason", fault.FieldRequired, "must not be empty: 02, 03, 04, or 01:UUID"))
	case motive == "01" && !uuidPattern.MatchString(replacement):
		return country.Filing{}, invalid(fault.At("reason", fault.FieldNotValid, "must name the replacement, as in 01:UUID"))
	}
	if f := uncancellable(in, replacement); f != nil {
		return country.Filing{}, invalid(*f)
	}
	rfc := rfcOf(in.Supplier.TaxNumber)
	zone := ch.cat.zone(placeOf(&in.Supplier), in.Location)
	if last := cancelUntil(rfc, in.Original.Transaction.Date.In(zone)); in.Now.After(last) {
		return country.Filing{}, invalid(fault.At("reference_transaction_id", fault.UnsupportedOperation,
			"could be cancelled only until %s", last.Add(-time.Second).Format(time.DateOnly)))
	}
	r := request{rfc: rfc, at: in.Now.In(ch.cat.zone("", in.Location)).Format(satwire.LocalTime),
		uuid: strings.ToUpper(in.Original.AuthorityID1), motive: motive, replacement: strings.ToUpper(replacement)}
	report, err := r.signed(with)
	if err != nil {
		return country.Filing{}, err
	}
	f, err := in.Filing(report, r.uuid, rfc, ch.errandOf(in, r.uuid))
	f.DedupeKey, f.Late = r.uuid, in.Late
	return f, err
}

// errandOf remembers what SAT asks for when it is asked about a voucher.
func (ch *channel) errandOf(in *country.Draft, uuid string) wire.Errand {
	e := wire.Errand{PAC: in.Supplier.Settings.Text(settingPAC), UUID: uuid}
	if voucher, err := readXML(in.Original.Report); err == nil && voucher.Is(satwire.SpaceCFDI, "Comprobante") {
		e.Total, e.Tail = voucher.Attr("Total"), wire.Tail(voucher.Attr("Sello"), 8)
		e.Receiver = child(voucher, "Receptor").Attr("Rfc")
		return e
	}
	// Issued elsewhere: from what the backfill said.
	t := &in.Original.Transaction
	decimals, _ := transaction.CurrencyExponent(strings.ToUpper(t.CurrencyCode))
	total := in.Original.Totals.Payable()
	e.Total = money(max(total, -total), decimals)
	e.Receiver = receiverOf(t.Customer, "", satwire.TypeIncome, "").rfc
	return e
}

// cancelUntil is the first moment in which a voucher can no longer be
// cancelled: after the month of the annual return for its year (CFF 29-A,
// fourth paragraph; RMF 2.7.1.47), which is March for companies, April for people.
func cancelUntil(rfc string, issued time.Time) time.Time {
	month := time.May
	if len([]rune(rfc)) == 12 {
		month = time.April
	}
	return time.Date(issued.Year()+1, month, 1, 0, 0, 0, 0, issued.Location())
}
