package endpoint

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

// Limits of what is stored.
const (
	CABytesMax     = 64 << 10
	caMax          = 32
	urlBytesMax    = 2000
	secretBytesMax = 4 << 10
)

// Change is what an operator sets; what is nil or absent stays as it is.
type Change struct {
	URL         *string
	Host        *string
	CA          []byte // PEM
	Secrets     map[string]secret.Secret
	Certificate *identity.PKCS12
}

// Certificated is the change with a PKCS#12 and its password.
func (c Change) Certificated(file []byte, password secret.Secret) Change {
	c.Certificate = &identity.PKCS12{File: file, Password: password.RevealText()}
	return c
}

// Set stores a change. What it does not name stays.
func (e *Endpoints) Set(ctx context.Context, by audit.Actor, at country.Environment, c Change) (Shown, error) {
	pack, err := e.offered(at)
	if err != nil {
		return Shown{}, err
	}
	before, err := e.read(ctx, at)
	if err != nil {
		return Shown{}, err
	}
	after := before
	id, err := e.unseal(before)
	if err != nil {
		return Shown{}, fmt.Errorf("open what is set for %s: %w", at, err)
	}
	faults := slices.Concat(e.setPlain(&after, pack, c), setSecrets(&after, pack, &id, c.Secrets),
		e.setCertificate(&after, pack, &id, c.Certificate))
	if len(faults) == 0 {
		faults, err = e.checkHost(ctx, &after, id)
	}
	if err != nil {
		return Shown{}, err
	}
	if len(faults) > 0 {
		return Shown{}, fault.New(fault.Invalid, "%s cannot be set", at).With(faults...)
	}
	if after.wrapped, after.sealed, err = e.seal(at, id); err != nil {
		return Shown{}, fmt.Errorf("seal the identity at %s: %w", at, err)
	}
	if err := e.put(ctx, by, before, after); err != nil {
		return Shown{}, fmt.Errorf("set %s: %w", at, err)
	}
	stored, err := e.read(ctx, at)
	return e.shown(stored), err
}

// offered is the pack of an environment that has an authority.
func (e *Endpoints) offered(at country.Environment) (country.Pack, error) {
	pack, ok := e.cfg.Atlas.Pack(at.Code)
	switch {
	case !ok:
		return pack, fault.New(fault.Invalid, "unknown country %s", at.Code)
	case pack.Connect == nil:
		return pack, fault.New(fault.Invalid, "%s has documents only, no authority", at.Code)
	case !e.cfg.Atlas.Offers(at.Code, at.Live):
		return pack, fault.New(fault.Invalid, "%s is not available with live keys", at.Code)
	}
	return pack, nil
}

func (e *Endpoints) read(ctx context.Context, at country.Environment) (one row, err error) {
	err = e.db.Read(ctx, func(r db.Reader) error {
		one, err = scanRow(r.Row(rowsSQL+" WHERE country = $1 AND live = $2", at.Code, bool(at.Live)).Scan)
		if errors.Is(err, db.ErrNoRows) {
			one, err = row{at: at}, nil
		}
		return err
	})
	if err != nil {
		return one, fmt.Errorf("read what is set for %s: %w", at, err)
	}
	return one, nil
}

// hostName is a DNS name of at least two labels, lower case.
var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (e *Endpoints) setPlain(to *row, pack country.Pack, c Change) (faults []fault.Fault) {
	if c.URL != nil {
		to.url = strings.TrimSuffix(*c.URL, "/")
		if err := e.cfg.Atlas.CheckAddress(to.at, to.url); err != nil || to.url == "" || len(to.url) > urlBytesMax {
			faults = append(faults, fault.At("--url", fault.FieldNotValid, "%q: %v", clip(*c.URL), cmpErr(err)))
		}
	}
	if c.Host != nil {
		to.host = strings.ToLower(*c.Host)
		switch {
		case pack.Callbacks == nil && pack.Enrol == nil:
			faults = append(faults, fault.At("--host", fault.UnsupportedField, "the authority of %s makes no callbacks", pack.Code))
		case !hostName.MatchString(to.host) || len(to.host) > 253:
			faults = append(faults, fault.At("--host", fault.FieldNotValid,
				"%q is not a host name such as callbacks.example.com", clip(*c.Host)))
		}
	}
	if c.CA != nil {
		pool, reason := readCA(c.CA)
		switch {
		case pack.Callbacks == nil:
			faults = append(faults, fault.At("--ca", fault.UnsupportedField, "the authority of %s makes no callbacks", pack.Code))
		case reason != "":
			faults = append(faults, fault.At("--ca", fault.FieldNotValid, "%s", reason))
		}
		to.ca = pool
	}
	return faults
}

