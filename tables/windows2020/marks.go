package windows2020

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// Registers. The document numbers bits from 0: its "17th bit" is bit 17.
var (
	pktSourceField     = layout.Reg(0, "PktSourceField", 0, 15)
	portFoundField     = layout.Reg(0, "PortFoundField", 16, 16)
	podToExternalField = layout.Reg(0, "PodToExternalField", 17, 17)
	targetOFPortField  = layout.Reg(1, "TargetOFPortField", 0, 31)
	connMarkField      = layout.Field{Name: "ConnMarkField", Subfield: layout.Range(flow.CTMark, 0, 31)}
)

// The sources and the properties of a packet. The document has no value for the bridge.
var (
	fromTunnelMark    = pktSourceField.Mark("FromTunnel", 0)
	fromGatewayMark   = pktSourceField.Mark("FromGateway", 1)
	fromPodMark       = pktSourceField.Mark("FromLocalPod", 2)
	fromUplinkMark    = pktSourceField.Mark("FromUplink", 3)
	fromBridgeMark    = pktSourceField.Mark("FromBridge", 5)
	portFoundMark     = portFoundField.Mark("PortFound", 1)
	podToExternalMark = podToExternalField.Mark("PodToExternal", 1)
)

// The marks of connections. serviceMark is for connections by the gateway, by which kube-proxy
// sends on those of Services. clusterIPMark is not in the document.
var (
	serviceMark   = connMarkField.Mark("Service", 0x20)
	clusterIPMark = connMarkField.Mark("ClusterIP", 0x21)
	snatMark      = connMarkField.Mark("SNATed", 0x40)
)

// ctZone is the zone of all connections.
const ctZone = 65520

// The ports that SNAT may choose.
const (
	firstSNATPort = 10000
	lastSNATPort  = 20000
)

// virtualMAC is the Global Virtual MAC: packets to it are routed.
var virtualMAC = [6]byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}

var marks = layout.NewMarks(layout.Marks{
	Fields: []layout.Field{pktSourceField, portFoundField, podToExternalField, targetOFPortField, connMarkField},
	Marks: []layout.Mark{
		fromTunnelMark, fromGatewayMark, fromPodMark, fromUplinkMark, fromBridgeMark, portFoundMark, podToExternalMark,
		serviceMark, clusterIPMark, snatMark,
	},
	Value: layout.PortText(targetOFPortField),
})
