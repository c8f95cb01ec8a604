package typeset

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf16"
)

// Bounds of a look through folders.
const (
	fontFilesMax = 8192
	fontBytesMax = 96 << 20
	fontDepthMax = 8
)

// Folders are where fonts are looked for: what the operator named comes before
// what the program brings, and that before the system's.
type Folders struct{ Own, System []string }

// WithSystem are folders of the operator and those where systems keep fonts.
func WithSystem(own ...string) Folders {
	switch runtime.GOOS {
	case "darwin":
		return Folders{own, []string{"/Library/Fonts", "/System/Library/Fonts"}}
	case "windows":
		return Folders{own, []string{filepath.Join(os.Getenv("WINDIR"), "Fonts")}}
	}
	return Folders{own, []string{"/usr/local/share/fonts", "/usr/share/fonts"}}
}

// fontFile is a font of a folder, known by its names alone.
type fontFile struct {
	path   string
	offset int  // of the font in its file: collections hold several
	own    bool // of a folder that the operator named
	family string
	name   string // PostScript name
	weight int
	italic bool
}

func (f fontFile) heavy() bool { return f.weight >= 600 }

// scan lists the fonts of all folders, those of the operator first, by path. A
// folder of the operator that cannot be read is an error beside the list.
func (d Folders) scan() ([]fontFile, error) {
	var found []fontFile
	var problems []error
	for i, folder := range slices.Concat(d.Own, d.System) {
		own := i < len(d.Own)
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				if own && path == folder {
					return fmt.Errorf("look for fonts: %w", err)
				}
				return nil
			}
			if e.IsDir() && strings.Count(strings.TrimPrefix(path, folder), string(filepath.Separator)) > fontDepthMax {
				return fs.SkipDir
			}
			if len(found) >= fontFilesMax {
				return fs.SkipAll
			}
			switch strings.ToLower(filepath.Ext(path)) {
			case ".ttf", ".otf", ".ttc", ".otc":
				found = append(found, describe(path, own)...)
			}
			return nil
		})
		problems = append(problems, err)
	}
	return found, errors.Join(problems...)
}

// describe reads the names of a file's fonts; nothing for one that is broken
// or has no outlines that can be embedded.
func describe(path string, own bool) []fontFile {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // only read
	var out []fontFile
	for _, offset := range fontOffsets(file) {
		f := fontFile{path: path, offset: offset, own: own, weight: 400}
		if f.readNames(file) {
			out = append(out, f)
		}
	}
	return out
}

// fontOffsets are where the fonts of a file begin.
func fontOffsets(file io.ReaderAt) []int {
	head := readAt(file, 0, 12)
	if head == nil {
		return nil
	}
	if string(head[:4]) != "ttcf" {
		return []int{0}
	}
	const collectionMax = 64
	count := min(int(u32(head, 8)), collectionMax)
	table := readAt(file, 12, 4*count)
	var out []int
	for i := 0; i+4 <= len(table); i += 4 {
		out = append(out, int(u32(table, i)))
	}
	return out
}

// readAt returns n bytes of a file, nil where there are fewer.
func readAt(file io.ReaderAt, at, n int) []byte {
	if at < 0 || n <= 0 || n > fontBytesMax {
		return nil
	}
	out := make([]byte, n)
	if got, err := file.ReadAt(out, int64(at)); got < n || err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return out
}

// tableAt returns a table of the font, nil where it has none.
func (f *fontFile) tableAt(file io.ReaderAt, tag string) []byte {
	head := readAt(file, f.offset, 12)
	if head == nil {
		return nil
	}
	directory := readAt(file, f.offset+12, 16*int(u16(head, 4)))
	for i := 0; i+16 <= len(directory); i += 16 {
		if string(directory[i:i+4]) == tag {
			return readAt(file, int(u32(directory, i+8)), int(u32(directory, i+12)))
		}
	}
	return nil
}

