// Package ksefwire is the interface of KSeF as data: paths, members and codes of
// its API 2.6.0 (ksef-docs, open-api.json), the numbers that it gives to
// invoices, and the characters that it takes.
//
// The sender (country/pl) and the double of KSeF (authority/ksef) both stand on
// it, on the official structures and on nothing else of each other's. Tests
// compare every request and every answer with the official description, so a
// member that is named wrongly here is found. It refuses to own what either
// side concludes from an answer.
package ksefwire

import (
	"fmt"
	"regexp"
)

// pattern is that of KSeF numbers in the API 2.6.0 and in FA(3)
// (TNumerKSeF). Numbers of KSeF 1.0 have one more dash, which is still taken.
var pattern = regexp.MustCompile(
	`^([1-9](\d[1-9]|[1-9]\d)\d{7}|M\d{9}|[A-Z]{3}\d{7})-(20[2-9]\d|2[1-9]\d{2}|[3-9]\d{3})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])-[0-9A-F]{6}-?[0-9A-F]{6}-[0-9A-F]{2}$`)

const (
	numberLength = 35
	dataLength   = 32
)

// LooksLikeNumber reports whether a text has the shape of a KSeF number.
func LooksLikeNumber(text string) bool { return pattern.MatchString(text) }

// ValidNumber reports whether a text is a KSeF number: its shape, and in the
// form of KSeF 2.0 its checksum (ksef-docs, faktury/numer-ksef.md).
func ValidNumber(text string) bool {
	if !LooksLikeNumber(text) {
		return false
	}
	return len(text) != numberLength || text[33:] == Checksum(text[:dataLength])
}

// Number joins the parts of a number: the seller's NIP, the day of
// receipt as YYYYMMDD and twelve hexadecimal digits.
func Number(nip, day, technical string) string {
	data := nip + "-" + day + "-" + technical
	return data + "-" + Checksum(data)
}

// Checksum is CRC-8 with the polynomial 0x07, beginning at 0, in upper-case
// hexadecimal. The last dash is not part of it.
func Checksum(data string) string {
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
