package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"tributary/internal/fault"
	"tributary/internal/secret"
	"tributary/internal/server"
	"tributary/internal/webhook"
)

type verifyCommand struct {
	APIKey    string        `help:"The client's API key." required:"" placeholder:"KEY" name:"api-key"`
	Signature string        `help:"Value of X-Service-Hmac-SHA256." required:"" placeholder:"HEX"`
	MaxAge    time.Duration `help:"Refuse notifications whose delivered_at is further away; 0 does not look." default:"0s"`
	File      string        `arg:"" optional:"" help:"File with the raw body; default standard input."`
}

// Run verifies one signature: exit code 0 when it is right, 1 when not.
func (v *verifyCommand) Run(c *command) error {
	in := c.in
	if v.File != "" && v.File != "-" {
		f, err := os.Open(v.File)
		if err != nil {
			return fault.New(fault.Invalid, "%v", err)
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, receivedBytesMax))
	if err != nil {
		return err
	}
	n, err := webhook.Verify(body, v.Signature, secret.FromText(v.APIKey), webhook.Freshness{Now: time.Now(), Max: v.MaxAge})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "valid: %s for %s, webhook_id %s\n", n.EventType, n.ResourceID, n.WebhookID)
	return nil
}

const receivedBytesMax = 1 << 20

type listenCommand struct {
	APIKey  string `help:"The client's API key." required:"" placeholder:"KEY" name:"api-key"`
	Listen  string `help:"Address to receive on." default:"127.0.0.1:8085"`
	Forward string `help:"Send every verified notification on, unchanged, to this address." placeholder:"URL"`
	JSON    bool   `help:"Print one JSON object per notification." name:"json"`
}

// Run receives until a signal. What does not verify is refused with 401 and shown as such.
func (l *listenCommand) Run(c *command) error {
	listener, err := net.Listen("tcp", l.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if u, err := url.Parse(l.Forward); l.Forward != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return errors.Join(fault.New(fault.Invalid, "--forward: %q is not of the form http://HOST/PATH", l.Forward), listener.Close())
	}
	fmt.Fprintf(c.err, "listening on http://%s/ for webhooks\n", listener.Addr())
	srv := &http.Server{Handler: l.handler(c), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-c.ctx.Done()
		stop, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		srv.Shutdown(stop) //nolint:errcheck // we are leaving
	}()
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (l *listenCommand) handler(c *command) http.Handler {
	key := secret.FromText(l.APIKey)
	// A redirect would turn the notification into a GET without a body.
	client := &http.Client{Timeout: 15 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, receivedBytesMax))
		if err != nil {
			http.Error(w, "the body ended early", http.StatusBadRequest)
			return
		}
		n, err := webhook.VerifyHeaders(body, r.Header, key, webhook.Freshness{Now: time.Now(), Max: 15 * time.Minute})
		if err != nil {
			fmt.Fprintf(c.err, "refused: %v\n", err)
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if l.JSON {
			fmt.Fprintf(c.out, "%s\n", body)
		} else {
			fmt.Fprintf(c.out, "%s  %-40s  %s  %s\n", n.DeliveredAt.Format("15:04:05"), n.EventType, n.ResourceID, n.ResourceURL)
		}
		if l.Forward == "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		status, err := forward(r.Context(), client, l.Forward, r.Header, body)
		if err != nil {
			fmt.Fprintf(c.err, "forward: %v\n", err)
			status = http.StatusBadGateway
		} else if status < 200 || status > 299 {
			fmt.Fprintf(c.err, "forward: %s answered %d; it is sent again later\n", l.Forward, status)
		}
		w.WriteHeader(status)
	})
}

// forward sends a notification on with its body and signatures as they came.
func forward(ctx context.Context, client *http.Client, to string, head http.Header, body []byte) (int, error) {
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	for _, name := range []string{"Content-Type", webhook.HeaderSignature, webhook.HeaderSignatureNext} {
		if v := head.Get(name); v != "" {
			out.Header.Set(name, v)
		}
	}
	answer, err := client.Do(out)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()                                          //nolint:errcheck // only read
	io.Copy(io.Discard, io.LimitReader(answer.Body, receivedBytesMax)) //nolint:errcheck // only the status counts
	return answer.StatusCode, nil
}

type simulateCommand struct {
	Simulators string `help:"Address of the simulated authorities." default:"127.0.0.1:8090"`
	Data       string `help:"Folder of what they registered." required:"" placeholder:"DIR"`
}

// Run serves the simulators until a signal.
func (s *simulateCommand) Run(c *command) error {
	return server.Simulate(c.ctx, s.Simulators, s.Data, func(url string) {
		fmt.Fprintln(c.out, "ready", url)
	})
}
