package console

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/ledger"
	"tributary/internal/operator"
	"tributary/internal/secret"
	numbers "tributary/internal/series"
)

const usageDays = 30

// clientPages shows and changes clients, their keys and settings.
type clientPages struct {
	cfg   *Config
	now   func() time.Time
	front *front
	dir   *directory
}

type clientsBody struct {
	Clients []account.Client
	Usage   map[string]tally // of the last days, by client
	Days    int
}

func (c *clientPages) clients(v *request) (page, error) {
	body := &clientsBody{Usage: map[string]tally{}, Days: usageDays}
	p := page{Title: "Clients", Place: "Clients", Body: body}
	var err error
	if body.Clients, err = c.dir.clientList(v); err != nil {
		return p, err
	}
	used, err := c.dir.usage(v, "")
	for _, u := range used {
		body.Usage[u.ClientID] = body.Usage[u.ClientID].plus(tally{u.Accepted, u.Succeeded, u.Failed})
	}
	return p, err
}

func (c *directory) usage(v *request, clientID string) ([]ledger.Usage, error) {
	to := c.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	return c.cfg.Ledger.Usage(v.ctx, clientID, to.AddDate(0, 0, -usageDays), to)
}

type clientBody struct {
	account.Client
	Text      string // the configuration as JSON, without what has a form of its own
	Usage     series
	Sum       tally
	Days      int
	Log       []account.Entry
	Series    []numbers.Series
	Gaps      []numbers.SeriesGap // of all series
	Now       time.Time
	Fonts     []string
	Templates []document.Template
	Rotating  bool

	Settings   settingsForm
	UseCases   []country.UseCase
	LookFaults []fault.Fault
}

// Webhook is the address of events where there is one for all.
func (b clientBody) Webhook() string { return b.Config.Webhooks.All }

func (c *directory) client(v *request) (client account.Client, err error) {
	err = c.cfg.DB.Read(v.ctx, func(r db.Reader) (err error) {
		client, err = c.cfg.Accounts.Client(r, v.r.PathValue("client"))
		return err
	})
	return client, err
}

func (c *clientPages) clientPage(v *request) (page, error) {
	client, err := c.dir.client(v)
	if err != nil {
		return page{}, err
	}
	body := &clientBody{Client: client, Fonts: document.Fonts(), Templates: document.Templates(), Days: usageDays, Now: c.now()}
	p := page{Title: cmp.Or(client.Config.DisplayName, client.ID), Place: "Clients",
		Crumbs: []crumb{{"Clients", Root + "/clients"}}, Client: client.ID, Body: body}
	for _, k := range client.Keys {
		body.Rotating = body.Rotating || k.State == account.Next
	}
	config := client.Config
	if !v.session.Role.Allows(operator.Admin) {
		config = discreet(config)
	}
	body.Settings, body.UseCases = settingsOf(config), []country.UseCase{country.Both, country.Invoicing, country.Reporting}
	if body.Text, err = configurationText(config); err != nil {
		return p, err
	}
	used, err := c.dir.usage(v, client.ID)
	if err != nil {
		return p, err
	}
	from := c.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-usageDays)
	body.Usage = series{From: from, Step: 24 * time.Hour, Tally: make([]tally, usageDays)}
	for _, u := range used {
		if i := int(u.Day.Sub(from) / (24 * time.Hour)); i >= 0 && i < usageDays {
			body.Usage.Tally[i] = body.Usage.Tally[i].plus(tally{u.Accepted, u.Succeeded, u.Failed})
		}
	}
	body.Sum = body.Usage.sum()
	if body.Series, _, err = c.cfg.Transactions.Series.List(v.ctx, client.ID, "", numbers.Max); err != nil {
		return p, err
	}
	for _, s := range body.Series {
		body.Gaps = append(body.Gaps, s.Gaps...)
	}
	err = c.cfg.DB.Read(v.ctx, func(r db.Reader) (err error) {
		body.Log, err = c.cfg.Accounts.AuditLatest(r, client.ID, 0, 12)
		return err
	})
	return p, err
}

