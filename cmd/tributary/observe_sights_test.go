package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db/dbtest"
	"tributary/internal/secret"
)

const (
	ownHeader = "X-Service-Hmac-SHA256"
	fullKey   = "trb_test_full_0123456789012345678901234567890123456789012"
	otherKey  = "trb_test_other_0123456789012345678901234567890123456789012"
)

// newFull is a demo with everything said: a third on the command line, a third
// in the environment, a third in a file.
func (o *observatory) newFull() *service {
	cert, key := o.certificate()
	at := func(name string) string { return filepath.Join(o.dir, "full-"+name) }
	return o.demo("full",
		[]string{"--webhook-url", o.hook.URL + "/full", "--webhook-ca", o.ca, "--webhook-retry-base", "10ms", "--tls-cert",
			cert, "--tls-key", key, "--document-ttl", "2h", "--log-format", "json"},
		[]string{"TRIBUTARY_API_KEY=" + fullKey, "TRIBUTARY_DATABASE=sqlite:" + at("elsewhere.db"),
			"TRIBUTARY_MASTER_KEY=file:" + at("master.key"), "TRIBUTARY_TRUST_PROXY=true",
			"TRIBUTARY_ADMIN_TOKEN_FILE=" + write(o.root, at("token"), "a token of the full one"),
			"TRIBUTARY_VIES=" + o.vies.URL},
		map[string]any{"documents": "file://" + at("documents"), "public-url": "https://api.example.test",
			"admin-url": "http://" + consoleHost, "authority-retry-base": "10m",
			"oidc-issuer": o.issuer.URL, "oidc-client-id": "full",
			"oidc-client-secret-file": write(o.root, at("oidc"), "from a file")})
}

// newOther says what newFull could not say at the same time.
func (o *observatory) newOther() *service {
	return o.demo("other", []string{"--webhook-url", o.hook.URL + "/other", "--api-key-file",
		write(o.root, filepath.Join(o.dir, "other-key"), otherKey), "--log-level", "error"},
		[]string{"TRIBUTARY_ADMIN_TOKEN=another token", "TRIBUTARY_OIDC_CLIENT_SECRET=from a variable"},
		map[string]any{"oidc-issuer": o.issuer.URL, "oidc-client-id": "other"})
}

