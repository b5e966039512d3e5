package tables

import "github.com/antrail/antrail/flow"

// PipelineRootClassifier splits ARP from IP and drops everything else. Every packet begins here,
// from any port.
//
// ARP has neither connections nor policies, so two tables are enough for it. IP packets go on to
// Classifier.
//
// With FlexibleIPAM, everything else passes between the Node and its card. Antrea drops it, and
// so cuts the Node's own IPv6 where Pods have none.
//
// An external Node has no tables for ARP. Its IP goes on to ConntrackZone, and everything else,
// ARP and IPv6 too, to NonIP.
//
// Reads:  the EtherType.
// Writes: nothing.
// Next:   ARPSpoofGuard, Classifier; of an external Node ConntrackZone, NonIP. Table-miss: drop.

func (p *Pipeline) rootARP() []*flow.Entry {
	if !hasARP(p) {
		return nil
	}
	return []*flow.Entry{
		p.entry(forDefault, tablePipelineRootClassifier, priorityNormal, match(arp), p.goTo(tableARPSpoofGuard)),
	}
}

func (p *Pipeline) rootIP(f Family) []*flow.Entry {
	return []*flow.Entry{
		p.entry(forDefault, tablePipelineRootClassifier, priorityNormal, match(f.ip()), p.goNext(tableARPResponder)),
	}
}

// rootNonIP sends packets that are not IP to NonIP.
func (p *Pipeline) rootNonIP() *flow.Entry {
	return p.entry(forDefault, tablePipelineRootClassifier, priorityLow, match(), p.goTo(tableNonIP))
}

// rootOfUnderlay passes all other packets between the Node and its card.
func (p *Pipeline) rootOfUnderlay() []*flow.Entry {
	card, host := p.c.Uplink.No, p.c.Bridge.No
	return []*flow.Entry{
		p.entry(forDefault, tablePipelineRootClassifier, priorityLow, match(inPort(card)), flow.Output{Port: host}),
		p.entry(forDefault, tablePipelineRootClassifier, priorityLow, match(inPort(host)), flow.Output{Port: card}),
	}
}
