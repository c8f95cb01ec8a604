package mx

import (
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"strings"
	"time"

	"tributary/internal/transaction"

	"tributary/internal/country/identity"
)

// refusal is a code of SAT's or the provider's, with its words.
type refusal struct{ code, message string }

// The words of Anexo 20, "Matriz de validaciones", and of the providers' lists.
func refuse(code string) refusal {
	switch code {
	case "301":
		return refusal{code, "XML mal formado"}
	case "302":
		return refusal{code, "Sello mal formado o inválido"}
	case "303":
		return refusal{code, "Sello no corresponde a emisor"}
	case "304":
		return refusal{code, "Certificado revocado o caduco"}
	case "305":
		return refusal{code, "La fecha de emisión no está dentro de la vigencia del CSD del Emisor"}
	case "307":
		return refusal{code, "El comprobante contiene un timbre previo."}
	case "401":
		return refusal{code, "Fecha y hora de generación fuera de rango"}
	case "603":
		return refusal{code, "El CFDI no contiene un timbre previo"}
	case "CFDI3307":
		return refusal{code, "Timbre duplicado. El customId proporcionado está duplicado."}
	case "CFDI40102":
		return refusal{code, "El resultado de la digestión debe ser igual al resultado de la desencripción del sello."}
	case "CFDI40105":
		return refusal{code, "Si el campo MetodoPago contiene el valor PPD, el campo FormaPago debe contener el valor 99."}
	case "CFDI40108":
		return refusal{code, "El TipoDeComprobante es I, E o N, el importe registrado en el campo SubTotal no es igual a la suma de los importes de los conceptos registrados."}
	case "CFDI40110":
		return refusal{code, "El valor registrado en el campo Descuento no es menor o igual que el campo SubTotal, o no es igual a la suma de los descuentos de los conceptos."}
	case "CFDI40115":
		return refusal{code, "El campo TipoCambio se debe registrar cuando el campo Moneda tiene un valor distinto de MXN y XXX."}
	case "CFDI40118":
		return refusal{code, "El campo Total no corresponde con la suma del subtotal, menos los descuentos aplicables, más las contribuciones recibidas menos los impuestos retenidos."}
	case "CFDI40130":
		return refusal{code, "El nodo InformacionGlobal debe existir si, y solo si, el receptor es XAXX010101000 con el nombre PUBLICO EN GENERAL."}
	case "CFDI40138":
		return refusal{code, "El RFC del emisor no corresponde al del certificado de sello digital."}
	case "CFDI40141":
		return refusal{code, "La clave del campo RegimenFiscal debe corresponder con el tipo de persona (física o moral) del emisor."}
	case "CFDI40145":
		return refusal{code, "El campo Nombre del receptor, debe pertenecer al nombre asociado al RFC registrado en el campo Rfc del Receptor."}
	case "CFDI40149":
		return refusal{code, "El campo DomicilioFiscalReceptor debe ser igual al LugarExpedicion cuando el RFC del receptor es genérico."}
	case "CFDI40158":
		return refusal{code, "La clave del campo RegimenFiscalReceptor debe corresponder con el tipo de persona (física o moral) del receptor."}
	case "CFDI40161":
		return refusal{code, "La clave del campo UsoCFDI debe corresponder con el tipo de persona (física o moral) y el régimen del receptor conforme al catálogo c_UsoCFDI."}
	case "CFDI40166":
		return refusal{code, "El valor del campo ValorUnitario debe ser mayor que cero (0) cuando el tipo de comprobante es I, E o N."}
	case "CFDI40167":
		return refusal{code, "El valor del campo Importe no se encuentra entre el límite inferior y superior permitido."}
	case "CFDI40171":
		return refusal{code, "El nodo Impuestos del concepto no corresponde con el valor del campo ObjetoImp."}
	case "CFDI40180":
		return refusal{code, "El valor del campo Importe que corresponde a Traslado no se encuentra entre el límite inferior y superior permitido."}
	case "CFDI40186":
		return refusal{code, "El valor del campo Importe que corresponde a Retención no se encuentra entre el límite inferior y superior permitido."}
	case "CFDI40209":
		return refusal{code, "El valor del campo TotalImpuestosTrasladados o TotalImpuestosRetenidos no es igual a la suma de los importes registrados en los conceptos."}
	}
	return refusal{"CFDI40999", "Error no clasificado"}
}

