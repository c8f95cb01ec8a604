package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeParcels puts the small files of a round into archives, one for all that fit,
// and answers the paths to be synced. A file that travels alone gets a name of
// its own: nothing would be gained.
//
// Failure policy: an archive gets its name before it is whole. Nobody knows the name,
// which is random, until the round is synced and its files are attached; what a
// crash or a full disk leaves of it is mentioned by nothing, and swept.
func (f *folder) writeParcels(list []*parcel) (paths []string, err error) {
	for _, load := range loads(list) {
		if len(load.files) == 1 {
			if err := f.put(context.Background(), load.own, load.files[0]); err != nil {
				return nil, err
			}
			paths = append(paths, filepath.FromSlash(load.own))
			continue
		}
		key := load.folder + newArchiveName(len(load.files))
		at, err := f.writeArchive(key, load.files)
		if err != nil {
			return nil, fmt.Errorf("write an archive of documents: %w", err)
		}
		for p, i := range load.parcels {
			p.spot = spot{filepath.Base(key), at[i]}
		}
		paths = append(paths, filepath.FromSlash(key))
	}
	return paths, nil
}

// load is what goes into one archive.
type load struct {
	own, folder string
	files       []File
	bytes       int64
	sums        map[string]int  // which of files has these bytes
	parcels     map[*parcel]int // which of files is whose
}

// loads divides parcels by shelves and by what fits into an archive. Equal files of
// several callers are written once.
func loads(list []*parcel) (all []*load) {
	open := map[string]*load{}
	for _, p := range list {
		l := open[p.folder]
		i, there := 0, false
		if l != nil {
			i, there = l.sums[p.file.SHA256]
		}
		if l == nil || !there && (len(l.files) == archiveFilesMax || l.bytes+p.file.Size > archiveBytesMax) {
			l = &load{own: p.own, folder: p.folder, sums: map[string]int{}, parcels: map[*parcel]int{}}
			open[p.folder] = l
			all = append(all, l)
		}
		if !there {
			i = len(l.files)
			l.files, l.bytes, l.sums[p.file.SHA256] = append(l.files, p.file), l.bytes+p.file.Size, i
		}
		l.parcels[p] = i
	}
	return all
}

// writeArchive writes an archive in one piece. Rounds follow one another, so they share a buffer.
func (f *folder) writeArchive(key string, files []File) (at []int64, err error) {
	if at, err = archived(&f.buffer, files); err != nil {
		return nil, err
	}
	name := f.path(key)
	const create = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	out, err := os.OpenFile(name, create, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return nil, err
		}
		out, err = os.OpenFile(name, create, 0o600)
	}
	if err != nil {
		return nil, err
	}
	_, err = out.Write(f.buffer.Bytes())
	if err = errors.Join(err, out.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(name)) // room for others, where the disk is full
	}
	return at, nil
}
