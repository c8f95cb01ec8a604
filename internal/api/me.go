package api

import (
	"net/http"
	"net/netip"
	"strings"

	"tributary/internal/account"
	"tributary/internal/result"
)

// meAnswer says whose key this is and how far it goes.
type meAnswer struct {
	ClientID    string          `json:"client_id"`
	Environment string          `json:"environment"`
	KeyID       string          `json:"key_id"`
	Scopes      []account.Scope `json:"scopes"`
	ExpiresAt   *string         `json:"expires_at"`
	Limits      meLimits        `json:"limits"`
}

// meLimits are what bounds this caller.
type meLimits struct {
	PerSecond *int           `json:"requests_per_second"`
	Burst     *int           `json:"burst"`
	PerNode   bool           `json:"per_node"` // always: each node counts for itself
	BodyBytes int            `json:"body_bytes_max"`
	Networks  []netip.Prefix `json:"networks"`
}

func me(c *call) error {
	if err := c.query().err(); err != nil {
		return err
	}
	answer := meAnswer{ClientID: c.caller.ClientID, Environment: "test", KeyID: c.caller.Kid, Scopes: account.Scopes(),
		Limits: meLimits{PerNode: true, BodyBytes: bodyBytesMax, Networks: []netip.Prefix{}}}
	if c.caller.Live {
		answer.Environment = "live"
	}
	if rate := c.caller.Config.Rate; rate.PerSecond > 0 {
		answer.Limits.PerSecond, answer.Limits.Burst = &rate.PerSecond, &rate.Burst
	}
	if limits := c.caller.Limits; limits != nil {
		answer.Scopes = limits.Scopes
		answer.Limits.Networks = append(answer.Limits.Networks, limits.Networks...)
		if !limits.ExpiresAt.IsZero() {
			until := result.Stamp(limits.ExpiresAt)
			answer.ExpiresAt = &until
		}
	}
	return c.answer(http.StatusOK, answer)
}

// scopesOf says which scopes a route asks for, one of them; none: any key will do.
func scopesOf(rt route) []account.Scope {
	reads := rt.method == http.MethodGet
	switch {
	case rt.path == "/v1/me", strings.HasPrefix(rt.path, "/v1/countries"):
		return nil
	case strings.HasPrefix(rt.path, "/lookup/"):
		return []account.Scope{account.ScopeLookup}
	case strings.HasPrefix(rt.path, "/v1/webhooks/"):
		return []account.Scope{account.ScopeWebhooks}
	case strings.HasPrefix(rt.path, "/onboarding/") && reads:
		return []account.Scope{account.ScopeOnboard, account.ScopeRead}
	case strings.HasPrefix(rt.path, "/onboarding/"):
		return []account.Scope{account.ScopeOnboard}
	case reads:
		return []account.Scope{account.ScopeRead}
	}
	return []account.Scope{account.ScopeSubmit}
}
