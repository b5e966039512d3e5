package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// Registers, with their bits and names in Antrea v1.15. PodToExternal is not in v1.15, which
// leaves bit 17 free.
var (
	pktSourceField     = layout.Reg(0, "PktSourceField", 0, 3)
	rewriteMACField    = layout.Reg(0, "RewriteMACField", 9, 9)
	podToExternalField = layout.Reg(0, "PodToExternalField", 17, 17)
	outputRegField     = layout.Reg(0, "OutputRegField", 21, 22)
	targetOFPortField  = layout.Reg(1, "TargetOFPortField", 0, 31)
)

// Bits of ct_mark. Bit 8 is free in v1.15. The document's 0x40 means hairpin in v1.15, which
// returns a packet to its input port.
var (
	serviceCTField = layout.Field{Name: "ServiceCTMarkField", Subfield: layout.Range(flow.CTMark, 4, 4)}
	snatCTField    = layout.Field{Name: "SNATCTMarkField", Subfield: layout.Range(flow.CTMark, 8, 8)}
)

// The sources and the properties of a packet, as values of its marks.
var (
	fromTunnelRegMark     = pktSourceField.Mark("FromTunnelRegMark", 1)
	fromGatewayRegMark    = pktSourceField.Mark("FromGatewayRegMark", 2)
	fromPodRegMark        = pktSourceField.Mark("FromPodRegMark", 3)
	fromUplinkRegMark     = pktSourceField.Mark("FromUplinkRegMark", 4)
	fromBridgeRegMark     = pktSourceField.Mark("FromBridgeRegMark", 5)
	notRewriteMACRegMark  = rewriteMACField.Mark("NotRewriteMACRegMark", 0)
	rewriteMACRegMark     = rewriteMACField.Mark("RewriteMACRegMark", 1)
	podToExternalRegMark  = podToExternalField.Mark("PodToExternalRegMark", 1)
	outputToOFPortRegMark = outputRegField.Mark("OutputToOFPortRegMark", 1)
)

// The marks of connections.
var (
	notServiceCTMark = serviceCTField.Mark("NotServiceCTMark", 0)
	serviceCTMark    = serviceCTField.Mark("ServiceCTMark", 1)
	snatCTMark       = snatCTField.Mark("SNATCTMark", 1)
)

// ctZone is the zone of all connections (CtZone of v1.15).
const ctZone = 65520

// SNAT chooses from these ports (row W-14). Linux does not give them to the host's own sockets:
// its range begins at 32768, and NodePorts at 30000.
const (
	FirstSNATPort = 10000
	LastSNATPort  = 20000
)

// virtualMAC is the Global Virtual MAC, the destination of packets that another Node routes.
var virtualMAC = [6]byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}

var marks = layout.NewMarks(layout.Marks{
	Fields: []layout.Field{
		pktSourceField, rewriteMACField, podToExternalField, outputRegField, targetOFPortField, serviceCTField, snatCTField,
	},
	Marks: []layout.Mark{
		fromTunnelRegMark, fromGatewayRegMark, fromPodRegMark, fromUplinkRegMark, fromBridgeRegMark,
		notRewriteMACRegMark, rewriteMACRegMark, podToExternalRegMark, outputToOFPortRegMark,
		notServiceCTMark, serviceCTMark, snatCTMark,
	},
	Value: layout.PortText(targetOFPortField),
})
