package tables

import "github.com/antrail/antrail/flow"

// What packets and connections carry with them through the pipeline. Every
// range of bits has its name from Antrea here, and so has every value of it
// that means something: a reg mark is a value in a register, which lives as
// long as the packet's walk; a ct mark is one in ct_mark, which lives as long
// as the connection; a ct label likewise.
//
// Fields and Marks list them all. A test holds that no two fields share a bit
// unless both name the same union, that none leaves its register, and that
// every name below is listed.

// Field is a named range of bits of a register, of ct_mark or of ct_label.
type Field struct {
	Name string
	flow.Subfield
	// Union is what the field shares its bits with by intention: fields of the
	// same union are never used at the same time, or are parts and whole.
	Union string
}

// Mark is a named value of a field.
type Mark struct {
	Name  string
	Field Field
	Value uint64
}

func reg(n uint8, name string, first, last uint8) Field {
	return Field{Name: name, Subfield: bitRange(flow.Reg0+flow.FieldID(n), first, last)}
}

func bitRange(id flow.FieldID, first, last uint8) flow.Subfield {
	return flow.Subfield{Field: id, Ofs: first, N: last - first + 1}
}

// of makes a field part of a union.
func (f Field) of(union string) Field {
	f.Union = union
	return f
}

func (f Field) mark(name string, value uint64) Mark { return Mark{name, f, value} }

// Registers 0 to 2: where a packet comes from, where it goes, what was decided.
var (
	PktSourceField         = reg(0, "PktSourceField", 0, 3)
	PktDestinationField    = reg(0, "PktDestinationField", 4, 7)
	rewriteMACField        = reg(0, "RewriteMACField", 9, 9)
	apDenyField            = reg(0, "APDenyField", 10, 10)
	APDispositionField     = reg(0, "APDispositionField", 11, 12)
	generatedRejectField   = reg(0, "GeneratedRejectField", 13, 13)
	svcNoEpField           = reg(0, "SvcNoEpField", 14, 14)
	remoteSNATField        = reg(0, "RemoteSNATField", 19, 19)
	l7NPRedirectField      = reg(0, "L7NPRegField", 20, 20)
	OutputRegField         = reg(0, "OutputRegField", 21, 22)
	PacketInOperationField = reg(0, "PacketInOperationField", 25, 31)
	TargetOFPortField      = reg(1, "TargetOFPortField", 0, 31)
	SwapField              = reg(2, "SwapField", 0, 31).of("reg2")
	PacketInTableField     = reg(2, "PacketInTableField", 0, 7).of("reg2")
)

// Registers 3 and 4: a Service's endpoint, and what is known of the Service.
// EndpointIP6Field is registers 12 to 15.
var (
	EndpointIPField           = reg(3, "EndpointIPField", 0, 31).of("reg3")
	APConjIDField             = reg(3, "APConjIDField", 0, 31).of("reg3")
	EndpointPortField         = reg(4, "EndpointPortField", 0, 15).of("EpUnionField")
	ServiceEPStateField       = reg(4, "ServiceEPStateField", 16, 18).of("EpUnionField")
	EpUnionField              = reg(4, "EpUnionField", 0, 18).of("EpUnionField")
	toNodePortAddressField    = reg(4, "ToNodePortAddressField", 19, 19)
	flexibleIPAMField         = reg(4, "AntreaFlexibleIPAMField", 20, 20)
	toExternalAddressField    = reg(4, "ToExternalAddressField", 21, 21)
	TrafficControlActionField = reg(4, "TrafficControlActionField", 22, 23)
	nestedServiceField        = reg(4, "NestedServiceField", 24, 24)
	dsrServiceField           = reg(4, "DSRServiceField", 25, 25)
	remoteEndpointField       = reg(4, "RemoteEndpointField", 26, 26)
	fromExternalField         = reg(4, "FromExternalField", 27, 27)
	fromLocalField            = reg(4, "FromLocalField", 28, 28)
	EndpointIP6Field          = Field{Name: "EndpointIP6Field", Subfield: bitRange(flow.XXReg0+3, 0, 127)}
)

// Registers 5 to 9.
var (
	TFEgressConjIDField             = reg(5, "TFEgressConjIDField", 0, 31)
	TFIngressConjIDField            = reg(6, "TFIngressConjIDField", 0, 31)
	ServiceGroupIDField             = reg(7, "ServiceGroupIDField", 0, 31)
	VLANIDField                     = reg(8, "VLANIDField", 0, 11).of("CtZoneField")
	CtZoneTypeField                 = reg(8, "CtZoneTypeField", 12, 15).of("CtZoneField")
	CtZoneField                     = reg(8, "CtZoneField", 0, 15).of("CtZoneField")
	TrafficControlTargetOFPortField = reg(9, "TrafficControlTargetOFPortField", 0, 31)
)

