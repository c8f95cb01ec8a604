package main

import (
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

// TestTheREADMEsProductionWorks runs the lines for production as they are
// printed, with the ports moved, on both engines: a new installation is made,
// served and checked, a sale is filed, the operator signs in, a live client is
// made.
func TestTheREADMEsProductionWorks(t *testing.T) {
	needs.Tool(t, "curl", "curl")
	blocks := productionBlocks(t)
	dbtest.EachURL(t, func(t *testing.T, database string) {
		place := newCheckout(t)
		place.env = append(place.env, "OWNER_URL="+database,
			"DATABASE_URL="+strings.Replace(database, "://tributary@", "://tributary_serve@", 1),
			"TRIBUTARY_LISTEN="+place.at["8080"], "TRIBUTARY_ADMIN="+place.at["8081"],
			"TRIBUTARY_SIMULATORS="+place.at["8090"], "TRIBUTARY_LOG_LEVEL=error")
		making := ""
		if strings.HasPrefix(database, "postgres") {
			making = "postgres"
		}
		made := place.shell(t, blocks[making])
		password := regexp.MustCompile(`operator +admin, password (\S+)`).FindStringSubmatch(made)
		if password == nil {
			t.Fatalf("no operator was made:\n%s", made)
		}
		place.background(blocks["simulate"]).waitReady()
		place.background(blocks["serve"]).waitReady()
		check, sale, _ := strings.Cut(blocks["first"], "\n")
		out, err := place.command(check).CombinedOutput()
		if failed := regexp.MustCompile("(?m)^fail .*").FindAllString(string(out),
			-1); len(failed) > 0 && (len(failed) > 1 || !strings.Contains(failed[0], "fsync = off")) ||
			err != nil && failed == nil {
			t.Errorf("doctor: %v\n%s", err, out) // the server of tests does without fsync, and doctor says so
		}
		if out := place.shell(t, sale); !strings.Contains(out, "SUCCESS") {
			t.Errorf("the first sale:\n%s", out)
		}
		signIn(t, "http://"+place.at["8081"], password[1])
		if out := place.shell(t, blocks["live"]); !strings.Contains(out, "trb_live_") {
			t.Errorf("the live client: %s", out)
		}
		forOwnersOnly(t, filepath.Join(place.dir, "tributary"))
		if again, err := place.command(blocks[making]).CombinedOutput(); err == nil ||
			!strings.Contains(string(again), "exists: the installation is complete") {
			t.Errorf("a second time: %v %s", err, again)
		}
	})
}

func productionBlocks(t *testing.T) map[string]string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```sh production=?([a-z]*)\n(.*?)```").FindAllStringSubmatch(string(readme),
		-1) {
		blocks[m[1]] = m[2]
	}
	if len(blocks) != 6 {
		t.Fatalf("README has %d blocks for production", len(blocks))
	}
	return blocks
}

func (s *checkout) command(script string) *exec.Cmd {
	cmd := exec.Command("sh", "-eu", "-c", s.placed(script))
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

func (s *checkout) shell(t *testing.T, script string) string {
	t.Helper()
	out, err := s.command(script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

// signIn fails unless the console lets the operator in.
func signIn(t *testing.T, base, password string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	reply, err := browser.PostForm(base+"/console/sign-in", url.Values{"name": {"admin"}, "password": {password}})
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close() // where it led is all that counts
	if reply.StatusCode != http.StatusOK || strings.HasSuffix(reply.Request.URL.Path, "/sign-in") {
		t.Errorf("%s at %s: the operator is not signed in", reply.Status, reply.Request.URL)
	}
}

// forOwnersOnly: nothing of an installation can be read by others.
func forOwnersOnly(t *testing.T, folder string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		about, err := entry.Info()
		if err != nil {
			return err
		}
		if files++; about.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v", path, about.Mode())
		}
		if entry.Name() == "documents" {
			return fs.SkipDir // behind the folder's own door
		}
		return nil
	})
	if err != nil || files < 4 {
		t.Errorf("%d files, %v", files, err)
	}
}
