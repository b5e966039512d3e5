package openflow

// Messages of experimenters: Nicira's, and ONF's bundles in OpenFlow 1.3.

// Nicira's messages.
const (
	nxtRole           = 10
	nxtRoleReply      = 11
	nxtFlowFormat     = 12
	nxtFlowMod        = 13
	nxtFlowRemoved    = 14
	nxtFlowModTable   = 15
	nxtPacketInFormat = 16
	nxtPacketIn       = 17
	nxtSetAsync       = 19
	nxtControllerID   = 20
	nxtMonitorCancel  = 21
	nxtMonitorPaused  = 22
	nxtMonitorResumed = 23
	nxtTLVMod         = 24
	nxtTLVRequest     = 25
	nxtTLVReply       = 26
	nxtSetAsync2      = 27
	nxtResume         = 28
	nxtCTFlushZone    = 29
	nxtPacketIn2      = 30
	nxtGroupMod       = 31
	nxtCTFlush        = 32
)

// SetFlowFormat is NXT_SET_FLOW_FORMAT: the format of flow mods. A switch accepts all formats.
type SetFlowFormat struct{ Format uint32 }

// FlowFormatNXM is Nicira's own format.
const FlowFormatNXM = 2

// FlowModTableID is NXT_FLOW_MOD_TABLE_ID: flow mods of OpenFlow 1.0 have a table.
type FlowModTableID struct{ Set bool }

// SetControllerID is NXT_SET_CONTROLLER_ID: the connection gets packet-ins with this id.
type SetControllerID struct{ ID uint16 }

// CTFlush is NXT_CT_FLUSH_ZONE, or NXT_CT_FLUSH without a tuple.
type CTFlush struct {
	Zone uint16
	// All is every zone.
	All bool
}

func decodeExperimenter(r *reader, v Version) (Body, error) {
	vendor, subtype := r.u32(), r.u32()
	switch {
	case r.short:
		return nil, r.done()
	case vendor == onf && v == V13 && subtype == onfBundleControl:
		return decodeBundleControl(r, v)
	case vendor == onf && v == V13 && subtype == onfBundleAdd:
		return decodeBundleAdd(r, v)
	case vendor == onf && v == V13 && subtype == onfFlowMonitor:
		return decodeMonitorCancel(r, v)
	case vendor != nicira && vendor != onf:
		return nil, fail(BadExperimenter, "no messages of experimenter %#x are supported", vendor)
	}
	decode := nxDecoders[subtype]
	if vendor == onf || decode == nil {
		return nil, fail(BadExperimenterType, "message %d of experimenter %#x is not supported", subtype, vendor)
	}
	return decode(r, v)
}

var nxDecoders = map[uint32]func(*reader, Version) (Body, error){
	nxtRole:           decodeNXRole,
	nxtFlowFormat:     func(r *reader, _ Version) (Body, error) { return &SetFlowFormat{r.u32()}, nil },
	nxtFlowMod:        decodeNXFlowMod,
	nxtFlowModTable:   func(r *reader, _ Version) (Body, error) { return &FlowModTableID{r.u8() != 0}, nil },
	nxtPacketInFormat: decodePacketInFormat,
	nxtControllerID:   func(r *reader, _ Version) (Body, error) { r.skip(6); return &SetControllerID{r.u16()}, nil },
	nxtSetAsync:       func(r *reader, _ Version) (Body, error) { return decodeSetAsync(r, V13) },
	nxtSetAsync2:      func(r *reader, _ Version) (Body, error) { return decodeSetAsync(r, V14) },
	nxtMonitorCancel:  decodeNXMonitorCancel,
	nxtTLVMod:         decodeTLVTableMod,
	nxtTLVRequest:     empty(&TLVTableRequest{}),
	nxtCTFlushZone:    func(r *reader, _ Version) (Body, error) { r.skip(6); return &CTFlush{Zone: r.u16()}, nil },
	nxtCTFlush:        decodeCTFlush,
	nxtResume:         decodeResume,
	nxtGroupMod:       func(r *reader, _ Version) (Body, error) { return decodeGroupMod(r, V10) },
}

func decodePacketInFormat(r *reader, _ Version) (Body, error) {
	f := PacketInFormat(r.u32())
	if f > PacketInNX2 {
		return nil, fail(RequestNotPermitted, "packet-ins have no format %d", f)
	}
	return &SetPacketInFormat{f}, nil
}

// decodeCTFlush reads a request without a tuple: one zone, or all.
func decodeCTFlush(r *reader, _ Version) (Body, error) {
	r.skip(8) // a family and padding
	f := &CTFlush{All: true}
	return f, r.eachProperty("CT_FLUSH", func(kind uint16, p *reader) error {
		const zone = 2
		if kind != zone {
			return fail(BadPropertyType, "connections are flushed by zone only, not by property %d", kind)
		}
		f.Zone, f.All = p.u16(), false
		return nil
	})
}
