package operator_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

// withSecond gives operators a master key to seal second factors with.
func withSecond(t testing.TB, d *db.DB, required bool) func(*operator.Config) {
	t.Helper()
	master := newMaster(t)
	return func(c *operator.Config) {
		c.Second = operator.Second{Required: required, AdminURL: origin,
			Sealer: func(ctx context.Context) (*secret.Sealer, error) {
				return account.ServiceKeys{DB: d, Master: master}.Sealer(ctx, account.OperatorFactors)
			}}
	}
}

func newMaster(t testing.TB) *secret.Master {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master")
	must(t, secret.CreateMasterFile(path))
	master, err := secret.OpenMaster("file:" + path)
	must(t, err)
	return master
}

// knocks signs in with a password and answers the half that waits.
func (b *book) knocks(name string, password secret.Secret) *operator.Halfway {
	b.t.Helper()
	_, _, err := b.SignIn(context.Background(), attempt(name, password))
	var waits *operator.Halfway
	if !errors.As(err, &waits) {
		b.t.Fatalf("a sign-in of %s without a second factor: %v", name, err)
	}
	return waits
}

// finish gives a code as the second half.
func (b *book) finish(waits *operator.Halfway, code string) error {
	_, _, err := b.Finish(context.Background(), waits.Token.RevealText(), operator.Proof{Code: code},
		attempt("", secret.Secret{}))
	return err
}

// enrols signs in for the first time, with an app, and answers its key and the recovery codes.
func (b *book) enrols(name string, password secret.Secret) (key string, codes []string) {
	b.t.Helper()
	waits := b.knocks(name, password)
	if !waits.Enrol {
		b.t.Fatal("nobody asked for an enrolment")
	}
	offer, err := b.Offer(context.Background(), name)
	must(b.t, err)
	b.enrolment = operator.CodeAt(offer.Text, b.d.Now())
	e := operator.Enrolment{Ticket: offer.Ticket, Code: b.enrolment}
	token, s, codes, err := b.FinishEnrolment(context.Background(), waits.Token.RevealText(), e,
		attempt("", secret.Secret{}))
	must(b.t, err)
	if s.Name != name || !b.inside(token.RevealText()) {
		b.t.Fatalf("after an enrolment: %+v", s)
	}
	return offer.Text, codes
}

// RFC 6238, appendix B, of which an app shows the last six digits.
func TestCodesAreThoseOfTheStandard(t *testing.T) {
	t.Parallel()
	key := operator.TextOf([]byte("12345678901234567890"))
	for seconds, want := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471",
		1234567890: "005924", 2000000000: "279037", 20000000000: "353130"} {
		if got := operator.CodeAt(key, time.Unix(seconds, 0)); got != want {
			t.Errorf("at %d: %s, want %s", seconds, got, want)
		}
	}
}

func TestASecondFactorIsEnrolledAtTheFirstSignInAndAskedForEverAfter(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := open(t, d, withSecond(t, d, true))
		password := b.hire("ana", operator.Admin)
		key, codes := b.enrols("ana", password)
		if len(codes) != operator.RecoveryCodes {
			t.Fatalf("%d recovery codes", len(codes))
		}
		waits := b.knocks("ana", password)
		if waits.Enrol {
			t.Error("an enrolment is asked for twice")
		}
		if b.inside(waits.Token.RevealText()) {
			t.Error("half a sign-in is a session")
		}
		if _, _, _, err := b.FinishEnrolment(t.Context(), waits.Token.RevealText(), operator.Enrolment{},
			attempt("", secret.Secret{})); fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("who has a factor enrols past it: %v", err)
		}
		kind(t, "the code of the enrolment again", b.finish(waits, b.enrolment), fault.Unauthenticated)
		kind(t, "no code", b.finish(waits, ""), fault.Unauthenticated)
		must(t, b.finish(waits, operator.CodeAt(key, d.Now().Add(30*time.Second)))) // the next step, by a phone that is early
		kind(t, "half a sign-in twice", b.finish(waits, codes[0]), fault.Unauthenticated)
		if !slices.Contains(b.actions(), "signin.app ana") ||
			!slices.Contains(b.actions(), "operator.second_factor_added ana") ||
			!slices.Contains(b.actions(), "signin.refused ana") {
			t.Errorf("the log has %q", b.actions())
		}
		if v := b.verdict(); v.Broken != nil {
			t.Error(v.Broken)
		}
	})
}

func TestACodeIsTakenOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := open(t, d, withSecond(t, d, true))
		password := b.hire("ana", operator.Viewer)
		key, codes := b.enrols("ana", password)
		next := operator.CodeAt(key, d.Now().Add(30*time.Second))
		must(t, b.finish(b.knocks("ana", password), next))
		kind(t, "a code that was used", b.finish(b.knocks("ana", password), next), fault.Unauthenticated)
		must(t, b.finish(b.knocks("ana", password), codes[3]))
		kind(t, "a recovery code that was used", b.finish(b.knocks("ana", password), codes[3]), fault.Unauthenticated)
		must(t, b.finish(b.knocks("ana", password), "  "+codes[4][:9]+" "+codes[4][10:]+" "))
		must(t, d.Read(t.Context(), func(r db.Reader) error {
			f, err := b.Factors(r, "ana")
			if f.Recovery != operator.RecoveryCodes-2 {
				t.Errorf("%d recovery codes are left", f.Recovery)
			}
			return err
		}))
	})
}

func TestWrongCodesEndTheHalfSignInAndAreLimitedByName(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	b := open(t, d, withSecond(t, d, true))
	password := b.hire("ana", operator.Viewer)
	key, codes := b.enrols("ana", password)
	for range 2 { // ten guesses
		waits := b.knocks("ana", password)
		for range 5 {
			kind(t, "a wrong code", b.finish(waits, "000000"), fault.Unauthenticated)
		}
		if _, err := b.Waiting(t.Context(), waits.Token.RevealText()); fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("after five wrong codes the half sign-in goes on: %v", err)
		}
	}
	waits := b.knocks("ana", password)
	err := b.finish(waits, codes[0])
	kind(t, "the eleventh guess, from anywhere", err, fault.Limited)
	kind(t, "a right code then", b.finish(waits, operator.CodeAt(key, d.Now().Add(30*time.Second))), fault.Limited)
}

func TestHalfASignInAndAnOfferEndByThemselves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := dbtest.SQLite(t)
		b := open(t, d, withSecond(t, d, true))
		password := b.hire("ana", operator.Viewer)
		waits := b.knocks("ana", password)
		offer, err := b.Offer(t.Context(), "ana")
		must(t, err)
		time.Sleep(operator.HalfwayMax - time.Second)
		if _, err := b.Waiting(t.Context(), waits.Token.RevealText()); err != nil {
			t.Errorf("before its end: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := b.Waiting(t.Context(), waits.Token.RevealText()); fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("at its end: %v", err)
		}
		time.Sleep(operator.OfferMax - operator.HalfwayMax)
		waits = b.knocks("ana", password)
		_, _, _, err = b.FinishEnrolment(t.Context(), waits.Token.RevealText(),
			operator.Enrolment{Ticket: offer.Ticket, Code: operator.CodeAt(offer.Text, d.Now())}, attempt("", secret.Secret{}))
		kind(t, "an old offer", err, fault.Invalid)
		other, err := b.Offer(t.Context(), "bea")
		must(t, err)
		_, _, _, err = b.FinishEnrolment(t.Context(), waits.Token.RevealText(),
			operator.Enrolment{Ticket: other.Ticket, Code: operator.CodeAt(other.Text, d.Now())}, attempt("", secret.Secret{}))
		kind(t, "an offer made for another", err, fault.Invalid)
	})
}

func TestFactorsAreChangedInAFreshSessionAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := dbtest.SQLite(t)
		b := open(t, d, withSecond(t, d, true))
		password := b.hire("ana", operator.Viewer)
		key, codes := b.enrols("ana", password)
		waits := b.knocks("ana", password)
		_, s, err := b.Finish(t.Context(), waits.Token.RevealText(),
			operator.Proof{Code: operator.CodeAt(key, d.Now().Add(30*time.Second))}, attempt("", secret.Secret{}))
		must(t, err)
		kind(t, "the last factor where one is required", b.RemoveApp(t.Context(), s), fault.Conflict)
		renewed, err := b.RenewRecovery(t.Context(), s)
		must(t, err)
		kind(t, "an old recovery code", b.finish(b.knocks("ana", password), codes[0]), fault.Unauthenticated)
		time.Sleep(operator.FreshMax)
		_, err = b.RenewRecovery(t.Context(), s)
		kind(t, "codes in an old session", err, fault.Forbidden)
		kind(t, "a removal in an old session", b.RemoveApp(t.Context(), s), fault.Forbidden)
		_, err = b.Enrol(t.Context(), s, operator.Enrolment{})
		kind(t, "an enrolment in an old session", err, fault.Forbidden)
		must(t, b.finish(b.knocks("ana", password), renewed[0]))
	})
}

