package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// severed is what packets do not reach: a Pod whose link is down or gone, or a Node that
// does not answer. A caller that asks for dropped packets gets it with them.
type severed struct {
	who  string // as Pod namespace/name, or Node name at address
	port uint32 // the Pod's
	node netip.Addr
	why  string // what is wrong, behind who
}

// severed finds the Pods whose links are down or gone (all, or the one that is asked for,
// as namespace/name) and the Nodes that do not answer.
func (p *pipeline) severed(pod string) (all []severed) {
	for _, r := range p.portRecords() {
		if r.Pod != "" && !r.Up && (pod == "" || pod == r.Pod) {
			all = append(all, severed{who: "Pod " + r.Pod, port: r.No, why: p.brokenText(r.No)})
		}
	}
	for _, n := range p.silentNodes() {
		all = append(all, severed{who: p.nodeAt(n), node: n, why: " does not answer ARP or NDP: what goes there is lost"})
	}
	return all
}

// severedText names them, a line each.
func severedText(all []severed) string {
	var lines []string
	for _, s := range all {
		lines = append(lines, s.who+s.why)
	}
	return strings.Join(lines, "\n")
}

// severedNews is what to say of those that came after an earlier look, and of those
// that have gone since.
func (p *pipeline) severedNews(before, now []severed) string {
	var came []severed
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

// restored is what to say behind who was severed and is no more; "" where the port or
// the Node itself is gone.
func (p *pipeline) restored(s *severed) string {
	if s.node.IsValid() {
		if p.nodeAt(s.node) == s.who {
			return " answers ARP or NDP again"
		}
		return ""
	}
	for _, r := range p.portRecords() {
		if r.No == s.port && r.Up && "Pod "+r.Pod == s.who {
			return fmt.Sprintf(": its link %s is up again", r.Link)
		}
	}
	return ""
}

// nodeAt is the Node with an address, for a sentence.
func (p *pipeline) nodeAt(a netip.Addr) string {
	if name := p.nodeName(a); name != a.String() {
		return "Node " + name + " at " + a.String()
	}
	return "Node " + a.String()
}
