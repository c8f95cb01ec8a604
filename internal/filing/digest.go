package filing

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"tributary/internal/transaction"
)

// digestBytes is enough to tell bodies of one transaction apart.
const digestBytes = 16

// digestAhead is the size of a body from which its digest is taken before its
// commit. Only attempts that wait for another one are ever compared, and those
// are known in the commit; what is small is encoded there, and most never are.
const digestAhead = 4 << 10

// digest stands for what a body says, however it is written: the order of its
// members and its blanks do not count. A supplier that was found by the client's
// own id is not something that the body says.
func digest(t *transaction.Transaction) string {
	if t.SupplierOwnID != "" {
		said := *t
		said.SupplierID = ""
		t = &said
	}
	text, err := json.Marshal(t)
	if err != nil {
		return "" // nothing of ours fails to encode; whoever reads "" compares the bodies
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:digestBytes])
}

// digestOf is the digest of a stored body; of one that cannot be read it is that of its bytes.
func digestOf(kind transaction.Kind, body []byte) string {
	t, _, _ := transaction.Decode(kind, body)
	if t == nil {
		sum := sha256.Sum256(body)
		return hex.EncodeToString(sum[:digestBytes])
	}
	return digest(t)
}
