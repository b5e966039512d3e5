package tables

import (
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// What a packet-in of this pipeline means, by its userdata, its registers and the names of
// tables, and how answers get back to who is refused. Nobody else knows: the switch asks
// here what to answer by itself, and the agent what to note and to log. Names of tables
// and userdata together are a contract with the switch (docs/decisions/057). A controller
// that answers by itself gives its tables other names.

// Verdict is what a policy table has decided on a packet-in.
type Verdict struct {
	Log, Reject bool // what the packet-in is for
	Table       string
	Direction   Direction
	Action      Action // as logged; without Log, Reject
	// Rule is the conjunction id of the rule, 0 when none allowed the packet and
	// K8s policies isolate the Pod.
	Rule uint32
}

// ReadVerdict reads a packet-in: its userdata, and its registers in the key.
// names are those of the switch's tables. It is false for a packet-in that no
// policy table made.
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

// NoEndpoint says whether a packet-in of an entry in a table, which it names, is one for
// a Service without endpoints.
func NoEndpoint(userdata []byte, k *flow.Key, table string) bool {
	return noEndpoint(userdata, table) && isOn(SvcNoEpRegMark, k)
}

func noEndpoint(userdata []byte, table string) bool {
	return len(userdata) > 0 && userdata[0] == PacketInSvcReject && table == declared[tableEndpointDNAT].name
}

// AnswerOnly says whether an entry of a table, which it names, asks with its userdata for
// an answer and for nothing else. Then the switch needs no controller. A packet that is to
// be logged or recorded too does.
func AnswerOnly(userdata []byte, table string) bool {
	return noEndpoint(userdata, table) || table == declared[tableOutput].name && string(userdata) == string([]byte{PacketInNetworkPolicy, PacketInReject})
}

// Answer is how the switch sends an answer to a packet that was refused: the
// actions of a packet-out, and the port that it comes in by. The answer has the
// refused packet's addresses, Ethernet's too, the other way round; k is the
// packet-in's key.
//
// An answer goes straight back to the port that the packet came from, where
// nothing asks for its connection: that was not committed, so conntrack would
// call the answer invalid. Behind the tunnel, the client's Node knows it.
//
// A Service's connection was committed when its endpoint was chosen, and the
// client waits for an answer from the Service. So that answer walks the way of
// a reply, from the first table that conntrack is asked in: it gets its
// addresses back there, passes policies as one of an established or related
// connection does, and is routed. So does the answer to what an engine of
// TrafficControl gave back, whose port is not the client's.
//
// An external Node has two ports and no marks of where a packet came from: all answers go back
// to the port.
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
	actions = []flow.Action{generated, layout.SetMAC(flow.EthDst, GlobalVirtualMAC), copied(flow.EthSrc, flow.EthSrc, k)}
	if !flow.FieldByID(flow.TunSrc).Get(k).IsZero() {
		actions = append(actions, copied(flow.TunSrc, flow.TunDst, k))
	} else {
		actions = append(actions, copied(flow.TunIPv6Src, flow.TunIPv6Dst, k))
	}
	return inPort, append(actions, flow.OutputInPort{})
}

// answerAtOnce are the marks of packets whose answer goes back to their port, but for the
// tunnel's.
var answerAtOnce = []Mark{FromPodRegMark, FromGatewayRegMark, FromUplinkRegMark, FromBridgeRegMark}

// sameVLAN gives an answer the tag that the packet has.
func sameVLAN(k *flow.Key) []flow.Action {
	if flow.FieldByID(flow.VlanTCI).Get(k).Lo&vlanPresent == 0 {
		return nil
	}
	return pushVLAN(uint16(flow.FieldByID(flow.VlanVID).Get(k).Lo))
}

// Report is how the switch sends an ICMP error about a packet that the pipeline
// had let pass, back to its sender: the actions of a packet-out, and the port
// that it comes in by. Conntrack knows the connection, so the error takes the way
// of a reply. The packet had its MAC addresses rewritten; so the error has them
// rewritten too, wherever it goes. It is false for a pipeline without conntrack.
func Report(names *flow.Names) (from uint32, actions []flow.Action, ok bool) {
	t, ok := replyTable(names)
	if !ok {
		return 0, nil, false
	}
	return flow.PortController, []flow.Action{GeneratedRejectPacketOutRegMark.Set(), RewriteMACRegMark.Set(), resubmit(t)}, true
}

// replyTable is the first table that a reply is tracked in.
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

// copied writes into a field what another has in a key.
func copied(src, dst flow.FieldID, k *flow.Key) flow.Action {
	f := flow.FieldByID(src)
	return flow.SetField{Field: dst, Value: f.Get(k), Mask: flow.Ones(f.Bits)}
}

// valueIn is a field's value in a packet's key.
func valueIn(f Field, k *flow.Key) uint64 { return f.Get(k).Lo }

// isOn says whether a packet has a mark.
func isOn(m Mark, k *flow.Key) bool { return valueIn(m.Field, k) == m.Value }
