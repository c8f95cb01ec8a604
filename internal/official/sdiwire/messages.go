package sdiwire

// Kind of a message about an invoice, as file names have it.
type Kind string

// The kinds.
const (
	Delivered   Kind = "RC" // ricevuta di consegna
	Undelivered Kind = "MC" // mancata consegna; of FPR12 impossibilità di recapito
	Refused     Kind = "NS" // scarto: the file counts as not issued
	Outcome     Kind = "NE" // esito committente, of FPA12
	Expired     Kind = "DT" // decorrenza termini, of FPA12
	Attested    Kind = "AT" // attestazione di avvenuta trasmissione con impossibilità di recapito, of FPA12
)

// Message is how a kind travels: the operation of TrasmissioneFatture that
// brings it, the element in the call's body, and the root of the file inside,
// which has a name of its own for invoices between private parties.
type Message struct {
	Kind      Kind
	Operation string
	Element   string
	Public    string // root in SpacePublicMessages
	Private   string // root in SpaceMessages; "": there is none
}

// Messages lists the kinds.
func Messages() []Message {
	return []Message{
		{Delivered, "RicevutaConsegna", "ricevutaConsegna", "RicevutaConsegna", "RicevutaConsegna"},
		{Undelivered, "NotificaMancataConsegna", "notificaMancataConsegna", "NotificaMancataConsegna",
			"RicevutaImpossibilitaRecapito"},
		{Refused, "NotificaScarto", "notificaScarto", "NotificaScarto", "RicevutaScarto"},
		{Outcome, "NotificaEsito", "notificaEsito", "NotificaEsito", ""},
		{Expired, "NotificaDecorrenzaTermini", "notificaDecorrenzaTermini", "NotificaDecorrenzaTermini", ""},
		{Attested, "AttestazioneTrasmissioneFattura", "attestazioneTrasmissioneFattura", "AttestazioneTrasmissioneFattura", ""},
	}
}

// actions stands before the operation in a SOAPAction. RicezioneFatture has
// operations of the same names under another: the action tells them apart.
const actions = "http://www.fatturapa.it/TrasmissioneFatture/"

// Action is the SOAPAction of the call.
func (m Message) Action() string { return actions + m.Operation }

// MessageOf finds a kind.
func MessageOf(k Kind) (Message, bool) {
	for _, m := range Messages() {
		if m.Kind == k {
			return m, true
		}
	}
	return Message{}, false
}

// MessageCalled finds what a SOAPAction, without its quotes, brings.
func MessageCalled(action string) (Message, bool) {
	for _, m := range Messages() {
		if m.Action() == action {
			return m, true
		}
	}
	return Message{}, false
}
