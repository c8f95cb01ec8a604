package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/satwire"
)

const (
	customKeyMax = 100
	tokenEarly   = 5 * time.Minute // a token is not used when it is about to end
)

// token is a session of a user.
type token struct {
	secret string // of the user: another password opens another session
	text   string
	until  time.Time
}

// reply is the frame of every answer.
type restReply struct {
	Status  string          `json:"status"`
	Message string          `json:"message"`
	Detail  string          `json:"messageDetail"`
	Data    json.RawMessage `json:"data"`
}

// restStamp is the answer to a stamping in response version v4.
type restStamp struct {
	Chain     string `json:"cadenaOriginalSAT"`
	NumberSAT string `json:"noCertificadoSAT"`
	Number    string `json:"noCertificadoCFDI"`
	UUID      string `json:"uuid"`
	SealSAT   string `json:"selloSAT"`
	Seal      string `json:"selloCFDI"`
	StampedAt string `json:"fechaTimbrado"`
	QRCode    string `json:"qrCode"`
	CFDI      string `json:"cfdi"`
}

// restCancel is the answer to a cancellation.
type restCancel struct {
	Receipt string            `json:"acuse"`
	UUIDs   map[string]string `json:"uuid"`
}

// session answers the bearer token of a user. Without a user name the password
// is a token that never ends, as the provider's portal makes them.
func (ch *Client) session(ctx context.Context, c country.Credentials, fresh bool) (string, error) {
	if c.Username == "" {
		return c.Secret, nil
	}
	held, ok := ch.tokens.Get(c.Username)
	if ok && !fresh && held.secret == c.Secret && time.Now().Before(held.until) {
		return held.text, nil
	}
	made, err := ch.login(ctx, c)
	if err != nil {
		return "", err
	}
	ch.tokens.Put(c.Username, made)
	return made.text, nil
}

// login opens a session. Whatever goes wrong here, no voucher has left yet.
func (ch *Client) login(ctx context.Context, c country.Credentials) (token, error) {
	body, err := json.Marshal(map[string]string{"user": c.Username, "password": c.Secret})
	if err != nil {
		return token{}, fmt.Errorf("signing in: %w", err)
	}
	status, said, _, err := ch.post(ctx, satwire.PathRESTLogin, []string{"Content-Type", "application/json"}, body)
	if err != nil {
		return token{}, fmt.Errorf("signing in: %w: %w", country.ErrNotTaken, err)
	}
	if status == http.StatusUnauthorized || status == http.StatusBadRequest && strings.HasPrefix(said.Message, "AU") {
		return token{}, fmt.Errorf("signing in: %w: %w: %s", country.ErrNotTaken, country.ErrCredentials, said.Message)
	}
	var data struct {
		Token   string `json:"token"`
		Expires int64  `json:"expires_in"`
	}
	if status != http.StatusOK || said.Status != "success" || json.Unmarshal(said.Data, &data) != nil || data.Token == "" {
		return token{}, fmt.Errorf("signing in: %w: status %d, %s", country.ErrNotTaken, status, said.Message)
	}
	until := time.Now().Add(satwire.SessionLifetime)
	if data.Expires > 0 {
		until = time.Unix(data.Expires, 0) // seconds since 1970, not from now
	}
	return token{secret: c.Secret, text: data.Token, until: until.Add(-tokenEarly)}, nil
}

// post makes a call and reads the frame of its answer.
func (ch *Client) post(ctx context.Context, path string, head []string, body []byte) (int, restReply, []byte, error) {
	got, err := country.Request{URL: ch.base + path, Header: head, Body: body, BytesMax: answerBytesMax(len(body))}.Do(ctx, ch.at.HTTP)
	if err != nil {
		return 0, restReply{}, nil, err
	}
	kind, _, _ := mime.ParseMediaType(got.Header.Get("Content-Type"))
	var said restReply
	if kind != "application/json" || json.Unmarshal(got.Body, &said) != nil || said.Status == "" {
		return 0, restReply{}, nil, fmt.Errorf("calling %s: status %d without an answer of the protocol", path, got.Status)
	}
	return got.Status, said, got.Body, nil
}

