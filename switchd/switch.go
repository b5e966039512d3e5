// Package switchd is the switch as a process has it: workers and flow entries
// (dataplane), connections in a file (conntrack), the kernel's offload, and what a
// controller can ask of all of them (door). It knows packets, entries and ports; it does
// not know Kubernetes, CNI, nftables or YAML.
//
//	process.go      the process: files, parts that run, the door
//	handover.go     another process takes the place of this one
//	takeover.go     this one takes the place of another
//	launch.go       a switch that another process launches: the launcher's side;
//	                launch_confined.go, without privilege; launch_other.go, where that cannot be
//	launched.go     … and the switch's side; await.go, of a process that is no child
//	settings.go     what it is started with; ctsettings.go, of connections
//	keep.go         entries and ports for the next process
//	switch.go       what a switch is made of; opening and closing
//	connections.go  what can be asked of connections
//	dropring.go     the last dropped packets
//	answers.go      packets that are answered in the controller's place (switchd/reject)
//	live.go         live traces: which packets to watch
//	revalidate.go   restored connections against the entries of now
//	firstpacket.go  the packet that begins a connection, composed
//	ports.go        the ports that a controller names
//	opener.go       ports by the names of links; give.go, ports that come with their descriptors
//	inherit.go      ports that the process before has handed over
//	offload.go      whether the kernel forwards established connections
//	connectionfile.go the connections' file
//	seed.go         the seed of select groups, and its file
//	socket.go       unix sockets for their owner alone
//	files.go        files for the next process, and what they are believed for
package switchd

import (
	"cmp"
	"errors"
	"os"
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
	// ConntrackFile keeps the connections. They are in memory when it is "".
	ConntrackFile string
	// Inherited is that file, open, while another process still uses it: connections are
	// there after TakeOver. The Switch closes it.
	Inherited *os.File

	// Clock is a monotonic clock in nanoseconds; the process's own when nil.
	Clock func() int64
	// Workers, Cache, SelectSeed, KeepAwake, OpenAwake, PacketIn and FlowRemoved are those of
	// dataplane.Config.
	// PacketIn gets packet-ins also of packets that the switch answers (answers.go).
	Workers, Cache int
	SelectSeed     uint64
	KeepAwake      bool
	OpenAwake      func() (*ports.Awake, error)
	PacketIn       func(*telemetry.PacketIn)
	FlowRemoved    func(*telemetry.FlowRemoved)
	// Offload has the kernel forward established connections; nil for none. Close does
	// not close it.
	Offload *Offload
}

// Switch is a switch with its connections. It implements door.Switch; Run, Poll and
// what else only its own process does come from dataplane.Switch.
type Switch struct {
	*dataplane.Switch
	table *conntrack.Table
	// arena is the file that the table lies in; nil when it lies in memory.
	arena       *arena
	awaits      bool // the table is empty until TakeOver
	clock       func() int64
	offload     *Offload
	revalidated counts
	drops       dropRing
	answerer    *reject.Answerer
	packetIns   func(*telemetry.PacketIn) // Config.PacketIn
}

var _ door.Switch = (*Switch)(nil)

// Open makes a switch without ports and entries. The error is for a file of connections
// that cannot be used, and for a Config that makes no sense.
func Open(c Config) (*Switch, error) {
	if c.Clock == nil {
		start := time.Now()
		c.Clock = func() int64 { return int64(time.Since(start)) }
	}
	s := &Switch{clock: c.Clock, packetIns: c.PacketIn, offload: cmp.Or(c.Offload, &Offload{Why: "it is off"})}
	err := s.openTable(&c)
	if err != nil {
		return nil, err
	}
	s.Switch, err = dataplane.New(dataplane.Config{
		Conntrack: s.table, Clock: c.Clock, Workers: c.Workers, SelectSeed: c.SelectSeed, Cache: c.Cache, PacketIn: s.packetIn, Answers: reject.Alone,
		FlowRemoved: c.FlowRemoved,
		Offload:     s.offload.offloader(), KeepAwake: c.KeepAwake, OpenAwake: c.OpenAwake,
	})
	if err != nil {
		return nil, errors.Join(err, s.closeTable())
	}
	s.answerer = reject.NewAnswerer(s.Switch)
	return s, nil
}

// openTable makes the connection table, in its file if there is one.
func (s *Switch) openTable(c *Config) (err error) {
	ct := c.Conntrack
	ct.Now = c.Clock
	ct.Max = cmp.Or(ct.Max, conntrack.DefaultMax())
	switch {
	case c.Inherited != nil:
		s.awaits = true
		s.table, s.arena, err = awaitTable(c.Inherited, ct)
	case c.ConntrackFile != "":
		s.table, s.arena, err = restoreTable(c.ConntrackFile, ct)
	default:
		s.table = conntrack.NewTable(ct)
	}
	if err != nil {
		return err
	}
	s.table.SetDefaultLimit(c.ZoneMax)
	for zone, n := range c.Zones {
		s.table.SetLimit(zone, n)
	}
	return nil
}

// Table is the connection table, for who tracks packets beside the switch.
func (s *Switch) Table() *conntrack.Table { return s.table }

// Clock reads the switch's clock, in nanoseconds.
func (s *Switch) Clock() int64 { return s.clock() }

// Awaits says that the connections are those of another process, and not there yet.
func (s *Switch) Awaits() bool { return s.awaits }

// TakeOver finds the connections of the process before, which has stopped using them.
func (s *Switch) TakeOver() { s.table.TakeOver() }

// ArenaFile is the open file of the connections, to be handed to another process; nil
// when they lie in memory. It stays the Switch's.
func (s *Switch) ArenaFile() *os.File {
	if s.arena == nil {
		return nil
	}
	return s.arena.file
}

// Lend says whether another process uses the connections' file by the same lock: then
// Close does not unlock it.
func (s *Switch) Lend(lent bool) {
	if s.arena != nil {
		s.arena.lent = lent
	}
}

// Close ends the switch, and then the connection table. The connections stay in their
// file.
func (s *Switch) Close() error { return errors.Join(s.Switch.Close(), s.closeTable()) }

func (s *Switch) closeTable() error {
	if s.arena == nil {
		return nil
	}
	return s.arena.close()
}

// ClassCounters implements door.Pipeline.
func (s *Switch) ClassCounters(class func(*flow.Entry) int) door.ClassCounters {
	return s.Switch.ClassCounters(class)
}

// OffloadOff implements door.Self.
func (s *Switch) OffloadOff() string { return s.offload.Why }
