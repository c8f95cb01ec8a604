package secret_test

import (
	"flag"
	"os"
	"testing"

	"tributary/internal/leaks"
	"tributary/internal/secret"
)

var update = flag.Bool("update", false, "rewrite golden files")

// panicEnv makes the test binary a program that dies with a secret in its hands.
const panicEnv = "TRIBUTARY_SECRET_TEST_PANIC"

func TestMain(m *testing.M) {
	if kind := os.Getenv(panicEnv); kind != "" {
		die(kind, os.Getenv("TRIBUTARY_SECRET_TEST_KEY"))
	}
	leaks.Main(m)
}

func die(kind, text string) {
	key, err := secret.ParseAPIKey(text)
	if err != nil {
		panic("the planted key does not parse")
	}
	switch kind {
	case "secret":
		panic(key.Text())
	case "apikey":
		panic(key)
	case "struct":
		panic(struct{ inner secret.Secret }{key.Text()})
	case "pointer":
		s := key.Text()
		panic(&s)
	case "error":
		_, err := secret.ParseAPIKey(text + "!")
		panic(err)
	}
	panic("unknown kind")
}
