package incoming

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/amount"
	"tributary/internal/country/text"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// Limits of a document from outside. Elements and attributes are bounded by what the
// reader of XML takes by itself, so that 20 MiB of tiny elements stay below 300 MiB.
const (
	BytesMax = 20 << 20

	depthMax  = 32
	digitsMax = 18 // of a number: what fits 64 bits
)

// ErrInvalid is wrapped by whatever keeps a well-formed document from being read.
var ErrInvalid = errors.New("reading a document")

// Source is a document that is being read: everything that is asked of it is taken,
// and what nobody asked for is listed in the end. A place is a path of local names
// downwards, always the first child of a name not counting namespaces; a last name
// that begins with @ is an attribute. The first thing wrong ends the reading: later
// questions are answered, and Finish says what it was.
type Source struct {
	Root *xmltree.Element

	decimals int
	taken    map[*xmltree.Element]struct{}
	attrs    map[attribute]struct{}
	unread   Unread
	err      error
}

type attribute struct {
	of   *xmltree.Element
	name string
}

// Limits are those of XML from outside.
func Limits() xmltree.Limits {
	return xmltree.Limits{Bytes: BytesMax, Depth: depthMax, Instructions: true, Inside: true}
}

// Parse reads XML from outside.
func Parse(document []byte) (*Source, error) {
	tree, err := Limits().Read(document)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return &Source{Root: tree.Root, taken: map[*xmltree.Element]struct{}{}, attrs: map[attribute]struct{}{}}, nil
}

// Wrong says that something at an element keeps the document from being read.
func (s *Source) Wrong(e *xmltree.Element, format string, a ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %s: %s", ErrInvalid, e.Path(), fmt.Sprintf(format, a...))
	}
}

// Money says which currency the amounts are in.
func (s *Source) Money(currency string) {
	decimals, known := transaction.CurrencyExponent(currency)
	if !known {
		s.Wrong(s.Root, "the currency %q is none that amounts could be in", clip(currency))
	}
	s.decimals = decimals
}

// find takes what a path leads to.
func (s *Source) find(e *xmltree.Element, path []string) (at *xmltree.Element, text string) {
	for i, name := range path {
		if e == nil {
			return nil, ""
		}
		if local, ok := strings.CutPrefix(name, "@"); ok && i == len(path)-1 {
			s.attrs[attribute{e, local}] = struct{}{}
			return e, strings.TrimSpace(e.Attr(local))
		}
		e = e.At(name)
	}
	if e == nil {
		return nil, ""
	}
	s.taken[e] = struct{}{}
	return e, strings.TrimSpace(e.Text)
}

// Text is a text without blanks around it; "" where there is none.
func (s *Source) Text(e *xmltree.Element, path ...string) string {
	_, text := s.find(e, path)
	return text
}

// Usual takes a text where it is what goes without saying, so that only others are listed.
func (s *Source) Usual(e *xmltree.Element, text string, path ...string) {
	if e.Value(path...) == text {
		s.Text(e, path...)
	}
}

// Percent is a fraction as a percentage: 27 of 0.27.
func (s *Source) Percent(e *xmltree.Element, path ...string) num.Amount {
	n := s.Number(e, path...)
	if n.Exp() >= 2 {
		return num.MakeAmount(n.Value(), n.Exp()-2)
	}
	return num.MakeAmount(n.Value(), 0).Multiply(num.MakeAmount(int64([...]int{100, 10}[n.Exp()]), 0))
}

