package identity

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha1" // what PKCS#12 files of authorities are made with
	"crypto/sha256"
	"crypto/sha512"
	"encoding/asn1"
	"hash"
	"math/big"
	"unicode/utf16"

	"golang.org/x/crypto/cryptobyte"
	tags "golang.org/x/crypto/cryptobyte/asn1"
)

// FileBytesMax is how large a PKCS#12 may be; real ones have a tenth of it.
const FileBytesMax = 64 << 10

// Limits of a PKCS#12. Every one of them is read from the file before a single
// key is derived, because a derivation cannot be interrupted.
const (
	IterationsMax    = 600_000 // what the most careful programs use today; 2,048 is common
	derivedBytesMax  = 64      // of a MAC key
	keyBytesMax      = 6 << 10 // an RSA key of 8,192 bits has about 4,700
	safesMax         = 2       // one with certificates, one with the key: what everybody makes and the decoder reads
	remadeIterations = 1
	remadeSaltBytes  = 8
	pkcs12MacPurpose = 3 // RFC 7292, appendix B.3
	pfxVersion       = 3
	aesBlockBytes    = 16
	saltBytesMax     = 1024
)

var (
	oidData          = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	oidEncryptedData = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 6}
	oidKeyBag        = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 10, 1, 1}
	oidShroudedBag   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 10, 1, 2}
	oidPBE           = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 1} // and one more number for the cipher
	oidPBES2         = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2        = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
	oidPBMAC1        = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 14}
	oidSHA1          = asn1.ObjectIdentifier{1, 3, 14, 3, 2, 26}
	oidSHA256        = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
	oidSHA384        = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 2}
	oidSHA512        = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 3}
	oidHMACSHA1      = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 7}
	oidHMACSHA256    = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 9}
	oidHMACSHA384    = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 10}
	oidHMACSHA512    = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 11}
)

// Reasons why a file is refused, for people.
const (
	notPKCS12       = "is not a PKCS#12 file in DER form"
	notSupported    = "is protected in a way that is not supported; export it again with a current program"
	tooDear         = "asks for more rounds of key derivation than are allowed"
	noPrivateKey    = "has no private key"
	severalKeys     = "has more than one private key"
	keyTooLarge     = "has a private key that is too large"
	unsupportedSafe = "has a structure that is not supported; export it again with a current program"
)

// File is a PKCS#12 file taken apart as far as it is readable without its
// password, every limit checked.
type File struct {
	safe  []byte   // what the MAC is made over
	plain [][]byte // contents that are not encrypted as a whole; the key is in one of them
	dark  [][]byte // encrypted contents
	mac   *macData // nil: none
	keys  int
}

type macData struct {
	digest     []byte
	salt       []byte
	iterations int
	size       int              // of the key
	hash       func() hash.Hash // of the MAC
	block      int              // its block size, for the derivation of RFC 7292
	prf        func() hash.Hash // set for PBMAC1: RFC 9579
}

// Read reads the file's structure; reason says why it is refused.
//
// A key may hide inside an encrypted content, with rounds that cannot be seen
// from outside. That is why exactly one key must stand in a readable one: see
// [File.remade].
func Read(der []byte) (p *File, reason string) {
	file := cryptobyte.String(der)
	var outer, info, wrapped, safe cryptobyte.String
	var version int
	var kind asn1.ObjectIdentifier
	if !file.ReadASN1(&outer, tags.SEQUENCE) || !file.Empty() || !outer.ReadASN1Integer(&version) || version != pfxVersion ||
		!outer.ReadASN1(&info, tags.SEQUENCE) || !info.ReadASN1ObjectIdentifier(&kind) {
		return nil, notPKCS12
	}
	if !kind.Equal(oidData) {
		return nil, notSupported
	}
	if !info.ReadASN1(&wrapped, explicit(0)) || !wrapped.ReadASN1(&safe, tags.OCTET_STRING) {
		return nil, notPKCS12
	}
	p = &File{safe: safe}
	if reason := p.readSafes(safe); reason != "" {
		return nil, reason
	}
	if !outer.Empty() {
		if p.mac, reason = readMAC(outer); reason != "" {
			return nil, reason
		}
	}
	switch {
	case p.keys == 0:
		return nil, noPrivateKey
	case p.keys > 1:
		return nil, severalKeys
	}
	return p, ""
}

func explicit(n uint8) tags.Tag { return tags.Tag(n).ContextSpecific().Constructed() }

