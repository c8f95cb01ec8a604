package es

import (
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/xmltree"
)

// settingSoftware is the company's setting that identifies the billing
// software, the block SistemaInformatico of every record.
const settingSoftware = "software"

// Keys of the setting.
const (
	softwareName         = "name"
	softwareTaxNumber    = "tax_number"
	softwareCountry      = "country_code"
	softwareSystemName   = "system_name"
	softwareSystemID     = "system_id"
	softwareVersion      = "version"
	softwareInstallation = "installation"
	softwareOnly         = "verifactu_only"
	softwareMultiple     = "multiple_taxpayers"
	softwareServesMany   = "serves_many"
)

// softwareDefaults are those that do not depend on the company. Without name
// and tax_number the company itself is the producer: it runs an open program
// of its own accord and answers for it. Without installation each company is
// an installation of its own, because the chain of records is per taxpayer and
// installation.
func softwareDefaults() map[string]any {
	return map[string]any{
		softwareSystemName: "Tributary",
		softwareSystemID:   "TR",
		softwareVersion:    "1.0",
		softwareOnly:       true,
		softwareMultiple:   true,
		softwareServesMany: true,
	}
}

// software is the block SistemaInformatico.
type software struct {
	producer                   person
	name, id, version          string
	installation               string
	only, multiple, servesMany string
}

// softwareOf reads the setting over its defaults.
func softwareOf(s country.Supplier) software {
	own, _ := s.Settings[settingSoftware].(map[string]any)
	text := func(key string) string {
		if value, ok := own[key].(string); ok && value != "" {
			return value
		}
		value, _ := softwareDefaults()[key].(string)
		return value
	}
	yes := func(key string) string {
		value, ok := own[key].(bool)
		if !ok {
			value, _ = softwareDefaults()[key].(bool)
		}
		if value {
			return "S"
		}
		return "N"
	}
	out := software{
		name: plain(text(softwareSystemName), 30), id: text(softwareSystemID), version: plain(text(softwareVersion), 50),
		installation: plain(text(softwareInstallation), 100),
		only:         yes(softwareOnly), multiple: yes(softwareMultiple), servesMany: yes(softwareServesMany),
	}
	if out.installation == "" {
		out.installation = plain(s.ID, 100)
	}
	if number := text(softwareTaxNumber); number != "" {
		out.producer, _ = identify(plain(text(softwareName), nameMax), text(softwareCountry), number, true)
	} else {
		out.producer = person{Name: plain(s.LegalName, nameMax), NIF: taxid.NIF(s.TaxNumber)}
	}
	return out
}

func (s software) write(w *xmltree.Writer) {
	w.Start("sf:SistemaInformatico")
	s.producer.write(w)
	w.Leaves("sf:NombreSistemaInformatico", s.name, "sf:IdSistemaInformatico", s.id, "sf:Version", s.version,
		"sf:NumeroInstalacion", s.installation,
		"sf:TipoUsoPosibleSoloVerifactu", s.only, "sf:TipoUsoPosibleMultiOT", s.multiple, "sf:IndicadorMultiplesOT", s.servesMany)
	w.End()
}

// systemID reports whether both positions are an upper-case letter or a digit.
func systemID(text string) bool {
	return len(text) == 2 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// checkSoftware finds what is wrong with the setting (AEAT, "Validaciones"
// 1.2.0, section 3.1.5).
func checkSoftware(value any) []fault.Fault {
	if value == nil {
		return nil
	}
	own, ok := value.(map[string]any)
	const at = "settings." + settingSoftware
	if !ok {
		return []fault.Fault{fault.At(at, fault.FieldNotValid, "must be an object")}
	}
	found := softwareShape(own)
	number, _ := own[softwareTaxNumber].(string)
	name, _ := own[softwareName].(string)
	from, _ := own[softwareCountry].(string)
	if (number == "") != (name == "") {
		found = append(found, fault.At(at+"."+softwareName, fault.ValidationMatchInvalid, "and %s.%s belong together", at,
			softwareTaxNumber))
	} else if number != "" {
		if _, reason := identify(name, from, number, true); reason != "" {
			found = append(found, fault.At(at+"."+softwareTaxNumber, fault.FieldNotValid, "%s", reason))
		}
	}
	if id, sent := own[softwareSystemID].(string); sent && !systemID(id) {
		found = append(found, fault.At(at+"."+softwareSystemID, fault.FieldNotValid,
			"must be two upper-case letters (no Ñ) or digits"))
	}
	return found
}

// softwareShape checks keys, types and lengths.
func softwareShape(own map[string]any) []fault.Fault {
	const at = "settings." + settingSoftware + "."
	lengths := map[string]int{
		softwareName: nameMax, softwareTaxNumber: 20, softwareCountry: 2, softwareSystemName: 30,
		softwareSystemID: 2, softwareVersion: 50, softwareInstallation: 100,
	}
	var found []fault.Fault
	for _, key := range sortedKeys(own) {
		switch key {
		case softwareOnly, softwareMultiple, softwareServesMany:
			if _, ok := own[key].(bool); !ok {
				found = append(found, fault.At(at+key, fault.FieldNotValid, "must be true or false"))
			}
			continue
		}
		max, known := lengths[key]
		text, ok := own[key].(string)
		switch {
		case !known:
			found = append(found, fault.At(at+key, fault.FieldNotValid, "is not a key of this setting"))
		case !ok || strings.TrimSpace(text) == "":
			found = append(found, fault.At(at+key, fault.FieldNotValid, "must be a text"))
		case plain(text, max) != text:
			found = append(found, fault.At(at+key, fault.FieldNotValid,
				"must be at most %d printable characters, without blanks at the ends", max))
		}
	}
	return found
}
