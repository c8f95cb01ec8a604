// Writes the same sale with each of the libraries: node write.mjs PACKAGES FOLDER
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const require = createRequire(join(resolve(process.argv[2]), 'from.js'));
const { InvoiceService } = require('@e-invoice-eu/core');
const { toXRechnung, buildXml, embedFacturX, Profile, Flavor, VatCategoryCode } = require('@stackforge-eu/factur-x');
const fatturaElettronica = require('fattura-elettronica');
const { PDFDocument } = require('pdf-lib');

const folder = process.argv[3];
const keep = (name, content) => writeFileSync(join(folder, name), content);
const quiet = { log() {}, warn() {}, error() {}, debug() {}, verbose() {}, fatal() {} };

// Semantic model of EN 16931 as JSON, for UBL, CII and Factur-X.
const money = (amount) => ({ amount, currency: 'EUR' });
const party = (id, name, street, city, zone, vat) => ({ 'cac:Party': {
  'cbc:EndpointID': id, 'cbc:EndpointID@schemeID': '9930',
  'cac:PostalAddress': { 'cbc:StreetName': street, 'cbc:CityName': city, 'cbc:PostalZone': zone, 'cac:Country': { 'cbc:IdentificationCode': 'DE' } },
  ...(vat ? { 'cac:PartyTaxScheme': vat } : {}),
  'cac:PartyLegalEntity': { 'cbc:RegistrationName': name },
} });
const S = { 'cbc:ID': 'S', 'cbc:Percent': '19.00', 'cac:TaxScheme': { 'cbc:ID': 'VAT' } };
const seller = party('DE123456789', 'Verkäufer & Söhne GmbH', 'Bergstraße 4', 'Weihmichl', '84107',
  [{ 'cbc:CompanyID': 'DE123456789', 'cac:TaxScheme': { 'cbc:ID': 'VAT' } }]);
seller['cac:Party']['cac:Contact'] = { 'cbc:Name': 'Frau Berg', 'cbc:Telephone': '+49 1', 'cbc:ElectronicMail': 'a@b.example' };
const invoice = { 'ubl:Invoice': {
  'cbc:CustomizationID': 'urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0',
  'cbc:ProfileID': 'urn:fdc:peppol.eu:2017:poacc:billing:01:1.0', 'cbc:ID': 'W-1', 'cbc:IssueDate': '2026-11-02', 'cbc:DueDate': '2026-12-02',
  'cbc:InvoiceTypeCode': '380', 'cbc:Note': ['Danke'], 'cbc:DocumentCurrencyCode': 'EUR', 'cbc:BuyerReference': '04011000-12345-67',
  'cac:AccountingSupplierParty': seller,
  'cac:AccountingCustomerParty': party('DE200000013', 'Käufer AG', 'Hauptstraße 6', 'Bonn', '53111',
    { 'cbc:CompanyID': 'DE200000013', 'cac:TaxScheme': { 'cbc:ID': 'VAT' } }),
  'cac:PaymentMeans': [{ 'cbc:PaymentMeansCode': '58', 'cac:PayeeFinancialAccount': { 'cbc:ID': 'DE89370400440532013000' } }],
  'cac:TaxTotal': [{ 'cbc:TaxAmount': '285.00', 'cbc:TaxAmount@currencyID': 'EUR', 'cac:TaxSubtotal': [{
    'cbc:TaxableAmount': '1500.00', 'cbc:TaxableAmount@currencyID': 'EUR', 'cbc:TaxAmount': '285.00', 'cbc:TaxAmount@currencyID': 'EUR', 'cac:TaxCategory': S }] }],
  'cac:LegalMonetaryTotal': Object.fromEntries([['LineExtension', '1500.00'], ['TaxExclusive', '1500.00'], ['TaxInclusive', '1785.00'], ['Payable', '1785.00']]
    .flatMap(([name, amount]) => [[`cbc:${name}Amount`, amount], [`cbc:${name}Amount@currencyID`, 'EUR']])),
  'cac:InvoiceLine': [{ 'cbc:ID': '1', 'cbc:InvoicedQuantity': '10', 'cbc:InvoicedQuantity@unitCode': 'HUR', 'cbc:LineExtensionAmount': '1500.00',
    'cbc:LineExtensionAmount@currencyID': 'EUR', 'cac:Item': { 'cbc:Name': 'Beratung', 'cac:ClassifiedTaxCategory': S },
    'cac:Price': { 'cbc:PriceAmount': '150.00', 'cbc:PriceAmount@currencyID': 'EUR' } }],
} };
const service = new InvoiceService(quiet);
const paper = await PDFDocument.create();
paper.addPage();
const pdf = { buffer: await paper.save(), filename: 'W-1.pdf', mimetype: 'application/pdf' };
for (const [name, format] of [['e-invoice-eu.ubl.xml', 'XRECHNUNG-UBL'], ['e-invoice-eu.cii.xml', 'XRECHNUNG-CII']]) {
  keep(name, await service.generate(structuredClone(invoice), { format, lang: 'de-de' }));
}
keep('e-invoice-eu.pdf', await service.generate(structuredClone(invoice), { format: 'Factur-X-EN16931', lang: 'de-de', pdf }));

