package proto

import (
	"encoding/binary"

	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// SCTP: an association has one state, as seen from between its two ends (RFC 9260, section 4).
// The states are those of Linux. Control chunks change the state, DATA chunks do not. Each
// direction must carry its verification tag (section 8.5).
//
// An INIT announces the tag of the packets that answer it. So a tag is learned from the chunk,
// not from the common header. HEARTBEAT is the exception, because it may be the first packet of a
// path.

// SCTPState is the state of an association.
type SCTPState uint8

const (
	sctpClosed SCTPState = iota
	sctpCookieWait
	sctpCookieEchoed
	sctpEstablished
	sctpShutdownSent     // by the original direction
	sctpShutdownReceived // … by the reply direction
	sctpShutdownAckSent
	sctpHeartbeatSent // seen only a HEARTBEAT
)

// String is the state's name in a dump.
func (s SCTPState) String() string {
	return [...]string{
		"CLOSED", "COOKIE_WAIT", "COOKIE_ECHOED", "ESTABLISHED",
		"SHUTDOWN_SENT", "SHUTDOWN_RECD", "SHUTDOWN_ACK_SENT", "HEARTBEAT_SENT",
	}[s]
}

// Valid says whether s is one of the states.
func (s SCTPState) Valid() bool { return s <= sctpHeartbeatSent }

// reflected is the T bit of ABORT and SHUTDOWN COMPLETE. The sender had no association, and sent
// the tag of the packet that it answers.
const reflected = 1

// opensSCTP says whether a packet may begin an association. An INIT may, if it has tag 0 and
// is alone. A HEARTBEAT may, because it may come by a new path of an association.
func opensSCTP(h packet.SCTP) bool {
	typ, _, value, rest, ok := h.Chunks().Next()
	switch {
	case !ok:
		return false
	case typ == packet.SCTPInit:
		return h.VerificationTag() == 0 && len(value) >= 4 && len(rest) == 0
	}
	return typ == packet.SCTPHeartbeat
}

// openSCTP sets the state by the first packet. opensSCTP has accepted that packet.
func (s *State) openSCTP(h packet.SCTP) {
	typ, _, value, _, _ := h.Chunks().Next()
	if typ == packet.SCTPInit {
		s.SCTP = sctpCookieWait
		s.Tag[tuple.Reply] = binary.BigEndian.Uint32(value)
		return
	}
	s.SCTP = sctpHeartbeatSent
	s.Tag[tuple.Original] = h.VerificationTag()
}

// updateSCTP runs the state machine for each chunk of a packet in direction dir. A packet
// with a wrong tag changes nothing.
func (m *Machine) updateSCTP(s *State, dir int, h packet.SCTP, now int64) (Outcome, Change) {
	had, state, tags := s.Flags, s.SCTP, s.Tag
	typ, flags, _, _, ok := h.Chunks().Next()
	switch {
	case !ok || !s.rightTag(dir, typ, flags, h.VerificationTag()):
		return OutcomeInvalid, ChangedExpiry
	case s.SCTP == sctpClosed && opensSCTP(h):
		return OutcomeStartOver, ChangedState
	}
	for chunks := h.Chunks(); ; {
		typ, _, value, rest, ok := chunks.Next()
		if !ok {
			break
		}
		s.learnTag(dir, typ, value, h.VerificationTag())
		s.SCTP = s.SCTP.after(typ, dir)
		chunks = rest
	}
	s.markReplied(dir)
	s.Touch(m.Timeouts.ofSCTP(s.SCTP), now)
	if s.Flags != had || s.SCTP != state || s.Tag != tags {
		return s.Outcome(), ChangedState
	}
	return s.Outcome(), ChangedExpiry
}

// rightTag checks the verification tag of a packet by its first chunk.
func (s *State) rightTag(dir int, typ, flags uint8, tag uint32) bool {
	switch typ {
	case packet.SCTPInit:
		return tag == 0
	case packet.SCTPAbort, packet.SCTPShutdownComplete:
		if flags&reflected != 0 {
			return tag == s.Tag[1-dir]
		}
	case packet.SCTPHeartbeat, packet.SCTPHeartbeatAck:
		if s.Tag[dir] == 0 {
			return true
		}
	}
	return tag == s.Tag[dir]
}

// learnTag stores the tag that a chunk announces.
func (s *State) learnTag(dir int, typ uint8, value []byte, tag uint32) {
	switch typ {
	case packet.SCTPInit, packet.SCTPInitAck:
		if len(value) >= 4 && s.SCTP <= sctpCookieWait {
			s.Tag[1-dir] = binary.BigEndian.Uint32(value)
		}
	case packet.SCTPHeartbeat, packet.SCTPHeartbeatAck:
		if s.Tag[dir] == 0 {
			s.Tag[dir] = tag
		}
	}
}

// after is the state after a chunk in direction dir.
func (s SCTPState) after(typ uint8, dir int) SCTPState {
	switch typ {
	case packet.SCTPAbort:
		return sctpClosed
	case packet.SCTPCookieEcho:
		if s == sctpCookieWait {
			return sctpCookieEchoed
		}
	case packet.SCTPCookieAck:
		if s == sctpCookieEchoed && dir == tuple.Reply {
			return sctpEstablished
		}
	case packet.SCTPHeartbeatAck:
		if s == sctpHeartbeatSent && dir == tuple.Reply {
			return sctpEstablished
		}
	}
	return s.afterShutdown(typ, dir)
}

// afterShutdown is after for the chunks that end an association.
func (s SCTPState) afterShutdown(typ uint8, dir int) SCTPState {
	switch {
	case typ == packet.SCTPShutdown && s == sctpEstablished && dir == tuple.Original:
		return sctpShutdownSent
	case typ == packet.SCTPShutdown && s == sctpEstablished:
		return sctpShutdownReceived
	case typ == packet.SCTPShutdownAck && (s == sctpShutdownSent || s == sctpShutdownReceived):
		return sctpShutdownAckSent
	case typ == packet.SCTPShutdownComplete && s == sctpShutdownAckSent:
		return sctpClosed
	}
	return s
}