// upload posts an XML document as a form, in a session. A session that ended
// is opened again once: the provider reads nothing of a call without one.
func (ch *Client) upload(ctx context.Context, path string, f country.Filing, c country.Credentials,
	key string) (int, restReply, []byte, error) {
	body, kind, err := form(f.Report)
	if err != nil {
		return 0, restReply{}, nil, err
	}
	for fresh := false; ; fresh = true {
		bearer, err := ch.session(ctx, c, fresh)
		if err != nil {
			return 0, restReply{}, nil, err
		}
		head := []string{"Content-Type", kind, "Authorization", "Bearer " + bearer, "Customid", Tail(key, customKeyMax)}
		status, said, raw, err := ch.post(ctx, path, head, body)
		if err == nil && status == http.StatusUnauthorized {
			if !fresh && c.Username != "" {
				continue
			}
			err = fmt.Errorf("%w: %w: %s", country.ErrNotTaken, country.ErrCredentials, said.Message)
		}
		return status, said, raw, err
	}
}

func form(document []byte) (body []byte, kind string, err error) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="xml"; filename="xml"`}, "Content-Type": {"text/xml"},
	})
	if err == nil {
		_, err = part.Write(document)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, "", fmt.Errorf("writing a form: %w", err)
	}
	return out.Bytes(), w.FormDataContentType(), nil
}

// codeOf takes the code from the head of a message: "CFDI40145 - El campo …",
// "307. El comprobante …".
func codeOf(message string) (code, rest string) {
	code, rest, _ = strings.Cut(message, " ")
	return strings.TrimRight(code, ".:-"), strings.TrimLeft(rest, "-–: ")
}

func (ch *Client) stampREST(ctx context.Context, f country.Filing, c country.Credentials) (Answer, error) {
	status, said, raw, err := ch.upload(ctx, satwire.PathRESTStamp, f, c, f.DedupeKey)
	if err != nil {
		return Answer{}, err
	}
	var data restStamp
	if len(said.Data) > 0 && string(said.Data) != "null" {
		if err := json.Unmarshal(said.Data, &data); err != nil {
			return Answer{}, fmt.Errorf("reading the provider's answer: %w", err)
		}
	}
	out := Answer{Document: []byte(data.CFDI), Raw: raw}
	switch {
	case status == http.StatusOK && said.Status == "success":
		return out, nil
	case status >= 500 || status == http.StatusTooManyRequests || said.Status != "error":
		return Answer{}, fmt.Errorf("%w: status %d, %s", ErrAwkward, status, said.Message)
	}
	out.Code, out.Message = codeOf(said.Message)
	if detail := Tidy(said.Detail); detail != "" {
		out.Message += " " + detail
	}
	if out.Code == "" {
		return Answer{}, fmt.Errorf("%w: status %d", ErrAwkward, status)
	}
	return out, nil
}

func (ch *Client) cancelREST(ctx context.Context, f country.Filing, e Errand, c country.Credentials) (cancelled, error) {
	status, said, raw, err := ch.upload(ctx, satwire.PathRESTCancel, f, c, "")
	if err != nil {
		return cancelled{}, err
	}
	if status >= 500 || status == http.StatusTooManyRequests {
		return cancelled{}, fmt.Errorf("%w: status %d, %s", ErrAwkward, status, said.Message)
	}
	var data restCancel
	if len(said.Data) > 0 && string(said.Data) != "null" {
		if err := json.Unmarshal(said.Data, &data); err != nil {
			return cancelled{}, fmt.Errorf("reading the provider's answer: %w", err)
		}
	}
	out := cancelled{receipt: data.Receipt, raw: raw}
	for uuid, code := range data.UUIDs {
		if strings.EqualFold(uuid, e.UUID) {
			out.status = code
		}
	}
	if out.status == "" {
		out.status, out.message = codeOf(said.Message + " " + said.Detail)
	}
	if out.status == "" {
		return cancelled{}, fmt.Errorf("%w: no state of %s", ErrAwkward, e.UUID)
	}
	return out, nil
}
