package console

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lease"
	"tributary/internal/ledger"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/operator"
	"tributary/internal/received"
	"tributary/internal/retention"
	"tributary/internal/secret"
)

// roundsShown is how many rounds of retention a page shows.
const roundsShown = 5

// settingPages shows queues, alerts, the audit log and operators.
type settingPages struct {
	cfg   *Config
	now   func() time.Time
	front *front
	dir   *directory
}

type queuesBody struct {
	Depths      []ledger.Depth
	Authorities []ledger.Authority
	Receivers   []receiverRow
	Onboardings lease.Depth
	Lookups     lease.Depth
	Received    lease.Depth
	Tasks       []lease.TaskState
	IndexedTo   time.Time
	Rounds      []retention.Report
	Now         time.Time
	Names       map[string]string
}

func (c *settingPages) queues(v *request) (page, error) {
	body := &queuesBody{Now: c.now(), Names: map[string]string{}}
	p := page{Title: "Queues", Place: "Queues", Body: body}
	var err error
	if body.Depths, err = c.cfg.Ledger.Depths(v.ctx); err != nil {
		return p, err
	}
	if body.Authorities, err = c.cfg.Ledger.Health(v.ctx); err != nil {
		return p, err
	}
	for _, a := range body.Authorities {
		body.Names[a.At.Code] = c.dir.countryName(a.At.Code)
	}
	if body.IndexedTo, err = c.cfg.Ledger.IndexedTo(v.ctx); err != nil {
		return p, err
	}
	all, err := c.dir.receivers(v)
	if err != nil {
		return p, err
	}
	for _, r := range all {
		if r.Pending > 0 {
			body.Receivers = append(body.Receivers, r)
		}
	}
	err = c.cfg.DB.Read(v.ctx, func(r db.Reader) (err error) {
		if body.Onboardings, err = onboarding.Depth(r); err != nil {
			return err
		}
		if body.Received, err = received.Depth(r); err != nil {
			return err
		}
		if body.Lookups, err = lookup.Depth(r); err != nil {
			return err
		}
		if body.Tasks, err = lease.Tasks(r); err != nil {
			return err
		}
		body.Rounds, err = retention.Last(r, roundsShown)
		return err
	})
	return p, err
}

// alertRow is an alert with what it is about, by name and with a way to it.
type alertRow struct {
	alert.Alert
	Meaning     alert.Meaning
	About, Link string
}

// Class is the colour of an alert that is open.
func (a alertRow) Class() string {
	switch {
	case !a.AcknowledgedAt.IsZero():
		return "idle"
	case a.Meaning.Severity == alert.Critical:
		return "bad"
	}
	return "busy"
}

