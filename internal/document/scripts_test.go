package document_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"tributary/internal/document"
	"tributary/internal/document/typeset"
	"tributary/internal/needs"
)

// names are companies as their registers write them, by script. Together they
// need ligatures, reordered vowels, stacked consonants, joined letters, joiners,
// variation selectors, planes beyond the first, and both directions.
func names() map[string]string {
	return map[string]string{
		"Arab": "شركة الخليج العربي للمقاولات والأعمال الإنشائية", "Arab/marks": "مُحَمَّد وَأَوْلَاد",
		"Arab/fa": "شرکت می\u200cخواهم پارسیان", "Armn": "Հայկական ընկերություն", "Beng": "বাংলাদেশ কোম্পানি লিমিটেড",
		"Deva": "क्षत्रिय उद्योग प्राइवेट लिमिटेड", "Ethi": "ኢትዮጵያ ኩባንያ", "Geor": "ქართული კომპანია",
		"Gujr": "ગુજરાત ઉદ્યોગ", "Guru": "ਪੰਜਾਬ ਕੰਪਨੀ",
		"Hang": "한국전자 주식회사", "Hani/ja": "株式会社東京製作所 𠮷野家", "Hani/ja-ivs": "葛󠄀城市役所", "Hani/zh-Hans": "中国贸易有限公司",
		"Hani/zh-Hant": "臺灣貿易股份有限公司",
		"Hebr/marks":   "שָׁלוֹם", "Hebr": "חברת ישראל בע״מ", "Khmr": "ក្រុមហ៊ុន កម្ពុជា", "Knda": "ಕರ್ನಾಟಕ ಕಂಪನಿ",
		"Laoo": "ບໍລິສັດ ລາວ", "Mlym": "കേരള കമ്പനി", "Mymr": "ကုမ္ပဏီ မြန်မာ",
		"Orya": "ଓଡ଼ିଶା କମ୍ପାନୀ", "Sinh": "ශ්\u200dරී ලංකා සමාගම", "Taml": "தமிழ் நிறுவனம்", "Telu": "తెలుగు సంస్థ",
		"Thai": "บริษัท น้ำตาลไทย จำกัด", "Vietnamese": "Công ty Cổ phần Ạ́ Việt",
		"marks": "a̱ḇc̱ Ǩ q̃", "symbols": "Tea ✓ → ☎", "Greek": "Ανώνυμη Εταιρεία", "Cyrillic": "ТОВ «Київська майстерня»",
	}
}

// needFonts skips a test where the distribution's fonts are not installed.
func needFonts(t testing.TB, r *document.Renderer) {
	t.Helper()
	all, err := r.Scripts()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Font == "" {
			needs.Missing(t, "no font for %s is installed (Debian packages fonts-noto-core, fonts-noto-cjk): this check did not run", a.Script)
		}
	}
}

// withNames is an invoice whose items have the names.
func withNames(t testing.TB, all ...string) document.Visual {
	v := longInvoice(t, 1)
	item := v.Transaction.Items[0]
	v.Transaction.Items = nil
	for i, name := range all {
		item.Number, item.Name, item.Description, item.Code, item.EAN = int64(i+1), name, "", "", ""
		v.Transaction.Items = append(v.Transaction.Items, item)
	}
	return totalled(t, v)
}

// Names come back from the file as they were submitted: what is seen, copied
// and searched is what was sold.
func TestNamesOfEveryScriptComeBackFromTheFile(t *testing.T) {
	t.Parallel()
	pdftotext := needs.Tool(t, "pdftotext", "poppler-utils")
	needFonts(t, sharedRenderer(t))
	var all []string
	for _, name := range names() {
		all = append(all, name)
	}
	slices.Sort(all)
	v := withNames(t, all...)
	made, err := sharedRenderer(t).Render(t.Context(), v)
	if err != nil || len(made.Missing) > 0 || made.English {
		t.Fatalf("missing %v, English %v, error %v", made.Missing, made.English, err)
	}
	path := filepath.Join(t.TempDir(), "names.pdf")
	if err := os.WriteFile(path, made.PDF, 0o600); err != nil {
		t.Fatal(err)
	}
	text := logical(output(t, pdftotext, "-layout", path, "-"))
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
	own := squeeze(parsePDF(t, made.PDF).allText())
	for script, name := range names() {
		name = norm.NFC.String(name)
		if !strings.Contains(text, name) {
			t.Errorf("%s: pdftotext does not find %q", script, name)
		}
		if rtl := strings.HasPrefix(script, "Arab") || strings.HasPrefix(script, "Hebr"); !rtl &&
			!strings.Contains(own, squeeze(name)) {
			t.Errorf("%s: the file does not say %q", script, name)
		}
	}
	if strings.ContainsRune(text, '\uFFFD') {
		t.Error("a character was replaced")
	}
}

