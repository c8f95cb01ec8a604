package nav

import (
	"encoding/base64"
	"net/http"

	"tributary/internal/authority"
	"tributary/internal/official"
	"tributary/internal/official/navwire"
	"tributary/internal/xmltree"
)

// manageAnnulment takes technical annulments. Each waits for a person in NAV's
// portal, who never comes here: what was reported stays registered.
func (a *double) manageAnnulment(c *call) {
	ops := c.root.At("annulmentOperations").All("annulmentOperation")
	if !a.mayReport(c, ops) {
		return
	}
	turn := a.desk.Turn()
	if !turn.Begin(c.w, c.busy) {
		return
	}
	var id string
	err := a.desk.Write(func(b *authority.Book) {
		id = freeID(b, c.taxpayer)
		r := report{Taxpayer: c.taxpayer, Login: c.login, At: a.now().UTC(), Annuls: true}
		for i, op := range ops {
			b.Put(dataKey(id, i+1), op.Value("invoiceAnnulment"))
			r.Items = append(r.Items, annul(b, c.taxpayer, op.Value("invoiceAnnulment")))
		}
		keepReport(b, id, r)
	})
	if err != nil {
		c.refuse(http.StatusInternalServerError, navwire.OperationFailed, "Sikertelen művelet!")
		return
	}
	if turn.End(c.w, c.r) {
		c.answer(func(w *xmltree.Writer) { w.Leaf("transactionId", id) })
	}
}

func annulKey(taxpayer, number string) string { return "annul/" + key(taxpayer, number) }

// annulling reports whether an annulment of an invoice waits for its approval.
func annulling(b *authority.Book, taxpayer, number string) bool {
	_, waits := b.Get(annulKey(taxpayer, number))
	return waits
}

func inProgress() remark {
	return remark{Severity: navwire.Error, Code: navwire.AnnulmentInProgress,
		Text: "A számlára technikai érvénytelenítés van folyamatban."}
}

// annul judges one annulment and enters it.
func annul(b *authority.Book, taxpayer, data string) item {
	it := item{Operation: navwire.Annul, Status: navwire.Aborted}
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		it.Remarks = []remark{technical("Az invoiceAnnulment nem BASE64 kódolású.")}
		return it
	}
	doc, err := xmltree.Limits{Bytes: navwire.BodyBytesMax}.Read(text)
	switch {
	case err != nil:
		it.Remarks = []remark{technical(err.Error())}
		return it
	case !doc.Root.Is(navwire.SpaceAnnul, "InvoiceAnnulment"):
		it.Remarks = []remark{technical("A gyökérelem nem InvoiceAnnulment.")}
		return it
	}
	if flaw := official.NAV.Schema().First(doc.Root); flaw != nil {
		it.Remarks = []remark{technical(flaw.Error())}
		return it
	}
	it.Number = doc.Root.Value("annulmentReference")
	_, held := b.FindKey(key(taxpayer, it.Number))
	switch {
	case !held:
		it.Remarks = []remark{{Severity: navwire.Error, Code: navwire.AnnulmentReference,
			Text: "A hivatkozott számla nem található."}}
	case annulling(b, taxpayer, it.Number):
		it.Remarks = []remark{inProgress()}
	default:
		it.Status = navwire.Done
		b.Put(annulKey(taxpayer, it.Number), doc.Root.Value("annulmentCode"))
	}
	return it
}
