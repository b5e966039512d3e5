package pipeline

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Severed is an end that packets do not reach: a Pod whose link is down or gone, or a Node that
// does not answer. It is reported with dropped packets.
type Severed struct {
	Who  string // Pod namespace/name, or Node name at address
	Port uint32 // the Pod's
	node netip.Addr
	why  string // the fault, as the rest of a sentence that begins with Who
}

// Severed finds the Pods whose links are down or gone, and the Nodes that do not answer. pod
// limits the Pods to one, as namespace/name; "" for all.
func (p *Pipeline) Severed(pod string) (all []Severed) {
	for _, r := range p.PortRecords() {
		if r.Pod != "" && !r.Up && (pod == "" || pod == r.Pod) {
			all = append(all, Severed{Who: "Pod " + r.Pod, Port: r.No, why: p.brokenText(r.No)})
		}
	}
	for _, n := range p.SilentNodes() {
		all = append(all, Severed{Who: p.nodeAt(n), node: n, why: " does not answer ARP or NDP: packets to it are dropped"})
	}
	return all
}

// severedText names the ends, one on each line.
func severedText(all []Severed) string {
	var lines []string
	for _, s := range all {
		lines = append(lines, s.Who+s.why)
	}
	return strings.Join(lines, "\n")
}

// SeveredNews reports the ends that are severed since an earlier check, and those that are no
// longer.
func (p *Pipeline) SeveredNews(before, now []Severed) string {
	var came []Severed
	for _, s := range now {
		if !slices.Contains(before, s) {
			came = append(came, s)
		}
	}
	for _, s := range before {
		if slices.Contains(now, s) {
			continue
		}
		if s.why = p.restored(&s); s.why != "" {
			came = append(came, s)
		}
	}
	return severedText(came)
}

// restored continues a sentence about an end that is no longer severed; "" if the port or the
// Node is gone.
func (p *Pipeline) restored(s *Severed) string {
	if s.node.IsValid() {
		if p.nodeAt(s.node) == s.Who {
			return " answers ARP or NDP again"
		}
		return ""
	}
	for _, r := range p.PortRecords() {
		if r.No == s.Port && r.Up && "Pod "+r.Pod == s.Who {
			return fmt.Sprintf(": its link %s is up again", r.Link)
		}
	}
	return ""
}

// nodeAt names the Node with an address in a sentence.
func (p *Pipeline) nodeAt(a netip.Addr) string {
	if name := p.NodeName(a); name != a.String() {
		return "Node " + name + " at " + a.String()
	}
	return "Node " + a.String()
}
