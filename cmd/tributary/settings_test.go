package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"tributary/internal/mutate"
	"tributary/internal/needs"
)

// flagOfCommand is one command with everything it must be given, and one flag of it.
type flagOfCommand struct {
	command []string // words and fillers of what is required
	flag    *kong.Flag
}

func (f flagOfCommand) String() string { return strings.Join(f.command, " ") + " --" + f.flag.Name }

// everyFlag walks the command line's own model.
func everyFlag(t *testing.T) (all []flagOfCommand) {
	t.Helper()
	parser, err := newParser(&program{})
	if err != nil {
		t.Fatal(err)
	}
	var walk func(words []string, n *kong.Node, above []*kong.Flag)
	walk = func(words []string, n *kong.Node, above []*kong.Flag) {
		flags := slices.Concat(above, n.Flags)
		for _, child := range n.Children {
			walk(append(slices.Clone(words), child.Name), child, flags)
		}
		if len(n.Children) > 0 {
			return
		}
		for _, p := range n.Positional {
			if p.Required {
				words = append(words, sample(p, 0))
			}
		}
		for _, flag := range flags {
			if flag.Name == "help" || flag.Name == "version" {
				continue
			}
			command := slices.Clone(words)
			for _, other := range flags {
				if other.Required && other.Name != flag.Name {
					command = append(command, "--"+other.Name+"="+sample(other.Value, 0))
				}
			}
			all = append(all, flagOfCommand{command, flag})
		}
	}
	walk(nil, parser.Model.Node, nil)
	if len(all) < 200 {
		t.Fatalf("only %d flags were found", len(all))
	}
	return all
}

// sample is a value that a flag takes, as it stands on the command line.
func sample(v *kong.Value, n int) string {
	if v.Enum != "" {
		words := strings.Split(v.Enum, ",")
		for _, w := range words {
			if w != v.Default {
				return w
			}
		}
	}
	switch {
	case v.Target.Type().String() == "time.Duration":
		return fmt.Sprintf("%dm", 7+n)
	case v.IsBool():
		return "true"
	case v.IsMap():
		return fmt.Sprintf("A%d=b", n)
	}
	switch v.Target.Kind() {
	case reflect.Int, reflect.Int64:
		return fmt.Sprint(7 + n)
	}
	return fmt.Sprintf("value-%d", n)
}

// reader parses command lines, each from the beginning.
type reader struct {
	t      *testing.T
	cli    program
	parser *kong.Kong
}

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t}
	var err error
	if r.parser, err = newParser(&r.cli); err != nil {
		t.Fatal(err)
	}
	return r
}

// parsed is everything the command line came to mean.
func (r *reader) parsed(args []string, more ...string) (program, error) {
	_, err := r.parser.Parse(slices.Concat(args, more))
	r.cli.Config = ""
	return r.cli, err
}

func configFile(t *testing.T, values map[string]any) string {
	t.Helper()
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(t.TempDir(), "config.json"), string(text))
}

// TestEveryFlagIsAVariableAndAKey: given in any of the three ways, and in the
// forms that JSON has for it, a flag means the same. Of a flag that many commands
// have, make test asks one of them for the key.
func TestEveryFlagIsAVariableAndAKey(t *testing.T) {
	r := newReader(t)
	asked := map[string]bool{}
	for _, f := range everyFlag(t) {
		setting := settingOf(f.flag)
		if setting == "" || setting == "config" {
			continue
		}
		value := sample(f.flag.Value, 0)
		want, err := r.parsed(f.command, "--"+f.flag.Name+"="+value)
		if err != nil {
			t.Errorf("%s=%s: %v", f, value, err)
			continue
		}
		if plain, err := r.parsed(f.command); err == nil && reflect.DeepEqual(plain, want) {
			t.Errorf("%s=%s changes nothing", f, value)
		}
		same := func(way string, got program, err error) {
			t.Helper()
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s as %s: %v\n got %+v\nwant %+v", f, way, err, got, want)
			}
		}
		t.Setenv(variableOf(setting), value)
		got, err := r.parsed(f.command)
		same(variableOf(setting), got, err)
		_ = os.Unsetenv(variableOf(setting)) // never fails on Linux
		if asked[setting] && !needs.IsLong() {
			continue
		}
		asked[setting] = true
		forms := []any{value}
		switch {
		case f.flag.IsBool():
			forms = append(forms, true)
		case f.flag.IsMap():
			forms = append(forms, map[string]string{"A0": "b"})
		case f.flag.IsSlice():
			forms = append(forms, []string{value})
		case f.flag.Target.Kind() == reflect.Int:
			forms = append(forms, 7)
		}
		for _, form := range forms {
			got, err := r.parsed(f.command, "--config", configFile(t, map[string]any{setting: form}))
			same(fmt.Sprintf("the key %q: %v", setting, form), got, err)
		}
	}
}

