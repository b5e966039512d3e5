package door

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// The API: HTTP over a unix socket with mode 0600. All paths begin with /v1. Bodies and
// answers are JSON, but for bundles and for the dumps of entries, groups and meters, which
// are text unless format=json is asked for. docs/door.md has an example of each.
//
//	GET    /v1/switch                 SwitchInfo
//	GET    /v1/flows                  ?table=N&format=json
//	GET    /v1/groups, /v1/meters     ?format=json
//	GET    /v1/tables, /v1/workers, /v1/cache, /v1/cache/shapes, /v1/offload, /v1/fragments, /v1/fdb, /v1/fdb/stats
//	DELETE /v1/fdb                    removes the addresses that NORMAL has learned
//	GET    /v1/counters               ?running=1
//	GET    /v1/answers                AnswerCounters
//	GET    /v1/drops                  ?since=N; DropsAnswer
//	POST   /v1/bundle                 text (bundletext.go)
//	POST   /v1/relearn                entries that packets learned
//	POST   /v1/classes                ClassesRequest; /v1/classes/ID then gives counters
//	GET    /v1/ports                  all ports with their counters
//	PUT    /v1/ports/N                PortSpec: opens a port
//	POST   /v1/ports/N/give           a port with its descriptors, after an upgrade (give.go)
//	POST   /v1/ports/pause            ports receive nothing until the connection ends, after an upgrade
//	POST   /v1/offload/programs       programs for a packet socket or tunnel that is given, after an upgrade
//	POST   /v1/held/NAME/give, /v1/held/NAME/lend  descriptors for the next controller, after an upgrade (helddescriptors.go)
//	DELETE /v1/ports/N
//	PUT    /v1/ports/N/security       what the port may send
//	PUT    /v1/ports/N/config         its settings by a controller: down, no floods
//	GET    /v1/ports/N/sample         ?reason=TEXT: the last packet that it dropped for this reason
//	PUT    /v1/tunnel/peers, /v1/tunnel/silent, /v1/tunnel/egresses
//	POST   /v1/tunnel/egresses/give   the same, with receiving sockets, after an upgrade
//	GET    /v1/tunnel/path-mtu        ?node=ADDRESS
//	POST   /v1/trace                  dataplane.TraceRequest; the walk of a made-up packet
//	POST   /v1/trace/live             LiveRequest; a LiveLine for each walk
//	POST   /v1/packet-out             PacketOut
//	POST   /v1/resume                 telemetry.Paused
//	GET    /v1/conntrack              conntrack.Filter as query filter=JSON; a line for each connection
//	GET    /v1/conntrack/stats        ConnectionStats
//	POST   /v1/conntrack/flush        conntrack.Filter; Flushed
//	POST   /v1/conntrack/purge, /v1/conntrack/shield, /v1/conntrack/revalidate
//	POST   /v1/end                    ends the switch, after an upgrade (end.go)
//	POST   /v1/controller             ?name=NAME&take-over=1&invalid-ttl=1; an Event for each packet-in, and each expired entry with send_flow_rem
//
// The answer to an invalid request is 400 and a sentence. The answer to a change that is not the
// controller's is 409.

// Version is the API's version. A switch and an agent work together if their versions differ by
// at most one.
const Version = 1

// SwitchInfo describes a switch.
type SwitchInfo struct {
	// API is the Version that the switch uses, and Oldest the oldest that it understands.
	API    int `json:"api"`
	Oldest int `json:"oldest"`
	// Release is the version of the program.
	Release string `json:"release"`
	// Instance is a random value that the switch chooses at its start.
	Instance string `json:"instance"`
	PID      int    `json:"pid"`
	// Confined is set if the switch has no privilege: it opens no port by name, and its
	// controller gives it ports with their descriptors (Client.GivePort).
	Confined bool `json:"confined,omitempty"`
	// Cards is the AF_XDP setup of cards.
	Cards Cards `json:"cards,omitzero"`
	// Settings are the settings at the switch's start, as JSON.
	Settings json.RawMessage `json:"settings,omitempty"`
	// Controller is the name of the connected controller; "" for none.
	Controller string `json:"controller,omitempty"`
	PipelineInfo
	// Kept is the generation in the switch's file; 0 for none. If the switch is killed, the next
	// one begins with it.
	Kept uint64 `json:"kept,omitempty"`
	// ClockNS is the switch's clock.
	ClockNS int64 `json:"clockNS"`
	// PauseNS is the time without packets while the switch took over from its predecessor; 0 if
	// it did not.
	PauseNS int64 `json:"pauseNS,omitempty"`
	// OffloadOff is the reason why the kernel offloads nothing.
	OffloadOff string `json:"offloadOff,omitempty"`
}

