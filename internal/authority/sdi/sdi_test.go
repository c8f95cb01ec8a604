package sdi_test

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/authority/sdi"
	"tributary/internal/country/identity"
	"tributary/internal/leaks"
	"tributary/internal/official"
	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// exchange is a double with a transmitter: a client with a certificate, and a
// receiver of messages that can refuse the first calls.
type exchange struct {
	t        *testing.T
	dir      string
	desk     *authority.Desk
	server   *httptest.Server
	receiver *httptest.Server
	messages chan message
	refuse   chan int // statuses to answer first
	client   *x509.Certificate
	names    int
}

// message is a call of TrasmissioneFatture, read.
type message struct {
	kind    sdiwire.Kind
	invoice string
	id      string
	root    *xmltree.Element
	file    []byte
	packed  bool
	client  *x509.Certificate
}

func (m message) codes() (all []string) {
	for _, e := range m.root.At("ListaErrori").All("Errore") {
		all = append(all, e.Value("Codice"))
	}
	return all
}

func open(t *testing.T) *exchange {
	t.Helper()
	x := &exchange{t: t, dir: t.TempDir(), messages: make(chan message, 1000), refuse: make(chan int, 10)}
	var err error
	if x.client, err = transmitter(); err != nil {
		t.Fatal(err)
	}
	x.receiver = httptest.NewServer(http.HandlerFunc(x.hear))
	x.start()
	t.Cleanup(func() {
		x.stop()
		x.receiver.Close()
	})
	return x
}

func (x *exchange) start() {
	x.t.Helper()
	desk, err := authority.OpenDesk(x.dir, "IT")
	if err != nil {
		x.t.Fatal(err)
	}
	x.desk, x.server = desk, httptest.NewServer(sdi.New(desk))
}

func (x *exchange) stop() {
	x.server.Client().CloseIdleConnections()
	x.server.Close()
	if err := x.desk.Close(); err != nil {
		x.t.Error(err)
	}
}

// transmitter is the certificate of the transmitter, made once.
var transmitter = sync.OnceValues(func() (*x509.Certificate, error) {
	file, password, err := identity.Test("12345678903", "Trasmittente Srl", time.Now())
	if err != nil {
		return nil, err
	}
	pair, err := identity.NewKeeper().Open(identity.PKCS12{File: file, Password: password}, time.Now())
	if err != nil {
		return nil, err
	}
	return pair.Leaf, nil
})

// hear serves the transmitter's TrasmissioneFatture.
func (x *exchange) hear(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it is repeated
	}
	select {
	case status := <-x.refuse:
		w.WriteHeader(status)
		return
	default:
	}
	m, err := readMessage(r, body)
	if err != nil {
		x.t.Error(err)
	}
	x.messages <- m
}

func readMessage(r *http.Request, body []byte) (m message, err error) {
	called, ok := sdiwire.MessageCalled(strings.Trim(r.Header.Get("SOAPAction"), `"`))
	if !ok {
		return m, fmt.Errorf("the action %q", r.Header.Get("SOAPAction"))
	}
	packed, err := sdiwire.Open(r.Header.Get("Content-Type"), body)
	if err != nil {
		return m, err
	}
	m.packed = strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/")
	call, err := soap.Read(packed.Envelope, xmltree.Limits{})
	if err != nil || !call.Content.Is(sdiwire.SpaceTypes, called.Element) {
		return m, fmt.Errorf("the body of %s: %v", called.Operation, err)
	}
	if m.file, err = packed.File(call.Content.At("File")); err != nil {
		return m, err
	}
	doc, err := xmltree.Read(m.file)
	if err != nil {
		return m, err
	}
	m.root, m.id = doc.Root, call.Content.Value("IdentificativoSdI")
	if m.invoice, m.kind, ok = sdiwire.ParseMessageName(call.Content.Value("NomeFile")); !ok || m.kind != called.Kind ||
		!strings.HasPrefix(m.root.Value("NomeFile"), strings.TrimSuffix(m.invoice, "xml")) ||
		m.root.Value("IdentificativoSdI") != m.id {
		return m, fmt.Errorf("%s is about %s", call.Content.Value("NomeFile"), m.root.Value("NomeFile"))
	}
	standard := official.SdIInvoiceMessages
	if m.root.Space == sdiwire.SpacePublicMessages {
		standard = official.SdIMessages
	}
	if flaw := standard.Schema().First(m.root); flaw != nil {
		return m, fmt.Errorf("%s: %v", m.kind, flaw)
	}
	if m.client, err = authority.ClientCertificate(r); err != nil || m.client == nil {
		return m, fmt.Errorf("the caller shows no certificate: %v", err)
	}
	return m, verified(doc)
}

