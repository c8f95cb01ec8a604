package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/document/typeset"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/ledger"
	"tributary/internal/onboarding"
)

// Bounds that keep the doctor quick on a large deployment; what is left out is said.
const (
	companiesMax    = 2000
	receiversMax    = 200
	receiversAtOnce = 8
	listedMax       = 20
)

// checkSealedKeys opens every client's signing key.
func (d *doctor) checkSealedKeys(ctx context.Context) {
	opened := 0
	for _, c := range d.clients {
		_, _, err := d.parts.Accounts.SigningKeys(ctx, c.ID)
		switch {
		case errors.Is(err, account.ErrNoSigningKey):
			d.say(Warn, about{check: "signing keys", subject: c.ID,
				fix: "tributary key create " + c.ID + ", then tributary key promote"}, "the client has no active key: its webhooks wait")
		case err != nil:
			d.say(Fail, about{check: "signing keys", subject: c.ID,
				fix: "use the --master-key that encrypted it, or revoke the key and create another"}, "%v", err)
		default:
			opened++
		}
	}
	if opened > 0 {
		d.say(OK, about{check: "signing keys"}, "%s readable", fault.Count(opened, "signing key"))
	}
}

// checkCompanies opens suppliers' credentials and looks at their certificates.
func (d *doctor) checkCompanies(ctx context.Context) {
	seen, sealed := 0, 0
	for _, c := range d.clients {
		for cursor := ""; seen < companiesMax; {
			page, next, err := d.parts.Companies.List(ctx, c.ID, 100, cursor)
			if err != nil {
				d.say(Fail, about{check: "suppliers", subject: c.ID, fix: "check the database log"}, "%v", err)
				return
			}
			for _, company := range page {
				seen++
				d.noteSender(company, c.Live)
				sealed += d.checkCompany(ctx, c.ID, company)
			}
			if cursor = next; next == "" {
				break
			}
		}
	}
	more := ""
	if seen >= companiesMax {
		more = "; there are more, not checked"
	}
	d.say(OK, about{check: "suppliers"}, "%d checked, credentials of %d readable%s", seen, sealed, more)
}

// noteSender remembers where a company sends by choice: its country needs an address then.
func (d *doctor) noteSender(c onboarding.Company, live bool) {
	pack, ok := d.parts.Atlas.Pack(c.Meta.CountryCode)
	if ok && pack.Chosen() && !pack.Keeps(&country.Supplier{CountryCode: pack.Code, Settings: c.Settings}) {
		if d.senders == nil {
			d.senders = map[string]bool{}
		}
		d.senders[country.Environment{Code: pack.Code, Live: country.Live(live)}.String()] = true
	}
}

func (d *doctor) checkCompany(ctx context.Context, clientID string, c onboarding.Company) (opened int) {
	if len(c.Credentials) == 0 {
		return 0
	}
	if err := d.parts.Companies.Opens(ctx, clientID, c.ID); err != nil {
		d.say(Fail, about{check: "tax credentials", subject: c.Meta.ExternalID,
			fix: "use the --master-key that encrypted them, or have the client upload them again"}, "%v", err)
	} else {
		opened = 1
	}
	for _, credential := range c.Credentials {
		if credential.ExpiresAt == nil {
			continue
		}
		end := time.Time(*credential.ExpiresAt)
		if credential.Kind == onboarding.LoginCredential {
			d.sayLogin(c, end)
			continue
		}
		d.sayEnd("supplier certificate", c.Meta.ExternalID, end, "ask the client for a new certificate; PATCH the company with it")
	}
	return opened
}

// sayLogin tells of a supplier whose authority will take no logins any more,
// however long that still is: getting a certificate takes a while. One that has a
// certificate beside the login is ready.
func (d *doctor) sayLogin(c onboarding.Company, end time.Time) {
	const check, fix = "supplier login", "ask the client for a certificate; PATCH the company with it"
	for _, other := range c.Credentials {
		if other.Kind == onboarding.CertificateCredential {
			return
		}
	}
	if !d.sayEnd(check, c.Meta.ExternalID, end, fix) {
		d.say(Warn, about{check: check, subject: c.Meta.ExternalID, fix: fix},
			"the authority of %s accepts user names, passwords and tokens until %s", c.Meta.CountryCode,
			end.Add(-time.Second).Format(time.DateOnly))
	}
}

