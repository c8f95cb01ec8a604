package es_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority/aeat"
	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/country/identity"
	"tributary/internal/official/aeatwire"
	"tributary/internal/transaction"
)

// post sends a SOAP call as it is, with the supplier's certificate.
func (o *office) post(body []byte, c country.Credentials) (int, string) {
	o.t.Helper()
	id, err := identity.NewKeeper().Open(c.Certificate(), time.Now())
	if err != nil {
		o.t.Fatal(err)
	}
	at := country.Endpoint{BaseURL: o.server.URL + "/es", HTTP: o.server.Client()}
	resp, err := new(country.Callers).Client(at, id.TLS()).Post(at.BaseURL+aeatwire.ServicePath, "text/xml",
		bytes.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// fresh is a draft made now, so that nothing about its time is remarked.
func fresh(d country.Draft) country.Draft {
	d.Now = time.Now()
	return d
}

func record(t testing.TB, f country.Filing) []byte {
	t.Helper()
	r, ok := es.RecordOf(f.Report)
	if !ok {
		t.Fatal("a report without a record")
	}
	return r
}

func byName(t testing.TB, name string) country.Draft {
	t.Helper()
	for _, c := range cases() {
		if c.Name == name {
			return fresh(c.Draft)
		}
	}
	t.Fatalf("no case %q", name)
	return country.Draft{}
}

// Each row spoils one record of a case by replacing a text, and names the code
// with which AEAT refuses it (or takes it with errors).
func TestDoubleRefusesWithAEATsOwnCodes(t *testing.T) {
	const (
		detail    = "</sf:BaseImponibleOimporteNoSujeto>\n<sf:CuotaRepercutida>21.00</sf:CuotaRepercutida>\n"
		customer  = "<sf:Destinatarios>\n<sf:IDDestinatario>\n<sf:NombreRazon>Acme Ibérica, S.A.</sf:NombreRazon>\n<sf:NIF>A28015865</sf:NIF>\n</sf:IDDestinatario>\n</sf:Destinatarios>\n"
		byFifteen = "<sf:OperacionExenta>E1</sf:OperacionExenta>"
	)
	for _, row := range []struct{ name, of, old, new, code string }{
		{"unknown type", "business", "<sf:TipoFactura>F1", "<sf:TipoFactura>F9", "1106"},
		{"unknown method", "adjustment by difference", "TipoRectificativa>I<", "TipoRectificativa>Z<", "1107"},
		{"another issuer", "business", "<sf:IDEmisorFactura>89890001K", "<sf:IDEmisorFactura>A28015865", "1108"},
		{"day after today", "business", "FechaExpedicionFactura>01-04-2026", "FechaExpedicionFactura>01-04-2099", "1112"},
		{"no such day", "business", "FechaExpedicionFactura>01-04-2026", "FechaExpedicionFactura>31-02-2026", "1105"},
		{"day before the law", "business", "FechaExpedicionFactura>01-04-2026", "FechaExpedicionFactura>27-10-2024", "1152"},
		{"method missing", "adjustment by difference", "<sf:TipoRectificativa>I</sf:TipoRectificativa>\n", "", "1114"},
		{"method without correction", "business", "<sf:TipoFactura>F1</sf:TipoFactura>",
			"<sf:TipoFactura>F1</sf:TipoFactura>\n<sf:TipoRectificativa>I</sf:TipoRectificativa>", "1115"},
		{"replaced by no F3", "full invoice for a simplified one", "TipoFactura>F3", "TipoFactura>F1", "1116"},
		{"substitution without amounts", "adjustment by difference", "TipoRectificativa>I<", "TipoRectificativa>S<", "1118"},
		{"difference with amounts", "adjustment by substitution", "TipoRectificativa>S<", "TipoRectificativa>I<", "1119"},
		{"wrong NIF", "business", "<sf:NIF>A28015865", "<sf:NIF>A28015866", "1123"},
		{"unknown rate", "business", "TipoImpositivo>21<", "TipoImpositivo>20<", "1124"},
		{"rate of 2024", "business", "TipoImpositivo>21<", "TipoImpositivo>7.5<", "1235"},
		{"pending and supplied already", "business", "ClaveRegimen>01<", "ClaveRegimen>14<", "1147"},
		{"coupon of an invoice", "business", customer, customer + "<sf:Cupon>S</sf:Cupon>\n", "1157"},
		{"rate of before", "business", "TipoImpositivo>21<", "TipoImpositivo>5<", "1194"},
		{"forbidden character", "business", "NumSerieFactura>A-1<", "NumSerieFactura>A=1<", "1130"},
		{"large without saying so", "business", "ImporteTotal>121.00<", "ImporteTotal>100000000.00<", "1139"},
		{"large says who is not", "largest amount", "ImporteTotal>999999999999.99<", "ImporteTotal>99999999.99<", "1138"},
		{"tax far from base", "business", "CuotaRepercutida>21.00<", "CuotaRepercutida>31.01<", "1142"},
		{"opposite signs", "business", "CuotaRepercutida>21.00<", "CuotaRepercutida>-21.00<", "1143"},
		{"large simplified", "simplified", "NoSujeto>13.64<", "NoSujeto>3100.00<", "1142"},
		{"X without subsanación", "after a refusal", "<sf:Subsanacion>S</sf:Subsanacion>\n", "", "1153"},
		{"S without subsanación", "business", "<sf:TipoFactura>F1",
			"<sf:RechazoPrevio>S</sf:RechazoPrevio>\n<sf:TipoFactura>F1", "1161"},
		{"art. 61d of a full invoice", "individual abroad without number", "TipoFactura>F2", "TipoFactura>F1", "1185"},
		{"third party missing", "issued by the customer", "Destinatario>D<", "Destinatario>T<", "1186"},
		{"third party unannounced", "marketplace", "Destinatario>T<", "Destinatario>D<", "1187"},
		{"third party is the issuer", "marketplace", "<sf:NIF>B12345674", "<sf:NIF>89890001K", "1188"},
		{"customer missing", "business", customer, "", "1189"},
		{"customer of a simplified one", "business", "TipoFactura>F1", "TipoFactura>F2", "1190"},
		{"bad debt abroad", "export", "TipoFactura>F1</sf:TipoFactura>",
			"TipoFactura>R3</sf:TipoFactura>\n<sf:TipoRectificativa>I</sf:TipoRectificativa>", "1191"},
		{"reverse charge with a rate", "reverse charge", "TipoImpositivo>0<", "TipoImpositivo>21<", "1198"},
		{"export in the general regime", "export", "ClaveRegimen>02<", "ClaveRegimen>01<", "1199"},
		{"used goods not subject", "union services", "ClaveRegimen>01<", "ClaveRegimen>03<", "1200"},
		{"gold taxed", "business", "ClaveRegimen>01<", "ClaveRegimen>04<", "1201"},
		{"group without cost", "business", "ClaveRegimen>01<", "ClaveRegimen>06<", "1202"},
		{"cash accounting of exports", "union goods", "ClaveRegimen>01<", "ClaveRegimen>07<", "1203"},
		{"collection taxed", "business", "ClaveRegimen>01<", "ClaveRegimen>10<", "1205"},
		{"lease at a reduced rate", "simplified", "ClaveRegimen>01<", "ClaveRegimen>11<", "1206"},
		{"rate missing", "business", "<sf:TipoImpositivo>21</sf:TipoImpositivo>\n", "", "1208"},
		{"not subject with a tax", "business", "Operacion>S1<", "Operacion>N1<", "1237"},
		{"exempt with a rate", "exempt", byFifteen, byFifteen + "\n<sf:TipoImpositivo>0</sf:TipoImpositivo>", "1238"},
		{"regime missing", "business", "<sf:ClaveRegimen>01</sf:ClaveRegimen>\n", "", "1245"},
		{"regime 08 taxed", "business", "ClaveRegimen>01<", "ClaveRegimen>08<", "1252"},
		{"surcharge of another rate", "equivalence surcharge", "TipoRecargoEquivalencia>5.2<",
			"TipoRecargoEquivalencia>1.4<", "1127"},
		{"surcharge without amount", "equivalence surcharge",
			"<sf:CuotaRecargoEquivalencia>5.20</sf:CuotaRecargoEquivalencia>\n", "", "1284"},
		{"export taxed", "business", "ClaveRegimen>01<", "ClaveRegimen>02<", "1286"},
		{"union supply to a NIF", "exempt", ">E1<", ">E5<", "1289"},
		{"cost base", "business", detail,
			"</sf:BaseImponibleOimporteNoSujeto>\n<sf:BaseImponibleACoste>1</sf:BaseImponibleACoste>\n<sf:CuotaRepercutida>21.00</sf:CuotaRepercutida>\n", "1257"},
		{"VAT number without form", "union goods", "<sf:ID>DE111111125", "<sf:ID>DE11111112", "1103"},
		{"other id without country", "export", "<sf:CodigoPais>US</sf:CodigoPais>\n", "", "1111"},
		{"other id of Spain", "export", "CodigoPais>US<", "CodigoPais>ES<", "1126"},
		{"software id", "business", "IdSistemaInformatico>TR<", "IdSistemaInformatico>t1<", "1177"},
		{"long name", "business", "<sf:NombreRazonEmisor>", "<sf:NombreRazonEmisor>" + strings.Repeat("ñ", 120), "1100"},
		{"cancelled by nobody", "cancellation", "<sf:Encadenamiento>",
			"<sf:GeneradoPor>E</sf:GeneradoPor>\n<sf:Encadenamiento>", "1224"},
		{"cancellation of nothing", "cancellation", "", "", "3002"},
		{"wrong huella", "business", "<sf:Huella>", "<sf:Huella>0", "1262"},
		{"huella of something else", "business", "ImporteTotal>121.00<", "ImporteTotal>121.01<", "2000"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := open(t, patient(0, 100))
			f := o.prepare(byName(t, row.of), country.Link{})
			spoilt := bytes.Replace(record(t, f), []byte(row.old), []byte(row.new), 1)
			if row.old != "" && bytes.Equal(spoilt, record(t, f)) {
				t.Fatal("nothing was spoilt")
			}
			_, answer := o.post(es.Envelope(supplier, nif, false, spoilt), credentials())
			want := "<sfR:CodigoErrorRegistro>" + row.code + "<"
			if row.code[0] == '4' {
				want = "Codigo[" + row.code + "]." + aeat.Message(row.code)
			} else if !strings.Contains(answer, aeat.Message(row.code)) {
				t.Errorf("AEAT's text is missing")
			}
			if !strings.Contains(answer, want) {
				t.Errorf("%s is missing in %s", want, answer)
			}
			if held := o.registrations(); (len(held) == 1) != (row.code[0] == '2') {
				t.Errorf("registered %+v", held)
			}
		})
	}
}

// Rules about several fields at once: each row changes all it names. Without a
// code the record is taken, with or without remarks.
func TestDoubleJudgesFieldsTogether(t *testing.T) {
	const day, ahead = "<sf:DescripcionOperacion>",
		"<sf:FechaOperacion>02-04-2026</sf:FechaOperacion>\n<sf:DescripcionOperacion>"
	before := strings.ReplaceAll(ahead, "02-04-2026", "30-09-2024")
	for name, row := range map[string]struct {
		changes []string // old, new, …
		code    string
	}{
		"pending, of a company": {[]string{"ClaveRegimen>01<", "ClaveRegimen>14<", day, ahead}, "1149"},
		"pending, of a town": {[]string{"ClaveRegimen>01<", "ClaveRegimen>14<", day, ahead,
			"<sf:NIF>A28015865", "<sf:NIF>P2807900B"}, ""},
		"2 % on the day before it began": {[]string{"TipoImpositivo>21<", "TipoImpositivo>2<", "CuotaRepercutida>21.00<",
			"CuotaRepercutida>2.00<", day, before}, "1235"},
		"5 % on its last day": {[]string{"TipoImpositivo>21<", "TipoImpositivo>5<", "CuotaRepercutida>21.00<",
			"CuotaRepercutida>5.00<", day, before}, ""},
		"5 % on the day before it began": {[]string{"TipoImpositivo>21<", "TipoImpositivo>5<", day,
			strings.ReplaceAll(before, "30-09-2024", "30-06-2022")}, "1194"},
		"a backslash, which AEAT lets stand": {[]string{"NumSerieFactura>A-1<", `NumSerieFactura>A\1<`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, patient(0, 100))
			spoilt := string(record(t, o.prepare(byName(t, "business"), country.Link{})))
			for i := 0; i < len(row.changes); i += 2 {
				if !strings.Contains(spoilt, row.changes[i]) {
					t.Fatalf("no %q to change", row.changes[i])
				}
				spoilt = strings.Replace(spoilt, row.changes[i], row.changes[i+1], 1)
			}
			_, answer := o.post(es.Envelope(supplier, nif, false, []byte(spoilt)), credentials())
			if row.code == "" && len(o.registrations()) != 1 ||
				row.code != "" && !strings.Contains(answer, "<sfR:CodigoErrorRegistro>"+row.code+"<") {
				t.Errorf("want %q: %s", row.code, answer)
			}
		})
	}
}

