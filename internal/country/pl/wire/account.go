package wire

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/ksefwire"
)

const (
	accountsMax = 4096

	// margins before an end at which something new is asked for.
	tokenMargin   = 30 * time.Second
	sessionMargin = 10 * time.Minute

	closeTimeout = 5 * time.Second

	// How KSeF is asked whether an authentication is through: it is decided at
	// once for tokens and KSeF certificates, later for qualified ones.
	authPauseFirst = 100 * time.Millisecond
	authPauseMax   = 2 * time.Second
)

// account is one supplier at KSeF with one set of credentials: its tokens and
// its open session. It lives in memory only; whatever is lost is asked for again.
//
// Failure policy: one call authenticates or opens a session at a time and the
// others wait for it, so that a crowd of filings makes one session. Filings
// then go in parallel.
type account struct {
	ch   *Client
	nip  string
	auth string

	mu      sync.Mutex
	access  ksefwire.TimedToken
	refresh ksefwire.TimedToken
	session *session

	pace    pace
	batches batches
	days    days
}

// visit is an account with the credentials of one call. They are never kept:
// the account is found by a digest over them.
type visit struct {
	account *account
	creds   country.Credentials
}

// session is an interactive session of KSeF with the key of its invoices.
type session struct {
	reference string
	key       []byte
	iv        []byte
	until     time.Time
	sent      int
}

// visit answers the account of credentials. A way of authentication that the
// credentials do not allow gives place to the one they do.
func (ch *Client) visit(nip, auth string, c country.Credentials) (visit, error) {
	switch {
	case c.Secret == "" && len(c.PKCS12) == 0:
		return visit{}, fmt.Errorf("%w: %w: there is neither a KSeF token nor a certificate", country.ErrNotTaken,
			country.ErrCredentials)
	case len(c.PKCS12) == 0:
		auth = AuthToken
	case c.Secret == "":
		auth = AuthXAdES
	case auth != AuthToken:
		auth = AuthXAdES
	}
	key := accountKey(nip, auth, c)
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if a, ok := ch.accounts[key]; ok {
		return visit{a, c}, nil
	}
	for other := range ch.accounts {
		if len(ch.accounts) < accountsMax {
			break
		}
		delete(ch.accounts, other) // it only authenticates again
	}
	a := &account{ch: ch, nip: nip, auth: auth}
	ch.accounts[key] = a
	return visit{a, c}, nil
}

func accountKey(nip, auth string, c country.Credentials) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, part := range []string{nip, auth, c.Secret, c.Password, string(c.PKCS12)} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	h.Sum(sum[:0])
	return sum
}

// bearer answers an access token that holds for a while.
func (a visit) bearer(ctx context.Context) (string, error) {
	a.account.mu.Lock()
	defer a.account.mu.Unlock()
	return a.bearerLocked(ctx)
}

