package document_test

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/document"
)

// TestClausesOfPDFA3 asserts the clauses of ISO 19005-3 for level U on every
// sample, by a reader of its own. A clause that a document without forms,
// annotations and the like can only keep by not having them is asserted so.
func TestClausesOfPDFA3(t *testing.T) {
	t.Parallel()
	for _, s := range append(samples(t), sample{"widest", widest(t)}, sample{"hostile", hostile(t)}) {
		t.Run(s.name, func(t *testing.T) {
			raw := render(t, s.visual)
			f := parsePDF(t, raw)
			checkFileStructure(t, f)
			checkForbiddenKeys(t, f, len(s.visual.Files) > 0)
			checkOutputIntent(t, f)
			for _, page := range f.pages() {
				checkContent(t, f, page)
			}
			checkFonts(t, f)
			checkStructure(t, f)
			checkMetadata(t, f, s.visual)
			checkFiles(t, f, s.visual)
		})
	}
}

// 6.1: file structure.
func checkFileStructure(t *testing.T, f *file) {
	t.Helper()
	if !binaryHead(f.raw) {
		t.Error("6.1.2: the header is not a version and four bytes over 127")
	}
	id, _ := f.trailer["ID"].(array)
	if len(id) != 2 || len(id[0].(string)) != 16 || f.trailer["Encrypt"] != nil {
		t.Error("6.1.3: the trailer needs an ID and no encryption")
	}
	for n, v := range f.objects {
		walk(v, func(v any) {
			switch v := v.(type) {
			case name:
				if len(v) > 127 {
					t.Errorf("6.1.13: object %d has a name of %d bytes", n, len(v))
				}
			case string:
				if len(v) > 32767 {
					t.Errorf("6.1.13: object %d has a string of %d bytes", n, len(v))
				}
			case stream:
				filter := v.dict["Filter"]
				if filter != nil && filter != name("FlateDecode") && filter != name("DCTDecode") {
					t.Errorf("6.1.7: object %d is filtered by %v", n, filter)
				}
				for _, key := range []string{"F", "FFilter", "FDecodeParms"} {
					if v.dict[key] != nil {
						t.Errorf("6.1.7: stream %d lies outside the file", n)
					}
				}
			}
		})
	}
}

func binaryHead(raw []byte) bool {
	if !bytes.HasPrefix(raw, []byte("%PDF-1.7\n%")) {
		return false
	}
	for _, c := range raw[10:14] {
		if c < 128 {
			return false
		}
	}
	return true
}

// 6.2.8 to 6.2.10, 6.3 to 6.5, 6.9 to 6.11: what no document has.
func checkForbiddenKeys(t *testing.T, f *file, attached bool) {
	t.Helper()
	forbidden := []string{"JS", "JavaScript", "OpenAction", "AA", "A", "URI", "Launch", "Annots", "AcroForm", "XFA",
		"NeedsRendering", "OCProperties",
		"AlternatePresentations", "PresSteps", "Requirements", "Perms", "SMask", "ExtGState", "BM", "CA", "ca", "OPI",
		"Alternates", "Ref", "PS",
		"Group", "Encrypt", "Collection", "RichMedia", "GoToE", "TR", "HTP", "Halftone"}
	if !attached {
		forbidden = append(forbidden, "EmbeddedFiles", "EF", "AF")
	}
	for n, v := range f.objects {
		walk(v, func(v any) {
			d, ok := v.(dict)
			if s, isStream := v.(stream); isStream {
				d, ok = s.dict, true
			}
			if !ok {
				return
			}
			structure := d["S"] != nil && d["P"] != nil // there A is attributes, not an action
			for _, key := range forbidden {
				if d[key] != nil && !(structure && key == "A") {
					t.Errorf("object %d has /%s", n, key)
				}
			}
			if d["Interpolate"] == keyword("true") {
				t.Errorf("6.2.8: object %d interpolates", n)
			}
			if d["S"] != nil && d["S"] != name("GTS_PDFA1") && !structure {
				t.Errorf("6.5: object %d has an action %v", n, d["S"])
			}
		})
	}
}

