package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// The bits that packets and connections carry through the pipeline. Every range of bits has its
// name from Antrea, and so has every value with a meaning. A reg mark is a value in a register
// and lives as long as the packet's walk. A ct mark or ct label lives as long as the connection.
//
// Fields and Marks list them all. A test checks that every name below is listed and that no field
// leaves its register. It also checks that two fields share a bit only if both name the same
// union.

// Field and Mark are bits by name, as all programs have them.
type (
	Field = layout.Field
	Mark  = layout.Mark
)

// Registers 0 to 2: where a packet comes from, where it goes, the decisions about it.
var (
	PktSourceField         = layout.Reg(0, "PktSourceField", 0, 3)
	PktDestinationField    = layout.Reg(0, "PktDestinationField", 4, 7)
	rewriteMACField        = layout.Reg(0, "RewriteMACField", 9, 9)
	apDenyField            = layout.Reg(0, "APDenyField", 10, 10)
	APDispositionField     = layout.Reg(0, "APDispositionField", 11, 12)
	generatedRejectField   = layout.Reg(0, "GeneratedRejectField", 13, 13)
	svcNoEpField           = layout.Reg(0, "SvcNoEpField", 14, 14)
	remoteSNATField        = layout.Reg(0, "RemoteSNATField", 19, 19)
	l7NPRedirectField      = layout.Reg(0, "L7NPRegField", 20, 20)
	OutputRegField         = layout.Reg(0, "OutputRegField", 21, 22)
	ctStateRestoredField   = layout.Reg(0, "CtStateRestoredField", 23, 23)
	PacketInOperationField = layout.Reg(0, "PacketInOperationField", 25, 31)
	TargetOFPortField      = layout.Reg(1, "TargetOFPortField", 0, 31)
	SwapField              = layout.Reg(2, "SwapField", 0, 31).Of("reg2")
	PacketInTableField     = layout.Reg(2, "PacketInTableField", 0, 7).Of("reg2")
)

// Registers 3 and 4: a Service's endpoint, and facts about the Service. EndpointIP6Field is
// registers 12 to 15.
var (
	EndpointIPField           = layout.Reg(3, "EndpointIPField", 0, 31).Of("reg3")
	APConjIDField             = layout.Reg(3, "APConjIDField", 0, 31).Of("reg3")
	EndpointPortField         = layout.Reg(4, "EndpointPortField", 0, 15).Of("EpUnionField")
	ServiceEPStateField       = layout.Reg(4, "ServiceEPStateField", 16, 18).Of("EpUnionField")
	EpUnionField              = layout.Reg(4, "EpUnionField", 0, 18).Of("EpUnionField")
	toNodePortAddressField    = layout.Reg(4, "ToNodePortAddressField", 19, 19)
	flexibleIPAMField         = layout.Reg(4, "AntreaFlexibleIPAMField", 20, 20)
	toExternalAddressField    = layout.Reg(4, "ToExternalAddressField", 21, 21)
	TrafficControlActionField = layout.Reg(4, "TrafficControlActionField", 22, 23)
	nestedServiceField        = layout.Reg(4, "NestedServiceField", 24, 24)
	dsrServiceField           = layout.Reg(4, "DSRServiceField", 25, 25)
	remoteEndpointField       = layout.Reg(4, "RemoteEndpointField", 26, 26)
	fromExternalField         = layout.Reg(4, "FromExternalField", 27, 27)
	fromLocalField            = layout.Reg(4, "FromLocalField", 28, 28)
	EndpointIP6Field          = Field{Name: "EndpointIP6Field", Subfield: layout.Range(flow.XXReg0+3, 0, 127)}
)

