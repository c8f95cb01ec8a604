package api

import (
	"tributary/internal/fault"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/result"
	"tributary/internal/series"
	"tributary/internal/transaction"
)

func pathParam(name, about string) param { return param{name, "path", about, object{"type": "string"}} }

func queryParam(name, about string, schema object) param { return param{name, "query", about, schema} }

var pageParams = []param{
	queryParam("limit", "Entries per page.",
		object{"type": "integer", "minimum": 1, "maximum": limitMax, "default": limitDefault}),
	queryParam("cursor", "next_cursor of the previous page.", object{"type": "string"}),
}

func timeParams(what string) []param {
	schema := object{"type": "string", "examples": []any{"2026-01-31T00:00:00Z", "2026-01-31"}}
	return []param{queryParam("from", "Earliest "+what+".", schema), queryParam("to", "Latest "+what+".", schema)}
}

func params(lists ...[]param) (all []param) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func accepted() map[int]any { return map[int]any{202: operationAnswer{}} }

var (
	docSubmit = operationDoc{tag: "Transactions", summary: "Submit a transaction", request: "Transaction",
		example: "invoice", answers: accepted(), refuses: saleCodes, results: resultCodes,
		description: "Idempotent per transaction_id: submitting again is always safe. While an attempt is in progress, another waits for it; after a success only the webhook is sent again."}
	docValidate = operationDoc{tag: "Transactions", summary: "Validate a transaction", request: "Trial",
		example: "invoice", refuses: saleCodes,
		description: "The same checks and the same 400 as a submission, or as a correction if kind is given; nothing is stored. Stored state, such as the original, is not checked.",
		params: []param{queryParam("kind", "Kind of check.",
			object{"type": "string", "enum": list(validateKinds()...), "default": string(transaction.Invoice)})},
		answers: map[int]any{200: validateAnswer{}}}
	docAdjustment = operationDoc{tag: "Transactions", summary: "Adjust a transaction in part", request: "Adjustment",
		example: "adjustment", answers: accepted(), refuses: saleCodes, results: correctionCodes,
		description: "The full payload with reference_transaction_id. Adjustments must not exceed the original in total."}
	docCredit = operationDoc{tag: "Transactions", summary: "Credit a whole transaction", request: "Credit",
		example: "credit", answers: accepted(), refuses: saleCodes, results: correctionCodes}
	docCancellation = operationDoc{tag: "Transactions", summary: "Cancel a transaction", request: "Cancellation",
		example: "cancellation", answers: accepted(), refuses: saleCodes, results: correctionCodes}
	docPayment = operationDoc{tag: "Transactions", summary: "Report money received for earlier transactions",
		request: "PaymentReport", example: "payment", answers: accepted(), refuses: saleCodes, results: correctionCodes,
		description: "In countries with a document for it, such as Mexico (CFDI type P); otherwise 400 unsupported_operation. Partial payments are reported one by one, each with the remaining balance. A cancellation reverses a payment."}
	docBackfill = operationDoc{tag: "Transactions", summary: "Register a document issued elsewhere", request: "Backfill",
		example: "backfill", answers: accepted(), refuses: saleCodes, results: resultCodes}
	docReceive = operationDoc{tag: "Transactions", summary: "Hand over a received document",
		uploads: []string{"application/xml", "application/pdf", "application/pkcs7-mime"},
		answers: accepted(), refuses: []fault.Code{fault.FieldNotValid},
		results:     []fault.Code{fault.FieldNotValid, fault.CodeNotFound, fault.CodeConflict, fault.FieldUnknown, fault.InternalError},
		description: "A document that somebody sent to a company of yours, as bytes, at most 20 MiB. The same bytes again give the same operation; after a FAILURE they are read again. The result has direction RECEIVED."}
	docRespond = operationDoc{tag: "Transactions", summary: "Answer a received document",
		params:  []param{{"operation_id", "path", "Of the received document.", object{"type": "string", "format": "uuid"}}},
		request: "Response", example: "response",
		answers:     map[int]any{202: operationAnswer{}, 404: errorBody{}, 409: errorBody{}, 410: errorBody{}},
		refuses:     []fault.Code{fault.FieldRequired, fault.FieldNotValid, fault.ValidationMatchInvalid, fault.UnsupportedOperation},
		results:     resultCodes,
		description: "Sent once, in the order of the answers to one document, as an operation of kind RESPONSE with a result and a completed event of its own. The same answer again gives the same operation; a different one is 409 where the country takes one only (responses of /v1/countries/{code})."}
	docResult = operationDoc{tag: "Transactions", summary: "Result of an operation",
		params:  []param{{"operation_id", "path", "As returned on submission.", object{"type": "string", "format": "uuid"}}},
		answers: map[int]any{200: result.Result{}, 404: errorBody{}, 410: errorBody{}}}
	docHistory = operationDoc{tag: "Transactions", summary: "Attempts of a transaction, oldest first",
		params:  []param{pathParam("transaction_id", "The client's id, percent-encoded.")},
		answers: map[int]any{200: historyAnswer{}, 404: historyUnknown{}}}
	docList = operationDoc{tag: "Transactions", summary: "List operations, newest first",
		answers:     map[int]any{200: page[result.Row]{}},
		description: "A row is the result without items, payments, attachments and lifecycle. A page is limited in bytes and may be shorter than limit: continue while next_cursor is not null.",
		params: params([]param{
			queryParam("status", "Filter by status.", object{"type": "string", "enum": []any{"SUCCESS", "PROCESSING", "FAILURE"}}),
			queryParam("country_code", "Filter by country.", object{"type": "string"}),
			queryParam("supplier_id", "Filter by supplier; of received documents, the company of yours that sent them.", object{"type": "string"}),
			queryParam("transaction_number", "Filter by number.", object{"type": "string"}),
			queryParam("direction",
				"SENT: what was submitted; RECEIVED: what others sent to your companies; ALL: both.",
				object{"type": "string", "enum": list(directions()...), "default": directions()[0]}),
		}, timeParams("transaction_date"), pageParams)}
	docMe = operationDoc{tag: "Service", summary: "Client, scopes and limits of the key",
		answers: map[int]any{200: meAnswer{}, 400: errorBody{}}}
	docListSeries = operationDoc{tag: "Transactions", summary: "Number series, oldest first",
		params: pageParams, answers: map[int]any{200: page[series.Series]{}},
		description: "next is that of the current year if a series restarts yearly."}
	docCreateSeries = operationDoc{tag: "Transactions", summary: "Create a number series", request: "NewSeries",
		example: "series", refuses: append(shapeCodes[:3:3], fault.UnsupportedCountry, fault.SupplierUnknown),
		answers:     map[int]any{201: series.Series{}, 409: errorBody{}},
		description: "Transactions of this supplier, country and kind without transaction_number get the next one. A number belongs to the transaction_id: it is assigned with the first attempt and kept by all later ones, also after a FAILURE; no number is assigned twice."}
	docCountries = operationDoc{tag: "Countries", summary: "All countries", answers: map[int]any{200: page[countryAnswer]{}},
		description: "enabled_use_case is what the country is enabled for; null: not enabled.",
		params: []param{queryParam("enabled", "true: only countries enabled for this client; false: only the others.",
			object{"type": "boolean"})}}
	docCountry = operationDoc{tag: "Countries", summary: "One country: use cases, fields, rates, corrections, settings, sources",
		params: []param{pathParam("code", "Two letters.")}, answers: map[int]any{200: countryAnswer{}, 404: errorBody{}}}

	docOnboard = operationDoc{tag: "Onboarding", summary: "Onboard a company", request: "Company", example: "company",
		refuses: companyCodes,
		answers: map[int]any{202: onboarding.Envelope{}, 409: errorBody{}}, description: "meta.external_id is the idempotency key."}
	docCompanies = operationDoc{tag: "Onboarding", summary: "List companies", params: pageParams,
		answers: map[int]any{200: page[onboarding.Company]{}}}
	docCompany = operationDoc{tag: "Onboarding", summary: "One company",
		answers: map[int]any{200: onboarding.Company{}, 404: errorBody{}},
		params: []param{pathParam("id", "The company's id."),
			queryParam("external-id", "true: the id is your external_id.", object{"type": "boolean", "default": false})}}
	docPatchCompany = operationDoc{tag: "Onboarding", summary: "Change a company or its credentials",
		request: "CompanyPatch", example: "company-patch", refuses: companyCodes,
		params:  []param{pathParam("id", "The company's id.")},
		answers: map[int]any{202: onboarding.Envelope{}, 404: errorBody{}, 409: errorBody{}}}
	docCloseCompany = operationDoc{tag: "Onboarding", summary: "Close a company",
		params: []param{pathParam("id", "The company's id.")}, answers: map[int]any{204: nil, 404: errorBody{}, 409: errorBody{}},
		description: "Nothing more is issued on its behalf, its credentials are deleted, its tax number may be onboarded again under another external_id. What it issued is kept. Rejected while it has transactions in progress."}
	docJob = operationDoc{tag: "Onboarding", summary: "Status of an onboarding job",
		params:  []param{pathParam("job_id", "As returned on creation.")},
		answers: map[int]any{200: onboarding.Envelope{}, 404: errorBody{}}}

	docCreateBatch = operationDoc{tag: "Lookup", summary: "Validate up to 10,000 tax numbers", request: "BatchRequest",
		example: "batch", answers: map[int]any{202: lookup.Batch{}}}
	docBatch = operationDoc{tag: "Lookup", summary: "A batch and its results",
		params:  params([]param{pathParam("id", "The batch's id.")}, pageParams),
		answers: map[int]any{200: whole{lookup.Batch{}, []string{"next_cursor"}}, 404: errorBody{}}}
	docCancelBatch = operationDoc{tag: "Lookup", summary: "Cancel a batch",
		params: []param{pathParam("id", "The batch's id.")}, answers: map[int]any{204: nil, 404: errorBody{}, 409: errorBody{}},
		description: "Finished entries keep their result. A canceled batch has no event; a completed one cannot be canceled."}
	docCreateSingle = operationDoc{tag: "Lookup", summary: "Validate one tax number", request: "SingleRequest",
		example: "single", answers: map[int]any{202: lookup.Single{}}}
	docSingle = operationDoc{tag: "Lookup", summary: "A single validation", params: []param{pathParam("id", "Its id.")},
		answers: map[int]any{200: lookup.Single{}, 404: errorBody{}}}

	docEvents = operationDoc{tag: "Webhooks", summary: "Events and their delivery, for reconciliation",
		answers: map[int]any{200: page[eventAnswer]{}},
		params: params([]param{queryParam("status", "Filter by status.",
			object{"type": "string", "enum": []any{"pending", "delivered", "discarded", "unsubscribed"}})},
			timeParams("created_at"), pageParams)}
	docRedeliver = operationDoc{tag: "Webhooks", summary: "Redeliver an event",
		params:  []param{pathParam("webhook_id", "As in the webhook.")},
		answers: map[int]any{202: redeliverAnswer{}, 404: errorBody{}, 409: errorBody{}}}
	docDocument = operationDoc{tag: "Documents", summary: "A generated document",
		description: "With a signed, expiring URL from a result, or with the owner's API key.",
		params: []param{pathParam("resource_id", "As in the attachment."),
			queryParam("exp", "Expiry, as in the signed URL.", object{"type": "string"}),
			queryParam("kid", "Key id of the signature.", object{"type": "string"}),
			queryParam("sig", "The signature.", object{"type": "string"}),
			{"format", "path", "pdf, xml, json, png, jpeg, csv or zip, as in the attachment.",
				object{"type": "string", "enum": []any{"pdf", "xml", "json", "png", "jpeg", "csv", "zip"}}}},
		answers: map[int]any{200: media{"application/pdf", "application/xml", "application/json", "image/png", "image/jpeg",
			"text/csv", "application/zip"}, 403: errorBody{},
			404: errorBody{}, 410: errorBody{}}}
	docOpenAPI = operationDoc{tag: "Service", summary: "This document", answers: map[int]any{200: object{}}}
	docDocs    = operationDoc{tag: "Service", summary: "The documentation", answers: map[int]any{303: nil}}
	docPage    = operationDoc{tag: "Service", summary: "A page of the documentation",
		description: "All resources of its pages are served from here as well. `search.html?q=WORDS` is the search.",
		params:      []param{pathParam("page", "Its name.")},
		answers:     map[int]any{200: media{"text/html", "text/css", "text/javascript", "image/svg+xml"}, 404: errorBody{}}}
	docHealth = operationDoc{tag: "Service", summary: "Liveness check", answers: map[int]any{200: media{"text/plain"}}}
	docReady  = operationDoc{tag: "Service", summary: "Readiness check",
		description: "200 if requests can be served, also while nothing can be stored; with write=1 it is 503 then.",
		params: []param{queryParam("write", "1: also check that something can be stored.",
			object{"type": "string", "enum": list("1")})},
		answers: map[int]any{200: media{"text/plain"}, 503: errorBody{}}}
)
