package tables

import (
	"slices"

	"github.com/antrail/antrail/flow"
)

// VLAN removes the tag of packets from the Node's card, and adds the Pod's tag to packets that
// leave by the card. It exists with FlexibleIPAM.
//
// A Pod's own frames have no tag. Inside the pipeline, VLANIDField holds the packet's VLAN. So
// routing and conntrack keep two Pods with one address in two VLANs apart.
//
// Reads:  in_port, the tag, TargetOFPortField.
// Writes: the tag.
// Next:   Output, which is also the table-miss.

// vlanBits are the bits of vlan_tci for the presence of a tag and for its VLAN.
const vlanBits = vlanPresent | 0xfff

// vlanIs matches a tag of a VLAN, or with 0 no tag.
func vlanIs(vlan uint16) term {
	if vlan == 0 {
		return func(m *flow.Match) { m.Add(flow.VlanTCI, flow.Value{}, flow.Value{Lo: vlanPresent}) }
	}
	return func(m *flow.Match) {
		m.Add(flow.VlanTCI, flow.Value{Lo: vlanPresent | uint64(vlan)}, flow.Value{Lo: vlanBits})
	}
}

// anyVLAN matches any tag.
func anyVLAN(m *flow.Match) {
	m.Add(flow.VlanTCI, flow.Value{Lo: vlanPresent}, flow.Value{Lo: vlanPresent})
}

// untagCard removes the tag of packets from the card.
func (p *Pipeline) untagCard() *flow.Entry {
	return p.entry(forPods, tableVLAN, priorityLow, match(inPort(p.c.Uplink.No), anyVLAN), flow.PopVLAN{}, p.goNext(tableVLAN))
}

// tagPod adds the tag of a Pod's VLAN to packets that it sends by the card.
func (p *Pipeline) tagPod(pod Pod) []*flow.Entry {
	if !p.OnUnderlay(pod) || pod.VLAN == 0 {
		return nil
	}
	return one(p.entry(forPods, tableVLAN, priorityLow, match(inPort(pod.Port.No), TargetOFPortField.Is(uint64(p.c.Uplink.No))),
		append(pushVLAN(pod.VLAN), p.goNext(tableVLAN))...))
}

// pushVLAN adds a tag.
func pushVLAN(vlan uint16) []flow.Action {
	return []flow.Action{
		flow.PushVLAN{EtherType: etherTypeVLAN},
		flow.SetField{Field: flow.VlanVID, Value: flow.Value{Lo: uint64(vlan)}, Mask: flow.Ones(12)},
	}
}

// OnUnderlay reports whether a Pod has addresses of the underlay (Antrea's flexible IPAM).
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

// zoneOf writes the zone of a family's connections, without the VLAN. Without FlexibleIPAM it
// writes nothing, because the zone is constant.
func (p *Pipeline) zoneOf(f Family) []flow.Action {
	if !hasFlexibleIPAM(p) {
		return nil
	}
	return setMarks(pick(f, IPCtZoneTypeRegMark, IPv6CtZoneTypeRegMark))
}

// zoneIn is zoneOf with the VLAN.
func (p *Pipeline) zoneIn(f Family, vlan uint16) []flow.Action {
	if !hasFlexibleIPAM(p) {
		return nil
	}
	return append(p.zoneOf(f), VLANIDField.Set(uint64(vlan)))
}

// inZone puts ct() into the zone of the packet's VLAN, with FlexibleIPAM.
func (p *Pipeline) inZone(ct *flow.CT) *flow.CT {
	if hasFlexibleIPAM(p) {
		ct.Zone, ct.ZoneSrc = 0, &CtZoneField.Subfield
	}
	return ct
}

// inVLAN matches packets of a VLAN (0: of none), with FlexibleIPAM.
func (p *Pipeline) inVLAN(vlan uint16) term {
	if hasFlexibleIPAM(p) {
		return VLANIDField.Is(uint64(vlan))
	}
	return func(*flow.Match) {}
}
