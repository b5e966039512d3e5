package pipeline

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/agent/podports"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/kube"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/switchd/local"
	"github.com/prometheus/client_golang/prometheus"
)

// Pipeline is a switch that runs the entries of flow files, of manifests or of a program, and its
// connections. An agent has one with the Node's ports. Commands that ask files have one with
// ports in memory.
type Pipeline struct {
	Switch      door.Switch
	Connections door.Connections // of Switch
	// Local is the switch if it runs in this process. Otherwise Remote is. The other field
	// is nil.
	Local  *local.Switch
	Remote *door.Client
	// Clock is the clock of switch and connections, in nanoseconds.
	Clock func() int64
	// Objects knows the objects behind the entries; nil if the pipeline comes from flow
	// files.
	Objects *control.Reconciler
	API     *kube.Source // the source of the objects; nil if they come from files
	// Problems are the faults of the source's objects now; nil for flow files.
	Problems func() []manifest.Problem
	// TraceflowStatus is how far a Traceflow is; nil: as its object says.
	TraceflowStatus func(*cluster.Traceflow) cluster.TraceflowStatus
	Packets         *packetin.Receiver // takes packet-ins
	Drops           *dropLog           // the last dropped packets
	// Delays is how long changes of objects take; nil without a source that changes.
	Delays *prometheus.HistogramVec
	// Silent are the other Nodes that do not answer ARP or NDP (silentnodes.go).
	Silent      atomic.Pointer[[]netip.Addr]
	links       linkDrops
	Pods        *podports.Ports             // nil without a Node
	TunnelDrops tunnelDrops                 // what nftables drop between gateway and tunnel
	rows        atomic.Pointer[programRows] // what the entries of a program are for; nil without one
	// beside are programs beside the entries of objects, and rowsBeside what their entries are for.
	beside     []Program
	rowsBeside atomic.Pointer[programRows]
	// Secured is the security of an offline pipeline's ports, by number.
	Secured map[uint32]l2.PortSecurity
	// Made are the ports that the switch makes for objects; floods leave them out.
	Made map[string]control.Made
}

// Source is where an offline pipeline comes from: Files, Manifests or Program.
type Source interface {
	// Load makes a switch without ports that runs the source's entries.
	Load(o Options) (*Pipeline, error)
	// PortAddresses are the port numbers behind Ethernet addresses.
	PortAddresses() (map[[6]byte]uint32, error)
	// String names the source in errors.
	String() string
}

// Options are the options of a pipeline. The zero value is a switch in this process with
// its connections in memory.
type Options struct {
	names     map[uint32]string // ports
	workers   int
	Conntrack config.Conntrack
	Place     local.Place  // of the connections of a switch in this process; memory when nil
	Cache     int          // what the workers remember: the defaults when 0, nothing when -1
	Clock     func() int64 // nanoseconds; the process's own when nil
	Seed      uint64       // of the choice of endpoints; drawn when 0
	Secret    [2]uint64    // of the connections' hash, and so of NAT's choices; likewise
	Keep      int          // copiesDropped packets that are kept; the default when 0
	shared    []uint32     // ports that many senders share: the tunnel and the gateway
	Remote    *door.Client // the switch, when it is another process
}

// OptionsOf are the options that a configuration asks for.
func OptionsOf(c *config.Config) Options {
	o := Options{workers: c.Workers, Conntrack: c.Conntrack, Keep: c.Drops.Keep, names: map[uint32]string{
		c.Gateway.OFPort: c.Gateway.Name, c.Tunnel.OFPort: c.Tunnel.Name,
	}, shared: []uint32{c.Gateway.OFPort, c.Tunnel.OFPort}}
	if c.ConnectionCache != nil && !*c.ConnectionCache {
		o.Cache = -1
	}
	for _, p := range c.Ports {
		o.names[p.OFPort] = p.Name
	}
	return o
}

// NewPipeline makes a switch without ports and entries.
func NewPipeline(o Options) (*Pipeline, error) {
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() int64 { return int64(time.Since(start)) }
	}
	p := &Pipeline{Clock: o.Clock, Remote: o.Remote}
	if err := p.open(&o); err != nil {
		return nil, err
	}
	p.Packets = packetin.NewReceiver(p.Switch.Names)
	p.Drops = newDropLog(p, o.Keep)
	p.Packets.Refused = p.Drops.refuse
	return p, nil
}

// open is the switch: that of another process, or one that is made.
func (p *Pipeline) open(o *Options) (err error) {
	if o.Remote != nil {
		p.Switch, p.Connections = o.Remote, o.Remote.Connections()
		return nil
	}
	c := local.Config{
		Conntrack: conntrack.Config{Seed: o.Secret, SharedPorts: o.shared}, Place: o.Place,
		Clock: o.Clock, Workers: o.workers, Cache: o.Cache, SelectSeed: o.Seed,
		PacketIn: func(pi *telemetry.PacketIn) { p.Packets.Receive(pi) },
	}
	o.Conntrack.Configure(&c)
	p.Local, err = local.Open(c)
	if err == nil {
		p.Switch, p.Connections = p.Local, p.Local.Connections()
	}
	return err
}

// Close ends the switch, if it runs in this process.
func (p *Pipeline) Close() error {
	if p.Local == nil {
		return nil
	}
	return p.Local.Close()
}

// ErrNoObjects is the error of a question about objects that a pipeline of flow files, or of another
// controller, does not have.
var ErrNoObjects = errors.New("the entries come from another controller, a program or flow files: there are no objects behind them")
