//go:build linux

package main

import "testing"

func TestColumnWidths(t *testing.T) {
	var w columnWidths
	for _, l := range []struct{ line, want string }{
		{"A\tB\tC", "A  B  C"},
		{"ä-long\tb\tc", "ä-long  b  c"},
		{"a\tb\tc", "a       b  c"},
	} {
		if got := w.pad(l.line); got != l.want {
			t.Errorf("%q is %q, want %q", l.line, got, l.want)
		}
	}
}
