package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tributary/internal/transaction"
	"tributary/internal/web"
)

// Instants are printed in UTC everywhere, as the API does; the frame says so.
const stampLayout = "2006-01-02 15:04:05"

// instant is a time for people and machines. The zero time is a dash.
func instant(t time.Time) template.HTML {
	if t.IsZero() {
		return `<span class="quiet">–</span>`
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339Nano) + `">` + t.Format(stampLayout) + `</time>`)
}

// ago is an instant that a browser prints as time gone by; the exact one is a
// touch away. Without scripts it is an instant.
func ago(t time.Time) template.HTML {
	if t.IsZero() {
		return instant(t)
	}
	return template.HTML(strings.Replace(string(instant(t)), "<time ", `<time class="ago" `, 1))
}

// total prints the amount of a line of a list.
func total(minor *int64, currency string) string { return moneyAny(minor, &currency) }

// moment is an instant with its day, for records of tries.
func moment(t time.Time) template.HTML {
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339Nano) + `">` + t.Format("2 Jan 15:04:05") + `</time>`)
}

// clock is the time of day to the millisecond, where the day stands above.
func clock(t time.Time) template.HTML {
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339Nano) + `">` + t.Format("15:04:05.000") + `</time>`)
}

// nextTry says when something is sent again; while its receiver is failing that
// is not before the next probe. What is overdue is due, it has no time in the past.
func nextTry(now, due, probe time.Time) template.HTML {
	switch {
	case due.IsZero():
		return instant(due)
	case !probe.IsZero() && probe.After(now):
		return "Paused: the receiver is failing. Next attempt " + instant(probe)
	case !probe.IsZero():
		return "Paused: the receiver is failing. Next attempt now"
	case due.After(now):
		return instant(due)
	}
	return "now"
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

// span prints a duration with at most two units: 340 ms, 4.2 s, 3 min 20 s, 2 d 4 h.
func span(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	two := func(big int64, unit string, small int64, less string) string {
		if small == 0 {
			return fmt.Sprintf("%d %s", big, unit)
		}
		return fmt.Sprintf("%d %s %d %s", big, unit, small, less)
	}
	s := int64(d / time.Second)
	switch {
	case d < time.Millisecond:
		return "under 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	case d < 10*time.Second:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + " s"
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return two(s/60, "min", s%60, "s")
	case s < 86400:
		return two(s/3600, "h", s%3600/60, "min")
	}
	return two(s/86400, "d", s%86400/3600, "h")
}

// count groups thousands by a thin blank, which no language takes for a decimal sign.
func count[N int | int64 | uint64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	sign := ""
	if text[0] == '-' {
		sign, text = "−", text[1:]
	}
	var b strings.Builder
	for i, d := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// size prints a number of bytes: 812 B, 14.2 kB.
func size(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10) + "\u202fB"
	case n < 1_000_000:
		return strconv.FormatFloat(float64(n)/1e3, 'f', 1, 64) + "\u202fkB"
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + "\u202fMB"
}

// prose is a sentence of ours with commands between backquotes, as the guides have it.
func prose(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = template.HTMLEscapeString(strings.ReplaceAll(part, "*", ""))
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}

// money prints minor units of a currency. No floating point touches it.
func money(minor int64, currency string) string {
	decimals, known := transaction.CurrencyExponent(strings.ToUpper(currency))
	if !known {
		decimals = 0
	}
	unit := int64(1)
	for range decimals {
		unit *= 10
	}
	whole, rest := minor/unit, minor%unit
	sign := ""
	if minor < 0 {
		sign, whole, rest = "−", -whole, -rest
	}
	text := sign + count(whole)
	if decimals > 0 {
		text += fmt.Sprintf(".%0*d", decimals, rest)
	}
	return strings.TrimSpace(text + " " + strings.ToUpper(currency))
}

// readable is a body for people: JSON is indented, text stays, bytes are told by their number.
func readable(body []byte) string {
	trimmed := bytes.TrimSpace(body)
	if len(trimmed) == 0 {
		return ""
	}
	if trimmed[0] == '{' || trimmed[0] == '[' {
		var b bytes.Buffer
		if json.Indent(&b, trimmed, "", "  ") == nil {
			return b.String()
		}
	}
	if trimmed[0] == '<' && utf8.Valid(trimmed) {
		return indentXML(string(trimmed))
	}
	if !utf8.Valid(body) {
		return fmt.Sprintf("%s bytes that are not text", count(len(body)))
	}
	return string(body)
}

// highlighted is a readable body in colours.
func highlighted(body []byte) template.HTML {
	text := readable(body)
	return web.Highlight(web.Language(text), text)
}

// indentXML puts each element on a line of its own, for eyes alone: text and
// attributes stay as they are, and what is no XML comes out with other breaks.
func indentXML(text string) string {
	var b strings.Builder
	depth := 0
	for i, piece := range strings.SplitAfter(strings.ReplaceAll(text, "><", ">\x00<"), "\x00") {
		piece = strings.TrimSpace(strings.TrimSuffix(piece, "\x00"))
		if strings.HasPrefix(piece, "</") {
			depth = max(0, depth-1)
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.Repeat("  ", min(depth, 40)))
		b.WriteString(piece)
		opens := strings.HasPrefix(piece, "<") && !strings.HasPrefix(piece, "</") && !strings.HasPrefix(piece, "<?") &&
			!strings.HasPrefix(piece, "<!")
		if opens && !strings.HasSuffix(piece, "/>") && !strings.Contains(piece, "</") {
			depth++
		}
	}
	return b.String()
}

// short keeps both ends of a long id: ids of one hour begin alike.
func short(id string) string {
	r := []rune(id)
	if len(r) <= 16 {
		return id
	}
	return string(r[:8]) + "…" + string(r[len(r)-6:])
}

// badgeClass is the class of a state's colour and shape.
func badgeClass(state any) string {
	switch strings.ToLower(fmt.Sprint(state)) {
	case "success", "delivered", "active", "completed", "ok", "accepted", "registered", "closed":
		return "good"
	case "failure", "failed", "discarded", "revoked", "quarantined", "rejected", "open", "expired", "disabled", "outage", "down":
		return "bad"
	case "processing", "pending", "running", "next", "retiring", "waiting", "blocked", "received", "prepared", "sent",
		"expiring", "resting", "unknown":
		return "busy"
	}
	return "idle"
}