// 6.2.3 and 6.2.4: one output intent with an RGB profile, so that plain RGB is defined.
func checkOutputIntent(t *testing.T, f *file) {
	t.Helper()
	intents := f.catalog()["OutputIntents"].(array)
	intent := f.dict(intents[0])
	if len(intents) != 1 || intent["S"] != name("GTS_PDFA1") || intent["OutputConditionIdentifier"] == nil {
		t.Fatalf("6.2.3: output intents are %v", intents)
	}
	s := f.get(intent["DestOutputProfile"]).(stream)
	icc := f.data(intent["DestOutputProfile"])
	if s.dict["N"] != 3.0 || len(icc) < 132 || int(binary.BigEndian.Uint32(icc)) != len(icc) {
		t.Fatal("6.2.3: the profile is not one of three components")
	}
	if string(icc[36:40]) != "acsp" || string(icc[12:24]) != "mntrRGB XYZ " || icc[8] > 4 {
		t.Errorf("6.2.3: the profile's header is %q", icc[:40])
	}
	tags := map[string][2]uint32{}
	for i := range int(binary.BigEndian.Uint32(icc[128:])) {
		entry := icc[132+12*i:]
		tags[string(entry[:4])] = [2]uint32{binary.BigEndian.Uint32(entry[4:]), binary.BigEndian.Uint32(entry[8:])}
	}
	for _, tag := range []string{"desc", "cprt", "wtpt", "chad", "rXYZ", "gXYZ", "bXYZ", "rTRC", "gTRC", "bTRC"} {
		at, ok := tags[tag]
		if !ok || at[0]%4 != 0 || int(at[0]+at[1]) > len(icc) {
			t.Errorf("ICC.1:2004-10, 8.4.2: tag %s is missing or broken", tag)
		}
	}
	// The colorants of a display profile add up to the white of D50.
	for i, white := range []float64{0.9642, 1, 0.8249} {
		sum := 0.0
		for _, tag := range []string{"rXYZ", "gXYZ", "bXYZ"} {
			sum += float64(int32(binary.BigEndian.Uint32(icc[int(tags[tag][0])+8+4*i:]))) / 65536
		}
		if math.Abs(sum-white) > 0.0005 {
			t.Errorf("the profile's primaries sum to %.4f, not %.4f", sum, white)
		}
	}
}

// 6.2.2: operators of ISO 32000-1 alone; 6.2.4: no other colour than RGB.
func checkContent(t *testing.T, f *file, page dict) {
	t.Helper()
	box := page["MediaBox"].(array)
	if box[2] != 595.28 || box[3] != 841.89 {
		t.Errorf("the page is %v, not A4", box)
	}
	depth, resources := 0, f.dict(page["Resources"])
	for _, o := range f.operators(page) {
		want, ok := map[string]int{"BT": 0, "ET": 0, "Tf": 2, "Td": 2, "Tj": 1, "TJ": 1, "Ts": 1, "BMC": 1, "BDC": 2,
			"EMC": 0, "rg": 3, "re": 4, "f": 0, "q": 0, "Q": 0, "cm": 6, "Do": 1}[o.name]
		if !ok || len(o.args) != want {
			t.Fatalf("6.2.2: operator %s with %d operands", o.name, len(o.args))
		}
		switch o.name {
		case "q":
			depth++
		case "Q":
			depth--
		case "Tf":
			if f.dict(resources["Font"])[string(o.args[0].(name))] == nil {
				t.Fatalf("6.2.2: font %v is not among the resources", o.args[0])
			}
		case "Do":
			s := f.get(f.dict(resources["XObject"])[string(o.args[0].(name))]).(stream)
			if s.dict["Subtype"] != name("Image") || s.dict["ColorSpace"] != name("DeviceRGB") {
				t.Errorf("6.2.4: picture is %v", s.dict)
			}
		}
		if depth < 0 || depth > 28 {
			t.Fatal("6.1.13: states are nested wrongly")
		}
	}
	if depth != 0 {
		t.Error("a state is not restored")
	}
}

// 6.2.11: every font embedded, its widths those of its program, nothing shown
// as .notdef, every code with a Unicode value.
func checkFonts(t *testing.T, f *file) {
	t.Helper()
	used := map[string]map[uint16]bool{}
	for _, page := range f.pages() {
		font := ""
		for _, o := range f.operators(page) {
			if o.name == "Tf" {
				font = string(o.args[0].(name))
				if used[font] == nil {
					used[font] = map[uint16]bool{}
				}
			}
			if o.name == "Tj" || o.name == "TJ" {
				for _, code := range o.codes() {
					used[font][code] = true
				}
			}
		}
	}
	for key, v := range f.dict(f.dict(f.pages()[0]["Resources"])["Font"]) {
		checkFont(t, f, f.dict(v), used[key])
	}
}

