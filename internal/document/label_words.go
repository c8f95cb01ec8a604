package document

import "strings"

// languages returns the words of a language. The texts for reverse charge are
// those that Directive 2006/112/EC, article 226 (11a), prescribes per language;
// titles follow the VAT acts: a German "Gutschrift", for one, would be a
// self-billed invoice, so a credit is a "Stornorechnung" there.
func languages(code string) (words, bool) {
	switch strings.ToUpper(code) {
	case "EN":
		return english(), true
	case "ES":
		return spanish(), true
	case "PT":
		return portuguese(), true
	case "FR":
		return french(), true
	case "DE":
		return german(), true
	case "IT":
		return italian(), true
	case "PL":
		return polish(), true
	case "NL":
		return dutch(), true
	case "RO":
		return romanian(), true
	case "HU":
		return hungarian(), true
	case "EL":
		return greek(), true
	case "HR":
		return croatian(), true
	case "CS":
		return czech(), true
	case "SV":
		return swedish(), true
	case "DA":
		return danish(), true
	case "FI":
		return finnish(), true
	}
	return words{}, false
}

func english() words {
	return words{
		tag: "en", format: format{dateLayout: "2 Jan 2006", decimal: ".", group: ",", moneyFirst: true, moneyTight: true},
		invoice: "Invoice", receipt: "Receipt", credit: "Credit note", adjustment: "Adjustment note", cancellation: "Cancellation",
		date: "Date", uniqueNumber: "Unique number", corrects: "Corrects document", reason: "Reason",
		supplier: "Supplier", customer: "Customer", issuer: "Issued by", taxNumber: "Tax no.", companyNumber: "Company no.",
		line: "No.", description: "Description", quantity: "Quantity", unitPrice: "Unit price", taxIncluded: "incl. tax", taxExcluded: "excl. tax",
		tax: "Tax", net: "Net", amount: "Amount", code: "Code",
		carried: "Carried forward", brought: "Brought forward",
		taxSummary: "Tax summary", taxable: "Taxable amount", netTotal: "Net total", taxTotal: "Tax", total: "Total", withheld: "Tax withheld", payable: "Amount due",
		payments: "Payment", onCredit: "On credit", card: "Card", cash: "Cash", transfer: "Bank transfer", check: "Cheque", other: "Other",
		note: "Note", authority: "Tax authority", authorityID: "Registration no.", page: "Page %d of %d", exchangeRate: "Exchange rate", taxIn: "Tax in %s", specimen: "Test document, not valid for tax purposes",
		vat: "VAT", zero: "Zero rate", exempt: "Exempt", reverse: "Reverse charge", export: "Export", intraEU: "Intra-EU supply", outside: "Outside the scope of tax",
	}
}

func spanish() words {
	return words{
		tag: "es", format: format{dateLayout: "02/01/2006", decimal: ",", group: ".", percentSpace: true},
		invoice: "Factura", receipt: "Factura simplificada", credit: "Factura rectificativa", adjustment: "Factura rectificativa", cancellation: "Anulación de factura",
		date: "Fecha", uniqueNumber: "Número único", corrects: "Rectifica el documento", reason: "Motivo",
		supplier: "Emisor", customer: "Cliente", issuer: "Expedida por", taxNumber: "NIF / N.º fiscal", companyNumber: "N.º registro",
		line: "N.º", description: "Descripción", quantity: "Cantidad", unitPrice: "Precio", taxIncluded: "IVA incl.", taxExcluded: "sin IVA",
		tax: "Impuesto", net: "Base", amount: "Importe", code: "Código",
		carried: "Suma y sigue", brought: "Suma anterior",
		taxSummary: "Desglose de impuestos", taxable: "Base imponible", netTotal: "Total base imponible", taxTotal: "Cuota de impuestos", total: "Total", withheld: "Retención", payable: "Total a pagar",
		payments: "Pago", onCredit: "A crédito", card: "Tarjeta", cash: "Efectivo", transfer: "Transferencia", check: "Cheque", other: "Otros",
		note: "Observaciones", authority: "Administración tributaria", authorityID: "N.º de registro", page: "Página %d de %d", exchangeRate: "Tipo de cambio", taxIn: "Impuestos en %s", specimen: "Documento de prueba, sin validez fiscal",
		vat: "IVA", zero: "Tipo cero", exempt: "Exento", reverse: "Inversión del sujeto pasivo", export: "Exportación", intraEU: "Entrega intracomunitaria", outside: "No sujeto",
	}
}

