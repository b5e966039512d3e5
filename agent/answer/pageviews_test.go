package answer

import (
	"fmt"
	"strings"
	"testing"
)

// views are all of them, by a thing that each has when it is there.
var views = map[string]string{
	"":                                `#map .table`,
	"table/SpoofGuard":                `#panel .entries li`,
	"object/Pod%2Fdefault%2Fclient-a": `#panel .yaml`,
	"walk":                            `#typed select`,
	"drops":                           `#panel .grid td`,
	"connections":                     `#panel .grid td`,
	"objects":                         `#panel .rows li`,
	"nodes":                           `#panel .node li`,
	"plots":                           `#panel img`,
}

// TestPageViews opens every view on a laptop and on a phone, in light and in dark:
// nothing is wider than the window.
func TestPageViews(t *testing.T) {
	b := browse(t)
	b.traffic()
	for _, s := range []struct {
		name          string
		width, height int64
	}{{"laptop", 1280, 800}, {"phone", 390, 844}} {
		b.Size(s.width, s.height)
		for view, has := range views {
			for _, theme := range []string{"light", "dark"} {
				b.Theme(theme)
				b.Value(fmt.Sprintf("location.hash = %q", "#/"+view))
				b.Poll(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility()`, has))
				b.Poll(`[...document.images].every((i) => i.complete && i.naturalWidth > 0)`)
				if wide := b.Value(`document.documentElement.scrollWidth`); wide != fmt.Sprint(s.width) {
					t.Errorf("%s on a %s is %s wide", view, s.name, wide)
				}
				if over := b.Value(`document.querySelector("#panel").scrollWidth - document.querySelector("#panel").clientWidth`); over != "0" {
					t.Errorf("%s on a %s: details are %s pixels too wide", view, s.name, over)
				}
				if view == "drops" {
					b.Poll(`document.querySelector("#panel .origins a")?.textContent !== undefined`)
				}
				b.Shot(fmt.Sprintf("%s-%s-%s", s.name, theme, strings.ReplaceAll(strings.SplitN(view+"map", "/", 2)[0], "%", "")))
			}
		}
	}
	b.NoFaults()
}
