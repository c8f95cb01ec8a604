package pl_test

import (
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// advanceSituations are money before the supply, and the invoice after it.
func advanceSituations(ch country.Channel) []situation {
	full := vat("23", transaction.Included)
	order := []transaction.Item{item("Kuchnia", one(), 1230_00, full),
		item("Montaż", one(), 108_00, vat("8", transaction.Included))}
	advance := func(number string, items ...transaction.Item) country.Draft {
		d := draft(number, polishBuyer(), items...)
		d.Transaction.OrderItems = order
		return d
	}
	zal := advance("S/110", item("Zaliczka", one(), 246_00, full))
	filed := func(kind transaction.Kind, d, of country.Draft) country.Draft {
		f, err := ch.Prepare(of)
		if err != nil {
			panic(err)
		}
		d = correct(kind, d, of)
		d.Original.Report = f.Report
		return d
	}
	settle := func(number string, of country.Draft, items ...transaction.Item) country.Draft {
		d := filed(transaction.Adjustment, draft(number, polishBuyer(), items...), of)
		d.Transaction.Reason = "ROZ"
		return d
	}
	less := func(amount int64) transaction.Item {
		return marked(item("Zaliczka S/110", one(), amount, full), "PL", "ZAL")
	}
	roz := settle("S/111", zal, order[0], order[1], less(-246_00))
	both := settle("S/112", zal, order[0], less(-246_00))
	both.Shares = []country.Share{{Original: *both.Original, Amount: -200_00}, {Original: *both.Original, Amount: -46_00}}
	both.Shares[1].AuthorityID1, both.Shares[1].Transaction.Number = "", "ZAL/2"
	both.Transaction.Shares = []transaction.Share{{TransactionID: "a", Amount: -200_00},
		{TransactionID: "b", Amount: -46_00}}
	astray := both
	astray.Transaction.Shares = []transaction.Share{{TransactionID: "a", Amount: -200_00},
		{TransactionID: "b", Amount: -45_00}}
	paid := func(d country.Draft, payments ...transaction.Payment) country.Draft {
		d.Transaction.Payments = payments
		return d
	}
	wire := func(amount int64, day string) transaction.Payment {
		return transaction.Payment{Type: "TRANSFER", Amount: amount, Date: day}
	}
	last := func(number string, of country.Draft, amount int64) country.Draft {
		d := filed(transaction.Adjustment, advance(number, item("Zaliczka", one(), amount, full)), of)
		d.Transaction.Reason = "ZAL"
		return d
	}
	three := last("S/122", zal, 846_00)
	three.Shares = []country.Share{{Original: *three.Original, Amount: 246_00},
		{Original: *three.Original, Amount: 246_00}}
	three.Shares[1].AuthorityID1, three.Shares[1].Transaction.Number = "", "ZAL/2"
	three.Transaction.Shares = []transaction.Share{{TransactionID: "a", Amount: 246_00},
		{TransactionID: "b", Amount: 246_00}}
	misnamed := three
	misnamed.Shares = []country.Share{{Original: *three.Original, Amount: 200_00},
		{Original: *three.Original, Amount: 292_00}}
	misnamed.Transaction.Shares = []transaction.Share{{TransactionID: "a", Amount: 200_00},
		{TransactionID: "b", Amount: 292_00}}
	short := three
	short.Transaction.Shares = []transaction.Share{{TransactionID: "a", Amount: 246_00},
		{TransactionID: "b", Amount: 245_99}}
	orderless := last("S/124", zal, 1092_00)
	orderless.Transaction.OrderItems = nil
	many := make([]transaction.Payment, 32)
	for i := range many {
		many[i] = wire(int64(i+1), "2025-10-01")
	}
	whole := func(list []transaction.Payment) country.Draft {
		var sum int64
		for _, p := range list {
			sum += p.Amount
		}
		return paid(advance("S/128", item("Zaliczka", one(), sum, full)), list...)
	}
	return []situation{
		{name: "The last of two advances, which covers the whole price", draft: last("S/121", zal, 1092_00),
			files: []string{"<RodzajFaktury>ZAL<", "<P_15>1092.00<", "<Zamowienie><WartoscZamowienia>1338.00<",
				"<FakturaZaliczkowa><NrKSeFFaZaliczkowej>5265877635-20250826-0100001AF629-AF<"},
			not: []string{"DaneFaKorygowanej", "<FaWiersz>", "TypKorekty", "StanPrzedZ"}},
		{name: "The last of three advances", draft: three,
			files: []string{"<P_15>846.00<", "<FakturaZaliczkowa><NrKSeFFaZaliczkowej>",
				"<FakturaZaliczkowa><NrKSeFZN>1</NrKSeFZN><NrFaZaliczkowej>ZAL/2<"}},
		{name: "A last advance that leaves something to pay", draft: last("S/123", zal, 1091_99),
			refuse: "1337.99 of 1338.00", field: "items"},
		{name: "A last advance after others that came to something else", draft: misnamed, refuse: "24600",
			field: "references.0.amount"},
		{name: "A last advance whose references are not the rest", draft: short, refuse: "133800", field: "references"},
		{name: "A last advance without an order", draft: orderless, refuse: "what was ordered", field: "order_items"},
		{name: "A last advance after what was no advance",
			draft: last("S/125", draft("S/1", polishBuyer(), order[0]), 108_00), refuse: "no advance invoice",
			field: "reference_transaction_id"},
		{name: "An advance of two payments of a month",
			draft: paid(zal, wire(200_00, "2025-10-01"), wire(46_00, "2025-10-06")),
			files: []string{"<ZaliczkaCzesciowa><P_6Z>2025-10-01</P_6Z><P_15Z>200.00</P_15Z></ZaliczkaCzesciowa><ZaliczkaCzesciowa><P_6Z>2025-10-06</P_6Z><P_15Z>46.00</P_15Z></ZaliczkaCzesciowa>", "<DataZaplaty>2025-10-06<"}},
		{name: "An advance of payments of which one does not say when",
			draft: paid(zal, wire(200_00, "2025-10-01"), wire(46_00, "")), refuse: "as the others do", field: "payments.1.date"},
		{name: "An advance of money that has not come",
			draft: paid(zal, wire(200_00, "2025-10-01"), wire(46_00, "2025-10-08")), refuse: "not be after",
			field: "payments.1.date"},
		{name: "An advance of 31 payments", draft: whole(many[:31]), files: []string{"<P_15Z>0.31</P_15Z>"}},
		{name: "An advance of 32 payments", draft: whole(many), refuse: "more than 31", field: "payments"},
		{name: "An advance for an order", draft: zal,
			files: []string{"<P_13_1>200.00</P_13_1><P_14_1>46.00</P_14_1><P_15>246.00<", "<RodzajFaktury>ZAL<",
				"<Zamowienie><WartoscZamowienia>1338.00<", "<P_7Z>Kuchnia</P_7Z>",
				"<P_9AZ>1000</P_9AZ><P_11NettoZ>1000.00</P_11NettoZ><P_11VatZ>230.00</P_11VatZ><P_12Z>23<", "<P_12Z>8<"},
			not: []string{"<FaWiersz>", "StanPrzedZ"}},
		{name: "An advance of more than the order", draft: advance("S/113", item("Zaliczka", one(), 1338_01, full)),
			refuse: "1338.00", field: "items"},
		{name: "An advance at a price without tax",
			draft: advance("S/114", item("Zaliczka", one(), 100_00, vat("23", transaction.Added))), refuse: "INCLUDED",
			field: "items.0.tax_breakdowns.0.application_mode"},
		{name: "The invoice after an advance", draft: roz,
			files: []string{"<P_13_1>800.00</P_13_1><P_14_1>184.00</P_14_1><P_13_2>100.00</P_13_2>", "<P_15>1092.00<",
				"<RodzajFaktury>ROZ<",
				"<FakturaZaliczkowa><NrKSeFFaZaliczkowej>5265877635-20250826-0100001AF629-AF<", "<P_7>Kuchnia<",
				"<P_11A>1230.00<"}, not: []string{"DaneFaKorygowanej", "<P_7>Zaliczka", "TypKorekty"}},
		{name: "The invoice after two advances", draft: both,
			files: []string{"<FakturaZaliczkowa><NrKSeFFaZaliczkowej>",
				"<FakturaZaliczkowa><NrKSeFZN>1</NrKSeFZN><NrFaZaliczkowej>ZAL/2<", "<P_15>984.00<"}},
		{name: "An invoice after advances that deducts something else", draft: astray, refuse: "-24600", field: "references"},
		{name: "An invoice after an advance that deducts nothing", draft: settle("S/115", zal, order[0]),
			refuse: "{PL, ZAL}", field: "items"},
		{name: "An invoice after what was no advance",
			draft:  settle("S/116", draft("S/1", polishBuyer(), order[0]), order[0], less(-246_00)),
			refuse: "no advance invoice", field: "reference_transaction_id"},
		{name: "An advance is given back", draft: filed(transaction.Credit, zal, zal),
			files: []string{"<RodzajFaktury>KOR_ZAL<", "<P_15>-246.00<", "<P_15ZK>246.00<", "<StanPrzedZ>1<"},
			not:   []string{"<FaWiersz>"}},
		{name: "The invoice after an advance is corrected",
			draft: filed(transaction.Adjustment, draft("S/117", polishBuyer(), item("Rabat", one(), -12_30, full)), roz),
			files: []string{"<RodzajFaktury>KOR_ROZ<", "<P_15>-12.30<", "<P_15ZK>1092.00<", "<P_7>Rabat<"}},
	}
}

// Advances, settlements and corrections of several are taken by KSeF's double, and
// each is found again by its own type after its answer was lost.
func TestAdvancesAndTheirKinAreTaken(t *testing.T) {
	m := newMinistry(t)
	kinds := map[string]bool{}
	list := append(advanceSituations(m.channel), collectiveSituations()...)
	for _, s := range append(list, thirdSituations()...) {
		if s.refuse != "" {
			continue
		}
		d := s.draft
		d.Transaction.Date, d.Now = m.clock(), m.clock()
		f := m.prepare(d)
		r, err := m.sendFiling(f, token())
		if err != nil || r.Outcome != country.Accepted {
			t.Errorf("%s: %+v %v", s.name, r, err)
		}
		_, kind, _ := strings.Cut(string(f.Report), "<RodzajFaktury>")
		kind, _, _ = strings.Cut(kind, "<")
		if kinds[kind] {
			continue
		}
		kinds[kind] = true
		m.reconnect()
		if found, err := m.channel.Find(t.Context(), f, token()); err != nil || found.Outcome != country.Accepted ||
			found.AuthorityID1 != r.AuthorityID1 {
			t.Errorf("%s of type %s is not found: %+v %v", s.name, kind, found, err)
		}
	}
	for _, kind := range []string{"VAT", "KOR", "ZAL", "ROZ", "KOR_ZAL", "KOR_ROZ"} {
		if !kinds[kind] {
			t.Errorf("nothing of type %s was asked for", kind)
		}
	}
}