func cmpErr(err error) error {
	if err == nil {
		return fmt.Errorf("must be a URL of at most %d characters", urlBytesMax)
	}
	return err
}

func clip(text string) string { return text[:min(len(text), 200)] }

// readCA keeps the certificates of a PEM file and nothing else of it.
func readCA(text []byte) (kept, reason string) {
	if len(text) > CABytesMax {
		return "", fmt.Sprintf("has more than %d bytes", CABytesMax)
	}
	var out strings.Builder
	n := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return "", fmt.Sprintf("contains a %s besides certificates", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return "", "contains an unreadable certificate"
		}
		if n++; n > caMax {
			return "", fmt.Sprintf("contains more than %d certificates", caMax)
		}
		if err := pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return "", "cannot be stored"
		}
	}
	if n == 0 {
		return "", "contains no PEM certificate"
	}
	return out.String(), ""
}

func setSecrets(to *row, pack country.Pack, id *country.Identity, given map[string]secret.Secret) (faults []fault.Fault) {
	known := []string{}
	if pack.Identity != nil {
		for _, s := range pack.Identity.Secrets {
			known = append(known, s.Name)
		}
	}
	id.Secrets = maps.Clone(id.Secrets)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name].RevealText()
		switch {
		case len(known) == 0:
			faults = append(faults, fault.At("--secret "+clip(name), fault.UnsupportedField,
				"is unknown: %s requires no secrets of the operator", pack.Code))
		case !slices.Contains(known, name):
			faults = append(faults, fault.At("--secret "+clip(name), fault.UnsupportedField, "is unknown; %s requires %s",
				pack.Code, strings.Join(known, ", ")))
		case value == "" || len(value) > secretBytesMax:
			faults = append(faults, fault.At("--secret "+name, fault.FieldNotValid, "must have 1 to %d bytes", secretBytesMax))
		default:
			if id.Secrets == nil {
				id.Secrets = map[string]string{}
			}
			id.Secrets[name] = value
		}
	}
	to.secrets = slices.Sorted(maps.Keys(id.Secrets))
	return faults
}

func (e *Endpoints) setCertificate(to *row, pack country.Pack, id *country.Identity, given *identity.PKCS12) []fault.Fault {
	const flag = "--certificate"
	if given == nil {
		return nil
	}
	if pack.Callbacks == nil && (pack.Identity == nil || !pack.Identity.Certificate) {
		return []fault.Fault{fault.At(flag, fault.UnsupportedField, "%s requires none of the operator", pack.Code)}
	}
	if len(given.File) > identity.FileBytesMax {
		return []fault.Fault{fault.At(flag, fault.FieldNotValid, "has more than %d bytes", identity.FileBytesMax)}
	}
	file, reason := identity.Read(given.File)
	if reason != "" {
		return []fault.Fault{fault.At(flag, fault.FieldNotValid, "%s", reason)}
	}
	found, problem := file.Open(given.Password)
	switch now := e.db.Wall(); {
	case problem != nil && problem.Password:
		return []fault.Fault{fault.At("--certificate-password-file", fault.FieldNotValid, "%s", problem.Reason)}
	case problem != nil:
		return []fault.Fault{fault.At(flag, fault.FieldNotValid, "%s", problem.Reason)}
	case now.After(found.Leaf.NotAfter):
		return []fault.Fault{fault.At(flag, fault.FieldNotValid, "expired on %s", found.Leaf.NotAfter.UTC().Format("2006-01-02"))}
	}
	sum := sha256.Sum256(found.Leaf.Raw)
	subject, print := identity.Subject(found.Leaf), hex.EncodeToString(sum[:])
	to.subject, to.fingerprint, to.expiresAt = &subject, &print, found.Leaf.NotAfter.UTC()
	id.Certificate = *given
	return nil
}

