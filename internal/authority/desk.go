// Package authority is the frame of the doubles: simulated authorities, each
// strict and in a folder of its own.
//
// It owns the desk with its book of registrations, the script by which a double
// misbehaves, and the control plane. It owns no protocol and knows no country:
// neither it nor a double sees a pack, so that one misreading of a protocol
// cannot hide on both sides. Law: what was answered is on disk (see [Desk]).
package authority

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Registration is one document that a simulated authority holds. Its JSON form
// is that of the control plane.
type Registration struct {
	Supplier    string    `json:"supplier"`
	Number      string    `json:"number"`
	SHA256      string    `json:"sha256"`
	AuthorityID string    `json:"authority_id"`
	At          time.Time `json:"at"`

	// Key is what the authority dedupes by. [Book.FindKey] answers the first
	// registration that has it. Empty: the authority has no such key.
	Key string `json:"-"`
	// Note is the simulator's own, given back by Find and after a restart.
	Note string `json:"-"`
}

// Desk is the frame of a simulated authority: a book of registrations that is
// on disk before an answer leaves, and a script that says how to misbehave.
//
// Failure policy: a real authority does not forget what it confirmed, so
// neither does a desk. Lines are appended and synced before [Desk.Write]
// returns; writers that come while a sync runs share the next one. After a
// failed write or sync the desk refuses everything, because the page cache may
// no longer tell what is on disk. Where the disk was full it goes on once there is
// room: from what is known to be on disk, without what was not confirmed. A torn
// last line belongs to an answer that never left and is cut off on reopening; any
// other damage stops the start.
type Desk struct {
	code string

	mu       sync.Mutex
	settled  sync.Cond // signalled when a sync ends
	book     Book
	file     *os.File
	syncing  bool
	syncedTo int64 // lines known to be on disk
	onDisk   int64 // bytes of the file that are
	broken   error
	failures int // writes that failed, with those who waited for them

	script scriptState
	beside background
}

// line is one line of the log: a registration or a value of the simulator's own.
type line struct {
	Registration *registrationLine `json:"registration,omitempty"`
	Put          string            `json:"put,omitempty"`
	Value        string            `json:"value,omitempty"`
}

type registrationLine struct {
	Registration
	Key  string `json:"key,omitempty"`
	Note string `json:"note,omitempty"`
}

// OpenDesk opens or makes the book of one authority in a folder. code is the
// pack's, upper case.
func OpenDesk(dir, code string) (*Desk, error) {
	d := &Desk{code: code, book: newBook()}
	d.settled.L = &d.mu
	d.script.asked = map[string]int{}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the simulated authorities: %w", err)
	}
	path := filepath.Join(dir, code+".jsonl")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the book of authority %s: %w", code, err)
	}
	if err := d.reload(file); err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", path, err), file.Close())
	}
	if err := syncFolder(dir); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	d.file = file
	return d, nil
}

// syncFolder makes a new file's name durable, not only its bytes.
func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("opening the folder of the simulated authorities: %w", err)
	}
	err = errors.Join(folder.Sync(), folder.Close())
	if err != nil {
		return fmt.Errorf("syncing the folder of the simulated authorities: %w", err)
	}
	return nil
}

// reload reads the log and leaves the file at its end, without a torn last line.
func (d *Desk) reload(file *os.File) error {
	in := bufio.NewReaderSize(file, 1<<16)
	var whole int64
	for number := 1; ; number++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // what stands behind the last newline was never confirmed to anybody
		}
		if err != nil {
			return err
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if l.Registration != nil {
			r := l.Registration.Registration
			r.Key, r.Note = l.Registration.Key, l.Registration.Note
			d.book.enter(r)
		} else {
			d.book.set(l.Put, l.Value)
		}
		whole += int64(len(text))
	}
	if err := file.Truncate(whole); err != nil {
		return fmt.Errorf("cutting a torn line: %w", err)
	}
	d.onDisk = whole
	_, err := file.Seek(whole, io.SeekStart)
	return err
}

// recover goes on behind what is on disk, where the only trouble was a full one.
func (d *Desk) recover() {
	if !errors.Is(d.broken, syscall.ENOSPC) {
		return
	}
	err := d.file.Truncate(d.onDisk)
	if err == nil {
		err = d.file.Sync()
	}
	if err == nil {
		_, err = d.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return // not yet
	}
	d.book = newBook()
	if err := d.reload(d.file); err != nil {
		d.broken = fmt.Errorf("reading the book of authority %s: %w", d.code, err)
		return
	}
	d.syncedTo, d.broken = d.book.written, nil
}

// Write lets fn read and write the book, alone. Nil means that everything fn
// wrote, and everything it saw, is on disk: only then may an answer leave. fn
// is short and does no input or output; it reads what it needs, decides, and
// writes last, because nothing is undone.
func (d *Desk) Write(fn func(*Book)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil && !d.syncing {
		d.recover()
	}
	if d.broken != nil {
		return d.broken
	}
	fn(&d.book)
	failures := d.failures
	for want := d.book.written; d.syncedTo < want && d.failures == failures; {
		if d.syncing {
			d.settled.Wait()
		} else {
			d.sync()
		}
	}
	if d.failures != failures { // somebody may have gone on since, without what fn wrote
		return fmt.Errorf("keeping the book of authority %s: it could not be written", d.code)
	}
	return d.broken
}

