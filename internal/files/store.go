// Package files keeps the files of settled operations, knows whose they are, and
// hands out short-lived addresses for them.
//
// It owns the bytes in a folder or an S3-compatible store, the table of
// attachments, and the sweep of what nothing mentions. It does not own what is in
// a file, nor when one may end: pages are the package document's, years the
// package retention's. Law: no attachment without its bytes (see [Store]).
package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/ids"
	"tributary/internal/secret"
)

// Where the bytes of an attachment live.
const (
	InStore  = "store"  // in the blob store, put there by [Store.Keep]
	InRecord = "record" // in the records of the operation's owner, see [Config.Record]
)

// Original is the kind of a document that was received, byte for byte.
const Original = "ORIGINAL"

// Limits of the store.
const (
	FileBytesMax = 32 << 20 // of one file; a hundred pages are about one MiB

	ttlDefault        = 15 * time.Minute
	ttlMax            = 24 * time.Hour
	signingKeyMin     = 32 // bytes
	pendingMaxDefault = 1 << 16

	shelfLength = time.Hour
	// reuseFor is how long after the end of its shelf a kept file is still relied
	// on. It ends well before sweepAfter, so that nobody keeps a file in vain.
	reuseFor = 30 * time.Minute

	writersLocal  = 2
	writersRemote = 16 // round trips wait, not processors
)

// ErrNotKept reports an attachment whose bytes this store has not kept, or has
// kept so long ago that they may be swept: keep them again.
var ErrNotKept = errors.New("the bytes of the attachment are not kept, or were kept too long ago")

// Config says how to open a store. DB, BaseURL, SigningKey and URL are required.
type Config struct {
	DB *db.DB
	// URL of the blob store: file:///folder, s3://bucket?region=…&endpoint=…, mem:// in tests.
	URL     string
	BaseURL string        // begins every address handed out
	TTL     time.Duration // of addresses; default 15 minutes, at most a day

	// SigningKey signs addresses and nothing else; at least 32 bytes. Addresses
	// signed with PreviousKey, if there is one, stay good until they expire.
	SigningKey  secret.Secret
	PreviousKey secret.Secret

	// Record reads the bytes of an attachment whose place is [InRecord].
	Record func(r db.Reader, a Attachment) ([]byte, error)

	PendingMax int // files kept and not attached yet; past it Keep answers Unavailable

	Log    *slog.Logger
	Alerts *alert.Alerts
	Now    func() time.Time // default: the database's time
	Fatal  func(error)      // called once when a sync has failed; nil ends the process
}

// File is content with its name: the SHA-256 of its bytes, in lower-case hex.
type File struct {
	SHA256 string
	Size   int64
	Bytes  []byte
}

// NewFile names bytes. The caller does not change them afterwards.
func NewFile(b []byte) File {
	sum := sha256.Sum256(b)
	return File{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(b)), Bytes: b}
}

// Attachment is one file of a settled operation.
type Attachment struct {
	ResourceID  string // 32 lower-case hex digits, random; [Store.Attach] makes it when empty
	ClientID    string // the owner's scope
	OperationID string
	Kind        string // VISUAL, REPORT, RECEIPT or CLIENT; of a received document ORIGINAL or VISUAL
	Type        string // PDF, XML or JSON; of CLIENT also PNG, JPEG or CSV
	Name        string // CLIENT: the client's own
	Signed      bool   // ORIGINAL: the XML stands in a signed envelope (.p7m)
	Place       string // InStore or InRecord
	SHA256      string
	Size        int64
	CreatedAt   time.Time

	shelf string
	spot  spot
}

// Store keeps files, knows whose they are, and hands out addresses for them.
//
// Failure policy: a file is on disk, with the folders that lead to it, before
// Keep returns; only then may it be attached, in the commit that settles its
// operation. A crash in between leaves a file that nothing mentions, which
// [Store.Sweep] removes; the other way round, an attachment without its file,
// cannot happen. After a failed sync the page cache can no longer be believed:
// nothing more is acknowledged and the process ends, see [Config.Fatal].
//
// A file lies at STORE/SHELF/ab/SHA256, where SHELF is the UTC hour of its
// Keep: equal files of an hour share one place. Small files that are kept at the
// same time lie together in STORE/archives/SHELF/ARCHIVE, see archive.go. The
// hour is there for the sweeper. It looks only at shelves of the past, however many files there are,
// and the place of a file that may be removed is never used again, so that a
// sweeper that stalls and wakes up cannot remove what somebody else has just
// kept. Before it looks, it closes the shelf in the database: an Attach either
// is committed and seen by then, or comes later and is refused.
type Store struct {
	cfg    Config
	db     *db.DB
	log    *slog.Logger
	now    func() time.Time
	bucket bucket
	folder *folder // nil unless files are stored in a folder of this machine
	remote bool
	prefix string                       // of every key: the store's id and a slash
	keys   atomic.Pointer[[]addressKey] // the first signs, all are accepted

	mu    sync.Mutex
	floor string          // no earlier shelf is open, as far as we have heard
	kept  map[string]kept // by SHA256: on disk, and to be attached

	marked time.Time // when keeping files last moved the mark, see owner.go

	dead atomic.Pointer[error] // why nothing may be acknowledged any more
	once sync.Once
	ends sync.Once
}

