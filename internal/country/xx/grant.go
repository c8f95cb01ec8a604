package xx

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/xxwire"
	"tributary/internal/strictjson"
)

const (
	// settingGrant of a company: a person must agree in a browser.
	settingGrant = "grant"
	// secretGrant is what such a visit brings.
	secretGrant = "grant_token"

	grantBytesMax = 16 << 10
)

func grantSecret() country.SecretRule {
	return country.SecretRule{Name: secretGrant,
		Description: "Comes from a person's visit to the authority where the setting grant asks for it; it is not sent."}
}

func wantsGrant(in country.Enrolment) bool {
	wanted, _ := in.Supplier.Settings[settingGrant].(bool)
	return wanted
}

// granted are credentials with what a visit has brought.
func granted(c country.Credentials, brought map[string]string) country.Credentials {
	c.Named = maps.Clone(c.Named)
	if c.Named == nil {
		c.Named = map[string]string{}
	}
	maps.Copy(c.Named, brought)
	return c
}

// visit sends a person to the authority, who returns to our callback address.
func visit(in country.Enrolment) country.Enrolled {
	if in.At.Callback == "" {
		return country.Enrolled{Faults: []fault.Fault{{Code: fault.AuthorityUnavailable, Type: fault.General,
			Message: "this service has no address for the authority to return to; please tell its operator"}}}
	}
	query := url.Values{"supplier": {supplierNumber(in.Supplier)}, "state": {in.State},
		"redirect_uri": {in.At.Callback + "/oauth"}}
	return country.Enrolled{Visit: in.At.BaseURL + xxwire.PathGrant + "?" + query.Encode()}
}

// exchange gives the code that a browser brought back for the token.
func (ch *channel) exchange(ctx context.Context, in country.Enrolment) country.Enrolled {
	refused := func(format string, args ...any) country.Enrolled {
		return country.Enrolled{Faults: []fault.Fault{fault.At("tax_credentials", fault.CredentialsInvalid, format, args...)}}
	}
	if in.Grant.Get("code") == "" {
		return refused("the person did not agree: %q", in.Grant.Get("error"))
	}
	body, err := json.Marshal(xxwire.Exchange{Supplier: supplierNumber(in.Supplier), Code: in.Grant.Get("code")})
	if err != nil {
		return refused("the code cannot be sent")
	}
	reply, err := country.Request{URL: in.At.BaseURL + xxwire.PathToken, Header: []string{"Content-Type", "application/json"},
		Body: body, BytesMax: grantBytesMax}.Do(ctx, in.At.HTTP)
	var got xxwire.Granted
	switch {
	case err == nil && reply.Status == http.StatusForbidden:
		return refused("the authority does not know the code")
	case err == nil && reply.Status == http.StatusOK:
		err = strictjson.Unmarshal(reply.Body, grantBytesMax, "the token", &got)
	case err == nil:
		err = fmt.Errorf("status %d", reply.Status)
	}
	if err != nil || got.Token == "" {
		return country.Enrolled{Faults: []fault.Fault{{Code: fault.AuthorityUnavailable, Type: fault.TaxAuthority,
			Message: "the reference authority could not exchange the code; please try again"}}}
	}
	return country.Enrolled{Keep: map[string]string{secretGrant: got.Token}}
}
