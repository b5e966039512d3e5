package report

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestComparisonIsWritten(t *testing.T) {
	c := &Comparison{
		Title: "Things", Machine: "a machine", Sides: []string{"one", "other"}, Notes: []string{"By hand."},
		Lines: []Line{
			{Name: "size", Unit: "bytes", Reached: []*Spread{Series{208}.Spread(), Series{336, 342, 339}.Spread()}},
			{Name: "restart", Unit: "ms", Reached: []*Spread{Series{0.1, 0.123456}.Spread(), nil}},
		},
	}
	for format, want := range map[string]string{
		"markdown": "Things. a machine.\n\n| median (min to max), ratio to the first | unit | one | other |\n|---|---|---|---|\n" +
			"| size | bytes | 208 | 339 (336 to 342) |\n| restart | ms | 0.112 (0.100 to 0.123) | - |\n\n- By hand.\n",
		"text": "Things\na machine\n\nmedian (min to max), ratio to the first" + spaces(22) + "unit" + spaces(34) + "one" + spaces(26) + "other\n" +
			"size" + spaces(57) + "bytes" + spaces(33) + "208" + spaces(15) + "339 (336 to 342)\n" +
			"restart" + spaces(54) + "ms" + spaces(17) + "0.112 (0.100 to 0.123)" + spaces(30) + "-\n\nBy hand.\n",
	} {
		var b strings.Builder
		if err := c.Write(&b, format); err != nil || b.String() != want {
			t.Errorf("%s: %v\n%swant\n%s", format, err, b.String(), want)
		}
	}
	var b bytes.Buffer
	var back Comparison
	if err := c.Write(&b, "json"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || !reflect.DeepEqual(back.Lines, c.Lines) {
		t.Errorf("%v: %+v", err, back)
	}
	if err := c.Write(io.Discard, "xml"); err == nil {
		t.Error("xml is a format")
	}
}

func spaces(n int) string { return strings.Repeat(" ", n) }
