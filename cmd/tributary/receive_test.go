package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestListenRefusesAForwardAddressThatIsNone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"listen", "--api-key", testKey, "--listen", "127.0.0.1:0", "--forward", "localhost:3000"},
		streams{&out, &errs, nil})
	if code != exitUsage || !strings.Contains(errs.String(), "--forward") {
		t.Errorf("exit code %d\n%s", code, errs.String())
	}
}
