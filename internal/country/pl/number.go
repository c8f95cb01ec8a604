package pl

import (
	"fmt"
	"regexp"
)

// ksefPattern is that of KSeF numbers in the API 2.6.0 and in FA(3)
// (TNumerKSeF). Numbers of KSeF 1.0 have one more dash, which is still taken.
var ksefPattern = regexp.MustCompile(`^([1-9](\d[1-9]|[1-9]\d)\d{7}|M\d{9}|[A-Z]{3}\d{7})-(20[2-9]\d|2[1-9]\d{2}|[3-9]\d{3})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])-[0-9A-F]{6}-?[0-9A-F]{6}-[0-9A-F]{2}$`)

const (
	ksefNumberLength = 35
	ksefDataLength   = 32
)

// looksLikeKSeF reports whether a text has the shape of a KSeF number.
func looksLikeKSeF(text string) bool { return ksefPattern.MatchString(text) }

// validKSeF reports whether a text is a KSeF number: its shape, and in the
// form of KSeF 2.0 its checksum (ksef-docs, faktury/numer-ksef.md).
func validKSeF(text string) bool {
	if !looksLikeKSeF(text) {
		return false
	}
	return len(text) != ksefNumberLength || text[33:] == checksum(text[:ksefDataLength])
}

// ksefNumber joins the parts of a number: the seller's NIP, the day of
// receipt as YYYYMMDD and twelve hexadecimal digits.
func ksefNumber(nip, day, technical string) string {
	data := nip + "-" + day + "-" + technical
	return data + "-" + checksum(data)
}

// checksum is CRC-8 with the polynomial 0x07, beginning at 0, in upper-case
// hexadecimal. The last dash is not part of it.
func checksum(data string) string {
	var crc byte
	for i := range len(data) {
		crc ^= data[i]
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ 0x07
			} else {
				crc <<= 1
			}
		}
	}
	return fmt.Sprintf("%02X", crc)
}
