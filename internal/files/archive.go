package files

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"tributary/internal/ids"
)

// An archive is one file that holds many small documents: making, naming and
// removing a file of its own for each took a seventh of the processor in a
// service that files, draws and notifies.
//
// It is a tar archive, which any system can read: its first member lists the
// others, which are named by the SHA-256 of their bytes. The name of an archive ends
// in their number, so that where its list lies follows from the name alone, and
// the list ends in its own sum: nothing is erased by a list that was damaged.
const (
	archivedBytesMax = 256 << 10 // of a document that goes into an archive; larger ones have files of their own
	archiveBytesMax  = 4 << 20   // of the documents of one archive
	archiveFilesMax  = 1000

	archiveFolder = "archives/"
	archiveSuffix = ".tar"
	archiveIndex  = "index"

	tarBlock      = 512
	indexLine     = 2*sha256.Size + 1 + 12 + 1 + 12 + 1 // sum, place and size of one document
	indexSumBytes = 2*sha256.Size + 1
)

var errArchiveDamaged = errors.New("the list of the archive cannot be read")

// spot is where a kept document lies: in an archive, or alone where archive is empty.
type spot struct {
	archive string
	at      int64
}

// parcel is a small file on its way into an archive.
type parcel struct {
	own    string // key of a file of its own, where nobody travels with it
	folder string // of archives of its shelf, a prefix of keys
	file   File
	spot   spot // once it is written
}

// member is one document of an archive.
type member struct {
	sum      string
	at, size int64
}

func (s *Store) archives(shelf string) string { return s.prefix + archiveFolder + shelf + "/" }

func newArchiveName(files int) string { return ids.New() + "-" + strconv.Itoa(files) + archiveSuffix }

// archived writes files as an archive into buf and answers where each of them begins.
func archived(buf *bytes.Buffer, files []File) (at []int64, err error) {
	members := make([]member, len(files))
	next := int64(tarBlock + padded(indexBytes(len(files))))
	for i, f := range files {
		members[i] = member{f.SHA256, next + tarBlock, f.Size}
		next = members[i].at + padded(f.Size)
	}
	buf.Reset()
	buf.Grow(int(next) + 2*tarBlock)
	out := tar.NewWriter(buf)
	put := func(name string, data []byte) error {
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o600,
			Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		_, err := out.Write(data)
		return err
	}
	if err := put(archiveIndex, indexOf(members)); err != nil {
		return nil, err
	}
	for i, f := range files {
		if err := put(f.SHA256, f.Bytes); err != nil {
			return nil, err
		}
		at = append(at, members[i].at)
	}
	return at, out.Close()
}

func padded(size int64) int64 { return (size + tarBlock - 1) / tarBlock * tarBlock }

func indexBytes(files int) int64 { return int64(files)*indexLine + indexSumBytes }

func indexOf(members []member) []byte {
	var b []byte
	for _, m := range members {
		b = fmt.Appendf(b, "%s %012d %012d\n", m.sum, m.at, m.size)
	}
	sum := sha256.Sum256(b)
	return append(append(b, hex.EncodeToString(sum[:])...), '\n')
}

// indexPlace says where the list of an archive lies, by the archive's name.
func indexPlace(key string) (at, size int64, err error) {
	_, count, ok := strings.Cut(strings.TrimSuffix(path.Base(key), archiveSuffix), "-")
	files, err := strconv.Atoi(count)
	if !ok || err != nil || files < 1 || files > archiveFilesMax {
		return 0, 0, fmt.Errorf("%w: its name is %q", errArchiveDamaged, path.Base(key))
	}
	return tarBlock, indexBytes(files), nil
}

// readIndex reads the list of an archive.
func readIndex(text []byte) ([]member, error) {
	body := len(text) - indexSumBytes
	if body < indexLine || body%indexLine != 0 {
		return nil, fmt.Errorf("%w: it has %d bytes", errArchiveDamaged, len(text))
	}
	sum := sha256.Sum256(text[:body])
	if string(text[body:]) != hex.EncodeToString(sum[:])+"\n" {
		return nil, fmt.Errorf("%w: its sum is another", errArchiveDamaged)
	}
	members := make([]member, 0, body/indexLine)
	for line := range strings.Lines(string(text[:body])) {
		var m member
		if _, err := fmt.Sscanf(line, "%64s %d %d\n", &m.sum, &m.at, &m.size); err != nil {
			return nil, fmt.Errorf("%w: %w", errArchiveDamaged, err)
		}
		members = append(members, m)
	}
	return members, nil
}

// archiveEnd is the size of an archive of these members.
func archiveEnd(members []member) int64 {
	last := members[len(members)-1]
	return last.at + padded(last.size) + 2*tarBlock
}
