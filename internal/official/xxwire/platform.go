package xxwire

import "encoding/hex"

// HeaderPlatform proves in whose name a call is made, beside the supplier that
// signs it: the MAC of the call's signed text with the platform's key.
const HeaderPlatform = "XX-Platform"

// CodePlatform refuses a call whose platform is missing or not known.
const CodePlatform = "platform"

// PlatformKey is the key that the authority gives to a platform, by the common
// name of its certificate ("" for one without). It is derived from the name
// alone: good enough for tests, and worth nothing as a secret.
func PlatformKey(name string) string {
	return hex.EncodeToString(MAC([]byte("reference authority platform"), []byte(name)))
}

// PlatformMAC is the value of [HeaderPlatform].
func PlatformMAC(key string, text []byte) string { return hex.EncodeToString(MAC([]byte(key), text)) }
