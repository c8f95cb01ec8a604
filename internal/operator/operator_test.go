package operator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

func TestAnOperatorSignsInActsAndSignsOut(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := open(t, d)
		password := b.hire(" Ana@Example.test ", operator.Acting)
		token, s := b.enter("ANA@example.test", password)
		if s.Name != "ana@example.test" || s.Role != operator.Acting || s.IP != "192.0.2.9" || s.CSRF == "" || s.ID == "" ||
			strings.Contains(token, s.ID) {
			t.Errorf("%+v", s)
		}
		other := open(t, d) // another process
		again, err := other.Session(t.Context(), token)
		must(t, err)
		if again.CSRF != s.CSRF || !again.CheckCSRF(s.CSRF) || again.CheckCSRF("") || again.CheckCSRF(s.CSRF+"x") {
			t.Error("the form token is not that of the session")
		}
		_, second := b.enter("ana@example.test", password)
		if second.CSRF == s.CSRF || second.CheckCSRF(s.CSRF) {
			t.Error("two sessions share a form token")
		}
		must(t, d.Read(t.Context(), func(r db.Reader) error {
			list, err := b.Sessions(r)
			if len(list) != 2 || list[0].CSRF != "" {
				t.Errorf("%+v", list)
			}
			return err
		}))
		must(t, other.SignOut(t.Context(), again))
		if b.inside(token) {
			t.Error("a session goes on after signing out")
		}
		want := []string{"operator.created ana@example.test", "signin.password ana@example.test",
			"signin.password ana@example.test", "signout ana@example.test"}
		if got := b.actions(); !slices.Equal(got, want) {
			t.Errorf("the log: %v", got)
		}
	})
}

func TestWhatIsStoredSignsNobodyIn(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	b := open(t, d)
	password := b.hire("ana.of.the.test", operator.Admin)
	token, s := b.enter("ana.of.the.test", password)
	path := one[string](t, d, "SELECT file FROM pragma_database_list WHERE name = 'main'")
	if !strings.Contains(read(t, path)+read(t, path+"-wal"), "ana.of.the.test") {
		t.Fatal("the files do not even hold the name: the test looks in the wrong place")
	}
	for _, secretText := range []string{token, password.RevealText(), s.CSRF} {
		for _, file := range []string{path, path + "-wal"} {
			if strings.Contains(read(t, file), secretText) {
				t.Errorf("%s holds a secret", file)
			}
		}
		if strings.Contains(b.log.String(), secretText) {
			t.Error("the log holds a secret")
		}
	}
	if b.inside(s.ID) || b.inside("") || b.inside(strings.Repeat("A", len(token))) {
		t.Error("something else than the token signs in")
	}
}

func TestSessionsEndByThemselves(t *testing.T) {
	t.Parallel()
	dbtest.SQLite(t) // the template is made outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		b := open(t, dbtest.SQLite(t))
		password := b.hire("ana", operator.Viewer)
		token, _ := b.enter("ana", password)
		time.Sleep(operator.IdleMax - time.Second)
		if !b.inside(token) {
			t.Fatal("a session ended before its idle limit")
		}
		time.Sleep(operator.IdleMax - time.Second)
		if _, err := b.Watch(t.Context(), token); err != nil {
			t.Fatal("a session that was used ended before its idle limit")
		}
		time.Sleep(2 * time.Second) // watching did not count
		if b.inside(token) {
			t.Fatal("a session goes on past its idle limit")
		}
		token, s := b.enter("ana", password)
		for range int(operator.SessionMax/operator.IdleMax)*2 - 1 {
			time.Sleep(operator.IdleMax / 2)
			if !b.inside(token) {
				t.Fatalf("a session ended at %s", time.Since(s.CreatedAt))
			}
		}
		time.Sleep(operator.IdleMax/2 + time.Second)
		if b.inside(token) {
			t.Fatal("a session in use goes on past its absolute limit")
		}
		b.enter("ana", password)
		if n := one[int](t, b.d, "SELECT count(*) FROM operator_sessions"); n != 1 {
			t.Errorf("%d sessions are kept", n)
		}
	})
}

