package main

import (
	"encoding/json"
	"io"
	"reflect"
	"time"
)

// printJSON prints a value for scripts. Times have whole seconds there, as
// everywhere else where we print them: YYYY-MM-DDTHH:mm:ssZ.
func printJSON(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(inSeconds(reflect.ValueOf(v)).Interface())
}

// inSeconds copies a value with every exported time in it cut to the second.
func inSeconds(v reflect.Value) reflect.Value {
	if at, ok := v.Interface().(time.Time); ok {
		return reflect.ValueOf(at.UTC().Truncate(time.Second))
	}
	copied := reflect.New(v.Type()).Elem()
	copied.Set(v)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				copied.Field(i).Set(inSeconds(v.Field(i)))
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			break
		}
		copied.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			copied.Index(i).Set(inSeconds(v.Index(i)))
		}
	}
	return copied
}
