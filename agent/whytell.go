package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
)

// The sentence, from the walk: who decided stands in the packet's registers, as
// conjunction ids, or is the object behind the entry that a table gave.

// teller reads one trace.
type teller struct {
	*asking
	t      *dataplane.Trace
	chosen *dataplane.Step // the choice of an endpoint; nil: none
}

func (r teller) way() WhyWay {
	w := WhyWay{What: r.what(), Endpoint: r.endpoint(), Decisions: r.decisions()}
	switch to := &r.to.place; {
	case r.chosen == nil && to.Object.Kind == control.KindNode && to.Node == r.self.Node && r.t.Live.Port == r.self.Gateway.No && !r.noEndpoint():
		w.Ends = []string{"it is for the Node itself, whose kernel answers, and does not pass the switch"}
		w.Advice = r.listening()
		return w
	case to.Object.Kind == control.KindPod && to.Node == r.self.Node && to.Port == 0 && !r.isNode(to.Addrs):
		w.Denied, w.Advice = fmt.Sprintf("%s has no port in this Node's switch", &r.to), "antrail get pods says how far the Pod is"
		return w
	case len(r.t.Verdict.Outputs) == 0:
		w.Denied, w.Advice = r.denial(&w)
		w.Met = r.met()
		return w
	}
	for i := range r.t.Steps {
		if s := &r.t.Steps[i]; s.Kind == dataplane.StepOutput && !s.Lost {
			r.end(&w, s)
		}
	}
	if r.established() {
		w.Ends = append(w.Ends, "it is of a connection that is there already, which policies are not asked about again")
	}
	return w
}

// listening is what to do about a connection to the Node itself.
func (r teller) listening() string {
	return fmt.Sprintf("if it fails all the same: does anything listen there (ss -ltnu on %s), and does the Node's firewall let it in?", r.self.Node)
}

// established says whether conntrack took the packet for one of a connection that
// is there.
func (r teller) established() bool {
	i := slices.IndexFunc(r.t.Steps, func(s dataplane.Step) bool { return s.Kind == dataplane.StepCT })
	if i < 0 {
		return false
	}
	k := dataplane.MetaKey(&r.t.Steps[i].Meta)
	return strings.Contains(value(flow.CTState, &k, nil), "est")
}

// server is who is asked in the end: the endpoint, or else the second end.
func (r teller) server() (name string, port uint16) {
	if a, ok := r.endpointAddr(); ok {
		e := r.someone(a.Addr())
		return e.String(), a.Port()
	}
	return r.to.String(), r.to.port
}

func (r teller) endpointAddr() (netip.AddrPort, bool) {
	if r.chosen == nil {
		return netip.AddrPort{}, false
	}
	return endpointOf(&r.chosen.Group.Buckets[r.chosen.Bucket])
}

// endpoint is the endpoint with its Pod.
func (r teller) endpoint() string {
	a, ok := r.endpointAddr()
	if !ok {
		return ""
	}
	if e := r.someone(a.Addr()); e.place.Object.Kind == control.KindPod {
		return fmt.Sprintf("%s (%s)", a, e.String())
	}
	return a.String()
}

// what is the traffic in words: tcp 80 from default/client-a to default/web-a.
func (r teller) what() string {
	to, _ := r.server()
	if service := r.service(); service != "" && r.chosen != nil {
		to += " by " + service
	}
	return fmt.Sprintf("%s from %s to %s", r.dial(), &r.from, to)
}

// dial is the protocol with the port that policies see.
func (r teller) dial() string {
	_, port := r.server()
	name := strings.ToLower(protocolNames[r.proto])
	if r.proto == packet.ProtoICMP || r.proto == packet.ProtoICMPv6 {
		return name
	}
	return fmt.Sprintf("%s %d", name, port)
}

// service is the Service that the packet asked for; "" for none.
func (r teller) service() string {
	for _, o := range r.origins("ServiceLB") {
		if o.Object.Kind == control.KindService {
			return objectText(o.Object)
		}
	}
	return ""
}

