package sdi

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
)

var pecOfSdI = regexp.MustCompile(`(?i)^sdi[0-9]{2}@pec\.fatturapa\.it$`)

// transmission are the checks of DatiTrasmissione.
func (in *invoice) transmission() (found []flaw) {
	t := in.head.At("DatiTrasmissione")
	to := t.Value("CodiceDestinatario")
	if version := in.root.Attr("versione"); version != in.format {
		found = append(found, flawf(sdiwire.FormatDiffers, "%s, %s", in.format, version))
	}
	if (in.format == sdiwire.Public) != (len(to) == 6) {
		found = append(found, flawf(sdiwire.AddressLength, "%s", to))
	}
	if to == sdiwire.ForeignAddress && (in.buyer.number == "" || in.buyer.country == "IT") {
		found = append(found, flawf(sdiwire.AddressNotForeign, ""))
	}
	if pec := t.Value("PECDestinatario"); pecOfSdI.MatchString(pec) {
		found = append(found, flawf(sdiwire.PECOfSdI, "%s", pec))
	}
	return found
}

// parties are the checks of who transmits, sells and buys; of the registers only
// what check digits tell.
func (in *invoice) parties() (found []flaw) {
	number := func(code string, e *xmltree.Element, valid func(string) bool) {
		if e != nil && e.Value("IdPaese") == "IT" && !valid(e.Value("IdCodice")) {
			found = append(found, flawf(code, "%s", e.Value("IdCodice")))
		}
	}
	person := func(code, text string) {
		if text != "" && !validCode(text) {
			found = append(found, flawf(code, "%s", text))
		}
	}
	seller, buyer := in.head.At("CedentePrestatore"), in.head.At("CessionarioCommittente")
	number(sdiwire.TransmitterUnknown, in.head.At("DatiTrasmissione", "IdTrasmittente"), validCode)
	if in.seller.country == "IT" && !validVAT(in.seller.number) {
		found = append(found, flawf(sdiwire.SellerVATUnknown, "%s", in.seller.number))
	}
	person(sdiwire.SellerCodeUnknown, in.seller.code)
	number(sdiwire.AgentVATUnknown, in.head.At("RappresentanteFiscale", "DatiAnagrafici", "IdFiscaleIVA"), validVAT)
	number(sdiwire.AgentVATUnknown, seller.At("RappresentanteFiscale", "IdFiscaleIVA"), validVAT)
	number(sdiwire.AgentVATUnknown, buyer.At("RappresentanteFiscale", "IdFiscaleIVA"), validVAT)
	person(sdiwire.AgentCodeUnknown, in.head.Value("RappresentanteFiscale", "DatiAnagrafici", "CodiceFiscale"))
	if in.buyer.country == "IT" && !validVAT(in.buyer.number) {
		found = append(found, flawf(sdiwire.BuyerVATUnknown, "%s", in.buyer.number))
	}
	person(sdiwire.BuyerCodeUnknown, in.buyer.code)
	if in.buyer.number == "" && in.buyer.code == "" {
		found = append(found, flawf(sdiwire.BuyerNumberMissing, ""))
	}
	if in.seller.country != "" && in.seller.country != "IT" && in.buyer.country != "" && in.buyer.country != "IT" {
		found = append(found, flawf(sdiwire.BothForeign, ""))
	}
	return found
}

// kinds are the checks of TipoDocumento. Lists that differ are those of
// Allegato A for invoices between private parties, and those of the Elenco for
// the public administration.
func (in *invoice) kinds(b body) (found []flaw) {
	public := in.format == sdiwire.Public
	different := []string{"TD16", "TD17", "TD18", "TD19", "TD20", "TD29"}
	equal := []string{"TD21"}
	if !public {
		different = append(different, "TD01", "TD02", "TD03", "TD06", "TD24", "TD25", "TD28")
		equal = append(equal, "TD27")
	}
	same, known := in.seller.same(in.buyer)
	if known && same && slices.Contains(different, b.kind) {
		found = append(found, flawf(sdiwire.SamePerson, "%s", b.kind))
	}
	if known && !same && slices.Contains(equal, b.kind) {
		found = append(found, flawf(sdiwire.NotSamePerson, "%s", b.kind))
	}
	if slices.Contains([]string{"TD17", "TD18", "TD19", "TD28"}, b.kind) && in.seller.country == "IT" ||
		b.kind == "TD29" && in.seller.country != "IT" {
		found = append(found, flawf(sdiwire.SellerCountryWrong, "%s, %s", b.kind, in.seller.country))
	}
	if b.kind == "TD21" && slices.ContainsFunc(b.lines, untaxed) {
		found = append(found, flawf(sdiwire.SelfSupplyUntaxed, ""))
	}
	if slices.Contains(byBuyer(), b.kind) && in.buyer.number == "" {
		found = append(found, flawf(sdiwire.BuyerVATMissing, "%s", b.kind))
	}
	if b.kind == "TD04" {
		for _, of := range b.e.At("DatiGenerali").All("DatiFattureCollegate") {
			if day := of.Value("Data"); day != "" && b.date[:10] < day[:10] {
				found = append(found, flawf(sdiwire.BeforeOriginal, "%s, %s", b.date, day))
			}
		}
	}
	return found
}

