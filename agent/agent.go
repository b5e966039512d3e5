package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/internal/halfopen"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/tables"
)

// Agent is a running agent.
type Agent struct {
	config *Config
	log    *slog.Logger
	*pipeline
	kernel  *switchd.Offload // closed when the switch is
	open    *switchd.Opener  // of ports
	gateway *tap.Port
	tunnel  nodesPort      // nil: there is none
	here    switchd.Tunnel // tunnel, when its port is of this process
	// gone receives the reason when the agent stops being the controller of a switch in
	// another process. told is closed when packet-ins can be taken.
	gone <-chan error
	told chan struct{}
	// takeOver takes the switch from another controller.
	takeOver bool
	// api is where the API is served.
	api net.Listener
	// stands says that the switch had the gateway's port already.
	stands  bool
	host    *host.Host
	live    *live // nil with flow files
	ready   atomic.Bool
	beats   beats
	changes gate
	// snapshots is held by who writes the flow snapshot.
	snapshots sync.Mutex
	cluster   *joined // nil before it was joined
	// estate is what the agent before has given; nil when this one began by itself.
	estate *estate
	heirs  chan *heir // who is ready to take over
	leaves chan talk  // who wants this one to leave
	// asked is whom to tell when this one has left; nil: nobody asked.
	asked *talk
	// left says that ports and Node belong to another agent: nothing of them is
	// taken back.
	left bool
	// auditFile is where the log of policies goes.
	auditFile *packetin.AuditFile
}

// Run runs an agent until ctx ends; then it stops the switch and takes back
// everything it made on the Node: ports, addresses, routes, sysctls, nftables
// table and socket. before says what becomes of an agent that runs already. The error
// is ErrTakenOver when another agent took this one's place, and ErrAgain when Run is to
// be called anew, in a new process: after a hand-over that failed, on either side.
func Run(ctx context.Context, c *Config, log *slog.Logger, before Predecessor) (err error) {
	a := &Agent{config: c, log: log, heirs: make(chan *heir), leaves: make(chan talk), told: make(chan struct{})}
	if c.Switch != "" {
		return a.control(ctx, before)
	}
	if before == Stays {
		return a.run(ctx)
	}
	if c.Kubernetes != nil { // the configuration is whole when the API has told of the Node
		if a.cluster, err = c.joinCluster(ctx, log); err != nil {
			return err
		}
	}
	if a.estate, err = meet(ctx, c); err == nil {
		if a.estate == nil {
			return a.run(ctx)
		}
		err = a.inherit(ctx)
	}
	if why := (notHandedOver{}); before != HandsOverOrLeaves || !errors.As(err, &why) || ctx.Err() != nil {
		return err
	}
	log.Warn("the agent that runs is asked to leave", "why", err)
	if err := askToLeave(ctx, c.Socket, log); err != nil {
		return err
	}
	return ErrAgain
}

// control runs an agent whose switch is a process of its own. An agent that runs already
// leaves when this one is to take its place; the switch goes on meanwhile.
func (a *Agent) control(ctx context.Context, before Predecessor) error {
	a.takeOver = before != Stays
	a.left = true // what an agent before has made is this one's, and the next one's
	if before != Stays && running(a.config.Socket) {
		if err := askToLeave(ctx, a.config.Socket, a.log); err != nil {
			return err
		}
	}
	return a.run(ctx)
}

// run starts an agent where none runs, and serves until ctx ends.
func (a *Agent) run(ctx context.Context) error {
	ln, err := switchd.Listen(a.config.Socket)
	if err != nil {
		return err
	}
	a.api = ln
	if err = a.start(ctx); err == nil {
		turning := beginParts(ctx, a.switchPart())
		err = a.serve(ctx, ln, turning)
	}
	return a.finish(ln, err)
}

// switchPart runs the switch, or watches over it when it is another process.
func (a *Agent) switchPart() func(context.Context) error {
	if a.local == nil {
		return a.runSwitch
	}
	return a.local.Run
}

// finish closes what is left, after serve.
func (a *Agent) finish(ln net.Listener, err error) error {
	if !a.left || a.remote != nil && a.asked == nil {
		defer os.Remove(a.config.Socket)
	}
	err = errors.Join(err, closeListener(ln), a.stop())
	if a.asked != nil {
		a.asked.Close()
	}
	return err
}