func (o *observatory) certificate() (cert, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		o.root.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		o.root.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		o.root.Fatal(err)
	}
	return write(o.root, filepath.Join(o.dir, "cert.pem"),
			string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		write(o.root, filepath.Join(o.dir, "key.pem"),
			string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
}

// both looks at the plain demo and at the full one.
func both(look func(*service) string) func(*observatory) (string, string) {
	return func(o *observatory) (string, string) { return look(o.plain()), look(o.full()) }
}

// configures is a sight of one flag of client configure.
func configures(flag string) func(*observatory) (string, string) {
	return func(o *observatory) (string, string) { return o.configured(flag) }
}

// elsewhere names the tests that show settings whose sight would take too long
// or needs a state that no command makes.
var elsewhere = map[string]string{
	"backlog":          "internal/server TestAFullBacklogIsToldAndOutagesDoNotCount",
	"authority-slots":  "internal/server TestAuthoritySlotsBoundTheCallsToOneCountry",
	"simulators-from":  "internal/inbox TestSimulatedAuthoritiesAreHeardFromNearbyOnly",
	"fonts":            "internal/server TestFontsOfAFolderSetDocuments",
	"stored":           "internal/bench TestARunGivesEveryFigure",
	"received":         "internal/bench TestWaitingDocumentsAreReceived",
	"compare":          "internal/bench TestARunGivesEveryFigure",
	"plot":             "internal/bench TestARunGivesEveryFigure",
	"nodes":            "cmd/tributary TestASecondNodeDoublesWhatIsUnderWay",
	"quick":            "cmd/tributary TestTheProgramIsComparedWithItself",
	"drain":            "internal/server TestAStoppingNodeSaysSoAndServesOn",
	"claim":            "cmd/tributary TestABackupIsRestoredAsPrinted",
	"release":          "cmd/tributary TestABackupIsRestoredAsPrinted",
	"reason":           "cmd/tributary TestABackupIsRestoredAsPrinted",
	"recovery-reason":  "cmd/tributary TestABackupIsRestoredAsPrinted",
	"position":         "internal/recovery TestAChainWithoutAHeadIsJudgedByItsList",
	"hash":             "internal/recovery TestAChainWithoutAHeadIsJudgedByItsList",
	"extra":            "internal/recovery TestAChainWithoutAHeadIsJudgedByItsList",
	"docs-out":         "cmd/tributary TestTheDocumentationIsWrittenToAFolder",
	"operator":         "cmd/tributary TestAnInstallationIsMadeByItsFlags",
	"client":           "cmd/tributary TestAnInstallationIsMadeByItsFlags",
	"rows":             "cmd/tributary TestAClientLooksFromTheCommandLine",
	"status":           "cmd/tributary TestAClientLooksFromTheCommandLine",
	"in":               "cmd/tributary TestAClientLooksFromTheCommandLine",
	"list-supplier":    "cmd/tributary TestAClientLooksFromTheCommandLine",
	"number":           "cmd/tributary TestAClientLooksFromTheCommandLine",
	"from":             "cmd/tributary TestAClientLooksFromTheCommandLine",
	"to":               "cmd/tributary TestAClientLooksFromTheCommandLine",
	"event-state":      "cmd/tributary TestAClientLooksFromTheCommandLine",
	"trigger-in":       "cmd/tributary TestAClientLooksFromTheCommandLine",
	"trigger-supplier": "cmd/tributary TestAClientLooksFromTheCommandLine",
	"trigger-wait":     "cmd/tributary TestAClientLooksFromTheCommandLine",
	"own":              "internal/recovery TestAChainIsNotRenamedSilently",
	"anew":             "internal/recovery TestAChainIsNotRenamedSilently",
	"callbacks":        "internal/server TestAnAuthorityCallsBack",
	"audit-heads":      "internal/server TestHeadsAreWrittenOutsideAndFindWhatWasCutOff",
	"operator-mfa":     "cmd/tributary TestOperatorMFAIsAskedForByTheProgram",
	"callbacks-url":    "internal/server TestTheAddressForCallbacksIsTheOneGiven",
}

// sights are how a change of each setting is seen.
var sights = map[string]func(*observatory) (without, with string){
	// Of demo and serve.
	"listen": both(func(s *service) string { return answered(s, s.url+"/healthz") + s.listen }),
	"admin": both(func(s *service) string {
		return answered(s, "http://"+s.admin+"/console/sign-in") + s.admin
	}),
	"data":     both(func(s *service) string { return exists(s.dir) + s.dir }),
	"database": both(func(s *service) string { return exists(filepath.Join(s.dir, "tributary.db")) }),
	"documents": both(func(s *service) string {
		s.settled()
		return exists(filepath.Join(s.dir, "documents"))
	}),
	"master-key":   both(func(s *service) string { return exists(filepath.Join(s.dir, "master.key")) }),
	"tls-cert":     both((*service).scheme),
	"tls-key":      both((*service).scheme),
	"config":       both(func(s *service) string { return publicHost(s) }),
	"public-url":   both(publicHost),
	"api-key":      both(func(s *service) string { return s.key }),
	"document-ttl": both(documentTTL),
	"log-format":   both(func(s *service) string { s.signIn("wrong"); return s.logged("refused")[:1] }),
	"admin-url": both(func(s *service) string {
		return answered(s, "http://"+s.admin+"/console/sign-in", "Host", consoleHost)
	}),
	"oidc-issuer":             both(func(s *service) string { id, _ := s.provider(); return fmt.Sprint(id != "") }),
	"oidc-client-id":          both(func(s *service) string { id, _ := s.provider(); return id }),
	"admin-token-file":        both(func(s *service) string { return answered(s, "http://"+s.admin+"/metrics") }),
	"oidc-client-secret-file": both(func(s *service) string { _, secret := s.provider(); return secret }),
	"trust-proxy": both(func(s *service) string {
		s.signIn("wrong again", "X-Forwarded-For", "203.0.113.9")
		return fmt.Sprint(strings.Contains(s.logged("203.0.113.9", "127.0.0.1"), "203.0.113.9"))
	}),
	"vies": both(func(s *service) string {
		s.o.asked.Store(0)
		var job struct{ Status string }
		s.json(http.MethodPost, "/lookup/v2/single-validations",
			`{"country_iso_code":"DE","tax_identification_number":"DE136695976"}`, &job)
		if s == s.o.full() {
			s.o.eventually("the register is asked", func() bool { return s.o.asked.Load() > 0 })
		}
		return fmt.Sprint(s.o.asked.Load() > 0)
	}),
	"restored": func(o *observatory) (string, string) { return o.restored(), o.restored("--restored") },
	"restored-since": func(o *observatory) (string, string) {
		return o.restored("--restored"), o.restored("--restored", "--restored-since", longAgo())
	},
	"authority-retry-base": both(func(s *service) string {
		s.ask(http.MethodPut, "http://"+s.sims+"/_control/xx/script", `{"steps":[{"outcome":"unavailable","times":1000000}]}`)
		defer s.ask(http.MethodPut, "http://"+s.sims+"/_control/xx/script", `{"steps":[]}`)
		s.submit("waits")
		// With the default a lane is tried again soon; with ten minutes it is put
		// off for minutes. Whichever is seen first is the answer.
		const far = "SELECT count(*) FROM lanes WHERE failures > 0 AND due_at - trouble_at > 100000000"
		const again = "SELECT count(*) FROM lanes WHERE failures > 2"
		seen := ""
		s.o.eventually("the authority is called", func() bool {
			switch {
			case s.row(s.database(), far) > 0:
				seen = "put off"
			case s.row(s.database(), again) > 0:
				seen = "tried again"
			}
			return seen != ""
		})
		return seen
	}),
	"webhook-ca": func(o *observatory) (string, string) {
		tried := func(tries int, _ string) bool { return tries > 0 }
		return o.other().event(tried).Status, o.full().event(delivered).Status
	},
	"webhook-retry-base": func(o *observatory) (string, string) {
		return heardAgain(o.plain(), "/plain"), heardAgain(o.full(), "/full")
	},
	"webhook-url":  func(o *observatory) (string, string) { return heard(o.plain(), "/plain"), heard(o.full(), "/full") },
	"api-key-file": func(o *observatory) (string, string) { return o.plain().key, o.other().key },
	"admin-token": func(o *observatory) (string, string) {
		return answered(o.plain(), "http://"+o.plain().admin+"/metrics"),
			answered(o.other(), "http://"+o.other().admin+"/metrics")
	},
	"oidc-client-secret": func(o *observatory) (string, string) {
		_, without := o.full().provider()
		_, with := o.other().provider()
		return without, with
	},
	"log-level": func(o *observatory) (string, string) {
		look := func(s *service) string {
			s.signIn("wrong once more")
			s.ask(http.MethodGet, "http://"+s.admin+"/console/sign-in", "")
			return fmt.Sprint(strings.Contains(s.p.stderr(), "sign-in to the console was refused"))
		}
		o.plain().logged("refused")
		return look(o.plain()), look(o.other())
	},
	"simulators": both(func(s *service) string {
		return answered(s, "http://"+s.sims+"/_control/xx/registrations") + s.sims
	}),
	"migrate": func(o *observatory) (string, string) {
		args := func(name string) []string {
			dir := filepath.Join(o.dir, name)
			o.t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a temporary folder
			return []string{"serve", "--database", "sqlite:" + dir + ".db", "--listen", freeAddress(o.t), "--admin", "",
				"--master-key", "file:" + o.masterKey()}
		}
		without := o.says(args("older")...)
		start(o.t, append(args("migrated"), "--migrate")...).waitReady()
		return without, "ready"
	},
	"role": func(o *observatory) (string, string) {
		look := func(role string) string {
			if err := os.MkdirAll(filepath.Join(o.dir, "role-"+role), 0o700); err != nil {
				o.t.Fatal(err)
			}
			s := o.serve("role-"+role, "--role", role, "--migrate")
			return answered(s, s.url+"/readyz")
		}
		return look("api"), look("worker")
	},
	"authority": func(o *observatory) (string, string) { return o.filed(), o.filed("--authority") },
	"webhook-allow": func(o *observatory) (string, string) {
		return o.delivered(), o.delivered("--webhook-allow", "127.0.0.0/8", "--webhook-ca", o.ca)
	},
	"webhook-proxy": func(o *observatory) (string, string) {
		return o.proxied("--webhook-allow", "127.0.0.0/8"), o.proxied("--webhook-allow", "127.0.0.0/8", "--webhook-proxy")
	},
	"database-password-file": passwordAsked,
	"serve-role": granted("SELECT count(*) FROM schema_roles WHERE serve = 'tributary_seen'",
		"--serve-role=tributary_seen"),
	"read-role": granted("SELECT count(*) FROM schema_roles WHERE read = 'tributary_seeing'",
		"--serve-role=tributary_seen", "--read-role=tributary_seeing"),
	"serve-password": granted(
		"SELECT rolpassword LIKE 'SCRAM-SHA-256$4096:%' FROM pg_authid WHERE rolname = 'tributary_told'",
		"--serve-role=tributary_told", "--serve-password=open sesame"),
	"serve-password-file": granted(
		"SELECT rolpassword LIKE 'SCRAM-SHA-256$4096:%' FROM pg_authid WHERE rolname = 'tributary_read_to'",
		"--serve-role=tributary_read_to", "--serve-password-file=FILE"),

	"drop-role": func(o *observatory) (without, with string) {
		database := dbtest.PostgresURL(o.t)
		for _, role := range []string{"tributary_ends", "tributary_stays"} {
			o.says("migrate", "--database", database, "--serve-role", role)
		}
		const standing = "SELECT string_agg(serve, ' ') FROM schema_roles"
		without = query(o.t, database, standing)
		o.says("migrate", "--database", database, "--drop-role", "tributary_ends")
		return without, query(o.t, database, standing)
	},

	// Of clients, keys, operators and the master key.
	"name":                     configures("--name=Acme renamed"),
	"country":                  configures("--country=ES=BOTH"),
	"client-webhook-url":       configures("--webhook-url=https://hooks.example.com/all"),
	"webhook":                  configures("--webhook=transactions.transaction_completed=https://hooks.example.com/one"),
	"webhook-cidr":             configures("--webhook-cidr=10.1.0.0/16"),
	"webhook-signature-header": configures("--webhook-signature-header=X-Acme-Signature"),
	"logo-placement":           configures("--logo-placement=right"),
	"accent":                   configures("--accent=#225588"),
	"ink":                      configures("--ink=#112233"),
	"font":                     configures("--font=serif"),
	"template":                 configures("--template=ES=modern"),
	"footer":                   configures("--footer=Open on Sundays"),
	"totals":                   configures("--totals=warn"),
	"retention-years":          configures("--retention-years=12"),
	"diagnostic-days":          configures("--diagnostic-days=30"),
	"legal-hold":               configures("--legal-hold=on"),
	"rate":                     configures("--rate=7"),
	"burst":                    configures("--burst=77"),
	"logo":                     func(o *observatory) (string, string) { return o.configured("--logo=" + o.picture()) },
	"out": func(o *observatory) (string, string) {
		path := filepath.Join(o.t.TempDir(), "sample.pdf")
		without := o.sampled()[:4] + exists(path)
		return without, o.sampled("--out", path) + exists(path)
	},
	"preview-country": func(o *observatory) (string, string) {
		o.configured("--template=PT=modern")
		return o.sampled(), o.sampled("--country", "PT")
	},
	"language":         func(o *observatory) (string, string) { return o.sampled(), o.sampled("--language", "DE") },
	"preview-template": func(o *observatory) (string, string) { return o.sampled(), o.sampled("--template", "receipt") },
	"preview-fonts": func(o *observatory) (string, string) {
		return o.sampled()[:4],
			o.says(append([]string{"preview", "acme", "--fonts", filepath.Join(o.t.TempDir(), "nowhere")}, o.book()...)...)
	},
	"file": func(o *observatory) (string, string) {
		return o.configured("--file=" + write(o.t, filepath.Join(o.t.TempDir(), "client.json"),
			`{"display_name":"From a file","rate":{"per_second":200,"burst":400}}`))
	},
	"key-scopes":  limits("--scopes=read"),
	"key-expires": limits("--expires=720h"),
	"key-cidr":    limits("--cidr=10.1.0.0/16"),
	"key-name":    limits("--name=till"),
	"stop-webhooks": func(o *observatory) (string, string) {
		kid := strings.Split(o.created("stop-client"), "_")[2]
		look := func(flags ...string) string {
			return o.says(append(append([]string{"key", "revoke", kid}, flags...), o.book()...)...)[:1]
		}
		return look(), look("--stop-webhooks")
	},
	"live": func(o *observatory) (string, string) {
		return o.created("test-client")[:9], o.created("live-client", "--live")[:9]
	},
	"key": func(o *observatory) (string, string) {
		return o.created("a-client"), o.created("b-client", "--key", fullKey)
	},
	"key-file": func(o *observatory) (string, string) {
		return o.created("c-client"), o.created("d-client", "--key-file",
			write(o.t, filepath.Join(o.t.TempDir(), "key"), otherKey+"\n"))
	},
	"demo": func(o *observatory) (string, string) {
		args := append([]string{"client", "create", "--webhook-url", "http://127.0.0.1:9000/"}, o.book()...)
		return o.says(append(args, "local", "--name", "Local")...)[:1],
			o.says(append(args, "local", "--name", "Local", "--demo")...)[:1]
	},
	"json": func(o *observatory) (string, string) {
		plain := o.book()[:len(o.book())-1]
		return o.must(append([]string{"client", "list"}, plain...)...),
			o.must(append([]string{"client", "list", "--json"}, plain...)...)
	},
	"secret-file": func(o *observatory) (string, string) {
		path := write(o.t, filepath.Join(o.t.TempDir(), "secret"), "whsec_"+strings.Repeat("YWJj", 8))
		look := func(flags ...string) string {
			return fmt.Sprint(strings.Contains(o.must(append(append([]string{"webhook-secret", "create", "acme"}, flags...),
				o.book()...)...), strings.Repeat("YWJj", 8)))
		}
		return look(), look("--secret-file", path)
	},
	"operator-role": func(o *observatory) (string, string) {
		return o.hired("ana"), strings.ReplaceAll(o.hired("bea", "--role", "admin"), "bea", "ana")
	},
	"oidc": func(o *observatory) (string, string) {
		look := func(text string) string { return fmt.Sprint(strings.Contains(text, "new_password")) }
		return look(o.hired("cid")), look(o.hired("dan", "--oidc"))
	},
	"password-stdin": func(o *observatory) (string, string) {
		look := func(flags ...string) string {
			var out, errs bytes.Buffer
			args := append(append([]string{"operator", "password", "ana"}, flags...), o.book()...)
			run(o.t.Context(), args, streams{&out, &errs, strings.NewReader("a river runs through it 1976\n")})
			return fmt.Sprint(strings.Contains(out.String(), "new_password"))
		}
		o.says(append([]string{"operator", "create", "ana"}, o.book()...)...)
		return look(), look("--password-stdin")
	},
	"limit": func(o *observatory) (string, string) {
		o.hired("eve")
		o.hired("fay")
		look := func(flags ...string) string {
			return o.must(append(append([]string{"operator", "audit"}, flags...), o.book()...)...)
		}
		return look(), look("--limit", "1")
	},
	"file-only": func(o *observatory) (string, string) {
		look := func(flags ...string) string {
			out := o.must(append(append([]string{"master-key", "rotate"}, flags...), o.book()...)...)
			return fmt.Sprint(strings.Contains(out, `"data_keys_moved": 0`))
		}
		return look(), look("--file-only")
	},

	// Of the client's tools.
	"url": func(o *observatory) (string, string) {
		file := o.saleFile("url-1")
		look := func(url string) string {
			return o.says("submit", file, "--api-key", o.plain().key, "--retry-for", "1ns", "--url", url)
		}
		return look("http://" + freeAddress(o.t)), look(o.plain().url)
	},
	"operation": func(o *observatory) (string, string) {
		return o.submitted("op-1"), o.submitted("op-1", "--operation", "backfill")
	},
	"wait": func(o *observatory) (string, string) { return o.outcome("w-1"), o.outcome("w-2", "--wait") },
	"wait-for": func(o *observatory) (string, string) {
		return o.outcome("wf-1", "--wait"), o.outcome("wf-2-SLOW", "--wait", "--wait-for", "100ms")
	},
	"retry-failed": func(o *observatory) (string, string) {
		file := o.saleFile("rf-1-REJECT")
		o.says("submit", file, "--url", o.plain().url, "--api-key", o.plain().key, "--wait")
		attempts := func(flags ...string) string {
			o.says(append([]string{"submit", file, "--url", o.plain().url, "--api-key", o.plain().key, "--wait"}, flags...)...)
			var past struct{ History []struct{ Status string } }
			o.plain().json(http.MethodGet, "/v1/transactions/history/rf-1-REJECT", "", &past)
			return fmt.Sprint(len(past.History))
		}
		return attempts(), attempts("--retry-failed")
	},
	"state": func(o *observatory) (string, string) {
		path := filepath.Join(o.t.TempDir(), "state")
		o.submitted("st-1")
		without := exists(path)
		o.submitted("st-2", "--state", path)
		return without, exists(path)
	},
	"report": func(o *observatory) (string, string) {
		path := filepath.Join(o.t.TempDir(), "report.csv")
		o.submitted("rp-1")
		without := exists(path)
		o.submitted("rp-2", "--report", path)
		return without, exists(path)
	},
	"concurrency": func(o *observatory) (string, string) { return o.atOnce(), o.atOnce("--concurrency", "1") },
	"retry-for": func(o *observatory) (string, string) {
		return o.retriedFor("1ns"), o.retriedFor("3s")
	},
	"signature": func(o *observatory) (string, string) {
		return o.verified("--signature", strings.Repeat("0", 64)), o.verified("--signature", signatureOf(notification))
	},
	"max-age": func(o *observatory) (string, string) {
		return o.verified("--signature", signatureOf(notification)),
			o.verified("--signature", signatureOf(notification), "--max-age", "1h")
	},
	"listen-listen": func(o *observatory) (string, string) {
		a, b := freeAddress(o.t), freeAddress(o.t)
		return o.received(a, ownHeader) + a, o.received(b, ownHeader) + b
	},
	"signature-header": func(o *observatory) (string, string) {
		return o.received(freeAddress(o.t), "X-Other"),
			o.received(freeAddress(o.t), "X-Other", "--signature-header", "X-Other")
	},
	"forward": func(o *observatory) (string, string) {
		var forwarded atomic.Int64
		to := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { forwarded.Add(1) }))
		o.t.Cleanup(to.Close)
		o.received(freeAddress(o.t), ownHeader)
		without := fmt.Sprint(forwarded.Load())
		o.received(freeAddress(o.t), ownHeader, "--forward", to.URL)
		return without, fmt.Sprint(forwarded.Load())
	},

	// Of the deployment's tools.
	"timeout": func(o *observatory) (string, string) {
		hung := make(chan struct{})
		silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
		o.t.Cleanup(func() { close(hung); silent.Close() })
		look := func(timeout string) string {
			begun := time.Now()
			o.says("doctor", "--data", o.plain().dir, "--simulators", silent.URL, "--timeout", timeout, "--log-level", "error")
			return fmt.Sprint(time.Since(begun) > 14*time.Second)
		}
		return look("15s"), look("100ms")
	},
	"supplier": func(o *observatory) (string, string) {
		return o.reconciled("--supplier", "nobody", "--day", "2026-03-31"),
			o.reconciled("--supplier", o.supplier(), "--day", "2026-03-31")
	},
	"day": func(o *observatory) (string, string) {
		return o.reconciled("--supplier", o.supplier(), "--day", "2026-03-30"),
			o.reconciled("--supplier", o.supplier(), "--day", "2026-03-31")
	},
	"until": func(o *observatory) (string, string) {
		return o.reconciled("--supplier", o.supplier(), "--day", "2026-03-30"),
			o.reconciled("--supplier", o.supplier(), "--day", "2026-03-30", "--until", "2026-03-31")
	},
	"bench-database": func(o *observatory) (string, string) {
		return o.says("bench", "--database", "mysql://one"), o.says("bench", "--database", "mysql://two")
	},
}

