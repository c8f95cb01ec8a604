package lease

import (
	"fmt"
	"strings"
)

// dialect is what differs between the engines in claims.
type dialect struct {
	find string // the function that finds a text in another
	// "is one of these", %s is a SELECT of ids: PostgreSQL must be kept from joining the whole table, and skips locked rows
	in   string
	sets bool // many keys in one statement: a round trip is dear, and unnest exists
}

// engined is a database, or a write of one: both know their engine.
type engined interface{ Engine() string }

func dialectOf(e engined) dialect {
	if e.Engine() == "postgres" {
		return dialect{find: "strpos", in: " = ANY(ARRAY(%s FOR UPDATE SKIP LOCKED))", sets: true}
	}
	return dialect{find: "instr", in: " IN (%s)"}
}

const heldRow = " AND lease_token = $3 AND lease_until IS NOT NULL"

func (q *Queue[T]) finishText() string {
	return "UPDATE " + q.Table + " SET due_at = $1, lease_until = NULL, lease_node = NULL WHERE " + q.ID + " = $2" + heldRow
}

func (q *Queue[T]) renewText() string {
	return "UPDATE " + q.Table + " SET due_at = $1, lease_until = $1 WHERE " + q.ID + " = $2" + heldRow
}

// Statements about a set of leases: ids in $2, tokens in $3. A renewal skips rows that are locked.
const (
	renewSetSQL = `update {table} set due_at = $1, lease_until = $1 where {id} = any(array(
		select t.{id} from {table} t join unnest($2::text[], $3::bigint[]) as h(id, token) on t.{id} = h.id and t.lease_token = h.token
		where t.lease_until is not null{t in days} for update of t skip locked)){in days}`
	lostSetSQL = `select h.at from unnest($1::text[], $2::bigint[]) with ordinality as h(id, token, at) where not exists (
		select 1 from {table} t where t.{id} = h.id and t.lease_token = h.token and t.lease_until is not null{t in days})`
)

// setText puts names into a statement about a set of rows, and their days, behind n arguments.
func (q *Queue[T]) setText(text string, days *spans, n int) string {
	return strings.NewReplacer("{t in days}", days.where("t."+q.ID, n), "{in days}", days.where(q.ID, n), "{table}",
		q.Table, "{id}", q.ID).Replace(text)
}

func (q *Queue[T]) holdersText(days *spans) string {
	return "SELECT DISTINCT lease_node FROM " + q.Table + " WHERE lease_node IS NOT NULL AND lease_node <> $1" +
		days.where(q.ID, 1)
}

func (q *Queue[T]) freeText(by dialect, days *spans) string {
	ids := "SELECT " + q.ID + " FROM " + q.Table + " WHERE lease_node = $2" + days.where(q.ID, 2) + " ORDER BY " + q.ID
	return "UPDATE " + q.Table + " SET due_at = $1, lease_until = NULL, lease_node = NULL WHERE " + q.ID +
		fmt.Sprintf(by.in, ids) + days.where(q.ID, 2)
}

func (q *Queue[T]) nextText(days *spans) string {
	return "SELECT min(due_at) FROM " + q.Table + " WHERE due_at > $1" + days.where(q.ID, 1)
}

func (q *Queue[T]) oldestText(by dialect, days *spans) string {
	ids := "SELECT " + q.ID + " FROM " + q.Table + " WHERE due_at <= $3 AND due_at >= $5" + days.where(q.ID, 5) +
		" ORDER BY due_at LIMIT $4"
	return q.claimText(fmt.Sprintf(by.in, ids), days, 5)
}

// keyText claims rows of one key.
func (q *Queue[T]) keyText(by dialect) string {
	ids := "SELECT " + q.ID + " FROM " + q.Table + " WHERE " + q.Key + " = $3 AND due_at <= $4 ORDER BY due_at LIMIT $5"
	return q.claimText(fmt.Sprintf(by.in, ids), nil, 0)
}

// keySetText is keyText with all keys in one statement.
func (q *Queue[T]) keySetText(days *spans) string {
	ids := "SELECT r." + q.ID + " FROM unnest($3::text[], $4::bigint[]) AS k(key, room) CROSS JOIN LATERAL (SELECT " +
		q.ID + " FROM " + q.Table +
		" WHERE " + q.Key + " = k.key AND due_at <= $5" + days.where(q.ID, 5) +
		" ORDER BY due_at LIMIT k.room FOR UPDATE SKIP LOCKED) AS r"
	return q.claimText(" = ANY(ARRAY("+ids+"))", days, 5)
}

// claimText leases the rows with these ids, which are of some days; those are the arguments behind n others.
func (q *Queue[T]) claimText(these string, days *spans, n int) string {
	return "UPDATE " + q.Table +
		" SET due_at = $1, lease_until = $1, lease_token = lease_token + 1, lease_node = $2 WHERE " + q.ID + these +
		days.where(q.ID, n) + " " + strings.ReplaceAll(q.returning(), openMark, days.where("p."+q.ID, n))
}

// openMark in a queue's columns stands where rows of its own table, called p, are
// looked for that are open.
const openMark = "{AND OPEN}"

func (q *Queue[T]) returning() string {
	columns := ""
	if q.Columns != "" {
		columns = ", " + q.Columns
	}
	return "RETURNING " + q.ID + ", " + q.Key + ", lease_token" + columns
}

