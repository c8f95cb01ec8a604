package satwire

// span is postal codes from one to another, both of them included.
type span struct{ from, to string }

func within(list []span, postalCode string) bool {
	for _, s := range list {
		if len(postalCode) == 5 && s.from <= postalCode && postalCode <= s.to {
			return true
		}
	}
	return false
}

// borderZone is the zone of the municipalities on the border that keep summer
// time with the United States, and of the others that differ from their state
// (Ley de los Husos Horarios en los Estados Unidos Mexicanos, 2022, articles 3
// to 5); "" elsewhere. The codes of a municipality are those that Correos de
// México lists for it.
func borderZone(postalCode string) string {
	switch {
	case within([]span{
		// Coahuila: Piedras Negras, Nava, Acuña; Jiménez, Zaragoza, Morelos, Allende, Villa Unión, Guerrero, Hidalgo; Ocampo
		{"26000", "26328"}, {"26400", "26695"}, {"27500", "27548"},
		{"65000", "65059"}, // Nuevo León: Anáhuac
		// Tamaulipas: Matamoros, Valle Hermoso; Nuevo Laredo to Reynosa; Río Bravo
		{"87300", "87589"}, {"88000", "88875"}, {"88900", "88995"},
	}, postalCode):
		return "America/Matamoros"
	// Ascensión, Janos; Juárez, Guadalupe, Práxedis G. Guerrero
	case within([]span{{"31820", "31849"}, {"32000", "32797"}}, postalCode):
		return "America/Ciudad_Juarez"
	case within([]span{{"32850", "32897"}, {"32980", "32998"}}, postalCode): // Coyame del Sotol, Ojinaga; Manuel Benavides
		return "America/Ojinaga"
	case within([]span{{"63726", "63739"}}, postalCode): // Bahía de Banderas, in Nayarit
		return "America/Bahia_Banderas"
	}
	return ""
}

// BorderRegion reports whether a postal code lies in the northern or the
// southern border region, where IVA may be 8 % (decrees of 2018-12-31, article
// first, 45 municipalities, and of 2020-12-30, article first, 23).
func BorderRegion(postalCode string) bool {
	return within([]span{
		// Baja California, all of it
		{"21000", "22999"},
		// Sonora
		{"83400", "83797"}, {"83860", "83890"}, {"84000", "84118"}, {"84140", "84150"}, {"84180", "84317"}, {"84620", "84637"},
		{"31820", "31849"}, {"32000", "32797"}, {"32850", "32897"}, {"32980", "32998"}, // Chihuahua
		// Coahuila: without Morelos, Allende and Villa Unión
		{"26000", "26328"}, {"26400", "26486"}, {"26640", "26695"}, {"27500", "27548"},
		{"65000", "65059"},                                         // Nuevo León
		{"87300", "87589"}, {"88000", "88875"}, {"88900", "88995"}, // Tamaulipas
		{"24330", "24348"}, {"24640", "24658"}, // Campeche: Candelaria, Calakmul
		// Chiapas
		{"29935", "29939"}, {"29950", "29969"}, {"30140", "30168"}, {"30180", "30189"}, {"30232", "30240"}, {"30700", "30946"},
		{"77000", "77099"}, {"77950", "77997"}, // Quintana Roo: Othón P. Blanco
		{"86900", "86977"}, // Tabasco: Balancán, Tenosique
	}, postalCode)
}
