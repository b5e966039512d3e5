package agent

import (
	"fmt"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/ports"
)

// A link that carries nothing: it is down, or it is gone. Its Pod gets nothing and sends
// nothing, whatever entries and policies say. Every command that shows the Pod or its
// port tells of it by a linkFault, so that all of them say the same.
//
// A port whose link is down is in the switch and says so itself. A port whose link is
// gone is not in the switch; podPorts knows of it for as long as it is wanted.

// linkFault is a link that takes no packets, and why.
type linkFault struct {
	what   string // the fault as a sentence without a full stop: link web-a-1 is gone
	reason string // by which packets to the port are dropped
	next   string // what to do
}

// linkDown is the fault of a link that is there and down. reason is by which packets to
// its port are dropped.
func linkDown(link, reason string) linkFault {
	return linkFault{"link " + link + " is down", reason,
		"set the link up in the Pod, or have the Pod made anew: an interface without its other end stays down"}
}

// linkGone is the fault of a link that is not there; how says so.
func linkGone(link, how string) linkFault {
	return linkFault{"link " + link + " " + how, dataplane.DropNoSuchPort.String(),
		"delete the Pod, so that its successor gets a link; the port opens as soon as there is a link " + link}
}

// linkRefused is the fault of a link that could not be opened as a port.
func linkRefused(link, why string) linkFault {
	return linkFault{fmt.Sprintf("link %s is not open: %s", link, why), dataplane.DropNoSuchPort.String(),
		"the agent tries again by itself; its log has each error"}
}

// linkFault is the fault of a port's link. It is false when the link is up, and when no
// port of that number is wanted.
func (p *pipeline) linkFault(port uint32) (linkFault, bool) {
	for _, s := range p.sw.Ports() {
		if s.No == port {
			return linkDown(s.Name, portLoss(ports.TxLinkDown.String()).Name), !s.Up
		}
	}
	for _, m := range p.pods.missing() {
		if m.OFPort == port {
			return m.why, true
		}
	}
	return linkFault{}, false
}

// linkFaults are the faults of all ports, each with the Pod or port that has it.
func (p *pipeline) linkFaults() (all []string) {
	for _, r := range p.portRecords() {
		if f, broken := p.linkFault(r.No); broken {
			name := r.Name
			if r.Pod != "" {
				name = "Pod " + r.Pod
			}
			all = append(all, name+": "+f.what)
		}
	}
	return all
}

// missingRecords are the ports that are wanted and not in the switch.
func (p *pipeline) missingRecords() (all []PortRecord) {
	for _, m := range p.pods.missing() {
		all = append(all, PortRecord{No: m.OFPort, Name: m.Name, Pod: p.podAt(m.OFPort), Link: m.Link, Driver: m.Driver, Missing: m.why.what})
	}
	return all
}

// brokenText is what a sentence says behind a Pod whose port's link carries nothing; ""
// when the link is up.
func (p *pipeline) brokenText(port uint32) string {
	f, broken := p.linkFault(port)
	if !broken {
		return ""
	}
	return fmt.Sprintf(", whose %s: what is sent there is lost (%s)", f.what, f.reason)
}
