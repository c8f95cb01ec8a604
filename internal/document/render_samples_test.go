package document_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"sync"
	"testing"
	"time"

	"eliasnaur.com/font/roboto/robotomedium"
	"github.com/invopop/gobl/num"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"tributary/internal/country"
	"tributary/internal/document"
	"tributary/internal/document/typeset"
	"tributary/internal/transaction"
)

// sample is a document of the golden set: one of every kind, and the cases in
// which layout goes wrong.
type sample struct {
	name   string
	visual document.Visual
}

func newRenderer(t testing.TB) *document.Renderer {
	t.Helper()
	r, err := document.NewRenderer(typeset.WithSystem())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shared is the renderer of tests that do not care for a fresh one.
var shared = sync.OnceValues(func() (*document.Renderer, error) { return document.NewRenderer(typeset.WithSystem()) })

func sharedRenderer(t testing.TB) *document.Renderer {
	t.Helper()
	r, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func render(t testing.TB, v document.Visual) []byte {
	t.Helper()
	out, err := sharedRenderer(t).Render(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return out.PDF
}

// totalled fills in the totals as the service does.
func totalled(t testing.TB, v document.Visual) document.Visual {
	t.Helper()
	totals, faults := transaction.Calculate(v.Transaction.Items)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	v.Totals = totals
	return v
}

func amount(t testing.TB, s string) num.Amount {
	t.Helper()
	a, err := num.AmountFromString(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func vat(t testing.TB, rate, mode, kind string) transaction.Tax {
	return transaction.Tax{Rate: amount(t, rate), Regime: transaction.VAT, Mode: mode, Type: kind}
}

func samples(t testing.TB) []sample {
	t.Helper()
	return []sample{
		{"es-invoice", spanishInvoice(t)},
		{"es-receipt", spanishReceipt(t)},
		{"pl-credit-note", polishCreditNote(t)},
		{"de-adjustment", germanAdjustment(t)},
		{"mx-cancellation", mexicanCancellation(t)},
		{"en-invoice-many-pages", longInvoice(t, 120)},
		{"fr-factur-x", frenchFacturX(t)},
		{"el-invoice", greekInvoice(t)},
		{"en-marketplace-serif", marketplaceInvoice(t)},
	}
}

func spanishInvoice(t testing.TB) document.Visual {
	iva := vat(t, "21", transaction.Added, transaction.TaxStandard)
	reduced := vat(t, "10", transaction.Added, transaction.TaxReduced)
	irpf := transaction.Tax{Rate: amount(t, "15"), Regime: transaction.Withholding, Type: "IRPF"}
	return totalled(t, document.Visual{
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: "ES", LanguageCode: "ES", CurrencyCode: "EUR",
			Date: time.Date(2025, 11, 13, 23, 30, 0, 0, time.UTC), Number: "F-2025-00042", ID: "t-1",
			Items: []transaction.Item{
				{Number: 1, Name: "Diseño de identidad corporativa",
					Description: "Logotipo, papelería y manual de uso en dos idiomas", Quantity: amount(t, "1"), Unit: "ud",
					UnitPrice: 185000, Type: transaction.Services, Taxes: []transaction.Tax{iva, irpf}},
				{Number: 2, Name: "Consultoría de accesibilidad", Quantity: amount(t, "12.5"), Unit: "h", UnitPrice: 6800,
					Type: transaction.Services, Taxes: []transaction.Tax{iva, irpf}},
				{Number: 3, Name: "Catálogo impreso, 48 páginas", Code: "CAT-48", EAN: "8412345678905", Quantity: amount(t, "250"),
					Unit: "ud", UnitPrice: 412, Type: transaction.Goods, Taxes: []transaction.Tax{reduced}},
				{Number: 4, Name: "Descuento por pronto pago", Quantity: amount(t, "1"), UnitPrice: -5000,
					Type: transaction.Discount, Taxes: []transaction.Tax{iva}},
			},
			Customer: &transaction.Party{LegalName: "Museo de la Ciencia de Valdeluz, S.A.", TaxNumber: "A58818501",
				Type: transaction.Business,
				Address: &transaction.Address{CountryCode: "ES", City: "Guadalajara", PostalCode: "19139",
					AddressLine1: "Avenida de la Ilustración", Number: "27", Province: "Guadalajara"}},
			Note: "<p>Gracias por su confianza. Puede pagar por transferencia a <b>ES91 2100 0418 4502 0005 1332</b> <i>antes del 15 de diciembre</i>.</p>" +
				"<ul><li>Indique el número de factura en el concepto.</li><li>Los originales se entregan <u>en formato vectorial</u>.</li></ul>",
			Payments: []transaction.Payment{{Type: "TRANSFER", Amount: 393450}},
		},
		Supplier: country.Supplier{CountryCode: "ES", LegalName: "Estudio Norte y Brújula, S.L.", TaxNumber: "B12345674",
			CompanyNumber: "M-123456",
			Address: transaction.Address{CountryCode: "ES", City: "Madrid", PostalCode: "28014",
				AddressLine1: "Calle del Prado", Number: "8", AddressLine2: "3.º izquierda", Province: "Madrid"}},
		Location: location(t, "Europe/Madrid"), IssuedAt: time.Date(2025, 11, 14, 0, 0, 5, 0, time.UTC),
		UniqueNumber: "ES-000000042-7",
		Imprint: country.Imprint{
			Identifiers: []country.Identifier{{Label: "CSV", Value: "A-7K3M9QX2LT4WPD"},
				{Label: "Huella", Value: "3C464DAF61ACB827C65FDA19F352A4E3BDC2C640E9E9FC4CC058073F38F12F60"}},
			Codes: []country.Code{{Title: "QR tributario:", Caption: "VERI*FACTU",
				Text: "https://www2.agenciatributaria.gob.es/wlpl/TIKE-CONT/ValidarQR?nif=B12345674&numserie=F-2025-00042&fecha=14-11-2025&importe=4339.50"}},
			Texts: []string{"Factura verificable en la sede electrónica de la AEAT. Inscrita en el Registro Mercantil de Madrid, tomo 12.345, folio 67, hoja M-123456."},
		},
		Branding: document.Branding{Logo: logoPNG(t, "norte", color.RGBA{0xB4, 0x53, 0x09, 0xFF}), Accent: "#B45309"},
	})
}

func spanishReceipt(t testing.TB) document.Visual {
	iva := vat(t, "10", transaction.Included, transaction.TaxReduced)
	return totalled(t, document.Visual{
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: "ES", LanguageCode: "ES", CurrencyCode: "EUR",
			Date: time.Date(2025, 11, 14, 9, 12, 0, 0, time.UTC), Number: "T-88121", ID: "t-2",
			Items: []transaction.Item{
				{Number: 1, Name: "Café con leche", Quantity: amount(t, "2"), UnitPrice: 190, Taxes: []transaction.Tax{iva}},
				{Number: 2, Name: "Tostada con tomate", Quantity: amount(t, "2"), UnitPrice: 320, Taxes: []transaction.Tax{iva}},
				{Number: 3, Name: "Agua mineral 0,5 l", Quantity: amount(t, "1"), UnitPrice: 150, Taxes: []transaction.Tax{iva}},
			},
			Payments: []transaction.Payment{{Type: "CARD", Amount: 1170}},
		},
		Simplified: true,
		Supplier: country.Supplier{CountryCode: "ES", LegalName: "Cafetería La Espiga, C.B.", TaxNumber: "E12345678",
			Address: transaction.Address{CountryCode: "ES", City: "Salamanca", PostalCode: "37002", AddressLine1: "Plaza Mayor",
				Number: "14"}},
		Location: location(t, "Europe/Madrid"), IssuedAt: time.Date(2025, 11, 14, 9, 12, 3, 0, time.UTC),
		UniqueNumber: "ES-000000043-5",
		Imprint: country.Imprint{
			Codes: []country.Code{{Title: "QR tributario:", Caption: "VERI*FACTU",
				Text: "https://www2.agenciatributaria.gob.es/wlpl/TIKE-CONT/ValidarQR?nif=E12345678&numserie=T-88121&fecha=14-11-2025&importe=11.70"}},
		},
	})
}

func polishCreditNote(t testing.TB) document.Visual {
	rate := amount(t, "4.2536")
	standard, reduced := vat(t, "23", transaction.Added, transaction.TaxStandard),
		vat(t, "8", transaction.Added, transaction.TaxReduced)
	return totalled(t, document.Visual{
		Transaction: transaction.Transaction{
			Kind: transaction.Credit, CountryCode: "PL", LanguageCode: "PL", CurrencyCode: "EUR",
			Date: time.Date(2025, 11, 14, 10, 0, 0, 0, time.UTC), Number: "KOR/2025/11/7", ID: "t-3",
			Items: []transaction.Item{
				{Number: 1, Name: "Żarówka LED 9 W, ciepła biel", Quantity: amount(t, "40"), Unit: "szt.", UnitPrice: -315,
					Taxes: []transaction.Tax{standard}},
				{Number: 2, Name: "Książka „Źdźbło”", Quantity: amount(t, "3"), Unit: "szt.", UnitPrice: -1190,
					Taxes: []transaction.Tax{reduced}},
			},
			Customer: &transaction.Party{LegalName: "Przedsiębiorstwo Handlowe Łódź sp. z o.o.", TaxNumber: "PL5260250274",
				Type: transaction.Business,
				Address: &transaction.Address{CountryCode: "PL", City: "Łódź", PostalCode: "90-001",
					AddressLine1: "ul. Piotrkowska 102", State: "łódzkie"}},
			Note:         "Zwrot towaru zgodnie z protokołem nr 18/2025.",
			ExchangeRate: &rate, ExchangeRateDate: "2025-11-13",
		},
		Supplier: country.Supplier{CountryCode: "PL", LegalName: "Świetlik S.A.", TaxNumber: "PL7740001454",
			Address: transaction.Address{CountryCode: "PL", City: "Kraków", PostalCode: "31-042",
				AddressLine1: "Rynek Główny 5"}},
		Location: location(t, "Europe/Warsaw"), IssuedAt: time.Date(2025, 11, 14, 10, 0, 4, 0, time.UTC),
		UniqueNumber: "PL-000000044-3",
		Original: &document.Reference{Number: "FV/2025/10/311", Date: time.Date(2025, 10, 28, 9, 0, 0, 0, time.UTC),
			AuthorityID: "7740001454-20251028-0B1C2D3E4F50-A1"},
		Imprint: country.Imprint{
			Identifiers: []country.Identifier{{Label: "Numer KSeF", Value: "7740001454-20251114-5265877635AB-6C"}},
			Codes: []country.Code{{Caption: "7740001454-20251114-5265877635AB-6C",
				Text: "https://qr.ksef.mf.gov.pl/invoice/7740001454/14-11-2025/UtQp9Gpc51y-u3xApZjIjgkpZ01js-J8KflSPW8WzIE"}},
		},
		LocalCurrency: "PLN",
		Branding:      document.Branding{Accent: "#7A1F3D"},
	})
}

func germanAdjustment(t testing.TB) document.Visual {
	ust := vat(t, "19", transaction.Added, transaction.TaxStandard)
	reverse := vat(t, "0", transaction.Added, transaction.TaxReverse)
	return totalled(t, document.Visual{
		Transaction: transaction.Transaction{
			Kind: transaction.Adjustment, CountryCode: "DE", LanguageCode: "DE", CurrencyCode: "EUR",
			Date: time.Date(2025, 11, 14, 8, 0, 0, 0, time.UTC), Number: "RK-2025-118", ID: "t-4", ReferenceID: "t-0",
			Items: []transaction.Item{
				{Number: 1, Name: "Montage Schaltschrank, Minderung wegen Mängeln", Quantity: amount(t, "6.75"), Unit: "Std.",
					UnitPrice: -9400, Taxes: []transaction.Tax{ust}},
				{Number: 2, Name: "Bauleistung nach § 13b UStG", Quantity: amount(t, "1"), Unit: "psch.", UnitPrice: -120000,
					Taxes: []transaction.Tax{reverse}},
			},
			Customer: &transaction.Party{LegalName: "Müller & Söhne Großhandel GmbH & Co. KG", TradeName: "Müller Bau",
				TaxNumber: "DE136695976", Type: transaction.Business,
				Address: &transaction.Address{CountryCode: "DE", City: "Köln", PostalCode: "50667", AddressLine1: "Hohe Straße",
					Number: "12a"}},
		},
		Supplier: country.Supplier{CountryCode: "DE", LegalName: "Elektro Weiß GmbH", TaxNumber: "DE123456788",
			CompanyNumber: "HRB 98765",
			Address: transaction.Address{CountryCode: "DE", City: "Düsseldorf", PostalCode: "40213",
				AddressLine1: "Königsallee 60"}},
		Location: location(t, "Europe/Berlin"), IssuedAt: time.Date(2025, 11, 14, 8, 0, 2, 0, time.UTC),
		UniqueNumber: "DE-000000045-1",
		Original:     &document.Reference{Number: "RE-2025-0977", Date: time.Date(2025, 10, 2, 9, 0, 0, 0, time.UTC)},
		Branding: document.Branding{Logo: logoJPEG(t, "weiß", color.RGBA{0x1E, 0x3A, 0x8A, 0xFF}), Accent: "#1E3A8A",
			Placement: document.Right},
	})
}

func mexicanCancellation(t testing.TB) document.Visual {
	iva := vat(t, "16", transaction.Added, transaction.TaxStandard)
	return totalled(t, document.Visual{
		TaxNumberName: func(string) string { return "RFC" },
		Transaction: transaction.Transaction{
			Kind: transaction.Cancellation, CountryCode: "MX", LanguageCode: "ES", CurrencyCode: "MXN",
			Date: time.Date(2025, 11, 14, 17, 0, 0, 0, time.UTC), Number: "C-19", ID: "t-5",
			Reason: "02 · Comprobante emitido con errores sin relación",
			Items: []transaction.Item{
				{Number: 1, Name: "Servicio de hospedaje en la nube", Code: "81112105", Quantity: amount(t, "1"), Unit: "E48",
					UnitPrice: -1250000, Taxes: []transaction.Tax{iva}},
			},
			Customer: &transaction.Party{LegalName: "UNIVERSIDAD ROBÓTICA ESPAÑOLA", TaxNumber: "URE180429TM6",
				Type:    transaction.Business,
				Address: &transaction.Address{CountryCode: "MX", City: "Ciudad de México", PostalCode: "86991"}},
		},
		Supplier: country.Supplier{CountryCode: "MX", LegalName: "ESCUELA KEMPER URGATE", TaxNumber: "EKU9003173C9",
			Address: transaction.Address{CountryCode: "MX", City: "Monterrey", PostalCode: "64000", State: "Nuevo León"}},
		Location: location(t, "America/Mexico_City"), IssuedAt: time.Date(2025, 11, 14, 17, 0, 9, 0, time.UTC),
		UniqueNumber: "MX-000000046-9",
		Original: &document.Reference{Number: "A-1188", Date: time.Date(2025, 11, 12, 18, 0, 0, 0, time.UTC),
			AuthorityID: "6F1B6A0C-9D0E-4B0A-8C55-1E0C9C1D2F3A"},
		Imprint: country.Imprint{
			Identifiers: []country.Identifier{{Value: "6F1B6A0C-9D0E-4B0A-8C55-1E0C9C1D2F3A"}},
		},
		Specimen: true,
		Branding: document.Branding{Logo: logoPNG(t, "kemper", color.RGBA{0x0F, 0x76, 0x6E, 0xFF}), Accent: "#0F766E",
			Placement: document.Center},
	})
}

func longInvoice(t testing.TB, items int) document.Visual {
	rates := []transaction.Tax{vat(t, "20", transaction.Included, transaction.TaxStandard),
		vat(t, "5", transaction.Included, transaction.TaxReduced), vat(t, "0", transaction.Included, transaction.TaxZero)}
	v := document.Visual{
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: "GB", LanguageCode: "EN", CurrencyCode: "GBP",
			Date: time.Date(2025, 11, 14, 9, 0, 0, 0, time.UTC), Number: "INV-10077", ID: "t-6",
			Customer: &transaction.Party{LegalName: "Harbour & Vale Outfitters Ltd", TaxNumber: "GB980780684",
				Type: transaction.Business,
				Address: &transaction.Address{CountryCode: "GB", City: "Bristol", PostalCode: "BS1 4DJ",
					AddressLine1: "12 Welsh Back"}},
		},
		Supplier: country.Supplier{CountryCode: "GB", LegalName: "Northwind Supplies plc", TaxNumber: "GB123456782",
			CompanyNumber: "01234567",
			Address: transaction.Address{CountryCode: "GB", City: "Leeds", PostalCode: "LS1 5QS",
				AddressLine1: "7 Park Row"}},
		Location: location(t, "Europe/London"), IssuedAt: time.Date(2025, 11, 14, 9, 0, 1, 0, time.UTC),
		UniqueNumber: "GB-000000047-7",
		Branding:     document.Branding{Logo: logoPNG(t, "northwind", color.RGBA{0x1D, 0x4E, 0x5F, 0xFF})},
	}
	goods := []string{"Waxed canvas apron", "Brass hook, set of four", "Oak dowel 12 mm", "Linen thread, natural",
		"Enamel mug, midnight blue, with a handle that does not get hot", "Beeswax block"}
	for i := range items {
		item := transaction.Item{Number: int64(i + 1), Name: goods[i%len(goods)],
			Quantity: amount(t, []string{"1", "12", "2.5", "0.125", "1200"}[i%5]), Unit: []string{"pcs", "set", "m", "kg"}[i%4],
			UnitPrice: int64(199 + 37*i%4000), Type: transaction.Goods, Taxes: []transaction.Tax{rates[i%3]}}
		if i%7 == 3 {
			item.Description, item.Code = "Made to order, delivered with the second consignment", fmt.Sprintf("NW-%05d", i)
		}
		v.Transaction.Items = append(v.Transaction.Items, item)
	}
	return totalled(t, v)
}

func frenchFacturX(t testing.TB) document.Visual {
	tva := vat(t, "20", transaction.Added, transaction.TaxStandard)
	return totalled(t, document.Visual{
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: "FR", LanguageCode: "FR", CurrencyCode: "EUR",
			Date: time.Date(2025, 11, 14, 9, 0, 0, 0, time.UTC), Number: "FA-2025-311", ID: "t-7",
			Items: []transaction.Item{
				{Number: 1, Name: "Mission d’audit énergétique", Description: "Visite sur site, mesures et rapport",
					Quantity: amount(t, "3"), Unit: "jour", UnitPrice: 89000, Taxes: []transaction.Tax{tva}},
				{Number: 2, Name: "Frais de déplacement", Quantity: amount(t, "418"), Unit: "km", UnitPrice: 64,
					Taxes: []transaction.Tax{tva}},
			},
			Customer: &transaction.Party{LegalName: "Mairie de Saint-Étienne-du-Bois", TaxNumber: "FR40303265045",
				Type: transaction.Business,
				Address: &transaction.Address{CountryCode: "FR", City: "Saint-Étienne-du-Bois", PostalCode: "85670",
					AddressLine1: "2 place de l’Église"}},
		},
		Supplier: country.Supplier{CountryCode: "FR", LegalName: "Énergie Œuvrée SARL", TaxNumber: "FR23334175221",
			CompanyNumber: "334 175 221",
			Address: transaction.Address{CountryCode: "FR", City: "Nantes", PostalCode: "44000",
				AddressLine1: "18 rue Crébillon"}},
		Location: location(t, "Europe/Paris"), IssuedAt: time.Date(2025, 11, 14, 9, 0, 2, 0, time.UTC),
		UniqueNumber: "FR-000000048-5",
		Imprint: country.Imprint{
			Texts: []string{"En cas de retard de paiement, pénalités au taux de trois fois l’intérêt légal et indemnité forfaitaire de recouvrement de 40 €."},
		},
		Files: []document.EmbeddedFile{{Name: "factur-x.xml", MIME: "text/xml", Description: "Factur-X invoice",
			Relationship: document.Alternative,
			ModifiedAt:   time.Date(2025, 11, 14, 9, 0, 2, 0, time.UTC),
			Content: []byte(
				"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rsm:CrossIndustryInvoice xmlns:rsm=\"urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100\"/>\n")}},
		FacturX:  &document.FacturX{FileName: "factur-x.xml", Level: "EN 16931"},
		Branding: document.Branding{Accent: "#FFD60A"}, // too light to read: must be darkened
	})
}

func greekInvoice(t testing.TB) document.Visual {
	fpa := vat(t, "24", transaction.Added, transaction.TaxStandard)
	return totalled(t, document.Visual{
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: "GR", LanguageCode: "EL", CurrencyCode: "EUR",
			Date: time.Date(2025, 11, 14, 9, 0, 0, 0, time.UTC), Number: "ΤΠΥ-145", ID: "t-8",
			Items: []transaction.Item{
				{Number: 1, Name: "Υπηρεσίες μετάφρασης", Quantity: amount(t, "14"), Unit: "σελ.", UnitPrice: 1850,
					Taxes: []transaction.Tax{fpa}},
				{Number: 2, Name: "Επιμέλεια κειμένου — Αθῆναι, ἑλληνικὴ γλῶσσα", Quantity: amount(t, "1"), UnitPrice: 12000,
					Taxes: []transaction.Tax{fpa}},
			},
			Customer: &transaction.Party{LegalName: "Търговска къща Пловдив ООД", TaxNumber: "BG831641791",
				Type: transaction.Business,
				Address: &transaction.Address{CountryCode: "BG", City: "Пловдив", PostalCode: "4000",
					AddressLine1: "ул. „Иван Вазов“ 3"}},
			Note: "<b>Παράδοση:</b> ηλεκτρονικά.<br><ol><li>Αρχείο κειμένου</li><li>Αρχείο PDF</li></ol>",
		},
		Supplier: country.Supplier{CountryCode: "GR", LegalName: "Λέξις Μεταφραστική Ε.Π.Ε.", TaxNumber: "EL094259216",
			Address: transaction.Address{CountryCode: "GR", City: "Θεσσαλονίκη", PostalCode: "546 24",
				AddressLine1: "Τσιμισκή 43"}},
		Location: location(t, "Europe/Athens"), IssuedAt: time.Date(2025, 11, 14, 9, 0, 2, 0, time.UTC),
		UniqueNumber: "GR-000000049-2",
		Imprint: country.Imprint{
			Identifiers: []country.Identifier{{Label: "MARK", Value: "400001234567890"}},
			Codes: []country.Code{{Text: "https://mydataapi.aade.gr/myDATA/TimologioQR/QRInfo?q=abc123",
				Caption: "myDATA"}},
		},
	})
}

