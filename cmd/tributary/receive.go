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
	MaxAge    time.Duration `help:"Refuse notifications whose delivered_at is further away; 0 does not look." default:"0s"`
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
	Header  string `help:"Name of the signature header, where the client has one of its own." placeholder:"NAME" name:"signature-header"`
	Listen  string `help:"Address to receive on." default:"127.0.0.1:8085" setting:"listen-listen"`
	Forward string `help:"Send every verified notification on, unchanged, to this address." placeholder:"URL"`
	JSON    bool   `help:"Print one JSON object per notification." name:"json"`
}

// Run receives until a signal.
func (l *listenCommand) Run(c *command) error {
	key, err := l.neededKey()
	if err != nil {
		return err
	}
	return client.Receiver{APIKey: key.RevealText(), Header: l.Header, Listen: l.Listen, Forward: l.Forward, JSON: l.JSON}.Run(c.ctx, client.Streams{Out: c.out, Err: c.err})
}

type simulateCommand struct {
	Simulators simulatorsAt `help:"Address of the simulated authorities: where test keys file, or where they listen." default:"127.0.0.1:8090"`
	Data       string       `help:"Folder of database, documents, keys and simulated authorities." required:"" placeholder:"DIR"`
}

// Run serves the simulators until a signal.
func (s *simulateCommand) Run(c *command) error {
	return server.Simulate(c.ctx, s.Simulators.address(), s.Data, func(url string) {
		fmt.Fprintln(c.out, "ready", url)
	})
}