func checkFont(t *testing.T, f *file, font dict, used map[uint16]bool) {
	t.Helper()
	descendant := f.dict(font["DescendantFonts"].(array)[0])
	descriptor := f.dict(descendant["FontDescriptor"])
	base := string(font["BaseFont"].(name))
	if font["Subtype"] != name("Type0") || font["Encoding"] != name("Identity-H") ||
		descendant["Subtype"] != name("CIDFontType2") {
		t.Fatalf("6.2.11.3: font %s is of another kind", base)
	}
	if !regexp.MustCompile(`^[A-Z]{6}\+`).MatchString(base) || string(descendant["BaseFont"].(name)) != base ||
		string(descriptor["FontName"].(name)) != base {
		t.Errorf("ISO 32000-1, 9.6.4: subset %s is not named alike everywhere", base)
	}
	info := f.dict(descendant["CIDSystemInfo"])
	if info["Registry"] != "Adobe" || info["Ordering"] != "Identity" || info["Supplement"] != 0.0 {
		t.Errorf("6.2.11.3.1: CIDSystemInfo is %v", info)
	}
	program := parseSFNT(t, f.data(descriptor["FontFile2"]))
	if got := f.get(descriptor["FontFile2"]).(stream).dict["Length1"]; got != float64(len(program.raw)) {
		t.Errorf("Length1 is %v, the program has %d bytes", got, len(program.raw))
	}
	toGID := f.data(descendant["CIDToGIDMap"])
	unicode, widths := f.cmap(font["ToUnicode"]), cidWidths(f, descendant)
	if descriptor["CIDSet"] != nil { // optional, and validators disagree on what it must list
		t.Errorf("6.2.11.4.2: %s has a CIDSet", base)
	}
	if len(used) == 0 {
		t.Errorf("font %s is embedded and not used", base)
	}
	for cid := range used {
		gid := binary.BigEndian.Uint16(toGID[2*int(cid):])
		if gid == 0 {
			t.Errorf("6.2.11.8: %s shows .notdef", base)
		}
		if math.Abs(widths[cid]-program.width(int(gid))) > 1 {
			t.Errorf("6.2.11.5: glyph %d of %s is %v wide, its program says %v", cid, base, widths[cid], program.width(int(gid)))
		}
		if c := unicode[cid]; c == "" || strings.ContainsAny(c, "\x00\uFEFF") || []rune(c)[0] == 0xFFFE {
			t.Errorf("6.2.11.7.2: glyph %d of %s has no Unicode value", cid, base)
		}
	}
}

// cidWidths reads the W array.
func cidWidths(f *file, descendant dict) map[uint16]float64 {
	out := map[uint16]float64{}
	w := f.get(descendant["W"]).(array)
	for i := 0; i < len(w); i += 2 {
		for j, width := range w[i+1].(array) {
			out[uint16(w[i].(float64))+uint16(j)] = width.(float64)
		}
	}
	return out
}

// sfnt is an embedded font program.
type sfnt struct {
	raw          []byte
	tables       map[string][]byte
	glyphs, upem int
}

func parseSFNT(t *testing.T, raw []byte) sfnt {
	t.Helper()
	s := sfnt{raw: raw, tables: map[string][]byte{}}
	var sum uint32
	for i := 0; i+3 < len(raw); i += 4 {
		sum += binary.BigEndian.Uint32(raw[i:])
	}
	if sum != 0xB1B0AFBA {
		t.Errorf("OpenType, head: the program's checksum is %08X", sum)
	}
	for i := range int(binary.BigEndian.Uint16(raw[4:])) {
		e := raw[12+16*i:]
		at, length := binary.BigEndian.Uint32(e[8:]), binary.BigEndian.Uint32(e[12:])
		s.tables[string(e[:4])] = raw[at : at+length]
	}
	for _, tag := range []string{"glyf", "head", "hhea", "hmtx", "loca", "maxp"} {
		if s.tables[tag] == nil {
			t.Fatalf("the program has no table %s", tag)
		}
	}
	s.glyphs = int(binary.BigEndian.Uint16(s.tables["maxp"][4:]))
	s.upem = int(binary.BigEndian.Uint16(s.tables["head"][18:]))
	if len(s.tables["hmtx"]) != 4*s.glyphs || len(s.tables["loca"]) != 4*(s.glyphs+1) {
		t.Error("the program's tables are not as long as its glyphs are many")
	}
	if last := binary.BigEndian.Uint32(s.tables["loca"][4*s.glyphs:]); int(last) != len(s.tables["glyf"]) {
		t.Error("the program's last glyph does not end with its outlines")
	}
	return s
}

