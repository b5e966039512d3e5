package workload

import (
	"strings"

	"github.com/antrail/antrail/bench/testbed"
)

// Packets is packets of one kind, and what a switch must have seen before it is measured with them.
type Packets struct {
	// Name is the name of their figure.
	Name string
	// Frame is packet 0, except for the ports that Change gives it.
	Frame []byte
	// Change says how packets differ from each other.
	Change testbed.PortChange
	// Connections is how many known connections the packets are of, in turn. If it is 0, each packet
	// is the first one of a new connection.
	Connections uint32
	// Answers are frames that answer a packet, each of which makes its connection known. For a Service
	// there is one for each endpoint.
	Answers [][]byte
	// AnswerChange says how answers of different connections differ from each other.
	AnswerChange testbed.PortChange
	// Hairpin says that packets come from the receiver and return to it. Each passes both ct zones,
	// and has an entry in either.
	Hairpin bool
}

// EntriesPerConnection is how many conntrack entries a connection has.
func (p *Packets) EntriesPerConnection() int {
	if p.Hairpin {
		return 2
	}
	return 1
}

// alone is the end of the names of all packets.
const alone = ", pipeline alone"

// ShortName is the name without the end that all names share.
func (p *Packets) ShortName() string { return strings.TrimSuffix(p.Name, alone) }

// KnownConnection is packets of one UDP connection from the sender to the receiver.
func KnownConnection() *Packets {
	return &Packets{Name: "known connection" + alone, Frame: testbed.KnownFrame(64), Connections: 1, Answers: [][]byte{testbed.AnswerFrame(64)}}
}

// ManyConnections is packets of 100,000 such connections in turn.
func ManyConnections() *Packets {
	return &Packets{
		Name: "one of 100,000 known connections" + alone, Frame: testbed.KnownFrame(64), Change: testbed.ChangePorts, Connections: 100_000,
		Answers: [][]byte{testbed.AnswerFrame(64)}, AnswerChange: testbed.ChangeSwapped,
	}
}

// NewConnections is packets that each begin such a connection.
func NewConnections() *Packets {
	return &Packets{Name: "new connection" + alone, Frame: testbed.KnownFrame(64), Change: testbed.ChangePorts}
}