// configurationText is what the form of the whole configuration edits. The logo
// has a form of its own, as it has a verb of its own.
func configurationText(config account.Config) (string, error) {
	config.Logo = nil
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // html/template escapes; a person reads & and not \u0026
	enc.SetIndent("", "  ")
	err := enc.Encode(config)
	return b.String(), err
}

// discreet is a configuration for everybody to read: the query of a webhook
// address often holds a token, which only those see who may change it.
func discreet(config account.Config) account.Config {
	hide := func(address string) string {
		if base, _, secret := strings.Cut(address, "?"); secret {
			return base + "?…"
		}
		return address
	}
	config.Webhooks.All = hide(config.Webhooks.All)
	byEvent := map[string]string{}
	for event, address := range config.Webhooks.ByEvent {
		byEvent[event] = hide(address)
	}
	if len(byEvent) > 0 {
		config.Webhooks.ByEvent = byEvent
	}
	return config
}

func clientAt(id, notice string) string {
	return Root + "/clients/" + url.PathEscape(id) + "?notice=" + notice
}

func (c *clientPages) logo(v *request) error {
	client, err := c.dir.client(v)
	if err != nil {
		return err
	}
	raw, err := c.cfg.Accounts.Logo(v.ctx, client.ID)
	if err != nil {
		return err
	}
	if len(raw) == 0 || client.Config.Logo == nil {
		return fault.New(fault.NotFound, "This client has no logo.")
	}
	v.w.Header().Set("Content-Type", client.Config.Logo.MediaType)
	v.w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	v.w.Write(raw)
	return nil
}

// configure saves the whole configuration as JSON; a misspelt member is an error.
func (c *clientPages) configure(v *request) (string, error) {
	given, err := account.DecodeConfig([]byte(v.r.PostFormValue("configuration")))
	if err != nil {
		return "", err
	}
	return c.change(v, "client.configured", func(config *account.Config) error {
		given.Logo = config.Logo
		*config = given
		return nil
	})
}

// change configures a client and records the configuration before and after.
func (c *clientPages) change(v *request, action string, edit func(*account.Config) error) (string, error) {
	before, err := c.dir.client(v)
	if err != nil {
		return "", err
	}
	notice := "saved"
	err = c.dir.do(v, operator.Act{Action: action, Subject: before.ID, ClientID: before.ID, Before: discreet(before.Config)},
		func() (any, error) {
			after, err := c.cfg.Accounts.Configure(v.ctx, v.by(), before.ID, edit)
			if err == nil && after.UpdatedAt.Equal(before.UpdatedAt) {
				notice = "unchanged"
			}
			return discreet(after.Config), err
		})
	return clientAt(before.ID, notice), err
}

func (c *clientPages) setLogo(v *request) (string, error) {
	before, err := c.dir.client(v)
	if err != nil {
		return "", err
	}
	var raw []byte
	if v.r.PostFormValue("remove") == "" {
		file, _, err := v.r.FormFile("logo")
		if err != nil {
			return "", fault.New(fault.Invalid, "Choose a PNG or JPEG file first.").Because(err)
		}
		defer func() { _ = file.Close() }() // it only reads
		if raw, err = io.ReadAll(file); err != nil {
			return "", err
		}
		if len(raw) == 0 {
			return "", fault.New(fault.Invalid, "The file is empty.")
		}
	}
	err = c.dir.do(v, operator.Act{Action: "client.logo_changed", Subject: before.ID, ClientID: before.ID,
		Before: before.Config.Logo}, func() (any, error) {
		after, err := c.cfg.Accounts.SetLogo(v.ctx, v.by(), before.ID, raw)
		return after.Config.Logo, err
	})
	return clientAt(before.ID, "saved"), err
}

// shown is a page that shows a secret, once: it is the answer to the POST that
// made it, and nothing keeps it.
type shown struct {
	What, Subject, Secret, Advice, Back string
}

