package world_test

import (
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// wholeWorld has every country.
func wholeWorld(t *testing.T) *country.Atlas {
	t.Helper()
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: packs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(atlas.Close)
	return atlas
}

func TestTheWorldIsEveryCountryAndTheReferenceAuthority(t *testing.T) {
	atlas := wholeWorld(t)
	if n := len(atlas.Codes()); n != 250 {
		t.Errorf("%d countries instead of 249 and XX", n)
	}
	if !atlas.Offers("xx", false) || atlas.Offers("XX", true) || !atlas.Offers("IE", true) {
		t.Error("XX is offered with test keys only, a country with both")
	}
}

func TestRecordsAreKeptForTheYearsOfTheLaw(t *testing.T) {
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	others := map[string]int{"DE": 8, "ES": 6}
	for _, p := range packs {
		want, own := others[p.Code]
		if !own {
			want = 10
		}
		if got := p.KeptYears(); got != want {
			t.Errorf("%s keeps records for %d years, want %d", p.Code, got, want)
		}
	}
}
