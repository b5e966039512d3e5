package conntrack

import "time"

// Timeouts is how long a connection without packets is kept, by protocol and
// state. Every packet that moves or confirms a state starts the time of the
// resulting state anew; ICMP errors and refused packets never do (CT-15).
type Timeouts struct {
	TCPSynSent     time.Duration // only one side was seen
	TCPSynReceived time.Duration // both sides, the handshake not yet done
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

// MaxTimeout is the longest timeout there may be. An arena with a connection
// that ends later was not written by Track.
const MaxTimeout = 30 * 24 * time.Hour

// DefaultTimeouts is what antrail runs with.
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

// OVSTimeouts is what Open vSwitch 3.1's userspace datapath uses, for
// comparing the two.
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

// tcp is the timeout for the states of the two sides.
func (t *Timeouts) tcp(a, b tcpState) time.Duration {
	low, high := min(a, b), max(a, b)
	switch {
	case low == tcpTimeWait:
		return t.TCPReset
	case low >= tcpFinWait2:
		return t.TCPClosed
	case low >= tcpClosing:
		return t.TCPLastAck
	case low == tcpClosed:
		return t.TCPSynSent
	case low < tcpEstablished:
		return t.TCPSynReceived
	case high >= tcpClosing:
		return t.TCPHalfClosed
	}
	return t.TCPEstablished
}

// sctp is the timeout of an association's state.
func (t *Timeouts) sctp(s sctpState) time.Duration {
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

// longest is the longest of the timeouts.
func (t *Timeouts) longest() time.Duration {
	tcp := max(t.TCPSynSent, t.TCPSynReceived, t.TCPEstablished, t.TCPHalfClosed, t.TCPLastAck, t.TCPClosed, t.TCPReset)
	sctp := max(t.SCTPOpening, t.SCTPEstablished, t.SCTPClosing, t.SCTPClosed)
	return max(tcp, sctp, t.UDPSingle, t.UDPReplied, t.ICMPSingle, t.ICMPReplied, t.OtherSingle, t.OtherReplied)
}
