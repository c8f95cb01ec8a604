package sat

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"tributary/internal/official/satwire"
)

const sessionsMax = 10_000

// open begins a session of the REST provider.
func (a *double) open() (text string, until time.Time) {
	raw := make([]byte, 32)
	rand.Read(raw) // never fails: the runtime ends the program instead
	text, until = hex.EncodeToString(raw), time.Now().Add(satwire.SessionLifetime)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sessions) >= sessionsMax {
		clear(a.sessions)
	}
	a.sessions[text] = until
	return text, until
}

func (a *double) inSession(r *http.Request) bool {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a.mu.Lock()
	defer a.mu.Unlock()
	until, known := a.sessions[text]
	return ok && known && time.Now().Before(until)
}

func (a *double) restLogin(w http.ResponseWriter, r *http.Request) {
	var in struct {
		User     string `json:"user"`
		Password string `json:"password"`
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&in) != nil || !allowed(in.User, in.Password) {
		restRefuse(w, http.StatusUnauthorized,
			"AU2000 - El usuario y/o contraseña son inválidos, no se puede autenticar el servicio.")
		return
	}
	text, until := a.open()
	restRespond(w, http.StatusOK, map[string]any{"data": map[string]any{"token": text, "expires_in": until.Unix(),
		"tokeny_type": "Bearer"}, "status": "success"})
}

func restRespond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a caller that left is nobody to tell
}

func restRefuse(w http.ResponseWriter, status int, message string) {
	restRespond(w, status, map[string]any{"message": message, "messageDetail": "", "data": nil, "status": "error"})
}

// uploaded reads the form of a call in a session; false when it was refused.
func (a *double) uploaded(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if !a.inSession(r) {
		restRefuse(w, http.StatusUnauthorized, "El token debe contener 3 partes")
		return nil, false
	}
	r.Body = http.MaxBytesReader(w, r.Body, satwire.VoucherBytesMax+1<<16)
	file, _, err := r.FormFile("xml")
	if err != nil {
		restRefuse(w, http.StatusBadRequest, "CFDI40999 - Xml CFDI no proporcionado o viene vacio.")
		return nil, false
	}
	defer func() { _ = file.Close() }()                // read only
	defer func() { _ = r.MultipartForm.RemoveAll() }() // temporary files of a double
	raw, err := io.ReadAll(file)
	if err != nil {
		restRefuse(w, http.StatusBadRequest, "CFDI40999 - Xml CFDI no proporcionado o viene vacio.")
		return nil, false
	}
	return raw, true
}

func (a *double) restStamp(w http.ResponseWriter, r *http.Request) {
	raw, ok := a.uploaded(w, r)
	if !ok {
		return
	}
	in, got, no, ok := a.process(w, r, raw, r.Header.Get("Customid"))
	if !ok {
		return
	}
	body := map[string]any{"status": "success", "data": nil}
	if got.Sello != "" {
		body["data"] = map[string]string{
			"cadenaOriginalSAT": string(originalOfStamp(got.stamp())), "noCertificadoSAT": got.NumberSAT,
			"noCertificadoCFDI": in.voucher.Attr("NoCertificado"),
			"uuid":              folioOf(got.Sello), "selloSAT": got.Seal, "selloCFDI": got.Sello, "fechaTimbrado": got.At,
			"qrCode": "", "cfdi": string(got.stampedCopy(in.voucher)),
		}
	}
	if no.code == "" {
		restRespond(w, http.StatusOK, body)
		return
	}
	body["status"], body["message"], body["messageDetail"] = "error", no.code+" - "+no.message, nil
	if no.code == satwire.CodeStampedBefore {
		body["message"] = no.code + ". " + no.message
	}
	restRespond(w, http.StatusBadRequest, body)
}

func (a *double) restCancel(w http.ResponseWriter, r *http.Request) {
	raw, ok := a.uploaded(w, r)
	if !ok {
		return
	}
	req, status, ok := a.withdraw(w, r, raw)
	if !ok {
		return
	}
	if status[0] == '3' {
		restRespond(w, http.StatusBadRequest,
			map[string]any{"message": status + " - " + satwire.CancelMeaning(status), "messageDetail": nil, "data": nil,
				"status": "error"})
		return
	}
	restRespond(w, http.StatusOK, map[string]any{"status": "success",
		"data": map[string]any{"acuse": a.acknowledgement(req, status), "uuid": map[string]string{req.uuid: status}}})
}