func (f *fontFile) hasTable(file io.ReaderAt, tag string) bool {
	head := readAt(file, f.offset, 12)
	if head == nil {
		return false
	}
	directory := readAt(file, f.offset+12, 16*int(u16(head, 4)))
	for i := 0; i+16 <= len(directory); i += 16 {
		if string(directory[i:i+4]) == tag {
			return true
		}
	}
	return false
}

func (f *fontFile) readNames(file io.ReaderAt) bool {
	os2 := f.tableAt(file, "OS/2")
	if len(os2) < 64 || !f.hasTable(file, "glyf") && !f.hasTable(file, "CFF ") {
		return false
	}
	f.weight, f.italic = int(u16(os2, 4)), u16(os2, 62)&1 != 0
	if variable := f.tableAt(file, "fvar"); variable != nil && !sober(variable) {
		return false // what would be embedded is its default, here a hairline or a black
	}
	names := f.tableAt(file, "name")
	f.family, f.name = fontName(names, 16), fontName(names, 6)
	if f.family == "" {
		f.family = fontName(names, 1)
	}
	// Regular and Bold are families' own names in some fonts: by their weight.
	f.family = strings.TrimSuffix(strings.TrimSuffix(f.family, " Regular"), " Bold")
	if f.name = printable(f.name); f.name == "" {
		f.name = printable(f.family)
	}
	return f.family != "" && f.name != ""
}

// sober reports whether a variable font's default weight is that of a text.
func sober(fvar []byte) bool {
	if len(fvar) < 16 {
		return false
	}
	at, count, size := int(u16(fvar, 4)), int(u16(fvar, 8)), int(u16(fvar, 10))
	for i := range count {
		axis := at + i*size
		if axis+12 > len(fvar) {
			return false
		}
		if string(fvar[axis:axis+4]) == "wght" {
			weight := int(u32(fvar, axis+8)) >> 16
			return weight >= 300 && weight <= 500
		}
	}
	return true
}

// fontName returns a name of the name table, in English where there is a choice.
func fontName(table []byte, id int) string {
	if len(table) < 6 {
		return ""
	}
	count, storage := int(u16(table, 2)), int(u16(table, 4))
	best := ""
	for i := range count {
		at := 6 + 12*i
		if at+12 > len(table) {
			break
		}
		platform, language, name := u16(table, at), u16(table, at+4), int(u16(table, at+6))
		from := storage + int(u16(table, at+10))
		to := from + int(u16(table, at+8))
		if name != id || to > len(table) {
			continue
		}
		switch {
		case platform == 3 && language == 0x409:
			return decodeUTF16(table[from:to])
		case platform == 3 && best == "":
			best = decodeUTF16(table[from:to])
		case platform == 1 && language == 0:
			best = string(table[from:to])
		}
	}
	return best
}

func decodeUTF16(raw []byte) string {
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = u16(raw, 2*i)
	}
	return string(utf16.Decode(units))
}

// printable keeps what may stand in a PDF name without escapes.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, s)
}

// covers reports whether the font has all of some letters, by its character map alone.
func (f fontFile) covers(sample []rune) bool {
	file, err := os.Open(f.path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // only read
	maxp := f.tableAt(file, "maxp")
	if len(maxp) < 6 {
		return false
	}
	probe := &Face{Name: f.name, Widths: make([]uint16, u16(maxp, 4))}
	return probe.readCmap(f.tableAt(file, "cmap")) == nil && covers(probe, sample)
}

// read returns the whole file.
func (f fontFile) read() ([]byte, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	about, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if about.Size() > fontBytesMax {
		return nil, fmt.Errorf("font %s is larger than %d bytes", f.path, fontBytesMax)
	}
	raw := make([]byte, about.Size()) // tens of megabytes for Chinese: a buffer that grows is most of the time
	_, err = io.ReadFull(file, raw)
	return raw, err
}
