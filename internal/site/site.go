// Package site is the documentation as pages: the guide, the countries, the
// operator's book, the changelog and every operation of the API, made from the
// project's Markdown and from the OpenAPI document, with nothing loaded from
// anywhere else.
//
// It owns the pages, their names and their looks. It does not own a word of
// what they say: that is in the documents and in the description of the API.
// The law of a page: its name is flat and every link in it is relative, so that
// the same page works below /docs and as a file in a folder; and it can be read
// without scripts.
//
// Pages are made when the first is asked for, and kept: a node that nobody reads
// spends nothing. Raw HTML in Markdown is left out, and no page has an inline style
// or script, so that the policy of content can forbid both. Which codes an
// operation answers with is part of the description (x-codes, x-result-codes), and
// every refusal that a test of the running program sees is held against it: the
// pages cannot promise less than what comes.
package site

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"tributary/internal/web"
)

// Index is the name of the first page.
const Index = "index.html"

// Policy is what a browser may do with a page: nothing but what the site brings
// along, and calls to the API beside it.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

//go:embed pages
var pageFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// Config is what the site is made from.
type Config struct {
	Documents fs.FS        // Markdown by its path in the project
	OpenAPI   []byte       // the description of the API
	Demo      func() *Demo // asked once, when the first page is; nil: not a demo
	Static    bool         // the pages are files: nobody answers a search or a call
}

// Demo is what a newcomer can try things with.
type Demo struct {
	Key       string
	Suppliers map[string]string // company ids by country
}

// Site answers pages by name. It is made when the first one is asked for.
type Site struct {
	cfg  Config
	made func() (*book, error)
}

// New is the site of some documents and an API.
func New(cfg Config) *Site {
	s := &Site{cfg: cfg}
	s.made = sync.OnceValues(s.make)
	return s
}

// File is a page or something that a page loads.
type File struct {
	Name    string
	Media   string
	Content []byte
}

// book is the finished site.
type book struct {
	pages    map[string]*page
	shelves  []shelf
	sections []section // what a search looks through
	assets   map[string]File
	layout   *template.Template
	version  string
	static   bool
	demo     *Demo
}

// page is one page without its frame.
type page struct {
	Name, Title string
	Body        template.HTML
	Toc         []heading
	shelf       int
}

// heading is a line of a page's own contents.
type heading struct{ ID, Text string }

// shelf is a part of the navigation.
type shelf struct {
	Title string
	Items []*page
}

func (s *Site) make() (*book, error) {
	var api description
	if err := json.Unmarshal(s.cfg.OpenAPI, &api); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	b := &book{pages: map[string]*page{}, assets: map[string]File{}, version: api.Info.Version, static: s.cfg.Static}
	if s.cfg.Demo != nil {
		b.demo = s.cfg.Demo()
	}
	var err error
	b.layout, err = template.New("site").Funcs(template.FuncMap{"code": web.Highlight, "prose": prose}).ParseFS(pageFiles,
		"pages/*.html")
	if err != nil {
		return nil, err
	}
	if err := b.readAssets(s.cfg.Documents); err != nil {
		return nil, err
	}
	if err := b.bind(s.cfg.Documents, &api); err != nil {
		return nil, err
	}
	return b, b.indexScript()
}

// bind puts every page on its shelf.
func (b *book) bind(documents fs.FS, api *description) error {
	start := b.shelve("Start")
	if err := b.addTemplate(&page{Name: Index, Title: "Tributary", shelf: start}, "index", api); err != nil {
		return err
	}
	shelves, names := shelved(documents)
	for i, s := range documentShelves() {
		if i == 1 { // after the guide
			if err := b.addReference(api); err != nil {
				return err
			}
		}
		on, searched := b.shelve(s.title), len(b.sections)
		if err := b.addDocuments(on, shelves[i], links{known: names, documents: documents}); err != nil {
			return err
		}
		if s.inner {
			b.sections = b.sections[:searched]
		}
	}
	return b.addTexts(shelves, links{known: names, documents: documents})
}

func (b *book) shelve(title string) int {
	b.shelves = append(b.shelves, shelf{Title: title})
	return len(b.shelves) - 1
}

