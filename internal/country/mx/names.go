package mx

import (
	"strings"
	"unicode/utf8"
)

// capitals are the ends of a company's name that say in what form its capital is
// held. SAT registers the name without it (constancia de situación fiscal:
// "Denominación/Razón Social" beside "Régimen Capital") and refuses a voucher
// that repeats it (CFDI40139 of the issuer, CFDI40145 of the receiver). The
// longest stands first: "SA DE CV SOFOM ENR" ends in "SOFOM ENR" as well.
//
// Not among them are abbreviations that are names of their own when they are
// written without full stops (GRUPO AC): those are left to SAT, see
// [capitalRegime].
var capitals = strings.Split(
	"SOCIEDAD ANONIMA BURSATIL DE CAPITAL VARIABLE,SOCIEDAD ANONIMA PROMOTORA DE INVERSION DE CAPITAL VARIABLE,"+
		"SOCIEDAD DE RESPONSABILIDAD LIMITADA DE CAPITAL VARIABLE,SOCIEDAD ANONIMA DE CAPITAL VARIABLE,SOCIEDAD DE RESPONSABILIDAD LIMITADA,"+
		"SOCIEDAD POR ACCIONES SIMPLIFICADA,SOCIEDAD ANONIMA,SOCIEDAD CIVIL,ASOCIACION CIVIL,"+
		"SA DE CV SOFOM ENR,SA DE CV SOFOM ER,SAPI DE CV SOFOM ENR,S DE RL DE CV,SC DE RL DE CV,SPR DE RL DE CV,SC DE AP DE RL DE CV,"+
		"SAPI DE CV,SAPIB DE CV,SAB DE CV,SAS DE CV,S EN C DE CV,S EN NC DE CV,SA DE CV,S DE RL,SC DE RL,SPR DE RL,SPR DE RI,SPR DE RS,S EN C,S EN NC,SAPI,SA", ",")

// dotted are abbreviations that are taken for a form of capital only when they
// are written with full stops.
var dotted = []string{"A.C.", "S.C.", "S.A.S.", "I.A.P.", "A.B.P.", "S.N.C.", "S.A.", "S.S.S."}

// capitalRegime answers a company's name without the form of its capital, and
// whether it ended in one.
func capitalRegime(name string) (shorter string, found bool) {
	name = official(name)
	for _, end := range dotted {
		if cut, ok := strings.CutSuffix(name, " "+end); ok {
			return strings.TrimRight(cut, " ,"), true
		}
	}
	bare := plainLetters(name)
	for _, end := range capitals {
		if cut, ok := strings.CutSuffix(bare, " "+end); ok && cut != "" {
			return upTo(name, cut), true
		}
	}
	return name, false
}

// plainLetters is a name without full stops, commas and accents, in which single
// letters stand together: "S. A." is "SA".
func plainLetters(name string) string {
	text := strings.NewReplacer(".", "", ",", " ", "Á", "A", "É", "E", "Í", "I", "Ó", "O", "Ú", "U").Replace(name)
	var b strings.Builder
	single := false
	for word := range strings.FieldsSeq(text) {
		one := len(word) == 1
		if b.Len() > 0 && !(one && single) {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		single = one
	}
	return b.String()
}

// upTo is the beginning of a name as it was written whose letters are these.
func upTo(name, letters string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == ',' })
	for n := len(words) - 1; n > 0; n-- {
		if first := strings.Join(words[:n], " "); plainLetters(first) == letters {
			return first
		}
	}
	return letters
}

// isCompany tells companies from people by the length of their RFC.
func isCompany(rfc string) bool { return utf8.RuneCountInString(rfc) == 12 }

const withoutCapital = "must be the name that SAT has on file, which is without the form of its capital: did you mean %s?"