func untaxed(e *xmltree.Element) bool { return decimal(e.Value("AliquotaIVA")).Sign() == 0 }

// natures are the checks of rates and of Natura, in lines, funds and summaries.
func (b body) natures(format string) (found []flaw) {
	integrated := b.kind == "TD16" && format != sdiwire.Public // lets Natura stand beside a rate
	for _, group := range []struct {
		all                 []*xmltree.Element
		missing, unexpected string
		beside              bool
	}{
		{b.lines, sdiwire.LineNaturaMissing, sdiwire.LineNaturaUnexpected, integrated},
		{b.funds, sdiwire.FundNaturaMissing, sdiwire.FundNaturaUnexpected, false},
		{b.sums, sdiwire.SumNaturaMissing, sdiwire.SumNaturaUnexpected, integrated},
	} {
		for _, e := range group.all {
			natura, rate := e.Value("Natura"), decimal(e.Value("AliquotaIVA"))
			switch {
			case rate.Sign() == 0 && natura == "":
				found = append(found, flawf(group.missing, "%s", e.Path()))
			case rate.Sign() != 0 && natura != "" && !group.beside:
				found = append(found, flawf(group.unexpected, "%s", e.Path()))
			}
			if rate.Sign() != 0 && rate.Cmp(big.NewRat(1, 1)) < 0 {
				found = append(found, flawf(sdiwire.RateFraction, "%s", e.Value("AliquotaIVA")))
			}
			if generic(natura) {
				found = append(found, flawf(sdiwire.NaturaGeneric, "%s", natura))
			}
		}
	}
	for _, e := range b.sums {
		if e.Value("EsigibilitaIVA") == "S" && strings.HasPrefix(e.Value("Natura"), "N6") {
			found = append(found, flawf(sdiwire.SplitReverse, "%s", e.Path()))
		}
	}
	return found
}

// generic are the codes that were divided in 2021.
func generic(natura string) bool { return natura == "N2" || natura == "N3" || natura == "N6" }

// withheld are the checks of withholding tax and of discounts without a value.
func (b body) withheld() (found []flaw) {
	says := func(e *xmltree.Element) bool { return e.Value("Ritenuta") == "SI" }
	none := b.head.At("DatiRitenuta") == nil
	if none && slices.ContainsFunc(b.lines, says) {
		found = append(found, flawf(sdiwire.LineWithholdingMissing, ""))
	}
	if none && slices.ContainsFunc(b.funds, says) {
		found = append(found, flawf(sdiwire.FundWithholdingMissing, ""))
	}
	empty := func(e *xmltree.Element) bool { return e.Value("Percentuale") == "" && e.Value("Importo") == "" }
	if slices.ContainsFunc(b.head.All("ScontoMaggiorazione"), empty) {
		found = append(found, flawf(sdiwire.DiscountEmpty, ""))
	}
	for _, l := range b.lines {
		if slices.ContainsFunc(l.All("ScontoMaggiorazione"), empty) {
			found = append(found, flawf(sdiwire.LineDiscountEmpty, "linea %s", l.Value("NumeroLinea")))
		}
	}
	return found
}

// rates are the distinct rates of elements, in their order.
func rates(all ...[]*xmltree.Element) (list []*big.Rat) {
	for _, e := range slices.Concat(all...) {
		rate := decimal(e.Value("AliquotaIVA"))
		if !hasRate(list, rate) {
			list = append(list, rate)
		}
	}
	return list
}

func hasRate(list []*big.Rat, rate *big.Rat) bool {
	return slices.ContainsFunc(list, func(r *big.Rat) bool { return r.Cmp(rate) == 0 })
}