func (b *book) add(p *page) error {
	if b.pages[p.Name] != nil {
		return fmt.Errorf("two pages are called %s: %q and %q", p.Name, b.pages[p.Name].Title, p.Title)
	}
	b.pages[p.Name] = p
	b.shelves[p.shelf].Items = append(b.shelves[p.shelf].Items, p)
	return nil
}

// addTemplate makes a page from one of our templates.
func (b *book) addTemplate(p *page, from string, data any) error {
	var out bytes.Buffer
	if err := b.layout.ExecuteTemplate(&out, from,
		map[string]any{"Title": p.Title, "Data": data, "Demo": b.demo, "Static": b.static}); err != nil {
		return fmt.Errorf("make %s: %w", p.Name, err)
	}
	p.Body = template.HTML(out.String())
	for _, m := range partOfPage.FindAllStringSubmatch(out.String(), -1) {
		p.Toc = append(p.Toc, heading{m[1], html.UnescapeString(tag.ReplaceAllString(m[2], ""))})
	}
	return b.add(p)
}

// partOfPage is a heading of our templates.
var (
	partOfPage = regexp.MustCompile(`<h2 id="([^"]+)">(.*?)</h2>`)
	tag        = regexp.MustCompile(`<[^>]*>`)
)

// readAssets keeps what pages load: style, script, sign, and the drawings of
// documents.
func (b *book) readAssets(documents fs.FS) error {
	media := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml"}
	b.assets["icon.svg"] = File{"icon.svg", media[".svg"], web.Icon}
	for _, from := range []struct {
		files   fs.FS
		pattern string
	}{{assetFiles, "assets/*"}, {documents, "docs/*.svg"}} {
		names, err := fs.Glob(from.files, from.pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			content, err := fs.ReadFile(from.files, name)
			if err != nil {
				return err
			}
			if path.Ext(name) == ".css" {
				content = slices.Concat(web.Palette, content)
			}
			b.assets[path.Base(name)] = File{path.Base(name), media[path.Ext(name)], content}
		}
	}
	return nil
}

// framed is a page with its navigation.
type framed struct {
	*page
	Shelves []framedShelf
	Version string
	Static  bool
	Query   string
	Found   []Hit
}

type framedShelf struct {
	Title   string
	Open    bool // the page stands on it
	First   *page
	Items   []*page
	Current string
}

func (b *book) frame(p *page, query string, found []Hit) ([]byte, error) {
	f := framed{page: p, Version: b.version, Static: b.static, Query: query, Found: found}
	for i, s := range b.shelves {
		if len(s.Items) > 0 {
			f.Shelves = append(f.Shelves, framedShelf{Title: s.Title, Open: i == p.shelf && len(s.Items) > 1, First: s.Items[0],
				Items: s.Items, Current: p.Name})
		}
	}
	var out bytes.Buffer
	err := b.layout.ExecuteTemplate(&out, "layout", f)
	return out.Bytes(), err
}

// File answers a page or an asset; false: there is none of that name.
func (s *Site) File(name string) (File, bool, error) {
	b, err := s.made()
	if err != nil {
		return File{}, false, err
	}
	if asset, ok := b.assets[name]; ok {
		return asset, true, nil
	}
	p, ok := b.pages[name]
	if !ok {
		return File{}, false, nil
	}
	content, err := b.frame(p, "", nil)
	return File{name, "text/html; charset=utf-8", content}, true, err
}

// Search answers the page with what was found.
func (s *Site) Search(query string) (File, error) {
	b, err := s.made()
	if err != nil {
		return File{}, err
	}
	query = within(query)
	p := &page{Name: SearchPage, Title: "Search", shelf: -1}
	content, err := b.frame(p, query, b.search(query))
	return File{SearchPage, "text/html; charset=utf-8", content}, err
}

// Files are all files of the site, by name.
func (s *Site) Files() ([]File, error) {
	b, err := s.made()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for name := range b.pages {
		names = append(names, name)
	}
	for name := range b.assets {
		names = append(names, name)
	}
	var all []File
	for _, name := range names {
		f, _, err := s.File(name)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	found, err := s.Search("")
	all = append(all, found)
	slices.SortFunc(all, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// prose is a text of the description with code between backquotes.
func prose(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}
