package packtest

import (
	"context"
	"slices"
	"testing"

	"tributary/internal/country"
)

// mailbox asks of a pack whose authority keeps messages for a company: a decision
// that lies there is found from the beginning, again as long as the cursor stays,
// and no more behind it; pages together hold what one look held.
func (s suite) mailbox(t *testing.T) {
	if s.o.Abilities.Mailbox == "" {
		t.Fatal("the pack looks into mailboxes, and the suite is not told how its double fills them")
	}
	if s.pack.Fetch.Wants(country.Supplier{Closed: true}) {
		t.Error("the mailbox of a company that is closed")
	}
	w := s.wired(t)
	draft := s.o.Cases[0].Draft
	draft.Transaction.Number += s.o.Abilities.Mailbox
	filing := s.prepare(t, w, draft)
	receipts, err := w.channel.Send(t.Context(), []country.Filing{filing}, w.creds)
	if err != nil || receipts[0].Outcome != country.Pending {
		t.Fatalf("sent: %+v %v", receipts, err)
	}
	in := country.Inquiry{Channel: w.channel, Supplier: draft.Supplier, Credentials: w.creds, Limit: country.FetchMessagesMax}
	first := s.looked(t, in)
	s.decides(t, first.Messages, append(filing.Aliases, filing.DedupeKey, receipts[0].Handle))
	if again := s.looked(t, in); !slices.Equal(names(again.Messages), names(first.Messages)) || again.Cursor != first.Cursor {
		t.Errorf("looked again it holds %v to %q instead of %v to %q", names(again.Messages), again.Cursor,
			names(first.Messages), first.Cursor)
	}
	var pages []string
	one := in
	for one.Limit = 1; len(pages) <= len(first.Messages); {
		page := s.looked(t, one)
		if len(page.Messages) > 1 {
			t.Fatalf("%d messages where one was asked for", len(page.Messages))
		}
		pages, one.Cursor = append(pages, names(page.Messages)...), page.Cursor
		if !page.More {
			break
		}
	}
	if !slices.Equal(pages, names(first.Messages)) || one.Cursor != first.Cursor {
		t.Errorf("page by page it holds %v", pages)
	}
	in.Cursor = first.Cursor
	if behind := s.looked(t, in); len(behind.Messages) > 0 || behind.More || behind.Cursor != first.Cursor {
		t.Errorf("behind everything: %+v", behind)
	}
	if n := len(w.registrations(t)); n != 1 {
		t.Errorf("%d registered", n)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := s.pack.Fetch.Look(gone, in); err == nil || len(got.Messages) > 0 {
		t.Errorf("a look that was broken off brings %+v", got)
	}
}

func (s suite) looked(t *testing.T, in country.Inquiry) country.Fetched {
	t.Helper()
	got, err := s.pack.Fetch.Look(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got.Cursor == "" && len(got.Messages) > 0 {
		t.Error("messages, and no cursor behind them")
	}
	return got
}

// decides finds one decision among messages, by whatever name they have it.
func (s suite) decides(t *testing.T, list []country.Message, handles []string) {
	t.Helper()
	decisions := map[string]bool{}
	for _, m := range list {
		if m.Key == "" || len(m.Raw) == 0 || !slices.Contains(handles, m.Handle) ||
			s.o.Abilities.MailboxNews && (m.Receipt.Outcome != "" || len(m.Receipt.News) == 0) {
			t.Errorf("a message about %q: %+v", m.Handle, m)
		}
		if m.Receipt.Outcome == country.Accepted {
			decisions[m.Key] = true
		}
	}
	if s.o.Abilities.MailboxNews {
		if len(decisions) > 0 || len(list) == 0 {
			t.Errorf("%d decisions in %d messages, where news alone is told", len(decisions), len(list))
		}
		return
	}
	if len(decisions) != 1 {
		t.Errorf("%d decisions in %d messages", len(decisions), len(list))
	}
}

func names(list []country.Message) (keys []string) {
	for _, m := range list {
		keys = append(keys, m.Key)
	}
	return keys
}
