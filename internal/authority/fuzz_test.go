package authority_test

import (
	"bytes"
	"encoding/base64"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/mutate"
)

// Whatever stands in a book's file: it is refused, or read, and what was read
// is read again, a torn last line excepted.
func FuzzBook(f *testing.F) {
	dir := f.TempDir()
	desk := openDesk(f, dir)
	if err := desk.Write(func(b *authority.Book) {
		b.Register(authority.Registration{Supplier: "s", Number: "n-1", SHA256: "00", AuthorityID: "A-1", Key: "k",
			Note: "note"})
		b.Put("chain/s", "head")
		b.Put("chain/s", "")
	}); err != nil {
		f.Fatal(err)
	}
	files, err := filepath.Glob(dir + "/*.jsonl")
	if err != nil || len(files) != 1 {
		f.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte("{}\n\n"))
	f.Add([]byte(`{"registration":null,"put":"a"}` + "\n" + `{"registration":{"supplier":`))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "XA.jsonl")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		read := func() []authority.Registration {
			desk, err := authority.OpenDesk(dir, "XA")
			if err != nil {
				return nil
			}
			held, err := desk.Registrations()
			if err := desk.Close(); err != nil {
				t.Error(err)
			}
			if err != nil {
				t.Error(err)
			}
			return held
		}
		first := read()
		if second := read(); len(second) != len(first) {
			t.Errorf("%d registrations, then %d", len(first), len(second))
		}
		if left, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(text, left) {
			t.Errorf("the book was changed to %q: %v", left, err)
		}
	})
}

// A certificate in a header is one, or none, or refused.
func FuzzClientCertificate(f *testing.F) {
	f.Add("")
	f.Add("::")
	f.Add(":" + base64.StdEncoding.EncodeToString([]byte{0x30, 0x82, 0, 0}) + ":")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header["Client-Cert"] = []string{text}
		cert, err := authority.ClientCertificate(r)
		if err == nil && (cert == nil) != (text == "") || err != nil && cert != nil {
			t.Errorf("%q: %v %v", text, cert, err)
		}
	})
}
