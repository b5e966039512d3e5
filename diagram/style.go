package diagram

import (
	"fmt"
	"strings"
)

// The colours of a map are classes of a style sheet in the picture, for light and for dark. A
// page that embeds the map may override them.

// Theme selects the colours.
type Theme uint8

// Themes. Auto depends on the viewer (prefers-color-scheme).
const (
	Auto Theme = iota
	Light
	Dark
)

// sheet is the part that does not depend on the theme.
const sheet = `
.map{font-family:system-ui,"Segoe UI","DejaVu Sans",sans-serif}
.map .box{stroke-width:1}
.map .name{font-size:11.5px;font-weight:600;text-anchor:middle}
.map .note{font-size:9px;text-anchor:middle}
.map .stage{font-size:11px;text-anchor:middle;letter-spacing:.4px}
.map .mark{font-size:8.5px;text-anchor:middle;font-weight:600}
.map .key{font-size:10px}
.map .line{fill:none;stroke-width:1.3;stroke-linejoin:round}
.map .learn .line{stroke-dasharray:3 3}
.map .ct .line{stroke-dasharray:7 2}
.map .off{opacity:.28}
.map .turn{font-size:9px;font-weight:700;text-anchor:middle}
`

// colours are the rules of each theme, behind ".map ". In both themes, red means a drop.
var colours = []struct{ selector, light, dark string }{
	{".ground", "fill:#fff", "fill:#10161d"},
	{".panel", "fill:#f4f6f9", "fill:#18212b"},
	{".box", "fill:#fff;stroke:#8a97a8", "fill:#212d3a;stroke:#5c6c7e"},
	{"text", "fill:#1c2733", "fill:#e6edf4"},
	{".note,.map .stage", "fill:#5a6878", "fill:#9fb0c1"},
	{".line", "stroke:#75859a", "stroke:#7b8da1"},
	{".head", "fill:#75859a", "fill:#7b8da1"},
	{".learn .line", "stroke:#8a5fb0", "stroke:#b98ee0"},
	{".learn .head", "fill:#8a5fb0", "fill:#b98ee0"},
	{".idle .line", "stroke:#c9d1db", "stroke:#3b4957"},
	{".idle .head", "fill:#c9d1db", "fill:#3b4957"},
	{".busy .line", "stroke:#2f6fb2", "stroke:#5aa5ee"},
	{".busy .head", "fill:#2f6fb2", "fill:#5aa5ee"},
	{".on .line", "stroke:#d97a00", "stroke:#ffb648"},
	{".on .head,.map .disc", "fill:#d97a00", "fill:#ffb648"},
	{".on .box", "fill:#fff3dd;stroke:#d97a00", "fill:#45341a;stroke:#ffb648"},
	{".focus .box", "fill:#ffdf9e;stroke:#d97a00;stroke-width:2.5", "fill:#6b4a12;stroke:#ffb648;stroke-width:2.5"},
	{".turn", "fill:#fff", "fill:#241800"},
	{".drop .pill", "fill:#fbe3e1;stroke:#c5362c", "fill:#401d1b;stroke:#ef6a60"},
	{".drop text", "fill:#a1221a", "fill:#ff9f97"},
	{".drop.busy .pill", "fill:#c5362c", "fill:#e0483d"},
	{".drop.busy text", "fill:#fff", "fill:#fff"},
	{".out .pill", "fill:#e2f3e8;stroke:#2e8555", "fill:#173527;stroke:#55b583"},
	{".out text", "fill:#1d613b", "fill:#8fdcb2"},
	{".agent .pill", "fill:#efe7f7;stroke:#8a5fb0", "fill:#30223f;stroke:#b98ee0"},
	{".agent text", "fill:#613c85", "fill:#d6b8f2"},
}

// Styles is the style sheet of a theme, for pages that draw a map themselves.
func Styles(t Theme) string {
	var light, dark strings.Builder
	for _, c := range colours {
		fmt.Fprintf(&light, ".map %s{%s}\n", c.selector, c.light)
		fmt.Fprintf(&dark, ".map %s{%s}\n", c.selector, c.dark)
	}
	switch t {
	case Light:
		return sheet + light.String()
	case Dark:
		return sheet + dark.String()
	}
	return sheet + light.String() + "@media (prefers-color-scheme:dark){\n" + dark.String() + "}\n"
}
