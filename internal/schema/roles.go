package schema

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// Roles are those of a PostgreSQL database whose owner does not serve.
//
// Serve connects: it reads and writes rows of all clients, because a commit
// holds those of many, but it changes no schema and nothing in the logs. Read
// is what it becomes for the time of a read for a client: see [db.ForClient].
//
// Rights are taken away and given anew in one transaction by each migration, so
// that what an older version gave does not linger, and the roles are stored, so
// that a forgotten flag does not break the next version. Several may serve side by
// side, which is how a password is changed without a pause; [Drop] ends one. What the service asks for
// itself while it answers a client says so ([db.AsService]); documents opened by a
// signed address are read as the service, because the address is the proof. Why
// there are three: docs/decisions/0010.
type Roles struct {
	Serve    string
	Read     string        // default: Serve and _read
	Password secret.Secret // of Serve; zero leaves it as it is
}

// appendOnly are the logs: rows are added and read.
const appendOnly = "account_audit, operator_audit, lifecycle"

// headed is the head of the operators' log, which its entries move: nobody else
// does. That of a client's log stands in the client's row, of which who serves
// changes clientColumns.
const (
	headed        = "operator_audit_head"
	clientColumns = "config, updated_at, version, logo"
)

// ownerOnly are what migrations know about themselves.
const ownerOnly = "schema_version, schema_begun, schema_roles, partitioned"

// functions are what the serving role may call with the owner's rights.
const functions = "forget_lifecycle(TEXT), forget_records(TEXT, TEXT), make_partition(TEXT, BIGINT, BIGINT), " +
	"drop_partition(TEXT, BIGINT)"

// visible says which of a client's rows of a table a read for it may see. A
// table that is not listed is closed to such reads: a new one is opened here,
// with its rule, or the API's first look at it fails loudly.
type visible struct {
	columns string // "": all
	rows    string // condition of the policy; "": rows belong to nobody
}

const (
	ofClient = "client_id = (SELECT current_setting('" + db.ClientSetting + "', true))"
	// ofAnyone is every client's. The serving role, a member of the reading one, does not pass by it.
	ofAnyone = "coalesce((SELECT current_setting('" + db.ClientSetting + "', true)), '') <> ''"
)

// through is the rule of rows that hang on one of another table, which has a rule of its own.
func through(parent, key string) string {
	return "EXISTS (SELECT 1 FROM " + parent + " parent WHERE parent." + key + " = {table}." + key + ")"
}

// clientTables are what clients' reads may see. Sealed keys and credentials are not among it.
func clientTables() map[string]visible {
	ofOperation, ofLookup := through("operations", "operation_id"), through("lookups", "lookup_id")
	return map[string]visible{
		"transactions":        {rows: ofClient},
		"operations":          {rows: ofClient},
		"bodies":              {rows: ofOperation},
		"filings":             {rows: ofOperation},
		"retired_operations":  {rows: ofOperation},
		"corrections":         {rows: ofClient},
		"lifecycle":           {rows: ofClient},
		"attachments":         {rows: ofClient},
		"lanes":               {rows: ofClient},
		"supplier_holds":      {rows: ofClient},
		"periods":             {rows: ofClient},
		"period_entries":      {rows: ofOperation},
		"period_changes":      {rows: ofOperation},
		"period_documents":    {rows: ofOperation},
		"number_series":       {rows: ofClient},
		"series_counters":     {rows: through("number_series", "series_id")},
		"series_gaps":         {rows: through("number_series", "series_id")},
		"drawn_numbers":       {rows: ofClient},
		"companies":           {rows: ofClient},
		"company_logos":       {rows: ofClient},
		"company_credentials": {rows: ofClient, columns: "client_id, company_id, login, subject, fingerprint, expires_at, grant_id"},
		"authority_grants":    {rows: ofClient, columns: "client_id, grant_id, usable_until, ends_at, renewing_at, version"},
		"onboarding_jobs": {rows: ofClient,
			columns: "job_id, client_id, company_id, external_id, kind, status, country, errors, created_at, updated_at"},
		"onboarding_visits": {rows: ofClient,
			columns: "job_id, client_id, company_id, country, live, address, created_at, expires_at, used_at"},
		"lookups":             {rows: ofClient},
		"received":            {rows: ofClient},
		"received_references": {rows: ofClient},
		"responses":           {rows: ofClient},
		"lookup_entries":      {rows: ofLookup},
		"lookup_answers":      {rows: ofLookup},
		"webhook_events":      {rows: ofClient},
		"webhook_tries":       {rows: through("webhook_events", "webhook_id")},
		"intake":              {rows: ofAnyone}, // its one row shows who reads that the policies are theirs: see [Shows]
		"restorations":        {},
		"authority_breakers":  {},
	}
}

