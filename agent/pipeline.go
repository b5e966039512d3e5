package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/kube"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/switchd"
	"github.com/prometheus/client_golang/prometheus"
)

// pipeline is a switch that runs the entries of flow files or of manifests,
// and its connections. An agent has one with the Node's ports; offline commands
// have one with ports in memory.
type pipeline struct {
	sw door.Switch
	ct door.Connections // of sw
	// local is sw when it runs in this process, remote when it does not. The other one is
	// nil.
	local  *switchd.Switch
	remote *door.Client
	// clock is that of both, in nanoseconds.
	clock func() int64
	// objects is what knows the objects behind the entries; nil when the
	// pipeline comes from flow files.
	objects *control.Reconciler
	api     *kube.Source // that the objects come from; nil: from files
	// problems are the faults of the source's objects now; nil for flow files.
	problems func() []control.Problem
	packets  *packetin.Receiver
	lost     *lostLog
	// delays is how long changes of objects take; nil without a source that changes.
	delays *prometheus.HistogramVec
	looks  mapLooks
	// silent are the other Nodes that do not answer ARP or NDP (silent.go).
	silent atomic.Pointer[[]netip.Addr]
	links  linkDrops
	pods   *podPorts // nil without a Node
	tunnel tunnelDrops
	// secured is the security of an offline pipeline's ports, by number.
	secured map[uint32]dataplane.PortSecurity
	// made are the ports that the switch makes for objects; floods leave them out.
	made map[string]control.Made
}

// Source is where an offline pipeline comes from: Files or Manifests.
type Source interface {
	// load makes a switch without ports that runs the source's entries.
	load(o options) (*pipeline, error)
	// portAddresses are the port numbers behind Ethernet addresses.
	portAddresses() (map[[6]byte]uint32, error)
	// String names the source in errors.
	String() string
}

// Files are the files of a pipeline, in the text of ovs-ofctl. Flows has to be
// given.
type Files struct {
	Flows, Groups, Meters string
	// Ports names the ports, as ovs-ofctl dump-ports-desc does.
	Ports string
}

// Beside fills in what is not given with files beside the flow file that have
// its name and end in .groups, .meters and .ports, as far as they are there.
func (f Files) Beside() Files {
	stem, ok := strings.CutSuffix(f.Flows, ".flows")
	if !ok {
		return f
	}
	for ending, path := range map[string]*string{".groups": &f.Groups, ".meters": &f.Meters, ".ports": &f.Ports} {
		if _, err := os.Stat(stem + ending); err == nil && *path == "" {
			*path = stem + ending
		}
	}
	return f
}

// String is the name of the flow file.
func (f Files) String() string { return f.Flows }

// options of a pipeline.
type options struct {
	names   map[uint32]string // ports
	workers int
	ct      Conntrack
	ctFile  string // keeps the connections of a switch in this process; memory when ""
	// snapshot keeps the entries of objects; nothing does when "".
	snapshot string
	cache    int          // what the workers remember: the defaults when 0, nothing when -1
	clock    func() int64 // nanoseconds; the process's own when nil
	seed     uint64       // of the choice of endpoints; drawn when 0
	secret   [2]uint64    // of the connections' hash, and so of NAT's choices; likewise
	keep     int          // lost packets; the default when 0
	shared   []uint32     // ports that many senders share: the tunnel and the gateway
	cluster  *joined      // nil without the API
	remote   *door.Client // the switch, when it is another process
}

func (c *Config) files() Files { return Files{Flows: c.Flows, Groups: c.Groups, Meters: c.Meters} }

func (c *Config) options() options {
	o := options{workers: c.Workers, ct: c.Conntrack, keep: c.Drops.Keep, names: map[uint32]string{
		c.Gateway.OFPort: c.Gateway.Name, c.Tunnel.OFPort: c.Tunnel.Name,
	}, shared: []uint32{c.Gateway.OFPort, c.Tunnel.OFPort}}
	if c.ConnectionCache != nil && !*c.ConnectionCache {
		o.cache = -1
	}
	for _, p := range c.Ports {
		o.names[p.OFPort] = p.Name
	}
	return o
}

// load makes a switch without ports that runs the files' entries. The error
// names file, line and column of what is wrong, or, where only the whole can
// tell, the file and the entry.
func (f Files) load(o options) (*pipeline, error) {
	program, err := f.program(o.names)
	if err != nil {
		return nil, err
	}
	return loadProgram(f, program, o)
}

// loadProgram makes a switch without ports that runs a program.
func loadProgram(from Source, program *flow.Program, o options) (*pipeline, error) {
	p, err := newPipeline(o)
	if err != nil {
		return nil, err
	}
	if err := p.sw.Apply(dataplane.BundleOf(program)); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", from, err), p.close())
	}
	return p, nil
}

// newPipeline makes a switch without ports and entries.
func newPipeline(o options) (*pipeline, error) {
	if o.clock == nil {
		start := time.Now()
		o.clock = func() int64 { return int64(time.Since(start)) }
	}
	p := &pipeline{clock: o.clock, remote: o.remote}
	if err := p.open(&o); err != nil {
		return nil, err
	}
	p.packets = packetin.NewReceiver(p.sw.Names)
	p.lost = newLostLog(p, o.keep)
	p.packets.Refused = p.lost.refuse
	return p, nil
}

// open is the switch: that of another process, or one that is made.
func (p *pipeline) open(o *options) (err error) {
	if o.remote != nil {
		p.sw, p.ct = o.remote, o.remote.Connections()
		return nil
	}
	p.local, err = switchd.Open(switchd.Config{
		Conntrack: conntrack.Config{Timeouts: o.ct.AllTimeouts(), Max: o.ct.Max, NewRate: o.ct.NewRate, Seed: o.secret, SharedPorts: o.shared},
		ZoneMax:   o.ct.ZoneMax, Zones: o.ct.Zones, ConntrackFile: o.ctFile,
		Clock: o.clock, Workers: o.workers, Cache: o.cache, SelectSeed: o.seed,
		PacketIn: func(pi *dataplane.PacketIn) { p.packets.Receive(pi) },
	})
	if err == nil {
		p.sw, p.ct = p.local, p.local.Connections()
	}
	return err
}

// close ends the switch, if it runs in this process.
func (p *pipeline) close() error {
	if p.local == nil {
		return nil
	}
	return p.local.Close()
}

// program reads and parses the files.
func (f *Files) program(names map[uint32]string) (*flow.Program, error) {
	src := flow.Sources{Names: flow.NewNames()}
	for no, name := range names {
		src.Names.SetPort(no, name)
	}
	for _, s := range []struct {
		to   *flow.Source
		path string
	}{{&src.Flows, f.Flows}, {&src.Groups, f.Groups}, {&src.Meters, f.Meters}, {&src.Ports, f.Ports}} {
		if s.path == "" {
			continue
		}
		source, err := flow.File(s.path)
		if err != nil {
			return nil, err
		}
		*s.to = source
	}
	return flow.ParseProgram(src)
}
