// Package satwire is Mexico's system of vouchers as data: namespaces, paths,
// codes and words of SAT's services and of two kinds of providers (SOAP as
// Finkok publishes it, REST as SW does), and what SAT's catalogues say beyond
// their keys.
//
// The sender (country/mx) and the double of both providers and SAT
// (authority/sat) stand on it, on the official structure and on nothing else of
// each other's: the original string, seals, sums and rules are written on each
// side.
package satwire

import (
	"crypto/x509"
	"math/big"
	"net/url"
	"strings"
	"time"
)

// Namespaces of documents.
const (
	SpaceCFDI      = "http://www.sat.gob.mx/cfd/4"
	SpaceStamp     = "http://www.sat.gob.mx/TimbreFiscalDigital"
	SpacePagos     = "http://www.sat.gob.mx/Pagos20"
	SpaceLocal     = "http://www.sat.gob.mx/implocal"
	SpaceCancel    = "http://cancelacfd.sat.gob.mx"
	SpaceSignature = "http://www.w3.org/2000/09/xmldsig#"
)

// Paths and namespaces of a SOAP provider.
const (
	PathSOAPStamp  = "/servicios/soap/stamp"
	PathSOAPCancel = "/servicios/soap/cancel"
	PathSOAPList   = "/servicios/soap/utilities"

	SpaceSOAPStamp  = "http://facturacion.finkok.com/stamp"
	SpaceSOAPCancel = "http://facturacion.finkok.com/cancel"
	SpaceSOAPList   = "http://facturacion.finkok.com/utilities"
	SpaceSOAPViews  = "apps.services.soap.core.views"
)

// Paths of a REST provider. The names say cfdi33 for compatibility; they take
// the current version.
const (
	PathRESTLogin  = "/v2/security/authenticate"
	PathRESTStamp  = "/v4/cfdi33/stamp/v4"
	PathRESTCancel = "/cfdi33/cancel/xml"

	SessionLifetime = 2 * time.Hour
)

// SAT's own services, which need no provider: the state of a voucher and the
// repository of certificates.
const (
	PathState    = "/ConsultaCFDIService.svc"
	ActionState  = "http://tempuri.org/IConsultaCFDIService/Consulta"
	SpaceState   = "http://tempuri.org/"
	pathRecords  = "/rccf/"
	numberDigits = 20
)

// Limits of documents.
const (
	VoucherBytesMax = 8 << 20
	VoucherDepthMax = 24
)

// LocalTime is how SAT writes moments: in the time of the place of issue, or
// that of central Mexico, without saying so.
const LocalTime = "2006-01-02T15:04:05"

// StampWithin is how old a document may be when it is stamped (RMF 2.7.2.9:
// the provider refuses what was issued more than 72 hours ago, error 401).
const StampWithin = 72 * time.Hour

// Codes of providers.
const (
	CodeNoAccess      = "300"
	CodeRevoked       = "304" // the certificate of seals was revoked, restricted (CFF 17-H Bis) or has expired
	CodeStampedBefore = "307"
	CodeNotStamped    = "603"      // SOAP: "El CFDI no contiene un timbre previo"
	CodeNoSAT         = "708"      // SAT is out of the provider's reach
	CodeCustomUsed    = "CFDI3307" // REST: the customid belongs to another voucher
)

// Words of SAT about a voucher.
const (
	VoucherValid     = "Vigente"
	VoucherCancelled = "Cancelado"
	VoucherUnknown   = "No Encontrado"

	CancelWaiting = "En proceso"
	CancelRefused = "Solicitud rechazada"
	NeedsAccept   = "Cancelable con aceptación"
	NeedsNoAccept = "Cancelable sin aceptación"
)

// RFCs that stand for many: the general public, and whoever lives abroad.
const (
	RFCPublic  = "XAXX010101000"
	RFCForeign = "XEXX010101000"

	NamePublic = "PUBLICO EN GENERAL"
)

// Types of vouchers (c_TipoDeComprobante), methods and a form of payment.
const (
	TypeIncome  = "I"
	TypeExpense = "E"
	TypePayment = "P"

	MethodOnce    = "PUE"
	MethodPartial = "PPD"
	FormUndefined = "99"
)

// CertificatePath is where SAT's repository keeps the certificate with a number
// of twenty digits; "" when it is no such number.
func CertificatePath(number string) string {
	if len(number) != numberDigits || strings.Trim(number, "0123456789") != "" {
		return ""
	}
	return pathRecords + number[:6] + "/" + number[6:12] + "/" + number[12:14] + "/" + number[14:16] + "/" +
		number[16:18] + "/" + url.PathEscape(number) + ".cer"
}

// IssuedBySAT reports whether a certificate is numbered as SAT numbers its own.
func IssuedBySAT(leaf *x509.Certificate) bool {
	serial := leaf.SerialNumber.Bytes()
	return len(serial) == numberDigits && strings.Trim(string(serial), "0123456789") == ""
}

// CertificateNumber is a certificate's number as SAT writes it: its certificates
// have twenty digits in ASCII as their serial number. Any other certificate,
// which only a simulator takes, has the last twenty digits of its serial number
// in decimal.
func CertificateNumber(leaf *x509.Certificate) string {
	if IssuedBySAT(leaf) {
		return string(leaf.SerialNumber.Bytes())
	}
	twenty := new(big.Int).Exp(big.NewInt(10), big.NewInt(numberDigits), nil)
	text := new(big.Int).Mod(leaf.SerialNumber, twenty).String()
	return strings.Repeat("0", numberDigits-len(text)) + text
}

// CancelMeaning is SAT's text for a code of a cancellation.
func CancelMeaning(status string) string {
	switch status {
	case "no_cancelable", "NoCancelable":
		return "El UUID contiene CFDI relacionados vigentes"
	case "203":
		return "No corresponde el RFC del emisor y de quien solicita la cancelación"
	case "204":
		return "Folio fiscal no aplicable a cancelación"
	case "205":
		return "Folio fiscal no existente"
	case "206":
		return "UUID no corresponde a un CFDI del sector primario"
	case "207":
		return "No se especificó el motivo de cancelación o el motivo no es válido"
	case "208":
		return "Folio sustitución inválido"
	case "209":
		return "Folio sustitución no requerido"
	case "210":
		return "La fecha de solicitud de cancelación es mayor a la fecha de declaración"
	case "211":
		return "La fecha de solicitud de cancelación límite para factura global"
	case "212":
		return "Relación no válida o inexistente"
	case "301":
		return "XML mal formado"
	case "302":
		return "Sello mal formado o inválido"
	case "303":
		return "Sello no corresponde a emisor"
	case "304":
		return "Certificado revocado o caduco"
	case "305":
		return "La fecha de la solicitud no está dentro de la vigencia del certificado"
	}
	return "la solicitud de cancelación no fue aceptada"
}
