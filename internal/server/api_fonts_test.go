package server_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/needs"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// A folder of fonts changes the documents of the running program: its letters
// are drawn from there, before the system's.
func TestFontsOfAFolderSetDocuments(t *testing.T) {
	t.Parallel()
	const looped = "/usr/share/fonts/truetype/noto/NotoLoopedThai-Regular.ttf"
	raw, err := os.ReadFile(looped)
	if err != nil {
		needs.Missing(t, "fonts-noto-core is not installed: this check did not run")
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "house.ttf"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &program{dir: t.TempDir(), inbox: newInbox(), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	p.cancel = cancel
	config := server.Config{
		Demo: true, API: true, Worker: true, Listen: "127.0.0.1:0", Simulators: "127.0.0.1:0", Data: p.dir, Version: "test",
		Fonts:  []string{folder},
		APIKey: secret.New([]byte(demoKey)), WebhookURL: p.inbox.server.URL, WebhookRetryBase: 50 * time.Millisecond,
		AuthorityRetryBase: 50 * time.Millisecond,
	}
	seeded(t, p.dir, "")
	if p.Server, err = open(ctx, config); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.Run(ctx) }()
	p.inbox.trust(demoKey)
	<-p.Ready()
	for _, q := range []*program{p, busy(t)} {
		sale := q.sale(t, "thai", nil)
		sale["items"].([]any)[0].(object)["name"] = "ชาดำ น้ำผึ้ง"
		pdf := q.as(demoKey).visual(t, q.as(demoKey).submit(t, "/v1/transactions", sale))
		if got := bytes.Contains(pdf, []byte("+NotoLoopedThai")); got != (q == p) {
			t.Errorf("set in the font of the folder: %v, want %v", got, q == p)
		}
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	config.Fonts, config.Data = []string{filepath.Join(folder, "nowhere")}, t.TempDir()
	if _, err := server.Open(t.Context(), config); err == nil || !strings.Contains(err.Error(), "fonts") {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// What no font can draw is told in the result.
func TestAScriptWithoutAFontIsTold(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	sale := p.sale(t, "klingon", nil)
	sale["items"].([]any)[0].(object)["name"] = "Tea 🧾" // no text font has it
	got := c.outcome(t, c.submit(t, "/v1/transactions", sale))
	codes := []string{}
	for _, e := range got["errors"].([]any) {
		codes = append(codes, e.(object)["code"].(string)+"/"+e.(object)["type"].(string))
	}
	if got["status"] != "SUCCESS" || !slices.ContainsFunc(codes, func(c string) bool {
		return strings.HasPrefix(c, "script_unavailable/")
	}) {
		t.Errorf("%v with %v", got["status"], codes)
	}
}
