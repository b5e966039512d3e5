package openflow

// Version is the version byte of a message header.
type Version uint8

// The versions that ovs-ofctl and controllers of Open vSwitch negotiate. 1.1 and 1.2 are left
// out, because no client that we know of asks for them alone.
const (
	V10 Version = 1
	V13 Version = 4
	V14 Version = 5
	V15 Version = 6
)

// Versions are all that this package speaks, from the oldest.
var Versions = []Version{V10, V13, V14, V15}

// String is the version as ovs-ofctl's -O names it.
func (v Version) String() string {
	switch v {
	case V10:
		return "OpenFlow10"
	case V13:
		return "OpenFlow13"
	case V14:
		return "OpenFlow14"
	case V15:
		return "OpenFlow15"
	}
	return "unknown version"
}

// known reports whether this package speaks the version.
func (v Version) known() bool { return v == V10 || v >= V13 && v <= V15 }
