package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A master key is rotated, everything is moved, data keys and the key of document
// addresses are renewed, and the old key is taken out, while sales come in; then
// the program starts again with what is left.
func TestAMasterKeyIsRetiredUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, demoArgs(t, dir)...)
	url := first.waitReady()
	land := crashCountryOf(t, "XX")
	var supplier struct{ ID string }
	get(t, url+"/onboarding/v2/companies/demo-XX?external-id=true", &supplier)
	s := &stage{t: t, client: &http.Client{Timeout: patience}}
	var sent atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				id := fmt.Sprint("retire-", n)
				status, answer, err := patiently(func() (int, []byte, error) {
					return s.post(url, "/v1/transactions", land.body(id, id, supplier.ID, time.Now()))
				})
				if err != nil || status != http.StatusAccepted {
					t.Errorf("%s: %d %s %v", id, status, answer, err)
				}
				sent.Add(1)
			}
		}
	})
	flags := []string{"--data", dir, "--json", "--demo"}
	do := func(into any, args ...string) (int, string) {
		t.Helper()
		code, out, errs := call(t, append(args, flags...)...)
		if code == 0 {
			if err := json.Unmarshal([]byte(out), into); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
		return code, errs
	}
	var old, now rotated
	if code, errs := do(&old, "master-key", "rewrap"); code != 0 {
		t.Fatal(errs)
	}
	if code, errs := do(&now, "master-key", "rotate", "--file-only"); code != 0 {
		t.Fatal(errs)
	}
	var gone retired
	for id, want := range map[string]string{old.KeyID: "rewrap first", now.KeyID: "rotate first"} {
		if code, errs := do(&gone, "master-key", "retire", id); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("retire %s: %d %s", id, code, errs)
		}
	}
	var moved rotated
	if code, errs := do(&moved, "master-key", "rewrap"); code != 0 || moved.Moved < 2 {
		t.Fatalf("%+v %s", moved, errs)
	}
	var fresh renewed
	if code, errs := do(&fresh, "master-key", "renew"); code != 0 || fresh.DataKeys < 1 {
		t.Fatalf("%+v %s", fresh, errs)
	}
	if code, errs := do(&gone, "master-key", "retire", old.KeyID); code != 0 || !gone.Taken {
		t.Fatalf("%+v %s", gone, errs)
	}
	after := sent.Load()
	for sent.Load() < after+5 && !first.gone() {
		time.Sleep(5 * time.Millisecond) // the load has no signal to give
	}
	close(stop)
	load.Wait()
	first.stop()
	if said := first.stderr(); strings.Contains(said, "does not open") || strings.Contains(said, "not here") {
		t.Errorf("the program said\n%s", said)
	}
	url = start(t, demoArgs(t, dir)...).waitReady()
	get(t, url+"/onboarding/v2/companies/demo-XX?external-id=true", &supplier)
	if code, out, errs := call(t, "doctor", "--data", dir, "--master-key",
		"file:"+filepath.Join(dir, "master.key")); strings.Contains(out+errs, "not here") {
		t.Errorf("doctor: %d\n%s%s", code, out, errs)
	}
}
