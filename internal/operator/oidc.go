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
	ClientSecret secret.Secret // zero: a public client, which PKCE alone protects
	RedirectURL  string        // of the console's own page that calls Finish
	HTTP         *http.Client
}

const (
	ticketFor      = 10 * time.Minute // to sign in at the provider
	ticketBytesMax = 2048
	providerWait   = 5 * time.Second // for one answer of the provider
	providerRetry  = 2 * time.Second // after one that did not come; until then nobody else waits for it
	nextMax        = 512
)

// OIDC signs operators in through an identity provider: authorisation code with
// PKCE, the ID token's signature, issuer, audience, expiry and nonce checked.
//
// The provider says who somebody is, never what they may do: an operator must
// have been created under the verified e-mail address before. The first sign-in
// binds the name to the provider's own subject; after that another subject
// with the same address is refused, because addresses are given away again,
// until somebody unbinds the name.
//
// Failure policy: the provider's discovery document is read when it is first
// needed and again until that succeeds, so that a provider that is away costs
// its own sign-ins and nothing else. A failed look is remembered for a moment:
// requests do not queue up behind a provider that hangs.
//
// The address is read from the ID token, else from UserInfo of the token's own
// subject (OpenID Connect Core 5.4 puts it there when an access token was issued);
// one in the token is never replaced by another, and email_verified must be true in
// either place. Who is proven may hear why it is not enough: no operator of that
// name, disabled, bound to another identity. Whoever only types a name and a
// password hears nothing.
type OIDC struct {
	operators *Operators
	cfg       OIDCConfig

	turn   chan struct{} // held by who looks for the provider
	known  *provider
	failed error
	again  time.Time // when to look again after failed
}

// provider is what the discovery document says.
type provider struct {
	*oidc.Provider
	verifier *oidc.IDTokenVerifier
	oauth    oauth2.Config
}

// NewOIDC prepares sign-in through a provider. It calls nobody.
func NewOIDC(o *Operators, c OIDCConfig) *OIDC {
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: providerWait}
	}
	return &OIDC{operators: o, cfg: c, turn: make(chan struct{}, 1)}
}

// Close gives idle connections to the provider back.
func (x *OIDC) Close() { x.cfg.HTTP.CloseIdleConnections() }

// Reach reads the provider's discovery document unless it is known. A provider
// that cannot be reached, or is another one: fault.Unavailable.
func (x *OIDC) Reach(ctx context.Context) error {
	_, err := x.provider(ctx)
	return err
}

func (x *OIDC) provider(ctx context.Context) (*provider, error) {
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if x.known != nil {
		return x.known, nil
	}
	now := x.operators.db.Now()
	if x.failed != nil && now.Before(x.again) {
		return nil, x.failed
	}
	// The provider keeps this context for fetching keys later: it must not end
	// with the caller's, nor with a deadline. The client has one of its own.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), x.cfg.HTTP), x.cfg.Issuer)
	if err != nil {
		x.failed = away(fmt.Errorf("read the discovery document of %s: %w", x.cfg.Issuer, err))
		x.again = x.operators.db.Now().Add(providerRetry)
		return nil, x.failed
	}
	x.failed = nil
	x.known = &provider{
		Provider: found,
		verifier: found.Verifier(&oidc.Config{ClientID: x.cfg.ClientID}),
		oauth: oauth2.Config{ClientID: x.cfg.ClientID, ClientSecret: x.cfg.ClientSecret.RevealText(),
			RedirectURL: x.cfg.RedirectURL,
			Endpoint:    found.Endpoint(), Scopes: []string{oidc.ScopeOpenID, "email"}},
	}
	return x.known, nil
}

