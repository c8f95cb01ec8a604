package sat

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tributary/internal/country/identity"
	"tributary/internal/official"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/structure"
)

// office is what a provider checks before it stamps.
type office struct {
	sheet sheet
	zones map[string]*time.Location
}

func newOffice() *office {
	o := &office{sheet: newSheet(), zones: map[string]*time.Location{}}
	for _, name := range satwire.Zones() {
		if zone, err := time.LoadLocation(name); err == nil {
			o.zones[name] = zone
		}
	}
	return o
}

// zone is the time of a postal code.
func (o *office) zone(postalCode string) *time.Location {
	if zone := o.zones[satwire.Zone(postalCode)]; zone != nil {
		return zone
	}
	return time.FixedZone("CST", -6*60*60) // a machine without time zones
}

// central is a moment in the time of central Mexico, in which SAT itself writes.
func (o *office) central(at time.Time) time.Time { return at.In(o.zone("")) }

// examine finds the first reason not to stamp a voucher; an empty code means none.
func (o *office) examine(v *xmltree.Element, now time.Time) refusal {
	if flaw := official.CFDI.Schema().First(withoutLocal(v)); flaw != nil {
		no := refuse("301")
		no.message += ": " + inSpanish(flaw)
		return no
	}
	if no := beyond(v); no.code != "" {
		return no
	}
	if no := o.sealed(v, now); no.code != "" {
		return no
	}
	rules := []func(*xmltree.Element) string{headRule, globalRule, partyRule, conceptRule, sumRule}
	if v.Attr("TipoDeComprobante") == satwire.TypePayment {
		rules = []func(*xmltree.Element) string{globalRule, partyRule, paymentRule}
	}
	for _, rule := range rules {
		if code := rule(v); code != "" {
			return refuse(code)
		}
	}
	return refusal{}
}

// inSpanish says what the official structure refuses, as a provider would.
func inSpanish(f *structure.Flaw) string {
	where := f.Element.QName()
	switch f.Kind {
	case structure.Unknown, structure.Unexpected:
		return fmt.Sprintf("el elemento %s no es esperado", f.Name)
	case structure.Missing:
		return fmt.Sprintf("falta el elemento %s en %s", f.Name, where)
	case structure.AttributeUnknown:
		return fmt.Sprintf("el atributo %s no es permitido en %s", f.Name, where)
	case structure.AttributeMissing:
		return fmt.Sprintf("falta el atributo %s en %s", f.Name, where)
	case structure.AttributeValue:
		return fmt.Sprintf("el valor %q del atributo %s no es válido en %s", f.Value, f.Name, where)
	}
	return fmt.Sprintf("el contenido de %s no es válido", where)
}

// beyond refuses what SAT would stamp and this double does not know, and what
// carries a stamp already.
func beyond(v *xmltree.Element) refusal {
	if v.Find(satwire.SpaceStamp, "TimbreFiscalDigital") != nil {
		return refuse(satwire.CodeStampedBefore)
	}
	unknown := ""
	kind := v.Attr("TipoDeComprobante")
	if kind != satwire.TypeIncome && kind != satwire.TypeExpense && kind != satwire.TypePayment {
		unknown = "TipoDeComprobante " + kind
	}
	for e := range v.Walk() {
		if e.Local == "ComplementoConcepto" || e.Local == "Addenda" || e.Local == "Complemento" && !knownComplement(e, kind) {
			unknown = e.Local
		}
	}
	if unknown == "" {
		return refusal{}
	}
	no := refuse("CFDI40999")
	no.message += ": este simulador no conoce " + unknown
	return no
}

// knownComplement reports whether a complement is that of a receipt of payment,
// or local taxes of any other voucher.
func knownComplement(e *xmltree.Element, kind string) bool {
	if len(e.Children) != 1 {
		return false
	}
	if kind == satwire.TypePayment {
		return e.Children[0].Is(satwire.SpacePagos, "Pagos")
	}
	return e.Children[0].Is(satwire.SpaceLocal, "ImpuestosLocales")
}

// withoutLocal is a voucher as the official structure knows it, which lacks the
// complement of local taxes; localTaxes looks at that one.
func withoutLocal(v *xmltree.Element) *xmltree.Element {
	bare := *v
	bare.Children = slices.DeleteFunc(slices.Clone(v.Children), func(c *xmltree.Element) bool {
		return c.Is(satwire.SpaceCFDI, "Complemento") && len(c.Children) == 1 &&
			c.Children[0].Is(satwire.SpaceLocal, "ImpuestosLocales")
	})
	return &bare
}

