package console

import (
	"context"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/ledger"
	"tributary/internal/onboarding"
	"tributary/internal/operation"
	"tributary/internal/webhook"
)

// parsePages reads the templates. Text in them is written by html/template,
// which escapes it for where it stands; the functions below that answer HTML
// make it from numbers and times alone.
func (c *Console) parsePages() (*template.Template, error) {
	return template.New("console").Funcs(template.FuncMap{
		"root":        func() string { return Root },
		"asset":       c.assets.address,
		"instant":     instant,
		"ago":         ago,
		"total":       total,
		"amount":      func(minor int64, currency string) string { return money(minor, currency) },
		"moment":      moment,
		"clock":       clock,
		"sentence":    sentence,
		"span":        span,
		"since":       func(now, t time.Time) string { return span(now.Sub(t).Truncate(time.Second)) },
		"until":       func(now, t time.Time) string { return span(t.Sub(now).Truncate(time.Second)) },
		"day":         func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
		"count":       countAny,
		"bytes":       size,
		"prose":       prose,
		"explain":     c.dir.explain,
		"nextTry":     nextTry,
		"money":       moneyAny,
		"short":       short,
		"badgeClass":  badgeClass,
		"highlighted": highlighted,
		"picture":     picture,
		"plot":        plot,
		"spark":       spark,
		"path":        func(parts ...string) string { return Root + "/" + joinEscaped(parts) },
		"query":       url.QueryEscape,
		"lower":       func(v any) string { return strings.ToLower(fmt.Sprint(v)) },
		"words":       func(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") },
		"text":        func(v any) string { return fmt.Sprint(v) },
		"deref":       deref,
		"failed":      func(t webhook.Try) string { return failureText(t) },
		"dict":        dict,
		"pretty":      func(text string) template.HTML { return highlighted([]byte(text)) },
		"stamp":       func(t onboarding.Timestamp) template.HTML { return instant(time.Time(t)) },
		"ending":      ending,
		"statuses":    statusOptions,
		"stages":      stageOptions,
		"kinds":       kindOptions,
		"fates":       eventStatuses,
		"envName":     envName,
		"envOf":       c.dir.envOf,
		"directions":  func() []ledger.Direction { return []ledger.Direction{ledger.Received, ledger.All} },
		"environments": func() []string {
			return []string{operation.Environment(true), operation.Environment(false)}
		},
		"reasonClass": reasonClass,
	}).ParseFS(pageFiles, "pages/*.html")
}

// envName is live or test, whatever type says so.
func envName(live any) string {
	switch live := live.(type) {
	case country.Live:
		return operation.Environment(live)
	case bool:
		return operation.Environment(country.Live(live))
	}
	return ""
}

// envOf is the environment of a client; "" of an unknown one.
func (c *directory) envOf(clientID string) string {
	profile, err := c.cfg.Accounts.Profile(context.Background(), clientID)
	if err != nil {
		return ""
	}
	return envName(profile.Live)
}

// reasonClass is the colour of a reason: what ends by itself is no alarm.
func reasonClass(code fault.Code) string {
	switch code {
	case fault.BehindAnother, fault.AwaitingAcceptance, fault.AuthorityWait:
		return "busy"
	}
	return "bad"
}

func joinEscaped(parts []string) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = url.PathEscape(p)
	}
	return strings.Join(escaped, "/")
}

func countAny(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return count(n), nil
	case int64:
		return count(n), nil
	}
	return "", fmt.Errorf("%T is not a count", n)
}

// moneyAny prints an amount of a result, where it may be unknown.
func moneyAny(minor *int64, currency *string) string {
	if minor == nil {
		return "–"
	}
	return money(*minor, deref(currency))
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// term says how long a credential still holds.
type term struct{ Text, BadgeClass string }

func ending(now time.Time, at *onboarding.Timestamp) term {
	if at == nil {
		return term{}
	}
	left := time.Time(*at).Sub(now)
	switch {
	case left <= 0:
		return term{"expired " + time.Time(*at).UTC().Format(time.DateOnly), "bad"}
	case left < 7*24*time.Hour:
		return term{"expires in " + span(left.Truncate(time.Minute)), "bad"}
	case left < 30*24*time.Hour:
		return term{"expires in " + span(left.Truncate(24*time.Hour)), "busy"}
	}
	return term{"until " + time.Time(*at).UTC().Format(time.DateOnly), "good"}
}

// dict makes the argument of a template that needs more than one.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("a name without a value")
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m, nil
}

// failureText says why a try failed, for people.
func failureText(t webhook.Try) string {
	meaning, known := map[webhook.Class]string{
		webhook.ClassURLRefused:     "the configured URL is not allowed",
		webhook.ClassAddressRefused: "the network address is not allowed",
		webhook.ClassDNS:            "DNS lookup failed", webhook.ClassConnect: "connection failed",
		webhook.ClassConnectTimeout: "connection timed out",
		webhook.ClassProxy:          "the proxy refused the connection", webhook.ClassTLS: "TLS error",
		webhook.ClassTimeout:   "response timed out",
		webhook.ClassClosed:    "the connection was closed without a response",
		webhook.ClassMalformed: "the response is not HTTP", webhook.ClassStatus: "the receiver returned an error",
		webhook.ClassNoLocation: "redirect without a location", webhook.ClassRedirectInsecure: "redirect away from HTTPS",
		webhook.ClassRedirectRefused: "redirect to an address that is not allowed",
		webhook.ClassRedirectDepth:   "too many redirects", webhook.ClassInterrupted: "interrupted by a shutdown; not counted",
	}[t.Class]
	if !known {
		return string(t.Class)
	}
	return meaning
}
