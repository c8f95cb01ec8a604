package inbox

import (
	"html/template"
	"net/http"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// pathGrant is where a browser returns from an authority.
const pathGrant = "/oauth"

// grantPage is what a person reads then. It loads nothing and links nowhere.
var grantPage = template.Must(template.New("grant").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}}</title>
<style>body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem;color:#222;background:#fff}</style></head>
<body><h1>{{.Title}}</h1><p>{{.Text}}</p></body></html>
`))

type grantWords struct {
	status      int
	Title, Text string
}

// returned answers a browser that comes back from a person's visit.
func (i *Inbox) returned(w http.ResponseWriter, r *http.Request, at country.Environment) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return
	}
	err := i.cfg.Grant(r.Context(), at, r.URL.Query())
	words, outcome := grantWords{http.StatusOK, "Thank you",
		"The company is being connected. You can close this window."}, wasStored
	switch kind := fault.KindOf(err); {
	case err == nil:
	case kind == fault.NotFound, kind == fault.Invalid:
		words, outcome = grantWords{http.StatusBadRequest, "Unknown link",
			"It was not created by this service, or was altered. Please start again where you found the link."}, wasRefused
	case kind == fault.Conflict:
		words, outcome = grantWords{http.StatusConflict, "This link was already used",
			"A link works once. If the company is not connected yet, please start again where you found the link."}, wasRepeated
	case kind == fault.Expired:
		words, outcome = grantWords{http.StatusGone, "This link has expired",
			"A link works for ten minutes. Please start again where you found it to get a new one."}, wasInvalid
	default:
		words, outcome = grantWords{http.StatusServiceUnavailable, "Something went wrong",
			"Please reload this page in a minute."}, wasFailed
	}
	i.count(at.Code, outcome)
	if err != nil && i.words.Allow() {
		i.log.Warn("a browser returned from an authority without a valid state", "authority", at.String(), "status",
			words.status, "error", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer") // the address holds what was brought
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	w.WriteHeader(words.status)
	_ = grantPage.Execute(w, words) // a browser that left
}
