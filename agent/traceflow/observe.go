package traceflow

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// Components of observations, as Antrea names them.
const (
	spoofGuard    = "SpoofGuard"
	loadBalancer  = "LB"
	networkPolicy = "NetworkPolicy"
	forwarding    = "Forwarding"
	egressPart    = "Egress"
)

// seen is what a walk shows, in the packet's order.
type seen struct {
	*Runner
	walk *telemetry.Trace
	last *flow.Key // the packet's key at its end
	self control.Self
	all  []cluster.Observation
	note string
	// further says that the packet went to an inspection port, and may come back.
	further bool
}

// observe reads a walk. sender says that the packet's way begins here. back says that the
// packet comes back from inspection.
func (r *Runner) observe(t *telemetry.Trace, sender, back bool) *seen {
	s := &seen{Runner: r, walk: t, last: &t.Start}
	s.self, _ = r.Objects.Self() // a packet came, so the pipeline is there
	if n := len(t.Steps); n > 0 {
		s.last = &t.Steps[n-1].After
	}
	if s.begin(sender, back) {
		s.translated()
		s.allowed(tables.TFEgressConjIDField, "EgressRule")
		s.allowed(tables.TFIngressConjIDField, "IngressRule")
		if !s.denied() && !s.output() {
			s.dropped()
		}
	}
	return s
}

func (s *seen) add(o cluster.Observation) { s.all = append(s.all, o) }

// begin records where the packet entered. It returns false if the packet was dropped there.
func (s *seen) begin(sender, back bool) bool {
	if back {
		return true
	}
	if !sender {
		s.add(cluster.Observation{Component: forwarding, Action: cluster.ActionReceived})
		return true
	}
	table := s.walk.Names.Table(s.walk.Verdict.Table)
	if s.walk.Verdict.Reason != telemetry.NotDropped && table == spoofGuard {
		s.add(cluster.Observation{Component: spoofGuard, Action: cluster.ActionDropped})
		return false
	}
	s.add(cluster.Observation{Component: spoofGuard, Action: cluster.ActionForwarded})
	return true
}

func ends(k *flow.Key) (src, dst netip.Addr) {
	return flow.AddrIn(k, flow.IPSrc, flow.IPv6Src), flow.AddrIn(k, flow.IPDst, flow.IPv6Dst)
}

// translated records the choice of a Service's endpoint.
func (s *seen) translated() {
	src, dst := ends(&s.walk.Start)
	toSrc, toDst := ends(s.last)
	if src == toSrc && dst == toDst {
		return
	}
	o := cluster.Observation{Component: loadBalancer, Action: cluster.ActionForwarded, TranslatedDstIP: toDst.String()}
	if src != toSrc {
		o.TranslatedSrcIP = toSrc.String()
	}
	if k := s.Objects.PlaceOf(toDst).Object; k.Kind == cluster.KindPod {
		o.Pod = k.Namespace + "/" + k.Name
	}
	s.add(o)
}

// allowed records the rule that let the packet through. The field f has its number.
func (s *seen) allowed(f tables.Field, table string) {
	id := uint32(f.Get(s.last).Lo)
	if id == 0 {
		return
	}
	o := cluster.Observation{Component: networkPolicy, ComponentInfo: table, Action: cluster.ActionForwarded}
	s.name(&o, id)
	s.add(o)
}

// name adds a rule's policy and name, and says whether the rule rejects.
func (s *seen) name(o *cluster.Observation, id uint32) (rejects bool) {
	rule := s.Objects.RuleByID(id)
	if rule == nil {
		return false
	}
	o.NetworkPolicy, o.NetworkPolicyRule = policyName(rule.Key.Policy), rule.Name
	return rule.Rule.Action == tables.Reject
}

// policyName is a policy as Antrea writes it in a status.
func policyName(k cluster.Key) string {
	switch k.Kind {
	case cluster.KindClusterNetworkPolicy:
		return "AntreaClusterNetworkPolicy:" + k.Name
	case cluster.KindAntreaNetworkPolicy:
		return fmt.Sprintf("AntreaNetworkPolicy:%s/%s", k.Namespace, k.Name)
	}
	return fmt.Sprintf("K8sNetworkPolicy:%s/%s", k.Namespace, k.Name)
}

// denied records the rule that denied the packet, or the isolation of a Pod; false if there was
// none.
func (s *seen) denied() bool {
	for i := range s.walk.Steps {
		st := &s.walk.Steps[i]
		if st.Kind != telemetry.StepEntry || st.Entry == nil {
			continue
		}
		o := cluster.Observation{Component: networkPolicy, ComponentInfo: s.walk.Names.Table(st.Table), Action: cluster.ActionDropped}
		switch {
		case strings.HasSuffix(o.ComponentInfo, "Metric") && tables.APDenyRegMark.Field.Get(&st.After).Lo == tables.APDenyRegMark.Value:
			if s.name(&o, uint32(tables.APConjIDField.Get(&st.After).Lo)) {
				o.Action = cluster.ActionRejected
			}
		case strings.HasSuffix(o.ComponentInfo, "DefaultRule") && s.isolates(&o, st.Entry):
		default:
			continue
		}
		s.add(o)
		return true
	}
	return false
}

