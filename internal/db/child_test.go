package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// children are the parts this test binary can play as another process. Each
// tells what it does line by line, and waits for lines where it must.
func children() map[string]func(args []string) {
	return map[string]func([]string){
		"open": playOpen,
		"open as nobody": func(args []string) {
			if os.Geteuid() == 0 { // root may write everywhere
				const nobody = 65534
				dbtest.Check(errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)))
			}
			playOpen(args)
		},
		"writer":     playWriter,
		"full disk":  playFullDisk,
		"lost fsync": playLostFsync,
	}
}

// playOpen opens a database and stays.
func playOpen(args []string) {
	d, err := db.Open(context.Background(), db.Config{URL: args[0]})
	dbtest.Check(err)
	dbtest.Tell("open")
	dbtest.Await()
	dbtest.Check(d.Close())
}

// playWriter writes as much as it can until it is killed, and tells each
// acknowledged id. The lines of one process leave in whole.
func playWriter(args []string) {
	d, err := db.Open(context.Background(), db.Config{URL: args[0]})
	dbtest.Check(err)
	dbtest.Check(d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("CREATE TABLE IF NOT EXISTS acked (id TEXT PRIMARY KEY, body TEXT NOT NULL)")
	}))
	dbtest.Tell("ready")
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				id := fmt.Sprintf("%s-%d", args[1], next.Add(1))
				dbtest.Check(d.Write(context.Background(), func(tx *db.Tx) error {
					return tx.Insert("acked", "id,body", []any{id, strings.Repeat("x", 500)})
				}))
				dbtest.Tell("%s", id)
			}
		})
	}
	wg.Wait()
}
