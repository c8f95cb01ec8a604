package typeset

// Charstrings of type 2 (Adobe Technical Note 5177), as far as taking their
// subroutines apart needs it.
const (
	opHstem      = 1
	opVstem      = 3
	opCallLocal  = 10
	opReturn     = 11
	opEscape     = 12
	opEndchar    = 14
	opHstemHM    = 18
	opHintmask   = 19
	opCntrmask   = 20
	opVstemHM    = 23
	opShortint   = 28
	opCallGlobal = 29

	subroutineDepthMax  = 10 // by the note, appendix B
	charstringBytesMax  = 64 << 10
	charstringCallsMax  = 4096
	subroutineBiasSmall = 107
)

// inliner writes a charstring with its subroutines in their places, so that a
// subset carries none: those of a Chinese font are larger than a document.
type inliner struct {
	out           []byte
	local, global [][]byte
	args          int // operands on the stack
	stems         int
	last          int // the operand on top, where it is a literal
	lastAt        int // where it stands in out; -1: it is no literal
	ended         bool
	calls         int
}

// inlined returns a glyph's outline without calls.
func (f *cffFont) inlined(glyph uint16) ([]byte, error) {
	if int(glyph) >= len(f.charstrings) {
		return nil, errCFF
	}
	in := inliner{local: f.parts[f.partOf(glyph)].local, global: f.global, lastAt: -1}
	if err := in.run(f.charstrings[glyph], 0); err != nil {
		return nil, err
	}
	if !in.ended {
		in.out = append(in.out, opEndchar)
	}
	return in.out, nil
}

func (in *inliner) run(code []byte, depth int) error {
	if depth > subroutineDepthMax || in.calls > charstringCallsMax {
		return errCFF
	}
	for at := 0; at < len(code) && !in.ended; {
		if len(in.out) > charstringBytesMax {
			return errCFF
		}
		b := code[at]
		if n := numberBytes(b); n > 0 {
			if at+n > len(code) {
				return errCFF
			}
			in.number(code[at : at+n])
			at += n
			continue
		}
		at++
		switch b {
		case opReturn:
			return nil
		case opCallLocal, opCallGlobal:
			if err := in.call(b, depth); err != nil {
				return err
			}
		case opHintmask, opCntrmask:
			in.stems += in.args / 2 // operands before a mask are vertical stems
			n := (in.stems + 7) / 8
			if at+n > len(code) {
				return errCFF
			}
			in.operator(b)
			in.out = append(in.out, code[at:at+n]...)
			at += n
		case opEscape:
			if at >= len(code) {
				return errCFF
			}
			in.escape(code[at])
			at++
		default:
			if b == opHstem || b == opVstem || b == opHstemHM || b == opVstemHM {
				in.stems += in.args / 2
			}
			in.operator(b)
			in.ended = b == opEndchar
		}
	}
	return nil
}

func (in *inliner) operator(b byte) {
	in.out = append(in.out, b)
	in.args, in.lastAt = 0, -1
}

// escape writes an operator of two bytes. Flexes empty the stack; arithmetic
// leaves its result there, which no font of today uses for a subroutine.
func (in *inliner) escape(second byte) {
	in.out = append(in.out, opEscape, second)
	in.lastAt = -1
	switch second {
	case 34, 35, 36, 37: // hflex, flex, hflex1, flex1
		in.args = 0
	case 10, 11, 12, 24, 3, 4, 15: // add, sub, div, mul, and, or, eq
		in.args = max(0, in.args-1)
	}
}

func (in *inliner) number(raw []byte) {
	in.lastAt = len(in.out)
	in.out = append(in.out, raw...)
	in.args++
	switch b := int(raw[0]); {
	case b == opShortint:
		in.last = i16(raw, 1)
	case b <= 246:
		in.last = b - 139
	case b <= 250:
		in.last = (b-247)*256 + int(raw[1]) + 108
	case b <= 254:
		in.last = -(b-251)*256 - int(raw[1]) - 108
	default:
		in.lastAt = -1 // a fraction
	}
}

// call takes the number of a subroutine off again and goes into it.
func (in *inliner) call(b byte, depth int) error {
	list := in.local
	if b == opCallGlobal {
		list = in.global
	}
	bias := 32768
	switch {
	case len(list) < 1240:
		bias = subroutineBiasSmall
	case len(list) < 33900:
		bias = 1131
	}
	if in.lastAt < 0 || in.last+bias < 0 || in.last+bias >= len(list) {
		return errCFF
	}
	in.out = in.out[:in.lastAt]
	in.args--
	in.lastAt = -1
	in.calls++
	return in.run(list[in.last+bias], depth+1)
}

// numberBytes is the length of an operand by its first byte, 0 for an operator.
func numberBytes(b byte) int {
	switch {
	case b == opShortint:
		return 3
	case b < 32:
		return 0
	case b <= 246:
		return 1
	case b <= 254:
		return 2
	}
	return 5
}
