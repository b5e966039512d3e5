package tables

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// Program is Antrea's. Its entries come from a cluster's objects (package control). Its table
// numbers depend on the features that are on.
var Program = &layout.Program{
	Name:     "antrea",
	Sentence: "Antrea's pipeline, from the objects of a cluster",
	Tables:   layoutTables(),
	Marks:    layout.NewMarks(layout.Marks{Fields: Fields(), Marks: Marks(), Second: speaking, Value: valueText}),
}

func layoutTables() (all []layout.Table) {
	for _, d := range declared {
		all = append(all, layout.Table{Name: d.name, Stage: stageNames[d.stage]})
	}
	return all
}

// speaking are the tables where the second field of a union applies; in all others the first one
// does. reg3 holds an endpoint, except where policies decide. reg2 is for the agent, except where
// ARP is answered.
var speaking = map[string][]string{
	APConjIDField.Name: {"AntreaPolicyEgressRule", "EgressMetric", "AntreaPolicyIngressRule", "IngressMetric"},
	SwapField.Name:     {"ARPResponder"},
}

// valueText writes a value in another form than a number: a port, a table, an address, a mark.
func valueText(n layout.NamedBits, names *flow.Names) string {
	v := n.Value
	switch n.Name {
	case TargetOFPortField.Name, TrafficControlTargetOFPortField.Name:
		return names.Port(uint32(v.Lo))
	case PacketInTableField.Name:
		return names.Table(uint8(v.Lo))
	case ConnSourceCTMarkField.Name: // a copy of PktSourceField
		return markName(PktSourceField, v)
	case EndpointIPField.Name:
		return netip.AddrFrom4([4]byte{byte(v.Lo >> 24), byte(v.Lo >> 16), byte(v.Lo >> 8), byte(v.Lo)}).String()
	case EpUnionField.Name:
		state := v.Shr(16)
		name := cmp.Or(markName(ServiceEPStateField, state), fmt.Sprintf("%s=%d", ServiceEPStateField.Name, state.Lo))
		return fmt.Sprintf("%s:%d", name, v.Lo&0xffff)
	case EndpointIP6Field.Name:
		k := flow.Key{}
		flow.FieldByID(flow.IPv6Src).Put(&k, v, flow.Ones(128))
		return flow.FieldText(flow.IPv6Src, &k, nil)[len("ipv6_src="):]
	}
	return ""
}

// markName is the name of a field's value, "" if it has none.
func markName(f Field, v flow.Value) string {
	for _, k := range Marks() {
		if k.Field.Name == f.Name && v == (flow.Value{Lo: k.Value}) {
			return k.Name
		}
	}
	return ""
}
