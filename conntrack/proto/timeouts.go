package proto

import "time"

// Timeouts is how long a connection without packets is kept, by protocol and state. Each accepted
// packet restarts the timeout of its new state. ICMP errors and invalid packets do not (CT-15).
type Timeouts struct {
	TCPSynSent     time.Duration // only one side was seen
	TCPSynReceived time.Duration // both sides, the handshake is unfinished
	TCPEstablished time.Duration
	TCPHalfClosed  time.Duration // one FIN
	TCPLastAck     time.Duration // both FINs, not both acknowledged
	TCPClosed      time.Duration
	TCPReset       time.Duration

	UDPSingle  time.Duration // packets one way only
	UDPReplied time.Duration

	ICMPSingle  time.Duration
	ICMPReplied time.Duration

	SCTPOpening     time.Duration
	SCTPEstablished time.Duration
	SCTPClosing     time.Duration
	SCTPClosed      time.Duration

	OtherSingle  time.Duration // any other protocol
	OtherReplied time.Duration
}

// MaxTimeout is the longest timeout that a table may have. A stored connection that expires later
// was not written by this program.
const MaxTimeout = 30 * 24 * time.Hour

// DefaultTimeouts is antrail's timeouts.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		TCPSynSent:     30 * time.Second,
		TCPSynReceived: 60 * time.Second,
		TCPEstablished: 24 * time.Hour,
		TCPHalfClosed:  15 * time.Minute,
		TCPLastAck:     45 * time.Second,
		TCPClosed:      30 * time.Second,
		TCPReset:       10 * time.Second,

		UDPSingle:  30 * time.Second,
		UDPReplied: 2 * time.Minute, // RFC 4787, REQ-5

		ICMPSingle:  60 * time.Second,
		ICMPReplied: 30 * time.Second,

		SCTPOpening:     3 * time.Second,
		SCTPEstablished: 210 * time.Second,
		SCTPClosing:     3 * time.Second,
		SCTPClosed:      10 * time.Second,

		OtherSingle:  60 * time.Second,
		OtherReplied: 2 * time.Minute,
	}
}

// OVSTimeouts is the timeouts of the userspace datapath of Open vSwitch 3.1, for comparison.
func OVSTimeouts() Timeouts {
	return Timeouts{
		TCPSynSent:     30 * time.Second,
		TCPSynReceived: 30 * time.Second,
		TCPEstablished: 24 * time.Hour,
		TCPHalfClosed:  15 * time.Minute,
		TCPLastAck:     45 * time.Second,
		TCPClosed:      30 * time.Second,
		TCPReset:       30 * time.Second,

		UDPSingle:  60 * time.Second,
		UDPReplied: 30 * time.Second,

		ICMPSingle:  60 * time.Second,
		ICMPReplied: 30 * time.Second,

		SCTPOpening:     60 * time.Second,
		SCTPEstablished: 30 * time.Second,
		SCTPClosing:     30 * time.Second,
		SCTPClosed:      30 * time.Second,

		OtherSingle:  60 * time.Second,
		OtherReplied: 30 * time.Second,
	}
}

// OfTCP is the timeout of a TCP connection whose sides are in two states.
func (t *Timeouts) OfTCP(a, b TCPState) time.Duration {
	low, high := min(a, b), max(a, b)
	switch {
	case low == TCPTimeWait:
		return t.TCPReset
	case low >= TCPFinWait2:
		return t.TCPClosed
	case low >= TCPClosing:
		return t.TCPLastAck
	case low == TCPClosed:
		return t.TCPSynSent
	case low < TCPEstablished:
		return t.TCPSynReceived
	case high >= TCPClosing:
		return t.TCPHalfClosed
	}
	return t.TCPEstablished
}

// ofSCTP is the timeout of an association in a state.
func (t *Timeouts) ofSCTP(s SCTPState) time.Duration {
	switch s {
	case sctpCookieWait, sctpCookieEchoed, sctpHeartbeatSent:
		return t.SCTPOpening
	case sctpEstablished:
		return t.SCTPEstablished
	case sctpShutdownSent, sctpShutdownReceived, sctpShutdownAckSent:
		return t.SCTPClosing
	}
	return t.SCTPClosed
}

// Longest is the longest of the timeouts.
func (t *Timeouts) Longest() time.Duration {
	tcp := max(t.TCPSynSent, t.TCPSynReceived, t.TCPEstablished, t.TCPHalfClosed, t.TCPLastAck, t.TCPClosed, t.TCPReset)
	sctp := max(t.SCTPOpening, t.SCTPEstablished, t.SCTPClosing, t.SCTPClosed)
	return max(tcp, sctp, t.UDPSingle, t.UDPReplied, t.ICMPSingle, t.ICMPReplied, t.OtherSingle, t.OtherReplied)
}