// verified checks the signature of a message by hand.
func verified(doc *xmltree.Document) error {
	s := doc.Root.Find(sdiwire.SpaceSignature, "Signature")
	der, err := base64.StdEncoding.DecodeString(s.Value("KeyInfo", "X509Data", "X509Certificate"))
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(sdiwire.SimulatedCA))
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return err
	}
	info, part := s.At("SignedInfo"), xmltree.Canonical{Inclusive: true}
	texts := [][]byte{
		xmltree.Canonical{Inclusive: true, Without: s}.Document(doc),
		part.Bytes(s.At("Object", "QualifyingProperties", "SignedProperties")),
		part.Bytes(s.At("KeyInfo")),
	}
	for i, reference := range info.All("Reference") {
		sum := sha256.Sum256(texts[i])
		if reference.Value("DigestValue") != base64.StdEncoding.EncodeToString(sum[:]) {
			return fmt.Errorf("reference %d does not fit", i+1)
		}
	}
	value, err := base64.StdEncoding.DecodeString(s.Value("SignatureValue"))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(xmltree.Canonical{}.Bytes(info))
	return rsa.VerifyPKCS1v15(leaf.PublicKey.(*rsa.PublicKey), crypto.SHA256, sum[:], value)
}

func (x *exchange) name() string {
	x.names++
	return "IT12345678903_" + strconv.Itoa(x.names) + ".xml"
}

// send hands in a file and answers IdentificativoSdI and Errore.
func (x *exchange) send(name, file string) (id, code string) {
	x.t.Helper()
	status, said := x.post(name, []byte(file), nil)
	if status != http.StatusOK {
		x.t.Fatalf("%s: %d", name, status)
	}
	return said.Value("IdentificativoSdI"), said.Value("Errore")
}

