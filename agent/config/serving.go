package config

import "net/netip"

// DefaultMetrics is the default address of metrics. Antrea's own programs use the port numbers
// below it.
const DefaultMetrics = "127.0.0.1:10352"

// Metrics says what the agent serves over TCP. Its unix socket serves /metrics, /healthz and
// /readyz too.
type Metrics struct {
	// Listen opens the address.
	Listen *bool `json:"listen,omitempty"`
	// Address is an IP address and a port.
	Address string `json:"address,omitempty"`
	// AntreaNames adds those metrics of Antrea's agent that have a meaning here, under its
	// names.
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
	f.check(err == nil && a.Port() != 0, "metrics.address: %q is not an IP address with a port", m.Address)
	f.check(!m.PProf || a.Addr().IsLoopback(), "metrics.pprof: profiles show the process's memory; %s is not a loopback address", m.Address)
}

// Page says where the agent serves the page.
type Page struct {
	// Address is a loopback address and a port. Without it, the agent serves no page.
	Address string `json:"address,omitempty"`
	// BeyondLoopback allows any other address. The page is not encrypted: a person who reads
	// its packets can do what the browser can.
	BeyondLoopback bool `json:"beyondLoopback,omitempty"`
	// Plots is a directory of antrail bench --save, which the page shows.
	Plots string `json:"plots,omitempty"`
}

func (c *Page) check(f *faults) {
	if c.Address == "" {
		f.check(*c == Page{}, "page.address: missing")
		return
	}
	a, err := netip.ParseAddrPort(c.Address)
	f.check(err == nil && a.Port() != 0, "page.address: %q is not an IP address with a port", c.Address)
	f.check(err != nil || c.BeyondLoopback || a.Addr().IsLoopback(),
		"page.address: %s is not a loopback address, so other machines could read the page; page.beyondLoopback: true allows it", c.Address)
}
