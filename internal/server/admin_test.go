package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/operator"
	"tributary/internal/secret"
	"tributary/internal/server"
)

const adminToken = "a token of the admin listener"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// adminOf runs a program for its admin listener alone and answers its address.
func adminOf(t *testing.T, change func(*server.Config)) (s *server.Server, address string) {
	t.Helper()
	dir := t.TempDir()
	cfg := server.Config{Worker: true, Migrate: true, Admin: "127.0.0.1:0", Data: dir,
		PublicURL: "https://api.example.test", MasterKey: "file:" + dir + "/master.key", Version: "test"}
	must(t, secret.CreateMasterFile(dir+"/master.key"))
	if change(&cfg); cfg.Database == "" {
		migratedFile(t, dir)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := server.Open(ctx, cfg)
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, errors.Join(<-ended, s.Close()))
	})
	<-s.Ready()
	return s, strings.TrimPrefix(s.AdminURL(), "http://")
}

// ask makes one request with a Host and headers of its own.
func ask(t *testing.T, address, path, host string, headers ...string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
	must(t, err)
	req.Host = host
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}
	answer, err := client.Do(req)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, string(text)
}

// Whoever sends requests to a node that stops hears it before its listener closes.
func TestAStoppingNodeSaysSoAndServesOn(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	dir := t.TempDir()
	must(t, secret.CreateMasterFile(dir+"/master.key"))
	migratedFile(t, dir)
	s, err := server.Open(ctx, server.Config{API: true, Worker: true, Migrate: true, Listen: "127.0.0.1:0", Data: dir,
		PublicURL: "https://api.example.test", MasterKey: "file:" + dir + "/master.key",
		Version: "test", Drain: 30 * time.Second})
	must(t, err)
	s.LeavesUntil(left)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-s.Ready()
	at := s.Address()
	eventually(t, "it says that it is ready", func() bool {
		status, _ := ask(t, at, "/readyz", at)
		return status == http.StatusOK
	})
	stop()
	eventually(t, "it says that it is not ready", func() bool {
		status, _ := ask(t, at, "/readyz", at)
		return status == http.StatusServiceUnavailable
	})
	if status, _ := ask(t, at, "/healthz", at); status != http.StatusOK {
		t.Errorf("meanwhile: %d", status)
	}
	close(left)
	must(t, errors.Join(<-ended, s.Close()))
}

func TestTheAdminTokenCountsOnLoopbackToo(t *testing.T) {
	t.Parallel()
	_, at := adminOf(t, func(c *server.Config) { c.AdminToken = secret.FromText(adminToken) })
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/healthz"} {
		if status, _ := ask(t, at, path, at); status != http.StatusUnauthorized {
			t.Errorf("%s without the token: %d", path, status)
		}
		if status, _ := ask(t, at, path, at, "Authorization", "Bearer "+adminToken+"x"); status != http.StatusUnauthorized {
			t.Errorf("%s with another token: %d", path, status)
		}
		if status, _ := ask(t, at, path, at, "Authorization", "Bearer "+adminToken); status != http.StatusOK {
			t.Errorf("%s with the token: %d", path, status)
		}
	}
	if status, _ := ask(t, at, "/console/sign-in", at); status != http.StatusOK {
		t.Errorf("the console has its own sign-in: %d", status)
	}
	if status, body := ask(t, at, "/debug/pprof/cmdline", at, "Authorization",
		"Bearer "+adminToken); status != http.StatusNotFound || strings.Contains(body, "test") {
		t.Errorf("the arguments are shown: %d %s", status, body)
	}
}

func TestTheAdminListenerAnswersToItsNamesOnly(t *testing.T) {
	t.Parallel()
	_, at := adminOf(t, func(c *server.Config) { c.AdminURL = "https://console.example.test:8443" })
	_, port, err := net.SplitHostPort(at)
	must(t, err)
	for host, own := range map[string]bool{
		at: true, "localhost:" + port: true, "LOCALHOST": true, "127.0.0.1": true, "127.9.9.9:1": true,
		"[::1]:" + port: true, "console.example.test": true, "Console.Example.Test.:8443": true,
		"rebound.example:" + port: false, "console.example.test.rebound.example": false, "localhost.rebound.example": false,
		"192.0.2.1": false, "127.0.0.1.rebound.example": false,
	} {
		for path, want := range map[string]int{"/metrics": http.StatusOK, "/debug/pprof/": http.StatusOK,
			"/console/sign-in": http.StatusOK, "/": http.StatusSeeOther} {
			if !own {
				want = http.StatusMisdirectedRequest
			}
			if status, _ := ask(t, at, path, host); status != want {
				t.Errorf("%s as %s: %d, want %d", path, host, status, want)
			}
		}
	}
	// What a proxy passes on is not from this machine.
	for _, header := range []string{"X-Forwarded-For", "Forwarded"} {
		if status, _ := ask(t, at, "/metrics", "console.example.test", header,
			"for=192.0.2.9"); status != http.StatusUnauthorized {
			t.Errorf("metrics through a proxy: %d", status)
		}
	}
}

