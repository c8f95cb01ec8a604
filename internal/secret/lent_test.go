package secret

import (
	"io/fs"
	"testing"
)

// A key that is open to a group is refused, unless root lends it to a service's own.
func TestAMasterKeyIsLentByRootAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode          fs.FileMode
		owner, reader int
		want          bool
	}{
		{0o440, 0, 65532, true}, {0o640, 0, 65532, true}, {0o440, 0, 0, false}, {0o440, 65532, 65532, false}, {0o440, 1000, 65532, false},
		{0o444, 0, 65532, false}, {0o460, 0, 65532, false}, {0o450, 0, 65532, false}, {0o440, -1, 65532, false},
	} {
		if got := lent(c.mode, c.owner, c.reader); got != c.want {
			t.Errorf("%04o of %d for %d: %v", c.mode, c.owner, c.reader, got)
		}
	}
}