// origins are the objects behind the entries that one table gave, or all tables
// when it is "".
func (r teller) origins(table string) (all []control.Origin) {
	for i := range r.t.Steps {
		s := &r.t.Steps[i]
		if s.Kind == dataplane.StepEntry && s.Entry != nil && (table == "" || tableName(r.t.Names, s.Table) == table) {
			all = append(all, r.p.objects.OriginsOf(s.Entry)...)
		}
	}
	return all
}

// decisions are what policies said on this Node: of the sender, if it is here, and
// of the receiver, if the packet came so far.
func (r teller) decisions() (all []WhyDecision) {
	denied := r.denied()
	for _, d := range []struct {
		tables.Direction
		field tables.Field
		asked bool
	}{
		{tables.Egress, tables.TFEgressConjIDField, r.from.place.Port != 0},
		{tables.Ingress, tables.TFIngressConjIDField, r.delivers()},
	} {
		direction := strings.ToLower(d.Direction.String())
		rule := r.p.objects.RuleByID(r.last(d.field))
		if denied != nil && denied.Key.Direction == d.Direction {
			rule = denied
		}
		decision := WhyDecision{Node: r.self.Node, Direction: direction, Policies: []string{}}
		isolating, isolated := r.isolation(direction)
		switch {
		case isolated:
			decision.Isolated, decision.Policies = true, isolating
		case rule != nil:
			r.name(&decision, rule)
		case !d.asked:
			continue
		}
		all = append(all, decision)
	}
	return all
}

func (r teller) name(d *WhyDecision, rule *control.RealisedRule) {
	d.Action, d.Policies, d.Rule = control.ActionOf(rule.Rule.Action), []string{objectText(rule.Key.Policy)}, rule.Title()
	d.Tier, d.Priority = r.p.objects.RankOf(rule.Key.Policy)
}

// delivers says whether the packet leaves to a Pod of this Node.
func (r teller) delivers() bool {
	return slices.ContainsFunc(r.t.Verdict.Outputs, func(no uint32) bool {
		_, ok := r.p.objects.PodAt(no)
		return ok
	})
}

// last is the last id in a register on the walk; 0 for none.
func (r teller) last(f tables.Field) (id uint32) {
	for i := range r.t.Steps {
		if now := uint32(f.Get(&r.t.Steps[i].After).Lo); now != 0 && r.t.Steps[i].Kind == dataplane.StepEntry {
			id = now
		}
	}
	return id
}

// denied is the rule that dropped or rejected the packet; nil when none did.
func (r teller) denied() *control.RealisedRule {
	mark := tables.APDenyRegMark
	for i := range r.t.Steps {
		if k := &r.t.Steps[i].After; mark.Field.Get(k).Lo == mark.Value {
			return r.p.objects.RuleByID(uint32(tables.APConjIDField.Get(k).Lo))
		}
	}
	return nil
}

// isolation are the policies that isolate the Pod that the packet ended at.
func (r teller) isolation(direction string) (policies []string, isolated bool) {
	for _, o := range r.origins("") {
		d, ok := o.Isolates()
		isolated = isolated || ok && d == direction
	}
	for _, o := range r.origins("") {
		if isolated && o.Object.Kind == control.KindNetworkPolicy && o.Field == "spec.podSelector" {
			policies = append(policies, objectText(o.Object))
		}
	}
	return policies, isolated
}

// denial says why the packet goes nowhere, and what to do about it.
func (r teller) denial(w *WhyWay) (why, advice string) {
	for _, d := range w.Decisions {
		switch {
		case d.Isolated:
			return r.isolatedText(&d)
		case d.Action == control.ActionDrop || d.Action == control.ActionReject:
			verb := map[control.RuleAction]string{control.ActionDrop: "drops", control.ActionReject: "rejects"}[d.Action]
			return fmt.Sprintf("%s %s %s (%s)", d.Policies[0], verb, w.What, d.where()),
				"if it has to pass, change that rule or have one before it allow it; antrail get policies -o wide counts what each has refused"
		}
	}
	if r.noEndpoint() {
		service := r.service()
		return fmt.Sprintf("%s has no endpoint for %s, so %s is refused at once", service, r.dial(), &r.from),
			"are there Pods that its selector takes, and are they ready? antrail get services, and kubectl get endpointslices"
	}
	return r.otherDenial()
}