// localTaxes is what the taxes of the states come to; false where the
// complement's own sums are wrong.
func localTaxes(v *xmltree.Element) (int64, bool) {
	e := v.Find(satwire.SpaceLocal, "ImpuestosLocales")
	if e == nil {
		return 0, true
	}
	added, transfers := localSum(e.All("TrasladosLocales"), "ImpLocTrasladado", "TasadeTraslado")
	withheld, retentions := localSum(e.All("RetencionesLocales"), "ImpLocRetenido", "TasadeRetencion")
	return added - withheld,
		transfers && retentions && e.Attr("version") == "1.0" && written(e, "TotaldeTraslados").value == added &&
			written(e, "TotaldeRetenciones").value == withheld
}

// localSum adds up taxes of the complement; false where one has no name, or a rate
// or an amount of other than two decimals (implocal.xsd).
func localSum(taxes []*xmltree.Element, name, rate string) (sum int64, sound bool) {
	sound = true
	for _, t := range taxes {
		amount := written(t, "Importe")
		sum += amount.value
		sound = sound && t.Attr(name) != "" && written(t, rate).places == 2 && amount.places == 2
	}
	return sum, sound
}

// sealed checks certificate, seal and date.
func (o *office) sealed(v *xmltree.Element, now time.Time) refusal {
	der, err := base64.StdEncoding.DecodeString(v.Attr("Certificado"))
	if err != nil {
		return refuse("302")
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil || satwire.CertificateNumber(leaf) != v.Attr("NoCertificado") {
		return refuse("302")
	}
	if !identity.Names(leaf, "MX", v.At("Emisor").Attr("Rfc")) {
		return refuse("303")
	}
	if satwire.IssuedBySAT(leaf) && len(leaf.Subject.OrganizationalUnit) == 0 {
		return refuse("306") // an e.firma names no branch
	}
	key, ok := leaf.PublicKey.(*rsa.PublicKey)
	signature, err := base64.StdEncoding.DecodeString(v.Attr("Sello"))
	if !ok || err != nil {
		return refuse("302")
	}
	digest := sha256.Sum256(o.sheet.original(v))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) != nil {
		return refuse("CFDI40102")
	}
	at, err := time.ParseInLocation(satwire.LocalTime, v.Attr("Fecha"), o.zone(v.Attr("LugarExpedicion")))
	switch {
	case err != nil:
		return refuse("301")
	case now.After(leaf.NotAfter):
		return refuse("304")
	case now.Before(leaf.NotBefore) || at.After(leaf.NotAfter):
		// A real provider also refuses what is older than the certificate; here
		// a certificate made for a test a moment ago may seal yesterday's sale.
		return refuse("305")
	case at.After(now.Add(time.Minute)) || at.Before(now.Add(-satwire.StampWithin-time.Minute)):
		return refuse("401")
	}
	return refusal{}
}

func headRule(v *xmltree.Element) string {
	method, form := v.Attr("MetodoPago"), v.Attr("FormaPago")
	if method == satwire.MethodPartial && form != satwire.FormUndefined ||
		method == satwire.MethodOnce && form == satwire.FormUndefined {
		return "CFDI40105"
	}
	if v.Attr("Moneda") != "MXN" && v.Attr("TipoCambio") == "" {
		return "CFDI40115"
	}
	if v.Attr("Exportacion") == "02" {
		return "CFDI40122" // its complement, Comercio Exterior, is none that this double knows
	}
	return ""
}

// legal tells companies from people by the length of their RFC.
func legal(rfc string) bool { return utf8.RuneCountInString(rfc) == 12 }

// generic reports whether an RFC stands for many.
func generic(rfc string) bool { return rfc == satwire.RFCPublic || rfc == satwire.RFCForeign }

// mayHave reports whether c_RegimenFiscal gives a person with an RFC a regime.
func mayHave(rfc, regime string) bool {
	_, persons := satwire.Regime(regime)
	if legal(rfc) {
		return strings.Contains(persons, "M")
	}
	return strings.Contains(persons, "F")
}

// mayUse reports whether c_UsoCFDI gives a person in a regime a use.
func mayUse(rfc, regime, use string) bool {
	regimes, companies := satwire.UseRegimes(use)
	return strings.Contains(" "+regimes+" ", " "+regime+" ") && (companies || !legal(rfc))
}