func (c *front) showOnce(v *request, title, place string, s shown) error {
	f := c.frame(v, route{}, page{Title: title, Place: place,
		Crumbs: []crumb{{place, Root + "/" + strings.ToLower(place)}}, Body: s})
	return c.write(v.w, http.StatusOK, "once", f)
}

func (c *clientPages) createClient(v *request) error {
	form := v.r.PostForm
	in := account.NewClient{ID: form.Get("client_id"), Live: form.Get("environment") == "live", Config: account.Config{
		DisplayName: form.Get("display_name"),
		Rate:        account.Rate{PerSecond: account.RatePerSecondDefault, Burst: account.RateBurstDefault},
	}}
	var client account.Client
	var key secret.Secret
	err := c.dir.do(v, operator.Act{Action: "client.created", Subject: in.ID, ClientID: in.ID}, func() (after any, err error) {
		client, key, err = c.cfg.Accounts.CreateClient(v.ctx, v.by(), in)
		return discreet(client.Config), err
	})
	if err != nil {
		return err
	}
	return c.front.showOnce(v, "Client created", "Clients", shown{What: "API key", Subject: client.ID, Secret: key.RevealText(),
		Advice: "The key is active: it authenticates requests and signs webhooks. The client has no countries yet; configure them next.", Back: clientAt(client.ID, "")})
}

// rotateKey begins a rotation and shows the new key, this once.
func (c *clientPages) rotateKey(v *request) error {
	client, err := c.dir.client(v)
	if err != nil {
		return err
	}
	var key account.Key
	var text secret.Secret
	err = c.dir.do(v, operator.Act{Action: "key.rotated", Subject: client.ID, ClientID: client.ID,
		Before: keyStates(client.Keys)}, func() (any, error) {
		if key, text, err = c.cfg.Accounts.RotateKey(v.ctx, v.by(), client.ID); err != nil {
			return nil, err
		}
		return map[string]string{"kid": key.Kid, "state": string(key.State)}, nil
	})
	if err != nil {
		return err
	}
	return c.front.showOnce(v, "New key", "Clients", shown{What: "API key " + key.Kid, Subject: client.ID, Secret: text.RevealText(),
		Advice: "Give it to the client. Both keys work now, and webhooks are signed with both. Promote the new key when the client has switched.", Back: clientAt(client.ID, "")})
}

func keyStates(keys []account.Key) map[string]string {
	states := map[string]string{}
	for _, k := range keys {
		if k.State != account.Revoked {
			states[k.Kid] = string(k.State)
		}
	}
	return states
}

func (c *clientPages) promoteKey(v *request) (string, error) {
	return c.moveKey(v, "key.promoted", "promoted", func(id, kid string) (account.Key, error) {
		return c.cfg.Accounts.PromoteKey(v.ctx, v.by(), id, kid)
	})
}

func (c *clientPages) revokeKey(v *request) (string, error) {
	return c.moveKey(v, "key.revoked", "revoked", func(id, kid string) (account.Key, error) {
		return c.cfg.Accounts.RevokeKey(v.ctx, v.by(), id, kid)
	})
}

func (c *clientPages) moveKey(v *request, action, notice string, move func(id, kid string) (account.Key, error)) (string, error) {
	client, err := c.dir.client(v)
	if err != nil {
		return "", err
	}
	kid := v.r.PathValue("kid")
	err = c.dir.do(v, operator.Act{Action: action, Subject: kid, ClientID: client.ID, Before: keyStates(client.Keys)},
		func() (any, error) {
			key, err := move(client.ID, kid)
			return map[string]string{key.Kid: string(key.State)}, err
		})
	return clientAt(client.ID, notice), err
}

// do makes a change whose slice has a commit of its own, and records it.
func (c *directory) do(v *request, a operator.Act, fn func() (after any, err error)) error {
	return c.cfg.Operators.Do(v.ctx, v.by(), a, func(context.Context) (any, error) { return fn() })
}
