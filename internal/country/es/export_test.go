package es

import (
	"time"

	"tributary/internal/country"
)

// Patient is Spain with a double that states another wait and page size, so
// that tests need not wait.
func Patient(wait time.Duration, page int) country.Pack {
	return newPack(habits{wait: wait, page: page})
}

// Huella computes the huella of an alta (kind not empty) or a cancellation.
func Huella(issuer, number, day, kind, tax, total, previous, at string) string {
	return fingerprint{
		invoiceID: invoiceID{Issuer: issuer, Number: number, Day: day}, cancels: kind == "", kind: kind, tax: tax, total: total, previous: previous, at: at,
	}.huella()
}

// QRText is the content of a QR code.
func QRText(live bool, issuer, number, day, total string) string {
	return qrText(live, invoiceID{Issuer: issuer, Number: number, Day: day}, total)
}

// ReadAnswer and ReadList parse what AEAT sends.
func ReadAnswer(source []byte) error {
	body, err := soapBody(source)
	if err != nil {
		return err
	}
	_, err = readAnswer(body)
	return err
}

func ReadList(source []byte) error {
	body, err := soapBody(source)
	if err != nil {
		return err
	}
	_, err = readHoldings(body)
	return err
}

// Element is an element as it was read, with the bytes that it stands in.
type Element struct {
	Space, Name, Text string
	Depth, From, To   int
}

// Elements lists what readXML finds in the order of the document.
func Elements(source []byte) (all []Element, err error) {
	root, err := readXML(source)
	if err != nil {
		return nil, err
	}
	var visit func(e *element, depth int)
	visit = func(e *element, depth int) {
		all = append(all, Element{e.space, e.name, e.text, depth, e.from, e.to})
		for _, c := range e.children {
			visit(c, depth+1)
		}
	}
	visit(root, 1)
	return all, nil
}

// DepthMax is how deep a document may be.
const DepthMax = depthMax

// RecordOf cuts the record out of a report.
func RecordOf(report []byte) ([]byte, bool) { return recordOf(report) }

// Envelope wraps records as a call carries them.
func Envelope(name, nif string, late bool, records ...[]byte) []byte {
	w := writer{}
	openEnvelope(&w)
	writeBatch(&w, header{name: name, nif: nif, late: late}, records...)
	closeEnvelope(&w)
	return w.out
}

// Message is AEAT's text of a code.
func Message(code string) string { return message(code) }

// ServicePath is where the service stands.
const ServicePath = servicePath

// SurelyNIF is the quick half of the check of a NIF.
func SurelyNIF(number string) bool { return surelyNIF(number) }
