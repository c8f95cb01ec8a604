package it

import (
	"bytes"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"tributary/internal/incoming"
	"tributary/internal/xmltree"
)

// A signed invoice (.p7m) is CMS SignedData (RFC 5652) with the invoice inside, in
// DER or in BER with lengths that are not said, plain or in base 64; some are signed
// twice, one envelope in another. The standard library reads DER alone. Law: what is
// signed is taken out and read; whose signature it is, and whether it holds, is not
// looked at, and every document says so.

const (
	envelopesMax = 4 // one in another
	nestingMax   = 16
)

var errEnvelope = errors.New("the file is no signed document that can be opened")

// opened takes the invoice out of its envelopes; signed says that there were any.
func opened(file []byte) (document []byte, signed bool, err error) {
	if len(file) > incoming.BytesMax {
		return nil, false, fmt.Errorf("%w: %w: more than %d bytes", incoming.ErrInvalid, xmltree.ErrLimit, incoming.BytesMax)
	}
	for range envelopesMax {
		inner, is := envelope(file)
		if !is {
			return file, signed, nil
		}
		b := ber{in: inner}
		if file, err = b.content(); err != nil {
			return nil, false, fmt.Errorf("%w: %w", incoming.ErrInvalid, err)
		}
		signed = true
	}
	return nil, false, fmt.Errorf("%w: more than %d envelopes stand in each other", incoming.ErrInvalid, envelopesMax)
}

// IsSigned reports whether a file begins as a signed document does.
func IsSigned(file []byte) bool {
	const head = 4096
	file = bytes.TrimLeft(file[:min(len(file), head)], "\ufeff \t\r\n")
	if bytes.HasPrefix(file, []byte(pemBegin)) {
		return bytes.HasPrefix(file, []byte(pemBegin+"PKCS7")) || bytes.HasPrefix(file, []byte(pemBegin+"CMS"))
	}
	if isBase64(file) {
		file = bytes.Join(bytes.Fields(file), nil)
		file = file[:len(file)&^3] // what was cut off may be in the middle of a group
	}
	_, is := envelope(file)
	return is
}

const pemBegin = "-----BEGIN "

// isBase64 reports whether a file may be base 64 of a sequence.
func isBase64(file []byte) bool { return len(file) > 4 && file[0] == 'M' }

// envelope is CMS, which begins with a sequence and the identifier of SignedData;
// XML begins with neither that nor a letter of base 64.
func envelope(file []byte) ([]byte, bool) {
	file = bytes.TrimLeft(file, "\ufeff \t\r\n")
	switch {
	case bytes.HasPrefix(file, []byte(pemBegin)):
		block, _ := pem.Decode(file)
		if block == nil {
			return nil, false
		}
		file = block.Bytes
	case isBase64(file):
		plain, err := base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields(file), nil)))
		if err != nil {
			return nil, false
		}
		file = plain
	}
	return file, len(file) > 2 && file[0] == tagSequence && bytes.Contains(file[:min(len(file), 32)], signedData())
}

// signedData is 1.2.840.113549.1.7.2 as bytes.
func signedData() []byte {
	id, err := asn1.Marshal(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2})
	if err != nil {
		panic(err) // the identifier is a constant
	}
	return id
}

// Tags of BER that the way to the content has.
const (
	tagOctets     = 0x04
	tagIdentifier = 0x06
	tagSequence   = 0x30
	tagContext    = 0xa0 // [0], constructed
	constructed   = 0x20
)

// ber goes through BER from its beginning. It never needs to know where what it is
// in ends, but for the pieces of the content.
type ber struct {
	in []byte
	at int
}

// indefinite is a length that is not said: the end is two zeros.
const indefinite = -1

// header reads a tag and a length that fits what is left.
func (b *ber) header() (tag byte, length int, err error) {
	if b.at+2 > len(b.in) {
		return 0, 0, errEnvelope
	}
	tag, first := b.in[b.at], b.in[b.at+1]
	b.at += 2
	switch {
	case tag&0x1f == 0x1f: // a tag of several bytes
		return 0, 0, errEnvelope
	case first == 0x80 && tag&constructed != 0:
		return tag, indefinite, nil
	case first < 0x80:
		length = int(first)
	default:
		n := int(first & 0x7f)
		if n == 0 || n > 4 || b.at+n > len(b.in) {
			return 0, 0, errEnvelope
		}
		for _, c := range b.in[b.at : b.at+n] {
			length = length<<8 | int(c)
		}
		b.at += n
	}
	if length > len(b.in)-b.at {
		return 0, 0, errEnvelope
	}
	return tag, length, nil
}

// enter goes into an element that must be there.
func (b *ber) enter(want byte) error {
	tag, _, err := b.header()
	if err == nil && tag != want {
		err = errEnvelope
	}
	return err
}

// skip passes over an element.
func (b *ber) skip(depth int) error {
	_, length, err := b.header()
	switch {
	case err != nil:
		return err
	case depth > nestingMax:
		return errEnvelope
	case length != indefinite:
		b.at += length
		return nil
	}
	for !b.ended() {
		if err := b.skip(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// ended passes over the two zeros that end what does not say its length.
func (b *ber) ended() bool {
	if b.at+2 <= len(b.in) && b.in[b.at] == 0 && b.in[b.at+1] == 0 {
		b.at += 2
		return true
	}
	return false
}

// content is what was signed: ContentInfo, SignedData, EncapsulatedContentInfo.
func (b *ber) content() ([]byte, error) {
	steps := []func() error{
		func() error { return b.enter(tagSequence) },
		func() error {
			if !bytes.HasPrefix(b.in[b.at:], signedData()) {
				return errEnvelope
			}
			b.at += len(signedData())
			return nil
		},
		func() error { return b.enter(tagContext) },
		func() error { return b.enter(tagSequence) },
		func() error { return b.skip(0) }, // version
		func() error { return b.skip(0) }, // algorithms
		func() error { return b.enter(tagSequence) },
		func() error { return b.skip(0) }, // kind of content
		func() error { return b.enter(tagContext) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.octets(nil, 0)
}

// octets reads a string of bytes, of which BER may make pieces.
func (b *ber) octets(out []byte, depth int) ([]byte, error) {
	tag, length, err := b.header()
	switch {
	case err != nil:
		return nil, err
	case tag&^constructed != tagOctets || depth > nestingMax:
		return nil, errEnvelope
	case tag&constructed == 0:
		b.at += length
		return append(out, b.in[b.at-length:b.at]...), nil
	}
	for end := b.at + length; ; {
		if length == indefinite && b.ended() || length != indefinite && b.at >= end {
			return out, nil
		}
		if out, err = b.octets(out, depth+1); err != nil {
			return nil, err
		}
	}
}