func portuguese() words {
	return words{
		tag: "pt-PT", format: format{dateLayout: "02/01/2006", decimal: ",", group: nbsp},
		invoice: "Fatura", receipt: "Fatura simplificada", credit: "Nota de crédito", adjustment: "Nota de correção", cancellation: "Anulação de fatura",
		date: "Data", uniqueNumber: "Número único", corrects: "Retifica o documento", reason: "Motivo",
		supplier: "Fornecedor", customer: "Cliente", issuer: "Emitida por", taxNumber: "N.º contribuinte", companyNumber: "N.º registo",
		line: "N.º", description: "Descrição", quantity: "Quantidade", unitPrice: "Preço", taxIncluded: "com imposto", taxExcluded: "sem imposto",
		tax: "Imposto", net: "Líquido", amount: "Valor", code: "Código",
		carried: "A transportar", brought: "Transporte",
		taxSummary: "Resumo de impostos", taxable: "Base tributável", netTotal: "Total líquido", taxTotal: "Total de impostos", total: "Total", withheld: "Retenção na fonte", payable: "Total a pagar",
		payments: "Pagamento", onCredit: "A crédito", card: "Cartão", cash: "Numerário", transfer: "Transferência", check: "Cheque", other: "Outro",
		note: "Observações", authority: "Autoridade tributária", authorityID: "N.º de registo", page: "Página %d de %d", exchangeRate: "Taxa de câmbio", taxIn: "Imposto em %s", specimen: "Documento de teste, sem validade fiscal",
		vat: "IVA", zero: "Taxa zero", exempt: "Isento", reverse: "IVA - autoliquidação", export: "Exportação", intraEU: "Transmissão intracomunitária", outside: "Não sujeito",
	}
}

func french() words {
	return words{
		tag: "fr", format: format{dateLayout: "02/01/2006", decimal: ",", group: nbsp, percentSpace: true},
		invoice: "Facture", receipt: "Reçu", credit: "Avoir", adjustment: "Facture rectificative", cancellation: "Annulation de facture",
		date: "Date", uniqueNumber: "Numéro unique", corrects: "Rectifie le document", reason: "Motif",
		supplier: "Fournisseur", customer: "Client", issuer: "Émise par", taxNumber: "N° TVA / fiscal", companyNumber: "N° d’entreprise",
		line: "N°", description: "Désignation", quantity: "Quantité", unitPrice: "Prix unitaire", taxIncluded: "TTC", taxExcluded: "HT",
		tax: "Taxe", net: "Net HT", amount: "Montant", code: "Code",
		carried: "À reporter", brought: "Report",
		taxSummary: "Détail des taxes", taxable: "Base HT", netTotal: "Total HT", taxTotal: "Total taxes", total: "Total TTC", withheld: "Retenue à la source", payable: "Net à payer",
		payments: "Règlement", onCredit: "À crédit", card: "Carte", cash: "Espèces", transfer: "Virement", check: "Chèque", other: "Autre",
		note: "Remarque", authority: "Administration fiscale", authorityID: "N° d’enregistrement", page: "Page %d sur %d", exchangeRate: "Taux de change", taxIn: "Taxe en %s", specimen: "Document de test, sans valeur fiscale",
		vat: "TVA", zero: "Taux zéro", exempt: "Exonéré", reverse: "Autoliquidation", export: "Exportation", intraEU: "Livraison intracommunautaire", outside: "Hors champ",
	}
}

