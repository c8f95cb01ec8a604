package api

import (
	"net"
	"net/http"
	"slices"
	"strings"

	documents "tributary"
	"tributary/internal/account"
	"tributary/internal/fault"
	"tributary/internal/site"
)

// newSite is the documentation of this API. It is made when the first page is
// asked for: a node that nobody reads costs nothing.
func (a *API) newSite(static bool) *site.Site {
	return site.New(site.Config{Documents: documents.Documents, OpenAPI: a.openAPI, Demo: a.cfg.Demo, Static: static})
}

// siteFor is the documentation for who asks. A demo's key is printed for a browser
// that calls this machine by a name of its own: under any other name somebody else
// may be reading.
func (a *API) siteFor(r *http.Request) *site.Site {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if a.cfg.Demo == nil || account.LoopbackName(strings.Trim(host, "[]")) {
		return a.site
	}
	return a.plainSite
}

// Pages are the documentation as files of a folder.
func (a *API) Pages() ([]site.File, error) { return a.newSite(true).Files() }

// docsStart leads to the first page: the links of pages are relative.
func (a *API) docsStart(c *call) error {
	to := "docs/" + site.Index
	switch name := strings.TrimPrefix(c.URL.Path, "/"); {
	case slices.Contains(site.Texts, name):
		to = "docs/" + name
	case strings.HasSuffix(name, "/"):
		to = site.Index
	}
	c.out.Header().Set("Location", to)
	c.out.WriteHeader(http.StatusSeeOther)
	return nil
}

// docsPage answers a page, the page of a search, or what pages load.
func (a *API) docsPage(c *call) error {
	name := c.PathValue("page")
	var file site.File
	var err error
	found := true
	if name == site.SearchPage {
		file, err = a.siteFor(c.Request).Search(c.URL.Query().Get("q"))
	} else {
		file, found, err = a.siteFor(c.Request).File(name)
	}
	switch {
	case err != nil:
		return err
	case !found:
		return notFound("page not found")
	}
	head := c.out.Header()
	head.Set("Content-Security-Policy", site.Policy)
	head.Set("Referrer-Policy", "no-referrer")
	if !strings.HasPrefix(file.Media, "text/html") {
		head.Set("Cache-Control", "public, max-age=300")
	}
	c.raw(http.StatusOK, file.Media, file.Content)
	return nil
}

// Codes of a 400, by what is read.
var (
	shapeCodes = []fault.Code{fault.FieldRequired, fault.FieldNotValid, fault.JSONNotValid}
	saleCodes  = append(shapeCodes[:3:3], fault.UnsupportedField, fault.ValidationMatchInvalid,
		fault.UnsupportedCountry, fault.UnsupportedOperation)
	companyCodes = append(shapeCodes[:3:3], fault.UnsupportedField, fault.UnsupportedCountry,
		fault.ValidationMatchInvalid, fault.CredentialsInvalid)
	queryCodes  = []fault.Code{fault.FieldNotValid}
	resultCodes = []fault.Code{fault.SupplierUnknown, fault.AuthorityRejected, fault.AuthorityNumberUsed,
		fault.AuthorityUnavailable, fault.CredentialsInvalid, fault.InternalError,
		fault.AuthorityNotConfigured, fault.AuthorityUnreachable, fault.AuthorityError, fault.AuthorityWait,
		fault.ChainStopped, fault.OutcomeUnknown, fault.DocumentsUnavailable, fault.BehindAnother, fault.Held,
		fault.FieldUnknown, fault.AuthorityIDUnavailable, fault.PayloadDiffers, fault.NumberReused, fault.RateUnusual,
		fault.TaxNumberDoubtful, fault.LanguageFallback, fault.ScriptUnavailable, fault.DateMoved,
		fault.AuthorityRemark, fault.BuyerMustBeTold, fault.ValueAssumed}
	correctionCodes = append([]fault.Code{fault.ReferenceUnknown, fault.ReferenceNotSuccessful,
		fault.ReferenceAlreadyCorrected, fault.ReferenceExceeded, fault.UnsupportedOperation, fault.ValidationMatchInvalid,
		fault.AwaitingAcceptance}, resultCodes...)
)

// codesOf lists the codes that an answer of a route may have: the tests hold
// every refusal against it.
func codesOf(r route, status int) []any {
	if status == http.StatusMethodNotAllowed {
		return list(string(fault.MethodNotAllowed))
	}
	if status == http.StatusBadRequest {
		codes := r.doc.refuses
		if codes == nil {
			codes = queryCodes
			if r.doc.request != "" {
				codes = shapeCodes
			}
		}
		var all []any
		for _, c := range codes {
			all = append(all, string(c))
		}
		return all
	}
	for kind, is := range statuses {
		if is == status {
			return list(string(defaults[kind].Code))
		}
	}
	return nil
}