// office is what a provider checks before it stamps.
type office struct {
	cat       *catalog
	structure *structure
}

// examine finds the first reason not to stamp a voucher; an empty code means none.
func (o *office) examine(v *node, now time.Time) refusal {
	if flaw := o.structure.flaw(v); flaw != "" {
		no := refuse("301")
		no.message += ": " + flaw
		return no
	}
	if no := o.sealed(v, now); no.code != "" {
		return no
	}
	for _, rule := range []func(*node) string{headRule, partyRule, conceptRule, sumRule} {
		if code := rule(v); code != "" {
			return refuse(code)
		}
	}
	return refusal{}
}

// sealed checks certificate, seal and date.
func (o *office) sealed(v *node, now time.Time) refusal {
	der, err := base64.StdEncoding.DecodeString(v.attr("Certificado"))
	if err != nil {
		return refuse("302")
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil || certificateNumber(leaf) != v.attr("NoCertificado") {
		return refuse("302")
	}
	if !identity.Names(leaf, "MX", v.kid("cfdi:Emisor").attr("Rfc")) {
		return refuse("303")
	}
	text, err := original(v)
	if err != nil {
		return refuse("301")
	}
	if verify(leaf, crypto.SHA256, text, v.attr("Sello")) != nil {
		return refuse("CFDI40102")
	}
	at, err := time.ParseInLocation(localTime, v.attr("Fecha"), o.cat.zone(v.attr("LugarExpedicion"), nil))
	switch {
	case err != nil:
		return refuse("301")
	case now.After(leaf.NotAfter):
		return refuse("304")
	case now.Before(leaf.NotBefore) || at.After(leaf.NotAfter):
		// A real provider also refuses what is older than the certificate; here
		// a certificate made for a test a moment ago may seal yesterday's sale.
		return refuse("305")
	case at.After(now.Add(time.Minute)) || at.Before(now.Add(-stampWithin-time.Minute)):
		return refuse("401")
	}
	return refusal{}
}

func headRule(v *node) string {
	if v.attr("MetodoPago") == methodPartial && v.attr("FormaPago") != formUndefined || v.attr("MetodoPago") == methodOnce && v.attr("FormaPago") == formUndefined {
		return "CFDI40105"
	}
	if v.attr("Moneda") != "MXN" && v.attr("TipoCambio") == "" {
		return "CFDI40115"
	}
	return ""
}

func partyRule(v *node) string {
	issuer, receiver := v.kid("cfdi:Emisor"), v.kid("cfdi:Receptor")
	rfc, regime := receiver.attr("Rfc"), receiver.attr("RegimenFiscalReceptor")
	generic := rfc == rfcPublic || rfc == rfcForeign
	switch {
	case !regimeFits(issuer.attr("Rfc"), issuer.attr("RegimenFiscal")):
		return "CFDI40141"
	case generic && regime != "616", !generic && !regimeFits(rfc, regime):
		return "CFDI40158"
	case generic && receiver.attr("UsoCFDI") != "S01", !useFits(receiver.attr("UsoCFDI"), rfc, regime):
		return "CFDI40161"
	case generic && receiver.attr("DomicilioFiscalReceptor") != v.attr("LugarExpedicion"):
		return "CFDI40149"
	case (rfc == rfcPublic && receiver.attr("Nombre") == namePublic) != (v.kid("cfdi:InformacionGlobal") != nil):
		return "CFDI40130"
	case !generic && strings.ToUpper(receiver.attr("Nombre")) != receiver.attr("Nombre"):
		return "CFDI40145"
	}
	return ""
}

func conceptRule(v *node) (code string) {
	v.all(func(n *node) {
		if code == "" {
			code = oneConcept(n)
		}
	}, "cfdi:Conceptos", "cfdi:Concepto")
	return code
}

func oneConcept(n *node) string {
	unit, quantity, importe := decimalOf(n.attr("ValorUnitario"), 6), decimalOf(n.attr("Cantidad"), 6), decimalOf(n.attr("Importe"), 6)
	if unit <= 0 {
		return "CFDI40166"
	}
	if !within(factor{unit, places(n.attr("ValorUnitario"))}, factor{quantity, places(n.attr("Cantidad"))}, importe, places(n.attr("Importe"))) {
		return "CFDI40167"
	}
	discount := decimalOf(n.attr("Descuento"), 6)
	if n.attr("Descuento") != "" && (discount < 0 || discount > importe) {
		return "CFDI40110"
	}
	if (n.attr("ObjetoImp") == "02") != (n.kid("cfdi:Impuestos") != nil) {
		return "CFDI40171"
	}
	code := ""
	check := func(kind string) func(*node) {
		return func(t *node) {
			exempt := t.attr("TipoFactor") == "Exento"
			_, rated := t.lookup("TasaOCuota")
			_, sized := t.lookup("Importe")
			if exempt == (rated || sized) || !exempt && !within(factor{decimalOf(t.attr("Base"), 6), places(t.attr("Base"))},
				factor{decimalOf(t.attr("TasaOCuota"), 6), exact}, decimalOf(t.attr("Importe"), 6), places(t.attr("Importe"))) {
				code = kind
			}
		}
	}
	n.all(check("CFDI40180"), "cfdi:Impuestos", "cfdi:Traslados", "cfdi:Traslado")
	n.all(check("CFDI40186"), "cfdi:Impuestos", "cfdi:Retenciones", "cfdi:Retencion")
	return code
}

// factor is a decimal in millionths with the decimals it was written with.
type factor struct {
	value  int64
	places int
}

// exact marks a factor that has no room: a rate is a rate.
const exact = -1

func places(text string) int {
	_, part, _ := strings.Cut(text, ".")
	return len(part)
}

// double is the factor and half of its last written decimal, both twice.
func (f factor) double() (value, half *big.Int) {
	value = big.NewInt(2 * f.value)
	if f.places == exact {
		return value, new(big.Int)
	}
	return value, new(big.Int).SetUint64(power(6 - min(f.places, 6)))
}

// within reports whether a product lies between SAT's limits: the factors less
// and plus half of their last decimal, multiplied, cut and rounded up to the
// decimals of the product (Anexo 20, validations of Importe).
func within(a, b factor, product int64, decimals int) bool {
	if a.value < 0 || b.value < 0 || product < 0 {
		return false
	}
	x, hx := a.double()
	y, hy := b.double()
	low := new(big.Int).Mul(new(big.Int).Sub(x, hx), new(big.Int).Sub(y, hy))
	high := new(big.Int).Mul(new(big.Int).Add(x, hx), new(big.Int).Add(y, hy))
	scale := big.NewInt(4_000_000) // of both doubled factors in millionths against one product in millionths
	step := new(big.Int).Mul(new(big.Int).SetUint64(power(6-min(decimals, 6))), scale)
	given := new(big.Int).Mul(big.NewInt(product), scale)
	return given.Cmp(low.Sub(low, step)) > 0 && given.Cmp(high.Add(high, step)) < 0
}

// sumRule compares the totals with the concepts.
func sumRule(v *node) string {
	decimals, _ := transaction.CurrencyExponent(v.attr("Moneda"))
	var importe, discount, transferred, withheld int64
	v.all(func(n *node) {
		importe += decimalOf(n.attr("Importe"), 6)
		if n.attr("Descuento") != "" {
			discount += decimalOf(n.attr("Descuento"), 6)
		}
		n.all(func(t *node) {
			if t.attr("Importe") != "" {
				transferred += decimalOf(t.attr("Importe"), 6)
			}
		}, "cfdi:Impuestos", "cfdi:Traslados", "cfdi:Traslado")
		n.all(func(t *node) { withheld += decimalOf(t.attr("Importe"), 6) }, "cfdi:Impuestos", "cfdi:Retenciones", "cfdi:Retencion")
	}, "cfdi:Conceptos", "cfdi:Concepto")
	optional := func(n *node, name string) int64 {
		if n == nil || n.attr(name) == "" {
			return 0
		}
		if places(n.attr(name)) > decimals {
			return -1
		}
		return decimalOf(n.attr(name), 6)
	}
	taxes := v.kid("cfdi:Impuestos")
	switch {
	case optional(v, "SubTotal") != importe:
		return "CFDI40108"
	case optional(v, "Descuento") != discount || discount > importe:
		return "CFDI40110"
	case optional(taxes, "TotalImpuestosTrasladados") != transferred || optional(taxes, "TotalImpuestosRetenidos") != withheld:
		return "CFDI40209"
	case optional(v, "Total") != importe-discount+transferred-withheld:
		return "CFDI40118"
	}
	return ""
}