func german() words {
	return words{
		tag: "de", format: format{dateLayout: "02.01.2006", decimal: ",", group: ".", percentSpace: true},
		invoice: "Rechnung", receipt: "Quittung", credit: "Stornorechnung", adjustment: "Rechnungskorrektur", cancellation: "Stornierung",
		date: "Datum", uniqueNumber: "Eindeutige Nummer", corrects: "Korrigiert Beleg", reason: "Grund",
		supplier: "Verkäufer", customer: "Kunde", issuer: "Ausgestellt durch", taxNumber: "USt-IdNr. / Steuernr.", companyNumber: "Registernr.",
		line: "Pos.", description: "Bezeichnung", quantity: "Menge", unitPrice: "Einzelpreis", taxIncluded: "brutto", taxExcluded: "netto",
		tax: "Steuer", net: "Netto", amount: "Betrag", code: "Code",
		carried: "Übertrag", brought: "Übertrag",
		taxSummary: "Steuerübersicht", taxable: "Steuerbasis", netTotal: "Nettosumme", taxTotal: "Steuerbetrag", total: "Gesamtbetrag", withheld: "Einbehaltene Steuer", payable: "Zahlbetrag",
		payments: "Zahlung", onCredit: "Auf Rechnung", card: "Karte", cash: "Bar", transfer: "Überweisung", check: "Scheck", other: "Sonstige",
		note: "Anmerkung", authority: "Finanzverwaltung", authorityID: "Registrierungsnr.", page: "Seite %d von %d", exchangeRate: "Wechselkurs", taxIn: "Steuer in %s", specimen: "Testdokument, steuerlich ungültig",
		vat: "USt", zero: "Nullsatz", exempt: "Steuerfrei", reverse: "Steuerschuldnerschaft des Leistungsempfängers", export: "Ausfuhrlieferung", intraEU: "Innergemeinschaftliche Lieferung", outside: "Nicht steuerbar",
	}
}

func italian() words {
	return words{
		tag: "it", format: format{dateLayout: "02/01/2006", decimal: ",", group: "."},
		invoice: "Fattura", receipt: "Fattura semplificata", credit: "Nota di credito", adjustment: "Nota di variazione", cancellation: "Annullamento fattura",
		date: "Data", uniqueNumber: "Numero univoco", corrects: "Rettifica il documento", reason: "Motivo",
		supplier: "Cedente / prestatore", customer: "Cliente", issuer: "Emessa da", taxNumber: "P. IVA / Cod. fiscale", companyNumber: "N. registro",
		line: "N.", description: "Descrizione", quantity: "Quantità", unitPrice: "Prezzo", taxIncluded: "IVA incl.", taxExcluded: "IVA escl.",
		tax: "Imposta", net: "Imponibile", amount: "Importo", code: "Codice",
		carried: "A riportare", brought: "Riporto",
		taxSummary: "Riepilogo imposte", taxable: "Imponibile", netTotal: "Totale imponibile", taxTotal: "Totale imposta", total: "Totale", withheld: "Ritenuta", payable: "Totale da pagare",
		payments: "Pagamento", onCredit: "A credito", card: "Carta", cash: "Contanti", transfer: "Bonifico", check: "Assegno", other: "Altro",
		note: "Note", authority: "Amministrazione fiscale", authorityID: "N. di registrazione", page: "Pagina %d di %d", exchangeRate: "Tasso di cambio", taxIn: "Imposta in %s", specimen: "Documento di prova, privo di validità fiscale",
		vat: "IVA", zero: "Aliquota zero", exempt: "Esente", reverse: "Inversione contabile", export: "Esportazione", intraEU: "Cessione intracomunitaria", outside: "Fuori campo",
	}
}

func polish() words {
	return words{
		tag: "pl", format: format{dateLayout: "02.01.2006", decimal: ",", group: nbsp},
		invoice: "Faktura", receipt: "Faktura uproszczona", credit: "Faktura korygująca", adjustment: "Faktura korygująca", cancellation: "Anulowanie faktury",
		date: "Data", uniqueNumber: "Numer unikalny", corrects: "Koryguje dokument", reason: "Przyczyna",
		supplier: "Sprzedawca", customer: "Nabywca", issuer: "Wystawca", taxNumber: "NIP / nr podatkowy", companyNumber: "Nr rejestrowy",
		line: "Lp.", description: "Nazwa", quantity: "Ilość", unitPrice: "Cena jedn.", taxIncluded: "brutto", taxExcluded: "netto",
		tax: "Podatek", net: "Netto", amount: "Brutto", code: "Kod",
		carried: "Do przeniesienia", brought: "Z przeniesienia",
		taxSummary: "Zestawienie podatku", taxable: "Podstawa", netTotal: "Razem netto", taxTotal: "Kwota podatku", total: "Razem", withheld: "Podatek pobrany", payable: "Do zapłaty",
		payments: "Płatność", onCredit: "Kredyt", card: "Karta", cash: "Gotówka", transfer: "Przelew", check: "Czek", other: "Inna",
		note: "Uwagi", authority: "Administracja skarbowa", authorityID: "Numer rejestracji", page: "Strona %d z %d", exchangeRate: "Kurs waluty", taxIn: "Podatek w %s", specimen: "Dokument testowy, bez mocy podatkowej",
		vat: "VAT", zero: "Stawka zero", exempt: "Zwolnione", reverse: "Odwrotne obciążenie", export: "Eksport", intraEU: "Dostawa wewnątrzwspólnotowa", outside: "Nie podlega",
	}
}

