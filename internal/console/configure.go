package console

import (
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/webhook"
)

// emptyCountries is how many lines for new countries the form has.
const emptyCountries = 3

// settingsForm is the configuration as fields, as stored or as somebody typed
// it: what cannot be saved is shown again with the reason beside it.
type settingsForm struct {
	Countries        []countrySetting
	All              string // address of all events
	Events           []eventSetting
	Networks, Header string
	PerSecond, Burst string
	Years, Days      string
	Totals           account.Totals
	Hold             bool
	Faults           map[string]string // by field of the configuration
	Others           []fault.Fault     // of fields that stand nowhere in the form
}

// countrySetting is a line of the list of countries.
type countrySetting struct{ Code, Use string }

// eventSetting says where events of one type go.
type eventSetting struct {
	Name    string
	Word    string // "", all, none or own
	Address string
}

const ownAddress = "own"

// settingsOf is the form of a stored configuration.
func settingsOf(config account.Config) settingsForm {
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	f := settingsForm{All: config.Webhooks.All, Header: config.SignatureHeader, PerSecond: number(config.Rate.PerSecond),
		Burst: number(config.Rate.Burst),
		Years: number(config.Retention.Years), Days: number(config.Retention.DiagnosticDays), Totals: config.Totals,
		Hold: config.LegalHold}
	for _, code := range slices.Sorted(maps.Keys(config.Countries)) {
		f.Countries = append(f.Countries, countrySetting{code, string(config.Countries[code])})
	}
	f.Countries = append(f.Countries, make([]countrySetting, emptyCountries)...)
	for _, event := range webhook.EventTypes() {
		e := eventSetting{Name: event, Word: config.Webhooks.ByEvent[event]}
		if e.Word != "" && e.Word != account.WebhookCommon && e.Word != account.WebhookNone {
			e.Word, e.Address = ownAddress, e.Word
		}
		f.Events = append(f.Events, e)
	}
	lines := make([]string, len(config.WebhookCIDRs))
	for i, network := range config.WebhookCIDRs {
		lines[i] = network.String()
	}
	f.Networks = strings.Join(lines, "\n")
	return f
}

// typedSettings reads the form as it was sent.
func typedSettings(form url.Values) settingsForm {
	f := settingsForm{All: strings.TrimSpace(form.Get("all")), Networks: form.Get("networks"),
		Header: strings.TrimSpace(form.Get("header")), PerSecond: form.Get("per_second"), Burst: form.Get("burst"),
		Years: form.Get("years"), Days: form.Get("days"), Totals: account.Totals(form.Get("totals")),
		Hold: form.Get("hold") != "", Faults: map[string]string{}}
	uses := form["use"]
	for i, code := range form["country"] {
		line := countrySetting{Code: strings.ToUpper(strings.TrimSpace(code))}
		if i < len(uses) {
			line.Use = uses[i]
		}
		f.Countries = append(f.Countries, line)
	}
	for _, event := range webhook.EventTypes() {
		f.Events = append(f.Events, eventSetting{Name: event, Word: form.Get("word-" + event),
			Address: strings.TrimSpace(form.Get("at-" + event))})
	}
	return f
}

// wrong notes why a field cannot be saved.
func (f *settingsForm) wrong(field, text string) {
	if f.Faults[field] == "" {
		f.Faults[field] = text
	}
}

// number reads a count; empty is none.
func (f *settingsForm) number(field, text string) int {
	if strings.TrimSpace(text) == "" {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		f.wrong(field, "must be a whole number")
	}
	return n
}

