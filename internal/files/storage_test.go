//go:build linux

package files_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/simulation"
)

// Hard case 14 for files: without space nothing is kept, half a file never gets
// a name of its own, and it heals by itself.
func TestHardCase14AFullDiskKeepsNoHalfFile(t *testing.T) {
	t.Parallel()
	disk := simulation.SmallDisk(t, 2<<20)
	s := &shop{t: t, db: dbtest.SQLite(t), dir: filepath.Join(disk.Dir, "documents"), clock: newHand(),
		records: map[string][]byte{}}
	s.Store = s.open()
	before := files.NewFile(bytes.Repeat([]byte("before"), 1<<10))
	must(t, s.Keep(context.Background(), before))
	disk.Fill(48 << 10)
	var kept []files.File
	refused := 0
	for i := range 20 {
		f := files.NewFile(bytes.Repeat(fmt.Appendf(nil, "file %d ", i), 2<<10))
		if err := s.Keep(context.Background(), f); err == nil {
			kept = append(kept, f)
			continue
		} else if wantKind(t, err, fault.Unavailable); t.Failed() {
			return
		}
		refused++
		if err := s.attach(visual("a", "op", f)); err == nil {
			t.Error("a file that was not kept was attached")
		}
	}
	if refused == 0 {
		t.Fatal("the disk is not full")
	}
	var many []files.File // an archive of them does not fit either, and nothing of it stays in the way
	for i := range 40 {
		many = append(many, files.NewFile(bytes.Repeat(fmt.Appendf(nil, "archived %d ", i), 2<<10)))
	}
	wantKind(t, s.Keep(context.Background(), many...), fault.Unavailable)
	for _, name := range s.files() {
		if filepath.Ext(name) == ".tar" {
			t.Errorf("half an archive was left: %s", name)
		}
	}
	disk.Empty()
	must(t, s.Keep(context.Background(), many...))
	whole := map[string]int64{before.SHA256: before.Size}
	for _, f := range kept {
		whole[f.SHA256] = f.Size
	}
	after := files.NewFile([]byte("after"))
	must(t, s.Keep(context.Background(), after))
	whole[after.SHA256] = after.Size
	must(t, filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || len(e.Name()) != 64 {
			return err
		}
		content, err := os.ReadFile(path)
		if sum := files.NewFile(content).SHA256; sum != e.Name() || whole[sum] != int64(len(content)) {
			t.Errorf("%s holds %d bytes with the sum %s", e.Name(), len(content), sum)
		}
		return err
	}))
	t.Logf("%d kept, %d refused", len(kept), refused)
}
