package taxid_test

import (
	"testing"

	"tributary/internal/country/taxid"
	"tributary/internal/transaction"
)

func TestPartyIsNamedByTheNumberThatItHas(t *testing.T) {
	at := func(kind, country, number string) *transaction.Party {
		p := &transaction.Party{Type: kind, TaxNumber: number}
		if country != "" {
			p.Address = &transaction.Address{CountryCode: country}
		}
		return p
	}
	for name, c := range map[string]struct {
		party *transaction.Party
		want  taxid.Party
	}{
		"nobody": {nil, taxid.Party{Country: "PL", Of: "PL", Person: true}},
		"at home without letters": {at(transaction.Business, "", "526-58-77-635"),
			taxid.Party{Country: "PL", Of: "PL", Home: "5265877635"}},
		"at home, living abroad": {at(transaction.Business, "de", "PL5265877635"),
			taxid.Party{Country: "DE", Of: "PL", Home: "5265877635"}},
		"of the Union by its letters": {at(transaction.Business, "", "DE136695976"),
			taxid.Party{Country: "PL", Of: "DE", State: "DE", Union: "136695976"}},
		"of the Union by its address": {at(transaction.Business, "GR", "094259216"),
			taxid.Party{Country: "GR", Of: "GR", State: "EL", Union: "094259216"}},
		"of a third country": {at(transaction.Business, "US", "12-3456789"), taxid.Party{Country: "US", Of: "US"}},
		"a person with a wrong number": {at(transaction.Individual, "PL", "123"),
			taxid.Party{Country: "PL", Of: "PL", Person: true}},
		"a person who names no number": {at(transaction.Individual, "DE", " "),
			taxid.Party{Country: "DE", Of: "DE", Person: true}},
		"letters of no state are shape": {at(transaction.Business, "CH", "CHE-116.281.710"),
			taxid.Party{Country: "CH", Of: "CH"}},
	} {
		got := taxid.PartyOf("PL", c.party)
		got.Verdict, got.Bare = taxid.Verdict{}, ""
		if got != c.want {
			t.Errorf("%s: %+v, not %+v", name, got, c.want)
		}
	}
	if !taxid.Same("HU", "12892312-2-42", "HU12892312") || taxid.Same("HU", "", "") ||
		taxid.Same("PL", "5265877635", "7740001454") || !taxid.Same("PL", "PL-123", "123") {
		t.Error("one taxpayer is not recognised")
	}
}
