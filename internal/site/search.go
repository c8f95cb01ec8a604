package site

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// SearchPage is where a search is asked and answered.
const SearchPage = "search.html"

// Limits of a search.
const (
	queryRunesMax = 200
	queryWordsMax = 8
	hitsMax       = 40
)

// section is a part of a page under its heading.
type section struct {
	Page   string `json:"p"`
	Anchor string `json:"a,omitempty"`
	Title  string `json:"t"`
	Of     string `json:"o,omitempty"` // title of the page
	Also   string `json:"w,omitempty"` // other words for it
	Text   string `json:"x"`
}

// Hit is one found section.
type Hit struct {
	Link, Title, Of, Excerpt string
}

func within(query string) string {
	query = strings.ToValidUTF8(strings.TrimSpace(query), "")
	if r := []rune(query); len(r) > queryRunesMax {
		return string(r[:queryRunesMax])
	}
	return query
}

// search finds the sections that have all words: first those that are also called
// so, then those with words in their headings. site.js does the same for pages that
// are files.
func (b *book) search(query string) []Hit {
	words := strings.Fields(strings.ToLower(query))
	words = words[:min(len(words), queryWordsMax)]
	if len(words) == 0 {
		return nil
	}
	type ranked struct {
		*section
		rank, at int
	}
	var found []ranked
	for i := range b.sections {
		s := &b.sections[i]
		title, text := strings.ToLower(s.Title+" "+s.Of), strings.ToLower(s.Text)
		rank, at := 0, -1
		for _, w := range words {
			also, inTitle, inText := strings.Contains(s.Also, w), strings.Contains(title, w), strings.Index(text, w)
			if !also && !inTitle && inText < 0 {
				rank = -1
				break
			}
			if inTitle {
				rank++
			}
			if also {
				rank += 2
			}
			if at < 0 {
				at = inText
			}
		}
		if rank >= 0 {
			found = append(found, ranked{s, rank, at})
		}
	}
	slices.SortStableFunc(found, func(a, b ranked) int { return cmp.Compare(b.rank, a.rank) })
	var hits []Hit
	for _, f := range found[:min(len(found), hitsMax)] {
		hits = append(hits, f.hit(f.at))
	}
	return hits
}

func (s *section) hit(at int) Hit {
	link := s.Page
	if s.Anchor != "" {
		link += "#" + s.Anchor
	}
	of := s.Of
	if of == s.Title {
		of = ""
	}
	return Hit{link, s.Title, of, excerpt(s.Text, at)}
}

// excerpt is the text around a place, in whole letters.
func excerpt(text string, at int) string {
	from := max(0, min(at, len(text))-60)
	to := min(len(text), from+220)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	cut := strings.Join(strings.Fields(text[from:to]), " ")
	if from > 0 {
		cut = "… " + cut
	}
	if to < len(text) {
		cut += " …"
	}
	return cut
}

// indexScript is what pages that are files search in: a script, because a page
// that was opened as a file may load one and nothing else.
func (b *book) indexScript() error {
	if !b.static {
		return nil
	}
	text, err := json.Marshal(b.sections)
	if err != nil {
		return err
	}
	b.assets["index.js"] = File{"index.js", "text/javascript; charset=utf-8",
		append(append([]byte("const tributaryIndex = "), text...), ';', '\n')}
	return nil
}
