package country_test

import (
	"strings"
	"testing"

	"tributary/internal/country"
)

const codesTable = `# a comment
> Correct it.
1142 The tax is wrong.
3000 It is there already.
CFDI40119 The total is wrong.
> Wait.
440 It is a duplicate.
21405 A value is wrong.
SCHEMA_VIOLATION It has no such structure.
FORBIDDEN It is not allowed.
refused It was refused.
`

func TestCodesAreFoundWhereTheyAreMeantAsCodes(t *testing.T) {
	p := country.Pack{Codes: country.ReadCodes(codesTable)}
	p.Facts.Authority = &country.Authority{System: "KSeF 2.0 (API 2.6.0)"}
	for text, want := range map[string]string{
		"1142: El campo CuotaRepercutida tiene un valor incorrecto":                "1142",
		"accepted with errors, 1142: El campo":                                     "1142",
		"send: rejected, 1142: El campo":                                           "1142",
		"nothing was submitted: AEAT refused the call: Codigo[3000].El XML":        "3000",
		"CFDI40119: El campo Total no corresponde":                                 "CFDI40119",
		"calling stamp: CFDI40119 - El campo":                                      "CFDI40119",
		"KSeF: 440 Duplikat faktury: Duplikat faktury":                             "440",
		"the credentials do not work: KSeF: 440 Duplikat":                          "440",
		"KSeF: Bad Request; 21405 Błąd walidacji danych wejściowych.: 440 Złotych": "21405",
		"NAV refused manageInvoice with status 400: SCHEMA_VIOLATION 1142 x":       "SCHEMA_VIOLATION",
		"NAV refused tokenExchange with status 403: FORBIDDEN":                     "FORBIDDEN",
		"refused: the script says so":                                              "refused",
		"accepted with a remark, SCHEMA_VIOLATION: x; FORBIDDEN: y; FORBIDDEN: z":  "SCHEMA_VIOLATION FORBIDDEN",
		"440 - El comprobante":                                                     "440",
		"":                                                                         "",
		"9999: nobody knows it":                                                    "",
		"it was refused by the receiver":                                           "",
		"the call was refused":                                                     "",
		"the total is 1142":                                                        "",
		"total: 3000 EUR, paid 440,00":                                             "",
		"Kwota: 440 PLN":                                                           "",
		"Kwota: 440 Złotych":                                                       "",
		"no podrá ser superior a 3.000.":                                           "",
		"3000.00 is more than 1,142.00":                                            "",
		"3,000: too much":                                                          "",
		"invoice 2026-1142: is there":                                              "",
		"number A1142: is there":                                                   "",
		"CFDI401190: another":                                                      "",
		"MY_SCHEMA_VIOLATION: another":                                             "",
		"[3000]":                                                                   "",
		"line 2; 440 Euro were paid":                                               "",
		"calling stamp: status 440, the provider is away; the lane waits\xff1142: x": "",
	} {
		var got []string
		for _, c := range p.Explain(text) {
			got = append(got, c.Code)
			if c.Meaning == "" || c.Do == "" {
				t.Errorf("%q: %+v", text, c)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, not %s", text, got, want)
		}
	}
	if got := (country.Pack{}).Explain("1142: x"); got != nil {
		t.Errorf("a pack without codes explains %v", got)
	}
}

func TestATableOfCodesIsReadInGroups(t *testing.T) {
	got := country.ReadCodes(codesTable)
	var order []string
	for _, c := range got {
		order = append(order, c.Code)
	}
	if want := "CFDI40119 FORBIDDEN SCHEMA_VIOLATION refused 440 1142 3000 21405"; strings.Join(order, " ") != want {
		t.Errorf("%v, not %s", order, want)
	}
	if got[4] != (country.AuthorityCode{Code: "440", Meaning: "It is a duplicate.", Do: "Wait."}) {
		t.Errorf("%+v", got[4])
	}
}

func TestAPackWhoseCodesExplainNothingIsRefused(t *testing.T) {
	for _, table := range []string{"> Do.\n1 One.\n1 Again.\n", "1 Without an advice.\n", "> Do.\n1\n",
		"> Do.\na-b Two words.\n"} {
		_, err := country.NewAtlas(country.AtlasConfig{
			Packs: []country.Pack{{Code: "XX", Name: "x", Version: "1", Codes: country.ReadCodes(table)}}})
		if err == nil || !strings.Contains(err.Error(), "the authority's code") {
			t.Errorf("%q: %v", table, err)
		}
	}
}
