package bridge

// lastNumber is the highest number that a port may have (ofport_request of the schema).
const lastNumber = 65279

// assignNumbers sets the OpenFlow port number of each port. An existing port keeps its number unless
// ofport_request is another free one. A new port gets ofport_request, the number that the row had
// before, or the lowest free number: the first of these that is free.
func assignNumbers(now map[string]Port, ports []*wantedPort) {
	taken := map[uint16]bool{LocalPort: true}
	give := func(p *wantedPort, n uint16) {
		if p.Number == 0 && n != 0 && !taken[n] {
			p.Number, taken[n] = n, true
		}
	}
	for _, p := range ports {
		if at, there := now[p.Name]; there && at.Number == p.request {
			give(p, p.request)
		}
	}
	for _, choose := range []func(*wantedPort) uint16{
		func(p *wantedPort) uint16 { return p.request },
		func(p *wantedPort) uint16 { return now[p.Name].Number },
		func(p *wantedPort) uint16 { return p.last },
	} {
		for _, p := range ports {
			give(p, choose(p))
		}
	}
	next := uint16(1)
	for _, p := range ports {
		for p.Number == 0 && next <= lastNumber {
			give(p, next)
			next++
		}
	}
}
