package inbox

import (
	"encoding/json"
	"fmt"

	"tributary/internal/country"
	"tributary/internal/db"
)

// Said lists what authorities told us by themselves about operations, in the
// order in which it came.
func Said(r db.Reader, d *db.DB, operations []string) (map[string][]country.Receipt, error) {
	said := map[string][]country.Receipt{}
	rows, err := r.Query("SELECT operation_id, receipt FROM inbox_messages WHERE "+d.In("operation_id", "$1")+
		" ORDER BY message_id", db.Strings(operations))
	if err != nil {
		return nil, fmt.Errorf("read received messages: %w", err)
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id, text string
		if err := scan(&id, &text); err != nil {
			return err
		}
		var k kept
		if err := json.Unmarshal([]byte(text), &k); err != nil {
			return fmt.Errorf("read a message about %s: %w", id, err)
		}
		said[id] = append(said[id], k.Receipt)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read received messages: %w", err)
	}
	return said, nil
}
