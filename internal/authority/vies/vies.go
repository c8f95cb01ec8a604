// Package vies is a strict double of VIES, the register of VAT numbers of the
// European Union: its REST protocol with its limits and error codes, and a
// control plane with scripts. It knows nothing of the client in package lookup.
package vies

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country/taxid"
)

// Path is where the simulated register stands below its listener;
// a client's base URL is the listener's address plus this path.
const Path = "/vies/rest-api"

// requestsKept bounds the simulator's memory of what it was asked.
const requestsKept = 1000

// Config sets a simulated register up. Zero fields take the defaults.
type Config struct {
	Parallel         int           // calls at a time before GLOBAL_MAX_CONCURRENT_REQ: 20
	ParallelPerState int           // calls at a time for one member state before MS_MAX_CONCURRENT_REQ: 5
	Latency          time.Duration // of every answer: none
	SlowFor          time.Duration // the outcome "slow" without a delay of its own: 5 s
	Now              func() time.Time
}

// Register is a strict double of the register: the real protocol below
// [Path] and the control plane below /_control/vies/. Numbers
// whose check digits are right are registered, others are not, except for the
// magic ones of docs/countries/vies.md.
type Register struct {
	config Config
	routes *http.ServeMux

	mu      sync.Mutex
	script  script
	total   int
	busy    int
	busyBy  map[string]int
	peak    int
	peakBy  map[string]int
	counts  map[string]int
	history []request // a ring once it is full
}

// request is one line of the control plane's list.
type request struct {
	CountryCode string    `json:"country_code"`
	VATNumber   string    `json:"vat_number"`
	Outcome     string    `json:"outcome"`
	At          time.Time `json:"at"`
}

// New returns a register in which every member state is available.
func New(config Config) *Register {
	if config.Parallel <= 0 {
		config.Parallel = 20
	}
	if config.ParallelPerState <= 0 {
		config.ParallelPerState = 5
	}
	if config.SlowFor <= 0 {
		config.SlowFor = 5 * time.Second
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &Register{config: config, routes: http.NewServeMux()}
	s.forget()
	s.routes.HandleFunc("POST "+Path+"/check-vat-number", s.checkNumber)
	s.routes.HandleFunc("POST "+Path+"/check-vat-test-service", s.checkTest)
	s.routes.HandleFunc("GET "+Path+"/ms/{state}/vat/{number}", s.checkByPath)
	s.routes.HandleFunc("GET "+Path+"/check-status", s.status)
	s.routes.HandleFunc("PUT /_control/vies/script", s.putScript)
	s.routes.HandleFunc("GET /_control/vies/requests", s.listRequests)
	s.routes.HandleFunc("DELETE /_control/vies/requests", s.deleteRequests)
	return s
}

func (s *Register) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// The outcomes of one question. Any other outcome is a code of the register.
const (
	outcomeFound    = "found"
	outcomeNotFound = "not_found"
	outcomeSlow     = "slow"
	outcomeGarbage  = "garbage"
	outcomeDrop     = "drop_answer"
)

// magicOutcome is the register's documented test service, and three outcomes
// of our own. Anything else is SERVICE_UNAVAILABLE there.
func magicOutcome(number string) (string, bool) {
	switch number {
	case "100":
		return outcomeFound, true
	case "200":
		return outcomeNotFound, true
	case "201":
		return "INVALID_INPUT", true
	case "202":
		return "INVALID_REQUESTER_INFO", true
	case "300":
		return "SERVICE_UNAVAILABLE", true
	case "301":
		return "MS_UNAVAILABLE", true
	case "302":
		return "TIMEOUT", true
	case "400":
		return "VAT_BLOCKED", true
	case "401":
		return "IP_BLOCKED", true
	case "500":
		return "GLOBAL_MAX_CONCURRENT_REQ", true
	case "501":
		return "GLOBAL_MAX_CONCURRENT_REQ_TIME", true
	case "600":
		return "MS_MAX_CONCURRENT_REQ", true
	case "601":
		return "MS_MAX_CONCURRENT_REQ_TIME", true
	case "900":
		return outcomeSlow, true
	case "901":
		return outcomeGarbage, true
	case "902":
		return outcomeDrop, true
	}
	return "", false
}

// magicInside finds a magic number in a real one: digits that begin with 99
// and a magic number. Check digits stand behind, so that most countries have
// such numbers that pass every local check.
func magicInside(number string) (string, bool) {
	digits := strings.TrimLeft(number, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	if len(digits) < 6 || digits[:2] != "99" {
		return "", false
	}
	return magicOutcome(digits[2:5])
}

func (s *Register) checkNumber(w http.ResponseWriter, r *http.Request) {
	if q, ok := readQuestion(w, r); ok {
		s.serve(w, r, q, endpoint{s.registered, s.writeReply})
	}
}

func (s *Register) checkTest(w http.ResponseWriter, r *http.Request) {
	if q, ok := readQuestion(w, r); ok {
		s.serve(w, r, q, endpoint{func(q question) string {
			if o, ok := magicOutcome(q.VATNumber); ok {
				return o
			}
			return "SERVICE_UNAVAILABLE"
		}, s.writeReply})
	}
}

func (s *Register) checkByPath(w http.ResponseWriter, r *http.Request) {
	q := question{CountryCode: r.PathValue("state"), VATNumber: r.PathValue("number")}
	if code := questionFault(q); code != "" {
		refuse(w, http.StatusBadRequest, code)
		return
	}
	s.serve(w, r, q, endpoint{s.registered, s.writePathReply})
}

// registered decides as a member state would: a number it could never have
// issued is not valid, which is an answer and not an error.
func (s *Register) registered(q question) string {
	if !slices.Contains(taxid.VIESStates(), q.CountryCode) {
		return "INVALID_INPUT"
	}
	if o, ok := magicInside(q.VATNumber); ok {
		return o
	}
	if state, number, ok := taxid.Check(q.CountryCode, q.VATNumber).VIES(); !ok || state != q.CountryCode ||
		number != q.VATNumber {
		return outcomeNotFound
	}
	return outcomeFound
}

// readQuestion checks the schema of a question. The codes VOW-ERR-… and their
// statuses are those the service was seen to give.
func readQuestion(w http.ResponseWriter, r *http.Request) (question, bool) {
	var q question
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "VOW-ERR-1")
		return q, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<10))
	if err != nil || json.Unmarshal(body, &q) != nil {
		refuse(w, http.StatusInternalServerError, "VOW-ERR-1")
		return q, false
	}
	if code := questionFault(q); code != "" {
		refuse(w, http.StatusBadRequest, code)
		return q, false
	}
	return q, true
}

