package workload

import (
	"bytes"
	"net/netip"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/tables/layout"
	"github.com/antrail/antrail/tables/uplink"
	"github.com/antrail/antrail/tables/vppl3"
	"github.com/antrail/antrail/tables/windows2020"
)

// ProgramLoad is a program beside Antrea's on a Node with the pods Sender and Receiver, and the packets for its
// measurement.
type ProgramLoad struct {
	Name    string
	Program *flow.Program
	Kinds   []*Packets
}

// endpoint is that of the Service in these programs.
var endpoint = netip.AddrPortFrom(testbed.Receiver().Address.V4, lowestEndpoint)

// podCIDR is the Node's range of pods in these programs.
var podCIDR = netip.MustParsePrefix("10.10.0.0/24")

// OtherPrograms are all programs beside Antrea's, and Antrea's where it has other tables.
func OtherPrograms() (all []ProgramLoad, err error) {
	for _, l := range []struct {
		program *layout.Program
		node    *layout.Node
	}{{uplink.Program, cardNode()}, {windows2020.Program, cardNode()}, {vppl3.Program, routedNode()}} {
		p, _, err := l.program.Flow(l.node)
		if err != nil {
			return nil, err
		}
		all = append(all, ProgramLoad{l.program.Name, p, kindsBetween(l.node)})
	}
	return append(all, externalLoad(), policyOnlyLoad()), nil
}

// programNode is a Node with both pods and a Service.
func programNode() *layout.Node {
	n := &layout.Node{
		NodeIP: netip.MustParseAddr("192.0.2.10"), PodCIDR: podCIDR, GatewayIP: gateway,
		Services: []layout.Service{{Proto: 17, Addr: netip.AddrPortFrom(plainIP, servicePort), Endpoint: endpoint}},
	}
	for _, p := range []lab.Pod{testbed.Sender(), testbed.Receiver()} {
		n.Pods = append(n.Pods, layout.NewPod(layout.Port{Name: p.Name, No: p.OFPort, MAC: p.MAC}, p.Address.V4))
	}
	return n
}

// cardNode is the Node of programs uplink and windows2020. Its pods send to each other by their own MAC addresses,
// and to all others by the gateway's.
func cardNode() *layout.Node {
	n := programNode()
	n.Uplink, n.Bridge = layout.Port{Name: "uplink", No: 3}, layout.Port{Name: "host0", No: 4}
	n.Gateway = layout.Port{Name: "antrea-gw0", No: 2, MAC: lab.TwoNodes().Nodes[0].GatewayMAC}
	for i := range n.Pods {
		n.Pods[i].Link = [6]byte{} // as it has no router between its pods
	}
	return n
}

// routedNode is the Node of program vppl3. A policy of the receiver lets UDP in, so each connection has
// a session.
func routedNode() *layout.Node {
	n := programNode()
	n.Policies = []layout.Policy{{Pod: testbed.Receiver().Address.V4, Ingress: &[]layout.Rule{{Proto: 17}}}}
	return n
}

// kindsBetween are packets between both pods, and to the Service.
func kindsBetween(n *layout.Node) []*Packets {
	kinds := []*Packets{KnownConnection(), NewConnections(), KnownToService(), NewToService()}
	kinds[2].Answers = [][]byte{testbed.UDPFrame(testbed.Receiver(), testbed.Sender(), endpoint.Port(), testbed.KnownSrc, 64)}
	for _, k := range kinds {
		k.Frame = toLink(k.Frame, n.Pods[0].Link)
		for i := range k.Answers {
			k.Answers[i] = toLink(k.Answers[i], n.Pods[1].Link)
		}
	}
	return kinds
}

// toLink sends a frame to the switch's end of a pod's link, if it has an address.
func toLink(frame []byte, link [6]byte) []byte {
	frame = bytes.Clone(frame)
	if link != [6]byte{} {
		copy(frame, link[:])
	}
	return frame
}
