package web

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// palettes are the colours of style.css by name: light, and dark.
func palettes(t *testing.T) (all []map[string]string) {
	t.Helper()
	css, err := os.ReadFile("static/style.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range regexp.MustCompile(`:root \{[^}]*\}`).FindAllString(string(css), -1) {
		p := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{3}|[0-9a-f]{6});`).FindAllStringSubmatch(root, -1) {
			p[m[1]] = m[2]
		}
		all = append(all, p)
	}
	if len(all) != 2 || len(all[0]) < 12 || len(all[0]) != len(all[1]) {
		t.Fatalf("%d palettes: %v", len(all), all)
	}
	return all
}

// luminance is WCAG 2.2's relative luminance of a colour.
func luminance(t *testing.T, hex string) (sum float64) {
	t.Helper()
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		v := float64(n) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

// TestContrast: in light and in dark, text has the contrast of WCAG 2.2 (1.4.3), and
// the frames of fields and of the focus that of 1.4.11.
func TestContrast(t *testing.T) {
	for i, p := range palettes(t) {
		ratio := func(a, b string) float64 {
			x, y := luminance(t, p[a]), luminance(t, p[b])
			return (max(x, y) + 0.05) / (min(x, y) + 0.05)
		}
		for _, c := range []struct {
			on, grounds []string
			least       float64
		}{
			{[]string{"text", "soft", "accent", "bad", "good"}, []string{"ground", "panel", "box", "mark"}, 4.5},
			{[]string{"accent-text"}, []string{"accent"}, 4.5},
			{[]string{"edge", "focus"}, []string{"ground", "panel", "box"}, 3},
		} {
			for _, on := range c.on {
				for _, ground := range c.grounds {
					if r := ratio(on, ground); r < c.least {
						t.Errorf("%s: %s on %s has a contrast of %.2f, less than %v", []string{"light", "dark"}[i], on, ground, r, c.least)
					}
				}
			}
		}
	}
}