func TestTheCommandLineWinsOverTheEnvironmentAndThatOverTheFile(t *testing.T) {
	r := newReader(t)
	file := configFile(t, map[string]any{"listen": "file:1", "admin": "file:2", "public-url": "file:3",
		"webhook-allow": nil})
	t.Setenv("TRIBUTARY_CONFIG", file)
	t.Setenv("TRIBUTARY_LISTEN", "variable:1")
	t.Setenv("TRIBUTARY_ADMIN", "")
	t.Setenv("TRIBUTARY_TRUST_PROXY", "") // a switch has no value in an empty text
	got, err := r.parsed([]string{"serve", "--public-url", "line:3"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Serve.Listen != "variable:1" || got.Serve.Admin != "" || got.Serve.PublicURL != "line:3" ||
		got.Serve.TrustProxy {
		t.Errorf("%+v", got.Serve)
	}
	t.Setenv("TRIBUTARY_LISTEN", "")
	_ = os.Unsetenv("TRIBUTARY_ADMIN")  // never fails on Linux
	_ = os.Unsetenv("TRIBUTARY_LISTEN") // never fails on Linux
	if got, err = r.parsed([]string{"serve"}); err != nil || got.Serve.Listen != "file:1" || got.Serve.Admin != "file:2" {
		t.Errorf("%v %+v", err, got.Serve)
	}
	other := configFile(t, map[string]any{"listen": "other:1"})
	if got, err = r.parsed([]string{"serve", "--config", other}); err != nil || got.Serve.Listen != "other:1" ||
		got.Serve.Admin != "127.0.0.1:8081" {
		t.Errorf("%v %+v", err, got.Serve)
	}
}

// TestOneSettingMeansOneThing: flags of several commands share a variable and a
// key only when their help says the same.
func TestOneSettingMeansOneThing(t *testing.T) {
	// Said in other words, because what is printed is another thing each time.
	inOtherWords := []string{"json"}
	first := map[string]flagOfCommand{}
	for _, f := range everyFlag(t) {
		setting := settingOf(f.flag)
		if setting == "" || slices.Contains(inOtherWords, setting) {
			continue
		}
		other, seen := first[setting]
		if !seen {
			first[setting] = f
			continue
		}
		if other.flag.Help != f.flag.Help || other.flag.Target.Type() != f.flag.Target.Type() {
			t.Errorf("%s and %s are both %s, but one says %q and the other %q", other, f, variableOf(setting), other.flag.Help,
				f.flag.Help)
		}
	}
}

// TestWhatIsSetForOthersNeitherChangesNorStopsACommand sets every variable and
// key that the command does not have to something that nobody could take.
func TestWhatIsSetForOthersNeitherChangesNorStopsACommand(t *testing.T) {
	r := newReader(t)
	commands, own := map[string][]string{}, map[string]map[string]bool{}
	settings := map[string]bool{"version": true, "help": true, "service-host": true}
	for _, f := range everyFlag(t) {
		setting := settingOf(f.flag)
		settings[setting] = true
		if f.flag.Required {
			continue // its own call lacks it
		}
		name := strings.Join(f.command, " ")
		commands[name] = f.command
		if own[name] == nil {
			own[name] = map[string]bool{"": true, "config": true}
		}
		own[name][setting] = true
	}
	for name, command := range commands {
		want, err := r.parsed(command)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		values := map[string]any{}
		for setting := range settings {
			if own[name][setting] {
				continue
			}
			t.Setenv(variableOf(setting), "\x01no such thing")
			if setting != "version" && setting != "help" && setting != "service-host" && setting != "config" {
				values[setting] = []any{map[string]any{"no": "such thing"}}
			}
		}
		for _, args := range [][]string{command, append(slices.Clone(command), "--config", configFile(t, values))} {
			if got, err := r.parsed(args); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got, want)
			}
		}
		for setting := range settings {
			_ = os.Unsetenv(variableOf(setting)) // never fails on Linux
		}
	}
	t.Setenv("TRIBUTARY_VERSION", "1.2.3")
	if code, out, errs := call(t, "master-key", "create", filepath.Join(t.TempDir(), "master.key")); code != 0 ||
		!strings.Contains(out, "created ") {
		t.Errorf("with TRIBUTARY_VERSION set: %d %s%s", code, out, errs)
	}
}

