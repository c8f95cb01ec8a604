package onboarding

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/strictjson"
	"tributary/internal/transaction"
)

// Limits of a body, in characters where nothing else is said.
const (
	externalIDMax    = 150
	nameMax          = 450
	companyNumberMax = 100
	addressMax       = 200
	taxNumberMax     = 50
	regimeMax        = 10
	settingMax       = 1000
	passwordMax      = 1000 // of a certificate
	usernameMax      = 200
	secretMax        = 4000 // a password, or a token as long as some authorities make them
	pkcs12BytesMax   = identity.FileBytesMax
)

// Paths that more than one place names.
const (
	fieldCountry     = "meta.country_code"
	fieldExternalID  = "meta.external_id"
	fieldTaxNumber   = "tax_information.tax_number"
	fieldBranding    = "branding"
	fieldCredentials = "tax_credentials"
	fieldCertificate = "tax_credentials.certificate_base64"
	fieldPassword    = "tax_credentials.certificate_password"
)

// profile is a company as it is stored: the request without the credentials,
// codes as submitted.
type profile struct {
	CountryCode   string              `json:"country_code"`
	LanguageCode  string              `json:"language_code,omitempty"`
	ExternalID    string              `json:"external_id"`
	LegalName     string              `json:"legal_name"`
	Type          string              `json:"type,omitempty"` // empty: a business
	CompanyNumber string              `json:"company_number,omitempty"`
	Address       transaction.Address `json:"address"`
	TaxNumber     string              `json:"tax_number"`
	Regime        string              `json:"regime,omitempty"`
	Branding      *account.Appearance `json:"branding,omitempty"`
	Settings      country.Settings    `json:"settings,omitempty"` // only what was sent; defaults are the pack's and may change
	Closed        bool                `json:"closed,omitempty"`   // nothing more is issued in its name
}

// country is the code in upper case.
func (p *profile) country() string { return strings.ToUpper(p.CountryCode) }

// taxKey is the tax number as it is compared: its normal form where the
// country has one, so that "ES B-12345678" and "b12345678" are one company.
func (p *profile) taxKey() string {
	if p.TaxNumber == "" {
		return "external_id " + p.ExternalID // a person: nobody else has it
	}
	if number := taxid.Check(p.country(), p.TaxNumber).Number; number != "" {
		return number
	}
	return strings.ToUpper(strings.Join(strings.Fields(p.TaxNumber), ""))
}

// request is a body that was read. A patch has only what was sent.
type request struct {
	root        *strictjson.Value
	patch       bool
	country     *string // as sent, for the comparison of a patch
	externalID  *string
	taxNumber   *string
	credentials secrets
	further     []further // members of tax_credentials that a country may know
	logo        []byte    // that came with the body
	ignored     []string  // names nobody knows
	faults      fault.List

	picture func([]byte) (*account.Logo, error) // reads a logo when it is its client's turn
	trouble error                               // ours: the body could not be judged
}

// read reads a body over a profile: what was sent takes the place of what was
// there, null clears. A new company begins with an empty profile.
func read(body []byte, patch bool, into *profile, picture func([]byte) (*account.Logo, error)) (*request, error) {
	root, err := strictjson.Parse(body, bodyBytesMax)
	if err != nil {
		return nil, err
	}
	q := &request{root: root, patch: patch, picture: picture}
	for _, name := range root.Names {
		n := root.Members[name]
		switch name {
		case "meta":
			q.object(n, name, func(member, path string, n *strictjson.Value) bool { return q.meta(member, path, n, into) })
		case "legal_name":
			q.line(n, name, nameMax, &into.LegalName)
		case "type":
			q.kind(n, name, into)
		case "company_number":
			q.line(n, name, companyNumberMax, &into.CompanyNumber)
		case "address":
			q.object(n, name, func(member, path string, n *strictjson.Value) bool { return q.address(member, path, n, into) })
		case "tax_information":
			q.object(n, name, func(member, path string, n *strictjson.Value) bool { return q.taxInformation(member, path, n, into) })
		case fieldCredentials:
			q.taxCredentials(n)
		case fieldBranding:
			q.branding(n, into)
		case "settings": // checked when the country is known
		default:
			q.ignored = append(q.ignored, strictjson.Printable(name))
		}
	}
	return q, q.trouble
}

func (q *request) refuse(path string, code fault.Code, format string, args ...any) {
	q.faults.At(path, code, format, args...)
}

// err is everything that is wrong with the body, or nil.
func (q *request) err() error { return q.faults.Err("the company") }