// Read lets fn look at the book without waiting for the disk. It may see what
// is not on disk yet, so nothing it sees may be confirmed to anybody.
func (d *Desk) Read(fn func(*Book)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fn(&d.book)
}

// sync writes out what has gathered; it is entered and left with the lock held.
func (d *Desk) sync() {
	text, upTo := d.book.unwritten, d.book.written
	d.book.unwritten = nil
	d.syncing = true
	d.mu.Unlock()
	_, err := d.file.Write(text)
	if err == nil {
		err = d.file.Sync()
	}
	d.mu.Lock()
	d.syncing = false
	if err != nil {
		d.broken = fmt.Errorf("keeping the book of authority %s: %w", d.code, err)
		d.failures++
	} else {
		d.syncedTo, d.onDisk = upTo, d.onDisk+int64(len(text))
	}
	d.settled.Broadcast()
}

// Registrations answers everything registered so far, oldest first.
func (d *Desk) Registrations() ([]Registration, error) {
	var all []Registration
	err := d.Write(func(b *Book) { all = b.registrations[:len(b.registrations):len(b.registrations)] })
	return all, err
}

// Close ends the desk; later writes are refused.
func (d *Desk) Close() error {
	d.rest()
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.syncing {
		d.settled.Wait()
	}
	if d.broken == nil {
		d.broken = fmt.Errorf("the desk of authority %s is closed", d.code)
	}
	return d.file.Close()
}

// Book is what an authority knows. It is reached through [Desk.Write] only.
type Book struct {
	registrations []Registration
	byNumber      map[string]int
	byKey         map[string]int
	values        map[string]string
	unwritten     []byte
	written       int64 // lines ever appended since the desk opened
}

func newBook() Book {
	return Book{byNumber: map[string]int{}, byKey: map[string]int{}, values: map[string]string{}}
}

// Count is the number of registrations.
func (b *Book) Count() int { return len(b.registrations) }

// Find answers the first registration of a supplier under a number.
func (b *Book) Find(supplier, number string) (Registration, bool) {
	i, ok := b.byNumber[supplier+"\x00"+number]
	if !ok {
		return Registration{}, false
	}
	return b.registrations[i], true
}

// FindKey answers the first registration with a key.
func (b *Book) FindKey(key string) (Registration, bool) {
	i, ok := b.byKey[key]
	if !ok {
		return Registration{}, false
	}
	return b.registrations[i], true
}

// Register appends a registration. Whether the number may be taken is the
// simulator's rule, not the book's: an authority without any memory for
// numbers is one of those to be simulated.
func (b *Book) Register(r Registration) Registration {
	if r.At.IsZero() {
		r.At = time.Now()
	}
	r.At = r.At.UTC().Truncate(time.Second)
	b.enter(r)
	b.append(line{Registration: &registrationLine{Registration: r, Key: r.Key, Note: r.Note}})
	return r
}

// Put keeps a value of the simulator's own (a pending document, a chain's
// head, an enrolled key); an empty one is forgotten.
func (b *Book) Put(key, value string) {
	b.set(key, value)
	b.append(line{Put: key, Value: value})
}

// Get answers a value that Put kept.
func (b *Book) Get(key string) (string, bool) {
	value, ok := b.values[key]
	return value, ok
}

// Keep puts a record of the simulator's own, as JSON.
func (b *Book) Keep(key string, record any) { b.Put(key, Note(record)) }

// Load reads a record that Keep put; where there is none, into stays as it is.
func (b *Book) Load(key string, into any) bool {
	text, ok := b.Get(key)
	if ok {
		ReadNote(text, into)
	}
	return ok
}

// Note is a record as a text, for the note of a registration.
func Note(record any) string {
	text, err := json.Marshal(record)
	if err != nil {
		panic(fmt.Sprintf("writing the authority's own book: %v", err)) // plain data always encodes
	}
	return string(text)
}

// ReadNote reads what Note made.
func ReadNote(text string, into any) {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		panic(fmt.Sprintf("reading the authority's own book: %v", err))
	}
}

func (b *Book) enter(r Registration) {
	at := len(b.registrations)
	b.registrations = append(b.registrations, r)
	name := r.Supplier + "\x00" + r.Number
	if _, taken := b.byNumber[name]; !taken {
		b.byNumber[name] = at
	}
	if r.Key == "" {
		return
	}
	if _, taken := b.byKey[r.Key]; !taken {
		b.byKey[r.Key] = at
	}
}

func (b *Book) set(key, value string) {
	if value == "" {
		delete(b.values, key)
	} else {
		b.values[key] = value
	}
}

func (b *Book) append(l line) {
	out := bytes.NewBuffer(b.unwritten)
	// The types of line cannot fail to encode: they are strings and a time.
	if err := json.NewEncoder(out).Encode(l); err != nil {
		panic(fmt.Sprintf("encoding a line of the book: %v", err))
	}
	b.unwritten = out.Bytes()
	b.written++
}
