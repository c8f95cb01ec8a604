package pa

import (
	"net/http"
	"strings"

	"tributary/internal/authority"
	"tributary/internal/country/taxid"
)

// Entries of the directory that are not as all others.
const (
	unlisted      = "999000003" // nobody has registered it
	undecided     = "999000011" // its line is of no platform yet
	establishment = "432109874" // it receives at one establishment alone
	prompt        = "801234568" // it approves by itself
)

type line struct {
	Address  string `json:"addressingIdentifier"`
	SIREN    string `json:"siren"`
	SIRET    string `json:"siret,omitempty"`
	Status   string `json:"directoryLineStatus"`
	Platform string `json:"platformStatus"`
	Type     string `json:"platformType"`
}

// linesOf is what the directory has of a SIREN.
func linesOf(siren string) []line {
	if len(siren) != 9 || !taxid.Check("FR", siren).Valid || siren == unlisted {
		return []line{}
	}
	l := line{Address: siren, SIREN: siren, Status: "Enabled", Platform: "Enabled", Type: "WK"}
	switch siren {
	case undecided:
		l.Type = "DFH"
	case establishment:
		l.SIRET = siren + "00026"
		l.Address = siren + "_" + l.SIRET
	}
	return []line{l}
}

type criterion struct {
	Op    string `json:"op"`
	Value string `json:"value"`
}

// filter reads the SIREN of a search; false: it was refused.
func filter(w http.ResponseWriter, r *http.Request) (siren string, ok bool) {
	var body struct {
		Filters map[string]criterion `json:"filters"`
		Limit   int                  `json:"limit"`
	}
	if !readJSON(w, r, &body) {
		return "", false
	}
	by := body.Filters["siren"]
	if by.Op != "strict" || len(by.Value) != 9 || body.Limit < 0 || body.Limit > 100 {
		refuse(w, http.StatusBadRequest, "BAD_REQUEST", "a search needs filters.siren {op: strict, value} and a limit of at most 100")
		return "", false
	}
	return by.Value, true
}

func (a *double) searchLines(w http.ResponseWriter, r *http.Request) {
	turn, ok := a.question(w)
	if !ok {
		return
	}
	if siren, ok := filter(w, r); ok && turn.End(w, r) {
		found := linesOf(siren)
		authority.WriteJSON(w, http.StatusOK, map[string]any{"total_number_results": len(found), "results": found})
	}
}

func (a *double) showLine(w http.ResponseWriter, r *http.Request) {
	turn, ok := a.question(w)
	if !ok || !turn.End(w, r) {
		return
	}
	code := strings.TrimPrefix(r.PathValue("code"), "code:")
	siren, _, _ := strings.Cut(code, "_")
	for _, l := range linesOf(siren) {
		if l.Address == code {
			authority.WriteJSON(w, http.StatusOK, l)
			return
		}
	}
	refuse(w, http.StatusNotFound, "NOT_FOUND", "there is no line "+code)
}

type unit struct {
	SIREN  string `json:"siren"`
	SIRET  string `json:"siret,omitempty"`
	Name   string `json:"businessName"`
	Status string `json:"administrativeStatus"`
}

func unitsOf(siren string) []unit {
	if len(linesOf(siren)) == 0 {
		return []unit{}
	}
	return []unit{{SIREN: siren, Name: "Entreprise " + siren, Status: "A"}}
}

func (a *double) searchSIREN(w http.ResponseWriter, r *http.Request) {
	turn, ok := a.question(w)
	if !ok {
		return
	}
	if siren, ok := filter(w, r); ok && turn.End(w, r) {
		found := unitsOf(siren)
		authority.WriteJSON(w, http.StatusOK, map[string]any{"total_number_results": len(found), "results": found})
	}
}

func (a *double) showSIREN(w http.ResponseWriter, r *http.Request) {
	a.showUnit(w, r, strings.TrimPrefix(r.PathValue("code"), "code-insee:"), "")
}

func (a *double) showSIRET(w http.ResponseWriter, r *http.Request) {
	siret := strings.TrimPrefix(r.PathValue("code"), "code-insee:")
	a.showUnit(w, r, siret[:min(9, len(siret))], siret)
}

func (a *double) showUnit(w http.ResponseWriter, r *http.Request, siren, siret string) {
	turn, ok := a.question(w)
	if !ok || !turn.End(w, r) {
		return
	}
	found := unitsOf(siren)
	if len(found) == 0 || siret != "" && len(siret) != 14 {
		refuse(w, http.StatusNotFound, "NOT_FOUND", "there is no such number")
		return
	}
	found[0].SIRET = siret
	authority.WriteJSON(w, http.StatusOK, found[0])
}
