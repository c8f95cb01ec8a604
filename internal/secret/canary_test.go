package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tributary/internal/secret"
)

// canary is a real key whose every trace can be searched for.
type canary struct {
	key  secret.APIKey
	text string
}

func plant(t *testing.T) canary {
	t.Helper()
	key := secret.NewAPIKey(true)
	return canary{key: key, text: key.Text().RevealText()}
}

// search looks for the key, for any 12 letters of its secret part, and for its
// usual encodings.
func (c canary) search(t *testing.T, where, output string) {
	t.Helper()
	part := c.text[strings.LastIndexByte(c.text, '_')+1:]
	traces := []string{hex.EncodeToString([]byte(part)), strings.ToUpper(hex.EncodeToString([]byte(part)))}
	for i := range len(part) - 11 {
		traces = append(traces, part[i:i+12])
	}
	for shift := range 3 { // base64 of the key inside something longer
		traces = append(traces, strings.Trim(base64.StdEncoding.EncodeToString([]byte(part[shift:])), "=")[:40])
	}
	traces = append(traces, strings.Trim(fmt.Sprint([]byte(part)), "[]"))
	for _, trace := range traces {
		if strings.Contains(output, trace) {
			t.Errorf("%s shows the planted key: %s", where, output)
			return
		}
	}
}

func TestThePlantedKeyIsInNoLog(t *testing.T) {
	c := plant(t)
	var out bytes.Buffer
	options := &slog.HandlerOptions{AddSource: true, Level: slog.LevelDebug}
	for _, logger := range []*slog.Logger{slog.New(slog.NewTextHandler(&out, options)),
		slog.New(slog.NewJSONHandler(&out, options))} {
		s := c.key.Text()
		w := worn(s)
		logger.With("secret", s, "key", c.key).WithGroup("g").Info("m", "s", s, "ptr", &s, "w", w, "pw", &w,
			"k", c.key, "pk", &c.key, "list", []any{s, c.key}, "map", map[string]any{"s": s, "k": c.key},
			slog.Group("group", "s", s), "err", fmt.Errorf("with %v and %v", s, c.key),
			"anonymous", struct {
				s secret.Secret
				k secret.APIKey
			}{s, c.key})
		logger.Error(fmt.Sprint("text ", s, c.key, w))
	}
	old := log.New(&out, "", log.LstdFlags)
	old.Printf("%v %+v %#v %s %q %x", c.key.Text(), worn(c.key.Text()), c.key, c.key, c.key.Text(), c.key.Text())
	c.search(t, "the log", out.String())
	if n := strings.Count(out.String(), "[redacted]"); n < 40 {
		t.Errorf("only %d redactions: the log did not get what this test thinks", n)
	}
	if !strings.Contains(out.String(), c.key.Kid()) {
		t.Error("the kid is what an operator searches for, and it is not there")
	}
}

func TestThePlantedKeyIsInNoJSON(t *testing.T) {
	c := plant(t)
	w := worn(c.key.Text())
	out, err := json.Marshal(map[string]any{"w": w, "pw": &w, "k": c.key, "pk": &c.key, "list": []any{c.key, w}})
	if err != nil {
		t.Fatal(err)
	}
	c.search(t, "JSON", string(out))
}

func TestThePlantedKeyIsInNoErrorOfTheParser(t *testing.T) {
	c := plant(t)
	for _, text := range []string{c.text + "!", " " + c.text, c.text[1:], c.text + c.text, "Bearer " + c.text,
		strings.ToUpper(c.text)} {
		_, err := secret.ParseAPIKey(text)
		if err == nil {
			t.Fatal("accepted")
		}
		c.search(t, "the error", fmt.Sprintf("%v %+v %#v", err, err, err))
	}
}

