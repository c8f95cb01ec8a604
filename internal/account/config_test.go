package account_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/transaction"
)

func full() account.Config {
	return account.Config{
		DisplayName: "Acme Ltd", LogoPlacement: account.Right, Colours: account.Colours{Accent: "#0a7b3c", Ink: "#111111"},
		Font:         account.Serif,
		Countries:    map[string]country.UseCase{"es": "both", "DE": country.Invoicing, account.AllCountries: country.Both},
		Webhooks:     account.Webhooks{ByEvent: map[string]string{event: "HTTPS://hooks.example.com/a"}},
		WebhookCIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/16"), netip.MustParsePrefix("fd00::1/8")},
		Rate:         account.Rate{PerSecond: account.RatePerSecondDefault, Burst: account.RateBurstDefault},
		Retention:    account.Retention{Years: 10, DiagnosticDays: 30},
		Totals:       account.TotalsWarn,
	}
}

func TestAConfigurationIsStoredInItsNormalForm(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		c, key, err := n.CreateClient(t.Context(), operator(), account.NewClient{ID: "acme", Config: full()})
		if err != nil {
			t.Fatal(err)
		}
		want := full()
		want.Colours.Accent = "#0A7B3C"
		want.Countries = map[string]country.UseCase{"ES": country.Both, "DE": country.Invoicing, "*": country.Both}
		want.Webhooks.ByEvent[event] = "https://hooks.example.com/a"
		want.WebhookCIDRs = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}
		if !reflect.DeepEqual(c.Config, want) {
			t.Errorf("got  %+v\nwant %+v", c.Config, want)
		}
		caller := must[account.Caller](t)(n.Authenticate(t.Context(), key.RevealText(), nowhere()))
		if !reflect.DeepEqual(*caller.Config, want) {
			t.Errorf("the caller sees %+v", caller.Config)
		}
		before := len(n.audit(t, "acme"))
		if c, err = n.Configure(t.Context(), operator(), "acme", func(c *account.Config) error {
			*c = full()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if got := len(n.audit(t, "acme")); got != before {
			t.Errorf("setting the same again made %d audit entries", got-before)
		}
		stop := errors.New("stop")
		if _, err := n.Configure(t.Context(), operator(), "acme", func(c *account.Config) error {
			c.Font = ""
			return stop
		}); !errors.Is(err, stop) {
			t.Error(err)
		}
		if again := n.client(t, "acme"); !reflect.DeepEqual(again.Config, want) || again.CreatedAt.IsZero() ||
			again.UpdatedAt.Before(again.CreatedAt) {
			t.Errorf("changed by a change that failed: %+v", again)
		}
		var all []account.Client
		err = d.Read(t.Context(), func(r db.Reader) (err error) {
			all, err = n.List(r)
			return err
		})
		if err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], n.client(t, "acme")) {
			t.Errorf("the list says %+v, %v", all, err)
		}
	})
}

func TestUseCaseAndAddressComeFromTheNarrowestEntry(t *testing.T) {
	t.Parallel()
	c := full()
	c.Countries = map[string]country.UseCase{"DE": country.Invoicing, "*": country.Both}
	for code, want := range map[string]country.UseCase{"DE": country.Invoicing, "FR": country.Both} {
		if got, ok := c.UseCase(code); got != want || !ok {
			t.Errorf("%s: %s, %v", code, got, ok)
		}
	}
	delete(c.Countries, "*")
	if u, ok := c.UseCase("FR"); ok {
		t.Errorf("FR is not enabled but %s", u)
	}
	const lookup, news = "lookup.batch_validation_completed", "transactions.transaction_updated"
	for i, c := range []struct {
		hooks account.Webhooks
		want  map[string]string // "": not wanted
	}{
		{account.Webhooks{}, map[string]string{event: "", lookup: "", news: ""}},
		{account.Webhooks{All: "https://x.example"},
			map[string]string{event: "https://x.example", lookup: "https://x.example", news: ""}},
		{account.Webhooks{ByEvent: map[string]string{event: "https://y.example"}},
			map[string]string{event: "https://y.example", lookup: "", news: ""}},
		{account.Webhooks{All: "https://x.example", ByEvent: map[string]string{event: "https://y.example"}},
			map[string]string{event: "https://y.example", lookup: "https://x.example", news: ""}},
		{account.Webhooks{All: "https://x.example",
			ByEvent: map[string]string{event: account.WebhookNone, news: account.WebhookCommon}},
			map[string]string{event: "", lookup: "https://x.example", news: "https://x.example"}},
		{account.Webhooks{All: "https://x.example", ByEvent: map[string]string{news: "https://z.example"}},
			map[string]string{event: "https://x.example", news: "https://z.example"}},
	} {
		config := account.Config{Webhooks: c.hooks}
		for name, want := range c.want {
			if got, ok := config.WebhookURL(name); got != want || ok != (want != "") {
				t.Errorf("%d: %s goes to %q, %v; want %q", i, name, got, ok, want)
			}
		}
	}
}

