package site

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"tributary/internal/web"
)

// documentShelf is a part of the site made from documents, in reading order. A
// pattern stands for all that it matches and no line before it named.
type documentShelf struct {
	title string
	paths []string
	inner bool // for those who work on the product: neither searched nor among the texts
}

func documentShelves() []documentShelf {
	return []documentShelf{
		{title: "Guide", paths: []string{"docs/guide/README.md", "docs/guide/concepts.md", "docs/guide/first-integration.md",
			"docs/onboarding.md", "docs/guide/webhooks.md", "docs/webhooks/README.md",
			"docs/guide/corrections.md", "docs/guide/errors.md", "docs/guide/testing.md", "docs/guide/files.md",
			"docs/guide/moving-in.md", "docs/guide/going-live.md", "docs/guide/*.md", "docs/specification.md",
			"docs/webhooks/verify.*", "docs/webhooks/Verify.java", "docs/webhooks/go/main.go"}},
		{title: "Countries", paths: []string{"docs/countries/README.md", "docs/countries/??.md", "docs/countries/*.md"}},
		{title: "Operating", paths: []string{"docs/operations.md", "docs/console.md", "docs/documents.md",
			"docs/reliability.md", "docs/hard-cases.md", "docs/security.md", "ARCHITECTURE.md", "docs/*.md"}},
		{title: "Changelog", paths: []string{"CHANGELOG.md"}},
		{title: "Decisions", paths: []string{"docs/decisions/README.md", "docs/decisions/*.md"}, inner: true},
	}
}

// pageName is the flat name of a document's page; "" for what is no page.
func pageName(document string) string {
	dir, base := path.Split(document)
	stem := strings.TrimSuffix(base, ".md")
	switch {
	case dir == "docs/webhooks/" && base == "README.md":
		return "receiving-webhooks.html"
	case dir == "docs/webhooks/", dir == "docs/webhooks/go/":
		return "verify" + strings.ReplaceAll(path.Ext(base), ".", "-") + ".html"
	case base == "README.md":
		return path.Base(dir) + ".html"
	case dir == "docs/countries/" && len(stem) == 2:
		return "country-" + stem + ".html"
	case dir == "docs/decisions/":
		return "decision-" + stem + ".html"
	}
	return strings.ToLower(stem) + ".html"
}

// shelved says which documents stand on which shelf, each on the first that
// names it, and what their pages are called: pages link across shelves.
func shelved(documents fs.FS) (shelves [][]string, names map[string]string) {
	names = map[string]string{}
	for _, s := range documentShelves() {
		var on []string
		for _, pattern := range s.paths {
			found, _ := fs.Glob(documents, pattern) // the patterns are ours
			for _, f := range found {
				if names[f] == "" {
					names[f] = pageName(f)
					on = append(on, f)
				}
			}
		}
		shelves = append(shelves, on)
	}
	return shelves, names
}

// addDocuments makes the pages of a shelf.
func (b *book) addDocuments(on int, paths []string, l links) error {
	for _, at := range paths {
		source, err := fs.ReadFile(l.documents, at)
		if err != nil {
			return err
		}
		p := &page{Name: l.known[at], shelf: on}
		l.from = at
		if path.Ext(at) == ".md" {
			err = b.convert(p, source, l)
		} else {
			p.Title = path.Base(at)
			p.Body = `<h1>` + template.HTML(template.HTMLEscapeString(p.Title)) + `</h1>` + codeBlock(languageOf(at), string(source))
			b.sections = append(b.sections, section{Page: p.Name, Title: p.Title, Text: string(source)})
		}
		if err == nil {
			err = b.add(p)
		}
		if err != nil {
			return fmt.Errorf("render the page of %s: %w", at, err)
		}
	}
	return nil
}

func languageOf(file string) string { return strings.TrimPrefix(path.Ext(file), ".") }

func codeBlock(language, source string) template.HTML {
	return `<pre tabindex="0"><code>` + web.Highlight(language, source) + `</code></pre>`
}

// links resolves what a document links to.
type links struct {
	from      string            // path of the document
	known     map[string]string // pages by path
	documents fs.FS
}

