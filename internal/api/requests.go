package api

// requestSchemas are the bodies clients send, with every limit of the contract.
// A test holds them against what the decoder accepts and refuses.
func requestSchemas() object {
	str := func(about string, max int) object {
		return object{"type": "string", "maxLength": max, "description": about}
	}
	enum := func(about string, values ...any) object {
		return object{"type": "string", "enum": values, "description": about}
	}
	ref := func(name string) object { return object{"$ref": "#/components/schemas/" + name} }
	list := func(of object, max int) object { return object{"type": "array", "items": of, "maxItems": max} }
	obj := func(properties object, required ...any) object {
		return object{"type": "object", "properties": properties, "required": append([]any{}, required...)}
	}
	amount := object{"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991, "description": "Minor units of currency_code."}
	code := func(about string, n int) object {
		return object{"type": "string", "minLength": n, "maxLength": n, "description": about + " Either case."}
	}
	stamp := object{"type": "string", "description": "RFC 3339; an offset and fractions are accepted.", "examples": []any{"2026-03-31T10:00:00Z"}}

	address := object{}
	for _, name := range []string{"city", "postal_code", "address_line_1", "address_line_2", "province", "region", "state", "district", "canton", "city_code", "neighbourhood", "number", "prefix", "suffix"} {
		address[name] = str("", 200)
	}
	address["country_code"] = code("Country of the address.", 2)

	tax := obj(object{
		"rate":   object{"type": "number", "minimum": 0, "maximum": 100, "description": "Percentage, at most 4 decimals."},
		"regime": str("VAT, IVA, GST, IGIC …; RET is withheld.", 10),
		"type":   str("STANDARD, REDUCED, ZERO, EXEMPT, REVERSE, EXPORT, INTRA_EU, OUTSIDE; for RET the tax withheld. Derived where absent.", 20),
		"code":   str("The country's own reason.", 10),
		"application_mode": enum("Whether unit_price includes the tax. One mode per line.",
			"INCLUDED_IN_UNIT_PRICE", "ADD_TO_UNIT_PRICE"),
	}, "rate", "regime")
	item := obj(object{
		"number": object{"type": "integer", "minimum": 1, "description": "Unique in the transaction."}, "name": str("", 200),
		"quantity": object{"type": "number", "exclusiveMinimum": 0, "description": "At most 6 decimals."}, "unit": str("", 20), "unit_price": amount,
		"type": enum("GOODS where absent.", "GOODS", "SERVICES", "DISCOUNT"), "description": str("", 200), "code": str("", 60), "ean": str("", 13),
		"tax_breakdowns": list(ref("Tax"), 100), "tax_breakdown": object{"type": "array", "items": ref("Tax"), "description": "Another name of tax_breakdowns."},
	}, "number", "name", "quantity", "unit_price")
	party := obj(object{
		"legal_name": str("", 450), "trade_name": str("", 450), "entity_number": str("", 100), "address": ref("Address"),
		"tax_information": obj(object{"tax_number": str("", 50), "regime": str("", 10)}), "type": enum("", "INDIVIDUAL", "BUSINESS"),
	}, "legal_name", "type")
	payment := obj(object{
		"type": enum("", "CREDIT", "CARD", "CASH", "TRANSFER", "CHECK", "OTHER"), "code": str("MX: PUE or PPD.", 32), "amount": amount,
	}, "type", "amount")
	supplier := obj(object{"id": str("As answered by onboarding.", 150)}, "id")

	whole := object{
		"country_code": code("Country of the transaction.", 2), "language_code": code("Of the document; the country's first language where absent.", 2),
		"currency_code": code("ISO 4217.", 3), "transaction_date": stamp, "transaction_number": str("Your document number.", 50),
		"transaction_id": str("Your unique id: the idempotency key. No blanks at the ends.", 150),
		"items":          object{"type": "array", "items": ref("Item"), "minItems": 1, "maxItems": 5000}, "supplier": ref("SupplierReference"),
		"customer": ref("Party"), "issuer": ref("Party"), "note": str("May carry simple HTML.", 3000), "payments": list(ref("Payment"), 5000),
		"exchange_rate":      object{"type": "number", "exclusiveMinimum": 0, "description": "Units of the country's currency per unit of currency_code, at most 6 decimals."},
		"exchange_rate_date": object{"type": "string", "format": "date"},
	}
	with := func(base object, more object) object {
		all := object{}
		for k, v := range base {
			all[k] = v
		}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	short := object{
		"country_code": whole["country_code"], "language_code": whole["language_code"], "transaction_date": stamp, "transaction_id": whole["transaction_id"],
		"transaction_number": whole["transaction_number"], "reference_transaction_id": str("transaction_id of the original.", 150), "note": whole["note"],
	}
	required := []any{"country_code", "currency_code", "transaction_date", "transaction_id", "supplier", "items"}
	shortRequired := []any{"country_code", "transaction_date", "transaction_id", "reference_transaction_id"}
	backfill := object{"tax_authority_id_1": str("The authority's id, if it is known.", 200)}
	for _, name := range []string{"country_code", "transaction_id", "transaction_number", "transaction_date", "supplier", "customer", "currency_code", "items"} {
		backfill[name] = whole[name]
	}
	entry := obj(object{"country_iso_code": code("", 2), "tax_identification_number": str("", 100)}, "country_iso_code", "tax_identification_number")

	schemas := object{
		"Address": obj(address, "country_code"), "Tax": tax, "Item": item, "Party": party, "Payment": payment, "SupplierReference": supplier,
		"Transaction":   obj(whole, required...),
		"Adjustment":    obj(with(whole, object{"reference_transaction_id": short["reference_transaction_id"]}), append(required, "reference_transaction_id")...),
		"Credit":        obj(short, shortRequired...),
		"Cancellation":  obj(with(short, object{"reason": str("Where a country wants one.", 200)}), shortRequired...),
		"Backfill":      obj(backfill, "country_code", "transaction_id", "transaction_number", "transaction_date"),
		"BatchRequest":  obj(object{"batch_name": str("", 200), "validations": object{"type": "array", "items": entry, "minItems": 1, "maxItems": 10000}}, "validations"),
		"SingleRequest": entry,
		"Notification": obj(object{
			"event_type": object{"type": "string"}, "delivered_at": object{"type": "string", "description": "Strictly YYYY-MM-DDTHH:mm:ssZ."},
			"resource_id": object{"type": "string"}, "resource_url": object{"type": "string"},
			"webhook_id": object{"type": "string", "description": "Idempotency key of the event; the same on retries."},
		}, "event_type", "delivered_at", "resource_id", "resource_url", "webhook_id"),
	}
	for name, s := range companySchemas(str, obj) {
		schemas[name] = s
	}
	return schemas
}

func companySchemas(str func(string, int) object, obj func(object, ...any) object) object {
	credentials := obj(object{
		"certificate_base64": object{"type": "string", "description": "PKCS#12, base64."}, "certificate_password": object{"type": "string"},
		"username": object{"type": "string"}, "password": object{"type": "string"},
	})
	members := object{
		"legal_name": str("", 450), "company_number": str("", 150), "address": object{"$ref": "#/components/schemas/Address"},
		"tax_information": obj(object{"tax_number": str("", 50), "regime": str("", 10)}), "tax_credentials": credentials,
		"settings": object{"type": "object", "description": "The country's own keys, listed at /v1/countries/{code}."},
	}
	company := object{"meta": obj(object{"country_code": str("", 2), "language_code": str("", 2), "external_id": str("Your own id: the idempotency key.", 150)}, "country_code", "external_id")}
	for k, v := range members {
		company[k] = v
	}
	return object{"Company": obj(company, "meta", "legal_name"), "CompanyPatch": obj(company)}
}

// requestExamples are the bodies of docs/examples; tests send them.
var requestExamples = map[string]string{
	"invoice":      `{"country_code":"XX","language_code":"EN","currency_code":"EUR","transaction_date":"2026-03-31T10:00:00Z","transaction_number":"INV-1001","transaction_id":"order-1001","supplier":{"id":"SUPPLIER_ID"},"customer":{"legal_name":"Jane Doe","type":"INDIVIDUAL"},"items":[{"number":1,"name":"Tea, 100 g","quantity":3,"unit":"piece","unit_price":7570,"type":"GOODS","tax_breakdowns":[{"rate":25,"regime":"VAT"}]}],"payments":[{"type":"CARD","amount":22710}]}`,
	"adjustment":   `{"country_code":"XX","language_code":"EN","currency_code":"EUR","transaction_date":"2026-04-02T10:00:00Z","transaction_number":"ADJ-1001","transaction_id":"order-1001-adjustment","reference_transaction_id":"order-1001","supplier":{"id":"SUPPLIER_ID"},"customer":{"legal_name":"Jane Doe","type":"INDIVIDUAL"},"items":[{"number":1,"name":"Tea, 100 g","quantity":1,"unit":"piece","unit_price":-7570,"type":"GOODS","tax_breakdowns":[{"rate":25,"regime":"VAT"}]}],"payments":[{"type":"CARD","amount":-7570}]}`,
	"credit":       `{"country_code":"XX","transaction_date":"2026-04-03T10:00:00Z","transaction_id":"order-1002-credit","transaction_number":"CR-1002","reference_transaction_id":"order-1002","note":"Returned"}`,
	"cancellation": `{"country_code":"XX","transaction_date":"2026-04-03T10:00:00Z","transaction_id":"order-1003-cancellation","transaction_number":"CA-1003","reference_transaction_id":"order-1003","note":"Entered twice"}`,
	"backfill":     `{"country_code":"XX","transaction_id":"old-77","transaction_number":"OLD-77","transaction_date":"2025-12-31T10:00:00Z","tax_authority_id_1":"A-77"}`,
	"company":      `{"meta":{"country_code":"ie","language_code":"en","external_id":"seller-42"},"legal_name":"Seller 42 Limited","company_number":"IE-42","address":{"country_code":"IE","city":"Dublin","postal_code":"D02 X285","address_line_1":"1 Example Street"},"tax_information":{"tax_number":"IE6388047V","regime":"VAT"}}`,
	"batch":        `{"batch_name":"suppliers","validations":[{"country_iso_code":"IE","tax_identification_number":"IE6388047V"},{"country_iso_code":"DE","tax_identification_number":"DE111111125"}]}`,
}
