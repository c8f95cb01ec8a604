package onboarding

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"tributary/internal/country/identity"
	"tributary/internal/fault"
)

const (
	openFor    = 10 * time.Second // what the limits of identity.Read allow takes far less
	rsaBitsMin = 2048
	ecBitsMin  = 256
)

// certificate is what is kept and checked of an opened PKCS#12. The key itself
// is forgotten.
type certificate struct {
	leaf        *x509.Certificate
	subject     string
	fingerprint string
	notAfter    time.Time
}

// openCertificate opens a PKCS#12. problem is the client's, err is ours.
//
// Failure policy: opening is computing that cannot be interrupted, so its
// price is read from the file first (identity.Read), one core is left to
// the others, clients take turns, and no opening takes longer than openFor. One
// that is given up keeps its core until it ends, which the limits bound to seconds.
func (c *Companies) openCertificate(ctx context.Context, clientID string, der []byte,
	password string) (cert *certificate, problem *fault.Fault, err error) {
	if len(der) > pkcs12BytesMax {
		return nil, credentialFault(fieldCertificate, "is too large"), nil
	}
	der = slices.Clone(der) // one that is given up goes on reading
	file, reason := identity.Read(der)
	if reason != "" {
		return nil, credentialFault(fieldCertificate, reason), nil
	}
	leave, err := c.opening.Enter(ctx, clientID, 1)
	if err != nil {
		return nil, nil, fmt.Errorf("wait to open a certificate: %w", err)
	}
	type outcome struct {
		cert    *certificate
		problem *fault.Fault
	}
	done := make(chan outcome, 1)
	go func() {
		defer leave()
		defer clear(der)
		cert, problem := opened(file, password)
		done <- outcome{cert, problem}
	}()
	timer := time.NewTimer(c.openFor)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.cert, o.problem, nil
	case <-timer.C:
		return nil, credentialFault(fieldCertificate, "takes too long to decrypt"), nil
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("open a certificate: %w", ctx.Err())
	}
}

func credentialFault(field, reason string) *fault.Fault {
	f := fault.At(field, fault.CredentialsInvalid, "%s", reason)
	return &f
}

// opened turns what the file holds into what is kept of it.
func opened(file *identity.File, password string) (*certificate, *fault.Fault) {
	id, problem := file.Open(password)
	switch {
	case problem != nil && problem.Password:
		return nil, credentialFault(fieldPassword, problem.Reason)
	case problem != nil:
		return nil, credentialFault(fieldCertificate, problem.Reason)
	}
	print := sha256.Sum256(id.Leaf.Raw)
	return &certificate{
		leaf: id.Leaf, subject: identity.Subject(id.Leaf), fingerprint: hex.EncodeToString(print[:]),
		notAfter: id.Leaf.NotAfter.UTC(),
	}, nil
}

// certificateRules are a country's wishes.
type certificateRules struct {
	country string
	key     string // "RSA", "EC" or any
	number  string // that the subject must carry; empty: need not
}

// check finds everything that hinders the certificate's use.
func (c *certificate) check(now time.Time, rules certificateRules) []fault.Fault {
	var faults []fault.Fault
	refuse := func(format string, args ...any) {
		faults = append(faults, fault.At(fieldCertificate, fault.CredentialsInvalid, format, args...))
	}
	if now.After(c.leaf.NotAfter) {
		refuse("expired on %s", c.leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	if now.Before(c.leaf.NotBefore) {
		refuse("is not valid before %s", c.leaf.NotBefore.UTC().Format(time.DateOnly))
	}
	if usage := c.leaf.KeyUsage; usage != 0 && usage&(x509.KeyUsageDigitalSignature|x509.KeyUsageContentCommitment) == 0 {
		refuse("cannot sign: its key usage has neither digitalSignature nor nonRepudiation")
	}
	if reason := c.keyReason(rules.key); reason != "" {
		refuse("%s", reason)
	}
	if rules.number != "" && !identity.Names(c.leaf, rules.country, rules.number) {
		refuse("does not name the company's tax number in its subject (organizationIdentifier or serialNumber)")
	}
	return faults
}

func (c *certificate) keyReason(wanted string) string {
	var found string
	var bits, least int
	switch key := c.leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		found, bits, least = "RSA", key.N.BitLen(), rsaBitsMin
	case *ecdsa.PublicKey:
		found, bits, least = "EC", key.Curve.Params().BitSize, ecBitsMin
	default:
		return "has a key that is not RSA or EC"
	}
	switch {
	case wanted != "" && wanted != found:
		return fmt.Sprintf("has a key of type %s; the country requires %s", found, wanted)
	case bits < least:
		return fmt.Sprintf("has a key of %d bits; at least %d are required", bits, least)
	}
	return ""
}
