// Package local is a switch in this process: workers and flow entries (dataplane), connections
// (conntrack), and the requests of a controller about both (door). It needs no kernel, so it runs
// wherever Go does. Package switchd gives it ports, a file for the connections, and the kernel's
// offload.
//
//	switch.go       the parts of a switch; opening and closing
//	settings.go     the settings of a switch process; ctsettings.go, of connections
//	connections.go  requests about connections
//	dropring.go     the last dropped packets
//	live.go         live traces: which packets to watch
//	revalidate.go   restored connections checked against the current entries
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

// Config has the options of a Switch.
type Config struct {
	// Conntrack configures the connection table. Open sets its Now and Capacity. The default of
	// Max is conntrack.DefaultMax.
	Conntrack conntrack.Config
	// ZoneMax is how many connections a zone may have that is not in Zones, which has the limits
	// of single zones; 0 means no limit.
	ZoneMax uint32
	Zones   map[uint16]uint32
	// Place is the place of the connection table; nil is memory. Close closes it.
	Place Place

	// Clock is a monotonic clock in nanoseconds; nil is the process's own.
	Clock func() int64
	// Workers, Cache, SelectSeed, KeepAwake, OpenAwake, PacketIn and FlowRemoved are those of
	// dataplane.Config. PacketIn gets all packet-ins, also those that the switch answers.
	Workers, Cache int
	SelectSeed     uint64
	KeepAwake      bool
	OpenAwake      func() (*ports.Awake, error)
	PacketIn       func(*telemetry.PacketIn)
	FlowRemoved    func(*telemetry.FlowRemoved)
	// Offload makes the kernel forward established connections. If it is nil, OffloadOff is the
	// reason. Close does not close it.
	Offload    ports.Offload
	OffloadOff string
}

// Place is the place of a connection table, such as a file (switchd.ConnectionFile).
type Place interface {
	// Table makes the table. After an error there is nothing to close.
	Table(conntrack.Config) (*conntrack.Table, error)
	// Close is called after the last use of the table.
	Close() error
}

// Switch is a switch with its connections. It implements door.Switch. Run, Poll and other methods
// for its own process come from dataplane.Switch.
type Switch struct {
	*dataplane.Switch
	table       *conntrack.Table
	place       Place // of table; nil if it is in memory
	clock       func() int64
	offloadOff  string // Config.OffloadOff
	revalidated counts
	drops       dropRing
	answerer    *reject.Answerer
	packetIns   func(*telemetry.PacketIn) // Config.PacketIn
}

var _ door.Switch = (*Switch)(nil)

// Open makes a switch without ports and entries. It returns an error for an unusable Place and
// for an invalid Config.
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

// Table is the connection table. Callers outside the switch may track packets in it, too.
func (s *Switch) Table() *conntrack.Table { return s.table }

// Clock reads the switch's clock, in nanoseconds.
func (s *Switch) Clock() int64 { return s.clock() }

// Close ends the switch, and then closes the place of its connections, which stay there.
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

// packetIn answers a packet-in that asks for an answer (switchd/reject), with or without a
// controller, and passes it on. Packet-ins come through queues of bounded length, so workers
// never wait.
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