func answered(s *service, url string, headers ...string) string {
	status, _ := s.ask(http.MethodGet, url, "", headers...)
	return fmt.Sprint(status, " ")
}

func delivered(_ int, status string) bool { return status == "delivered" }

// heard is the path at which a service's notifications arrive.
func heard(s *service, path string) string {
	s.event(delivered)
	if _, called := s.o.heard.Load(path); !called {
		return "nowhere"
	}
	return path
}

// longAgo is a day that no backup would begin with by itself.
func longAgo() string { return time.Now().AddDate(0, 0, -40).Format(time.DateOnly) }

// restored is what a service on a copy of the plain demo's data asks the authorities for.
func (o *observatory) restored(flags ...string) string {
	s := o.moved(append([]string{"--simulators", o.plain().sims}, flags...)...)
	defer s.p.kill()
	return fmt.Sprint(s.row(s.database(), "SELECT count(*) FROM restorations"), " ",
		s.row(s.database(), "SELECT count(*) FROM restored_suppliers WHERE first_day = '"+longAgo()+"'") > 0)
}

func publicHost(s *service) string {
	e := s.event(func(int, string) bool { return true })
	u, err := url.Parse(e.ResourceURL)
	if err != nil {
		s.o.t.Fatal(err)
	}
	return u.Host
}

