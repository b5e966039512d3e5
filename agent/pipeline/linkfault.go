package pipeline

import (
	"fmt"
	"slices"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/podports"
	"github.com/antrail/antrail/ports"
)

// A link that carries nothing: it is down, or it is gone. Its Pod gets nothing and sends
// nothing, whatever entries and policies say. Every command that shows the Pod or its
// port tells of it by a podports.Fault, so that all of them say the same.
//
// A port whose link is down is in the switch and says so itself. A port whose link is
// gone is not in the switch; podports.Ports knows of it for as long as it is wanted.

// LinkFault is the fault of a port's link. It is false when the link is up, and when no
// port of that number is wanted.
func (p *Pipeline) LinkFault(port uint32) (podports.Fault, bool) {
	for _, s := range p.Switch.Ports() {
		if s.No == port {
			return podports.Down(s.Name, portLoss(ports.TxLinkDown.String()).Name), !s.Up
		}
	}
	for _, m := range p.Pods.Missing() {
		if m.OFPort == port {
			return m.Why, true
		}
	}
	return podports.Fault{}, false
}

// LinkFaults are the faults of all ports, each with the Pod or port that has it.
func (p *Pipeline) LinkFaults() (all []string) {
	for _, r := range p.PortRecords() {
		if f, broken := p.LinkFault(r.No); broken {
			name := r.Name
			if r.Pod != "" {
				name = "Pod " + r.Pod
			}
			all = append(all, name+": "+f.What)
		}
	}
	return all
}

// missingRecords are the ports that are wanted and not in the switch. A port that enters or
// leaves the switch at this moment may be in both lists: the switch's record counts.
func (p *Pipeline) missingRecords(inSwitch []api.PortRecord) (all []api.PortRecord) {
	for _, m := range p.Pods.Missing() {
		if slices.ContainsFunc(inSwitch, func(r api.PortRecord) bool { return r.No == m.OFPort }) {
			continue
		}
		all = append(all, api.PortRecord{No: m.OFPort, Name: m.Name, Pod: p.podAt(m.OFPort), Link: m.Link, Driver: m.Driver, Missing: m.Why.What})
	}
	return all
}

// brokenText is what a sentence says behind a Pod whose port's link carries nothing; ""
// when the link is up.
func (p *Pipeline) brokenText(port uint32) string {
	f, broken := p.LinkFault(port)
	if !broken {
		return ""
	}
	return fmt.Sprintf(", whose %s: what is sent there is lost (%s)", f.What, f.Reason)
}
