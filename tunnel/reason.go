package tunnel

// Reason says why a datagram could not be unwrapped. The list is
// closed.
type Reason uint8

// The reasons. None is no reason: all is well.
const (
	None Reason = iota
	// Short : fewer bytes than a Geneve header.
	Short
	// Version : a Geneve version other than 0.
	Version
	// HeaderLength : Opt Len reaches beyond the packet.
	HeaderLength
	// Control : the O bit, a control message.
	Control
	// Protocol : the payload is no Ethernet frame.
	Protocol
	// OptionLength : an option reaches beyond the options.
	OptionLength
	// CriticalOption : an option that must be understood, and is not.
	CriticalOption
	// Inner : the inner frame is shorter than an Ethernet header.
	Inner

	// NumReasons is how many there are, None included.
	NumReasons
)

var sentences = [NumReasons]string{
	None:           "not dropped",
	Short:          "packet from the tunnel is shorter than a Geneve header",
	Version:        "Geneve version is not 0",
	HeaderLength:   "Geneve header is longer than the packet",
	Control:        "Geneve control message, which this Node does not answer",
	Protocol:       "Geneve payload is not an Ethernet frame",
	OptionLength:   "a Geneve option is longer than the header",
	CriticalOption: "a critical Geneve option is not known here",
	Inner:          "inner frame is shorter than an Ethernet header",
}

// String is the sentence that an operator reads.
func (r Reason) String() string {
	if r >= NumReasons {
		return "unknown reason"
	}
	return sentences[r]
}