// summaries are the checks that every rate and every Natura has its summary.
func (b body) summaries() (found []flaw) {
	used, summed := rates(b.lines, b.funds), rates(b.sums)
	if len(b.sums) < len(used) {
		found = append(found, flawf(sdiwire.SummariesMissing, ""))
	}
	for _, rate := range used {
		if !hasRate(summed, rate) {
			found = append(found, flawf(sdiwire.RateNotSummed, "%s", rate.FloatString(2)))
		}
	}
	seen := map[string]bool{"": true}
	for _, e := range b.sums {
		seen[e.Value("Natura")] = true
	}
	for _, e := range slices.Concat(b.lines, b.funds) {
		if natura := e.Value("Natura"); !seen[natura] {
			seen[natura] = true
			found = append(found, flawf(sdiwire.NaturaNotSummed, "%s", natura))
		}
	}
	return found
}

// arithmetic are the checks of sums: 00421, 00422, 00423.
func (b body) arithmetic() (found []flaw) {
	for _, l := range b.lines {
		if off(decimal(l.Value("PrezzoTotale")), lineTotal(l), "0.01") {
			found = append(found, flawf(sdiwire.LineTotalWrong, "linea %s", l.Value("NumeroLinea")))
		}
	}
	for _, e := range b.sums {
		tax := new(big.Rat).Mul(decimal(e.Value("AliquotaIVA")), decimal(e.Value("ImponibileImporto")))
		if off(decimal(e.Value("Imposta")), tax.Quo(tax, big.NewRat(100, 1)), "0.01") {
			found = append(found, flawf(sdiwire.TaxWrong, "aliquota %s", e.Value("AliquotaIVA")))
		}
	}
	for _, rate := range rates(b.lines, b.funds, b.sums) {
		of := func(all []*xmltree.Element) []*xmltree.Element {
			return slices.DeleteFunc(slices.Clone(all), func(e *xmltree.Element) bool {
				return decimal(e.Value("AliquotaIVA")).Cmp(rate) != 0
			})
		}
		sum := total(of(b.lines), "PrezzoTotale")
		sum.Add(sum, total(of(b.funds), "ImportoContributoCassa")).Add(sum, total(of(b.sums), "Arrotondamento"))
		if off(total(of(b.sums), "ImponibileImporto"), sum, "1") {
			found = append(found, flawf(sdiwire.TaxableWrong, "aliquota %s", rate.FloatString(2)))
		}
	}
	return found
}

// lineTotal is unit price times quantity, the price less or more each discount or
// surcharge in turn: its amount, else its share of what is left.
func lineTotal(l *xmltree.Element) *big.Rat {
	price := decimal(l.Value("PrezzoUnitario"))
	for _, s := range l.All("ScontoMaggiorazione") {
		change := decimal(s.Value("Importo"))
		if s.Value("Importo") == "" {
			change = new(big.Rat).Mul(price, decimal(s.Value("Percentuale")))
			change.Quo(change, big.NewRat(100, 1))
		}
		if s.Value("Tipo") == "SC" {
			change.Neg(change)
		}
		price.Add(price, change)
	}
	if quantity := l.Value("Quantita"); quantity != "" {
		price.Mul(price, decimal(quantity))
	}
	return price
}

const simplifiedMost = "400"

// simple are the checks of a simplified invoice.
func (in *invoice) simple(b body) (found []flaw) {
	amount := new(big.Rat)
	for _, l := range b.lines {
		amount.Add(amount, decimal(l.Value("Importo")))
		natura, tax := l.Value("Natura"), decimal(l.Value("DatiIVA", "Imposta"))
		rate := decimal(l.Value("DatiIVA", "Aliquota"))
		switch free := rate.Sign() == 0 && tax.Sign() == 0; {
		case free && natura == "":
			found = append(found, flawf(sdiwire.LineNaturaMissing, "%s", l.Path()))
		case !free && natura != "":
			found = append(found, flawf(sdiwire.LineNaturaUnexpected, "%s", l.Path()))
		}
		if natura == "N2" || natura == "N3" {
			found = append(found, flawf(sdiwire.NaturaGeneric, "%s", natura))
		}
	}
	corrected := b.e.At("DatiGenerali", "DatiFatturaRettificata")
	free := in.head.Value("CedentePrestatore", "RegimeFiscale")
	if corrected == nil && free != "RF19" && free != "RF20" && amount.Cmp(decimal(simplifiedMost)) > 0 {
		found = append(found, flawf(sdiwire.SimplifiedTooMuch, "%s", amount.FloatString(2)))
	}
	if day := corrected.Value("DataFR"); day != "" && b.date[:10] < day[:10] {
		found = append(found, flawf(sdiwire.BeforeOriginal, "%s, %s", b.date, day))
	}
	if same, known := in.seller.same(in.buyer); known && same && b.kind == "TD07" {
		found = append(found, flawf(sdiwire.SamePerson, "%s", b.kind))
	}
	return found
}
