package console

import (
	"net/http"
	"strconv"
	"strings"

	"tributary/internal/account"
	"tributary/internal/document"
)

// preview answers a sample document in a client's look, with what the query
// says in place of what is stored, so that a look can be seen before it is saved.
func (c *clientPages) preview(v *request) error {
	client, err := c.dir.client(v)
	if err != nil {
		return err
	}
	query := v.r.URL.Query()
	stored := client.Config.AppearanceIn(strings.ToUpper(query.Get("country")))
	look := document.Branding{
		Placement: document.Placement(stored.LogoPlacement), Accent: stored.Colours.Accent, Ink: stored.Colours.Ink,
		Font:     string(stored.Font),
		Template: document.Template(stored.Template), Footer: stored.Footer,
	}
	name := client.Config.DisplayName
	for key, to := range map[string]*string{"accent": &look.Accent, "ink": &look.Ink, "font": &look.Font,
		"placement": (*string)(&look.Placement), "display_name": &name,
		"template": (*string)(&look.Template), "footer": &look.Footer} {
		if query.Has(key) {
			*to = query.Get(key)
		}
	}
	name, look.Footer = within(name, account.DisplayNameMax), within(look.Footer, account.FooterMax)
	if client.Config.Logo != nil {
		if look.Logo, err = c.cfg.Accounts.Logo(v.ctx, client.ID); err != nil {
			return err
		}
	}
	made, err := c.cfg.Renderer.Render(v.ctx,
		document.Sample{Name: name, Language: query.Get("language"), Branding: look, At: c.now()}.Visual())
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/pdf")
	h.Set("Content-Length", strconv.Itoa(len(made.PDF)))
	h.Set("Content-Disposition", `inline; filename="preview.pdf"`)
	h.Set("Content-Security-Policy", documentPolicy)
	h.Set("X-Frame-Options", "SAMEORIGIN")
	if v.r.Method != http.MethodHead {
		v.w.Write(made.PDF)
	}
	return nil
}

// within is a text, cut where a saved one would be refused.
func within(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most])
	}
	return text
}
