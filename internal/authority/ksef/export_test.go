package ksef

import "tributary/internal/official"

// VerifySigned answers challenge and NIP of a signed request, or the code with
// which the double refuses it.
func VerifySigned(body []byte) (challenge, nip string, code int) {
	s, flaw := verifySigned(body)
	if flaw != nil {
		return "", "", flaw.Code
	}
	return s.challenge, s.nip, 0
}

func Unseal(content, key, iv []byte) ([]byte, bool) { return unsealed(content, key, iv) }

// Conforms reports whether a document is an invoice by its structure.
func Conforms(document []byte) bool {
	doc, err := readStrictly(document, 1<<20)
	return err == nil && official.FA3.Schema().First(doc.Root) == nil
}
