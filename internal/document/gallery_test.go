package document_test

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/document"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// local is an invoice as a business of a country would send it.
type local struct {
	language, country, currency string
	rate                        string
	supplier, city, street, zip string
	number                      string // of the house
	tax                         string
	customer, customerCity      string
	customerStreet, customerZip string
	items                       [3]string
	unit, note                  string
	look                        document.Branding
}

// locals are the languages of documents at home.
func locals() []local {
	return []local{
		{"AR", "SA", "SAR", "15", "شركة النور للتجارة والمقاولات", "الرياض", "شارع الملك فهد", "11564", "12",
			"300012345600003", "مؤسسة الخليج للأعمال", "جدة", "شارع فلسطين", "21442",
			[3]string{"شاي أسود فاخر", "عسل السدر الطبيعي", "خدمة التوصيل داخل المدينة"}, "قطعة", "شكرا لتعاملكم معنا.",
			document.Branding{Accent: "#0F766E"}},
		{"BG", "BG", "BGN", "20", "Чайна къща „Роза“ ООД", "София", "ул. Граф Игнатиев", "1000", "15", "BG123456789",
			"Хотел Витоша АД", "Пловдив", "бул. Марица 4", "4000", [3]string{"Черен чай, насипен", "Мед от акация", "Доставка"},
			"бр.", "Благодарим ви.", document.Branding{}},
		{"CS", "CZ", "CZK", "21", "Čajovna U Zeleného stromu s.r.o.", "Praha", "Dlouhá", "110 00", "33", "CZ12345678",
			"Hotel Říp a.s.", "Brno", "Masarykova 5", "602 00", [3]string{"Černý čaj sypaný", "Med květový", "Doprava"}, "ks",
			"Děkujeme.", document.Branding{Template: document.Modern, Accent: "#9A3412"}},
		{"DE", "DE", "EUR", "19", "Teehaus Nordlicht GmbH", "Hamburg", "Große Elbstraße", "22767", "8", "DE123456788",
			"Donaudampfschifffahrtsgesellschaft mbH", "Passau", "Ufergasse 3", "94032",
			[3]string{"Schwarztee, lose", "Lindenblütenhonig", "Versand"}, "Stk.", "Vielen Dank für Ihren Auftrag.",
			document.Branding{Template: document.Modern, Accent: "#1D4ED8"}},
		{"EL", "GR", "EUR", "24", "Τεϊοπωλείο Άνοιξη Α.Ε.", "Αθήνα", "Ερμού", "105 63", "12", "EL123456783",
			"Ξενοδοχείο Αιγαίο", "Πάτρα", "Κορίνθου 7", "262 21", [3]string{"Μαύρο τσάι", "Θυμαρίσιο μέλι", "Μεταφορικά"},
			"τεμ.", "Ευχαριστούμε.", document.Branding{Font: document.Serif}},
		{"ES", "ES", "EUR", "21", "Tés del Norte, S.L.", "Madrid", "Calle del Prado", "28014", "8", "B12345674",
			"Museo de la Ciencia, S.A.", "Guadalajara", "Avenida de la Ilustración 27", "19139",
			[3]string{"Té negro a granel", "Miel de azahar", "Envío"}, "ud", "Gracias por su confianza.",
			document.Branding{Accent: "#B45309"}},
		{"FR", "FR", "EUR", "20", "Maison du Thé SARL", "Lyon", "rue de la République", "69002", "14", "FR12345678901",
			"Hôtel des Alpes SAS", "Grenoble", "3 place Victor Hugo", "38000",
			[3]string{"Thé noir en vrac", "Miel de lavande", "Livraison"}, "pce", "Merci de votre confiance.",
			document.Branding{Template: document.Modern}},
		{"HE", "IL", "ILS", "18", "בית התה הירוק בע״מ", "תל אביב-יפו", "רחוב דיזנגוף", "6433222", "99", "512345678",
			"מלון הכרמל בע״מ", "חיפה", "שדרות מוריה 12", "3457113", [3]string{"תה שחור משובח", "דבש פרחי בר", "משלוח עד הבית"},
			"יח׳", "תודה רבה.", document.Branding{Template: document.Modern, Accent: "#1E40AF"}},
		{"HI", "IN", "INR", "18", "हिमालय चाय उद्योग प्राइवेट लिमिटेड", "नई दिल्ली", "कनॉट प्लेस", "110001", "12",
			"07AAACH1234A1Z5", "गंगा होटल एवं क्षेत्रीय पर्यटन", "वाराणसी", "दशाश्वमेध रोड 4", "221001",
			[3]string{"दार्जिलिंग काली चाय", "वन शहद", "डाक शुल्क"}, "नग", "आपके विश्वास के लिए धन्यवाद।",
			document.Branding{Accent: "#9A3412"}},
		{"HU", "HU", "HUF", "27", "Teaház a Nyolckerhez Kft.", "Budapest", "Váci utca", "1052", "8", "12345678-2-41",
			"Balaton Szálló Zrt.", "Siófok", "Petőfi sétány 3", "8600",
			[3]string{"Fekete tea, szálas", "Akácméz", "Kiszállítás"}, "db", "Köszönjük.", document.Branding{}},
		{"ID", "ID", "IDR", "11", "PT Teh Nusantara", "Jakarta", "Jalan Sudirman", "10220", "8", "01.234.567.8-901.000",
			"Hotel Borobudur", "Yogyakarta", "Jalan Malioboro 12", "55213",
			[3]string{"Teh hitam curah", "Madu hutan", "Ongkos kirim"}, "pcs", "Terima kasih.",
			document.Branding{Template: document.Modern, Accent: "#166534"}},
		{"JA", "JP", "JPY", "10", "株式会社東京茶舗", "千代田区", "丸の内1丁目2-3", "100-0005", "", "T1234567890123", "京都ホテル株式会社", "京都市",
			"河原町通二条南入", "604-0924", [3]string{"紅茶（ダージリン）", "はちみつ 500g", "送料"}, "個", "お買い上げいただき、誠にありがとうございます。",
			document.Branding{Accent: "#9F1239"}},
		{"KO", "KR", "KRW", "10", "서울차 주식회사", "서울특별시", "중구 세종대로", "04524", "110", "123-45-67890", "부산호텔 주식회사", "부산광역시",
			"해운대구 해운대로 24", "48094", [3]string{"홍차 잎", "아카시아 꿀", "배송비"}, "개", "감사합니다.",
			document.Branding{Template: document.Modern, Accent: "#1E3A8A"}},
		{"LT", "LT", "EUR", "21", "UAB „Arbatos namai“", "Vilnius", "Gedimino pr.", "01103", "9", "LT123456715",
			"Viešbutis „Neris“", "Kaunas", "Donelaičio g. 27", "44240",
			[3]string{"Juodoji arbata", "Liepų medus", "Pristatymas"}, "vnt.", "Dėkojame.", document.Branding{}},
		{"PL", "PL", "PLN", "23", "Herbaciarnia Źródło Sp. z o.o.", "Kraków", "ul. Grodzka", "31-006", "12", "5261040828",
			"Hotel Wisła S.A.", "Toruń", "ul. Szeroka 3", "87-100",
			[3]string{"Herbata czarna liściasta", "Miód lipowy", "Dostawa"}, "szt.", "Dziękujemy.",
			document.Branding{Accent: "#7C2D12"}},
		{"TH", "TH", "THB", "7", "บริษัท น้ำชาไทย จำกัด", "เขตปทุมวัน", "ถนนพระรามที่ 1", "10330", "99", "0105536000000",
			"โรงแรมเชียงใหม่ จำกัด (มหาชน)", "เชียงใหม่", "ถนนนิมมานเหมินท์ 5", "50200",
			[3]string{"ชาดำใบใหญ่พิเศษ", "น้ำผึ้งป่าแท้", "ค่าจัดส่ง"}, "ชิ้น", "ขอบคุณที่ไว้วางใจเรา",
			document.Branding{Accent: "#86198F"}},
		{"TR", "TR", "TRY", "20", "Çay Evi İstanbul A.Ş.", "İstanbul", "İstiklal Caddesi", "34430", "44", "1234567890",
			"Boğaziçi Otelcilik Ltd. Şti.", "Ankara", "Atatürk Bulvarı 12", "06420",
			[3]string{"Siyah çay, dökme", "Çiçek balı", "Kargo"}, "adet", "Teşekkür ederiz.",
			document.Branding{Template: document.Modern, Accent: "#B91C1C"}},
		{"UK", "UA", "UAH", "20", "ТОВ «Київська чайна»", "Київ", "вул. Хрещатик", "01001", "22", "123456789012",
			"Готель «Дніпро»", "Львів", "просп. Свободи 5", "79000", [3]string{"Чай чорний ваговий", "Мед липовий", "Доставка"},
			"шт.", "Дякуємо.", document.Branding{}},
		{"VI", "VN", "VND", "8", "Công ty TNHH Trà Việt", "Hà Nội", "phố Tràng Tiền", "100000", "24", "0101234567",
			"Khách sạn Hương Giang", "Huế", "51 Lê Lợi", "530000",
			[3]string{"Trà đen rời thượng hạng", "Mật ong rừng", "Phí vận chuyển"}, "gói", "Trân trọng cảm ơn quý khách.",
			document.Branding{Accent: "#065F46"}},
		{"ZH", "CN", "CNY", "13", "上海茶叶贸易有限公司", "上海市", "南京东路", "200001", "100号", "91310000123456789X", "杭州西湖酒店有限公司", "杭州市",
			"北山街8号", "310007", [3]string{"红茶（散装）", "槐花蜂蜜", "运费"}, "件", "感谢您的惠顾。", document.Branding{Accent: "#991B1B"}},
		{"ZH", "TW", "TWD", "5", "臺北茶行股份有限公司", "臺北市", "大同區迪化街一段", "103", "85號", "12345678", "高雄飯店股份有限公司", "高雄市", "五福三路77號",
			"801", [3]string{"高山烏龍茶", "龍眼蜂蜜", "運費"}, "件", "謝謝惠顧。",
			document.Branding{Template: document.Modern, Accent: "#0F766E"}},
		{"SV", "SE", "SEK", "25", "Tehuset på Söder AB", "Stockholm", "Götgatan", "116 21", "12", "SE556677889901",
			"Hotell Vättern AB", "Jönköping", "Hamngatan 4", "553 16", [3]string{"Svart te, lösvikt", "Ljunghonung", "Frakt"},
			"st", "Tack för din beställning.", document.Branding{}},
	}
}

