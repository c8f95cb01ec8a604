package authority

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// scriptBytesMax bounds the body of a script.
const scriptBytesMax = 1 << 20

// Double makes a simulated authority, which speaks its own wire protocol below
// "/" and keeps what it registered at its desk.
type Double func(*Desk) http.Handler

// Simulators are the simulated authorities of many countries behind one handler:
// each speaks its own protocol below "/{cc}/" (lower case), and the control
// plane stands below "/_control/".
//
// An authority that identifies senders by TLS client certificate reads it with
// [ClientCertificate]: from the TLS connection when the listener asks for
// certificates (tls.Config.ClientAuth = tls.RequestClientCert, which lets the
// other authorities ignore it), or from the Client-Cert header when the
// listener is plain HTTP, where the caller puts it.
type Simulators struct {
	mux   *http.ServeMux
	desks map[string]*Desk // by lower-case code
}

// NewSimulators opens doubles by the codes of their countries, upper case. Their
// books live in dir and are read again after a restart.
func NewSimulators(dir string, doubles map[string]Double) (*Simulators, error) {
	s := &Simulators{mux: http.NewServeMux(), desks: map[string]*Desk{}}
	for code, double := range doubles {
		desk, err := OpenDesk(dir, code)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		cc := strings.ToLower(code)
		s.desks[cc] = desk
		s.mux.Handle("/"+cc+"/", http.StripPrefix("/"+cc, double(desk)))
	}
	s.mux.HandleFunc("/_control/{cc}/registrations", s.onDesk(registrations))
	s.mux.HandleFunc("/_control/{cc}/script", s.onDesk(script))
	return s, nil
}

// ServeHTTP serves the authorities and the control plane.
func (s *Simulators) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Desk answers the desk of a country, for tests in the same process.
func (s *Simulators) Desk(code string) (*Desk, bool) {
	d, ok := s.desks[strings.ToLower(code)]
	return d, ok
}

// Close closes every book.
func (s *Simulators) Close() error {
	var all []error
	for _, d := range s.desks {
		all = append(all, d.Close())
	}
	return errors.Join(all...)
}

func (s *Simulators) onDesk(serve func(*Desk, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		desk, ok := s.desks[strings.ToLower(r.PathValue("cc"))]
		if !ok {
			refuse(w, http.StatusNotFound, fault.New(fault.NotFound, "there is no simulated authority for %q", r.PathValue("cc")))
			return
		}
		serve(desk, w, r)
	}
}

// registrations serves GET /_control/{cc}/registrations.
func registrations(d *Desk, w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodGet) {
		return
	}
	all, err := d.Registrations()
	if err != nil {
		refuse(w, http.StatusInternalServerError, fault.New(fault.Internal, "the book cannot be read"))
		return
	}
	if all == nil {
		all = []Registration{}
	}
	respond(w, http.StatusOK, struct {
		Count         int            `json:"count"`
		Registrations []Registration `json:"registrations"`
	}{len(all), all})
}

// scriptBody is the JSON form of a script.
type scriptBody struct {
	Steps *[]stepBody `json:"steps"`
}

type stepBody struct {
	Outcome Behaviour `json:"outcome"`
	Times   *int      `json:"times,omitempty"`
	Delay   string    `json:"delay,omitempty"`
	Wait    string    `json:"wait,omitempty"`
	On      string    `json:"on,omitempty"`
	Of      string    `json:"of,omitempty"`
}

// script serves GET, PUT and DELETE /_control/{cc}/script.
func script(d *Desk, w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodGet, http.MethodPut, http.MethodDelete) {
		return
	}
	switch r.Method {
	case http.MethodPut:
		steps, err := readScript(http.MaxBytesReader(w, r.Body, scriptBytesMax))
		if err == nil {
			err = d.SetScript(steps)
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
	case http.MethodDelete:
		if err := d.SetScript(nil); err != nil {
			refuse(w, http.StatusInternalServerError, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	respond(w, http.StatusOK, scriptOf(d.Script()))
}

func scriptOf(steps []Step) scriptBody {
	rest := make([]stepBody, 0, len(steps))
	for _, s := range steps {
		body := stepBody{Outcome: s.Outcome, Times: &s.Times, On: s.On, Of: s.Of}
		if s.Delay > 0 {
			body.Delay = s.Delay.String()
		}
		if s.Wait > 0 {
			body.Wait = s.Wait.String()
		}
		rest = append(rest, body)
	}
	return scriptBody{Steps: &rest}
}

// readScript reads the JSON form strictly: a misspelt step that is silently
// left out would let a test pass that tests nothing.
func readScript(in io.Reader) ([]Step, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the script cannot be read: %s", err)
	}
	var body scriptBody
	if err := strictjson.Unmarshal(text, scriptBytesMax, "the script", &body); err != nil {
		return nil, err
	}
	if body.Steps == nil {
		return nil, fault.New(fault.Invalid, "the script is not valid").
			With(fault.At("steps", fault.FieldRequired, "is required"))
	}
	steps := make([]Step, 0, len(*body.Steps))
	var found []fault.Fault
	for i, b := range *body.Steps {
		at := fmt.Sprintf("steps.%d", i)
		step := Step{Outcome: b.Outcome, Times: 1, On: b.On, Of: b.Of}
		if b.Times != nil {
			step.Times = *b.Times
		}
		if step.Times == 0 {
			step.Times = -1 // "not at all" is no step; it is refused with the negative ones
		}
		var faults []fault.Fault
		step.Delay, faults = readDuration(at+".delay", b.Delay)
		found = append(found, faults...)
		step.Wait, faults = readDuration(at+".wait", b.Wait)
		found = append(found, faults...)
		steps = append(steps, step)
	}
	if len(found) > 0 {
		return nil, fault.New(fault.Invalid, "the script is not valid").With(found...)
	}
	return steps, nil
}

func readDuration(field, text string) (time.Duration, []fault.Fault) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, []fault.Fault{fault.At(field, fault.FieldNotValid, "must be a duration like 2s")}
	}
	return d, nil
}

func allow(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	for _, m := range methods {
		if r.Method == m {
			return true
		}
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	refuse(w, http.StatusMethodNotAllowed, fault.New(fault.Invalid, "the path does not know the method %s", r.Method).
		With(fault.Fault{Code: fault.MethodNotAllowed, Type: fault.General, Message: "allowed: " + strings.Join(methods, ", ")}))
	return false
}

// refuse answers an error in the shape of the API's own errors.
func refuse(w http.ResponseWriter, status int, err error) {
	body := struct {
		Message string        `json:"message"`
		Errors  []fault.Fault `json:"errors"`
	}{Message: "internal error", Errors: []fault.Fault{}}
	var known *fault.Error
	if errors.As(err, &known) {
		body.Message = known.Message
		body.Errors = append(body.Errors, known.Faults...)
	}
	respond(w, status, body)
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a caller that left is nobody to tell
}