func TestAPageInUseWritesOnceAMinute(t *testing.T) {
	t.Parallel()
	dbtest.SQLite(t) // the template is made outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		b := open(t, dbtest.SQLite(t))
		token, s := b.enter("ana", b.hire("ana", operator.Viewer))
		time.Sleep(59 * time.Second)
		b.inside(token)
		if got, err := b.Watch(t.Context(), token); err != nil || !got.SeenAt.Equal(s.SeenAt) {
			t.Errorf("seen at %s, %v", got.SeenAt, err)
		}
		time.Sleep(time.Second)
		b.inside(token)
		if got, err := b.Watch(t.Context(), token); err != nil || !got.SeenAt.After(s.SeenAt) {
			t.Errorf("seen at %s, %v", got.SeenAt, err)
		}
	})
}

func TestEverythingThatEndsTrustEndsSessions(t *testing.T) {
	t.Parallel()
	ends := map[string]func(b *book, s operator.Session) error{
		"disabling": func(b *book, _ operator.Session) error {
			_, err := b.Disable(context.Background(), admin(), "ana")
			return err
		},
		"a new password": func(b *book, _ operator.Session) error {
			_, err := b.SetPassword(context.Background(), admin(), "ana", secret.Secret{})
			return err
		},
		"ending it": func(b *book, s operator.Session) error { return b.EndSession(context.Background(), admin(), s.ID) },
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := open(t, d)
		b.hire("root", operator.Admin)
		password := b.hire("ana", operator.Viewer)
		bea, _ := b.enter("bea", b.hire("bea", operator.Viewer))
		for what, end := range ends {
			token, s := b.enter("ana", password)
			must(t, end(b, s))
			if b.inside(token) {
				t.Errorf("%s left the session alive", what)
			}
			if !b.inside(bea) {
				t.Errorf("%s ended another's session", what)
			}
			_, err := b.Enable(t.Context(), admin(), "ana")
			must(t, err)
			password, err = b.SetPassword(t.Context(), admin(), "ana", password)
			must(t, err)
		}
		kind(t, "an unknown session", b.EndSession(t.Context(), admin(), "none"), fault.NotFound)
	})
}

func TestAChangedRoleCountsAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t, dbtest.SQLite(t))
	b.hire("root", operator.Admin)
	token, _ := b.enter("ana", b.hire("ana", operator.Viewer))
	_, err := b.SetRole(t.Context(), admin(), "ana", operator.Admin)
	must(t, err)
	s, err := b.Session(t.Context(), token)
	must(t, err)
	if s.Role != operator.Admin {
		t.Errorf("the session is still a %s's", s.Role)
	}
}

func TestChangingOnesOwnPasswordWantsTheOldOne(t *testing.T) {
	t.Parallel()
	b := open(t, dbtest.SQLite(t))
	password := b.hire("ana", operator.Viewer)
	elsewhere, _ := b.enter("ana", password)
	token, s := b.enter("ana", password)
	kind(t, "a wrong old password", b.ChangePassword(t.Context(), s, long(20), long(30)), fault.Unauthenticated)
	kind(t, "a short new one", b.ChangePassword(t.Context(), s, password, long(11)), fault.Invalid)
	must(t, b.ChangePassword(t.Context(), s, password, long(30)))
	if !b.inside(token) || b.inside(elsewhere) {
		t.Error("the other session must end, this one go on")
	}
	_, _, err := b.SignIn(t.Context(), attempt("ana", password))
	kind(t, "the old password", err, fault.Unauthenticated)
	b.enter("ana", long(30))
}

