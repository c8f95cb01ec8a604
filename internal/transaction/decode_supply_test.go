package transaction_test

import (
	"testing"

	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

func TestHowItIsSuppliedAndPaidIsRead(t *testing.T) {
	body := transactiontest.Edit(t, transactiontest.Typical, map[string]any{
		"period":         map[string]any{"from": "2026-02-01", "to": "2026-02-28"},
		"items.0.period": map[string]any{"from": "2026-02-03", "to": "2026-02-03"},
		"delivery": map[string]any{"name": "Warehouse",
			"address": map[string]any{"country_code": "FR", "city": "Lille"}},
		"payee":              map[string]any{"name": "Factor", "id": "F-1", "iban": "DE89370400440532013000"},
		"payments.0.mandate": map[string]any{"reference": "M-1", "creditor_id": "DE98ZZZ09999999999"},
	})
	tx, warnings, err := transaction.Decode(transaction.Invoice, body)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if *tx.Period != (transaction.Span{From: "2026-02-01", To: "2026-02-28"}) ||
		*tx.Items[0].Period != (transaction.Span{From: "2026-02-03", To: "2026-02-03"}) ||
		tx.Delivery.Name != "Warehouse" || tx.Delivery.Address.City != "Lille" ||
		*tx.Payee != (transaction.Payee{Name: "Factor", ID: "F-1", IBAN: "DE89370400440532013000"}) ||
		*tx.Payments[0].Mandate != (transaction.Mandate{Reference: "M-1", CreditorID: "DE98ZZZ09999999999"}) ||
		!tx.Payments[0].Debited() {
		t.Errorf("%+v", tx)
	}
}

func TestWhatIsWrongWithSupplyAndPayment(t *testing.T) {
	for field, c := range map[string]struct {
		path  string
		value any
		want  string
	}{
		"backwards": {"period", map[string]any{"from": "2026-02-02", "to": "2026-02-01"},
			"validation_match_invalid period.to"},
		"open":    {"items.0.period", map[string]any{"from": "2026-02-02"}, "field_required items.0.period.to"},
		"no day":  {"period", map[string]any{"from": "02/2026", "to": "2026-02-01"}, "field_not_valid period.from"},
		"nowhere": {"delivery", map[string]any{"name": "x"}, "field_required delivery.address"},
		"no country": {"delivery", map[string]any{"address": map[string]any{"city": "x"}},
			"field_required delivery.address.country_code"},
		"nobody": {"payee", map[string]any{"iban": "DE89370400440532013000"}, "field_required payee.name"},
		"wrong digits": {"payee", map[string]any{"name": "x", "iban": "DE88370400440532013000"},
			"field_not_valid payee.iban"},
		"no reference": {"payments.0.mandate", map[string]any{"creditor_id": "x"},
			"field_required payments.0.mandate.reference"},
	} {
		_, _, err := transaction.Decode(transaction.Invoice,
			transactiontest.Edit(t, transactiontest.Typical, map[string]any{c.path: c.value}))
		t.Run(field, func(t *testing.T) { transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), c.want) })
	}
}
