// Package official holds what authorities and standards bodies publish, as
// data: the structure of their documents in compact form, one folder per
// standard. The official files themselves are not in the repository; each
// folder's made.txt says what its forms are made of, and
//
//	go run ./internal/official/compile
//
// makes them again from the folder of official files (TRIBUTARY_SCHEMAS). A test
// compares.
//
// Packs that write documents and doubles of authorities that judge them read
// the same forms. That is meant: a form is a fact, made by a program; how a
// document is filled in and what else it must obey is each side's own.
package official

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"sync"

	"tributary/internal/xmltree/structure"
)

//go:embed */*.structure.gz
var files embed.FS

// Standard names one compact form: folder and file.
type Standard string

// Standards whose structures are here.
const (
	// AEAT, VERI*FACTU: records, calls, queries and their answers, events
	Verifactu Standard = "es-verifactu/verifactu"
	// SAT, CFDI 4.0 with TimbreFiscalDigital 1.1, Pagos 2.0 and the catalogues
	CFDI                Standard = "mx-cfdi/cfdi"
	FA3                 Standard = "pl-ksef/fa3"            // KSeF, FA(3)
	UPO                 Standard = "pl-ksef/upo"            // KSeF, UPO 4.3
	KSeFAuth            Standard = "pl-ksef/auth"           // KSeF, AuthTokenRequest 2.1
	FatturaPA           Standard = "it-fatturapa/ordinaria" // FatturaPA 1.2.3, FPR12 and FPA12
	FatturaSemplificata Standard = "it-fatturapa/semplice"  // simplified invoices, FSM10
	SdIMessages         Standard = "it-fatturapa/messaggi"  // SdI, messages about invoices to the public administration, 1.1
	SdIInvoiceMessages  Standard = "it-fatturapa/fatturapr" // SdI, messages about other invoices, 1.0
	NAV                 Standard = "hu-nav/osa"             // NAV Online Számla 3.0: data, API, annulment
	UBL                 Standard = "ubl21/ubl"              // UBL 2.1, Invoice and CreditNote
	CII                 Standard = "cii-d16b/cii"           // UN/CEFACT Cross Industry Invoice D16B
	FRR                 Standard = "fr-ctc/reports"         // DGFiP, flux 10: reports of sales and payments
)

// Standards lists them all.
func Standards() []Standard {
	return []Standard{Verifactu, CFDI, FA3, UPO, KSeFAuth, FatturaPA, FatturaSemplificata, SdIMessages,
		SdIInvoiceMessages, NAV, UBL, CII, FRR}
}

// loaded holds a function for each standard that loads it once, when it is
// wanted first: a program that files in one country does not load the others.
var loaded = func() map[Standard]func() *structure.Schema {
	all := map[Standard]func() *structure.Schema{}
	for _, s := range Standards() {
		all[s] = sync.OnceValue(s.load)
	}
	return all
}()

// Schema is the structure of the standard. It is loaded once and shared.
func (s Standard) Schema() *structure.Schema { return loaded[s]() }

// load panics when an embedded file cannot be read: that is a defect of the
// build, found by any test.
func (s Standard) load() *structure.Schema {
	text, err := s.Form()
	if err == nil {
		var schema *structure.Schema
		if schema, err = structure.Parse(text); err == nil {
			return schema
		}
	}
	panic(fmt.Sprintf("reading the embedded structure %s: %v", s, err))
}

// Form is the compact form as a text.
func (s Standard) Form() ([]byte, error) {
	packed, err := files.ReadFile(string(s) + ".structure.gz")
	if err != nil {
		return nil, err
	}
	in, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(in)
}