func (p *File) readSafes(safe cryptobyte.String) (reason string) {
	var list cryptobyte.String
	if !safe.ReadASN1(&list, tags.SEQUENCE) || !safe.Empty() {
		return notPKCS12
	}
	for !list.Empty() {
		var element, info, wrapped cryptobyte.String
		var kind asn1.ObjectIdentifier
		if !list.ReadASN1Element(&element, tags.SEQUENCE) {
			return notPKCS12
		}
		raw := element
		if !element.ReadASN1(&info, tags.SEQUENCE) || !info.ReadASN1ObjectIdentifier(&kind) ||
			!info.ReadASN1(&wrapped, explicit(0)) {
			return notPKCS12
		}
		switch {
		case kind.Equal(oidData):
			p.plain = append(p.plain, raw)
			reason = p.readBags(wrapped)
		case kind.Equal(oidEncryptedData):
			p.dark = append(p.dark, raw)
			reason = readEncrypted(wrapped)
		default:
			reason = notSupported
		}
		if reason != "" {
			return reason
		}
	}
	if n := len(p.plain) + len(p.dark); n < 1 || n > safesMax {
		return unsupportedSafe
	}
	return ""
}

// readEncrypted checks how a content is encrypted.
func readEncrypted(wrapped cryptobyte.String) (reason string) {
	var data, content, algorithm cryptobyte.String
	var version int
	if !wrapped.ReadASN1(&data, tags.SEQUENCE) || !data.ReadASN1Integer(&version) ||
		!data.ReadASN1(&content, tags.SEQUENCE) || !content.SkipASN1(tags.OBJECT_IDENTIFIER) ||
		!content.ReadASN1(&algorithm, tags.SEQUENCE) {
		return notPKCS12
	}
	return checkCipher(algorithm)
}

// readBags counts the keys of a readable content and checks how they are encrypted.
func (p *File) readBags(wrapped cryptobyte.String) (reason string) {
	var octets, list cryptobyte.String
	if !wrapped.ReadASN1(&octets, tags.OCTET_STRING) || !octets.ReadASN1(&list, tags.SEQUENCE) {
		return notPKCS12
	}
	for !list.Empty() {
		var bag, value cryptobyte.String
		var kind asn1.ObjectIdentifier
		if !list.ReadASN1(&bag, tags.SEQUENCE) || !bag.ReadASN1ObjectIdentifier(&kind) || !bag.ReadASN1(&value, explicit(0)) {
			return notPKCS12
		}
		if !kind.Equal(oidKeyBag) && !kind.Equal(oidShroudedBag) {
			continue // certificates and what the decoder passes over
		}
		p.keys++
		if len(value) > keyBytesMax {
			return keyTooLarge
		}
		if kind.Equal(oidKeyBag) {
			continue
		}
		var info, algorithm cryptobyte.String
		if !value.ReadASN1(&info, tags.SEQUENCE) || !info.ReadASN1(&algorithm, tags.SEQUENCE) {
			return notPKCS12
		}
		if reason := checkCipher(algorithm); reason != "" {
			return reason
		}
	}
	return ""
}

// checkCipher looks at an algorithm identifier without its SEQUENCE.
func checkCipher(algorithm cryptobyte.String) (reason string) {
	var kind asn1.ObjectIdentifier
	var params, salt cryptobyte.String
	if !algorithm.ReadASN1ObjectIdentifier(&kind) {
		return notPKCS12
	}
	switch {
	case kind.Equal(oidPBES2):
		return checkPBES2(algorithm)
	case len(kind) == len(oidPBE)+1 && kind[:len(oidPBE)].Equal(oidPBE):
		if !algorithm.ReadASN1(&params, tags.SEQUENCE) || !params.ReadASN1(&salt, tags.OCTET_STRING) {
			return notPKCS12
		}
		_, reason := readIterations(&params)
		return reason
	}
	return notSupported
}

func checkPBES2(algorithm cryptobyte.String) (reason string) {
	var params, derivation, scheme cryptobyte.String
	if !algorithm.ReadASN1(&params, tags.SEQUENCE) || !params.ReadASN1(&derivation, tags.SEQUENCE) ||
		!params.ReadASN1(&scheme, tags.SEQUENCE) {
		return notPKCS12
	}
	if _, reason := readPBKDF2(derivation); reason != "" {
		return reason
	}
	var vector cryptobyte.String
	if !scheme.SkipASN1(tags.OBJECT_IDENTIFIER) || !scheme.ReadASN1(&vector, tags.OCTET_STRING) || len(vector) != aesBlockBytes {
		return notSupported // the decoder would panic on another length
	}
	return ""
}

