// Package local is a switch in this process: workers and flow entries (dataplane), connections
// (conntrack), and what a controller can ask of both (door). It needs no kernel, so it runs
// wherever Go does. Package switchd gives it ports, a file for the connections, and the
// kernel's offload.
//
//	switch.go       what a switch is made of; opening and closing
//	settings.go     what a switch process is started with; ctsettings.go, of connections
//	connections.go  what can be asked of connections
//	dropring.go     the last dropped packets
//	live.go         live traces: which packets to watch
//	revalidate.go   restored connections against the entries of now
//	firstpacket.go  the packet that begins a connection, composed
package local

import (
	"cmp"
	"errors"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/switchd/reject"
)

// Config is what a Switch is opened with.
type Config struct {
	// Conntrack sets the connection table. Its Now and Capacity are set here; Max is
	// conntrack.DefaultMax when 0.
	Conntrack conntrack.Config
	// ZoneMax is how many connections a zone may have that is not in Zones, which has
	// the limits of single zones; no limit when 0.
	ZoneMax uint32
	Zones   map[uint16]uint32
	// Place is where the connection table lies; in memory when nil. Close closes it.
	Place Place

	// Clock is a monotonic clock in nanoseconds; the process's own when nil.
	Clock func() int64
	// Workers, Cache, SelectSeed, KeepAwake, OpenAwake, PacketIn and FlowRemoved are those of
	// dataplane.Config.
	// PacketIn gets packet-ins also of packets that the switch answers.
	Workers, Cache int
	SelectSeed     uint64
	KeepAwake      bool
	OpenAwake      func() (*ports.Awake, error)
	PacketIn       func(*telemetry.PacketIn)
	FlowRemoved    func(*telemetry.FlowRemoved)
	// Offload has the kernel forward established connections; nil for none, and then
	// OffloadOff says why. Close does not close it.
	Offload    ports.Offload
	OffloadOff string
}

// Place is where a connection table lies, such as a file (switchd.ConnectionFile).
type Place interface {
	// Table makes the table. After an error nothing is to be closed.
	Table(conntrack.Config) (*conntrack.Table, error)
	// Close is called after the last use of the table.
	Close() error
}

// Switch is a switch with its connections. It implements door.Switch; Run, Poll and
// what else only its own process does come from dataplane.Switch.
type Switch struct {
	*dataplane.Switch
	table       *conntrack.Table
	place       Place // of table; nil when it lies in memory
	clock       func() int64
	offloadOff  string // Config.OffloadOff
	revalidated counts
	drops       dropRing
	answerer    *reject.Answerer
	packetIns   func(*telemetry.PacketIn) // Config.PacketIn
}

var _ door.Switch = (*Switch)(nil)

// Open makes a switch without ports and entries. The error is for a Place that cannot be
// used, and for a Config that makes no sense.
func Open(c Config) (*Switch, error) {
	if c.Clock == nil {
		start := time.Now()
		c.Clock = func() int64 { return int64(time.Since(start)) }
	}
	s := &Switch{clock: c.Clock, packetIns: c.PacketIn}
	if c.Offload == nil {
		s.offloadOff = cmp.Or(c.OffloadOff, "it is off")
	}
	err := s.openTable(&c)
	if err != nil {
		return nil, err
	}
	s.Switch, err = dataplane.New(dataplane.Config{
		Conntrack: s.table, Clock: c.Clock, Workers: c.Workers, SelectSeed: c.SelectSeed, Cache: c.Cache, PacketIn: s.packetIn, Answers: reject.Alone,
		FlowRemoved: c.FlowRemoved, Offload: c.Offload, KeepAwake: c.KeepAwake, OpenAwake: c.OpenAwake,
	})
	if err != nil {
		return nil, errors.Join(err, s.closeTable())
	}
	s.answerer = reject.NewAnswerer(s.Switch)
	return s, nil
}

// openTable makes the connection table.
func (s *Switch) openTable(c *Config) (err error) {
	ct := c.Conntrack
	ct.Now = c.Clock
	ct.Max = cmp.Or(ct.Max, conntrack.DefaultMax())
	if c.Place == nil {
		s.table = conntrack.NewTable(ct)
	} else if s.table, err = c.Place.Table(ct); err != nil {
		return err
	}
	s.place = c.Place
	s.table.SetDefaultLimit(c.ZoneMax)
	for zone, n := range c.Zones {
		s.table.SetLimit(zone, n)
	}
	return nil
}

// Table is the connection table. Callers may track packets in it beside the switch.
func (s *Switch) Table() *conntrack.Table { return s.table }

// Clock reads the switch's clock, in nanoseconds.
func (s *Switch) Clock() int64 { return s.clock() }

// Close ends the switch, and then closes the place of its connections, which keeps them.
func (s *Switch) Close() error { return errors.Join(s.Switch.Close(), s.closeTable()) }

func (s *Switch) closeTable() error {
	if s.place == nil {
		return nil
	}
	return s.place.Close()
}

// ClassCounters implements door.Pipeline.
func (s *Switch) ClassCounters(class func(*flow.Entry) int) door.ClassCounters {
	return s.Switch.ClassCounters(class)
}

// OffloadOff implements door.Self.
func (s *Switch) OffloadOff() string { return s.offloadOff }

// packetIn answers a packet-in that asks for an answer (switchd/reject), whether a controller
// is connected or not, and hands it on. Packet-ins come by queues of bounded length, so
// workers never wait.
func (s *Switch) packetIn(pi *telemetry.PacketIn) {
	s.answerer.PacketIn(pi)
	if s.packetIns != nil {
		s.packetIns(pi)
	}
}

// Answers implements door.Packets.
func (s *Switch) Answers() door.AnswerCounters { return s.answerer.Counters() }

// TooLong answers the sender of a frame that is longer than mtu, as a router does.
func (s *Switch) TooLong(frame []byte, mtu int) { s.answerer.TooLong(frame, mtu) }
