package taxid_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invopop/gobl/tax"
	"pgregory.net/rapid"

	"tributary/internal/country/taxid"
	"tributary/internal/leaks"
	"tributary/internal/mutate"
)

func TestMain(m *testing.M) { leaks.Main(m) }

type vector struct{ country, number string }

// vectors reads a file of one country and number a line, separated by a tab.
func vectors(tb testing.TB, name string) []vector {
	tb.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var all []vector
	for lines := bufio.NewScanner(file); lines.Scan(); {
		country, number, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			tb.Fatalf("%s: no tab in %q", name, lines.Text())
		}
		all = append(all, vector{country, number})
	}
	return all
}

func euAndNorthernIreland() []string {
	return strings.Fields("AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK XI")
}

// The numbers stand on invoices, imprints and registers' own pages.
func TestRealNumbersAreValid(t *testing.T) {
	seen := map[string]int{}
	for _, c := range vectors(t, "valid.tsv") {
		v := taxid.Check(c.country, c.number)
		if !v.Valid || v.Reason != "" {
			t.Errorf("%s %q: %+v", c.country, c.number, v)
		}
		again := taxid.Check(v.Country, v.Number)
		if !again.Valid || again.Number != v.Number {
			t.Errorf("%s %q: normal form %q gives %+v", c.country, c.number, v.Number, again)
		}
		seen[v.Country]++
	}
	for _, c := range euAndNorthernIreland() {
		if seen[c] < 1 {
			t.Errorf("%s has no vector", c)
		}
		if taxid.RuleOf(c) != taxid.CheckDigit {
			t.Errorf("%s has no check digits", c)
		}
	}
}

func TestWrongNumbersAreRefusedWithAReason(t *testing.T) {
	for _, c := range vectors(t, "invalid.tsv") {
		if v := taxid.Check(c.country, c.number); v.Valid || v.Reason == "" {
			t.Errorf("%s %q: %+v", c.country, c.number, v)
		}
	}
}

func TestEveryRegimeOfTheLibraryHasARule(t *testing.T) {
	for _, r := range tax.AllRegimeDefs() {
		code, ok := taxid.CountryCode(string(r.Country))
		if !ok || taxid.RuleOf(code) == taxid.Shape || taxid.RuleOf(code) == taxid.NoRule {
			t.Errorf("%s: code %q, rule %q", r.Country, code, taxid.RuleOf(code))
		}
		if v := taxid.Check(code, "not-a-number-at-all"); v.Valid {
			t.Errorf("%s accepts anything", r.Country)
		}
	}
}

func TestCountryCodes(t *testing.T) {
	for in, want := range map[string]string{"DE": "DE", "de": "DE", "EL": "GR", "el": "GR", "GR": "GR", "XI": "XI",
		"XX": "XX",
		"GB": "GB", "JP": "JP", "EU": "", "QQ": "", "": "", "D": "", "DEU": "", "ß": "", "ÄÖ": "", "1A": ""} {
		got, ok := taxid.CountryCode(in)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", in, got, ok, want)
		}
	}
}

func TestVIESSpelling(t *testing.T) {
	for _, c := range []struct{ country, number, state, spelled string }{
		{"GR", "GR 094012834", "EL", "094012834"},
		{"EL", "094012834", "EL", "094012834"},
		{"BE", "444.503.092", "BE", "0444503092"},
		{"BE", "0444.503.092", "BE", "0444503092"},
		{"HU", "12892312-2-42", "HU", "12892312"},
		{"FR", "SIREN", "", ""},
		{"FR", "303265045", "FR", "40303265045"},
		{"XI", "GB 366303068", "XI", "366303068"},
		{"AT", "ATU13585627", "AT", "U13585627"},
		{"GB", "366303068", "", ""},
		{"DE", "136695977", "", ""},
		{"XX", "100", "", ""},
	} {
		state, number, served := taxid.Check(c.country, c.number).VIES()
		if state != c.state || number != c.spelled || served != (c.state != "") {
			t.Errorf("%s %q: %q %q %v", c.country, c.number, state, number, served)
		}
	}
}

func TestInputLimits(t *testing.T) {
	number := "136695976"
	atLimit := number + strings.Repeat(" ", 64-len(number))
	if v := taxid.Check("DE", atLimit); !v.Valid {
		t.Errorf("64 bytes: %+v", v)
	}
	if v := taxid.Check("DE", atLimit+" "); v.Valid {
		t.Error("65 bytes are read")
	}
	for length, want := range map[int]bool{1: false, 2: true, 20: true, 21: false} {
		if v := taxid.Check("JP", strings.Repeat("7", length)); v.Valid != want || v.Rule != taxid.Shape {
			t.Errorf("shape of %d: %+v", length, v)
		}
	}
}

// Punctuation, case and the country's prefix carry no meaning anywhere.
func TestDecorationChangesNothing(t *testing.T) {
	valid := vectors(t, "valid.tsv")
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(valid).Draw(t, "number")
		plain := taxid.Check(c.country, c.number)
		var b strings.Builder
		if taxid.InVIES(plain.Country) && rapid.Bool().Draw(t, "prefix") {
			prefix := plain.Country
			if prefix == "GR" {
				prefix = rapid.SampledFrom([]string{"GR", "EL"}).Draw(t, "greek")
			}
			b.WriteString(prefix)
		}
		for _, r := range plain.Number {
			b.WriteString(rapid.SampledFrom([]string{"", "", "", " ", ".", "-", "/", "\u00a0", "\u2013"}).Draw(t, "between"))
			b.WriteRune(r)
		}
		text := b.String()
		if rapid.Bool().Draw(t, "lower") {
			text = strings.ToLower(text)
		}
		if len(text) > 64 {
			t.Skip("longer than any tax number may be")
		}
		if got := taxid.Check(strings.ToLower(plain.Country), text); got != plain {
			t.Fatalf("%q gives %+v, plain %+v", text, got, plain)
		}
	})
}