func TestEnsuringAnOperatorChangesOnlyWhatIsWrong(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	b := open(t, d)
	want := operator.NewOperator{Name: "Demo", Role: operator.Admin, Password: long(24)}
	ensure := func() {
		t.Helper()
		one, err := b.Ensure(t.Context(), admin(), want)
		must(t, err)
		if one.Name != "demo" || one.Role != operator.Admin || !one.DisabledAt.IsZero() {
			t.Errorf("%+v", one)
		}
	}
	ensure()
	token, _ := b.enter("demo", long(24))
	before := len(b.actions())
	ensure()
	if !b.inside(token) || len(b.actions()) != before {
		t.Errorf("a second time did %v", b.actions()[before:])
	}
	b.hire("root", operator.Admin)
	_, err := b.SetPassword(t.Context(), admin(), "demo", secret.Secret{})
	must(t, err)
	_, err = b.SetRole(t.Context(), admin(), "demo", operator.Viewer)
	must(t, err)
	_, err = b.Disable(t.Context(), admin(), "demo")
	must(t, err)
	ensure()
	b.enter("demo", long(24))
}

func TestOneAdminRemains(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := open(t, d)
		b.hire("root", operator.Admin)
		b.hire("gone", operator.Admin)
		_, err := b.Disable(t.Context(), admin(), "gone")
		must(t, err)
		_, err = b.Disable(t.Context(), admin(), "root")
		kind(t, "disabling the last admin", err, fault.Conflict)
		_, err = b.SetRole(t.Context(), admin(), "root", operator.Viewer)
		kind(t, "demoting the last admin", err, fault.Conflict)
		_, err = b.Enable(t.Context(), admin(), "gone")
		must(t, err)
		_, err = b.SetRole(t.Context(), admin(), "root", operator.Viewer)
		must(t, err)
		if v := b.verdict(); v.Broken != nil || v.Entries != 5 {
			t.Errorf("%+v: refused changes must leave no entry", v)
		}
	})
}

func TestEveryRefusalLooksTheSame(t *testing.T) {
	t.Parallel()
	b := open(t, dbtest.SQLite(t))
	b.hire("root", operator.Admin)
	password := b.hire("ana", operator.Viewer)
	_, _, err := b.Create(t.Context(), admin(),
		operator.NewOperator{Name: "elsewhere@example.test", Role: operator.Viewer, WithoutPassword: true})
	must(t, err)
	gone := b.hire("gone", operator.Viewer)
	_, err = b.Disable(t.Context(), admin(), "gone")
	must(t, err)
	var texts []string
	for _, a := range []operator.Attempt{
		attempt("ana", long(20)), attempt("nobody", password), attempt("gone", gone),
		attempt("elsewhere@example.test", secret.FromText("")),
		attempt("", password), attempt("ana", secret.Secret{}), attempt("ana", secret.FromText(strings.Repeat("x", 5000))),
		attempt("a\x00na", password),
	} {
		_, _, err := b.SignIn(t.Context(), a)
		kind(t, a.Name, err, fault.Unauthenticated)
		texts = append(texts, err.Error())
	}
	if slices.Sort(texts); len(slices.Compact(texts)) != 1 {
		t.Errorf("refusals differ: %v", texts)
	}
}

func TestGuessingIsLimitedByNameAndByAddress(t *testing.T) {
	t.Parallel()
	dbtest.SQLite(t) // the template is made outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		limit := operator.Limit{NameBurst: 3, NameEvery: time.Minute, AddressBurst: 5, AddressEvery: time.Minute,
			WideBurst: 8, WideEvery: time.Minute}
		b := open(t, dbtest.SQLite(t), func(c *operator.Config) { c.Limit = limit })
		password := b.hire("ana", operator.Viewer)
		try := func(name, ip string, p secret.Secret) error {
			_, _, err := b.SignIn(t.Context(), operator.Attempt{Name: name, IP: ip, Password: p})
			return err
		}
		for range 20 {
			must(t, try("ana", "192.0.2.1", password)) // who knows the password is not limited
		}
		for range 3 {
			kind(t, "a guess", try("ana", "192.0.2.1", long(20)), fault.Unauthenticated)
		}
		must(t, try("ana", "198.51.100.1", password)) // who guesses locks nobody else out
		err := try("ana", "192.0.2.1", password)
		kind(t, "one guess too many, and right", err, fault.Limited)
		if after := retryAfter(err); after <= 0 || after > time.Minute+time.Second {
			t.Errorf("come back after %s", after)
		}
		for _, name := range []string{"bea", "cleo"} {
			kind(t, "a guess at another name", try(name, "192.0.2.1", long(20)), fault.Unauthenticated)
		}
		kind(t, "too many from one address", try("dora", "192.0.2.1", long(20)), fault.Limited)
		kind(t, "another address of the same IPv6 network", func() error {
			for i := range 5 {
				_ = try("n"+string(rune('a'+i)), "2001:db8::1", long(20)) // counted
			}
			return try("nz", "2001:db8::ffff", long(20))
		}(), fault.Limited)
		for i := range 5 {
			kind(t, "guesses from many addresses", try("ana", fmt.Sprintf("203.0.113.%d", i), long(20)), fault.Unauthenticated)
		}
		kind(t, "too many at one name in all", try("ana", "203.0.113.9", password), fault.Limited)
		time.Sleep(time.Minute + time.Second)
		must(t, try("ana", "198.51.100.1", password))
	})
}

