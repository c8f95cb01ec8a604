package doctor

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"

	"tributary/internal/operator"
)

// secretFlags are the flags whose value is a secret, with what to give instead.
var secretFlags = map[string]string{
	"--admin-token":        "--admin-token-file",
	"--oidc-client-secret": "--oidc-client-secret-file",
	"--api-key":            "--api-key-file",
}

// checkArguments warns about secrets among the arguments: every user of the
// machine reads them in the list of processes, and the shell keeps them. It
// never repeats one.
func (d *doctor) checkArguments() {
	seen := false
	warn := func(flag, fix string) {
		seen = true
		d.say(Warn, about{check: "secrets", subject: flag, fix: "give " + fix + ", or the variable of the same name"},
			"a secret is among the command-line arguments, readable by every user of this machine")
	}
	for i, arg := range d.arguments {
		flag, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(d.arguments) {
			value = d.arguments[i+1]
		}
		if fix, secret := secretFlags[flag]; secret && value != "" {
			warn(flag, fix)
		}
		if u, err := url.Parse(value); flag == "--database" &&
			(err != nil && strings.Contains(value, "@") || err == nil && hasPassword(u)) {
			warn(flag, "--database-password-file")
		}
		if u, err := url.Parse(value); flag == "--webhook-proxy" && err == nil && hasPassword(u) {
			warn(flag, "it in the file of --config")
		}
	}
	if !seen {
		d.say(OK, about{check: "secrets"}, "none among the command-line arguments")
	}
}

func hasPassword(u *url.URL) bool {
	_, set := u.User.Password()
	return set || u.Query().Has("password")
}

// checkFiles warns about files with secrets that others can read.
func (d *doctor) checkFiles() {
	for flag, path := range d.secretFiles {
		about := about{check: "secrets", subject: flag, fix: "chmod go-rwx " + path}
		switch info, err := os.Stat(path); {
		case err != nil:
			d.say(Fail, about, "%v", err)
		case info.Mode().Perm()&0o077 != 0:
			d.say(Warn, about, "%s is readable by others (mode %04o)", path, info.Mode().Perm())
		default:
			d.say(OK, about, "%s is readable by its owner only", path)
		}
	}
}

// checkProvider looks for the identity provider as a sign-in would.
func (d *doctor) checkProvider(ctx context.Context) {
	if d.cfg.OIDC.Issuer == "" || d.db == nil {
		return
	}
	x := operator.NewOIDC(operator.New(operator.Config{DB: d.db}),
		operator.OIDCConfig{Issuer: d.cfg.OIDC.Issuer, ClientID: d.cfg.OIDC.ClientID})
	defer x.Close()
	at := about{check: "identity provider", subject: d.cfg.OIDC.Issuer,
		fix: "correct --oidc-issuer, or check the provider; meanwhile operators with a password can sign in"}
	if err := x.Reach(ctx); err != nil {
		d.say(Warn, at, "%v", errors.Unwrap(err))
		return
	}
	d.say(OK, about{check: at.check, subject: at.subject}, "it responds; the redirect URL is {admin-url}/console/oidc/finish")
}
