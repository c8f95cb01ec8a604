package es

import (
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/official/aeatwire"
)

// Settings of a company beside its software.
const (
	settingAgent    = "representative" // {name, tax_number}: the block Representante
	settingCommon   = "common_territory"
	settingSII      = "sii"
	agentName       = "name"
	agentTaxNumber  = "tax_number"
	settingsOfAgent = "settings." + settingAgent
)

// companySettings are those that say who files for whom.
func companySettings() []country.Setting {
	return []country.Setting{{
		Key: settingAgent, Type: "object", Default: map[string]any{},
		Description: "An adviser who makes the records for the company (Representante): name and tax_number. The certificate may be the adviser's.",
	}, {
		Key: settingCommon, Type: "boolean", Default: false,
		Description: "True for a company whose address is in the Basque provinces or Navarre and whose tax domicile is not: only then it files with VERI*FACTU.",
	}, {
		Key: settingSII, Type: "boolean", Default: false,
		Description: "True for a company that keeps its books by SII: it is refused, because it does not file with VERI*FACTU (Real Decreto 1007/2023, article 3.3).",
	}}
}

// obligations are the days from which invoices must be filed, as Real
// Decreto-ley 15/2025 put them off.
func obligations() []country.Obligation {
	const source = "Real Decreto 1007/2023, disposición final cuarta, as Real Decreto-ley 15/2025 has it"
	return []country.Obligation{
		{Since: "2027-01-01", Whom: "Companies that pay corporate tax (Impuesto sobre Sociedades)", Source: source},
		{Since: "2027-07-01",
			Whom: "Everybody else in business: the self-employed, and non-residents with a permanent establishment", Source: source},
	}
}

// agentOf reads the setting; the zero value without one.
func agentOf(s country.Supplier) aeatwire.Agent {
	own, _ := s.Settings[settingAgent].(map[string]any)
	name, _ := own[agentName].(string)
	number, _ := own[agentTaxNumber].(string)
	if nif := taxid.NIF(number); nif != "" {
		return aeatwire.Agent{Name: plain(name, nameMax), NIF: nif}
	}
	return aeatwire.Agent{}
}

// checkAgent finds what is wrong with the setting.
func checkAgent(value any) []fault.Fault {
	own, ok := value.(map[string]any)
	switch {
	case value == nil || ok && len(own) == 0:
		return nil
	case !ok:
		return []fault.Fault{fault.At(settingsOfAgent, fault.FieldNotValid, "must be an object")}
	}
	var found []fault.Fault
	for _, key := range sortedKeys(own) {
		if key != agentName && key != agentTaxNumber {
			found = append(found, fault.At(settingsOfAgent+"."+key, fault.FieldNotValid, "is not a key of this setting"))
		}
	}
	name, _ := own[agentName].(string)
	number, _ := own[agentTaxNumber].(string)
	if plain(name, nameMax) == "" || plain(name, nameMax) != name {
		found = append(found, fault.At(settingsOfAgent+"."+agentName, fault.FieldNotValid,
			"must have 1 to %d printable characters", nameMax))
	}
	if taxid.NIF(number) == "" {
		found = append(found, fault.At(settingsOfAgent+"."+agentTaxNumber, fault.FieldNotValid, "must be a Spanish NIF"))
	}
	return found
}

// checkObliged tells a company to which VERI*FACTU does not apply: those of the
// provinces with a treasury of their own, and those under SII (Real Decreto
// 1007/2023, articles 3.1 and 3.3).
func checkObliged(s country.Supplier) []fault.Fault {
	if books, _ := s.Settings[settingSII].(bool); books {
		return []fault.Fault{fault.At("settings."+settingSII, fault.UnsupportedOperation,
			"is set: a company under SII does not file with VERI*FACTU (Real Decreto 1007/2023, article 3.3)")}
	}
	if common, _ := s.Settings[settingCommon].(bool); common || strings.ToUpper(s.Address.CountryCode) != "ES" {
		return nil
	}
	system := map[string]string{"01": "TicketBAI of Álava", "20": "TicketBAI of Gipuzkoa", "48": "TicketBAI of Bizkaia",
		"31": "the rules of Navarre"}[province(s.Address.PostalCode)]
	if system == "" {
		return nil
	}
	return []fault.Fault{fault.At("address.postal_code", fault.UnsupportedOperation,
		"is of a province with a treasury of its own: %s applies there instead of VERI*FACTU. Set settings.%s where the company's tax domicile is elsewhere", system, settingCommon)}
}
