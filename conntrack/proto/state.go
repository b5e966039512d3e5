package proto

import (
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// State is a connection's state in its protocol's state machine, and its expiry. The fields of
// other protocols are 0.
type State struct {
	Expires int64     // when the connection ends without another packet, nanoseconds
	TCP     [2]Peer   // TCP, by direction: the sending side
	ISN     uint32    // TCP, if annotated: the number of a SYN on an established connection
	Tag     [2]uint32 // SCTP, by direction: the verification tag of its packets
	Flags   Flags
	SCTP    SCTPState
}

// Flags has a protocol's flags in the lower half, and the caller's in the upper half.
type Flags uint8

// The flags of protocols.
const (
	Replied        Flags = 1 << iota // a packet of the reply direction was seen
	annotated                        // State.ISN is set, by the original side
	annotatedReply                   // … by the reply side
	pickedUp                         // began with a TCP segment that was not a SYN
	FirstFree                        // the caller's first flag
)

// Outcome is a protocol's verdict on a packet of a known connection.
type Outcome uint8

// The outcomes.
const (
	OutcomeNew         Outcome = iota // accepted, and no reply was seen yet
	OutcomeEstablished                // accepted, and a reply was seen
	OutcomeInvalid                    // not a packet of this connection
	OutcomeStartOver                  // the connection is over; the packet begins another
	OutcomeOutside                    // a TCP segment outside the window; nothing has changed
)

// Change says how much of a State an update may have changed. Each value includes the values
// before it.
type Change uint8

// The changes.
const (
	ChangedExpiry   Change = iota
	ChangedSequence        // the Sequence of the packet's direction
	ChangedWindow          // Peer.Window of the sending side
	ChangedState           // everything
)

// Progress is the part of a State that an update with ChangedSequence changes.
type Progress struct {
	Expires  int64
	Sequence Sequence // TCP, of the packet's direction
}

// Progress is the progress of a direction.
func (s *State) Progress(protocol uint8, dir int) Progress {
	p := Progress{Expires: s.Expires}
	if protocol == packet.ProtoTCP {
		p.Sequence = SequenceOf(&s.TCP[dir], &s.TCP[1-dir])
	}
	return p
}

// Machine runs the state machines of connections. Any goroutine may use it, but only
// one at a time on one State.
type Machine struct {
	Timeouts Timeouts
	// SeqCheck turns the check of TCP sequence numbers on. Without it every segment counts as
	// inside the window, and every RST as exact.
	SeqCheck atomic.Bool
}

// Touch restarts the connection's timeout.
func (s *State) Touch(d time.Duration, now int64) { s.Expires = now + int64(d) }

// markReplied sets Replied if an accepted packet has the reply direction.
func (s *State) markReplied(dir int) {
	if dir == tuple.Reply {
		s.Flags |= Replied
	}
}
