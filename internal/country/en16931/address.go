package en16931

import (
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Source says which of a party's numbers an electronic address is made of.
type Source uint8

// The sources.
const (
	FromLegalID Source = iota // company_number, entity_number
	FromVATID
)

// Addressing is one way in which parties of a country are addressed.
type Addressing struct {
	Scheme string // of the list of electronic address schemes
	From   Source
}

// Addressings lists how parties of a country are addressed, the usual way
// first. Source: OpenPeppol, Electronic Address Scheme code list 9.7.
func Addressings(country string) []Addressing {
	switch country {
	case "BE":
		return []Addressing{{"0208", FromLegalID}, {"0208", FromVATID}, {"9925", FromVATID}}
	case "NL":
		return []Addressing{{"0106", FromLegalID}, {"0190", FromLegalID}, {"9944", FromVATID}}
	case "DK":
		return []Addressing{{"0184", FromLegalID}, {"0184", FromVATID}}
	case "NO":
		return []Addressing{{"0192", FromLegalID}, {"0192", FromVATID}}
	case "SE":
		return []Addressing{{"0007", FromLegalID}, {"0007", FromVATID}}
	case "FI":
		return []Addressing{{"0216", FromLegalID}, {"0216", FromVATID}}
	case "EE":
		return []Addressing{{"0191", FromLegalID}, {"9931", FromVATID}}
	case "FR":
		return []Addressing{{"0225", FromLegalID}, {"0002", FromLegalID}, {"0009", FromLegalID}, {"9957", FromVATID}}
	case "IT":
		return []Addressing{{"0211", FromVATID}}
	case "IS":
		return []Addressing{{"0196", FromLegalID}}
	}
	if scheme := vatScheme(country); scheme != "" {
		return []Addressing{{scheme, FromVATID}}
	}
	return nil
}

// vatSchemes are the schemes of VAT numbers, each behind the code of its country.
const vatSchemes = "AD9922 AL9923 AT9914 BA9924 BE9925 BG9926 CH9927 CY9928 CZ9929 DE9930 EE9931 ES9920 FR9957 GB9932 GR9933 " +
	"HR9934 HU9910 IE9935 LI9936 LT9937 LU9938 LV9939 MC9940 ME9941 MK9942 MT9943 NL9944 PL9945 PT9946 RO9947 " +
	"RS9948 SI9949 SK9950 SM9951 TR9952 VA9953 "

// vatScheme is the scheme of a country's VAT numbers.
func vatScheme(country string) string {
	i := strings.Index(vatSchemes, country)
	if len(country) != 2 || i < 0 || i%7 != 0 {
		return ""
	}
	return vatSchemes[i+2 : i+6]
}

// LegalScheme is the ISO/IEC 6523 scheme of a country's register of companies,
// or "" where identifiers are written without one.
func LegalScheme(country, id string) string {
	switch country {
	case "FR":
		if len(digits(id)) == 14 {
			return "0009"
		}
		return "0002"
	case "BE":
		return "0208"
	case "NL":
		if len(digits(id)) == 20 {
			return "0190"
		}
		return "0106"
	case "SE":
		return "0007"
	case "NO":
		return "0192"
	case "DK":
		return "0184"
	case "EE":
		return "0191"
	}
	return ""
}

// AddressOf is a company's own electronic address: as its settings say, else derived from
// its numbers, which are those of a country.
func AddressOf(s *country.Supplier, home string) Identifier {
	if id := s.Settings.Text("endpoint_id"); id != "" {
		return Identifier{ID: id, Scheme: s.Settings.Text("endpoint_scheme")}
	}
	vat, _ := VATID(home, s.TaxNumber)
	number := s.CompanyNumber
	if number == "" && vat == "" {
		number = s.TaxNumber // Norway's is that of the register
	}
	return Derive(home, number, vat)
}

// Derive makes a party's electronic address from its numbers; the zero value
// where none can be made. vat is in the form of [VATID].
func Derive(country, legal, vat string) Identifier {
	for _, a := range Addressings(country) {
		id := vat
		if a.From == FromLegalID {
			id = legal
		}
		if id = schemeForm(a.Scheme, country, id); id != "" && ValidIn(a.Scheme, id) {
			return Identifier{ID: id, Scheme: a.Scheme}
		}
	}
	return Identifier{}
}

// schemeForm brings a number into the form that a scheme wants.
func schemeForm(scheme, country, id string) string {
	if id == "" {
		return ""
	}
	switch scheme {
	case "0208":
		return pad(digits(id), 10)
	case "0225":
		d := digits(id)
		if len(d) == 14 { // an establishment (SIRET) is addressed behind its company (SIREN)
			return d[:9] + "_" + d
		}
		return d
	case "0106", "0190", "0002", "0009", "0196":
		return digits(id)
	case "0184", "0191", "0192":
		return digits(id)
	case "0007":
		d := digits(id)
		if strings.HasPrefix(id, "SE") && len(d) == 12 {
			d = d[:10] // the VAT number is the organisation number and 01
		}
		return d
	case "0216":
		return "0037" + strings.TrimPrefix(digits(id), "0037")
	}
	return id
}

// LegalForm brings a register number into the form of its scheme.
func LegalForm(country, id string) Identifier {
	scheme := LegalScheme(country, id)
	if scheme == "" {
		return Identifier{ID: id}
	}
	if d := schemeForm(scheme, country, id); ValidIn(scheme, d) {
		return Identifier{ID: d, Scheme: scheme}
	}
	return Identifier{ID: id, Scheme: scheme}
}

// VATID is a tax number as BT-31 and BT-48 write it: with the prefix of its
// country (EL for Greece, and MVA behind Norwegian ones). A number that comes
// with its prefix is taken at its word; one without must stand the country's own
// test, because local tax numbers come without as well.
func VATID(country, number string) (string, bool) {
	prefix := country
	if country == "GR" {
		prefix = "EL"
	}
	compact := strings.Map(letterOrDigit, number)
	if country == "NO" && !strings.HasSuffix(compact, "MVA") {
		return "", false // the number of an organisation that is not registered for VAT
	}
	rest, ok := strings.CutPrefix(compact, prefix)
	if !ok && country == "GR" {
		rest, ok = strings.CutPrefix(compact, country)
	}
	if !ok || len(prefix) != 2 || len(rest) < 4 || len(rest) > 14 {
		v := taxid.Check(country, number)
		if !v.Valid {
			return "", false
		}
		rest = strings.TrimPrefix(v.Number, v.Country)
	}
	if country == "NO" {
		rest = strings.TrimSuffix(rest, "MVA") + "MVA"
	}
	return prefix + rest, true
}

// letterOrDigit drops what people put between the characters of a number.
func letterOrDigit(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return r - 'a' + 'A'
	case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '*':
		return r
	}
	return -1
}

