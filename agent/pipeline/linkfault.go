package pipeline

import (
	"fmt"
	"slices"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/podports"
	"github.com/antrail/antrail/ports"
)

// A link that carries nothing is down or gone. Its Pod neither sends nor receives, whatever
// entries and policies say. Every command that shows the Pod or its port uses podports.Fault,
// so that all say the same.
//
// A port whose link is down is in the switch and says so itself. A port whose link is gone is
// not in the switch; podports.Ports knows it as long as it is wanted.

// LinkFault is the fault of a port's link. The result is false if the link is up, and if no
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

// LinkFaults are the faults of all ports, each with its Pod or port.
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

// missingRecords are the wanted ports that are not in the switch. A port that enters or leaves
// the switch at this moment may be in both lists; then the switch's record counts.
func (p *Pipeline) missingRecords(inSwitch []api.PortRecord) (all []api.PortRecord) {
	for _, m := range p.Pods.Missing() {
		if slices.ContainsFunc(inSwitch, func(r api.PortRecord) bool { return r.No == m.OFPort }) {
			continue
		}
		all = append(all, api.PortRecord{No: m.OFPort, Name: m.Name, Pod: p.podAt(m.OFPort), Link: m.Link, Driver: m.Driver, Missing: m.Why.What})
	}
	return all
}

// brokenText continues a sentence about a Pod whose port's link carries nothing; "" if the link
// is up.
func (p *Pipeline) brokenText(port uint32) string {
	f, broken := p.LinkFault(port)
	if !broken {
		return ""
	}
	return fmt.Sprintf(", whose %s: packets to it are dropped (%s)", f.What, f.Reason)
}
