package fr

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
)

const (
	tokenBytesMax = 64 << 10
	tokenMargin   = 30 * time.Second // before its end a token is not used any more
	tokenMost     = time.Hour
)

// held is a token with its end.
type held struct {
	text string
	ends time.Time
}

// token is one with which a company's calls are made: of its own client at the
// platform, else of the operator's. fresh asks for another than the last one.
func (ch *channel) token(ctx context.Context, c country.Credentials, fresh bool) (string, error) {
	id, err := ch.at.Secret(c, secretClient)
	if err != nil {
		return "", err
	}
	secret, err := ch.at.Secret(c, secretClientSecret)
	if err != nil {
		return "", err
	}
	key := country.SHA256([]byte(id + "\x00" + secret))
	if t, known := ch.tokens.Get(key); known && !fresh && ch.now().Before(t.ends) {
		return t.text, nil
	}
	t, err := ch.exchange(ctx, id, secret, c)
	if err != nil {
		return "", err
	}
	ch.tokens.Put(key, t)
	return t.text, nil
}

// exchange asks for a token (RFC 6749, section 4.4). Whatever goes wrong, the
// platform has nothing of the filing.
func (ch *channel) exchange(ctx context.Context, id, secret string, c country.Credentials) (held, error) {
	address := ch.at.Identity.Secrets[secretToken]
	if address == "" {
		address = ch.base + "/oauth/token"
	}
	basic := base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id) + ":" + url.QueryEscape(secret)))
	reply, err := country.Request{URL: address, Body: []byte(url.Values{"grant_type": {"client_credentials"}}.Encode()), BytesMax: tokenBytesMax,
		Header: []string{"Content-Type", "application/x-www-form-urlencoded", "Authorization", "Basic " + basic}}.Do(ctx, ch.at.HTTP)
	if err != nil {
		return held{}, fmt.Errorf("%w: asking for a token: %w", country.ErrNotTaken, err)
	}
	var said struct {
		Access  string `json:"access_token"`
		Expires int64  `json:"expires_in"`
		Error   string `json:"error"`
	}
	if json.Unmarshal(reply.Body, &said) != nil {
		return held{}, fmt.Errorf("%w: asking for a token: status %d and no answer of OAuth2", country.ErrNotTaken, reply.Status)
	}
	switch {
	case said.Error == "invalid_client" || said.Error == "unauthorized_client" || said.Error == "invalid_grant":
		return held{}, ch.unwelcome(c, said.Error)
	case reply.Status != http.StatusOK || said.Access == "":
		return held{}, fmt.Errorf("%w: asking for a token: status %d %s", country.ErrNotTaken, reply.Status, said.Error)
	}
	life := min(time.Duration(max(said.Expires, 0))*time.Second, tokenMost)
	return held{said.Access, ch.now().Add(life - min(tokenMargin, life/2))}, nil
}

// unwelcome is a client that the platform does not take: the company's own, or the
// operator's, who alone can help then.
func (ch *channel) unwelcome(c country.Credentials, said string) error {
	if c.Named[secretClient] != "" {
		return fmt.Errorf("%w: %w: %s", country.ErrNotTaken, country.ErrCredentials, said)
	}
	return country.Unidentified(fmt.Errorf("the platform: %s", said))
}

// enrol tries a company's client at the platform.
func enrol(ctx context.Context, in country.Enrolment) country.Enrolled {
	if in.Credentials.Named[secretClient] == "" || in.At.BaseURL == "" {
		return country.Enrolled{} // the operator's is tried by whoever sets it
	}
	ch, err := connect(in.At)
	if err != nil {
		return country.Enrolled{}
	}
	_, err = ch.call(ctx, company(&in.Supplier).siren, country.Request{Method: http.MethodGet, URL: ch.base + pathHealth}, in.Credentials)
	switch {
	case err == nil:
		return country.Enrolled{}
	case isCredentials(err):
		return country.Enrolled{Faults: []fault.Fault{fault.At("tax_credentials", fault.CredentialsInvalid, "are not taken by the platform")}}
	}
	return country.Enrolled{Faults: []fault.Fault{{Code: fault.AuthorityUnavailable, Type: fault.TaxAuthority,
		Message: "the platform does not answer; please try again"}}}
}
