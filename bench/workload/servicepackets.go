package workload

import (
	"net/netip"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/lab"
)

// toService is a frame from the sender to a ClusterIP. Its destination is the gateway's MAC address, as
// in a pod's routes.
func toService(ip netip.Addr) []byte {
	return testbed.UDPFrame(testbed.Sender(), behindGateway(ip), testbed.KnownSrc, servicePort, 64)
}

// behindGateway is a peer with an IP address and the gateway's MAC address.
func behindGateway(ip netip.Addr) (to lab.Pod) {
	to.MAC, to.Address.V4 = lab.TwoNodes().Nodes[0].GatewayMAC, ip
	return to
}

// KnownToService is packets of one connection to the Service without affinity.
func KnownToService() *Packets {
	p := &Packets{Name: "known connection to a ClusterIP" + alone, Frame: toService(plainIP), Connections: 1}
	for _, e := range endpointsAt(testbed.Receiver().Address.V4, 0) {
		p.Answers = append(p.Answers, testbed.UDPFrame(testbed.Receiver(), testbed.Sender(), e.Addr.Port(), testbed.KnownSrc, 64))
	}
	return p
}

// NewToService is packets that each begin a connection to the Service without affinity.
func NewToService() *Packets {
	return &Packets{Name: "first packet to a ClusterIP" + alone, Frame: toService(plainIP), Change: testbed.ChangeSource}
}

// NewToAffinityService is packets that each begin a connection to the Service with session affinity.
func NewToAffinityService() *Packets {
	return &Packets{Name: "first packet to a ClusterIP with affinity" + alone, Frame: toService(affinityIP), Change: testbed.ChangeSource}
}

// hairpinFrame is a frame from the receiver to the Service without affinity, whose endpoints are all in
// the receiver. It is translated twice, in the zone of all connections and in that of SNAT, so that
// the answer comes back to the switch.
func hairpinFrame() []byte {
	return testbed.UDPFrame(testbed.Receiver(), behindGateway(plainIP), testbed.KnownSrc, servicePort, 64)
}

// KnownHairpin is packets of one hairpin connection. The endpoint answers to the gateway's address.
func KnownHairpin() *Packets {
	p := &Packets{Name: "known hairpin connection" + alone, Frame: hairpinFrame(), Connections: 1, Hairpin: true}
	for _, e := range endpointsAt(testbed.Receiver().Address.V4, 0) {
		p.Answers = append(p.Answers, testbed.UDPFrame(testbed.Receiver(), behindGateway(gateway), e.Addr.Port(), testbed.KnownSrc, 64))
	}
	return p
}

// NewHairpins is packets that each begin a hairpin connection.
func NewHairpins() *Packets {
	return &Packets{Name: "first packet of a hairpin connection" + alone, Frame: hairpinFrame(), Change: testbed.ChangeSource, Hairpin: true}
}