func TestARememberedBrowserIsLetThrough(t *testing.T) {
	t.Parallel()
	b := open(t, dbtest.SQLite(t), func(c *operator.Config) {
		c.Limit = operator.Limit{NameBurst: 2, NameEvery: time.Hour, AddressBurst: 2, AddressEvery: time.Hour, WideBurst: 2,
			WideEvery: time.Hour}
		c.Device = func(context.Context) (secret.Secret, error) { return secret.FromText(strings.Repeat("d", 32)), nil }
	})
	password, other := b.hire("ana", operator.Viewer), b.hire("bea", operator.Viewer)
	try := func(name, device string, p secret.Secret) error {
		_, _, err := b.SignIn(t.Context(), operator.Attempt{Name: name, IP: "192.0.2.1", Password: p, Device: device})
		return err
	}
	proof, until, err := b.Remember(t.Context(), "ana")
	must(t, err)
	if proof == "" || until.Before(time.Now().Add(89*24*time.Hour)) {
		t.Fatalf("%q until %s", proof, until)
	}
	for range 3 {
		_ = try("ana", "", long(20)) // somebody guesses
	}
	kind(t, "without the browser", try("ana", "", password), fault.Limited)
	must(t, try("ana", proof, password))
	for what, forged := range map[string]string{"another's": proof[:len(proof)-2] + "AA",
		"a longer life": "zzzzzzz" + proof[strings.Index(proof, "."):], "none": "x", "dots": "..",
		"huge": strings.Repeat("9", 4000)} {
		kind(t, what, try("ana", forged, password), fault.Limited)
	}
	kind(t, "of another operator", try("bea", proof, other), fault.Limited)
	for range 2 {
		kind(t, "a guess with the browser", try("ana", proof, long(20)), fault.Unauthenticated)
	}
	kind(t, "a browser guesses no more than others", try("ana", proof, password), fault.Limited)
	_, err = b.SetPassword(t.Context(), admin(), "ana", long(30))
	must(t, err)
	kind(t, "after a new password", try("ana", proof, long(30)), fault.Limited)
}