// isolates says whether an entry drops what no policy of a Pod allows. It adds the policy's
// name if the Pod has only one.
func (s *seen) isolates(o *cluster.Observation, e *flow.Entry) bool {
	is := false
	var policies []cluster.Key
	for _, origin := range s.Objects.OriginsOf(e) {
		_, isolation := control.Isolates(origin)
		is = is || isolation
		if origin.Object.Kind == cluster.KindNetworkPolicy {
			policies = append(policies, origin.Object)
		}
	}
	if is && len(policies) == 1 {
		o.NetworkPolicy = policyName(policies[0])
	}
	return is
}

// output records where the packet went, or would go if it were no Traceflow's; false if it was
// dropped.
func (s *seen) output() bool {
	at := s.leaving()
	if at == nil {
		return false
	}
	if table := s.walk.Names.Table(at.Table); table == "EndpointDNAT" {
		s.add(cluster.Observation{Component: loadBalancer, ComponentInfo: table, Action: cluster.ActionDropped})
		s.note = "the Service has no endpoint"
		return true
	}
	k := &at.After
	if redirected(at, k) {
		s.further, s.note = true, fmt.Sprintf("the packet went to port %s of node %s, and did not come back", s.walk.Names.Port(at.Port), s.Node)
		s.add(cluster.Observation{Component: forwarding, ComponentInfo: "TrafficControl", Action: cluster.ActionForwarded})
		return true
	}
	port := uint32(tables.TargetOFPortField.Get(k).Lo)
	_, dst := ends(k)
	o := cluster.Observation{Component: forwarding, ComponentInfo: "Output", Action: cluster.ActionDelivered}
	switch {
	case tables.HairpinCTMark.Field.Get(k).Lo == tables.HairpinCTMark.Value:
	case port == s.self.Tunnel.No && port != 0:
		far := flow.FieldByID(flow.TunDst).Get(k).Addr(32)
		if v := flow.FieldByID(flow.TunIPv6Dst).Get(k); !v.IsZero() {
			far = v.Addr(128)
		}
		if tables.RemoteSNATRegMark.Field.Get(k).Lo == tables.RemoteSNATRegMark.Value {
			s.egress(cluster.ActionForwardedToEgressNode)
		}
		o.Action, o.TunnelDstIP = cluster.ActionForwarded, far.String()
		s.tellNode(far)
	case port != s.self.Gateway.No || slices.Contains(s.self.GatewayAddresses, dst):
	default:
		if tables.EgressMarkField.Get(k).Lo != 0 {
			s.egress(cluster.ActionMarkedForSNAT)
		}
		o.Action = cluster.ActionForwardedOutOfOverlay
		if place := s.Objects.PlaceOf(dst); place.Object.Kind == cluster.KindPod && place.Node != s.Node {
			o.Action = cluster.ActionForwarded
		}
	}
	s.add(o)
	return true
}

// redirected says whether a packet leaves to be inspected, by another port than
// L2ForwardingCalc found.
func redirected(at *telemetry.Step, k *flow.Key) bool {
	return at.Kind == telemetry.StepOutput && at.Port != uint32(tables.TargetOFPortField.Get(k).Lo) &&
		tables.HairpinCTMark.Field.Get(k).Lo != tables.HairpinCTMark.Value
}

// tellNode adds a note on the Node that knows more, if Nodes share no status.
func (s *seen) tellNode(far netip.Addr) {
	if node := s.Objects.NodeAt(far); node != "" && s.API == nil {
		s.note = "the packet went on to Node " + node + ", whose agent knows the rest"
	}
}

// leaving is the step at which the packet leaves the pipeline; nil if it does not.
func (s *seen) leaving() *telemetry.Step {
	for i := range s.walk.Steps {
		st := &s.walk.Steps[i]
		if st.Kind == telemetry.StepOutput && !st.Dropped || st.Kind == telemetry.StepPacketIn {
			return st
		}
	}
	return nil
}

// egress records the Egress of the packet.
func (s *seen) egress(action cluster.ObservationAction) {
	o := cluster.Observation{Component: egressPart, Action: action}
	for i := range s.walk.Steps {
		st := &s.walk.Steps[i]
		if st.Kind != telemetry.StepEntry || st.Entry == nil || s.walk.Names.Table(st.Table) != "EgressMark" {
			continue
		}
		for _, origin := range s.Objects.OriginsOf(st.Entry) {
			if e, is := s.Objects.Object(origin.Object).(*cluster.Egress); is {
				o.Egress, o.EgressIP, o.EgressNode = e.Key.Name, e.Addr.String(), e.Node
			}
		}
	}
	s.add(o)
}

// dropped records a drop without a policy.
func (s *seen) dropped() {
	v := &s.walk.Verdict
	if v.Reason == telemetry.NotDropped {
		return
	}
	o := cluster.Observation{Component: forwarding, Action: cluster.ActionDropped}
	if v.Reason.InTable() {
		o.ComponentInfo = s.walk.Names.Table(v.Table)
	}
	s.add(o)
	s.note = fmt.Sprintf("Node %s dropped the packet: %s", s.Node, v.Reason.Sentence())
}