// Certificates are worth a word this long before their end.
const (
	endDoubtful = 30 * 24 * time.Hour
	endBroken   = 24 * time.Hour
)

// sayEnd tells of certificates that end soon; those that do not are not listed.
func (d *doctor) sayEnd(check, subject string, end time.Time, fix string) (told bool) {
	switch left := end.Sub(d.now()); {
	case left <= 0:
		d.say(Fail, about{check: check, subject: subject, fix: fix}, "expired on %s", end.UTC().Format(time.DateOnly))
	case left <= endBroken:
		d.say(Fail, about{check: check, subject: subject, fix: fix}, "expires in %s", left.Round(time.Minute))
	case left <= endDoubtful:
		d.say(Warn, about{check: check, subject: subject, fix: fix}, "expires in %s", fault.Count(int(left.Hours()/24), "day"))
	default:
		return false
	}
	return true
}

// checkEnabledCountries finds clients that could submit what cannot be filed.
func (d *doctor) checkEnabledCountries(context.Context) {
	missing := map[string]bool{}
	for _, c := range d.clients {
		for _, code := range d.parts.Atlas.Codes() {
			if _, enabled := c.Config.UseCase(code); !enabled || !d.parts.Atlas.Offers(code, country.Live(c.Live)) {
				continue
			}
			if pack, _ := d.parts.Atlas.Pack(code); pack.Chosen() && !d.senders[code+"."+c.Environment()] {
				continue // documents are made there, and nobody sends any
			}
			if _, err := d.parts.Atlas.Endpoint(code, country.Live(c.Live)); errors.Is(err, country.ErrNoAddress) {
				missing[code+"."+c.Environment()] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		d.say(Warn, about{check: "authority", subject: key,
			fix: "tributary authority set " + key + " --url https://…, or for test keys --simulators"},
			"is enabled for a client but has no address: nothing can be filed")
	}
}

// receiver is a webhook address as one or more clients may call it.
type receiver struct {
	address string
	allow   []netip.Prefix // networks that are open to its owners
	owners  []string
}

// receivers lists the clients' webhook addresses, each once for those who may
// call it alike.
func (d *doctor) receivers() (list []*receiver) {
	known := map[string]*receiver{}
	for _, c := range d.clients {
		addresses := c.Config.Webhooks.Addresses()
		if len(addresses) == 0 {
			d.say(Warn, about{check: "webhooks", subject: c.ID,
				fix: "tributary client configure " + c.ID + " --webhook-url https://…"},
				"the client has no webhook URL: it is not notified of results")
		}
		for _, address := range addresses {
			key := fmt.Sprint(address, " ", c.Config.WebhookCIDRs)
			if known[key] == nil {
				known[key] = &receiver{address: address, allow: c.Config.WebhookCIDRs}
				list = append(list, known[key])
			}
			known[key].owners = append(known[key].owners, c.ID)
		}
	}
	slices.SortStableFunc(list, func(a, b *receiver) int { return strings.Compare(a.address, b.address) })
	return list
}

// checkReceivers connects to the clients' webhook addresses and sends nothing.
func (d *doctor) checkReceivers(ctx context.Context) {
	list := d.receivers()
	if len(list) > receiversMax {
		d.say(Warn, about{check: "webhooks"}, "%d URLs, %d tested", len(list), receiversMax)
		list = list[:receiversMax]
	}
	errs := make([]error, len(list))
	var group errgroup.Group
	group.SetLimit(receiversAtOnce)
	for i, r := range list {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, d.timeout)
			defer cancel()
			errs[i] = d.parts.Sender.For(r.allow).Reach(ctx, r.address)
			return nil
		})
	}
	_ = group.Wait() // the functions answer nil
	for i, r := range list {
		subject := strings.Join(r.owners, ", ") + " " + hostOf(r.address)
		if errs[i] != nil {
			d.say(Fail, about{check: "webhooks", subject: subject,
				fix: "have the client correct the URL or its certificate; allow a private network with --webhook-allow CIDR or, for one client, webhook_cidrs in its configuration; a private CA with --webhook-ca"}, "%v", errs[i])
			continue
		}
		d.say(OK, about{check: "webhooks", subject: subject}, "reachable")
	}
}

