package operator

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// OIDCConfig names an identity provider. HTTP may be nil.
type OIDCConfig struct {
	Issuer       string
	ClientID     string
	ClientSecret secret.Secret
	RedirectURL  string // of the console's own page that calls Finish
	HTTP         *http.Client
}

const (
	ticketFor      = 10 * time.Minute // to sign in at the provider
	ticketBytesMax = 2048
	providerWait   = 10 * time.Second
	nextMax        = 512
)

// OIDC signs operators in through an identity provider: authorisation code with
// PKCE, the ID token's signature, issuer, audience, expiry and nonce checked.
//
// The provider says who somebody is, never what they may do: an operator must
// have been created under the verified e-mail address before. The first sign-in
// binds the name to the provider's own subject; after that another subject
// with the same address is refused, because addresses are given away again.
type OIDC struct {
	operators *Operators
	cfg       OIDCConfig
	verifier  *oidc.IDTokenVerifier
	oauth     oauth2.Config
}

// OpenOIDC reads the provider's discovery document.
func OpenOIDC(ctx context.Context, o *Operators, c OIDCConfig) (*OIDC, error) {
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: providerWait}
	}
	// The provider keeps this context for fetching keys later: it must not end with the caller's.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), c.HTTP), c.Issuer)
	if err != nil {
		return nil, fmt.Errorf("read the discovery document of %s: %w", c.Issuer, err)
	}
	return &OIDC{
		operators: o, cfg: c,
		verifier: provider.Verifier(&oidc.Config{ClientID: c.ClientID, SupportedSigningAlgs: []string{oidc.RS256, oidc.ES256}}),
		oauth: oauth2.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret.RevealText(), RedirectURL: c.RedirectURL,
			Endpoint: provider.Endpoint(), Scopes: []string{oidc.ScopeOpenID, "email"}},
	}, nil
}

// ticket is what the browser carries between Begin and Finish. It needs no
// seal: its holder is the one who signs in, and every part of it is compared
// with what the provider was asked.
type ticket struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Next     string `json:"to"`
	Until    int64  `json:"u"`
}

// Begin answers where to send the browser, and the ticket it must bring back.
// next is the page to show afterwards.
func (x *OIDC) Begin(next string) (redirect, ticketText string, err error) {
	if len(next) > nextMax {
		next = ""
	}
	t := ticket{State: randomText(), Nonce: randomText(), Verifier: oauth2.GenerateVerifier(), Next: next, Until: x.operators.db.Now().Add(ticketFor).Unix()}
	text, err := json.Marshal(t)
	if err != nil {
		return "", "", err
	}
	return x.oauth.AuthCodeURL(t.State, oidc.Nonce(t.Nonce), oauth2.S256ChallengeOption(t.Verifier)), base64.RawURLEncoding.EncodeToString(text), nil
}

// Finish ends what Begin began: query is what the provider sent the browser
// back with. Whatever is wrong with the identity is fault.Unauthenticated; a
// provider that cannot be reached is fault.Unavailable.
func (x *OIDC) Finish(ctx context.Context, ticketText string, query url.Values, a Attempt) (token secret.Secret, s Session, next string, err error) {
	// There is no name yet: one that all shared would let anybody keep everybody out.
	name := "oidc from " + a.IP
	if wait := x.operators.guesses.begin(name, a.IP); wait > 0 {
		return token, s, "", x.operators.limited(ctx, "oidc", a.IP, wait)
	}
	t, err := x.readTicket(ticketText)
	if err != nil {
		return token, s, "", err
	}
	who, err := x.identify(ctx, t, query)
	if err != nil {
		x.operators.log.Warn("a sign-in through the identity provider was refused", "ip", a.IP, "error", err)
		return token, s, "", err
	}
	if err := x.admit(ctx, who, a); err != nil {
		return token, s, "", err
	}
	x.operators.guesses.forgive(name, a.IP)
	token, s, err = x.operators.begin(ctx, who.name, a, "signin.oidc")
	return token, s, t.Next, err
}

func (x *OIDC) readTicket(text string) (t ticket, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > ticketBytesMax || json.Unmarshal(raw, &t) != nil || t.State == "" || t.Nonce == "" || t.Verifier == "" {
		return ticket{}, signInFirst("the sign-in was not begun here: please begin again")
	}
	if x.operators.db.Now().Unix() >= t.Until {
		return ticket{}, signInFirst("the sign-in took too long: please begin again")
	}
	return t, nil
}

// identity is who the provider says somebody is.
type identity struct{ name, issuer, subject string }

// identify exchanges the code and checks the ID token.
func (x *OIDC) identify(ctx context.Context, t ticket, query url.Values) (who identity, err error) {
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(t.State)) != 1 {
		return who, signInFirst("the sign-in was not begun here: please begin again")
	}
	if problem := query.Get("error"); problem != "" || query.Get("code") == "" {
		return who, because("the identity provider refused the sign-in", errors.New("it says "+clip(problem)))
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, x.cfg.HTTP), providerWait)
	defer cancel()
	answer, err := x.oauth.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(t.Verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError {
			return who, because("the identity provider refused the sign-in", err)
		}
		return who, fault.New(fault.Unavailable, "the identity provider cannot be reached").Because(err)
	}
	raw, ok := answer.Extra("id_token").(string)
	if !ok {
		return who, because("the identity provider sent no identity", errors.New("no id_token"))
	}
	id, err := x.verifier.Verify(ctx, raw)
	if err != nil {
		return who, because("the identity cannot be verified", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(t.Nonce)) != 1 {
		return who, because("the identity cannot be verified", errors.New("the nonce is another one"))
	}
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := id.Claims(&claims); err != nil || claims.Email == "" || !claims.Verified {
		return who, because("the identity has no verified e-mail address", err)
	}
	return identity{name: settle(claims.Email), issuer: id.Issuer, subject: id.Subject}, nil
}

// admit finds the operator and binds the identity to it.
func (x *OIDC) admit(ctx context.Context, who identity, a Attempt) error {
	var issuer, subject string
	var disabled *int64
	err := x.operators.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(lockName); err != nil {
			return err
		}
		err := tx.Row(identitySQL, who.name).Scan(&issuer, &subject, &disabled)
		if err != nil || subject != "" || disabled != nil {
			return err
		}
		issuer, subject = who.issuer, who.subject
		if err := tx.ExecOne(bindSQL, issuer, subject, who.name); err != nil {
			return err
		}
		return x.operators.RecordIn(tx, Session{Name: who.name, IP: a.IP}.Actor(), Act{Action: "operator.identity_bound", Subject: who.name,
			After: map[string]string{"issuer": issuer, "subject": subject}})
	})
	switch {
	case errors.Is(err, db.ErrNoRows), err == nil && (disabled != nil || issuer != who.issuer || subject != who.subject):
		return x.operators.refused(ctx, who.name, a.IP)
	case err != nil:
		return fmt.Errorf("find the operator of an identity: %w", err)
	}
	return nil
}

func because(message string, cause error) error {
	return fault.New(fault.Unauthenticated, "%s", message).
		With(fault.Fault{Code: fault.CodeUnauthenticated, Type: fault.Authentication, Message: message}).Because(cause)
}

func randomText() string {
	b := make([]byte, 32)
	rand.Read(b) //nolint:errcheck // never fails: the runtime ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}
