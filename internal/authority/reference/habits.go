package reference

import (
	"encoding/json"
	"fmt"
	"strconv"

	"tributary/internal/official/xxwire"
)

// What the authority checks where a document asks for it. Keys of the book:
// "sequence/" the hash of the document that carries a number, "corrected/" how
// many corrections of a document are registered and the last one's number,
// "link/" a link of a chain in any order.

// outOfTurn finds a number that is used up, or a correction that does not follow the last one.
func (reg *registrar) outOfTurn(d *arrival) (code, message string) {
	if d.Sequence != 0 {
		if holder, used := reg.book.Get("sequence/" + strconv.FormatInt(d.Sequence, 10)); used && holder != d.sha256 {
			return xxwire.CodeSequence, fmt.Sprintf("number %d of the sequence was used before", d.Sequence)
		}
	}
	if d.Reference == nil || d.Reference.Index == 0 {
		return "", ""
	}
	count, last := reg.corrected(d.Reference.Number)
	if d.Reference.Index != count+1 || d.Reference.After != last {
		return xxwire.CodeIndex, fmt.Sprintf("correction %d behind %q does not follow %d, %q", d.Reference.Index,
			d.Reference.After, count, last)
	}
	return "", ""
}

// crossing finds a link that contradicts one that is there, before or behind it.
func (reg *registrar) crossing(d *arrival) (code, message string) {
	at := d.Chain.Position
	if hash, _, taken := reg.link(at); taken && hash != d.sha256 {
		return xxwire.CodeChain, fmt.Sprintf("there is another link at position %d", at)
	}
	if hash, _, known := reg.link(at - 1); known && hash != d.Chain.Previous {
		return xxwire.CodeChain, fmt.Sprintf("the link before position %d is another one", at)
	}
	if _, previous, known := reg.link(at + 1); known && previous != d.sha256 {
		return xxwire.CodeChain, fmt.Sprintf("the link behind position %d names another one", at)
	}
	if at < 1 || at == 1 && d.Chain.Previous != "" {
		return xxwire.CodeChain, "a chain begins at position 1, behind nothing"
	}
	return "", ""
}

// enter notes what a document takes: its number of the sequence, and its place
// in the chain, which a refused one keeps unless it stops the chain.
func (reg *registrar) enter(d *arrival, taken bool) {
	if d.Sequence != 0 {
		reg.book.Put("sequence/"+strconv.FormatInt(d.Sequence, 10), d.sha256)
	}
	if d.Chain == nil || !taken && d.Chain.Refusal == xxwire.RefusalStops {
		return
	}
	at := d.Chain.Position
	if d.Chain.Order == xxwire.AnyOrder {
		reg.book.Put("link/"+reg.supplier+"\x00"+strconv.FormatInt(at, 10), d.sha256+" "+d.Chain.Previous)
		var last int64
		if text, ok := reg.book.Get("chain/" + reg.supplier); ok {
			_, _ = fmt.Sscanf(text, "%d", &last) // written by head
		}
		if at < last {
			return
		}
	}
	reg.book.Put("chain/"+reg.supplier, head(at, d.sha256))
}

func (reg *registrar) link(position int64) (hash, previous string, known bool) {
	text, known := reg.book.Get("link/" + reg.supplier + "\x00" + strconv.FormatInt(position, 10))
	_, _ = fmt.Sscanf(text, "%s %s", &hash, &previous) // written by enter; the first has nothing before it
	return hash, previous, known
}

func (reg *registrar) corrected(number string) (count int, last string) {
	reg.book.Load("corrected/"+reg.supplier+"\x00"+number, &[]any{&count, &last})
	return count, last
}

// count counts a registered correction at its original.
func (reg *registrar) count(number, text string) {
	var n note
	if json.Unmarshal([]byte(text), &n) != nil || n.Reference == "" {
		return
	}
	count, _ := reg.corrected(n.Reference)
	reg.book.Keep("corrected/"+reg.supplier+"\x00"+n.Reference, []any{count + 1, number})
}
