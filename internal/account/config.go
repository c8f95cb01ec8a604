package account

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/strictjson"
	"tributary/internal/transaction"
)

// Limits of a configuration.
const (
	DisplayNameMax      = 100 // characters
	WebhookCIDRsMax     = 32
	RatePerSecondMax    = 100_000
	RateBurstMax        = 1_000_000
	RetentionYearsMax   = 30
	DiagnosticDaysMax   = 90 // what is not part of the legal record, such as replies of receivers
	ConfigBytesMax      = 64 << 10
	SignatureHeaderMax  = 64
	cidrBitsMin4        = 8
	cidrBitsMin6        = 7  // fc00::/7, the unique local addresses
	webhookAddressesMax = 64 // event types with an address of their own
)

// The rate limit of a client in production: docs/specification.md, section 14.
const (
	RatePerSecondDefault = 200
	RateBurstDefault     = 400
)

// AllCountries enables every country that has no entry of its own.
const AllCountries = "*"

// Config is a client's product configuration. It is stored as JSON; its zero
// value is a client that can sign in and has no country yet.
type Config struct {
	DisplayName   string                       `json:"display_name"`
	Logo          *Logo                        `json:"logo,omitempty"` // set by SetLogo only
	LogoPlacement Placement                    `json:"logo_placement,omitempty"`
	Colours       Colours                      `json:"colours"`
	Font          Font                         `json:"font,omitempty"`
	Template      Template                     `json:"template,omitempty"`
	Footer        string                       `json:"footer,omitempty"`
	Looks         map[string]CountryAppearance `json:"looks,omitempty"`     // what is otherwise in a country, by upper-case code
	Countries     map[string]country.UseCase   `json:"countries,omitempty"` // by upper-case code, or AllCountries
	Webhooks      Webhooks                     `json:"webhooks"`
	WebhookCIDRs  []netip.Prefix               `json:"webhook_cidrs,omitempty"` // private networks its receivers may stand in
	// SignatureHeader is the name of the header with the signature of the API key;
	// empty: the service's own. During a rotation NAME-Next stands beside it.
	SignatureHeader string    `json:"webhook_signature_header,omitempty"`
	Rate            Rate      `json:"rate"`
	Retention       Retention `json:"retention"`
	LegalHold       bool      `json:"legal_hold,omitempty"` // nothing of the client is forgotten
	Totals          Totals    `json:"totals,omitempty"`
}

// Totals says what becomes of a transaction whose own totals differ from those
// that the service works out.
type Totals string

// The words for it. TotalsRefuse is stored as the empty word.
const (
	TotalsRefuse Totals = "refuse"
	TotalsWarn   Totals = "warn"
)

// Webhooks are where events go: one address for all, and a word for single event
// types, which wins: an address of their own, WebhookCommon or WebhookNone.
type Webhooks struct {
	All     string            `json:"all,omitempty"`
	ByEvent map[string]string `json:"by_event,omitempty"`
}

// Words that stand in ByEvent instead of an address.
const (
	WebhookCommon = "all"  // this event goes to the common address
	WebhookNone   = "none" // this event is not wanted
)

// commonEvents is how the names end of those events that the common address
// gets without a word. A client who gave one address before an event type was
// invented does not find notifications there that its receiver never saw.
const commonEvents = "_completed"