// A structure that the schema does not know refuses the whole call.
func TestDoubleRefusesWholeCalls(t *testing.T) {
	o := open(t, patient(0, 100))
	f := o.prepare(byName(t, "business"), country.Link{})
	good := es.Envelope(supplier, nif, false, record(t, f))
	stranger, password, err := identity.Test("A28015865", "Acme", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	expired, old, err := identity.Test(nif, supplier, time.Now().AddDate(-5, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	own := credentials()
	many := make([][]byte, 1001)
	for i := range many {
		many[i] = record(t, f)
	}
	replace := func(old, new string) []byte {
		if !bytes.Contains(good, []byte(old)) {
			t.Fatalf("no %q to replace", old)
		}
		return bytes.Replace(good, []byte(old), []byte(new), 1)
	}
	for _, row := range []struct {
		name string
		body []byte
		with country.Credentials
		want string
	}{
		{"no body", nil, own, "4138"},
		{"no XML", []byte("hello"), own, "4103"},
		{"DOCTYPE", replace("<soapenv:Envelope", "<!DOCTYPE x>\n<soapenv:Envelope"), own, "4103"},
		{"cut off", good[:len(good)/2], own, "4103"},
		{"not UTF-8", replace("Tal", "T\xff"), own, "4103"},
		{"another service", bytes.ReplaceAll(good, []byte("RegFactuSistemaFacturacion"), []byte("Otro")), own, "4118"},
		{"missing element", replace("<sf:TipoFactura>F1</sf:TipoFactura>\n", ""), own,
			"4102].El XML no cumple el esquema. Falta informar campo obligatorio.: TipoFactura"},
		{"wrong order", replace("<sf:CuotaTotal>21.00</sf:CuotaTotal>\n<sf:ImporteTotal>121.00</sf:ImporteTotal>",
			"<sf:ImporteTotal>121.00</sf:ImporteTotal>\n<sf:CuotaTotal>21.00</sf:CuotaTotal>"), own, "4102"},
		{"unknown element", replace("<sf:TipoHuella>", "<sf:Sorpresa>1</sf:Sorpresa>\n<sf:TipoHuella>"), own, "4102"},
		{"another namespace", replace("SuministroInformacion.xsd", "Otra.xsd"), own, "4102"},
		{"1,001 records", es.Envelope(supplier, nif, false, many...), own, "4114"},
		{"wrong NIF in the header", es.Envelope(supplier, "89890001A", false, record(t, f)), own, "4116"},
		{"incident", replace("</sfLR:Cabecera>",
			"<sf:RemisionVoluntaria><sf:Incidencia>X</sf:Incidencia></sf:RemisionVoluntaria></sfLR:Cabecera>"), own, "4121"},
		{"on request", replace("</sfLR:Cabecera>",
			"<sf:RemisionRequerimiento><sf:RefRequerimiento>1</sf:RefRequerimiento></sf:RemisionRequerimiento></sfLR:Cabecera>"), own, "4126"},
		{"certificate of another", good, country.Credentials{PKCS12: stranger, Password: password}, "4112"},
	} {
		t.Run(row.name, func(t *testing.T) {
			status, answer := o.post(row.body, row.with)
			if status != http.StatusInternalServerError || !strings.Contains(answer, "Codigo["+row.want) {
				t.Errorf("%d %s", status, answer)
			}
		})
	}
	if _, err := identity.NewKeeper().Open(country.Credentials{PKCS12: expired, Password: old}.Certificate(),
		time.Now()); err == nil {
		t.Error("an expired certificate can be opened")
	}
	resp, err := http.Post(o.server.URL+"/es"+aeatwire.ServicePath, "text/xml", bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("without a certificate: %d", resp.StatusCode)
	}
	if held := o.registrations(); len(held) != 0 {
		t.Errorf("registered %+v", held)
	}
}

// The table of AEAT, "Validaciones" 1.2.0, annex 6: which records are admitted
// when the invoice is unknown, registered or cancelled.
func TestDoubleAdmitsRecordsByTheTableOfAnnexSix(t *testing.T) {
	const plainAlta, amends, afterRefusal, cancels, cancelsUnknown = "alta", "S", "X", "anulacion", "sin registro"
	for _, row := range []struct{ state, record, code string }{
		{"none", plainAlta, ""}, {"none", amends, "3002"}, {"none", afterRefusal, ""}, {"none", cancels, "3002"},
		{"none", cancelsUnknown, ""},
		{"alta", plainAlta, "3000"}, {"alta", amends, ""}, {"alta", afterRefusal, "3000"}, {"alta", cancels, ""},
		{"alta", cancelsUnknown, "3000"},
		{"annulled", plainAlta, "3000"}, {"annulled", amends, ""}, {"annulled", afterRefusal, "3000"},
		{"annulled", cancels, ""}, {"annulled", cancelsUnknown, "3000"},
	} {
		t.Run(row.state+" "+row.record, func(t *testing.T) {
			o := open(t, patient(0, 100))
			invoice := byName(t, "business")
			var last country.Link
			if row.state != "none" {
				f := o.prepare(invoice, last)
				o.send(f)
				last = f.Link
			}
			cancellation := fresh(correction(transaction.Cancellation, "C-9", invoice, line("x", 1, "21")))
			if row.state == "annulled" {
				f := o.prepare(cancellation, last)
				o.send(f)
				last = f.Link
			}
			again := invoice
			again.OperationID += "-again"
			again.Now = again.Now.Add(time.Second)
			switch row.record {
			case afterRefusal:
				again = refusedBefore(again)
			case cancels, cancelsUnknown:
				again = cancellation
				again.Transaction.Number, again.Now = "C-10", again.Now.Add(time.Second)
				again.Original.Backfilled = row.record == cancelsUnknown
				if again.Original.Backfilled {
					again.Original.AuthorityID1 = ""
				}
			}
			spoken := record(t, o.prepare(again, last))
			if row.record == amends {
				spoken = bytes.Replace(spoken, []byte("<sf:TipoFactura>"),
					[]byte("<sf:Subsanacion>S</sf:Subsanacion>\n<sf:TipoFactura>"), 1)
			}
			_, answer := o.post(es.Envelope(supplier, nif, false, spoken), credentials())
			if row.code == "" && !strings.Contains(answer, "<sfR:EstadoRegistro>Correcto<") ||
				row.code != "" && !strings.Contains(answer, "<sfR:CodigoErrorRegistro>"+row.code+"<") {
				t.Errorf("expected %q: %s", row.code, answer)
			}
		})
	}
}
