package secret_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/secret"
)

func TestARetiredKeyOpensNothingAndWrapsNothingMore(t *testing.T) {
	t.Parallel()
	m, path := newMaster(t)
	running := openMaster(t, "file:"+path) // another process, which has read the file before
	wrapped, _ := newKey(t, m, whose)
	old, err := m.KeyID()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Retire(old); err == nil || !strings.Contains(err.Error(), "rotate first") {
		t.Errorf("the key in use was retired: %v", err)
	}
	now, err := m.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.Rewrap(wrapped, whose)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"00000000": "no key", now: "rotate first"} {
		if err := m.Retire(id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("retire %s: %v", id, err)
		}
	}
	if err := m.Retire(old); err != nil {
		t.Fatal(err)
	}
	alone(t, path)
	if _, err := openMaster(t, "file:"+path).Open(wrapped, whose); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("the old wrapping: %v", err)
	}
	if _, err := running.Open(again, whose); err != nil {
		t.Errorf("the new wrapping on a node that knew the old file: %v", err)
	}
	// That node still knows the old key. What it wraps must not need it.
	stale := openMaster(t, "file:"+path)
	fresh, err := stale.NewKey(whose)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := secret.KeyID(fresh); err != nil || id != now {
		t.Errorf("a new data key is wrapped by %s, %v", id, err)
	}
}

func TestANodeThatKnowsTheOldFileWrapsWithTheNewKey(t *testing.T) {
	t.Parallel()
	m, path := newMaster(t)
	running := openMaster(t, "file:"+path)
	now, err := m.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := running.NewKey(whose)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := secret.KeyID(wrapped); err != nil || id != now {
		t.Errorf("wrapped by %s, want %s: %v", id, now, err)
	}
}

func TestARenewedDataKeyOpensWhatWasSealedBeforeAndIsFollowed(t *testing.T) {
	t.Parallel()
	m, _ := newMaster(t)
	wrapped, before := newKey(t, m, whose)
	old, err := before.Seal(secret.FromText("old"), whose)
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.Renew(wrapped, whose)
	if err != nil {
		t.Fatal(err)
	}
	after, err := m.Open(again, whose)
	if err != nil {
		t.Fatal(err)
	}
	young, err := after.Seal(secret.FromText("young"), whose)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := after.Open(old, whose); err != nil || got.RevealText() != "old" {
		t.Errorf("what was sealed before: %v", err)
	}
	if _, err := before.Open(young, whose); !errors.Is(err, secret.ErrBroken) {
		t.Errorf("the old data key opens what the fresh one sealed: %v", err)
	}
	looks := 0
	before2, err := m.Open(wrapped, whose) // another node
	if err != nil {
		t.Fatal(err)
	}
	before2.Follow(func() (*secret.Sealer, error) { looks++; return m.Open(again, whose) })
	if got, err := before2.Open(young, whose); err != nil || got.RevealText() != "young" || looks != 1 {
		t.Errorf("a node that follows: %v after %d looks", err, looks)
	}
	if _, err := before2.Open([]byte("nonsense that is long enough to be one"), whose); !errors.Is(err, secret.ErrBroken) {
		t.Error(err)
	}
}

func TestTheTokenOfAKeyServiceIsRenewed(t *testing.T) {
	v := startVault(t)
	m := openMaster(t, v.uri())
	for _, c := range []struct {
		name           string
		ttl, longer    int
		renewable      bool
		mood           string
		want           time.Duration
		calls, refused int
	}{
		{name: "renewable", ttl: 100, longer: 3600, renewable: true, want: time.Hour},
		{name: "not renewable", ttl: 100, want: 100 * time.Second},
		{name: "without an end", ttl: 0, renewable: true, want: 0},
		{name: "unavailable", mood: "unavailable", refused: 1},
		{name: "garbage", mood: "garbage", refused: 1},
	} {
		v.be(c.mood)
		v.token = func(w http.ResponseWriter, renew bool) {
			answer := map[string]any{"data": map[string]any{"ttl": c.ttl, "renewable": c.renewable}}
			if renew {
				answer = map[string]any{"auth": map[string]any{"client_token": vaultToken, "lease_duration": c.longer,
					"renewable": true}}
			}
			if err := json.NewEncoder(w).Encode(answer); err != nil {
				t.Error(err)
			}
		}
		left, err := m.RenewToken(t.Context())
		if left != c.want || (err != nil) != (c.refused > 0) || strings.Contains(fmt.Sprint(err), vaultToken) {
			t.Errorf("%s: %s %v", c.name, left, err)
		}
	}
	file, _ := newMaster(t)
	if left, err := file.RenewToken(t.Context()); left != 0 || err != nil {
		t.Errorf("of a file: %s %v", left, err)
	}
}
