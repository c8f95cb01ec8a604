package onboarding

import (
	"bytes"
	"encoding/json"
	"sort"

	"tributary/internal/strictjson"
)

const bodyBytesMax = 1 << 20

// canonical writes a value so that equal contents give equal bytes, names in
// order. Where a null says nothing it is left out, as if it was not sent. The
// digests of stored requests are made of it: it must never change.
func canonical(n *strictjson.Value, to *bytes.Buffer, nulls bool) {
	switch n.Kind {
	case strictjson.Text:
		to.Write(quoted(n.Text))
	case strictjson.Array:
		to.WriteByte('[')
		for _, entry := range n.Entries {
			canonical(entry, to, nulls)
			to.WriteByte(',')
		}
		to.WriteByte(']')
	case strictjson.Object:
		names := append([]string(nil), n.Names...)
		sort.Strings(names)
		to.WriteByte('{')
		for _, name := range names {
			if n.Members[name].Kind == strictjson.Null && !nulls {
				continue
			}
			to.Write(quoted(name))
			to.WriteByte(':')
			canonical(n.Members[name], to, nulls)
			to.WriteByte(',')
		}
		to.WriteByte('}')
	default:
		to.WriteString(n.Text)
	}
}

func quoted(text string) []byte {
	b, _ := json.Marshal(text) // strings always encode
	return b
}