func TestNamesRolesAndPasswordsAreChecked(t *testing.T) {
	t.Parallel()
	b := open(t, dbtest.SQLite(t))
	create := func(in operator.NewOperator) error {
		_, _, err := b.Create(t.Context(), admin(), in)
		return err
	}
	must(t, create(operator.NewOperator{Name: strings.Repeat("n", 128), Role: operator.Viewer}))
	must(t, create(operator.NewOperator{Name: "twelve", Role: operator.Viewer, Password: long(12)}))
	must(t, create(operator.NewOperator{Name: "most", Role: operator.Viewer, Password: long(512)}))
	for what, in := range map[string]operator.NewOperator{
		"no name":                    {Role: operator.Viewer},
		"a long name":                {Name: strings.Repeat("n", 129), Role: operator.Viewer},
		"a name with a blank":        {Name: "a b", Role: operator.Viewer},
		"a name in another alphabet": {Name: "анна", Role: operator.Viewer},
		"no role":                    {Name: "x"},
		"another role":               {Name: "x", Role: "owner"},
		"a short password":           {Name: "x", Role: operator.Viewer, Password: long(11)},
		"a long password": {Name: "x", Role: operator.Viewer,
			Password: secret.FromText(strings.Repeat("xy", 256) + "z")},
		"the name as a password": {Name: "annabell", Role: operator.Viewer, Password: secret.FromText("my-AnnaBell-2026")},
		"one letter":             {Name: "x", Role: operator.Viewer, Password: secret.FromText(strings.Repeat("a", 30))},
		"a password and none":    {Name: "x", Role: operator.Viewer, Password: long(20), WithoutPassword: true},
	} {
		kind(t, what, create(in), fault.Invalid)
	}
	kind(t, "a name that exists", create(operator.NewOperator{Name: "TWELVE", Role: operator.Viewer}), fault.Conflict)
	_, err := b.SetPassword(t.Context(), admin(), "nobody", secret.Secret{})
	kind(t, "an unknown name", err, fault.NotFound)
}

func TestRolesAreAStaircase(t *testing.T) {
	t.Parallel()
	roles := []operator.Role{operator.Viewer, operator.Acting, operator.Admin}
	for i, have := range roles {
		for j, need := range roles {
			if have.Allows(need) != (i >= j) {
				t.Errorf("%s allows %s: %t", have, need, have.Allows(need))
			}
		}
		if have.Allows("") || operator.Role("").Allows(have) || operator.Role("root").Allows(have) {
			t.Error("a role that does not exist is allowed something")
		}
		if parsed, err := operator.ParseRole(" " + strings.ToUpper(string(have))); err != nil || parsed != have {
			t.Errorf("%s is read as %s, %v", have, parsed, err)
		}
	}
	_, err := operator.ParseRole("owner")
	kind(t, "another role", err, fault.Invalid)
}

func TestDearerHashesReplaceCheaperOnesAtTheNextSignIn(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	password := open(t, d).hire("ana", operator.Viewer)
	before := one[string](t, d, "SELECT password FROM operators")
	dear := open(t, d, func(c *operator.Config) { c.Cost.Passes = 2 })
	dear.enter("ana", password)
	after := one[string](t, d, "SELECT password FROM operators")
	if before == after || !strings.Contains(after, ",t=2,") {
		t.Errorf("%q became %q", before, after)
	}
	dear.enter("ana", password)
	if one[string](t, d, "SELECT password FROM operators") != after {
		t.Error("a hash that is dear enough was replaced")
	}
}

func TestADamagedHashLetsNobodyIn(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	b := open(t, d)
	password := b.hire("ana", operator.Viewer)
	good := one[string](t, d, "SELECT password FROM operators")
	for _, bad := range []string{"$argon2id$", strings.Replace(good, "argon2id", "argon2i", 1),
		strings.Replace(good, "m=64", "m=4294967295", 1),
		strings.Replace(good, "t=1", "t=0", 1), strings.Replace(good, "p=1", "p=01", 1), good + "$", good[:len(good)-40]} {
		must(t, execSQL(t, d, "UPDATE operators SET password = $1", bad))
		if _, _, err := b.SignIn(t.Context(), attempt("ana", password)); err == nil {
			t.Errorf("%q lets somebody in", bad)
		}
	}
}

func FuzzHash(f *testing.F) {
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Add("$argon2id$v=19$m=0,t=0,p=0$$")
	f.Add("$$$$$")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := operator.HashCost(text)
		if err == nil && (c.MemoryKiB == 0 || c.MemoryKiB > 1<<20 || c.Passes == 0 || c.Passes > 64 || c.Lanes == 0) {
			t.Errorf("%q costs %+v", text, c)
		}
	})
}

func BenchmarkSignIn(b *testing.B) {
	k := open(b, dbtest.SQLite(b), func(c *operator.Config) { c.Cost = operator.CostDefault() })
	password := k.hire("ana", operator.Viewer)
	for b.Loop() {
		k.enter("ana", password)
	}
}