// alertRows reads alerts, latest first.
func (c *directory) alertRows(v *request, f alert.Filter) (rows []alertRow, err error) {
	meanings := map[alert.Name]alert.Meaning{}
	for _, m := range alert.Meanings() {
		meanings[m.Name] = m
	}
	err = c.cfg.DB.Read(v.ctx, func(r db.Reader) error {
		list, err := alert.List(r, f)
		rows = nil
		for _, a := range list {
			row := alertRow{Alert: a, Meaning: meanings[a.Name], About: a.Subject}
			if err := c.nameSubject(r, v, &row); err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return err
	})
	return rows, err
}

// nameSubject finds the name of what an alert is about. What is gone keeps its id.
func (c *directory) nameSubject(r db.Reader, v *request, row *alertRow) error {
	switch row.Meaning.Subject {
	case "operation":
		number, err := ledger.NumberOf(r, row.Subject)
		if number != "" {
			row.About = number
		}
		row.Link = Root + "/transactions/" + url.PathEscape(row.Subject)
		return err
	case "supplier":
		client, id, ok := strings.Cut(row.Subject, "/")
		company, err := c.cfg.Companies.Supplier(r, client, id)
		if !ok || fault.KindOf(err) == fault.NotFound {
			return nil
		}
		row.About, row.Link = cmp.Or(company.LegalName, id), Root+"/suppliers/"+url.PathEscape(client)+"/"+url.PathEscape(id)
		return err
	case "client":
		if profile, err := c.cfg.Accounts.Profile(v.ctx, row.Subject); err == nil {
			row.About, row.Link = cmp.Or(profile.Config.DisplayName, row.Subject), Root+"/clients/"+url.PathEscape(row.Subject)
		}
	case "country":
		code, environment, _ := strings.Cut(row.Subject, " ")
		row.Link = Root + "/transactions?reason=" + url.QueryEscape(string(row.Name)) + "&country=" + url.QueryEscape(code) +
			"&environment=" + url.QueryEscape(environment)
	}
	return nil
}

type alertsBody struct {
	List []alertRow
	All  bool // acknowledged ones as well
}

func (c *settingPages) alerts(v *request) (page, error) {
	body := &alertsBody{All: v.r.URL.Query().Get("all") != ""}
	var err error
	body.List, err = c.dir.alertRows(v, alert.Filter{Open: !body.All, Limit: alertsShown})
	return page{Title: "Alerts", Place: "Alerts", Body: body}, err
}

// acknowledge closes an alert, in one commit with its entry in the log.
func (c *settingPages) acknowledge(v *request) (string, error) {
	id := v.r.PathValue("alert")
	err := c.cfg.DB.Write(v.ctx, func(tx *db.Tx) error {
		if err := alert.Acknowledge(tx, id, v.session.Name); err != nil {
			return err
		}
		return c.cfg.Operators.RecordIn(tx, v.by(),
			operator.Act{Action: "alert.acknowledged", Subject: id, Before: map[string]any{"open": true},
				After: map[string]any{"open": false}})
	})
	return Root + "/alerts?notice=acknowledged", err
}

type auditBody struct {
	Actor, Action, Subject, Client, From, To string

	List    []operator.Entry
	NextAt  string
	Verdict *audit.Verdict
	Clients []account.Client
	Log     []account.Entry // of the client: what its own chain holds
	Faults  []fault.Fault
}

// audit shows who did what, newest first. With verify in the address the chain
// is walked to its first break.
func (c *settingPages) audit(v *request) (page, error) {
	query := v.r.URL.Query()
	body := &auditBody{Actor: query.Get("actor"), Action: query.Get("action"), Subject: query.Get("subject"),
		Client: query.Get("client"), From: query.Get("from"), To: query.Get("to")}
	p := page{Title: "Audit log", Place: "Audit log", Body: body}
	var err error
	if body.Clients, err = c.dir.clientList(v); err != nil {
		return p, err
	}
	f := operator.AuditFilter{Actor: body.Actor, Action: body.Action, Subject: body.Subject, ClientID: body.Client, Limit: 50}
	for name, to := range map[string]*time.Time{"from": &f.From, "to": &f.To} {
		if *to, err = readMoment(query.Get(name)); err != nil {
			body.Faults = append(body.Faults, fault.At(name, fault.FieldNotValid,
				"must be a date or a time, such as 2026-11-15 or 2026-11-15T08:30"))
		}
	}
	if len(body.To) == len(time.DateOnly) {
		f.To = f.To.AddDate(0, 0, 1)
	}
	if f.Before, err = strconv.ParseInt(cmp.Or(query.Get("before"), "0"), 10, 64); err != nil {
		body.Faults = append(body.Faults, fault.At("before", fault.FieldNotValid, "must be a number"))
	}
	if len(body.Faults) > 0 {
		return p, nil
	}
	err = c.cfg.DB.Read(v.ctx, func(r db.Reader) (err error) {
		var next int64
		if body.List, next, err = c.cfg.Operators.Audit(r, f); err != nil {
			return err
		}
		if next > 0 {
			query.Set("before", strconv.FormatInt(next, 10))
			body.NextAt = Root + "/audit?" + query.Encode()
		}
		return c.readClientAudit(r, query, body)
	})
	return p, err
}

func (c *settingPages) readClientAudit(r db.Reader, query url.Values, body *auditBody) (err error) {
	if body.Client != "" {
		if body.Log, err = c.cfg.Accounts.AuditLatest(r, body.Client, 0, 50); err != nil {
			return err
		}
	}
	if query.Get("verify") == "" {
		return nil
	}
	verify := c.cfg.Operators.VerifyAudit
	if body.Client != "" {
		verify = func(r db.Reader) (audit.Verdict, error) { return c.cfg.Accounts.VerifyAudit(r, body.Client) }
	}
	verdict, err := verify(r)
	body.Verdict = &verdict
	return err
}

type operatorsBody struct {
	List     []operator.Operator
	Sessions []operator.Session
	Roles    []operator.Role
	OIDC     bool
}

func (c *settingPages) operators(v *request) (page, error) {
	body := &operatorsBody{Roles: []operator.Role{operator.Viewer, operator.Acting, operator.Admin}, OIDC: c.cfg.OIDC != nil}
	err := c.cfg.DB.Read(v.ctx, func(r db.Reader) (err error) {
		if body.List, err = c.cfg.Operators.List(r); err != nil {
			return err
		}
		body.Sessions, err = c.cfg.Operators.Sessions(r)
		return err
	})
	return page{Title: "Operators", Place: "Operators", Body: body}, err
}

// createOperator makes an operator and shows the password, this once. The
// operators' own slice records it.
func (c *settingPages) createOperator(v *request) error {
	role, err := operator.ParseRole(v.r.PostFormValue("role"))
	if err != nil {
		return err
	}
	in := operator.NewOperator{Name: v.r.PostFormValue("name"), Role: role,
		WithoutPassword: v.r.PostFormValue("with") == "identity"}
	o, password, err := c.cfg.Operators.Create(v.ctx, v.by(), in)
	if err != nil {
		return err
	}
	if in.WithoutPassword {
		v.redirect(Root + "/operators?notice=operator")
		return nil
	}
	return c.front.showOnce(v, "Operator created", "Operators", shown{What: "Password", Subject: o.Name, Secret: password.RevealText(),
		Advice: "Hand it over in person or through a trusted channel. The operator can change it later on the account page.",
		Back:   Root + "/operators"})
}

// changeOperator changes an operator; its slice records it.
func (c *settingPages) changeOperator(v *request) (err error) {
	name := v.r.PathValue("name")
	switch v.r.PathValue("change") {
	case "password":
		password, err := c.cfg.Operators.SetPassword(v.ctx, v.by(), name, secret.Secret{})
		if err != nil {
			return err
		}
		return c.front.showOnce(v, "New password", "Operators",
			shown{What: "Password", Subject: name, Secret: password.RevealText(),
				Advice: "All sessions of this operator have ended.", Back: Root + "/operators"})
	case "role":
		var role operator.Role
		if role, err = operator.ParseRole(v.r.PostFormValue("role")); err == nil {
			_, err = c.cfg.Operators.SetRole(v.ctx, v.by(), name, role)
		}
	case "disable":
		_, err = c.cfg.Operators.Disable(v.ctx, v.by(), name)
	case "unbind":
		_, err = c.cfg.Operators.Unbind(v.ctx, v.by(), name)
	case "reset-mfa":
		_, err = c.cfg.Operators.Reset(v.ctx, v.by(), name)
	case "enable":
		_, err = c.cfg.Operators.Enable(v.ctx, v.by(), name)
	default:
		err = fault.New(fault.NotFound, "Unknown action.")
	}
	if err == nil {
		v.redirect(Root + "/operators?notice=operator")
	}
	return err
}

func (c *settingPages) endSession(v *request) (string, error) {
	return Root + "/operators?notice=ended", c.cfg.Operators.EndSession(v.ctx, v.by(), v.r.PathValue("session"))
}

func (c *settingPages) ownAccount(v *request) (page, error) {
	return page{Title: "Your account", Place: "Your account", Body: v.session}, nil
}

func (c *settingPages) changePassword(v *request) (string, error) {
	form := v.r.PostForm
	if form.Get("new") != form.Get("again") {
		return "", fault.New(fault.Invalid, "The new passwords do not match.")
	}
	err := c.cfg.Operators.ChangePassword(v.ctx, v.session, secret.New([]byte(form.Get("old"))),
		secret.New([]byte(form.Get("new"))))
	return Root + "/account?notice=password", err
}