// A client whose address was saved under other rules (the demo's loopback, a
// network that is no longer allowed) can still be changed.
func TestAStoredAddressIsNotJudgedAgain(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	lenient := open(t, d, func(o *account.Options) {
		o.CheckURL = func(address string, _ []netip.Prefix) (string, error) { return address, nil }
	})
	lenient.create(t, "acme")
	const stored = "http://127.0.0.1:9000/in"
	if _, err := lenient.Configure(t.Context(), operator(), "acme", func(c *account.Config) error {
		c.Webhooks = account.Webhooks{All: stored, ByEvent: map[string]string{event: stored + "/2"}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	strict := open(t, d, func(o *account.Options) { o.Master = lenient.master })
	configure := func(change func(*account.Config)) error {
		_, err := strict.Configure(t.Context(), operator(), "acme", func(c *account.Config) error { change(c); return nil })
		return err
	}
	if err := configure(func(c *account.Config) { c.DisplayName = "Acme renamed" }); err != nil {
		t.Errorf("a change of the name: %v", err)
	}
	if err := configure(func(c *account.Config) {
		c.Webhooks.ByEvent[event] = stored + "/3"
	}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a new address of the kind: %v", err)
	}
	if got := strict.client(t, "acme").Config.Webhooks; got.All != stored || got.ByEvent[event] != stored+"/2" {
		t.Errorf("stored is %+v", got)
	}
}

func TestEveryLimitOfAConfigurationHoldsAtItAndPastIt(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	n.create(t, "acme")
	cidrs := func(count int) (all []netip.Prefix) {
		for i := range count {
			all = append(all, netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", i)))
		}
		return all
	}
	prefix := netip.MustParsePrefix
	for i, c := range []struct {
		set   func(*account.Config)
		field string // "" when it is within the limit
	}{
		{func(c *account.Config) { c.DisplayName = strings.Repeat("é", account.DisplayNameMax) }, ""},
		{func(c *account.Config) { c.DisplayName = strings.Repeat("é", account.DisplayNameMax+1) }, "display_name"},
		{func(c *account.Config) { c.DisplayName = "  " }, "display_name"},
		{func(c *account.Config) { c.DisplayName = "a\x00b" }, "display_name"},
		{func(c *account.Config) { c.DisplayName = "a\u202eb" }, "display_name"},
		{func(c *account.Config) { c.LogoPlacement = "top" }, "logo_placement"},
		{func(c *account.Config) { c.Font = "comic" }, "font"},
		{func(c *account.Config) { c.Template = account.Receipt }, ""},
		{func(c *account.Config) { c.Template = "baroque" }, "template"},
		{func(c *account.Config) { c.Footer = strings.Repeat("é", account.FooterMax) }, ""},
		{func(c *account.Config) { c.Footer = strings.Repeat("é", account.FooterMax+1) }, "footer"},
		{func(c *account.Config) { c.Footer = strings.Repeat("a\n", account.FooterLinesMax) }, ""},
		{func(c *account.Config) { c.Footer = strings.Repeat("a\n", account.FooterLinesMax) + "b" }, "footer"},
		{func(c *account.Config) { c.Footer = "a\u202eb" }, "footer"},
		{func(c *account.Config) {
			c.Looks = map[string]account.CountryAppearance{"es": {Template: account.Modern,
				Colours: account.Colours{Accent: "#aabbcc"}}}
		}, ""},
		{func(c *account.Config) { c.Looks = map[string]account.CountryAppearance{"ES": {Font: "comic"}} }, "looks.ES.font"},
		{func(c *account.Config) {
			c.Looks = map[string]account.CountryAppearance{"QQ": {Template: account.Modern}}
		}, "looks.QQ"},
		{func(c *account.Config) {
			c.Looks = map[string]account.CountryAppearance{"es": {Template: account.Modern}, "ES": {Template: account.Modern}}
		}, "looks.es"},
		{func(c *account.Config) { c.Colours.Accent = "#12345G" }, "colours.accent"},
		{func(c *account.Config) { c.Colours.Ink = "123456" }, "colours.ink"},
		{func(c *account.Config) { c.Countries = map[string]country.UseCase{"ZZ": country.Both} }, "countries.ZZ"},
		{func(c *account.Config) { c.Countries = map[string]country.UseCase{"ES": "ALL"} }, "countries.ES"},
		{func(c *account.Config) { c.Countries = map[string]country.UseCase{"*": ""} }, "countries.*"},
		{func(c *account.Config) {
			c.Countries = map[string]country.UseCase{"es": country.Both, "ES": country.Both}
		}, "countries.es"},
		{func(c *account.Config) { c.Webhooks.All = "http://plain.example" }, "webhooks.all"},
		{func(c *account.Config) { c.Webhooks.ByEvent = map[string]string{event: "ftp://x"} }, "webhooks.by_event." + event},
		{func(c *account.Config) {
			c.Webhooks.ByEvent = map[string]string{"no.such": "https://x.example"}
		}, "webhooks.by_event.no.such"},
		{func(c *account.Config) {
			c.Webhooks = account.Webhooks{All: "https://x.example", ByEvent: map[string]string{event: "https://y.example"}}
		}, ""},
		{func(c *account.Config) { c.Webhooks.ByEvent = map[string]string{event: "NONE"} }, ""},
		{func(c *account.Config) {
			c.Webhooks = account.Webhooks{All: "https://x.example", ByEvent: map[string]string{event: "all"}}
		}, ""},
		{func(c *account.Config) {
			c.Webhooks = account.Webhooks{ByEvent: map[string]string{event: "all"}}
		}, "webhooks.by_event." + event},
		{func(c *account.Config) { c.WebhookCIDRs = cidrs(account.WebhookCIDRsMax) }, ""},
		{func(c *account.Config) { c.WebhookCIDRs = cidrs(account.WebhookCIDRsMax + 1) }, "webhook_cidrs"},
		{func(c *account.Config) { c.WebhookCIDRs = []netip.Prefix{prefix("10.0.0.0/8")} }, ""},
		{func(c *account.Config) { c.WebhookCIDRs = []netip.Prefix{prefix("10.0.0.0/7")} }, "webhook_cidrs.0"},
		{func(c *account.Config) { c.WebhookCIDRs = []netip.Prefix{prefix("fc00::/7")} }, ""},
		{func(c *account.Config) { c.WebhookCIDRs = []netip.Prefix{prefix("::/6")} }, "webhook_cidrs.0"},
		{func(c *account.Config) { c.WebhookCIDRs = []netip.Prefix{prefix("::ffff:10.0.0.0/104")} }, "webhook_cidrs.0"},
		{func(c *account.Config) { c.WebhookCIDRs = []netip.Prefix{{}} }, "webhook_cidrs.0"},
		{func(c *account.Config) {
			c.Rate = account.Rate{PerSecond: account.RatePerSecondMax, Burst: account.RateBurstMax}
		}, ""},
		{func(c *account.Config) {
			c.Rate = account.Rate{PerSecond: account.RatePerSecondMax + 1, Burst: 1}
		}, "rate.per_second"},
		{func(c *account.Config) { c.Rate = account.Rate{PerSecond: 1, Burst: account.RateBurstMax + 1} }, "rate.burst"},
		{func(c *account.Config) { c.Rate = account.Rate{PerSecond: -1, Burst: -1} }, "rate.per_second"},
		{func(c *account.Config) { c.Rate = account.Rate{PerSecond: 1} }, "rate"},
		{func(c *account.Config) { c.Rate = account.Rate{Burst: 1} }, "rate"},
		{func(c *account.Config) {
			c.Retention = account.Retention{Years: account.RetentionYearsMax, DiagnosticDays: account.DiagnosticDaysMax}
		}, ""},
		{func(c *account.Config) { c.Retention.Years = account.RetentionYearsMax + 1 }, "retention.years"},
		{func(c *account.Config) { c.Retention.DiagnosticDays = account.DiagnosticDaysMax + 1 }, "retention.diagnostic_days"},
		{func(c *account.Config) { c.Retention.Years = -1 }, "retention.years"},
	} {
		_, err := n.Configure(t.Context(), operator(), "acme", func(now *account.Config) error {
			*now = account.Config{DisplayName: "Acme"}
			c.set(now)
			return nil
		})
		if c.field == "" {
			if err != nil {
				t.Errorf("case %d: %v", i, err)
			}
			continue
		}
		if _, found := faultsOn(err)[c.field]; !found || fault.KindOf(err) != fault.Invalid {
			t.Errorf("case %d: no fault on %s: %v", i, c.field, err)
		}
	}
	_, err := n.Configure(t.Context(), operator(), "acme", func(c *account.Config) error {
		*c = account.Config{Font: "x", Colours: account.Colours{Ink: "y"}, Rate: account.Rate{Burst: -1}}
		return nil
	})
	if got := faultsOn(err); len(got) != 5 || got["display_name"] != fault.FieldRequired {
		t.Errorf("all faults at once, not %v", got)
	}
}

func TestCountriesAreCheckedAgainstTheAtlas(t *testing.T) {
	t.Parallel()
	documents := country.Pack{Code: "IE", Name: "Ireland", Version: "1",
		Sources: []string{"https://www.irishstatutebook.ie/"},
		Facts: country.Facts{Currency: "EUR", Languages: []string{"EN"}, TimeZone: "Europe/Dublin",
			UseCases: []country.UseCase{country.Invoicing}, Formats: []string{"PDF"}, Regimes: []string{"VAT"}}}
	atlas, err := country.NewAtlas(country.AtlasConfig{
		Packs: []country.Pack{world.Reference(transaction.ReferenceCode, country.ByNumber), documents}})
	if err != nil {
		t.Fatal(err)
	}
	defer atlas.Close()
	n := open(t, dbtest.SQLite(t), func(o *account.Options) { o.Atlas = atlas })
	for i, c := range []struct {
		live  bool
		code  string
		use   country.UseCase
		valid bool
	}{
		{false, "XX", country.Reporting, true}, {true, "XX", country.Both, false}, {false, "FR", country.Both, false},
		{true, "IE", country.Invoicing, true}, {true, "IE", country.Both, true}, {true, "IE", country.Reporting, false},
		{true, account.AllCountries, country.Both, true},
	} {
		_, _, err := n.CreateClient(t.Context(), operator(), account.NewClient{Live: c.live,
			Config: account.Config{DisplayName: "x", Countries: map[string]country.UseCase{c.code: c.use}}})
		if (err == nil) != c.valid {
			t.Errorf("case %d: %v", i, err)
		}
		if got := faultsOn(err)["countries."+c.code]; !c.valid && got != fault.UnsupportedCountry {
			t.Errorf("case %d: code %q", i, got)
		}
	}
}

func TestClientIDsHaveAFixedForm(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	for id, valid := range map[string]bool{"a": true, "acme-2": true, strings.Repeat("a", 64): true,
		strings.Repeat("a", 65): false,
		"-a":                    false, "A": false, "a b": false, "a/b": false, "é": false, "a\x00": false} {
		_, _, err := n.CreateClient(t.Context(), operator(),
			account.NewClient{ID: id, Config: account.Config{DisplayName: "x"}})
		if (err == nil) != valid || !valid && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func picture(t testing.TB, w, h int, kind string) []byte {
	t.Helper()
	var out bytes.Buffer
	img := image.NewGray(image.Rect(0, 0, w, h))
	err := png.Encode(&out, img)
	if kind == "jpeg" {
		out.Reset()
		err = jpeg.Encode(&out, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestALogoIsKeptBesideTheConfiguration(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		one, two := picture(t, 3, 2, "png"), picture(t, 5, 4, "jpeg")
		c, _, err := n.CreateClient(t.Context(), operator(),
			account.NewClient{ID: "acme", Config: account.Config{DisplayName: "x"}, Logo: one})
		if err != nil || c.Config.Logo == nil || c.Config.Logo.MediaType != "image/png" || c.Config.Logo.Width != 3 ||
			c.Config.Logo.Height != 2 {
			t.Fatalf("%+v, %v", c.Config.Logo, err)
		}
		logo := func() []byte { return must[[]byte](t)(n.Logo(t.Context(), "acme")) }
		for range 2 { // from the database, then from memory
			if !bytes.Equal(logo(), one) {
				t.Error("another logo")
			}
		}
		if c, err = n.SetLogo(t.Context(), operator(), "acme", two); err != nil || c.Config.Logo.MediaType != "image/jpeg" ||
			!bytes.Equal(logo(), two) {
			t.Errorf("%+v, %v", c.Config.Logo, err)
		}
		forged := account.Logo{MediaType: "text/html", SHA256: "00"}
		c, err = n.Configure(t.Context(), operator(), "acme", func(c *account.Config) error {
			c.Logo, c.Font = &forged, account.Serif
			return nil
		})
		if err != nil || c.Config.Logo.MediaType != "image/jpeg" || c.Config.Font != account.Serif {
			t.Errorf("a configuration exchanged the logo: %+v, %v", c.Config.Logo, err)
		}
		if c, err = n.SetLogo(t.Context(), operator(), "acme", nil); err != nil || c.Config.Logo != nil || logo() != nil {
			t.Errorf("%+v, %v", c.Config.Logo, err)
		}
		if v := n.verdict(t, "acme"); v.Broken != nil {
			t.Errorf("audit: %+v", v.Broken)
		}
	})
}

func TestEveryLimitOfALogoHoldsAtItAndPastIt(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	n.create(t, "acme")
	padded := func(size int) []byte { // what follows the picture's end is ignored by decoders
		p := picture(t, 1, 1, "png")
		return append(p, make([]byte, size-len(p))...)
	}
	for name, c := range map[string]struct {
		raw   []byte
		valid bool
	}{
		"bytes at the limit":  {padded(account.LogoBytesMax), true},
		"bytes past it":       {padded(account.LogoBytesMax + 1), false},
		"side at the limit":   {picture(t, account.LogoSideMax, 1, "png"), true},
		"side past it":        {picture(t, account.LogoSideMax+1, 1, "png"), false},
		"pixels at the limit": {picture(t, 2048, 2048, "png"), true},
		"pixels past it":      {picture(t, 2048, 2049, "png"), false},
		"text":                {[]byte("<svg/>"), false}, "gif": {[]byte("GIF89a"), false},
		"cut off":     {picture(t, 64, 64, "jpeg")[:200], false},
		"only a head": {picture(t, 64, 64, "png")[:40], false},
	} {
		_, err := n.SetLogo(t.Context(), operator(), "acme", c.raw)
		if (err == nil) != c.valid || !c.valid && faultsOn(err)["logo"] == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAConfigurationFileIsReadStrictly(t *testing.T) {
	t.Parallel()
	text := must[[]byte](t)(json.Marshal(full()))
	if c := must[account.Config](t)(account.DecodeConfig(text)); !reflect.DeepEqual(c, full()) {
		t.Errorf("got %+v", c)
	}
	atLimit := append([]byte(`{"display_name":"x"}`), bytes.Repeat([]byte(" "), account.ConfigBytesMax-20)...)
	if _, err := account.DecodeConfig(atLimit); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "[]", "{", `{"colour":"x"}`, `{"Display_Name":"x"}`, `{"rate":{},"rate":{}}`,
		`{} {}`, `{"rate":{"per_second":1.5}}`, `{"webhook_cidrs":["10.0.0.0"]}`, string(atLimit) + " "} {
		if _, err := account.DecodeConfig([]byte(bad)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

func FuzzDecodeConfig(f *testing.F) {
	text, err := json.Marshal(full())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"countries":{"*":"BOTH"},"webhooks":{"all":"https://x"},"webhook_cidrs":["::/0",""]}`))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := account.DecodeConfig(data)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatal(err)
			}
			return
		}
		stored, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := account.DecodeConfig(stored)
		if err != nil && len(stored) <= account.ConfigBytesMax {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if twice, _ := json.Marshal(again); err == nil && !bytes.Equal(twice, stored) {
			t.Fatalf("%s became %s", stored, twice)
		}
	})
}

func FuzzLogo(f *testing.F) {
	n := open(f, dbtest.SQLite(f))
	n.create(f, "acme")
	f.Add(picture(f, 3, 2, "png"))
	f.Add(picture(f, 3, 2, "jpeg"))
	f.Add([]byte("\xFF\xD8\xFF"))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) == 0 {
			return
		}
		c, err := n.SetLogo(t.Context(), operator(), "acme", raw)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatal(err)
			}
			return
		}
		if l := c.Config.Logo; l == nil || l.Width*l.Height > account.LogoPixelsMax || l.Bytes != len(raw) {
			t.Fatalf("accepted %+v", l)
		}
	})
}
