package bench

import (
	"encoding/binary"
	"strings"

	"github.com/cilium/ebpf/asm"
)

// course is packets of one kind, and what a datapath must have seen before it
// is measured with them.
type course struct {
	name  string // of the figure
	frame []byte // of packet number 0, but for the ports that change gives it
	// change is how packets differ from one another.
	change renewal
	// of is how many known connections the packets are of, in turn; 0: each is
	// the first of a new one.
	of uint32
	// answers are what makes the connections known: frames from the other end,
	// or from wherever it may be. Those of numbered connections have the ports
	// that answer gives them.
	answers [][]byte
	answer  renewal
	// hairpin: packets come from the receiver, to which they return. Each passes
	// both ct zones, and has an entry in either.
	hairpin bool
}

// tracked is how many conntrack entries a connection has.
func (c *course) tracked() int {
	if c.hairpin {
		return 2
	}
	return 1
}

// short is the name without what it has in common with others.
func (c *course) short() string { return strings.TrimSuffix(c.name, ", pipeline alone") }

// change is what of a frame's ports its number determines.
type renewal int

const (
	changeNone    renewal = iota
	changePorts           // both, by renew
	changeSwapped         // both, the other way round
	changeSource          // the source port alone
)

// The source ports of changeSource.
const (
	lowestSource = 1024
	sources      = 64_000
)

// apply gives a frame the ports of the n-th connection.
func (c renewal) apply(frame []byte, n uint32) {
	switch c {
	case changePorts:
		renew(frame, n)
	case changeSwapped:
		renew(frame, n)
		src, dst := binary.BigEndian.Uint16(frame[udpAt:]), binary.BigEndian.Uint16(frame[udpAt+2:])
		binary.BigEndian.PutUint16(frame[udpAt:], dst)
		binary.BigEndian.PutUint16(frame[udpAt+2:], src)
	case changeSource:
		binary.BigEndian.PutUint16(frame[udpAt:], uint16(lowestSource+n%sources))
	}
}

// instructions are apply for the kernel; the number is in R8, the context in R6.
func (c renewal) instructions() asm.Instructions {
	switch c {
	case changePorts:
		return portInstructions()
	case changeSwapped:
		return portInstructions(
			asm.Mov.Reg(asm.R2, asm.R1),
			asm.RSh.Imm(asm.R2, 16),
			asm.LSh.Imm(asm.R1, 16),
			asm.Or.Reg(asm.R1, asm.R2))
	case changeSource:
		return append(portsAt(),
			asm.Mov.Reg(asm.R1, asm.R8),
			asm.Mod.Imm(asm.R1, sources),
			asm.Add.Imm(asm.R1, lowestSource),
			asm.HostTo(asm.BE, asm.R1, asm.Half),
			asm.StoreMem(asm.R7, udpAt, asm.R1, asm.Half))
	}
	return nil
}

// numbered are instructions that turn the frame's place in R8 into its
// connection's number: from first on, or of so many in turn when of is not 0.
func numbered(first, of uint32) (list asm.Instructions) {
	if of > 0 {
		list = append(list, asm.Mod.Imm(asm.R8, int32(of)))
	}
	return append(list, asm.Add.Imm(asm.R8, int32(first)))
}

// The figures of packets between two pods.
const (
	knownAlone = "known connection, pipeline alone"
	manyAlone  = "one of 100,000 known connections, pipeline alone"
	freshAlone = "new connection, pipeline alone"
)

// manyKnown is how many connections manyAlone is of.
const manyKnown = 100_000

// knownCourse is one UDP connection from the sender to the receiver.
func knownCourse() *course {
	return &course{name: knownAlone, frame: there(64), of: 1, answers: [][]byte{back(64)}}
}

// manyCourse is many such connections, a packet of each in turn.
func manyCourse() *course {
	return &course{name: manyAlone, frame: there(64), change: changePorts, of: manyKnown, answers: [][]byte{back(64)}, answer: changeSwapped}
}

// freshCourse is a new such connection with each packet.
func freshCourse() *course { return &course{name: freshAlone, frame: there(64), change: changePorts} }
