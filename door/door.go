// Package door is where a controller meets a switch: what can be asked of a switch,
// and told to it, by an agent, a command or a person.
//
// A Switch is the same whether it runs in this process (package local) or in another
// one. The methods of a Switch have the types of dataplane and conntrack, because
// whoever dumps, traces or explains needs just these values.
//
//	door.go           the interface
//	bundletext.go     a change of the pipeline as text
//	bundlechunk.go    its entries, parsed side by side
//	api.go            paths and bodies of the API
//	server.go         answers for a switch
//	httpjson.go       how requests are read and answers written
//	linestream.go     answers that come in lines
//	give.go, talk.go  ports with their descriptors; messages that carry them
//	helddescriptors.go descriptors for the next controller
//	descriptors_unix.go, descriptors_other.go  how descriptors cross to another process, and where they do not
//	controller.go     who the controller is, and what it is told
//	classes.go        sums over entries for callers in other processes
//	client.go         a switch in another process: pipeline and ports
//	clientpackets.go  its packets, and the switch itself
//	clientconns.go    its connections
//	clientcontrol.go  being its controller
//	end.go            a controller that ends the switch
package door

import (
	"context"
	"iter"
	"net/netip"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/reassembly"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports"
)

// Switch is a switch, here or in another process. Any goroutine may call its methods.
type Switch interface {
	Pipeline
	Ports
	Packets
	Self
	// Connections are the tracked connections.
	Connections() Connections
}

// Pipeline is the flow entries of a switch, with groups, meters and tables. What the
// methods return belongs to the caller, but nobody writes to an entry.
type Pipeline interface {
	// Names are those of tables and ports; nil before the first bundle.
	Names() *flow.Names
	// First is the table that packets enter at.
	First() uint8
	// Generation counts the changes of the pipeline, and Learnings those of learned
	// entries.
	Generation() uint64
	Learnings() uint64
	// Flows are all entries, learned ones too: by table, then by falling priority, then
	// as installed. FlowsIn are those of one table.
	Flows() []telemetry.FlowStats
	FlowsIn(table uint8) []telemetry.FlowStats
	Groups() []telemetry.GroupStats
	Meters() []telemetry.MeterStats
	Tables() []telemetry.TableStats
	// ClassCounters begins sums over the entries by a class, a small number from 0.
	ClassCounters(class func(*flow.Entry) int) ClassCounters
	// Apply changes the pipeline, whole or not at all. The error names the entry that is
	// wrong. Neither the entries nor their actions are written from then on.
	Apply(*flow.Bundle) error
	// Relearn installs entries that packets have learned, with their ages.
	Relearn([]telemetry.Learned) error
}

// ClassCounters are sums over the entries of one generation. They are for one goroutine.
type ClassCounters interface {
	// Generation is the pipeline's that they are of.
	Generation() uint64
	// Sum is the sums by class, good until the next call. It is not ok when the pipeline
	// has another generation by now.
	Sum() (counters []dataplane.ClassSum, ok bool)
}

// Ports are the ports of a switch that are there already.
type Ports interface {
	Ports() []telemetry.PortStats
	// DropSample is the last packet that a port dropped for a reason of its own.
	DropSample(no uint32, reason string) ports.DropSample
	// SecurePort says what a port may send from now on.
	SecurePort(no uint32, security l2.PortSecurity) error
	// ConfigurePort changes what a controller sets of a port: whether frames pass, and floods.
	ConfigurePort(no uint32, c telemetry.PortConfig) error
	// RemovePort closes a port. The error is for a number that no port has.
	RemovePort(no uint32) error
	// LearnedMACs are the addresses that NORMAL has learned.
	LearnedMACs() []telemetry.LearnedMAC
	// MACTableStats counts them.
	MACTableStats() telemetry.MACTableStats
	// FlushMACs forgets them.
	FlushMACs() error
}

// Packets is what becomes of packets.
type Packets interface {
	// Trace walks a packet that nobody sent: nothing is sent, counted or learned.
	Trace(*telemetry.TraceRequest) (*telemetry.Trace, error)
	// TraceLive watches the walks of real packets, from now until Close.
	TraceLive(*LiveRequest) (Live, error)
	// PacketOut runs actions on a frame as if it had entered at inPort.
	PacketOut(inPort uint32, actions []flow.Action, frame []byte) error
	// Resume goes on with a packet that an entry has paused.
	Resume(*telemetry.Paused) error
	// DropsSince are the dropped packets that are kept from a number on, oldest first; they
	// are numbered from 0 since the switch began. next is the number to ask with next
	// time: if next-no is more than len(all), the others came too fast for the caller.
	// missed is how many packets the switch had no room to number, since it began.
	DropsSince(no uint64) (all []telemetry.DroppedPacket, next, missed uint64)
	// PacketCounters are what became of all packets, at one moment; the workers stand still
	// meanwhile. RunningPacketCounters differ by the packets under way.
	PacketCounters() *telemetry.SwitchPacketCounters
	RunningPacketCounters() *telemetry.SwitchPacketCounters
	// Answers counts what became of packets that the switch answers in the controller's
	// place.
	Answers() AnswerCounters
}