func (x *exchange) post(name string, file []byte, change func(*http.Request)) (int, *xmltree.Element) {
	x.t.Helper()
	body := `<e:Envelope xmlns:e="` + soap.Space11 + `" xmlns:t="` + sdiwire.SpaceTypes +
		`"><e:Body><t:fileSdIAccoglienza><NomeFile>` + name + `</NomeFile><File>` +
		base64.StdEncoding.EncodeToString(file) + `</File></t:fileSdIAccoglienza></e:Body></e:Envelope>`
	r, err := http.NewRequestWithContext(x.t.Context(), http.MethodPost, x.server.URL+sdiwire.Path,
		strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "text/xml; charset=utf-8")
	r.Header.Set("SOAPAction", `"`+sdiwire.ActionFile+`"`)
	r.Header.Set(sdiwire.HeaderCallback, x.receiver.URL)
	r.Header.Set(sdiwire.HeaderClient, ":"+base64.StdEncoding.EncodeToString(x.client.Raw)+":")
	if change != nil {
		change(r)
	}
	resp, err := x.server.Client().Do(r)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	packed, err := sdiwire.Open(resp.Header.Get("Content-Type"), text)
	if err != nil {
		x.t.Fatal(err)
	}
	answer, err := soap.Read(packed.Envelope, xmltree.Limits{})
	if err != nil {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, answer.Content
}

func (x *exchange) hears() message {
	x.t.Helper()
	select {
	case m := <-x.messages:
		return m
	case <-time.After(time.Minute):
		x.t.Fatal("nothing is said")
	}
	return message{}
}

func (x *exchange) control(method, path, body string) int {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), method, x.server.URL+path, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	resp, err := x.server.Client().Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func (x *exchange) held() []authority.Registration {
	x.t.Helper()
	all, err := x.desk.Registrations()
	if err != nil {
		x.t.Fatal(err)
	}
	return all
}

func TestAFileIsTakenAndItsDeliveryIsTold(t *testing.T) {
	x := open(t)
	file := base(t, "F-1")
	name := x.name()
	id, code := x.send(name, file)
	if len(id) < 5 || code != "" {
		t.Fatalf("%q %q", id, code)
	}
	m := x.hears()
	sum := sha256.Sum256([]byte(file))
	if m.kind != sdiwire.Delivered || m.invoice != name || m.id != id ||
		m.root.Value("Hash") != hex.EncodeToString(sum[:]) || m.root.Local != "RicevutaConsegna" {
		t.Errorf("%+v", m)
	}
	if held := x.held(); len(held) != 1 || held[0].Supplier != "IT01234567897" || held[0].Number != "F-1" ||
		held[0].SHA256 != hex.EncodeToString(sum[:]) || held[0].AuthorityID != id {
		t.Errorf("%+v", held)
	}
}

func TestEveryBrokenCopyIsRefusedByAMessage(t *testing.T) {
	x := open(t)
	want := map[string]broken{}
	for i, b := range brokenCopies() {
		name := x.name()
		file := strings.ReplaceAll(b.breaks(t, "F-"+strconv.Itoa(i)), "2026-06-02",
			time.Now().AddDate(0, 0, 2).Format(time.DateOnly))
		if id, code := x.send(name, file); id == "0" || code != "" {
			t.Fatalf("%s: %s %s", b.code, id, code)
		}
		want[name] = b
	}
	for range len(want) {
		m := x.hears()
		if b := want[m.invoice]; m.kind != sdiwire.Refused || !slices.Contains(m.codes(), b.code) {
			t.Errorf("%s %v instead of %s", m.kind, m.codes(), b.code)
		}
	}
	if held := x.held(); len(held) > 0 {
		t.Errorf("%d broken copies are registered", len(held))
	}
}

func TestNamesAreUsedUpByWhateverCame(t *testing.T) {
	x := open(t)
	name := x.name()
	x.send(name, strings.Replace(base(t, "F-1"), "<Divisa>EUR</Divisa>", "", 1))
	if m := x.hears(); !slices.Equal(m.codes(), []string{sdiwire.FormatWrong}) {
		t.Fatalf("%v", m.codes())
	}
	id, code := x.send(name, base(t, "F-1"))
	if m := x.hears(); code != "" || m.id != id || !slices.Equal(m.codes(), []string{sdiwire.NameUsed}) {
		t.Fatalf("%v %s", m.codes(), code)
	}
	// The same number under another name goes out: what was refused was never issued.
	x.send(x.name(), base(t, "F-1"))
	if m := x.hears(); m.kind != sdiwire.Delivered {
		t.Fatalf("%s %v", m.kind, m.codes())
	}
	for file, code := range map[string]string{
		base(t, "F-1"): sdiwire.Duplicate,
		strings.Replace(base(t, "F-1"), "2026-03-02", "2026-03-03", 1): sdiwire.Duplicate,
		strings.Replace(base(t, "F-1"), ">TD06<", ">TD04<", 1):         "",
		strings.Replace(base(t, "F-1"), "2026-03-02", "2025-12-31", 1): "",
	} {
		x.send(x.name(), file)
		m := x.hears()
		if code == "" && m.kind != sdiwire.Delivered || code != "" && !slices.Equal(m.codes(), []string{code}) {
			t.Errorf("%s %v instead of %q", m.kind, m.codes(), code)
		}
	}
	for _, wrong := range []string{"IT12345678903_000001.xml", "IT12345678903_00001.zip", "IT12345678903_00001.xml.p7m"} {
		x.send(wrong, base(t, "F-9"))
		if m := x.hears(); !slices.Equal(m.codes(), []string{sdiwire.NameWrong}) {
			t.Errorf("%s: %v", wrong, m.codes())
		}
	}
	if n := len(x.held()); n != 3 {
		t.Errorf("%d registered", n)
	}
}

func TestFilesThatCannotBeTakenAreAnsweredAsSdIDoes(t *testing.T) {
	x := open(t)
	if id, code := x.send(x.name(), ""); id != "0" || code != sdiwire.FileEmpty {
		t.Errorf("empty: %s %s", id, code)
	}
	x.send(x.name(), base(t, "F-1")+strings.Repeat(" ", sdiwire.FileBytesMax))
	if m := x.hears(); !slices.Equal(m.codes(), []string{sdiwire.TooLarge}) {
		t.Errorf("too large: %v", m.codes())
	}
	x.send(x.name(), strings.NewReplacer("FPR12", "FPA12", "ABC1234", "ABC123").Replace(base(t, "F-1")))
	if m := x.hears(); !slices.Equal(m.codes(), []string{sdiwire.NotSigned}) || m.root.Local != "NotificaScarto" {
		t.Errorf("to a public body without a signature: %s %v", m.root.Local, m.codes())
	}
	for what, change := range map[string]func(*http.Request){
		"an unknown action": func(r *http.Request) {
			r.Header.Set("SOAPAction", `"http://www.fatturapa.it/SdIRiceviFile/Other"`)
		},
		"no envelope": func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("<a/>")); r.ContentLength = 4 },
		"a body of parts that breaks off": func(r *http.Request) {
			r.Header.Set("Content-Type", `multipart/related; boundary="b"`)
		},
	} {
		if status, said := x.post(x.name(), []byte("x"), change); status != http.StatusInternalServerError ||
			!said.Is(soap.Space11, "Fault") {
			t.Errorf("%s: %d", what, status)
		}
	}
	if status, said := x.post("IT-1.xml", []byte("x"), nil); status != http.StatusInternalServerError ||
		!said.Is(soap.Space11, "Fault") {
		t.Errorf("a name that no call may have: %d", status)
	}
	if status, _ := x.post(x.name(), []byte("x"), func(r *http.Request) {
		r.Header.Del(sdiwire.HeaderClient)
	}); status != http.StatusForbidden {
		t.Errorf("without a certificate: %d", status)
	}
	if n := len(x.held()); n > 0 {
		t.Errorf("%d registered", n)
	}
}

