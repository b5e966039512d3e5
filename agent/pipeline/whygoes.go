package pipeline

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// Where a packet goes when it leaves the switch.

// leaves says where all outputs go.
func (r teller) leaves(w *api.WhyWay) {
	for i := range r.t.Steps {
		if s := &r.t.Steps[i]; s.Kind == telemetry.StepOutput && !s.Dropped {
			r.end(w, s)
		}
	}
	if r.established() {
		w.Ends = append(w.Ends, "it belongs to an established connection, which policies do not check again")
	}
}

// established says whether conntrack found an established connection of the packet.
func (r teller) established() bool {
	i := slices.IndexFunc(r.t.Steps, func(s telemetry.Step) bool { return s.Kind == telemetry.StepCT })
	if i < 0 {
		return false
	}
	k := telemetry.MetaKey(&r.t.Steps[i].Meta)
	return strings.Contains(value(flow.CTState, &k, nil), "est")
}

// end says where an output goes.
func (r teller) end(w *api.WhyWay, s *telemetry.Step) {
	port := r.walker.port(r.t.Names, s.Port)
	switch {
	case s.Tunnel.Dst.IsValid():
		r.toNode(w, r.p.Objects.NodeAt(s.Tunnel.Dst), s, "through the tunnel")
	case s.Port == r.self.Gateway.No:
		r.byGateway(w, s)
	case s.Port == r.self.Uplink.No && s.Port != 0:
		w.Ends = append(w.Ends, "it leaves by "+port.Name+" to the underlay")
	case s.Port == r.self.Bridge.No && s.Port != 0:
		w.Ends = append(w.Ends, fmt.Sprintf("it leaves by %s to Node %s itself", port.Name, r.self.Node))
	case port.Pod != "":
		w.Ends = append(w.Ends, "it reaches "+port.Pod+r.p.brokenText(s.Port))
		if f, broken := r.p.LinkFault(s.Port); broken {
			w.Advice = f.Next
		}
	case len(r.t.Verdict.Outputs) > 1:
		w.Ends = append(w.Ends, "a copy leaves by "+port.Name+controlText(r.control()))
	default:
		r.redirected(w, s, port.Name)
	}
}

// redirected describes a packet that leaves to be inspected, and records it for its return.
func (r teller) redirected(w *api.WhyWay, s *telemetry.Step, port string) {
	by := r.control()
	end := "it leaves by " + port + controlText(by)
	if back, ok := r.p.Objects.ReturnPort(s.Port, by); ok {
		*r.back = givenBack{back, slices.Clone(s.Frame)}
	} else {
		end += ", and goes on if it comes back"
	}
	w.Ends = append(w.Ends, end)
}

// control is the TrafficControl that redirects the traffic. It is zero for application-layer
// policies, which redirect too.
func (r teller) control() cluster.Key {
	for _, o := range r.origins("") {
		if o.Object.Kind == cluster.KindTrafficControl {
			return o.Object
		}
	}
	return cluster.Key{}
}

func controlText(k cluster.Key) string {
	if k == (cluster.Key{}) {
		return " to be inspected at the application layer"
	}
	return " for " + objectText(k)
}

// byGateway describes a packet that leaves to the Node's own network.
func (r teller) byGateway(w *api.WhyWay, s *telemetry.Step) {
	at := r.p.Objects.PlaceOf(flow.AddrIn(&s.After, flow.IPDst, flow.IPv6Dst))
	if at.Object.Kind == cluster.KindPod && at.Node != r.self.Node && at.Node != "" {
		r.toNode(w, at.Node, s, "by the Nodes' own network")
		return
	}
	text := fmt.Sprintf("it leaves by %s to the network of Node %s", r.self.Gateway.Name, r.self.Node)
	for _, o := range r.origins("") {
		if o.Object.Kind == cluster.KindEgress {
			text += ", as " + objectText(o.Object) + " says"
			break
		}
	}
	w.Ends = append(w.Ends, text)
	w.Advice = fmt.Sprintf("if it still fails, check the Node's kernel: on %s, ip route get %s and nft list ruleset", r.self.Node, at.Addrs[0])
	if at.Object.Kind == cluster.KindNode && at.Node == r.self.Node {
		w.Advice = r.listening()
	}
	if nobody := r.nobody(&at); nobody != "" {
		w.Ends, w.Advice = append(w.Ends, "but "+nobody), "antrail get pods lists the Pods' addresses"
	}
}

// nobody says that no Pod has an address of the Node's pod range; "" for other addresses.
func (q *asking) nobody(at *control.Place) string {
	if at.Object != (cluster.Key{}) || !slices.ContainsFunc(q.self.PodCIDRs, func(c netip.Prefix) bool { return c.Contains(at.Addrs[0]) }) {
		return ""
	}
	return fmt.Sprintf("no Pod has %s, which is in Node %s's range", at.Addrs[0], q.self.Node)
}

// toNode records that another Node has the rest of the way.
func (r teller) toNode(w *api.WhyWay, node string, s *telemetry.Step, how string) {
	end := fmt.Sprintf("it goes to Node %s %s", node, how)
	if a, silent := r.p.silentAt(s.Tunnel.Dst, node); silent {
		w.Severed = true
		end += fmt.Sprintf(", but %s does not answer ARP or NDP, so packets to it are dropped", a)
		w.Advice = fmt.Sprintf("check that Node %s is up, and on the same network as %s: antrail check --live --node %s, ip neigh show %s", node, r.self.Node, r.self.Node, a)
	}
	w.Ends = append(w.Ends, end)
	w.Next = &api.Carried{To: node, Frame: slices.Clone(s.Frame), Tunnel: tunnelOf(&s.Tunnel)}
	if t := w.Next.Tunnel; t != nil && t.Src == "" {
		t.Src = r.tunnelSource(s.Tunnel.Dst)
	}
}

// tunnelSource is this Node's address in the family of the tunnel.
func (r teller) tunnelSource(dst netip.Addr) string {
	for _, a := range r.self.Addresses {
		if a.Is4() == dst.Is4() {
			return a.String()
		}
	}
	return ""
}
