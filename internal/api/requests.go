package api

import (
	"maps"
	"slices"
	"strings"

	"tributary/internal/account"
	"tributary/internal/transaction"
)

// The request schemas say what the readers of bodies accept, to the letter: a
// test generates bodies at and past every limit here and compares the verdicts.
// They are the stricter side where the two differ: a null or a blank text
// counts as absent, and only the commonest forms of that are spelled out.
//
// The number of decimals is told in words alone: multipleOf is a division of
// floats in most languages, where 9.975 is no multiple of 0.0001.

// Characters that no text may carry: they break XML, a line, or the order in
// which a reader sees the text. Spelled for ECMA 262, as JSON Schema wants.
const (
	unfitInLines = `\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069\uFDD0-\uFDEF\uFFFE\uFFFF`
	unfit        = `\u0000-\u001F\u007F-\u009F\u2028-\u202E\u2066-\u2069\uFDD0-\uFDEF\uFFFE\uFFFF`

	linePattern       = `^[^` + unfit + `]*$`
	filledPattern     = `^[^` + unfit + `]*[^\s` + unfit + `][^` + unfit + `]*$`
	identifierPattern = `^[^\s` + unfit + `]([^` + unfit + `]*[^\s` + unfit + `])?$`
	notePattern       = `^[^` + unfitInLines + `]*$`
	wordPattern       = `^[A-Z0-9_-]*$`
	instantPattern    = `^(19[7-9]|20\d|21\d)\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	dayPattern        = `^((19[7-9]|20\d|21\d)\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))?$`
	base64Pattern     = `^[A-Za-z0-9+/=\s]*$`

	// fileNameUnfit are characters that make a path of a name as well.
	fileNameUnfit = `/\\:*?"<>|` + unfit

	amountMax = 9007199254740991
)

// line is an optional text on one line.
func line(about string, max int) object {
	return object{"type": []any{"string", "null"}, "maxLength": max, "pattern": linePattern, "description": about}
}

// filled is a line that must be there.
func filled(about string, max int) object {
	return object{"type": "string", "minLength": 1, "maxLength": max, "pattern": filledPattern, "description": about}
}

// identifier is a client's own id.
func identifier(about string) object {
	return object{"type": "string", "minLength": 1, "maxLength": 150, "pattern": identifierPattern,
		"description": about + " Any printable characters, no leading or trailing blanks; percent-encoded in URLs.",
		"examples":    []any{"order-1001"}}
}

func code(about, pattern, example string) object {
	return object{"type": "string", "pattern": "^" + pattern + "$", "description": about + " Either case.",
		"examples": []any{example}}
}

func optionalCode(about, pattern, example string) object {
	return object{"type": []any{"string", "null"}, "pattern": "^(" + pattern + ")?$",
		"description": about + " Either case.", "examples": []any{example}}
}

const (
	twoLetters   = "[A-Za-z]{2}"
	threeLetters = "[A-Za-z]{3}"
)

func oneOf(about string, values ...string) object {
	return object{"type": "string", "enum": list(values...), "description": about}
}

func optionalOneOf(about string, values ...string) object {
	return object{"type": []any{"string", "null"}, "enum": append(list(values...), "", nil), "description": about}
}

