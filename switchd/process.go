// Package switchd is the switch as a process. It has a switch (switchd/local) with ports,
// connections in a file, the kernel's offload, and the door for a controller (door). It knows
// packets, entries and ports. It does not know Kubernetes, CNI, nftables or YAML.
//
//	process.go      the process: files, running parts, the door
//	toolong.go      frames that are too long for a tunnel
//	handover.go     another process replaces this one
//	takeover.go     this one replaces another
//	launch.go       a switch that another process launches: the launcher's side;
//	                launch_confined.go, without privilege; launch_other.go, where that is impossible
//	launched.go     … and the switch's side; await.go, a switch that waits for its launcher
//	keep.go         entries and ports for the next process
//	ports.go        the ports that a controller names
//	opener.go       ports by the names of links; give.go, ports that come with their descriptors
//	inherit.go      ports that the predecessor has handed over
//	offload.go      whether the kernel forwards established connections
//	connectionfile.go the connections' file
//	seed.go, socket.go  the seed of select groups, in a file; the unix socket of the door
//	files.go        files for the next process, and when they are valid
package switchd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/halfopen"
	"github.com/antrail/antrail/internal/memory"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/switchd/local"
)

// Process is a switch that runs by itself. Its files are in a directory, and a controller drives
// it through the door.
type Process struct {
	// Socket is the door's path: a unix socket with mode 0600.
	Socket string
	// Dir is the directory of the switch's files: connections, seed, entries. It is created if it
	// does not exist.
	Dir      string
	Settings local.Settings
	// Release is the program's version.
	Release string
	Log     *slog.Logger
	// Confined is set if the process has no privilege (internal/confine): its controller gives it
	// the ports. The launcher has then opened Listener, the socket.
	Confined bool
	Listener net.Listener
	// The launcher has also opened a connection to the predecessor, and the programs and maps of the
	// offload. awake are requests to keep processors awake, one for each worker.
	predecessor *net.UnixConn
	offload     []int
	awake       []*os.File

	// lifeline is the launcher's end of a pipe. When it closes, a switch that is bound to the
	// launcher ends.
	lifeline *os.File

	// TakeOver makes Run replace the switch at Socket, if one runs. Both must be confined, or
	// neither.
	TakeOver bool

	sw          *local.Switch
	connections *ConnectionFile // of sw
	ports       *PortSet
	server      *door.Server
	successors  chan *successor  // processes that are ready to take over
	ends        chan struct{}    // the controller wants the switch to end
	successor   door.MessageConn // stays open until it has taken over
	stoppedAt   int64            // when the predecessor stopped packets, by the switch's clock
	outcome     error            // errHandedOver if another switch has taken over
}

// The files of a switch.
const (
	conntrackFile = "ct.arena"
	seedFile      = "select.seed"
	keptFile      = "switch.flows"
)

// doorLimits limit what users of the socket can hold of it. Only Total limits requests in
// progress, because many are streams.
var doorLimits = halfopen.Limits{
	PerPeer: 128, Total: 1024, Header: 10 * time.Second, Body: 2 * time.Minute, Idle: 2 * time.Minute,
	HeaderBytes: 64 << 10, BodyBytes: maxKept,
}

// Run runs the switch until ctx ends. The predecessor's ports and entries are restored before the
// first request is answered.
func (p *Process) Run(ctx context.Context) error {
	p.successors, p.ends = make(chan *successor), make(chan struct{}, 1)
	var before *predecessor
	var err error
	if p.TakeOver {
		if before, err = p.requestHandOver(); err != nil {
			return err
		}
	}
	if before != nil {
		return p.runAsSuccessor(ctx, before)
	}
	ln := p.Listener
	if ln == nil {
		if ln, err = Listen(p.Socket); err != nil {
			return err
		}
	}
	open, err := p.openSwitch(nil)
	if err != nil {
		return errors.Join(err, ln.Close(), p.removeSocket())
	}
	return p.closeAll(p.serve(ctx, ln, p.runWorkers(ctx)), open)
}

// runAsSuccessor runs the switch in the place of another. If it cannot begin, the other one
// continues unchanged.
func (p *Process) runAsSuccessor(ctx context.Context, before *predecessor) error {
	open, err := p.openSwitch(before)
	if err == nil {
		err = p.awaitStop(before)
	}
	if err != nil {
		before.close()
		if open != nil {
			p.ports.KeepTaps(true)
			p.connections.Lend(true)
			err = errors.Join(err, p.sw.Close(), open.Close(), p.closeOffload(open.Offload, true))
		}
		return fmt.Errorf("the switch at %s continues: %w", p.Socket, err)
	}
	p.ports.KeepTaps(false)
	p.connections.Lend(false)
	workers := p.runWorkers(ctx)
	p.confirmTakeOver(before)
	ln := p.Listener
	if ln == nil {
		if ln, err = ReplaceSocket(p.Socket); err != nil {
			return p.closeAll(errors.Join(err, workers.stop()), open)
		}
	}
	return p.closeAll(p.serve(ctx, ln, workers), open)
}

