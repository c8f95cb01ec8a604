package document

import "encoding/binary"

// srgbProfile writes the sRGB colour space (IEC 61966-2-1) as an ICC profile,
// version 4.2 (ICC.1:2004-10): the output intent that PDF/A wants for colours
// given as plain red, green and blue. Numbers are 16.16 fixed point.
func srgbProfile() []byte {
	d50 := []int32{0xF6D6, 0x10000, 0xD32D}
	curve := iccTag("para", append([]byte{0, 3, 0, 0}, fixed(
		157286, // gamma 2.4
		62119,  // 1/1.055
		3417,   // 0.055/1.055
		5072,   // 1/12.92
		2651,   // 0.04045
	)...))
	tags := []struct {
		name string
		data []byte
	}{
		{"desc", iccText("sRGB IEC61966-2.1")},
		{"cprt", iccText("No copyright, use freely")},
		{"wtpt", iccTag("XYZ ", fixed(d50...))},
		// Bradford adaptation from D65 to D50.
		{"chad", iccTag("sf32", fixed(68674, 1502, -3290, 1939, 64912, -1118, -605, 988, 49264))},
		{"rXYZ", iccTag("XYZ ", fixed(28578, 14582, 913))},
		{"gXYZ", iccTag("XYZ ", fixed(25236, 46981, 6364))},
		{"bXYZ", iccTag("XYZ ", fixed(9377, 3973, 46804))},
		{"rTRC", curve}, {"gTRC", nil}, {"bTRC", nil}, // one curve for all three
	}
	table := binary.BigEndian.AppendUint32(nil, uint32(len(tags)))
	var data []byte
	start := 128 + 4 + 12*len(tags)
	var offset, length int
	for _, t := range tags {
		if t.data != nil {
			offset, length = start+len(data), len(t.data)
			data = append(data, t.data...)
			for len(data)%4 != 0 {
				data = append(data, 0)
			}
		}
		table = append(table, t.name...)
		table = binary.BigEndian.AppendUint32(table, uint32(offset))
		table = binary.BigEndian.AppendUint32(table, uint32(length))
	}
	header := make([]byte, 128)
	binary.BigEndian.PutUint32(header, uint32(start+len(data)))
	binary.BigEndian.PutUint32(header[8:], 0x04200000)
	copy(header[12:], "mntrRGB XYZ ")
	for i, v := range []uint16{2025, 1, 1, 0, 0, 0} {
		binary.BigEndian.PutUint16(header[24+2*i:], v)
	}
	copy(header[36:], "acsp")
	copy(header[68:], fixed(d50...))
	return append(append(header, table...), data...)
}

// iccTag writes a tag's type signature, its reserved bytes and its data.
func iccTag(kind string, data []byte) []byte {
	return append([]byte(kind+"\x00\x00\x00\x00"), data...)
}

// iccText writes a multiLocalizedUnicode tag with one English text of ASCII.
func iccText(text string) []byte {
	var out []byte
	for _, v := range []uint32{1, 12, 'e'<<24 | 'n'<<16 | 'U'<<8 | 'S', uint32(2 * len(text)), 28} {
		out = binary.BigEndian.AppendUint32(out, v)
	}
	for i := range len(text) {
		out = append(out, 0, text[i])
	}
	return iccTag("mluc", out)
}

func fixed(values ...int32) []byte {
	var out []byte
	for _, v := range values {
		out = binary.BigEndian.AppendUint32(out, uint32(v))
	}
	return out
}
