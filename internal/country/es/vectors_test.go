package es_test

import (
	"testing"

	"tributary/internal/country/es"
)

// AEAT, "Detalle de las especificaciones técnicas para generación de la huella
// o hash de los registros de facturación", 0.1.2, section 6.
func TestHuellasAreThoseOfTheOfficialExamples(t *testing.T) {
	first := es.Huella("89890001K", "12345678/G33", "01-01-2024", "F1", "12.35", "123.45", "", "2024-01-01T19:20:30+01:00")
	if want := "3C464DAF61ACB827C65FDA19F352A4E3BDC2C640E9E9FC4CC058073F38F12F60"; first != want {
		t.Errorf("first record: %s instead of %s", first, want)
	}
	second := es.Huella("89890001K", "12345679/G34", "01-01-2024", "F1", "12.35", "123.45", first,
		"2024-01-01T19:20:35+01:00")
	if want := "F7B94CFD8924EDFF273501B01EE5153E4CE8F259766F88CF6ACB8935802A2B97"; second != want {
		t.Errorf("second record: %s instead of %s", second, want)
	}
	third := es.Huella("89890001K", "12345679/G34", "01-01-2024", "", "", "", second, "2024-01-01T19:20:40+01:00")
	if want := "177547C0D57AC74748561D054A9CEC14B4C4EA23D1BEFD6F2E69E3A388F90C68"; third != want {
		t.Errorf("cancellation: %s instead of %s", third, want)
	}
	if blanks := es.Huella(" 89890001K ", " 12345678/G33", "01-01-2024", "F1", "12.35", "123.45", "",
		"2024-01-01T19:20:30+01:00"); blanks != first {
		t.Error("blanks at the ends of a value count")
	}
}

// AEAT, "Detalle de las especificaciones técnicas del código QR", 0.4.7, sections 4 and 8.
func TestQRTextsAreThoseOfTheOfficialExamples(t *testing.T) {
	for _, c := range []struct {
		live                bool
		number, day, amount string
		want                string
	}{
		{false, "12345678&G33", "01-01-2024", "241.4",
			"https://prewww2.aeat.es/wlpl/TIKE-CONT/ValidarQR?nif=89890001K&numserie=12345678%26G33&fecha=01-01-2024&importe=241.4"},
		{false, "12345678-G33", "01-09-2024", "241.4",
			"https://prewww2.aeat.es/wlpl/TIKE-CONT/ValidarQR?nif=89890001K&numserie=12345678-G33&fecha=01-09-2024&importe=241.4"},
		{true, "12345678-G33", "01-09-2024", "241.4",
			"https://www2.agenciatributaria.gob.es/wlpl/TIKE-CONT/ValidarQR?nif=89890001K&numserie=12345678-G33&fecha=01-09-2024&importe=241.4"},
	} {
		if got := es.QRText(c.live, "89890001K", c.number, c.day, c.amount); got != c.want {
			t.Errorf("%s instead of %s", got, c.want)
		}
	}
}
