package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/ksefwire"
)

// Sizes of what is read of KSeF.
const (
	answerBytesMax = 1 << 20 // a page of 250 invoices of a query
	upoBytesMax    = 1 << 20
	listBytesMax   = 4 << 20 // a page of 1,000 invoices of a session
)

// Refusal is KSeF's own word that it did not do what a call asked for.
type Refusal struct {
	status int
	codes  []int
	reason string // of a 403
	text   string
	Wait   time.Duration // of a 429
}

func (no *Refusal) Error() string {
	return fmt.Sprintf("KSeF refused the call with status %d: %s", no.status, no.text)
}

func (no *Refusal) has(codes ...int) bool {
	for _, have := range no.codes {
		for _, code := range codes {
			if have == code {
				return true
			}
		}
	}
	return false
}

const (
	waitDefault = 30 * time.Second
	waitMax     = 24 * time.Hour // who breaks the limits again and again is kept out for long
)

// ReadRefusal reads a refused call. A page of a proxy with the same status is
// no word of KSeF: it is false then.
func ReadRefusal(reply country.Reply) (*Refusal, bool) {
	if reply.Status < 400 || reply.Status >= 500 || !strings.Contains(reply.Header.Get("Content-Type"), "json") {
		return nil, false
	}
	var p ksefwire.Problem
	if json.Unmarshal(reply.Body, &p) != nil {
		return nil, false
	}
	no := &Refusal{status: reply.Status, reason: p.ReasonCode, text: strings.TrimSpace(p.Title + " " + p.Detail)}
	for _, e := range p.Errors {
		no.codes = append(no.codes, e.Code)
		no.text += fmt.Sprintf("; %d %s", e.Code, e.Description)
		if len(e.Details) > 0 {
			no.text += ": " + strings.Join(e.Details, ", ")
		}
	}
	if p.Title == "" && !readLegacy(reply, no) {
		return nil, false
	}
	if reply.Status == http.StatusTooManyRequests {
		no.Wait = retryAfter(reply.Header)
	}
	return no, true
}

// readLegacy reads the older form of a refusal, which KSeF still uses for
// calls whose header got lost on the way.
func readLegacy(reply country.Reply, no *Refusal) bool {
	var old struct {
		Exception *struct {
			List []struct {
				Code        int      `json:"exceptionCode"`
				Description string   `json:"exceptionDescription"`
				Details     []string `json:"details"`
			} `json:"exceptionDetailList"`
		} `json:"exception"`
		Status *ksefwire.Status `json:"status"`
	}
	if json.Unmarshal(reply.Body, &old) != nil || old.Exception == nil && old.Status == nil {
		return false
	}
	if old.Status != nil {
		no.text = old.Status.Text()
		return true
	}
	var texts []string
	for _, e := range old.Exception.List {
		no.codes = append(no.codes, e.Code)
		texts = append(texts, fmt.Sprintf("%d %s %s", e.Code, e.Description, strings.Join(e.Details, ", ")))
	}
	no.text = strings.Join(texts, "; ")
	return true
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if err != nil {
		return waitDefault
	}
	return min(time.Duration(seconds)*time.Second, waitMax)
}
