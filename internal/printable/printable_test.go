package printable

import "testing"

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"":                        "",
		"default/web-a":           "default/web-a",
		"Zürich 東京 …":             "Zürich 東京 …",
		"\x1b]0;mine\a":           `\x1b]0;mine\a`,
		"two\nlines\r\tand tab":   `two\nlines\r\tand tab`,
		"\u009b31m":               `\u009b31m`,
		"\u202egnol":              `\u202egnol`,
		"\x7f\u200b":              `\x7f\u200b`,
		"no \xff UTF-8 \x9b here": "no \ufffd UTF-8 \ufffd here",
	} {
		if got := Text(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	if got, want := Lines("one\n\x1btwo\n"), "one\n\\x1btwo\n"; got != want {
		t.Errorf("lines: %q, want %q", got, want)
	}
}
