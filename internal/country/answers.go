package country

import (
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
const (
	answerSmall = 64 << 10 // up to it nobody waits
	answerMore  = 1 << 20  // so much of one whose length nobody said is weighed first
	answersMax  = 256 << 20
	treeFactor  = 64
	elementSize = 256
)

// answers has the room, half of it for each authority: one that stalls in the middle
// of an answer keeps what it has. It is the process that has the memory.
var answers = turnstile.New(answersMax, math.MaxInt).Sharing(answersMax / 2)

// weightOf is what so many bytes of an answer may become.
func weightOf(bytes int64) int64 {
	return min(bytes*treeFactor, 2*bytes+xmltree.ElementsMax*elementSize)
}

// room is what a call holds while its answer is read, and until it ends, of the memory
// for large answers.
type room struct {
	mu    sync.Mutex
	leave func()
}

// enter waits for room for so many bytes. What the call held for less, or for an
// answer before, is given back first: nobody waits holding something.
func (h *room) enter(ctx context.Context, host string, bytes int64) error {
	h.release()
	leave, err := answers.Enter(ctx, host, weightOf(bytes))
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

// readAnswer reads and closes an answer's body. One longer than bytesMax is
// [ErrBodyTooLarge], and no more of it is read. A large one waits for room first, and
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
			if err := hold.enter(ctx, resp.Request.URL.Host, size); err != nil {
				return nil, err
			}
		}
		more, err := io.ReadAll(io.LimitReader(resp.Body, most+1-int64(len(body))))
		if body = append(body, more...); err != nil {
			return nil, fmt.Errorf("reading the authority's answer: %w", err)
		}
		if int64(len(body)) <= most {
			return body, nil
		}
	}
	return nil, fmt.Errorf("reading the authority's answer: %w", ErrBodyTooLarge)
}
