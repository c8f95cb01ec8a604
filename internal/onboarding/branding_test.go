package onboarding_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"slices"
	"testing"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
)

func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func inBase64(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

func (w *world) branding(t *testing.T, id string) country.Branding {
	t.Helper()
	var b country.Branding
	err := w.d.Read(t.Context(), func(r db.Reader) error {
		s, err := w.Supplier(r, client, id)
		b = s.Branding
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (w *world) logos(t *testing.T) (n int) {
	t.Helper()
	err := w.d.Read(t.Context(), func(r db.Reader) error { return r.Row("SELECT count(*) FROM company_logos").Scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestACompanyHasALookOfItsOwn(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		first, second := picture(t, 40, 20), picture(t, 30, 30)
		id := w.onboard(company("branding", map[string]any{
			"logo_base64": inBase64(first), "logo_placement": "right", "font": "serif",
			"colours": map[string]any{"accent": "#0b5fff"},
		}))
		before := w.branding(t, id)
		if before.Placement != "right" || before.Font != "serif" || before.Accent != "#0B5FFF" || before.Ink != "" ||
			before.LogoSHA256 == "" {
			t.Fatalf("%+v", before)
		}
		if raw, err := w.Logo(t.Context(), client, id, before.LogoSHA256); err != nil || !bytes.Equal(raw, first) {
			t.Fatalf("the logo is another: %v", err)
		}
		if _, err := w.Logo(t.Context(), "another", id, "00"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("another client's logo: %v", err)
		}
		shown, err := w.Company(t.Context(), client, id, false)
		if err != nil || shown.Branding == nil || shown.Branding.Logo == nil || shown.Branding.Logo.Width != 40 {
			t.Fatalf("%+v %v", shown.Branding, err)
		}

		// A patch changes what it names; the logo that is replaced is forgotten.
		w.patch(id, map[string]any{"branding": map[string]any{"logo_base64": inBase64(second), "font": nil}})
		after := w.branding(t, id)
		if after.LogoSHA256 == before.LogoSHA256 || after.Font != "" || after.Placement != "right" {
			t.Errorf("%+v", after)
		}
		if n := w.logos(t); n != 1 {
			t.Errorf("%d logos are kept, want 1", n)
		}

		// Another patch leaves it alone; null gives everything back to the client.
		w.patch(id, map[string]any{"legal_name": "Otra SL"})
		if got := w.branding(t, id); got != after {
			t.Errorf("%+v, want %+v", got, after)
		}
		w.patch(id, map[string]any{"branding": nil})
		if got := w.branding(t, id); got != (country.Branding{}) || w.logos(t) != 0 {
			t.Errorf("%+v, %d logos", got, w.logos(t))
		}
	})
}

func TestAJobThatFailsKeepsTheLogoOfBefore(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	id := w.onboard(company("branding", map[string]any{"logo_base64": inBase64(picture(t, 10, 10))}))
	kept := w.branding(t, id)
	e := w.patch(id, map[string]any{
		"branding": map[string]any{"logo_base64": inBase64(picture(t, 11, 11))},
		"tax_credentials": map[string]any{"certificate_base64": inBase64([]byte("no certificate")),
			"certificate_password": "x"},
	})
	if e.Status != onboarding.Failed {
		t.Fatalf("%+v", e)
	}
	if got := w.branding(t, id); got != kept || w.logos(t) != 1 {
		t.Errorf("%+v with %d logos, want %+v with 1", got, w.logos(t), kept)
	}
}

func TestALookThatNoDocumentCanHaveIsRefused(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	wide := picture(t, account.LogoSideMax, 1)
	if id := w.onboard(company("branding", map[string]any{"logo_base64": inBase64(wide)})); w.branding(t,
		id).LogoSHA256 == "" {
		t.Error("a logo at its limit is refused")
	}
	for name, c := range map[string]struct {
		branding any
		want     []string
	}{
		"not an object": {"red", []string{"field_not_valid branding"}},
		"values": {map[string]any{"logo_placement": "top", "font": "comic",
			"colours": map[string]any{"accent": "red", "ink": "#12345"}},
			[]string{"field_not_valid branding.colours.accent", "field_not_valid branding.colours.ink",
				"field_not_valid branding.font", "field_not_valid branding.logo_placement"}},
		"no base64": {map[string]any{"logo_base64": "%%%"}, []string{"field_not_valid branding.logo_base64"}},
		"no picture": {map[string]any{"logo_base64": inBase64([]byte("<svg/>"))},
			[]string{"field_not_valid branding.logo_base64"}},
		"too wide": {map[string]any{"logo_base64": inBase64(picture(t, account.LogoSideMax+1, 1))},
			[]string{"field_not_valid branding.logo_base64"}},
		"no text": {map[string]any{"logo_base64": 7}, []string{"field_not_valid branding.logo_base64"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.Create(t.Context(), client, false, encode(company("meta.external_id", "x"+name, "branding", c.branding)))
			got := faultsOf(err)
			slices.Sort(got)
			if fault.KindOf(err) != fault.Invalid || !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