func dutch() words {
	return words{
		tag: "nl", format: format{dateLayout: "02-01-2006", decimal: ",", group: ".", moneyFirst: true},
		invoice: "Factuur", receipt: "Vereenvoudigde factuur", credit: "Creditnota", adjustment: "Correctiefactuur", cancellation: "Annulering",
		date: "Datum", uniqueNumber: "Uniek nummer", corrects: "Corrigeert document", reason: "Reden",
		supplier: "Leverancier", customer: "Klant", issuer: "Uitgereikt door", taxNumber: "Btw- / fiscaal nr.", companyNumber: "Ondernemingsnr.",
		line: "Nr.", description: "Omschrijving", quantity: "Aantal", unitPrice: "Prijs", taxIncluded: "incl. btw", taxExcluded: "excl. btw",
		tax: "Belasting", net: "Netto", amount: "Bedrag", code: "Code",
		carried: "Transporteren", brought: "Transport",
		taxSummary: "Belastingoverzicht", taxable: "Maatstaf", netTotal: "Totaal netto", taxTotal: "Totaal belasting", total: "Totaal", withheld: "Ingehouden belasting", payable: "Te betalen",
		payments: "Betaling", onCredit: "Op rekening", card: "Kaart", cash: "Contant", transfer: "Overschrijving", check: "Cheque", other: "Overige",
		note: "Opmerking", authority: "Belastingdienst", authorityID: "Registratienr.", page: "Pagina %d van %d", exchangeRate: "Wisselkoers", taxIn: "Belasting in %s", specimen: "Testdocument, fiscaal ongeldig",
		vat: "btw", zero: "Nultarief", exempt: "Vrijgesteld", reverse: "Btw verlegd", export: "Uitvoer", intraEU: "Intracommunautaire levering", outside: "Buiten de heffing",
	}
}

func romanian() words {
	return words{
		tag: "ro", format: format{dateLayout: "02.01.2006", decimal: ",", group: ".", percentSpace: true},
		invoice: "Factură", receipt: "Factură simplificată", credit: "Factură de stornare", adjustment: "Factură de corecție", cancellation: "Anulare factură",
		date: "Data", uniqueNumber: "Număr unic", corrects: "Corectează documentul", reason: "Motiv",
		supplier: "Furnizor", customer: "Client", issuer: "Emisă de", taxNumber: "CIF / cod fiscal", companyNumber: "Nr. reg. com.",
		line: "Nr.", description: "Denumire", quantity: "Cantitate", unitPrice: "Preț unitar", taxIncluded: "cu taxe", taxExcluded: "fără taxe",
		tax: "Taxă", net: "Net", amount: "Valoare", code: "Cod",
		carried: "De reportat", brought: "Report",
		taxSummary: "Detalierea taxelor", taxable: "Bază impozabilă", netTotal: "Total net", taxTotal: "Total taxe", total: "Total", withheld: "Impozit reținut", payable: "Total de plată",
		payments: "Plată", onCredit: "Pe credit", card: "Card", cash: "Numerar", transfer: "Transfer bancar", check: "Cec", other: "Alta",
		note: "Observații", authority: "Autoritatea fiscală", authorityID: "Nr. de înregistrare", page: "Pagina %d din %d", exchangeRate: "Curs de schimb", taxIn: "Taxă în %s", specimen: "Document de test, fără valoare fiscală",
		vat: "TVA", zero: "Cotă zero", exempt: "Scutit", reverse: "Taxare inversă", export: "Export", intraEU: "Livrare intracomunitară", outside: "Neimpozabil",
	}
}

