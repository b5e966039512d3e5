package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/multicast"
	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/agent/podports"
	"github.com/antrail/antrail/agent/traceflow"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/internal/halfopen"
	"github.com/antrail/antrail/internal/memory"
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tables/uplink"
)

// Agent is a running agent.
type Agent struct {
	config *config.Config
	log    *slog.Logger
	*pipeline.Pipeline
	answers *answer.Answers
	tunnel  nodesPort   // nil: no port to other Nodes
	opened  switchPorts // in the switch
	// gone receives the reason when the agent stops being the controller of the switch. told is
	// closed when the agent can receive packet-ins.
	gone <-chan error
	told chan struct{}
	// takeOver replaces a running agent, and another controller.
	takeOver bool
	// found is set if the previous agent's switch was running.
	found bool
	// waiting holds the process that becomes the switch, with Config.Await.
	waiting *switchd.Waiting
	// api is where the API is served.
	api net.Listener
	// stands is set if the switch had the gateway's port at the start.
	stands bool
	host   *host.Host
	live   *live // nil with flow files
	// cni answers the plugin's calls; nil if the agent attaches no pods. programPods are the
	// pods of a program; nil otherwise.
	cni         *pluginCalls
	programPods *programPods
	ready       atomic.Bool
	beats       beats
	leaves      chan door.MessageConn // connections of agents that ask this one to leave
	// successor asked this agent to leave, and learns when it has ended; nil: no successor.
	successor *door.MessageConn
	// stays keeps ports, switch and Node as they are when the agent ends. The next agent
	// continues with them.
	stays bool
	// auditFile is the audit log of policies.
	auditFile *packetin.AuditFile
	// multicast keeps the members of groups, heldRoutes the multicast routes. Both are nil
	// without objects.
	multicast  *multicast.Querier
	heldRoutes *heldRoutes
	// traceflows runs Traceflows; nil without objects.
	traceflows *traceflow.Runner
}

// Run runs an agent until ctx ends. If the agent owns its switch, it then ends the switch and
// removes everything it made on the Node: ports, addresses, routes, sysctls, nftables, socket.
// With takeOver the agent first replaces an agent that runs. The error is ErrTakenOver if
// another agent has taken over. It is ErrAgain if the switch has ended: the caller then calls
// Run in a new process.
func Run(ctx context.Context, c *config.Config, log *slog.Logger, takeOver bool) error {
	a := &Agent{
		config: c, log: log, leaves: make(chan door.MessageConn), told: make(chan struct{}), takeOver: takeOver,
		opened: switchPorts{owner: ownerOf(c), log: log, borrows: c.OwnsSwitch() && c.Await == ""}, stays: !c.OwnsSwitch(),
	}
	if takeOver && running(c.Socket) {
		if err := askToLeave(ctx, c.Socket, log); err != nil {
			return err
		}
	}
	ln, err := listen(ctx, c.Socket)
	if err != nil {
		return err
	}
	a.api = ln
	if err = a.start(ctx); err == nil {
		watching := beginParts(ctx, a.runSwitch)
		err = a.serve(ctx, ln, watching)
	}
	return a.finish(ln, err)
}

// killed is how long a socket may be open without an answer. A killed agent's descriptors stay
// open in a program that it was starting (nft), until that program runs.
const killed = time.Second

// listen opens the API's socket. The error is ErrRunning if an agent runs already.
func listen(ctx context.Context, socket string) (ln net.Listener, err error) {
	for end := time.Now().Add(killed); ; time.Sleep(switchRetry) {
		ln, err = switchd.Listen(socket)
		if !errors.Is(err, ErrRunning) || ctx.Err() != nil || time.Now().After(end) || someoneAnswers(socket) {
			return ln, err
		}
	}
}

// someoneAnswers says whether any process answers HTTP at a socket.
func someoneAnswers(socket string) bool {
	c, err := net.DialTimeout("unix", socket, switchRetry)
	if err != nil {
		return false
	}
	defer c.Close()
	if _, err = io.WriteString(c, "GET /healthz HTTP/1.0\r\n\r\n"); err == nil {
		err = c.SetReadDeadline(time.Now().Add(killed))
	}
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	return err == nil
}

