package operator_test

import (
	"strings"
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

func TestPasswordsThatAreGuessedEarlyAreRefused(t *testing.T) {
	t.Parallel()
	b := open(t, dbtest.SQLite(t))
	try := func(text string) error {
		_, err := b.SetPassword(t.Context(), admin(), "ana", secret.FromText(text))
		return err
	}
	b.hire("ana", operator.Viewer)
	for _, text := range []string{
		"password1234", "Passw0rd2026!", "P@$$w0rd!!!!", "qwertyuiop12", "1234567890123", "098765432109", "adminadmin12",
		"letmein-letmein", "abcabcabcabc", "Tributary-2026!",
		"iloveyou1234", "Welcome2026!!!", "aaaaaaaaaaaa", "abcdefghijklmn", "ponmlkjihgfedcba", "1q2w3e4r5t6y",
		"correct horse battery staple"[:7] + "horsebatterystaple", "CorrectHorseBatteryStaple",
		"!!!!!!!!!!!!", "            ", "Sommer2026Sommer", "changeme-changeme", "00000000000000000000001",
		strings.Repeat("ab1", 20), "superman-batman-1", "Manchester.United.99",
	} {
		kind(t, text, try(text), fault.Invalid)
	}
	for _, text := range []string{"violet-anchor-thimble", "mÿ dog åte thé ßofa", "kq7mzt0vbw2x", "Ox cart under Pluto 7",
		"сложный-пароль-из-слов", "tigers juggle copper spoons"} {
		if err := try(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