func partyRule(v *xmltree.Element) string {
	issuer, receiver := v.At("Emisor"), v.At("Receptor")
	rfc, name, regime, use := receiver.Attr("Rfc"), receiver.Attr("Nombre"), receiver.Attr("RegimenFiscalReceptor"),
		receiver.Attr("UsoCFDI")
	many := generic(rfc)
	switch {
	case !mayHave(issuer.Attr("Rfc"), issuer.Attr("RegimenFiscal")):
		return "CFDI40141"
	case many && regime != "616":
		return "CFDI40159"
	case !many && !mayHave(rfc, regime):
		return "CFDI40158"
	case v.Attr("TipoDeComprobante") == satwire.TypePayment:
		if use != usePayment {
			return "CFDI40161"
		}
	case many && use != "S01", !mayUse(rfc, regime, use):
		return "CFDI40161"
	}
	switch {
	case many && receiver.Attr("DomicilioFiscalReceptor") != v.Attr("LugarExpedicion"):
		return "CFDI40149"
	case strings.ToUpper(issuer.Attr("Nombre")) != issuer.Attr("Nombre"),
		legal(issuer.Attr("Rfc")) && capital.MatchString(issuer.Attr("Nombre")):
		return "CFDI40139"
	case !many && (strings.ToUpper(name) != name || legal(rfc) && capital.MatchString(name)):
		return "CFDI40145"
	}
	return ""
}

// capital is a name that ends in the form of a company's capital, which SAT
// keeps apart from the name.
var capital = regexp.MustCompile(
	`[ ,](S\.? ?A\.?( ?P\.? ?I\.?| ?B\.?)?( DE C\.? ?V\.?)?|S\.? ?(C\.? )?DE R\.? ?L\.?( DE C\.? ?V\.?)?|A\.C\.|S\.C\.)$`)

// globalRule checks InformacionGlobal: a voucher of income to the general public
// under that very name has it, and no other voucher.
func globalRule(v *xmltree.Element) string {
	receiver, global := v.At("Receptor"), v.At("InformacionGlobal")
	public := receiver.Attr("Rfc") == satwire.RFCPublic && receiver.Attr("Nombre") == satwire.NamePublic
	if (public && v.Attr("TipoDeComprobante") == satwire.TypeIncome) != (global != nil) {
		return "CFDI40130"
	}
	if global == nil {
		return ""
	}
	period, months := global.Attr("Periodicidad"), global.Attr("Meses")
	year, err := strconv.Atoi(global.Attr("Año"))
	issued, issuedErr := strconv.Atoi(strings.SplitN(v.Attr("Fecha"), "-", 2)[0])
	switch {
	case period == "05" && v.At("Emisor").Attr("RegimenFiscal") != "621":
		return "CFDI40132"
	case period != "05" && months > "12":
		return "CFDI40134"
	case period == "05" && months < "13":
		return "CFDI40135"
	case err != nil || issuedErr != nil || year > issued || year < issued-1:
		return "CFDI40136"
	}
	return ""
}

func conceptRule(v *xmltree.Element) string {
	for _, line := range v.At("Conceptos").All("Concepto") {
		if code := lineRule(line); code != "" {
			return code
		}
		third := line.At("ACuentaTerceros")
		if rfc := third.Attr("RfcACuentaTerceros"); third != nil &&
			(rfc == v.At("Emisor").Attr("Rfc") || rfc == v.At("Receptor").Attr("Rfc")) {
			return "CFDI40188"
		}
	}
	return ""
}

func lineRule(line *xmltree.Element) string {
	unit, importe := written(line, "ValorUnitario"), written(line, "Importe")
	if unit.value <= 0 {
		return "CFDI40166"
	}
	if !within(unit, written(line, "Cantidad"), importe) {
		return "CFDI40167"
	}
	switch discount := written(line, "Descuento"); {
	case discount.value < 0 || discount.value > importe.value:
		return "CFDI40169"
	case discount.places > importe.places:
		return "CFDI40168"
	}
	taxes := line.At("Impuestos")
	switch object := line.Attr("ObjetoImp"); {
	case object == "02" && taxes == nil:
		return "CFDI40171"
	case object != "02" && taxes != nil:
		return "CFDI40172"
	}
	for _, t := range taxes.At("Traslados").All("Traslado") {
		switch {
		case !listed(t, false):
			return "CFDI40179"
		case !taxFits(t):
			return "CFDI40180"
		}
	}
	for _, t := range taxes.At("Retenciones").All("Retencion") {
		switch {
		case t.Attr("TipoFactor") == "Exento":
			return "CFDI40184"
		case !listed(t, true):
			return "CFDI40185"
		case !taxFits(t):
			return "CFDI40186"
		}
	}
	return ""
}