// guaranteed lists the countries whose arithmetic finds every wrong digit, with
// the form numbers are drawn in: 9 is any digit, A any letter, anything else itself.
// Countries that fold two remainders into one digit (BG, CZ, GR, LT, PT, RO)
// and those with two systems side by side (GB, NL) cannot promise it.
func guaranteed() map[string]string {
	return map[string]string{
		"EE": "999999999", "FI": "99999999", "HR": "99999999999", "HU": "99999999", "LU": "99999999", "MT": "99999999",
		"SI": "99999999", "SK": "9929999999", "CY": "99999999A", "AT": "U99999999", "BE": "0999999999", "DE": "999999999",
		"DK": "99999999", "IT": "99999999999", "PL": "9999999999", "SE": "999999999901", "FR": "99999999999",
		"IE": "9999999A",
		"ES": "99999999A", "CA": "999999999", "NO": "999999999", "LV": "49999999999",
	}
}

func TestEverySingleWrongDigitIsFound(t *testing.T) {
	for country, form := range guaranteed() {
		t.Run(country, func(t *testing.T) {
			found := 0
			rapid.Check(t, func(t *rapid.T) {
				n, ok := drawValid(t, country, form)
				if !ok {
					return
				}
				found++
				at := rapid.IntRange(0, len(n)-1).Draw(t, "position")
				if form[at] != '9' && form[at] != 'A' {
					return
				}
				for _, other := range alternatives(form[at]) {
					if byte(other) == n[at] {
						continue
					}
					mutant := n[:at] + string(other) + n[at+1:]
					if v := taxid.Check(country, mutant); v.Valid {
						t.Fatalf("%s is valid beside %s", mutant, n)
					}
				}
			})
			if found == 0 {
				t.Error("no valid number was ever drawn")
			}
		})
	}
}

func alternatives(class byte) string {
	if class == 'A' {
		return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	}
	return "0123456789"
}

// drawValid draws a number of a form and completes it by trying its last places.
func drawValid(t *rapid.T, country, form string) (string, bool) {
	n := []byte(form)
	var open []int
	for i, class := range n {
		if class == '9' || class == 'A' {
			n[i] = rapid.SampledFrom([]byte(alternatives(class))).Draw(t, "character")
			open = append(open, i)
		}
	}
	// French keys stand in front, everybody else's check digits behind.
	var places []int
	switch country {
	case "FR":
		places = open[:2]
	case "BE", "LU", "MT":
		places = open[len(open)-2:]
	default:
		places = open[len(open)-1:]
	}
	return complete(country, form, n, places)
}

// complete tries every filling of some places until the number is valid.
func complete(country, form string, n []byte, places []int) (string, bool) {
	if len(places) == 0 {
		return string(n), taxid.Check(country, string(n)).Valid
	}
	for _, c := range alternatives(form[places[0]]) {
		n[places[0]] = byte(c)
		if found, ok := complete(country, form, n, places[1:]); ok {
			return found, true
		}
	}
	return "", false
}

// Countries with folded remainders still refuse most wrong last digits: of ten
// endings at most the published number of them is valid.
func TestAPayloadHasOneCheckDigit(t *testing.T) {
	forms := map[string]string{"RO": "999999999", "CZ": "1999999", "GR": "99999999", "PT": "29999999",
		"LT": "9999999" + "1"}
	for country, payload := range forms {
		t.Run(country, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := []byte(payload)
				for i := range n {
					if n[i] == '9' {
						n[i] = byte(rapid.IntRange('1', '9').Draw(t, "digit"))
					}
				}
				endings := 0
				for d := byte('0'); d <= '9'; d++ {
					if taxid.Check(country, string(n)+string(d)).Valid {
						endings++
					}
				}
				if endings != 1 {
					t.Fatalf("%s has %d check digits", n, endings)
				}
			})
		})
	}
}

func TestPrefixWithoutARuleNeedsADigitBehind(t *testing.T) {
	for in, want := range map[string]string{"JP 123": "123", "JPJP12": "JPJP12", "JPX9": "JPX9", "12": "12"} {
		if v := taxid.Check("JP", in); !v.Valid || v.Number != want {
			t.Errorf("%q: %+v", in, v)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, c := range vectors(f, "valid.tsv") {
		f.Add(c.country, c.number)
	}
	for _, c := range vectors(f, "invalid.tsv") {
		f.Add(c.country, c.number)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, country, number string) {
		v := taxid.Check(country, number)
		if v.Valid != (v.Reason == "") {
			t.Fatalf("%q %q: %+v", country, number, v)
		}
		if !v.Valid {
			return
		}
		if again := taxid.Check(v.Country, v.Number); again != v {
			t.Fatalf("%q %q: %+v, then %+v", country, number, v, again)
		}
		if state, spelled, served := v.VIES(); served && (len(state) != 2 || len(spelled) < 2 || len(spelled) > 12) {
			t.Fatalf("%q %q: VIES %q %q", country, number, state, spelled)
		}
	})
}

func BenchmarkCheck10000(b *testing.B) {
	valid := vectors(b, "valid.tsv")
	for b.Loop() {
		for i := range 10_000 {
			c := valid[i%len(valid)]
			taxid.Check(c.country, c.number)
		}
	}
}

func TestABareNumberHasLettersAndDigitsAlone(t *testing.T) {
	for text, want := range map[string]string{"": "", " pl 526-587.76/35 ": "PL5265877635", "Ñ12é": "12", "－１": ""} {
		if got := taxid.Bare(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
