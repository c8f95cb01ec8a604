package onboarding_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
	pkcs12 "software.sslmate.com/src/go-pkcs12"

	"tributary/internal/country/identity"
	"tributary/internal/db/dbtest"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
)

const spanish = "B98602642"

// Keys are made once, and only when a test asks for them: RSA keys are dear.
var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	otherKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	weakKey  = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 1024)) })
	ecKey    = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var today = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// sample is how a test certificate is made; the zero value is a good one.
type sample struct {
	key      crypto.Signer // of the certificate
	inFile   crypto.Signer // of the file; nil: the same
	subject  pkix.Name
	from, to time.Time
	usage    x509.KeyUsage
	noUsage  bool
	encoder  *pkcs12.Encoder
	password string
	chain    []*x509.Certificate
	last     bool // the certificate stands behind its chain
}

func (s sample) certificate() *x509.Certificate {
	if s.key == nil {
		s.key = rsaKey()
	}
	if s.subject.String() == "" {
		s.subject = pkix.Name{CommonName: "Tienda Uno", SerialNumber: "IDCES-" + spanish}
	}
	if s.to.IsZero() {
		s.from, s.to = today.AddDate(0, -1, 0), today.AddDate(1, 0, 0)
	}
	if s.usage == 0 && !s.noUsage {
		s.usage = x509.KeyUsageDigitalSignature
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: s.subject, NotBefore: s.from, NotAfter: s.to,
		KeyUsage: s.usage}
	der := must(x509.CreateCertificate(rand.Reader, template, template, s.key.Public(), s.key))
	return must(x509.ParseCertificate(der))
}

func (s sample) file() []byte {
	if s.encoder == nil {
		s.encoder = pkcs12.Modern2023
	}
	if s.key == nil {
		s.key = rsaKey()
	}
	if s.inFile == nil {
		s.inFile = s.key
	}
	first, rest := s.certificate(), s.chain
	if s.last {
		first, rest = s.chain[0], append(slices.Clone(s.chain[1:]), first)
	}
	return must(s.encoder.Encode(s.inFile, first, rest, s.password))
}

// credentials are the members of tax_credentials for a file.
func credentials(file []byte, password string) map[string]any {
	return map[string]any{"certificate_base64": base64.StdEncoding.EncodeToString(file), "certificate_password": password}
}

