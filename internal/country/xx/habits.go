package xx

import (
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/xxwire"
)

// Habits are abilities of real authorities that XX by itself does not show, so
// that each can be tried on its own. The zero value is XX.
type Habits struct {
	Listen   country.Listening // somebody may speak after SUCCESS
	Sequence bool              // every document carries a number that was never used before
	Numbered bool              // corrections of one document are numbered, each naming the one before
	Refusal  country.Refusal   // of class C: what a refused link means to those behind it
	AnyOrder bool              // of class C: links may arrive in any order
}

func (h Habits) limits(l country.Limits) country.Limits {
	l.Listen, l.InSuccession = h.Listen, h.Numbered
	l.Refusal, l.AnyOrder = h.Refusal, h.AnyOrder
	return l
}

// mark writes into a document what the habits ask for.
func (h Habits) mark(doc *document, in *country.Draft) error {
	if h.Sequence {
		if in.Sequence < 1 {
			return fmt.Errorf("writing the document of %s: it needs a number of the sequence", in.Transaction.ID)
		}
		doc.Sequence = in.Sequence
	}
	if h.Numbered && in.Original != nil {
		doc.Reference.Index = len(in.Original.Corrections) + 1
		if last := doc.Reference.Index - 2; last >= 0 {
			doc.Reference.After = in.Original.Corrections[last].Number
		}
	}
	if doc.Chain != nil {
		doc.Chain.Refusal = string(h.Refusal)
		if h.AnyOrder {
			doc.Chain.Order = xxwire.AnyOrder
		}
	}
	return nil
}

// readNotices reads what was said about a document after it was registered.
func readNotices(list []xxwire.Notice) (news []country.News, err error) {
	for _, n := range list {
		at, err := time.Parse(time.RFC3339, n.At)
		if err != nil {
			return nil, fmt.Errorf("reading the time of notice %q: %w", n.Key, err)
		}
		news = append(news, country.News{
			Key: n.Key, At: at, Code: n.Code, Name: n.Name, Source: country.Source(n.Source),
			Severity: country.Severity(n.Severity), Message: n.Message,
		})
	}
	return news, nil
}
