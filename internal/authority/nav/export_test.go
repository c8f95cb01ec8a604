package nav

import (
	"crypto/aes"
	"strings"
)

var (
	Upper3       = upper3
	PasswordHash = passwordHash
)

// Unsealed opens a token.
func Unsealed(text []byte) string {
	block, err := aes.NewCipher([]byte(ExchangeKey))
	if err != nil {
		panic(err)
	}
	out := make([]byte, len(text))
	for at := 0; at < len(text); at += aes.BlockSize {
		block.Decrypt(out[at:], text[at:])
	}
	return strings.TrimRight(string(out), string(out[len(out)-1]))
}
