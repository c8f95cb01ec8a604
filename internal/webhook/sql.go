package webhook

const (
	eventsTable = "webhook_events"

	// deliveryColumns are read with each claim. The last one is the event before it
	// in its series, as long as that one's first try is not recorded.
	deliveryColumns = `resource_id, resource_path, tries, rung, last_at, created_at, series IS NOT NULL,
		(SELECT p.webhook_id FROM webhook_events p WHERE p.series = webhook_events.series AND p.seq < webhook_events.seq{AND OPEN} ORDER BY p.seq DESC LIMIT 1)`

	// Every write of a claimed row carries the token of its lease, see lease.Queue.
	heldRow = " WHERE webhook_id = $1 AND lease_token = $2 AND lease_until IS NOT NULL"

	// recordSQL stores the outcome of a try and gives the row up. A redelivery that
	// was asked for meanwhile begins at once.
	recordSQL = `UPDATE webhook_events SET tries = $3, last_status = $4, last_at = $5,
		first_try = COALESCE(CAST($6 AS TEXT), first_try),
		status = CASE WHEN again THEN 'pending' ELSE CAST($7 AS TEXT) END,
		rung = CASE WHEN again THEN 0 ELSE CAST($8 AS BIGINT) END,
		closed_at = CASE WHEN again THEN NULL ELSE CAST($9 AS BIGINT) END,
		due_at = CASE WHEN again THEN CAST($5 AS BIGINT) ELSE CAST($10 AS BIGINT) END,
		series = NULL, again = FALSE, lease_until = NULL, lease_node = NULL` + heldRow

	// postponeSQL gives a row up without a try.
	postponeSQL = `UPDATE webhook_events SET due_at = $3, rung = CASE WHEN again THEN 0 ELSE rung END,
		again = FALSE, lease_until = NULL, lease_node = NULL` + heldRow

	// closeSQL gives a row up whose address is gone.
	closeSQL = `UPDATE webhook_events SET status = 'unsubscribed', closed_at = $3, due_at = NULL,
		series = NULL, again = FALSE, lease_until = NULL, lease_node = NULL` + heldRow

	// The first try of an event was recorded, or will never be made.
	triedSQL = "SELECT count(*) FROM webhook_events WHERE webhook_id = $1 AND series IS NOT NULL"

	eventSQL = "SELECT client_id, event_type, first_try FROM webhook_events WHERE webhook_id = $1"

	// redeliverSQL is one statement, so that a claim in between cannot be overlooked:
	// while a try is under way it only notes that another one is wanted.
	redeliverSQL = `UPDATE webhook_events SET again = (lease_until IS NOT NULL AND lease_until > $2),
		status = CASE WHEN lease_until > $2 THEN status ELSE 'pending' END,
		rung = CASE WHEN lease_until > $2 THEN rung ELSE 0 END,
		closed_at = CASE WHEN lease_until > $2 THEN closed_at END,
		due_at = CASE WHEN lease_until > $2 THEN due_at ELSE $2 END,
		lease_token = CASE WHEN lease_until > $2 THEN lease_token ELSE lease_token + 1 END,
		lease_node = CASE WHEN lease_until > $2 THEN lease_node END,
		lease_until = CASE WHEN lease_until > $2 THEN lease_until END
		WHERE webhook_id = $1`

	triesSQL = "SELECT record FROM webhook_tries WHERE webhook_id = $1 ORDER BY try"

	forgettableSQL = `SELECT webhook_id, coalesce(first_try, '') FROM webhook_events WHERE client_id = $1 AND webhook_id > $2 AND webhook_id < $3 ORDER BY webhook_id LIMIT $4`

	oldTriesSQL = "SELECT webhook_id, try, record FROM webhook_tries WHERE "

	rowColumns = "webhook_id, event_type, resource_id, resource_path, status, tries, due_at, lease_until, last_status, created_at"
)