// object hands every member to fn; what fn does not know is ignored.
func (q *request) object(n *strictjson.Value, path string, fn func(name, path string, n *strictjson.Value) bool) {
	switch n.Kind {
	case strictjson.Null:
	case strictjson.Object:
		for _, name := range n.Names {
			at := path + "." + strictjson.Printable(name)
			if !fn(name, at, n.Members[name]) {
				q.ignored = append(q.ignored, at)
			}
		}
	default:
		q.refuse(path, fault.FieldNotValid, "must be an object")
	}
}

// line reads one line of text; null and blanks clear it. false when it was refused.
func (q *request) line(n *strictjson.Value, path string, max int, into *string) bool {
	if n.Kind == strictjson.Null {
		*into = ""
		return true
	}
	if n.Kind != strictjson.Text {
		q.refuse(path, fault.FieldNotValid, "must be a string")
		return false
	}
	if r, bad := strictjson.Unfit(n.Text, false); bad {
		q.refuse(path, fault.FieldNotValid, "must not contain the character U+%04X", r)
		return false
	}
	if utf8.RuneCountInString(n.Text) > max {
		q.refuse(path, fault.FieldNotValid, "must be at most %d characters long", max)
		return false
	}
	*into = n.Text
	if strings.TrimSpace(n.Text) == "" {
		*into = ""
	}
	return true
}

// kind reads whether a company is a business, which it is unless it says so, or a person.
func (q *request) kind(n *strictjson.Value, path string, into *profile) {
	var text string
	if !q.line(n, path, externalIDMax, &text) {
		return
	}
	switch text {
	case "", transaction.Business, transaction.Individual:
		into.Type = text
	default:
		q.refuse(path, fault.FieldNotValid, "must be one of %s, %s", transaction.Business, transaction.Individual)
	}
}

// letters reads a code of letters in either case.
func (q *request) letters(n *strictjson.Value, path, what string, into *string) bool {
	var code string
	if !q.line(n, path, externalIDMax, &code) {
		return false
	}
	if code != "" && (len(code) != 2 || strings.IndexFunc(code, func(r rune) bool {
		return r|0x20 < 'a' || r|0x20 > 'z'
	}) >= 0) {
		q.refuse(path, fault.FieldNotValid, "must be a two-letter %s code", what)
		return false
	}
	*into = code
	return true
}

func (q *request) meta(name, path string, n *strictjson.Value, into *profile) bool {
	var text string
	switch name {
	case "country_code":
		if q.letters(n, path, "country", &text) {
			q.identity(&q.country, &into.CountryCode, text)
		}
	case "language_code":
		q.letters(n, path, "language", &into.LanguageCode)
	case "external_id":
		if q.line(n, path, externalIDMax, &text) && q.identifier(path, text) {
			q.identity(&q.externalID, &into.ExternalID, text)
		}
	default:
		return false
	}
	return true
}

// identity keeps what a patch says apart: it may repeat the identity of a
// company, not change it.
func (q *request) identity(sent **string, into *string, text string) {
	if q.patch {
		*sent = &text
		return
	}
	*into = text
}

// identifier refuses a client's own id that could not be told from another by eye.
func (q *request) identifier(path, text string) bool {
	for _, r := range text {
		if !unicode.IsGraphic(r) {
			q.refuse(path, fault.FieldNotValid, "must contain printable characters only, but has U+%04X", r)
			return false
		}
	}
	if strings.TrimSpace(text) != text {
		q.refuse(path, fault.FieldNotValid, "must not start or end with a blank")
		return false
	}
	return true
}

func (q *request) address(name, path string, n *strictjson.Value, into *profile) bool {
	member := into.Address.Member(name)
	if member == nil {
		return false
	}
	if name != "country_code" {
		q.line(n, path, addressMax, member)
		return true
	}
	if q.letters(n, path, "country", member) && *member != "" && !transaction.CountryKnown(strings.ToUpper(*member)) {
		q.refuse(path, fault.FieldNotValid, "must be a country code of ISO 3166-1")
	}
	return true
}

func (q *request) taxInformation(name, path string, n *strictjson.Value, into *profile) bool {
	var text string
	switch name {
	case "tax_number":
		if q.line(n, path, taxNumberMax, &text) {
			q.identity(&q.taxNumber, &into.TaxNumber, text)
		}
	case "regime":
		q.line(n, path, regimeMax, &into.Regime)
	default:
		return false
	}
	return true
}

