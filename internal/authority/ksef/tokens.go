package ksef

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/ksefwire"
)

// Conditions of a KSeF token.
const (
	tokenIsActive  = "Active"
	tokenIsRevoked = "Revoked"
)

// tokenRecord is a KSeF token in the book. The token itself is shown once and
// kept as a hash.
type tokenRecord struct {
	NIP         string    `json:"nip"`
	Description string    `json:"description"`
	Permissions []string  `json:"permissions"`
	Created     time.Time `json:"created"`
	Status      string    `json:"status"`
	Hash        string    `json:"hash"`
}

func (t tokenRecord) shown(reference string) ksefwire.TokenStatus {
	who := ksefwire.Identifier{Type: "Nip", Value: t.NIP}
	return ksefwire.TokenStatus{
		ReferenceNumber: reference, Author: who, Context: who, Description: t.Description, Permissions: t.Permissions,
		DateCreated: t.Created, Status: t.Status,
	}
}

var tokenPermissions = []string{"InvoiceRead", "InvoiceWrite", "CredentialsRead", "CredentialsManage", "SubunitManage",
	"EnforcementOperations", "Introspection"}

// makeToken serves POST /tokens.
func (a *access) makeToken(w http.ResponseWriter, r *http.Request) {
	c, ok := a.caller(w, r, "access")
	if !ok {
		return
	}
	var in ksefwire.GenerateToken
	if !readJSON(w, r, &in) {
		return
	}
	if flaw := tokenFlaw(in); flaw != "" {
		refuse(w, r, http.StatusBadRequest, invalidInput(flaw))
		return
	}
	reference := a.newReference("EC")
	token := reference + "|nip-" + c.NIP + "|" + strings.ToLower(randomHex(64))
	made := tokenRecord{NIP: c.NIP, Description: in.Description, Permissions: in.Permissions, Created: a.now().UTC(),
		Status: tokenIsActive, Hash: tokenHash(token)}
	err := a.desk.Write(func(b *authority.Book) {
		b.Keep("token/"+reference, made)
		all, _ := b.Get("tokens/" + c.NIP)
		b.Put("tokens/"+c.NIP, strings.TrimSpace(all+" "+reference))
	})
	if err != nil {
		broken(w)
		return
	}
	writeJSON(w, http.StatusAccepted, ksefwire.TypeJSON, ksefwire.GeneratedToken{ReferenceNumber: reference, Token: token})
}

func tokenFlaw(in ksefwire.GenerateToken) string {
	if n := len([]rune(in.Description)); n < 5 || n > 256 {
		return "description: wymagane jest od 5 do 256 znaków."
	}
	if len(in.Permissions) == 0 {
		return "permissions: wymagane jest co najmniej jedno uprawnienie."
	}
	for _, p := range in.Permissions {
		if !slices.Contains(tokenPermissions, p) {
			return fmt.Sprintf("permissions: wartość %q nie jest uprawnieniem.", p)
		}
	}
	return ""
}

func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// knownToken looks a token up that the double made itself: "" when it is good
// or none of them, else why it is not.
func (a *access) knownToken(token string) string {
	reference, _, _ := strings.Cut(token, "|")
	var t tokenRecord
	known := false
	a.desk.Read(func(b *authority.Book) { known = b.Load("token/"+reference, &t) })
	switch {
	case !known:
		return ""
	case t.Hash != tokenHash(token):
		return "Nieprawidłowy token"
	case t.Status == tokenIsRevoked:
		return "Token unieważniony"
	}
	return ""
}

// listTokens serves GET /tokens, the newest first.
func (a *access) listTokens(w http.ResponseWriter, r *http.Request) {
	a.asked(w, r, func(c claims) (any, bool) {
		on, ok := readWindow(w, r, 100)
		if !ok {
			return nil, false
		}
		q := r.URL.Query()
		matches := func(t ksefwire.TokenStatus) bool {
			return (len(q["status"]) == 0 || slices.Contains(q["status"], t.Status)) &&
				strings.Contains(strings.ToLower(t.Description), strings.ToLower(q.Get("description"))) &&
				strings.Contains(t.Author.Value, q.Get("authorIdentifier")) &&
				(q.Get("authorIdentifierType") == "" || q.Get("authorIdentifierType") == t.Author.Type)
		}
		var found []ksefwire.TokenStatus
		a.desk.Read(func(b *authority.Book) {
			all, _ := b.Get("tokens/" + c.NIP)
			for _, reference := range strings.Fields(all) {
				var t tokenRecord
				if b.Load("token/"+reference, &t) && matches(t.shown(reference)) {
					found = append(found, t.shown(reference))
				}
			}
		})
		slices.Reverse(found)
		var out ksefwire.TokensList
		out.Tokens, out.Next = cut(found, on)
		return out, true
	})
}

