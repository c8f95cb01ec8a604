package onboarding

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/ids"
)

// What the operator sees: companies of all clients.

// AnyFilter narrows the operator's list. Zero members do not narrow.
type AnyFilter struct {
	ClientID     string
	Country      string    // upper case
	Text         string    // a tax number, external_id or company id, as a whole
	OrIDs        []string  // with Text: these companies besides
	EndingBefore time.Time // only those whose certificate ends before; the list is then ordered by that end
	Limit        int       // 1 to 100; 0: 20
	Cursor       string
}

// AnyCompany is a company with whose it is.
type AnyCompany struct {
	ClientID string
	Live     bool
	Company
}

// anySelect has the columns of companySelect, with the client.
const anySelect = `SELECT c.client_id, c.company_id, c.live, c.profile, c.created_at, c.updated_at, k.login, k.subject, k.fingerprint, k.expires_at `

const (
	byAge = anySelect + `FROM companies c LEFT JOIN company_credentials k ON k.client_id = c.client_id AND k.company_id = c.company_id
		WHERE (c.created_at, c.company_id) < ($1, $2)`
	byAgeOrder = " ORDER BY c.created_at DESC, c.company_id DESC LIMIT "
	byEnd      = anySelect + `FROM company_credentials k JOIN companies c ON c.client_id = k.client_id AND c.company_id = k.company_id
		WHERE k.expires_at IS NOT NULL AND (k.expires_at, k.company_id) > ($1, $2) AND k.expires_at < $3`
	byEndOrder = " ORDER BY k.expires_at, k.company_id LIMIT "
)

// ListAny answers a page of the companies of all clients, newest first or by
// the end of their certificates, and the cursor of the next page.
func (c *Companies) ListAny(ctx context.Context, f AnyFilter) (page []AnyCompany, next string, err error) {
	var from ids.Cursor
	if f.Limit, from, err = ids.Page(f.Limit, pageDefault, pageMax, f.Cursor); err != nil {
		return nil, "", err
	}
	type row struct {
		clientID string
		storedCompany
	}
	var rows []row
	err = c.db.Read(ctx, func(r db.Reader) error {
		text, args, err := f.query(r, from)
		if err != nil {
			return err
		}
		rows, err = db.Collect(r, func(scan func(...any) error) (w row, err error) {
			w.storedCompany, err = scanCompany(func(dest ...any) error { return scan(append([]any{&w.clientID}, dest...)...) })
			return w, err
		}, text, args...)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list companies of all clients: %w", err)
	}
	if len(rows) > f.Limit {
		rows = rows[:f.Limit]
		last := rows[f.Limit-1].storedCompany
		at := ids.Cursor{At: last.createdAt, ID: last.id}
		if !f.EndingBefore.IsZero() {
			at.At = *last.expiresAt // the cursor goes by the order of the list
		}
		next = at.String()
	}
	for _, w := range rows {
		page = append(page, AnyCompany{ClientID: w.clientID, Live: w.live, Company: c.show(w.storedCompany)})
	}
	return page, next, nil
}

func (f AnyFilter) query(r db.Reader, from ids.Cursor) (string, []any, error) {
	text, order, args := byAge, byAgeOrder, []any{from.At, from.ID}
	if !f.EndingBefore.IsZero() {
		if f.Cursor == "" {
			args[0] = int64(math.MinInt64)
		}
		text, order, args = byEnd, byEndOrder, append(args, db.Micros(f.EndingBefore))
	}
	add := func(condition string, value any) {
		args = append(args, value)
		text += " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	if f.ClientID != "" {
		add("c.client_id =", f.ClientID)
	}
	if f.Country != "" {
		add("c.country =", f.Country)
	}
	if f.Text != "" {
		ids, err := named(r, f.Text, pageMax)
		if err != nil {
			return "", nil, err
		}
		var in []string
		for _, id := range append(ids, f.OrIDs...) {
			args = append(args, id)
			in = append(in, "$"+strconv.Itoa(len(args)))
		}
		if len(in) == 0 {
			in = []string{"''"} // nobody
		}
		text += " AND c.company_id IN (" + strings.Join(in, ", ") + ")"
	}
	return text + order + strconv.Itoa(f.Limit+1), args, nil
}

// Named answers the ids of companies of any client that a text may mean: a tax
// number, an external_id or a company's own id.
func (c *Companies) Named(r db.Reader, text string, limit int) ([]string, error) {
	return named(r, text, limit)
}

func named(r db.Reader, text string, limit int) ([]string, error) {
	var ids []string
	for _, q := range []struct{ column, value string }{
		{"tax_key", text}, {"tax_key", plainTaxNumber(text)}, {"tax_key", withoutCountry(plainTaxNumber(text))},
		{"external_id", text}, {"company_id", strings.ToLower(text)},
	} {
		if q.value == "" {
			continue
		}
		some, err := db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) },
			"SELECT company_id FROM companies WHERE "+q.column+" = $1 LIMIT "+strconv.Itoa(limit), q.value)
		if err != nil {
			return nil, fmt.Errorf("search companies: %w", err)
		}
		ids = append(ids, some...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(len(ids), limit)], nil
}

// plainTaxNumber is a tax number as people write it, without what its normal
// form leaves out.
func plainTaxNumber(text string) string {
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "", ".", "", "/", "").Replace(text))
}

// withoutCountry drops the letters of a country in front of a number; the
// normal form of most numbers has none. Empty where there are none.
func withoutCountry(number string) string {
	letter := func(c byte) bool { return c >= 'A' && c <= 'Z' }
	if len(number) < 4 || !letter(number[0]) || !letter(number[1]) {
		return ""
	}
	return number[2:]
}

// Owned is a company as packs see it, with whose it is.
type Owned struct {
	ClientID string
	Live     bool
	Supplier country.Supplier
}

// owned reads a row of client_id, company_id, live and profile.
func (c *Companies) owned(scan func(...any) error) (o Owned, err error) {
	var id, text string
	var p profile
	if err := scan(&o.ClientID, &id, &o.Live, &text); err != nil {
		return o, err
	}
	err = decodeProfile(text, &p)
	o.Supplier = c.supplier(id, &p)
	return o, err
}

// Suppliers lists companies of a country of all clients, closed ones too, behind
// the one that is named.
func (c *Companies) Suppliers(ctx context.Context, code string, after country.Mailbox, limit int) (list []Owned, err error) {
	err = c.db.Read(ctx, func(r db.Reader) error {
		list, err = db.Collect(r, c.owned, "SELECT client_id, company_id, live, profile FROM companies WHERE country = $1 AND (client_id, company_id) > ($2, $3) ORDER BY client_id, company_id LIMIT $4",
			code, after.Scope, after.SupplierID, limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list companies of %s: %w", code, err)
	}
	return list, nil
}
