// Package navwire is NAV's Online Számla 3.0 as data: namespaces, operations,
// statuses, error codes, limits and the values of its lists.
//
// The sender (country/hu) and the double (authority/nav) stand on it, on the
// official structure and on nothing else of each other's: signatures, tokens,
// sums and rules are written on each side.
package navwire

import "time"

// Namespaces.
const (
	SpaceData   = "http://schemas.nav.gov.hu/OSA/3.0/data"
	SpaceBase   = "http://schemas.nav.gov.hu/OSA/3.0/base"
	SpaceAPI    = "http://schemas.nav.gov.hu/OSA/3.0/api"
	SpaceCommon = "http://schemas.nav.gov.hu/NTCA/1.0/common"
	SpaceAnnul  = "http://schemas.nav.gov.hu/OSA/3.0/annul"
)

// Path stands before the name of every operation.
const Path = "/invoiceService/v3/"

// Operations: the last part of the path, and with the first letter in upper
// case and "Request" or "Response" behind it the root of the body.
const (
	TokenExchange          = "tokenExchange"
	ManageInvoice          = "manageInvoice"
	ManageAnnulment        = "manageAnnulment"
	QueryTransactionStatus = "queryTransactionStatus"
	QueryTransactionList   = "queryTransactionList"
	QueryInvoiceData       = "queryInvoiceData"
	QueryInvoiceCheck      = "queryInvoiceCheck"
	QueryInvoiceDigest     = "queryInvoiceDigest"
)

// What a request does with an invoice.
const (
	Create = "CREATE"
	Modify = "MODIFY"
	Storno = "STORNO"
)

// Sides from which an invoice is asked for: as its supplier, as its customer.
const (
	Outbound = "OUTBOUND"
	Inbound  = "INBOUND"
)

// Annul is what a technical annulment does with a report.
const Annul = "ANNUL"

// Why a report is annulled.
const (
	ErraticData   = "ERRATIC_DATA"
	ErraticNumber = "ERRATIC_INVOICE_NUMBER"
	ErraticDate   = "ERRATIC_INVOICE_ISSUE_DATE"
	ErraticHash   = "ERRATIC_ELECTRONIC_HASH_VALUE"
)

// AnnulmentCodes lists them.
func AnnulmentCodes() []string { return []string{ErraticData, ErraticNumber, ErraticDate, ErraticHash} }

// VerificationPending is the state of an annulment that waits for a person in NAV's portal.
const VerificationPending = "VERIFICATION_PENDING"

// States of an invoice in a transaction. Done and Aborted are final.
const (
	Received   = "RECEIVED"
	Processing = "PROCESSING"
	Saved      = "SAVED"
	Done       = "DONE"
	Aborted    = "ABORTED"
)

// Result codes and severities.
const (
	OK      = "OK"
	Error   = "ERROR"
	Warning = "WARN"
	Info    = "INFO"
)

// Error codes of calls.
const (
	InvalidRequest       = "INVALID_REQUEST"
	InvalidUser          = "INVALID_SECURITY_USER"
	NotRegistered        = "NOT_REGISTERED_CUSTOMER"
	InvalidCustomer      = "INVALID_CUSTOMER"
	InvalidRelation      = "INVALID_USER_RELATION"
	Forbidden            = "FORBIDDEN"
	RequestIDNotUnique   = "REQUEST_ID_NOT_UNIQUE"
	InvalidSignature     = "INVALID_REQUEST_SIGNATURE"
	IndexNotSequential   = "INDEX_NOT_SEQUENTIAL"
	InvalidToken         = "INVALID_EXCHANGE_TOKEN"
	InvalidTimestamp     = "INVALID_TIMESTAMP"
	InvalidPasswordHash  = "INVALID_PASSWORD_HASH_CRYPTO"
	InvalidSignatureHash = "INVALID_REQUEST_SIGNATURE_HASH_CRYPTO"
	InvalidVersion       = "INVALID_REQUEST_VERSION"
	InvalidHeaderVersion = "INVALID_HEADER_VERSION"
	Maintenance          = "MAINTENANCE_MODE"
	OperationFailed      = "OPERATION_FAILED" // it may have been taken all the same
	NotAllowed           = "NOT_ALLOWED_EXCEPTION"
	DatesOverlap         = "BAD_QUERY_PARAM_OVERLAP"
	RangeExceeded        = "BAD_QUERY_PARAM_RANGE_EXCEEDED"
	SupplierNotExpected  = "BAD_QUERY_PARAM_SUPPLIER_NOT_EXPECTED"
	MultipleFound        = "MULTIPLE_QUERY_RESULT_FOUND"
)

