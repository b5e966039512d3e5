package main

import (
	"fmt"
	"net/netip"
	"reflect"

	"github.com/antrail/antrail/agent/config"
)

// typeOf returns a field's type in words, with its unit.
func (r *reference) typeOf(path string, f reflect.StructField) string {
	name, number := typeName(f.Type)
	unit := f.Tag.Get("unit")
	if number != (unit != "") {
		r.faults = append(r.faults, fmt.Errorf("%s is of type %s and has the unit %q: a number has a unit, nothing else has one", path, name, unit))
	}
	if unit != "" {
		name += ", " + unit
	}
	return name
}

// typeName returns a type in words, and whether its values are numbers.
func typeName(t reflect.Type) (name string, number bool) {
	switch t {
	case reflect.TypeFor[netip.Addr]():
		return "address", false
	case reflect.TypeFor[netip.Prefix]():
		return "range", false
	case reflect.TypeFor[config.MAC]():
		return "MAC", false
	case reflect.TypeFor[config.Duration]():
		return "time", false
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Slice:
		name, number = typeName(t.Elem())
		return "list of " + name, number
	case reflect.Map:
		key, _ := typeName(t.Key())
		name, number = typeName(t.Elem())
		return key + " → " + name, number
	case reflect.String:
		return "text", false
	case reflect.Bool:
		return "boolean", false
	case reflect.Struct:
		return "section", false
	default:
		return "integer", true
	}
}

// defaultOf returns a field's default: that of its tag, or the value that config.Parse gives it.
func defaultOf(f reflect.StructField, value reflect.Value) string {
	if text := f.Tag.Get("default"); text != "" {
		return text
	}
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	switch {
	case f.Type.Kind() == reflect.Bool:
		return "`false`"
	case !value.IsValid() || value.IsZero():
		return ""
	case value.Kind() == reflect.Struct || value.Kind() == reflect.Slice || value.Kind() == reflect.Map:
		return ""
	}
	return fmt.Sprintf("`%v`", value)
}
