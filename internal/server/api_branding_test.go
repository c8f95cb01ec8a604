package server_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/audit"
)

func TestDocumentsHaveTheCompanysOwnLook(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	var logo bytes.Buffer
	if err := png.Encode(&logo, image.NewGray(image.Rect(0, 0, 37, 23))); err != nil {
		t.Fatal(err)
	}
	body := example(t, "company", object{
		"meta": object{"country_code": "XX", "external_id": "branded"}, "tax_information": object{"tax_number": "BRANDED-1"},
		"branding": object{"logo_base64": base64.StdEncoding.EncodeToString(logo.Bytes()), "font": "serif"},
	})
	id, _ := c.onboard(t, body)
	picture, serif := []byte("/Subtype/Image/Width 37/Height 23"), []byte("Serif")
	branded := c.visual(t, c.submit(t, "/v1/transactions", p.sale(t, "branded", object{"supplier": object{"id": id}})))
	if !bytes.Contains(branded, picture) || !bytes.Contains(branded, serif) {
		t.Error("the company's document lacks its logo or its font")
	}
	plain := c.visual(t, c.submit(t, "/v1/transactions", p.sale(t, "unbranded", nil)))
	if bytes.Contains(plain, picture) || bytes.Contains(plain, serif) {
		t.Error("another company's document has the look")
	}
}

// Templates are chosen by the client for all countries, for one, and by the
// company, in this order of strength; a full invoice is never a roll.
func TestTemplatesAreChosenByClientCountryAndCompany(t *testing.T) {
	t.Parallel()
	p := busy(t)
	key, err := p.newClient("templates", account.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	p.inbox.trust(key)
	c := p.as(key)
	company := func(name string, branding any) string {
		id, _ := c.onboard(t, example(t, "company", object{
			"meta":            object{"country_code": "XX", "external_id": name},
			"tax_information": object{"tax_number": "TEMPLATE-" + name}, "branding": branding}))
		return id
	}
	plain, own := company("plain", nil), company("own", object{"template": "classic", "footer": "Words of the company"})
	sale := func(id, supplier string, full bool) string {
		body := p.sale(t, id, object{"supplier": object{"id": supplier}})
		delete(body, "customer")
		if full {
			body["customer"] = object{"legal_name": "Blau GmbH", "type": "BUSINESS",
				"tax_information": object{"tax_number": "XX-7"},
				"address":         object{"country_code": "XX", "city": "Bonn", "address_line_1": "Am Markt 2"}}
		}
		return string(c.visual(t, c.submit(t, "/v1/transactions", body)))
	}
	configure := func(set func(*account.Config)) {
		t.Helper()
		if _, err := p.Accounts().Configure(t.Context(), audit.Actor{Name: "test"}, "templates",
			func(c *account.Config) error {
				set(c)
				return nil
			}); err != nil {
			t.Fatal(err)
		}
	}
	const roll = " 226.77 14000]" // of 80 mm, as long as its text
	if strings.Contains(sale("t-1", plain, false), roll) {
		t.Error("a roll that nobody asked for")
	}
	configure(func(c *account.Config) { c.Template = account.Receipt })
	if !strings.Contains(sale("t-2", plain, false), roll) {
		t.Error("the client's template does nothing")
	}
	if strings.Contains(sale("t-3", plain, true), roll) {
		t.Error("a full invoice on a roll")
	}
	if strings.Contains(sale("t-4", own, false), roll) {
		t.Error("the company's own template does not win")
	}
	configure(func(c *account.Config) {
		c.Looks = map[string]account.CountryAppearance{"XX": {Template: account.Modern}}
	})
	if strings.Contains(sale("t-5", plain, false), roll) {
		t.Error("the template of the country does not win")
	}
}

// visual is the PDF of an operation that ends well.
func (c *caller) visual(t testing.TB, operationID string) []byte {
	t.Helper()
	for _, a := range c.outcome(t, operationID)["attachments"].([]any) {
		if a := a.(object); a["kind"] == "VISUAL" {
			return c.want(t, 200, "GET", "/invoicing/v1/invoices/"+a["resource_id"].(string)+"/pdf", nil).body
		}
	}
	t.Fatal("no document for people")
	return nil
}