// kept is a file on disk that waits for its attachments.
type kept struct {
	shelf string
	spot  spot
	times int // Keeps that have not been followed by an Attach
}

// OpenStore opens the blob store and registers it with the database.
func OpenStore(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, db: cfg.DB, log: cfg.Log, now: cfg.Now, kept: map[string]kept{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = cfg.DB.Now
	}
	s.SetKeys(cfg.SigningKey, cfg.PreviousKey)
	first, err := s.register(ctx)
	if err != nil {
		return nil, fmt.Errorf("register the document store: %w", err)
	}
	if err := s.openBucket(); err != nil {
		return nil, err
	}
	if err := s.checkShared(ctx, first); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// SetKeys replaces the key that signs addresses and the one that is accepted
// beside it, which may be zero.
func (s *Store) SetKeys(signs, beside secret.Secret) {
	var keys []addressKey
	for _, key := range []secret.Secret{signs, beside} {
		if !key.IsZero() {
			keys = append(keys, newAddressKey(key))
		}
	}
	s.keys.Store(&keys)
}

func (c *Config) check() error {
	if c.TTL == 0 {
		c.TTL = ttlDefault
	}
	if c.PendingMax == 0 {
		c.PendingMax = pendingMaxDefault
	}
	if c.TTL < time.Second || c.TTL > ttlMax {
		return fault.New(fault.Invalid, "document addresses live from one second to %s, not %s", ttlMax, c.TTL)
	}
	if len(c.SigningKey.Reveal()) < signingKeyMin || !c.PreviousKey.IsZero() && len(c.PreviousKey.Reveal()) < signingKeyMin {
		return fault.New(fault.Invalid, "the key of document addresses needs at least %d bytes", signingKeyMin)
	}
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.RawQuery != "" ||
		base.Fragment != "" {
		return fault.New(fault.Invalid, "base URL %q of document addresses: want https://HOST", c.BaseURL)
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	return nil
}

// register reads the store's row, or makes it on the first start.
func (s *Store) register(ctx context.Context) (first bool, err error) {
	id, shelf := ids.New(), shelfOf(s.now())
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Exec(registerSQL, id, shelf); err != nil {
			return err
		}
		var found, open string
		if err := tx.Row(storeSQL).Scan(&found, &open); err != nil {
			return err
		}
		s.prefix, s.floor, first = found+"/", open, found == id
		return nil
	})
	return first, err
}

// Keep puts files into the store. When it returns nil they are on disk and can
// be attached by this process. Files of calls that wait at the same time are
// synced together; a file that is there already is not written again.
func (s *Store) Keep(ctx context.Context, files ...File) error {
	if len(files) == 0 {
		return nil
	}
	for _, f := range files {
		if !ids.Hex(f.SHA256, 2*sha256.Size) || f.Size != int64(len(f.Bytes)) {
			return fmt.Errorf("keep file %q of %d bytes: it was not made by NewFile", f.SHA256, len(f.Bytes))
		}
		if f.Size > FileBytesMax {
			return fault.New(fault.TooLarge, "a document of %d bytes is larger than %d", f.Size, FileBytesMax)
		}
	}
	if dead := s.dead.Load(); dead != nil {
		return unavailable(*dead)
	}
	c, err := s.claim(files)
	if err != nil {
		return err
	}
	spots, err := s.put(ctx, c)
	if err != nil {
		s.release(c.reused)
		return err
	}
	s.markWhileKeeping(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for sum, times := range c.fresh {
		k, ok := s.kept[sum]
		if !ok {
			k.shelf, k.spot = c.shelf, spots[sum]
		}
		k.times += times
		s.kept[sum] = k
	}
	return nil
}

// claim is what one Keep has to do.
type claim struct {
	shelf  string
	write  []File         // not kept yet, each once
	fresh  map[string]int // of those: how often the caller named them
	reused []string       // kept already, and held for this caller
}

func (s *Store) claim(files []File) (claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if len(s.kept)+len(files) > s.cfg.PendingMax {
		s.forgetOld(now)
		if len(s.kept)+len(files) > s.cfg.PendingMax {
			return claim{}, fault.Overloaded("the document store")
		}
	}
	c := claim{shelf: max(shelfOf(now), s.floor), fresh: make(map[string]int, len(files))}
	for _, f := range files {
		if k, ok := s.kept[f.SHA256]; ok && s.usable(k, now) {
			k.times++
			s.kept[f.SHA256] = k
			c.reused = append(c.reused, f.SHA256)
			continue
		}
		delete(s.kept, f.SHA256)
		if c.fresh[f.SHA256]++; c.fresh[f.SHA256] == 1 {
			c.write = append(c.write, f)
		}
	}
	return c, nil
}

// put writes what a claim needs.
func (s *Store) put(ctx context.Context, c claim) (map[string]spot, error) {
	spots, err := s.write(ctx, c.shelf, c.write)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, unavailable(fmt.Errorf("keep files: %w", err))
	}
	if len(c.write) > 0 && s.now().After(shelfEnd(c.shelf).Add(reuseFor)) {
		// The sweeper may have passed already: it must look here once more.
		if err := s.sweepAgain(ctx, c.shelf); err != nil {
			return nil, err
		}
		return nil, unavailable(fmt.Errorf("keep files: it took from %s until now", c.shelf))
	}
	return spots, nil
}

