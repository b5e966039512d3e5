package tables

import (
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// The meaning of a packet-in of this pipeline, by its userdata, its registers and the names of
// tables, and the way back for answers. Only this file knows it. The switch finds here which
// answers it sends by itself, and the agent what to log. Names of tables and userdata together
// are a contract with the switch (docs/decisions/057). A controller that answers by itself gives
// its tables other names.

// Verdict is the decision of a policy table on a packet-in.
type Verdict struct {
	Log, Reject bool // the packet-in's purpose
	Table       string
	Direction   Direction
	Action      Action // as logged; without Log, Reject
	// Rule is the conjunction id of the rule, or 0 if no rule allowed the packet and K8s policies
	// isolate the Pod.
	Rule uint32
}

// ReadVerdict reads a packet-in: its userdata, and its registers in the key. names are those of
// the switch's tables. It is false if no policy table made the packet-in.
func ReadVerdict(userdata []byte, k *flow.Key, names *flow.Names) (v Verdict, ok bool) {
	if len(userdata) < 2 || userdata[0] != PacketInNetworkPolicy {
		return v, false
	}
	v.Table = names.Table(uint8(valueIn(PacketInTableField, k)))
	s, ok := v.side()
	if !ok {
		return v, false
	}
	v.Log, v.Reject = userdata[1]&PacketInLogging != 0, userdata[1]&PacketInReject != 0
	v.Action = dispositions[valueIn(APDispositionField, k)]
	if !v.Log {
		v.Action = Reject
	}
	switch {
	case isOn(APDenyRegMark, k):
		v.Rule = uint32(valueIn(APConjIDField, k))
	case v.Action == Allow || v.Action == Pass:
		v.Rule = uint32(valueIn(s.conjID, k))
	}
	return v, true
}

// side finds the verdict's direction by its table.
func (v *Verdict) side() (*side, bool) {
	for d := range sides {
		s := &sides[d]
		for _, t := range []table{s.antrea, s.k8s, s.fallback} {
			if declared[t].name == v.Table {
				v.Direction = Direction(d)
				return s, true
			}
		}
	}
	return nil, false
}

// dispositions are the actions by APDispositionField.
var dispositions = [...]Action{Allow, Drop, Reject, Pass}

// NoEndpoint reports whether a packet-in is about a Service without endpoints. table is the name
// of the table that made it.
func NoEndpoint(userdata []byte, k *flow.Key, table string) bool {
	return noEndpoint(userdata, table) && isOn(SvcNoEpRegMark, k)
}

func noEndpoint(userdata []byte, table string) bool {
	return len(userdata) > 0 && userdata[0] == PacketInSvcReject && table == declared[tableEndpointDNAT].name
}

// AnswerOnly reports whether an entry with this userdata needs an answer and nothing more. Then
// the switch needs no controller. Packets to log or record need one. table is the entry's table.
func AnswerOnly(userdata []byte, table string) bool {
	return noEndpoint(userdata, table) || table == declared[tableOutput].name && string(userdata) == string([]byte{PacketInNetworkPolicy, PacketInReject})
}

// Answer is the packet-out that answers a refused packet: its actions, and its input port. The
// answer has the refused packet's addresses in reverse, the Ethernet ones too. k is the
// packet-in's key.
//
// An answer goes straight back to the packet's port. It does not pass conntrack, which would call
// it invalid, because the connection was not committed. Behind the tunnel, the client's Node
// knows the connection.
//
// The connection of a Service was committed when its endpoint was chosen, and the client expects
// an answer from the Service's address. So that answer walks the tables as a reply, from the
// first one that tracks. There it gets its addresses back. Then it passes policies as part of an
// established or related connection, and is routed. The answer to a packet from an engine of
// TrafficControl does the same, because its port is not the client's.
//
// An external Node has two ports and no source marks, so all answers go back to the port.
func Answer(k *flow.Key, inPort uint32, names *flow.Names) (from uint32, actions []flow.Action) {
	generated := GeneratedRejectPacketOutRegMark.Set()
	fromTunnel := isOn(FromTunnelRegMark, k)
	_, external := names.TableID(declared[tableNonIP].name)
	direct := fromTunnel || external || slices.ContainsFunc(answerAtOnce, func(m Mark) bool { return isOn(m, k) })
	if t, ok := replyTable(names); ok && (!direct || isOn(ServiceCTMark, k)) {
		actions = append(actions, generated)
		if zone := valueIn(CtZoneField, k); zone != 0 { // with FlexibleIPAM
			actions = append(actions, CtZoneField.Set(zone))
		}
		return flow.PortController, append(actions, resubmit(t))
	}
	if !fromTunnel {
		return inPort, append(sameVLAN(k), generated, flow.OutputInPort{})
	}
	actions = []flow.Action{generated, layout.SetMAC(flow.EthDst, GlobalVirtualMAC), setFromKey(flow.EthSrc, flow.EthSrc, k)}
	if !flow.FieldByID(flow.TunSrc).Get(k).IsZero() {
		actions = append(actions, setFromKey(flow.TunSrc, flow.TunDst, k))
	} else {
		actions = append(actions, setFromKey(flow.TunIPv6Src, flow.TunIPv6Dst, k))
	}
	return inPort, append(actions, flow.OutputInPort{})
}

// answerAtOnce are the marks of packets whose answer goes back to their port. The tunnel's is
// apart.
var answerAtOnce = []Mark{FromPodRegMark, FromGatewayRegMark, FromUplinkRegMark, FromBridgeRegMark}

// sameVLAN gives an answer the packet's tag.
func sameVLAN(k *flow.Key) []flow.Action {
	if flow.FieldByID(flow.VlanTCI).Get(k).Lo&vlanPresent == 0 {
		return nil
	}
	return pushVLAN(uint16(flow.FieldByID(flow.VlanVID).Get(k).Lo))
}

// Report is the packet-out that returns an ICMP error about a packet that the pipeline let pass:
// its actions, and its input port. Conntrack knows the connection, so the error walks as a reply.
// The packet had its MAC addresses rewritten, so the error gets new ones too. It is false for a
// pipeline without conntrack.
func Report(names *flow.Names) (from uint32, actions []flow.Action, ok bool) {
	t, ok := replyTable(names)
	if !ok {
		return 0, nil, false
	}
	return flow.PortController, []flow.Action{GeneratedRejectPacketOutRegMark.Set(), RewriteMACRegMark.Set(), resubmit(t)}, true
}

// replyTable is the first table that tracks a reply.
func replyTable(names *flow.Names) (uint8, bool) {
	for t := range declared {
		if declared[t].stage != stageConntrackState {
			continue
		}
		if number, ok := names.TableID(declared[t].name); ok {
			return number, true
		}
	}
	return 0, false
}

// setFromKey sets a field to the value of another in a key.
func setFromKey(src, dst flow.FieldID, k *flow.Key) flow.Action {
	f := flow.FieldByID(src)
	return flow.SetField{Field: dst, Value: f.Get(k), Mask: flow.Ones(f.Bits)}
}

// valueIn is a field's value in a packet's key.
func valueIn(f Field, k *flow.Key) uint64 { return f.Get(k).Lo }

// isOn reports whether a packet has a mark.
func isOn(m Mark, k *flow.Key) bool { return valueIn(m.Field, k) == m.Value }
