package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/operator"
)

const (
	headsPrefix  = "tributary-audit-heads-"
	headsTimeout = time.Minute
	headsSoonest = 20 * time.Hour // between two heads, where the last one can be read: restarts write no heap of them
)

// headsOutside is where the heads of audit logs are kept: a folder, a store, or
// somebody who listens. A listener cannot be asked for the last one.
type headsOutside struct {
	files *files.Outside
	url   string
	http  *http.Client
}

// noHeads is what --audit-heads says where none are wanted.
const noHeads = "none"

// DefaultHeads is where heads are kept unless somebody says where: in a file
// beside the master key, which whoever owns the database does not have. "": the
// master key is no file.
func DefaultHeads(masterKey string) string {
	path, isFile := strings.CutPrefix(masterKey, "file:")
	if !isFile {
		return ""
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: "file", Path: filepath.Join(filepath.Dir(path), "audit-heads.jsonl")}).String()
}

// headsPlace opens where this node keeps heads. Nobody chose the default: where it
// cannot be written the service goes on without, and says so.
func (s *Server) headsPlace() (*headsOutside, error) {
	if s.cfg.AuditHeads != "" {
		return openHeads(s.cfg.AuditHeads)
	}
	address := DefaultHeads(s.cfg.MasterKey)
	o, err := openHeads(address)
	if err == nil && o != nil {
		err = o.files.Writable()
	}
	if o == nil || err != nil {
		s.cfg.Log.Warn("the heads of the audit logs are kept nowhere; set --audit-heads", "default", address, "error", err)
		return nil, nil
	}
	return o, nil
}

// openHeads opens what --audit-heads names; nil: nothing.
func openHeads(address string) (*headsOutside, error) {
	if address == "" || address == noHeads {
		return nil, nil
	}
	u, err := url.Parse(address)
	if err == nil && (u.Scheme == "https" || u.Scheme == "http" && account.LoopbackName(u.Hostname())) && u.Host != "" {
		return &headsOutside{url: address, http: &http.Client{Timeout: headsTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			}}}, nil
	}
	files, err := files.OpenOutside(address)
	if err != nil {
		return nil, fmt.Errorf("--audit-heads: %w (or https://HOST)", err)
	}
	return &headsOutside{files: files}, nil
}

func (o *headsOutside) last(ctx context.Context) ([]byte, error) {
	if o == nil || o.files == nil {
		return nil, nil
	}
	return o.files.Last(ctx, headsPrefix, audit.HeadsBytesMax)
}

func (o *headsOutside) put(ctx context.Context, at time.Time, node string, text []byte) error {
	if o.files != nil {
		return o.files.Put(ctx, headsPrefix+at.UTC().Format("20060102T150405.000000Z")+"-"+node+".jsonl", text)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/jsonl")
	answer, err := o.http.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("the listener answered %s", answer.Status)
	}
	return err
}

func (o *headsOutside) close() error {
	if o == nil {
		return nil
	}
	if o.files != nil {
		return o.files.Close()
	}
	o.http.CloseIdleConnections()
	return nil
}

// Logs is everything that verifies the audit logs of a database.
type Logs struct {
	DB        *db.DB
	Accounts  *account.Accounts
	Operators *operator.Operators
	Key       *audit.Key
	Keys      account.ServiceKeys // where it is renewed
}

// Against holds the logs, as they were verified, against heads that were kept
// outside and answers every break, by log.
func (l Logs) Against(ctx context.Context, kept []byte, verified ...audit.Verdict) (h audit.Heads, broken map[string]audit.Break, err error) {
	if h, err = l.Key.ReadHeads(kept); err != nil {
		return h, nil, err
	}
	broken = map[string]audit.Break{}
	for _, v := range verified {
		if found := l.Key.After(h, v); found != nil {
			broken[v.Log] = *found
		}
	}
	err = l.DB.Read(ctx, func(r db.Reader) error {
		for _, head := range h.Logs {
			compare := l.Accounts.Against
			if head.Log == operator.AuditScope {
				compare = l.Operators.Against
			}
			found, err := compare(r, head)
			if err != nil {
				return err
			}
			if found != nil {
				broken[head.Log] = *found
			}
		}
		return nil
	})
	return h, broken, err
}

// Heads reads and signs where all logs stand.
func (l Logs) Heads(ctx context.Context) (text []byte, at time.Time, err error) {
	return l.heads(ctx, audit.Heads{})
}