// complete finds what a company needs and does not have. Every country wants
// name, place and number of who issues; the reference country takes any party,
// so that its tests can be short.
func (q *request) complete(p *profile, pack country.Pack) {
	need := func(path, text string) {
		if text == "" && !q.faulty(path) {
			q.refuse(path, fault.FieldRequired, "must not be empty")
		}
	}
	need(fieldCountry, p.CountryCode)
	need(fieldExternalID, p.ExternalID)
	need("legal_name", p.LegalName)
	need("address.country_code", p.Address.CountryCode)
	if !reference(pack.Code) {
		need("address.address_line_1", p.Address.AddressLine1)
		need("address.city", p.Address.City)
	}
	if p.Type != transaction.Individual || pack.Reports() {
		need(fieldTaxNumber, p.TaxNumber) // a person has none where nothing is filed
	}
}

// faulty reports whether a field, or an object around it, has been refused already.
func (q *request) faulty(path string) bool {
	return slices.ContainsFunc(q.faults.Listed(), func(f fault.Fault) bool {
		return f.Field == path || strings.HasPrefix(path, f.Field+".")
	})
}

// reference reports whether a code is one that no real country has.
func reference(code string) bool { return len(code) == 2 && code[0] == 'X' && code != "XK" }

// digests are what two bodies are compared by. That of the credentials is for
// sealing: in the open, the digest of a weak password could be guessed.
func (q *request) digests() (open []byte, secret []byte) {
	rest := &strictjson.Value{Kind: strictjson.Object, Members: q.root.Members}
	for _, name := range q.root.Names {
		if name != fieldCredentials {
			rest.Names = append(rest.Names, name)
		}
	}
	var b bytes.Buffer
	canonical(rest, &b, q.patch)
	sum := sha256.Sum256(b.Bytes())
	if !q.credentials.sent() {
		return sum[:], nil
	}
	b.Reset()
	canonical(q.root.Members[fieldCredentials], &b, q.patch)
	sum2 := sha256.Sum256(b.Bytes())
	clear(b.Bytes())
	return sum[:], sum2[:]
}

// taxCredentials reads the members of tax_credentials. No fault repeats a value.
func (q *request) taxCredentials(n *strictjson.Value) {
	if n.Kind == strictjson.Null {
		if q.patch {
			q.credentials = clearAll()
		}
		return
	}
	q.object(n, fieldCredentials, func(name, path string, n *strictjson.Value) bool {
		limit, known := map[string]int{
			memberCertificate: bodyBytesMax, memberPassword: passwordMax, memberUsername: usernameMax, memberSecret: secretMax,
		}[name]
		if known {
			q.secret(name, path, n, limit)
		} else {
			q.further = append(q.further, further{name: name, path: path, value: n})
		}
		return true
	})
}

// secret reads one member of tax_credentials.
func (q *request) secret(name, path string, n *strictjson.Value, limit int) {
	switch {
	case n.Kind == strictjson.Null:
		if q.patch {
			q.credentials.set(name, "")
		}
	case n.Kind != strictjson.Text || utf8.RuneCountInString(n.Text) > limit:
		q.refuse(path, fault.FieldNotValid, "must be a string of at most %d characters", limit)
	case name == memberCertificate:
		q.certificate(n.Text, path)
	case n.Text != "" || q.patch:
		q.credentials.set(name, n.Text)
	}
}

// further is a member of tax_credentials that not every country has.
type further struct {
	name, path string
	value      *strictjson.Value
}

// named reads the country's own secrets; what it does not know is ignored and said so.
func (q *request) named(rules []country.SecretRule) {
	for _, f := range q.further {
		if slices.ContainsFunc(rules, func(r country.SecretRule) bool { return r.Name == f.name }) {
			q.secret(f.name, f.path, f.value, secretMax)
		} else {
			q.ignored = append(q.ignored, f.path)
		}
	}
}

// certificate reads a PKCS#12.
func (q *request) certificate(text, path string) {
	raw, ok := decodeBase64(text)
	switch {
	case !ok:
		q.refuse(path, fault.FieldNotValid, "must be base64")
	case len(raw) > pkcs12BytesMax:
		q.refuse(path, fault.FieldNotValid, "must be at most %d bytes long when decoded", pkcs12BytesMax)
	case len(raw) > 0:
		q.credentials.set(memberCertificate, string(raw))
	case q.patch:
		q.credentials.set(memberCertificate, "")
	}
}

// decodeBase64 reads base64 with the line breaks that openssl makes and with
// or without padding.
func decodeBase64(text string) (raw []byte, ok bool) {
	compact := strings.TrimRight(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
			return -1
		}
		return r
	}, text), "=")
	raw, err := base64.RawStdEncoding.DecodeString(compact)
	return raw, err == nil
}

// note tells the client which of its names were ignored.
func (q *request) note(text string) *string {
	if len(q.ignored) > 0 {
		shown := q.ignored[:min(len(q.ignored), 10)]
		text += fmt.Sprintf(" Unknown fields were ignored: %s.", strings.Join(shown, ", "))
	}
	return &text
}