func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	organization := func(value string) pkix.Name {
		return pkix.Name{CommonName: "Tienda",
			ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 5, 4, 97}, Value: value}}}
	}
	cases := []struct {
		name     string
		sample   sample
		password string // that is sent, when another
		country  string
		number   string
		want     string // part of the fault; empty: accepted
		field    string // certificate_base64 unless said
	}{
		{name: "good"},
		{name: "no key usage at all", sample: sample{noUsage: true}},
		{name: "nonRepudiation alone", sample: sample{usage: x509.KeyUsageContentCommitment}},
		{name: "EC where any key will do", sample: sample{key: ecKey()}},
		{name: "empty password", sample: sample{password: ""}},
		{name: "legacy RC2", sample: sample{encoder: pkcs12.LegacyRC2, password: "clave"}},
		{name: "legacy 3DES", sample: sample{encoder: pkcs12.LegacyDES, password: "contraseña ñandú"}},
		{name: "PBMAC1", sample: sample{encoder: pkcs12.Modern2026, password: "clave"}},
		{name: "no protection at all", sample: sample{encoder: pkcs12.Passwordless}},
		{name: "behind its chain", sample: sample{chain: []*x509.Certificate{sample{key: otherKey()}.certificate()},
			last: true}},
		{name: "organizationIdentifier", sample: sample{subject: organization("VATES-" + spanish)}},
		{name: "organizationIdentifier bare with prefix", sample: sample{subject: organization("ES" + spanish)}},
		{name: "x500UniqueIdentifier", country: "XX", number: "AAA010101AAA",
			sample: sample{subject: pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{
				{Type: asn1.ObjectIdentifier{2, 5, 4, 45}, Value: "AAA010101AAA / HEGT7610034S2"}}}}},
		{name: "documents only: whoever it names", country: "IE", number: "6388047V"},

		{name: "wrong password", sample: sample{password: "one"}, password: "two", want: "does not open",
			field: "certificate_password"},
		{name: "wrong password, legacy", sample: sample{password: "one", encoder: pkcs12.LegacyRC2}, password: "two",
			want: "does not open", field: "certificate_password"},
		{name: "wrong password, PBMAC1", sample: sample{password: "one", encoder: pkcs12.Modern2026}, password: "two",
			want: "does not open", field: "certificate_password"},
		{name: "a password for an open file", sample: sample{encoder: pkcs12.Passwordless}, password: "two",
			want: "does not open", field: "certificate_password"},
		{name: "expired", sample: sample{from: today.AddDate(-2, 0, 0), to: today.Add(-time.Second)},
			want: "expired on 2026-05-01"},
		{name: "not valid yet", sample: sample{from: today.Add(time.Hour), to: today.AddDate(1, 0, 0)},
			want: "is not valid before 2026-05-01"},
		{name: "key usage", sample: sample{usage: x509.KeyUsageKeyEncipherment}, want: "key usage"},
		{name: "weak RSA", sample: sample{key: weakKey()}, want: "1024 bits"},
		{name: "somebody else's number", sample: sample{subject: organization("VATES-B12345674")},
			want: "does not name the company's tax number"},
		{name: "a longer number around ours", sample: sample{subject: organization("VATES-" + spanish + "1")},
			want: "does not name"},
		{name: "the number in the common name only", sample: sample{subject: pkix.Name{CommonName: spanish}},
			want: "does not name"},
		{name: "somebody else's key", sample: sample{inFile: otherKey()}, want: "belongs to none"},
	}
	w := newWorld(t, dbtest.SQLite(t))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.country == "" {
				c.country, c.number = "ES", spanish
			}
			if c.password == "" {
				c.password = c.sample.password
			}
			id := strings.ReplaceAll(c.name, " ", "-")
			body := company("meta.external_id", id, "meta.country_code", c.country, "tax_information.tax_number", c.number,
				"tax_credentials", credentials(c.sample.file(), c.password))
			e := w.settle(w.create(body))
			// Each has its own client's world but the database is one: the next may use the number again.
			defer clean(t, w)
			if c.want == "" {
				if e.Status != onboarding.Success {
					t.Fatalf("refused: %+v", e.Errors)
				}
				return
			}
			if c.field == "" {
				c.field = "certificate_base64"
			}
			if e.Status != onboarding.Failed || len(e.Errors) != 1 || e.Errors[0].Code != "credentials_invalid" ||
				e.Errors[0].Field != "tax_credentials."+c.field || !strings.Contains(e.Errors[0].Message, c.want) {
				t.Fatalf("want a fault with %q, got %+v", c.want, e)
			}
			if _, err := w.Company(t.Context(), client, id, true); err == nil {
				t.Error("a refused company exists")
			}
		})
	}
}

func TestAnECKeyIsRefusedWhereRSAIsNeeded(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	w := newWorld(t, dbtest.SQLite(t))
	body := company("meta.country_code", "mx", "tax_information.tax_number", "AAA010101AAA", "settings.fiscal_regime",
		"601",
		"tax_credentials", credentials(sample{key: ecKey(), subject: pkix.Name{SerialNumber: "AAA010101AAA"},
			password: "p"}.file(), "p"),
		"tax_credentials.username", "pac", "tax_credentials.password", "pac-secret")
	e := w.settle(w.create(body))
	if got := list(e.Errors); !slices.Equal(got, []string{"credentials_invalid tax_credentials.certificate_base64"}) ||
		!strings.Contains(e.Errors[0].Message, "RSA") {
		t.Fatalf("%+v", e)
	}
	set(body, "tax_credentials.certificate_base64",
		base64.StdEncoding.EncodeToString(sample{subject: pkix.Name{SerialNumber: "AAA010101AAA"}, password: "p"}.file()))
	if e := w.settle(w.create(body)); e.Status != onboarding.Success {
		t.Fatalf("RSA was refused: %+v", e.Errors)
	}
}

// daysOfRounds cost a core so many days that a test in which a key is derived with them never ends.
const daysOfRounds = 1 << 40

