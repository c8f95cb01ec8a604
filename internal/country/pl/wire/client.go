package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tributary/internal/country"
	"tributary/internal/official/ksefwire"
)

// request is one call of the API.
type request struct {
	method string
	path   string
	query  string
	bearer string
	header []string // names and values
	body   []byte
	media  string // of the body
	want   int    // the status of success
	limit  int64
}

// call makes one call. A refusal in KSeF's own words is a *Refusal; every other
// error says nothing about what KSeF did, unless it wraps [country.ErrNotTaken].
func (ch *Client) call(ctx context.Context, req request) (country.Reply, error) {
	target := ch.base + req.path
	if req.query != "" {
		target += "?" + req.query
	}
	head := append([]string{ksefwire.HeaderErrorFormat, ksefwire.ProblemDetails, "Content-Type", req.media}, req.header...)
	if req.bearer != "" {
		head = append(head, "Authorization", "Bearer "+req.bearer)
	}
	reply, err := country.Request{Method: req.method, URL: target, Header: head, Body: req.body,
		BytesMax: cmp.Or(req.limit, answerBytesMax)}.Do(ctx, ch.at.HTTP)
	if err != nil {
		return country.Reply{}, err
	}
	if reply.Status == req.want {
		return reply, nil
	}
	if no, ok := ReadRefusal(reply); ok {
		return reply, no
	}
	return reply, fmt.Errorf("KSeF answered with status %d and no answer of its own", reply.Status)
}

// callJSON makes a call whose answer is JSON.
func (ch *Client) callJSON(ctx context.Context, req request, in, out any) (country.Reply, error) {
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return country.Reply{}, fmt.Errorf("writing a call: %w: %w", country.ErrNotTaken, err)
		}
		req.body, req.media = body, ksefwire.TypeJSON
	}
	reply, err := ch.call(ctx, req)
	if err != nil {
		return reply, err
	}
	if !strings.HasPrefix(reply.Header.Get("Content-Type"), ksefwire.TypeJSON) {
		return reply, fmt.Errorf("KSeF answered with %q instead of JSON", reply.Header.Get("Content-Type"))
	}
	if err := json.Unmarshal(reply.Body, out); err != nil {
		return reply, fmt.Errorf("reading KSeF's answer: %w", err)
	}
	return reply, nil
}

// authorised makes a call with the account's access token. A token that KSeF
// does not take any more is replaced once: nothing was done then.
func (a visit) authorised(ctx context.Context, req request, in, out any) (country.Reply, error) {
	for again := false; ; again = true {
		bearer, err := a.bearer(ctx)
		if err != nil {
			return country.Reply{}, unsent(err)
		}
		req.bearer = bearer
		var reply country.Reply
		if out != nil {
			reply, err = a.account.ch.callJSON(ctx, req, in, out)
		} else {
			reply, err = a.account.ch.call(ctx, req)
		}
		var no *Refusal
		if !errors.As(err, &no) || no.status != http.StatusUnauthorized {
			return reply, err
		}
		a.forget(bearer)
		if again {
			return reply, fmt.Errorf("%w: %w: a fresh access token is refused: %w", country.ErrNotTaken, country.ErrCredentials, err)
		}
	}
}

// unsent marks an error of a step before the one that counts: whatever KSeF
// made of it, the call itself never left.
func unsent(err error) error {
	if errors.Is(err, country.ErrNotTaken) {
		return err
	}
	return fmt.Errorf("%w: %w", country.ErrNotTaken, err)
}

// classified tells refusals that only other credentials fix from the others.
func classified(err error) error {
	var no *Refusal
	if !errors.As(err, &no) {
		return err
	}
	switch {
	case no.status == http.StatusForbidden && no.reason != "insufficient-resource-access",
		no.has(ksefwire.CodeCertificate, ksefwire.CodeContext, ksefwire.CodeSignatureType, ksefwire.CodeSignature,
			ksefwire.CodeSignatureMissing, ksefwire.CodeNotAuthorised):
		return fmt.Errorf("%w: %w: %w", country.ErrNotTaken, country.ErrCredentials, err)
	}
	return err
}
