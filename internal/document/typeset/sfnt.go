package typeset

import "encoding/binary"

type sfntTable struct {
	tag  string
	data []byte
}

// sfntFile writes a font file of tables that are given in order of their tags.
func sfntFile(tables []sfntTable) []byte {
	power, log := 1, 0
	for power*2 <= len(tables) {
		power, log = power*2, log+1
	}
	out := []byte{0, 1, 0, 0}
	for _, v := range []int{len(tables), power * 16, log, (len(tables) - power) * 16} {
		out = binary.BigEndian.AppendUint16(out, uint16(v))
	}
	offset, head := 12+16*len(tables), 0
	for _, t := range tables {
		if t.tag == "head" {
			head = offset
		}
		out = append(out, t.tag...)
		out = binary.BigEndian.AppendUint32(out, checksum(t.data))
		out = binary.BigEndian.AppendUint32(out, uint32(offset))
		out = binary.BigEndian.AppendUint32(out, uint32(len(t.data)))
		offset += (len(t.data) + 3) &^ 3
	}
	for _, t := range tables {
		out = append(out, t.data...)
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	}
	binary.BigEndian.PutUint32(out[head+8:], 0xB1B0AFBA-checksum(out))
	return out
}

func checksum(b []byte) uint32 {
	var sum uint32
	for ; len(b) >= 4; b = b[4:] {
		sum += u32(b, 0)
	}
	var rest [4]byte
	copy(rest[:], b)
	return sum + u32(rest[:], 0)
}