// The fields of connections.
var (
	ConnSourceCTMarkField = Field{Name: "ConnSourceCTMarkField", Subfield: bitRange(flow.CTMark, 0, 3)}
	serviceCTField        = Field{Name: "ServiceCTMarkField", Subfield: bitRange(flow.CTMark, 4, 4)}
	connSNATCTField       = Field{Name: "ConnSNATCTMarkField", Subfield: bitRange(flow.CTMark, 5, 5)}
	hairpinCTField        = Field{Name: "HairpinCTMarkField", Subfield: bitRange(flow.CTMark, 6, 6)}
	l7NPRedirectCTField   = Field{Name: "L7NPRedirectCTMarkField", Subfield: bitRange(flow.CTMark, 7, 7)}
	IngressRuleCTLabel    = Field{Name: "IngressRuleCTLabel", Subfield: bitRange(flow.CTLabel, 0, 31)}
	EgressRuleCTLabel     = Field{Name: "EgressRuleCTLabel", Subfield: bitRange(flow.CTLabel, 32, 63)}
	L7NPRuleVlanIDCTLabel = Field{Name: "L7NPRuleVlanIDCTLabel", Subfield: bitRange(flow.CTLabel, 64, 75)}
)

// Fields of pkt_mark, which the Node's kernel reads and writes too: the id of
// an Egress address; and, which the Node's own rules set, "this packet comes from the
// Node itself" and "this answers a Pod of another Node that came through the tunnel
// for its Egress".
var (
	EgressMarkField      = Field{Name: "EgressMarkField", Subfield: bitRange(flow.PktMark, 0, 7)}
	egressReplyField     = Field{Name: "EgressReplyField", Subfield: bitRange(flow.PktMark, 30, 30)}
	hostLocalSourceField = Field{Name: "HostLocalSourceField", Subfield: bitRange(flow.PktMark, 31, 31)}
	EgressReplyMark      = egressReplyField.mark("EgressReplyMark", 1)
	HostLocalSourceMark  = hostLocalSourceField.mark("HostLocalSourceMark", 1)
)

// Reg marks of registers 0 to 2.
var (
	FromTunnelRegMark               = PktSourceField.mark("FromTunnelRegMark", 1)
	FromGatewayRegMark              = PktSourceField.mark("FromGatewayRegMark", 2)
	FromPodRegMark                  = PktSourceField.mark("FromPodRegMark", 3)
	FromUplinkRegMark               = PktSourceField.mark("FromUplinkRegMark", 4)
	FromBridgeRegMark               = PktSourceField.mark("FromBridgeRegMark", 5)
	FromTCReturnRegMark             = PktSourceField.mark("FromTCReturnRegMark", 6)
	ToTunnelRegMark                 = PktDestinationField.mark("ToTunnelRegMark", 1)
	ToGatewayRegMark                = PktDestinationField.mark("ToGatewayRegMark", 2)
	ToUplinkRegMark                 = PktDestinationField.mark("ToUplinkRegMark", 4)
	NotRewriteMACRegMark            = rewriteMACField.mark("NotRewriteMACRegMark", 0)
	RewriteMACRegMark               = rewriteMACField.mark("RewriteMACRegMark", 1)
	APDenyRegMark                   = apDenyField.mark("APDenyRegMark", 1)
	DispositionAllowRegMark         = APDispositionField.mark("DispositionAllowRegMark", 0)
	DispositionDropRegMark          = APDispositionField.mark("DispositionDropRegMark", 1)
	DispositionRejectRegMark        = APDispositionField.mark("DispositionRejectRegMark", 2)
	DispositionPassRegMark          = APDispositionField.mark("DispositionPassRegMark", 3)
	GeneratedRejectPacketOutRegMark = generatedRejectField.mark("GeneratedRejectPacketOutRegMark", 1)
	SvcNoEpRegMark                  = svcNoEpField.mark("SvcNoEpRegMark", 1)
	RemoteSNATRegMark               = remoteSNATField.mark("RemoteSNATRegMark", 1)
	L7NPRedirectRegMark             = l7NPRedirectField.mark("L7NPRedirectRegMark", 1)
	OutputToOFPortRegMark           = OutputRegField.mark("OutputToOFPortRegMark", 1)
	OutputToControllerRegMark       = OutputRegField.mark("OutputToControllerRegMark", 2)
)