func (s sfnt) width(gid int) float64 {
	return float64(binary.BigEndian.Uint16(s.tables["hmtx"][4*gid:])) * 1000 / float64(s.upem)
}

// 6.6: the metadata is well-formed, says PDF/A-3u, and agrees with the information dictionary.
func checkMetadata(t *testing.T, f *file, v document.Visual) {
	t.Helper()
	s := f.get(f.catalog()["Metadata"]).(stream)
	if s.dict["Subtype"] != name("XML") || s.dict["Filter"] != nil {
		t.Error("6.6.2.1: the metadata is not plain XML")
	}
	values := map[string][]string{}
	decoder := xml.NewDecoder(bytes.NewReader(s.raw))
	var path []string
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("6.6.2.1: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			path = append(path, e.Name.Local)
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			if text := strings.TrimSpace(string(e)); text != "" {
				key := slices.DeleteFunc(slices.Clone(path), func(s string) bool {
					return s == "li" || s == "Alt" || s == "Seq" || s == "Bag"
				})
				values[key[len(key)-1]] = append(values[key[len(key)-1]], text)
			}
		}
	}
	info := f.dict(f.trailer["Info"])
	stamp := v.IssuedAt.UTC().Format(time.RFC3339)
	for key, want := range map[string]string{
		"conformance": "U", "title": decodeText(info["Title"]), "creator": decodeText(info["Author"]),
		"Producer": decodeText(info["Producer"]), "CreatorTool": decodeText(info["Creator"]), "CreateDate": stamp,
		"ModifyDate": stamp,
	} {
		if len(values[key]) != 1 || values[key][0] != want {
			t.Errorf("6.6: %s is %q, want %q", key, values[key], want)
		}
	}
	if !slices.Equal(values["part"], []string{"3", "1"}) { // of PDF/A, of PDF/UA
		t.Errorf("6.6: the parts are %q", values["part"])
	}
	if pdf := "D:" + v.IssuedAt.UTC().Format("20060102150405Z"); info["CreationDate"] != pdf || info["ModDate"] != pdf {
		t.Errorf("6.6.3: the dates are %v", info)
	}
	if v.FacturX == nil {
		return
	}
	if values["DocumentFileName"][0] != v.FacturX.FileName || values["ConformanceLevel"][0] != v.FacturX.Level ||
		values["Version"][0] != "1.0" || values["DocumentType"][0] != "INVOICE" {
		t.Errorf("Factur-X 1.0: the identification is %v", values)
	}
	if got := values["name"]; !slices.Equal(got,
		[]string{"part", "DocumentFileName", "DocumentType", "Version", "ConformanceLevel"}) {
		t.Errorf("6.6.2.3: the extension schema describes %v", got)
	}
}

// 6.8: embedded files.
func checkFiles(t *testing.T, f *file, v document.Visual) {
	t.Helper()
	associated, _ := f.catalog()["AF"].(array)
	if len(associated) != len(v.Files) {
		t.Fatalf("6.8: %d of %d files are associated", len(associated), len(v.Files))
	}
	for _, a := range v.Files {
		var spec dict
		for _, s := range associated {
			if f.dict(s)["UF"] == a.Name {
				spec = f.dict(s)
			}
		}
		if spec["Type"] != name("Filespec") || spec["F"] != a.Name || spec["AFRelationship"] != name(a.Relationship) {
			t.Fatalf("6.8: file %s is specified as %v", a.Name, spec)
		}
		embedded := f.get(f.dict(spec["EF"])["F"]).(stream)
		params := f.dict(embedded.dict["Params"])
		if embedded.dict["Subtype"] != name(a.MIME) || params["ModDate"] == nil || params["Size"] != float64(len(a.Content)) {
			t.Errorf("6.8: file %s is described as %v", a.Name, embedded.dict)
		}
		if !bytes.Equal(f.data(f.dict(spec["EF"])["UF"]), a.Content) {
			t.Errorf("file %s comes out changed", a.Name)
		}
	}
}