func documentTTL(s *service) string {
	result := s.settled()
	if len(result.Attachments) == 0 {
		s.o.t.Fatalf("%+v", result)
	}
	u, err := url.Parse(result.Attachments[0].URL)
	if err != nil {
		s.o.t.Fatal(err)
	}
	until, err := strconv.ParseInt(u.Query().Get("exp"), 10, 64)
	if err != nil {
		s.o.t.Fatal(err)
	}
	return fmt.Sprint(time.Until(time.Unix(until, 0)) > time.Hour)
}

// heardAgain says whether the receiver waited seconds for the second try.
func heardAgain(s *service, path string) string {
	s.event(delivered)
	times, _ := s.o.heard.Load(path)
	first, _ := times.(*sync.Map).Load(0)
	second, _ := times.(*sync.Map).Load(1)
	return fmt.Sprint(second.(time.Time).Sub(first.(time.Time)) > 3500*time.Millisecond)
}

// logged waits for the last line of the log with one of the texts.
func (s *service) logged(texts ...string) (line string) {
	s.o.eventually("the log says it", func() bool {
		for l := range strings.Lines(s.p.stderr()) {
			for _, text := range texts {
				if strings.Contains(l, "refused") && strings.Contains(l, text) {
					line = l
				}
			}
		}
		return line != ""
	})
	return line
}