// closeListener closes the API's socket, if the server has not done so.
func closeListener(ln net.Listener) error {
	if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// start makes pipeline, gateway and tunnel: what is needed before packets move.
// With the API, it waits until that has told of the Node.
func (a *Agent) start(ctx context.Context) error {
	c := a.config
	if err := c.CNI.installPlugin(); err != nil {
		return err
	}
	if c.Switch == "" {
		a.kernel = c.openOffload(a.log)
	}
	pods, err := a.load(ctx)
	if err != nil {
		return err
	}
	a.open = a.opener()
	a.open.Room(len(pods))
	a.openAudit()
	if err := a.openGateway(); err != nil {
		return err
	}
	if err := a.beginTunnel(); err != nil {
		return err
	}
	if a.remote != nil {
		r := remotePorts{a.remote, a.giver(), c.Gateway.MTU, c.PodVLANTags}
		a.pods = newPodPorts(pods, r, r.open, a.log)
	} else {
		a.pods = newPodPorts(pods, a.local, a.openPod, a.log)
	}
	a.pods.changes, a.pods.tags = &a.changes, c.PodVLANTags
	if a.live != nil {
		a.live.changes, a.live.setPorts, a.live.setNode = &a.changes, a.pods.set, a.setNode
		a.followCNI()
	}
	return nil
}

// enter opens the pods' ports, and makes the Node's side if it is not there.
// Packets move meanwhile; those of a port do when it is there, and to and from
// the Node when its side is, or where it has outlived the agent before, when the pods'
// ports are: before, what the Node asks them would be lost.
func (a *Agent) enter() (err error) {
	var opening sync.WaitGroup
	opening.Go(func() { a.runReconcile() })
	stands := a.host == nil && a.nodeStands()
	if stands {
		opening.Wait()
		err = a.addGateway()
	}
	if err == nil && a.host == nil { // it was not taken over
		err = a.nodeUp(stands)
	}
	opening.Wait()
	if err == nil {
		a.sweepTaps()
		a.ready.Store(true)
		a.log.Info("ready", "node", a.config.NodeName, "socket", a.config.Socket)
	}
	return err
}

// runReconcile looks after the pods' ports once.
func (a *Agent) runReconcile() { a.pods.reconcile() }

// load makes the switch with its pipeline, and tells the pods' ports.
func (a *Agent) load(ctx context.Context) (pods []Port, err error) {
	c, from := a.config, a.config.Flows
	pods = c.Ports
	o := c.options()
	if o.cluster = a.cluster; o.cluster == nil && c.Kubernetes != nil {
		if o.cluster, err = c.joinCluster(ctx, a.log); err != nil {
			return nil, err
		}
	}
	if o.seed, err = switchd.LoadSeed(c.seedFile()); err != nil {
		return nil, err
	}
	if o.clock, err = switchd.BootClock(); err != nil {
		return nil, err
	}
	o.snapshot = c.snapshotFile()
	if c.Switch != "" {
		if o.remote, a.gone, err = a.awaitSwitch(ctx); err != nil {
			return nil, err
		}
	} else {
		o.ctFile, o.offload, o.keepAwake = c.arenaFile(), a.kernel, c.keepsAwake(a.log)
	}
	if a.estate != nil {
		o.inherited = a.estate.arena
	}
	if !c.fromObjects() {
		a.pipeline, err = c.files().load(o)
	} else {
		if from = c.Manifests; o.cluster != nil {
			from = o.cluster.api.String()
		}
		if a.pipeline, a.live, err = loadLive(c, o, a.log); err == nil {
			pods = a.live.ports()
		}
	}
	if err == nil {
		if a.estate == nil && a.local != nil {
			logRestored(a.log, o.ctFile, a.ct.Stats().Restored)
		}
		a.log.Info("pipeline loaded", "node", c.NodeName, "from", from, "entries", len(a.sw.Flows()))
	}
	return pods, err
}

// openAudit begins the log of policies; its file is made with the first line. Packet-ins
// can be taken from then on.
func (a *Agent) openAudit() {
	c := &a.config.AuditLog
	a.auditFile = &packetin.AuditFile{Path: c.Path, Max: int64(c.MaxSizeMB) * 1e6, Keep: *c.Keep}
	a.packets.Audit = packetin.NewAudit(a.auditFile, a.objects, c.LinesPerSecond, a.log)
	close(a.told)
}

// openGateway makes the gateway's device. It enters the switch when the Node's side
// is there.
func (a *Agent) openGateway() (err error) {
	if a.remote != nil {
		return a.makeGateway()
	}
	g := &a.config.Gateway
	if a.gateway, err = a.open.Tap(tap.Options{Name: g.Name, MAC: g.MAC, MTU: g.MTU, Marks: true}); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	return nil
}

// addPort gives the switch a port that stays, or closes it. No other port may teach the
// switch its MAC.
func (a *Agent) addPort(no uint32, name string, p ports.Port, mac [6]byte) error {
	if err := a.local.AddSecuredPort(no, p, dataplane.PortSecurity{MACs: [][6]byte{mac}}); err != nil {
		return errors.Join(fmt.Errorf("port %s: %w", name, err), p.Close())
	}
	i := p.Info()
	a.log.Info("port added", "port", name, "ofPort", no, "driver", i.Driver, "mode", i.Mode)
	return nil
}

// serve runs pod ports, source of objects and API beside the switch, which is
// turning already, until ctx ends, one of them fails or another agent takes over,
// and returns when all have stopped.
func (a *Agent) serve(ctx context.Context, ln net.Listener, turning *group) error {
	if err := a.enter(); err != nil {
		return errors.Join(err, turning.stop())
	}
	others := beginParts(ctx, a.parts(ln)...)
	var err error
	select {
	case <-ctx.Done():
		a.log.Info("stopping")
	case h := <-a.heirs:
		return a.surrender(h, others, turning)
	case asked := <-a.leaves:
		return a.leave(asked, others, turning)
	case err = <-others.ended:
		others.left--
		a.log.Error("stopping: a part of the agent ended", "error", err)
	case err = <-turning.ended:
		turning.left--
		if ctx.Err() != nil && err == nil { // both are ready, and chance chose this one
			a.log.Info("stopping")
			break
		}
		a.log.Error("stopping: the switch ended", "error", err)
	}
	return errors.Join(err, others.stop(), turning.stop())
}

// parts are what runs beside the switch.
func (a *Agent) parts(ln net.Listener) []func(context.Context) error {
	all := []func(context.Context) error{
		func(ctx context.Context) error { return a.runAPI(ctx, ln) },
		quietly(a.pods.runPodPorts),
		quietly(a.packets.Audit.RunAudit),
		quietly(a.runLost),
		quietly(a.runBeats),
		a.runMend,
	}
	if *a.config.Metrics.Listen {
		all = append(all, lasting(a.runScrapes))
	}
	if a.config.Page.Address != "" {
		all = append(all, lasting(a.runPage))
	}
	if a.live != nil {
		all = append(all, a.live.runObjects, quietly(a.live.cni.runSweeps), lasting(a.runCNIConfig), lasting(a.runRevalidate), lasting(a.runSnapshots), lasting(a.runStatus))
	}
	if a.here != nil {
		all = append(all, quietly(a.runTooLong))
	}
	if a.remote != nil {
		all = append(all, lasting(a.runStalePorts))
	}
	return all
}

// quietly is a part that has no error.
func quietly(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); return nil }
}