// closeAll closes everything except the parts with which another switch continues.
func (p *Process) closeAll(err error, open *Opener) error {
	p.ports.KeepTaps(true) // the Node's routes use them, and the next switch finds them
	handedOver := errors.Is(err, errHandedOver)
	if !handedOver {
		err = errors.Join(err, p.removeSocket())
	}
	closed := errors.Join(p.sw.Close(), open.Close(), p.closeOffload(open.Offload, handedOver))
	if handedOver {
		p.outcome = errHandedOver
		return closed
	}
	return errors.Join(err, closed)
}

// closeOffload closes the offload, unless another confined switch shares it.
func (p *Process) closeOffload(o *Offload, shared bool) error {
	if shared && p.Confined {
		return nil
	}
	return o.Close()
}

// removeSocket removes the socket, unless another process opened it.
func (p *Process) removeSocket() error {
	if p.Listener != nil {
		return nil
	}
	return os.Remove(p.Socket)
}

// running has the running workers.
type running struct {
	cancel context.CancelFunc
	ended  chan error
}

// runWorkers starts the workers.
func (p *Process) runWorkers(ctx context.Context) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{cancel, make(chan error, 1)}
	go func() { r.ended <- p.sw.Run(ctx) }()
	return r
}

// stop ends the workers, and returns when no packet moves.
func (r *running) stop() error {
	r.cancel()
	err := <-r.ended
	r.ended <- nil // for a second call
	return err
}

// openSwitch opens the switch with the state of its predecessor, which comes from the process
// before, or from the files if that is nil.
func (p *Process) openSwitch(before *predecessor) (*Opener, error) {
	clock, err := BootClock()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.ownDir(), 0o700); err != nil {
		return nil, err
	}
	seed, err := LoadSeed(p.pathOf(seedFile))
	if err != nil {
		return nil, err
	}
	if before != nil && p.Confined {
		p.offload, before.offload = before.offload, nil
	}
	s := &p.Settings
	kernel := p.openOffload()
	p.connections = &ConnectionFile{Path: p.pathOf(conntrackFile)}
	if before != nil {
		p.connections.Inherited = before.connections
	}
	c := local.Config{
		Place: p.connections, Clock: clock, SelectSeed: seed, KeepAwake: s.KeepAwake, Workers: p.workers(),
		Offload: kernel.offloader(), OffloadOff: kernel.Why, PacketIn: p.packetIn, FlowRemoved: p.flowRemoved,
	}
	if p.Confined {
		c.KeepAwake, c.OpenAwake = len(p.awake) == c.Workers, p.nextAwake
	}
	if s.ConnectionCache != nil && !*s.ConnectionCache {
		c.Cache = -1
	}
	s.Conntrack.Configure(&c)
	c.Conntrack.SharedPorts = s.SharedPorts
	if p.sw, err = local.Open(c); err != nil {
		return nil, errors.Join(err, kernel.Close())
	}
	open := &Opener{Offload: kernel, Owner: s.Owner, Cards: CardsOf(s.AFXDP), Log: p.Log}
	if before != nil {
		open.From = &before.Inheritance
	}
	open.Room(1)
	p.ports = NewPortSet(p.sw, open)
	if p.Confined {
		p.ports.Confine()
	}
	p.server = door.NewServer(&withPorts{p.sw, p.ports}, p.ports, clock, p.Release)
	if p.server.Settings, err = json.Marshal(s); err != nil {
		return nil, errors.Join(err, open.Close(), p.sw.Close(), kernel.Close())
	}
	p.server.OnController(func(connected bool) { p.sw.SetControllerAway(!connected) })
	p.server.OnTTL(p.sw.TellTTL)
	p.sw.SetControllerAway(true)
	if before != nil {
		return open, p.restoreFrom(before)
	}
	logRestored(p.Log, p.sw)
	p.restoreFromFile()
	return open, nil
}

// restoreFrom installs the state that the predecessor has given.
func (p *Process) restoreFrom(before *predecessor) error {
	k, bundle, err := parseKept(before.kept, p.sw.Clock())
	if err == nil && bundle.Names != nil {
		err = p.sw.Apply(bundle)
	}
	if err = errors.Join(err, p.takeHeld(before)); err != nil {
		return fmt.Errorf("the entries of the previous switch: %w", err)
	}
	for i := range k.Ports {
		spec := &k.Ports[i]
		err := ErrDeclined
		if before.Has(cmp.Or(spec.Link, spec.Name)) {
			err = p.ports.inherit(spec, &before.Inheritance)
		}
		if errors.Is(err, ErrDeclined) {
			before.OnBegin(func() error { p.openLater(spec); return nil })
		} else if err != nil {
			return err
		}
	}
	return nil
}

// openLater opens a port that the predecessor had to close first. If that fails, the controller
// opens it again, as it does for a confined switch.
func (p *Process) openLater(spec *door.PortSpec) {
	if err := p.ports.OpenPort(spec); err != nil && !errors.Is(err, door.ErrConfined) {
		p.Log.Warn("a port of the previous switch is not opened", "port", spec.Name, "error", err)
	}
}

