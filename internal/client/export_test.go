package client

import (
	"context"
	"io"
	"net/http"
)

// The parts of a run, for tests that look at one of them.
type (
	StateHead   = stateHead
	StateRecord = stateRecord
	StateFile   = stateFile
	Refusal     = refusal
	Result      = result
)

// Figures of the package.
const (
	StateVersion     = stateVersion
	ReceivedBytesMax = receivedBytesMax
	Succeeded        = rowSuccess
)

var (
	OpenState      = openState
	WriteCSVReport = writeCSVReport
)

// Add stores a record.
func (s *StateFile) Add(r StateRecord) error { return s.add(r) }

// Known is what earlier runs wrote.
func (s *StateFile) Known() map[string]StateRecord { return s.known }

// ParseState reads the text of a state file.
func ParseState(text []byte, head StateHead) (map[string]StateRecord, error) {
	s := &stateFile{known: map[string]stateRecord{}}
	return s.known, s.parse("x", text, head)
}

// Bodies reads files as a run does and returns what would be sent.
func Bodies(paths ...string) (bodies []string, err error) {
	entries, err := readEntries(paths)
	for _, e := range entries {
		bodies = append(bodies, string(e.body))
	}
	return bodies, err
}

// BodiesOf reads one text as a file of that name, by transaction_id.
func BodiesOf(name string, text io.Reader) (map[string][]byte, error) {
	in := &input{byID: map[string]int{}}
	err := readerOf(name)(in, name, text)
	all := map[string][]byte{}
	for _, e := range in.entries {
		all[e.id] = e.body
	}
	return all, err
}

// Service is what a run asks, over a transport of the test's own.
type Service struct{ s *service }

// NewService asks once: nothing is tried again.
func NewService(transport http.RoundTripper) Service {
	return Service{&service{base: "http://service.test", path: "/v1/transactions", http: &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}}
}

// Submit posts a body.
func (s Service) Submit(ctx context.Context, body []byte) (operation string, refused *Refusal, err error) {
	return s.s.submit(ctx, body)
}

// Result asks for a result.
func (s Service) Result(ctx context.Context, operation string) (*Result, error) {
	return s.s.result(ctx, operation)
}

// Painter is the writer that a terminal gets.
func Painter(w io.Writer) io.Writer { return painter{w} }
