package client

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// entry is one transaction of the input.
type entry struct {
	source string // file and position, for people
	id     string // transaction_id
	number string
	body   []byte // as it is sent
	digest string // of body: tells a changed entry from one that was accepted
	lines  []int  // of a CSV file: the line of each item; nil of other files
}

func newEntry(source string, body []byte) (entry, error) {
	// Read as strictly as the service reads it: of two transaction_ids it would
	// take neither, and the one we remembered would be wrong.
	var id, number string
	r := new(strictjson.Reader)
	r.Open(body, lineBytesMax)
	r.Body(func(name string) {
		switch name {
		case "transaction_id":
			r.Text(&id)
		case "transaction_number":
			r.Text(&number)
		default:
			r.Skip()
		}
	})
	if err := r.Err(); err != nil {
		return entry{}, fmt.Errorf("is not a transaction: %w", err)
	}
	if err := r.Faults.Err("it"); err != nil {
		return entry{}, err
	}
	if id == "" {
		return entry{}, errors.New("has no transaction_id, which is required so that submitting twice is safe")
	}
	sum := sha256.Sum256(body)
	return entry{source: source, id: id, number: number, body: body, digest: hex.EncodeToString(sum[:8])}, nil
}

// inputFaultsMax bounds how many mistakes of the input are listed.
const inputFaultsMax = 50

// input collects entries and everything that is wrong with the files, so that
// nothing is sent before all of it has been read.
type input struct {
	entries []entry
	byID    map[string]int
	faults  []fault.Fault
	wrong   int
}

func (in *input) fault(source, format string, args ...any) {
	if in.wrong++; in.wrong <= inputFaultsMax {
		in.faults = append(in.faults, fault.At(source, fault.FieldNotValid, format, args...))
	}
}

// add takes an entry. The same content twice is one transaction; other content
// under the same transaction_id is a mistake the service could not see: it
// would keep one of the two and call the other a repetition.
func (in *input) add(source string, body []byte, lines []int) {
	e, err := newEntry(source, body)
	e.lines = lines
	if err != nil {
		in.fault(source, "%v", err)
		return
	}
	if at, twice := in.byID[e.id]; twice {
		if first := in.entries[at]; first.digest != e.digest {
			in.fault(source, "has the same transaction_id %q as %s but different content", e.id, first.source)
		}
		return
	}
	in.byID[e.id] = len(in.entries)
	in.entries = append(in.entries, e)
}

// readEntries reads files and folders. A mistake anywhere is fault.Invalid.
func readEntries(paths []string) ([]entry, error) {
	in := &input{byID: map[string]int{}}
	files, err := inputFiles(paths)
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		if err := in.readFile(path); err != nil {
			in.fault(path, "%v", err)
		}
	}
	if in.wrong > 0 {
		return nil, fault.New(fault.Invalid, "nothing was submitted: the input has %s",
			fault.Count(in.wrong, "error")).With(in.faults...)
	}
	if len(in.entries) == 0 {
		return nil, fault.New(fault.Invalid, "no transactions in %s", strings.Join(paths, ", "))
	}
	return in.entries, nil
}

// inputFiles lists the files of folders in alphabetical order; hidden ones and
// those of other kinds are left out. A file named directly must be of a known kind.
func inputFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%v", err)
		}
		if !info.IsDir() {
			if readerOf(path) == nil {
				return nil, fault.New(fault.Invalid, "%s: the name must end in .json, .jsonl, .ndjson or .csv", path)
			}
			files = append(files, path)
			continue
		}
		err = filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case at != path && strings.HasPrefix(e.Name(), ".") && e.IsDir():
				return fs.SkipDir
			case !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && readerOf(at) != nil:
				files = append(files, at)
			}
			return nil
		})
		if err != nil {
			return nil, fault.New(fault.Invalid, "%v", err)
		}
	}
	return files, nil
}

func readerOf(path string) func(*input, string, io.Reader) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json":
		return (*input).readJSON
	case ".jsonl", ".ndjson":
		return (*input).readLines
	case ".csv":
		return (*input).readCSV
	default:
		return nil
	}
}

func (in *input) readFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	r := bufio.NewReader(f)
	if mark, _ := r.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) { // spreadsheets begin UTF-8 with it
		_, _ = r.Discard(3) // was just peeked at
	}
	return readerOf(path)(in, path, r)
}

// readJSON takes one transaction, several one after the other, or arrays of them.
func (in *input) readJSON(path string, r io.Reader) error {
	d := json.NewDecoder(r)
	for n := 1; ; {
		var value json.RawMessage
		if err := d.Decode(&value); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("is not JSON near byte %d: %w", d.InputOffset(), err)
		}
		list := []json.RawMessage{value}
		if bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")) {
			if err := json.Unmarshal(value, &list); err != nil {
				return fmt.Errorf("is not a list of transactions: %w", err)
			}
		}
		for _, body := range list {
			in.add(fmt.Sprintf("%s#%d", path, n), bytes.Clone(body), nil)
			n++
		}
	}
}

// lineBytesMax is over the service's own limit of a body, which gives the better message.
const lineBytesMax = 4 << 20

// readLines takes one transaction per line; empty lines are left out.
func (in *input) readLines(path string, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineBytesMax)
	n := 0
	for lines.Scan() {
		n++
		if body := bytes.TrimSpace(lines.Bytes()); len(body) > 0 {
			in.add(fmt.Sprintf("%s:%d", path, n), bytes.Clone(body), nil)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d cannot be read: %w", n+1, err)
	}
	return nil
}
