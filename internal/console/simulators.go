package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"tributary/internal/fault"
	"tributary/internal/operator"
)

// script is a behaviour of a simulated authority that one click asks for.
type script struct {
	Key, Name, Meaning string
	steps              []map[string]any
}

// scripts end by themselves, so that a demo that was left alone works again.
func scripts() []script {
	return []script{
		{"outage", "Outage", "Does not respond 20 times, then accepts again.",
			[]map[string]any{{"outcome": "unavailable", "times": 20, "on": "any"}}},
		{"reject", "Reject the next", "Rejects the next document.", []map[string]any{{"outcome": "reject", "times": 1}}},
		{"pending", "Decide later", "Receives the next document and decides after 10 s.",
			[]map[string]any{{"outcome": "pending", "times": 1, "delay": "10s"}}},
		{"lost", "Lose the answer", "Registers the next document and closes the connection without answering.",
			[]map[string]any{{"outcome": "drop_answer", "times": 1}}},
		{"slow", "Slow", "Answers the next 5 calls after 5 s.", []map[string]any{{"outcome": "slow", "times": 5, "delay": "5s"}}},
		{"garbage", "Garbage", "Answers the next 3 calls with an HTML page.", []map[string]any{{"outcome": "garbage", "times": 3}}},
		{"duplicate", "Number taken", "Reports that another document has the next number.",
			[]map[string]any{{"outcome": "duplicate", "times": 1}}},
		{"clear", "Accept everything", "Clears the script.", []map[string]any{}},
	}
}

type simulatorRow struct {
	Code, Name    string
	Registrations int
	Steps         []simulatorStep
}

type simulatorStep struct {
	Outcome string `json:"outcome"`
	Times   int    `json:"times"`
	Delay   string `json:"delay"`
	On      string `json:"on"`
}

type simulatorsBody struct {
	Rows    []simulatorRow
	Scripts []script
	Address string
}

func (c *Console) simulators(v *request) (page, error) {
	body := &simulatorsBody{Scripts: scripts(), Address: c.cfg.Simulators}
	p := page{Title: "Simulators", Place: "Simulators", Body: body}
	if c.cfg.Simulators == "" {
		return p, fault.New(fault.NotFound, "No simulated authorities run here.")
	}
	for _, code := range c.cfg.Atlas.Codes() {
		pack, ok := c.cfg.Atlas.Pack(code)
		if !ok || pack.Simulator == nil {
			continue
		}
		row := simulatorRow{Code: code, Name: pack.Name}
		var book struct {
			Count int `json:"count"`
		}
		if err := c.control(v.ctx, http.MethodGet, code+"/registrations", nil, &book); err != nil {
			return p, err
		}
		var rest struct {
			Steps []simulatorStep `json:"steps"`
		}
		if err := c.control(v.ctx, http.MethodGet, code+"/script", nil, &rest); err != nil {
			return p, err
		}
		row.Registrations, row.Steps = book.Count, rest.Steps
		body.Rows = append(body.Rows, row)
	}
	return p, nil
}

func (c *Console) setScript(v *request) (string, error) {
	code := v.r.PathValue("country")
	for _, s := range scripts() {
		if s.Key != v.r.PostFormValue("script") {
			continue
		}
		err := c.dir.do(v, operator.Act{Action: "simulator.scripted", Subject: code}, func() (any, error) {
			return map[string]any{"script": s.Key, "steps": s.steps},
				c.control(v.ctx, http.MethodPut, code+"/script", map[string]any{"steps": s.steps}, nil)
		})
		return Root + "/simulators?notice=scripted", err
	}
	return "", fault.New(fault.Invalid, "Unknown script.")
}

const controlBytesMax = 64 << 20 // registrations are listed whole

// control speaks to the control plane of the simulated authorities.
func (c *Console) control(ctx context.Context, method, path string, in, out any) error {
	code, what, _ := strings.Cut(path, "/")
	at, err := url.JoinPath(c.cfg.Simulators, "_control", url.PathEscape(strings.ToLower(code)), what)
	if err != nil {
		return err
	}
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		return err
	}
	resp, err := c.calls.Do(req)
	if err != nil {
		return fault.New(fault.Unavailable, "The simulated authorities do not respond.").Because(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, controlBytesMax))
	if err != nil {
		return fmt.Errorf("read the control plane's answer: %w", err)
	}
	if resp.StatusCode == http.StatusNotFound {
		return fault.New(fault.NotFound, "There is no simulated authority for %s.", code)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask the control plane for %s: status %d: %.200s", path, resp.StatusCode, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}