// lasting is a part that may have nothing to do any more before ctx ends.
func lasting(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); <-ctx.Done(); return nil }
}

// apiLimits bound what users of this machine can hold of the API. Requests in
// progress are not bounded but by Total: many are streams, and only root may open
// the socket.
var apiLimits = halfopen.Limits{
	PerPeer: 128, Total: 1024, Header: 10 * time.Second, Body: 10 * time.Second, Idle: 2 * time.Minute,
	HeaderBytes: 64 << 10, BodyBytes: maxTraceRequest,
}

// runAPI answers for the agent until ctx ends.
func (a *Agent) runAPI(ctx context.Context, ln net.Listener) error {
	s := halfopen.Server{Limits: apiLimits, Handler: a.routes(ctx), Name: "API", Log: a.log}
	return s.Serve(ctx, ln)
}

// stop takes back what start made, as far as it came. What another agent goes on
// with is only closed here.
func (a *Agent) stop() error {
	var errs []error
	if a.left {
		a.keepTaps(true)
	}
	if a.live != nil {
		errs = append(errs, a.live.cni.node.Close())
	}
	if a.host != nil && !a.left {
		errs = append(errs, a.host.Down())
	}
	if a.pipeline != nil {
		if a.local != nil {
			a.local.Lend(a.left)
		}
		errs = append(errs, a.pipeline.close())
	}
	if a.gateway != nil {
		errs = append(errs, a.gateway.Close()) // it may not have come into the switch
	}
	errs = append(errs, a.kernel.Close(), a.open.Close())
	if a.auditFile != nil {
		errs = append(errs, a.auditFile.Close())
	}
	return errors.Join(errs...)
}

// hostConfig is the Node's side now: with what the objects ask of it, as far as
// they are known, so that nothing of it is ever missing in between.
func (a *Agent) hostConfig() host.Config {
	c := a.config.host()
	c.Theirs = a.estate != nil
	if a.live != nil {
		c.Side = a.config.sideOf(a.live.objects.NodeSide())
	}
	return c
}

// host is the Node's side of this configuration. Peers' pods of a family that this
// Node's pods do not have are nobody's here.
func (c *Config) host() host.Config {
	h := host.Config{
		Gateway: c.Gateway.Name, Addresses: c.Gateway.Addresses, PodCIDRs: c.PodCIDRs,
		Tunnel: c.outer(), Masquerade: *c.Masquerade,
		MarkMAC: tap.MarkMAC, Virtual: c.Gateway.virtual(), EgressReplies: c.encap() == tables.Hybrid, Underlay: c.Tunnel.LocalAddress,
		Record: c.recordFile(), Files: c.ownFiles(),
	}
	for _, p := range c.Peers {
		for i, cidr := range p.PodCIDRs {
			if !slices.ContainsFunc(c.PodCIDRs, sameFamily(cidr)) {
				continue
			}
			h.Peers = append(h.Peers, host.Peer{PodCIDR: cidr, Gateway: p.Gateways[i], NextHop: c.nextHop(&p, cidr)})
		}
	}
	return h
}