func (s *service) database() string {
	if s == s.o.full() {
		return "sqlite:" + filepath.Join(s.o.dir, "full-elsewhere.db")
	}
	return "sqlite:" + filepath.Join(s.dir, "tributary.db")
}

func (o *observatory) masterKey() string {
	path := filepath.Join(o.t.TempDir(), "master.key")
	if err := secret.CreateMasterFile(path); err != nil {
		o.t.Fatal(err)
	}
	return path
}

// serve starts a service on a folder of its own, or on one that is named by --data.
func (o *observatory) serve(name string, flags ...string) *service {
	o.t.Helper()
	s := &service{o: o, dir: filepath.Join(o.dir, name), listen: freeAddress(o.t), admin: freeAddress(o.t), key: fullKey}
	args := append([]string{"serve", "--listen", s.listen, "--admin", s.admin, "--public-url", "https://api.example.test",
		"--log-level", "error"}, flags...)
	if flagOf(args, "--data") == "" {
		args = append(args, "--data", s.dir, "--master-key", "file:"+o.masterKey())
	}
	s.dir = flagOf(args, "--data")
	s.run(begin(o.t, child(fastBinary(o.t), args...)))
	return s
}

// moved is a copy of a demo's data, served for production.
func (o *observatory) moved(flags ...string) *service {
	o.t.Helper()
	first := o.plain()
	dir := o.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(first.dir)); err != nil {
		o.t.Fatal(err)
	}
	for _, name := range []string{"tributary.db", "tributary.db-wal", "tributary.db-shm"} {
		_ = os.Remove(filepath.Join(dir, name)) // not all are there
	}
	if err := os.Chmod(filepath.Join(dir, "master.key"), 0o400); err != nil {
		o.t.Fatal(err)
	}
	o.must("backup", filepath.Join(dir, "tributary.db"), "--data", first.dir)
	o.must("client", "configure", "demo", "--webhook-url", o.hook.URL+"/"+filepath.Base(dir), "--demo", "--data", dir)
	s := o.serve("", append([]string{"--data", dir}, flags...)...)
	s.key = first.key
	s.sell("moved-" + strconv.FormatInt(time.Now().UnixNano(), 36)) // a number of its own at the authority
	return s
}