// A refusal must come before any key is derived.
func TestADearPKCS12IsRefusedBeforeItCostsAnything(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	c := onboarding.New(onboarding.Config{})
	for name, e := range map[string]*pkcs12.Encoder{"modern": pkcs12.Modern2023, "PBMAC1": pkcs12.Modern2026,
		"legacy": pkcs12.LegacyDES} {
		good := sample{encoder: e, password: "p"}.file()
		for _, count := range []int64{onboarding.IterationsMax + 1, daysOfRounds} {
			for at, file := range withIterations(good, count) {
				_, field, reason, err := onboarding.OpenPKCS12(c, file, "p")
				if err != nil || field != "tax_credentials.certificate_base64" || !strings.Contains(reason, "more rounds") {
					t.Errorf("%s, place %d of the file = %d: %q %q %v", name, at, count, field, reason, err)
				}
			}
		}
	}
	good := sample{password: "p"}.file()
	if _, _, reason, err := onboarding.OpenPKCS12(c, signedWith(good, "p", onboarding.IterationsMax),
		"p"); reason != "" || err != nil {
		t.Errorf("the most rounds that are allowed: %q %v", reason, err)
	}
	if _, _, reason, _ := onboarding.OpenPKCS12(c, signedWith(good, "p", onboarding.IterationsMax+1),
		"p"); !strings.Contains(reason, "more rounds") {
		t.Errorf("one more: %q", reason)
	}
}

// withIterations returns the file once for every place that says how many
// rounds a key costs, with another number there.
func withIterations(file []byte, count int64) [][]byte {
	old := must(asn1.Marshal(2048))
	if bytes.Count(file, old) == 0 {
		panic("no rounds in the file")
	}
	var all [][]byte
	for at := 0; ; {
		i := bytes.Index(file[at:], old)
		if i < 0 {
			return all
		}
		all = append(all, replaceDER(file, at+i, len(old), must(asn1.Marshal(count))))
		at += i + len(old)
	}
}

// replaceDER puts other bytes in the place of an element and fixes the lengths
// of everything around it, octet strings that hold DER among it.
func replaceDER(der []byte, at, length int, with []byte) []byte {
	var rebuild func(der []byte, offset int) []byte
	rebuild = func(der []byte, offset int) []byte {
		var out []byte
		for len(der) > 0 {
			var v asn1.RawValue
			rest := must(asn1.Unmarshal(der, &v))
			size := len(der) - len(rest)
			header := size - len(v.Bytes)
			inside := offset <= at && at < offset+size
			switch {
			case offset == at && size == length:
				out = append(out, with...)
			case inside:
				v.Bytes = rebuild(v.Bytes, offset+header)
				v.FullBytes = nil
				out = append(out, must(asn1.Marshal(v))...)
			default:
				out = append(out, der[:size]...)
			}
			der, offset = rest, offset+size
		}
		return out
	}
	return rebuild(der, 0)
}

// A key that hides in an encrypted content cannot be looked at before it is
// decrypted: it must be refused without deriving a key for it.
func TestASecondKeyHiddenInAnEncryptedContentIsNeverOpened(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	c := onboarding.New(onboarding.Config{})
	file := sample{password: "p"}.file()
	for name, bad := range map[string][]byte{
		"only there":      hiddenKey(file, "p", daysOfRounds, false),
		"and a plain one": hiddenKey(file, "p", daysOfRounds, true),
	} {
		_, field, reason, err := onboarding.OpenPKCS12(c, bad, "p")
		if err != nil || field != "tax_credentials.certificate_base64" || reason == "" {
			t.Errorf("%s: %q %q %v", name, field, reason, err)
		}
		t.Logf("%s: %s", name, reason)
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	c := onboarding.New(onboarding.Config{})
	good := sample{password: "p"}.file()
	// behind AES-256-CBC
	vector := bytes.Index(good, must(asn1.Marshal(asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 1, 42}))) + 11
	for name, file := range map[string][]byte{
		"empty":                     {},
		"text":                      []byte("-----BEGIN CERTIFICATE-----"),
		"a certificate":             sample{}.certificate().Raw,
		"truncated":                 good[:len(good)-10],
		"truncated early":           good[:40],
		"something behind":          append(slices.Clone(good), 0),
		"an odd length of a vector": replaceDER(good, vector, 18, must(asn1.Marshal(make([]byte, 5)))),
		"no rounds":                 withIterations(good, 0)[0],
		"negative rounds":           withIterations(good, -5)[0],
		"certificates only": must(pkcs12.Modern2023.EncodeTrustStore([]*x509.Certificate{sample{}.certificate()},
			"p")),
		"too large": make([]byte, onboarding.PKCS12BytesMax+1),
	} {
		_, field, reason, err := onboarding.OpenPKCS12(c, file, "p")
		if err != nil || field != "tax_credentials.certificate_base64" || reason == "" {
			t.Errorf("%s: %q %q %v", name, field, reason, err)
		}
	}
	if _, _, reason, _ := onboarding.OpenPKCS12(c, good, "p"); reason != "" {
		t.Errorf("the good one: %s", reason)
	}
}

