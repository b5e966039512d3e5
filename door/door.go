// Package door is the interface between a controller and a switch. The controller may be an
// agent, a command or a person.
//
// A Switch has the same methods in this process (package local) and in another one. They use
// types of dataplane and conntrack, because dumps, traces and explanations need exactly these
// values.
//
//	door.go           the interface
//	bundletext.go     a change of the pipeline as text
//	bundlechunk.go    its entries, parsed in parallel
//	api.go            paths and bodies of the API
//	server.go         answers for a switch
//	httpjson.go       how requests are read and answers written
//	linestream.go     answers as a stream of lines
//	give.go, talk.go  ports with their descriptors; messages that carry them
//	helddescriptors.go descriptors for the next controller
//	descriptors_unix.go, descriptors_other.go  descriptors that cross to another process, and systems without that
//	controller.go     the connected controller, and its events
//	classes.go        sums over entries for callers in other processes
//	client.go         a switch in another process: pipeline and ports
//	clientpackets.go  its packets, and the switch itself
//	clientconns.go    its connections
//	clientcontrol.go  a client as the controller
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

// Pipeline has the flow entries of a switch, with groups, meters and tables. Results belong to
// the caller, but entries must not be changed.
type Pipeline interface {
	// Names are those of tables and ports; nil before the first bundle.
	Names() *flow.Names
	// First is the number of the table that packets enter at.
	First() uint8
	// Generation counts the changes of the pipeline, and Learnings those of learned
	// entries.
	Generation() uint64
	Learnings() uint64
	// Flows are all entries, also learned ones, by table, then by descending priority, then in
	// the order of installation. FlowsIn are those of one table.
	Flows() []telemetry.FlowStats
	FlowsIn(table uint8) []telemetry.FlowStats
	Groups() []telemetry.GroupStats
	Meters() []telemetry.MeterStats
	Tables() []telemetry.TableStats
	// ClassCounters begins sums over the entries by a class, a small number from 0.
	ClassCounters(class func(*flow.Entry) int) ClassCounters
	// Apply changes the pipeline, whole or not at all. The error names the wrong entry. The
	// caller must not change the entries or their actions afterwards.
	Apply(*flow.Bundle) error
	// Relearn installs entries that packets have learned, with their ages.
	Relearn([]telemetry.Learned) error
}

// ClassCounters has sums over the entries of one generation. Only one goroutine may use it.
type ClassCounters interface {
	// Generation is the pipeline's generation of the sums.
	Generation() uint64
	// Sum has the sums by class, valid until the next call. ok is false if the pipeline has a
	// newer generation.
	Sum() (counters []dataplane.ClassSum, ok bool)
}

// Ports are the existing ports of a switch.
type Ports interface {
	Ports() []telemetry.PortStats
	// DropSample is the last packet that a port dropped for a reason of its own.
	DropSample(no uint32, reason string) ports.DropSample
	// SecurePort limits the packets that a port may send from now on.
	SecurePort(no uint32, security l2.PortSecurity) error
	// ConfigurePort changes a port's settings by the controller: whether frames pass, and floods.
	ConfigurePort(no uint32, c telemetry.PortConfig) error
	// RemovePort closes a port. It returns an error if no port has the number.
	RemovePort(no uint32) error
	// LearnedMACs are the addresses that NORMAL has learned.
	LearnedMACs() []telemetry.LearnedMAC
	// MACTableStats counts them.
	MACTableStats() telemetry.MACTableStats
	// FlushMACs removes them.
	FlushMACs() error
}

// Packets has the requests about packets.
type Packets interface {
	// Trace walks a made-up packet. It sends, counts and learns nothing.
	Trace(*telemetry.TraceRequest) (*telemetry.Trace, error)
	// TraceLive watches the walks of real packets, from now until Close.
	TraceLive(*LiveRequest) (Live, error)
	// PacketOut runs actions on a frame as if it had entered at inPort.
	PacketOut(inPort uint32, actions []flow.Action, frame []byte) error
	// Resume continues a packet that an entry has paused.
	Resume(*telemetry.Paused) error
	// DropsSince are the stored dropped packets from a number on, oldest first. Numbers begin
	// at 0 when the switch starts. Next is the number for the next call. If Next-no is more
	// than len(Packets), the switch no longer has the others. Missed is the number of packets
	// since the start that the switch had no room to number.
	DropsSince(no uint64) DropsAnswer
	// PacketCounters counts the outcomes of all packets at one moment; the workers stop
	// meanwhile. RunningPacketCounters differs by the packets under way.
	PacketCounters() *telemetry.SwitchPacketCounters
	RunningPacketCounters() *telemetry.SwitchPacketCounters
	// Answers counts packets that the switch answers in the controller's place, by outcome.
	Answers() AnswerCounters
}

