package vies

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"tributary/internal/country/taxid"
	"tributary/internal/strictjson"
)

const scriptBytesMax = 64 << 10

// script is the body of PUT /_control/vies/script. A new script replaces
// the old one whole; an empty one brings the register back to normal.
type script struct {
	Outages []string   `json:"outages"` // member states that answer MS_UNAVAILABLE until the next script
	Steps   []viesStep `json:"steps"`   // each answers the next questions it fits, in order
}

// viesStep answers some questions.
type viesStep struct {
	Outcome string `json:"outcome"`
	Times   int    `json:"times"`   // default 1
	Delay   string `json:"delay"`   // a duration such as "2s"
	Country string `json:"country"` // a member state; empty: any
	outcome string
	delay   time.Duration
}

// next takes the step that answers a question of a member state. The caller holds the lock.
func (s *script) next(state string) (viesStep, bool) {
	if slices.Contains(s.Outages, state) {
		return viesStep{outcome: "MS_UNAVAILABLE"}, true
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Country != "" && step.Country != state {
			continue
		}
		taken := *step
		if step.Times--; step.Times == 0 {
			s.Steps = slices.Delete(s.Steps, i, i+1)
		}
		return taken, true
	}
	return viesStep{}, false
}

// prepare checks a script and translates the words all simulators share.
func (s *script) prepare() error {
	for _, state := range s.Outages {
		if !slices.Contains(taxid.VIESStates(), state) {
			return fmt.Errorf("outages: %q is not a member state", state)
		}
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		switch step.Outcome {
		case "accept", outcomeFound:
			step.outcome = outcomeFound
		case "reject", outcomeNotFound:
			step.outcome = outcomeNotFound
		case "unavailable":
			step.outcome = "SERVICE_UNAVAILABLE"
		case outcomeSlow, outcomeGarbage, outcomeDrop:
			step.outcome = step.Outcome
		case "pending", "duplicate":
			return fmt.Errorf("steps.%d.outcome: a register knows no %q", i, step.Outcome)
		default:
			if !isCode(step.Outcome) {
				return fmt.Errorf("steps.%d.outcome: %q is neither an outcome nor a code", i, step.Outcome)
			}
			step.outcome = step.Outcome
		}
		if step.Country != "" && !slices.Contains(taxid.VIESStates(), step.Country) {
			return fmt.Errorf("steps.%d.country: %q is not a member state", i, step.Country)
		}
		if step.Times == 0 {
			step.Times = 1
		}
		if step.Times < 0 {
			return fmt.Errorf("steps.%d.times: less than nothing", i)
		}
		if step.Delay == "" {
			continue
		}
		delay, err := time.ParseDuration(step.Delay)
		if err != nil || delay < 0 {
			return fmt.Errorf("steps.%d.delay: %q is not a duration", i, step.Delay)
		}
		step.delay = delay
	}
	return nil
}

func (s *Register) putScript(w http.ResponseWriter, r *http.Request) {
	var script script
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, scriptBytesMax))
	if err == nil {
		err = strictjson.Unmarshal(text, scriptBytesMax, "the script", &script)
	}
	if err == nil {
		err = script.prepare()
	}
	if err != nil {
		http.Error(w, "reading the script: "+err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.script = script
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// listRequests shows what was asked: totals since the last DELETE and the last
// thousand questions, oldest first.
func (s *Register) listRequests(w http.ResponseWriter, _ *http.Request) {
	type concurrency struct {
		Global int            `json:"global"`
		States map[string]int `json:"states"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.history
	if s.total > requestsKept {
		cut := s.total % requestsKept
		requests = slices.Concat(s.history[cut:], s.history[:cut])
	}
	writeJSON(w, http.StatusOK, struct {
		Count    int            `json:"count"`
		Outcomes map[string]int `json:"outcomes"`
		Peak     concurrency    `json:"peak"`
		Requests []request      `json:"requests"`
	}{s.total, s.counts, concurrency{s.peak, s.peakBy}, requests})
}

func (s *Register) deleteRequests(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	w.WriteHeader(http.StatusNoContent)
}

// forget clears the statistics; calls under way stay counted.
func (s *Register) forget() {
	s.total, s.peak = 0, s.busy
	s.counts, s.peakBy, s.history = map[string]int{}, map[string]int{}, []request{}
	if s.busyBy == nil {
		s.busyBy = map[string]int{}
	}
}

func (s *Register) record(q question, outcome string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := request{CountryCode: q.CountryCode, VATNumber: q.VATNumber, Outcome: outcome, At: s.config.Now().UTC()}
	if len(s.history) < requestsKept {
		s.history = append(s.history, line)
	} else {
		s.history[s.total%requestsKept] = line
	}
	s.total++
	s.counts[outcome]++
}

// question is the body of check-vat-number and check-vat-test-service, as the
// register's description has it.
type question struct {
	CountryCode     string `json:"countryCode"`
	VATNumber       string `json:"vatNumber"`
	RequesterState  string `json:"requesterMemberStateCode"`
	RequesterNumber string `json:"requesterNumber"`
}

// isCode reports whether a text can be a code of the register.
func isCode(text string) bool {
	return text != "" && len(text) <= 40 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}