// readIterations reads the next integer as a number of rounds.
func readIterations(from *cryptobyte.String) (rounds int, reason string) {
	n := new(big.Int)
	if !from.ReadASN1Integer(n) {
		return 0, notPKCS12
	}
	if n.Sign() <= 0 {
		return 0, notSupported
	}
	if !n.IsInt64() || n.Int64() > IterationsMax {
		return 0, tooDear
	}
	return int(n.Int64()), ""
}

// derivation is the parameters of PBKDF2.
type derivation struct {
	salt   []byte
	rounds int
	size   int // 0: not said
	prf    func() hash.Hash
}

func readPBKDF2(algorithm cryptobyte.String) (d derivation, reason string) {
	var kind asn1.ObjectIdentifier
	var params, salt, prf cryptobyte.String
	if !algorithm.ReadASN1ObjectIdentifier(&kind) {
		return d, notPKCS12
	}
	if !kind.Equal(oidPBKDF2) {
		return d, notSupported
	}
	if !algorithm.ReadASN1(&params, tags.SEQUENCE) || !params.ReadASN1(&salt, tags.OCTET_STRING) || len(salt) > saltBytesMax {
		return d, notSupported
	}
	d.salt, d.prf = salt, sha1.New
	if d.rounds, reason = readIterations(&params); reason != "" {
		return d, reason
	}
	if params.PeekASN1Tag(tags.INTEGER) {
		if !params.ReadASN1Integer(&d.size) || d.size < 1 || d.size > derivedBytesMax {
			return d, notSupported
		}
	}
	if params.Empty() {
		return d, ""
	}
	if !params.ReadASN1(&prf, tags.SEQUENCE) || !prf.ReadASN1ObjectIdentifier(&kind) {
		return d, notPKCS12
	}
	if d.prf = hashOf(kind); d.prf == nil {
		return d, notSupported
	}
	return d, ""
}

// hashOf is the hash of a digest or an HMAC; nil when we do not have it.
func hashOf(kind asn1.ObjectIdentifier) func() hash.Hash {
	switch {
	case kind.Equal(oidSHA1), kind.Equal(oidHMACSHA1):
		return sha1.New
	case kind.Equal(oidSHA256), kind.Equal(oidHMACSHA256):
		return sha256.New
	case kind.Equal(oidSHA384), kind.Equal(oidHMACSHA384):
		return sha512.New384
	case kind.Equal(oidSHA512), kind.Equal(oidHMACSHA512):
		return sha512.New
	}
	return nil
}

func readMAC(from cryptobyte.String) (m *macData, reason string) {
	var all, info, algorithm, digest, salt cryptobyte.String
	var kind asn1.ObjectIdentifier
	if !from.ReadASN1(&all, tags.SEQUENCE) || !from.Empty() || !all.ReadASN1(&info, tags.SEQUENCE) ||
		!info.ReadASN1(&algorithm, tags.SEQUENCE) || !algorithm.ReadASN1ObjectIdentifier(&kind) ||
		!info.ReadASN1(&digest, tags.OCTET_STRING) ||
		!all.ReadASN1(&salt, tags.OCTET_STRING) {
		return nil, notPKCS12
	}
	m = &macData{digest: digest, salt: salt, iterations: 1}
	if kind.Equal(oidPBMAC1) {
		return m, m.readPBMAC1(algorithm)
	}
	if m.hash = hashOf(kind); m.hash == nil || len(salt) > saltBytesMax {
		return nil, notSupported
	}
	m.size, m.block = m.hash().Size(), m.hash().BlockSize()
	if !all.Empty() {
		if m.iterations, reason = readIterations(&all); reason != "" {
			return nil, reason
		}
	}
	return m, ""
}

func (m *macData) readPBMAC1(algorithm cryptobyte.String) (reason string) {
	var params, derivation, mac cryptobyte.String
	var kind asn1.ObjectIdentifier
	if !algorithm.ReadASN1(&params, tags.SEQUENCE) || !params.ReadASN1(&derivation, tags.SEQUENCE) ||
		!params.ReadASN1(&mac, tags.SEQUENCE) || !mac.ReadASN1ObjectIdentifier(&kind) {
		return notPKCS12
	}
	d, reason := readPBKDF2(derivation)
	if reason != "" {
		return reason
	}
	if m.hash = hashOf(kind); m.hash == nil || d.size == 0 {
		return notSupported
	}
	m.salt, m.iterations, m.size, m.prf = d.salt, d.rounds, d.size, d.prf
	return ""
}

