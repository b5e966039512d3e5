package tunnel

// Reason says why a datagram could not be unwrapped. The list is
// closed.
type Reason uint8

// The reasons. None means that the datagram is valid.
const (
	None Reason = iota
	// Short : fewer bytes than the kind's shortest header.
	Short
	// Version : another version than the kind's 0.
	Version
	// HeaderLength : options or optional fields reach beyond the packet.
	HeaderLength
	// Control : Geneve's O bit, a control message.
	Control
	// Protocol : the payload is not an Ethernet frame.
	Protocol
	// OptionLength : a Geneve option reaches beyond the options.
	OptionLength
	// CriticalOption : a critical Geneve option that antrail does not know.
	CriticalOption
	// NoVNI : a VXLAN packet without the I flag.
	NoVNI
	// Routing : GRE bits that only the obsolete RFC 1701 defines.
	Routing
	// Checksum : GRE's own checksum is wrong.
	Checksum
	// Inner : the inner frame is shorter than an Ethernet header.
	Inner
	// Network : another virtual network than the receiver's. Unwrap does not know the receiver's
	// network, and never returns this reason.
	Network

	// NumReasons is the number of reasons, None included.
	NumReasons
)

var sentences = [NumReasons]string{
	None:           "not dropped",
	Short:          "packet from the tunnel is shorter than the tunnel's header",
	Version:        "version of the tunnel's header is not 0",
	HeaderLength:   "the tunnel's header is longer than the packet",
	Control:        "Geneve control message, which this Node does not answer",
	Protocol:       "payload of the tunnel is not an Ethernet frame",
	OptionLength:   "a Geneve option is longer than the header",
	CriticalOption: "a critical Geneve option is not known here",
	NoVNI:          "VXLAN packet without a network identifier",
	Routing:        "GRE packet with the routing of RFC 1701, which is not known here",
	Checksum:       "checksum of a GRE packet is wrong",
	Inner:          "inner frame is shorter than an Ethernet header",
	Network:        "the tunnel's virtual network is not ours",
}

// String is the sentence that an operator reads.
func (r Reason) String() string {
	if r >= NumReasons {
		return "unknown reason"
	}
	return sentences[r]
}

// Reasons are the texts of all reasons.
func Reasons() (all []string) {
	for r := None + 1; r < NumReasons; r++ {
		all = append(all, r.String())
	}
	return all
}