// Cards is the AF_XDP setup of cards in the switch's settings. A controller that gives the switch
// a port on AF_XDP opens it in this way.
type Cards struct {
	// ZeroCopy makes cards receive into the switch's memory, and send from it.
	ZeroCopy bool `json:"zeroCopy,omitempty"`
	// BusyPollNS is how long a call may poll a card for frames; 0 for interrupts. BusyPollBudget
	// is the most frames that it takes; 0 for the kernel's own budget.
	BusyPollNS     int64 `json:"busyPollNS,omitempty"`
	BusyPollBudget int   `json:"busyPollBudget,omitempty"`
}

// PipelineInfo has the parts of a pipeline that change with bundles.
type PipelineInfo struct {
	Generation uint64      `json:"generation"`
	Learnings  uint64      `json:"learnings"`
	First      uint8       `json:"first"`
	Names      *flow.Names `json:"names"`
}

// DropsAnswer has dropped packets. See Packets.DropsSince.
type DropsAnswer struct {
	Packets []telemetry.DroppedPacket `json:"packets"`
	Next    uint64                    `json:"next"`
	Missed  uint64                    `json:"missed"`
	// Ports changes when a port comes, goes or drops a frame. Then /v1/ports has news.
	Ports uint64 `json:"ports"`
}

// OffloadAnswer describes the kernel's offload.
type OffloadAnswer struct {
	Stats telemetry.OffloadStats `json:"stats"`
	Off   string                 `json:"off,omitempty"`
}

// ConnectionStats has the counters of connections.
type ConnectionStats struct {
	Stats       conntrack.Stats       `json:"stats"`
	Zones       []conntrack.ZoneLimit `json:"zones"`
	Ports       []conntrack.PortStats `json:"ports"`
	Revalidated [Outcomes]uint64      `json:"revalidated"`
	Limits      ZoneLimits            `json:"limits"`
}

// Flushed is the number of removed connections.
type Flushed struct {
	Flushed int `json:"flushed"`
}

// ShieldRequest is a call of Connections.Shield.
type ShieldRequest struct {
	Endpoints []netip.AddrPort `json:"endpoints"`
	Until     int64            `json:"untilNS"`
}

// PacketOut is a call of Packets.PacketOut.
type PacketOut struct {
	InPort  uint32 `json:"inPort"`
	Actions string `json:"actions"` // as dumps print them, with numbers
	Frame   []byte `json:"frame"`
}

// ClassesRequest registers the class of each entry of a generation, in the order of Flows.
type ClassesRequest struct {
	Generation uint64 `json:"generation"`
	Classes    []int  `json:"classes"`
}

// ClassesAnswer is the path of the sums.
type ClassesAnswer struct {
	ID string `json:"id"`
}

// ClassCountersAnswer has sums by class, and the learned entries, which have no class yet.
type ClassCountersAnswer struct {
	Counters []dataplane.ClassSum  `json:"counters"`
	Learned  []telemetry.FlowStats `json:"learned"`
}

// LiveLine is a line of a live trace. The first is empty: the switch watches packets from then
// on.
type LiveLine struct {
	Trace  *telemetry.Trace      `json:"trace,omitempty"`
	Counts *telemetry.LiveCounts `json:"counts,omitempty"` // with each trace, and once a second
	End    bool                  `json:"end,omitempty"`    // the requested number of walks is reached
}

// Event is a line of the controller's stream.
type Event struct {
	// Token is in the first event. Requests that change the switch carry it in the header
	// Antrail-Controller.
	Token    string              `json:"token,omitempty"`
	PacketIn *telemetry.PacketIn `json:"packetIn,omitempty"`
	// FlowRemoved is an entry with send_flow_rem whose timeout has passed.
	FlowRemoved *telemetry.FlowRemoved `json:"flowRemoved,omitempty"`
	// Missed counts the events that this controller has lost because it did not read.
	Missed uint64 `json:"missed,omitempty"`
	// TakenOverBy ends the events: another controller has taken over.
	TakenOverBy string `json:"takenOverBy,omitempty"`
}

