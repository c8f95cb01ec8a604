package country

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"

	"tributary/internal/turnstile"
	"tributary/internal/xmltree"
)

// ErrBusy says that an authority's answer was not read to its end, because this node
// reads as many large ones as it has memory for.
var ErrBusy = errors.New("this node reads as many large answers of authorities as it may")

// What answers become in memory is bounded over all suppliers of a node, by the worst
// that their bytes can be: a small element of four bytes is one of more than two hundred.
// So an answer has at most one part (an element of XML, a value of JSON) for every
// partBytes of what its caller reads: documents of business have one for some sixty.
const (
	answerSmall = 64 << 10 // up to it nobody waits
	answerMore  = 1 << 20  // so much of one whose length nobody said is weighed first
	answersMax  = 256 << 20
	partBytes   = 32
	partSize    = 256 // of an element or a value in memory
	partLeast   = 4   // bytes of an element or a value
)

// answers has the room, half of it for each authority: one that stalls in the middle
// of an answer keeps what it has. It is the process that has the memory.
var answers = turnstile.New(answersMax, math.MaxInt).Sharing(answersMax / 2)

// weightOf is what so many bytes of an answer may become, of at most bytesMax.
func weightOf(bytes, bytesMax int64) int64 {
	return 2*bytes + partSize*min(bytes/partLeast, bytesMax/partBytes, xmltree.ElementsMax)
}

// tooMany refuses an answer of more parts than one of its kind has, before anybody
// parses it. What is neither XML nor JSON has none; a small one is bounded by its bytes.
func tooMany(body []byte, bytesMax int64) error {
	if len(body) <= answerSmall {
		return nil
	}
	parts, count := 0, func(mark string) int { return bytes.Count(body, []byte(mark)) }
	switch text := bytes.TrimLeft(body, "\ufeff \t\r\n"); {
	case bytes.HasPrefix(text, []byte("<")):
		parts = count("<") - count("</")
	case bytes.HasPrefix(text, []byte("{")), bytes.HasPrefix(text, []byte("[")):
		parts = count(",") + count("{") + count("[")
	}
	if int64(parts) > bytesMax/partBytes {
		return fmt.Errorf("the authority's answer has %d parts: %w", parts, ErrBodyTooLarge)
	}
	return nil
}

// room is what a call holds while its answer is read, and until it ends, of the memory
// for large answers.
type room struct {
	mu    sync.Mutex
	leave func()
}

// enter waits for so much room. What the call held for less, or for an
// answer before, is given back first: nobody waits holding something.
func (h *room) enter(ctx context.Context, host string, weight int64) error {
	h.release()
	leave, err := answers.Enter(ctx, host, weight)
	if err != nil {
		return fmt.Errorf("reading the authority's answer: %w: %w", ErrBusy, err)
	}
	h.mu.Lock()
	h.leave = leave
	h.mu.Unlock()
	context.AfterFunc(ctx, h.release)
	return nil
}

func (h *room) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leave != nil {
		h.leave()
		h.leave = nil
	}
}

// readAnswer reads and closes an answer's body. One longer than bytesMax, or of too
// many parts, is [ErrBodyTooLarge], and no more of it is read. A large one waits for room first, and
// keeps it until the call's context ends, where the call is counted.
func readAnswer(ctx context.Context, resp *http.Response, bytesMax int64) ([]byte, error) {
	defer resp.Body.Close()
	if resp.ContentLength > bytesMax {
		return nil, fmt.Errorf("reading the authority's answer of %d bytes: %w", resp.ContentLength, ErrBodyTooLarge)
	}
	hold := &room{}
	if t := TrafficOf(ctx); t != nil {
		hold = &t.room
	} else {
		defer hold.release()
	}
	body := []byte{} // an empty answer is one
	for _, most := range []int64{answerSmall, answerMore, bytesMax} {
		if most = min(most, bytesMax); resp.ContentLength > most {
			continue // it is known not to be enough
		}
		if most > answerSmall {
			size := most
			if resp.ContentLength >= 0 {
				size = resp.ContentLength
			}
			if err := hold.enter(ctx, resp.Request.URL.Host, weightOf(size, bytesMax)); err != nil {
				return nil, err
			}
		}
		more, err := io.ReadAll(io.LimitReader(resp.Body, most+1-int64(len(body))))
		if body = append(body, more...); err != nil {
			return nil, fmt.Errorf("reading the authority's answer: %w", err)
		}
		if int64(len(body)) <= most {
			return body, tooMany(body, bytesMax)
		}
	}
	return nil, fmt.Errorf("reading the authority's answer: %w", ErrBodyTooLarge)
}