func TestWhoHasAFactorIsAskedAlsoWhereNoneIsRequired(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	b := open(t, d, withSecond(t, d, false))
	password := b.hire("ana", operator.Viewer)
	_, s := b.enter("ana", password)
	offer, err := b.Offer(t.Context(), "ana")
	must(t, err)
	_, err = b.Enrol(t.Context(), s, operator.Enrolment{Ticket: offer.Ticket, Code: "000000"})
	kind(t, "a wrong first code", err, fault.Invalid)
	codes, err := b.Enrol(t.Context(), s, operator.Enrolment{Ticket: offer.Ticket,
		Code: operator.CodeAt(offer.Text, d.Now())})
	must(t, err)
	must(t, b.finish(b.knocks("ana", password), codes[0]))
	must(t, b.RemoveApp(t.Context(), s))
	b.enter("ana", password)
	must(t, d.Read(t.Context(), func(r db.Reader) error {
		f, err := b.Factors(r, "ana")
		if f.Any() || f.Recovery != 0 {
			t.Errorf("left behind: %+v", f)
		}
		return err
	}))
}

func TestAResetTakesFactorsAndSessions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := open(t, d, withSecond(t, d, true))
		password := b.hire("ana", operator.Viewer)
		_, codes := b.enrols("ana", password)
		waits := b.knocks("ana", password)
		_, err := b.Reset(t.Context(), admin(), "ana")
		must(t, err)
		kind(t, "a half sign-in from before", b.finish(waits, codes[0]), fault.Unauthenticated)
		if waits := b.knocks("ana", password); !waits.Enrol {
			t.Error("after a reset no enrolment is asked for")
		}
		if !slices.Contains(b.actions(), "operator.second_factor_reset ana") {
			t.Errorf("the log has %q", b.actions())
		}
	})
}

func TestNothingStoredOpensASecondFactor(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	b := open(t, d, withSecond(t, d, true))
	password := b.hire("ana", operator.Viewer)
	key, codes := b.enrols("ana", password)
	b.hire("bea", operator.Viewer)
	var stored [][]byte
	must(t, d.Read(t.Context(), func(r db.Reader) error {
		for _, sql := range []string{"SELECT sealed FROM operator_totp", "SELECT digest FROM operator_recovery",
			"SELECT after FROM operator_audit", "SELECT before FROM operator_audit"} {
			all, err := db.Collect(r, func(scan func(...any) error) (raw []byte, err error) { return raw, scan(&raw) }, sql)
			if err != nil {
				return err
			}
			stored = append(stored, all...)
		}
		return nil
	}))
	for _, row := range stored {
		for _, text := range append([]string{key, string(operator.KeyOf(key))}, codes...) {
			if bytes.Contains(row, []byte(text)) {
				t.Fatalf("a factor stands in the database: %q", row)
			}
		}
	}
	must(t, execSQL(t, d, "INSERT INTO operator_totp (name, sealed, last_step, created_at) SELECT 'bea', sealed, last_step, created_at FROM operator_totp WHERE name = 'ana'"))
	_, err := b.SetPassword(t.Context(), admin(), "bea", secret.FromText("a violet anchor for bea"))
	must(t, err)
	if err := b.finish(b.knocks("bea", secret.FromText("a violet anchor for bea")),
		operator.CodeAt(key, d.Now())); err == nil {
		t.Error("a factor copied to another operator opens")
	}
}

// Second factors are encrypted with a new key, work as before, and the old key opens nothing any more.
func TestTheKeyOfSecondFactorsIsRenewed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		keys := account.ServiceKeys{DB: d, Master: newMaster(t)}
		b := open(t, d, func(c *operator.Config) {
			c.Second = operator.Second{Required: true, AdminURL: origin,
				Sealer: func(ctx context.Context) (*secret.Sealer, error) {
					return keys.Sealer(ctx, account.OperatorFactors)
				}}
		})
		password := b.hire("ana", operator.Viewer)
		key, _ := b.enrols("ana", password)
		sealed := func() (text []byte) {
			must(t, d.Read(t.Context(), func(r db.Reader) error {
				return r.Row("SELECT sealed FROM operator_totp").Scan(&text)
			}))
			return text
		}
		old, err := keys.Sealer(t.Context(), account.OperatorFactors)
		must(t, err)
		before := sealed()
		about := secret.Context{Kid: "ana", Purpose: "operator totp", Version: 1}
		_, err = old.Open(before, about)
		must(t, err)
		must(t, keys.Reseal(t.Context(), account.OperatorFactors, operator.ResealFactors))
		if _, err := old.Open(sealed(), about); err == nil {
			t.Error("the old key still opens it")
		}
		must(t, b.finish(b.knocks("ana", password), operator.CodeAt(key, d.Now().Add(30*time.Second))))
	})
}
