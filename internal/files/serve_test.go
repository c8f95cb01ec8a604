package files_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/files"
)

func TestOnlyTheOwnersKeyOpensADocument(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		a := s.issue("owner", "op", []byte("%PDF"))
		if got, err := s.fetch(a); err != nil || string(got) != "%PDF" {
			t.Errorf("served %q, %v", got, err)
		}
		signed := ask(t, s.URL(a))
		var texts []string
		for name, req := range map[string]files.Request{
			"another key":                    {ResourceID: a.ResourceID, Format: "pdf", ClientID: "other"},
			"another key, genuine address":   {ResourceID: a.ResourceID, Format: "pdf", ClientID: "other", Query: signed.Query},
			"unknown document":               {ResourceID: strings.Repeat("0", 32), Format: "pdf", ClientID: "owner"},
			"another format":                 {ResourceID: a.ResourceID, Format: "xml", ClientID: "owner"},
			"no format":                      {ResourceID: a.ResourceID, ClientID: "owner"},
			"not an id":                      {ResourceID: "x", Format: "pdf", ClientID: "owner"},
			"an id that PostgreSQL dislikes": {ResourceID: "\x00", Format: "pdf", ClientID: "owner"},
		} {
			_, err := s.Open(context.Background(), req)
			if fault.KindOf(err) != fault.NotFound {
				t.Errorf("%s: %v", name, err)
				continue
			}
			texts = append(texts, err.Error())
		}
		for _, text := range texts {
			if text != texts[0] {
				t.Errorf("answers differ: %q and %q", text, texts[0])
			}
		}
	})
}

func TestRecordsAreServedFromTheirOwner(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		report := files.NewFile([]byte("<report/>"))
		s.records["opREPORT"] = report.Bytes
		must(t, s.attach(files.Attachment{ClientID: "a", OperationID: "op", Kind: "REPORT", Type: "XML",
			Place: files.InRecord, SHA256: report.SHA256, Size: report.Size}))
		a := s.of("a", "op")[0]
		c, err := s.Open(context.Background(), ask(t, s.URL(a)))
		must(t, err)
		if c.Type != "application/xml" || c.Size != 9 || c.SHA256 != report.SHA256 ||
			c.Filename != "report-"+a.ResourceID+".xml" {
			t.Errorf("content %+v", c)
		}
		if len(s.files()) != 0 {
			t.Errorf("records were copied into the store: %v", s.files())
		}
		s.records["opREPORT"] = []byte("<report />")
		_, err = s.Open(context.Background(), ask(t, s.URL(a)))
		wantKind(t, err, fault.Internal)
		delete(s.records, "opREPORT")
		_, err = s.Open(context.Background(), ask(t, s.URL(a)))
		wantKind(t, err, fault.Internal)
	})
}

func TestADamagedDocumentIsNotServedAndRaisesAnAlert(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	var log bytes.Buffer
	alerts, err := alert.New(d, slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry())
	must(t, err)
	s := openShop(t, d, func(c *files.Config) { c.Alerts = alerts })
	for name, damage := range map[string]func(path string) error{
		"one bit":  func(path string) error { return os.WriteFile(path, []byte("contenT"), 0o600) },
		"shorter":  func(path string) error { return os.WriteFile(path, []byte("conten"), 0o600) },
		"longer":   func(path string) error { return os.WriteFile(path, []byte("contents"), 0o600) },
		"removed":  os.Remove,
		"is empty": func(path string) error { return os.Truncate(path, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			a := s.issue("client", name, []byte("content"))
			must(t, damage(s.files()[0]))
			_, err := s.Open(context.Background(), ask(t, s.URL(a)))
			wantKind(t, err, fault.Internal)
			_, err = s.fetch(a)
			wantKind(t, err, fault.Internal)
			must(t, d.Read(context.Background(), func(r db.Reader) error {
				list, err := alert.List(r, alert.Filter{Open: true, Name: alert.DocumentDamaged})
				if len(list) == 0 || list[0].Subject != a.ResourceID || list[0].Times != 2 {
					t.Errorf("alerts %+v", list)
				}
				return err
			}))
			if !strings.Contains(log.String(), "alert=document_damaged") {
				t.Errorf("log: %s", log.String())
			}
			for _, path := range s.files() {
				must(t, os.Remove(path))
			}
		})
	}
}

func TestDamageIsLoggedWithoutAlerts(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := openShop(t, dbtest.SQLite(t), func(c *files.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	a := s.issue("client", "op", []byte("content"))
	must(t, os.Remove(s.files()[0]))
	_, err := s.fetch(a)
	wantKind(t, err, fault.Internal)
	if !strings.Contains(log.String(), "alert=document_damaged") || !strings.Contains(log.String(), a.ResourceID) {
		t.Errorf("log: %s", log.String())
	}
}

func TestHeadersKeepADocumentPrivate(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	a := s.issue("client", "op", []byte("content"))
	c, err := s.Open(context.Background(), ask(t, s.URL(a)))
	must(t, err)
	got := files.Headers(c)
	want := map[string]string{
		"Content-Type": "application/pdf", "Content-Length": "7",
		"Content-Disposition": `attachment; filename="document-` + a.ResourceID + `.pdf"`,
		"Cache-Control":       "private, no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Content-Security-Policy": "sandbox",
	}
	for name, value := range want {
		if got.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, got.Get(name), value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("headers %v", got)
	}
}
