package onboarding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// settings reads the country's own keys over those a company has; null gives
// a key back to its default. A key the country does not have is refused: it
// would silently do nothing.
func (q *request) settings(p *profile, facts country.Facts) {
	n := q.root.Members["settings"]
	if n != nil && n.Kind != strictjson.Object && n.Kind != strictjson.Null {
		q.refuse("settings", fault.FieldNotValid, "must be an object")
		return
	}
	chosen := country.Settings{}
	for key, value := range p.Settings {
		chosen[key] = value
	}
	if n != nil && n.Kind == strictjson.Null {
		clear(chosen)
	}
	if n != nil {
		for _, key := range n.Names {
			q.setting(chosen, key, n.Members[key], facts)
		}
	}
	for _, s := range facts.Settings {
		path := "settings." + s.Key
		if _, ok := chosen[s.Key]; !ok && s.Required && s.Default == nil && !q.faulty(path) {
			q.refuse(path, fault.FieldRequired, "must not be empty")
		}
	}
	p.Settings = chosen
}

func (q *request) setting(chosen country.Settings, key string, n *strictjson.Value, facts country.Facts) {
	path := "settings." + strictjson.Printable(key)
	i := slices.IndexFunc(facts.Settings, func(s country.Setting) bool { return s.Key == key })
	if i < 0 {
		reason := "is not a setting of this country"
		if key == country.SettingReceive {
			reason = "is not offered: nobody brings received documents in this country; upload them"
		}
		q.refuse(path, fault.UnsupportedField, "%s", reason)
		return
	}
	if n.Kind == strictjson.Null {
		delete(chosen, key)
		return
	}
	value, reason := settingValue(facts.Settings[i], n)
	if reason != "" {
		q.refuse(path, fault.FieldNotValid, "%s", reason)
		return
	}
	chosen[key] = value
}

// settingValue is a value of the setting's type, or the reason why it is not.
func settingValue(s country.Setting, n *strictjson.Value) (value any, reason string) {
	switch {
	case s.Type == "string" && n.Kind == strictjson.Text:
		return n.Text, textReason(s, n.Text)
	case s.Type == "boolean" && n.Kind == strictjson.Bool:
		return n.Text == "true", ""
	case s.Type == "integer" && n.Kind == strictjson.Number:
		i, err := strconv.ParseInt(n.Text, 10, 64)
		if err != nil {
			return nil, "must be an integer"
		}
		return i, ""
	case s.Type == "object" && n.Kind == strictjson.Object:
		return plain(n), ""
	}
	return nil, fmt.Sprintf("must be of type %s", s.Type)
}

func textReason(s country.Setting, text string) string {
	if r, bad := strictjson.Unfit(text, false); bad {
		return fmt.Sprintf("must not contain the character U+%04X", r)
	}
	if utf8.RuneCountInString(text) > settingMax {
		return fmt.Sprintf("must be at most %d characters long", settingMax)
	}
	if len(s.Values) > 0 && !slices.Contains(s.Values, text) {
		return "must be one of " + strings.Join(s.Values, ", ")
	}
	if s.Pattern != "" {
		if re, err := regexp.Compile(s.Pattern); err != nil || !re.MatchString(text) {
			return "must match " + s.Pattern
		}
	}
	return ""
}

// plain is the value as packs read it; integers are int64.
func plain(n *strictjson.Value) any {
	switch n.Kind {
	case strictjson.Text:
		return n.Text
	case strictjson.Bool:
		return n.Text == "true"
	case strictjson.Number:
		return number(json.Number(n.Text))
	case strictjson.Array:
		list := make([]any, len(n.Entries))
		for i, entry := range n.Entries {
			list[i] = plain(entry)
		}
		return list
	case strictjson.Object:
		all := make(map[string]any, len(n.Names))
		for _, name := range n.Names {
			all[name] = plain(n.Members[name])
		}
		return all
	}
	return nil
}

// number is an int64 where it can be; anything else keeps its digits as text.
func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	return n
}

// decodeProfile reads a stored profile with integers as integers.
func decodeProfile(text string, into *profile) error {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("read a stored company: %w", err)
	}
	for key, value := range into.Settings {
		into.Settings[key] = integers(value)
	}
	return nil
}

func integers(value any) any {
	switch v := value.(type) {
	case json.Number:
		return number(v)
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = integers(v[key])
		}
	}
	return value
}

// withDefaults fills in what the company left to the country.
func withDefaults(chosen country.Settings, facts country.Facts) country.Settings {
	all := make(country.Settings, len(facts.Settings))
	for _, s := range facts.Settings {
		switch value := s.Default.(type) {
		case nil:
		case int:
			all[s.Key] = int64(value)
		default:
			all[s.Key] = value
		}
	}
	for key, value := range chosen {
		all[key] = value
	}
	return all
}