// ValidIn reports whether an identifier can exist in a scheme: its form and,
// where the scheme has them, its check digits. Schemes that this program knows
// no rule of take anything printable.
func ValidIn(scheme, id string) bool {
	d := digits(id)
	all := d == id && d != ""
	switch scheme {
	case "0002", "0225":
		if scheme == "0225" {
			return len(d) >= 9 && luhn(id[:min(9, len(id))]) && addressChars(id)
		}
		return all && len(id) == 9 && luhn(id)
	case "0007":
		return all && len(id) == 10 && luhn(id)
	case "0009":
		return all && len(id) == 14 && luhn(id[:9])
	case "0088":
		return all && gs1(id)
	case "0106":
		return all && len(id) == 8
	case "0184":
		return len(d) == 8 && (all || id == "DK"+d)
	case "0190":
		return all && len(id) == 20
	case "0191":
		return all && len(id) == 8 && estonian(id)
	case "0192":
		return all && len(id) == 9 && mod11(id)
	case "0198":
		return len(d) == 8 && id == "DK"+d
	case "0204":
		return leitwegForm(id)
	case "0208":
		return all && len(id) == 10 && mod97Belgian(id)
	case "0216":
		return all && len(id) >= 12 && len(id) <= 17 && strings.HasPrefix(id, "0037")
	case "0151":
		return all && abn(id)
	case "EM":
		at := strings.IndexByte(id, '@')
		return at > 0 && at == strings.LastIndexByte(id, '@') && strings.Contains(id[at:], ".") && !strings.ContainsAny(id, " \t\r\n")
	}
	return id != "" && strings.TrimSpace(id) == id
}

// addressChars are those of a French routing address.
func addressChars(id string) bool {
	for i := 0; i < len(id); i++ {
		c := id[i]
		if !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("-_.", c) >= 0) {
			return false
		}
	}
	return len(id) <= 125
}

// IsLeitwegID recognises the routing identifier of German public buyers by its
// form and its check digits, ISO 7064 MOD 97-10.
func IsLeitwegID(id string) bool {
	return leitwegForm(id) && mod97(strings.ReplaceAll(id, "-", "")) == 1
}