func hungarian() words {
	return words{
		tag: "hu", format: format{dateLayout: "2006. 01. 02.", decimal: ",", group: nbsp},
		invoice: "Számla", receipt: "Egyszerűsített számla", credit: "Jóváíró számla", adjustment: "Módosító számla", cancellation: "Érvénytelenítő számla",
		date: "Kelt", uniqueNumber: "Egyedi azonosító", corrects: "Módosított bizonylat", reason: "Indok",
		supplier: "Eladó", customer: "Vevő", issuer: "Kiállító", taxNumber: "Adószám", companyNumber: "Cégjegyzékszám",
		line: "Ssz.", description: "Megnevezés", quantity: "Mennyiség", unitPrice: "Egységár", taxIncluded: "bruttó", taxExcluded: "nettó",
		tax: "Adó", net: "Nettó", amount: "Bruttó", code: "Kód",
		carried: "Átvitel", brought: "Áthozat",
		taxSummary: "Adóösszesítő", taxable: "Adóalap", netTotal: "Nettó összesen", taxTotal: "Adó összesen", total: "Összesen", withheld: "Levont adó", payable: "Fizetendő",
		payments: "Fizetés", onCredit: "Hitel", card: "Kártya", cash: "Készpénz", transfer: "Átutalás", check: "Csekk", other: "Egyéb",
		note: "Megjegyzés", authority: "Adóhatóság", authorityID: "Nyilvántartási szám", page: "%d. oldal / %d", exchangeRate: "Árfolyam", taxIn: "Adó (%s)", specimen: "Tesztbizonylat, adóügyben nem érvényes",
		vat: "ÁFA", zero: "Nulla kulcs", exempt: "Adómentes", reverse: "Fordított adózás", export: "Export", intraEU: "Közösségen belüli értékesítés", outside: "Adó hatályán kívül",
	}
}

func greek() words {
	return words{
		tag: "el", format: format{dateLayout: "02/01/2006", decimal: ",", group: "."},
		invoice: "Τιμολόγιο", receipt: "Απόδειξη", credit: "Πιστωτικό τιμολόγιο", adjustment: "Διορθωτικό τιμολόγιο", cancellation: "Ακύρωση τιμολογίου",
		date: "Ημερομηνία", uniqueNumber: "Μοναδικός αριθμός", corrects: "Διορθώνει το παραστατικό", reason: "Αιτία",
		supplier: "Προμηθευτής", customer: "Πελάτης", issuer: "Εκδόθηκε από", taxNumber: "ΑΦΜ", companyNumber: "Αρ. μητρώου",
		line: "Α/Α", description: "Περιγραφή", quantity: "Ποσότητα", unitPrice: "Τιμή", taxIncluded: "με φόρο", taxExcluded: "χωρίς φόρο",
		tax: "Φόρος", net: "Καθαρή αξία", amount: "Ποσό", code: "Κωδικός",
		carried: "Σε μεταφορά", brought: "Από μεταφορά",
		taxSummary: "Ανάλυση φόρων", taxable: "Φορολογητέα αξία", netTotal: "Καθαρή αξία", taxTotal: "Σύνολο φόρων", total: "Σύνολο", withheld: "Παρακρατούμενος φόρος", payable: "Πληρωτέο ποσό",
		payments: "Πληρωμή", onCredit: "Επί πιστώσει", card: "Κάρτα", cash: "Μετρητά", transfer: "Τραπεζική μεταφορά", check: "Επιταγή", other: "Άλλο",
		note: "Σημείωση", authority: "Φορολογική αρχή", authorityID: "Αρ. καταχώρισης", page: "Σελίδα %d από %d", exchangeRate: "Ισοτιμία", taxIn: "Φόρος σε %s", specimen: "Δοκιμαστικό παραστατικό, χωρίς φορολογική ισχύ",
		vat: "ΦΠΑ", zero: "Μηδενικός συντελεστής", exempt: "Απαλλαγή", reverse: "Αντιστροφή της υποχρέωσης", export: "Εξαγωγή", intraEU: "Ενδοκοινοτική παράδοση", outside: "Εκτός πεδίου",
	}
}

