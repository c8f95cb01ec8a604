package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

const (
	masterFileMode     = 0o400
	masterFileBytesMax = 64 << 10 // a keyset of some 200 keys; anything larger is another file
	othersMask         = 0o077
	rotationSuffix     = ".new"
)

// CreateMasterFile makes a new master key at path, readable by its owner only.
// An existing file is never overwritten: the error is then [fs.ErrExist].
//
// Failure policy: the file appears complete or not at all, and is on disk when
// nil is returned; whatever is sealed afterwards can be opened after a power
// cut. A crash in between leaves at most a file ".master-*" that nobody uses.
func CreateMasterFile(path string) error {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return fmt.Errorf("create master key: %w", err)
	}
	dir := filepath.Dir(path)
	draft, err := os.CreateTemp(dir, ".master-*")
	if err != nil {
		return fmt.Errorf("create master key: %w", err)
	}
	defer func() { _ = os.Remove(draft.Name()) }() // it is gone when all went well
	if err := writeKeyset(draft, handle); err != nil {
		return fmt.Errorf("create master key: %w", err)
	}
	// A link, unlike a rename, refuses to replace a file.
	if err := os.Link(draft.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("create master key: %s is there and is never overwritten: %w", path, fs.ErrExist)
		}
		return fmt.Errorf("create master key: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("create master key: %w", err)
	}
	return nil
}

// writeKeyset writes the keyset, forces it to disk and closes file.
func writeKeyset(file *os.File, handle *keyset.Handle) (err error) {
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Chmod(masterFileMode); err != nil {
		return err
	}
	var content bytes.Buffer
	defer func() { clear(content.Bytes()) }()
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&content)); err != nil {
		return err
	}
	if _, err := file.Write(content.Bytes()); err != nil {
		return err
	}
	return file.Sync()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lent reports whether root lets a group read a file, for one that is not root: so
// Kubernetes mounts secrets for the group of a pod, which is nobody else's.
func lent(mode fs.FileMode, owner, reader int) bool {
	return owner == 0 && reader > 0 && mode&othersMask == 0o040
}

// readMasterFile reads a keyset that only its owner can read. The mode is asked
// of the open file, so that nobody can exchange the file in between.
func readMasterFile(path string) (*kek, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Mode().Perm()&othersMask != 0 && !lent(info.Mode().Perm(), ownerOf(info), os.Geteuid()) {
		return nil, fmt.Errorf("%s is open to group or others (mode %04o); fix it with: chmod 0400 %s",
			path, info.Mode().Perm(), path)
	}
	content, err := io.ReadAll(io.LimitReader(file, masterFileBytesMax+1))
	if err != nil {
		return nil, err
	}
	defer clear(content)
	if len(content) > masterFileBytesMax {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, masterFileBytesMax)
	}
	k, err := parseKeyset(content)
	if err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return k, nil
}

// Rotate adds a new key to a master file and makes it the one that wraps from
// now on; the older keys still open what they wrapped. It returns the id of the
// new key. Afterwards the data keys are moved with [Master.Rewrap].
//
// Failure policy: the draft beside the file is also the lock. It is created
// before the keyset is read, so two rotations can never lose each other's key,
// and with it every data key it had wrapped. The new file replaces the old by
// rename after it is on disk; on any error the old key stays in use. A draft
// left by a crash stops later rotations until the operator removes it, which
// the error says; it never stops the service.
func (m *Master) Rotate() (keyID string, err error) {
	if m.path == "" {
		return "", errors.New("rotate master key: only a file can be rotated here; " +
			"for env: rotate the file it was made from and set the variable again, for a KMS rotate the key there")
	}
	// The file itself is replaced, not a link to it.
	path, err := filepath.EvalSymlinks(m.path)
	if err != nil {
		return "", fmt.Errorf("rotate master key: %w", err)
	}
	next, err := replaceKeyset(path, withPrimary)
	if err != nil {
		return "", fmt.Errorf("rotate master key: %w", err)
	}
	m.kek.Store(next)
	return tinkKeyID(next.handle.KeysetInfo().GetPrimaryKeyId()), nil
}

// Retire takes a key out of a master file: what it wrapped opens nowhere any
// more. The caller has made sure that nothing needs it; the key that wraps
// now cannot be retired. The failure policy is that of [Master.Rotate].
func (m *Master) Retire(keyID string) error {
	if m.path == "" {
		return errors.New("retire master key: only a key in a file is taken out here")
	}
	path, err := filepath.EvalSymlinks(m.path)
	if err != nil {
		return fmt.Errorf("retire master key: %w", err)
	}
	next, err := replaceKeyset(path, func(handle *keyset.Handle) (*keyset.Handle, error) {
		for _, info := range handle.KeysetInfo().GetKeyInfo() {
			if tinkKeyID(info.GetKeyId()) != keyID {
				continue
			}
			manager := keyset.NewManagerFromHandle(handle)
			if err := manager.Delete(info.GetKeyId()); err != nil {
				return nil, fmt.Errorf("key %s is the one that wraps now: rotate first", keyID)
			}
			return manager.Handle()
		}
		return nil, fmt.Errorf("there is no key %s in %s", keyID, m.source)
	})
	if err != nil {
		return fmt.Errorf("retire master key: %w", err)
	}
	m.kek.Store(next)
	return nil
}

// replaceKeyset puts a changed keyset in the place of the one at path. The draft
// beside it is removed on any error.
func replaceKeyset(path string, change func(*keyset.Handle) (*keyset.Handle, error)) (next *kek, err error) {
	draft, err := os.OpenFile(path+rotationSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, masterFileMode)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("another rotation is under way; if none is, remove %s: %w", path+rotationSuffix, fs.ErrExist)
	}
	if err != nil {
		return nil, err
	}
	closed := false
	defer func() {
		if err == nil {
			return
		}
		if !closed {
			err = errors.Join(err, draft.Close())
		}
		// After the rename there is nothing of that name, or another rotation's
		// draft, which must not be taken away.
		if next == nil {
			_ = os.Remove(draft.Name()) // the error is told
		}
	}()
	current, err := readMasterFile(path)
	if err != nil {
		return nil, err
	}
	handle, err := change(current.handle)
	if err != nil {
		return nil, err
	}
	wider, err := newKEK(handle)
	if err != nil {
		return nil, err
	}
	closed = true
	if err := writeKeyset(draft, handle); err != nil {
		return nil, err
	}
	if err := os.Rename(draft.Name(), path); err != nil {
		return nil, err
	}
	return wider, syncDir(filepath.Dir(path))
}
