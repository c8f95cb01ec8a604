// Package sdiwire is Italy's Sistema di Interscambio as data: the namespaces,
// operations, limits, names of files and codes of SdICoop (Istruzioni per il
// servizio SDICoop – Trasmissione, 3.3, with its WSDLs), of FatturaPA 1.2.3 and
// of the messages about an invoice, and how a call carries a file.
//
// The sender (country/it) and the double (authority/sdi) stand on it, on the
// official structure and on nothing else of each other's: sums, rules, check
// digits and signatures are written on each side.
package sdiwire

// Namespaces.
const (
	SpaceInvoice    = "http://ivaservizi.agenziaentrate.gov.it/docs/xsd/fatture/v1.2"
	SpaceSimplified = "http://ivaservizi.agenziaentrate.gov.it/docs/xsd/fatture/v1.0"

	SpaceService = "http://www.fatturapa.gov.it/sdi/ws/trasmissione/v1.0"
	SpaceTypes   = "http://www.fatturapa.gov.it/sdi/ws/trasmissione/v1.0/types" // of calls, both ways; children are unqualified

	SpaceMessages       = "http://ivaservizi.agenziaentrate.gov.it/docs/xsd/fattura/messaggi/v1.0" // about FPR12 and FSM10
	SpacePublicMessages = "http://www.fatturapa.gov.it/sdi/messaggi/v1.0"                          // about FPA12
)

// Formats of transmission, also the attribute versione of an invoice.
const (
	Private    = "FPR12" // to businesses and consumers
	Public     = "FPA12" // to the public administration; signed
	Simplified = "FSM10"
)

// RiceviFile is where files are handed in.
const (
	Path       = "/ricevi_file" // behind https://servizi.fatturapa.it or https://testservizi.fatturapa.it
	RiceviFile = "RiceviFile"
	ActionFile = "http://www.fatturapa.it/SdIRiceviFile/RiceviFile"

	ElementFile   = "fileSdIAccoglienza"    // NomeFile, File
	ElementAnswer = "rispostaSdIRiceviFile" // IdentificativoSdI, DataOraRicezione, Errore
)

// RiceviFatture is where SdI brings what others have sent (RicezioneFatture), and what
// it is answered.
const (
	SpaceReceiving   = "http://www.fatturapa.gov.it/sdi/ws/ricezione/v1.0/types"
	ActionReceived   = "http://www.fatturapa.it/RicezioneFatture/RiceviFattureSdI" // as the WSDL has it
	ActionReceivedBy = "http://www.fatturapa.it/RicezioneFatture/RiceviFatture"    // as the instructions have it

	ElementReceived = "fileSdIConMetadati" // IdentificativoSdI, NomeFile, File, NomeFileMetadati, Metadati
	ElementTaken    = "rispostaRiceviFatture"
	Taken           = "ER01" // presa in carico

	RootMetadata       = "FileMetadati"      // in SpaceMessages
	RootPublicMetadata = "MetadatiInvioFile" // in SpacePublicMessages
)

// Errors of RiceviFile. Each comes with status 200 and an IdentificativoSdI of
// zero: nothing was taken.
const (
	FileEmpty   = "EI01"
	Unavailable = "EI02"
	NotEnabled  = "EI03"
)

// Limits that SdI states.
const (
	FileBytesMax    = 5_000_000 // of an invoice as sent, 00003
	NumberMax       = 20        // characters of Numero
	ProgressiveMax  = 5         // characters of a file name's progressive
	TransmissionMax = 10        // characters of ProgressivoInvio
	ErrorsMax       = 200       // in a ListaErrori
	FormatErrorsMax = 50        // more of them are 00201
	IDDigits        = 12        // of IdentificativoSdI
	SequenceMax     = 60466176  // file names of one transmitter with upper-case letters and digits: 36⁵
)

// Addresses for buyers without one of their own.
const (
	NoAddress        = "0000000" // the invoice waits in the buyer's reserved area, or goes to PECDestinatario
	ForeignAddress   = "XXXXXXX" // the buyer is abroad
	SanMarinoAddress = "2R4GTO8" // the tax office of San Marino, for operators there (since 1 October 2021)
)

// What a public buyer says about an invoice.
const (
	EsitoAccepted = "EC01"
	EsitoRefused  = "EC02"
)

// NotificaEsito is where a public buyer says it (SdIRiceviNotifica), once for each invoice, and what it is answered.
const (
	PathAnswers    = "/ricevi_notifica"
	ActionAnswer   = "http://www.fatturapa.it/SdIRicezioneNotifiche/NotificaEsito"
	ElementGiven   = "fileSdI" // IdentificativoSdI, NomeFile, File; in SpaceReceiving
	ElementDecided = "rispostaSdINotificaEsito"
	RootEsito      = "NotificaEsitoCommittente" // in SpacePublicMessages
	RootUnfit      = "ScartoEsitoCommittente"

	AnswerRefused     = "ES00" // with a ScartoEsitoCommittente
	AnswerTaken       = "ES01"
	AnswerUnavailable = "ES02" // nothing was taken

	EsitoMalformed    = "EN00"
	EsitoInadmissible = "EN01" // too late, or there is an answer already
)

// Limits of what a public buyer says.
const (
	EsitoTextMax = 255 // characters of Descrizione
	EsitoDays    = 15  // after the invoice was received; then it counts as accepted (decorrenza termini)
)

// Zone is in which days of the list of checks begin.
const Zone = "Europe/Rome"

// HeaderCallback says to a simulated SdI where its calls about a file shall go.
// The real one knows the address from the channel's accreditation and is never
// sent this header.
const HeaderCallback = "SdI-Callback"

// PathRecipients is where a simulated SdI is told who receives where, by tax number. The
// real one is told by the company, on the Agenzia's pages.
const PathRecipients = "/recipients/"

// HeaderClient carries the certificate of whoever calls over plain HTTP, which
// only a simulated SdI does (RFC 9440).
const HeaderClient = "Client-Cert"
