package tables

import "github.com/antrail/antrail/flow"

// PipelineRootClassifier splits ARP from IP; everything else is dropped.
//
// Every packet begins here, whatever port it came by.
//
// ARP has neither connections nor policies: two tables do all that it needs. IP packets
// go on to Classifier.
//
// Reads:  the EtherType.
// Writes: nothing.
// Next:   ARPSpoofGuard, Classifier. Table-miss: drop.

func (p *Pipeline) rootARP() []*flow.Entry {
	if !hasIPv4(p) {
		return nil
	}
	return []*flow.Entry{
		p.entry(forDefault, tablePipelineRootClassifier, priorityNormal, match(arp), p.goTo(tableARPSpoofGuard)),
	}
}

func (p *Pipeline) rootIP(f Family) []*flow.Entry {
	return []*flow.Entry{
		p.entry(forDefault, tablePipelineRootClassifier, priorityNormal, match(f.ip()), p.goTo(tableClassifier)),
	}
}
