package pa

import (
	"encoding/base64"
	"fmt"
	"slices"

	"tributary/internal/authority"
	"tributary/internal/xmltree"
)

// standingReasons are the reasons that BR-FR-CDV-CL-09 takes for what a buyer says; none: no reason is needed.
var standingReasons = map[string][]string{
	"204": nil, "205": nil, "211": nil, "209": nil,
	"206": {"AUTRE", "CMD_ERR", "SIRET_ERR", "CODE_ROUTAGE_ERR", "REF_CT_ABSENT", "REF_ERR", "PU_ERR", "REM_ERR", "QTE_ERR", "ART_ERR",
		"MODPAI_ERR", "QUALITE_ERR", "LIVR_INCOMP"},
	"207": {"AUTRE", "COORD_BANC_ERR", "TX_TVA_ERR", "MONTANTTOTAL_ERR", "CALCUL_ERR", "NON_CONFORME", "DOUBLON", "DEST_INC", "DEST_ERR",
		"TRANSAC_INC", "EMMET_INC", "CONTRAT_TERM", "DOUBLE_FACT", "CMD_ERR", "SIRET_ERR", "CODE_ROUTAGE_ERR", "REF_CT_ABSENT", "REF_ERR"},
	"208": {"JUSTIF_ABS", "COORD_BANC_ERR", "CMD_ERR", "SIRET_ERR", "CODE_ROUTAGE_ERR", "REF_CT_ABSENT", "REF_ERR"},
	"210": {"TX_TVA_ERR", "MONTANTTOTAL_ERR", "CALCUL_ERR", "NON_CONFORME", "DOUBLON", "DEST_ERR", "TRANSAC_INC", "EMMET_INC", "CONTRAT_TERM",
		"DOUBLE_FACT", "CMD_ERR", "ADR_ERR", "REF_CT_ABSENT"},
}

// answer reads what a buyer says of an invoice, by the rules BR-FR-CDV.
func (x *arrival) answer(root *xmltree.Element) arrival {
	head, ack := root.At("ExchangedDocument"), root.At("AcknowledgementDocument")
	about := ack.At("ReferenceReferencedDocument")
	x.number, x.kind, x.standing = about.Value("IssuerAssignedID"), about.Value("TypeCode"), about.Value("ProcessConditionCode")
	x.day = about.Value("FormattedIssueDateTime", "DateTimeString")
	x.seller.siren, x.buyer.siren = about.Value("IssuerTradeParty", "GlobalID"), head.Value("IssuerTradeParty", "GlobalID")
	reasons, known := standingReasons[x.standing]
	reason := about.Value("SpecifiedDocumentStatus", "ReasonCode")
	for rule, ok := range map[string]bool{
		"BR-FR-CDV-02": root.Value("ExchangedDocumentContext", "GuidelineSpecifiedDocumentContextParameter", "ID") == "urn.cpro.gouv.fr:1p0:CDV:invoice",
		"BR-FR-CDV-03": head.Value("ID") != "", "BR-FR-CDV-04": head.Value("IssueDateTime", "DateTimeString") != "",
		"BR-FR-CDV-06": head.Value("SenderTradeParty", "RoleCode") == "WK", "BR-FR-CDV-07": len(x.buyer.siren) == 9,
		"BR-FR-CDV-CL-03": head.Value("IssuerTradeParty", "RoleCode") == "BY", "BR-FR-CDV-CL-04": head.Value("RecipientTradeParty", "RoleCode") == "SE",
		"BR-FR-CDV-08": head.Value("RecipientTradeParty", "URIUniversalCommunication", "URIID") != "",
		"BR-FR-CDV-09": ack.Value("TypeCode") == "23", "BR-FR-CDV-10": x.number != "", "BR-FR-CDV-11": len(x.day) == 8,
		"BR-FR-CDV-12": x.standing != "", "BR-FR-CDV-CL-06": known, "BR-FR-CDV-13": len(x.seller.siren) == 9,
		"BR-FR-CDV-15": reasons == nil || slices.Contains(reasons, reason),
	} {
		if !ok {
			x.unreadable = append(x.unreadable, detail{"Error", "file", "InvoiceLCError", rule})
		}
	}
	slices.SortFunc(x.unreadable, func(a, b detail) int { return len(a.Message) - len(b.Message) })
	return *x
}

// passOn brings a buyer's status to the seller: into its mailbox, as the buyer wrote it.
func (a *double) passOn(b *authority.Book, e *entry, x *arrival, step authority.Step) {
	if step.Outcome == authority.Reject {
		e.Ack = &acknowledgement{ackError, []detail{{"Error", "file", "InvoiceLCError", "refused by the script"}}}
		b.Keep("flow/"+e.ID, e)
		return
	}
	b.Register(authority.Registration{Supplier: x.buyer.siren, Number: x.number + " " + x.standing, SHA256: x.hash, AuthorityID: e.ID, At: e.Submitted,
		Key: "status/" + e.Tracking})
	file, err := base64.StdEncoding.DecodeString(b.Text("data/" + e.ID))
	if err != nil {
		return
	}
	to := entry{Org: x.seller.siren}
	to.Type, to.Direction, to.Syntax, to.Rule, to.Ack = typeStatus, "In", syntaxStatus, "B2B", &acknowledgement{Status: ackOk}
	to.Name = fmt.Sprintf("%s_%s.xml", x.number, x.standing)
	a.keep(b, &to, file)
}
