//go:build !linux

package files

import (
	"errors"
	"os"
)

func canSyncWhole() bool { return false }

func syncFileSystem(*os.File) error { return errors.ErrUnsupported }