func list[T any](values ...T) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// needs asks for a member that is neither null nor blank.
func needs(name string) object {
	return object{"required": list(name), "properties": object{name: object{"type": "string", "pattern": filledPattern}}}
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func optional(name, about string) object {
	return object{"anyOf": []any{ref(name), object{"type": "null"}}, "description": about}
}

func record(about string, properties object, required ...string) object {
	o := object{"type": "object", "properties": properties, "description": about}
	if len(required) > 0 {
		o["required"] = list(required...)
	}
	return o
}

func amount(about string) object {
	return object{"type": "integer", "minimum": -amountMax, "maximum": amountMax,
		"description": about +
			" An integer in minor units of currency_code: 75.70 euros are 7570. An amount with decimals is rejected; 7570.0 is an integer.", "examples": []any{7570}}
}

func above0(about string) object {
	return object{"exclusiveMinimum": 0, "exclusiveMaximum": 1_000_000_000_000,
		"description": about + " At most 12 digits before the point and 6 after it."}
}

func typed(s object, types ...string) object {
	s["type"] = any(types[0])
	if len(types) > 1 {
		s["type"] = list(types...)
	}
	return s
}

// requestSchemas are the bodies clients send.
func requestSchemas() object {
	schemas := object{}
	maps.Copy(schemas, partSchemas())
	maps.Copy(schemas, transactionSchemas())
	maps.Copy(schemas, companySchemas())
	maps.Copy(schemas, lookupSchemas())
	return schemas
}

// partSchemas are what transactions are made of.
func partSchemas() object {
	payment := record("One payment of the total.", object{
		"type": oneOf("Payment method.", "CREDIT", "CARD", "CASH", "TRANSFER", "CHECK", "OTHER"),
		"code": line("Your own or the country's code (MX: PUE, PPD).", 32), "amount": amount("Amount paid this way."),
		"iban":      iban("Account to pay to; check digits are verified, blanks are allowed."),
		"reference": line("Payment reference.", 140),
		"date":      day("Date of receipt, if different from the document date."),
		"mandate": typed(record("Direct debit: iban is then the account that is debited.",
			object{"reference": filled("Mandate reference.", 35), "creditor_id": line("Creditor identifier.", 35)},
			"reference"), "object", "null"),
	}, "type", "amount")
	supplier := record("The onboarded company on whose behalf the sale is issued.",
		object{"id": line("As returned by onboarding.", 150), "external_id": line("Your own company id, instead of id.", 150)})
	supplier["oneOf"] = []any{needs("id"), needs("external_id")}
	party := func(about string, more, tax object) object {
		maps.Copy(tax, object{"tax_number": line("Tax number.", 50), "regime": line("Tax regime, for example VAT.", 10)})
		maps.Copy(more, object{
			"legal_name": filled("Full name.", 450), "trade_name": line("Trade name.", 450),
			"entity_number":      line("Registration number.", 100),
			"address":            optional("Address", "Address of the party."),
			"type":               oneOf("Determines business_model.", "INDIVIDUAL", "BUSINESS"),
			"tax_information":    typed(record("Tax registration of the party.", tax), "object", "null"),
			"electronic_address": optional("ElectronicAddress", "Electronic address for documents."),
		})
		return record(about, more, "legal_name", "type")
	}
	third := party("Another party of the document, besides supplier, customer and issuer.", object{
		"role": object{"type": "string", "minLength": 1, "maxLength": 30, "pattern": wordPattern,
			"description": "One of third_party_roles of /v1/countries/{code}.", "examples": []any{"JST_RECIPIENT"}},
		"share": object{"type": []any{"number", "null"}, "minimum": 0, "maximum": 100,
			"description": "Percentage share of a further buyer, where the country's document has it; at most 4 decimals.",
			"examples":    []any{25}},
	}, object{})
	third["required"] = list("legal_name", "type", "role")
	issuer := party("Who issues on the supplier's behalf.", object{}, object{})
	customer := party("The buyer: its data, or the id of one of your companies, whose data is then used.", object{
		"id": line("Id of an onboarded company, instead of legal_name, type, address and numbers.", 150),
		"email": object{"type": []any{"string", "null"}, "maxLength": 254,
			"pattern": `^([^@\s<>,;"` + unfit + `]+@[^@\s<>,;"` + unfit + `.]([^@\s<>,;"` + unfit + `]*[^@\s<>,;"` + unfit +
				`.])?)?$`, "description": "E-mail address of the customer.", "examples": []any{"jane@example.com"}},
		"phone": object{"type": []any{"string", "null"}, "maxLength": 50,
			"pattern":     `^([^` + unfit + `]*\d[^` + unfit + `]*\d[^` + unfit + `]*\d[^` + unfit + `]*)?$`,
			"description": "At least 3 digits."},
	}, object{
		"fiscal_code": object{"type": []any{"string", "null"}, "maxLength": 28, "pattern": `^[A-Za-z0-9]*$`,
			"description": "IT codice fiscale."},
		"use": object{"type": []any{"string", "null"}, "maxLength": 10, "pattern": wordPattern,
			"description": "Intended use of the document: MX UsoCFDI of this sale.", "examples": []any{"G03"}},
	})
	delete(customer, "required")
	customer["if"], customer["else"] = needs("id"), object{"required": list("legal_name", "type")}
	var facts []any
	for _, name := range []string{"legal_name", "type", "trade_name", "entity_number"} {
		facts = append(facts, needs(name))
	}
	customer["then"] = object{"not": object{"anyOf": append(facts,
		object{"required": list("address"), "properties": object{"address": object{"type": "object"}}})}}
	electronic := record("An EAS code with an identifier; in Italy IT:SDI with 7 or 6 characters, or IT:PEC with an e-mail address.", object{
		"scheme": object{"type": "string", "pattern": `^([A-Z0-9]{2}|[A-Z0-9]{4}|IT:SDI|IT:PEC)$`,
			"description": "Code of the list of electronic address schemes.", "examples": []any{"0208"}},
		"id": filled("Identifier within the scheme.", 100),
	}, "scheme", "id")
	return object{"Address": addressSchema("country_code"), "Tax": taxSchema(), "Item": itemSchema(),
		"Customer": customer, "Issuer": issuer, "ThirdParty": third, "ElectronicAddress": electronic, "Payment": payment,
		"SupplierReference": supplier}
}

// addressMembers are those of an address beside the country.
func addressMembers() []string {
	return []string{"city", "postal_code", "address_line_1", "address_line_2", "province", "region", "state", "district",
		"canton", "city_code", "neighbourhood", "number", "prefix", "suffix"}
}

func addressSchema(required ...string) object {
	address := object{"country_code": code("Country of the address, ISO 3166-1.", twoLetters, "IE")}
	for _, name := range addressMembers() {
		address[name] = line("", 200)
		delete(address[name].(object), "description") // the names say it all
	}
	return record("An address; send the members your country uses.", address, required...)
}

func taxSchema() object {
	known := append(list("STANDARD", "REDUCED", "ZERO", "EXEMPT", "REVERSE", "EXPORT", "INTRA_EU", "OUTSIDE"), "", nil)
	tax := record("One tax of a line.", object{
		"rate": object{"type": "number", "minimum": 0, "maximum": 100,
			"description": "Percentage with at most 4 decimals.", "examples": []any{25, 12.5}},
		"regime": object{"type": "string", "minLength": 1, "maxLength": 10, "pattern": wordPattern,
			"description": "VAT, IVA, GST, IGIC …; RET is withheld: it lowers what is payable, not the totals.",
			"examples":    []any{"VAT"}},
		"type": object{"type": []any{"string", "null"}, "maxLength": 10, "pattern": wordPattern,
			"description": "STANDARD, REDUCED, ZERO, EXEMPT, REVERSE, EXPORT, INTRA_EU or OUTSIDE; for RET the tax withheld, for example IRPF. Derived if absent, by the rules shown at /v1/countries/{code}."},
		"code": line("Country-specific reason, for example E5.", 10), "amount": stated("The tax"),
		"quota": object{"type": []any{"number", "null"}, "exclusiveMinimum": 0,
			"description": "Instead of a rate, which is then 0: minor units of currency_code per unit of quota_base, with at most 4 decimals, where the country has such taxes (MX: IEPS).", "examples": []any{308.18}},
		"quota_base": object{"type": []any{"number", "null"}, "exclusiveMinimum": 0,
			"description": "Quantity the quota applies to, for example litres, with at most 6 decimals; default: the line's quantity.", "examples": []any{6}},
		"application_mode": optionalOneOf(
			"Whether unit_price includes the tax (default INCLUDED_IN_UNIT_PRICE). All taxes of a line that are not withheld share one mode.",
			"INCLUDED_IN_UNIT_PRICE", "ADD_TO_UNIT_PRICE"),
	}, "rate", "regime")
	tax["if"] = object{"properties": object{"regime": object{"const": "RET"}}}
	tax["else"] = object{"properties": object{"type": object{"enum": known}}}
	return tax
}

func itemSchema() object {
	item := record("One line.", object{
		"number": object{"type": "integer", "minimum": 1, "maximum": amountMax,
			"description": "Line number, unique in the transaction.", "examples": []any{1}},
		"name": filled("What is sold.", 200), "quantity": typed(above0("Quantity."), "number"),
		"unit":        line("Unit of measure.", 20),
		"unit_price":  amount("May be negative. Includes tax unless a tax entry says otherwise."),
		"type":        optionalOneOf("Default GOODS.", "GOODS", "SERVICES", "DISCOUNT"),
		"description": line("Description.", 200), "code": line("Your item code; MX reads it as ClaveProdServ.", 60),
		"ean":       line("European Article Number.", 13),
		"net_price": stated("Net amount of the line"),
		"ancillary": object{"type": []any{"boolean", "null"},
			"description": "True for shipping, packing or insurance that share the treatment of the goods of this document."},
		"discount": discountSchema(),
		"period":   daysFromTo("Period of supply of this line."),
		"classification": object{"type": []any{"array", "null"}, "maxItems": 20,
			"description": "Codes of external classifications.", "items": record("One code.", object{
				"scheme": object{"type": "string", "minLength": 1, "maxLength": 20, "pattern": wordPattern,
					"description": "Classification scheme: HSN, CPV, KPD, MY, UNSPSC …", "examples": []any{"CPV"}},
				"code": filled("Code in the scheme.", 50),
			}, "scheme", "code")},
	}, "number", "name", "quantity", "unit_price")
	maps.Copy(item["properties"].(object), taxLists("the line"))
	item["not"] = oneTaxList()
	return item
}

// stated is an amount that the client worked out itself.
func stated(about string) object {
	return typed(amount(about+", as you calculated it, after discounts: must match ours exactly."), "integer", "null")
}

// discountSchema has exactly one of its members.
func discountSchema() object {
	size := amount("Discount from quantity × unit_price, in the same terms; at most that amount.")
	size["minimum"] = 0
	s := typed(record("Discount on the line: an amount or a rate.", object{
		"amount": typed(size, "integer", "null"),
		"rate": object{"type": []any{"number", "null"}, "minimum": 0, "maximum": 100,
			"description": "Percentage of quantity × unit_price with at most 4 decimals.", "examples": []any{10}},
	}), "object", "null")
	s["if"] = object{"type": "object"}
	s["then"] = object{"oneOf": []any{
		object{"required": list("amount"), "properties": object{"amount": object{"type": "integer"},
			"rate": object{"type": "null"}}},
		object{"required": list("rate"), "properties": object{"rate": object{"type": "number"}, "amount": object{"type": "null"}}},
	}}
	return s
}

// extras are allowances or charges of the whole document.
func extras(about string) object {
	entry := discountSchema()
	entry["type"], entry["description"] = "object", "An amount or a rate, with its reason and taxes."
	of := entry["properties"].(object)
	of["amount"].(object)["description"] = "In minor units of currency_code, in the terms of prices: with tax unless a tax entry says otherwise."
	of["rate"].(object)["description"] = "Percentage of the items with the same tax_breakdowns, with at most 4 decimals."
	of["reason"] = filled("What it is for.", 200)
	maps.Copy(of, taxLists("the allowance or charge"))
	entry["required"], entry["not"] = list("reason"), oneTaxList()
	return object{"type": []any{"array", "null"}, "items": entry, "maxItems": 20, "description": about}
}

// taxLists are both names of the taxes of something.
func taxLists(of string) object {
	taxes := func(about string) object {
		return object{"type": []any{"array", "null"}, "items": ref("Tax"), "description": about}
	}
	return object{"tax_breakdowns": taxes("Taxes of " + of + "."),
		"tax_breakdown": taxes("Alias of tax_breakdowns; send one of them.")}
}

// oneTaxList is what a body with both names looks like.
func oneTaxList() object {
	return object{"required": list("tax_breakdowns", "tax_breakdown"),
		"properties": object{"tax_breakdowns": object{"type": "array", "items": object{}},
			"tax_breakdown": object{"type": "array", "items": object{}}}}
}

// members are those of a transaction's body, whatever its kind.
func members() object {
	stamp := object{"type": "string", "format": "date-time", "pattern": instantPattern,
		"description": "RFC 3339, years 1970 to 2199; offsets, fractions and leap seconds (read as :59) are accepted. The date on documents is in the supplier's time zone.", "examples": []any{"2026-03-31T10:00:00Z"}}
	items := object{"type": "array", "items": ref("Item"), "minItems": 1, "maxItems": 5000, "description": "The lines."}
	return object{
		"country_code":  code("Country whose rules apply: ISO 3166-1, or XX for the reference authority.", twoLetters, "XX"),
		"language_code": optionalCode("Language of the document; default: the country's first.", twoLetters, "EN"),
		"currency_code": code("ISO 4217 currency with a minor unit.", threeLetters, "EUR"), "transaction_date": stamp,
		"transaction_number": line("Your document number. Required unless /v1/countries/{code} says that it is optional.",
			50), "transaction_id": identifier("Your unique id: the idempotency key."),
		"allowances": extras("Allowances of the document: they lower its total."),
		"attachments": object{"type": []any{"array", "null"}, "maxItems": 5,
			"description": "Your own files that go with the document: together at most 5 MiB decoded. Kept, listed in the result as kind CLIENT, and filed where the country has a place.",
			"items": record("One file.", object{
				"name": object{"type": "string", "minLength": 1, "maxLength": 60,
					"pattern":     `^[^\s.` + fileNameUnfit + `][^` + fileNameUnfit + `]*$`,
					"description": "File name, unique in the transaction.", "examples": []any{"timesheet.pdf"}},
				"type": oneOf("Media type; the content must be of it.", "application/pdf", "image/png", "image/jpeg", "text/csv"),
				"content": object{"type": "string", "minLength": 1, "pattern": base64Pattern, "contentEncoding": "base64",
					"description": "The file in base64."},
			}, "name", "type", "content")},
		"charges": extras("Charges of the document: they raise its total."),
		"items":   items, "supplier": ref("SupplierReference"), "customer": optional("Customer", "Buyer."),
		"issuer": optional("Issuer", "Who issues on the supplier's behalf, such as a marketplace; default: the supplier."),
		"order_items": object{"type": []any{"array", "null"}, "items": ref("Item"), "maxItems": 500,
			"description": "What was ordered, if the items are an advance payment (advance_invoices of /v1/countries/{code}). Not part of any total."},
		"third_parties": object{"type": []any{"array", "null"}, "items": ref("ThirdParty"), "maxItems": 20,
			"description": "Other parties, where the country's document names them."},
		"note": object{"type": []any{"string", "null"}, "maxLength": 3000, "pattern": notePattern,
			"description": "Free text with optional simple HTML; sanitised for documents."},
		"payments": object{"type": []any{"array", "null"}, "items": ref("Payment"), "maxItems": 100,
			"description": "If present, the amounts must add up to the total less withheld taxes."},
		"exchange_rate": typed(
			above0("Units of the country's currency per unit of currency_code; required where the country's document is in its own currency."),
			"number", "null"),
		"exchange_rate_date": day("Date of the exchange rate."), "due_date": day("Due date; not before the document date."),
		"delivery_date": day("Date of supply; default: the document date."),
		"total_amount":  stated("With tax"), "total_net_amount": stated("Without tax"), "total_tax_amount": stated("The tax"),
		"period": daysFromTo("Period of supply."),
		"delivery": typed(record("Where the goods go, if not to the customer's address.",
			object{"name": line("Who receives them.", 450), "address": ref("Address")}, "address"), "object", "null"),
		"payee": typed(record("Who is paid, if not the supplier.",
			object{"name": filled("Name.", 450), "id": line("Identifier.", 100), "iban": iban("Account to pay to.")}, "name"),
			"object", "null"),
		"payment_terms": object{"type": []any{"string", "null"}, "maxLength": 500, "pattern": notePattern,
			"description": "Payment terms in words."},
		"buyer_reference": line("The buyer's reference; DE: a Leitweg-ID.", 100),
		"order_reference": line("Purchase order reference.", 100), "contract_reference": line("Contract reference.", 100),
		"project_reference": line("Project reference.", 100),
		"references": object{"type": "array", "minItems": 1, "maxItems": 100,
			"description": "The transactions that the payment was for, or that the adjustment corrects, if more than one; the amounts must add up to the payments, or to the items. Adjustments: where /v1/countries/{code} says several_originals. Replaces reference_transaction_id.", "items": record("One transaction.", object{
				"transaction_id": identifier("Its transaction_id."), "amount": amount("Its share of the payment or adjustment."),
			}, "transaction_id", "amount")},
		"reference_transaction_id": identifier("transaction_id of the original."),
		"reason": line(
			"Country-specific code, where required: the reason of a correction, or the kind of document of a sale (sale_reasons).", 200),
		"tax_authority_id_1": line("The authority's id of the document, if known.", 200),
	}
}

func iban(about string) object {
	return object{"type": []any{"string", "null"}, "maxLength": 42, "pattern": `^([A-Z]{2}\d{2}[A-Za-z0-9 ]*)?$`,
		"description": about, "examples": []any{"DE89 3704 0044 0532 0130 00"}}
}

// daysFromTo is two days, both included.
func daysFromTo(about string) object {
	return typed(record(about, object{"from": day("First day."), "to": day("Last day; not before the first.")}, "from",
		"to"), "object", "null")
}

// day is an optional calendar day.
func day(about string) object {
	return object{"type": []any{"string", "null"}, "pattern": dayPattern,
		"anyOf": []any{object{"format": "date"}, object{"const": ""}}, "description": about, "examples": []any{"2026-03-31"}}
}

// bodyOf is a body with some of the members; the others are refused by name.
func bodyOf(about string, names, required []string) object {
	all, properties := members(), object{}
	for _, name := range names {
		properties[name] = all[name]
		delete(all, name)
	}
	o := record(about, properties, required...)
	foreign := []any{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(name, "total_") { // accepted with a warning where there is nothing to compare them with
			foreign = append(foreign, name)
		}
	}
	o["propertyNames"] = object{"not": object{"enum": foreign}}
	return o
}

func transactionSchemas() object {
	whole := []string{"country_code", "language_code", "currency_code", "transaction_date", "transaction_number",
		"transaction_id", "items", "allowances", "charges", "attachments", "supplier", "customer", "issuer", "third_parties", "order_items", "note", "payments",
		"exchange_rate", "exchange_rate_date", "due_date", "delivery_date", "period", "delivery", "payee", "payment_terms",
		"buyer_reference", "order_reference", "contract_reference", "project_reference", "total_amount", "total_net_amount",
		"total_tax_amount", "reason"}
	wholeRequired := []string{"country_code", "currency_code", "transaction_date", "transaction_id", "supplier", "items"}
	short := []string{"country_code", "transaction_date", "transaction_id", "transaction_number",
		"reference_transaction_id", "note"}
	shortRequired := []string{"country_code", "transaction_date", "transaction_id", "reference_transaction_id"}
	rest := " Members that are not listed are accepted and reported as field_unknown warnings; members of another operation are rejected. Null and blank texts count as absent."
	backfill := bodyOf("A document issued elsewhere, so that it can be corrected here."+rest,
		[]string{"country_code", "transaction_id", "transaction_number", "transaction_date", "tax_authority_id_1",
			"supplier", "customer", "currency_code", "items", "allowances", "charges"},
		[]string{"country_code", "transaction_id", "transaction_number", "transaction_date"})
	backfill["properties"].(object)["transaction_number"] = filled("The document's number.", 50)
	payment := bodyOf("Money received for earlier transactions, in their currency unless currency_code says another: then references have amounts in that of the transactions; transaction_date is the date of receipt."+rest,
		[]string{"country_code", "transaction_date", "transaction_id", "transaction_number", "reference_transaction_id",
			"references", "payments", "currency_code", "exchange_rate", "exchange_rate_date", "note"},
		[]string{"country_code", "transaction_date", "transaction_id", "payments"})
	payment["properties"].(object)["payments"] = object{"type": "array", "items": ref("Payment"), "minItems": 1,
		"description": "Payments received, each amount above 0; the method is its type, or the country's code."}
	payment["oneOf"] = []any{object{"required": list("reference_transaction_id")}, object{"required": list("references")}}
	adjustment := bodyOf("A partial correction with the full payload."+rest,
		append(whole[:len(whole):len(whole)], "reference_transaction_id", "references"), wholeRequired)
	adjustment["oneOf"] = payment["oneOf"]
	backfill["dependentRequired"] = object{"items": list("currency_code")}
	return object{
		"NewSeries": record("A number series.", object{
			"supplier_id": filled("Company id of the supplier.", 150),
			"pattern": filled(
				"Number pattern: {N:6} once, six digits or more; {YYYY} or {YY} is the year of the document date.", 50),
			"kind": optionalOneOf("Kind of the numbered transactions; default INVOICE.", "INVOICE", "ADJUSTMENT",
				"CREDIT", "CANCELLATION"),
			"country_code": optionalCode("Country of the transactions; default: the company's.", twoLetters, "ES"),
			"next": object{"type": []any{"integer", "null"}, "minimum": 1, "maximum": 999_999_999_999,
				"description": "First number; default 1."},
			"yearly": object{"type": []any{"boolean", "null"},
				"description": "Restart every year; the pattern must then contain the year."},
		}, "supplier_id", "pattern"),
		"Response": record("An answer to a received document.", object{
			"status": object{"type": "string", "enum": list(transaction.AnswerStatuses()...), "description": "The answer; which are possible says responses of /v1/countries/{code}."},
			"reason": line("The network's own code of the reason, such as REF or PRI on Peppol.", responseReasonMax),
			"note":   object{"type": []any{"string", "null"}, "maxLength": responseNoteMax, "pattern": notePattern, "description": "In words, for the sender."},
		}, "status"),
		"Trial": object{"anyOf": []any{ref("Transaction"), ref("Adjustment"), ref("Credit"), ref("Cancellation"),
			ref("PaymentReport")}},
		"Transaction": bodyOf("A sale."+rest, whole, wholeRequired),
		"Adjustment":  adjustment,
		"Credit": bodyOf("A correction of the whole original; parties, items and currency are copied from it."+rest,
			short, shortRequired),
		"Cancellation": bodyOf("Cancels an original that should not exist."+rest,
			append(short[:len(short):len(short)], "reason"), shortRequired),
		"PaymentReport": payment,
		"Backfill":      backfill,
	}
}

func companySchemas() object {
	secretText := func(about string, max int) object {
		return object{"type": []any{"string", "null"}, "maxLength": max, "description": about + " Never shown again.",
			"writeOnly": true}
	}
	certificate := secretText("Certificate for the tax authority: PKCS#12, base64, at most 64 KiB decoded.", 0)
	certificate["pattern"] = base64Pattern
	delete(certificate, "maxLength") // of the text; what it decodes to is limited
	credentials := typed(record("Credentials for the country's authority; see /v1/countries/{code}.", object{
		"certificate_base64": certificate, "certificate_password": secretText("Password of the certificate.", 1000),
		"username": secretText("User name.", 200), "password": secretText("Password or token.", 4000),
	}), "object", "null")
	country := secretText("A country-specific secret, as named by /v1/countries/{code}.", 4000)
	country["type"] = "string" // generators of clients cannot make a map whose values may be null
	credentials["additionalProperties"] = country
	properties := func() object {
		return object{
			"meta": record("Your metadata of the company.", object{
				"country_code":  code("Country whose rules apply to the company.", twoLetters, "ie"),
				"language_code": optionalCode("Language of its documents.", twoLetters, "en"),
				"external_id":   identifier("Your own company id: the idempotency key."),
			}),
			"type": object{"enum": []any{"BUSINESS", "INDIVIDUAL", "", nil},
				"description": "A person needs no tax number where nothing is filed; default BUSINESS."},
			"legal_name": filled("Full name.", 450), "company_number": line("Registration number.", 100),
			"address": ref("CompanyAddress"), "tax_credentials": credentials,
			"tax_information": record("Tax registration of the company.",
				object{"tax_number": filled("Tax number.", 50), "regime": line("Tax regime, for example VAT.", 10)}),
			"branding": brandingSchema(),
			"settings": object{"type": []any{"object", "null"},
				"description": "Country-specific settings, listed with type and default at /v1/countries/{code}."},
		}
	}
	whole := properties()
	whole["meta"].(object)["required"] = list("country_code", "external_id")
	whole["tax_information"].(object)["properties"].(object)["tax_number"] = line(
		"Tax number; a person may have none where nothing is filed.", 50)
	company := record("A company on whose behalf sales are issued, or that buys. Members that are not listed are ignored.", whole, "meta", "legal_name", "address")
	company["allOf"] = []any{object{
		"if": object{"required": list("type"), "properties": object{"type": object{"const": "INDIVIDUAL"}}},
		"else": object{"required": list("tax_information"),
			"properties": object{"tax_information": object{"required": list("tax_number"),
				"properties": object{"tax_number": filled("", 50)}}}},
	}}
	company["if"] = object{"properties": object{
		"meta": object{"properties": object{"country_code": object{"pattern": "^[Xx][^Kk]$"}}}}}
	company["then"] = object{"properties": object{"address": object{"required": list("country_code")}}}
	company["else"] = object{"properties": object{"address": object{"required": list("country_code", "address_line_1", "city"),
		"properties": object{"address_line_1": filled("", 200), "city": filled("", 200)}}}}
	return object{
		"Company": company, "CompanyAddress": addressSchema(),
		"CompanyPatch": record(
			"Members to change; null clears an optional member. Country, tax number and external_id may be repeated, not changed.", properties()),
	}
}

// brandingSchema is how a company's documents look.
func brandingSchema() object {
	choice := func(about string, values ...any) object {
		return object{"enum": append(values, "", nil), "description": about}
	}
	colour := func(about string) object {
		return object{"type": []any{"string", "null"}, "pattern": "^(#[0-9A-Fa-f]{6})?$", "description": about,
			"examples": []any{"#0B5FFF"}}
	}
	return typed(record("Appearance of the company's documents; absent members are the client's.", object{
		"logo_base64": object{"type": []any{"string", "null"}, "pattern": base64Pattern,
			"description": "A PNG or JPEG image, at most 512 KiB decoded, 4096 pixels on a side and 4194304 in all.",
			"writeOnly":   true},
		"logo_placement": choice("Logo position.", "left", "center", "right"),
		"colours": typed(record("Colours of documents.",
			object{"accent": colour("Lines and titles."), "ink": colour("Text.")}), "object", "null"),
		"font":     choice("Font family.", "sans", "serif"),
		"template": choice("Document template; receipt is an 80 mm roll for simplified documents, full invoices are then classic.", "classic", "modern", "receipt"),
		"footer":   line("Footer text of every page.", account.FooterMax),
	}), "object", "null")
}

func lookupSchemas() object {
	entry := record("One number to validate.", object{
		"country_iso_code":          code("Two letters; EL and XI are accepted.", twoLetters, "IE"),
		"tax_identification_number": filled("Tax number as given by your partner.", 50),
	}, "country_iso_code", "tax_identification_number")
	return object{
		"SingleRequest": entry,
		"BatchRequest": record("Numbers to validate.", object{
			"batch_name": line("Your own name of the batch.", 150),
			"validations": object{"type": "array", "items": ref("SingleRequest"), "minItems": 1, "maxItems": 10000,
				"description": "Numbers; duplicates are each answered but looked up once."},
		}, "validations"),
	}
}

// notification is written where it is used: generators drop an object of its own that only webhooks name, and use it all
// the same.
func notification() object {
	return record("Body of a webhook.", object{
		"event_type": object{"type": "string", "description": "What happened.",
			"examples": []any{"transactions.transaction_completed"}},
		"delivered_at": object{"type": "string", "format": "date-time", "pattern": stampPattern,
			"description": "Time of this delivery attempt, strictly YYYY-MM-DDTHH:mm:ssZ."},
		"resource_id": object{"type": "string", "description": "Id of the resource; for transactions the operation_id."},
		"resource_url": object{"type": "string", "format": "uri",
			"description": "URL of the resource, to fetch with your API key."},
		"webhook_id": object{"type": "string", "pattern": "^[0-9a-f]{40}$",
			"description": "Idempotency key of the event; the same on retries."},
	}, "event_type", "delivered_at", "resource_id", "resource_url", "webhook_id")
}
