package config

import (
	"net/netip"
	"strings"
	"testing"
)

// TestPageConfig: nowhere by default, and beyond the loopback only when that is said.
func TestPageConfig(t *testing.T) {
	for text, want := range map[string]string{
		"{}": "", "{address: '127.0.0.1:10353'}": "", "{address: '[::1]:10353', plots: /x}": "", "{address: '10.0.0.1:80', beyondLoopback: true}": "",
		"{address: '10.0.0.1:80'}": "not a loopback address", "{address: '0.0.0.0:80'}": "not a loopback address", "{address: 'localhost:80'}": "not an IP address with a port",
		"{address: '127.0.0.1:0'}": "not an IP address with a port", "{plots: /x}": "page.address: missing", "{beyondLoopback: true}": "page.address: missing",
	} {
		var f faults
		c, err := Parse([]byte("page: " + text + "\n"))
		if c == nil {
			t.Fatal(err)
		}
		c.Page.check(&f)
		if got := len(f) > 0; got != (want != "") || got && !strings.Contains(f[0].Error(), want) {
			t.Errorf("%s: %v, want %q", text, f, want)
		}
	}
}

func TestMetricsConfig(t *testing.T) {
	for more, want := range map[string]string{
		"metrics: {address: localhost}":                   `metrics.address: "localhost" is not an IP address with a port`,
		"metrics: {address: '0.0.0.0:9000', pprof: true}": "metrics.pprof: profiles show the process's memory; 0.0.0.0:9000 is not a loopback address",
		"log: {format: xml}":                              `log.format: "xml" is neither text nor json`,
		"log: {level: loud}":                              `log.level: "loud" is none of debug, info, warn and error`,
	} {
		if _, err := Parse([]byte(goodConfig + more + "\n")); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", more, err, want)
		}
	}
	c, err := Parse([]byte(goodConfig))
	if err != nil {
		t.Fatal(err)
	}
	if a := netip.MustParseAddrPort(c.Metrics.Address).Addr(); !a.IsLoopback() || !*c.Metrics.Listen || c.Metrics.PProf || c.Metrics.AntreaNames {
		t.Errorf("metrics by default: %+v", c.Metrics)
	}
}