// taxFits checks one tax of a line: an exempt one has neither rate nor amount,
// any other an amount that is its base by its rate.
func taxFits(t *xmltree.Element) bool {
	_, rated := t.Lookup("", "TasaOCuota")
	_, sized := t.Lookup("", "Importe")
	if t.Attr("TipoFactor") == "Exento" {
		return !rated && !sized
	}
	rate := written(t, "TasaOCuota")
	rate.places = exact
	return rated && sized && within(written(t, "Base"), rate, written(t, "Importe"))
}

// millionths reads a decimal; digits beyond the sixth are cut. Without text it
// is nothing, and what does not fit is -1.
func millionths(text string) int64 {
	whole, part, _ := strings.Cut(text, ".")
	var value int64
	for _, c := range whole + (part + "000000")[:6] {
		if c < '0' || c > '9' || value > 1<<59/10 {
			return -1
		}
		value = value*10 + int64(c-'0')
	}
	return value
}

// written is an attribute as a number with the decimals it has.
func written(e *xmltree.Element, name string) factor {
	text := e.Attr(name)
	_, part, _ := strings.Cut(text, ".")
	return factor{millionths(text), min(len(part), 6)}
}

// factor is a decimal in millionths with the decimals it was written with.
type factor struct {
	value  int64
	places int
}

// exact marks a factor that has no room: a rate is a rate.
const exact = -1

// double is the factor and half of its last written decimal, both twice.
func (f factor) double() (value, half *big.Int) {
	value = big.NewInt(2 * f.value)
	if f.places == exact {
		return value, new(big.Int)
	}
	return value, ten(6 - f.places)
}

// within reports whether a product lies between SAT's limits: the factors less
// and plus half of their last decimal, multiplied, cut and rounded up to the
// decimals of the product (Anexo 20, validations of Importe).
func within(a, b, product factor) bool {
	if a.value < 0 || b.value < 0 || product.value < 0 {
		return false
	}
	x, hx := a.double()
	y, hy := b.double()
	low := new(big.Int).Mul(new(big.Int).Sub(x, hx), new(big.Int).Sub(y, hy))
	high := new(big.Int).Mul(new(big.Int).Add(x, hx), new(big.Int).Add(y, hy))
	scale := big.NewInt(4_000_000) // of both doubled factors in millionths against one product in millionths
	step := new(big.Int).Mul(ten(6-product.places), scale)
	given := new(big.Int).Mul(big.NewInt(product.value), scale)
	return given.Cmp(low.Sub(low, step)) > 0 && given.Cmp(high.Add(high, step)) < 0
}

// ten is a power of ten.
func ten(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// sumRule compares the totals with the lines, to the last decimal. No total has
// more decimals than its currency.
func sumRule(v *xmltree.Element) string {
	decimals, _ := transaction.CurrencyExponent(v.Attr("Moneda"))
	var importe, discount, transferred, withheld int64
	for _, line := range v.At("Conceptos").All("Concepto") {
		importe += written(line, "Importe").value
		discount += written(line, "Descuento").value
		for _, t := range line.At("Impuestos", "Traslados").All("Traslado") {
			transferred += written(t, "Importe").value
		}
		for _, t := range line.At("Impuestos", "Retenciones").All("Retencion") {
			withheld += written(t, "Importe").value
		}
	}
	local, sound := localTaxes(v)
	if !sound {
		return "CFDI40999"
	}
	taxes := v.At("Impuestos")
	for _, c := range []struct {
		at             *xmltree.Element
		name           string
		sum            int64
		coarse, differ string
	}{
		{v, "SubTotal", importe, "CFDI40107", "CFDI40108"},
		{v, "Descuento", discount, "CFDI40112", "CFDI40111"},
		{taxes, "TotalImpuestosTrasladados", transferred, "CFDI40204", "CFDI40205"},
		{taxes, "TotalImpuestosRetenidos", withheld, "CFDI40202", "CFDI40203"},
		{v, "Total", importe - discount + transferred - withheld + local, "CFDI40119", "CFDI40119"},
	} {
		switch total := written(c.at, c.name); {
		case total.places > decimals:
			return c.coarse
		case total.value != c.sum:
			return c.differ
		}
	}
	if discount > importe {
		return "CFDI40110"
	}
	return ""
}
