package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"
)

// submission is one run over the entries.
type submission struct {
	entries     []entry
	state       *stateFile
	service     *service
	progress    io.Writer
	retryFailed bool
	waited      bool // results were asked for

	mu       sync.Mutex
	outcomes []entryOutcome // beside entries
}

// entryOutcome is how far an entry has come.
type entryOutcome struct {
	operation string
	result    *result
	refused   *refusal
	trouble   error // not submitted, or its result could not be had
}

// submitAll submits what earlier runs have not. An entry whose content has
// changed since is a new attempt; one that was refused is tried again, since
// nothing was stored of it.
func (s *submission) submitAll(ctx context.Context, parallel int) error {
	s.outcomes = make([]entryOutcome, len(s.entries))
	var todo []int
	for i, e := range s.entries {
		known, ok := s.state.known[e.id]
		failed := ok && known.Result != nil && known.Result.Status == rowFailure
		if !ok || known.Digest != e.digest || failed && s.retryFailed {
			todo = append(todo, i)
			continue
		}
		s.outcomes[i] = entryOutcome{operation: known.OperationID, result: known.Result}
	}
	if skipped := len(s.entries) - len(todo); skipped > 0 {
		fmt.Fprintf(s.progress, "%d of %d already accepted\n", skipped, len(s.entries))
	}
	if len(todo) == 0 {
		return nil
	}
	bar := newProgress(s.progress, "submitting", len(todo))
	defer bar.end()
	return s.each(ctx, parallel, todo, func(ctx context.Context, i int) error {
		e := &s.entries[i]
		operation, refused, err := s.service.submit(ctx, e.body)
		if err == nil && refused == nil {
			if err := s.state.add(stateRecord{ID: e.id, Digest: e.digest, OperationID: operation}); err != nil {
				return err
			}
		}
		if isFatal(err) {
			return err
		}
		s.note(i, entryOutcome{operation: operation, refused: refused, trouble: err})
		bar.add()
		return nil
	})
}

// Polling begins quickly, since most results come within a second, and then
// slows down: the service tells by webhook, this tool has no address to be told at.
const (
	pollFirst    = 100 * time.Millisecond
	pollDelayMax = 5 * time.Second
	pollShare    = 10 * time.Millisecond // per open operation: at most 100 questions a second in the long run
)

// waitAll asks for results until every accepted entry has one or ctx ends.
func (s *submission) waitAll(ctx context.Context, parallel int) error {
	s.waited = true
	var open []int
	for i := range s.outcomes {
		if o := &s.outcomes[i]; o.operation != "" && o.result == nil {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return nil
	}
	bar := newProgress(s.progress, "waiting for results", len(open))
	defer bar.end()
	for delay := pollFirst; len(open) > 0; {
		err := s.each(ctx, parallel, open, func(ctx context.Context, i int) error { return s.poll(ctx, i, bar) })
		if err != nil || ctx.Err() != nil {
			return err
		}
		var still []int
		for _, i := range open {
			if s.outcomes[i].result == nil && s.outcomes[i].trouble == nil {
				still = append(still, i)
			}
		}
		// While results come in they are asked for at once: a bar that stands still says that nothing happens.
		delay = min(delay*2, max(pollDelayMax, pollShare*time.Duration(len(still))))
		if len(still) < len(open) {
			delay = max(pollFirst, pollShare*time.Duration(len(still)))
		}
		if open = still; len(open) == 0 {
			return nil
		}
		if sleep(ctx, delay) != nil {
			return nil // what is open is shown as such
		}
	}
	return nil
}

func (s *submission) poll(ctx context.Context, i int, bar *progress) error {
	e, o := &s.entries[i], s.outcomes[i]
	got, err := s.service.result(ctx, o.operation)
	switch {
	case isFatal(err):
		return err
	case err != nil:
		o.trouble = err
	case got.Status == rowSuccess || got.Status == rowFailure:
		if err := s.state.add(stateRecord{ID: e.id, Digest: e.digest, OperationID: o.operation, Result: got}); err != nil {
			return err
		}
		o.result = got
	default:
		return nil
	}
	s.note(i, o)
	bar.add()
	return nil
}

func (s *submission) note(i int, o entryOutcome) {
	if errors.Is(o.trouble, context.Canceled) || errors.Is(o.trouble, context.DeadlineExceeded) {
		o.trouble = nil // we stopped; nothing is wrong with the entry
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[i] = o
}

// each runs fn for the entries, some at the same time, and ends at the first
// error. When ctx ends it begins no more and returns nil.
func (s *submission) each(ctx context.Context, parallel int, list []int, fn func(context.Context, int) error) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, i := range list {
		if inner.Err() != nil {
			break
		}
		group.Go(func() error { return fn(inner, i) })
	}
	return group.Wait()
}

// progress shows how far a phase has come: a bar on a terminal, a line now and
// then elsewhere.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	bar   *progressbar.ProgressBar
	what  string
	total int
	done  int
	shown time.Time
}

// lineEvery is how often a log hears of the progress.
const lineEvery = 5 * time.Second

func newProgress(w io.Writer, what string, total int) *progress {
	p := &progress{w: w, what: what, total: total, shown: time.Now()}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionFullWidth())
	}
	return p
}

func (p *progress) add() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.bar != nil {
		_ = p.bar.Add(1) // a bar that cannot be drawn hinders nothing
	} else if time.Since(p.shown) >= lineEvery {
		p.shown = time.Now()
		fmt.Fprintf(p.w, "%s: %d of %d\n", p.what, p.done, p.total)
	}
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		fmt.Fprintln(p.w)
		return
	}
	fmt.Fprintf(p.w, "%s: %d of %d\n", p.what, p.done, p.total)
}
