package config

import "net/netip"

// DefaultMetrics is where metrics are served. The ports below it are those of
// Antrea's own programs.
const DefaultMetrics = "127.0.0.1:10352"

// Metrics says what the agent serves over TCP. The agent's socket serves /metrics, /healthz
// and /readyz, too.
type Metrics struct {
	// Listen opens the address.
	Listen *bool `json:"listen,omitempty"`
	// Address is an IP address and a port.
	Address string `json:"address,omitempty"`
	// AntreaNames adds the metrics of Antrea's agent, under its names, as far as
	// they have a meaning here.
	AntreaNames bool `json:"antreaNames,omitempty"`
	// PProf serves Go's profiles at /debug/pprof/, on a loopback address only.
	PProf bool `json:"pprof,omitempty"`
}

func (m *Metrics) setDefaults() {
	orDefault(&m.Address, DefaultMetrics)
	orDefault(&m.Listen, new(true))
}

func (m *Metrics) check(f *faults) {
	a, err := netip.ParseAddrPort(m.Address)
	f.check(err == nil && a.Port() != 0, "metrics.address: %q is no IP address with a port", m.Address)
	f.check(!m.PProf || a.Addr().IsLoopback(), "metrics.pprof: profiles show the process's memory; %s is no loopback address", m.Address)
}

// Page says where the agent serves the page.
type Page struct {
	// Address is a loopback address and a port. Without it, the agent serves no page.
	Address string `json:"address,omitempty"`
	// BeyondLoopback allows any other address. The page is not encrypted: a person
	// who reads its packets on the way can do what the browser can.
	BeyondLoopback bool `json:"beyondLoopback,omitempty"`
	// Plots is a directory that antrail bench --save wrote, to be shown.
	Plots string `json:"plots,omitempty"`
}

func (c *Page) check(f *faults) {
	if c.Address == "" {
		f.check(*c == Page{}, "page.address: missing")
		return
	}
	a, err := netip.ParseAddrPort(c.Address)
	f.check(err == nil && a.Port() != 0, "page.address: %q is no IP address with a port", c.Address)
	f.check(err != nil || c.BeyondLoopback || a.Addr().IsLoopback(),
		"page.address: %s is no loopback address: others would see what a browser is shown; page.beyondLoopback: true allows it", c.Address)
}
