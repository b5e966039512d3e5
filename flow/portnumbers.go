package flow

import (
	"strconv"
	"strings"
)

// Ports are numbers in entries and names in text. Numbers 0 to 0xfeff are ports of the switch.
// The rest is reserved and has names of its own. OpenFlow 1.0 writes the reserved ones in 16 bits
// (LOCAL is 0xfffe), later versions in 32. Entries hold 32.

// MaxPort is the largest number of a port of the switch.
const MaxPort = 0xfeff

// reservedPorts maps names to numbers. Of two names for a number, the first is printed.
var reservedPorts = []struct {
	name string
	port uint32
}{
	{"IN_PORT", PortInPort},
	{"TABLE", PortTable},
	{"NORMAL", PortNormal},
	{"FLOOD", PortFlood},
	{"ALL", PortAll},
	{"CONTROLLER", PortController},
	{"LOCAL", PortLocal},
	{"ANY", PortNone},
	{"NONE", PortNone},
}

// ReservedPort is the number of a reserved port by its name, in upper or lower case.
func ReservedPort(name string) (uint32, bool) {
	for _, r := range reservedPorts {
		if strings.EqualFold(r.name, name) {
			return r.port, true
		}
	}
	return 0, false
}

// PortOf16 widens a port number of 16 bits (OpenFlow 1.0).
func PortOf16(p uint32) uint32 {
	if p >= PortInPort&0xffff && p <= 0xffff {
		return p | 0xffff0000
	}
	return p
}

// appendPort writes a port's name, quoted where needed, or its number.
func appendPort(b []byte, port uint32, n *Names) []byte {
	for _, r := range reservedPorts {
		if r.port == port {
			return append(b, r.name...)
		}
	}
	if name := n.Port(port); name != "" {
		return appendName(b, name)
	}
	return strconv.AppendUint(b, uint64(port), 10)
}

// appendTable writes a table's name, quoted where needed, or its number.
func appendTable(b []byte, id uint8, n *Names) []byte {
	if name := n.Table(id); name != "" {
		return appendName(b, name)
	}
	return strconv.AppendUint(b, uint64(id), 10)
}

// appendName quotes every name that is not a letter followed by letters and digits, as ovs-ofctl
// does. Quoted names use JSON's escapes.
func appendName(b []byte, name string) []byte {
	if !needsQuotes(name) {
		return append(b, name...)
	}
	b = append(b, '"')
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, `\u00`...)
			b = appendPadded(b, uint64(c), 2)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

func needsQuotes(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i] | 0x20
		letter := c >= 'a' && c <= 'z'
		digit := name[i] >= '0' && name[i] <= '9'
		if !letter && (!digit || i == 0) {
			return true
		}
	}
	return name == ""
}
