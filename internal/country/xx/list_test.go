package xx_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/transaction"
)

// What the authority lists is enough to show a document again of which nothing
// is left here: ids and code are those of its filing.
func TestAListedDocumentHasWhatItsFilingHad(t *testing.T) {
	t.Parallel()
	ch, s := chainedChannel(t)
	if _, begun, err := ch.(country.ChainKeeper).Head(t.Context(), s, country.Credentials{}); err != nil || begun {
		t.Fatalf("the head before the first document: %v %v", begun, err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	filing, err := ch.Prepare(country.Draft{OperationID: "op-1", Supplier: s, Now: at, Location: time.UTC,
		Transaction: transaction.Transaction{Kind: transaction.Invoice, Number: "A-1", Date: at, CurrencyCode: "EUR",
			Items: []transaction.Item{{Number: 1, Name: "Tea"}}},
		Totals: transaction.Totals{Gross: 100, Net: 80, Tax: 20, Lines: []transaction.Line{{Gross: 100, Net: 80}}}})
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := ch.Send(t.Context(), []country.Filing{filing}, country.Credentials{})
	if err != nil || receipts[0].Outcome != country.Accepted {
		t.Fatalf("%+v %v", receipts, err)
	}
	list, err := ch.(country.Register).Registered(t.Context(), s, country.Day{Year: 2026, Month: 3, Day: 1},
		country.Credentials{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	got := list[0]
	if got.Number != "A-1" || got.AuthorityID1 != receipts[0].AuthorityID1 || got.AuthorityID2 != filing.AuthorityID ||
		got.SHA256 != filing.SHA256 ||
		got.QRCode != filing.QRCode || got.Kind != transaction.Invoice || got.Gross == nil || *got.Gross != 100 ||
		got.Reference != "" || got.Cancelled {
		t.Errorf("%+v", got)
	}
	head, begun, err := ch.(country.ChainKeeper).Head(t.Context(), s, country.Credentials{})
	if err != nil || !begun || head.Position != filing.Link.Position || head.Hash != filing.Link.Hash {
		t.Errorf("head %+v %v %v, want %+v", head, begun, err, filing.Link)
	}
}

func chainedChannel(t *testing.T) (country.Channel, country.Supplier) {
	t.Helper()
	pack := world.Reference("XC", country.ByChain)
	sims, err := country.NewSimulators(t.TempDir(), pack)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(sims)
	t.Cleanup(func() {
		srv.Close()
		if err := sims.Close(); err != nil {
			t.Error(err)
		}
	})
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{pack}, Simulators: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(atlas.Close)
	ch, err := atlas.Channel("XC", false)
	if err != nil {
		t.Fatal(err)
	}
	return ch, country.Supplier{ID: "s", TaxNumber: "XC-1"}
}
