package mx

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"tributary/internal/country"
)

// Where a SOAP provider lists what it stamped.
const (
	pathSOAPList  = "/servicios/soap/utilities"
	spaceSOAPList = "http://facturacion.finkok.com/utilities"
)

var errNoList = fmt.Errorf("%w: a REST provider does not list what it stamped", country.ErrNoList)

// Registered lists what the provider stamped for a supplier with a date on a
// day. The provider lists UUIDs by the time of their stamp, which is at most
// 72 hours after the date; number and date are in the voucher itself, so each
// is fetched, and SAT is asked whether it still stands.
func (ch *channel) Registered(ctx context.Context, s country.Supplier, day country.Day, c country.Credentials) ([]country.Entry, error) {
	if s.Settings.Text(settingPAC) == pacREST {
		return nil, fmt.Errorf("listing %s: %w", day, errNoList)
	}
	rfc, zone := rfcOf(s.TaxNumber), ch.cat.zone("", nil)
	// Two hours before: the day begins earlier in Cancún than in central Mexico.
	from := time.Date(day.Year, day.Month, day.Day, -2, 0, 0, 0, zone)
	to := time.Date(day.Year, day.Month, day.Day+1, 0, 0, 0, 0, zone).Add(stampWithin + 2*time.Hour)
	result, _, err := ch.ask(ctx, call{url: ch.base + pathSOAPList, space: spaceSOAPList, method: "report_uuid", args: []attr{
		{"username", c.Username}, {"password", c.Secret}, {"taxpayer_id", rfc},
		{"date_from", from.Format(localTime)}, {"date_to", to.Format(localTime)}, {"invoice_type", "I"},
	}}, "report_uuidResult")
	if err == nil && result.member("error") != "" {
		err = fmt.Errorf("%w: %s", errAwkward, result.member("error"))
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", day, err)
	}
	var uuids []string
	if invoices := result.named("invoices"); invoices != nil {
		for _, k := range invoices.kids {
			uuids = append(uuids, k.member("uuid"))
		}
	}
	var list []country.Entry
	for _, uuid := range uuids {
		e, date, err := ch.entry(ctx, rfc, uuid, c)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", day, err)
		}
		if date == day.String() {
			list = append(list, e)
		}
	}
	return list, nil
}

// entry is one voucher that the provider holds, and the day on it.
func (ch *channel) entry(ctx context.Context, rfc, uuid string, c country.Credentials) (country.Entry, string, error) {
	result, _, err := ch.ask(ctx, call{url: ch.base + pathSOAPList, space: spaceSOAPList, method: "get_xml", args: []attr{
		{"username", c.Username}, {"password", c.Secret}, {"uuid", uuid}, {"taxpayer_id", rfc}, {"invoice_type", "I"},
	}}, "get_xmlResult")
	if err != nil {
		return country.Entry{}, "", err
	}
	got, err := readStamped([]byte(result.member("xml")))
	if err != nil {
		return country.Entry{}, "", fmt.Errorf("reading %s: %w", uuid, err)
	}
	v := got.voucher
	issuer, receiver := v.kid("cfdi:Emisor"), v.kid("cfdi:Receptor")
	if issuer == nil || receiver == nil || issuer.attr("Rfc") != rfc {
		return country.Entry{}, "", fmt.Errorf("reading %s: it is another's", uuid)
	}
	now, err := ch.stateSOAP(ctx, country.Filing{Supplier: rfc}, errand{UUID: got.uuid(), Receiver: receiver.attr("Rfc"), Total: v.attr("Total")}, c)
	if err != nil {
		return country.Entry{}, "", err
	}
	day, _, _ := strings.Cut(v.attr("Fecha"), "T")
	return country.Entry{
		Number: v.attr("Serie") + v.attr("Folio"), AuthorityID1: got.uuid(), AuthorityID2: got.number(),
		Cancelled: now.voucher == voucherCancelled, At: got.at(ch.cat),
	}, day, nil
}

// packed is a voucher for the simulator's book. The certificate, which all
// vouchers of a supplier share, is kept once, and not here.
func packed(v *node) string {
	bare := &node{name: v.name, kids: v.kids, attrs: []attr{{"xmlns:cfdi", spaceCFDI}, {"xmlns:xsi", spaceXSI}}}
	for _, a := range v.attrs {
		if a.name != "Certificado" {
			bare.attrs = append(bare.attrs, a)
		}
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(bare.appendXML(nil))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("packing a voucher into memory: %v", err)) // a known level, and a buffer: cannot happen
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func unpacked(text, certificate string) (*node, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), xmlBytesMax+1))
	if err != nil {
		return nil, err
	}
	v, err := parse(plain)
	if err != nil {
		return nil, err
	}
	v.set("Certificado", certificate)
	return v, nil
}

// soapList serves report_uuid and get_xml.
func (a *authority) soapList(w http.ResponseWriter, r *http.Request) {
	in := method(w, r, "report_uuid", "get_xml")
	if in == nil {
		return
	}
	name := local(in.name)
	if !allowed(in.member("username"), in.member("password")) {
		out, _ := wrapped(name, attr{"error", "El usuario o contraseña son inválidos"})
		soapReply(w, http.StatusOK, spaceSOAPList, out)
		return
	}
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, nil) {
		return
	}
	out, result := wrapped(name)
	if name == "get_xml" {
		result.add(&node{name: "s0:xml", text: string(a.copyOf(in.member("taxpayer_id"), in.member("uuid")))})
	} else if err := a.report(in, result.add(element("s0:invoices"))); err != nil {
		result.add(&node{name: "s0:error", text: err.Error()})
	}
	if turn.End(w, r) {
		soapReply(w, http.StatusOK, spaceSOAPList, out)
	}
}

// report lists the vouchers of a taxpayer that were stamped in a span of time.
func (a *authority) report(in, into *node) error {
	zone := a.cat.zone("", nil)
	from, err := time.ParseInLocation(localTime, in.member("date_from"), zone)
	if err != nil {
		return fmt.Errorf("reading date_from: %w", err)
	}
	to, err := time.ParseInLocation(localTime, in.member("date_to"), zone)
	if err != nil {
		return fmt.Errorf("reading date_to: %w", err)
	}
	all, err := a.desk.Registrations()
	if err != nil {
		return err
	}
	for _, held := range all {
		if held.Supplier != in.member("taxpayer_id") || !strings.HasPrefix(held.Key, "U/") || held.At.Before(from) || held.At.After(to) {
			continue
		}
		n := into.add(element("s0:ReportUUID"))
		n.add(&node{name: "s0:date", text: held.At.In(zone).Format(localTime)})
		n.add(&node{name: "s0:uuid", text: held.AuthorityID})
	}
	return nil
}

// copyOf is the stamped voucher with a UUID; empty where the taxpayer has none.
func (a *authority) copyOf(rfc, uuid string) []byte {
	var kept record
	var certificate string
	a.desk.Read(func(b *country.Book) {
		if held, r, ok := (registrar{b}).voucher(strings.ToUpper(uuid)); ok && held.Supplier == rfc {
			kept = r
			certificate, _ = b.Get("csd/" + r.NumberCSD)
		}
	})
	if kept.XML == "" {
		return nil
	}
	v, err := unpacked(kept.XML, certificate)
	if err != nil {
		return nil
	}
	return kept.stampedCopy(v)
}