// checkHost proves that a name can be served: with a certificate that is valid
// for it, and by one certificate only.
func (e *Endpoints) checkHost(ctx context.Context, one *row, id country.Identity) ([]fault.Fault, error) {
	if one.host == "" {
		return nil, nil
	}
	wrong := func(format string, args ...any) []fault.Fault {
		return []fault.Fault{fault.At("--host", fault.FieldNotValid, format, args...)}
	}
	file, reason := identity.Read(id.Certificate.File)
	if reason != "" {
		return wrong("%s needs a certificate: give --certificate", one.host), nil
	}
	found, problem := file.Open(id.Certificate.Password)
	if problem != nil {
		return wrong("%s cannot be used: the certificate %s", one.host, problem.Reason), nil
	}
	if found.Leaf.VerifyHostname(one.host) != nil {
		return wrong("the certificate is not valid for %s", one.host), nil
	}
	var all []row
	err := e.db.Read(ctx, func(r db.Reader) (err error) { all, err = readRows(r); return err })
	if err != nil {
		return nil, fmt.Errorf("read the names of other authorities: %w", err)
	}
	for _, other := range all {
		if other.at != one.at && other.host == one.host && *other.fingerprint != *one.fingerprint {
			return wrong("%s is already used for %s with another certificate", one.host, other.at), nil
		}
	}
	return nil, nil
}

// put stores a row in one commit with its entry in the log.
func (e *Endpoints) put(ctx context.Context, by audit.Actor, before, after row) error {
	names, err := json.Marshal(append([]string{}, after.secrets...))
	if err != nil {
		return err
	}
	expires := any(nil)
	if !after.expiresAt.IsZero() {
		expires = db.Micros(after.expiresAt)
	}
	err = e.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Exec(raiseSQL); err != nil {
			return err
		}
		err := tx.ExecOne(putSQL, after.at.Code, bool(after.at.Live), after.url, after.host, after.ca, string(names),
			after.subject, after.fingerprint,
			expires, after.wrapped, after.sealed, db.Micros(tx.Now()), before.version)
		if err != nil {
			return err
		}
		return e.note(tx, by, before, &after)
	})
	if errors.Is(err, db.ErrStale) {
		return fault.New(fault.Conflict, "changed concurrently; reload and retry").
			With(fault.Fault{Code: fault.CodeConflict, Type: fault.General, Message: "changed concurrently"})
	}
	return err
}

// note writes down who changed what; never a secret. Without an after it was unset.
func (e *Endpoints) note(tx *db.Tx, by audit.Actor, before row, after *row) error {
	if e.cfg.Operators == nil {
		return errors.New("a change of an authority needs the operators' audit log")
	}
	act := operator.Act{Action: "authority.unset", Subject: before.at.String()}
	if before.version > 0 {
		act.Before = e.shown(before)
	}
	if after != nil {
		act.Action, act.After = "authority.set", e.shown(*after)
	}
	return e.cfg.Operators.RecordIn(tx, by, act)
}

// Unset forgets everything that is stored for an environment. Nothing stored: fault.NotFound.
func (e *Endpoints) Unset(ctx context.Context, by audit.Actor, at country.Environment) error {
	before, err := e.read(ctx, at)
	if err != nil {
		return err
	}
	if before.version == 0 {
		return fault.New(fault.NotFound, "nothing is set for %s", at).
			With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: "nothing is set"})
	}
	err = e.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Exec(raiseSQL); err != nil {
			return err
		}
		if err := tx.ExecOne(removeSQL, at.Code, bool(at.Live)); err != nil {
			return err
		}
		return e.note(tx, by, before, nil)
	})
	if err != nil {
		return fmt.Errorf("unset %s: %w", at, err)
	}
	return nil
}
