package server_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"testing"
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