// logical is what pdftotext prints without the marks it puts around text that
// runs from right to left.
func logical(s string) string {
	return strings.NewReplacer("\u202A", "", "\u202B", "", "\u202C", "", "\u200E", "", "\u200F", "").Replace(s)
}

// Without a font the text is still told, in Latin letters, and the document and
// the result say that it was.
func TestTextWithoutAFontStandsInLatinLetters(t *testing.T) {
	t.Parallel()
	r, err := document.NewRenderer(typeset.Folders{})
	if err != nil {
		t.Fatal(err)
	}
	v := withNames(t, "บริษัท ไทย", "東京 Tokyo", "Tea 🧾")
	made, err := r.Render(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"Thai", "Hani", "Zyyy"}; !slices.Equal(made.Missing, want) || made.English {
		t.Errorf("missing %v, want %v; English %v", made.Missing, want, made.English)
	}
	text := parsePDF(t, made.PDF).allText()
	for _, want := range []string{"brisath aithy", "Dong Jing Tokyo", "Tea [U+1F9FE]",
		"Text in Thai, Han, Common script is given in Latin letters"} {
		if !strings.Contains(strings.ReplaceAll(text, "\n", " "), want) {
			t.Errorf("the document does not say %q:\n%s", want, text)
		}
	}
	if strings.ContainsAny(text, "\uFFFDไ東") {
		t.Error("a sign stands for what could not be set")
	}
	// A whole language without a font: English captions, and both are told.
	v.Language = "TH"
	if made, err = r.Render(t.Context(), v); err != nil || !made.English || !slices.Contains(made.Missing, "Thai") {
		t.Errorf("a Thai document without a font: missing %v, English %v, error %v", made.Missing, made.English, err)
	}
	// What the program brings is enough for Arabic and Hebrew.
	v = withNames(t, names()["Arab"], names()["Hebr"])
	if made, err = r.Render(t.Context(), v); err != nil || len(made.Missing) > 0 {
		t.Errorf("missing %v, error %v", made.Missing, err)
	}
}

// The operator's fonts come first, whatever the system has.
func TestTheOperatorsFontsComeFirst(t *testing.T) {
	t.Parallel()
	const looped = "/usr/share/fonts/truetype/noto/NotoLoopedThai-Regular.ttf"
	raw, err := os.ReadFile(looped)
	if err != nil {
		needs.Missing(t, "fonts-noto-core is not installed: this check did not run")
	}
	folder := t.TempDir()
	for name, content := range map[string][]byte{"a.ttf": raw, "broken.ttf": raw[:len(raw)/2], "empty.otf": nil,
		"not.ttc": []byte("ttcf\x00\x01\x00\x00\xFF\xFF\xFF\xFF")} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := document.NewRenderer(typeset.WithSystem(folder))
	if err != nil {
		t.Fatal(err)
	}
	made, err := r.Render(t.Context(), withNames(t, names()["Thai"]))
	if err != nil || !strings.Contains(string(made.PDF), "+NotoLoopedThai") {
		t.Errorf("the document does not have the operator's font: %v", err)
	}
	if _, err := r.Scripts(); err != nil {
		t.Error(err)
	}
	if r, err = document.NewRenderer(typeset.WithSystem(filepath.Join(folder, "nowhere"))); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Scripts(); err == nil {
		t.Error("a folder that is not there is not told")
	}
}