// finish closes what serve leaves open.
func (a *Agent) finish(ln net.Listener, err error) error {
	if a.successor == nil {
		defer os.Remove(a.config.Socket)
	}
	if err != nil && (a.found && !a.ready.Load() || errors.Is(err, ErrAgain) || errors.Is(err, ErrTakenOver)) {
		a.stays = true
	}
	err = errors.Join(err, closeListener(ln), a.stop())
	if a.successor != nil {
		a.successor.Close()
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

// start launches or finds the switch, installs the pipeline, and opens gateway and tunnel, so
// that packets move. With Kubernetes, it first waits for the API server to describe the Node.
func (a *Agent) start(ctx context.Context) error {
	c := a.config
	if err := installPlugin(&c.CNI); err != nil {
		return err
	}
	pods, err := a.load(ctx)
	if err != nil {
		return err
	}
	a.openAudit()
	if !c.External() {
		if err := a.makeGateway(); err != nil {
			return err
		}
	}
	if err := a.openTunnel(); err != nil {
		return err
	}
	r := podSwitch{&a.opened, c, c.Encap() == tables.PolicyOnly}
	a.Pods = podports.New(pods, r, r.open, a.log)
	a.Pods.Tags = c.PodVLANTags
	if a.live != nil {
		a.live.setPorts, a.live.setNode = a.Pods.Set, a.setNode
		a.followCNI()
	}
	a.programPods.follow(a)
	return nil
}

// enter opens the pods' ports, and makes the Node's side if it is missing. Packets of a port
// move as soon as the port is open. Packets between Node and switch move once the Node's side
// is up. If that side survived the previous agent, they move only after the pods' ports are
// open. Otherwise the switch would lose the Node's requests to pods.
func (a *Agent) enter() (err error) {
	var reopening sync.WaitGroup
	reopening.Go(func() { a.runReconcile() })
	if a.config.SharesCard() || a.config.OwnsCard() { // the Node's side needs the tap
		reopening.Wait()
	}
	stands := a.nodeStands()
	if stands {
		reopening.Wait()
		err = a.addGateway()
	}
	if err == nil && !a.config.External() {
		err = a.nodeUp(stands)
	}
	reopening.Wait()
	if err == nil {
		a.sweepTaps()
		a.ready.Store(true)
		a.log.Info("ready", "node", a.config.NodeName, "socket", a.config.Socket)
	}
	return err
}

// runReconcile reconciles the pods' ports once.
func (a *Agent) runReconcile() { a.Pods.Reconcile() }

// runPods reconciles the pods' ports with the Node's links until ctx ends.
func (a *Agent) runPods(ctx context.Context) {
	changes, err := host.WatchLinks(ctx)
	if err != nil {
		a.log.Warn("the kernel sends no link messages; the agent polls the links instead", "error", err)
	}
	a.Pods.Run(ctx, changes)
}

// load finds the switch and installs the pipeline. It returns the pods' ports.
func (a *Agent) load(ctx context.Context) (pods []config.Port, err error) {
	c := a.config
	var cluster *joined
	if c.Kubernetes != nil { // the API completes the configuration with the Node's facts
		if cluster, err = joinCluster(ctx, c, a.log); err != nil {
			return nil, err
		}
	}
	o := pipeline.OptionsOf(c)
	if o.Clock, err = switchd.BootClock(); err != nil {
		return nil, err
	}
	if o.Remote, a.gone, err = a.awaitSwitch(ctx); err != nil {
		return nil, err
	}
	a.opened.sw = o.Remote
	return a.install(o, cluster)
}

// install installs the pipeline in the switch. It returns the pods' ports.
func (a *Agent) install(o pipeline.Options, cluster *joined) (pods []config.Port, err error) {
	c, from := a.config, a.config.Flows
	pods = c.Ports
	switch {
	case c.Program != "":
		if err = a.openProgramPods(); err != nil {
			return nil, err
		}
		with := a.programPods.withPods(c)
		program := pipeline.ProgramOf(with)
		from, pods = program.String(), with.Ports
		a.Pipeline, err = program.Load(o)
	case !c.FromObjects():
		a.Pipeline, err = pipeline.Files{Flows: c.Flows, Groups: c.Groups, Meters: c.Meters}.Load(o)
	default:
		if from = c.Manifests; cluster != nil {
			from = cluster.api.String()
		}
		if a.Pipeline, err = pipeline.NewPipeline(o); err == nil {
			err = a.SetBeside(pipeline.BesideOf(c))
		}
		if err == nil {
			pods, err = a.installObjects(cluster)
		}
	}
	if err == nil {
		a.answers = answer.New(a.Pipeline)
		a.log.Info("pipeline loaded", "node", c.NodeName, "from", from, "entries", len(a.Switch.Flows()))
	}
	return pods, err
}

// installObjects installs the entries of the objects. It returns their ports.
func (a *Agent) installObjects(cluster *joined) (pods []config.Port, err error) {
	if a.live, err = loadLive(a.config, a.Pipeline, cluster, a.log); err != nil {
		return nil, err
	}
	return a.live.ports(), nil
}

// openAudit starts the audit log of policies. The first line creates its file. From then on the
// agent can receive packet-ins.
func (a *Agent) openAudit() {
	c, audit := a.config, &a.config.AuditLog
	a.auditFile = &packetin.AuditFile{Path: audit.Path, Max: int64(audit.MaxSizeMB) * 1e6, Keep: *audit.Keep}
	a.Packets.Audit = packetin.NewAudit(a.auditFile, a.Objects, audit.LinesPerSecond, a.log)
	if a.Objects != nil {
		a.heldRoutes = &heldRoutes{sw: a.Remote, borrows: a.opened.borrows}
		routes := host.NewMulticastRoutes(c.Gateway.Name, c.Tunnel.LocalAddress, a.heldRoutes)
		a.multicast = multicast.New(a.Objects, a.Switch, routes, time.Now, a.log)
		a.Packets.IGMP = a.multicast.Receive
	}
	if a.live != nil {
		a.traceflows = traceflow.New(a.live.traceflowConfig(a.Pipeline))
		a.TraceflowStatus = a.traceflows.Status
	}
	close(a.told)
}

// serve opens the pods' ports, then runs the parts of the agent beside the watch on the switch.
// It ends when ctx ends, a part fails or another agent takes over. It returns when all have
// stopped.
func (a *Agent) serve(ctx context.Context, ln net.Listener, watching *group) error {
	if err := a.enter(); err != nil {
		return errors.Join(err, watching.stop())
	}
	others := beginParts(ctx, a.parts(ln)...)
	var err error
	select {
	case <-ctx.Done():
		a.log.Info("stopping")
	case talk := <-a.leaves:
		return a.stopForSuccessor(talk, others, watching)
	case err = <-others.ended:
		others.left--
		a.log.Error("stopping: a part of the agent ended", "error", err)
	case err = <-watching.ended:
		watching.left--
		if ctx.Err() != nil && err == nil { // select chose at random between two ready cases
			a.log.Info("stopping")
			break
		}
		a.log.Error("stopping: the switch ended", "error", err)
	}
	return errors.Join(err, others.stop(), watching.stop())
}

// parts are the goroutines that run beside the switch.
func (a *Agent) parts(ln net.Listener) []func(context.Context) error {
	all := []func(context.Context) error{
		func(ctx context.Context) error { return a.runAPI(ctx, ln) },
		quietly(a.runPods),
		quietly(a.Packets.Audit.RunAudit),
		quietly(a.runDropLog),
		quietly(a.runBeats),
		quietly(memory.RunReturn),
	}
	if a.host != nil {
		all = append(all, a.runHostReconcile)
	}
	if *a.config.Metrics.Listen {
		all = append(all, lasting(a.runScrapes))
	}
	if a.config.Page.Address != "" {
		all = append(all, lasting(a.runPage))
	}
	if a.multicast != nil {
		all = append(all, lasting(a.runMulticast))
	}
	if a.cni != nil {
		all = append(all, quietly(a.cni.runSweeps), lasting(a.runCNIConfig))
	}
	if a.live != nil {
		all = append(all, quietly(a.traceflows.Run), a.live.runObjects, lasting(a.runRevalidate), lasting(a.runAssignments), lasting(a.runStatus))
	}
	return append(all, lasting(a.runStalePorts))
}

// apiLimits bound what processes on this machine can hold of the API. Only Total bounds the
// requests in progress: many are streams, and only root may open the socket.
var apiLimits = halfopen.Limits{
	PerPeer: 128, Total: 1024, Header: 10 * time.Second, Body: 10 * time.Second, Idle: 2 * time.Minute,
	HeaderBytes: 64 << 10, BodyBytes: pipeline.MaxTraceRequest,
}

// runAPI answers for the agent until ctx ends.
func (a *Agent) runAPI(ctx context.Context, ln net.Listener) error {
	s := halfopen.Server{Limits: apiLimits, Handler: a.routes(ctx), Name: "API", Log: a.log}
	return s.Serve(ctx, ln)
}

// stop removes what start made, however far start came. If another agent continues with it,
// stop only closes this agent's side.
func (a *Agent) stop() error {
	var errs []error
	if a.cni != nil {
		errs = append(errs, a.cni.node.Close())
	}
	switch {
	case a.stays:
	case a.host != nil:
		errs = append(errs, a.host.Down())
	default: // the bridge takes its addresses with it
		_, err := host.ReturnCard(a.config.RecordFile(), func(string) {})
		errs = append(errs, err)
	}
	if !a.stays {
		errs = append(errs, a.endSwitch())
	}
	if a.waiting != nil {
		errs = append(errs, a.waiting.Close())
	}
	if a.auditFile != nil {
		errs = append(errs, a.auditFile.Close())
	}
	return errors.Join(errs...)
}

// hostConfig is the Node's side as it has to be now. It includes what the known objects need,
// so that nothing is missing for a moment.
func (a *Agent) hostConfig() host.Config {
	c := hostOf(a.config)
	c.Theirs = a.stands
	if a.live != nil {
		c.Side = sideOf(a.config, a.live.objects.NodeSide())
	}
	return c
}

// hostOf is the Node's side of a configuration. It omits peers' pods of an IP family that this
// Node's pods do not have.
func hostOf(c *config.Config) host.Config {
	h := host.Config{
		Gateway: c.Gateway.Name, Addresses: c.Gateway.Addresses, PodCIDRs: c.PodCIDRs,
		Tunnel: outerOf(c), Masquerade: *c.Masquerade,
		MarkMAC: tap.MarkMAC, Virtual: virtualOf(&c.Gateway), EgressReplies: c.Encap() == tables.Hybrid, PodRoutes: c.Encap() == tables.PolicyOnly, Underlay: c.Tunnel.LocalAddress,
		Record: c.RecordFile(), Files: c.OwnFiles(),
	}
	if c.SharesCard() {
		up := c.PortOf(config.RoleUplink)
		h.Shared = &host.SharedCard{
			Link: c.Uplink.Card, Tap: up.Link, MAC: up.MAC, Addr: c.Tunnel.LocalAddress, First: uplink.FirstSNATPort, Last: uplink.LastSNATPort,
		}
	}
	if c.OwnsCard() {
		up := c.PortOf(config.RoleUplink)
		h.Owned = &host.OwnedCard{
			Link: up.Link, Bridge: c.PortOf(config.RoleBridge).Link, MAC: up.MAC, Addr: c.Tunnel.LocalAddress, First: uplink.FirstSNATPort, Last: uplink.LastSNATPort,
		}
	}
	for _, p := range c.Peers {
		for i, cidr := range p.PodCIDRs {
			if !slices.ContainsFunc(c.PodCIDRs, config.SameFamily(cidr)) {
				continue
			}
			h.Peers = append(h.Peers, host.Peer{PodCIDR: cidr, Gateway: p.Gateways[i], NextHop: c.NextHop(&p, cidr)})
		}
	}
	return h
}
