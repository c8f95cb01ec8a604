package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"tributary/internal/fault"
	"tributary/internal/secret"
	"tributary/internal/strictjson"
)

// A flag that is not given on the command line is looked for in the environment
// and then in the file of --config. Each flag has one name there, its setting:
// --public-url is TRIBUTARY_PUBLIC_URL and the key "public-url". Where two
// commands have a flag of one name that means two things, the tag setting gives
// one of them another name, so that what is set for one never reaches the other.
// Only flags of the command that runs are looked for: what is set for others
// neither changes it nor stops it.
//
// Of two flags that share a name the one that is no property of the installation
// gets the other name: bench --database is TRIBUTARY_BENCH_DATABASE, because it
// must never meet the database that a container's environment names. An empty
// variable is a value for a text (TRIBUTARY_ADMIN= switches the listener off) and
// none for anything else. Variables that no command knows are ignored, unlike keys
// of the file: orchestrators add their own (TRIBUTARY_SERVICE_HOST). A file that
// others than its owner can write is refused: it says where credentials are sent.
const (
	settingTag     = "setting" // of a struct field; "-": the command line only
	variablePrefix = "TRIBUTARY_"
	configBytesMax = 1 << 20
	writableMask   = 0o022 // by others than the owner
)

// settingOf is the name of a flag outside the command line; "" without one.
func settingOf(flag *kong.Flag) string {
	switch name := flag.Tag.Get(settingTag); {
	case name == "-" || flag.Name == "help":
		return ""
	case name != "":
		return name
	}
	return flag.Name
}

func variableOf(setting string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// settings resolves what the command line leaves open.
type settings struct {
	file map[string]any // what --config says
}

// load reads the file of --config before anything is resolved.
func (s *settings) load(app *kong.Application, path string) error {
	if path == "" {
		path = os.Getenv(variableOf("config"))
	}
	if s.file = nil; path == "" {
		return nil
	}
	values, err := readConfig(path)
	if err != nil {
		return fault.New(fault.Invalid, "--config %s: %v", path, err)
	}
	known := knownSettings(app)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, key) {
			return fault.New(fault.Invalid, "--config %s: %q is not a setting; did you mean %q?", path, key, nearest(key, known))
		}
	}
	s.file = values
	return nil
}

// Validate has nothing to say: load did.
func (s *settings) Validate(*kong.Application) error { return nil }

// Resolve finds the value of a flag of the command that runs.
func (s *settings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	setting := settingOf(flag)
	if setting == "" {
		return nil, nil
	}
	// An empty variable is a value for a text; a number or a switch has none in it.
	if text, set := os.LookupEnv(variableOf(setting)); set && (text != "" || flag.Target.Kind() == reflect.String) {
		return text, nil
	}
	return s.file[setting], nil
}

// knownSettings are the keys that a file may have: of every command, because
// one file serves them all.
func knownSettings(app *kong.Application) []string {
	found := map[string]bool{}
	var walk func(*kong.Node)
	walk = func(n *kong.Node) {
		for _, flag := range n.Flags {
			if setting := settingOf(flag); setting != "" && setting != "config" {
				found[setting] = true
			}
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(app.Node)
	return slices.Sorted(maps.Keys(found))
}

// readConfig reads a JSON object; lines that begin with // are comments. A file that others can write is refused: it
// says where secrets are sent.
func readConfig(path string) (map[string]any, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	about, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if about.Mode().Perm()&writableMask != 0 {
		return nil, fmt.Errorf("writable by others (mode %04o): chmod go-w", about.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(file, configBytesMax+1)) // the reader of JSON refuses what is longer
	if err != nil {
		return nil, err
	}
	return decodeConfig(text)
}

// decodeConfig reads JSON in which whole lines may be comments. They are blanked,
// so that positions in messages stay true.
func decodeConfig(text []byte) (map[string]any, error) {
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("//")) {
			lines[i] = bytes.Repeat([]byte(" "), len(line))
		}
	}
	root, err := strictjson.Parse(bytes.Join(lines, []byte("\n")), configBytesMax)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	for name, value := range root.Members {
		values[name] = plain(value)
	}
	return values, nil
}

// plain is a value as the parser of flags takes it: text as if it stood on the
// command line, lists and maps of it. Null is as good as nothing.
func plain(v *strictjson.Value) any {
	switch v.Kind {
	case strictjson.Null:
		return nil
	case strictjson.Array:
		list := make([]any, len(v.Entries))
		for i, entry := range v.Entries {
			list[i] = plain(entry)
		}
		return list
	case strictjson.Object:
		members := map[string]any{}
		for name, member := range v.Members {
			members[name] = plain(member)
		}
		return members
	default:
		return v.Text
	}
}

// nearest is the known name that the fewest changes of a letter lead to.
func nearest(name string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return distance(name, a) - distance(name, b) })
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// settingHelp adds the variable to a flag's help.
func settingHelp(value *kong.Value) string {
	if value.Flag == nil || settingOf(value.Flag) == "" {
		return value.Help
	}
	return strings.TrimSuffix(value.Help, ".") + " ($" + variableOf(settingOf(value.Flag)) + ")."
}

// secretFrom takes a secret from a flag or from the file that another names.
func secretFrom(flag, text, path string) (secret.Secret, error) {
	if path == "" {
		return secret.FromText(text), nil
	}
	if text != "" {
		return secret.Secret{}, fault.New(fault.Invalid, "--%s and --%s-file are mutually exclusive", flag, flag)
	}
	s, err := secret.ReadFile(path)
	if err != nil {
		return s, fault.New(fault.Invalid, "--%s-file: %v", flag, err)
	}
	return s, nil
}

// keyFlags name a client's API key.
type keyFlags struct {
	APIKey     string `help:"API key of the client; prefer a file." placeholder:"KEY" name:"api-key"`
	APIKeyFile string `help:"File with the key." placeholder:"FILE" name:"api-key-file"`
}

func (f *keyFlags) key() (secret.Secret, error) { return secretFrom("api-key", f.APIKey, f.APIKeyFile) }

// neededKey is key where nothing can be done without one.
func (f *keyFlags) neededKey() (secret.Secret, error) {
	key, err := f.key()
	if err == nil && key.IsZero() {
		err = fault.New(fault.Invalid, "--api-key is required: use it, --api-key-file or %s", variableOf("api-key"))
	}
	return key, err
}

// simulatorsAt is where the simulated authorities are: HOST:PORT or a base
// address. Some commands listen there and others call it; both forms are one
// setting, so that what is set for the one does not stop the other.
type simulatorsAt string

func (s simulatorsAt) address() string {
	text := string(s)
	if _, rest, found := strings.Cut(text, "://"); found {
		text = rest
	}
	return strings.TrimRight(text, "/")
}

func (s simulatorsAt) url() string {
	if s == "" || strings.Contains(string(s), "://") {
		return string(s)
	}
	return "http://" + string(s)
}