// Addresses lists the addresses that may be called, each once.
func (w Webhooks) Addresses() []string {
	all := []string{w.All}
	for _, address := range w.ByEvent {
		if address != WebhookCommon && address != WebhookNone {
			all = append(all, address)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(a string) bool { return a == "" })
}

// Rate is a token bucket. Both zero: no limit.
type Rate struct {
	PerSecond int `json:"per_second"`
	Burst     int `json:"burst"`
}

// Retention is how long things are kept. Zero: the country's law, and DiagnosticDaysMax.
type Retention struct {
	Years          int `json:"years,omitempty"` // of records; more than the law wants, never less
	DiagnosticDays int `json:"diagnostic_days,omitempty"`
}

// UseCase says what the client wants of a country, by upper-case code; false: it is not enabled.
func (c *Config) UseCase(code string) (country.UseCase, bool) {
	if u, ok := c.Countries[code]; ok {
		return u, true
	}
	u, ok := c.Countries[AllCountries]
	return u, ok
}

// WebhookURL is where events of a type go; false: the client does not want them.
func (c *Config) WebhookURL(event string) (string, bool) {
	switch address := c.Webhooks.ByEvent[event]; address {
	case WebhookNone:
		return "", false
	case "":
		if !strings.HasSuffix(event, commonEvents) {
			return "", false
		}
		return c.Webhooks.All, c.Webhooks.All != ""
	case WebhookCommon:
		return c.Webhooks.All, c.Webhooks.All != ""
	default:
		return address, true
	}
}

// DecodeConfig reads a configuration that a person wrote: a member it does not
// know, or one that stands twice, is an error, because it would silently do nothing.
func DecodeConfig(text []byte) (Config, error) {
	if len(text) > ConfigBytesMax {
		return Config{}, invalid(fault.At("configuration", fault.FieldNotValid, "has %d bytes, at most %d are allowed",
			len(text), ConfigBytesMax))
	}
	var c Config
	if err := strictjson.Unmarshal(text, ConfigBytesMax, "the configuration", &c); err != nil {
		return Config{}, err
	}
	return c, nil
}

func invalid(faults ...fault.Fault) error {
	return fault.New(fault.Invalid, "the configuration is not valid").With(faults...)
}

// rules are what a configuration is checked against besides itself.
type rules struct {
	checkURL func(string, []netip.Prefix) (string, error)
	events   []string
	atlas    *country.Atlas
}

// settle brings a configuration into its stored form and finds everything that
// is wrong with it. before is what it was changed from, or zero: an address that
// is stored already is not judged again, because a change of the logo is no time
// to hear that the rules for addresses are others here than where it was saved.
// Whether it may be called is decided anew with every call. New networks are a
// reason to appearance at all of them.
func (r rules) settle(c *Config, live bool, before Config) error {
	var wrong []fault.Fault
	found := func(field string, code fault.Code, format string, args ...any) {
		wrong = append(wrong, fault.At(field, code, format, args...))
	}
	c.settleLook(found)
	r.settleCountries(c, live, found)
	r.settleWebhooks(c, before, found)
	c.settleHeader(found)
	c.settleCIDRs(found)
	c.settleLimits(found)
	switch c.Totals {
	case TotalsRefuse:
		c.Totals = ""
	case "", TotalsWarn:
	default:
		found("totals", fault.FieldNotValid, "must be %s or %s", TotalsRefuse, TotalsWarn)
	}
	if len(wrong) > 0 {
		return invalid(wrong...)
	}
	return nil
}

type finder func(field string, code fault.Code, format string, args ...any)

func (c *Config) settleLook(found finder) {
	c.DisplayName = strings.TrimSpace(c.DisplayName)
	switch n := utf8.RuneCountInString(c.DisplayName); {
	case n == 0:
		found("display_name", fault.FieldRequired, "must not be empty")
	case n > DisplayNameMax:
		found("display_name", fault.FieldNotValid, "has %d characters, at most %d are allowed", n, DisplayNameMax)
	case !printable(c.DisplayName):
		found("display_name", fault.FieldNotValid, "contains unprintable characters")
	}
	appearance := c.appearance()
	appearance.settle(found)
	c.Colours, c.Footer = appearance.Colours, appearance.Footer
	c.settleLooks(found)
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func (r rules) settleCountries(c *Config, live bool, found finder) {
	settled := make(map[string]country.UseCase, len(c.Countries))
	for _, given := range slices.Sorted(maps.Keys(c.Countries)) {
		code, use, field := strings.ToUpper(given), c.Countries[given], "countries."+given
		use = country.UseCase(strings.ToUpper(string(use)))
		if _, twice := settled[code]; twice {
			found(field, fault.FieldNotValid, "must appear only once")
		}
		settled[code] = use
		if !slices.Contains([]country.UseCase{country.Reporting, country.Invoicing, country.Both}, use) {
			found(field, fault.FieldNotValid, "must be %s, %s or %s", country.Reporting, country.Invoicing, country.Both)
			continue
		}
		if code == AllCountries {
			continue
		}
		if why := r.refuses(code, use, live); why != "" {
			found(field, fault.UnsupportedCountry, "%s", why)
		}
	}
	if len(settled) == 0 {
		settled = nil
	}
	c.Countries = settled
}

// refuses says why a country cannot be enabled, or nothing.
func (r rules) refuses(code string, use country.UseCase, live bool) string {
	if !transaction.CountryKnown(code) {
		return "is not a country code"
	}
	if r.atlas == nil {
		return ""
	}
	pack, known := r.atlas.Pack(code)
	switch {
	case !known:
		return "is not a supported country"
	case !r.atlas.Offers(code, country.Live(live)):
		return "is available to test clients only"
	case use == country.Reporting && !pack.Reports():
		return "has no authority to report to; use " + string(country.Invoicing)
	}
	return ""
}

func (r rules) settleWebhooks(c *Config, before Config, found finder) {
	w := &c.Webhooks
	if len(w.ByEvent) > webhookAddressesMax {
		found("webhooks.by_event", fault.FieldNotValid, "has %d URLs, at most %d are allowed", len(w.ByEvent), webhookAddressesMax)
		return
	}
	var stored []string
	if slices.Equal(before.WebhookCIDRs, c.WebhookCIDRs) {
		stored = before.Webhooks.Addresses()
	}
	check := func(field, address string) string {
		if slices.Contains(stored, address) {
			return address
		}
		normal, err := r.checkURL(address, c.WebhookCIDRs)
		if err != nil {
			found(field, fault.FieldNotValid, "cannot be used: %v", err)
			return address
		}
		return normal
	}
	if w.All != "" {
		w.All = check("webhooks.all", w.All)
	}
	settled := make(map[string]string, len(w.ByEvent))
	for _, event := range slices.Sorted(maps.Keys(w.ByEvent)) {
		field, address := "webhooks.by_event."+event, w.ByEvent[event]
		switch word := strings.ToLower(address); {
		case !slices.Contains(r.events, event):
			found(field, fault.FieldNotValid, "is not an event type; supported: %s", strings.Join(r.events, ", "))
		case word == WebhookCommon && w.All == "":
			found(field, fault.ValidationMatchInvalid, "is %s, but there is no URL for all events", WebhookCommon)
		case word == WebhookCommon, word == WebhookNone:
			settled[event] = word
		default:
			settled[event] = check(field, address)
		}
	}
	if len(settled) == 0 {
		settled = nil
	}
	w.ByEvent = settled
}

func (c *Config) settleCIDRs(found finder) {
	if len(c.WebhookCIDRs) > WebhookCIDRsMax {
		found("webhook_cidrs", fault.FieldNotValid, "has %d ranges, at most %d are allowed", len(c.WebhookCIDRs), WebhookCIDRsMax)
	}
	for i, p := range c.WebhookCIDRs {
		field := fmt.Sprintf("webhook_cidrs.%d", i)
		least := cidrBitsMin4
		if p.Addr().Is6() {
			least = cidrBitsMin6
		}
		switch {
		case !p.IsValid() || p.Addr().Is4In6():
			found(field, fault.FieldNotValid, "is not a plain IPv4 or IPv6 range")
		case p.Bits() < least:
			found(field, fault.FieldNotValid, "is too wide: at least /%d", least)
		default:
			c.WebhookCIDRs[i] = p.Masked()
		}
	}
	if len(c.WebhookCIDRs) == 0 {
		c.WebhookCIDRs = nil
	}
}

// settleHeader refuses names that mean something else on the way to a receiver.
func (c *Config) settleHeader(found finder) {
	const field = "webhook_signature_header"
	name := c.SignatureHeader
	switch {
	case name == "":
	case len(name) > SignatureHeaderMax:
		found(field, fault.FieldNotValid, "has %d characters, at most %d are allowed", len(name), SignatureHeaderMax)
	case !headerName.MatchString(name):
		found(field, fault.FieldNotValid,
			"must be a header name of letters, digits and hyphens that begins with a letter, for example X-Signature")
	case headerTaken.MatchString(name):
		found(field, fault.FieldNotValid, "is a reserved header: choose another name")
	}
}

var (
	headerName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$`)
	headerTaken = regexp.MustCompile(
		`(?i)^(accept|access-control|authorization|cache-control|connection|content|cookie|date|expect|forwarded|host|idempotency-key|if|keep-alive|max-forwards|origin|pragma|proxy|range|referer|sec|set-cookie|te|trailer|transfer-encoding|upgrade|user-agent|via|warning|webhook|www-authenticate|x-forwarded|x-real-ip)(-.*)?$|-next$`)
)

func (c *Config) settleLimits(found finder) {
	between := func(field string, value, least, most int) {
		if value < least || value > most {
			found(field, fault.FieldNotValid, "must be between %d and %d", least, most)
		}
	}
	between("rate.per_second", c.Rate.PerSecond, 0, RatePerSecondMax)
	between("rate.burst", c.Rate.Burst, 0, RateBurstMax)
	if (c.Rate.PerSecond == 0) != (c.Rate.Burst == 0) {
		found("rate", fault.ValidationMatchInvalid, "needs both per_second and burst, or neither for no limit")
	}
	between("retention.years", c.Retention.Years, 0, RetentionYearsMax)
	between("retention.diagnostic_days", c.Retention.DiagnosticDays, 0, DiagnosticDaysMax)
}