// resolve answers where a link goes within the site; false: nowhere, it is text.
func (l links) resolve(to string) (string, bool) {
	if strings.HasPrefix(to, "https://") || strings.HasPrefix(to, "http://") || strings.HasPrefix(to, "#") {
		return to, true
	}
	file, anchor, _ := strings.Cut(to, "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	at := path.Join(path.Dir(l.from), file)
	for _, candidate := range []string{at, path.Join(at, "README.md")} {
		if name, ok := l.known[candidate]; ok {
			return name + anchor, true
		}
	}
	return "", false
}

// alsoCalled is a comment below a heading: words by which a reader looks for the section and that it does not use itself.
var alsoCalled = regexp.MustCompile(`^<!-- also: (.*) -->`)

// convert makes a page of Markdown. Raw HTML in it is left out.
func (b *book) convert(p *page, source []byte, l links) error {
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&writer{links: l}, 100))),
	)
	tree := md.Parser().Parse(text.NewReader(source))
	at := section{Page: p.Name}
	keep := func() {
		if at.Title != "" {
			b.sections = append(b.sections, at)
		}
	}
	for n := tree.FirstChild(); n != nil; n = n.NextSibling() {
		if c, ok := n.(*ast.HTMLBlock); ok {
			if m := alsoCalled.FindSubmatch(c.Lines().Value(source)); m != nil {
				at.Also = strings.ToLower(string(m[1]))
			}
		}
		h, ok := n.(*ast.Heading)
		if !ok {
			at.Text += plainText(n, source) + " "
			continue
		}
		title := plainText(h, source)
		if p.Title == "" {
			p.Title = title
		}
		id, _ := h.AttributeString("id")
		anchor, _ := id.([]byte)
		keep()
		at = section{Page: p.Name, Title: title, Of: p.Title}
		if h.Level > 1 {
			at.Anchor = string(anchor)
		}
		if h.Level == 2 {
			p.Toc = append(p.Toc, heading{string(anchor), title})
		}
	}
	keep()
	var out bytes.Buffer
	if err := md.Renderer().Render(&out, source, tree); err != nil {
		return err
	}
	p.Body = template.HTML(out.String())
	return nil
}

// plainText is the words of a node.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // it never fails
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		case *ast.CodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		case *extast.TableCell, *ast.ListItem, *ast.Paragraph:
			if !entering {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// writer prints the nodes that are not as goldmark has them: code is
// highlighted, tables scroll by themselves and have no styles of their own,
// links stay within the site.
type writer struct{ links links }

// RegisterFuncs says which.
func (w *writer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, w.code)
	r.Register(ast.KindCodeBlock, w.code)
	r.Register(ast.KindLink, w.link)
	r.Register(ast.KindImage, w.image)
	r.Register(ast.KindHTMLBlock, w.nothing)
	r.Register(ast.KindRawHTML, w.nothing)
	r.Register(extast.KindTable, w.around(`<div class="scroll" tabindex="0"><table>`, `</tbody></table></div>`))
	r.Register(extast.KindTableHeader, w.around(`<thead><tr>`, `</tr></thead><tbody>`))
	r.Register(extast.KindTableRow, w.around(`<tr>`, `</tr>`))
	r.Register(extast.KindTableCell, w.cell)
}

func (w *writer) around(before, after string) renderer.NodeRendererFunc {
	return func(out util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			return put(out, before)
		}
		return put(out, after)
	}
}

func put(out util.BufWriter, text string) (ast.WalkStatus, error) {
	_, err := out.WriteString(text)
	return ast.WalkContinue, err
}

func (w *writer) nothing(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
	return ast.WalkSkipChildren, nil
}

// cell is a heading of its column, or a cell; a heading without words is none.
func (w *writer) cell(out util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	open, end := `<td`, `</td>`
	if n.Parent().Kind() == extast.KindTableHeader && n.HasChildren() {
		open, end = `<th scope="col"`, `</th>`
	}
	if !entering {
		return put(out, end)
	}
	if n.(*extast.TableCell).Alignment == extast.AlignRight {
		open += ` class="n"`
	}
	return put(out, open+`>`)
}

func (w *writer) code(out util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if fenced, ok := n.(*ast.FencedCodeBlock); ok {
		language = string(fenced.Language(source))
	}
	_, err := out.WriteString(string(codeBlock(language, string(n.Lines().Value(source)))))
	return ast.WalkSkipChildren, err
}

func (w *writer) link(out util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	to, ok := w.links.resolve(string(n.(*ast.Link).Destination))
	if !ok {
		return ast.WalkContinue, nil // what lies only in the project is told, not linked
	}
	if entering {
		return put(out, `<a href="`+template.HTMLEscapeString(to)+`">`)
	}
	return put(out, `</a>`)
}

// image is a drawing of ours as it is; other pictures are not brought along.
func (w *writer) image(out util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	at := path.Join(path.Dir(w.links.from), string(n.(*ast.Image).Destination))
	if path.Ext(at) == ".svg" {
		if _, err := fs.Stat(w.links.documents, at); err == nil {
			_, err = out.WriteString(`<img class="drawing" src="` + template.HTMLEscapeString(path.Base(at)) + `" alt="` + template.HTMLEscapeString(plainText(n, source)) + `">`)
			return ast.WalkSkipChildren, err
		}
	}
	return ast.WalkSkipChildren, nil
}
