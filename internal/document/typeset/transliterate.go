package typeset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-text/typesetting/language"
	"github.com/mozillazg/go-unidecode"
)

// Settable returns a text that the fonts can set: the text itself, or one in
// which what no font has stands in Latin letters, and the scripts (ISO 15924)
// that were missing.
func (s *Setter) Settable(text string) (string, []string) {
	if s.library.families[Sans].Plain(Regular, text) {
		return text, nil
	}
	script := firstScript([]rune(text)) // of the letters around a sign that many scripts share
	var out strings.Builder
	var missing []string
	for _, r := range text {
		sc := language.LookupScript(r)
		if strong(sc) {
			script = sc
		}
		if !s.isAbsent(r, script) {
			out.WriteRune(r)
			continue
		}
		if !strong(sc) {
			sc = language.Common
		}
		if name := sc.String(); !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		out.WriteString(latin(r))
	}
	if missing == nil {
		return text, nil
	}
	return strings.Join(strings.Fields(out.String()), " "), missing
}

// latin writes a character in Latin letters, by its number where there are none for it.
func latin(r rune) string {
	text := unidecode.Unidecode(string(r))
	if strings.TrimSpace(text) == "" || strings.Contains(text, "[?]") {
		if invisible(r) {
			return ""
		}
		return fmt.Sprintf("[U+%04X]", r)
	}
	return text
}

// isAbsent reports a character that no font has, among letters of a script.
func (s *Setter) isAbsent(r rune, script language.Script) bool {
	if r >= 0x20 && r < 0x7F || invisible(r) {
		return false
	}
	fam := s.library.families[Sans]
	if r == '\u00A0' || fam.faces[Regular].Glyph(r) != 0 || fam.fallbacks[Regular].Glyph(r) != 0 {
		return false
	}
	s.mu.RLock()
	absent, known := s.absent[scripted{r, script}]
	s.mu.RUnlock()
	if known {
		return absent
	}
	f := Font{Family: fam}
	absent = s.faceFor(r, span{script: script}, nil, f).Glyph(r) == 0
	s.mu.Lock()
	if len(s.absent) >= absentMax {
		clear(s.absent)
	}
	s.absent[scripted{r, script}] = absent
	s.mu.Unlock()
	return absent
}

// Availability is whether a script can be set, and what would set it.
type Availability struct {
	Script string // ISO 15924; for Han with the language, as in Hani/ja
	Font   string // PostScript name of the font that sets it; "" where there is none
	Wanted string // a family that would
}

// Scripts tells of every script beyond Latin, Greek and Cyrillic that the
// program knows, in order, whether it can be set. The error tells of folders
// that cannot be read.
func (l *Library) Scripts() ([]Availability, error) {
	_, err := l.catalog()
	var out []Availability
	for _, key := range sortedKeys(l.scripts) {
		a := Availability{Script: key, Wanted: l.scripts[key].sans[0]}
		for _, f := range l.candidates(choice{script: key}) {
			if covers(f, l.scripts[key].sample) {
				a.Font = f.Name
				break
			}
		}
		out = append(out, a)
	}
	return out, err
}

func sortedKeys(m map[string]scriptFonts) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
