package audit_test

import (
	"context"
	"strings"
	"testing"

	"tributary/internal/audit"
	"tributary/internal/leaks"
	"tributary/internal/secret"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestHeadsAtAndPastTheirLimit(t *testing.T) {
	t.Parallel()
	key := audit.NewKey(func(context.Context) (audit.Ring, error) {
		return audit.Ring{Keys: []secret.Secret{secret.FromText(strings.Repeat("k", 32))}}, nil
	}, nil)
	if err := key.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	with := func(letters int) ([]byte, error) {
		return key.SignHeads(audit.Heads{Logs: []audit.Head{{Log: "client " + strings.Repeat("c", letters), Seq: 1}}})
	}
	short, err := with(1)
	if err != nil {
		t.Fatal(err)
	}
	room := audit.HeadsBytesMax - len(short) + 1
	longest, err := with(room)
	if err != nil || len(longest) != audit.HeadsBytesMax {
		t.Fatalf("%d bytes: %v", len(longest), err)
	}
	if h, err := key.ReadHeads(longest); err != nil || len(h.Logs) != 1 {
		t.Errorf("the longest heads are not read again: %v", err)
	}
	if text, err := with(room + 1); err == nil || text != nil {
		t.Errorf("%d bytes were signed", len(text))
	}
	if _, err := key.ReadHeads(longest[:len(longest)-1-len(longest)/2]); err == nil {
		t.Error("heads that were cut off are believed")
	}
}