// filed says whether an authority of ours is called, where its address is given.
func (o *observatory) filed(flags ...string) string {
	var called atomic.Int64
	authority := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		called.Add(1)
		http.Error(w, "busy", http.StatusServiceUnavailable)
	}))
	defer authority.Close()
	if len(flags) > 0 {
		flags = append(flags, "XX.test="+authority.URL)
	}
	s := o.moved(flags...)
	if len(flags) > 0 {
		o.eventually("the authority is called", func() bool { return called.Load() > 0 })
	}
	s.p.kill()
	return fmt.Sprint(called.Load() > 0)
}

// delivered is what becomes of a notification to a receiver on this machine.
func (o *observatory) delivered(flags ...string) string {
	s := o.moved(append([]string{"--simulators", o.plain().sims, "--webhook-retry-base", "100ms"}, flags...)...)
	defer s.p.kill()
	return s.event(func(tries int, status string) bool {
		return status == "delivered" || tries >= 1 && len(flags) == 0
	}).Status
}

// proxied counts whether a proxy is asked to reach the receiver.
func (o *observatory) proxied(flags ...string) string {
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			asked.Add(1)
		}
		http.Error(w, "no", http.StatusBadGateway)
	}))
	defer proxy.Close()
	if flags[len(flags)-1] == "--webhook-proxy" {
		flags = append(flags, proxy.URL)
	}
	s := o.moved(append([]string{"--simulators", "http://" + o.plain().sims}, flags...)...)
	defer s.p.kill()
	s.event(func(tries int, _ string) bool { return tries >= 1 })
	return fmt.Sprint(asked.Load() > 0)
}

