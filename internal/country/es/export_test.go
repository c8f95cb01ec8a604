package es

import (
	"tributary/internal/official/aeatwire"
	"tributary/internal/xmltree"
)

// Huella computes the huella of an alta (kind not empty) or a cancellation.
func Huella(issuer, number, day, kind, tax, total, previous, at string) string {
	return fingerprint{
		invoiceID: invoiceID{Issuer: issuer, Number: number, Day: day}, cancels: kind == "", kind: kind, tax: tax,
		total: total, previous: previous, at: at,
	}.huella()
}

// QRText is the content of a QR code.
func QRText(live bool, issuer, number, day, total string) string {
	return qrText(live, invoiceID{Issuer: issuer, Number: number, Day: day}, total)
}

// ReadAnswer and ReadList parse what AEAT sends.
func ReadAnswer(source []byte) error {
	body, err := readBody(source)
	if err != nil {
		return err
	}
	_, err = readAnswer(body)
	return err
}

func ReadList(source []byte) error {
	body, err := readBody(source)
	if err != nil {
		return err
	}
	_, err = readHoldings(body)
	return err
}

// RecordOf cuts the record out of a report.
func RecordOf(report []byte) ([]byte, bool) { return recordOf(report) }

// Envelope wraps records as a call carries them.
func Envelope(name, nif string, late bool, records ...[]byte) []byte {
	return envelope(0, func(w *xmltree.Writer) {
		aeatwire.WriteCall(w, aeatwire.Header{Name: name, NIF: nif, Late: late}, records...)
	})
}
