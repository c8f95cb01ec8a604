package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tributary/internal/fault"
	"tributary/internal/secret"
	"tributary/internal/webhook"
)

// Limits of receiving.
const (
	receivedBytesMax = 1 << 20
	receivedAgeMax   = 15 * time.Minute
	forwardTimeout   = 15 * time.Second
	outcomeTimeout   = 3 * time.Second // what is told meanwhile waits for the line
)

// Verification looks at one notification that was received elsewhere.
type Verification struct {
	APIKey    string
	Signature string        // value of the header
	MaxAge    time.Duration // how far delivered_at may be from now; 0: any
}

// Run reads the raw body and says whose notification it is; the error says why
// it is not to be believed.
func (v Verification) Run(body io.Reader, out io.Writer) error {
	text, err := io.ReadAll(io.LimitReader(body, receivedBytesMax))
	if err != nil {
		return err
	}
	n, err := webhook.Verify(text, v.Signature, secret.FromText(v.APIKey), webhook.Freshness{Now: time.Now(), Max: v.MaxAge})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "valid: %s for %s, webhook_id %s\n", n.EventType, n.ResourceID, n.WebhookID)
	return err
}

// Receiver receives notifications, verifies and shows them, and sends them on.
type Receiver struct {
	APIKey  string
	Header  string // of the signature, where the client gave it a name of its own
	Listen  string // address to receive on
	Forward string // where what verifies is sent on, unchanged; empty: nowhere
	JSON    bool   // show bodies instead of lines
}

// Run receives until ctx ends. What does not verify is refused with 401 and shown as such.
func (l Receiver) Run(ctx context.Context, to Streams) error {
	if u, err := url.Parse(l.Forward); l.Forward != "" &&
		(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return fault.New(fault.Invalid, "--forward: %q is not of the form http://HOST/PATH", l.Forward)
	}
	listener, err := net.Listen("tcp", l.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	fmt.Fprintf(to.Err, "listening on http://%s/ for webhooks\n", listener.Addr())
	srv := &http.Server{Handler: l.Handler(to), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = srv.Shutdown(stop) // we are leaving
	}()
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Handler is the receiver without its listener.
func (l Receiver) Handler(to Streams) http.Handler {
	key := secret.FromText(l.APIKey)
	// A redirect would turn the notification into a GET without a body.
	onward := &http.Client{Timeout: forwardTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, receivedBytesMax))
		if err != nil {
			http.Error(w, "the body ended early", http.StatusBadRequest)
			return
		}
		n, err := webhook.VerifyHeaders(body, webhook.Signed{Header: r.Header, Name: l.Header}, key,
			webhook.Freshness{Now: time.Now(), Max: receivedAgeMax})
		if err != nil {
			fmt.Fprintf(to.Err, "rejected: %v\n", err)
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if l.JSON {
			fmt.Fprintf(to.Out, "%s\n", body)
		} else {
			fmt.Fprintf(to.Out, "%s  %-40s  %s  %s\n", n.DeliveredAt.Format("15:04:05"), n.EventType, n.ResourceID,
				l.outcome(r.Context(), onward, n))
		}
		if l.Forward == "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		status, err := l.forward(r.Context(), onward, r.Header, body)
		if err != nil {
			fmt.Fprintf(to.Err, "forward: %v\n", err)
			status = http.StatusBadGateway
		} else if status < 200 || status > 299 {
			fmt.Fprintf(to.Err, "forward: %s answered %d; the webhook will be redelivered\n", l.Forward, status)
		}
		w.WriteHeader(status)
	})
}

// outcome is what the resource of a notification says, in a line; its URL where it cannot be read. The URL is the
// service's own: the notification's signature covers it.
func (l Receiver) outcome(ctx context.Context, client *http.Client, n webhook.Notification) string {
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, n.ResourceURL, nil)
	if err != nil {
		return n.ResourceURL
	}
	ask.Header.Set("Authorization", "Bearer "+l.APIKey)
	answer, err := client.Do(ask)
	if err != nil {
		return n.ResourceURL
	}
	defer answer.Body.Close()
	var said struct {
		result
		TransactionID string `json:"transaction_id"`
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, answerBytesMax)).Decode(&said)
	if err != nil || answer.StatusCode != http.StatusOK || said.Status == "" {
		return n.ResourceURL
	}
	line := strings.TrimSpace(said.Status + " " + said.TransactionID + " " + money(said.Total, said.Currency))
	if len(said.Errors) > 0 {
		line += ": " + string(said.Errors[0].Code) + " " + said.Errors[0].Message
	}
	return line
}

// forward sends a notification on with its body and signatures as they came.
func (l Receiver) forward(ctx context.Context, client *http.Client, head http.Header, body []byte) (int, error) {
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, l.Forward, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	for _, name := range []string{"Content-Type", webhook.HeaderSignature, webhook.HeaderSignatureNext, l.Header,
		l.Header + "-Next",
		webhook.HeaderStandardID, webhook.HeaderStandardTimestamp, webhook.HeaderStandardSignature} {
		if v := head.Get(name); v != "" {
			out.Header.Set(name, v)
		}
	}
	answer, err := client.Do(out)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, receivedBytesMax)) // only the status counts
	return answer.StatusCode, nil
}