// AnswerCounters counts answered packets by the reason for the answer.
type AnswerCounters struct {
	Service Answers `json:"service"` // their Service has no endpoint
	Policy  Answers `json:"policy"`  // a rule rejects them
	Length  Answers `json:"length"`  // they are too long for the tunnel
}

// Answers counts what became of packets that were to be answered.
type Answers struct {
	Answered uint64 `json:"answered"`
	Silent   uint64 `json:"silent"`  // no answer is allowed
	Limited  uint64 `json:"limited"` // beyond the rate of answers
	Failed   uint64 `json:"failed"`  // the switch did not take the answer
}

// Self is what a switch does beside the packets.
type Self interface {
	Workers() []telemetry.WorkerStats
	Sleeps() uint64
	Cache() telemetry.CacheStats
	CacheShapes() []telemetry.CacheShape
	OffloadStats() telemetry.OffloadStats
	// OffloadOff says why the kernel forwards no connections by itself; "" when it does.
	OffloadOff() string
	Fragments() reassembly.Stats
}

// Connections are the tracked connections of a switch.
type Connections interface {
	Stats() conntrack.Stats
	Zones() []conntrack.ZoneLimit
	// Limits are the limits of zones.
	Limits() ZoneLimits
	Ports() []conntrack.PortStats
	// Dump are the connections that f takes, in no useful order.
	Dump(f conntrack.Filter) iter.Seq[conntrack.Conn]
	// Flush removes the connections that f takes, and tells how many they were.
	Flush(f conntrack.Filter) int
	// Purge removes the connections of addresses and paths.
	Purge(*Purge)
	// Shield keeps endpoints from beginning connections by what they answer, until a
	// moment of the switch's clock.
	Shield(endpoints []netip.AddrPort, until int64)
	// Revalidate walks the first packet of each connection again, and removes those that
	// the entries of now do not let through to where they lead. The error is ctx's.
	Revalidate(ctx context.Context, n *NodePorts) error
	// Revalidated counts what became of the connections that were revalidated.
	Revalidated() [Outcomes]uint64
}

// ZoneLimits is how many connections zones may have.
type ZoneLimits struct {
	// Default is of a zone without a limit of its own; 0 for no limit.
	Default uint32 `json:"default"`
	// Own are the zones that have one, by number.
	Own []conntrack.ZoneLimit `json:"own,omitempty"`
}

// Purge names connections that are to be removed.
type Purge struct {
	// Addrs are addresses all of whose connections go.
	Addrs []netip.Addr
	// Paths are ways all of whose connections go.
	Paths []Path
}

// Path is the way of connections by a Service: to its address and port, and on to an
// endpoint. If Service has no valid address, connections to its port of any address
// go.
type Path struct {
	Proto             uint8
	Service, Endpoint netip.AddrPort
}

// NodePorts are the two ports of a Node that are no pod's, and what is known of the
// packets that enter there.
type NodePorts struct {
	Gateway, Tunnel uint32 // port numbers
	GatewayMAC      [6]byte
	// FarMAC is the source of frames that come from other Nodes.
	FarMAC [6]byte
	// Addresses are the gateway's. Packets that the Node itself sends from one of them
	// carry Mark.
	Addresses []netip.Addr
	Mark      uint32
}

// Outcome is what becomes of a connection that is revalidated.
type Outcome uint8

// The outcomes. All but Kept and OtherZone remove the connection.
const (
	Kept      Outcome = iota
	OtherZone         // of a zone that packets do not come to first
	Denied            // its packet does not come through
	Moved             // it leads to another endpoint, or to none
	Unknown           // nobody may send from where it came in
	Outcomes
)

// LiveRequest says which packets to watch. Everything that is given has to hold.
type LiveRequest struct {
	// InPort is where a packet enters; 0 for any port.
	InPort uint32
	// Filters are tcpdump expressions on the packet as it enters.
	Filters []string
	// Either is an end that a packet comes from or goes to.
	Either *End
	// To are the addresses that a packet leaves for, if it leaves.
	To []netip.Addr
	// Through is a port by which a packet enters or leaves; 0 for any.
	Through uint32
	// Tables are those of which a packet enters one. The walk has the packet as it is there.
	Tables []uint8
	// DroppedOnly wants packets of which nothing came.
	DroppedOnly bool
	// Count, Begin, Wait and FirstID are those of dataplane.LiveRequest.
	Count, Begin int
	Wait         time.Duration
	FirstID      uint64
}

// End is one end of connections.
type End struct {
	// Port is where its packets enter; 0 if they come from another Node.
	Port uint32
	// IPs are its addresses, and Services those of Services that it may serve.
	IPs, Services []netip.Addr
}

// Live is a live trace under way. Next is for one goroutine.
type Live interface {
	// Next waits for a walk. The error is io.EOF after as many as were asked for, or
	// that of ctx.
	Next(ctx context.Context) (*telemetry.Trace, error)
	Counts() telemetry.LiveCounts
	Close()
}
