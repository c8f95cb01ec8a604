package ro

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// ANAF's OAuth2 server is another host than e-Factura; a double has both.
const (
	oauthHost     = "https://logincert.anaf.ro"
	oauthPath     = "/anaf-oauth2/v1"
	tokenBytesMax = 64 << 10
)

func oauthBase(at country.Endpoint) string {
	if at.Real() {
		return oauthHost + oauthPath
	}
	return strings.TrimSuffix(strings.TrimSuffix(at.BaseURL, "/"), path) + oauthPath
}

// enrol sends a person to ANAF, or exchanges what the person's browser brought. A
// refresh token that was handed over is exchanged at once, so that one that does
// not work is told here; one that this service keeps is left alone.
func enrol(ctx context.Context, in country.Enrolment) country.Enrolled {
	var form url.Values
	switch {
	case in.Grant != nil && in.Grant.Get("code") == "":
		return refusedGrant("the person did not agree: %q", in.Grant.Get("error"))
	case in.Grant != nil:
		form = url.Values{"grant_type": {"authorization_code"}, "code": {in.Grant.Get("code")},
			"redirect_uri": {in.At.Callback + "/oauth"}, "token_content_type": {"jwt"}}
	case in.Credentials.Named[secretAccess] != "":
		return country.Enrolled{}
	case in.Credentials.Named[secretRefresh] != "":
		form = refreshForm(in.Credentials)
	default:
		return visit(in)
	}
	kept, err := exchange(ctx, in.At, in.Credentials, form)
	switch {
	case errors.Is(err, country.ErrNoIdentity):
		return unready("client id and client secret of the application at ANAF are not set; please tell the operator of this service")
	case errors.Is(err, country.ErrCredentials):
		return refusedGrant("ANAF does not take the authorization: %s", errors.Unwrap(err))
	case err != nil:
		return unready("ANAF could not exchange the authorization; please try again")
	}
	return country.Enrolled{Keep: kept}
}

func refusedGrant(format string, args ...any) country.Enrolled {
	return country.Enrolled{Faults: []fault.Fault{fault.At("tax_credentials", fault.CredentialsInvalid, format, args...)}}
}

func unready(text string) country.Enrolled {
	return country.Enrolled{Faults: []fault.Fault{{Code: fault.AuthorityUnavailable, Type: fault.TaxAuthority, Message: text}}}
}

// visit is the address at which a person with a qualified certificate agrees.
func visit(in country.Enrolment) country.Enrolled {
	if in.At.Callback == "" {
		return unready("this service has no address for ANAF to return to; please tell its operator")
	}
	id, err := in.At.Secret(in.Credentials, secretClient)
	if err != nil {
		return unready("client id and client secret of the application at ANAF are not set; please tell the operator of this service")
	}
	query := url.Values{"response_type": {"code"}, "client_id": {id}, "redirect_uri": {in.At.Callback + "/oauth"},
		"token_content_type": {"jwt"}, "state": {in.State}}
	return country.Enrolled{Visit: oauthBase(in.At) + "/authorize?" + query.Encode()}
}

func refreshForm(c country.Credentials) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {c.Named[secretRefresh]}}
}

// renew exchanges a refresh token, which dies with it.
func renew(ctx context.Context, at country.Endpoint, c country.Credentials) (map[string]string, error) {
	return exchange(ctx, at, c, refreshForm(c))
}

// exchange asks the OAuth2 server for tokens. Its own invalid_grant is about the
// grant; whatever else is no answer says nothing.
func exchange(ctx context.Context, at country.Endpoint, c country.Credentials, form url.Values) (map[string]string, error) {
	id, err := at.Secret(c, secretClient)
	if err != nil {
		return nil, err
	}
	secret, err := at.Secret(c, secretClientSecret)
	if err != nil {
		return nil, err
	}
	basic := base64.StdEncoding.EncodeToString([]byte(id + ":" + secret))
	reply, err := country.Request{URL: oauthBase(at) + "/token", Body: []byte(form.Encode()), BytesMax: tokenBytesMax,
		Header: []string{"Content-Type", "application/x-www-form-urlencoded", "Authorization", "Basic " + basic}}.Do(ctx, at.HTTP)
	if err != nil {
		return nil, fmt.Errorf("asking for a token: %w", err)
	}
	var said struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Error   string `json:"error"`
	}
	if json.Unmarshal(reply.Body, &said) != nil {
		return nil, fmt.Errorf("asking for a token: status %d and no answer of OAuth2", reply.Status)
	}
	switch {
	case said.Error == "invalid_grant":
		return nil, fmt.Errorf("%w: invalid_grant", country.ErrCredentials)
	case said.Error == "invalid_client" || said.Error == "unauthorized_client":
		return nil, country.Unidentified(errors.New(said.Error))
	case reply.Status != http.StatusOK || said.Access == "" || said.Refresh == "":
		return nil, fmt.Errorf("asking for a token: status %d %s", reply.Status, said.Error)
	}
	return map[string]string{secretAccess: said.Access, secretRefresh: said.Refresh}, nil
}

// until reads when tokens end from the tokens themselves: ANAF's papers disagree
// about it. A token that does not say is good for ten minutes, a grant for good.
func until(kept map[string]string, now time.Time) (access, grant time.Time) {
	if access = expiry(kept[secretAccess]); access.IsZero() {
		access = now.Add(10 * time.Minute)
	}
	return access, expiry(kept[secretRefresh])
}

func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Exp <= 0 || claims.Exp > 1<<40 {
		return time.Time{}
	}
	return time.Unix(claims.Exp, 0)
}
