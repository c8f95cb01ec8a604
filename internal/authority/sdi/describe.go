package sdi

import (
	_ "embed" // the descriptions below
	"net/http"
	"strings"

	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
)

// The services in WSDL 1.1 and their types, written here after SdI's own:
// RiceviFile at this double's address, TrasmissioneFatture as a transmitter has
// to serve it. {address} stands for the address.
var (
	//go:embed ricevi_file.wsdl
	descriptionFile string
	//go:embed trasmissione_fatture.wsdl
	descriptionCallback string
	//go:embed types.xsd
	types string
)

// describe serves the descriptions: ?wsdl, ?wsdl=TrasmissioneFatture and ?xsd=types.
func describe(w http.ResponseWriter, r *http.Request) {
	text := ""
	switch query := strings.ToLower(r.URL.RawQuery); query {
	case "wsdl":
		text = descriptionFile
	case "wsdl=trasmissionefatture":
		text = descriptionCallback
	case "xsd=types":
		text = types
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	// a caller that left asks again
	_, _ = w.Write([]byte(strings.ReplaceAll(text, "{address}", string(xmltree.AppendValue(nil, addressOf(r))))))
}

// addressOf is where the client reached the service: the desk's frame cuts the
// country off the path, so it is taken from the request line.
func addressOf(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	at, _, found := strings.Cut(r.RequestURI, "?")
	if !found {
		at = sdiwire.Path
	}
	return scheme + r.Host + at
}