func (a visit) bearerLocked(ctx context.Context) (string, error) {
	soon := a.account.ch.Now().Add(tokenMargin)
	if a.account.access.Token != "" && soon.Before(a.account.access.ValidUntil) {
		return a.account.access.Token, nil
	}
	if a.account.refresh.Token != "" && soon.Before(a.account.refresh.ValidUntil) {
		var out ksefwire.Tokens
		_, err := a.account.ch.callJSON(ctx, request{method: http.MethodPost, path: ksefwire.PathRefresh, bearer: a.account.refresh.Token,
			want: http.StatusOK}, nil, &out)
		var no *Refusal
		switch {
		case err == nil && out.Access.Token != "":
			a.account.access = out.Access
			return a.account.access.Token, nil
		case !errors.As(err, &no) || no.status == http.StatusTooManyRequests:
			return "", fmt.Errorf("refreshing the access token: %w", err)
		}
	}
	a.account.access, a.account.refresh = ksefwire.TimedToken{}, ksefwire.TimedToken{}
	tokens, err := a.authenticate(ctx)
	if errors.As(err, new(*Refusal)) && keyRefused(err) {
		a.account.ch.forgetKeys()
		tokens, err = a.authenticate(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("authenticating to KSeF: %w", classified(err))
	}
	a.account.access = tokens.Access
	if tokens.Refresh != nil {
		a.account.refresh = *tokens.Refresh
	}
	return a.account.access.Token, nil
}

func keyRefused(err error) bool {
	var no *Refusal
	return errors.As(err, &no) && no.has(ksefwire.CodeKey)
}

// forget drops an access token that KSeF refused.
func (a visit) forget(bearer string) {
	a.account.mu.Lock()
	defer a.account.mu.Unlock()
	if a.account.access.Token == bearer {
		a.account.access = ksefwire.TimedToken{}
	}
}

// authenticate goes from a challenge to a pair of tokens (ksef-docs,
// uwierzytelnianie.md).
func (a visit) authenticate(ctx context.Context) (ksefwire.Tokens, error) {
	var challenge ksefwire.Challenge
	if _, err := a.account.ch.callJSON(ctx, request{method: http.MethodPost, path: ksefwire.PathChallenge, want: http.StatusOK},
		nil, &challenge); err != nil {
		return ksefwire.Tokens{}, fmt.Errorf("asking for a challenge: %w", err)
	}
	begin := a.byToken
	if a.account.auth == AuthXAdES && !a.signsCodesOnly() {
		begin = a.bySignature
	}
	begun, err := begin(ctx, challenge)
	if err != nil {
		return ksefwire.Tokens{}, err
	}
	if err := a.awaitAuthentication(ctx, begun); err != nil {
		return ksefwire.Tokens{}, err
	}
	var tokens ksefwire.Tokens
	redeem := request{method: http.MethodPost, path: ksefwire.PathRedeem, bearer: begun.Authentication.Token,
		want: http.StatusOK}
	if _, err := a.account.ch.callJSON(ctx, redeem, nil, &tokens); err != nil {
		return ksefwire.Tokens{}, fmt.Errorf("redeeming the tokens: %w", err)
	}
	if tokens.Access.Token == "" {
		return ksefwire.Tokens{}, errors.New("KSeF gave no access token")
	}
	return tokens, nil
}

// signsCodesOnly reports whether there is a token beside a certificate that
// cannot authenticate: one of type Offline, which is there for KOD II.
func (a visit) signsCodesOnly() bool {
	if a.creds.Secret == "" {
		return false
	}
	id, err := a.account.ch.identities.Open(a.creds.Certificate(), a.account.ch.Now())
	return err == nil && !authenticates(id.Leaf)
}

// byToken sends the KSeF token with the challenge's time, encrypted.
func (a visit) byToken(ctx context.Context, c ksefwire.Challenge) (begun ksefwire.AuthResponse, err error) {
	text := a.creds.Secret + "|" + strconv.FormatInt(c.TimestampMs, 10)
	cipher, keyID, err := a.account.ch.encrypt(ctx, ksefwire.UsageToken, []byte(text))
	if err != nil {
		return begun, err
	}
	in := ksefwire.TokenRequest{
		Challenge: c.Challenge, Context: ksefwire.Identifier{Type: "Nip", Value: a.account.nip},
		EncryptedToken: base64.StdEncoding.EncodeToString(cipher), PublicKeyID: keyID,
	}
	_, err = a.account.ch.callJSON(ctx, request{method: http.MethodPost, path: ksefwire.PathToken, want: http.StatusAccepted}, in,
		&begun)
	if err != nil {
		return begun, fmt.Errorf("authenticating with the token: %w", err)
	}
	return begun, nil
}

// bySignature sends the challenge signed with the supplier's certificate.
func (a visit) bySignature(ctx context.Context, c ksefwire.Challenge) (begun ksefwire.AuthResponse, err error) {
	now := a.account.ch.Now()
	id, err := a.account.ch.identities.Open(a.creds.Certificate(), now)
	if err != nil {
		return begun, err
	}
	if !authenticates(id.Leaf) {
		return begun, fmt.Errorf("%w: the KSeF certificate is of type Offline and cannot authenticate", country.ErrCredentials)
	}
	body, err := SignedRequest(c.Challenge, a.account.nip, id, now)
	if err != nil {
		return begun, err
	}
	_, err = a.account.ch.callJSON(ctx, request{method: http.MethodPost, path: ksefwire.PathXAdES, body: body,
		media: ksefwire.TypeXML, want: http.StatusAccepted}, nil, &begun)
	if err != nil {
		return begun, fmt.Errorf("authenticating with the certificate: %w", err)
	}
	return begun, nil
}

// refusedStatus is the status with which KSeF ended an authentication.
type refusedStatus struct{ ksefwire.Status }

func (r *refusedStatus) Error() string { return "KSeF: " + r.Text() }

// awaitAuthentication asks until KSeF has decided, or the call's time is up.
func (a visit) awaitAuthentication(ctx context.Context, begun ksefwire.AuthResponse) error {
	ask := request{method: http.MethodGet, path: "/auth/" + url.PathEscape(begun.ReferenceNumber),
		bearer: begun.Authentication.Token, want: http.StatusOK}
	for pause := authPauseFirst; ; pause = min(2*pause, authPauseMax) {
		var state ksefwire.AuthStatus
		if _, err := a.account.ch.callJSON(ctx, ask, nil, &state); err != nil {
			return fmt.Errorf("asking for the authentication: %w", err)
		}
		switch code := state.Status.Code; {
		case code == ksefwire.StatusSuccess:
			return nil
		case code >= 400 && code < 500:
			return fmt.Errorf("%w: %w", country.ErrCredentials, &refusedStatus{state.Status})
		case code >= 500:
			return fmt.Errorf("authenticating: %w", &refusedStatus{state.Status})
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("waiting for the authentication: %w", ctx.Err())
		}
	}
}

// seat answers the open session and counts one more invoice in it. A session
// near its end or full gives place to a new one.
func (a visit) seat(ctx context.Context) (session, error) {
	a.account.mu.Lock()
	defer a.account.mu.Unlock()
	if s := a.account.session; s != nil && s.sent < a.account.ch.SessionMax && a.account.ch.Now().Add(sessionMargin).Before(s.until) {
		s.sent++
		return *s, nil
	}
	if a.account.session != nil {
		a.close(ctx, a.account.session.reference)
		a.account.session = nil
	}
	opened, err := a.open(ctx)
	if keyRefused(err) {
		a.account.ch.forgetKeys()
		opened, err = a.open(ctx)
	}
	if err != nil {
		return session{}, fmt.Errorf("opening a session: %w", classified(err))
	}
	opened.sent = 1
	a.account.session = opened
	return *opened, nil
}

// newSession has a key of its own and is not open yet.
func newSession() *session {
	s := &session{key: make([]byte, 32), iv: make([]byte, 16)}
	rand.Read(s.key) // never fails: the runtime ends the program instead
	rand.Read(s.iv)  // likewise
	return s
}

// open opens a session with a key of its own. The lock is held.
func (a visit) open(ctx context.Context) (*session, error) {
	s := newSession()
	for again := false; ; again = true {
		bearer, err := a.bearerLocked(ctx)
		if err != nil {
			return nil, err
		}
		cipher, keyID, err := a.account.ch.encrypt(ctx, ksefwire.UsageSession, s.key)
		if err != nil {
			return nil, err
		}
		in := ksefwire.SessionRequest{
			FormCode:   formCode(),
			Encryption: ksefwire.Encryption{Key: cipher, IV: s.iv, PublicKeyID: keyID},
		}
		var out ksefwire.SessionResponse
		_, err = a.account.ch.callJSON(ctx, request{method: http.MethodPost, path: ksefwire.PathOnline, bearer: bearer,
			want: http.StatusCreated}, in, &out)
		var no *Refusal
		if errors.As(err, &no) && no.status == http.StatusUnauthorized && !again {
			a.account.access = ksefwire.TimedToken{}
			continue
		}
		if err != nil {
			return nil, err
		}
		s.reference, s.until = out.ReferenceNumber, out.ValidUntil
		return s, nil
	}
}

func formCode() ksefwire.FormCode {
	return ksefwire.FormCode{SystemCode: ksefwire.SystemCode, SchemaVersion: ksefwire.SchemaVersion, Value: ksefwire.FormValue}
}

// close ends a session that is left. KSeF ends it by itself as well, so an
// answer is not needed. The lock is held.
func (a visit) close(ctx context.Context, reference string) {
	if a.account.access.Token == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	// a session that stays open closes by itself
	_, _ = a.account.ch.call(ctx, request{method: http.MethodPost,
		path: ksefwire.PathOnline + "/" + url.PathEscape(reference) + "/close", bearer: a.account.access.Token, want: http.StatusNoContent})
}

// leave drops a session that KSeF does not take invoices for any more.
func (a visit) leave(reference string) {
	a.account.mu.Lock()
	defer a.account.mu.Unlock()
	if a.account.session != nil && a.account.session.reference == reference {
		a.account.session = nil
	}
}

// current is the reference of the open session, or "".
func (a visit) current() string {
	a.account.mu.Lock()
	defer a.account.mu.Unlock()
	if a.account.session == nil {
		return ""
	}
	return a.account.session.reference
}
