package diagram

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

// light and dark are the colours. In both, red means a drop.
const (
	light = `.map .ground{fill:#fff}
.map .panel{fill:#f4f6f9}
.map .box{fill:#fff;stroke:#8a97a8}
.map text{fill:#1c2733}
.map .note,.map .stage{fill:#5a6878}
.map .line{stroke:#75859a}
.map .head{fill:#75859a}
.map .learn .line{stroke:#8a5fb0}
.map .learn .head{fill:#8a5fb0}
.map .idle .line{stroke:#c9d1db}
.map .idle .head{fill:#c9d1db}
.map .busy .line{stroke:#2f6fb2}
.map .busy .head{fill:#2f6fb2}
.map .on .line{stroke:#d97a00}
.map .on .head,.map .disc{fill:#d97a00}
.map .on .box{fill:#fff3dd;stroke:#d97a00}
.map .focus .box{fill:#ffdf9e;stroke:#d97a00;stroke-width:2.5}
.map .turn{fill:#fff}
.map .drop .pill{fill:#fbe3e1;stroke:#c5362c}
.map .drop text{fill:#a1221a}
.map .drop.busy .pill{fill:#c5362c}
.map .drop.busy text{fill:#fff}
.map .out .pill{fill:#e2f3e8;stroke:#2e8555}
.map .out text{fill:#1d613b}
.map .agent .pill{fill:#efe7f7;stroke:#8a5fb0}
.map .agent text{fill:#613c85}
`
	dark = `.map .ground{fill:#10161d}
.map .panel{fill:#18212b}
.map .box{fill:#212d3a;stroke:#5c6c7e}
.map text{fill:#e6edf4}
.map .note,.map .stage{fill:#9fb0c1}
.map .line{stroke:#7b8da1}
.map .head{fill:#7b8da1}
.map .learn .line{stroke:#b98ee0}
.map .learn .head{fill:#b98ee0}
.map .idle .line{stroke:#3b4957}
.map .idle .head{fill:#3b4957}
.map .busy .line{stroke:#5aa5ee}
.map .busy .head{fill:#5aa5ee}
.map .on .line{stroke:#ffb648}
.map .on .head,.map .disc{fill:#ffb648}
.map .on .box{fill:#45341a;stroke:#ffb648}
.map .focus .box{fill:#6b4a12;stroke:#ffb648;stroke-width:2.5}
.map .turn{fill:#241800}
.map .drop .pill{fill:#401d1b;stroke:#ef6a60}
.map .drop text{fill:#ff9f97}
.map .drop.busy .pill{fill:#e0483d}
.map .drop.busy text{fill:#fff}
.map .out .pill{fill:#173527;stroke:#55b583}
.map .out text{fill:#8fdcb2}
.map .agent .pill{fill:#30223f;stroke:#b98ee0}
.map .agent text{fill:#d6b8f2}
`
)

// Styles is the style sheet of a theme, for pages that draw a map themselves.
func Styles(t Theme) string {
	switch t {
	case Light:
		return sheet + light
	case Dark:
		return sheet + dark
	}
	return sheet + light + "@media (prefers-color-scheme:dark){\n" + dark + "}\n"
}
