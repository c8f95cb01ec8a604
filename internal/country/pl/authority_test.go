package pl_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/country/pl/wire"
	"tributary/internal/official/ksefwire"
)

// stranger talks to the double by hand, so that it can do everything wrong.
type stranger struct {
	*ministry
	access  string
	session string
	key, iv []byte
}

// said is an answer: its status, KSeF's code of a refusal, and its body.
type said struct {
	status int
	code   int
	body   map[string]any
}

func (s *stranger) call(method, path, bearer string, in any) said {
	s.t.Helper()
	var body []byte
	media := "application/json"
	switch v := in.(type) {
	case nil:
	case []byte:
		body, media = v, "application/xml"
	default:
		var err error
		if body, err = json.Marshal(v); err != nil {
			s.t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+"/v2"+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", media)
	r.Header.Set("X-Error-Format", "problem-details")
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	out := said{status: resp.StatusCode}
	if json.Unmarshal(text, &out.body) == nil {
		if all, ok := out.body["errors"].([]any); ok && len(all) > 0 {
			out.code = int(all[0].(map[string]any)["code"].(float64))
		}
	}
	return out
}

func (s said) at(names ...string) string {
	var v any = s.body
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return fmt.Sprint(v)
}

func encryptFor(t testing.TB, text []byte) string {
	t.Helper()
	out, err := rsa.EncryptOAEP(sha256.New(), rand.Reader, &ministryKey().PublicKey, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out)
}

// begin authenticates with a token and a change to the request.
func (s *stranger) begin(change func(map[string]any)) said {
	s.t.Helper()
	c := s.call(http.MethodPost, "/auth/challenge", "", nil)
	in := map[string]any{
		"challenge": c.at("challenge"), "contextIdentifier": map[string]any{"type": "Nip", "value": supplierNIP},
		"encryptedToken": encryptFor(s.t, fmt.Appendf(nil, "token|%.0f", c.body["timestampMs"])),
	}
	change(in)
	return s.call(http.MethodPost, "/auth/ksef-token", "", in)
}

func newStranger(t *testing.T) *stranger {
	s := &stranger{ministry: newMinistry(t), key: bytes.Repeat([]byte{7}, 32), iv: bytes.Repeat([]byte{9}, 16)}
	begun := s.begin(func(map[string]any) {})
	tokens := s.call(http.MethodPost, "/auth/token/redeem", begun.at("authenticationToken", "token"), nil)
	s.access = tokens.at("accessToken", "token")
	opened := s.open(func(map[string]any) {})
	if opened.status != http.StatusCreated {
		t.Fatalf("opening a session: %+v", opened)
	}
	s.session = opened.at("referenceNumber")
	return s
}

func (s *stranger) open(change func(map[string]any)) said {
	s.t.Helper()
	in := map[string]any{
		"formCode":   map[string]any{"systemCode": "FA (3)", "schemaVersion": "1-0E", "value": "FA"},
		"encryption": map[string]any{"encryptedSymmetricKey": encryptFor(s.t, s.key), "initializationVector": s.iv},
	}
	change(in)
	return s.call(http.MethodPost, "/sessions/online", s.access, in)
}

func (s *stranger) file(document []byte, change func(map[string]any)) said {
	s.t.Helper()
	content := wire.Seal(document, s.key, s.iv)
	plain, hidden := sha256.Sum256(document), sha256.Sum256(content)
	in := map[string]any{
		"invoiceHash": plain[:], "invoiceSize": len(document), "encryptedInvoiceHash": hidden[:],
		"encryptedInvoiceSize":    len(content),
		"encryptedInvoiceContent": content,
	}
	change(in)
	return s.call(http.MethodPost, "/sessions/online/"+s.session+"/invoices", s.access, in)
}

// judged sends a document and answers KSeF's status of it.
func (s *stranger) judged(document []byte, change func(map[string]any)) said {
	s.t.Helper()
	sent := s.file(document, change)
	if sent.status != http.StatusAccepted {
		s.t.Fatalf("not taken: %+v", sent)
	}
	return s.call(http.MethodGet, "/sessions/"+s.session+"/invoices/"+sent.at("referenceNumber"), s.access, nil)
}

func asIs(map[string]any) {}

func TestDoubleRefusesAuthenticationsInKSeFsWords(t *testing.T) {
	s := newStranger(t)
	for what, c := range map[string]struct {
		change func(map[string]any)
		status int
		code   int
	}{
		"an unknown challenge": {func(in map[string]any) { in["challenge"] = challenge }, 400, 21111},
		"an unknown key":       {func(in map[string]any) { in["publicKeyId"] = strings.Repeat("A", 43) + "=" }, 400, 21470},
		"no NIP": {func(in map[string]any) {
			in["contextIdentifier"] = map[string]any{"type": "Nip", "value": "123"}
		}, 400, 21405},
		"no Base64":         {func(in map[string]any) { in["encryptedToken"] = "!" }, 400, 21405},
		"an unknown member": {func(in map[string]any) { in["token"] = "x" }, 400, 21405},
	} {
		if got := s.begin(c.change); got.status != c.status || got.code != c.code {
			t.Errorf("%s: %+v", what, got)
		}
	}
	for what, text := range map[string]string{"another time": "token|1", "no time": "token", "another key": ""} {
		begun := s.begin(func(in map[string]any) {
			in["encryptedToken"] = encryptFor(t, []byte(text))
			if text == "" {
				in["encryptedToken"] = base64.StdEncoding.EncodeToString(make([]byte, 256))
			}
		})
		state := s.call(http.MethodGet, "/auth/"+begun.at("referenceNumber"), begun.at("authenticationToken", "token"), nil)
		if state.at("status", "code") != "450" {
			t.Errorf("%s: %+v", what, state)
		}
		if redeemed := s.call(http.MethodPost, "/auth/token/redeem", begun.at("authenticationToken", "token"),
			nil); redeemed.code != 21301 {
			t.Errorf("%s: redeemed %+v", what, redeemed)
		}
	}
	begun := s.begin(asIs)
	bearer := begun.at("authenticationToken", "token")
	if got := s.call(http.MethodGet, "/auth/"+challenge, bearer, nil); got.code != 21304 {
		t.Errorf("another's authentication: %+v", got)
	}
	s.call(http.MethodPost, "/auth/token/redeem", bearer, nil)
	if got := s.call(http.MethodPost, "/auth/token/redeem", bearer, nil); got.code != 21301 {
		t.Errorf("redeemed twice: %+v", got)
	}
	for what, bearer := range map[string]string{"none": "", "rubbish": "a.b.c", "of another kind": bearer,
		"forged": s.access[:len(s.access)-4] + "AAAA"} {
		if got := s.call(http.MethodGet, "/sessions/"+s.session, bearer, nil); got.status != http.StatusUnauthorized {
			t.Errorf("a token that is %s: %+v", what, got)
		}
	}
	if got := s.call(http.MethodPost, "/auth/xades-signature", "", []byte("<x/>")); got.code != 9102 {
		t.Errorf("unsigned: %+v", got)
	}
	signed, err := wire.SignedRequest(challenge, supplierNIP, opened(t), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.call(http.MethodPost, "/auth/xades-signature", "", signed); got.code != 21111 {
		t.Errorf("an unknown challenge: %+v", got)
	}
	s.advance(16 * time.Minute)
	if got := s.call(http.MethodGet, "/sessions/"+s.session, s.access, nil); got.status != http.StatusUnauthorized {
		t.Errorf("an old token: %+v", got)
	}
}

func TestDoubleRefusesSessionsAndCallsInKSeFsWords(t *testing.T) {
	s := newStranger(t)
	for what, c := range map[string]struct {
		change func(map[string]any)
		code   int
	}{
		"another form": {func(in map[string]any) {
			in["formCode"] = map[string]any{"systemCode": "FA (2)", "schemaVersion": "1-0E", "value": "FA"}
		}, 21405},
		"a short key": {func(in map[string]any) {
			in["encryption"].(map[string]any)["encryptedSymmetricKey"] = encryptFor(t, []byte("short"))
		}, 21405},
		"a short vector": {func(in map[string]any) {
			in["encryption"].(map[string]any)["initializationVector"] = []byte("short")
		}, 21405},
		"an unknown key": {func(in map[string]any) {
			in["encryption"].(map[string]any)["publicKeyId"] = strings.Repeat("B", 43) + "="
		}, 21470},
	} {
		if got := s.open(c.change); got.status != 400 || got.code != c.code {
			t.Errorf("%s: %+v", what, got)
		}
	}
	document := s.prepare(invoice("FV/1")).Report
	for what, c := range map[string]struct {
		change func(map[string]any)
		code   int
	}{
		"another size":      {func(in map[string]any) { in["encryptedInvoiceSize"] = 1 }, 21402},
		"another hash":      {func(in map[string]any) { in["encryptedInvoiceHash"] = make([]byte, 32) }, 21403},
		"a short hash":      {func(in map[string]any) { in["invoiceHash"] = []byte("x") }, 21405},
		"no content":        {func(in map[string]any) { delete(in, "encryptedInvoiceContent") }, 21405},
		"an unknown member": {func(in map[string]any) { in["invoice"] = "x" }, 21405},
	} {
		if got := s.file(document, c.change); got.status != 400 || got.code != c.code {
			t.Errorf("%s: %+v", what, got)
		}
	}
	real := s.session
	s.session = challenge
	if got := s.file(document, asIs); got.code != 21173 {
		t.Errorf("an unknown session: %+v", got)
	}
	s.session = real
	if got := s.call(http.MethodPost, "/sessions/online/"+real+"/close", s.access,
		nil); got.status != http.StatusNoContent {
		t.Errorf("closing: %+v", got)
	}
	if got := s.call(http.MethodPost, "/sessions/online/"+real+"/close", s.access, nil); got.code != 21180 {
		t.Errorf("closing twice: %+v", got)
	}
	if got := s.file(document, asIs); got.code != 21180 {
		t.Errorf("a closed session: %+v", got)
	}
	if s.held() != 0 {
		t.Errorf("%d are held", s.held())
	}
}

func TestDoubleJudgesInvoicesInKSeFsWords(t *testing.T) {
	s := newStranger(t)
	document := string(s.prepare(invoice("FV/1")).Report)
	correction := string(s.prepare(correctionCases()[0].Draft).Report)
	tomorrow := time.Now().In(warsaw()).AddDate(0, 0, 1).Format(time.DateOnly)
	swap := func(text, old, with string) string {
		t.Helper()
		out := strings.Replace(text, old, with, 1)
		if out == text {
			t.Fatalf("%q is not there", old)
		}
		return out
	}
	for what, c := range map[string]struct {
		document string
		change   func(map[string]any)
		code     string
	}{
		"another hash":             {document, func(in map[string]any) { in["invoiceHash"] = make([]byte, 32) }, "430"},
		"another size":             {document, func(in map[string]any) { in["invoiceSize"] = 1 }, "430"},
		"a byte order mark":        {"\xEF\xBB\xBF" + document, asIs, "430"},
		"another encoding":         {swap(document, "UTF-8", "ISO-8859-2"), asIs, "430"},
		"a processing instruction": {swap(document, "<Naglowek>", "<?x y?><Naglowek>"), asIs, "430"},
		"a document type":          {swap(document, "<Faktura", "<!DOCTYPE Faktura><Faktura"), asIs, "430"},
		"a control character":      {swap(document, "Herbata", "Herb\u0082ata"), asIs, "430"},
		"no XML":                   {"hello", asIs, "430"},
		"cut short":                {document[:len(document)-3], asIs, "430"},
		"too large": {swap(document, "</Faktura>",
			"<!--"+strings.Repeat("x", ksefwire.DocumentBytesMax)+"--></Faktura>"), asIs, "430"},
		"an attachment":      {swap(document, "</Faktura>", "<Zalacznik/></Faktura>"), asIs, "415"},
		"another seller":     {swap(document, supplierNIP, buyerNIP), asIs, "410"},
		"a day to come":      {swap(document, "<P_1>2025-10-07", "<P_1>"+tomorrow), asIs, "450"},
		"a NIP that is none": {swap(document, buyerNIP, "7740001455"), asIs, "450"},
		"an internal id of no NIP": {swap(document, "</Podmiot2>",
			"</Podmiot2><Podmiot3><DaneIdentyfikacyjne><IDWew>5260250275-00012</IDWew><Nazwa>S</Nazwa></DaneIdentyfikacyjne><Rola>8</Rola></Podmiot3>"), asIs, "450"},
		"an element missing":          {swap(document, "<JST>2</JST>", ""), asIs, "450"},
		"elements out of order":       {swap(document, "<JST>2</JST><GV>2</GV>", "<GV>2</GV><JST>2</JST>"), asIs, "450"},
		"an unknown rate":             {swap(document, "<P_12>23", "<P_12>21"), asIs, "450"},
		"an unknown currency":         {swap(document, "<KodWaluty>PLN", "<KodWaluty>XYZ"), asIs, "450"},
		"three decimals":              {swap(document, "<P_15>227.10", "<P_15>227.100"), asIs, "450"},
		"an empty name":               {swap(document, "Żabka Testowa sp. z o.o.", ""), asIs, "450"},
		"a name too long":             {swap(document, "Żabka Testowa sp. z o.o.", strings.Repeat("x", 513)), asIs, "450"},
		"another namespace":           {swap(document, "13775", "13776"), asIs, "450"},
		"another version":             {swap(document, "1-0E", "1-0F"), asIs, "450"},
		"a correction of nothing":     {swap(document, ">VAT<", ">KOR<"), asIs, "450"},
		"a KSeF number that is none":  {swap(correction, "1AF629-AF", "1AF629-AE"), asIs, "450"},
		"an invoice with an original": {swap(correction, ">KOR<", ">VAT<"), asIs, "450"},
	} {
		got := s.judged([]byte(c.document), c.change)
		if got.at("status", "code") != c.code {
			t.Errorf("%s: %+v instead of %s", what, got.body["status"], c.code)
		}
		if got.body["ksefNumber"] != nil {
			t.Errorf("%s: it has a number", what)
		}
	}
	other := s.key
	s.key = bytes.Repeat([]byte{1}, 32)
	if got := s.judged([]byte(document), asIs); got.at("status", "code") != "435" {
		t.Errorf("another key: %+v", got)
	}
	s.key = other
	if s.held() != 0 {
		t.Fatalf("%d are held", s.held())
	}
	if got := s.judged([]byte(document), asIs); got.at("status", "code") != "200" ||
		!ksefwire.ValidNumber(got.at("ksefNumber")) {
		t.Errorf("as it is: %+v", got)
	}
	if got := s.judged([]byte(document), asIs); got.at("status", "code") != "440" ||
		!ksefwire.ValidNumber(got.at("status", "extensions", "originalKsefNumber")) {
		t.Errorf("twice: %+v", got)
	}
}

func TestDoubleAnswersQueriesStrictly(t *testing.T) {
	s := newStranger(t)
	query := func(path string, change func(map[string]any)) said {
		in := map[string]any{"subjectType": "Subject1",
			"dateRange": map[string]any{"dateType": "Issue", "from": "2025-10-07T00:00:00", "to": "2025-10-07T23:59:59+02:00"}}
		change(in)
		return s.call(http.MethodPost, "/invoices/query/metadata"+path, s.access, in)
	}
	s.judged(s.prepare(invoice("FV/1")).Report, asIs)
	if got := query("", asIs); len(got.body["invoices"].([]any)) != 1 {
		t.Errorf("%+v", got)
	}
	for what, change := range map[string]func(map[string]any){
		"as a buyer":      func(in map[string]any) { in["subjectType"] = "Subject2" },
		"another seller":  func(in map[string]any) { in["sellerNip"] = buyerNIP },
		"another number":  func(in map[string]any) { in["invoiceNumber"] = "FV/2" },
		"another type":    func(in map[string]any) { in["invoiceTypes"] = []string{"Kor"} },
		"another form":    func(in map[string]any) { in["formType"] = "PEF" },
		"another invoice": func(in map[string]any) { in["ksefNumber"] = "5265877635-20250826-0100001AF629-AF" },
		"another day": func(in map[string]any) {
			in["dateRange"].(map[string]any)["to"] = "2025-10-07T00:00:00+03:00"
			in["dateRange"].(map[string]any)["from"] = "2025-10-06T00:00:00"
		},
	} {
		if got := query("", change); got.status != 200 || len(got.body["invoices"].([]any)) != 0 {
			t.Errorf("%s: %+v", what, got)
		}
	}
	for what, change := range map[string]func(map[string]any){
		"no range":           func(in map[string]any) { delete(in, "dateRange") },
		"four months":        func(in map[string]any) { in["dateRange"].(map[string]any)["to"] = "2026-02-07T00:00:00Z" },
		"another date type":  func(in map[string]any) { in["dateRange"].(map[string]any)["dateType"] = "Other" },
		"another subject":    func(in map[string]any) { in["subjectType"] = "Subject9" },
		"an unknown filter":  func(in map[string]any) { in["colour"] = "red" },
		"a range in reverse": func(in map[string]any) { in["dateRange"].(map[string]any)["to"] = "2025-10-01T00:00:00Z" },
	} {
		if got := query("", change); got.code != 21405 {
			t.Errorf("%s: %+v", what, got)
		}
	}
	for _, path := range []string{"?pageSize=9", "?pageSize=251", "?pageOffset=-1", "?pageSize=x"} {
		if got := query(path, asIs); got.code != 21405 {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func TestSessionThatKSeFForgotIsNoProblem(t *testing.T) {
	m := newMinistry(t)
	held := m.mustSend("FV/1")
	gone := country.Receipt{Outcome: country.Pending, Handle: challenge + "/" + challenge}
	r, err := m.channel.Poll(t.Context(), m.prepare(invoice("FV/1")), gone, token())
	if err != nil || r.Outcome != country.Accepted || !r.Duplicate || r.AuthorityID1 != held.AuthorityID1 ||
		len(r.Document) == 0 {
		t.Errorf("an invoice that is held: %+v %v", r, err)
	}
	f := m.prepare(invoice("FV/2"))
	r, err = m.channel.Poll(t.Context(), f, gone, token())
	if err != nil || r.Outcome != country.Pending || r.Handle == gone.Handle {
		t.Fatalf("an invoice that is not: %+v %v", r, err)
	}
	if r, err = m.channel.Poll(t.Context(), f, r, token()); err != nil || r.Outcome != country.Accepted || m.held() != 2 {
		t.Errorf("%+v %v, %d held", r, err, m.held())
	}
}

func TestMagicNumbersAskForRealOutcomes(t *testing.T) {
	m := newMinistry(t)
	r, err := m.send("FV/1-REJECT")
	if err != nil || r.Outcome != country.Rejected ||
		!strings.Contains(r.Faults[0].Message, "450 Błąd weryfikacji semantyki dokumentu faktury") {
		t.Errorf("-REJECT: %+v %v", r, err)
	}
	f := m.prepare(invoice("FV/2-LOST"))
	if _, err := m.sendFiling(f, token()); err == nil || m.held() != 1 {
		t.Errorf("-LOST: %v, %d held", err, m.held())
	}
	if r, err := m.channel.Find(t.Context(), f, token()); err != nil || r.Outcome != country.Accepted ||
		r.SHA256 != f.SHA256 {
		t.Errorf("-LOST: %+v %v", r, err)
	}
	for range 3 {
		if _, err := m.send("FV/3-OUTAGE"); err == nil {
			t.Error("-OUTAGE: answered")
		}
	}
	m.mustSend("FV/3-OUTAGE")
	if err := m.desk.SetScript([]authority.Step{{Outcome: authority.Unavailable, Wait: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	if r, err := m.send("FV/4"); err != nil || r.Outcome != country.NotTaken || r.Wait != time.Minute {
		t.Errorf("a limit of calls: %+v %v", r, err)
	}
}