// Registers 5 to 9.
var (
	TFEgressConjIDField             = layout.Reg(5, "TFEgressConjIDField", 0, 31)
	TFIngressConjIDField            = layout.Reg(6, "TFIngressConjIDField", 0, 31)
	ServiceGroupIDField             = layout.Reg(7, "ServiceGroupIDField", 0, 31)
	VLANIDField                     = layout.Reg(8, "VLANIDField", 0, 11).Of("CtZoneField")
	CtZoneTypeField                 = layout.Reg(8, "CtZoneTypeField", 12, 15).Of("CtZoneField")
	CtZoneField                     = layout.Reg(8, "CtZoneField", 0, 15).Of("CtZoneField")
	TrafficControlTargetOFPortField = layout.Reg(9, "TrafficControlTargetOFPortField", 0, 31)
)

// The fields of connections.
var (
	ConnSourceCTMarkField = Field{Name: "ConnSourceCTMarkField", Subfield: layout.Range(flow.CTMark, 0, 3)}
	serviceCTField        = Field{Name: "ServiceCTMarkField", Subfield: layout.Range(flow.CTMark, 4, 4)}
	connSNATCTField       = Field{Name: "ConnSNATCTMarkField", Subfield: layout.Range(flow.CTMark, 5, 5)}
	hairpinCTField        = Field{Name: "HairpinCTMarkField", Subfield: layout.Range(flow.CTMark, 6, 6)}
	l7NPRedirectCTField   = Field{Name: "L7NPRedirectCTMarkField", Subfield: layout.Range(flow.CTMark, 7, 7)}
	IngressRuleCTLabel    = Field{Name: "IngressRuleCTLabel", Subfield: layout.Range(flow.CTLabel, 0, 31)}
	EgressRuleCTLabel     = Field{Name: "EgressRuleCTLabel", Subfield: layout.Range(flow.CTLabel, 32, 63)}
	L7NPRuleVlanIDCTLabel = Field{Name: "L7NPRuleVlanIDCTLabel", Subfield: layout.Range(flow.CTLabel, 64, 75)}
)

// Fields of pkt_mark, which the Node's kernel reads and writes too. EgressMarkField is the id of
// an Egress address. The Node's own rules set the other two. HostLocalSourceMark: the packet
// comes from the Node itself. EgressReplyMark: the packet answers a Pod of another Node that came
// through the tunnel for its Egress.
var (
	EgressMarkField      = Field{Name: "EgressMarkField", Subfield: layout.Range(flow.PktMark, 0, 7)}
	egressReplyField     = Field{Name: "EgressReplyField", Subfield: layout.Range(flow.PktMark, 30, 30)}
	hostLocalSourceField = Field{Name: "HostLocalSourceField", Subfield: layout.Range(flow.PktMark, 31, 31)}
	EgressReplyMark      = egressReplyField.Mark("EgressReplyMark", 1)
	HostLocalSourceMark  = hostLocalSourceField.Mark("HostLocalSourceMark", 1)
)

// Reg marks of registers 0 to 2.
var (
	FromTunnelRegMark               = PktSourceField.Mark("FromTunnelRegMark", 1)
	FromGatewayRegMark              = PktSourceField.Mark("FromGatewayRegMark", 2)
	FromPodRegMark                  = PktSourceField.Mark("FromPodRegMark", 3)
	FromUplinkRegMark               = PktSourceField.Mark("FromUplinkRegMark", 4)
	FromBridgeRegMark               = PktSourceField.Mark("FromBridgeRegMark", 5)
	FromTCReturnRegMark             = PktSourceField.Mark("FromTCReturnRegMark", 6)
	FromL7NPReturnRegMark           = PktSourceField.Mark("FromL7NPReturnRegMark", 7)
	ToTunnelRegMark                 = PktDestinationField.Mark("ToTunnelRegMark", 1)
	ToGatewayRegMark                = PktDestinationField.Mark("ToGatewayRegMark", 2)
	ToUplinkRegMark                 = PktDestinationField.Mark("ToUplinkRegMark", 4)
	NotRewriteMACRegMark            = rewriteMACField.Mark("NotRewriteMACRegMark", 0)
	RewriteMACRegMark               = rewriteMACField.Mark("RewriteMACRegMark", 1)
	APDenyRegMark                   = apDenyField.Mark("APDenyRegMark", 1)
	DispositionAllowRegMark         = APDispositionField.Mark("DispositionAllowRegMark", 0)
	DispositionDropRegMark          = APDispositionField.Mark("DispositionDropRegMark", 1)
	DispositionRejectRegMark        = APDispositionField.Mark("DispositionRejectRegMark", 2)
	DispositionPassRegMark          = APDispositionField.Mark("DispositionPassRegMark", 3)
	GeneratedRejectPacketOutRegMark = generatedRejectField.Mark("GeneratedRejectPacketOutRegMark", 1)
	SvcNoEpRegMark                  = svcNoEpField.Mark("SvcNoEpRegMark", 1)
	RemoteSNATRegMark               = remoteSNATField.Mark("RemoteSNATRegMark", 1)
	L7NPRedirectRegMark             = l7NPRedirectField.Mark("L7NPRedirectRegMark", 1)
	OutputToOFPortRegMark           = OutputRegField.Mark("OutputToOFPortRegMark", 1)
	OutputToControllerRegMark       = OutputRegField.Mark("OutputToControllerRegMark", 2)
	CtStateNotRestoredRegMark       = ctStateRestoredField.Mark("CtStateNotRestoredRegMark", 0)
	CtStateRestoredRegMark          = ctStateRestoredField.Mark("CtStateRestoredRegMark", 1)
)