// Whatever the decoder can make, we read, and only with its password.
func TestEveryPasswordOpensItsOwnFile(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	c := onboarding.New(onboarding.Config{})
	rapid.Check(t, func(t *rapid.T) {
		encoder := rapid.SampledFrom([]*pkcs12.Encoder{pkcs12.LegacyRC2, pkcs12.LegacyDES, pkcs12.Modern2023,
			pkcs12.Modern2026}).Draw(t, "encoder")
		password := rapid.StringMatching(`[ -~ñéßЖ漢]{0,80}`).Draw(t, "password")
		rounds := rapid.IntRange(1, 300).Draw(t, "rounds")
		file := sample{key: ecKey(), encoder: encoder.WithIterations(rounds), password: password}.file()
		if _, _, reason, err := onboarding.OpenPKCS12(c, file, password); reason != "" || err != nil {
			t.Fatalf("%s %v", reason, err)
		}
		if _, field, _, err := onboarding.OpenPKCS12(c, file,
			password+"x"); field != "tax_credentials.certificate_password" || err != nil {
			t.Fatalf("opened with a wrong password: %q %v", field, err)
		}
	})
}

func FuzzPKCS12(f *testing.F) {
	needs.NotRaced(f, "inputs one after another")
	for _, e := range []*pkcs12.Encoder{pkcs12.LegacyRC2, pkcs12.LegacyDES, pkcs12.Modern2023, pkcs12.Modern2026} {
		f.Add(sample{key: ecKey(), encoder: e.WithIterations(2), password: "p"}.file(), "p")
	}
	f.Add(sample{key: ecKey(), encoder: pkcs12.Passwordless}.file(), "")
	c := onboarding.New(onboarding.Config{})
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, file []byte, password string) {
		subject, field, reason, err := onboarding.OpenPKCS12(c, file, password)
		if err != nil {
			t.Fatal(err)
		}
		if (reason == "") != (field == "") || reason != "" && subject != "" {
			t.Fatalf("%q %q %q", subject, field, reason)
		}
	})
}

func TestTheTestCertificateIsAcceptedAndEveryOneIsFresh(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	file, password, err := identity.Test(spanish, "Tienda Uno", today)
	if err != nil {
		t.Fatal(err)
	}
	again, other, err := identity.Test(spanish, "Tienda Uno", today)
	if err != nil || bytes.Equal(file, again) || password == other || len(password) < 20 {
		t.Errorf("two test certificates are alike: %v", err)
	}
	id := w.onboard(company("tax_credentials", credentials(file, password)))
	shown, err := w.Company(t.Context(), client, id, false)
	if err != nil || len(shown.Credentials) != 1 || !strings.Contains(*shown.Credentials[0].Subject,
		"organizationIdentifier="+spanish) {
		t.Errorf("%+v %v", shown.Credentials, err)
	}
}

// The commands of docs/onboarding.md make files that are accepted.
func TestFilesMadeByOpenSSLAreAccepted(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	program := needs.Tool(t, "openssl", "openssl")
	dir := t.TempDir()
	run := func(args ...string) error {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("openssl %v: %s", args, out)
		}
		return err
	}
	if err := run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "30",
		"-subj", "/CN=Tienda Uno/serialNumber=IDCES-"+spanish+"/2.5.4.97=VATES-"+spanish); err != nil {
		t.Fatal(err)
	}
	c := onboarding.New(onboarding.Config{})
	for _, flags := range [][]string{nil, {"-legacy"}, {"-descert", "-legacy"}, {"-iter", "100000"},
		{"-certpbe", "NONE"}} {
		name := filepath.Join(dir, "file.p12")
		if run(append([]string{"pkcs12", "-export", "-inkey", "key.pem", "-in", "cert.pem", "-out", name, "-passout",
			"pass:geheim"}, flags...)...) != nil {
			continue // this openssl does not have the old ciphers
		}
		subject, _, reason, err := onboarding.OpenPKCS12(c, must(os.ReadFile(name)), "geheim")
		if reason != "" || err != nil || !strings.Contains(subject, spanish) {
			t.Errorf("%v: %q %q %v", flags, subject, reason, err)
		}
	}
}