func questionFault(q question) string {
	switch {
	case q.CountryCode == "" || q.VATNumber == "":
		return "VOW-ERR-11" // a mandatory field is missing
	case !isState(q.CountryCode):
		return "INVALID_INPUT"
	case !isNumber(q.VATNumber):
		return "VOW-ERR-2600" // the VAT number does not respect the configured pattern
	case q.RequesterState == "" && q.RequesterNumber == "":
		return ""
	case !isState(q.RequesterState):
		return "VOW-ERR-2500" // the requester member state code is invalid
	case !isNumber(q.RequesterNumber):
		return "VOW-ERR-2700" // the requester VAT number does not respect the configured pattern
	}
	return ""
}

// isState is the pattern [A-Z]{2} of the service's WSDL.
func isState(text string) bool {
	return len(text) == 2 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'A' && text[1] <= 'Z'
}

// isNumber is the pattern [0-9A-Za-z\+\*\.]{2,12} of the service's WSDL.
func isNumber(text string) bool {
	for _, r := range text {
		if !strings.ContainsRune("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+*.", r) {
			return false
		}
	}
	return len(text) >= 2 && len(text) <= 12
}

// endpoint is what two addresses of the register do differently.
type endpoint struct {
	decide func(question) string
	write  func(w http.ResponseWriter, q question, outcome string)
}

// serve answers one well-formed question: limits first, then outages and the
// script, then what the number itself asks for.
func (s *Register) serve(w http.ResponseWriter, r *http.Request, q question, at endpoint) {
	code := s.enter(q.CountryCode)
	defer s.leave(q.CountryCode)
	outcome, delay := code, s.config.Latency
	if code == "" {
		outcome, delay = s.outcome(q, at.decide)
	}
	s.record(q, outcome)
	if !authority.Pause(r.Context(), delay) {
		return
	}
	switch outcome {
	case outcomeGarbage:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html><body>Maintenance</body></html>")
	case outcomeDrop:
		panic(http.ErrAbortHandler)
	default:
		at.write(w, q, outcome)
	}
}

// isAnswer tells what the register knows from the codes it fails with.
func isAnswer(outcome string) bool {
	return outcome == outcomeFound || outcome == outcomeNotFound || outcome == outcomeSlow
}

