package secret

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const textFileBytesMax = 4 << 10 // a password or a token; anything larger is another file

// ReadFile reads a secret that is alone in a text file. The end of its line is
// not part of it; an empty file is an error.
func ReadFile(path string) (Secret, error) {
	file, err := os.Open(path)
	if err != nil {
		return Secret{}, fmt.Errorf("read a secret: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(file, textFileBytesMax+1))
	defer clear(raw)
	switch text := strings.TrimRight(string(raw), "\r\n"); {
	case err != nil:
		return Secret{}, fmt.Errorf("read a secret: %w", err)
	case len(raw) > textFileBytesMax:
		return Secret{}, fmt.Errorf("read a secret: %s has more than %d bytes", path, textFileBytesMax)
	case text == "":
		return Secret{}, fmt.Errorf("read a secret: %s is empty", path)
	case strings.ContainsAny(text, "\r\n\x00"):
		return Secret{}, fmt.Errorf("read a secret: %s has more than one line", path)
	default:
		return FromText(text), nil
	}
}