// Reg marks of registers 4 and 8.
var (
	EpToSelectRegMark             = ServiceEPStateField.mark("EpToSelectRegMark", 1)
	EpSelectedRegMark             = ServiceEPStateField.mark("EpSelectedRegMark", 2)
	EpToLearnRegMark              = ServiceEPStateField.mark("EpToLearnRegMark", 3)
	ToNodePortAddressRegMark      = toNodePortAddressField.mark("ToNodePortAddressRegMark", 1)
	AntreaFlexibleIPAMRegMark     = flexibleIPAMField.mark("AntreaFlexibleIPAMRegMark", 1)
	NotAntreaFlexibleIPAMRegMark  = flexibleIPAMField.mark("NotAntreaFlexibleIPAMRegMark", 0)
	ToExternalAddressRegMark      = toExternalAddressField.mark("ToExternalAddressRegMark", 1)
	TrafficControlMirrorRegMark   = TrafficControlActionField.mark("TrafficControlMirrorRegMark", 1)
	TrafficControlRedirectRegMark = TrafficControlActionField.mark("TrafficControlRedirectRegMark", 2)
	NestedServiceRegMark          = nestedServiceField.mark("NestedServiceRegMark", 1)
	DSRServiceRegMark             = dsrServiceField.mark("DSRServiceRegMark", 1)
	NotDSRServiceRegMark          = dsrServiceField.mark("NotDSRServiceRegMark", 0)
	RemoteEndpointRegMark         = remoteEndpointField.mark("RemoteEndpointRegMark", 1)
	FromExternalRegMark           = fromExternalField.mark("FromExternalRegMark", 1)
	FromLocalRegMark              = fromLocalField.mark("FromLocalRegMark", 1)
	IPCtZoneTypeRegMark           = CtZoneTypeField.mark("IPCtZoneTypeRegMark", 1)
	IPv6CtZoneTypeRegMark         = CtZoneTypeField.mark("IPv6CtZoneTypeRegMark", 3)
)

// Ct marks.
var (
	FromGatewayCTMark  = ConnSourceCTMarkField.mark("FromGatewayCTMark", 2)
	FromBridgeCTMark   = ConnSourceCTMarkField.mark("FromBridgeCTMark", 5)
	ServiceCTMark      = serviceCTField.mark("ServiceCTMark", 1)
	NotServiceCTMark   = serviceCTField.mark("NotServiceCTMark", 0)
	ConnSNATCTMark     = connSNATCTField.mark("ConnSNATCTMark", 1)
	HairpinCTMark      = hairpinCTField.mark("HairpinCTMark", 1)
	L7NPRedirectCTMark = l7NPRedirectCTField.mark("L7NPRedirectCTMark", 1)
)

// Ct zones: connections as Services and policies see them, and those that are
// translated on their way out of a Service.
const (
	CtZone       = 65520
	SNATCtZone   = 65521
	CtZoneV6     = 65510
	SNATCtZoneV6 = 65511
)

// What a packet-in of a policy is for: bits of PacketInOperationField.
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
		generatedRejectField, svcNoEpField, remoteSNATField, l7NPRedirectField, OutputRegField,
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
		FromTCReturnRegMark, ToTunnelRegMark, ToGatewayRegMark, ToUplinkRegMark, NotRewriteMACRegMark,
		RewriteMACRegMark, APDenyRegMark, DispositionAllowRegMark, DispositionDropRegMark,
		DispositionRejectRegMark, DispositionPassRegMark, GeneratedRejectPacketOutRegMark, SvcNoEpRegMark,
		RemoteSNATRegMark, L7NPRedirectRegMark, OutputToOFPortRegMark, OutputToControllerRegMark,
		EpToSelectRegMark, EpSelectedRegMark, EpToLearnRegMark, ToNodePortAddressRegMark,
		AntreaFlexibleIPAMRegMark, NotAntreaFlexibleIPAMRegMark, ToExternalAddressRegMark,
		TrafficControlMirrorRegMark, TrafficControlRedirectRegMark, NestedServiceRegMark,
		DSRServiceRegMark, NotDSRServiceRegMark, RemoteEndpointRegMark, FromExternalRegMark,
		FromLocalRegMark, IPCtZoneTypeRegMark, IPv6CtZoneTypeRegMark,
		FromGatewayCTMark, FromBridgeCTMark, ServiceCTMark, NotServiceCTMark, ConnSNATCTMark,
		HairpinCTMark, L7NPRedirectCTMark, EgressReplyMark, HostLocalSourceMark,
	}
}