func TestAChannelThatIsNotEnabledIsToldSo(t *testing.T) {
	x := open(t)
	if status := x.control(http.MethodPut, "/channels/"+strings.ReplaceAll(x.client.Subject.CommonName, " ", "%20"),
		`{"callback":"`+x.receiver.URL+`","disabled":true}`); status != http.StatusNoContent {
		t.Fatal(status)
	}
	if id, code := x.send(x.name(), base(t, "F-1")); id != "0" || code != sdiwire.NotEnabled {
		t.Errorf("%s %s", id, code)
	}
	if n := len(x.held()); n > 0 {
		t.Errorf("%d registered", n)
	}
}

func TestAFileBesideItsEnvelopeIsTaken(t *testing.T) {
	x := open(t)
	envelope := `<e:Envelope xmlns:e="` + soap.Space11 + `" xmlns:t="` + sdiwire.SpaceTypes +
		`"><e:Body><t:fileSdIAccoglienza><NomeFile>IT12345678903_A.xml</NomeFile><File>` + sdiwire.Include +
		`</File></t:fileSdIAccoglienza></e:Body></e:Envelope>`
	kind, body := sdiwire.Pack([]byte(envelope), []byte(base(t, "F-1")), "text/xml")
	status, said := x.post("", nil, func(r *http.Request) {
		r.Header.Set("Content-Type", kind)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	})
	if m := x.hears(); status != http.StatusOK || m.kind != sdiwire.Delivered || m.id != said.Value("IdentificativoSdI") {
		t.Errorf("%d %+v", status, m)
	}
}

func TestMessagesComeUntilTheyAreAnswered(t *testing.T) {
	x := open(t)
	x.refuse <- http.StatusInternalServerError
	x.refuse <- http.StatusAccepted
	x.send(x.name(), base(t, "F-1"))
	if m := x.hears(); m.kind != sdiwire.Delivered || len(x.refuse) > 0 {
		t.Errorf("%+v", m)
	}
}

func TestWhatWasNotToldBeforeARestartIsToldBehindIt(t *testing.T) {
	x := open(t)
	for range cap(x.refuse) {
		x.refuse <- http.StatusServiceUnavailable
	}
	id, _ := x.send(x.name(), base(t, "F-1"))
	x.stop()
	for len(x.refuse) > 0 {
		<-x.refuse
	}
	x.start()
	if m := x.hears(); m.id != id || m.kind != sdiwire.Delivered {
		t.Errorf("%+v", m)
	}
	if n := len(x.held()); n != 1 {
		t.Errorf("%d registered", n)
	}
}

