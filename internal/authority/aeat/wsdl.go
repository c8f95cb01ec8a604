package aeat

import (
	_ "embed" // the description below
	"net/http"
	"path"
	"strings"

	"tributary/internal/official"
	"tributary/internal/xmltree"
)

// description is the service in WSDL 1.1, written here: the messages, operations
// and bindings of AEAT's SistemaFacturacion.wsdl, at this double's own address.
// {address} stands for that address.
//
//go:embed service.wsdl
var description string

// describe serves the description (?wsdl) and the schemas that it imports
// (?xsd=…), for SOAP clients that make their calls from it. It says whether it
// was asked for one.
func describe(w http.ResponseWriter, r *http.Request) bool {
	query := strings.ToLower(r.URL.RawQuery)
	address := addressOf(r)
	switch {
	case query == "wsdl":
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = w.Write([]byte(strings.ReplaceAll(description, "{address}", string(xmltree.AppendValue(nil, address)))))
		return true
	case strings.HasPrefix(query, "xsd="):
		schema := official.Verifactu.Schema()
		for _, space := range schema.Spaces() {
			if schemaName(space) != r.URL.Query().Get("xsd") {
				continue
			}
			text, err := schema.XSD(space, func(other string) string { return address + "?xsd=" + schemaName(other) })
			if err != nil {
				http.Error(w, "the schema cannot be written", http.StatusInternalServerError)
				return true
			}
			w.Header().Set("Content-Type", "text/xml; charset=utf-8")
			_, _ = w.Write(text)
			return true
		}
		http.NotFound(w, r)
		return true
	}
	return false
}

// schemaName is the file name of a namespace's schema.
func schemaName(space string) string {
	if strings.HasSuffix(space, "#") {
		return "xmldsig-core-schema.xsd"
	}
	return path.Base(space)
}

// addressOf is where the client reached the service: the desk's frame cuts the
// country off the path, so it is taken from the request line.
func addressOf(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	at, _, _ := strings.Cut(r.RequestURI, "?")
	return scheme + r.Host + at
}