// into puts what was typed into a configuration; what has no field stays.
func (f *settingsForm) into(config *account.Config) {
	config.Countries = map[string]country.UseCase{}
	for _, line := range f.Countries {
		if line.Code == "" {
			continue
		}
		if _, twice := config.Countries[line.Code]; twice {
			f.wrong("countries."+line.Code, "must appear only once")
		}
		config.Countries[line.Code] = country.UseCase(line.Use)
	}
	config.Webhooks = account.Webhooks{All: f.All, ByEvent: map[string]string{}}
	for _, e := range f.Events {
		switch {
		case e.Word == ownAddress && e.Address == "":
			f.wrong("webhooks.by_event."+e.Name, "needs a URL, or another option")
		case e.Word == ownAddress:
			config.Webhooks.ByEvent[e.Name] = e.Address
		case e.Word != "":
			config.Webhooks.ByEvent[e.Name] = e.Word
		}
	}
	config.WebhookCIDRs = nil
	for text := range strings.FieldsSeq(f.Networks) {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			f.wrong("webhook_cidrs", text+" is not a network such as 10.1.0.0/16")
			continue
		}
		config.WebhookCIDRs = append(config.WebhookCIDRs, network)
	}
	config.SignatureHeader = f.Header
	config.Rate = account.Rate{PerSecond: f.number("rate.per_second", f.PerSecond), Burst: f.number("rate.burst", f.Burst)}
	config.Retention = account.Retention{Years: f.number("retention.years", f.Years),
		DiagnosticDays: f.number("retention.diagnostic_days", f.Days)}
	config.Totals, config.LegalHold = f.Totals, f.Hold
}

// settingsFields are the places of the form that can say what is wrong with them.
func (f *settingsForm) has(field string) bool {
	for prefix := range strings.FieldsSeq(
		"countries. webhooks.all webhooks.by_event. webhook_cidrs webhook_signature_header rate retention. totals") {
		if strings.HasPrefix(field, prefix) {
			return true
		}
	}
	return false
}

// place puts faults beside their fields.
func (f *settingsForm) place(faults []fault.Fault) {
	for _, found := range faults {
		field := found.Field
		if strings.HasPrefix(field, "webhook_cidrs") {
			field = "webhook_cidrs"
		}
		if f.has(field) {
			f.wrong(field, strings.TrimSpace(strings.TrimPrefix(found.Message, found.Field)))
		} else {
			f.Others = append(f.Others, found)
		}
	}
}

// configureSettings saves the form. What cannot be saved is answered as the same
// page, with everything that was typed and the reasons beside the fields.
func (c *clientPages) configureSettings(v *request) error {
	form := typedSettings(v.r.PostForm)
	to, err := c.change(v, "client.configured", func(config *account.Config) error {
		form.into(config)
		if len(form.Faults) > 0 {
			return fault.New(fault.Invalid, "the configuration is not valid")
		}
		return nil
	})
	if fault.KindOf(err) == fault.Invalid {
		form.place(faultsWithFields(err))
		form.Countries = append(form.Countries, countrySetting{})
		return c.again(v, func(b *clientBody) { b.Settings = form })
	}
	if err == nil {
		http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	}
	return err
}

// configureLook saves the part of the configuration that documents show.
func (c *clientPages) configureLook(v *request) error {
	form := v.r.PostForm
	edit := func(config *account.Config) error {
		config.DisplayName = form.Get("display_name")
		config.Colours = account.Colours{Accent: form.Get("accent"), Ink: form.Get("ink")}
		config.Font = account.Font(form.Get("font"))
		config.LogoPlacement = account.Placement(form.Get("placement"))
		config.Template = account.Template(form.Get("template"))
		config.Footer = form.Get("footer")
		return nil
	}
	to, err := c.change(v, "client.look_changed", edit)
	if fault.KindOf(err) == fault.Invalid {
		return c.again(v, func(b *clientBody) {
			_ = edit(&b.Config) // it cannot fail
			b.LookFaults = faultsOf(err)
		})
	}
	if err == nil {
		http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	}
	return err
}

// again answers the client's page as a refusal, changed by what was typed.
func (c *clientPages) again(v *request, typed func(*clientBody)) error {
	p, err := c.clientPage(v)
	if err != nil {
		return err
	}
	typed(p.Body.(*clientBody))
	v.w.Header().Set("Content-Security-Policy", pageWithDocumentPolicy)
	return c.front.write(v.w, http.StatusBadRequest, "client", c.front.frame(v, route{}, p))
}

func faultsWithFields(err error) []fault.Fault {
	told := asFault(err)
	if told == nil {
		return nil
	}
	return told.Faults
}