// leitwegForm: two to twelve digits, an optional fine address, and two check
// digits. Source: KoSIT, Formatspezifikation Leitweg-ID 2.0.2.
func leitwegForm(id string) bool {
	parts := strings.Split(id, "-")
	if len(parts) < 2 || len(parts) > 3 || len(id) > 46 {
		return false
	}
	coarse, check := parts[0], parts[len(parts)-1]
	if len(coarse) < 2 || len(coarse) > 12 || digits(coarse) != coarse || len(check) != 2 || digits(check) != check {
		return false
	}
	return len(parts) == 2 || len(parts[1]) <= 30 && strings.Trim(parts[1], "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// routed finds the routing identifier of a buyer, and where the client gave it.
// Wrong check digits make no other number of it where a German buyer has one in
// all its parts: public offices publish such ones. A shorter text may be any
// reference, so its digits decide.
func routed(t *transaction.Transaction) (id, field string) {
	b := t.Customer
	if b == nil {
		return "", ""
	}
	german := b.Address != nil && strings.EqualFold(b.Address.CountryCode, "DE")
	for _, at := range [][2]string{{b.EntityNumber, "customer.entity_number"}, {t.References.Buyer, "buyer_reference"}} {
		if IsLeitwegID(at[0]) || german && strings.Count(at[0], "-") == 2 && leitwegForm(at[0]) {
			return at[0], at[1]
		}
	}
	return "", ""
}

// misrouted warns of a routing identifier whose check digits are wrong.
func misrouted(c country.Case) []fault.Fault {
	id, field := routed(c.Transaction)
	if id == "" || IsLeitwegID(id) {
		return nil
	}
	return []fault.Fault{fault.Warn(field, fault.TaxNumberDoubtful, "is a Leitweg-ID by its form, but its check digits are wrong: the invoice may not find its office")}
}

// mod97 is the remainder of a text in which letters count from 10.
func mod97(text string) int {
	rest := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			rest = (rest*10 + int(c-'0')) % 97
		case c >= 'A' && c <= 'Z':
			rest = (rest*100 + int(c-'A') + 10) % 97
		default:
			return -1
		}
	}
	return rest
}

// ValidIBAN checks the form and the check digits of an account number without blanks.
func ValidIBAN(iban string) bool {
	if len(iban) < 15 || len(iban) > 34 || iban[0] < 'A' || iban[0] > 'Z' || iban[1] < 'A' || iban[1] > 'Z' {
		return false
	}
	return mod97(strings.ToUpper(iban[4:]+iban[:4])) == 1
}

// digits keeps only the digits of a number.
func digits(text string) string {
	if strings.Trim(text, "0123456789") == "" {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] >= '0' && text[i] <= '9' {
			out = append(out, text[i])
		}
	}
	return string(out)
}

// pad puts zeros before a number that is one short: Belgian numbers of nine
// digits got a leading zero in 2005.
func pad(number string, length int) string {
	if len(number) == length-1 {
		return "0" + number
	}
	return number
}

func luhn(number string) bool {
	sum := 0
	for i := 0; i < len(number); i++ {
		n := int(number[len(number)-1-i] - '0')
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return number != "" && sum%10 == 0
}

// gs1 is the check digit of GS1 keys, weights 3 and 1 from the right.
func gs1(number string) bool {
	sum := 0
	for i := 1; i < len(number); i++ {
		n := int(number[len(number)-1-i] - '0')
		if i%2 == 1 {
			n *= 3
		}
		sum += n
	}
	return len(number) > 1 && (10-sum%10)%10 == int(number[len(number)-1]-'0')
}

// mod11 is the check digit of Norwegian organisation numbers.
func mod11(number string) bool {
	sum := 0
	for i := 1; i < len(number); i++ {
		sum += int(number[len(number)-1-i]-'0') * ((i-1)%6 + 2)
	}
	return len(number) > 1 && (11-sum%11)%11 == int(number[len(number)-1]-'0')
}

// estonian is the check digit of register codes: weights from one on, and from
// three on where the remainder is no digit.
func estonian(code string) bool {
	rest := 10
	for first := 1; first <= 3 && rest == 10; first += 2 {
		rest = 0
		for i := range 7 {
			rest += int(code[i]-'0') * (first + i)
		}
		rest %= 11
	}
	return rest%10 == int(code[7]-'0')
}

// mod97Belgian: the last two digits are 97 less the rest of the first eight.
func mod97Belgian(number string) bool {
	rest := mod97(number[:8])
	return 97-rest == int(number[8]-'0')*10+int(number[9]-'0')
}

// abn is the Australian business number's remainder by 89.
func abn(number string) bool {
	if len(number) != 11 {
		return false
	}
	sum := 0
	for i, weight := range [...]int{10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19} {
		n := int(number[i] - '0')
		if i == 0 {
			n--
		}
		sum += n * weight
	}
	return sum%89 == 0
}