// Names of the policies.
const (
	policyServe = "tributary_serve"
	policyRead  = "tributary_client"
)

// Grant makes the roles where they are missing and gives them their rights, no
// more. It may be repeated, and belongs to whoever owns the tables. From then on
// every Migrate gives them what it adds.
//
// Failure policy: rights change in one transaction. A table's policies are made
// before its rows are closed to others, so that whoever serves goes on.
func Grant(ctx context.Context, d *db.DB, r Roles) error {
	if d.Engine() != "postgres" {
		return fault.New(fault.Invalid, "roles belong to PostgreSQL: a SQLite file has one user")
	}
	if r.Read == "" {
		r.Read = r.Serve + "_read"
	}
	if r.Serve == r.Read {
		return fault.New(fault.Invalid, "the role that serves and the one that reads for clients must be two")
	}
	ctx, cancel := context.WithTimeout(ctx, migrateFor)
	defer cancel()
	s, err := openPostgres(ctx, d)
	if err != nil {
		return fmt.Errorf("wait for other nodes that migrate: %w", err)
	}
	defer s.close()
	if err := s.makeRoles(ctx, r); err != nil {
		return err
	}
	remember := fmt.Sprintf(
		"INSERT INTO schema_roles (serve, read) VALUES ('%[1]s', '%[2]s') ON CONFLICT (serve) DO UPDATE SET read = '%[2]s'",
		quoted(r.Serve), quoted(r.Read))
	if err := s.exec(ctx, remember); err != nil {
		return fmt.Errorf("remember the roles: %w", err)
	}
	return s.grantAgain(ctx)
}

// makeRoles makes roles that are missing, and refuses those that no wall would hold.
func (s *pgSession) makeRoles(ctx context.Context, r Roles) error {
	for _, role := range []struct{ name, kind string }{{r.Serve, "LOGIN"}, {r.Read, "NOLOGIN"}} {
		var there bool
		if err := s.conn.QueryRow(ctx, "SELECT count(*) > 0 FROM pg_roles WHERE rolname = $1", role.name).Scan(&there); err != nil {
			return fmt.Errorf("look for role %s: %w", role.name, err)
		}
		if there {
			continue
		}
		err := s.run(ctx, "CREATE ROLE "+ident(role.name)+" "+role.kind)
		// by another database's migration meanwhile
		if state := db.SQLState(err); err != nil && state != db.DuplicateObject && state != db.UniqueViolation {
			return fmt.Errorf("make role %s (or let somebody who may do it: CREATE ROLE %s %s): %w", role.name,
				ident(role.name), role.kind, err)
		}
	}
	var strong string
	err := s.conn.QueryRow(ctx, `SELECT coalesce(string_agg(rolname, ', '), '') FROM pg_roles WHERE rolname IN ($1, $2) AND (rolsuper OR rolbypassrls
		OR pg_has_role(oid, (SELECT relowner FROM pg_class WHERE oid = to_regclass('operations')), 'MEMBER') OR rolname = $2 AND pg_has_role(oid, $1, 'MEMBER'))`, r.Serve, r.Read).Scan(&strong)
	if err != nil {
		return fmt.Errorf("look at what the roles may do already: %w", err)
	}
	if strong != "" {
		return fault.New(fault.Invalid,
			"role %s is a superuser, bypasses row security, or is a member of the owner of the tables: nothing would be kept from it", strong)
	}
	if r.Password.IsZero() {
		return nil
	}
	verifier, err := scramVerifier(r.Password.RevealText())
	if err == nil {
		err = s.run(ctx, "ALTER ROLE "+ident(r.Serve)+" PASSWORD '"+verifier+"'")
	}
	if err != nil {
		return fmt.Errorf("set the password of role %s: %w", r.Serve, err)
	}
	return nil
}

