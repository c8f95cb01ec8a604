package filing

import (
	"context"
	"errors"
	"fmt"

	"tributary/internal/breaker"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/operation"
	"tributary/internal/result"
)

// mindBreaker lets the lane rest where nothing gets through to its authority:
// what needs no call is done all the same.
func (v *visit) mindBreaker() {
	if v.lane.channel == nil || v.callsNobody() {
		return
	}
	ok, open := v.s.breakers.MayCall(v.lane.at.Environment(), v.now())
	if ok {
		return
	}
	v.health.behind = true
	v.health.countFailure(errors.New(open.Last))
	v.health.reason = open.Reason
	v.health.trouble = fmt.Sprintf("%s (%s failed in a row; next attempt for all suppliers at %s)", open.Last,
		fault.Count(int(open.Calls), "call"), result.Stamp(open.Next))
	v.backOff()
	v.restUntil(open.Next)
}

// exhausted reads an error that says that the authority grants no more calls; nil: it
// says something else. The company rests until it does, unless only one document's
// calls are used up.
func (v *visit) exhausted(err error) *country.Exhausted {
	var used *country.Exhausted
	if !errors.As(err, &used) {
		return nil
	}
	if !used.Alone {
		v.applyThrottle(used.Until.Sub(v.s.db.Wall()))
	}
	return used
}

// spent reports whether the authority grants no more calls about a filing, which waits until it does.
func (v *visit) spent(o *op, err error) bool {
	used := v.exhausted(err)
	if used != nil {
		o.notBefore = v.now().Add(used.Until.Sub(v.s.db.Wall()))
	}
	return used != nil
}

// callsNobody reports whether nothing of the lane can need a call: filing is the
// company's choice, and it chose not to, or the lane is one of documents for
// those to whom nothing is delivered. Such a visit would only use up a probe.
func (v *visit) callsNobody() bool {
	return v.lane.pack.Keeps(&v.lane.supplier) || v.lane.pack.Chosen() && v.lease.Row.Shard >= operation.Shards(v.s.cfg.Atlas, v.lane.pack, v.lane.at.Live)
}

// learn tells the breaker of a call, and people of the breaker.
func (b *batch) learn(x exchange.Call) {
	v, at, node := b.v, b.v.lane.at.Environment(), b.v.s.db.Node()
	var used *country.Exhausted
	switch {
	case x.Traffic == nil, errors.Is(x.Err, context.Canceled), errors.As(x.Err, &used):
		// nothing was called, or our own end cut it short
	case x.Err == nil:
		if !v.s.breakers.Answered(at) {
			return
		}
		v.s.log.Info("an authority answers again", "authority", at.String())
		v.health.answers = true
		b.evidence = append(b.evidence, func(tx *db.Tx) error { return breaker.Clear(tx, node, at) })
	default:
		state, changed := v.s.breakers.Failed(at, breaker.Failure{Supplier: v.lane.subject(), At: v.now(), Reason: reasonOf(x.Err), Err: x.Err}, v.s.pauses)
		if !changed {
			return
		}
		v.s.log.Warn("nothing gets through to an authority; only single calls are made", "authority", at.String(), "calls", state.Calls, "next", state.Next, "error", state.Last)
		b.evidence = append(b.evidence, func(tx *db.Tx) error { return state.Store(tx, node, at) })
	}
}

// tellOthers ends the pauses of those who waited while nothing got through. It
// is called when the lane has been left: one that was kept back and left after
// the call for all was answered has gone to rest when the others were told, until
// a probe that nobody needs any more.
func (v *visit) tellOthers(ctx context.Context) {
	at := v.lane.at.Environment()
	if !v.health.answers && (!v.health.behind || v.s.breakers.IsOpen(at)) {
		return
	}
	if err := v.s.endPauses(ctx, at, fault.AuthorityUnreachable, fault.AuthorityError); err != nil {
		v.s.log.Error("an authority answers again", "authority", at.String(), "error", err) // the others come by themselves, later
	}
}

// EndpointChanged ends our own pause of lanes that stand still for a reason that
// a new address or identity of their authority may have taken away. Whoever holds
// a lane at this instant goes by the ladder of retries.
func (s *Service) EndpointChanged(ctx context.Context, at country.Environment) error {
	return s.endPauses(ctx, at, fault.AuthorityNotConfigured, fault.AuthorityUnreachable, fault.AuthorityError, fault.CredentialsInvalid)
}