// CII and Factur-X.
const sale = {
  document: { id: 'W-1', issueDate: '2026-11-02', typeCode: '380', buyerReference: '04011000-12345-67' },
  seller: { name: 'Verkäufer & Söhne GmbH', address: { line1: 'Bergstraße 4', city: 'Weihmichl', postalCode: '84107', country: 'DE' },
    taxRegistrations: [{ id: 'DE123456789', schemeId: 'VA' }], contact: { name: 'Frau Berg', phone: '+49 1', email: 'a@b.example' },
    electronicAddress: { value: 'DE123456789', schemeID: '9930' } },
  buyer: { name: 'Käufer AG', address: { line1: 'Hauptstraße 6', city: 'Bonn', postalCode: '53111', country: 'DE' },
    taxRegistrations: [{ id: 'DE200000013', schemeId: 'VA' }], electronicAddress: { value: 'DE200000013', schemeID: '9930' } },
  delivery: { date: '2026-11-02' },
  lines: [{ id: '1', name: 'Beratung', quantity: 10, unitCode: 'HUR', unitPrice: 150, vatCategoryCode: VatCategoryCode.STANDARD_RATE, vatRatePercent: 19 }],
  totals: { lineTotal: 1500, taxBasisTotal: 1500, taxTotal: 285, grandTotal: 1785, duePayableAmount: 1785, currency: 'EUR' },
  vatBreakdown: [{ categoryCode: VatCategoryCode.STANDARD_RATE, ratePercent: 19, taxableAmount: 1500, taxAmount: 285 }],
  payment: { meansCode: '58', iban: 'DE89370400440532013000', dueDate: '2026-12-02' },
};
keep('factur-x.xrechnung.xml', toXRechnung(sale).xml);
keep('factur-x.extended.xml', buildXml(sale, Profile.EXTENDED));
keep('factur-x.pdf', (await embedFacturX({ pdf: pdf.buffer, input: sale, profile: Profile.EN16931, flavor: Flavor.ZUGFERD })).pdf);

// FatturaPA.
keep('fattura-elettronica.xml', fatturaElettronica.WriteXml({
  FatturaElettronicaHeader: {
    DatiTrasmissione: { IdTrasmittente: { IdPaese: 'IT', IdCodice: '01234567890' }, ProgressivoInvio: '1', FormatoTrasmissione: 'FPR12', CodiceDestinatario: '0000000' },
    CedentePrestatore: { DatiAnagrafici: { IdFiscaleIVA: { IdPaese: 'IT', IdCodice: '01234567890' }, Anagrafica: { Denominazione: 'Venditore & Figli s.r.l.' }, RegimeFiscale: 'RF01' },
      Sede: { Indirizzo: 'Via Prova, 3', CAP: '20100', Comune: 'Milano', Provincia: 'MI', Nazione: 'IT' } },
    CessionarioCommittente: { DatiAnagrafici: { IdFiscaleIVA: { IdPaese: 'IT', IdCodice: '09876543217' }, Anagrafica: { Denominazione: 'Compratore s.p.a.' } },
      Sede: { Indirizzo: 'Via Prova, 4', CAP: '20100', Comune: 'Milano', Provincia: 'MI', Nazione: 'IT' } },
  },
  FatturaElettronicaBody: [{
    DatiGenerali: { DatiGeneraliDocumento: { TipoDocumento: 'TD01', Divisa: 'EUR', Data: '2026-11-02', Numero: 'W-1' } },
    DatiBeniServizi: {
      DettaglioLinee: [{ NumeroLinea: 1, Descrizione: 'Consulenza', Quantita: 10, PrezzoUnitario: 150, PrezzoTotale: 1500, AliquotaIVA: 22 }],
      DatiRiepilogo: [{ AliquotaIVA: 22, ImponibileImporto: 1500, Imposta: 330, EsigibilitaIVA: 'I' }],
    },
  }],
}));
