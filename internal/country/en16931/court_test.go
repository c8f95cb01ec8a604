package en16931_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tributary/internal/country/en16931"
	"tributary/internal/country/packtest"
	"tributary/internal/needs"
)

// A case is one document that the official rules judge.
type judged struct {
	name    string
	profile en16931.Profile
	doc     *en16931.Invoice
	// rule is broken on purpose; "" for a document that must be accepted.
	rule string
}

// rulesOf are the official rule sets of a profile.
func rulesOf(t testing.TB, p en16931.Profile) []string {
	t.Helper()
	var paths []string
	if p.CII {
		paths = append(paths, "en16931/cii/xslt/EN16931-CII-validation.xslt")
	} else {
		paths = append(paths, "en16931/ubl/xslt/EN16931-UBL-validation.xslt")
	}
	switch {
	case p.Peppol:
		paths = append(paths, "peppol-bis3/xslt/PEPPOL-EN16931-UBL.xslt")
	case p.German && p.CII:
		paths = append(paths, "xrechnung/kosit-schematron-2.5.0/schematron/cii/XRechnung-CII-validation.xsl")
	case p.German:
		paths = append(paths, "xrechnung/kosit-schematron-2.5.0/schematron/ubl/XRechnung-UBL-validation.xsl")
	case p.CII:
		paths = append(paths, "factur-x/xslt/FACTUR-X_EN16931.xslt")
	}
	for i := range paths {
		paths[i] = needs.Schemas(t, filepath.FromSlash(paths[i]))
	}
	return paths
}

// schemaOf is the official schema of a document.
func schemaOf(t testing.TB, p en16931.Profile, d *en16931.Invoice) string {
	t.Helper()
	path := "ubl21/maindoc/UBL-Invoice-2.1.xsd"
	switch {
	case p.CII && !p.German:
		path = "factur-x/xsd/en16931/FACTUR-X_EN16931.xsd"
	case p.CII:
		path = "en16931/cii/xsd/uncefact/data/standard/CrossIndustryInvoice_100pD16B.xsd"
	case d.IsCreditNote():
		path = "ubl21/maindoc/UBL-CreditNote-2.1.xsd"
	}
	return needs.Schemas(t, filepath.FromSlash(path))
}

// court gathers everything that the official rules are asked about, so that one
// Java virtual machine judges it all.
type court struct {
	trials []packtest.Trial
	after  []func(packtest.Verdict)
}

func (c *court) try(rules string, document []byte, after func(packtest.Verdict)) {
	c.trials = append(c.trials, packtest.Trial{Rules: rules, Document: document})
	c.after = append(c.after, after)
}

// randomTrials is how many random documents of each kind are judged: make
// conformance asks for many more.
func randomTrials() int {
	if n, err := strconv.Atoi(os.Getenv("TRIBUTARY_CONFORMANCE")); err == nil {
		return n
	}
	return 4
}

// TestOfficialRules is the one run of the official rules over everything this
// package and the packs of the family make.
func TestOfficialRules(t *testing.T) {
	t.Parallel()
	var c court
	modelTrials(t, &c)
	familyTrials(t, &c)
	lawTrials(t, &c)
	for i, v := range packtest.Judge(t, c.trials) {
		c.after[i](v)
	}
	t.Logf("%d trials", len(c.trials))
}

// modelTrials: whole documents are accepted, whatever our own rules find the
// official ones find under the same name, and the other way round.
func modelTrials(t *testing.T, court *court) {
	t.Helper()
	cases := append(wholeDocuments(), randomDocuments(randomTrials())...)
	if needs.Conformance() || needs.IsLong() {
		cases = append(cases, brokenDocuments()...) // in the gate our own rules alone are asked: TestEveryRuleIsBrokenOnce
	}
	for _, c := range cases {
		document := en16931.Write(c.doc, c.profile)
		var broken, texts []string
		sets := rulesOf(t, c.profile)
		for i, rules := range sets {
			court.try(rules, document, func(v packtest.Verdict) {
				if v.Fired == 0 {
					t.Errorf("%s: no rule looked at the document", c.name)
				}
				broken, texts = append(broken, v.Errors...), append(texts, v.Texts...)
				if i == len(sets)-1 {
					compare(t, c, broken, texts)
				}
			})
		}
	}
	schemaTrials(t, cases)
}

// compare holds what we find against what the official rules find.
func compare(t *testing.T, c judged, official, texts []string) {
	t.Helper()
	var ours []string
	for _, f := range en16931.Check(c.doc, c.profile) {
		ours = append(ours, f.Rule)
	}
	if c.rule == "" {
		if len(official) > 0 || len(ours) > 0 {
			t.Errorf("%s: refused by %v, by our own %v\n%s", c.name, official, ours, strings.Join(texts, "\n"))
		}
		return
	}
	if !slices.Contains(ours, c.rule) {
		t.Errorf("%s: our own rules find %v", c.name, ours)
	}
	found := false
	for _, o := range official {
		found = found || canonical(o) == canonical(c.rule) || o == "UBL-DT-01" && strings.HasPrefix(c.rule, "BR-DEC-")
		if !slices.ContainsFunc(ours, func(r string) bool {
			return canonical(r) == canonical(o)
		}) && !consequence(o, c.rule) {
			t.Errorf("%s: the official rules find %s, ours only %v", c.name, o, ours)
		}
	}
	if !found && !unexecuted(c) {
		t.Errorf("%s: the official rules find %v", c.name, official)
	}
}

// schemaTrials asks the schemas: whole documents are valid.
func schemaTrials(t *testing.T, cases []judged) {
	t.Helper()
	bySchema := map[string][]int{}
	for i, c := range cases {
		if c.rule == "" {
			path := schemaOf(t, c.profile, c.doc)
			bySchema[path] = append(bySchema[path], i)
		}
	}
	for path, members := range bySchema {
		var documents [][]byte
		for _, i := range members {
			documents = append(documents, en16931.Write(cases[i].doc, cases[i].profile))
		}
		documents = append(documents, slices.Concat(documents[0][:len(documents[0])-30], []byte("<x/>"),
			documents[0][len(documents[0])-30:]))
		for j, err := range (packtest.XSD{Path: path}).CheckAll(t, documents) {
			switch broken := j == len(documents)-1; {
			case broken && err == nil:
				t.Errorf("%s takes a broken document", path)
			case !broken && err != nil:
				t.Errorf("%s: %v", cases[members[j]].name, err)
			}
		}
	}
}