// Whoever mixes up flags, files and variables puts keys where they do not belong.
func TestThePlantedKeyIsInNoErrorOfTheMaster(t *testing.T) {
	c := plant(t)
	for name, content := range map[string]string{
		"text": c.text, "JSON": `{"key":"` + c.text + `"}`, "JSON text": `"` + c.text + `"`,
		"broken JSON": `{"primaryKeyId": ` + c.text,
		"wrong type":  `{"primaryKeyId":"` + c.text + `","key":[]}`,
		"wrong key": `{"primaryKeyId":1,"key":[{"keyData":{"typeUrl":"` + c.text + `","value":"` + c.text +
			`"},"keyId":1,"status":"ENABLED","outputPrefixType":"TINK"}]}`,
	} {
		_, err := secret.OpenMaster("file:" + writeFile(t, []byte(content), 0o400))
		c.mustFail(t, name+" in the file", err)
		t.Setenv("CANARY_MASTER", base64.StdEncoding.EncodeToString([]byte(content)))
		_, err = secret.OpenMaster("env:CANARY_MASTER")
		c.mustFail(t, name+" in the variable", err)
		t.Setenv("CANARY_MASTER", content)
		_, err = secret.OpenMaster("env:CANARY_MASTER")
		c.mustFail(t, name+" in the variable, not encoded", err)
	}
	for _, source := range []string{
		c.text, "env:" + c.text, "kms:" + c.text, "hcvault://" + c.text + "@127.0.0.1:1/transit/keys/k",
		"hcvault://127.0.0.1:1/transit/keys/k?token=" + c.text, "hcvault://127.0.0.1:1/transit/keys/k#" + c.text,
		"hcvault://%zz" + c.text,
	} {
		_, err := secret.OpenMaster(source)
		c.mustFail(t, "a source", err)
	}
}

func (c canary) mustFail(t *testing.T, where string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: accepted", where)
		return
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		c.search(t, where, fmt.Sprintf("%v %+v %#v", e, e, e))
	}
}

// Vault's error pages may repeat the request: the token in the header and the
// data key in the body.
func TestNeitherTokenNorDataKeyIsInAnErrorOfVault(t *testing.T) {
	v := startVault(t)
	c := plant(t)
	m := openMaster(t, v.uri())
	file, _ := newMaster(t)
	wrapped, _ := newKey(t, file, whose)
	for _, mood := range []string{"echo", "echo 400", "garbage"} {
		v.be(mood)
		v.seen.Reset()
		_, err := m.Adopt(file, wrapped, whose)
		c.mustFail(t, mood, err)
		var sent struct{ Plaintext string }
		if jsonErr := json.Unmarshal([]byte(v.seen.String()), &sent); jsonErr != nil || len(sent.Plaintext) < 100 {
			t.Fatalf("%s: Vault saw no data key: %v", mood, jsonErr)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			text := fmt.Sprintf("%v %+v %#v", e, e, e)
			if strings.Contains(text, vaultToken) || strings.Contains(text, sent.Plaintext[20:60]) {
				t.Errorf("%s: %s", mood, text)
			}
		}
	}
	t.Setenv("VAULT_TOKEN", c.text+"\n")
	_, err := secret.OpenMaster(v.uri())
	c.mustFail(t, "a token with a line break", err)
}

func TestThePlantedKeyIsInNoSealedBytesNorTheirErrors(t *testing.T) {
	c := plant(t)
	m, path := newMaster(t)
	wrapped, sealer := newKey(t, m, whose)
	sealed, err := sealer.Seal(c.key.Text(), whose)
	if err != nil {
		t.Fatal(err)
	}
	c.search(t, "the sealed bytes", string(sealed)+string(wrapped))
	other := whose
	other.Client = "c2"
	_, err = sealer.Open(sealed, other)
	c.mustFail(t, "the error", err)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Key []struct{ KeyData struct{ Value string } }
	}
	if err := json.Unmarshal(content, &file); err != nil || len(file.Key) != 1 {
		t.Fatalf("the master file: %v", err)
	}
	raw, err := base64.StdEncoding.DecodeString(file.Key[0].KeyData.Value)
	if err != nil || len(raw) < 32 {
		t.Fatalf("the master file: %v", err)
	}
	raw = raw[len(raw)-32:]
	printed := fmt.Sprintf("%v %+v %#v %v %+v %#v", m, m, m, sealer, sealer, sealer)
	for _, s := range spellings(string(raw)) {
		if strings.Contains(printed, s) {
			t.Errorf("printing a master shows its key: %s", printed)
		}
	}
}

func TestThePlantedKeyIsInNoPanic(t *testing.T) {
	c := plant(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"secret", "apikey", "struct", "pointer", "error"} {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^$")
		cmd.Env = append(os.Environ(), panicEnv+"="+kind, "TRIBUTARY_SECRET_TEST_KEY="+c.text, "GOTRACEBACK=all")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "panic: ") || !strings.Contains(string(out), "goroutine ") {
			t.Errorf("%s: the program did not die as it should: %v, %s", kind, err, out)
		}
		if strings.Contains(string(out), "unknown kind") || strings.Contains(string(out), "does not parse") {
			t.Errorf("%s: %s", kind, out)
		}
		c.search(t, "the panic with a "+kind, string(out))
	}
}