func (l local) name() string { return strings.ToLower(l.language + "-" + l.country) }

// visual is the invoice of a local.
func (l local) visual(t testing.TB) document.Visual {
	t.Helper()
	regime := transaction.VAT
	if l.country == "IN" {
		regime = "GST"
	}
	vat := func(rate string) []transaction.Tax {
		return []transaction.Tax{{Rate: amount(t, rate), Regime: regime, Mode: transaction.Added,
			Type: transaction.TaxStandard}}
	}
	prices := [3]int64{245000, 99900, 12000}
	var items []transaction.Item
	for i, name := range l.items {
		items = append(items, transaction.Item{Number: int64(i + 1), Name: name, Quantity: num.MakeAmount(int64(12-5*i), 0),
			Unit: l.unit, UnitPrice: prices[i], Type: transaction.Goods, Taxes: vat(l.rate)})
	}
	v := document.Visual{
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: l.country, LanguageCode: l.language, CurrencyCode: l.currency,
			Date: time.Date(2025, 11, 14, 9, 0, 0, 0, time.UTC), Number: "2025-00042", ID: "t-" + l.name(),
			Items: items, Note: l.note, DueDate: "2025-12-14", DeliveryDate: "2025-11-13",
			References: transaction.References{Buyer: "4711", Order: "PO-2025-118"},
			Customer: &transaction.Party{LegalName: l.customer,
				Address: &transaction.Address{CountryCode: l.country, City: l.customerCity, AddressLine1: l.customerStreet,
					PostalCode: l.customerZip}, Email: "office@example.com"},
		},
		Supplier: country.Supplier{CountryCode: l.country, LegalName: l.supplier, TaxNumber: l.tax,
			Address: transaction.Address{CountryCode: l.country, City: l.city, AddressLine1: l.street, Number: l.number,
				PostalCode: l.zip}},
		IssuedAt: time.Date(2025, 11, 14, 9, 0, 0, 0, time.UTC), UniqueNumber: l.country + "-0000000000000000000000000042-7",
		Branding: l.look,
	}
	v.Branding.Logo = logoPNG(t, "northwind", color.RGBA{0x33, 0x3D, 0x4A, 0xFF})
	v = totalled(t, v)
	v.Transaction.Payments = []transaction.Payment{{Type: "TRANSFER", Amount: v.Totals.Payable(),
		IBAN: "DE89370400440532013000", Reference: "2025-00042"}}
	v.Imprint.Codes = []country.Code{{Text: "https://example.com/check/" + v.UniqueNumber}}
	return v
}

