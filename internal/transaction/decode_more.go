package transaction

import (
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// What structured invoices carry beyond the payload that every client sends.
// All of it is optional; shapes are checked so that nothing stands on a
// document that its reader could not use.

// customerMember reads what only a customer has.
func (in *reader) customerMember(name string, p *Party) bool {
	switch name {
	case "id":
		in.Line(&p.ID, identifierMax)
	case "email":
		in.email(&p.Email)
	case "phone":
		if in.Line(&p.Phone, phoneMax) == strictjson.Taken && countDigits(p.Phone) < 3 {
			p.Phone = ""
			in.Refuse(fault.FieldNotValid, "must have at least 3 digits")
		}
	default:
		return false
	}
	return true
}

func (in *reader) email(into *string) {
	if in.Line(into, emailMax) == strictjson.Taken && !mailbox(*into) {
		*into = ""
		in.Refuse(fault.FieldNotValid, "must be an address like name@example.com")
	}
}

// mailbox asks for no more than every address of the world has.
func mailbox(text string) bool {
	name, domain, found := strings.Cut(text, "@")
	return found && name != "" && domain != "" && !strings.ContainsAny(text, " <>,;\"") && !strings.Contains(domain, "@") &&
		!strings.HasPrefix(domain, ".") && !strings.HasSuffix(domain, ".")
}

func countDigits(text string) (n int) {
	for _, r := range text {
		if '0' <= r && r <= '9' {
			n++
		}
	}
	return n
}

func (in *reader) fiscalCode(into *string) {
	if in.Line(into, fiscalCodeMax) == strictjson.Taken && !alphanumeric(*into) {
		*into = ""
		in.Refuse(fault.FieldNotValid, "must have letters and digits only")
	}
}

func alphanumeric(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') }) < 0
}

// electronicAddress reads where a party receives documents; nil when it does not say.
func (in *reader) electronicAddress() *ElectronicAddress {
	var e ElectronicAddress
	scheme, id := strictjson.Absent, strictjson.Absent
	st := in.Object(func(name string) {
		switch name {
		case "scheme":
			scheme = in.scheme(&e.Scheme)
		case "id":
			id = in.Line(&e.ID, electronicMax)
		default:
			in.Unknown()
		}
	})
	if st != strictjson.Taken {
		return nil
	}
	if scheme == strictjson.Absent {
		in.Missing("scheme")
	}
	if id == strictjson.Absent {
		in.Missing("id")
	}
	if id == strictjson.Taken {
		in.electronicID(e)
	}
	return &e
}

// scheme reads a code of the list of electronic address schemes, or one of Italy's.
func (in *reader) scheme(into *string) strictjson.State {
	st := in.Line(into, schemeMax)
	if st != strictjson.Taken || *into == SchemeSDI || *into == SchemePEC {
		return st
	}
	if n := len(*into); n != 2 && n != 4 || strings.ToUpper(*into) != *into || !alphanumeric(*into) {
		*into = ""
		return in.Refuse(fault.FieldNotValid, "must be an EAS code such as 0208, %s or %s", SchemeSDI, SchemePEC)
	}
	return st
}

func (in *reader) electronicID(e ElectronicAddress) {
	switch n := len(e.ID); {
	case e.Scheme == SchemeSDI && (n != 6 && n != 7 || !alphanumeric(e.ID)):
		in.RefuseMember("id", fault.FieldNotValid, "must have 7 letters and digits, 6 of a public office")
	case e.Scheme == SchemePEC && !mailbox(e.ID):
		in.RefuseMember("id", fault.FieldNotValid, "must be an address like name@example.com")
	}
}

// discount reads what lowers a line: an amount or a rate, one of them.
func (in *reader) discount() *LineDiscount {
	var out LineDiscount
	var percent num.Amount
	amount, rate := strictjson.Absent, strictjson.Absent
	st := in.Object(func(name string) {
		switch name {
		case "amount":
			if amount = in.minor(&out.Amount); amount == strictjson.Taken && out.Amount < 0 {
				amount = in.Refuse(fault.FieldNotValid, "must not be negative: its sign follows the line")
			}
		case "rate":
			rate = in.percentage(&percent)
		default:
			in.Unknown()
		}
	})
	switch {
	case st != strictjson.Taken || in.Broken():
		return nil
	case amount == strictjson.Absent && rate == strictjson.Absent:
		in.Refuse(fault.FieldRequired, "must have an amount or a rate")
		return nil
	case amount != strictjson.Absent && rate != strictjson.Absent:
		in.Refuse(fault.ValidationMatchInvalid, "must have an amount or a rate, not both")
	}
	if rate == strictjson.Taken {
		out.Rate = &percent
	}
	return &out
}

// classification reads the codes of a line.
func (in *reader) classification(item *Item) {
	count := 0
	in.Array(func(i int) {
		if count = i + 1; count > classesMax {
			in.Skip()
			return
		}
		var c Classification
		scheme, code := strictjson.Absent, strictjson.Absent
		switch in.Object(func(name string) {
			switch name {
			case "scheme":
				scheme = in.word(&c.Scheme, schemeMax)
			case "code":
				code = in.Line(&c.Code, classMax)
			default:
				in.Unknown()
			}
		}) {
		case strictjson.Absent:
			in.Refuse(fault.FieldNotValid, "must be an object")
		case strictjson.Taken:
			if scheme == strictjson.Absent {
				in.Missing("scheme")
			}
			if code == strictjson.Absent {
				in.Missing("code")
			}
		}
		item.Classifications = append(item.Classifications, c) // a faulty one too: later entries keep their index
	})
	if count > classesMax {
		in.Refuse(fault.FieldNotValid, "must not have more than %d entries", classesMax)
	}
}

// iban reads an account by ISO 13616, with or without the blanks of print.
func (in *reader) iban(into *string) {
	if in.Line(into, ibanMax) == strictjson.Taken && !ibanKnown(*into) {
		*into = ""
		in.Refuse(fault.FieldNotValid, "must be an IBAN with the right check digits")
	}
}

// ibanKnown checks form and check digits: the country and the check digits go
// to the end, letters count from 10 on, and the number is 1 modulo 97.
func ibanKnown(text string) bool {
	text = strings.ReplaceAll(text, " ", "")
	if len(text) < 15 || len(text) > 34 || !alphanumeric(text) {
		return false
	}
	country, check := text[:2], text[2:4]
	if strings.Trim(country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || strings.Trim(check, "0123456789") != "" {
		return false
	}
	rest := 0
	for _, c := range []byte(strings.ToUpper(text[4:]) + country + check) {
		if c <= '9' {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	return rest == 1
}
