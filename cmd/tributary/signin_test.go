package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"tributary/internal/needs"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

const (
	consoleHost  = "console.example.test" // known to the browser of this test alone
	oidcClient   = "tributary"
	oidcSecret   = "a secret of the provider and us"
	pagePatience = 3 * time.Minute
)

// identityProvider is npm's oidc-provider in a process of its own. It is not
// there before it is started.
type identityProvider struct {
	t        *testing.T
	folder   string
	port     string
	issuer   string
	redirect string
}

func newIdentityProvider(t *testing.T, redirect string) *identityProvider {
	t.Helper()
	folder := needs.Npm(t, "oidc-provider")
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return &identityProvider{t: t, folder: folder, port: port, issuer: "http://localhost:" + port, redirect: redirect}
}

func (p *identityProvider) start() {
	p.t.Helper()
	cmd := exec.Command("node", "testdata/oidc-provider/provider.mjs", p.folder, p.port, oidcClient, oidcSecret,
		p.redirect)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready ") {
		p.t.Fatalf("the provider says %q: %v\n%s", line, err, said.String())
	}
}

// behindHTTPS puts a proxy with a certificate in front of the admin listener, as
// an operator would, and answers its address.
func behindHTTPS(t *testing.T, admin string) string {
	t.Helper()
	to := &url.URL{Scheme: "http", Host: admin}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.SetXForwarded()
		r.Out.Host = r.In.Host
	}, FlushInterval: -1})
	t.Cleanup(proxy.Close)
	return proxy.Listener.Addr().String()
}

// page is a real browser that knows the console by its name.
type page struct {
	t   *testing.T
	ctx context.Context
}

func openPage(t *testing.T, proxy string) *page {
	t.Helper()
	program := needs.Tool(t, "chromium", "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", "MAP "+consoleHost+":443 "+proxy),
		chromedp.Flag("ignore-certificate-errors", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to start as root with one
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("close the browser: %v", err)
		}
		cancel()
		stop()
	})
	// the browser lives as long as the context that starts it
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return &page{t, ctx}
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pagePatience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%v\n%s", err, p.text())
	}
}

func (p *page) text() string {
	ctx, cancel := context.WithTimeout(p.ctx, pagePatience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// sees waits until the page has a text; a page that is being left has none.
func (p *page) sees(text string) {
	p.t.Helper()
	look := chromedp.Poll[bool](fmt.Sprintf(`document.body.innerText.includes(%q)`, text),
		chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(time.Second))
	for late := time.Now().Add(pagePatience); time.Now().Before(late); {
		if there, err := chromedp.Run(p.ctx, look); err == nil && there {
			return
		}
	}
	p.t.Fatalf("the page never had %q:\n%s", text, p.text())
}

// throughProvider begins at our page and signs in at the provider's own forms.
func (p *page) throughProvider(name string) {
	p.t.Helper()
	p.do(chromedp.Navigate("https://"+consoleHost+"/console/queues"), chromedp.Click("a.button"),
		chromedp.WaitVisible("input[name=login]"),
		chromedp.SendKeys("input[name=login]", name), chromedp.SendKeys("input[name=password]", "any\r"))
	p.sees("Authorize") // the provider asks whether we may know
	p.do(chromedp.Click("button[type=submit]"))
}

// TestOperatorsSignInThroughAnIdentityProvider is the whole way with the program
// as an operator runs it: behind a proxy with HTTPS, a provider in a process of
// its own that begins later than the service, and a browser in between.
func TestOperatorsSignInThroughAnIdentityProvider(t *testing.T) {
	t.Parallel()
	provider := newIdentityProvider(t, "https://"+consoleHost+"/console/oidc/finish")
	dir, admin := t.TempDir(), freeAddress(t)
	secretFile := filepath.Join(dir, "oidc-secret")
	if err := os.WriteFile(secretFile, []byte(oidcSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	demo := start(t, "demo", "--data", dir, "--listen", freeAddress(t), "--admin", admin, "--simulators", freeAddress(t),
		"--callbacks", "127.0.0.1:0", "--log-level", "warn",
		"--admin-url", "https://"+consoleHost, "--oidc-issuer", provider.issuer, "--oidc-client-id", oidcClient,
		"--oidc-client-secret-file", secretFile)
	demo.waitReady() // although the provider is away
	if !regexp.MustCompile(`console +https://` + consoleHost + `/console/ `).MatchString(demo.output()) {
		t.Errorf("the demo does not print the console's address:\n%s", demo.output())
	}
	proxy := behindHTTPS(t, admin)
	p := openPage(t, proxy)

	p.do(chromedp.Navigate("https://"+consoleHost+"/console/queues"), chromedp.WaitVisible("#password"),
		chromedp.Click("a.button"))
	p.sees("The identity provider is unreachable")
	provider.start()
	for late := time.Now().Add(pagePatience); !strings.Contains(p.text(), provider.issuer+"/interaction"); {
		if time.Now().After(late) {
			t.Fatalf("the provider is back, and nobody noticed:\n%s", p.text())
		}
		p.do(chromedp.Navigate("https://" + consoleHost + "/console/oidc/begin"))
	}

	p.throughProvider("ana")
	p.sees("Unknown operator ana@example.test")
	operator := func(args ...string) {
		t.Helper()
		if code, _, errs := call(t, append(append([]string{"operator"}, args...), "--data", dir)...); code != 0 {
			t.Fatalf("operator %v: %d %s", args, code, errs)
		}
	}
	operator("create", "ana@example.test", "--oidc", "--role", "operator")
	// the provider remembers her
	p.do(chromedp.Navigate("https://"+consoleHost+"/console/queues"), chromedp.Click("a.button"))
	p.sees("Operations by stage")
	p.do(chromedp.Navigate("https://" + consoleHost + "/console/account"))
	p.sees("ana@example.test")
	p.bound()
	secured(t, proxy)

	operator("unbind", "ana@example.test")
	p.do(chromedp.Navigate("https://"+consoleHost+"/console/account"), chromedp.WaitVisible("#password"))
	if strings.Contains(demo.stderr()+demo.output(), oidcSecret) {
		t.Error("the secret is in the log")
	}
}

// bound checks the cookies: they never leave HTTPS and this host.
func (p *page) bound() {
	p.t.Helper()
	got, err := chromedp.Call(p.ctx, network.GetCookies,
		network.GetCookiesParams{URLs: []string{"https://" + consoleHost + "/console/"}})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(got.Cookies) == 0 {
		p.t.Error("there is no cookie")
	}
	for _, c := range got.Cookies {
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HTTPOnly || c.Path != "/" {
			p.t.Errorf("a cookie: %+v", c)
		}
	}
}

// secured checks what the proxy passes on: HSTS for our name, nothing for
// others, and no metrics for who comes through it without a token.
func secured(t *testing.T, proxy string) {
	t.Helper()
	// the test's own certificate
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
	for path, want := range map[string]int{"/console/sign-in": http.StatusOK, "/metrics": http.StatusUnauthorized} {
		for host, status := range map[string]int{consoleHost: want, "rebound.example": http.StatusMisdirectedRequest} {
			req, err := http.NewRequest(http.MethodGet, "https://"+proxy+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			answer, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != status {
				t.Errorf("%s at %s: %d, want %d", path, host, answer.StatusCode, status)
			}
			if hsts := answer.Header.Get("Strict-Transport-Security"); (hsts != "") != (status == http.StatusOK) {
				t.Errorf("%s at %s: Strict-Transport-Security %q", path, host, hsts)
			}
		}
	}
}
