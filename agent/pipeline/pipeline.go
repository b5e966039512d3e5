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

// Pipeline is a switch that runs the entries of flow files, objects or a program, with its
// connections. An agent's pipeline has the Node's ports. Commands that read files use one with
// ports in memory.
type Pipeline struct {
	Switch      door.Switch
	Connections door.Connections // of Switch
	// Local is the switch if it runs in this process, otherwise Remote is. The other field is
	// nil.
	Local  *local.Switch
	Remote *door.Client
	// Clock is the clock of switch and connections, in nanoseconds.
	Clock func() int64
	// Objects has the objects behind the entries; nil for flow files and programs.
	Objects *control.Reconciler
	API     *kube.Source // the source of the objects; nil if they come from files
	// Problems are the current faults of the source's objects; nil for flow files.
	Problems func() []manifest.Problem
	// TraceflowStatus is the status of a Traceflow; nil: the status in its object.
	TraceflowStatus func(*cluster.Traceflow) cluster.TraceflowStatus
	Packets         *packetin.Receiver // takes packet-ins
	Drops           *dropLog           // the last dropped packets
	// Delays measures how long changes of objects take; nil without a source that changes.
	Delays *prometheus.HistogramVec
	// Silent are the other Nodes that do not answer ARP or NDP (silentnodes.go).
	Silent      atomic.Pointer[[]netip.Addr]
	links       linkDrops
	Pods        *podports.Ports             // nil without a Node
	TunnelDrops tunnelDrops                 // what nftables drop between gateway and tunnel
	rows        atomic.Pointer[programRows] // origins of a program's entries; nil without a program
	// beside are programs beside the entries of objects, and rowsBeside the origins of their
	// entries.
	beside     []Program
	rowsBeside atomic.Pointer[programRows]
	// Secured is the port security of an offline pipeline, by port number.
	Secured map[uint32]l2.PortSecurity
	// Made are the ports that the switch makes for objects. Floods leave them out.
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

// Options are the options of a pipeline. The zero value is a switch in this process with its
// connections in memory.
type Options struct {
	names     map[uint32]string // ports
	workers   int
	Conntrack config.Conntrack
	Place     local.Place  // of the connections of a switch in this process; nil: memory
	Cache     int          // entries of the workers' caches; 0: the default, -1: no caches
	Clock     func() int64 // nanoseconds; nil: the process's clock
	Seed      uint64       // of the choice of endpoints; 0: random
	Secret    [2]uint64    // of the connections' hash, and so of NAT's choices; zero: random
	Keep      int          // dropped packets that are kept; 0: the default
	shared    []uint32     // ports with many senders: tunnel and gateway
	Remote    *door.Client // the switch, if it is another process
}

// OptionsOf are the options in a configuration.
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
	p.Packets.Refused = p.Drops.noteRefusal
	return p, nil
}

// open connects to the switch of another process, or makes one here.
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

// Close ends the switch if it runs in this process.
func (p *Pipeline) Close() error {
	if p.Local == nil {
		return nil
	}
	return p.Local.Close()
}

// ErrNoObjects says that a question about objects does not fit the pipeline: its entries come
// from flow files, a program or another controller.
var ErrNoObjects = errors.New("the entries have no objects: they come from another controller, a program or flow files")
