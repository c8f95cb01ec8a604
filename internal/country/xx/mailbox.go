package xx

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/xxwire"
)

// settingMailbox of a company: its mailbox is looked into.
const settingMailbox = "mailbox"

// lookEvery suits a demo: whoever tries it wants to see it.
const lookEvery = 2 * time.Second

func fetch() *country.Fetch {
	return &country.Fetch{
		Every: lookEvery, Timeout: 10 * time.Second, Look: lookInto,
		Wanted: func(s country.Supplier) bool {
			wanted, _ := s.Settings[settingMailbox].(bool)
			return wanted
		},
	}
}

func lookInto(ctx context.Context, in country.Inquiry) (country.Fetched, error) {
	ch, ours := in.Channel.(*channel)
	if !ours {
		return country.Fetched{}, fmt.Errorf("looking into the mailbox: the channel is a %T", in.Channel)
	}
	return ch.mailbox(ctx, in)
}

// mailbox reads what lies behind the cursor. A line that is cut or unsigned makes
// the whole answer unknown, as with receipts.
func (ch *channel) mailbox(ctx context.Context, in country.Inquiry) (got country.Fetched, err error) {
	after := in.Cursor
	if after == "" {
		after = "0"
	}
	supplier := supplierNumber(in.Supplier)
	query := url.Values{"after": {after}, "limit": {strconv.Itoa(min(in.Limit, xxwire.MailboxMax))}}
	reply, err := ch.call(ctx, request{method: http.MethodGet, path: xxwire.PathMailbox, query: query.Encode(),
		supplier: supplier}, in.Credentials)
	if err != nil {
		return got, fmt.Errorf("looking into the mailbox: %w", err)
	}
	if got.Wait, err = readWait(reply.Header); err != nil {
		return got, err
	}
	key := xxwire.SigningKey(supplier, in.Credentials.Secret)
	for rest := reply.Body; len(rest) > 0; {
		line, tail, whole := bytes.Cut(rest, []byte{'\n'})
		if !whole {
			return country.Fetched{}, fmt.Errorf("looking into the mailbox: message %d is cut short", len(got.Messages)+1)
		}
		said, err := xxwire.OpenMessage(line, key)
		if err != nil {
			return country.Fetched{}, fmt.Errorf("looking into the mailbox: %w", err)
		}
		receipt, err := receiptOf(said.Receipt, bytes.Clone(line))
		if err != nil {
			return country.Fetched{}, fmt.Errorf("looking into the mailbox: message %q: %w", said.ID, err)
		}
		got.Messages = append(got.Messages, country.Message{Key: said.ID, Handle: said.Key, Receipt: receipt,
			Raw: bytes.Clone(line)})
		rest = tail
	}
	got.Cursor, got.More = reply.Header.Get(xxwire.HeaderNext), reply.Header.Get(xxwire.HeaderMore) != ""
	if n, err := strconv.Atoi(got.Cursor); err != nil || n < 0 {
		return country.Fetched{}, fmt.Errorf("looking into the mailbox: it reaches to %q", got.Cursor)
	}
	return got, nil
}
