package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"gopkg.in/yaml.v3"
)

const packagingFolder = "../../packaging"

// cli is the command line's own model: what packaging may use.
type cli struct {
	parser *kong.Kong
	envs   map[string]map[string]bool // environment variables by command
}

func openCLI(t *testing.T) *cli {
	t.Helper()
	parser, err := newParser(&program{})
	if err != nil {
		t.Fatal(err)
	}
	c := &cli{parser: parser, envs: map[string]map[string]bool{}}
	for _, node := range parser.Model.Children {
		names := map[string]bool{}
		for _, flag := range slices.Concat(node.Flags, parser.Model.Flags) {
			if setting := settingOf(flag); setting != "" {
				names[variableOf(setting)] = true
			}
		}
		c.envs[node.Name] = names
	}
	return c
}

// check parses a call with its environment as the program would.
func (c *cli) check(t *testing.T, where string, args []string, env map[string]string) {
	t.Helper()
	if len(args) == 0 || c.envs[args[0]] == nil {
		t.Errorf("%s: %v is not a command", where, args)
		return
	}
	for name, value := range env {
		if !strings.HasPrefix(name, "TRIBUTARY_") {
			continue
		}
		known := false
		for _, names := range c.envs { // shared files name flags of several commands
			known = known || names[name]
		}
		// The keyset itself is named by --master-key env:NAME.
		if !known && env["TRIBUTARY_MASTER_KEY"] != "env:"+name {
			t.Errorf("%s: %s is not a flag of the program", where, name)
		}
		t.Setenv(name, value)
	}
	if _, err := c.parser.Parse(args); err != nil {
		t.Errorf("%s: %v: %v", where, args, err)
	}
	for name := range env {
		_ = os.Unsetenv(name) // set above
	}
	if args[0] == "serve" && slices.Contains(args, "--role=worker") && env["TRIBUTARY_PUBLIC_URL"] == "" {
		t.Errorf("%s: a worker needs --public-url, it has no listener to take it from", where)
	}
	if host, _, err := net.SplitHostPort(env["TRIBUTARY_ADMIN"]); err == nil && host != "127.0.0.1" &&
		env["TRIBUTARY_ADMIN_TOKEN"]+env["TRIBUTARY_ADMIN_TOKEN_FILE"] == "" {
		t.Errorf("%s: the admin listener is open and has no token", where)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(packagingFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// instruction is one of a Dockerfile.
type instruction struct{ word, rest string }

func parseDockerfile(t *testing.T, text string) (list []instruction) {
	t.Helper()
	known := regexp.MustCompile(`^(FROM|ARG|WORKDIR|COPY|RUN|USER|VOLUME|ENV|EXPOSE|STOPSIGNAL|ENTRYPOINT|CMD)$`)
	for lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(text, "\\\n", " "))); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if !known.MatchString(word) || strings.TrimSpace(rest) == "" {
			t.Errorf("not an instruction: %s", line)
		}
		list = append(list, instruction{word, strings.TrimSpace(rest)})
	}
	return list
}