func (s *Store) usable(k kept, now time.Time) bool {
	return k.shelf >= s.floor && !now.After(shelfEnd(k.shelf).Add(reuseFor))
}

// forgetOld drops files that were kept and never attached; the sweeper finds them.
func (s *Store) forgetOld(now time.Time) {
	for sum, k := range s.kept {
		if !s.usable(k, now) {
			delete(s.kept, sum)
		}
	}
}

// Attach records attachments with the caller's write. Those whose place is
// [InStore] must have been kept before, or it answers [ErrNotKept].
func (s *Store) Attach(tx *db.Tx, list ...Attachment) error {
	if len(list) == 0 {
		return nil
	}
	now := s.now()
	rows := make([][]any, len(list))
	var stored []string
	first := ""
	for i, a := range list {
		a.shelf = shelfOf(now)
		if a.Place == InStore {
			s.mu.Lock()
			k, ok := s.kept[a.SHA256]
			s.mu.Unlock()
			if !ok {
				return fmt.Errorf("attach the %s of %s: %w", a.Kind, a.OperationID, ErrNotKept)
			}
			a.shelf, a.spot = k.shelf, k.spot
			if first == "" || k.shelf < first {
				first = k.shelf
			}
			stored = append(stored, a.SHA256)
		}
		if a.CreatedAt.IsZero() {
			a.CreatedAt = now
		}
		if a.ResourceID == "" {
			a.ResourceID = ids.New()
		}
		rows[i] = a.row()
	}
	if len(stored) > 0 {
		if err := s.holdOpen(tx, first); err != nil {
			return err
		}
		tx.OnCommit(func() { s.release(stored) })
	}
	return tx.Insert("attachments", attachmentColumns, rows...)
}

// release forgets files that nobody waits to attach any more.
func (s *Store) release(sums []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sum := range sums {
		if k, ok := s.kept[sum]; ok && k.times > 1 {
			k.times--
			s.kept[sum] = k
		} else {
			delete(s.kept, sum)
		}
	}
}

// Of lists the attachments of an operation: ORIGINAL, VISUAL, REPORT, RECEIPT, CLIENT.
func (s *Store) Of(r db.Reader, clientID, operationID string) ([]Attachment, error) {
	list, err := db.Collect(r, scanAttachment, ofSQL, clientID, operationID)
	if err != nil {
		return nil, fmt.Errorf("read the attachments of %s: %w", operationID, err)
	}
	slices.SortFunc(list, func(a, b Attachment) int {
		if a.Kind != b.Kind {
			return kindOrder(a.Kind) - kindOrder(b.Kind)
		}
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return list, nil
}

func kindOrder(kind string) int {
	return slices.Index([]string{Original, "VISUAL", "REPORT", "RECEIPT", "CLIENT"}, kind)
}

// Close ends the store. Nobody may use it any more.
func (s *Store) Close() (err error) {
	s.once.Do(func() {
		err = s.bucket.close() // the folder, where it is one
	})
	return err
}

// die reports that a sync has failed. From here on nothing is acknowledged,
// even while Config.Fatal takes its time.
func (s *Store) die(err error) {
	s.ends.Do(func() {
		s.dead.Store(&err)
		s.log.Error("documents can no longer be trusted to be on disk, ending the process", "alert",
			string(alert.StorageFailed), "error", err)
		if s.cfg.Fatal != nil {
			s.cfg.Fatal(err)
			return
		}
		os.Exit(1)
	})
}

// shelfOf names the hour of t; the names sort by time.
func shelfOf(t time.Time) string { return t.UTC().Format(shelfLayout) }

const shelfLayout = "2006-01-02T15"

func shelfStart(shelf string) time.Time {
	t, _ := time.Parse(shelfLayout, shelf) // only shelfOf makes shelves
	return t
}

func shelfEnd(shelf string) time.Time { return shelfStart(shelf).Add(shelfLength) }

func unavailable(cause error) error {
	return (&fault.Error{
		Kind: fault.Unavailable, Message: "the service cannot store documents at the moment, please retry",
		RetryAfter: 2 * time.Second,
		Faults:     []fault.Fault{{Code: fault.CodeOverloaded, Type: fault.General, Message: "document storage is not available"}},
	}).Because(cause)
}