// Error codes of invoices.
const (
	SchemaViolation       = "SCHEMA_VIOLATION"
	DuplicateInRequest    = "DUPLICATE_IN_REQUEST"
	SupplierMismatch      = "SUPPLIER_TAX_NUMBER_MISMATCH"
	NumberNotUnique       = "INVOICE_NUMBER_NOT_UNIQUE"
	LinesNotSequential    = "LINE_NUMBER_NOT_SEQUENTIAL"
	LineMissing           = "INVOICE_LINE_MISSING"
	InvalidReference      = "INVALID_INVOICE_REFERENCE"
	LineExists            = "INVOICE_LINE_ALREADY_EXISTS"
	LineReferenceTaken    = "LINE_NUMBER_REFERENCE_NOT_UNIQUE"
	LineContentMissing    = "MANDATORY_LINE_CONTENT_MISSING"
	InvalidVATData        = "INVALID_VAT_DATA"
	IndexTaken            = "MODIFICATION_INDEX_NOT_UNIQUE"
	CustomerMissing       = "CUSTOMER_INFO_MISSING"
	ReferenceExpected     = "INVOICE_REFERENCE_EXPECTED"
	ReferenceNotExpected  = "INVOICE_REFERENCE_NOT_EXPECTED"
	MasterMismatch        = "MODIFY_WITHOUT_MASTER_MISMATCH"
	LineChangeExpected    = "LINE_MODIFICATION_EXPECTED"
	LineChangeNotExpected = "LINE_MODIFICATION_NOT_EXPECTED"
	CustomerNotExpected   = "CUSTOMER_DATA_NOT_EXPECTED"
	CustomerExpected      = "CUSTOMER_DATA_EXPECTED"
	HashExpected          = "ELECTRONIC_INVOICE_HASH_EXPECTED"
	InvalidLineOperation  = "INVALID_LINE_OPERATION"
	InvalidExemption      = "INVALID_LINE_VAT_EXEMPTION_CODE"
	InvalidOutOfScope     = "INVALID_LINE_VAT_OUT_OF_SCOPE_CODE"
	IssueDateLate         = "INVOICE_ISSUE_DATE_LATE"
	DeliveryDateLate      = "INVOICE_DELIVERY_DATE_LATE"
	InvalidNumber         = "INVALID_INVOICE_NUMBER"
	DomesticMissing       = "MISSING_CUSTOMER_DOMESTIC_TAXNUMBER"
	UnionNotExpected      = "CUSTOMER_COMMUNITY_TAXNUMBER_NOT_EXPECTED"
	ThirdNotExpected      = "CUSTOMER_THIRD_STATE_TAXNUMBER_NOT_EXPECTED"
	DomesticForReverse    = "DOMESTIC_TAXNUMBER_EXPECTED_REVERSE_CHARGE"
	AnnulmentReference    = "INVALID_ANNULMENT_REFERENCE"
	AnnulmentInProgress   = "ANNULMENT_IN_PROGRESS"
)

// Limits that NAV states.
const (
	BodyBytesMax   = 10 << 20 // of a request
	InvoicesMax    = 100      // in a request
	NumberMax      = 50
	NameMax        = 512
	DetailMax      = 255
	DescriptionMax = 512
	UnitMax        = 50
	OrderMax       = 100
	ReasonMax      = 1024 // of an annulment
	TokenLifetime  = 5 * time.Minute
	RangeMax       = 35 * 24 * time.Hour // of a list's interval
	TimestampSkew  = 24 * time.Hour
)

// Cryptography: names as the attributes have them, and the length of keys.
const (
	PasswordHash     = "SHA-512"
	SignatureHash    = "SHA3-512"
	RequestVersion   = "3.0"
	HeaderVersion    = "1.0"
	ExchangeKeyBytes = 16
	StampLayout      = "20060102150405" // of a timestamp in a signature, UTC
	TimeLayout       = "2006-01-02T15:04:05.000Z"
)

// Whether the buyer is a taxpayer here, elsewhere, or a person who is none.
const (
	Domestic      = "DOMESTIC"
	Other         = "OTHER"
	PrivatePerson = "PRIVATE_PERSON"
)

// Cases of lines without tax: exemptions, and what is outside of the act's scope.
const (
	AAM   = "AAM"   // the seller is exempt, chapter XIII
	TAM   = "TAM"   // the activity is exempt, §§ 85–86
	KBAET = "KBAET" // intra-Community supply of goods, § 89
	KBAUK = "KBAUK" // of new vehicles, § 89
	EAM   = "EAM"   // export, §§ 98–109
	NAM   = "NAM"   // other international transactions, §§ 110–118

	ATK     = "ATK"     // outside of the act, §§ 2–3
	EUFAD37 = "EUFAD37" // services to a business in another member state, § 37
	EUFADE  = "EUFADE"  // other reverse charge in another member state
	EUE     = "EUE"     // taxed in another member state
	HO      = "HO"      // taxed in a third country
)

// Exemptions are the cases of vatExemption; OutOfScope those of vatOutOfScope.
func Exemptions() []string { return []string{AAM, TAM, KBAET, KBAUK, EAM, NAM} }

// OutOfScope are the cases of vatOutOfScope.
func OutOfScope() []string { return []string{ATK, EUFAD37, EUFADE, EUE, HO} }

// Rates are the values of vatPercentage that NAV takes; zero is none of them.
func Rates() []string { return []string{"0.27", "0.25", "0.2", "0.18", "0.12", "0.07", "0.05"} }