// Reg marks of registers 4 and 8.
var (
	EpToSelectRegMark             = ServiceEPStateField.Mark("EpToSelectRegMark", 1)
	EpSelectedRegMark             = ServiceEPStateField.Mark("EpSelectedRegMark", 2)
	EpToLearnRegMark              = ServiceEPStateField.Mark("EpToLearnRegMark", 3)
	ToNodePortAddressRegMark      = toNodePortAddressField.Mark("ToNodePortAddressRegMark", 1)
	AntreaFlexibleIPAMRegMark     = flexibleIPAMField.Mark("AntreaFlexibleIPAMRegMark", 1)
	NotAntreaFlexibleIPAMRegMark  = flexibleIPAMField.Mark("NotAntreaFlexibleIPAMRegMark", 0)
	ToExternalAddressRegMark      = toExternalAddressField.Mark("ToExternalAddressRegMark", 1)
	TrafficControlMirrorRegMark   = TrafficControlActionField.Mark("TrafficControlMirrorRegMark", 1)
	TrafficControlRedirectRegMark = TrafficControlActionField.Mark("TrafficControlRedirectRegMark", 2)
	NestedServiceRegMark          = nestedServiceField.Mark("NestedServiceRegMark", 1)
	DSRServiceRegMark             = dsrServiceField.Mark("DSRServiceRegMark", 1)
	NotDSRServiceRegMark          = dsrServiceField.Mark("NotDSRServiceRegMark", 0)
	RemoteEndpointRegMark         = remoteEndpointField.Mark("RemoteEndpointRegMark", 1)
	FromExternalRegMark           = fromExternalField.Mark("FromExternalRegMark", 1)
	FromLocalRegMark              = fromLocalField.Mark("FromLocalRegMark", 1)
	IPCtZoneTypeRegMark           = CtZoneTypeField.Mark("IPCtZoneTypeRegMark", 1)
	IPv6CtZoneTypeRegMark         = CtZoneTypeField.Mark("IPv6CtZoneTypeRegMark", 3)
)

// Ct marks.
var (
	FromTunnelCTMark   = ConnSourceCTMarkField.Mark("FromTunnelCTMark", 1)
	FromGatewayCTMark  = ConnSourceCTMarkField.Mark("FromGatewayCTMark", 2)
	FromBridgeCTMark   = ConnSourceCTMarkField.Mark("FromBridgeCTMark", 5)
	ServiceCTMark      = serviceCTField.Mark("ServiceCTMark", 1)
	NotServiceCTMark   = serviceCTField.Mark("NotServiceCTMark", 0)
	ConnSNATCTMark     = connSNATCTField.Mark("ConnSNATCTMark", 1)
	NotConnSNATCTMark  = connSNATCTField.Mark("NotConnSNATCTMark", 0)
	HairpinCTMark      = hairpinCTField.Mark("HairpinCTMark", 1)
	L7NPRedirectCTMark = l7NPRedirectCTField.Mark("L7NPRedirectCTMark", 1)
)