// Texts takes all children of a name.
func (s *Source) Texts(e *xmltree.Element, name string) (all []string) {
	for _, c := range e.All(name) {
		if text := s.Text(c); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// Ignore takes an element with everything below it: it says nothing, or what is
// said elsewhere.
func (s *Source) Ignore(e *xmltree.Element, path ...string) {
	for below := range e.At(path...).Walk() {
		s.taken[below] = struct{}{}
		for i := range below.Attrs {
			s.attrs[attribute{below, below.Attrs[i].Local}] = struct{}{}
		}
	}
}

// Day is a day, without the time and the zone that some formats let follow it.
func (s *Source) Day(e *xmltree.Element, path ...string) string {
	at, text := s.find(e, path)
	if text == "" {
		return ""
	}
	day := text[:min(len(text), len(time.DateOnly))]
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		s.Wrong(at, "%q is not a day", clip(text))
		return ""
	}
	return day
}

// Span is a period; nil where the document has none.
func (s *Source) Span(e *xmltree.Element, from, to string) *transaction.Span {
	span := transaction.Span{From: s.Day(e, from), To: s.Day(e, to)}
	if span == (transaction.Span{}) {
		return nil
	}
	return &span
}

// Maybe is a number; nil where there is none.
func (s *Source) Maybe(e *xmltree.Element, path ...string) *num.Amount {
	at, text := s.find(e, path)
	if text == "" {
		return nil
	}
	n, err := Decimal(text)
	if err != nil {
		s.Wrong(at, "%v", err)
	}
	return &n
}

// Number is a number; 0 where there is none.
func (s *Source) Number(e *xmltree.Element, path ...string) num.Amount {
	if n := s.Maybe(e, path...); n != nil {
		return *n
	}
	return num.Amount{}
}

// Amount is an amount in minor units; 0 where there is none. Where a document has
// more decimals than the currency, it is rounded and listed as not read in full.
func (s *Source) Amount(e *xmltree.Element, path ...string) int64 {
	at, text := s.find(e, path)
	if text == "" {
		return 0
	}
	n, err := Decimal(text)
	if err != nil {
		s.Wrong(at, "%v", err)
		return 0
	}
	minor, exact, err := Minor(n, s.decimals)
	switch {
	case err != nil:
		s.Wrong(at, "%v", err)
	case !exact:
		s.unread.Add(func() string { return placed(at, path) + " = " + clip(text) })
	}
	return minor
}

// Sum adds up the amounts of all children of a name, each at a path below it.
func (s *Source) Sum(e *xmltree.Element, name string, path ...string) (sum int64) {
	for _, c := range e.All(name) {
		sum = s.Plus(c, sum, s.Amount(c, path...))
	}
	return sum
}

// Plus adds amounts of which the sum may be too large.
func (s *Source) Plus(e *xmltree.Element, a, b int64) int64 {
	sum := a + b
	if sum > transaction.AmountMax || sum < -transaction.AmountMax {
		s.Wrong(e, "amounts come to more than %d minor units", int64(transaction.AmountMax))
		return 0
	}
	return sum
}

// Counted is a positive integer, or else how many there were before and one.
func (s *Source) Counted(before int, e *xmltree.Element, path ...string) int64 {
	at, text := s.find(e, path)
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n > 0 {
		return n
	}
	if text != "" {
		s.unread.Add(func() string { return placed(at, path) + " = " + clip(text) })
	}
	return int64(before) + 1
}

// Miss lists something as not understood that was asked for.
func (s *Source) Miss(e *xmltree.Element) { s.unread.Add(e.Path) }

// Part is a source of one of several documents that stand in one. What is left below
// the head that they share is of each of them.
func (s *Source) Part() *Source {
	part := *s
	part.unread.paths = slices.Clip(s.unread.paths)
	return &part
}

// LeaveAttributes lists the attributes of an element that nobody took.
func (s *Source) LeaveAttributes(e *xmltree.Element) {
	for i := range e.Attrs {
		if a := &e.Attrs[i]; a.Space != xmltree.SpaceXSI && a.Value != "" {
			if _, taken := s.attrs[attribute{e, a.Local}]; !taken {
				s.unread.Add(func() string { return e.Path() + "/@" + a.Local })
			}
		}
	}
}

// Leave lists what nobody took below an element.
func (s *Source) Leave(e *xmltree.Element) {
	if e != nil {
		s.leftovers(e)
	}
}

// MissAt lists something that is no element.
func (s *Source) MissAt(what string) { s.unread.Add(func() string { return what }) }

// Finish lists what nobody took below an element; or says what was wrong.
func (s *Source) Finish(d *Document, e *xmltree.Element) (*Document, error) {
	if s.err != nil {
		return nil, s.err
	}
	s.Leave(e)
	d.NotRead = s.unread.List()
	return d, nil
}

func (s *Source) leftovers(e *xmltree.Element) {
	if !s.touched(e) {
		if says(e) {
			s.unread.Add(e.Path)
		}
		return
	}
	s.LeaveAttributes(e)
	if _, taken := s.taken[e]; !taken && strings.TrimSpace(e.Text) != "" {
		s.unread.Add(func() string { return e.Path() + "/text()" })
	}
	for _, c := range e.Children {
		s.leftovers(c)
		if strings.TrimSpace(c.Tail) != "" {
			s.unread.Add(func() string { return e.Path() + "/text()" })
		}
	}
}

// touched reports whether anything of an element was taken.
func (s *Source) touched(e *xmltree.Element) bool {
	for below := range e.Walk() {
		if _, taken := s.taken[below]; taken {
			return true
		}
		for i := range below.Attrs {
			if _, taken := s.attrs[attribute{below, below.Attrs[i].Local}]; taken {
				return true
			}
		}
	}
	return false
}

// says reports whether there is anything in an element.
func says(e *xmltree.Element) bool {
	for below := range e.Walk() {
		if strings.TrimSpace(below.Text) != "" || len(below.Attrs) > 0 {
			return true
		}
	}
	return false
}

func placed(e *xmltree.Element, path []string) string {
	if n := len(path); n > 0 && strings.HasPrefix(path[n-1], "@") {
		return e.Path() + "/" + path[n-1]
	}
	return e.Path()
}

func clip(s string) string { return s[:min(len(s), 40)] }

// Unread gathers the paths of what was not understood, at most [NotReadMax]. A path
// costs time by the length of the document, so that it is made only where it is kept.
type Unread struct {
	paths []string
	more  int
}

// Add adds a path, once.
func (u *Unread) Add(path func() string) {
	if len(u.paths) == NotReadMax-1 {
		u.more++
		return
	}
	if text := path(); !slices.Contains(u.paths, text) {
		u.paths = append(u.paths, text)
	}
}

// List is the paths, the last one saying how many more there are.
func (u *Unread) List() []string {
	if u.more > 0 {
		return append(u.paths[:len(u.paths):len(u.paths)], "and "+strconv.Itoa(u.more)+" more")
	}
	return u.paths
}

// Decimal reads a number of at most 18 digits, zeros at both ends not counted.
func Decimal(written string) (num.Amount, error) {
	digits, negative := strings.CutPrefix(written, "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	whole, part, _ := strings.Cut(digits, ".")
	valid := whole+part != "" && text.Digits(whole+part)
	whole = strings.TrimLeft(whole, "0")
	if len(whole)+len(part) > digitsMax {
		part = strings.TrimRight(part, "0")
	}
	if !valid || len(whole)+len(part) > digitsMax {
		return num.Amount{}, fmt.Errorf("%q is not a decimal of at most %d digits", clip(written), digitsMax)
	}
	value, err := strconv.ParseInt("0"+whole+part, 10, 64)
	if negative {
		value = -value
	}
	return num.MakeAmount(value, uint32(len(part))), err
}

// Minor is a number in minor units of a currency with so many decimals, and whether
// that is all of it.
func Minor(n num.Amount, decimals int) (minor int64, exact bool, err error) {
	minor, fits := amount.Scaled(n.Value(), decimals-int(n.Exp()), num.MakeAmount(1, 0))
	if !fits {
		return 0, false, fmt.Errorf("%s is more than an amount may be", n.String())
	}
	return minor, num.MakeAmount(minor, uint32(decimals)).Compare(n) == 0, nil
}

// One is the list of one document.
func One(d *Document, err error) ([]*Document, error) {
	if err != nil {
		return nil, err
	}
	return []*Document{d}, nil
}
