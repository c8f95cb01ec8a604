package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
	"tributary/internal/server"
)

type authorityCommand struct {
	Set   authoritySet   `cmd:"" help:"Set an authority's address and our credentials there. Unnamed settings stay unchanged."`
	List  authorityList  `cmd:"" help:"List settings, without secrets, and what is missing."`
	Unset authorityUnset `cmd:"" help:"Remove all settings of an authority."`
}

// authorityFlags say which database a command works on. A running server
// notices changes within a second.
type authorityFlags struct{ accountFlags }

// with opens the endpoints for one command. To list them no master key is needed.
func (f *authorityFlags) with(c *command, sealed bool,
	do func(ctx context.Context, d *db.DB, e *server.Authorities) error) error {
	return f.withDatabase(c, func(ctx context.Context, d *db.DB) error {
		var master *secret.Master
		if sealed {
			var err error
			if master, err = secret.OpenMaster(masterOf(&f.accountFlags)); err != nil {
				return fmt.Errorf("--master-key: %w", err)
			}
		}
		e, err := server.OpenEndpoints(ctx, server.Config{Log: c.log}, d, master)
		if err != nil {
			return err
		}
		return do(ctx, d, e)
	})
}

type authoritySet struct {
	authorityFlags
	Environment             string            `arg:"" help:"CC.live or CC.test." placeholder:"CC.ENV"`
	URL                     *string           `help:"URL of the authority." placeholder:"URL" name:"url" setting:"-"`
	Secret                  map[string]string `help:"A secret for the authority, read from a file: NAME=FILE." placeholder:"NAME=FILE" setting:"-"`
	Certificate             string            `help:"Client key and certificate, PKCS#12." placeholder:"P12" setting:"-"`
	CertificatePasswordFile string            `help:"File with its password." placeholder:"FILE" setting:"-"`
	Host                    *string           `help:"Host name that the authority calls; the certificate is used for it." placeholder:"NAME" setting:"-"`
	CA                      string            `help:"CA of the authority's client certificates for callbacks, PEM." placeholder:"FILE" name:"ca" setting:"-"`
}

// Run stores what is given and shows what is set then.
func (cmd *authoritySet) Run(c *command) error {
	at, err := environmentOf(cmd.Environment)
	if err != nil {
		return err
	}
	change, err := cmd.change()
	if err != nil {
		return err
	}
	return cmd.with(c, true, func(ctx context.Context, _ *db.DB, e *server.Authorities) error {
		set, err := e.Set(ctx, actor(), at, change)
		if err != nil {
			return err
		}
		return cmd.show(c, set, func(w *tabwriter.Writer) { printAuthorities(w, set) })
	})
}

func environmentOf(text string) (country.Environment, error) {
	at, err := country.ParseEnvironment(text)
	if err != nil {
		return at, fault.New(fault.Invalid, "%v", err)
	}
	return at, nil
}

// change reads the files that are named.
func (cmd *authoritySet) change() (server.AuthorityChange, error) {
	change := server.AuthorityChange{URL: cmd.URL, Host: cmd.Host}
	for name, path := range cmd.Secret {
		value, err := secret.ReadFile(path)
		if err != nil {
			return change, fault.New(fault.Invalid, "--secret %s: %v", name, err)
		}
		if change.Secrets == nil {
			change.Secrets = map[string]secret.Secret{}
		}
		change.Secrets[name] = value
	}
	var err error
	if cmd.CA != "" {
		if change.CA, err = readBounded("--ca", cmd.CA, server.AuthorityFileBytesMax); err != nil {
			return change, err
		}
	}
	if cmd.CertificatePasswordFile != "" && cmd.Certificate == "" {
		return change, fault.New(fault.Invalid, "--certificate-password-file requires --certificate")
	}
	if cmd.Certificate != "" {
		file, err := readBounded("--certificate", cmd.Certificate, server.AuthorityFileBytesMax)
		if err != nil {
			return change, err
		}
		password, err := secretFrom("certificate-password", "", cmd.CertificatePasswordFile)
		if err != nil {
			return change, err
		}
		change = change.Certificated(file, password)
	}
	if change.URL == nil && change.Host == nil && change.CA == nil && change.Secrets == nil && change.Certificate == nil {
		return change, fault.New(fault.Invalid, "nothing to set: give --url, --secret, --certificate, --host or --ca")
	}
	return change, nil
}

// readBounded reads a file that is no larger than it may be.
func readBounded(flag, path string, bytesMax int) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		var where *fs.PathError
		if errors.As(err, &where) {
			err = where.Err
		}
		return nil, fault.New(fault.Invalid, "%s %s: %v", flag, path, err)
	}
	defer func() { _ = file.Close() }() // only read
	content, err := io.ReadAll(io.LimitReader(file, int64(bytesMax)+1))
	switch {
	case err != nil:
		return nil, fault.New(fault.Invalid, "%s %s: %v", flag, path, err)
	case len(content) > bytesMax:
		return nil, fault.New(fault.Invalid, "%s %s: larger than %d bytes", flag, path, bytesMax)
	}
	return content, nil
}

type authorityList struct{ authorityFlags }

// Run lists every authority for which something is set or asked for.
func (cmd *authorityList) Run(c *command) error {
	return cmd.with(c, false, func(ctx context.Context, d *db.DB, e *server.Authorities) error {
		var list []server.Authority
		if err := d.Read(ctx, func(r db.Reader) (err error) { list, err = e.List(r); return err }); err != nil {
			return err
		}
		return cmd.show(c, append([]server.Authority{}, list...), func(w *tabwriter.Writer) { printAuthorities(w, list...) })
	})
}

func printAuthorities(w io.Writer, list ...server.Authority) {
	fmt.Fprintln(w, "AUTHORITY\tADDRESS\tIDENTITY\tCERTIFICATE\tENDS\tCALLS US AT\tMISSING, AND HOW TO SET IT")
	for _, s := range list {
		subject, ends := "-", "-"
		if s.Certificate != nil {
			subject, ends = s.Certificate.Subject, s.Certificate.ExpiresAt.Format(time.RFC3339)
		}
		missing := dash(strings.Join(s.Missing, ", "))
		if s.Command != "" {
			missing += ": " + s.Command
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Name(), dash(s.URL), dash(strings.Join(s.Secrets, ", ")), subject, ends,
			dash(s.Host), missing)
	}
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

type authorityUnset struct {
	authorityFlags
	Environment string `arg:"" help:"CC.live or CC.test." placeholder:"CC.ENV"`
}

// Run forgets.
func (cmd *authorityUnset) Run(c *command) error {
	at, err := environmentOf(cmd.Environment)
	if err != nil {
		return err
	}
	return cmd.with(c, true, func(ctx context.Context, _ *db.DB, e *server.Authorities) error {
		if err := e.Unset(ctx, actor(), at); err != nil {
			return err
		}
		return cmd.show(c, map[string]string{"unset": at.String()}, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "%s\tremoved\n", at)
		})
	})
}