// heads fills in where all logs stand.
func (l Logs) heads(ctx context.Context, h audit.Heads) (text []byte, at time.Time, err error) {
	err = l.DB.Read(ctx, func(r db.Reader) error {
		own, err := l.Operators.Head(r)
		if err != nil {
			return err
		}
		h.Logs, err = l.Accounts.Heads(r)
		h.Logs = append(h.Logs, own)
		h.At = r.Now().UTC()
		return err
	})
	if err != nil {
		return nil, h.At, err
	}
	text, err = l.Key.SignHeads(h)
	return text, h.At, err
}

func (s *Server) logs() Logs {
	return Logs{DB: s.db, Accounts: s.accounts, Operators: s.operators, Key: s.auditKey, Keys: s.serviceKeys()}
}

// checkLogs raises an alert when somebody changed a log, the operators' or a
// client's: by the chain and its key, then by the last heads outside. Only logs
// that hold get new heads.
//
// Failure policy: heads that cannot be written are told and tried again in an
// hour; the service goes on. Every node writes its own: one more never hurts.
func (s *Server) checkLogs(ctx context.Context) error {
	own, operators := s.operators.CheckAudit(ctx)
	all, clients := s.accounts.VerifyAudits(ctx)
	if err := errors.Join(operators, clients); err != nil || s.heads == nil {
		return err
	}
	whole := own.Broken == nil
	for _, v := range all {
		whole = whole && v.Broken == nil
	}
	kept, err := s.heads.last(ctx)
	if err != nil {
		return s.headsTrouble(ctx, err)
	}
	if kept != nil {
		h, broken, err := s.logs().Against(ctx, kept, append(all, own)...)
		if err != nil {
			return errors.Join(err, s.alerts.Raise(ctx, alert.AuditBroken, "heads", err.Error()))
		}
		for log, b := range broken {
			whole = false
			err = errors.Join(err, s.alerts.Raise(ctx, alert.AuditBroken, log,
				fmt.Sprintf("the audit log of %s %s (heads of %s)", log, b, h.At.Format(time.RFC3339))))
		}
		if err != nil || whole && s.db.Now().Sub(h.At) < headsSoonest {
			return err
		}
	}
	if !whole {
		return nil // told already
	}
	text, at, err := s.logs().Heads(ctx)
	if err == nil {
		err = s.heads.put(ctx, at, strings.ToLower(s.db.Node()), text)
	}
	if err != nil {
		return s.headsTrouble(ctx, err)
	}
	return nil
}

func (s *Server) headsTrouble(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(fmt.Errorf("--audit-heads: %w", err),
		s.alerts.Raise(ctx, alert.AuditHeadsFailed, "heads",
			fmt.Sprintf("the heads of the audit logs cannot be exported or read: %v", err)))
}

// Examined is what a verification of all logs found.
type Examined struct {
	Entries  int64    // that verified
	Wrong    []string // what does not hold; empty: all of it does
	Unproven []string // entries for which nobody can vouch
}

// VerifyLogs verifies every log, and against exported heads. The text says
// what does not hold; empty: all of it does.
func (l Logs) VerifyLogs(ctx context.Context, kept ...[]byte) (entries int64, wrong []string, err error) {
	e, err := l.Examine(ctx, kept...)
	return e.Entries, e.Wrong, err
}

// Examine verifies every log by its chain and key, and against exported heads.
func (l Logs) Examine(ctx context.Context, kept ...[]byte) (e Examined, err error) {
	if err := l.Key.Load(ctx); err != nil {
		return e, err
	}
	own, err := l.Operators.CheckAudit(ctx)
	if err != nil {
		return e, err
	}
	all, err := l.Accounts.VerifyAudits(ctx)
	if err != nil {
		return e, err
	}
	for _, v := range append(all, own) {
		e.Entries += v.Entries
		if v.Broken != nil {
			e.Wrong = append(e.Wrong, v.ClientID+" "+v.Broken.String())
		}
		for _, span := range v.Unproven {
			e.Unproven = append(e.Unproven, v.ClientID+": "+span.String())
		}
	}
	for _, text := range kept {
		h, broken, err := l.Against(ctx, text, append(all, own)...)
		if err != nil {
			return e, fault.New(fault.Invalid, "%v", err)
		}
		for log, b := range broken {
			e.Wrong = append(e.Wrong, fmt.Sprintf("%s %s (heads of %s)", log, b, h.At.Format(time.RFC3339)))
		}
	}
	return e, nil
}