// isolatedText is an implicit deny: nobody dropped the packet, but nobody allowed
// it.
func (r teller) isolatedText(d *WhyDecision) (why, advice string) {
	server, _ := r.server()
	pod, other := server, "from "+r.from.String()
	if d.Direction == "egress" {
		pod, other = r.from.String(), "to "+server
	}
	verb := " isolates "
	if len(d.Policies) != 1 {
		verb = " isolate "
	}
	who := strings.Join(d.Policies, ", ")
	if who == "" {
		who = "policies"
	}
	return fmt.Sprintf("%s%s%s for %s, and no rule allows %s %s", who, verb, pod, d.Direction, r.dial(), other),
		fmt.Sprintf("if it has to pass, a policy for %s needs an %s rule that allows %s %s", pod, d.Direction, r.dial(), other)
}

// noEndpoint says whether the packet went to the agent for want of an endpoint.
func (r teller) noEndpoint() bool {
	return slices.ContainsFunc(r.t.Steps, func(s dataplane.Step) bool {
		c, ok := s.Action.(flow.Controller)
		return s.Kind == dataplane.StepPacketIn && ok && tables.NoEndpoint(c.UserData, &s.After)
	})
}

// otherDenial is a drop that no policy has to do with.
func (r teller) otherDenial() (why, advice string) {
	v := &r.t.Verdict
	if v.Reason == dataplane.NotDropped {
		return fmt.Sprintf("%s goes no further: %s", r.what(), v.Text(r.t.Names)), ""
	}
	s := fmt.Sprintf("%s ends in table %s (%s): %s", r.what(), tableName(r.t.Names, v.Table), v.Reason, v.Reason.Sentence())
	if nobody := r.nobody(&r.to.place); nobody != "" {
		return nobody + "; " + s, "antrail get pods has the addresses of those that are there"
	}
	advice = fmt.Sprintf("antrail dump-flows %s --explain has what that table lets pass, and for whom", tableName(r.t.Names, v.Table))
	for _, o := range r.origins(tableName(r.t.Names, v.Table)) {
		if o.Object.Kind != control.KindNodeConfig {
			return s + " The entry is there for " + objectText(o.Object) + ".", advice
		}
	}
	return s, advice
}

// end says where an output goes.
func (r teller) end(w *WhyWay, s *dataplane.Step) {
	port := r.walker.port(r.t.Names, s.Port)
	switch {
	case s.Tunnel.Dst.IsValid():
		r.toNode(w, r.p.objects.NodeAt(s.Tunnel.Dst), s, "through the tunnel")
	case s.Port == r.self.Gateway.No:
		r.byGateway(w, s)
	case port.Pod != "":
		down := r.p.downText(s.Port)
		w.Ends = append(w.Ends, "it reaches "+port.Pod+down)
		if down != "" {
			w.Advice = "set the link up in the Pod, or have the Pod made anew: an interface without its other end stays down"
		}
	case len(r.t.Verdict.Outputs) > 1:
		w.Ends = append(w.Ends, "a copy leaves by "+port.Name+controlText(r.control()))
	default:
		r.redirected(w, s, port.Name)
	}
}

// redirected says where a packet leaves to be looked at, and has it come back.
func (r teller) redirected(w *WhyWay, s *dataplane.Step, port string) {
	by := r.control()
	end := "it leaves by " + port + controlText(by)
	if back, ok := r.p.objects.ReturnPort(s.Port, by); ok {
		w.back = &givenBack{back, slices.Clone(s.Frame)}
	} else {
		end += ", and goes on if it comes back"
	}
	w.Ends = append(w.Ends, end)
}

