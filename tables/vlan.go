package tables

import (
	"slices"

	"github.com/antrail/antrail/flow"
)

// VLAN takes the tag off what comes from the Node's card, and gives the tag of its Pod to what
// leaves by the card. It exists with FlexibleIPAM.
//
// A Pod's own frames have no tag. Inside the pipeline, VLANIDField says which VLAN a packet
// belongs to. So two Pods of one address in two VLANs are apart, in routing and in conntrack.
//
// Reads:  in_port, the tag, TargetOFPortField.
// Writes: the tag.
// Next:   Output, which is also the table-miss.

// vlanBits are those of vlan_tci that say whether there is a tag, and which VLAN it names.
const vlanBits = vlanPresent | 0xfff

// vlanIs asks for a tag of a VLAN; 0: for no tag.
func vlanIs(vlan uint16) term {
	if vlan == 0 {
		return func(m *flow.Match) { m.Add(flow.VlanTCI, flow.Value{}, flow.Value{Lo: vlanPresent}) }
	}
	return func(m *flow.Match) {
		m.Add(flow.VlanTCI, flow.Value{Lo: vlanPresent | uint64(vlan)}, flow.Value{Lo: vlanBits})
	}
}

// anyVLAN asks for a tag.
func anyVLAN(m *flow.Match) {
	m.Add(flow.VlanTCI, flow.Value{Lo: vlanPresent}, flow.Value{Lo: vlanPresent})
}

// untagCard takes the tag off what comes from the card.
func (p *Pipeline) untagCard() *flow.Entry {
	return p.entry(forPods, tableVLAN, priorityLow, match(inPort(p.c.Uplink.No), anyVLAN), flow.PopVLAN{}, p.goNext(tableVLAN))
}

// tagPod gives what a Pod sends by the card the tag of its VLAN.
func (p *Pipeline) tagPod(pod Pod) []*flow.Entry {
	if !p.OnUnderlay(pod) || pod.VLAN == 0 {
		return nil
	}
	return one(p.entry(forPods, tableVLAN, priorityLow, match(inPort(pod.Port.No), TargetOFPortField.Is(uint64(p.c.Uplink.No))),
		append(pushVLAN(pod.VLAN), p.goNext(tableVLAN))...))
}

// pushVLAN gives a frame a tag.
func pushVLAN(vlan uint16) []flow.Action {
	return []flow.Action{
		flow.PushVLAN{EtherType: etherTypeVLAN},
		flow.SetField{Field: flow.VlanVID, Value: flow.Value{Lo: uint64(vlan)}, Mask: flow.Ones(12)},
	}
}

// OnUnderlay says whether a Pod has addresses of the underlay (Antrea's flexible IPAM).
func (p *Pipeline) OnUnderlay(pod Pod) bool {
	if !hasFlexibleIPAM(p) {
		return false
	}
	for _, cidr := range p.c.PodCIDRs {
		if slices.ContainsFunc(pod.IPs, cidr.Contains) {
			return false
		}
	}
	return true
}

// zoneOf notes the zone of a family's connections, but for the VLAN. Without FlexibleIPAM there
// is nothing to note, because the zone is constant.
func (p *Pipeline) zoneOf(f Family) []flow.Action {
	if !hasFlexibleIPAM(p) {
		return nil
	}
	return set(pick(f, IPCtZoneTypeRegMark, IPv6CtZoneTypeRegMark))
}

// zoneIn is zoneOf with the VLAN.
func (p *Pipeline) zoneIn(f Family, vlan uint16) []flow.Action {
	if !hasFlexibleIPAM(p) {
		return nil
	}
	return append(p.zoneOf(f), VLANIDField.Set(uint64(vlan)))
}

// inZone is ct() in the zone of the packet's VLAN, if there is one.
func (p *Pipeline) inZone(ct *flow.CT) *flow.CT {
	if hasFlexibleIPAM(p) {
		ct.Zone, ct.ZoneSrc = 0, &CtZoneField.Subfield
	}
	return ct
}

// inVLAN asks for a packet of a VLAN, or of none, with FlexibleIPAM.
func (p *Pipeline) inVLAN(vlan uint16) term {
	if hasFlexibleIPAM(p) {
		return VLANIDField.Is(uint64(vlan))
	}
	return func(*flow.Match) {}
}