// On a network monitoring has the token and calls by whatever name it knows.
func TestOnANetworkTheTokenOpensMetricsUnderAnyName(t *testing.T) {
	t.Parallel()
	_, at := adminOf(t, func(c *server.Config) {
		c.Admin, c.AdminToken = "0.0.0.0:0", secret.FromText(adminToken)
	})
	_, port, err := net.SplitHostPort(at)
	must(t, err)
	at = "127.0.0.1:" + port
	if status, _ := ask(t, at, "/metrics", "tributary-admin:8081", "Authorization",
		"Bearer "+adminToken); status != http.StatusOK {
		t.Errorf("with the token: %d", status)
	}
	if status, _ := ask(t, at, "/metrics", "tributary-admin:8081"); status != http.StatusMisdirectedRequest {
		t.Errorf("without: %d", status)
	}
	if status, _ := ask(t, at, "/metrics", at); status != http.StatusUnauthorized {
		t.Errorf("by a name of ours without the token: %d", status)
	}
	if status, _ := ask(t, at, "/console/sign-in", "rebound.example"); status != http.StatusMisdirectedRequest {
		t.Errorf("the console under a strange name: %d", status)
	}
}

// TestWhoDawdlesAtTheAdminListenerIsCutOff has the listener's limits, but
// shorter: bodies that do not come end, streams and profiles go on.
func TestWhoDawdlesAtTheAdminListenerIsCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, secret.CreateMasterFile(dir+"/master.key"))
	s, err := server.Open(t.Context(), server.Config{Worker: true, Migrate: true, Admin: "127.0.0.1:0", Data: dir,
		PublicURL: "https://api.example.test"})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	srv := s.AdminServer()
	if srv.ReadHeaderTimeout <= 0 || srv.ReadTimeout <= 0 || srv.WriteTimeout <= 0 || srv.IdleTimeout <= 0 {
		t.Errorf("a limit is missing: %+v", srv)
	}
	at := limitedAdmin(t, srv, 100*time.Millisecond)
	for what, sent := range map[string]string{
		"a body that does not come": "POST /console/sign-in HTTP/1.1\r\nHost: " + at +
			"\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nname=",
		"a head that does not end": "GET /metrics HTTP/1.1\r\nHost: " + at + "\r\n",
		"a rest":                   "GET /healthz HTTP/1.1\r\nHost: " + at + "\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", at)
		must(t, err)
		_, err = io.WriteString(conn, sent)
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(patience)))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("%s: the connection was not closed: %v", what, err)
		}
		must(t, conn.Close())
	}
	client := signedIn(t, s, srv)
	// a machine that stalls may use up a short limit before it has read the request
	for limit := time.Second; ; limit *= 2 {
		at := limitedAdmin(t, srv, limit)
		err := errors.Join(profiles(at, limit), follows(t, s, client, at, limit))
		if err == nil {
			return
		}
		if limit > patience/10 {
			t.Fatal(err)
		}
	}
}

// limitedAdmin serves the admin listener with other limits and answers its address.
func limitedAdmin(t *testing.T, like *http.Server, limit time.Duration) string {
	t.Helper()
	srv := &http.Server{Handler: like.Handler, ErrorLog: like.ErrorLog, ReadHeaderTimeout: limit, ReadTimeout: limit,
		WriteTimeout: limit, IdleTimeout: limit}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go func() { _ = srv.Serve(l) }() // ends with Close
	t.Cleanup(func() { must(t, srv.Close()) })
	return l.Addr().String()
}

// profiles takes a profile that lasts as long as the limit.
func profiles(at string, limit time.Duration) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", at, limit/time.Second))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err = io.Copy(io.Discard, answer.Body); err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("a profile is answered with %s", answer.Status)
	}
	return err
}

// signedIn is a browser of an operator, who signed in where nothing is short.
func signedIn(t *testing.T, s *server.Server, srv *http.Server) *http.Client {
	t.Helper()
	at := limitedAdmin(t, srv, patience)
	const password = "a river runs through it 1976"
	_, _, err := s.Operators().Create(t.Context(), audit.Actor{Name: "test"},
		operator.NewOperator{Name: "ana", Role: operator.Admin, Password: secret.FromText(password)})
	must(t, err)
	jar, err := cookiejar.New(nil)
	must(t, err)
	client := &http.Client{Jar: jar, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	answer, err := client.PostForm("http://"+at+"/console/sign-in", url.Values{"name": {"ana"}, "password": {password}})
	must(t, err)
	must(t, answer.Body.Close())
	return client
}

// follows opens a page's updates and sees them go on past the limit.
func follows(t *testing.T, s *server.Server, client *http.Client, at string, limit time.Duration) error {
	t.Helper()
	live, err := client.Get("http://" + at + "/console/live/alerts")
	if err != nil {
		return err
	}
	defer live.Body.Close()
	lines := bufio.NewScanner(live.Body)
	pages := 0
	for pages < 2 && lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "event: page") {
			continue
		}
		if pages++; pages == 1 {
			time.Sleep(limit)
			must(t, s.Alerts().Raise(t.Context(), alert.WebhookBreakerOpen, "acme-"+limit.String(), "20 tries in a row failed"))
		}
	}
	if pages != 2 {
		return fmt.Errorf("the updates ended after %d: %w", pages, lines.Err())
	}
	return nil
}
