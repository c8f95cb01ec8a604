package account_test

import (
	"testing"

	"tributary/internal/account"
)

// A country's look is the client's where it says nothing itself.
func TestALookOfACountryWinsOverTheClients(t *testing.T) {
	t.Parallel()
	c := account.Config{
		LogoPlacement: account.Right, Colours: account.Colours{Accent: "#111111", Ink: "#222222"}, Font: account.Serif,
		Template: account.Classic, Footer: "all",
		Looks: map[string]account.CountryAppearance{"ES": {Template: account.Modern, Footer: "Spain",
			Colours: account.Colours{Accent: "#333333"}}},
	}
	if got, want := c.AppearanceIn("ES"), (account.Appearance{LogoPlacement: account.Right,
		Colours: account.Colours{Accent: "#333333", Ink: "#222222"}, Font: account.Serif, Template: account.Modern,
		Footer: "Spain"}); got != want {
		t.Errorf("ES: %+v", got)
	}
	if got := c.AppearanceIn("PL"); got.Template != account.Classic || got.Footer != "all" ||
		got.Colours.Accent != "#111111" {
		t.Errorf("PL: %+v", got)
	}
}
