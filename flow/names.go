package flow

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Names translates between the names of tables and ports and their numbers in entries. It also
// maps tun_metadata fields to Geneve options. A nil *Names is empty: numbers are printed, names
// are refused.
type Names struct {
	tables   map[uint8]string
	tableIDs map[string]uint8
	ports    map[uint32]string
	portIDs  map[string]uint32
	options  []TunnelOption
}

// NewNames returns an empty set of names.
func NewNames() *Names {
	return &Names{tables: map[uint8]string{}, tableIDs: map[string]uint8{}, ports: map[uint32]string{}, portIDs: map[string]uint32{}}
}

// Geneve options have the fields tun_metadata0 to tun_metadata7, each with 8 bytes in a key. Open
// vSwitch has 64 fields, and options of up to 124 bytes.
const (
	TunMetadataFields = 8
	MaxTunMetadata    = 8
)

// TunnelOption gives a Geneve option the number of its field in entries (Open vSwitch's
// NXT_TLV_TABLE_MOD).
type TunnelOption struct {
	Index uint8  `json:"index"` // N of tun_metadataN
	Class uint16 `json:"class"`
	Type  uint8  `json:"type"`
	Size  uint8  `json:"size"` // bytes of its data: 4 or 8
}

// TunnelOptions are the options of the fields tun_metadata, by their numbers. The list must not
// be changed.
func (n *Names) TunnelOptions() []TunnelOption {
	if n == nil {
		return nil
	}
	return n.options
}

// SetTunnelOptions replaces the options. It refuses a number or a size that no field has, and two
// with one number, or with one class and type.
func (n *Names) SetTunnelOptions(all []TunnelOption) error {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b TunnelOption) int { return int(a.Index) - int(b.Index) })
	for i, o := range sorted {
		switch {
		case o.Index >= TunMetadataFields:
			return fmt.Errorf("there is no field tun_metadata%d", o.Index)
		case o.Size == 0 || o.Size%4 != 0 || o.Size > MaxTunMetadata:
			return fmt.Errorf("tun_metadata%d: an option of %d bytes; expected 4 or 8", o.Index, o.Size)
		}
		for _, other := range sorted[:i] {
			if other.Index == o.Index || other.Class == o.Class && other.Type == o.Type {
				return fmt.Errorf("tun_metadata%d: the field or its option %#x, %#x is given twice", o.Index, o.Class, o.Type)
			}
		}
	}
	n.options = sorted
	return nil
}

// Table is the table's name, "" if it has none.
func (n *Names) Table(id uint8) string {
	if n == nil {
		return ""
	}
	return n.tables[id]
}

// TableID is the number of a named table.
func (n *Names) TableID(name string) (uint8, bool) {
	if n == nil {
		return 0, false
	}
	id, ok := n.tableIDs[name]
	return id, ok
}

// SetTable names a table. It removes an older name of the table and an older table of the name.
func (n *Names) SetTable(id uint8, name string) {
	delete(n.tableIDs, n.tables[id])
	if old, ok := n.tableIDs[name]; ok {
		delete(n.tables, old)
	}
	n.tables[id], n.tableIDs[name] = name, id
}

// Port is the port's name, "" if it has none.
func (n *Names) Port(id uint32) string {
	if n == nil {
		return ""
	}
	return n.ports[id]
}

// PortID is the number of a named port.
func (n *Names) PortID(name string) (uint32, bool) {
	if n == nil {
		return 0, false
	}
	id, ok := n.portIDs[name]
	return id, ok
}

// SetPort names a port. It removes an older name of the port and an older port of the name.
func (n *Names) SetPort(id uint32, name string) {
	delete(n.portIDs, n.ports[id])
	if old, ok := n.portIDs[name]; ok {
		delete(n.ports, old)
	}
	n.ports[id], n.portIDs[name] = name, id
}

// Tables are the tables that have a name, by number.
func (n *Names) Tables() iter.Seq2[uint8, string] {
	return func(yield func(uint8, string) bool) {
		if n == nil {
			return
		}
		for _, id := range slices.Sorted(maps.Keys(n.tables)) {
			if !yield(id, n.tables[id]) {
				return
			}
		}
	}
}

// Ports are the ports that have a name, by number.
func (n *Names) Ports() iter.Seq2[uint32, string] {
	return func(yield func(uint32, string) bool) {
		if n == nil {
			return
		}
		for _, no := range slices.Sorted(maps.Keys(n.ports)) {
			if !yield(no, n.ports[no]) {
				return
			}
		}
	}
}

// OpenPorts are the names of ports that a switch can open, by number. Numbers above 0xfeff are
// reserved (OpenFlow 1.0, section 5.2.1), except LOCAL, the Node's own network.
func (n *Names) OpenPorts() map[uint32]string {
	const last = 0xfeff
	all := make(map[uint32]string)
	for no, name := range n.Ports() {
		if no >= 1 && no <= last || no == PortLocal {
			all[no] = name
		}
	}
	return all
}

// Clone is a copy. The copy of nil is an empty set.
func (n *Names) Clone() *Names {
	if n == nil {
		return NewNames()
	}
	return &Names{maps.Clone(n.tables), maps.Clone(n.tableIDs), maps.Clone(n.ports), maps.Clone(n.portIDs), n.options}
}