func TestEndingsAskForMessages(t *testing.T) {
	consumer := func(numero string) string {
		text := strings.Replace(base(t, numero), "ABC1234", sdiwire.NoAddress, 1)
		text = strings.Replace(text, "<PECDestinatario>acquisti@pec.example.it</PECDestinatario>", "", 1)
		return strings.Replace(text, "<IdFiscaleIVA><IdPaese>IT</IdPaese><IdCodice>07643520567</IdCodice></IdFiscaleIVA>",
			"", 1)
	}
	for _, s := range []struct {
		file string
		want []sdiwire.Kind
	}{
		{consumer("F-1"), []sdiwire.Kind{sdiwire.Undelivered}},
		{base(t, "F"+"1"+sdiwire.EndingUndelivered), []sdiwire.Kind{sdiwire.Undelivered}},
		{base(t, "F1"+sdiwire.EndingTwice), []sdiwire.Kind{sdiwire.Delivered, sdiwire.Delivered}},
		{base(t, "F1"+sdiwire.EndingAgreed), []sdiwire.Kind{sdiwire.Delivered, sdiwire.Outcome}},
		{base(t, "F1"+sdiwire.EndingDisagreed), []sdiwire.Kind{sdiwire.Delivered, sdiwire.Outcome}},
		{base(t, "F1"+sdiwire.EndingExpired), []sdiwire.Kind{sdiwire.Delivered, sdiwire.Expired}},
		{base(t, "F1"+sdiwire.EndingAttested), []sdiwire.Kind{sdiwire.Undelivered, sdiwire.Attested}},
		{base(t, "F1"+sdiwire.EndingDisordered), []sdiwire.Kind{sdiwire.Outcome, sdiwire.Delivered, sdiwire.Delivered}},
	} {
		t.Run(s.file[strings.Index(s.file, "<Numero>")+8:strings.Index(s.file, "</Numero>")], func(t *testing.T) {
			t.Parallel()
			x := open(t)
			x.send(x.name(), s.file)
			var got []sdiwire.Kind
			ids := map[string]bool{}
			for range s.want {
				m := x.hears()
				got = append(got, m.kind)
				ids[m.root.Value("MessageId")+string(m.kind)] = true
			}
			if !slices.Equal(got, s.want) {
				t.Errorf("%v instead of %v", got, s.want)
			}
			if distinct := len(slices.Compact(slices.Sorted(slices.Values(got)))); len(ids) != distinct {
				t.Errorf("%d names for %d messages: a repetition has the same", len(ids), distinct)
			}
			if n := len(x.held()); n != 1 {
				t.Errorf("%d registered", n)
			}
		})
	}
}

func TestScriptsArePlayed(t *testing.T) {
	x := open(t)
	play := func(steps ...authority.Step) {
		t.Helper()
		if err := x.desk.SetScript(steps); err != nil {
			t.Fatal(err)
		}
	}
	play(authority.Step{Outcome: authority.Unavailable})
	if id, code := x.send("IT12345678903_B1.xml", base(t, "F-1")); id != "0" || code != sdiwire.Unavailable {
		t.Fatalf("%s %s", id, code)
	}
	play(authority.Step{Outcome: authority.Garbage})
	if status, said := x.post("IT12345678903_B1.xml", []byte(base(t, "F-1")), nil); status != http.StatusOK ||
		said != nil {
		t.Fatalf("%d %v", status, said)
	}
	play(authority.Step{Outcome: authority.Reject})
	x.send("IT12345678903_B1.xml", base(t, "F-1")) // nothing was taken before: the name is free
	if m := x.hears(); !slices.Equal(m.codes(), []string{sdiwire.AddressUnknown}) {
		t.Fatalf("%v", m.codes())
	}
	play(authority.Step{Outcome: authority.DropAnswer})
	if status, _ := x.post("IT12345678903_B2.xml", []byte(base(t, "F-1")), nil); status != 0 {
		t.Fatalf("an answer: %d", status)
	}
	first := x.hears()
	id, _ := x.send("IT12345678903_B2.xml", base(t, "F-1"))
	if second := x.hears(); first.kind != sdiwire.Delivered || first.id == id || second.id != id ||
		!slices.Equal(second.codes(), []string{sdiwire.NameUsed}) {
		t.Errorf("after a lost answer: %+v, %+v", first, second)
	}
	play(authority.Step{Outcome: authority.Suspend}, authority.Step{Outcome: authority.Suspend},
		authority.Step{Outcome: authority.Accept})
	x.send(x.name(), base(t, "F-2"))
	if m := x.hears(); m.kind != sdiwire.Delivered {
		t.Errorf("pending: %s", m.kind)
	}
	play(authority.Step{Outcome: authority.Suspend}, authority.Step{Outcome: authority.Reject})
	x.send(x.name(), base(t, "F-3"))
	if m := x.hears(); m.kind != sdiwire.Refused {
		t.Errorf("pending, then refused: %s", m.kind)
	}
	if n := len(x.held()); n != 2 {
		t.Errorf("%d registered", n)
	}
}

