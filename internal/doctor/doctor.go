// Package doctor examines a deployment and says what to fix.
//
// It owns the checks and their verdicts. It does not own what it looks at: it
// runs beside servers, with the configuration they would have, and changes
// nothing but a probe that it takes back. The law of [Examine]: a check that
// fails takes only those with it that stand on it, and whatever is not in order
// is told with what to do about it.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/schema"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// Verdict is how a check ended; the worst one decides about the deployment.
type Verdict string

// The verdicts.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn"
	Fail Verdict = "fail"
)

// Finding is one line of the examination.
type Finding struct {
	Check   string  `json:"check"`
	Subject string  `json:"subject,omitempty"`
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`
	Fix     string  `json:"fix,omitempty"`
}

// Options say what to examine.
type Options struct {
	Config  server.Config // as serve would have it
	Timeout time.Duration // of one check
	// Arguments are the command line's, to look for secrets among them, and Files
	// those that hold secrets, by flag.
	Arguments []string
	Files     map[string]string
	Now       func() time.Time // nil: time.Now
}

// Examine runs every check that can be run. The error says that the
// configuration is not valid; what is wrong with the deployment is in the findings.
func Examine(ctx context.Context, o Options) ([]Finding, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &doctor{cfg: o.Config, timeout: o.Timeout, now: o.Now, arguments: o.Arguments, secretFiles: o.Files}
	err := d.examine(ctx)
	return d.findings, err
}

// Failed counts the findings that say something is broken.
func Failed(findings []Finding) (n int) {
	for _, f := range findings {
		if f.Verdict == Fail {
			n++
		}
	}
	return n
}

// Print shows the findings to a person.
func Print(to io.Writer, findings []Finding) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Verdict, f.Check, fault.Printable(f.Subject), fault.Printable(f.Found))
		if f.Fix != "" {
			fmt.Fprintf(w, "\t\t\t→ %s\n", fault.Printable(f.Fix))
		}
	}
	return w.Flush()
}

// doctor is one examination.
type doctor struct {
	cfg      server.Config
	timeout  time.Duration
	now      func() time.Time
	findings []Finding

	arguments   []string
	secretFiles map[string]string

	db      *db.DB
	parts   *server.Inspection
	clients []account.Client
	senders map[string]bool // countries, as CC.live or CC.test, with companies that chose to send what need not be
}

// about is what a finding speaks of, and what to do where it is not in order.
type about struct{ check, subject, fix string }

func (d *doctor) say(verdict Verdict, a about, format string, args ...any) {
	d.findings = append(d.findings, Finding{a.check, a.subject, verdict, fmt.Sprintf(format, args...), a.fix})
}

// examine runs every check that can be run; a check that fails takes only
// those with it that stand on it.
func (d *doctor) examine(ctx context.Context) (err error) {
	if dir := d.dataFolder(); dir != "" {
		if _, err := os.Stat(dir); err != nil {
			d.say(Fail, about{check: "data", subject: dir,
				fix: "create the folder, owned by the service's user, or correct --data and --database"}, "%v", err)
			return nil
		}
	}
	if d.cfg, err = d.cfg.Completed(); err != nil {
		return err
	}
	d.recogniseDemo()
	d.checkDatabaseName()
	if d.openDatabase(ctx) {
		defer func() { err = errors.Join(err, d.db.Close()) }()
		d.within(ctx, d.checkWrites)
		d.within(ctx, d.checkDurability)
		d.within(ctx, d.checkDatabaseRole)
		d.within(ctx, d.checkDatabaseClock)
	}
	if d.checkMasterKey() && d.db != nil {
		d.within(ctx, d.openParts)
	}
	if d.parts != nil {
		defer func() { err = errors.Join(err, d.parts.Close()) }()
		for _, check := range []func(context.Context){d.checkSealedKeys, d.checkCompanies, d.checkEnabledCountries,
			d.checkReceivers} {
			check(ctx)
		}
	}
	if d.db != nil {
		d.within(ctx, d.checkAlerts)
		d.within(ctx, d.checkBacklog)
		d.within(ctx, d.checkRetention)
		d.within(ctx, d.checkPartitions)
	}
	d.within(ctx, d.checkDocuments)
	d.checkFonts()
	d.checkDisk()
	d.checkOwnCertificate()
	d.checkArguments()
	d.checkFiles()
	d.within(ctx, d.checkProvider)
	d.checkAuthorities(ctx)
	return nil
}

// recogniseDemo examines the demo's data as the demo does: with its simulated
// authorities and receivers on this machine. What was said on the command line wins.
func (d *doctor) recogniseDemo() {
	note, is := server.ReadDemoNote(d.cfg.Data)
	if !is || len(d.cfg.Authorities) > 0 || d.cfg.SimulatorsURL != "" {
		return
	}
	d.cfg.Demo, d.cfg.SimulatorsURL = true, note.Simulators
	d.say(OK, about{check: "data", subject: d.cfg.Data},
		"of tributary demo: checked with its simulated authorities at %s and receivers on this machine", note.Simulators)
}

// within gives a check its time.
func (d *doctor) within(ctx context.Context, check func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	check(ctx)
}

// dataFolder is the folder that completing the configuration would make.
func (d *doctor) dataFolder() string {
	path, isFile := strings.CutPrefix(d.cfg.Database, "sqlite:")
	switch {
	case d.cfg.Data != "":
		return d.cfg.Data
	case isFile:
		return filepath.Dir(path)
	}
	return ""
}

func (d *doctor) openDatabase(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	const check = "database"
	if path, isFile := strings.CutPrefix(d.cfg.Database, "sqlite:"); isFile {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) { // opening would make it
			d.say(Fail, about{check: check, fix: "run tributary migrate with the same --database, or correct it"},
				"%s does not exist", path)
			return false
		}
	}
	opened, err := db.Open(ctx, db.Config{URL: d.cfg.Database, Password: d.cfg.Password, Log: d.cfg.Log, NoWorkers: true})
	if err != nil {
		d.say(Fail, about{check: check, fix: "start the database, or correct --database, its password or the network"}, "%v", err)
		return false
	}
	switch err := schema.Check(ctx, opened); {
	case errors.Is(err, schema.ErrOld):
		d.say(Fail, about{check: "schema", subject: opened.Engine(), fix: "run tributary migrate with the same --database"},
			"%v", err)
	case errors.Is(err, schema.ErrNew):
		d.say(Fail, about{check: "schema", subject: opened.Engine(), fix: "install the newer version on this machine"}, "%v", err)
	case err != nil:
		d.say(Fail, about{check: check, subject: opened.Engine(), fix: "check the database log"}, "%v", err)
	default:
		d.db = opened
		d.say(OK, about{check: "schema", subject: opened.Engine()}, "up to date")
		return true
	}
	_ = opened.Close() // the finding is told
	return false
}

// What a commit may take. Past the first a submit feels slow, past the second
// the intake cannot keep up.
const (
	commitSlow    = 50 * time.Millisecond
	commitTooSlow = time.Second
	commitProbes  = 5
)

func (d *doctor) checkWrites(ctx context.Context) {
	var took []time.Duration
	for range commitProbes {
		began := time.Now()
		if err := server.ProbeWrite(ctx, d.db); err != nil {
			d.say(Fail, about{check: "writes", subject: d.db.Engine(),
				fix: "free disk space, make the file writable for the service's user, or end the database's read-only mode"}, "%v", err)
			return
		}
		took = append(took, time.Since(began))
	}
	d.sayCommits(d.db.Engine(), took)
}

// sayCommits judges by the median: a single commit may meet a checkpoint or a stall of the host.
func (d *doctor) sayCommits(engine string, took []time.Duration) {
	slices.Sort(took)
	median, worst := took[len(took)/2], took[len(took)-1]
	verdict, fix := OK, ""
	if median > commitSlow {
		verdict, fix = Warn, "use a faster disk, or a database closer to this machine"
	}
	if median > commitTooSlow {
		verdict = Fail
	}
	d.say(verdict, about{check: "writes", subject: engine, fix: fix}, "a commit takes %s, up to %s",
		median.Round(100*time.Microsecond), worst.Round(100*time.Microsecond))
}

// checkDurability looks for settings of the server under which what was
// acknowledged can be lost.
func (d *doctor) checkDurability(ctx context.Context) {
	const check = "durability"
	dangers, err := d.db.Dangers(ctx)
	if err != nil {
		d.say(Fail, about{check: check, subject: d.db.Engine(), fix: "check the database log"}, "%v", err)
		return
	}
	for _, danger := range dangers {
		verdict := Fail
		if danger.Ours {
			verdict = Warn
		}
		d.say(verdict, about{check: check, subject: danger.Setting, fix: danger.Fix}, "%s = %s: %s", danger.Setting,
			danger.Value, danger.Harm)
	}
	if len(dangers) == 0 {
		d.say(OK, about{check: check, subject: d.db.Engine()}, "acknowledged writes are on disk")
	}
}

// Clocks further apart than this are worth a look, and refused by authorities.
const (
	skewDoubtful = 5 * time.Second
	skewBroken   = 60 * time.Second
)

// checkDatabaseName says when the server of the database need not prove who it is.
func (d *doctor) checkDatabaseName() {
	if db.UnprovenServer(d.cfg.Database) {
		d.say(Warn, about{check: "database", subject: "TLS",
			fix: "give the server a certificate and use sslmode=verify-full (sslrootcert=FILE for a private CA)"},
			"the server's name is not verified: an impostor could read and write everything")
	}
}

// checkDatabaseRole says when whoever takes this node takes the schema and the logs as well.
func (d *doctor) checkDatabaseRole(ctx context.Context) {
	if d.db.Engine() != "postgres" {
		return // a file has one user
	}
	const check, fix = "database role",
		"tributary migrate --serve-role NAME with this address, then serve as that role (docs/operations.md, PostgreSQL)"
	switch is, err := schema.RightsOf(ctx, d.db); {
	case err != nil:
		d.say(Fail, about{check: check, fix: "check the database log"}, "%v", err)
	case is.Owner:
		d.say(Warn, about{check: check, subject: is.Role, fix: fix},
			"owns the tables: whoever takes over this node can change the schema and rewrite the audit logs")
	case is.Read == "":
		d.say(Warn, about{check: check, subject: is.Role,
			fix: "repeat tributary migrate --serve-role " + is.Role + " as the owner"},
			"cannot use the read role of clients: only statements, not row-level security, separate clients")
	default:
		d.say(OK, about{check: check, subject: is.Role}, "cannot change the schema or the audit logs; clients read as %s", is.Read)
	}
}

func (d *doctor) checkDatabaseClock(ctx context.Context) {
	if d.db.Engine() != "postgres" {
		return // it reads our own
	}
	var theirs int64
	before := d.now()
	err := d.db.Read(ctx, func(r db.Reader) error {
		return r.Row("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&theirs)
	})
	if err != nil {
		d.say(Fail, about{check: "clock", subject: "database", fix: "check the database log"}, "%v", err)
		return
	}
	// The server answered somewhere between the two readings.
	d.sayClock("database", db.FromMicros(theirs).Sub(before.Add(d.now().Sub(before)/2)))
}

func (d *doctor) sayClock(whose string, ahead time.Duration) {
	off := ahead.Abs()
	switch found := fmt.Sprintf("differs from ours by %s", off.Round(time.Millisecond)); {
	case off > skewBroken:
		d.say(Fail, about{check: "clock", subject: whose,
			fix: "set up time synchronisation (chrony, systemd-timesyncd) on this machine: filings with a wrong time are rejected"}, "%s", found)
	case off > skewDoubtful:
		d.say(Warn, about{check: "clock", subject: whose, fix: "check time synchronisation on both machines"}, "%s", found)
	default:
		d.say(OK, about{check: "clock", subject: whose}, "%s", found)
	}
}

func (d *doctor) checkMasterKey() bool {
	key, err := secret.OpenMaster(d.cfg.MasterKey)
	if err != nil {
		d.say(Fail, about{check: "master key",
			fix: "restore the key from its own backup, readable by the service's user only (chmod 0400); without it nothing can be signed"}, "%v", err)
		return false
	}
	id, err := key.KeyID()
	if err != nil {
		d.say(Fail, about{check: "master key", fix: "check the network to the key service and its token"}, "%v", err)
		return false
	}
	source, _, _ := strings.Cut(d.cfg.MasterKey, ":")
	d.say(OK, about{check: "master key", subject: source}, "readable, key %s", id)
	return true
}

// openParts builds what the server would run with and reads the clients.
func (d *doctor) openParts(ctx context.Context) {
	parts, err := server.Inspect(ctx, d.cfg, d.db)
	if err != nil {
		d.say(Fail, about{check: "configuration", fix: "correct the named flag"}, "%v", err)
		return
	}
	err = d.db.Read(ctx, func(r db.Reader) (err error) { d.clients, err = parts.Accounts.List(r); return err })
	if err != nil {
		d.say(Fail, about{check: "clients", fix: "check the database log"}, "%v", err)
		_ = parts.Close() // the finding is told
		return
	}
	d.parts = parts
	if len(d.clients) == 0 {
		d.say(Warn, about{check: "clients", fix: "tributary client create"}, "no clients yet")
		return
	}
	d.say(OK, about{check: "clients"}, "%d", len(d.clients))
}