// workers is the number of workers.
func (p *Process) workers() int { return cmp.Or(p.Settings.Workers, runtime.NumCPU()) }

// nextAwake is the next of the launcher's requests to keep processors awake.
func (p *Process) nextAwake() (*ports.Awake, error) {
	f := p.awake[0]
	p.awake = p.awake[1:]
	return ports.AwakeBy(f)
}

// openOffload opens the offload if the settings allow it. If the kernel cannot offload, that is not
// an error: the switch forwards everything.
func (p *Process) openOffload() *Offload {
	switch s := &p.Settings; {
	case s.Offload == local.OffloadOff:
		return &Offload{Why: "it is off"}
	case s.ConnectionCache != nil && !*s.ConnectionCache:
		return &Offload{Why: "the exact-match cache is off"}
	case p.Confined && p.offload == nil:
		const why = "the launcher of the confined switch has loaded no programs"
		p.Log.Warn("connections are not offloaded to the kernel: " + why)
		return &Offload{Why: why}
	}
	open := OpenOffload
	if p.Confined {
		open = func() (*Offload, error) { return AdoptOffload(p.offload) }
	}
	o, err := open()
	if err != nil {
		p.Log.Warn("connections are not offloaded to the kernel", "error", err)
		return &Offload{Why: err.Error()}
	}
	p.Log.Info("connections are offloaded to the kernel")
	return o
}

// answerEnd makes serve return. The connection ends with the process.
func (p *Process) answerEnd(w http.ResponseWriter, r *http.Request) {
	t, ok := p.server.AnswerEnd(w, r)
	if !ok {
		return
	}
	select {
	case p.ends <- struct{}{}:
		p.successor = t
	default: // it is ending already; the second caller need not wait
		t.Close()
	}
}

// packetIn sends a packet-in to the controller.
func (p *Process) packetIn(pi *telemetry.PacketIn) { p.server.SendEvent(door.Event{PacketIn: pi}) }

// flowRemoved reports an entry whose timeout has passed to the controller.
func (p *Process) flowRemoved(e *telemetry.FlowRemoved) {
	p.server.SendEvent(door.Event{FlowRemoved: e})
}

// ownDir is the path of the directory for this process. internal/confine has changed to it, and
// the user of a confined switch may not search its parents.
func (p *Process) ownDir() string {
	if p.Confined {
		return "."
	}
	return p.Dir
}

// pathOf is the path of a file of the switch.
func (p *Process) pathOf(name string) string { return filepath.Join(p.ownDir(), name) }

// keptPath is the file of entries and ports.
func (p *Process) keptPath() string { return p.pathOf(keptFile) }

// restoreFromFile restores the state of an ended predecessor. It logs the parts that it cannot
// restore; the controller sends them again.
func (p *Process) restoreFromFile() {
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
		if p.Confined {
			p.Log.Info("a port waits for the controller, which gives it again", "port", k.Ports[i].Name)
		} else if err := p.ports.OpenPort(&k.Ports[i]); err != nil {
			p.Log.Warn("a port is not restored", "port", k.Ports[i].Name, "error", err)
		}
	}
	p.Log.Info("entries and ports restored", "file", p.keptPath(), "entries", len(bundle.Add), "ports", len(p.ports.Specs()), "connections", p.sw.Table().Stats().Entries)
}

// serve answers until ctx ends or a part fails.
func (p *Process) serve(ctx context.Context, ln net.Listener, workers *running) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	api := http.NewServeMux()
	api.Handle("/", p.server.Handler())
	api.HandleFunc("POST /v1/take-over", p.answerTakeOver)
	api.HandleFunc("POST /v1/end", p.answerEnd)
	s := halfopen.Server{Limits: doorLimits, Handler: api, Name: "door", Log: p.Log}
	parts := []func(context.Context) error{
		func(ctx context.Context) error { return s.Serve(ctx, ln) },
		p.runKeep,
		p.runTooLong,
		func(ctx context.Context) error { memory.RunReturn(ctx); return nil },
	}
	ended := make(chan error, len(parts))
	for _, run := range parts {
		go func() { ended <- run(ctx) }()
	}
	p.Log.Info("the switch runs", "door", p.Socket, "dir", p.Dir)
	var next *successor
	var errs []error
	left := len(parts)
	select {
	case <-ctx.Done():
	case <-p.ends:
		p.Log.Info("stopping: the controller has requested it")
	case err := <-workers.ended:
		workers.ended <- nil // for stop
		errs = append(errs, err)
	case err := <-ended:
		left--
		errs = append(errs, err)
	case next = <-p.successors:
	}
	cancel()
	for ; left > 0; left-- {
		errs = append(errs, <-ended)
	}
	if next != nil {
		return errors.Join(append(errs, p.stopForSuccessor(next, workers.stop))...)
	}
	return errors.Join(append(errs, workers.stop())...)
}
