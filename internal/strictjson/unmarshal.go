package strictjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	"tributary/internal/fault"
)

// Unmarshal fills a Go value, a pointer to a struct, from an object of at most
// bytesMax bytes, as encoding/json does with numbers as text, but only after
// the text was read strictly against the value's type: a name nobody knows
// (names are compared exactly), a value of another type and everything that
// [Reader.Err] refuses is an error that says where. subject names what is read
// in the error's message.
func Unmarshal(text []byte, bytesMax int, subject string, into any) error {
	r := new(Reader)
	r.Open(text, bytesMax)
	fields := fieldsOf(reflect.TypeOf(into).Elem())
	r.Body(func(name string) { r.member(fields, name) })
	if err := r.Err(); err != nil {
		return err
	}
	if err := r.Faults.Err(subject); err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(r.text))
	d.UseNumber()
	if err := d.Decode(into); err != nil { // what a type's own reader refuses, and numbers too large for their type
		return fault.New(fault.Invalid, "%s is not valid: 1 fault", subject).
			With(fault.Fault{Code: fault.FieldNotValid, Type: fault.Validation, Message: strings.TrimPrefix(err.Error(), "json: ")})
	}
	return nil
}

// fieldsOf are the types of a struct's members by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			for name, inner := range fieldsOf(f.Type) {
				fields[name] = inner
			}
		case !f.IsExported(), f.Tag.Get("json") == "-":
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

func (r *Reader) member(fields map[string]reflect.Type, name string) {
	t, known := fields[name]
	if !known {
		r.Refuse(fault.FieldUnknown, "is not known")
		r.Skip()
		return
	}
	r.check(t)
}

// check compares the value at hand with the type that will take it.
func (r *Reader) check(t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if readsItself(t) {
		r.Skip()
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		fields := fieldsOf(t)
		r.Object(func(name string) { r.member(fields, name) })
	case reflect.Map:
		r.Object(func(string) { r.check(t.Elem()) })
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 { // base64
			r.kind('"', "a string")
			return
		}
		r.Array(func(int) { r.check(t.Elem()) })
	case reflect.String:
		r.kind('"', "a string")
	case reflect.Bool:
		if r.peek() == 't' {
			r.Skip()
			return
		}
		r.kind('f', "true or false")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		r.whole()
	default:
		r.Skip() // an interface takes anything; the rest is the standard library's to refuse
	}
}

// kind passes over a value that begins as wanted, or null.
func (r *Reader) kind(first byte, wanted string) {
	if c := r.peek(); c != first && c != 'n' {
		r.mismatch(wanted)
		return
	}
	r.Skip()
}

// whole passes over an integer as the standard library reads one: 2.0 is none.
func (r *Reader) whole() {
	if c := r.peek(); c == 'n' {
		r.Skip()
		return
	} else if c != '-' && (c < '0' || c > '9') {
		r.mismatch("an integer")
		return
	}
	if text := r.skipped(); strings.ContainsAny(text, ".eE") {
		r.Refuse(fault.FieldNotValid, "must be an integer")
	}
}

// readsItself reports that a type has a reader of its own.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) ||
		t == reflect.TypeFor[json.Number]()
}