// Every language says every name as it was submitted, in the order of the text.
func TestLanguagesAtHomeComeBackFromTheFile(t *testing.T) {
	t.Parallel()
	pdftotext := needs.Tool(t, "pdftotext", "poppler-utils")
	needFonts(t, sharedRenderer(t))
	folder := os.Getenv("TRIBUTARY_GALLERY") // where a person wants to look at them
	for _, l := range locals() {
		t.Run(l.name(), func(t *testing.T) {
			made, err := sharedRenderer(t).Render(t.Context(), l.visual(t))
			if err != nil || len(made.Missing) > 0 || made.English {
				t.Fatalf("missing %v, English %v: %v", made.Missing, made.English, err)
			}
			path := filepath.Join(t.TempDir(), l.name()+".pdf")
			if folder != "" {
				path = filepath.Join(folder, l.name()+".pdf")
			}
			if err := os.WriteFile(path, made.PDF, 0o600); err != nil {
				t.Fatal(err)
			}
			text := strings.Join(strings.Fields(logical(output(t, pdftotext, "-layout", path, "-"))), " ")
			squeezed := strings.ReplaceAll(text, " ", "")
			for _, want := range append([]string{l.supplier, l.customer, l.city, l.customerCity, l.tax, "PO-2025-118"},
				l.items[:]...) {
				if strings.Contains(squeezed, strings.ReplaceAll(want, " ", "")) {
					continue
				}
				for _, word := range strings.Fields(want) { // a name on two lines stands beside its neighbour
					if !strings.Contains(text, word) {
						t.Errorf("pdftotext does not find %q in\n%s", want, text)
					}
				}
			}
			f := parsePDF(t, made.PDF)
			if n := len(f.pages()); n != 1 {
				t.Errorf("three items take %d pages", n)
			}
			for _, r := range f.text(f.pages()[0]) {
				if r.size < 7.5 {
					t.Errorf("%q is set in %.1f pt", r.text, r.size)
				}
			}
		})
	}
	for _, l := range locals() {
		if l.language == "ES" || l.language == "AR" || l.language == "JA" {
			t.Run(l.receipt(), func(t *testing.T) { l.receiptComesBack(t, folder) })
		}
	}
	if folder != "" {
		fmt.Println("documents are in", folder)
	}
}