// verify reports whether the password is the one the MAC was made with, and
// the form of it that fits: some programs make nothing of an empty password,
// others a terminating zero.
func (m *macData) verify(safe []byte, password string) (form []byte, ok bool) {
	forms := [][]byte{bmp(password)}
	if password == "" {
		forms = append(forms, nil)
	}
	for _, form := range forms {
		key, err := m.key(password, form)
		if err != nil {
			return nil, false
		}
		if hmac.Equal(m.digest, sum(m.hash, key, safe)) {
			return form, true
		}
	}
	return nil, false
}

func (m *macData) key(password string, form []byte) ([]byte, error) {
	if m.prf != nil {
		return pbkdf2.Key(m.prf, password, m.salt, m.iterations, m.size)
	}
	return derive(derivation{salt: m.salt, rounds: m.iterations, size: m.size, prf: m.hash}, m.block, form), nil
}

func sum(h func() hash.Hash, key, message []byte) []byte {
	mac := hmac.New(h, key)
	mac.Write(message)
	return mac.Sum(nil)
}

// remade is the same file with its readable contents in front and a MAC that
// costs nothing. The decoder takes one key only: having met ours first it
// refuses any that hides in an encrypted content before it derives a key for
// it. The true MAC was verified before.
func (p *File) remade(form []byte) ([]byte, error) {
	var contents cryptobyte.Builder
	contents.AddASN1(tags.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, list := range [][][]byte{p.plain, p.dark} {
			for _, content := range list {
				b.AddBytes(content)
			}
		}
	})
	safe, err := contents.Bytes()
	if err != nil {
		return nil, err
	}
	var file cryptobyte.Builder
	file.AddASN1(tags.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(pfxVersion)
		b.AddASN1(tags.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(oidData)
			b.AddASN1(explicit(0), func(b *cryptobyte.Builder) { b.AddASN1OctetString(safe) })
		})
		if p.mac == nil {
			return
		}
		salt := make([]byte, remadeSaltBytes)
		d := derivation{salt: salt, rounds: remadeIterations, size: sha1.Size, prf: sha1.New}
		digest := sum(sha1.New, derive(d, sha1.BlockSize, form), safe)
		b.AddASN1(tags.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1(tags.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1(tags.SEQUENCE, func(b *cryptobyte.Builder) {
					b.AddASN1ObjectIdentifier(oidSHA1)
					b.AddASN1NULL()
				})
				b.AddASN1OctetString(digest)
			})
			b.AddASN1OctetString(salt)
			b.AddASN1Int64(remadeIterations)
		})
	})
	return file.Bytes()
}

// derive is the derivation of RFC 7292, appendix B.2, for MAC keys.
func derive(d derivation, block int, password []byte) []byte {
	h := d.prf()
	diversifier := make([]byte, block)
	for i := range diversifier {
		diversifier[i] = pkcs12MacPurpose
	}
	input := append(filled(d.salt, block), filled(password, block)...)
	var key []byte
	for len(key) < d.size {
		h.Reset()
		h.Write(diversifier)
		h.Write(input)
		a := h.Sum(nil)
		for range d.rounds - 1 {
			h.Reset()
			h.Write(a)
			a = h.Sum(a[:0])
		}
		key = append(key, a...)
		next := filled(a, block)[:block]
		for i := 0; i < len(input); i += block {
			addOne(input[i:i+block], next)
		}
	}
	return key[:d.size]
}

// filled repeats text up to the next multiple of block; nothing stays nothing.
func filled(text []byte, block int) []byte {
	if len(text) == 0 {
		return nil
	}
	out := make([]byte, (len(text)+block-1)/block*block)
	for i := range out {
		out[i] = text[i%len(text)]
	}
	return out
}

// addOne is into = into + add + 1, as big-endian numbers of one length.
func addOne(into, add []byte) {
	carry := 1
	for i := len(into) - 1; i >= 0; i-- {
		carry += int(into[i]) + int(add[i])
		into[i] = byte(carry)
		carry >>= 8
	}
}

// bmp is a password as PKCS#12 hashes it: UTF-16 in network order with a zero at the end.
func bmp(password string) []byte {
	units := utf16.Encode([]rune(password))
	out := make([]byte, 0, 2*len(units)+2)
	for _, u := range units {
		out = append(out, byte(u>>8), byte(u))
	}
	return append(out, 0, 0)
}