// countsInterval is how often counts are sent while there are no walks.
const countsInterval = time.Second

// controllerHeader holds the controller's token.
const controllerHeader = "Antrail-Controller"

// PortSpec describes a port to open.
type PortSpec struct {
	No   uint32 `json:"ofPort"`
	Name string `json:"name"`
	// Driver is auto, afpacket or afxdp for an existing Link; tap for a Link that the switch
	// makes; or tunnel.
	Driver   string          `json:"driver"`
	Link     string          `json:"link,omitempty"`
	Security l2.PortSecurity `json:"security,omitzero"`
	Tap      *TapSpec        `json:"tap,omitempty"`
	Tunnel   *TunnelSpec     `json:"tunnel,omitempty"`
	// Why is the reason for the driver of a port that the controller gives.
	Why string `json:"why,omitempty"`
}

// TapSpec describes a tap to make.
type TapSpec struct {
	MAC   string `json:"mac,omitempty"` // if "", the kernel chooses one
	MTU   int    `json:"mtu,omitempty"`
	Marks bool   `json:"marks,omitempty"` // frames carry packet marks
	Aside bool   `json:"aside,omitempty"` // floods skip it
	// Owner names the process that makes the device (tap.Options.Owner). An owned device
	// outlives the switch. If Owner is "", the switch's own setting holds.
	Owner string `json:"owner,omitempty"`
}

// TunnelSpec describes the port to other Nodes.
type TunnelSpec struct {
	Kind       string         `json:"kind"` // geneve, vxlan or gre
	Local      netip.Addr     `json:"local"`
	MTU        int            `json:"mtu"` // inner
	Peers      []TunnelPeer   `json:"peers"`
	Pods       []netip.Prefix `json:"pods"` // this Node's own
	AnyNetwork bool           `json:"anyNetwork,omitempty"`
	AnyPeer    bool           `json:"anyPeer,omitempty"`
	// Options makes frames keep the options of Geneve, for entries with tun_metadata fields.
	Options bool `json:"options,omitempty"`
	// Only, if set, is the only address that frames go to and come from, and Peers are ignored.
	// Network is their virtual network, unless AnyNetwork is set.
	Only    netip.Addr `json:"only,omitzero"`
	Network uint32     `json:"network,omitempty"`
	Driver  string     `json:"driver"` // kernel, afxdp or auto
	Uplink  string     `json:"uplink,omitempty"`
}

// TunnelPeer is another Node, and the pod ranges that it may send from.
type TunnelPeer struct {
	Address netip.Addr     `json:"address"`
	Pods    []netip.Prefix `json:"pods"`
}

// PathMTU is the inner MTU to a Node.
type PathMTU struct {
	MTU int `json:"mtu"`
}

// TunnelEgresses are addresses of Egresses, of this Node and of others. A tunnel receives at
// those of this Node.
type TunnelEgresses struct {
	// Port is the number of the tunnel's port; 0 for the first tunnel.
	Port uint32       `json:"port,omitempty"`
	Here []netip.Addr `json:"here"`
	Far  []netip.Addr `json:"far"`
}

// The drivers of a PortSpec. auto is a packet socket on a veth, because that keeps the large
// segments of a Pod whole. On other links, which are cards, it is AF_XDP.
const (
	DriverAuto     = "auto"
	DriverAFXDP    = "afxdp"
	DriverAFPacket = "afpacket"
	// DriverTap makes the link, a tap. Frames that the port sends arrive on that link.
	DriverTap = "tap"
	// DriverTunnel is a port to other Nodes. Its TunnelSpec has auto, afxdp, or DriverKernel:
	// through the Node's IP stack.
	DriverTunnel = "tunnel"
	DriverKernel = "kernel"
)

// DriverUnderlay and DriverUplink are the two drivers of a tunnel in ports.Info.
const (
	DriverUnderlay = "underlay"
	DriverUplink   = "uplink"
)