func TestTheImageIsEmptyButForTheProgramAndRunsAsNobody(t *testing.T) {
	c := openCLI(t)
	list := parseDockerfile(t, readFile(t, "Dockerfile"))
	last := 0
	for i, in := range list {
		if in.word == "FROM" {
			last = i
		}
	}
	if list[last].rest != "scratch" {
		t.Errorf("the last stage is FROM %s", list[last].rest)
	}
	final := map[string]string{}
	copied := ""
	for _, in := range list[last+1:] {
		if in.word == "RUN" {
			t.Error("an empty image has nothing to run with")
		}
		if in.word == "COPY" {
			copied += in.rest + "\n"
		}
		final[in.word] = in.rest
	}
	if !strings.Contains(copied, "/etc/ssl/certs/ca-certificates.crt") || !strings.Contains(copied, "/out/release/ /") ||
		!strings.Contains(copied, "--chown=65532:65532") {
		t.Errorf("copied is\n%s", copied)
	}
	if final["USER"] != "65532:65532" || final["ENTRYPOINT"] != `["/tributary"]` || final["CMD"] != `["serve"]` ||
		final["STOPSIGNAL"] != "SIGTERM" {
		t.Errorf("final stage %v", final)
	}
	env := map[string]string{"TRIBUTARY_DATABASE": "sqlite:/data/x"}
	for _, pair := range strings.Fields(final["ENV"]) {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	_, port, _ := net.SplitHostPort(env["TRIBUTARY_LISTEN"])
	if !strings.Contains(final["EXPOSE"], port) {
		t.Errorf("listens on %s, exposes %s", port, final["EXPOSE"])
	}
	c.check(t, "Dockerfile", []string{"serve"}, env)
	build := ""
	for _, in := range list[:last] {
		build += in.word + " " + in.rest + "\n"
	}
	if !strings.Contains(build, "CGO_ENABLED=0") || !strings.Contains(build, "-trimpath") ||
		!strings.Contains(build, "main.version=${VERSION}") {
		t.Errorf("build stage\n%s", build)
	}
}

// composeFile is what the test looks at.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Command     []string
		Environment map[string]string
		Ports       []string
		Volumes     []string
		Secrets     []string
		ReadOnly    bool                                  `yaml:"read_only"`
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
		Build       struct{ Context, Dockerfile string }  `yaml:"build"`
		Healthcheck struct{ Test []string }               `yaml:"healthcheck"`
		CapDrop     []string                              `yaml:"cap_drop"`
	}
	Volumes map[string]any
	Secrets map[string]struct{ File string }
}

