package lookup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority/vies"
	"tributary/internal/lookup"
	"tributary/internal/mutate"
)

func TestSimulatorChecksTheSchemaOfAQuestion(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	for _, c := range []struct {
		body   string
		status int
		code   string
	}{
		{`{`, 500, "VOW-ERR-1"},
		{`[]`, 500, "VOW-ERR-1"},
		{`{"countryCode":7}`, 500, "VOW-ERR-1"},
		{`{}`, 400, "VOW-ERR-11"},
		{`{"countryCode":"IT"}`, 400, "VOW-ERR-11"},
		{`{"vatNumber":"1234"}`, 400, "VOW-ERR-11"},
		{`{"countryCode":"it","vatNumber":"1234"}`, 400, "INVALID_INPUT"},
		{`{"countryCode":"ITA","vatNumber":"1234"}`, 400, "INVALID_INPUT"},
		{`{"countryCode":"GB","vatNumber":"1234"}`, 200, "INVALID_INPUT"},
		{`{"countryCode":"GR","vatNumber":"094012834"}`, 200, "INVALID_INPUT"},
		{`{"countryCode":"IT","vatNumber":"1"}`, 400, "VOW-ERR-2600"},
		{`{"countryCode":"IT","vatNumber":"12"}`, 200, ""},
		{`{"countryCode":"IT","vatNumber":"123456789012"}`, 200, ""},
		{`{"countryCode":"IT","vatNumber":"1234567890123"}`, 400, "VOW-ERR-2600"},
		{`{"countryCode":"IT","vatNumber":"12 34"}`, 400, "VOW-ERR-2600"},
		{`{"countryCode":"IT","vatNumber":"1234","requesterMemberStateCode":"P1","requesterNumber":"12"}`, 400,
			"VOW-ERR-2500"},
		{`{"countryCode":"IT","vatNumber":"1234","requesterMemberStateCode":"PL","requesterNumber":"a b"}`, 400,
			"VOW-ERR-2700"},
		{`{"countryCode":"IT","vatNumber":"1234","requesterMemberStateCode":"PL"}`, 400, "VOW-ERR-2700"},
	} {
		status, body := r.do(http.MethodPost, vies.Path+"/check-vat-number", c.body)
		failed := fmt.Sprintf(`{"actionSucceed":false,"errorWrappers":[{"error":%q}]}`, c.code)
		if status != c.status || c.code != "" && strings.TrimSpace(body) != failed ||
			c.code == "" && !strings.Contains(body, `"valid":false`) {
			t.Errorf("%s: %d %s", c.body, status, body)
		}
	}
	if status, _ := r.do(http.MethodGet, vies.Path+"/check-vat-number", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
	if status, _ := r.do(http.MethodGet, "/vies/rest-api/nothing", ""); status != http.StatusNotFound {
		t.Errorf("unknown path: %d", status)
	}
}

func TestSimulatorAnswersByPath(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	for path, want := range map[string]string{"/ms/IT/vat/" + italy: `"isValid":true,`,
		"/ms/IT/vat/12345678901": `"userError":"INVALID"`,
		"/ms/IT/vat/99301000008": `"userError":"MS_UNAVAILABLE"`, "/ms/IT/vat/-": "VOW-ERR-2600"} {
		if _, body := r.do(http.MethodGet, vies.Path+path, ""); !strings.Contains(body, want) {
			t.Errorf("%s: %s", path, body)
		}
	}
}

func TestSimulatorAnswersInTheRecordedShape(t *testing.T) {
	t.Parallel()
	at := time.Date(2032, 1, 2, 10, 0, 0, 0, time.UTC)
	r := newRegister(t, vies.Config{Now: func() time.Time { return at }}, lookup.VIESConfig{})
	_, body := r.do(http.MethodPost, vies.Path+"/check-vat-test-service", `{"countryCode":"DE","vatNumber":"100"}`)
	want := `{"countryCode":"DE","vatNumber":"100","requestDate":"2032-01-02T10:00:00.000Z","valid":true,"requestIdentifier":"","name":"---","address":"---"}`
	if strings.TrimSpace(body) != want {
		t.Errorf("%s", body)
	}
	_, body = r.do(http.MethodPost, vies.Path+"/check-vat-test-service", `{"countryCode":"DE","vatNumber":"777"}`)
	if !strings.Contains(body, "SERVICE_UNAVAILABLE") {
		t.Errorf("%s", body)
	}
}

func TestScriptsThatAreNone(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	for _, script := range []string{`{`, `[]`, `{"stepps":[]}`, `{"steps":[],"steps":[]}`, `{} {}`, `{"outages":["GB"]}`,
		`{"steps":[{}]}`, `{"steps":[{"outcome":"pending"}]}`,
		`{"steps":[{"outcome":"duplicate"}]}`, `{"steps":[{"outcome":"ms_unavailable"}]}`,
		`{"steps":[{"outcome":"slow","delay":"soon"}]}`,
		`{"steps":[{"outcome":"slow","delay":"-1s"}]}`, `{"steps":[{"outcome":"slow","times":-1}]}`,
		`{"steps":[{"outcome":"slow","country":"QQ"}]}`} {
		if status, _ := r.do(http.MethodPut, "/_control/vies/script", script); status != http.StatusBadRequest {
			t.Errorf("%s: %d", script, status)
		}
	}
}

func TestStepsAnswerTheQuestionsTheyFit(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	r.script(`{"steps":[{"outcome":"reject","country":"IT","times":2},{"outcome":"VAT_BLOCKED"},{"outcome":"slow","delay":"1ms"}]}`)
	ask := func(country, number string) string {
		_, body := r.do(http.MethodPost, vies.Path+"/check-vat-number",
			fmt.Sprintf(`{"countryCode":%q,"vatNumber":%q}`, country, number))
		var reply struct {
			Valid         *bool
			ErrorWrappers []struct{ Error string }
		}
		if err := json.Unmarshal([]byte(body), &reply); err != nil {
			t.Fatal(err)
		}
		if len(reply.ErrorWrappers) > 0 {
			return reply.ErrorWrappers[0].Error
		}
		return fmt.Sprint(*reply.Valid)
	}
	got := []string{ask("IT", italy), ask("DE", germany), ask("IT", italy), ask("IT", italy), ask("IT", italy)}
	if want := "false VAT_BLOCKED false true true"; strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
	r.script(`{"steps":[{"outcome":"reject","times":9}]}`)
	r.script(`{}`)
	if got := ask("IT", italy); got != "true" {
		t.Errorf("after an empty script: %s", got)
	}
}

func TestTheListOfRequestsIsBounded(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	ask := func(i int) {
		r.do(http.MethodGet, fmt.Sprintf("%s/ms/IT/vat/%05d", vies.Path, i), "")
	}
	for i := range 1000 {
		ask(i)
	}
	if a := r.asked(); a.Count != 1000 || len(a.Requests) != 1000 || a.Requests[0].VATNumber != "00000" {
		t.Errorf("at the limit: %d, %d", a.Count, len(a.Requests))
	}
	ask(1000)
	if a := r.asked(); a.Count != 1001 || len(a.Requests) != 1000 || a.Requests[0].VATNumber != "00001" ||
		a.Requests[999].VATNumber != "01000" {
		t.Errorf("past the limit: %d, %d, %+v", a.Count, len(a.Requests), a.Requests[0])
	}
	if status, _ := r.do(http.MethodDelete, "/_control/vies/requests", ""); status != http.StatusNoContent {
		t.Errorf("DELETE: %d", status)
	}
	if a := r.asked(); a.Count != 0 || len(a.Requests) != 0 || len(a.Outcomes) != 0 {
		t.Errorf("after DELETE: %+v", a)
	}
}

func TestSimulatorEnforcesItsLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config vies.Config
		code   string
	}{
		"service": {vies.Config{Parallel: 1, ParallelPerState: 9}, "GLOBAL_MAX_CONCURRENT_REQ"},
		"state":   {vies.Config{Parallel: 9, ParallelPerState: 1}, "MS_MAX_CONCURRENT_REQ"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegister(t, c.config, lookup.VIESConfig{})
			path := vies.Path + "/ms/IT/vat/" + italy
			r.script(`{"steps":[{"outcome":"slow","delay":"10m"}]}`)
			ctx, leave := context.WithCancel(context.Background())
			left := make(chan struct{})
			go func() {
				defer close(left)
				request, _ := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+path, nil)
				if answer, err := r.server.Client().Do(request); err == nil {
					answer.Body.Close()
					t.Error("the slow call was answered")
				}
			}()
			for r.asked().Count == 0 {
				runtime.Gosched() // until the slow call is inside
			}
			if _, body := r.do(http.MethodGet, path, ""); !strings.Contains(body, c.code) {
				t.Errorf("%s", body)
			}
			leave()
			<-left
			// until the register has noticed; the test's own time limit ends a register that never does
			for busy := true; busy; {
				_, body := r.do(http.MethodGet, path, "")
				busy = !strings.Contains(body, `"isValid":true`)
			}
		})
	}
}

func FuzzVIESSimulatorScript(f *testing.F) {
	f.Add(`{"outages":["DE"],"steps":[{"outcome":"slow","times":2,"delay":"1s","country":"IT"}]}`)
	f.Add(`{"steps":[{"outcome":"X"}]}`)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, script string) {
		sim := vies.New(vies.Config{})
		status := put(sim, script)
		if status != http.StatusNoContent && status != http.StatusBadRequest {
			t.Fatalf("%q: %d", script, status)
		}
	})
}