// granted is what a migration leaves in the server's own tables, without and with its last flag.
func granted(question string, flags ...string) func(*observatory) (without, with string) {
	return func(o *observatory) (without, with string) {
		database := dbtest.PostgresURL(o.t)
		file := write(o.t, filepath.Join(o.t.TempDir(), "password"), "open sesame\n")
		look := func(flags []string) string {
			o.says(append([]string{"migrate", "--database", database}, flags...)...)
			conn, err := pgx.Connect(o.t.Context(), database)
			if err != nil {
				o.t.Fatal(err)
			}
			defer func() { _ = conn.Close(context.Background()) }() // a test's own connection
			var found any
			if err := conn.QueryRow(o.t.Context(), question).Scan(&found); err != nil {
				return err.Error()
			}
			return fmt.Sprint(found)
		}
		all := append([]string{}, flags...)
		all[len(all)-1] = strings.Replace(all[len(all)-1], "FILE", file, 1)
		return look(flags[:len(flags)-1]), look(all)
	}
}

// passwordAsked is a PostgreSQL that only asks for a password.
func passwordAsked(o *observatory) (without, with string) {
	look := func(flags ...string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			o.t.Fatal(err)
		}
		defer l.Close()
		got := make(chan string, 100)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				got <- passwordOf(conn)
			}
		}()
		o.says(append([]string{"migrate", "--database", "postgres://tributary@" + l.Addr().String() + "/x?sslmode=disable"},
			flags...)...)
		return <-got
	}
	file := write(o.t, filepath.Join(o.t.TempDir(), "password"), "open sesame\n")
	return look(), look("--database-password-file", file)
}

// passwordOf reads the start-up message, asks in clear text and ends the talk.
func passwordOf(conn net.Conn) string {
	defer conn.Close()
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err.Error()
	}
	if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))-4); err != nil {
		return err.Error()
	}
	if _, err := conn.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 3}); err != nil {
		return err.Error()
	}
	head := make([]byte, 5)
	if _, err := io.ReadFull(conn, head); err != nil {
		return "no password"
	}
	text := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	if _, err := io.ReadFull(conn, text); err != nil {
		return err.Error()
	}
	return string(bytes.TrimRight(text, "\x00"))
}

func (o *observatory) picture() string {
	return write(o.t, filepath.Join(o.t.TempDir(), "logo.png"), onePixel)
}

// created makes a client and answers its key.
func (o *observatory) created(id string, flags ...string) string {
	out := o.must(append(append([]string{"client", "create", id, "--name", "One"}, flags...), o.book()...)...)
	_, key, _ := strings.Cut(out, `"api_key": "`)
	return key
}

func (o *observatory) hired(name string, flags ...string) string {
	o.says(append([]string{"operator", "create", name, "--role", "viewer"}, append(flags, o.book()...)...)...)
	return o.must(append([]string{"operator", "create", name + "-2"}, append(flags, o.book()...)...)...)
}

