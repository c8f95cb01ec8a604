package mx_test

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/mx"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// bench is a simulator over real HTTP and a channel to it.
type bench struct {
	channel country.Channel
	desk    *authority.Desk
	url     string
}

func open(t testing.TB) bench {
	t.Helper()
	simulators, err := country.NewSimulators(t.TempDir(), pack())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(simulators)
	t.Cleanup(func() {
		server.Close()
		if err := simulators.Close(); err != nil {
			t.Errorf("closing the simulators: %v", err)
		}
	})
	desk, _ := simulators.Desk("MX")
	return bench{channel: channelTo(t, server.URL), desk: desk, url: server.URL}
}

func (b bench) send(t testing.TB, f country.Filing) country.Receipt {
	t.Helper()
	r, err := b.channel.Send(t.Context(), []country.Filing{f}, credentials())
	if err != nil {
		t.Fatal(err)
	}
	return r[0]
}

func (b bench) prepare(t testing.TB, d country.Draft) country.Filing {
	t.Helper()
	f, err := b.channel.Prepare(d)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (b bench) held(t testing.TB) int {
	t.Helper()
	all, err := b.desk.Registrations()
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// changed is a filing whose report a test has changed and sealed again.
func changed(t *testing.T, f country.Filing, old, replaced string) country.Filing {
	t.Helper()
	if !bytes.Contains(f.Report, []byte(old)) {
		t.Fatalf("no %s in %s", old, f.Report)
	}
	with, err := identity.NewKeeper().Open(credentials().Certificate(), now)
	if err != nil {
		t.Fatal(err)
	}
	f.Report, err = mx.Reseal([]byte(strings.Replace(string(f.Report), old, replaced, 1)), with)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestProviderRefusesWithSATsCodes(t *testing.T) {
	b := open(t)
	discounted := func(d *country.Draft) { d.Transaction.Items = items(11600, -580) }
	withheld := func(d *country.Draft) {
		d.Transaction.Items[0].Taxes = append(d.Transaction.Items[0].Taxes,
			tax(percent(10, 0), transaction.Withholding, "ISR"))
	}
	millar := func(d *country.Draft) {
		d.Transaction.Items[0].Taxes = append(d.Transaction.Items[0].Taxes, local(5, 1, "5MILLAR"))
	}
	for _, c := range []struct {
		name, old, changed, code string
		edit                     func(*country.Draft)
	}{
		{"unknown attribute", ` Version="4.0"`, ` Version="4.0" Extra="1"`, "301", nil},
		{"missing attribute", ` LugarExpedicion="06000"`, ``, "301", nil},
		{"wrong order of elements", `<cfdi:Emisor `, `<cfdi:Conceptos/><cfdi:Emisor `, "301", nil},
		{"unknown element", `<cfdi:Conceptos>`, `<cfdi:Conceptos><cfdi:Otro/>`, "301", nil},
		{"unknown product", `ClaveProdServ="50161509"`, `ClaveProdServ="12345678"`, "301", nil},
		{"unknown unit", `ClaveUnidad="H87"`, `ClaveUnidad="QQQ"`, "301", nil},
		{"unknown use", `UsoCFDI="G03"`, `UsoCFDI="G99"`, "301", nil},
		{"text too long", `Descripcion="`, `Descripcion="` + strings.Repeat("x", 1000), "301", nil},
		{"negative amount", ` SubTotal="1000.00"`, ` SubTotal="-1000.00"`, "301", nil},
		{"another's certificate", `Rfc="EKU9003173C9"`, `Rfc="URE180429TM6"`, "303", nil},
		{"too old", ``, ``, "401", func(d *country.Draft) { d.Transaction.Date = now.Add(-73 * time.Hour) }},
		{"sum of lines", ` SubTotal="1000.00"`, ` SubTotal="1000.01"`, "CFDI40108", nil},
		{"sum of discounts", ` Descuento="5.00" Moneda`, ` Descuento="4.00" Moneda`, "CFDI40111", discounted},
		{"discount of a line", ` Descuento="5.00" ObjetoImp`, ` Descuento="500.00" ObjetoImp`, "CFDI40169", discounted},
		{"total", ` Total="1160.00"`, ` Total="1160.01"`, "CFDI40119", nil},
		{"sum of taxes", `TotalImpuestosTrasladados="160.00"`, `TotalImpuestosTrasladados="160.01"`, "CFDI40205", nil},
		{"sum of taxes withheld", `TotalImpuestosRetenidos="100.00"`, `TotalImpuestosRetenidos="100.01"`, "CFDI40203",
			withheld},
		{"export without its complement", `Exportacion="01"`, `Exportacion="02"`, "CFDI40122", nil},
		{"name of the issuer", `Nombre="ESCUELA KEMPER URGATE"`, `Nombre="ESCUELA KEMPER URGATE SA DE CV"`, "CFDI40139", nil},
		{"capital of the receiver", `PAÑOLA"`, `PAÑOLA, S.A. DE C.V."`, "CFDI40145", nil},
		{"regime of the public", `RegimenFiscalReceptor="616"`, `RegimenFiscalReceptor="612"`, "CFDI40159",
			func(d *country.Draft) {
				d.Transaction.Customer = nil
			}},
		{"period of two months", `Periodicidad="01"`, `Periodicidad="05"`, "CFDI40132", func(d *country.Draft) {
			d.Transaction.Customer = nil
		}},
		{"a year that is over", ` Año="` + now.Format("2006") + `"`, ` Año="2021"`, "CFDI40136", func(d *country.Draft) {
			d.Transaction.Customer = nil
		}},
		{"tax of a line", `Importe="160.00"/></cfdi:Traslados></cfdi:Impuestos></cfdi:Concepto>`,
			`Importe="160.02"/></cfdi:Traslados></cfdi:Impuestos></cfdi:Concepto>`, "CFDI40180", nil},
		{"rate that SAT does not have",
			`TasaOCuota="0.160000" Importe="160.00"/></cfdi:Traslados></cfdi:Impuestos></cfdi:Concepto>`,
			`TasaOCuota="0.150000" Importe="150.00"/></cfdi:Traslados></cfdi:Impuestos></cfdi:Concepto>`, "CFDI40179", nil},
		{"rate above the limit withheld", `TasaOCuota="0.100000"`, `TasaOCuota="0.350001"`, "CFDI40185", withheld},
		{"exempt withholding", `TipoFactor="Tasa" TasaOCuota="0.100000"`, `TipoFactor="Exento" TasaOCuota="0.100000"`,
			"CFDI40184", withheld},
		{"local tax without a name", `ImpLocRetenido="5 AL MILLAR"`, `ImpLocRetenido=""`, "CFDI40999", millar},
		{"rate of a local tax", `TasadeRetencion="0.50"`, `TasadeRetencion="0.5"`, "CFDI40999", millar},
		{"sum of local taxes withheld", `TotaldeRetenciones="5.00"`, `TotaldeRetenciones="5.01"`, "CFDI40999", millar},
		{"total with a local tax withheld", ` Total="1155.00"`, ` Total="1160.00"`, "CFDI40119", millar},
		{"amount of a line", ` ValorUnitario="1000.00"`, ` ValorUnitario="3000.00"`, "CFDI40167", nil},
		{"price of nothing", ` ValorUnitario="1000.00"`, ` ValorUnitario="0.00"`, "CFDI40166", nil},
		{"taxes without an object", `ObjetoImp="02"`, `ObjetoImp="01"`, "CFDI40172", nil},
		{"later payment with a form", `FormaPago="99"`, `FormaPago="03"`, "CFDI40105", nil},
		{"foreign currency without a rate", `Moneda="MXN"`, `Moneda="USD"`, "CFDI40115", nil},
		{"regime of the issuer", ` RegimenFiscal="601"`, ` RegimenFiscal="612"`, "CFDI40141", nil},
		{"regime of the receiver", `RegimenFiscalReceptor="601"`, `RegimenFiscalReceptor="612"`, "CFDI40158", nil},
		{"use of the receiver", `UsoCFDI="G03"`, `UsoCFDI="D01"`, "CFDI40161", nil},
		{"name in small letters", `Nombre="UNIVERSIDAD`, `Nombre="Universidad`, "CFDI40145", nil},
		{"public elsewhere", `DomicilioFiscalReceptor="06000"`, `DomicilioFiscalReceptor="06001"`, "CFDI40149",
			func(d *country.Draft) {
				d.Transaction.Customer = nil
			}},
		{"public without a period", `Nombre="PUBLICO EN GENERAL"`, `Nombre="PUBLICO"`, "CFDI40130", func(d *country.Draft) {
			d.Transaction.Customer = nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := b.prepare(t, draft("S-1", c.edit))
			if c.old != "" {
				f = changed(t, f, c.old, c.changed)
			}
			r := b.send(t, f)
			if r.Outcome != country.Rejected || len(r.Faults) != 1 || !strings.HasPrefix(r.Faults[0].Message, c.code+": ") ||
				r.Faults[0].Code != fault.AuthorityRejected {
				t.Errorf("%s %+v", r.Outcome, r.Faults)
			}
		})
	}
	f := b.prepare(t, draft("S-2", nil))
	f.Report = bytes.Replace(f.Report, []byte(`Total="1160.00"`), []byte(`Total="1160.01"`), 1)
	if r := b.send(t, f); r.Outcome != country.Rejected || !strings.HasPrefix(r.Faults[0].Message, "CFDI40102") {
		t.Errorf("a broken seal: %+v", r)
	}
	f.Report = []byte(`<!DOCTYPE a><cfdi:Comprobante xmlns:cfdi="http://www.sat.gob.mx/cfd/4"/>`)
	if r := b.send(t, f); r.Outcome != country.Rejected || !strings.HasPrefix(r.Faults[0].Message, "301") {
		t.Errorf("a document type: %+v", r)
	}
	if b.held(t) != 0 {
		t.Errorf("%d registrations of refused vouchers", b.held(t))
	}
}

func TestStampIsVerifiedAndShown(t *testing.T) {
	for _, pac := range []string{"soap", "rest"} {
		b := open(t)
		d := draft("V-1", func(d *country.Draft) { d.Supplier = supplier(pac) })
		f := b.prepare(t, d)
		r := b.send(t, f)
		if r.Outcome != country.Accepted || r.AuthorityID1 != folio(f.Report) || len(r.AuthorityID2) != 20 || r.Duplicate ||
			time.Since(r.At).Abs() > time.Minute {
			t.Fatalf("%s: %+v", pac, r)
		}
		want := regexp.MustCompile(
			`^https://verificacfdi\.facturaelectronica\.sat\.gob\.mx/default\.aspx\?id=` + r.AuthorityID1 +
				`&re=EKU9003173C9&rr=URE180429TM6&tt=1160\.0&fe=.{8,}$`)
		if !want.MatchString(r.QRCode) {
			t.Errorf("%s: code %s", pac, r.QRCode)
		}
		if err := mx.ReadStamped(r.Document); err != nil {
			t.Errorf("%s: %v", pac, err)
		}
		again := b.send(t, f)
		if again.Outcome != country.Accepted || !again.Duplicate || again.SHA256 != f.SHA256 ||
			again.AuthorityID1 != r.AuthorityID1 || !bytes.Equal(again.Document, r.Document) {
			t.Errorf("%s: shown again %+v", pac, again)
		}
		if b.held(t) != 1 {
			t.Errorf("%s: %d registrations", pac, b.held(t))
		}
		printed := pack().Imprint(country.Issue{Transaction: &d.Transaction, Receipt: r.Document, Filing: &f})
		if len(printed.Codes) != 1 || printed.Codes[0].Text != r.QRCode || len(printed.Texts) != 5 || printed.Title == "" ||
			!strings.HasSuffix(printed.Texts[0], ": 1: 50161509 H87 02") ||
			!strings.Contains(printed.Texts[4], "representación impresa de un CFDI") ||
			!strings.Contains(printed.Texts[3], "||1.1|"+r.AuthorityID1+"|") {
			t.Errorf("%s: imprint %+v", pac, printed)
		}
	}
}

// Paper says what the voucher says, also where the service filled it in: keys
// and units, the receiver's name, the period, amounts with the voucher's sign.
func TestPaperSaysWhatTheVoucherSays(t *testing.T) {
	b := open(t)
	bare := func(d *country.Draft) {
		d.Transaction.Items = items(11600, 11600, 11600)
		for i := range d.Transaction.Items {
			d.Transaction.Items[i].Code, d.Transaction.Items[i].Unit = "", ""
		}
		d.Transaction.Items[1].Type = transaction.Services
	}
	print := func(d country.Draft) country.Imprint {
		f := b.prepare(t, d)
		return pack().Imprint(country.Issue{Transaction: &d.Transaction, Totals: d.Totals, Receipt: b.send(t, f).Document,
			Filing: &f})
	}
	if got := print(draft("I-1", bare)); !strings.HasSuffix(got.Texts[0],
		": 1, 3: 01010101 H87 02; 2: 01010101 E48 02") || got.Negated {
		t.Errorf("%+v", got)
	}
	public := print(anonymous("I-2", nil))
	said := map[string]string{}
	for _, id := range public.Identifiers {
		said[id.Label] = id.Value
	}
	zone, err := time.LoadLocation("America/Mexico_City")
	if err != nil {
		t.Fatal(err)
	}
	if when := now.Add(-time.Minute).In(zone); said["Nombre del receptor"] != "PUBLICO EN GENERAL" ||
		said["Descripción"] != "Venta" || said["Uso del CFDI"] != "S01 – sin efectos fiscales" ||
		said["Factura global"] != "periodicidad 01 – diaria, mes "+when.Format("01")+" de "+when.Format("2006") {
		t.Errorf("%v", said)
	}
	lower := correction(transaction.Adjustment, "I-3", draft("F-1", nil), func(d *country.Draft) {
		d.Transaction.Items = items(-11600)
	})
	if got := print(lower); !got.Negated || got.Title != "Nota de crédito (CFDI de egreso)" {
		t.Errorf("%+v", got)
	}
}

func TestMagicNumberIsRefusedWithARealCode(t *testing.T) {
	b := open(t)
	r := b.send(t, b.prepare(t, draft("F-1-REJECT", nil)))
	if r.Outcome != country.Rejected || !strings.HasPrefix(r.Faults[0].Message,
		"CFDI40145: El campo Nombre del receptor") {
		t.Errorf("%+v", r)
	}
}

// withdrawal stamps an invoice and prepares its cancellation.
func (b bench) withdrawal(t *testing.T, pac, reason string, price int64) (country.Filing, country.Filing) {
	t.Helper()
	original := draft("W-1", func(d *country.Draft) {
		d.Supplier = supplier(pac)
		d.Transaction.Items = items(price)
	})
	f := b.prepare(t, original)
	r := b.send(t, f)
	if r.Outcome != country.Accepted {
		t.Fatalf("%+v", r)
	}
	d := correction(transaction.Cancellation, "W-2", original, func(d *country.Draft) {
		d.Transaction.Reason, d.Supplier = reason, supplier(pac)
	})
	d.Original.Report, d.Original.AuthorityID1 = f.Report, r.AuthorityID1
	return f, b.prepare(t, d)
}

func TestSmallCancellationsNeedNobody(t *testing.T) {
	for _, pac := range []string{"soap", "rest"} {
		b := open(t)
		_, f := b.withdrawal(t, pac, "02", 100000)
		r := b.send(t, f)
		if r.Outcome != country.Accepted || r.AuthorityID1 != f.Number ||
			!bytes.Contains(r.Document, []byte("<EstatusUUID>201</EstatusUUID>")) {
			t.Errorf("%s: %+v", pac, r)
		}
		if again := b.send(t, f); again.Outcome != country.Accepted {
			t.Errorf("%s: asked twice %+v", pac, again)
		}
		if found, err := b.channel.Find(t.Context(), f, credentials()); err != nil || found.Outcome != country.Accepted ||
			found.SHA256 != f.SHA256 {
			t.Errorf("%s: found %+v %v", pac, found, err)
		}
		if b.held(t) != 2 {
			t.Errorf("%s: %d registrations", pac, b.held(t))
		}
	}
}

func TestCancellationWaitsForTheReceiver(t *testing.T) {
	for _, pac := range []string{"soap", "rest"} {
		b := open(t)
		_, f := b.withdrawal(t, pac, "03", 100001)
		if err := b.desk.SetScript([]authority.Step{{Outcome: authority.Suspend},
			{Outcome: authority.Suspend, Times: 2}}); err != nil {
			t.Fatal(err)
		}
		r := b.send(t, f)
		if r.Outcome != country.Pending || !r.Awaiting || b.held(t) != 1 {
			t.Fatalf("%s: %+v with %d registrations", pac, r, b.held(t))
		}
		r, err := b.channel.Poll(t.Context(), f, r, credentials())
		if err != nil || r.Outcome != country.Pending || !r.Awaiting || b.held(t) != 1 {
			t.Fatalf("%s: %+v %v", pac, r, err)
		}
		r, err = b.channel.Poll(t.Context(), f, r, credentials())
		if err != nil || r.Outcome != country.Accepted || len(r.Document) == 0 || b.held(t) != 2 {
			t.Errorf("%s: %+v %v", pac, r, err)
		}
	}
}

func TestReceiverMayRefuseACancellation(t *testing.T) {
	b := open(t)
	_, f := b.withdrawal(t, "soap", "02", 200000)
	if err := b.desk.SetScript([]authority.Step{{Outcome: authority.Accept}, {Outcome: authority.Suspend},
		{Outcome: authority.Reject}}); err != nil {
		t.Fatal(err)
	}
	r := b.send(t, f)
	if r.Outcome != country.Pending {
		t.Fatalf("%+v", r)
	}
	r, err := b.channel.Poll(t.Context(), f, r, credentials())
	if err != nil || r.Outcome != country.Rejected || !strings.HasPrefix(r.Faults[0].Message, "Solicitud rechazada") ||
		b.held(t) != 1 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestLostAnswerOfACancellationIsSettledByItsState(t *testing.T) {
	for _, pac := range []string{"soap", "rest"} {
		b := open(t)
		_, f := b.withdrawal(t, pac, "02", 100)
		if err := b.desk.SetScript([]authority.Step{{Outcome: authority.DropAnswer}}); err != nil {
			t.Fatal(err)
		}
		if r, err := b.channel.Send(t.Context(), []country.Filing{f}, credentials()); err == nil {
			t.Fatalf("%s: %+v", pac, r)
		}
		if r := b.send(t, f); r.Outcome != country.Accepted || b.held(t) != 2 {
			t.Errorf("%s: %+v with %d registrations", pac, r, b.held(t))
		}
	}
}

func TestCancellationsAreRefusedWithSATsCodes(t *testing.T) {
	b := open(t)
	voucher, good := b.withdrawal(t, "soap", "02", 100)
	prepare := func(edit func(*country.Draft)) country.Filing {
		original := draft("W-1", nil)
		d := correction(transaction.Cancellation, "W-3", original, func(d *country.Draft) { d.Transaction.Reason = "02" })
		d.Original.Report, d.Original.AuthorityID1 = voucher.Report, good.Number
		edit(&d)
		return b.prepare(t, d)
	}
	unknown := prepare(func(d *country.Draft) { d.Original.AuthorityID1 = "11111111-2222-3333-4444-555555555555" })
	tampered := good
	tampered.Report = bytes.Replace(good.Report, []byte(`Motivo="02"`), []byte(`Motivo="03"`), 1)
	itself := prepare(func(d *country.Draft) { d.Transaction.Reason = "01:" + good.Number })
	for code, f := range map[string]country.Filing{"205": unknown, "302": tampered, "208": itself} {
		if r := b.send(t, f); r.Outcome != country.Rejected || !strings.HasPrefix(r.Faults[0].Message, code+": ") {
			t.Errorf("%s: %+v", code, r)
		}
	}
	if err := b.desk.SetScript([]authority.Step{{Outcome: authority.Reject}}); err != nil {
		t.Fatal(err)
	}
	if r := b.send(t, good); r.Outcome != country.Rejected || !strings.HasPrefix(r.Faults[0].Message, "no_cancelable") {
		t.Errorf("%+v", r)
	}
	if b.held(t) != 1 {
		t.Errorf("%d registrations", b.held(t))
	}
}

// SAT cancels nothing to which a valid voucher refers, but for the one that
// takes its place, and that one must say so.
func TestWhatIsReferredToCannotBeCancelled(t *testing.T) {
	b := open(t)
	original := draft("R-1", func(d *country.Draft) { d.Transaction.Items = items(50000) })
	sold := b.prepare(t, original)
	uuid := b.send(t, sold).AuthorityID1
	refer := func(number, reason string, price int64) string {
		return b.send(t, b.prepare(t, correction(transaction.Adjustment, number, original, func(d *country.Draft) {
			d.Transaction.Items, d.Transaction.Reason, d.Original.AuthorityID1 = items(price), reason, uuid
		}))).AuthorityID1
	}
	cancel := func(of string, report []byte, reason string) country.Receipt {
		d := correction(transaction.Cancellation, "R-9", original, func(d *country.Draft) { d.Transaction.Reason = reason })
		d.Original.Report, d.Original.AuthorityID1 = report, of
		return b.send(t, b.prepare(t, d))
	}
	replacement, note := refer("R-2", "04", 40000), refer("R-3", "", -100)
	for reason, code := range map[string]string{"02": "no_cancelable", "01:" + replacement: "no_cancelable",
		"01:" + note: "212"} {
		if r := cancel(uuid, sold.Report, reason); r.Outcome != country.Rejected ||
			!strings.HasPrefix(r.Faults[0].Message, code) {
			t.Errorf("%s: %+v", reason, r)
		}
	}
	b.desk.Read(func(book *authority.Book) {
		if list, _ := book.Get("refers/" + uuid); list != replacement+" "+note {
			t.Errorf("%s", list)
		}
	})
}

func TestCancellationIsCheckedBeforeItLeaves(t *testing.T) {
	ch := channelTo(t, "http://127.0.0.1:1")
	original := draft("W-1", nil)
	for name, edit := range map[string]func(*country.Draft){
		"no motive":                func(d *country.Draft) { d.Transaction.Reason = "" },
		"01 without a replacement": func(d *country.Draft) { d.Transaction.Reason = "01" },
		"original without a UUID":  func(d *country.Draft) { d.Original.AuthorityID1 = "" },
		"after the annual return": func(d *country.Draft) {
			d.Original.Transaction.Date = time.Date(now.Year()-2, 12, 31, 12, 0, 0, 0, time.UTC)
		},
	} {
		d := correction(transaction.Cancellation, "W-2", original, func(d *country.Draft) { d.Transaction.Reason = "02" })
		edit(&d)
		if _, err := ch.Prepare(d); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRequestIsSignedAsCanonicalXML(t *testing.T) {
	b := open(t)
	_, f := b.withdrawal(t, "soap", "01:AAAAAAAA-2222-3333-4444-555555555555", 100)
	needs.Tool(t, "xmllint", "libxml2-utils")
	// The digest covers the document without its signature, the signature the
	// canonical SignedInfo: another implementation must see the same bytes.
	path := filepath.Join(t.TempDir(), "request.xml")
	bare := regexp.MustCompile(`(?s)<Signature.*</Signature>`).ReplaceAll(f.Report, nil)
	if err := os.WriteFile(path, bare, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command("xmllint", "--nonet", "--c14n", path).Output()
	sum := sha1.Sum(got)
	if want := "<DigestValue>" + base64.StdEncoding.EncodeToString(sum[:]) + "</DigestValue>"; err != nil ||
		!bytes.Contains(f.Report, []byte(want)) {
		t.Errorf("%v\nours      %s\nxmllint's %s", err, f.Report, got)
	}
}

func TestProviderListsWhatItStamped(t *testing.T) {
	b := open(t)
	voucher, cancel := b.withdrawal(t, "soap", "02", 100)
	if r := b.send(t, cancel); r.Outcome != country.Accepted {
		t.Fatalf("%+v", r)
	}
	older := draft("L-2", func(d *country.Draft) { d.Transaction.Date = now.Add(-48 * time.Hour) })
	b.send(t, b.prepare(t, older))
	stands := b.prepare(t, draft("L-3", nil))
	b.send(t, stands)
	zone, err := time.LoadLocation("America/Mexico_City")
	if err != nil {
		t.Fatal(err)
	}
	y, m, d := now.Add(-time.Minute).In(zone).Date()
	list, err := b.channel.(country.Register).Registered(t.Context(), supplier("soap"),
		country.Day{Year: y, Month: m, Day: d}, credentials())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{voucher.Number: true, stands.Number: false}
	if len(list) != len(want) {
		t.Fatalf("%+v", list)
	}
	for _, e := range list {
		if cancelled, ours := want[e.Number]; !ours || e.Cancelled != cancelled || e.AuthorityID1 == "" || e.At.IsZero() {
			t.Errorf("%+v", e)
		}
	}
	if _, err := b.channel.(country.Register).Registered(t.Context(), supplier("rest"),
		country.Day{Year: y, Month: m, Day: d}, credentials()); err == nil {
		t.Error("a provider without a list has one")
	}
	c := credentials()
	c.Username = "x-DENIED"
	if _, err := b.channel.(country.Register).Registered(t.Context(), supplier("soap"),
		country.Day{Year: y, Month: m, Day: d}, c); err == nil {
		t.Error("a stranger sees the list")
	}
}
