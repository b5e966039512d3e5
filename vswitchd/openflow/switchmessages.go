package openflow

import "github.com/antrail/antrail/flow"

// port16 takes a port number of OpenFlow 1.0.
func port16(r *reader) uint32 { return flow.PortOf16(uint32(r.u16())) }

// FeaturesRequest is OFPT_FEATURES_REQUEST.
type FeaturesRequest struct{}

// Features is OFPT_FEATURES_REPLY. Only OpenFlow 1.0 has Ports.
type Features struct {
	DatapathID uint64
	Ports      []Port
}

// Capabilities.
const (
	capFlowStats  = 1 << 0
	capTableStats = 1 << 1
	capPortStats  = 1 << 2
	capGroupStats = 1 << 3
	capQueueStats = 1 << 6
	capARPMatchIP = 1 << 7
	capBundles    = 1 << 9
)

// actions10 are the actions of OpenFlow 1.0 that this switch has: all but enqueue.
const actions10 = 0x7ff

// encode implements Body.
func (f *Features) encode(w *writer, v Version) error {
	w.u64(f.DatapathID)
	w.u32(0) // no packets are buffered
	w.u8(Tables)
	w.zeros(3)
	if v != V10 {
		bits := uint32(capFlowStats | capTableStats | capPortStats | capGroupStats | capQueueStats)
		if v >= V14 {
			bits |= capBundles
		}
		w.u32(bits)
		w.u32(0)
		return nil
	}
	w.u32(capFlowStats | capTableStats | capPortStats | capQueueStats | capARPMatchIP)
	w.u32(actions10)
	for i := range f.Ports {
		if err := f.Ports[i].part(w, v, false); err != nil {
			return err
		}
	}
	return nil
}

// GetConfig is OFPT_GET_CONFIG_REQUEST.
type GetConfig struct{}

// InvalidTTLToController is the flag for packet-ins of packets whose TTL ends.
const InvalidTTLToController = 1 << 2

// SetConfig is OFPT_SET_CONFIG.
type SetConfig struct{ Flags, MissSendLen uint16 }

// Config is OFPT_GET_CONFIG_REPLY.
type Config struct{ Flags, MissSendLen uint16 }

func decodeSetConfig(r *reader, _ Version) (Body, error) {
	return &SetConfig{r.u16(), r.u16()}, nil
}

// encode implements Body.
func (c *Config) encode(w *writer, _ Version) error {
	w.u16(c.Flags)
	w.u16(c.MissSendLen)
	return nil
}

// Desc is the answer to StatsDesc: manufacturer, hardware, software and serial number.
type Desc struct{ Manufacturer, Hardware, Software, Serial, Datapath string }

// part implements Part.
func (d *Desc) part(w *writer, _ Version, _ bool) error {
	w.name(d.Manufacturer, 256)
	w.name(d.Hardware, 256)
	w.name(d.Software, 256)
	w.name(d.Serial, 32)
	w.name(d.Datapath, 256)
	return nil
}

// ControllerRole is the role of a controller.
type ControllerRole uint32

// The roles, as OpenFlow 1.3 numbers them.
const (
	RoleNoChange ControllerRole = iota
	RoleEqual
	RoleMaster
	RoleSlave
)

// Role is OFPT_ROLE_REQUEST and its answer, or Nicira's in OpenFlow 1.0.
type Role struct {
	Role       ControllerRole
	Generation uint64
	// Counted is set if the request has a Generation.
	Counted bool
	NX      bool
}

func decodeRole(r *reader, _ Version) (Body, error) {
	o := &Role{Role: ControllerRole(r.u32())}
	r.skip(4)
	o.Generation = r.u64()
	o.Counted = o.Role == RoleMaster || o.Role == RoleSlave
	if o.Role > RoleSlave {
		return nil, fail(BadRole, "role %d is unknown", o.Role)
	}
	return o, nil
}

func decodeNXRole(r *reader, _ Version) (Body, error) {
	n := r.u32()
	if n > 2 {
		return nil, fail(BadRole, "role %d is unknown", n)
	}
	return &Role{Role: ControllerRole(n + 1), NX: true}, nil
}

// encode implements Body.
func (o *Role) encode(w *writer, v Version) error {
	if o.NX {
		w.u32(nicira)
		w.u32(nxtRoleReply)
		w.u32(uint32(o.Role) - 1)
		return nil
	}
	w.u32(uint32(o.Role))
	w.u32(0)
	w.u64(o.Generation)
	return nil
}