func away(cause error) error {
	return fault.New(fault.Unavailable,
		"the identity provider is unreachable; try again later, or sign in with a password").Because(cause)
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
// next is the page to show afterwards. A provider that cannot be reached is
// fault.Unavailable.
func (x *OIDC) Begin(ctx context.Context, next string) (redirect, ticketText string, err error) {
	p, err := x.provider(ctx)
	if err != nil {
		return "", "", err
	}
	if len(next) > nextMax {
		next = ""
	}
	t := ticket{State: randomText(), Nonce: randomText(), Verifier: oauth2.GenerateVerifier(), Next: next,
		Until: x.operators.db.Now().Add(ticketFor).Unix()}
	text, err := json.Marshal(t)
	if err != nil {
		return "", "", err
	}
	return p.oauth.AuthCodeURL(t.State, oidc.Nonce(t.Nonce), oauth2.S256ChallengeOption(t.Verifier)),
		base64.RawURLEncoding.EncodeToString(text), nil
}

// Finish ends what Begin began: query is what the provider sent the browser
// back with. Whatever is wrong with the identity is fault.Unauthenticated; a
// provider that cannot be reached is fault.Unavailable.
func (x *OIDC) Finish(ctx context.Context, ticketText string, query url.Values,
	a Attempt) (token secret.Secret, s Session, next string, err error) {
	// There is no name yet: one that all shared would let anybody keep everybody out.
	name := "oidc from " + a.IP
	if wait := x.operators.guesses.begin(guesser{name: name, ip: a.IP}); wait > 0 {
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
	x.operators.guesses.forgive(guesser{name: name, ip: a.IP})
	token, s, err = x.operators.begin(ctx, who.name, a, "signin.oidc")
	return token, s, t.Next, err
}

func (x *OIDC) readTicket(text string) (t ticket, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > ticketBytesMax || json.Unmarshal(raw, &t) != nil || t.State == "" || t.Nonce == "" ||
		t.Verifier == "" {
		return ticket{}, signInFirst("the sign-in was not started here: please start over")
	}
	if x.operators.db.Now().Unix() >= t.Until {
		return ticket{}, signInFirst("the sign-in expired: please start over")
	}
	return t, nil
}

// identity is who the provider says somebody is.
type identity struct{ name, issuer, subject string }

// identify exchanges the code and checks the ID token.
func (x *OIDC) identify(ctx context.Context, t ticket, query url.Values) (who identity, err error) {
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(t.State)) != 1 {
		return who, signInFirst("the sign-in was not started here: please start over")
	}
	if problem := query.Get("error"); problem != "" || query.Get("code") == "" {
		return who, because("the identity provider refused the sign-in", errors.New("it says "+clip(problem)))
	}
	p, err := x.provider(ctx)
	if err != nil {
		return who, err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, x.cfg.HTTP), 2*providerWait)
	defer cancel()
	answer, err := p.oauth.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(t.Verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError {
			return who, because("the identity provider refused the sign-in", err)
		}
		return who, away(err)
	}
	raw, ok := answer.Extra("id_token").(string)
	if !ok {
		return who, because("the identity provider returned no identity", errors.New("no id_token"))
	}
	id, err := p.verifier.Verify(ctx, raw)
	if err != nil {
		return who, because("the identity cannot be verified", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(t.Nonce)) != 1 {
		return who, because("the identity cannot be verified", errors.New("nonce mismatch"))
	}
	email, err := p.email(ctx, id, answer)
	if err != nil {
		return who, err
	}
	return identity{name: settle(email), issuer: id.Issuer, subject: id.Subject}, nil
}

// email is the verified address of an identity: from its ID token, or from the
// UserInfo endpoint, where OpenID Connect Core 5.4 puts it when an access token
// was issued. The answer there is only worth something for the same subject
// (5.3.2).
func (p *provider) email(ctx context.Context, id *oidc.IDToken, answer *oauth2.Token) (string, error) {
	const missing = "the identity has no verified e-mail address"
	var claims mailClaims
	if err := id.Claims(&claims); err != nil {
		return "", because(missing, err)
	}
	if claims.Email == "" && p.UserInfoEndpoint() != "" {
		info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(answer))
		if err != nil {
			return "", because(missing, fmt.Errorf("ask the UserInfo endpoint: %w", err))
		}
		if info.Subject != id.Subject {
			return "", because("the identity cannot be verified", errors.New("the UserInfo endpoint returned another subject"))
		}
		if claims = (mailClaims{}); info.Claims(&claims) != nil {
			return "", because(missing, nil)
		}
	}
	if verified, ok := claims.Verified.(bool); claims.Email == "" || !ok || !verified {
		return "", because(missing, nil)
	}
	return claims.Email, nil
}

// mailClaims are an address and whether its provider vouches for it: true, and
// nothing that looks like it.
type mailClaims struct {
	Email    string `json:"email"`
	Verified any    `json:"email_verified"`
}

// admit finds the operator and binds the identity to it. Who somebody is was
// proven by now: the answer may say why it is not enough.
func (x *OIDC) admit(ctx context.Context, who identity, a Attempt) error {
	var issuer, subject, elsewhere string
	var disabled *int64
	err := x.operators.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(lockName); err != nil {
			return err
		}
		err := tx.Row(identitySQL, who.name).Scan(&issuer, &subject, &disabled)
		if err != nil || subject != "" || disabled != nil {
			return err
		}
		err = tx.Row(boundSQL, who.issuer, who.subject).Scan(&elsewhere)
		if !errors.Is(err, db.ErrNoRows) {
			return err
		}
		issuer, subject, elsewhere = who.issuer, who.subject, ""
		if err := tx.ExecOne(bindSQL, issuer, subject, who.name); err != nil {
			return err
		}
		return x.operators.RecordIn(tx, Session{Name: who.name, IP: a.IP}.Actor(),
			Act{Action: "operator.identity_bound", Subject: who.name,
				After: map[string]string{"issuer": issuer, "subject": subject}})
	})
	switch {
	case errors.Is(err, db.ErrNoRows):
		return x.operators.turnedAway(ctx, who.name, a.IP,
			fmt.Sprintf("unknown operator %s: ask an admin to create one with this name", clip(who.name)))
	case err != nil:
		return fmt.Errorf("find the operator of an identity: %w", err)
	case disabled != nil:
		return x.operators.turnedAway(ctx, who.name, a.IP,
			fmt.Sprintf("the operator %s is disabled: ask an admin to enable it", who.name))
	case elsewhere != "": // the address has changed at the provider
		return x.operators.turnedAway(ctx, who.name, a.IP,
			fmt.Sprintf("this identity is bound to the operator %s: ask an admin to unbind it", elsewhere))
	case issuer != who.issuer || subject != who.subject:
		return x.operators.turnedAway(ctx, who.name, a.IP,
			fmt.Sprintf("the operator %s is bound to another identity: ask an admin to unbind it", who.name))
	}
	return nil
}

func because(message string, cause error) error {
	return fault.New(fault.Unauthenticated, "%s", message).
		With(fault.Fault{Code: fault.CodeUnauthenticated, Type: fault.Authentication, Message: message}).Because(cause)
}

func randomText() string {
	b := make([]byte, tokenBytes)
	rand.Read(b) // never fails: the runtime ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}
