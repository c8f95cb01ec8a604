package pa

import (
	"fmt"
	"time"

	"tributary/internal/authority"
	"tributary/internal/xmltree"
)

const spaceAggregates = "urn:un:unece:uncefact:data:standard:"

// spoken is a status of the official table: what it is called, its code in the
// message, and who says it.
type spoken struct {
	name, code, kind string
	buyer            bool
}

var statuses = map[string]spoken{
	"200": {"Déposée", "10", "305", false}, "201": {"Émise par la plateforme", "51", "305", false},
	"202": {"Reçue par la plateforme", "43", "305", false}, "203": {"Mise à disposition", "48", "305", false},
	"204": {"Prise en charge", "45", "23", true}, "205": {"Approuvée", "1", "23", true},
	"206": {"Approuvée partiellement", "46", "23", true}, "207": {"En litige", "46", "23", true},
	"208": {"Suspendue", "39", "23", true}, "209": {"Complétée", "37", "23", true},
	"210": {"Refusée", "8", "23", true}, "211": {"Paiement transmis", "47", "23", true},
	"212": {"Encaissée", "47", "23", false}, "213": {"Rejetée", "8", "305", false},
	"300": {"Déposée", "10", "305", false}, "301": {"Rejetée", "8", "305", false}, // of reports, by the administration
}

// reasonsOf are what the double says of statuses that need a reason.
func reasonsOf(code string) []flaw {
	switch code {
	case "206", "207":
		return []flaw{{"QTE_ERR", "Quantité erronée"}}
	case "208":
		return []flaw{{"CMD_ERR", "Référence de commande absente"}}
	case "210":
		return []flaw{{"TRANSAC_INC", "Transaction inconnue"}}
	case "213":
		return []flaw{{"REJ_COH", "Données incohérentes"}}
	}
	return nil
}

// say puts a status into the mailbox of the seller: a flow with a message (CDAR).
func (a *double) say(b *authority.Book, x *arrival, code string, why []flaw) {
	e := entry{Org: x.org}
	e.Type, e.Direction, e.Syntax, e.Rule, e.Ack = typeStatus, "In", syntaxStatus, "B2B", &acknowledgement{Status: ackOk}
	e.Name = fmt.Sprintf("%s_%s.xml", x.number, code)
	var n int
	b.Load("statuses", &n)
	b.Keep("statuses", n+1)
	a.keep(b, &e, x.message(code, why, a.now(), n+1))
}

// pen writes messages.
type pen struct{ *xmltree.Writer }

// nested writes a value below names.
func (w pen) nested(value string, names ...string) {
	last := len(names) - 1
	for _, name := range names[:last] {
		w.Start(name)
	}
	w.Leaf(names[last], value)
	for range last {
		w.End()
	}
}

// moment writes a time in a format of UN/EDIFACT 2379.
func (w pen) moment(name, value, inner, format string) {
	w.Start(name)
	w.Leaf(inner, value, "format", format)
	w.End()
}

// message writes a status as platforms write it (CDAR D22B); n tells it from others
// of the same second.
func (x *arrival) message(code string, why []flaw, now time.Time, n int) []byte {
	zone, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		zone = time.UTC
	}
	at := now.In(zone).Format("20060102150405")
	w := pen{xmltree.NewWriter(4 << 10)}
	w.Declare()
	w.Start("rsm:CrossDomainAcknowledgementAndResponse", "xmlns:rsm", spaceAggregates+"CrossDomainAcknowledgementAndResponse:100",
		"xmlns:ram", spaceAggregates+"ReusableAggregateBusinessInformationEntity:100",
		"xmlns:qdt", spaceAggregates+"QualifiedDataType:100", "xmlns:udt", spaceAggregates+"UnqualifiedDataType:100")
	w.Start("rsm:ExchangedDocumentContext")
	w.nested("REGULATED", "ram:BusinessProcessSpecifiedDocumentContextParameter", "ram:ID")
	w.nested("urn.cpro.gouv.fr:1p0:CDV:invoice", "ram:GuidelineSpecifiedDocumentContextParameter", "ram:ID")
	w.End()
	w.Start("rsm:ExchangedDocument")
	w.Leaf("ram:ID", fmt.Sprintf("%s_%s_%s_%d#%s_%s", x.number, code, at, n, x.kind, x.day))
	w.Leaf("ram:Name", x.number+"-CDV-"+code)
	w.moment("ram:IssueDateTime", at, "udt:DateTimeString", "204")
	w.nested("WK", "ram:SenderTradeParty", "ram:RoleCode")
	w.Start("ram:IssuerTradeParty")
	if statuses[code].buyer {
		w.Leaf("ram:GlobalID", x.buyer.siren, "schemeID", "0002")
		w.Leaf("ram:RoleCode", "BY")
	} else {
		w.Leaf("ram:RoleCode", "WK")
	}
	w.End()
	w.Start("ram:RecipientTradeParty")
	w.Leaf("ram:GlobalID", x.seller.siren, "schemeID", "0002")
	w.Leaf("ram:RoleCode", "SE")
	w.Start("ram:URIUniversalCommunication")
	w.Leaf("ram:URIID", x.seller.siren, "schemeID", "0225")
	w.End()
	w.End()
	w.End()
	x.about(w, code, why, at)
	w.End()
	return w.Bytes()
}

// about writes which invoice a status is of, and why.
func (x *arrival) about(w pen, code string, why []flaw, at string) {
	status := statuses[code]
	w.Start("rsm:AcknowledgementDocument")
	w.nested("false", "ram:MultipleReferencesIndicator", "udt:Indicator")
	w.Leaf("ram:TypeCode", status.kind)
	w.moment("ram:IssueDateTime", at, "udt:DateTimeString", "204")
	w.Start("ram:ReferenceReferencedDocument")
	w.Leaf("ram:IssuerAssignedID", x.number)
	w.Leaf("ram:StatusCode", status.code)
	w.Maybe("ram:TypeCode", x.kind)
	w.moment("ram:ReceiptDateTime", at, "udt:DateTimeString", "204")
	w.moment("ram:FormattedIssueDateTime", x.day, "qdt:DateTimeString", "102")
	w.Leaf("ram:ProcessConditionCode", code)
	w.Leaf("ram:ProcessCondition", status.name)
	w.Start("ram:IssuerTradeParty")
	w.Leaf("ram:GlobalID", x.seller.siren, "schemeID", "0002")
	w.End()
	for i, f := range why {
		w.Start("ram:SpecifiedDocumentStatus")
		w.Leaf("ram:ReasonCode", f.code)
		w.Leaf("ram:Reason", f.text)
		w.Leaf("ram:SequenceNumeric", fmt.Sprint(i+1))
		w.End()
	}
	w.End()
	w.End()
}