func TestAConfigurationFileIsReadStrictly(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		says string
	}{
		"an underscore": {`{"public_url":"https://x"}`, 0o600,
			`"public_url" is not a setting; did you mean "public-url"?`},
		"a misspelling":             {`{"lisen":"127.0.0.1:1"}`, 0o600, `did you mean "listen"?`},
		"a flag that is no setting": {`{"version":true}`, 0o600, `"version" is not a setting`},
		"a file in a file":          {`{"config":"x"}`, 0o600, `"config" is not a setting`},
		"a key twice":               {`{"listen":"a:1","listen":"b:1"}`, 0o600, "listen"},
		"no object":                 {`["listen"]`, 0o600, "--config"},
		"not JSON":                  {`listen: a:1`, 0o600, "--config"},
		"more after it":             {`{} {}`, 0o600, "--config"},
		"too long":                  {`{"listen":"` + strings.Repeat("a", configBytesMax) + `"}`, 0o600, "--config"},
		"writable by all":           {`{}`, 0o602, "writable by others"},
		"writable by group":         {`{}`, 0o620, "writable by others"},
		"a wrong kind":              {`{"document-ttl":{"a":"b"}}`, 0o600, "document-ttl"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "config.json"), c.text)
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			code, _, errs := call(t, "serve", "--database", "sqlite:x", "--role", "nothing", "--config", path)
			if code != exitUsage || !strings.Contains(errs, c.says) || strings.Contains(errs, "nothing") {
				t.Errorf("%d\n%s", code, errs[max(0, len(errs)-300):])
			}
		})
	}
	path := write(t, filepath.Join(t.TempDir(), "config.json"), `{"role":["nothing"]}`)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call(t, "serve", "--database", "sqlite:x", "--config", path); code != exitUsage ||
		!strings.Contains(errs, `"nothing" is not api or worker`) {
		t.Errorf("a file that others can read: %d %s", code, errs)
	}
	if code, _, errs := call(t, "serve", "--config", path+".missing"); code != exitUsage ||
		!strings.Contains(errs, "no such file") {
		t.Errorf("a file that is not there: %d %s", code, errs)
	}
}

func TestTheNearestNameIsNamed(t *testing.T) {
	parser, err := newParser(&program{})
	if err != nil {
		t.Fatal(err)
	}
	known := knownSettings(parser.Model)
	for given, want := range map[string]string{"listn": "listen", "admin_token": "admin-token",
		"oidc-client": "oidc-client-id", "publicurl": "public-url"} {
		if got := nearest(given, known); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
	for _, name := range known {
		if got := nearest(name, known); got != name {
			t.Errorf("%s is nearest to %s", name, got)
		}
	}
	if slices.Contains(known, "version") || !slices.Contains(known, "client-webhook-url") || !slices.IsSorted(known) {
		t.Error(known)
	}
}

func FuzzConfigurationFile(f *testing.F) {
	f.Add([]byte(`{"listen":"127.0.0.1:1","webhook-allow":["10.0.0.0/8"],"authority":{"ES.live":"https://x"},"trust-proxy":true,"role":null}`))
	f.Add([]byte(`{"a":{"b":[1,2,{"c":null}]}}`))
	f.Add([]byte(``))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		values, err := decodeConfig(text)
		if (err == nil) != (values != nil) {
			t.Errorf("%v with %v", values, err)
		}
		if err != nil {
			return
		}
		again, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := json.Unmarshal(again, &back); err != nil || !reflect.DeepEqual(back, values) {
			t.Errorf("%s is read as %v", text, values)
		}
	})
}
