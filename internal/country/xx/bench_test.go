package xx_test

import (
	"net/http/httptest"
	"strconv"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/transaction"
)

// open serves a fresh authority and answers the channel to it.
func open(tb testing.TB, pack country.Pack) (country.Channel, *authority.Desk, *country.Atlas) {
	tb.Helper()
	simulators, err := country.NewSimulators(tb.TempDir(), pack)
	if err != nil {
		tb.Fatal(err)
	}
	server := httptest.NewServer(simulators)
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{pack}, Simulators: server.URL})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		atlas.Close()
		server.Close()
		if err := simulators.Close(); err != nil {
			tb.Errorf("closing the simulators: %v", err)
		}
	})
	channel, err := atlas.Channel(pack.Code, false)
	if err != nil {
		tb.Fatal(err)
	}
	desk, _ := simulators.Desk(pack.Code)
	return channel, desk, atlas
}

func BenchmarkPrepare(b *testing.B) {
	channel, _, _ := open(b, world.Reference(transaction.ReferenceCode, country.ByNumber))
	in := draft("A-1")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := channel.Prepare(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSend200(b *testing.B) {
	channel, _, _ := open(b, world.Reference(transaction.ReferenceCode, country.ByNumber))
	batches, next := make([][]country.Filing, 0, 64), 0
	round := func() []country.Filing {
		filings := make([]country.Filing, 200)
		for i := range filings {
			next++
			f, err := channel.Prepare(draft("A-" + strconv.Itoa(next)))
			if err != nil {
				b.Fatal(err)
			}
			filings[i] = f
		}
		return filings
	}
	for b.Loop() {
		b.StopTimer()
		batches = append(batches, round())
		b.StartTimer()
		receipts, err := channel.Send(b.Context(), batches[len(batches)-1], country.Credentials{})
		if err != nil {
			b.Fatal(err)
		}
		if receipts[199].Outcome != country.Accepted {
			b.Fatal(receipts[199])
		}
	}
	b.ReportMetric(200*float64(b.N)/b.Elapsed().Seconds(), "documents/s")
}