func decodeText(v any) string {
	s, _ := v.(string)
	if !strings.HasPrefix(s, "\xFE\xFF") {
		return s
	}
	var out []uint16
	for i := 2; i+1 < len(s); i += 2 {
		out = append(out, binary.BigEndian.Uint16([]byte(s[i:])))
	}
	return string(utf16Decode(out))
}

// walk visits a value and what it is made of, without following references.
func walk(v any, visit func(any)) {
	visit(v)
	switch v := v.(type) {
	case dict:
		for _, x := range v {
			walk(x, visit)
		}
	case array:
		for _, x := range v {
			walk(x, visit)
		}
	case stream:
		for _, x := range v.dict {
			walk(x, visit)
		}
	}
}

// veraPDF is the judge where it is installed.
func TestVeraPDFAgrees(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("verapdf"); err != nil {
		t.Skip("verapdf is not installed: the clauses are asserted by TestClausesOfPDFA3 and checkStructure alone")
	}
	files, err := filepath.Glob(filepath.Join(examples, "*.pdf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, flavour := range []string{"3u", "ua1"} {
		out, err := exec.CommandContext(t.Context(), "verapdf",
			append([]string{"--flavour", flavour, "--format", "text"}, files...)...).CombinedOutput()
		if err != nil || strings.Contains(string(out), "FAIL") {
			t.Errorf("%s: %v\n%s", flavour, err, out)
		}
	}
}

func TestAttachmentLimits(t *testing.T) {
	t.Parallel()
	attach := func(n, size int, change func(*document.EmbeddedFile)) document.Visual {
		v := longInvoice(t, 1)
		for i := range n {
			v.Files = append(v.Files, document.EmbeddedFile{Name: fmt.Sprintf("file-%02d.xml", i), MIME: "text/xml",
				Relationship: document.Data, Content: make([]byte, size)})
		}
		if change != nil {
			change(&v.Files[0])
		}
		return v
	}
	for title, v := range map[string]document.Visual{
		"sixteen files":         attach(16, 10, nil),
		"sixteen megabytes":     attach(1, 16<<20, nil),
		"a name of 120":         attach(1, 1, func(a *document.EmbeddedFile) { a.Name = strings.Repeat("n", 120) }),
		"without relationship":  attach(1, 1, func(a *document.EmbeddedFile) { a.Relationship = "" }),
		"media type parameters": attach(1, 1, func(a *document.EmbeddedFile) { a.MIME = "text/xml; charset=utf-8" }),
	} {
		if _, err := sharedRenderer(t).Render(t.Context(), v); err != nil {
			t.Errorf("%s: %v", title, err)
		}
	}
	for _, v := range []document.Visual{
		attach(17, 10, nil),
		attach(1, 16<<20+1, nil),
		attach(1, 1, func(a *document.EmbeddedFile) { a.Name = strings.Repeat("n", 121) }),
		attach(1, 1, func(a *document.EmbeddedFile) { a.Name = "" }),
		attach(1, 1, func(a *document.EmbeddedFile) { a.Name = "../../etc/passwd" }),
		attach(1, 1, func(a *document.EmbeddedFile) { a.Name = "a\nb" }),
		attach(1, 1, func(a *document.EmbeddedFile) { a.Name = "naïve.xml" }),
		attach(1, 1, func(a *document.EmbeddedFile) { a.MIME = "xml" }),
		attach(1, 1, func(a *document.EmbeddedFile) { a.Relationship = "Cousin" }),
		attach(2, 1, func(a *document.EmbeddedFile) { a.Name = "file-01.xml" }),
	} {
		refused(t, v)
	}
	for _, fx := range []document.FacturX{
		{FileName: "factur-x.xml", Level: "EN 16931"}, // not attached
		{FileName: "invoice.xml", Level: "EN 16931"},
	} {
		v := attach(1, 1, nil)
		v.FacturX = &fx
		refused(t, v)
	}
	v := frenchFacturX(t)
	v.FacturX.Level = "DELUXE"
	refused(t, v)
}