// endPauses has lanes of an endpoint that stand still for one of these reasons visited at once.
func (s *Service) endPauses(ctx context.Context, at country.Environment, reasons ...fault.Code) error {
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		tx.Wake(laneQueue.Table)
		return tx.Exec(endPausesSQL+s.db.In("reason", "$4"), at.Code, db.Micros(tx.Now()), operation.Environment(at.Live), db.Strings(texts(reasons)))
	})
	if err != nil {
		return fmt.Errorf("end the pauses at %s: %w", at, err)
	}
	return nil
}

const endPausesSQL = "UPDATE lanes SET " + soonAgain + " WHERE country = $1 AND environment = $3 AND lease_until IS NULL AND reason <> '' AND "

func texts(codes []fault.Code) (list []string) {
	for _, c := range codes {
		list = append(list, string(c))
	}
	return list
}

// Everything that is taken together is loaded, drawn and settled together, so
// what bounds memory is bytes, not a number of operations. A body stands for what
// is made of it: decoded, filed and printed it takes a multiple of its size.
const (
	takenBytesMax    = 2 << 20  // of bodies, of one visit
	endpointBytesMax = 4 << 20  // of all visits of a node at one authority
	workBytesMax     = 16 << 20 // of all visits of a node
)

// within are the first of what is due that may be taken together: at least one.
func within(due []candidate, most int64) []candidate {
	sum := int64(0)
	for i, c := range due {
		if sum += c.bytes; sum > most && i > 0 {
			return due[:i]
		}
	}
	return due
}

// smallBatch is what is taken without waiting for room: who files a sale does not wait
// for those who file large ones.
const smallBatch = 32 << 10

// reserveBytes waits until this node has room for operations, clients in turns; see
// visit.freeBytes.
func (v *visit) reserveBytes(ctx context.Context, chosen []candidate) error {
	sum := int64(0)
	for _, c := range chosen {
		sum += c.bytes
	}
	if sum <= smallBatch {
		return nil
	}
	leave, err := v.s.room.Enter(ctx, v.lane.at.Environment().String(), v.lane.at.Scope, sum)
	if err != nil {
		return fmt.Errorf("wait for room: %w", err)
	}
	v.leaveRoom = leave
	return nil
}

// largeBody is from where a sale is prepared and drawn in turns, client by client, on half
// of the processors: whoever waits for something small finds the others.
const largeBody = 64 << 10

// turn waits until an operation may be computed with, and returns what ends it. Nobody asks an
// authority in a turn: one that hangs would keep it from the others.
func (s *Service) turn(ctx context.Context, o *op) (done func()) {
	if len(o.Body) < largeBody {
		return s.db.Pace().Turn(ctx)
	}
	leave, err := s.large.Enter(ctx, o.Scope, 1)
	if err != nil {
		return func() {} // ctx has ended, and the piece is about to notice
	}
	computed := s.db.Pace().Turn(ctx)
	return func() { computed(); leave() }
}

// freeBytes gives the room of a batch back.
func (v *visit) freeBytes() {
	if v.leaveRoom != nil {
		v.leaveRoom()
		v.leaveRoom = nil
	}
}

// Where clients work side by side, each takes little at a time: the others' next step
// stands behind all of it, at the processors and at the disk.
const (
	besideSum   = 1024      // operations of all visits of other clients, and of this one, about
	besideLeast = 16        // of one visit all the same
	besideBytes = 256 << 10 // of bodies, of one visit
)

// beside are rows of other clients that are in work on this node, and whether others
// are due without a slot.
func (v *visit) beside() (working int, waiting bool) {
	if v.s.pump == nil {
		return 0, false
	}
	return v.s.pump.Beside(v.lease.ID)
}

// unhurried reports whether the authority grants few calls: they carry what they can,
// whoever else works.
func (v *visit) unhurried() bool {
	return v.lane.limits.Wait > 0 || !v.lease.Row.askedUntil.IsZero() || !v.health.wait.IsZero()
}

// batchBeside bounds a batch beside so many lanes of others; most: what it may be alone.
func batchBeside(most, working int, unhurried bool) int {
	if working == 0 || unhurried {
		return most
	}
	return min(most, max(besideLeast, besideSum/(working+1)))
}

// bytesBeside are those of bodies that are taken together.
func (v *visit) bytesBeside() int64 {
	if working, waiting := v.beside(); (working > 0 || waiting) && !v.unhurried() {
		return besideBytes
	}
	return takenBytesMax
}

// givesWay reports whether the lane goes to the back after a batch: another client's is
// due and has no slot.
func (v *visit) givesWay() bool {
	_, waiting := v.beside()
	return waiting
}
