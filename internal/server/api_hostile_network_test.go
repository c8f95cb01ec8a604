package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/endpoint"
	"tributary/internal/official/xxwire"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// nameServer stands before an honest name server and says something else, each
// name its own way, until it is told to be honest.
type nameServer struct {
	honest string
	conn   net.PacketConn
	lies   []func(question, answer []byte) []byte
	truth  atomic.Bool

	mu    sync.Mutex
	names []string // of which each has its own lie, by its place
}

func hostileNames(t *testing.T, honest string, lies ...func(question, answer []byte) []byte) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	s := &nameServer{honest: honest, conn: conn, lies: lies}
	var answering sync.WaitGroup
	answering.Go(func() {
		for packet := make([]byte, 4096); ; {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			question := bytes.Clone(packet[:n])
			answering.Go(func() { _, _ = conn.WriteTo(s.answer(question), from) }) // who asked may be gone
		}
	})
	t.Cleanup(func() {
		conn.Close()
		answering.Wait()
	})
	return s
}

func (s *nameServer) answer(question []byte) []byte {
	upstream, err := net.Dial("udp", s.honest)
	if err != nil {
		return nil
	}
	defer upstream.Close()
	answer := make([]byte, 4096)
	_ = upstream.SetDeadline(time.Now().Add(patience))
	if _, err := upstream.Write(question); err != nil {
		return nil
	}
	n, err := upstream.Read(answer)
	if err != nil || s.truth.Load() {
		return answer[:n]
	}
	return s.lies[s.place(string(question[12:]))](question, answer[:n])
}

// place is which lie a name gets.
func (s *nameServer) place(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.names, name)
	if at < 0 {
		at = len(s.names)
		s.names = append(s.names, name)
	}
	return at % len(s.lies)
}

func dnsLies() []func(question, answer []byte) []byte {
	header := func(answer []byte, at int, value uint16) []byte {
		answer = bytes.Clone(answer)
		binary.BigEndian.PutUint16(answer[at:], value)
		return answer
	}
	return []func(question, answer []byte) []byte{
		func(_, _ []byte) []byte { return bytes.Repeat([]byte{0xff}, 1200) },
		func(_, a []byte) []byte { return header(a, 0, ^binary.BigEndian.Uint16(a)) }, // of another question
		func(_, a []byte) []byte { return header(a, 6, 0xffff) },                      // more records than there are
		func(q, a []byte) []byte { // a name that points to itself
			return append(bytes.Clone(a[:len(q)]), 0xc0, byte(len(q)), 0, 35)
		},
		func(q, a []byte) []byte { return a[:min(len(q)+9, len(a))] }, // cut
		func(q, _ []byte) []byte { return header(q, 2, 0x8182) },      // trouble of the server
		func(_, a []byte) []byte { // no address of the web
			return bytes.Replace(a, []byte("http:"), []byte("file:"), 1)
		},
	}
}

