package sdi

import (
	"context"
	"encoding/base64"
	"fmt"

	"tributary/internal/authority"
	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// received is the kind of a notice that is no message about a file but the file itself,
// for who receives it here (RicezioneFatture, RiceviFatture).
const received sdiwire.Kind = "RF"

// invoice makes the call that brings a file to its receiver.
func (a *double) invoice(n notice) func(context.Context) bool {
	var text string
	a.desk.Read(func(b *authority.Book) { text, _ = b.Get(fileKey(n.SdI)) })
	file, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(file) == 0 {
		return nil
	}
	kind, body := n.deliver(file)
	return func(ctx context.Context) bool {
		var to string
		a.desk.Read(func(b *authority.Book) { to, _ = b.Get(recipientKey(n.Receiver)) })
		return to != "" && call(ctx, to, sdiwire.ActionReceived, kind, body)
	}
}

// deliver is the body of the call: the file, and what SdI says of it. In every second one
// the file stands beside the envelope.
func (n notice) deliver(file []byte) (contentType string, body []byte) {
	about := n.metadata()
	packed := n.N%2 == 0
	w := xmltree.NewWriter(len(file)*4/3 + 4096)
	w.Declare()
	soap.Message{Version: soap.V11, NoHeader: true, Body: func(w *xmltree.Writer) {
		w.Start("ns2:"+sdiwire.ElementReceived, "xmlns:ns2", sdiwire.SpaceReceiving)
		w.Leaf("IdentificativoSdI", n.id())
		w.Leaf("NomeFile", n.File)
		writeFile(w, file, packed)
		w.Leaf("NomeFileMetadati", sdiwire.MessageName(n.File, "MT", 1))
		w.Leaf("Metadati", base64.StdEncoding.EncodeToString(about))
		w.End()
	}}.WriteTo(w)
	return finished(w, file, packed)
}

// metadata is SdI's file about an invoice that it delivers.
func (n notice) metadata() []byte {
	space, root := sdiwire.SpaceMessages, sdiwire.RootMetadata
	if n.Public {
		space, root = sdiwire.SpacePublicMessages, sdiwire.RootPublicMetadata
	}
	w := xmltree.NewWriter(1024)
	w.Declare()
	w.Start("ns3:"+root, "xmlns:ns3", space, "versione", "1.0")
	w.Leaf("IdentificativoSdI", n.id())
	w.Leaf("NomeFile", n.File)
	if !n.Public {
		w.Leaf("Hash", n.SHA256)
	}
	w.Leaf("CodiceDestinatario", n.To)
	w.Leaf("Formato", n.Format)
	w.Leaf("TentativiInvio", "1")
	w.Leaf("MessageId", n.messageID())
	w.Leaf("Note", fmt.Sprintf("consegna simulata a %s", n.Receiver))
	w.End()
	return w.Bytes()
}
