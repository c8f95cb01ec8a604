package main

import (
	"fmt"
	"os"
	"time"

	"tributary/internal/client"
	"tributary/internal/fault"
	"tributary/internal/server"
)

type verifyCommand struct {
	keyFlags
	Signature string        `help:"Value of X-Service-Hmac-SHA256." required:"" placeholder:"HEX"`
	MaxAge    time.Duration `help:"Reject webhooks whose delivered_at differs by more than this; 0: no check." default:"0s"`
	File      string        `arg:"" optional:"" help:"File with the raw body; default standard input."`
}

// Run verifies one signature: exit code 0 when it is right, 1 when not.
func (v *verifyCommand) Run(c *command) error {
	key, err := v.neededKey()
	if err != nil {
		return err
	}
	in := c.in
	if v.File != "" && v.File != "-" {
		f, err := os.Open(v.File)
		if err != nil {
			return fault.New(fault.Invalid, "%v", err)
		}
		defer func() { _ = f.Close() }() // only read
		in = f
	}
	return client.Verification{APIKey: key.RevealText(), Signature: v.Signature, MaxAge: v.MaxAge}.Run(in, c.out)
}

type listenCommand struct {
	keyFlags
	Header  string `help:"Name of the signature header, if the client has a custom one." placeholder:"NAME" name:"signature-header"`
	Listen  string `help:"Listen address." default:"127.0.0.1:8085" setting:"listen-listen"`
	Forward string `help:"Forward every verified webhook, unchanged, to this URL." placeholder:"URL"`
	JSON    bool   `help:"Print one JSON object per webhook." name:"json"`
}

// Run receives until a signal.
func (l *listenCommand) Run(c *command) error {
	key, err := l.neededKey()
	if err != nil {
		return err
	}
	return client.Receiver{APIKey: key.RevealText(), Header: l.Header, Listen: l.Listen, Forward: l.Forward,
		JSON: l.JSON}.Run(c.ctx, client.Streams{Out: c.out, Err: c.err})
}

type simulateCommand struct {
	Simulators simulatorsAt `help:"URL or listen address of the simulated authorities, for test keys." default:"127.0.0.1:8090"`
	Data       string       `help:"Folder of database, documents, keys and simulated authorities." required:"" placeholder:"DIR"`
}

// Run serves the simulators until a signal.
func (s *simulateCommand) Run(c *command) error {
	return server.Simulate(c.ctx, s.Simulators.address(), s.Data, func(url string) {
		fmt.Fprintln(c.out, "ready", url)
	})
}
