package account_test

import (
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
)

func TestSignatureHeaderIsANameWithoutAnotherMeaning(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	n.create(t, "acme")
	for name, ok := range map[string]bool{
		"": true, "X-Signature": true, "Acme-Hmac-SHA256": true, "Signature": true, "ab": true,
		"X-" + strings.Repeat("a", account.SignatureHeaderMax-2): true,
		"X-" + strings.Repeat("a", account.SignatureHeaderMax-1): false,
		"X-Signature-Next": false, "x-signature-NEXT": false, "a": false, "1-Header": false, "X Signature": false,
		"X-Signature:": false, "X_Signature": false, "-X": false, "X-": false, "X-Ä": false, "X-\r\nHost": false,
		"Host": false, "content-length": false, "Content-Type": false, "Authorization": false, "Cookie": false,
		"Set-Cookie": false, "Connection": false, "Transfer-Encoding": false, "Idempotency-Key": false,
		"webhook-signature": false, "Webhook-Id": false, "Proxy-Authorization": false, "Expect": false, "User-Agent": false,
		"X-Forwarded-For": false, "If-Match": false, "TE": false, "Trailer": false, "Upgrade": false,
	} {
		c, err := n.Configure(t.Context(), operator(), "acme", func(c *account.Config) error {
			c.SignatureHeader = name
			return nil
		})
		if (err == nil) != ok || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", name, err)
		}
		if err == nil && c.Config.SignatureHeader != name {
			t.Errorf("%q is stored as %q", name, c.Config.SignatureHeader)
		}
	}
}
