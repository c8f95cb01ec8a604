package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"tributary/internal/ids"
)

// Probe writes one file into the store that address names, reads it back and
// deletes it. A folder that is missing is fs.ErrNotExist and is not made: made
// by the wrong user it would be in the service's way.
func Probe(ctx context.Context, address string) (err error) {
	u, err := url.Parse(address)
	if err == nil && u.Scheme == schemeFile {
		if _, err := os.Stat(u.Path); errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	s := &Store{cfg: Config{URL: address}}
	if err := s.openBucket(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	file := NewFile([]byte("tributary doctor"))
	key := "doctor-" + ids.New()
	if err := s.bucket.put(ctx, key, file); err != nil {
		return fmt.Errorf("write a file: %w", err)
	}
	got, err := s.bucket.get(ctx, key, file.Size)
	if err == nil && !bytes.Equal(got, file.Bytes) {
		err = errors.New("other bytes came back")
	}
	return errors.Join(err, s.bucket.remove(ctx, key))
}