func TestDuplicatesOfAScript(t *testing.T) {
	x := open(t)
	if err := x.desk.SetScript([]authority.Step{{Outcome: authority.Duplicate},
		{Outcome: authority.Duplicate, Of: authority.OfOurs}}); err != nil {
		t.Fatal(err)
	}
	x.send(x.name(), base(t, "F-1"))
	if m := x.hears(); !slices.Equal(m.codes(), []string{sdiwire.Duplicate}) {
		t.Errorf("another's: %v", m.codes())
	}
	id, _ := x.send(x.name(), base(t, "F-2"))
	kinds := map[sdiwire.Kind]string{}
	for range 2 {
		m := x.hears()
		kinds[m.kind] = m.id
	}
	if kinds[sdiwire.Refused] != id || kinds[sdiwire.Delivered] == "" || kinds[sdiwire.Delivered] == id {
		t.Errorf("ours: %v, answered %s", kinds, id)
	}
	sum := sha256.Sum256([]byte(base(t, "F-2")))
	if held := x.held(); len(held) != 2 || held[1].SHA256 != hex.EncodeToString(sum[:]) ||
		held[0].SHA256 == held[1].SHA256 {
		t.Errorf("%+v", held)
	}
}

func TestAnyMessageCanBeAskedFor(t *testing.T) {
	x := open(t)
	name := x.name()
	x.send(name, base(t, "F1"+sdiwire.EndingSilent))
	for _, m := range sdiwire.Messages() {
		esito := ""
		if m.Kind == sdiwire.Outcome {
			esito = `,"esito":"EC02"`
		}
		if status := x.control(http.MethodPost, "/messages",
			fmt.Sprintf(`{"file":%q,"kind":%q,"code":"00404"%s}`, name, m.Kind, esito)); status != http.StatusNoContent {
			t.Fatalf("%s: %d", m.Kind, status)
		}
		if got := x.hears(); got.kind != m.Kind {
			t.Errorf("%s instead of %s", got.kind, m.Kind)
		}
	}
	for body, status := range map[string]int{`{"file":"IT12345678903_9.xml","kind":"RC"}`: 404,
		`{"file":"` + name + `","kind":"XX"}`: 400, `{"file":"` + name + `","kind":"NE"}`: 400, `{"fil":1}`: 400} {
		if got := x.control(http.MethodPost, "/messages", body); got != status {
			t.Errorf("%s: %d", body, got)
		}
	}
}

// Over TLS the double shows its certificate on the connection.
func TestCallsOverTLSShowTheCertificate(t *testing.T) {
	x := open(t)
	x.receiver.Close()
	x.receiver = httptest.NewUnstartedServer(http.HandlerFunc(x.hear))
	x.receiver.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	x.receiver.StartTLS()
	x.send(x.name(), base(t, "F-1"))
	if m := x.hears(); m.client.Subject.CommonName != "SistemaInterscambioFatturaPASimulated" {
		t.Errorf("%s", m.client.Subject)
	}
}

func TestTheDoublesCAIsTheOneThatPacksKnow(t *testing.T) {
	x := open(t)
	resp, err := x.server.Client().Get(x.server.URL + "/channel")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(sdiwire.SimulatedCA))
	if !strings.Contains(string(text), strings.ReplaceAll(string(pem.EncodeToMemory(block)), "\n", `\n`)) {
		t.Errorf("%s", text)
	}
}

func TestTheServicesAreDescribed(t *testing.T) {
	x := open(t)
	for query, want := range map[string]string{"?wsdl": sdiwire.ActionFile,
		"?wsdl=TrasmissioneFatture": "TrasmissioneFatture/AttestazioneTrasmissioneFattura",
		"?xsd=types":                "rispostaSdIRiceviFile"} {
		resp, err := x.server.Client().Get(x.server.URL + sdiwire.Path + query)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "{address}") {
			t.Errorf("%s: %v %s", query, err, text)
		}
		if _, err := xmltree.Read(text); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	if status := x.control(http.MethodGet, sdiwire.Path, ""); status != http.StatusNotFound {
		t.Errorf("without a question: %d", status)
	}
}
