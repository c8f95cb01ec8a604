package pl

import (
	"context"
	"crypto/sha256"
	"net/http"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/official/ksefwire"
)

// What the tests beside this package look at.

func CodeOne(nip string, issued time.Time, sum [sha256.Size]byte) string {
	return codeOne(qrTest, nip, issued, sum)
}

func CodeTwo(nip string, sum [sha256.Size]byte, id *identity.Identity) (string, error) {
	return codeTwo(qrTest, nip, sum, id)
}

func QRBase(at country.Endpoint) string { return qrBase(at) }

func SignedRequest(challenge, nip string, id *identity.Identity, now time.Time) ([]byte, error) {
	return signedRequest(challenge, nip, id, now)
}

func Seal(text, key, iv []byte) []byte { return sealed(text, key, iv) }

func CheckUPO(body []byte) error { return checkUPO(body) }

func ReadRefusal(status int, header http.Header, body []byte) (text string, wait time.Duration, ok bool) {
	no, ok := readRefusal(country.Reply{Status: status, Header: header, Body: body})
	if !ok {
		return "", 0, false
	}
	return no.Error(), no.wait, true
}

// SetClock gives a channel another time, in which waiting is only told.
func SetClock(ch country.Channel, now func() time.Time, advance func(time.Duration)) {
	ch.(*channel).now = now
	ch.(*channel).rest = func(ctx context.Context, wait time.Duration) error {
		advance(wait)
		return ctx.Err()
	}
}

// FillSession makes a session of the channel's only account full.
func FillSession(ch country.Channel) {
	for _, a := range ch.(*channel).accounts {
		a.session.sent = ksefwire.SessionInvoicesMax
	}
}

const PagesMax = pagesMax

func Holiday(day time.Time) bool { return holiday(day) }

func SetPartMax(ch country.Channel, bytes int) { ch.(*channel).partMax = bytes }