func (s *Register) writeReply(w http.ResponseWriter, q question, outcome string) {
	if !isAnswer(outcome) {
		refuse(w, http.StatusOK, outcome)
		return
	}
	writeJSON(w, http.StatusOK, s.reply(q, outcome != outcomeNotFound))
}

// writePathReply is the shape of GET /ms/{cc}/vat/{number}. Its trap is real:
// a member state that is out comes as "isValid": false with the code beside it.
func (s *Register) writePathReply(w http.ResponseWriter, q question, outcome string) {
	reply := s.reply(q, isAnswer(outcome) && outcome != outcomeNotFound)
	userError := outcome
	if isAnswer(outcome) {
		userError = "INVALID"
		if reply.Valid {
			userError = "VALID"
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"isValid": reply.Valid, "requestDate": reply.RequestDate, "userError": userError,
		"name": reply.Name, "address": reply.Address, "requestIdentifier": "", "originalVatNumber": q.VATNumber,
		"vatNumber": q.VATNumber})
}

func (s *Register) outcome(q question, decide func(question) string) (string, time.Duration) {
	s.mu.Lock()
	step, scripted := s.script.next(q.CountryCode)
	s.mu.Unlock()
	outcome, delay := step.outcome, s.config.Latency+step.delay
	if !scripted {
		outcome = decide(q)
	}
	if outcome == outcomeSlow && step.delay == 0 {
		delay += s.config.SlowFor
	}
	return outcome, delay
}

// enter counts a call in and returns the code of the limit it breaks, if any.
func (s *Register) enter(state string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
	s.busyBy[state]++
	s.peak = max(s.peak, s.busy)
	s.peakBy[state] = max(s.peakBy[state], s.busyBy[state])
	switch {
	case s.busy > s.config.Parallel:
		return "GLOBAL_MAX_CONCURRENT_REQ"
	case s.busyBy[state] > s.config.ParallelPerState:
		return "MS_MAX_CONCURRENT_REQ"
	}
	return ""
}

func (s *Register) leave(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	if s.busyBy[state]--; s.busyBy[state] == 0 {
		delete(s.busyBy, state)
	}
}

// viesReply is an answer in the recorded shape of check-vat-number.
type viesReply struct {
	CountryCode       string `json:"countryCode"`
	VATNumber         string `json:"vatNumber"`
	RequestDate       string `json:"requestDate"`
	Valid             bool   `json:"valid"`
	RequestIdentifier string `json:"requestIdentifier"`
	Name              string `json:"name"`
	Address           string `json:"address"`
}

func (s *Register) reply(q question, valid bool) viesReply {
	reply := viesReply{CountryCode: q.CountryCode, VATNumber: q.VATNumber, Valid: valid, Name: "---", Address: "---",
		RequestDate: s.config.Now().UTC().Format("2006-01-02T15:04:05.000Z")}
	if q.RequesterNumber != "" {
		s.mu.Lock()
		reply.RequestIdentifier = fmt.Sprintf("WAPI%012d", s.total)
		s.mu.Unlock()
	}
	// Germany and Spain confirm numbers without saying whose they are.
	if valid && q.CountryCode != "DE" && q.CountryCode != "ES" {
		reply.Name = "Simulated Business " + q.CountryCode + q.VATNumber
		reply.Address = "1 Register Street\n10000 Sampletown\n" + q.CountryCode
	}
	return reply
}

func (s *Register) status(w http.ResponseWriter, _ *http.Request) {
	type line struct {
		CountryCode  string `json:"countryCode"`
		Availability string `json:"availability"`
	}
	var body struct {
		VOW struct {
			Available bool `json:"available"`
		} `json:"vow"`
		Countries []line `json:"countries"`
	}
	body.VOW.Available = true
	s.mu.Lock()
	for _, code := range taxid.VIESStates() {
		availability := "Available"
		if slices.Contains(s.script.Outages, code) {
			availability = "Unavailable"
		}
		body.Countries = append(body.Countries, line{code, availability})
	}
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, body)
}

func refuse(w http.ResponseWriter, status int, code string) {
	type wrapper struct {
		Error string `json:"error"`
	}
	writeJSON(w, status, struct {
		ActionSucceed bool      `json:"actionSucceed"`
		ErrorWrappers []wrapper `json:"errorWrappers"`
	}{false, []wrapper{{code}}})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that has gone is no concern of the register.
	_ = json.NewEncoder(w).Encode(body)
}