func (o *observatory) supplier() string {
	var company struct{ ID string }
	o.plain().json(http.MethodGet, "/onboarding/v2/companies/demo-XX?external-id=true", "", &company)
	return company.ID
}

func (o *observatory) reconciled(flags ...string) string {
	return o.says(append([]string{"reconcile", "--data", o.plain().dir, "--simulators", o.plain().sims, "--json"},
		flags...)...)
}

func (o *observatory) saleFile(id string) string {
	return write(o.t, filepath.Join(o.t.TempDir(), id+".json"), sale(o.supplier(), id, strings.ToUpper(id)))
}

func (o *observatory) submitted(id string, flags ...string) string {
	return o.says(append([]string{"submit", o.saleFile(id), "--url", o.plain().url, "--api-key", o.plain().key, "--json"},
		flags...)...)
}

// outcome is the status that a submit ends with.
func (o *observatory) outcome(id string, flags ...string) string {
	out := o.submitted(id, flags...)
	for _, status := range []string{"SUCCESS", "FAILURE", "PROCESSING", "ACCEPTED", "accepted"} {
		if strings.Contains(out, status) {
			return status
		}
	}
	return out
}

// atOnce is how many requests of a submit are under way together.
func (o *observatory) atOnce(flags ...string) string {
	var now, most atomic.Int64
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		if len(flags) == 0 {
			for late := time.Now().Add(10 * time.Second); most.Load() < 2 && time.Now().Before(late); {
				time.Sleep(time.Millisecond) // for the company that must come
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, `{"operation_id":"0199b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"}`)
	}))
	defer stub.Close()
	var lines strings.Builder
	for i := range 6 {
		fmt.Fprintln(&lines, sale("x", fmt.Sprint("c-", i), fmt.Sprint("C-", i)))
	}
	file := write(o.t, filepath.Join(o.t.TempDir(), "many.jsonl"), lines.String())
	o.says(append([]string{"submit", file, "--url", stub.URL, "--api-key", fullKey}, flags...)...)
	return fmt.Sprint(most.Load() > 1)
}

// retriedFor says whether a busy service is asked again.
func (o *observatory) retriedFor(patience string) string {
	var asked atomic.Int64
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"message":"busy"}`, http.StatusServiceUnavailable)
	}))
	defer stub.Close()
	file := write(o.t, filepath.Join(o.t.TempDir(), "one.json"), sale("x", "one", "ONE"))
	o.says("submit", file, "--url", stub.URL, "--api-key", fullKey, "--retry-for", patience)
	return fmt.Sprint(asked.Load() > 1)
}

const notification = `{"event_type":"transactions.transaction_completed","delivered_at":"2026-01-31T10:00:00Z","resource_id":"x","resource_url":"https://x/y","webhook_id":"abababababababababababababababababababab"}`

func signatureOf(body string) string {
	text, err := secret.HMACHex(secret.FromText(fullKey), []byte(body))
	if err != nil {
		return err.Error()
	}
	return text
}

func (o *observatory) verified(flags ...string) string {
	var out, errs bytes.Buffer
	code := run(o.t.Context(), append([]string{"verify", "--api-key", fullKey}, flags...),
		streams{&out, &errs, strings.NewReader(notification)})
	return fmt.Sprint(code)
}

// received starts a receiver and answers what a notification gets there that is
// signed in a header.
func (o *observatory) received(at, header string, flags ...string) string {
	p := begin(o.t, child(fastBinary(o.t), append([]string{"listen", "--api-key", fullKey, "--listen", at}, flags...)...))
	defer p.kill()
	s := &service{o: o, client: &http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true}}}
	status, fresh := 0, strings.Replace(notification, "2026-01-31T10:00:00Z",
		time.Now().UTC().Format("2006-01-02T15:04:05Z"), 1)
	o.eventually("the receiver listens", func() bool {
		status, _ = s.ask(http.MethodPost, "http://"+at, fresh, "Content-Type", "application/json", header,
			signatureOf(fresh))
		return status != 0
	})
	return fmt.Sprint(status)
}

// onePixel is the smallest picture.
const onePixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

// sampled is a sample document in the look of the client.
func (o *observatory) sampled(flags ...string) string {
	o.t.Helper()
	return o.must(append(append([]string{"preview", "acme"}, flags...), o.book()...)...)
}

// limits shows a key made with a flag beside one made without, but for what is always new.
func limits(flag string) func(*observatory) (string, string) {
	always := regexp.MustCompile(`"(kid|api_key|created_at|state|expires_at)": "[^"]*",?`)
	return func(o *observatory) (string, string) {
		made := func(flags ...string) string {
			return always.ReplaceAllString(o.must(append(append([]string{"key", "create", "acme", "--json"}, flags...),
				o.book()...)...), "$1")
		}
		return made("--scopes=submit"), made(append([]string{"--scopes=submit"}, flag)...)
	}
}
