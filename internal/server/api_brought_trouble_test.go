package server_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/server"
)

// receivedOf lists the numbers of what was received, with the operation of each.
func (c *caller) receivedOf(t *testing.T) (numbers []string, operations map[string]string) {
	t.Helper()
	operations = map[string]string{}
	for _, row := range c.want(t, http.StatusOK, "GET", "/v1/transactions?direction=RECEIVED&limit=100", nil).json(t)["data"].([]any) {
		number := fmt.Sprint(row.(object)["transaction_number"])
		numbers, operations[number] = append(numbers, number), row.(object)["operation_id"].(string)
	}
	slices.Sort(numbers)
	return numbers, operations
}

// A restored backup has forgotten documents that were brought since: they come again from lists of authorities, each
// once, and those that it has stay what they were.
func TestWhatWasBroughtSinceABackupComesAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	database, backup := filepath.Join(dir, "tributary.db"), filepath.Join(dir, "backup.db")
	seeded(t, dir, "")
	p := demoIn(t, dir, false)
	stop := p.run(t)
	c := p.as(demoKey)
	sides := []neighbours{polishNeighbours(), hungarianNeighbours(), frenchNeighbours()}
	var sellers, buyers, all []string
	for _, n := range sides {
		sellers = append(sellers, n.onboard(t, c, "Sprzedawca", n.seller, false))
		buyers = append(buyers, n.onboard(t, c, "Kupujący", n.buyer, true))
	}
	read := map[string]string{}
	for day, which := range []string{"1", "2"} {
		for i, n := range sides {
			n.sells(t, c, sellers[i], which)
			all = append(all, "N/"+which+"/"+n.code)
		}
		slices.Sort(all)
		for _, op := range c.awaitReceived(t, len(all)) {
			c.read(t, op)
		}
		if day == 0 {
			if _, read = c.receivedOf(t); len(read) != len(all) {
				t.Fatalf("%v of %v came", read, all)
			}
			if err := db.Backup(t.Context(), "sqlite:"+database, backup); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop()
	putBack(t, backup, database)

	p = demoIn(t, dir, true)
	stop = p.run(t)
	c = p.as(demoKey)
	for _, op := range c.awaitReceived(t, len(all)) {
		c.read(t, op)
	}
	for _, id := range buyers {
		p.looksAgain(t, id)
	}
	numbers, operations := c.receivedOf(t)
	if !slices.Equal(numbers, all) {
		t.Errorf("%v are there, want %v", numbers, all)
	}
	for number, op := range read {
		if operations[number] != op {
			t.Errorf("%s was operation %s and is %s", number, op, operations[number])
		}
	}
	stop()
}

// While an authority is out of order its documents wait there, the reason is seen, and they come once it is back.
func TestAnOutageIsAPauseOfWhatIsBrought(t *testing.T) {
	t.Parallel()
	for _, n := range []neighbours{hungarianNeighbours(), frenchNeighbours()} {
		t.Run(n.code, func(t *testing.T) {
			t.Parallel()
			p := demoAt(t, dbtest.SQLiteURL(t), func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
			c := receives(t, p)
			sent := n.sells(t, c, n.onboard(t, c, "Sprzedawca", n.seller, false), "1")
			if r := c.outcome(t, sent); r["status"] != "SUCCESS" {
				t.Fatalf("%v", r["errors"])
			}
			buyer := ""
			for failures, outcome := range []string{"garbage", "unavailable"} {
				p.scripted(t, strings.ToLower(n.code), `{"outcome":"`+outcome+`","on":"query","times":100000}`)
				if buyer == "" {
					buyer = n.onboard(t, c, "Kupujący", n.buyer, true)
				}
				eventually(t, "a look to fail", func() bool {
					return p.count(t, "SELECT count(*) FROM inbox_mailboxes WHERE documents AND company_id = $1 AND failures > $2 AND cursor = ''"+
						" AND problem LIKE 'authority_%'", buyer, failures) == 1
				})
			}
			p.scripted(t, strings.ToLower(n.code), "")
			op := c.awaitReceived(t, 1)[0]
			if r := c.read(t, op); r["status"] != "SUCCESS" || r["transaction_number"] != "N/1/"+n.code {
				t.Errorf("%v %v", r["status"], r["errors"])
			}
			if left := p.count(t, "SELECT count(*) FROM inbox_mailboxes WHERE company_id = $1 AND documents AND problem IS NOT NULL", buyer); left > 0 {
				t.Error("the reason stays behind the outage")
			}
		})
	}
}
