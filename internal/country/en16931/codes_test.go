package en16931_test

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tributary/internal/needs"
)

// lists says which official list stands in which constant. Where the two
// syntaxes disagree, a code counts that both know: a document can be written
// in either.
var lists = []struct{ constant, rule, text string }{
	{"invoiceTypes", "BR-CL-01", "UNTDID 1001, invoices"},
	{"creditNoteTypes", "BR-CL-01#2", "UNTDID 1001, credit notes"},
	{"currencies", "BR-CL-04", "ISO 4217"},
	{"taxPointCodes", "BR-CL-06", "UNTDID 2005, restricted"},
	{"objectSchemes", "BR-CL-07", "UNTDID 1153"},
	{"noteSubjects", "BR-CL-08", "UNTDID 4451"},
	{"identifierSchemes", "BR-CL-10", "ISO/IEC 6523"},
	{"classSchemes", "BR-CL-13", "UNTDID 7143"},
	{"countries", "BR-CL-14", "ISO 3166-1 with 1A and XI"},
	{"paymentMeansCodes", "BR-CL-16", "UNTDID 4461"},
	{"categories", "BR-CL-17", "UNTDID 5305"},
	{"allowanceReasons", "BR-CL-19", "UNTDID 5189"},
	{"chargeReasons", "BR-CL-20", "UNTDID 7161"},
	{"exemptionCodes", "BR-CL-22", "CEF VATEX"},
	{"units", "BR-CL-23", "UN/ECE Recommendations 20 and 21"},
	{"addressSchemes", "BR-CL-25", "CEF EAS"},
	{"peppolSchemes", "eaid", "Peppol participant identifier schemes"},
}

// The code lists in the program are those of the official rules, and nothing else.
func TestCodeListsAreThoseOfTheOfficialRules(t *testing.T) {
	ubl := officialLists(t, "en16931/ubl/xslt/EN16931-UBL-validation.xslt")
	cii := officialLists(t, "en16931/cii/xslt/EN16931-CII-validation.xslt")
	peppol := regexp.MustCompile(`name="eaid" select="tokenize\('([^']*)'`).FindSubmatch(
		official(t, "peppol-bis3/xslt/PEPPOL-EN16931-UBL.xslt"))
	if peppol == nil {
		t.Fatal("the list of Peppol's schemes was not found")
	}
	ubl["eaid"] = strings.Fields(string(peppol[1]))
	var out bytes.Buffer
	out.WriteString("package en16931\n\n// Code generated from the official rules by go test -run TestCodeLists -update; DO NOT EDIT.\n\nconst (\n")
	for _, l := range lists {
		codes := ubl[l.rule]
		if len(codes) == 0 {
			t.Fatalf("%s: no codes found", l.rule)
		}
		if other := cii[l.rule]; len(other) > 0 && l.rule != "BR-CL-06" && l.rule != "BR-CL-01" {
			codes = slices.DeleteFunc(slices.Clone(codes), func(c string) bool { return !slices.Contains(other, c) })
		}
		fmt.Fprintf(&out, "\t// %s: %s.\n\t%s = %s\n", l.rule[:min(8, len(l.rule))], l.text, l.constant, wrapped(codes))
	}
	out.WriteString(")\n")
	text, err := format.Source(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if updating() {
		if err := os.WriteFile("codes.go", text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, text) {
		t.Error("codes.go is not what the official rules list: go test -run TestCodeLists -update")
	}
}

func wrapped(codes []string) string {
	var out strings.Builder
	line := " "
	for _, c := range codes {
		line += c + " "
		if len(line) > 110 {
			fmt.Fprintf(&out, "%q +\n\t\t", line)
			line = ""
		}
	}
	fmt.Fprintf(&out, "%q", line)
	return out.String()
}

var (
	assertion = regexp.MustCompile(
		`(?s)<svrl:failed-assert test="([^"]*)">\s*<xsl:attribute name="id">([^<]*)</xsl:attribute>`)
	codeList = regexp.MustCompile(`' ([^']{3,}) '`)
)

// officialLists finds the lists that stand in the tests of the code-list rules.
func officialLists(t *testing.T, path string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, m := range assertion.FindAllSubmatch(official(t, path), -1) {
		rule := string(m[2])
		if !strings.HasPrefix(rule, "BR-CL-") || rule == "BR-CL-24" {
			continue
		}
		text := strings.NewReplacer("\n", " ", "&#xA;", " ", "\t", " ").Replace(string(m[1]))
		text = regexp.MustCompile(`'\s+`).ReplaceAllString(text, "' ")
		for i, l := range codeList.FindAllStringSubmatch(text, -1) {
			key := rule
			if i > 0 {
				key = fmt.Sprintf("%s#%d", rule, i+1)
			}
			found[key] = strings.Fields(l[1])
		}
	}
	return found
}

// official reads a file of the official artefacts.
func official(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(needs.Schemas(t), filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