// hostOf leaves out the path, which some receivers keep a secret in.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "?"
	}
	if u.Scheme == "file" {
		return u.Path
	}
	return u.Scheme + "://" + u.Host
}

func (d *doctor) checkAlerts(ctx context.Context) {
	var open []alert.Alert
	err := d.db.Read(ctx, func(r db.Reader) (err error) { open, err = alert.List(r, alert.Filter{Open: true}); return err })
	if err != nil {
		d.say(Fail, about{check: "alerts", fix: "check the database log"}, "%v", err)
		return
	}
	fixes := map[alert.Name]string{}
	for _, m := range alert.Meanings() {
		fixes[m.Name] = m.Action
	}
	for i, a := range open {
		if i == listedMax {
			d.say(Warn, about{check: "alerts"}, "and %d more", len(open)-listedMax)
			break
		}
		d.say(Warn, about{check: "alerts", subject: string(a.Name) + " " + a.Subject, fix: fixes[a.Name]},
			"open since %s, raised %d×: %s", a.FirstAt.UTC().Format(time.DateTime), a.Times, a.Message)
	}
	if len(open) == 0 {
		d.say(OK, about{check: "alerts"}, "none open")
	}
}

// How long work may lie about.
const (
	untakenAfter = 2 * time.Minute
	oldAfter     = 24 * time.Hour
	tooOldAfter  = 48 * time.Hour
)

func (d *doctor) checkBacklog(ctx context.Context) {
	var b ledger.Backlog
	var now time.Time
	err := d.db.Read(ctx, func(r db.Reader) (err error) {
		now = r.Now()
		b, err = ledger.Overdue(r, now.Add(-untakenAfter), now.Add(-oldAfter))
		return err
	})
	switch {
	case err != nil:
		d.say(Fail, about{check: "operations", fix: "check the database log"}, "%v", err)
		return
	case b.Untaken > 0:
		d.say(Fail, about{check: "operations",
			fix: "start a node with --role worker, or check why the running one does not work"},
			"%d due since %s and not picked up", b.Untaken, now.Sub(b.UntakenSince).Round(time.Second))
	}
	waits := d.sayWaits(ctx)
	switch {
	case b.Old == 0 && b.Untaken == 0 && waits == 0:
		d.say(OK, about{check: "operations"}, "none stuck")
	case b.Old > 0 && now.Sub(b.OldSince) > tooOldAfter:
		d.say(Fail, about{check: "operations",
			fix: "see the alerts: an authority that does not respond, or rejected credentials"},
			"%d in progress, the oldest for %s", b.Old, now.Sub(b.OldSince).Round(time.Hour))
	case b.Old > 0:
		d.say(Warn, about{check: "operations", fix: "see the alerts"}, "%d in progress, the oldest for %s", b.Old,
			now.Sub(b.OldSince).Round(time.Hour))
	}
}

// sayWaits names why transactions wait, as the console does, and what to do.
func (d *doctor) sayWaits(ctx context.Context) int {
	var list []ledger.Waiting
	var now time.Time
	err := d.db.Read(ctx, func(r db.Reader) (err error) {
		now = r.Now()
		list, err = ledger.Waits(r)
		return err
	})
	if err != nil {
		d.say(Fail, about{check: "waiting", fix: "check the database log"}, "%v", err)
	}
	for _, w := range list {
		fix := ledger.Why(w.Code).Advice()
		if d.parts != nil { // the master key is there
			fix = ledger.Why(w.Code).AdviceAt(d.parts.Atlas, w.At)
		}
		d.say(Warn, about{check: "waiting", subject: w.At.String() + " " + string(w.Code), fix: fix},
			"%s of %s, the oldest for %s", fault.Count(w.Operations, "transaction"), fault.Count(w.Suppliers, "supplier"),
			now.Sub(w.OldestAt).Round(time.Second))
	}
	return len(list)
}