func marketplaceInvoice(t testing.TB) document.Visual {
	v := longInvoice(t, 3)
	v.Transaction.Number, v.UniqueNumber = "MKT-2025-5", "GB-000000050-0"
	v.Transaction.Items[1].Taxes[0].Mode = transaction.Added // prices with and without tax
	v.Transaction.Issuer = &transaction.Party{LegalName: "Agora Marketplace Ireland DAC", TradeName: "Agora",
		TaxNumber: "IE6388047V", Type: transaction.Business,
		Address: &transaction.Address{CountryCode: "IE", City: "Dublin 2", PostalCode: "D02 X285",
			AddressLine1: "1 Grand Canal Square"}}
	v.Transaction.Payments = []transaction.Payment{{Type: "CARD", Code: "VISA", Amount: 2000},
		{Type: "CREDIT", Amount: 1856}}
	v.Branding.Font = document.Serif
	return totalled(t, v)
}

// logo draws a mark and a word on a transparent ground.
func logo(t testing.TB, word string, ink color.RGBA) *image.NRGBA {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 1200, 260))
	for y := range 260 {
		for x := range 260 {
			d := math.Hypot(float64(x)-130, float64(y)-130)
			inner := math.Hypot(float64(x)-170, float64(y)-90)
			if d < 118 && inner > 70 {
				img.Set(x, y, ink)
			}
		}
	}
	parsed, err := opentype.Parse(robotomedium.TTF)
	if err != nil {
		t.Fatal(err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: 140, DPI: 72})
	if err != nil {
		t.Fatal(err)
	}
	drawer := font.Drawer{Dst: img, Src: image.NewUniform(ink), Face: face, Dot: fixed.P(300, 175)}
	drawer.DrawString(word)
	return img.SubImage(image.Rect(0, 0, drawer.Dot.X.Ceil()+10, 260)).(*image.NRGBA)
}

// logos keeps what logoPNG has drawn.
var logos sync.Map

func logoPNG(t testing.TB, word string, ink color.RGBA) []byte {
	t.Helper()
	if kept, ok := logos.Load(word); ok {
		return kept.([]byte)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, logo(t, word, ink)); err != nil {
		t.Fatal(err)
	}
	logos.Store(word, out.Bytes())
	return out.Bytes()
}

func logoJPEG(t testing.TB, word string, ink color.RGBA) []byte {
	t.Helper()
	img := logo(t, word, ink)
	flat := image.NewRGBA(img.Bounds())
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if _, _, _, a := img.At(x, y).RGBA(); a > 0x7FFF {
				flat.Set(x, y, ink)
			} else {
				flat.Set(x, y, color.White)
			}
		}
	}
	var out bytes.Buffer
	if err := jpeg.Encode(&out, flat, &jpeg.Options{Quality: 92}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
