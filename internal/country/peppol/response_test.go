package peppol_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// answered is an Invoice Response as a buyer writes it, without an envelope.
func answered(seller, buyer, number, kind, code string) string {
	party := func(name, who string) string {
		scheme, id, _ := strings.Cut(who, ":")
		return fmt.Sprintf(`<cac:%s><cbc:EndpointID schemeID="%s">%s</cbc:EndpointID></cac:%s>`, name, scheme, id, name)
	}
	return `<ApplicationResponse xmlns="urn:oasis:names:specification:ubl:schema:xsd:ApplicationResponse-2"
		xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
		xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2">
		<cbc:CustomizationID>urn:fdc:peppol.eu:poacc:trns:invoice_response:3</cbc:CustomizationID>
		<cbc:ID>imr-1</cbc:ID><cbc:IssueDate>2026-11-14</cbc:IssueDate><cbc:IssueTime>09:00:00+01:00</cbc:IssueTime>` +
		party("SenderParty", buyer) + party("ReceiverParty", seller) +
		`<cac:DocumentResponse><cac:Response><cbc:ResponseCode>` + code + `</cbc:ResponseCode></cac:Response>
		<cac:DocumentReference><cbc:ID>` + number + `</cbc:ID>` + kind + `</cac:DocumentReference></cac:DocumentResponse></ApplicationResponse>`
}

// enveloped puts an answer into an envelope of a sender.
func enveloped(sender, answer string) string {
	return `<StandardBusinessDocument xmlns="http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader">
		<StandardBusinessDocumentHeader><HeaderVersion>1.0</HeaderVersion><Sender><Identifier Authority="iso6523-actorid-upis">` + sender +
		`</Identifier></Sender></StandardBusinessDocumentHeader>` + answer + `</StandardBusinessDocument>`
}

// An answer speaks of the document of that seller, class and number to that buyer,
// by either of its Belgian names; what is no answer of its sender is refused.
func TestWhatABuyerAnswersIsOfItsOwnInvoice(t *testing.T) {
	pack := packOf(t, "BE")
	w := wire(t, nil)
	read := func(body string) (country.Message, error) {
		at := country.Endpoint{Identity: country.Identity{Secrets: map[string]string{"inbound_token": "set"}}}
		list, reply, err := pack.Callbacks.Read(at, country.Call{Method: http.MethodPost, Path: "/inbound", Body: []byte(body),
			Header: http.Header{"Authorization": {"Bearer set"}}, At: day})
		if err != nil {
			return country.Message{}, err
		}
		if reply.Status != http.StatusOK || string(reply.Body) != `{"countryCodeC4":"BE"}` {
			t.Errorf("%d %s", reply.Status, reply.Body)
		}
		return list[0], nil
	}
	prepared := func(kind transaction.Kind) string {
		f, err := w.channel.Prepare(draft(t, "BE", "R-7", func(tx *transaction.Transaction) { tx.Kind = kind }))
		if err != nil || len(f.Aliases) != 1 {
			t.Fatal(f.Aliases, err)
		}
		return f.Aliases[0]
	}
	invoice, credit := prepared(transaction.Invoice), prepared(transaction.Credit)
	const seller = "0208:0202239951"
	typed := func(code string) string { return "<cbc:DocumentTypeCode>" + code + "</cbc:DocumentTypeCode>" }
	for body, want := range map[string]string{
		answered(seller, buyer, "R-7", typed("380"), "AP"):                          invoice,
		answered(seller, buyer, "R-7", "", "AP"):                                    invoice,
		answered(seller, buyerVAT, "R-7", typed("380"), "AP"):                       invoice,
		answered(seller, buyer, "R-7", typed("381"), "AP"):                          credit,
		enveloped(buyer, answered(seller, buyer, "R-7", typed("380"), "RE")):        invoice,
		answered(seller, "0208:0404616494", "R-7", typed("380"), "AP"):              "",
		answered(seller, buyer, "R-70", typed("380"), "AP"):                         "",
		answered(seller, buyer, strings.Repeat("R", 1000), typed("380"), "AP"):      "",
		answered("0208:0404616494", buyer, "R-7", typed("380"), "AP"):               "",
		strings.ReplaceAll(answered(seller, buyer, "R-7", "", "AP"), "09:00", "xx"): invoice,
	} {
		m, err := read(body)
		if err != nil || (m.Handle == invoice || m.Handle == credit) != (want != "") || want != "" && m.Handle != want ||
			len(m.Handle) > 300 || len(m.Receipt.News) != 1 || m.Receipt.Outcome != "" || m.Key == "" || m.Receipt.News[0].At.After(day) {
			t.Errorf("%v %+v\n%s", err, m, body)
		}
	}
	good := answered(seller, buyer, "R-7", typed("380"), "AP")
	one, _ := read(good)
	if again, _ := read(enveloped(buyer, good)); again.Key != one.Key {
		t.Error("an answer that comes again has another name")
	}
	for what, body := range map[string]string{
		"an envelope of somebody else": enveloped("0208:0404616494", good),
		"no standing":                  answered(seller, buyer, "R-7", "", "XX"),
		"no number":                    answered(seller, buyer, "", "", "AP"),
		"no buyer":                     answered(seller, "", "R-7", "", "AP"),
		"another document":             strings.Replace(good, "invoice_response:3", "mlr:3", 1),
		"an invoice":                   `<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"/>`,
		"two answers": strings.Replace(good, "</ApplicationResponse>",
			"<cac:DocumentResponse/></ApplicationResponse>", 1),
		"too large": good + strings.Repeat(" ", 1<<20),
		"no XML":    "{}",
	} {
		if m, err := read(body); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v %+v", what, err, m)
		}
	}
}