// fedText claims, or makes, the row of one key.
func (q *Queue[T]) fedText() string {
	return q.feedText(`INSERT INTO {table} ({id}, due_at, lease_until, lease_token, lease_node{parts}) VALUES ($1, $2, $2, 1, $3{values})
		ON CONFLICT ({id}) DO UPDATE SET due_at = $2, lease_until = $2, lease_token = {table}.lease_token + 1, lease_node = $3
		WHERE {table}.due_at IS NULL OR {table}.due_at <= $4 {returning}`)
}

// fedSetText is fedText where nodes compete. A claim never waits for a row: one
// that is locked is being claimed or written by somebody else, and an upsert
// would lock it even where it then changes nothing. Only new rows can make it
// wait, for another node that makes the same one, and all make them in one order.
// A plain comparison of due_at would be planned anew for each claim. What another
// node has worked off since it was found is not claimed.
func (q *Queue[T]) fedSetText() string {
	return q.feedText(`with free as (
			select {id} from {table} where {id} = any($1::text[]) and coalesce(due_at, 0) <= $4
				and exists (select 1 from {source} where {source}.{key} = {table}.{id} and {source}.due_at is not null) order by {id} for update skip locked
		), taken as (
			update {table} set due_at = $2::bigint, lease_until = $2::bigint, lease_token = lease_token + 1, lease_node = $3::text
			where {id} in (select {id} from free) {returning}
		), made as (
			insert into {table} ({id}, due_at, lease_until, lease_token, lease_node{parts})
			select k.key, $2::bigint, $2::bigint, 1, $3::text{cast} from unnest($1::text[]{arrays}) as k(key{parts})
			where not exists (select 1 from {table} where {table}.{id} = k.key) order by k.key
			on conflict do nothing {returning}
		) select * from taken union all select * from made`)
}

// feedText puts a queue's names into a claim with four arguments; the parts of rows that are made are behind those.
func (q *Queue[T]) feedText(text string) string {
	parts, values, arrays, cast := "", "", "", ""
	for i, p := range q.Feed.Parts {
		parts += ", " + p[0]
		values += fmt.Sprintf(", $%d", 5+i)
		arrays += fmt.Sprintf(", $%d::text[]", 5+i)
		cast += ", k." + p[0] + "::" + p[1]
	}
	return strings.NewReplacer("{table}", q.Table, "{id}", q.ID, "{returning}", q.returning(), "{source}", q.Feed.Table,
		"{key}", q.Feed.Column,
		"{parts}", parts, "{values}", values, "{arrays}", arrays, "{cast}", cast).Replace(text)
}

// keyScanSQL goes from key to key: those behind $2, up to $4, and whether they are due and free.
const keyScanSQL = `with recursive k(key, n) as (
		select (select {key} from {source} where due_at is not null and {key} > $2{in days} order by {key} limit 1), 1
		union all
		select (select {source}.{key} from {source} where due_at is not null and {source}.{key} > k.key{in days} order by {source}.{key} limit 1), n + 1
		from k where k.key is not null and n < $3 and ($4 = '' or k.key <= $4)
	) select key, exists (select 1 from {source} where {source}.{key} = k.key and {source}.due_at <= $1{in days}){and free}
	from k where key is not null and ($4 = '' or key <= $4)`

// oldestKeysSQL reads the keys of the oldest rows that are due at $1, $2 of them, due
// from $3 on, and newestKeysSQL those of the newest.
const (
	oldestKeysSQL = dueKeysSQL + " limit $2) as o group by key) as k"
	newestKeysSQL = dueKeysSQL + " desc limit $2) as o group by key) as k"
	dueKeysSQL    = `select key, many, 1 = 1{and free}, first from (select key, count(*) as many, min(due) as first from (
	select {key} as key, due_at as due from {source} where due_at <= $1 and due_at >= $3{in days} order by due_at`
)

// ownersSQL goes from owner to owner, the ones behind $1: {find} and the group's
// character part a key, {past} is what follows that character.
const ownersSQL = `with recursive k(key, n) as (
		select (select {key} from {source} where due_at is not null and {key} > $1 order by {key} limit 1), 1
		union all
		select (select {source}.{key} from {source} where due_at is not null
			and {source}.{key} > substr(k.key, 1, {find}(k.key, '{group}') - 1) || '{past}' order by {source}.{key} limit 1), n + 1
		from k where k.key is not null and n < $2
	) select key from k where key is not null`

// keysText puts a queue's names into a text that looks for keys, and the days in
// which it looks, behind n arguments.
func (q *Queue[T]) keysText(text string, days *spans, n int) string {
	source, key, free := q.Table, q.Key, ""
	if q.Feed != nil {
		source, key = q.Feed.Table, q.Feed.Column
		free = " and not exists (select 1 from " + q.Table + " where " + q.Table + "." + q.ID + " = k.key and " + q.Table +
			".due_at > $1)"
	}
	return strings.NewReplacer("{source}", source, "{key}", key, "{and free}", free, "{in days}",
		days.where(q.ID, n)).Replace(text)
}

// openDaysSQL looks into each partition, by its index of what is open. Between two
// partitions, and behind the last, is the rest.
const (
	partitionEnds = `(select substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \(''([^'']+)''\)') as b
		from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = to_regclass('{table}')) as x where b is not null`
	openDaysSQL = `select d.f, d.t from (select lag(b, 1, '') over (order by b) as f, b as t from ` + partitionEnds + `) as d
		cross join lateral (select 1 from {table} where due_at is not null and {id} >= d.f and {id} < d.t order by due_at limit 1) as o order by d.t`
	lastDaySQL = `select coalesce(max(b), '') from ` + partitionEnds
	beyondSQL  = `select count(*) from (select 1 from {table} where due_at is not null and {id} >= $1 order by due_at limit 1) as o`
)
