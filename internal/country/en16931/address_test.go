package en16931_test

import (
	"testing"

	"tributary/internal/country/en16931"
)

func TestCheckDigitsOfSchemes(t *testing.T) {
	for _, c := range []struct {
		scheme, id string
		valid      bool
	}{
		{"0208", "0202239951", true}, {"0208", "0202239952", false}, {"0208", "202239951", false},
		{"0208", "be0202239951", false},
		{"0088", "7300010000001", true}, {"0088", "7300010000002", false}, {"0088", "73000100000A1", false},
		{"0192", "987654325", true}, {"0192", "987654321", false}, {"0192", "98765432", false},
		{"0184", "12345674", true}, {"0184", "DK12345674", true}, {"0184", "1234567", false}, {"0184", "SE12345674", false},
		{"0007", "5567321707", true}, {"0007", "5567321708", false}, {"0007", "556732170", false},
		{"0002", "732829320", true}, {"0002", "732829321", false}, {"0009", "73282932000074", true},
		{"0009", "7328293200007", false},
		{"0225", "732829320_73282932000074", true}, {"0225", "732829321", false}, {"0225", "732829320 1", false},
		{"0204", "04011000-12345-03", true}, {"0204", "04011000-12345-34", true}, {"0204", "04011000-1234b-34", false},
		{"0204", "991-33333TEST-33", true}, {"0204", "04011000", false},
		{"0190", "00000001003214345000", true}, {"0190", "0000000100321434500", false},
		{"0191", "12345678", true}, {"0191", "10000018", true}, {"0191", "12345679", false}, {"0191", "1234567", false},
		{"0191", "EE12345678", false},
		{"0106", "12345678", true}, {"0106", "1234567", false},
		{"0216", "003712345671", true}, {"0216", "12345671", false},
		{"0151", "51824753556", true}, {"0151", "51824753557", false},
		{"EM", "a@example.com", true}, {"EM", "example.com", false}, {"EM", "a@b@example.com", false},
		{"9930", "DE111111125", true}, {"9930", "", false}, {"9930", " DE1", false},
	} {
		if got := en16931.ValidIn(c.scheme, c.id); got != c.valid {
			t.Errorf("%s:%s is %v", c.scheme, c.id, got)
		}
	}
}

func TestElectronicAddressesAreDerived(t *testing.T) {
	for _, c := range []struct{ country, legal, vat, want string }{
		{"BE", "0202.239.951", "", "0208:0202239951"},
		{"BE", "", "BE0202239951", "0208:0202239951"},
		{"BE", "202239951", "", "0208:0202239951"},
		{"DE", "HRB 1", "DE111111125", "9930:DE111111125"},
		{"NL", "12345678", "", "0106:12345678"},
		{"NL", "00000001003214345000", "", "0190:00000001003214345000"},
		{"NL", "", "NL010000446B01", "9944:NL010000446B01"},
		{"AT", "", "ATU12345675", "9914:ATU12345675"},
		{"IE", "", "IE1234567T", "9935:IE1234567T"},
		{"DK", "12345674", "", "0184:12345674"},
		{"NO", "", "NO987654325MVA", "0192:987654325"},
		{"SE", "", "SE556732170701", "0007:5567321707"},
		{"FI", "", "FI12345671", "0216:003712345671"},
		{"EE", "12345678", "EE100594102", "0191:12345678"},
		{"EE", "", "EE100594102", "9931:EE100594102"},
		{"LU", "", "LU26375245", "9938:LU26375245"},
		{"FR", "732829320", "", "0225:732829320"},
		{"FR", "732 829 320 00074", "", "0225:732829320_73282932000074"}, // a SIRET stands behind its SIREN
		{"GR", "", "EL094259216", "9933:EL094259216"},
		{"US", "123", "US1", ":"},
		{"DE", "HRB 1", "", ":"},
	} {
		got := en16931.Derive(c.country, c.legal, c.vat)
		if got.Scheme+":"+got.ID != c.want {
			t.Errorf("%s %q %q: %s:%s instead of %s", c.country, c.legal, c.vat, got.Scheme, got.ID, c.want)
		}
	}
}

func TestVATIdentifiersHaveTheirPrefix(t *testing.T) {
	for _, c := range []struct{ country, number, want string }{
		{"DE", "111111125", "DE111111125"}, {"DE", "DE 111 111 125", "DE111111125"}, {"GR", "094259216", "EL094259216"},
		{"NO", "987654325", ""}, {"NO", "NO987654325MVA", "NO987654325MVA"}, {"SE", "556732170701", "SE556732170701"},
		{"DE", "123456789", ""},
	} {
		if got, ok := en16931.VATID(c.country, c.number); got != c.want || ok != (c.want != "") {
			t.Errorf("%s %s: %q", c.country, c.number, got)
		}
	}
}

func TestIBAN(t *testing.T) {
	if !en16931.ValidIBAN("DE89370400440532013000") || en16931.ValidIBAN("DE89370400440532013001") ||
		en16931.ValidIBAN("89370400440532013000") {
		t.Error("check digits of account numbers")
	}
}
