package sdiwire

// Endings of an invoice's Numero by which a client asks a simulated SdI for
// something, beside those that every simulated authority knows. An NE, DT or AT
// about an invoice to a business is nothing that the real one sends.
const (
	EndingUndelivered = "-MC"     // it cannot be delivered
	EndingAgreed      = "-EC01"   // delivered; later the buyer accepts (NE)
	EndingDisagreed   = "-EC02"   // delivered; later the buyer refuses (NE)
	EndingExpired     = "-DT"     // delivered; later the buyer's time is over
	EndingAttested    = "-AT"     // it cannot be delivered; later that is attested
	EndingTwice       = "-TWICE"  // every message comes twice
	EndingDisordered  = "-MIXED"  // the buyer's acceptance comes before the delivery, which comes twice
	EndingLate        = "-LATE"   // the first message comes seconds later
	EndingSilent      = "-SILENT" // nothing is said
)