// grantAgain gives roles that are known what a migration has added.
func (s *pgSession) grantAgain(ctx context.Context) error {
	var known bool
	if err := s.conn.QueryRow(ctx, "SELECT to_regclass('schema_roles') IS NOT NULL").Scan(&known); err != nil || !known {
		return err // a test migrates up to an older version
	}
	all, err := s.standing(ctx)
	if err != nil || len(all) == 0 {
		return err // there are none, or we are not the owner and have added nothing
	}
	return s.grant(ctx, all)
}

// standing are the remembered roles that exist, if the tables are ours.
func (s *pgSession) standing(ctx context.Context) ([]Roles, error) {
	rows, err := s.conn.Query(ctx, `SELECT serve, read FROM schema_roles WHERE pg_has_role((SELECT relowner FROM pg_class WHERE oid = to_regclass('operations')), 'MEMBER')
		AND (SELECT count(*) FROM pg_roles WHERE rolname IN (serve, read)) = 2 ORDER BY serve`)
	if err != nil {
		return nil, fmt.Errorf("read the roles: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Roles, err error) { return r, row.Scan(&r.Serve, &r.Read) })
}

// grant gives all serving roles their rights: while one takes over from another, both serve.
func (s *pgSession) grant(ctx context.Context, all []Roles) error {
	tables, err := s.tables(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if err := s.join(ctx, r); err != nil {
			return err
		}
		if err := s.exec(ctx, grantScript(r, tables)); err != nil {
			return fmt.Errorf("give the roles their rights: %w", err)
		}
	}
	for table, v := range clientTables() {
		if err := s.bind(ctx, all, table, v); err != nil {
			return fmt.Errorf("bind %s: %w", table, err)
		}
	}
	for _, r := range all {
		var schema string
		var creates bool
		if err := s.conn.QueryRow(ctx, "SELECT current_schema(), has_schema_privilege($1, current_schema(), 'CREATE')",
			r.Serve).Scan(&schema, &creates); err != nil {
			return fmt.Errorf("look whether %s could change the schema: %w", r.Serve, err)
		}
		if creates {
			return fault.New(fault.Invalid,
				"role %s could still make tables: have the owner of the schema run REVOKE CREATE ON SCHEMA %s FROM PUBLIC",
				r.Serve, ident(schema))
		}
	}
	return s.d.FindRoles(ctx)
}

// tables are those that belong to us.
func (s *pgSession) tables(ctx context.Context) ([]string, error) {
	return s.names(ctx, `SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND pg_has_role(c.relowner, 'USAGE')`)
}

// join lets the serving role become the reading one, unless somebody did that already: an owner who made neither of
// them may not.
func (s *pgSession) join(ctx context.Context, r Roles) error {
	var joined bool
	if err := s.conn.QueryRow(ctx, "SELECT pg_has_role($1::name, $2::name, "+db.Becomes+")", r.Serve,
		r.Read).Scan(&joined); err != nil {
		return fmt.Errorf("look whether %s may become %s: %w", r.Serve, r.Read, err)
	}
	if joined {
		return nil
	}
	if err := s.run(ctx, "GRANT "+ident(r.Read)+" TO "+ident(r.Serve)); err != nil {
		return fmt.Errorf("let %s become %s: %w", r.Serve, r.Read, err)
	}
	return nil
}

func (s *pgSession) names(ctx context.Context, sql string) ([]string, error) {
	rows, err := s.conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// grantScript takes all rights away and gives those that are due: in one
// transaction nobody sees the moment in between.
func grantScript(r Roles, tables []string) string {
	serve, read := ident(r.Serve), ident(r.Read)
	list := listed(tables)
	script := []string{
		"DO $$ BEGIN EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC, " + quoted(serve) + ", " + quoted(read) +
			"', current_schema()); " +
			"EXECUTE format('GRANT USAGE ON SCHEMA %I TO " + quoted(serve) + ", " + quoted(read) + "', current_schema()); " +
			"EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO " + quoted(serve) + "', current_schema()); " +
			"EXECUTE format('GRANT CONNECT ON DATABASE %I TO " + quoted(serve) + "', current_database()); END $$",
		"REVOKE ALL ON " + list + " FROM " + serve + ", " + read,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON " + list + " TO " + serve,
		"REVOKE UPDATE, DELETE ON " + appendOnly + ", bodies FROM " + serve,
		"REVOKE INSERT, UPDATE, DELETE ON " + headed + " FROM " + serve,
		"REVOKE UPDATE ON clients FROM " + serve,
		"GRANT UPDATE (" + clientColumns + ") ON clients TO " + serve,
		"GRANT EXECUTE ON FUNCTION " + functions + " TO " + serve,
	}
	for _, name := range strings.Split(ownerOnly, ", ") {
		if strings.Contains(", "+list+", ", ", "+ident(name)+", ") {
			script = append(script, "REVOKE INSERT, UPDATE, DELETE ON "+name+" FROM "+serve)
		}
	}
	for table, v := range clientTables() {
		columns := ""
		if v.columns != "" {
			columns = " (" + v.columns + ")"
		}
		script = append(script, "GRANT SELECT"+columns+" ON "+table+" TO "+read)
	}
	return strings.Join(script, ";\n")
}

// bind makes the policies of a table, unless they stand already: changing them
// needs the table for a moment, and a migration without news should need nothing.
func (s *pgSession) bind(ctx context.Context, all []Roles, table string, v visible) error {
	if v.rows == "" {
		return nil
	}
	rule := strings.ReplaceAll(v.rows, "{table}", table)
	var serve, read []string
	for _, r := range all {
		serve = append(serve, r.Serve)
		if !slices.Contains(read, r.Read) { // two may share one
			read = append(read, r.Read)
		}
	}
	mark := strings.Join([]string{strings.Join(serve, " "), strings.Join(read, " "), rule}, " | ")
	var standing bool
	err := s.conn.QueryRow(ctx, `SELECT coalesce(bool_and(c.relrowsecurity AND obj_description(p.oid, 'pg_policy') = $2), false)
		FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid WHERE c.oid = to_regclass($1) AND p.polname = $3`, table, mark, policyRead).Scan(&standing)
	if err != nil || standing {
		return err
	}
	return s.exec(ctx, strings.Join([]string{
		"DROP POLICY IF EXISTS " + policyServe + " ON " + table,
		"DROP POLICY IF EXISTS " + policyRead + " ON " + table,
		"CREATE POLICY " + policyServe + " ON " + table + " TO " + listed(serve) + " USING (true) WITH CHECK (true)",
		"CREATE POLICY " + policyRead + " ON " + table + " FOR SELECT TO " + listed(read) + " USING (" + rule + ")",
		"COMMENT ON POLICY " + policyRead + " ON " + table + " IS '" + quoted(mark) + "'",
		"ALTER TABLE " + table + " ENABLE ROW LEVEL SECURITY",
	}, ";\n"))
}

// Rights are what the role that connects may do.
type Rights struct {
	Role  string
	Owner bool   // it owns the tables, or may become who does
	Read  string // the role with which clients read; "": the same
}

// RightsOf looks at the rights of a connection; zero on SQLite.
func RightsOf(ctx context.Context, d *db.DB) (s Rights, err error) {
	if d.Engine() != "postgres" {
		return s, nil
	}
	err = d.Read(ctx, func(r db.Reader) error {
		return r.Row("SELECT current_user::text, pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = to_regclass('operations')").Scan(&s.Role, &s.Owner)
	})
	if err != nil {
		return s, fmt.Errorf("look at the rights of the database's role: %w", err)
	}
	s.Read = d.ReadRole()
	return s, nil
}

// listed are names within a statement.
func listed(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = ident(name)
	}
	return strings.Join(all, ", ")
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// quoted is a text within single quotes, for names that are ours or the operator's.
func quoted(text string) string { return strings.ReplaceAll(text, "'", "''") }

const scramRounds = 4096 // what PostgreSQL itself takes

// scramVerifier is what the server keeps of a password (RFC 5802, section 3): the
// password itself would stand in its log.
func scramVerifier(password string) (string, error) {
	for _, c := range []byte(password) {
		if c < ' ' || c > '~' {
			return "", fault.New(fault.Invalid, "the password must be printable ASCII")
		}
	}
	salt := make([]byte, 16)
	rand.Read(salt) // never fails: the runtime ends the program instead
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramRounds, sha256.Size)
	if err != nil {
		return "", err
	}
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(text)) // a hash never fails
		return h.Sum(nil)
	}
	stored := sha256.Sum256(mac("Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", scramRounds, text(salt), text(stored[:]), text(mac("Server Key"))), nil
}
