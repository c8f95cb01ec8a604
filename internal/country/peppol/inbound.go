package peppol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/fault"
	"tributary/internal/incoming"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// headerInstance names what the access point hands on (phoss-ap, forwarding by http_post_sync).
const headerInstance = "X-SBDH-Instance-ID"

// inbound reads what an access point hands on.
func inbound(c country.Call) (country.Message, error) {
	doc, err := incoming.Limits().Read(c.Body)
	if err != nil {
		return country.Message{}, err
	}
	root, content := doc.Root, doc.Root
	if root.Is(spaceSBDH, "StandardBusinessDocument") {
		if len(root.Children) != 2 {
			return country.Message{}, errors.New("the envelope is not one around one document")
		}
		content = root.Children[1]
	}
	if content.Is(spaceResponse, "ApplicationResponse") {
		return response(c.Body, root, c.At)
	}
	syntax := ""
	for _, kind := range [][2]string{{spaceInvoice, "Invoice"}, {spaceCredit, "CreditNote"}, {spaceCII, "CrossIndustryInvoice"}} {
		if content.Is(kind[0], kind[1]) {
			syntax = kind[1]
		}
	}
	if syntax == "" {
		return country.Message{}, fmt.Errorf("it is {%s}%s", clipped(content.Space), clipped(content.Local))
	}
	d := &country.Document{Format: "XML", Bytes: c.Body, To: receiverIn(content, syntax)}
	if content != root {
		head := root.Children[0]
		d.AuthorityID = strings.TrimSpace(head.Value("DocumentIdentification", "InstanceIdentifier"))
		if id := strings.TrimSpace(head.Value("Receiver", "Identifier")); id != "" {
			d.To.Electronic = electronic(id)
		}
		// Alone it must still be whole: prefixes may be declared outside.
		if alone := []byte(xmltree.Declaration + doc.Raw(content)); readable(alone) {
			d.Bytes = alone
		}
	}
	if named := strings.TrimSpace(c.Header.Get(headerInstance)); d.AuthorityID == "" {
		d.AuthorityID = named
	}
	if d.AuthorityID == "" || len(d.AuthorityID) > handleMost {
		return country.Message{}, fmt.Errorf("neither the envelope nor the header %s names it", headerInstance)
	}
	return country.Message{Key: "sbd/" + d.AuthorityID, Document: d}, nil
}

const (
	spaceInvoice = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"
	spaceCredit  = "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2"
	spaceCII     = "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"
)

func readable(document []byte) bool {
	_, err := incoming.Limits().Read(document)
	return err == nil
}

// electronic is an identifier of SBDH as an electronic address.
func electronic(id string) *transaction.ElectronicAddress {
	scheme, number, _ := strings.Cut(id, ":")
	if scheme == "9925" {
		number = strings.TrimPrefix(strings.ToLower(number), "be") // an enterprise's VAT number is its number behind the letters
	}
	return &transaction.ElectronicAddress{Scheme: scheme, ID: number}
}

// receiverIn is who a document is for, by what it says itself.
func receiverIn(content *xmltree.Element, syntax string) (to transaction.Party) {
	var address, number *xmltree.Element
	if syntax == "CrossIndustryInvoice" {
		buyer := content.At("SupplyChainTradeTransaction", "ApplicableHeaderTradeAgreement", "BuyerTradeParty")
		address = buyer.At("URIUniversalCommunication", "URIID")
		number = buyer.At("SpecifiedTaxRegistration", "ID")
	} else {
		buyer := content.At("AccountingCustomerParty", "Party")
		address = buyer.At("EndpointID")
		number = buyer.At("PartyTaxScheme", "CompanyID")
	}
	if address != nil {
		to.Electronic = electronic(address.Attr("schemeID") + ":" + strings.TrimSpace(address.Text))
	}
	if number != nil {
		to.TaxNumber = strings.TrimSpace(number.Text)
	}
	return to
}

// announce says to a simulated access point that a company receives here. At a real one
// the operator has the company registered (SMP), and sets our address once for all.
func announce(ctx context.Context, in country.Enrolment) []fault.Fault {
	const path = "settings." + country.SettingReceive
	if in.At.Callback == "" {
		return []fault.Fault{fault.At(path, fault.AuthorityNotConfigured,
			"needs an address at which the access point reaches this service; contact the operator")}
	}
	own := en16931.AddressOf(&in.Supplier, in.Supplier.CountryCode)
	if !onNetwork(own) {
		return []fault.Fault{fault.At(path, fault.FieldNotValid,
			"needs an electronic address of the company on the network: set endpoint_scheme and endpoint_id")}
	}
	if !in.At.Simulated {
		return nil
	}
	body, err := json.Marshal(map[string]string{"callback": in.At.Callback + pathInbound})
	if err == nil {
		var reply country.Reply
		reply, err = country.Request{Method: http.MethodPut,
			URL:    in.At.BaseURL + "/recipients/" + participant{own.Scheme, own.ID}.value(),
			Header: []string{"Content-Type", "application/json"}, Body: body, BytesMax: answerMax}.Do(ctx, in.At.HTTP)
		if err == nil && reply.Status != http.StatusNoContent {
			err = fmt.Errorf("the access point answered %d", reply.Status)
		}
	}
	if err != nil {
		return []fault.Fault{fault.At(path, fault.AuthorityUnavailable, "cannot be told to the access point: %s",
			fault.Clip(err.Error(), 200))}
	}
	return nil
}