// Ct zones. CtZone has connections as Services and policies see them. SNATCtZone has those whose
// source SNAT translates.
const (
	CtZone       = 65520
	SNATCtZone   = 65521
	CtZoneV6     = 65510
	SNATCtZoneV6 = 65511
)

// Reasons for a policy's packet-in: bits of PacketInOperationField.
const (
	PacketInLogging   = 1
	PacketInReject    = 2
	PacketInStoreDeny = 4
)

// Userdata of packet-ins, first byte.
const (
	PacketInTraceflow     = 0
	PacketInNetworkPolicy = 1
	PacketInDNS           = 2
	PacketInIGMP          = 3
	PacketInSvcReject     = 4
)

// Fields lists every field.
func Fields() []Field {
	return []Field{
		PktSourceField, PktDestinationField, rewriteMACField, apDenyField, APDispositionField,
		generatedRejectField, svcNoEpField, remoteSNATField, l7NPRedirectField, OutputRegField, ctStateRestoredField,
		PacketInOperationField, TargetOFPortField, SwapField, PacketInTableField,
		EndpointIPField, APConjIDField, EndpointPortField, ServiceEPStateField, EpUnionField,
		toNodePortAddressField, flexibleIPAMField, toExternalAddressField, TrafficControlActionField,
		nestedServiceField, dsrServiceField, remoteEndpointField, fromExternalField, fromLocalField,
		EndpointIP6Field, TFEgressConjIDField, TFIngressConjIDField, ServiceGroupIDField,
		VLANIDField, CtZoneTypeField, CtZoneField, TrafficControlTargetOFPortField,
		ConnSourceCTMarkField, serviceCTField, connSNATCTField, hairpinCTField, l7NPRedirectCTField,
		IngressRuleCTLabel, EgressRuleCTLabel, L7NPRuleVlanIDCTLabel,
		EgressMarkField, egressReplyField, hostLocalSourceField,
	}
}

// Marks lists every mark.
func Marks() []Mark {
	return []Mark{
		FromTunnelRegMark, FromGatewayRegMark, FromPodRegMark, FromUplinkRegMark, FromBridgeRegMark,
		FromTCReturnRegMark, FromL7NPReturnRegMark, ToTunnelRegMark, ToGatewayRegMark, ToUplinkRegMark, NotRewriteMACRegMark,
		RewriteMACRegMark, APDenyRegMark, DispositionAllowRegMark, DispositionDropRegMark,
		DispositionRejectRegMark, DispositionPassRegMark, GeneratedRejectPacketOutRegMark, SvcNoEpRegMark,
		RemoteSNATRegMark, L7NPRedirectRegMark, OutputToOFPortRegMark, OutputToControllerRegMark,
		CtStateNotRestoredRegMark, CtStateRestoredRegMark, FromTunnelCTMark, NotConnSNATCTMark,
		EpToSelectRegMark, EpSelectedRegMark, EpToLearnRegMark, ToNodePortAddressRegMark,
		AntreaFlexibleIPAMRegMark, NotAntreaFlexibleIPAMRegMark, ToExternalAddressRegMark,
		TrafficControlMirrorRegMark, TrafficControlRedirectRegMark, NestedServiceRegMark,
		DSRServiceRegMark, NotDSRServiceRegMark, RemoteEndpointRegMark, FromExternalRegMark,
		FromLocalRegMark, IPCtZoneTypeRegMark, IPv6CtZoneTypeRegMark,
		FromGatewayCTMark, FromBridgeCTMark, ServiceCTMark, NotServiceCTMark, ConnSNATCTMark,
		HairpinCTMark, L7NPRedirectCTMark, EgressReplyMark, HostLocalSourceMark,
	}
}
