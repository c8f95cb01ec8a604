package it

import "tributary/internal/country"

// Instant reads a time of SdI.
var Instant = instant

// ReadReceived understands a call that brings an invoice, whoever calls.
var ReadReceived = readReceived

// Verified asks whether SdI signed what a call brings, whoever calls.
func Verified(at country.Endpoint, c country.Call) error {
	m, file, err := unpack(c)
	if err != nil {
		return err
	}
	said, err := readNotice(m, file)
	if err != nil {
		return err
	}
	return said.verify(signers(at), c.At)
}