// AnswerCounters counts answered packets by the reason for the answer.
type AnswerCounters struct {
	Service Answers `json:"service"` // their Service has no endpoint
	Policy  Answers `json:"policy"`  // a rule rejects them
	Length  Answers `json:"length"`  // they are too long for the tunnel
}

// Answers counts packets to be answered, by outcome.
type Answers struct {
	Answered uint64 `json:"answered"`
	Silent   uint64 `json:"silent"`  // no answer is allowed
	Limited  uint64 `json:"limited"` // beyond the rate of answers
	Failed   uint64 `json:"failed"`  // the switch did not accept the answer
}

// Self has the requests about the switch itself.
type Self interface {
	Workers() []telemetry.WorkerStats
	Sleeps() uint64
	Cache() telemetry.CacheStats
	CacheShapes() []telemetry.CacheShape
	OffloadStats() telemetry.OffloadStats
	// OffloadOff is the reason why the kernel offloads no connections; "" if it does.
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
	// Dump are the connections that match f, in no order.
	Dump(f conntrack.Filter) iter.Seq[conntrack.Conn]
	// Flush removes the connections that match f, and returns their number.
	Flush(f conntrack.Filter) int
	// Purge removes the connections of addresses and paths.
	Purge(*Purge)
	// Shield stops endpoints from beginning connections by their replies, until a time of the
	// switch's clock.
	Shield(endpoints []netip.AddrPort, until int64)
	// Revalidate walks the first packet of each connection again. It removes connections that the
	// current entries do not allow to their destination. The error is ctx's.
	Revalidate(ctx context.Context, n *NodePorts) error
	// Revalidated counts the revalidated connections by outcome.
	Revalidated() [Outcomes]uint64
}

// ZoneLimits are the limits of connections by zone.
type ZoneLimits struct {
	// Default is for a zone without its own limit; 0 for no limit.
	Default uint32 `json:"default"`
	// Own are the zones with their own limit, by number.
	Own []conntrack.ZoneLimit `json:"own,omitempty"`
}

// Purge names connections to remove.
type Purge struct {
	// Addrs are addresses whose connections are all removed.
	Addrs []netip.Addr
	// Paths are ways whose connections are all removed.
	Paths []Path
}

// Path is the way of connections by a Service: to its address and port, and on to an endpoint. If
// Service has no valid address, it covers the port of any address.
type Path struct {
	Proto             uint8
	Service, Endpoint netip.AddrPort
}

// NodePorts are the two ports of a Node that are not a pod's, and facts about packets that enter
// there.
type NodePorts struct {
	Gateway, Tunnel uint32 // port numbers
	GatewayMAC      [6]byte
	// FarMAC is the source of frames from other Nodes.
	FarMAC [6]byte
	// Addresses are the gateway's. Packets of the Node itself from one of them carry Mark.
	Addresses []netip.Addr
	Mark      uint32
}

// Outcome is the outcome for a revalidated connection.
type Outcome uint8

// The outcomes. All but Kept and OtherZone remove the connection.
const (
	Kept      Outcome = iota
	OtherZone         // of a zone that is not the first for packets
	Denied            // its packet is dropped
	Moved             // it leads to another endpoint, or to none
	Unknown           // its input port has no sender
	Outcomes
)

// LiveRequest selects the packets to watch. All given conditions must hold.
type LiveRequest struct {
	// InPort is the packet's input port; 0 for any.
	InPort uint32
	// Filters are tcpdump expressions on the packet as it enters.
	Filters []string
	// Either is the packet's source or destination.
	Either *End
	// To are the destinations of a packet that leaves.
	To []netip.Addr
	// Through is the packet's input or output port; 0 for any.
	Through uint32
	// Tables selects packets that enter one of these. The walk has the packet at that point.
	Tables []uint8
	// DroppedOnly selects packets that are dropped.
	DroppedOnly bool
	// Count, Begin, Wait and FirstID are those of dataplane.LiveRequest.
	Count, Begin int
	Wait         time.Duration
	FirstID      uint64
}

// End is one end of connections.
type End struct {
	// Port is the input port of its packets; 0 if they come from another Node.
	Port uint32
	// IPs are its addresses, and Services those of Services that it may serve.
	IPs, Services []netip.Addr
}

// Live is a live trace under way. Only one goroutine may call Next.
type Live interface {
	// Next waits for a walk. The error is io.EOF after the requested number, or that of ctx.
	Next(ctx context.Context) (*telemetry.Trace, error)
	Counts() telemetry.LiveCounts
	Close()
}
