package sdi

import (
	"fmt"
	"strconv"
	"time"

	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
)

// notice is a message about a file: enough to write it, again the same.
type notice struct {
	Kind     sdiwire.Kind `json:"kind"`
	SdI      int64        `json:"sdi"`
	File     string       `json:"file"`
	SHA256   string       `json:"sha256"`
	Received time.Time    `json:"received"`
	Flaws    []flaw       `json:"flaws,omitempty"`
	To       string       `json:"to,omitempty"` // CodiceDestinatario
	Public   bool         `json:"public,omitempty"`
	Esito    string       `json:"esito,omitempty"`
	Text     string       `json:"text,omitempty"`   // Descrizione of it
	Number   string       `json:"number,omitempty"` // of the invoice, and its year
	Year     string       `json:"year,omitempty"`

	N       int64     `json:"n"` // of the message; its MessageId
	At      time.Time `json:"at"`
	Channel string    `json:"channel"`
	Times   int       `json:"times,omitempty"` // to be sent; 0 is once

	Receiver string `json:"receiver,omitempty"` // of the file itself; see received
	Format   string `json:"format,omitempty"`

	Open *record `json:"open,omitempty"` // no message: the file waits for its decision
}

// instant is how SdI writes one.
const instant = "2006-01-02T15:04:05.000-07:00"

// write makes the signed message.
func (n notice) write() (text []byte, name string, err error) {
	keys, err := keysOf()
	if err != nil {
		return nil, "", err
	}
	m, ok := sdiwire.MessageOf(n.Kind)
	if !ok {
		return nil, "", fmt.Errorf("%q is no kind of message", n.Kind)
	}
	space, root := sdiwire.SpaceMessages, m.Private
	if n.public() {
		space, root = sdiwire.SpacePublicMessages, m.Public
	}
	text, err = keys.signed(n.At, func(sign func(*xmltree.Writer)) []byte {
		w := xmltree.NewWriter(8 << 10)
		w.Declare()
		w.Start("ns3:"+root, "xmlns:ns3", space, "xmlns:ns2", sdiwire.SpaceSignature, "versione", "1.0")
		n.body(w)
		sign(w)
		w.End()
		return w.Bytes()
	})
	return text, sdiwire.MessageName(n.File, n.Kind, 1), err
}

// public reports whether the message is one of the public administration's.
func (n notice) public() bool {
	return n.Public || n.Kind == sdiwire.Outcome || n.Kind == sdiwire.Expired || n.Kind == sdiwire.Attested
}

func (n notice) id() string { return strconv.FormatInt(n.SdI, 10) }

// messageID has at most 14 characters among public messages.
func (n notice) messageID() string { return strconv.FormatInt(200_000_000+n.N, 10) }

// body writes what stands between the root and the signature.
func (n notice) body(w *xmltree.Writer) {
	w.Leaf("IdentificativoSdI", n.id())
	if n.Kind == sdiwire.Expired {
		n.reference(w)
	}
	w.Leaf("NomeFile", n.File)
	if !n.public() {
		w.Leaf("Hash", n.SHA256)
	}
	received := n.Received.In(rome()).Format(instant)
	switch n.Kind {
	case sdiwire.Delivered:
		w.Leaf("DataOraRicezione", received)
		w.Leaf("DataOraConsegna", n.At.In(rome()).Format(instant))
		n.recipient(w)
	case sdiwire.Undelivered:
		w.Leaf("DataOraRicezione", received)
		if !n.public() {
			w.Leaf("DataMessaADisposizione", n.At.In(rome()).Format(time.DateOnly))
		}
		w.Leaf("Descrizione", "Il file non è stato recapitato: è a disposizione nell'area riservata del cessionario")
	case sdiwire.Refused:
		w.Leaf("DataOraRicezione", received)
		n.errors(w)
	case sdiwire.Outcome:
		n.outcome(w)
	case sdiwire.Expired:
		w.Leaf("Descrizione", "Decorrenza dei termini per la comunicazione dell'esito")
	case sdiwire.Attested:
		w.Leaf("DataOraRicezione", received)
		n.recipient(w)
	}
	w.Leaf("MessageId", n.messageID())
	if n.Kind == sdiwire.Attested {
		w.Leaf("HashFileOriginale", n.SHA256)
	}
}

func (n notice) recipient(w *xmltree.Writer) {
	w.Start("Destinatario")
	w.Leaf("Codice", n.To)
	w.Leaf("Descrizione", "Destinatario simulato")
	w.End()
}

func (n notice) reference(w *xmltree.Writer) {
	w.Start("RiferimentoFattura")
	w.Leaf("NumeroFattura", n.Number)
	w.Leaf("AnnoFattura", n.Year)
	w.End()
}

func (n notice) outcome(w *xmltree.Writer) {
	w.Start("EsitoCommittente", "versione", "1.0")
	w.Leaf("IdentificativoSdI", n.id())
	n.reference(w)
	w.Leaf("Esito", n.Esito)
	if n.Text == "" && n.Esito == sdiwire.EsitoRefused {
		n.Text = "La fattura non corrisponde a quanto ricevuto"
	}
	w.Maybe("Descrizione", n.Text)
	w.Leaf("MessageIdCommittente", n.messageID())
	w.End()
}

func (n notice) errors(w *xmltree.Writer) {
	w.Start("ListaErrori")
	for _, f := range n.Flaws[:min(len(n.Flaws), sdiwire.ErrorsMax)] {
		most := 1000
		if n.public() {
			most = 255
		}
		w.Start("Errore")
		w.Leaf("Codice", f.Code)
		w.Leaf("Descrizione", clipped(f.Text, most))
		if !n.public() {
			w.Leaf("Suggerimento", suggestion)
		}
		w.End()
	}
	w.End()
}

func clipped(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}
