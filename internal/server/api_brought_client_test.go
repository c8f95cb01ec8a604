package server_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tributary/internal/country/identity"
	"tributary/internal/needs"
	"tributary/internal/server"
)

// A program of others sends an invoice to KSeF, and the company that it is for is
// brought it.
func TestACompanyIsBroughtWhatAPublicKSeFClientSends(t *testing.T) {
	t.Parallel()
	const seller = "5265877635"
	folder, scripts := needs.Npm(t, "ksef-clients"), filepath.Join(needs.Root(t), "internal/authority/ksef/testdata/clients")
	text, err := os.ReadFile(filepath.Join(scripts, "invoice.xml"))
	if err != nil {
		t.Fatal(err)
	}
	p12, password, err := identity.Test(seller, "Obca Spółka", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	eachEngine(t, func(t *testing.T, url string) {
		p := demoAt(t, url, func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
		c, n := receives(t, p), polishNeighbours()
		buyer := n.onboard(t, c, "Kupujący", n.buyer, true)
		dir := t.TempDir()
		invoice := strings.NewReplacer("@DAY@", time.Now().Format(time.DateOnly), "@NUMBER@", "OBCA/7", "@SELLER@", seller,
			"@BUYER@", strings.TrimPrefix(n.buyer, "PL")).Replace(string(text))
		for name, content := range map[string]string{"cert.p12": string(p12), "invoice.xml": invoice} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.CommandContext(t.Context(), "node", filepath.Join(scripts, "ts.mjs"), folder, p.SimulatorsURL()+"/pl", seller,
			filepath.Join(dir, "cert.p12"), password, filepath.Join(dir, "invoice.xml"), "").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got := c.read(t, c.awaitReceived(t, 1)[0])
		if from, to := got["supplier"].(object), got["customer"].(object); from["legal_name"] != "Obca Spółka" || to["id"] != buyer {
			t.Errorf("from %v to %v", from, to)
		}
		id, _ := got["tax_authority_id_1"].(string)
		if got["status"] != "SUCCESS" || got["transaction_number"] != "OBCA/7" || fmt.Sprint(got["total_amount"]) != "12300" ||
			!strings.HasPrefix(id, seller) || !strings.Contains(string(out), id) {
			t.Errorf("%v %v: %v, %s, %v", got["status"], got["transaction_number"], got["total_amount"], id, got["errors"])
		}
	})
}
