package switchd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/halfopen"
	"github.com/antrail/antrail/ports/underlay"
)

// Process is a switch that runs by itself: its files lie in a directory, and a controller
// drives it through the door.
type Process struct {
	// Socket is where the door is: a unix socket with mode 0600.
	Socket string
	// Dir has the files of the switch: connections, seed, entries. It is made.
	Dir      string
	Settings Settings
	// Release is the version of the program.
	Release string
	Log     *slog.Logger

	sw     *Switch
	ports  *PortSet
	server *door.Server
}

// The files of a switch.
const (
	conntrackFile = "ct.arena"
	seedFile      = "select.seed"
	keptFile      = "switch.flows"
)

// doorLimits bound what users of the socket can hold of it. Requests in progress are
// bounded by Total only: many are streams.
var doorLimits = halfopen.Limits{
	PerPeer: 128, Total: 1024, Header: 10 * time.Second, Body: 2 * time.Minute, Idle: 2 * time.Minute,
	HeaderBytes: 64 << 10, BodyBytes: maxKept,
}

// Run runs the switch until ctx ends. Ports and entries that the process before had are
// there again before the first request is answered.
func (p *Process) Run(ctx context.Context) error {
	ln, err := Listen(p.Socket)
	if err != nil {
		return err
	}
	defer os.Remove(p.Socket)
	open, err := p.start()
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer open.Offload.Close()
	err = p.serve(ctx, ln)
	return errors.Join(err, p.sw.Close(), open.Close())
}

// start opens the switch and restores what the process before had.
func (p *Process) start() (*Opener, error) {
	clock, err := BootClock()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return nil, err
	}
	seed, err := LoadSeed(filepath.Join(p.Dir, seedFile))
	if err != nil {
		return nil, err
	}
	s := &p.Settings
	c := Config{
		ConntrackFile: filepath.Join(p.Dir, conntrackFile), Clock: clock, SelectSeed: seed, KeepAwake: s.KeepAwake,
		Workers: s.Workers, Offload: p.openOffload(), PacketIn: p.packetIn,
	}
	if c.Workers == 0 {
		c.Workers = runtime.NumCPU()
	}
	if s.ConnectionCache != nil && !*s.ConnectionCache {
		c.Cache = -1
	}
	s.Conntrack.table(&c)
	c.Conntrack.SharedPorts = s.SharedPorts
	if p.sw, err = Open(c); err != nil {
		return nil, errors.Join(err, c.Offload.Close())
	}
	open := &Opener{Offload: c.Offload, Owner: s.Owner, Cards: s.AFXDP.Cards(), Log: p.Log}
	open.Room(1)
	p.ports = NewPortSet(p.sw, open)
	p.server = door.NewServer(&withPorts{p.sw, p.ports}, p.ports, clock, p.Release)
	p.server.OnController(func(connected bool) { p.sw.SetControllerAway(!connected) })
	p.sw.SetControllerAway(true)
	p.restore()
	return open, nil
}

// withPorts is the switch whose ports the set has opened.
type withPorts struct {
	*Switch
	ports *PortSet
}

// RemovePort implements door.Ports.
func (s *withPorts) RemovePort(no uint32) error { return s.ports.RemovePort(no) }

// openOffload does what the settings say. That the kernel cannot is no error: the switch
// forwards everything then.
func (p *Process) openOffload() *Offload {
	switch s := &p.Settings; {
	case s.Offload == OffloadOff:
		return &Offload{Why: "it is off"}
	case s.ConnectionCache != nil && !*s.ConnectionCache:
		return &Offload{Why: "the connection cache is off"}
	}
	o, err := OpenOffload()
	if err != nil {
		p.Log.Warn("connections are not offloaded to the kernel", "error", err)
		return &Offload{Why: err.Error()}
	}
	p.Log.Info("connections between pods are offloaded to the kernel")
	return o
}

// packetIn hands a packet-in to the controller.
func (p *Process) packetIn(pi *dataplane.PacketIn) { p.server.Tell(door.Event{PacketIn: pi}) }

// keptPath is the file of entries and ports.
func (p *Process) keptPath() string { return filepath.Join(p.Dir, keptFile) }

// restore puts back what the process before had. What cannot be put back is logged: the
// controller sends it again.
func (p *Process) restore() {
	k, bundle, err := readKept(p.keptPath(), p.sw.Clock())
	if err == nil {
		err = p.sw.Apply(bundle)
	}
	if err != nil {
		p.Log.Info("no entries restored", "file", p.keptPath(), "why", err)
		return
	}
	if err := p.sw.Relearn(k.Learned); err != nil {
		p.Log.Warn("learned entries are not restored", "error", err)
	}
	for i := range k.Ports {
		if err := p.ports.OpenPort(&k.Ports[i]); err != nil {
			p.Log.Warn("a port is not restored", "port", k.Ports[i].Name, "error", err)
		}
	}
	p.Log.Info("entries and ports restored", "file", p.keptPath(), "entries", len(bundle.Add), "ports", len(k.Ports), "connections", p.sw.Table().Stats().Entries)
}

// serve answers until ctx ends or a part fails.
func (p *Process) serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := halfopen.Server{Limits: doorLimits, Handler: p.server.Handler(), Name: "door", Log: p.Log}
	parts := []func(context.Context) error{
		p.sw.Run,
		func(ctx context.Context) error { return s.Serve(ctx, ln) },
		p.runKeep,
		p.runTooLong,
	}
	ended := make(chan error, len(parts))
	for _, run := range parts {
		go func() { ended <- run(ctx) }()
	}
	p.Log.Info("the switch runs", "door", p.Socket, "dir", p.Dir)
	var errs []error
	for range parts {
		errs = append(errs, <-ended)
		cancel()
	}
	return errors.Join(errs...)
}

// keepPause lies between two looks whether entries have changed, and keepShare times as
// long as the last writing took: a twentieth of a processor at most.
const (
	keepPause = time.Second
	keepShare = 20
)

// runKeep writes the file of entries and ports when they have changed, until ctx ends, and
// then once more.
func (p *Process) runKeep(ctx context.Context) error {
	var last string
	for ctx.Err() == nil {
		start := time.Now()
		p.keep(&last)
		select {
		case <-ctx.Done():
		case <-time.After(max(keepPause, keepShare*time.Since(start))):
		}
	}
	p.keep(&last)
	return nil
}

// keep writes the file if something has changed since last.
func (p *Process) keep(last *string) {
	now := fmt.Sprint(p.sw.Generation(), p.sw.Learnings(), p.ports.Changes())
	if now == *last || p.sw.Names() == nil {
		return
	}
	text, err := keptText(p.sw, p.ports)
	if err == nil {
		err = WriteOwnFile(p.keptPath(), text)
	}
	if err != nil {
		p.Log.Error("entries and ports cannot be kept", "file", p.keptPath(), "error", err)
		return
	}
	*last = now
}

// tooLongPause lies between two packets that are told to the controller as too long.
const tooLongPause = 2 * time.Millisecond

// runTooLong tells the controller of packets that were too long for the tunnel, until ctx
// ends.
func (p *Process) runTooLong(ctx context.Context) error {
	for {
		var longs <-chan underlay.Long
		t := p.ports.Tunnel()
		if t != nil {
			longs = t.Longs()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.ports.TunnelChanged():
		case l := <-longs:
			p.server.Tell(door.Event{TooLong: &door.TooLong{Frame: l.Frame, MTU: t.PathMTU(l.Node)}})
			time.Sleep(tooLongPause)
		}
	}
}
