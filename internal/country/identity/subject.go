package identity

import (
	"crypto/x509"
	"strings"
	"unicode"

	"tributary/internal/strictjson"
)

const subjectChars = 500

// Subject is a certificate's subject for people, fit to be stored and printed.
func Subject(leaf *x509.Certificate) string {
	known := map[string]string{
		"2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST",
		"2.5.4.9":  "street",
		"2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.42": "GN", "2.5.4.45": "x500UniqueIdentifier",
		"2.5.4.97": "organizationIdentifier",
	}
	var parts []string
	for _, name := range leaf.Subject.Names {
		label := known[name.Type.String()]
		text, isText := name.Value.(string)
		if label == "" || !isText {
			continue
		}
		parts = append(parts, label+"="+shown(text))
	}
	text := []rune(strings.Join(parts, ", "))
	return string(text[:min(len(text), subjectChars)])
}

// shown makes a certificate's text fit to be stored and printed.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if _, bad := strictjson.Unfit(string(r), false); bad {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