func (d *doctor) checkDocuments(ctx context.Context) {
	subject := hostOf(d.cfg.Documents)
	switch err := files.Probe(ctx, d.cfg.Documents); {
	case errors.Is(err, fs.ErrNotExist):
		d.say(Warn, about{check: "documents", subject: subject,
			fix: "no action if the service has never run here; otherwise restore the folder or correct --documents"}, "%v", err)
	case err != nil:
		d.say(Fail, about{check: "documents", subject: subject,
			fix: "make it writable for the service's user, or correct --documents and its credentials"}, "%v", err)
	default:
		d.say(OK, about{check: "documents", subject: subject}, "writable, readable, deletable")
	}
	if d.db == nil || d.db.Engine() != "postgres" {
		return
	}
	if err := d.db.Read(ctx, func(r db.Reader) error { return files.CheckShared(r, d.cfg.Documents) }); err != nil {
		d.say(Fail, about{check: "documents", subject: subject, fix: "use a folder shared by all nodes, or s3://BUCKET"}, "%v", err)
	}
}

// checkFonts names the scripts that documents cannot be set in.
func (d *doctor) checkFonts() {
	library, err := typeset.NewLibrary(typeset.WithSystem(d.cfg.Fonts...))
	if err != nil {
		d.say(Fail, about{check: "fonts", fix: "report it: the built-in fonts are broken"}, "%v", err)
		return
	}
	scripts, err := library.Scripts()
	if err != nil {
		d.say(Fail, about{check: "fonts", fix: "correct --fonts, or make the folder readable for the service's user"}, "%v", err)
		return
	}
	var missing, wanted []string
	for _, s := range scripts {
		if s.Font == "" {
			missing = append(missing, s.Script)
			wanted = append(wanted, s.Wanted)
		}
	}
	if len(missing) == 0 {
		d.say(OK, about{check: "fonts"}, "fonts for all %d supported scripts", len(scripts))
		return
	}
	fix := "no action if no client sells there; otherwise install a font for each, for example " + wanted[0] +
		" (Debian: fonts-noto-core, fonts-noto-cjk), or give a folder with --fonts"
	d.say(Warn, about{check: "fonts", fix: fix}, "no font for %s: documents transliterate such text to Latin",
		strings.Join(missing, ", "))
}

// Free space: a document takes about 100 KiB, an operation about 10.
const (
	freeDoubtful = 5 << 30
	freeBroken   = 200 << 20
)

func (d *doctor) checkDisk() {
	folders := map[string]bool{}
	if path, isFile := strings.CutPrefix(d.cfg.Database, "sqlite:"); isFile {
		folders[filepath.Dir(path)] = true
	}
	if u, err := url.Parse(d.cfg.Documents); err == nil && u.Scheme == "file" {
		folders[filepath.Dir(u.Path)] = true
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		var s unix.Statfs_t
		if err := unix.Statfs(folder, &s); err != nil {
			d.say(Fail, about{check: "disk", subject: folder, fix: "correct the folder"}, "%v", err)
			continue
		}
		d.sayDisk(folder, uint64(s.Bavail)*uint64(s.Bsize)) // the types differ between systems
	}
}

func (d *doctor) sayDisk(folder string, free uint64) {
	verdict, fix := OK, ""
	if free < freeDoubtful {
		verdict, fix = Warn, "free disk space: on a full disk nothing is accepted"
	}
	if free < freeBroken {
		verdict = Fail
	}
	d.say(verdict, about{check: "disk", subject: folder, fix: fix}, "%.1f GiB free", float64(free)/(1<<30))
}

