package mx

import (
	"fmt"
	"regexp"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// Schemes of items.*.classification that a voucher has a place for.
const (
	schemeLand    = "PREDIAL"   // the account of the land tax of what is rented out
	schemeCustoms = "PEDIMENTO" // the customs document of goods that were imported
	schemeThird   = "TERCERO"   // the RFC in whose name and on whose account it is sold
)

// settingThirds is the company's: whom it sells for.
const settingThirds = "third_parties"

var (
	landPattern    = regexp.MustCompile(`^[0-9A-Za-z]{1,150}$`)
	customsPattern = regexp.MustCompile(`^([0-9]{2}) *([0-9]{2}) *([0-9]{4}) *([0-9]{7})$`)
)

// third is somebody on whose account a line is sold (ACuentaTerceros).
type third struct{ rfc, name, regime, domicile string }

// thirdsOf reads them from the settings, by RFC.
func thirdsOf(s country.Settings) map[string]third {
	list, _ := s[settingThirds].(map[string]any)
	thirds := make(map[string]third, len(list))
	for rfc, value := range list {
		one, _ := value.(map[string]any)
		text := func(key string) string { t, _ := one[key].(string); return t }
		thirds[rfcOf(rfc)] = third{rfc: rfcOf(rfc), name: official(text("name")), regime: text("regime"),
			domicile: text("postal_code")}
	}
	return thirds
}

// checkThirds finds what is wrong with the setting.
func checkThirds(s country.Settings) (found []fault.Fault) {
	for rfc, t := range thirdsOf(s) {
		field := "settings." + settingThirds + "." + rfc
		switch shorter, capital := capitalRegime(t.name); {
		case !rfcPattern.MatchString(rfc):
			found = append(found, fault.At(field, fault.FieldNotValid, "is not an RFC"))
		case t.name == "" || !postalPattern.MatchString(t.domicile) || !regimeFits(rfc, t.regime):
			found = append(found, fault.At(field, fault.FieldNotValid,
				"must have a name, a regime that such a person can be in, and a postal_code of five digits"))
		case capital && isCompany(rfc):
			found = append(found, fault.At(field, fault.FieldNotValid, "has a name that "+withoutCapital, shorter))
		}
	}
	return found
}

// marks checks the classifications of a line that a voucher has a place for.
func (c *checker) marks(i int, item *transaction.Item) {
	for k, mark := range item.Classifications {
		field := fmt.Sprintf("items.%d.classification.%d.code", i, k)
		switch {
		case mark.Scheme == schemeLand && !landPattern.MatchString(mark.Code):
			c.add(field, fault.FieldNotValid, "must be the account of a land tax (cuenta predial): letters and digits")
		case mark.Scheme == schemeCustoms && !customsPattern.MatchString(mark.Code):
			c.add(field, fault.FieldNotValid, "must be the number of a customs document (pedimento): fifteen digits")
		case mark.Scheme == schemeThird && !rfcPattern.MatchString(rfcOf(mark.Code)):
			c.add(field, fault.FieldNotValid, "must be the RFC on whose account the line is sold")
		}
	}
}

// unknownThirds are those of the lines that the company did not name in its
// settings, or that are a party of the voucher themselves (CFDI40188).
func (p *plan) unknownThirds(in *country.Draft) (found []fault.Fault) {
	to := receiverOf(in.Transaction.Customer, p.place, p.kind, "")
	for i := range p.items {
		for k, mark := range p.items[i].Classifications {
			if mark.Scheme != schemeThird {
				continue
			}
			field, rfc := fmt.Sprintf("items.%d.classification.%d.code", i, k), rfcOf(mark.Code)
			if _, known := p.thirds[rfc]; !known {
				found = append(found, fault.At(field, fault.ValidationMatchInvalid,
					"is not among settings.%s of the company, which says name, regime and postal_code", settingThirds))
			} else if rfc == p.issuer.rfc || rfc == to.rfc {
				found = append(found, fault.At(field, fault.ValidationMatchInvalid,
					"must be neither the supplier nor the customer (CFDI40188)"))
			}
		}
	}
	return found
}

// mark writes what a line says beside its amounts, in the order of the schema.
func (p *plan) mark(n *xmltree.Element, item *transaction.Item) {
	of := func(scheme string, write func(code string)) {
		for _, mark := range item.Classifications {
			if mark.Scheme == scheme {
				write(mark.Code)
			}
		}
	}
	of(schemeThird, func(code string) {
		t := p.thirds[rfcOf(code)]
		n.Add(xmltree.New("cfdi:ACuentaTerceros", "RfcACuentaTerceros", t.rfc, "NombreACuentaTerceros", t.name,
			"RegimenFiscalACuentaTerceros", t.regime, "DomicilioFiscalACuentaTerceros", t.domicile))
	})
	of(schemeCustoms, func(code string) {
		if part := customsPattern.FindStringSubmatch(code); part != nil {
			n.Add(xmltree.New("cfdi:InformacionAduanera", "NumeroPedimento", part[1]+"  "+part[2]+"  "+part[3]+"  "+part[4]))
		}
	})
	of(schemeLand, func(code string) { n.Add(xmltree.New("cfdi:CuentaPredial", "Numero", code)) })
}
