package anaf

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/xmltree"
)

// Limits of a day.
const (
	statesMax    = 100
	downloadsMax = 10
	listsMax     = 100_000
	pageSize     = 500
)

// question takes the turn of a call that asks; false: it was answered.
func (a *double) question(w http.ResponseWriter) (authority.Turn, bool) {
	turn := a.desk.QueryTurn()
	return turn, turn.Begin(w, nil)
}

// state serves stareMesaj.
func (a *double) state(w http.ResponseWriter, r *http.Request) {
	index := r.URL.Query().Get("id_incarcare")
	turn, ok := a.question(w)
	if !ok || a.limit(w, "stareMesaj", index, statesMax) {
		return
	}
	var e entry
	known := false
	if a.desk.Write(func(b *authority.Book) {
		if known = b.Load("entry/"+index, &e); known {
			a.mature(b, index)
			b.Load("entry/"+index, &e)
		}
	}) != nil || !turn.End(w, r) {
		return
	}
	writeXML(w, func(x *xmltree.Writer) {
		switch {
		case !known:
			x.Start("header", "xmlns", spaceState)
			x.Leaf("Errors", "", "errorMessage", "Nu exista factura cu id_incarcare= "+index)
		case e.State == working:
			x.Start("header", "xmlns", spaceState, "stare", working)
		default:
			x.Start("header", "xmlns", spaceState, "stare", e.State, "id_descarcare", archiveID(index))
		}
		x.End()
	})
}

// archiveID is what an archive is downloaded by: another number than the index.
func archiveID(index string) string { return "3" + index }

// download serves descarcare.
func (a *double) download(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	index := strings.TrimPrefix(id, "3")
	turn, ok := a.question(w)
	if !ok {
		return
	}
	var e entry
	var data string
	known := false
	if a.desk.Write(func(b *authority.Book) {
		known = id == archiveID(index) && b.Load("entry/"+index, &e) && e.State != working
		data = b.Text("data/" + index)
	}) != nil {
		return
	}
	if !known {
		eroare(w, "Pentru id="+id+" nu exista inregistrata nici o factura")
		return
	}
	if a.limit(w, "descarcare", id, downloadsMax) {
		return
	}
	content, _ := base64.StdEncoding.DecodeString(data)
	if e.State == bad {
		content = errorsFile(index, e)
	}
	packed, err := pack(index, content)
	if err != nil || !turn.End(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/zip")
	_, _ = w.Write(packed) // a caller that left is nobody to tell
}

func errorsFile(index string, e entry) []byte {
	x := xmltree.NewWriter(512)
	x.Declare()
	x.Start("header", "xmlns", spaceErrors, "Index_incarcare", index, "Cif_emitent", e.CIF)
	for _, text := range e.Errors {
		x.Leaf("Error", "", "errorMessage", text)
	}
	x.End()
	return x.Bytes()
}

func pack(index string, content []byte) ([]byte, error) {
	signature, err := sign(content)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range []struct {
		name string
		text []byte
	}{{index + ".xml", content}, {"semnatura_" + index + ".xml", signature}} {
		to, err := z.Create(f.name)
		if err == nil {
			_, err = to.Write(f.text)
		}
		if err != nil {
			return nil, fmt.Errorf("packing the archive of %s: %w", index, err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("packing the archive of %s: %w", index, err)
	}
	return out.Bytes(), nil
}

// list serves listaMesajePaginatieFactura: what was decided, never what is in work.
func (a *double) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	cif := query.Get("cif")
	turn, ok := a.question(w)
	if !ok || a.limit(w, "listaMesajePaginatie", cif, listsMax) {
		return
	}
	from, err := strconv.ParseInt(query.Get("startTime"), 10, 64)
	to, err2 := strconv.ParseInt(query.Get("endTime"), 10, 64)
	page, err3 := strconv.Atoi(query.Get("pagina"))
	start, end := time.UnixMilli(from), time.UnixMilli(to)
	switch {
	case err != nil || err2 != nil || err3 != nil || page < 1:
		a.badRequest(w, "Parametrii startTime, endTime si pagina sunt obligatorii")
		return
	case end.Before(start) || start.Before(a.now().Add(-60*24*time.Hour)):
		eroare(w, "startTime nu poate fi mai vechi de 60 de zile")
		return
	case end.After(a.now().Add(time.Minute)):
		eroare(w, "endTime nu poate fi in viitor")
		return
	}
	messages := []map[string]string{}
	if a.desk.Write(func(b *authority.Book) {
		a.settle(b, cif)
		of, kind := "sent/", "FACTURA TRIMISA"
		if query.Get("filtru") == "P" {
			of, kind = "received/", "FACTURA PRIMITA"
		} else if query.Get("filtru") == "R" {
			of, kind = "answers/", "MESAJ CUMPARATOR PRIMIT / MESAJ CUMPARATOR TRANSMIS"
		}
		for _, index := range b.Words(of + cif) {
			var e entry
			b.Load("entry/"+index, &e)
			if e.At.Before(start.Add(-time.Second)) || e.At.After(end.Add(time.Second)) || a.endings.Obey(e.Number, "-LAG", 3) {
				continue
			}
			messages = append(messages, map[string]string{"data_creare": e.At.Format("200601021504"), "cif": cif,
				"id_solicitare": index, "tip": kind, "id": archiveID(index),
				"detalii": "Factura cu id_incarcare=" + index + " emisa de cif_emitent=" + e.CIF})
		}
	}) != nil || !turn.End(w, r) {
		return
	}
	pages := (len(messages) + pageSize - 1) / pageSize
	if filter := query.Get("filtru"); !slices.Contains([]string{"T", "P", "R"}, filter) || len(messages) == 0 || page > pages {
		eroare(w, "Nu exista mesaje in intervalul selectat")
		return
	}
	shown := messages[(page-1)*pageSize : min(page*pageSize, len(messages))]
	authority.WriteJSON(w, http.StatusOK, map[string]any{"mesaje": shown, "serial": "1234AA456", "cui": cif, "titlu": "Lista Mesaje disponibile",
		"numar_total_pagini": pages, "numar_inregistrari_in_pagina": len(shown), "index_pagina_curenta": page})
}
