package sdi

import "tributary/internal/official/sdiwire"

// suggestion stands in every entry of a ListaErrori.
const suggestion = "Correggere il file e inviarlo nuovamente con un nome diverso"

// meaningOf is what the list of checks says of a code, shortened.
func meaningOf(code string) string { return meanings()[code] }

func meanings() map[string]string {
	return map[string]string{
		sdiwire.NameWrong:      "Nome file non valido",
		sdiwire.NameUsed:       "Nome file duplicato",
		sdiwire.TooLarge:       "Le dimensioni del file superano quelle ammesse",
		sdiwire.NotSigned:      "File non integro (firma non valida)",
		sdiwire.FileDamaged:    "File / archivio vuoto o corrotto",
		sdiwire.FormatWrong:    "File non conforme al formato",
		sdiwire.FormatHopeless: "Riscontrati più di 50 errori di formato",

		sdiwire.TransmitterUnknown: "1.1.1.2 <IdCodice> non valido",
		sdiwire.SellerVATUnknown:   "1.2.1.1.2 <IdCodice> non valido",
		sdiwire.SellerCodeUnknown:  "1.2.1.2 <CodiceFiscale> non valido",
		sdiwire.AgentVATUnknown:    "1.3.1.1.2 <IdCodice> o 1.4.4.1.2 <IdCodice> non valido",
		sdiwire.AgentCodeUnknown:   "1.3.1.2 <CodiceFiscale> non valido",
		sdiwire.BuyerVATUnknown:    "1.4.1.1.2 <IdCodice> non valido",
		sdiwire.BuyerCodeUnknown:   "1.4.1.2 <CodiceFiscale> non valido",
		sdiwire.AddressUnknown:     "1.1.4 <CodiceDestinatario> non valido",
		sdiwire.AddressNotForeign:  "1.1.4 <CodiceDestinatario> XXXXXXX non ammesso per un cessionario italiano",
		sdiwire.PECOfSdI:           "1.1.6 <PECDestinatario> corrisponde a una casella del SdI",
		sdiwire.BuyerNumberMissing: "1.4.1.1 <IdFiscaleIVA> e 1.4.1.2 <CodiceFiscale> non valorizzati",
		sdiwire.BothForeign:        "1.2.1.1.1 <IdPaese> e 1.4.1.1.1 <IdPaese> entrambi diversi da IT",
		sdiwire.AddressLength:      "1.1.4 <CodiceDestinatario> di lunghezza non ammessa per 1.1.3 <FormatoTrasmissione>",
		sdiwire.FormatDiffers:      "1.1.3 <FormatoTrasmissione> non coerente con il valore dell'attributo versione",

		sdiwire.SamePerson:         "1.2.1.1 <IdFiscaleIVA> e 1.4.1.1 <IdFiscaleIVA> uguali per il tipo documento",
		sdiwire.NotSamePerson:      "1.2.1.1 <IdFiscaleIVA> e 1.4.1.1 <IdFiscaleIVA> diversi per il tipo documento",
		sdiwire.SellerCountryWrong: "1.2.1.1.1 <IdPaese> non ammesso per il tipo documento",
		sdiwire.SelfSupplyUntaxed:  "2.2.1.12 <AliquotaIVA> pari a zero non ammessa per il tipo documento TD21",
		sdiwire.BuyerVATMissing:    "1.4.1.1 <IdFiscaleIVA> non presente per il tipo documento",
		sdiwire.BeforeOriginal:     "2.1.1.3 <Data> antecedente a 2.1.6.3 <Data>",
		sdiwire.DateAhead:          "2.1.1.3 <Data> successiva alla data di ricezione",
		sdiwire.NumberWithoutDigit: "2.1.1.4 <Numero> non contiene caratteri numerici",
		sdiwire.Duplicate:          "Fattura duplicata",
		sdiwire.DuplicateInFile:    "Fattura duplicata nel lotto",

		sdiwire.LineNaturaMissing:      "2.2.1.14 <Natura> non presente a fronte di 2.2.1.12 <AliquotaIVA> pari a zero",
		sdiwire.LineNaturaUnexpected:   "2.2.1.14 <Natura> presente a fronte di 2.2.1.12 <AliquotaIVA> diversa da zero",
		sdiwire.FundNaturaMissing:      "2.1.1.7.7 <Natura> non presente a fronte di 2.1.1.7.5 <AliquotaIVA> pari a zero",
		sdiwire.FundNaturaUnexpected:   "2.1.1.7.7 <Natura> presente a fronte di 2.1.1.7.5 <AliquotaIVA> diversa da zero",
		sdiwire.SumNaturaMissing:       "2.2.2.2 <Natura> non presente a fronte di 2.2.2.1 <AliquotaIVA> pari a zero",
		sdiwire.SumNaturaUnexpected:    "2.2.2.2 <Natura> presente a fronte di 2.2.2.1 <AliquotaIVA> diversa da zero",
		sdiwire.NaturaGeneric:          "<Natura>: valore generico N2, N3 o N6 non più ammesso",
		sdiwire.SplitReverse:           "2.2.2.2 <Natura> N6 non ammessa con 2.2.2.7 <EsigibilitaIVA> S",
		sdiwire.RateFraction:           "<AliquotaIVA> non indicata in termini percentuali",
		sdiwire.SummariesMissing:       "2.2.2 <DatiRiepilogo> non presente per tutte le aliquote",
		sdiwire.RateNotSummed:          "<AliquotaIVA> delle linee o della cassa non presente in 2.2.2 <DatiRiepilogo>",
		sdiwire.NaturaNotSummed:        "<Natura> delle linee o della cassa non presente in 2.2.2 <DatiRiepilogo>",
		sdiwire.LineWithholdingMissing: "2.1.1.5 <DatiRitenuta> non presente a fronte di 2.2.1.13 <Ritenuta> SI",
		sdiwire.FundWithholdingMissing: "2.1.1.5 <DatiRitenuta> non presente a fronte di 2.1.1.7.6 <Ritenuta> SI",
		sdiwire.DiscountEmpty:          "2.1.1.8.2 <Percentuale> e 2.1.1.8.3 <Importo> non presenti",
		sdiwire.LineDiscountEmpty:      "2.2.1.10.2 <Percentuale> e 2.2.1.10.3 <Importo> non presenti",
		sdiwire.TaxWrong:               "2.2.2.6 <Imposta> non calcolata secondo le specifiche tecniche",
		sdiwire.TaxableWrong:           "2.2.2.5 <ImponibileImporto> non calcolato secondo le specifiche tecniche",
		sdiwire.LineTotalWrong:         "2.2.1.11 <PrezzoTotale> non calcolato secondo le specifiche tecniche",
		sdiwire.SimplifiedTooMuch:      "Importo totale superiore al limite della fattura semplificata",
	}
}
