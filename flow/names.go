package flow

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Names translates between the names of tables and ports and their numbers in entries. It also
// maps tun_metadata fields to Geneve options. A nil *Names is empty: numbers are printed, names
// are refused.
type Names struct {
	tables  numbering[uint8]
	ports   numbering[uint32]
	options []TunnelOption
}

// NewNames returns an empty set of names.
func NewNames() *Names { return &Names{tables: newNumbering[uint8](), ports: newNumbering[uint32]()} }

var noNames Names

// orNone is n, or an empty set for reading if n is nil.
func (n *Names) orNone() *Names {
	if n == nil {
		return &noNames
	}
	return n
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
func (n *Names) TunnelOptions() []TunnelOption { return n.orNone().options }

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
func (n *Names) Table(id uint8) string { return n.orNone().tables.names[id] }

// TableID is the number of a named table.
func (n *Names) TableID(name string) (uint8, bool) { return n.orNone().tables.number(name) }

// SetTable names a table. It removes an older name of the table and an older table of the name.
func (n *Names) SetTable(id uint8, name string) { n.tables.set(id, name) }

// Tables are the tables that have a name, by number.
func (n *Names) Tables() iter.Seq2[uint8, string] { return n.orNone().tables.all() }

// Port is the port's name, "" if it has none.
func (n *Names) Port(id uint32) string { return n.orNone().ports.names[id] }

// PortID is the number of a named port.
func (n *Names) PortID(name string) (uint32, bool) { return n.orNone().ports.number(name) }

// SetPort names a port. It removes an older name of the port and an older port of the name.
func (n *Names) SetPort(id uint32, name string) { n.ports.set(id, name) }

// Ports are the ports that have a name, by number.
func (n *Names) Ports() iter.Seq2[uint32, string] { return n.orNone().ports.all() }

// OpenPorts are the names of ports that a switch can open, by number. Numbers above MaxPort are
// reserved (OpenFlow 1.0, section 5.2.1), except LOCAL, the Node's own network.
func (n *Names) OpenPorts() map[uint32]string {
	all := make(map[uint32]string)
	for no, name := range n.Ports() {
		if no >= 1 && no <= MaxPort || no == PortLocal {
			all[no] = name
		}
	}
	return all
}

// Clone is a copy. The copy of nil is an empty set.
func (n *Names) Clone() *Names {
	n = n.orNone()
	return &Names{n.tables.clone(), n.ports.clone(), n.options}
}

// numbering is a set of names with their numbers: a name has one number, a number one name.
type numbering[N cmp.Ordered] struct {
	names   map[N]string
	numbers map[string]N
}

func newNumbering[N cmp.Ordered]() numbering[N] {
	return numbering[N]{map[N]string{}, map[string]N{}}
}

func (t *numbering[N]) number(name string) (N, bool) {
	n, ok := t.numbers[name]
	return n, ok
}

func (t *numbering[N]) set(n N, name string) {
	delete(t.numbers, t.names[n])
	if old, ok := t.numbers[name]; ok {
		delete(t.names, old)
	}
	t.names[n], t.numbers[name] = name, n
}

func (t *numbering[N]) all() iter.Seq2[N, string] {
	return func(yield func(N, string) bool) {
		for _, n := range slices.Sorted(maps.Keys(t.names)) {
			if !yield(n, t.names[n]) {
				return
			}
		}
	}
}

func (t *numbering[N]) clone() (c numbering[N]) {
	c = newNumbering[N]()
	maps.Copy(c.names, t.names)
	maps.Copy(c.numbers, t.numbers)
	return c
}