// checkOwnCertificate looks at the certificate of the public API.
func (d *doctor) checkOwnCertificate() {
	if d.cfg.TLSCert == "" {
		return
	}
	const check, fix = "own certificate", "use a matching --tls-cert and --tls-key that are valid for --public-url"
	pair, err := tls.LoadX509KeyPair(d.cfg.TLSCert, d.cfg.TLSKey)
	if err != nil {
		d.say(Fail, about{check: check, subject: d.cfg.TLSCert, fix: fix}, "%v", err)
		return
	}
	leaf := pair.Leaf
	if u, err := url.Parse(d.cfg.PublicURL); err == nil && d.cfg.PublicURL != "" {
		if err := leaf.VerifyHostname(u.Hostname()); err != nil {
			d.say(Fail, about{check: check, subject: d.cfg.TLSCert, fix: fix}, "%v", err)
			return
		}
	}
	if !d.sayEnd(check, d.cfg.TLSCert, leaf.NotAfter, "renew it, then restart the nodes") {
		d.say(OK, about{check: check, subject: d.cfg.TLSCert}, "valid until %s", leaf.NotAfter.UTC().Format(time.DateOnly))
	}
}

// checkAuthorities connects to every configured address, the simulators included.
func (d *doctor) checkAuthorities(ctx context.Context) {
	type target struct{ name, address string }
	var targets []target
	for code, at := range d.cfg.Authorities {
		for environment, address := range map[string]string{"live": at.Live, "test": at.Test} {
			if address != "" {
				targets = append(targets, target{code + "." + environment, address})
			}
		}
	}
	if d.parts != nil {
		for _, code := range d.parts.Atlas.Codes() {
			for _, live := range []country.Live{false, true} {
				at := country.Environment{Code: code, Live: live}
				if address, from := d.parts.Atlas.Address(at); from == country.FromStore {
					targets = append(targets, target{at.String(), address})
				}
			}
		}
	}
	if d.cfg.SimulatorsURL != "" {
		targets = append(targets, target{"simulators", d.cfg.SimulatorsURL})
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.name, b.name) })
	if len(targets) == 0 {
		d.say(Warn, about{check: "authority", fix: "--authority CC.live=https://…"},
			"no address is configured: only documents can be created")
	}
	var told sync.Once
	for _, t := range targets {
		d.within(ctx, func(ctx context.Context) { d.checkAuthority(ctx, t.name, t.address, &told) })
	}
}

// checkAuthority connects, looks at the certificate and, once per run, compares
// clocks by the Date header. The request carries nothing; what the authority
// answers to it does not matter, and one that wants a client's certificate may
// not answer at all.
func (d *doctor) checkAuthority(ctx context.Context, name, address string, clock *sync.Once) {
	const fix = "allow this address in the firewall, correct --authority, or wait if the authority is down"
	u, err := url.Parse(address)
	if err != nil {
		d.say(Fail, about{check: "authority", subject: name, fix: fix}, "%v", err)
		return
	}
	end, err := connect(ctx, u)
	if err != nil && d.cfg.Demo {
		d.say(Warn, about{check: "authority", subject: name, fix: "start tributary demo with the same --data"},
			"the demo is not running: %v", err)
		return
	}
	if err != nil {
		d.say(Fail, about{check: "authority", subject: name, fix: fix}, "%v", err)
		return
	}
	if end.IsZero() || !d.sayEnd("authority", name, end, "the authority must renew it; check its notices") {
		d.say(OK, about{check: "authority", subject: name}, "%s is reachable", u.Host)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(req)
	if err != nil {
		return
	}
	answer.Body.Close()
	if theirs, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		// The header has whole seconds: half of one is expected.
		clock.Do(func() { d.sayClock("authority "+name, theirs.Add(time.Second/2).Sub(d.now())) })
	}
}

// connect makes a connection, with TLS where the address says so, and answers
// when the certificate ends.
func connect(ctx context.Context, u *url.URL) (end time.Time, err error) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	at := net.JoinHostPort(u.Hostname(), port)
	if u.Scheme != "https" {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
		if err != nil {
			return end, err
		}
		return end, conn.Close()
	}
	conn, err := (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}}).DialContext(
		ctx, "tcp", at)
	if err != nil {
		return end, certificateError(err)
	}
	chain := conn.(*tls.Conn).ConnectionState().PeerCertificates
	return chain[0].NotAfter, conn.Close()
}

func certificateError(err error) error {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return fmt.Errorf("its certificate has expired or our clock is wrong: %w", err)
	}
	return err
}