// ownToken finds a token of the caller.
func (a *access) ownToken(w http.ResponseWriter, r *http.Request, nip string) (t tokenRecord, ok bool) {
	reference := r.PathValue("reference")
	a.desk.Read(func(b *authority.Book) { ok = b.Load("token/"+reference, &t) && t.NIP == nip })
	if !ok {
		refuse(w, r, http.StatusBadRequest, invalidInput("Token o numerze referencyjnym "+reference+" nie został znaleziony."))
	}
	return t, ok
}

// tokenStatus serves GET /tokens/{reference}.
func (a *access) tokenStatus(w http.ResponseWriter, r *http.Request) {
	a.asked(w, r, func(c claims) (any, bool) {
		t, ok := a.ownToken(w, r, c.NIP)
		return t.shown(r.PathValue("reference")), ok
	})
}

// revokeToken serves DELETE /tokens/{reference}. Twice is as good as once.
func (a *access) revokeToken(w http.ResponseWriter, r *http.Request) {
	c, ok := a.caller(w, r, "access")
	if !ok {
		return
	}
	t, ok := a.ownToken(w, r, c.NIP)
	if !ok {
		return
	}
	t.Status = tokenIsRevoked
	if a.desk.Write(func(b *authority.Book) { b.Keep("token/"+r.PathValue("reference"), t) }) != nil {
		broken(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// contextLimits serves GET /limits/context (ksef-docs, limity.md).
func (l *limits) contextLimits(w http.ResponseWriter, r *http.Request) {
	l.access.asked(w, r, func(claims) (any, bool) {
		of := ksefwire.SessionLimits{InvoiceMB: 1, AttachedMB: 3, Invoices: ksefwire.SessionInvoicesMax}
		return ksefwire.ContextLimits{Online: of, Batch: of}, true
	})
}

// subjectLimits serves GET /limits/subject: those of a NIP.
func (l *limits) subjectLimits(w http.ResponseWriter, r *http.Request) {
	l.access.asked(w, r, func(claims) (any, bool) {
		var out ksefwire.SubjectLimits
		out.Enrollment.Max, out.Certificate.Max = 300, 100
		return out, true
	})
}

// rateLimits serves GET /rate-limits: those that the double keeps to.
func (l *limits) rateLimits(w http.ResponseWriter, r *http.Request) {
	l.access.asked(w, r, func(claims) (any, bool) { return l.rates, true })
}

// keepActive remembers an authentication whose tokens were handed out, and
// forgets those that have ended.
func (a *access) keepActive(c claims) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for reference, other := range a.active {
		if a.now().Unix() >= other.Expires {
			delete(a.active, reference)
			delete(a.revoked, reference)
			delete(a.redeemed, reference)
		}
	}
	a.active[c.Reference] = c
}

func (a *access) isRevoked(reference string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.revoked[reference]
}

// authentications serves GET /auth/sessions: what was opened since the double
// began, and the caller's own.
func (a *access) authentications(w http.ResponseWriter, r *http.Request) {
	a.asked(w, r, func(c claims) (any, bool) {
		on, ok := readWindow(w, r, 100)
		if !ok {
			return nil, false
		}
		a.mu.Lock()
		open := []claims{}
		for reference, other := range a.active {
			if other.NIP == c.NIP && !a.revoked[reference] && a.now().Unix() < other.Expires {
				open = append(open, other)
			}
		}
		_, listed := a.active[c.Reference]
		a.mu.Unlock()
		if !listed {
			open = append(open, c)
		}
		slices.SortFunc(open, func(a, b claims) int { return strings.Compare(b.Reference, a.Reference) })
		items := make([]ksefwire.AuthItem, 0, len(open))
		for _, o := range open {
			items = append(items, ksefwire.AuthItem{AuthStatus: statusOfAuth(o), ReferenceNumber: o.Reference,
				Current: o.Reference == c.Reference})
		}
		var out ksefwire.AuthList
		out.Items, out.Next = cut(items, on)
		return out, true
	})
}

// revokeCurrent serves DELETE /auth/sessions/current.
func (a *access) revokeCurrent(w http.ResponseWriter, r *http.Request) {
	if c, ok := a.caller(w, r, "access"); ok {
		a.revoke(w, c.Reference)
		return
	}
}

// revokeOther serves DELETE /auth/sessions/{reference}.
func (a *access) revokeOther(w http.ResponseWriter, r *http.Request) {
	c, ok := a.caller(w, r, "access")
	if !ok {
		return
	}
	reference := r.PathValue("reference")
	a.mu.Lock()
	other, known := a.active[reference]
	a.mu.Unlock()
	if reference != c.Reference && (!known || other.NIP != c.NIP) {
		refuse(w, r, http.StatusBadRequest, invalidInput(
			"Sesja uwierzytelnienia o numerze referencyjnym "+reference+" nie została znaleziona."))
		return
	}
	a.revoke(w, reference)
}

func (a *access) revoke(w http.ResponseWriter, reference string) {
	a.mu.Lock()
	a.revoked[reference] = true
	a.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}
