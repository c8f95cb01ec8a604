package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/go-fonts/liberation/liberationserifregular"

	"tributary/internal/server"
)

// hostileFonts are files that a folder of fonts may have and nobody should trust.
func hostileFonts() map[string][]byte {
	good := liberationserifregular.TTF
	all := map[string][]byte{
		"empty.ttf": nil, "text.ttf": []byte("<html>"), "head.ttf": good[:12], "half.ttf": good[:len(good)/2],
		"zeros.ttf": make([]byte, 1<<20), "collection.ttc": []byte("ttcf\x00\x01\x00\x00\xff\xff\xff\xff"),
		"tables.otf": append([]byte("OTTO\xff\xff"), bytes.Repeat([]byte{0xff}, 64<<10)...),
	}
	seed := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		bad := bytes.Clone(good)
		for range 1 + n*n {
			bad[seed.IntN(len(bad))] = byte(seed.Uint32())
		}
		for i := range 4 * (n % 5) { // and in the directory of tables
			bad[12+seed.IntN(16*12)] ^= byte(1 << (i % 8))
		}
		all[fmt.Sprintf("mutant-%02d.ttf", n)] = bad
	}
	return all
}

// A folder full of broken fonts keeps nobody from getting documents.
func TestHostileFontsOnTheRunningProgram(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, content := range hostileFonts() {
		must(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	must(t, os.Symlink(folder, filepath.Join(folder, "again")))
	p := demoAt(t, "", func(c *server.Config) { c.Fonts = []string{folder} })
	c := p.as(demoKey)
	for n, text := range []string{"Chair", "Čaj, кофе, чай", "ชาดำ น้ำผึ้ง", "黒茶", "قهوة", "\U0001D4B3 ∮ ﬁ"} {
		sale := p.sale(t, fmt.Sprint("fonts-", n), nil)
		sale["items"].([]any)[0].(object)["name"] = text
		if pdf := c.visual(t, c.submit(t, "/v1/transactions", sale)); !bytes.HasPrefix(pdf, []byte("%PDF-")) {
			t.Errorf("%q: no document", text)
		}
	}
}

// chunk is one of a PNG, with its checksum.
func chunk(name string, content []byte) []byte {
	body := append([]byte(name), content...)
	out := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	return binary.BigEndian.AppendUint32(append(out, body...), crc32.ChecksumIEEE(body))
}

// hostileLogos are pictures that are none, or want too much.
func hostileLogos(t *testing.T) map[string][]byte {
	t.Helper()
	var small, photo bytes.Buffer
	must(t, png.Encode(&small, image.NewGray(image.Rect(0, 0, 20, 10))))
	must(t, jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 20, 10)), nil))
	header := func(width, height uint32, depth, colour byte) []byte {
		size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
		return append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(size, depth, colour, 0, 0, 0))...)
	}
	huge := bytes.Clone(photo.Bytes())
	if at := bytes.Index(huge, []byte{0xff, 0xc0}); at > 0 {
		copy(huge[at+5:], []byte{0xff, 0xff, 0xff, 0xff}) // its size
	}
	all := map[string][]byte{
		"svg":                    []byte(`<svg><script>alert(1)</script><image href="file:///etc/passwd"/></svg>`),
		"svg with entities":      []byte(`<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]><svg>&a;</svg>`),
		"gif":                    []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"),
		"a page behind a PNG":    append(bytes.Clone(small.Bytes()), []byte("<script>alert(1)</script>")...),
		"sixty thousand squared": append(header(60000, 60000, 8, 2), chunk("IDAT", []byte{0x78, 0x9c})...),
		"no data":                append(header(20, 10, 8, 0), chunk("IEND", nil)...),
		"a palette of nothing":   append(append(header(20, 10, 8, 3), chunk("IDAT", []byte{0x78, 0x9c, 3, 0, 0, 0, 0, 1})...), chunk("IEND", nil)...),
		"no width":               append(header(0, 10, 8, 0), chunk("IEND", nil)...),
		"half a PNG":             small.Bytes()[:small.Len()/2],
		"a wrong checksum":       bytes.Replace(small.Bytes(), []byte("IDAT"), []byte("IDAS"), 1),
		"a huge JPEG":            huge,
		"half a JPEG":            photo.Bytes()[:photo.Len()/2],
	}
	seed := rand.New(rand.NewPCG(3, 4))
	for n := range 20 {
		for kind, from := range map[string][]byte{"png": small.Bytes(), "jpeg": photo.Bytes()} {
			bad := bytes.Clone(from)
			for range 1 + n {
				bad[8+seed.IntN(len(bad)-8)] = byte(seed.Uint32())
			}
			all[fmt.Sprintf("%s mutant %02d", kind, n)] = bad
		}
	}
	return all
}

// A picture is refused when it is sent, or it can be drawn: nothing is found out too late.
func TestHostileLogosOnTheRunningProgram(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	taken := 0
	for name, logo := range hostileLogos(t) {
		body := example(t, "company", object{"meta": object{"country_code": "XX", "external_id": "logo " + name},
			"tax_information": object{"tax_number": "LOGO-" + strings.ReplaceAll(name, " ", "-")}, "tax_credentials": nil,
			"branding": object{"logo_base64": base64.StdEncoding.EncodeToString(logo)}})
		got := c.do(t, "POST", "/onboarding/v2/companies", body)
		if got.status == 400 && strings.Contains(string(got.body), `"field":"branding.logo_base64"`) {
			continue
		}
		if got.status != 202 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
			continue
		}
		taken++
		id, _ := c.onboard(t, body) // the same job
		pdf := c.visual(t, c.submit(t, "/v1/transactions", p.sale(t, "logo "+name, object{"supplier": object{"id": id}})))
		if !bytes.HasPrefix(pdf, []byte("%PDF-")) || bytes.Contains(pdf, []byte("<script>")) {
			t.Errorf("%s: its document is none, or carries what stood behind the picture", name)
		}
	}
	if taken == 0 {
		t.Error("not even a picture with something behind it is taken: nothing was drawn")
	}
	for _, template := range []string{"../../../etc/passwd", "classic\x00", "{{.Key}}", "Classic"} {
		body := example(t, "company", object{"meta": object{"country_code": "XX", "external_id": "template " + template},
			"branding": object{"template": template}})
		c.want(t, 400, "POST", "/onboarding/v2/companies", body)
	}
}