// hostileRegister is a register of receivers that says something else, each path its own
// way, and counts what is read of it.
func hostileRegister(t *testing.T) (base string, ways []string, most *atomic.Int64) {
	t.Helper()
	most = new(atomic.Int64)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 64 {
		_, err := z.Write(make([]byte, 1<<20))
		must(t, err)
	}
	must(t, z.Close())
	endless := func(w http.ResponseWriter, piece string) {
		for read := int64(0); read < 1<<30; read += int64(len(piece)) {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
			if read > most.Load() {
				most.Store(read)
			}
		}
	}
	do := map[string]func(http.ResponseWriter, *http.Request){
		"endless": func(w http.ResponseWriter, _ *http.Request) { endless(w, strings.Repeat("x", 1<<16)) },
		"deep":    func(w http.ResponseWriter, _ *http.Request) { endless(w, strings.Repeat("<a>", 1<<14)) },
		"gzip": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes()) // whom it is for may hang up
		},
		"entities": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>`)
		},
		"page":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html><body>Welcome</body></html>") },
		"nothing": func(http.ResponseWriter, *http.Request) {},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/", http.StatusFound)
		},
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		way, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		do[way](w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, slices.Sorted(maps.Keys(do)), most
}

// Name servers and registers of receivers that lie: every document waits and says
// so, nothing is delivered and nobody else waits; with the truth each goes once.
func TestHostileNameServersAndRegistersOnTheRunningProgram(t *testing.T) {
	t.Parallel()
	network := demoAt(t, "", nil)
	packs, err := world.Packs()
	must(t, err)
	alone := packs[slices.IndexFunc(packs, func(p country.Pack) bool { return p.Code == "BE" })]
	alone.Simulator = nil
	database := "sqlite:" + t.TempDir() + "/own.db"
	p := demoAt(t, database, func(c *server.Config) {
		xx := slices.IndexFunc(packs, func(p country.Pack) bool { return p.Code == "XX" })
		c.Packs = []country.Pack{alone, packs[xx]}
	})
	answer, err := http.Get(network.SimulatorsURL() + "/be/network")
	must(t, err)
	defer answer.Body.Close()
	said := map[string]string{}
	must(t, json.NewDecoder(answer.Body).Decode(&said))
	lies := dnsLies()
	names := hostileNames(t, said["dns_server"], lies...)
	register, ways, most := hostileRegister(t)
	secrets := map[string]secret.Secret{"api_token": secret.FromText("the operator's")}
	for name, value := range said {
		secrets[name] = secret.FromText(value)
	}
	secrets["dns_server"] = secret.FromText(names.conn.LocalAddr().String())
	address := network.SimulatorsURL() + "/be"
	e, _ := p.besides(t, database)
	set := func(dns string) {
		secrets["dns_server"] = secret.FromText(dns)
		_, err := e.Set(t.Context(), audit.Actor{Name: "test"}, country.Environment{Code: "BE"},
			endpoint.Change{URL: &address, Secrets: secrets})
		must(t, err)
	}
	c := p.as(demoKey)
	sale := belgian(t, c, "hostile", "0417497106")
	buyers := 0
	submit := func(what string) (operation, receiver string) {
		buyers++
		first := 4046100 + buyers
		number := fmt.Sprintf("%08d%02d", first, 97-first%97)
		return c.submit(t, "/v1/transactions", sale(what, object{"customer": object{"legal_name": "Exemple SA",
			"type": "BUSINESS", "entity_number": number, "tax_information": object{"tax_number": "BE" + number},
			"electronic_address": object{"scheme": "0208", "id": number},
			"address": object{"country_code": "BE", "city": "Liège", "postal_code": "4000",
				"address_line_1": "Rue de l'Exemple 1"}}})), "0208:" + number
	}

	set(names.conn.LocalAddr().String())
	waiting := map[string]string{}
	for n := range lies {
		what := fmt.Sprint("DNS-", n)
		waiting[what], _ = submit(what)
	}
	for what, operation := range waiting {
		c.waits(t, what, operation)
	}
	names.truth.Store(true)
	registers := map[string]string{}
	for n, way := range ways {
		what := fmt.Sprint("SMP-", n)
		buyers++ // the habit is set before it is sent
		first := 4046100 + buyers
		receiver := fmt.Sprintf("0208:%08d%02d", first, 97-first%97)
		buyers--
		network.participant(t, receiver, fmt.Sprintf(`{"elsewhere":%q}`, register+"/"+url.PathEscape(way)))
		operation, to := submit(what)
		if to != receiver {
			t.Fatalf("%s is for %s", what, to)
		}
		waiting[what], registers[receiver] = operation, way
	}
	for what, operation := range waiting {
		if strings.HasPrefix(what, "SMP") {
			c.waits(t, what, operation)
		}
	}
	for what := range waiting {
		if strings.HasPrefix(what, "SMP") && network.delivered(t, what) != 0 {
			t.Errorf("%s was delivered on the word of a hostile register", what)
		}
	}
	if r := c.outcome(t, c.submit(t, "/v1/transactions", p.sale(t, "beside", nil))); r["status"] != "SUCCESS" {
		t.Errorf("another authority waits with it: %v", r["errors"])
	}
	if read := most.Load(); read > 32<<20 {
		t.Errorf("%d bytes of one answer were read", read)
	}
	for receiver := range registers {
		network.participant(t, receiver, `{}`)
	}
	for what, operation := range waiting {
		if r := c.outcome(t, operation); r["status"] != "SUCCESS" || network.delivered(t, what) != 1 {
			t.Errorf("%s: %v %v, %d delivered", what, r["status"], r["errors"], network.delivered(t, what))
		}
	}
}

// waits expects an operation to wait for who does not answer, or not properly.
func (c *caller) waits(t *testing.T, what, operation string) {
	t.Helper()
	for late := time.Now().Add(2 * patience); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
		r := c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation, nil).json(t)
		if r["status"] != "PROCESSING" {
			t.Fatalf("%s has ended: %v %v", what, r["status"], r["errors"])
		}
		for _, e := range r["errors"].([]any) {
			if code := e.(object)["code"]; code == "authority_error" || code == "authority_unreachable" {
				return
			}
		}
	}
	t.Fatalf("%s never says why it waits", what)
}

// A mailbox that lies: nothing of it is taken, others are filed meanwhile, and the
// truth is taken once.
func TestHostileMailboxesOnTheRunningProgram(t *testing.T) {
	t.Parallel()
	database := "sqlite:" + t.TempDir() + "/own.db"
	p := demoAt(t, database, nil)
	c := p.as(demoKey)
	var lie atomic.Pointer[func(w http.ResponseWriter, honest []byte)]
	var looks atomic.Int64
	var others atomic.Pointer[[]byte] // an answer for another company
	target, err := url.Parse(p.SimulatorsURL() + "/xx")
	must(t, err)
	honest := httputil.NewSingleHostReverseProxy(target)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, xxwire.PathMailbox) {
			honest.ServeHTTP(w, r)
			return
		}
		if now := lie.Load(); now != nil { // the authority is not asked, which would decide: a poll would hear of it
			looks.Add(1)
			(*now)(w, *others.Load())
			return
		}
		kept := httptest.NewRecorder()
		honest.ServeHTTP(kept, r)
		if text := bytes.Clone(kept.Body.Bytes()); len(text) > 0 && others.Load() == nil {
			others.Store(&text)
		}
		for name, values := range kept.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(kept.Code)
		_, _ = w.Write(kept.Body.Bytes()) // whoever looked may be gone
	}))
	t.Cleanup(between.Close)
	e, _ := p.besides(t, database)
	_, err = e.Set(t.Context(), audit.Actor{Name: "test"}, country.Environment{Code: "XX"},
		endpoint.Change{URL: &between.URL})
	must(t, err)
	reader := func(name, number string) (id string) {
		body := example(t, "company", object{"settings": object{"mailbox": true}, "tax_credentials": nil})
		body["meta"].(object)["country_code"], body["meta"].(object)["external_id"] = "XX", name
		body["tax_information"].(object)["tax_number"] = number
		id, _ = c.onboard(t, body)
		return id
	}
	file := func(by, number string) string {
		return c.submit(t, "/v1/transactions", p.sale(t, number,
			object{"supplier": object{"id": by}, "transaction_number": number + xxwire.SuffixMailbox}))
	}
	if r := c.outcome(t, file(reader("others", "XX888000222"), "HM-0")); r["status"] != "SUCCESS" || others.Load() == nil {
		t.Fatalf("%v %v", r["status"], r["errors"])
	}

	companies := 0
	for name, say := range map[string]func(w http.ResponseWriter, honest []byte){
		"cut": func(w http.ResponseWriter, honest []byte) { _, _ = w.Write(honest[:len(honest)/2]) },
		"changed": func(w http.ResponseWriter, honest []byte) {
			_, _ = w.Write(bytes.ReplaceAll(honest, []byte("a"), []byte("b")))
		},
		"another's": func(w http.ResponseWriter, _ []byte) { _, _ = w.Write(*others.Load()) },
		"endless": func(w http.ResponseWriter, honest []byte) {
			for range 1 << 14 {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
					return
				}
			}
		},
		"a page":   func(w http.ResponseWriter, _ []byte) { fmt.Fprint(w, "<html>Welcome</html>\n") },
		"nothing":  func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusNoContent) },
		"hangs up": func(http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) },
	} {
		lie.Store(&say)
		seen := looks.Load()
		companies++
		number := fmt.Sprint("HM-", companies)
		operation := file(reader(name, fmt.Sprintf("XX8880003%02d", companies)), number)
		for late := time.Now().Add(patience); looks.Load() < seen+2; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("%s: nobody looks again", name)
			}
		}
		if r := c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation, nil).json(t); r["status"] != "PROCESSING" {
			t.Errorf("%s: %v %v", name, r["status"], r["errors"])
		}
		if r := c.outcome(t, c.submit(t, "/v1/transactions", p.sale(t, number+"-beside", nil))); r["status"] != "SUCCESS" {
			t.Errorf("%s: another company: %v", name, r["errors"])
		}
		lie.Store(nil)
		if r := c.outcome(t, operation); r["status"] != "SUCCESS" {
			t.Errorf("%s, then the truth: %v %v", name, r["status"], r["errors"])
		}
	}
}