// Accept takes logs that differ from the last heads, because a backup was restored:
// the operators' log says who and why, and new heads, signed, say so outside.
//
// Failure policy: logs that do not hold by themselves, by chain and key, are never
// accepted. The note is stored before the heads are written; if those cannot be,
// the command is repeated, and the log has two notes.
func (l Logs) Accept(ctx context.Context, address string, kept [][]byte, by audit.Actor,
	reason string) (broken []string, err error) {
	if reason == "" {
		return nil, fault.New(fault.Invalid, "--reason is required: it is signed with the heads")
	}
	_, wrong, err := l.VerifyLogs(ctx)
	if err != nil {
		return nil, err
	}
	if len(wrong) > 0 {
		return nil, fault.New(fault.Conflict, "the logs do not hold by themselves, which no restore explains: %s",
			strings.Join(wrong, "; "))
	}
	if _, broken, err = l.VerifyLogs(ctx, kept...); err != nil {
		return nil, err
	}
	if len(broken) == 0 {
		return nil, fault.New(fault.Conflict, "the logs fit the exported heads: there is nothing to accept")
	}
	accepted := audit.Acceptance{By: by.Name, Reason: reason, Broken: broken}
	for _, text := range kept {
		h, err := l.Key.ReadHeads(text)
		if err != nil {
			return nil, err
		}
		if h.At.After(accepted.Before) {
			accepted.Before = h.At
		}
	}
	if err := l.Operators.Record(ctx, by, operator.Act{Action: "audit.heads_accepted", Subject: "heads",
		After: accepted}); err != nil {
		return nil, err
	}
	return broken, l.export(ctx, address, "accepted", audit.Heads{Accepted: &accepted})
}

// export writes new heads to where they are kept.
func (l Logs) export(ctx context.Context, address, name string, h audit.Heads) error {
	text, at, err := l.heads(ctx, h)
	if err != nil {
		return err
	}
	o, err := openHeads(address)
	if err != nil {
		return err
	}
	if o == nil {
		return fault.New(fault.Invalid, "--audit-heads is required: where the new heads go")
	}
	return errors.Join(o.put(ctx, at, name, text), o.close())
}

// Renew replaces the audit key: the operators' log says who and why, and new heads,
// signed with the new key, close what the older one could still forge.
//
// Failure policy: logs that do not hold keep their key, for it is evidence. Where
// the command ends before the heads are written it is repeated, and there is one
// more key.
func (l Logs) Renew(ctx context.Context, address string, kept [][]byte, by audit.Actor,
	reason string) (renewed audit.Renewal, err error) {
	switch _, wrong, err := l.VerifyLogs(ctx, kept...); {
	case reason == "":
		return renewed, fault.New(fault.Invalid, "--reason is required: it is signed with the heads")
	case address == "" || address == noHeads:
		return renewed, fault.New(fault.Invalid, "--audit-heads is required: without heads outside, who has the old key can still add to logs")
	case err != nil:
		return renewed, err
	case len(wrong) > 0:
		return renewed, fault.New(fault.Conflict, "the audit logs are broken: %s", strings.Join(wrong, "; "))
	}
	renewed = audit.Renewal{Before: l.Key.PublicKey(), By: by.Name, Reason: reason}
	if err := l.Keys.RenewAudit(ctx); err != nil {
		return renewed, err
	}
	if err := l.Key.Follow(ctx, l.DB); err != nil {
		return renewed, err
	}
	if err := l.Operators.Record(ctx, by, operator.Act{Action: "audit.key_renewed", Subject: "audit key", Before: renewed.Before,
		After: l.Key.PublicKey()}); err != nil {
		return renewed, err
	}
	return renewed, l.export(ctx, address, "renewed", audit.Heads{Renewed: &renewed})
}

// ReadLastHeads reads the newest heads at an address of --audit-heads; nil: there are none.
func ReadLastHeads(ctx context.Context, address string) (text []byte, err error) {
	o, err := openHeads(address)
	if err != nil {
		return nil, err
	}
	if o == nil || o.files == nil {
		return nil, fault.New(fault.Invalid, "--audit-heads: heads are read from file:///FOLDER or s3://BUCKET; give those kept by a listener as files")
	}
	defer func() { err = errors.Join(err, o.close()) }()
	return o.last(ctx)
}
