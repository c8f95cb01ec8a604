package onboarding_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/x509/pkix"
	"encoding/asn1"
)

// The parts of a PKCS#12 that the tests put together themselves.
type (
	testPFX struct {
		Version int
		Safe    testContent
		MAC     asn1.RawValue
	}
	testContent struct {
		Type  asn1.ObjectIdentifier
		Value asn1.RawValue `asn1:"tag:0,explicit"`
	}
	testEncrypted struct {
		Version int
		Content testEncryptedContent
	}
	testEncryptedContent struct {
		Type      asn1.ObjectIdentifier
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte `asn1:"tag:0"`
	}
	testPBES2 struct {
		KDF    pkix.AlgorithmIdentifier
		Cipher pkix.AlgorithmIdentifier
	}
	testPBKDF2 struct {
		Salt   []byte
		Rounds int
		PRF    pkix.AlgorithmIdentifier
	}
	testPBMAC1 struct {
		KDF pkix.AlgorithmIdentifier
		MAC pkix.AlgorithmIdentifier
	}
	testPBMAC1KDF struct {
		Salt   []byte
		Rounds int
		Size   int
		PRF    pkix.AlgorithmIdentifier
	}
	testDigestInfo struct {
		Algorithm pkix.AlgorithmIdentifier
		Digest    []byte
	}
	testMAC struct {
		Digest testDigestInfo
		Salt   []byte
		Rounds int
	}
)

var (
	testOIDData      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	testOIDEncrypted = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 6}
	testOIDPBES2     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	testOIDPBKDF2    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
	testOIDPBMAC1    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 14}
	testOIDHMAC      = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 9}
	testOIDAES       = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 1, 42}
)

func raw(v any) asn1.RawValue { return asn1.RawValue{FullBytes: must(asn1.Marshal(v))} }

func explicitly(v asn1.RawValue) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: v.FullBytes}
}

// hiddenKey takes a file made by the library apart, puts its shrouded key with
// other rounds into an encrypted content, and signs it all with the password.
func hiddenKey(file []byte, password string, rounds int64, plainToo bool) []byte {
	var p testPFX
	must(asn1.Unmarshal(file, &p))
	var safe []byte
	must(asn1.Unmarshal(p.Safe.Value.Bytes, &safe))
	var contents []testContent
	must(asn1.Unmarshal(safe, &contents))
	var bags []byte // the content with the key is the second
	must(asn1.Unmarshal(contents[1].Value.Bytes, &bags))
	dear := replaceDER(bags, bytes.Index(bags, must(asn1.Marshal(2048))), 4, must(asn1.Marshal(rounds)))
	list := []testContent{encryptedContent(dear, password)}
	if plainToo {
		list = append(list, testContent{Type: testOIDData, Value: explicitly(raw(bags))})
	}
	sealed := must(asn1.Marshal(list))
	return must(asn1.Marshal(testPFX{Version: 3, Safe: testContent{Type: testOIDData, Value: explicitly(raw(sealed))},
		MAC: raw(signature(sealed, password, 2))}))
}

// signedWith is the file with another MAC that costs so many rounds.
func signedWith(file []byte, password string, rounds int) []byte {
	var p testPFX
	must(asn1.Unmarshal(file, &p))
	var safe []byte
	must(asn1.Unmarshal(p.Safe.Value.Bytes, &safe))
	return must(asn1.Marshal(testPFX{Version: 3, Safe: testContent{Type: testOIDData, Value: explicitly(raw(safe))},
		MAC: raw(signature(safe, password, rounds))}))
}

func encryptedContent(plain []byte, password string) testContent {
	salt, vector := []byte("saltsalt"), make([]byte, aes.BlockSize)
	key := must(pbkdf2.Key(sha256.New, password, salt, 2, 32))
	pad := aes.BlockSize - len(plain)%aes.BlockSize
	padded := append(append([]byte(nil), plain...), bytes.Repeat([]byte{byte(pad)}, pad)...)
	cipher.NewCBCEncrypter(must(aes.NewCipher(key)), vector).CryptBlocks(padded, padded)
	algorithm := pkix.AlgorithmIdentifier{Algorithm: testOIDPBES2, Parameters: raw(testPBES2{
		KDF: pkix.AlgorithmIdentifier{Algorithm: testOIDPBKDF2,
			Parameters: raw(testPBKDF2{salt, 2, pkix.AlgorithmIdentifier{Algorithm: testOIDHMAC}})},
		Cipher: pkix.AlgorithmIdentifier{Algorithm: testOIDAES, Parameters: raw(vector)},
	})}
	return testContent{Type: testOIDEncrypted,
		Value: explicitly(raw(testEncrypted{Content: testEncryptedContent{testOIDData, algorithm, padded}}))}
}

func signature(sealed []byte, password string, rounds int) testMAC {
	salt := []byte("saltsalt")
	key := must(pbkdf2.Key(sha256.New, password, salt, rounds, 32))
	mac := hmac.New(sha256.New, key)
	mac.Write(sealed)
	prf := pkix.AlgorithmIdentifier{Algorithm: testOIDHMAC}
	algorithm := pkix.AlgorithmIdentifier{Algorithm: testOIDPBMAC1, Parameters: raw(testPBMAC1{
		KDF: pkix.AlgorithmIdentifier{Algorithm: testOIDPBKDF2, Parameters: raw(testPBMAC1KDF{salt, rounds, 32, prf})},
		MAC: prf,
	})}
	return testMAC{Digest: testDigestInfo{algorithm, mac.Sum(nil)}, Salt: []byte("NOT USED"), Rounds: 1}
}
