package tables

import (
	"strings"
	"testing"
)

// TestTraceflow: the entries of a tag, in each mode and family.
func TestTraceflow(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"encap":    func(*Config) {},
		"noencap":  func(c *Config) { c.Encap = NoEncap },
		"no-proxy": func(c *Config) { c.Features.Proxy = false },
	} {
		c := goldenConfig()
		change(&c)
		p := New(c)
		compareText(t, "traceflow-"+name+".flows", strings.Join(lines(t, p.Traceflow(FirstTag), p.Names()), "\n")+"\n")
		for _, e := range p.Traceflow(LastTag) {
			if e.Cookie != uint64(c.CookieRound)<<48|7<<40 {
				t.Errorf("%s: cookie %#x is not Traceflow's", e.Match.Text(nil), e.Cookie)
			}
		}
	}
}
