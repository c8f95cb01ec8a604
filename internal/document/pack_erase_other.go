//go:build !linux

package document

import "os"

func erasePart(f *os.File, at, size int64) error { return writeZeros(f, at, size) }
