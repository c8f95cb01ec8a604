package onboarding

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// branding reads how the company's documents look, over what it has. A patch
// changes the members it has; null gives them, or the whole, back to the client's.
func (q *request) branding(n *strictjson.Value, into *profile) {
	if n.Kind == strictjson.Null {
		into.Branding = nil
		return
	}
	look := account.Appearance{}
	if into.Branding != nil {
		look = *into.Branding
	}
	into.Branding = &look
	q.object(n, fieldBranding, func(name, path string, n *strictjson.Value) bool {
		return q.brandingMember(name, path, n, &look)
	})
	for _, f := range look.Settle() {
		q.refuse(fieldBranding+"."+f.Field, f.Code, "%s", f.Reason())
	}
	if look == (account.Appearance{}) {
		into.Branding = nil
	}
}

func (q *request) brandingMember(name, path string, n *strictjson.Value, look *account.Appearance) bool {
	const wordMax = 20
	var text string
	switch name {
	case "logo_base64":
		q.logoMember(n, path, look)
	case "logo_placement":
		if q.line(n, path, wordMax, &text) {
			look.LogoPlacement = account.Placement(text)
		}
	case "font":
		if q.line(n, path, wordMax, &text) {
			look.Font = account.Font(text)
		}
	case "template":
		if q.line(n, path, wordMax, &text) {
			look.Template = account.Template(text)
		}
	case "footer":
		q.line(n, path, account.FooterMax, &look.Footer)
	case "colours":
		if n.Kind == strictjson.Null {
			look.Colours = account.Colours{}
		}
		q.object(n, path, func(name, path string, n *strictjson.Value) bool {
			into, known := map[string]*string{"accent": &look.Colours.Accent, "ink": &look.Colours.Ink}[name]
			if known {
				q.line(n, path, wordMax, into)
			}
			return known
		})
	default:
		return false
	}
	return true
}

func (q *request) logoMember(n *strictjson.Value, path string, look *account.Appearance) {
	switch {
	case n.Kind == strictjson.Null, n.Kind == strictjson.Text && strings.TrimSpace(n.Text) == "":
		look.Logo, q.logo = nil, nil
		return
	case n.Kind != strictjson.Text:
		q.refuse(path, fault.FieldNotValid, "must be a string")
		return
	}
	raw, ok := decodeBase64(n.Text)
	if !ok || len(raw) == 0 {
		q.refuse(path, fault.FieldNotValid, "must be a PNG or JPEG image in base64")
		return
	}
	logo, err := q.picture(raw)
	var wrong *fault.Error
	switch {
	case err != nil && fault.KindOf(err) != fault.Invalid:
		q.trouble = err
	case errors.As(err, &wrong) && len(wrong.Faults) > 0:
		q.refuse(path, fault.FieldNotValid, "%s", wrong.Faults[0].Reason())
	case err != nil:
		q.refuse(path, fault.FieldNotValid, "cannot be read")
	default:
		look.Logo, q.logo = logo, raw
	}
}

// insertLogo keeps the logo of a request with its job.
func (j *job) insertLogo(tx *db.Tx) error {
	look := j.w.profile.Branding
	if j.w.request == nil || j.w.request.logo == nil || look == nil || look.Logo == nil {
		return nil
	}
	return tx.Exec(putLogoSQL, j.w.clientID, j.w.companyID, look.Logo.SHA256, j.w.request.logo)
}

// pruneLogos forgets the logos of a company that it does not have (any more).
func pruneLogos(tx *db.Tx, job *claimed, kept *account.Appearance) error {
	sum := ""
	if kept != nil && kept.Logo != nil {
		sum = kept.Logo.SHA256
	}
	return tx.Exec("DELETE FROM company_logos WHERE client_id = $1 AND company_id = $2 AND sha256 <> $3", job.clientID,
		job.companyID, sum)
}

// keptLook is the look that a company has whatever becomes of a job.
func keptLook(r db.Reader, job *claimed) (*account.Appearance, error) {
	var text string
	err := r.Row(supplierSQL, job.clientID, job.companyID).Scan(&text)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p profile
	err = decodeProfile(text, &p)
	return p.Branding, err
}

func brandingOf(look *account.Appearance) country.Branding {
	if look == nil {
		return country.Branding{}
	}
	b := country.Branding{Placement: string(look.LogoPlacement), Accent: look.Colours.Accent, Ink: look.Colours.Ink,
		Font:     string(look.Font),
		Template: string(look.Template), Footer: look.Footer}
	if look.Logo != nil {
		b.LogoSHA256 = look.Logo.SHA256
	}
	return b
}

// Logo answers the bytes of a company's logo, as its [country.Branding] names
// it. The caller must not change them.
func (c *Companies) Logo(ctx context.Context, clientID, id, sum string) ([]byte, error) {
	c.logosMu.Lock()
	raw, kept := c.logos[sum]
	c.logosMu.Unlock()
	if kept {
		return raw, nil
	}
	err := c.db.Read(ctx, func(r db.Reader) error { return r.Row(logoSQL, clientID, id, sum).Scan(&raw) })
	if errors.Is(err, db.ErrNoRows) {
		return nil, notFound("logo")
	}
	if err != nil {
		return nil, fmt.Errorf("read the logo of company %s: %w", id, err)
	}
	if got := sha256.Sum256(raw); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("read the logo of company %s: it is not the one that was stored", id)
	}
	c.logosMu.Lock()
	defer c.logosMu.Unlock()
	if len(c.logos) >= logosKept { // it is only read again
		clear(c.logos)
	}
	c.logos[sum] = raw
	return raw, nil
}

// logosKept bounds the memory of logos to 16 MiB.
const logosKept = 32
