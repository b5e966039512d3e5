package conntrack

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
)

// SCTP: one state per association (RFC 9260, section 4, as seen from between
// the two ends; the states are those of Linux), moved by control chunks, and
// the verification tag that each direction must carry (section 8.5). Chunks
// that carry a user's bytes move nothing.
//
// INIT in either direction announces the tag of packets that answer it; so a
// tag is learned from the chunk and not from the common header, except for
// HEARTBEAT, which may be the first packet seen of a path.

// sctpState is the state of an association.
type sctpState uint8

const (
	sctpClosed sctpState = iota
	sctpCookieWait
	sctpCookieEchoed
	sctpEstablished
	sctpShutdownSent     // by the original direction
	sctpShutdownReceived // … by the reply direction
	sctpShutdownAckSent
	sctpHeartbeatSent // seen only a HEARTBEAT
)

// reflected is the T bit of ABORT and SHUTDOWN COMPLETE: the sender had no
// association and sent the tag of the packet it answers.
const reflected = 1

// opensSCTP says whether a packet may begin an association: INIT, which has
// tag 0 and is alone, or HEARTBEAT on a further path of one.
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

// openSCTP begins tracking with the packet that opensSCTP accepted.
func (e *entry) openSCTP(h packet.SCTP) {
	typ, _, value, _, _ := h.Chunks().Next()
	if typ == packet.SCTPInit {
		e.state = sctpCookieWait
		e.tag[reply] = binary.BigEndian.Uint32(value)
		return
	}
	e.state = sctpHeartbeatSent
	e.tag[original] = h.VerificationTag()
}

// updateSCTP runs every chunk of a packet in direction dir. A packet with a
// wrong tag changes nothing.
func (t *Table) updateSCTP(e *entry, dir int, h packet.SCTP, now int64) outcome {
	typ, flags, _, _, ok := h.Chunks().Next()
	switch {
	case !ok || !e.rightTag(dir, typ, flags, h.VerificationTag()):
		return outcomeInvalid
	case e.state == sctpClosed && opensSCTP(h):
		return outcomeStartOver
	}
	for chunks := h.Chunks(); ; {
		typ, _, value, rest, ok := chunks.Next()
		if !ok {
			break
		}
		e.learnTag(dir, typ, value, h.VerificationTag())
		e.state = e.state.after(typ, dir)
		chunks = rest
	}
	e.saw(dir)
	t.touch(e, t.timeouts.sctp(e.state), now)
	return e.outcome()
}

// rightTag checks the verification tag of a packet by its first chunk.
func (e *entry) rightTag(dir int, typ, flags uint8, tag uint32) bool {
	switch typ {
	case packet.SCTPInit:
		return tag == 0
	case packet.SCTPAbort, packet.SCTPShutdownComplete:
		if flags&reflected != 0 {
			return tag == e.tag[1-dir]
		}
	case packet.SCTPHeartbeat, packet.SCTPHeartbeatAck:
		if e.tag[dir] == 0 {
			return true
		}
	}
	return tag == e.tag[dir]
}

// learnTag takes over the tag that a chunk announces.
func (e *entry) learnTag(dir int, typ uint8, value []byte, tag uint32) {
	switch typ {
	case packet.SCTPInit, packet.SCTPInitAck:
		if len(value) >= 4 && e.state <= sctpCookieWait {
			e.tag[1-dir] = binary.BigEndian.Uint32(value)
		}
	case packet.SCTPHeartbeat, packet.SCTPHeartbeatAck:
		if e.tag[dir] == 0 {
			e.tag[dir] = tag
		}
	}
}

// after is the state after a chunk in direction dir.
func (s sctpState) after(typ uint8, dir int) sctpState {
	switch typ {
	case packet.SCTPAbort:
		return sctpClosed
	case packet.SCTPCookieEcho:
		if s == sctpCookieWait {
			return sctpCookieEchoed
		}
	case packet.SCTPCookieAck:
		if s == sctpCookieEchoed && dir == reply {
			return sctpEstablished
		}
	case packet.SCTPHeartbeatAck:
		if s == sctpHeartbeatSent && dir == reply {
			return sctpEstablished
		}
	}
	return s.afterShutdown(typ, dir)
}

// afterShutdown is the part of after that ends an association.
func (s sctpState) afterShutdown(typ uint8, dir int) sctpState {
	switch {
	case typ == packet.SCTPShutdown && s == sctpEstablished && dir == original:
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