var rateAdded = regexp.MustCompile(`\d\+[\d%]`)

func (l local) receipt() string { return strings.ToLower(l.language) + "-receipt" }

// receiptComesBack is the same for a sale over the counter: no buyer, paid by card, on a roll.
func (l local) receiptComesBack(t *testing.T, folder string) {
	v := l.visual(t)
	v.Branding.Template, v.Simplified = document.Receipt, true
	v.Transaction.Customer, v.Transaction.DueDate, v.Transaction.References = nil, "", transaction.References{}
	v.Transaction.Payments = []transaction.Payment{{Type: "CARD", Amount: v.Totals.Payable()}}
	made, err := sharedRenderer(t).Render(t.Context(), v)
	if err != nil || len(made.Missing) > 0 || made.English {
		t.Fatalf("missing %v, English %v: %v", made.Missing, made.English, err)
	}
	if folder == "" {
		folder = t.TempDir()
	}
	path := filepath.Join(folder, l.receipt()+".pdf")
	if err := os.WriteFile(path, made.PDF, 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(logical(output(t, needs.Tool(t, "pdftotext", "poppler-utils"), "-layout", path,
		"-"))), "")
	for _, want := range append([]string{l.supplier, l.tax}, l.items[:]...) {
		if !strings.Contains(text, strings.ReplaceAll(want, " ", "")) {
			t.Errorf("pdftotext does not find %q in\n%s", want, text)
		}
	}
	if !rateAdded.MatchString(text) { // prices are without tax, amounts with it
		t.Errorf("no rate is added to a price in\n%s", text)
	}
}