// control is the TrafficControl that leads traffic past a port of its own; zero for
// policies of the application layer, which do too.
func (r teller) control() control.Key {
	for _, o := range r.origins("") {
		if o.Object.Kind == control.KindTrafficControl {
			return o.Object
		}
	}
	return control.Key{}
}

func controlText(k control.Key) string {
	if k == (control.Key{}) {
		return " to be inspected at the application layer"
	}
	return " for " + objectText(k)
}

// byGateway says who gets what the Node's own network carries on.
func (r teller) byGateway(w *WhyWay, s *dataplane.Step) {
	at := r.p.objects.PlaceOf(addrIn(&s.After, flow.IPDst, flow.IPv6Dst))
	if at.Object.Kind == control.KindPod && at.Node != r.self.Node && at.Node != "" {
		r.toNode(w, at.Node, s, "by the Nodes' own network")
		return
	}
	text := fmt.Sprintf("it leaves by %s to the network of Node %s", r.self.Gateway.Name, r.self.Node)
	for _, o := range r.origins("") {
		if o.Object.Kind == control.KindEgress {
			text += ", as " + objectText(o.Object) + " says"
			break
		}
	}
	w.Ends = append(w.Ends, text)
	w.Advice = fmt.Sprintf("if it fails all the same, the Node's kernel has it: on %s, ip route get %s and nft list ruleset", r.self.Node, at.Addrs[0])
	if at.Object.Kind == control.KindNode && at.Node == r.self.Node {
		w.Advice = r.listening()
	}
	if nobody := r.nobody(&at); nobody != "" {
		w.Ends, w.Advice = append(w.Ends, "but "+nobody), "antrail get pods has the addresses of those that are there"
	}
}

// nobody says that an address of the Node's pods is no Pod's; "" for any other.
func (r teller) nobody(at *control.Place) string {
	if at.Object != (control.Key{}) || !slices.ContainsFunc(r.self.PodCIDRs, func(c netip.Prefix) bool { return c.Contains(at.Addrs[0]) }) {
		return ""
	}
	return fmt.Sprintf("no Pod has %s, which is of Node %s's range", at.Addrs[0], r.self.Node)
}

// toNode notes that another Node has the rest of the way.
func (r teller) toNode(w *WhyWay, node string, s *dataplane.Step, how string) {
	end := fmt.Sprintf("it goes to Node %s %s", node, how)
	if a, silent := r.p.silentAt(s.Tunnel.Dst, node); silent {
		end += fmt.Sprintf(", but %s does not answer ARP or NDP, so that what goes there is lost", a)
		w.Advice = fmt.Sprintf("is Node %s up, and on the same network as %s? antrail check --live --node %s, ip neigh show %s", node, r.self.Node, r.self.Node, a)
	}
	w.Ends = append(w.Ends, end)
	w.Next = &Carried{To: node, Frame: slices.Clone(s.Frame), Tunnel: tunnelOf(&s.Tunnel)}
	if t := w.Next.Tunnel; t != nil && t.Src == "" {
		t.Src = r.tunnelSource(s.Tunnel.Dst)
	}
}

// tunnelSource is this Node's address of the family that the tunnel goes by.
func (r teller) tunnelSource(dst netip.Addr) string {
	for _, a := range r.self.Addresses {
		if a.Is4() == dst.Is4() {
			return a.String()
		}
	}
	return ""
}

// where is a rule's place: ingress rule DropOther, tier application, priority 5.
func (d *WhyDecision) where() string {
	s := "rule " + d.Rule
	if !strings.HasPrefix(d.Rule, d.Direction) {
		s = d.Direction + " " + s
	}
	if d.Tier != "" {
		s += fmt.Sprintf(", tier %s, priority %v", d.Tier, d.Priority)
	}
	return s
}

// text is a decision that lets the packet pass.
func (d *WhyDecision) text() string {
	switch d.Action {
	case control.ActionPass:
		return fmt.Sprintf("%s (%s) passes it, and nothing behind it decides", d.Policies[0], d.where())
	case "":
		return "no policy decides on " + d.Direction
	}
	return fmt.Sprintf("%s allows it (%s)", d.Policies[0], d.where())
}
