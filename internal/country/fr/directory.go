package fr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
)

const (
	pathLines = "/v1/directory-line/search"

	// lineFor is how long what the directory says of a SIREN is not asked for again;
	// that nobody has registered it is asked for every time.
	lineFor = 10 * time.Minute

	// fictive is the type of platform behind the lines of who has chosen none yet
	// (external specifications 3.2, § 3.5).
	fictive  = "DFH"
	disabled = "Disabled"
)

// listed is what the directory says of a SIREN.
type listed struct {
	addresses []string // where invoices are received, as the directory has them
	until     time.Time
}

// learned is what a draft is told of the directory; it is stored with nothing.
type learned struct {
	Address  string `json:"address,omitempty"`
	Unlisted bool   `json:"unlisted,omitempty"`
}

func readLearned(text string) (l learned, err error) {
	if text == "" {
		return l, nil
	}
	if err = json.Unmarshal([]byte(text), &l); err != nil {
		return l, fmt.Errorf("reading what the directory said: %w", err)
	}
	return l, nil
}

// Learn asks the directory where a business in France receives invoices. One that
// is not in it, or has not chosen a platform, gets none by the platform: its sale is
// told as one to a consumer (external specifications 3.2, § 2.3.3).
func (ch *channel) Learn(ctx context.Context, in country.Draft, c country.Credentials) (country.Learned, error) {
	t := whole(&in)
	if routeOf(&t, false) != betweenBusinesses {
		return country.Learned{}, nil
	}
	who := buyer(t.Customer)
	if who.siren == "" {
		return country.Learned{}, nil // refused when it is prepared
	}
	lines, err := ch.linesOf(ctx, company(&in.Supplier).siren, who.siren, c)
	if err != nil {
		return country.Learned{}, fmt.Errorf("asking the directory for %s: %w", who.siren, err)
	}
	var l learned
	var warnings []fault.Fault
	switch {
	case len(lines) == 0:
		l.Unlisted = true
		warnings = append(warnings, fault.Warn("customer.entity_number", fault.TaxNumberDoubtful,
			"%s is in the directory of nobody who receives electronic invoices: the sale is told like one to a consumer, and the invoice is yours to send", who.siren))
	case t.Customer.Electronic != nil:
		l.Address = t.Customer.Electronic.ID
		if !slices.Contains(lines, l.Address) {
			warnings = append(warnings, fault.Warn("customer.electronic_address", fault.ValueAssumed,
				"%s is not in the directory, which has %s", l.Address, strings.Join(lines[:min(3, len(lines))], ", ")))
		}
	default:
		l.Address = choose(lines, who)
	}
	text, err := json.Marshal(l)
	return country.Learned{Text: string(text), Warnings: warnings}, err
}

// choose prefers the line of the establishment that the client names, then that of
// the company, then the first.
func choose(lines []string, who register) string {
	for _, want := range []string{who.siren + "_" + who.siret, who.siren} {
		if slices.Contains(lines, want) {
			return want
		}
	}
	return lines[0]
}

// linesOf are the addresses of a SIREN.
func (ch *channel) linesOf(ctx context.Context, own, siren string, c country.Credentials) ([]string, error) {
	if l, known := ch.lines.Get(siren); known && ch.now().Before(l.until) {
		return l.addresses, nil
	}
	body, err := json.Marshal(map[string]any{"limit": pageMost,
		"filters": map[string]any{"siren": map[string]string{"op": "strict", "value": siren}}})
	if err != nil {
		return nil, err
	}
	reply, err := ch.call(ctx, own, country.Request{URL: ch.directory + pathLines, Body: body, Header: []string{"Content-Type", "application/json"}}, c)
	if err != nil {
		return nil, err
	}
	var got struct {
		Results []struct {
			Address  string `json:"addressingIdentifier"`
			SIREN    string `json:"siren"`
			Status   string `json:"directoryLineStatus"`
			Platform string `json:"platformStatus"`
			Type     string `json:"platformType"`
		} `json:"results"`
	}
	if err := read(reply, &got); err != nil {
		return nil, err
	}
	if got.Results == nil {
		return nil, errors.New("the answer of the directory has no results")
	}
	var lines []string
	for _, r := range got.Results {
		switch {
		case r.SIREN != siren || r.Address != siren && !strings.HasPrefix(r.Address, siren+"_"):
			return nil, fmt.Errorf("the directory answers about %q", clip([]byte(r.SIREN)))
		case r.Status == disabled || r.Platform == disabled || r.Type == fictive:
		default:
			lines = append(lines, r.Address)
		}
	}
	if len(lines) > 0 {
		ch.lines.Put(siren, listed{lines, ch.now().Add(lineFor)})
	}
	return lines, nil
}