func TestComposeRunsMigrationThenAPIAndWorker(t *testing.T) {
	c := openCLI(t)
	var file composeFile
	text := readFile(t, "compose.yaml")
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"migrate", "api", "worker"} {
		s := file.Services[name]
		c.check(t, "compose "+name, s.Command, s.Environment)
		if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") {
			t.Errorf("%s is not hardened", name)
		}
		if _, err := os.Stat(filepath.Join(packagingFolder, s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, other := range []string{"db", "migrate"} {
			if name == other {
				continue
			}
			on, ok := s.DependsOn[other]
			if !ok || file.Services[other].Image == "" ||
				other == "db" && (on.Condition != "service_healthy" || len(file.Services["db"].Healthcheck.Test) == 0) ||
				other == "migrate" && on.Condition != "service_completed_successfully" {
				t.Errorf("%s depends on %s as %+v", name, other, on)
			}
		}
		for _, volume := range s.Volumes {
			if source, _, _ := strings.Cut(volume, ":"); file.Volumes != nil {
				if _, ok := file.Volumes[source]; !ok {
					t.Errorf("%s: volume %s is not declared", name, source)
				}
			}
		}
		for _, port := range s.Ports {
			inside := port[strings.LastIndex(port, ":")+1:]
			if !strings.HasSuffix(s.Environment["TRIBUTARY_LISTEN"], ":"+inside) &&
				!strings.HasSuffix(s.Environment["TRIBUTARY_ADMIN"], ":"+inside) {
				t.Errorf("%s publishes %s, where nobody listens", name, port)
			}
		}
	}
	// Every variable the file asks for is in the example, and nothing else.
	example := readFile(t, "compose.env.example")
	asked := map[string]bool{}
	for _, m := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(text, -1) {
		asked[m[1]] = true
		if !strings.Contains(example, "\n"+m[1]+"=") {
			t.Errorf("%s is missing in compose.env.example", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z_]+)=`).FindAllStringSubmatch(example, -1) {
		if !asked[m[1]] {
			t.Errorf("%s of compose.env.example is not used", m[1])
		}
	}
}

// secretFile is the file of a secret that a setting names.
func secretFile(name, value string) (file string, isFile bool) {
	if name == "TRIBUTARY_MASTER_KEY" {
		return strings.CutPrefix(value, "file:")
	}
	return value, strings.HasSuffix(name, "_FILE")
}

// Secrets are files: what is in the environment of a process everybody reads who may look at it.
func TestSecretsAreMountedAsFilesAndImagesPinned(t *testing.T) {
	var file composeFile
	if err := yaml.Unmarshal([]byte(readFile(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for name, s := range file.Services {
		found := 0
		for variable, value := range s.Environment {
			at, isFile := secretFile(variable, value)
			if !isFile {
				continue
			}
			found++
			secret, ok := strings.CutPrefix(at, "/run/secrets/")
			if !ok || !slices.Contains(s.Secrets, secret) || file.Secrets[secret].File == "" {
				t.Errorf("%s: %s is %s, which is not mounted", name, variable, value)
			}
		}
		if found == 0 || s.Build.Context == "" && !strings.Contains(s.Image, ":?") && !strings.Contains(s.Image, "@sha256:") {
			t.Errorf("%s has %d secrets and the image %s", name, found, s.Image)
		}
		if on := s.Environment["TRIBUTARY_LISTEN"] != ""; on && s.Environment["TRIBUTARY_TRUST_PROXY"] != "true" {
			t.Errorf("%s believes nobody's X-Forwarded-For, and stands behind a proxy", name)
		}
	}
	secret := regexp.MustCompile(`[A-Z]_(PASSWORD|TOKEN|KEYSET|SECRET|KEY)["']?: *[^ #/f]`)
	for _, name := range []string{"compose.yaml", "kubernetes/tributary.yaml"} {
		for _, line := range strings.Split(readFile(t, name), "\n") {
			if secret.MatchString(line) && !strings.Contains(line, "CHANGE-ME") && !strings.Contains(line, "name: ") {
				t.Errorf("%s has a secret in %q", name, line)
			}
		}
		if strings.Contains(readFile(t, name), "secretKeyRef") {
			t.Errorf("%s gives a secret to the environment", name)
		}
	}
}

func TestTheUnitIsValidHardenedAndCallsTheProgramRight(t *testing.T) {
	c := openCLI(t)
	unit := readFile(t, "systemd/tributary.service")
	env := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(TRIBUTARY_[A-Z_]+)=(.*)$`).FindAllStringSubmatch(
		readFile(t, "systemd/tributary.env"), -1) {
		env[m[1]] = m[2]
	}
	calls := regexp.MustCompile(`(?m)^ExecStart(?:Pre)?=/usr/local/bin/tributary (.*)$`).FindAllStringSubmatch(unit, -1)
	if len(calls) != 2 {
		t.Fatalf("calls %v", calls)
	}
	for _, call := range calls {
		c.check(t, "tributary.service", strings.Fields(call[1]), env)
	}
	if !strings.Contains(unit, fmt.Sprintf("RestartPreventExitStatus=%d", exitUsage)) {
		t.Error("a configuration that is not valid is tried again and again")
	}
	if !strings.HasPrefix(env["TRIBUTARY_DATA"], "/var/lib/tributary") ||
		!strings.Contains(unit, "StateDirectory=tributary") {
		t.Error("the data folder is not the unit's own")
	}
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: the unit was only read")
	}
	copied := filepath.Join(t.TempDir(), "tributary.service")
	write(t, copied, strings.ReplaceAll(unit, "/usr/local/bin/tributary", os.Args[0]))
	if out, err := exec.Command(tool, "verify", "--man=no", copied).CombinedOutput(); err != nil ||
		strings.Contains(string(out), "tributary.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := exec.Command(tool, "security", "--offline=true", "--threshold=20",
		copied).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out[max(0, len(out)-300):])
	}
}

// manifest is one document of the Kubernetes example.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name, Namespace string
	}
	StringData map[string]string `yaml:"stringData"`
	Data       map[string]string
	Spec       struct {
		Selector yaml.Node
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     podSpec
		}
		Ports []struct {
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
	}
}

type podSpec struct {
	SecurityContext struct {
		RunAsNonRoot bool `yaml:"runAsNonRoot"`
	} `yaml:"securityContext"`
	Containers []struct {
		Args    []string
		EnvFrom []struct {
			ConfigMapRef struct{ Name string } `yaml:"configMapRef"`
		} `yaml:"envFrom"`
		Image string
		Env   []struct{ Name, Value string }

		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
		Ports []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		StartupProbe    probe `yaml:"startupProbe"`
		ReadinessProbe  probe `yaml:"readinessProbe"`
		LivenessProbe   probe `yaml:"livenessProbe"`
		SecurityContext struct {
			ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
		} `yaml:"securityContext"`
		Resources struct{ Requests, Limits map[string]string }
	}
	Volumes []struct {
		Name   string
		Secret struct {
			SecretName string `yaml:"secretName"`
		}
	}
}

// secretsAt is which secret a pod mounts where.
func (s podSpec) secretsAt() map[string]string {
	at := map[string]string{}
	for _, v := range s.Volumes {
		for _, m := range s.Containers[0].VolumeMounts {
			if m.Name == v.Name && v.Secret.SecretName != "" {
				at[m.MountPath] = v.Secret.SecretName
			}
		}
	}
	return at
}

type probe struct {
	HTTPGet   struct{ Path, Port string } `yaml:"httpGet"`
	TCPSocket struct{ Port string }       `yaml:"tcpSocket"`
}

func manifests(t *testing.T) (all []manifest) {
	t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(readFile(t, "kubernetes/tributary.yaml"))); ; {
		var m manifest
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
}

func TestKubernetesRunsAPIAndWorkerApartOnTheSameSecrets(t *testing.T) {
	c := openCLI(t)
	secrets, configs, named, roles := map[string]bool{}, map[string]map[string]string{}, map[string]bool{}, []string{}
	all := manifests(t)
	for _, m := range all {
		if named[m.Kind+"/"+m.Metadata.Name] || m.APIVersion == "" ||
			m.Kind != "Namespace" && m.Metadata.Namespace != "tributary" {
			t.Errorf("%s %s %s", m.APIVersion, m.Kind, m.Metadata.Name)
		}
		named[m.Kind+"/"+m.Metadata.Name] = true
		for key := range m.StringData {
			secrets[m.Metadata.Name+"/"+key] = true
		}
		if m.Kind == "ConfigMap" {
			configs[m.Metadata.Name] = m.Data
		}
	}
	ports := map[string]bool{}
	for _, m := range all {
		for _, box := range m.Spec.Template.Spec.Containers {
			where := m.Kind + " " + m.Metadata.Name
			env := map[string]string{}
			for _, from := range box.EnvFrom {
				for name, value := range configs[from.ConfigMapRef.Name] {
					env[name] = value
				}
			}
			for _, e := range box.Env {
				env[e.Name] = e.Value
			}
			mounted := m.Spec.Template.Spec.secretsAt()
			for name, value := range env {
				if file, isFile := secretFile(name, value); isFile && !secrets[mounted[filepath.Dir(file)]+"/"+filepath.Base(file)] {
					t.Errorf("%s: %s is %s, and no secret of it is mounted", where, name, value)
				}
			}
			if !regexp.MustCompile(`@sha256:`).MatchString(box.Image) {
				t.Errorf("%s: image %s is not pinned", where, box.Image)
			}
			c.check(t, where, box.Args, env)
			if !m.Spec.Template.Spec.SecurityContext.RunAsNonRoot || !box.SecurityContext.ReadOnlyRootFilesystem ||
				box.Resources.Limits["memory"] == "" {
				t.Errorf("%s is not confined", where)
			}
			own := map[string]int{}
			for _, p := range box.Ports {
				own[p.Name], ports[p.Name] = p.ContainerPort, true
			}
			if m.Kind == "Deployment" {
				roles = append(roles, box.Args[len(box.Args)-1])
				if !strings.HasSuffix(env["TRIBUTARY_ADMIN"], fmt.Sprint(":", own["admin"])) ||
					own["http"] != 0 && !strings.HasSuffix(env["TRIBUTARY_LISTEN"], fmt.Sprint(":", own["http"])) {
					t.Errorf("%s: ports %v", where, own)
				}
				checkProbes(t, where, own, box.StartupProbe, box.LivenessProbe)
				if own["http"] != 0 {
					checkProbes(t, where, own, box.ReadinessProbe)
				}
			}
		}
		for _, p := range m.Spec.Ports {
			if !ports[p.TargetPort] {
				t.Errorf("service %s leads to port %q, which nobody has", m.Metadata.Name, p.TargetPort)
			}
		}
	}
	if slices.Sort(roles); !slices.Equal(roles, []string{"--role=api", "--role=worker"}) {
		t.Errorf("roles %v", roles)
	}
	for _, kind := range []string{"Job/tributary-migrate", "Secret/tributary", "Service/tributary"} {
		if !named[kind] {
			t.Errorf("%s is missing", kind)
		}
	}
}

// Manifests start as printed: the database's certificate is verified by an authority that is mounted, X-Forwarded-For
// is believed of the ingress controller alone, names are found, and a node says that it leaves before it does.
func TestKubernetesReachesWhatItNeedsAndNothingElseReachesIt(t *testing.T) {
	text := readFile(t, "kubernetes/tributary.yaml")
	ca := regexp.MustCompile(`sslrootcert=(\S+)/ca\.pem`).FindAllStringSubmatch(text, -1)
	if len(ca) != 2 || strings.Count(text, "mountPath: "+ca[0][1]+",") != 3 ||
		strings.Count(text, "configMap: {name: tributary-database-ca}") != 3 ||
		!strings.Contains(text, "  name: tributary-database-ca\n") {
		t.Errorf("the authority of the database is at %v", ca)
	}
	policy := text[strings.LastIndex(text, "kind: NetworkPolicy"):]
	if strings.Contains(text, `TRIBUTARY_TRUST_PROXY: "true"`) && !strings.Contains(policy, "namespaceSelector") {
		t.Error("whoever reaches the API may say whose call it is")
	}
	if !strings.Contains(text, "{port: 53, protocol: UDP}") || !strings.Contains(text, "{port: 53, protocol: TCP}") ||
		!strings.Contains(text, "169.254.20.10/32") {
		t.Error("names are not found where the node has a cache of its own")
	}
	drain, err := time.ParseDuration(regexp.MustCompile(`TRIBUTARY_DRAIN: (\S+)`).FindStringSubmatch(text)[1])
	grace := regexp.MustCompile(`terminationGracePeriodSeconds: (\d+)`).FindStringSubmatch(text)
	if whole, _ := time.ParseDuration(grace[1] + "s"); err != nil || drain < 5*time.Second ||
		whole < drain+10*time.Second {
		t.Errorf("a node leaves for %s and is killed after %s s: %v", drain, grace[1], err)
	}
}

func checkProbes(t *testing.T, where string, ports map[string]int, probes ...probe) {
	t.Helper()
	for _, p := range probes {
		switch {
		case p.HTTPGet.Path != "":
			if (p.HTTPGet.Path != "/readyz" && p.HTTPGet.Path != "/healthz") || p.HTTPGet.Port != "http" || ports["http"] == 0 {
				t.Errorf("%s: probe %+v", where, p)
			}
		case ports[p.TCPSocket.Port] == 0:
			t.Errorf("%s: probe %+v has no such port", where, p)
		}
	}
}

func TestTheReleaseScriptCoversTheThreeSystemsReproducibly(t *testing.T) {
	text, err := os.ReadFile("../../scripts/release")
	if err != nil {
		t.Fatal(err)
	}
	for _, has := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "-trimpath", "-buildid=", "CGO_ENABLED=0",
		"GOENV=off", "GOAMD64=v1", "main.version=$version", "unset GOFLAGS", "SHA256SUMS", ".cdx.json"} {
		if !strings.Contains(string(text), has) {
			t.Errorf("%s is missing", has)
		}
	}
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("bash is missing: the release script needs it")
	}
	if out, err := exec.Command(shell, "-n", "../../scripts/release").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