func croatian() words {
	return words{
		tag: "hr", format: format{dateLayout: "02. 01. 2006.", decimal: ",", group: ".", percentSpace: true},
		invoice: "Račun", receipt: "Pojednostavljeni račun", credit: "Odobrenje", adjustment: "Ispravak računa", cancellation: "Storno računa",
		date: "Datum", uniqueNumber: "Jedinstveni broj", corrects: "Ispravlja dokument", reason: "Razlog",
		supplier: "Dobavljač", customer: "Kupac", issuer: "Izdao", taxNumber: "OIB / porezni br.", companyNumber: "Matični br.",
		line: "R. br.", description: "Opis", quantity: "Količina", unitPrice: "Cijena", taxIncluded: "s porezom", taxExcluded: "bez poreza",
		tax: "Porez", net: "Neto", amount: "Iznos", code: "Šifra",
		carried: "Za prijenos", brought: "Prijenos",
		taxSummary: "Pregled poreza", taxable: "Osnovica", netTotal: "Ukupno neto", taxTotal: "Ukupno porez", total: "Ukupno", withheld: "Porez po odbitku", payable: "Za plaćanje",
		payments: "Plaćanje", onCredit: "Na odgodu", card: "Kartica", cash: "Gotovina", transfer: "Transakcijski račun", check: "Ček", other: "Ostalo",
		note: "Napomena", authority: "Porezna uprava", authorityID: "Br. registracije", page: "Stranica %d od %d", exchangeRate: "Tečaj", taxIn: "Porez u %s", specimen: "Probni dokument, porezno nevažeći",
		vat: "PDV", zero: "Nulta stopa", exempt: "Oslobođeno", reverse: "Prijenos porezne obveze", export: "Izvoz", intraEU: "Isporuka unutar EU", outside: "Ne podliježe oporezivanju",
	}
}

func czech() words {
	return words{
		tag: "cs", format: format{dateLayout: "2. 1. 2006", decimal: ",", group: nbsp, percentSpace: true},
		invoice: "Faktura", receipt: "Zjednodušený daňový doklad", credit: "Dobropis", adjustment: "Opravný daňový doklad", cancellation: "Storno faktury",
		date: "Datum", uniqueNumber: "Jedinečné číslo", corrects: "Opravuje doklad", reason: "Důvod",
		supplier: "Dodavatel", customer: "Odběratel", issuer: "Vystavil", taxNumber: "DIČ / daňové č.", companyNumber: "IČO",
		line: "Č.", description: "Popis", quantity: "Množství", unitPrice: "Jedn. cena", taxIncluded: "s daní", taxExcluded: "bez daně",
		tax: "Daň", net: "Základ", amount: "Částka", code: "Kód",
		carried: "K převodu", brought: "Převod",
		taxSummary: "Rekapitulace daně", taxable: "Základ daně", netTotal: "Celkem bez daně", taxTotal: "Daň celkem", total: "Celkem", withheld: "Sražená daň", payable: "K úhradě",
		payments: "Platba", onCredit: "Na úvěr", card: "Karta", cash: "Hotovost", transfer: "Převod", check: "Šek", other: "Jiné",
		note: "Poznámka", authority: "Daňová správa", authorityID: "Registrační č.", page: "Strana %d z %d", exchangeRate: "Směnný kurz", taxIn: "Daň v %s", specimen: "Testovací doklad, daňově neplatný",
		vat: "DPH", zero: "Nulová sazba", exempt: "Osvobozeno", reverse: "Daň odvede zákazník", export: "Vývoz", intraEU: "Dodání do EU", outside: "Mimo předmět daně",
	}
}

func swedish() words {
	return words{
		tag: "sv", format: format{dateLayout: "2006-01-02", decimal: ",", group: nbsp, percentSpace: true},
		invoice: "Faktura", receipt: "Kvitto", credit: "Kreditfaktura", adjustment: "Rättelsefaktura", cancellation: "Makulering",
		date: "Datum", uniqueNumber: "Unikt nummer", corrects: "Rättar dokument", reason: "Orsak",
		supplier: "Säljare", customer: "Kund", issuer: "Utfärdad av", taxNumber: "Momsreg.nr / skattenr", companyNumber: "Org.nr",
		line: "Nr", description: "Beskrivning", quantity: "Antal", unitPrice: "À-pris", taxIncluded: "inkl. moms", taxExcluded: "exkl. moms",
		tax: "Skatt", net: "Netto", amount: "Belopp", code: "Kod",
		carried: "Transport till nästa sida", brought: "Transport",
		taxSummary: "Skatteöversikt", taxable: "Beskattningsunderlag", netTotal: "Summa netto", taxTotal: "Summa skatt", total: "Totalt", withheld: "Innehållen skatt", payable: "Att betala",
		payments: "Betalning", onCredit: "Kredit", card: "Kort", cash: "Kontant", transfer: "Banköverföring", check: "Check", other: "Annat",
		note: "Anmärkning", authority: "Skattemyndighet", authorityID: "Registreringsnr", page: "Sida %d av %d", exchangeRate: "Växelkurs", taxIn: "Skatt i %s", specimen: "Testdokument, gäller inte för skatt",
		vat: "Moms", zero: "Nollskattesats", exempt: "Undantagen", reverse: "Omvänd betalningsskyldighet", export: "Export", intraEU: "Unionsintern leverans", outside: "Utanför skattens tillämpning",
	}
}

