package peppol_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tributary/internal/country"
)

const invoiceInside = `<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2" xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"><cbc:ID>1</cbc:ID><cac:AccountingCustomerParty><cac:Party><cbc:EndpointID schemeID="0208">0403170701</cbc:EndpointID><cac:PartyTaxScheme><cbc:CompanyID>BE0403170701</cbc:CompanyID></cac:PartyTaxScheme></cac:Party></cac:AccountingCustomerParty></Invoice>`

// around is an envelope for a receiver.
func around(receiver, instance, document string) string {
	return `<StandardBusinessDocument xmlns="http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader"><StandardBusinessDocumentHeader>
		<HeaderVersion>1.0</HeaderVersion><Receiver><Identifier Authority="iso6523-actorid-upis">` + receiver + `</Identifier></Receiver>
		<DocumentIdentification><InstanceIdentifier>` + instance + `</InstanceIdentifier></DocumentIdentification></StandardBusinessDocumentHeader>` +
		document + `</StandardBusinessDocument>`
}

// What an access point hands on is taken with the envelope's id, for its receiver, without
// the envelope; alone with the id of the header. What is no invoice is refused.
func TestWhatAnAccessPointHandsOnIsTaken(t *testing.T) {
	pack := packOf(t, "BE")
	read := func(body, header string) (*country.Document, string, error) {
		at := country.Endpoint{Identity: country.Identity{Secrets: map[string]string{"inbound_token": "set"}}}
		h := http.Header{"X-Token": {"set"}}
		if header != "" {
			h.Set("X-SBDH-Instance-ID", header)
		}
		list, reply, err := pack.Callbacks.Read(at, country.Call{Method: http.MethodPost, Path: "/inbound", Body: []byte(body), Header: h, At: day})
		if err != nil {
			return nil, "", err
		}
		if reply.Status != http.StatusOK || string(reply.Body) != `{"countryCodeC4":"BE"}` {
			t.Errorf("%d %s", reply.Status, reply.Body)
		}
		return list[0].Document, list[0].Key, nil
	}
	for name, c := range map[string]struct{ body, header, id, receiver string }{
		"in its envelope":      {around("9925:be0403170701", "i-1", invoiceInside), "", "i-1", "9925:0403170701"},
		"with both":            {around("0208:0403170701", "i-1", invoiceInside), "i-2", "i-1", "0208:0403170701"},
		"alone":                {`<?xml version="1.0"?>` + invoiceInside, "i-3", "i-3", "0208:0403170701"},
		"an envelope of a few": {around("", "", invoiceInside), "i-4", "i-4", "0208:0403170701"},
	} {
		d, key, err := read(c.body, c.header)
		if err != nil || d == nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(d.To.Electronic.Scheme, ":", d.To.Electronic.ID); got != c.receiver || d.AuthorityID != c.id || key != "sbd/"+c.id ||
			d.To.TaxNumber != "BE0403170701" || !strings.HasSuffix(strings.TrimSpace(string(d.Bytes)), invoiceInside) ||
			strings.Contains(string(d.Bytes), "StandardBusiness") {
			t.Errorf("%s: %q of %s to %s: %s", name, key, d.AuthorityID, got, d.Bytes)
		}
	}
	prefixed := strings.Replace(around("0208:0403170701", "i-5", "<u:Invoice/>"), "<StandardBusinessDocument ",
		`<StandardBusinessDocument xmlns:u="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" `, 1)
	if d, _, err := read(prefixed, ""); err != nil || string(d.Bytes) != prefixed {
		t.Errorf("one that is not whole alone is kept in its envelope: %v", err)
	}
	for name, body := range map[string]string{
		"an order":      around("0208:0403170701", "i", `<Order xmlns="urn:oasis:names:specification:ubl:schema:xsd:Order-2"/>`),
		"nobody's id":   invoiceInside,
		"two documents": around("0208:0403170701", "i", invoiceInside+invoiceInside),
		"a type":        `<!DOCTYPE x>` + invoiceInside,
		"no XML":        "x",
	} {
		if d, _, err := read(body, ""); err == nil {
			t.Errorf("%s is taken: %+v", name, d)
		}
	}
}
