package secret_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tributary/internal/secret"
)

func TestRotationKeepsOldKeysOpenAndRewrapMovesThem(t *testing.T) {
	m, path := newMaster(t)
	wrapped, sealer := newKey(t, m, whose)
	sealed, err := sealer.Seal(secret.FromText("the key"), whose)
	if err != nil {
		t.Fatal(err)
	}
	oldID, err := m.KeyID()
	if err != nil {
		t.Fatal(err)
	}
	newID, err := m.Rotate()
	if err != nil || newID == oldID {
		t.Fatalf("rotate: %s, %v", newID, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("mode after rotation: %v, %v", info.Mode(), err)
	}
	alone(t, path)
	if id, err := m.KeyID(); err != nil || id != newID {
		t.Errorf("current key %s, want %s, %v", id, newID, err)
	}
	if id, err := secret.KeyID(wrapped); err != nil || id != oldID {
		t.Errorf("the old wrapping says %s, want %s, %v", id, oldID, err)
	}
	again, err := m.Rewrap(wrapped, whose)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := secret.KeyID(again); err != nil || id != newID {
		t.Errorf("the new wrapping says %s, want %s, %v", id, newID, err)
	}
	for _, opener := range []*secret.Master{m, openMaster(t, "file:"+path)} {
		for _, w := range [][]byte{wrapped, again} {
			s, err := opener.Open(w, whose)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := s.Open(sealed, whose); err != nil || back.RevealText() != "the key" {
				t.Errorf("what was sealed before does not open: %v", err)
			}
		}
	}
	other := whose
	other.Client = "c2"
	if _, err := m.Rewrap(wrapped, other); !errors.Is(err, secret.ErrBroken) {
		t.Errorf("re-wrapped for another client: %v", err)
	}
}

// One process rotates and re-wraps; the other only has the file it read at its start.
func TestARunningProcessFollowsARotation(t *testing.T) {
	running, path := newMaster(t)
	wrapped, sealer := newKey(t, running, whose)
	sealed, err := sealer.Seal(secret.FromText("the key"), whose)
	if err != nil {
		t.Fatal(err)
	}
	var current sync.Map
	current.Store("wrapped", wrapped)
	stop, failures := make(chan struct{}), make(chan error, 4)
	var group sync.WaitGroup
	for range cap(failures) {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				w, _ := current.Load("wrapped")
				s, err := running.Open(w.([]byte), whose)
				if err == nil {
					_, err = s.Open(sealed, whose)
				}
				if err != nil {
					failures <- err
					return
				}
			}
		})
	}
	operator := openMaster(t, "file:"+path)
	for range 20 {
		if _, err := operator.Rotate(); err != nil {
			t.Fatal(err)
		}
		if wrapped, err = operator.Rewrap(wrapped, whose); err != nil {
			t.Fatal(err)
		}
		current.Store("wrapped", wrapped)
	}
	close(stop)
	group.Wait()
	close(failures)
	for err := range failures {
		t.Errorf("an open during the rotation: %v", err)
	}
	a, errA := running.KeyID()
	b, errB := operator.KeyID()
	if a != b || errA != nil || errB != nil {
		t.Errorf("the processes disagree: %s, %s", a, b)
	}
}

func TestConcurrentRotationsLoseNoKey(t *testing.T) {
	m, path := newMaster(t)
	type made struct {
		id      string
		wrapped []byte
	}
	results := make(chan made, 200)
	var group sync.WaitGroup
	for range 8 {
		operator := openMaster(t, "file:"+path)
		group.Go(func() {
			for range 10 {
				id, err := operator.Rotate()
				if errors.Is(err, fs.ErrExist) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				wrapped, err := operator.NewKey(whose)
				if err != nil {
					t.Error(err)
				}
				results <- made{id, wrapped}
			}
		})
	}
	group.Wait()
	close(results)
	n := 0
	for r := range results {
		n++
		if _, err := m.Open(r.wrapped, whose); err != nil {
			t.Errorf("key %s was lost: %v", r.id, err)
		}
	}
	if n == 0 {
		t.Error("no rotation went through")
	}
	alone(t, path)
}

func TestALeftDraftStopsRotationButNotTheService(t *testing.T) {
	m, path := newMaster(t)
	wrapped, _ := newKey(t, m, whose)
	if err := os.WriteFile(path+".new", []byte("half a key"), 0o400); err != nil {
		t.Fatal(err)
	}
	_, err := m.Rotate()
	if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "remove "+path+".new") {
		t.Errorf("rotation: %v", err)
	}
	if _, err := openMaster(t, "file:"+path).Open(wrapped, whose); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path + ".new"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Rotate(); err != nil {
		t.Error(err)
	}
}

func TestRotationThatCannotReadTheFileChangesNothing(t *testing.T) {
	m, path := newMaster(t)
	wrapped, _ := newKey(t, m, whose)
	before, _ := m.KeyID()
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Rotate(); err == nil {
		t.Fatal("rotated a file that others can read")
	}
	alone(t, path)
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if id, err := m.KeyID(); err != nil || id != before {
		t.Errorf("key %s, want %s, %v", id, before, err)
	}
	if _, err := m.Open(wrapped, whose); err != nil {
		t.Error(err)
	}
}

func TestRotationThroughALinkKeepsTheLink(t *testing.T) {
	_, path := newMaster(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	m := openMaster(t, "file:"+link)
	id, err := m.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if got, err := openMaster(t, "file:"+path).KeyID(); err != nil || got != id {
		t.Errorf("the file has key %s, want %s, %v", got, id, err)
	}
}

func TestADisabledMasterKeyOpensNothing(t *testing.T) {
	m, path := newMaster(t)
	wrapped, _ := newKey(t, m, whose)
	id, err := secret.KeyID(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Rotate(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	disabled := 0
	for _, k := range file["key"].([]any) {
		key := k.(map[string]any)
		if fmt.Sprintf("%08x", uint32(key["keyId"].(float64))) == id {
			key["status"] = "DISABLED"
			disabled++
		}
	}
	if content, err = json.Marshal(file); err != nil || disabled != 1 {
		t.Fatalf("%d keys disabled, %v", disabled, err)
	}
	_, err = openMaster(t, "file:"+writeFile(t, content, 0o400)).Open(wrapped, whose)
	if !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("opened with a disabled key: %v", err)
	}
}