func danish() words {
	return words{
		tag: "da", format: format{dateLayout: "02.01.2006", decimal: ",", group: ".", percentSpace: true},
		invoice: "Faktura", receipt: "Forenklet faktura", credit: "Kreditnota", adjustment: "Rettelsesfaktura", cancellation: "Annullering",
		date: "Dato", uniqueNumber: "Entydigt nummer", corrects: "Retter dokument", reason: "Årsag",
		supplier: "Sælger", customer: "Kunde", issuer: "Udstedt af", taxNumber: "Momsnr. / skattenr.", companyNumber: "CVR-nr.",
		line: "Nr.", description: "Beskrivelse", quantity: "Antal", unitPrice: "Stykpris", taxIncluded: "inkl. moms", taxExcluded: "ekskl. moms",
		tax: "Skat", net: "Netto", amount: "Beløb", code: "Kode",
		carried: "Overføres", brought: "Overført",
		taxSummary: "Skatteoversigt", taxable: "Afgiftsgrundlag", netTotal: "Nettobeløb i alt", taxTotal: "Skat i alt", total: "I alt", withheld: "Tilbageholdt skat", payable: "At betale",
		payments: "Betaling", onCredit: "På kredit", card: "Kort", cash: "Kontant", transfer: "Bankoverførsel", check: "Check", other: "Andet",
		note: "Bemærkning", authority: "Skattemyndighed", authorityID: "Registreringsnr.", page: "Side %d af %d", exchangeRate: "Valutakurs", taxIn: "Skat i %s", specimen: "Testdokument, uden gyldighed for skat",
		vat: "Moms", zero: "Nulsats", exempt: "Fritaget", reverse: "Omvendt betalingspligt", export: "Eksport", intraEU: "Levering inden for EU", outside: "Uden for momslovens område",
	}
}

func finnish() words {
	return words{
		tag: "fi", format: format{dateLayout: "2.1.2006", decimal: ",", group: nbsp, percentSpace: true},
		invoice: "Lasku", receipt: "Kuitti", credit: "Hyvityslasku", adjustment: "Oikaisulasku", cancellation: "Peruutus",
		date: "Päiväys", uniqueNumber: "Yksilöivä numero", corrects: "Korjaa asiakirjan", reason: "Syy",
		supplier: "Myyjä", customer: "Asiakas", issuer: "Laskun laatija", taxNumber: "ALV- / verotunniste", companyNumber: "Y-tunnus",
		line: "Nro", description: "Kuvaus", quantity: "Määrä", unitPrice: "Yksikköhinta", taxIncluded: "sis. veron", taxExcluded: "ilman veroa",
		tax: "Vero", net: "Veroton", amount: "Summa", code: "Koodi",
		carried: "Siirretään", brought: "Siirto",
		taxSummary: "Veroerittely", taxable: "Veron peruste", netTotal: "Veroton yhteensä", taxTotal: "Vero yhteensä", total: "Yhteensä", withheld: "Pidätetty vero", payable: "Maksettava",
		payments: "Maksu", onCredit: "Luotto", card: "Kortti", cash: "Käteinen", transfer: "Tilisiirto", check: "Sekki", other: "Muu",
		note: "Huomautus", authority: "Veroviranomainen", authorityID: "Rekisteröintinumero", page: "Sivu %d / %d", exchangeRate: "Valuuttakurssi", taxIn: "Vero (%s)", specimen: "Testiasiakirja, ei verotuskäyttöön",
		vat: "ALV", zero: "Nollaverokanta", exempt: "Veroton", reverse: "Käännetty verovelvollisuus", export: "Vienti", intraEU: "Yhteisömyynti", outside: "Veron soveltamisalan ulkopuolella",
	}
}
