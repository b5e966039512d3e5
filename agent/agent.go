// Package agent is a Node's agent: it puts the switch together from its parts,
// looks after it, and answers for it.
//
//	config.go     the configuration file
//	agent.go      start, run, stop
//	pipeline.go   flow files -> a switch with that pipeline
//	manifests.go  objects of a cluster -> the same
//	live.go       manifests that are watched, and the switch kept in step
//	livekube.go   the Kubernetes API in their place
//	watches.go    how its watches stand
//	kubernetes.go its part of the configuration
//	nodefacts.go  what the API tells of the Node before anything is opened
//	shield.go     Services' endpoints while connections are lost
//	arena.go      the connections, kept across restarts
//	snapshot.go   the entries likewise: as text
//	snapshotfile.go  the file, and what it is believed for
//	snapshotkeep.go  who writes it, and when
//	resume.go     from a snapshot to what the manifests say
//	rejudge.go    connections of before, judged by the entries of now
//	seed.go       what endpoints are chosen by, kept across restarts
//	uninstall.go  what is left behind, and who takes it back
//	tunnel.go     the port to the other Nodes, and when there is none
//	nodeside.go   what the switch asks of the Node around it
//	cnifiles.go   what the container runtime has of the CNI plugin
//	installer.go  what control installs, into the switch
//	podports.go   pod ports come and go with their links
//	drivers.go    which driver such a port has, and why
//	offload.go    what the kernel forwards by itself
//	packetin.go   packets that entries send here
//	reject.go     what policies reject, and Services without endpoints, is refused
//	answer.go     resets and ICMP errors
//	audit.go      the log of policies
//	auditfile.go  its file
//	api.go        what can be asked over the unix socket
//	text.go       the answers as text, in the manner of Open vSwitch's tools
//	records.go    the answers as JSON
//	conntrack.go  connections: listed and flushed, by filter
//	ctcounters.go counters of the connection table
//	objects.go    the objects behind the entries
//	explain.go    entry -> object, object -> entries
//	trace.go      one packet, table by table
//	tracelive.go  real packets likewise, as they pass
//	tracewalk.go  … with names and objects
//	tracewatch.go … at several agents, from outside
//	metrics.go    the same counters for Prometheus
//	antreametrics.go  and under the names that Antrea's agent has
//	delay.go      how long a change takes to be in force
//	scrape.go     metrics and health over TCP
//	health.go     is it alive, is it ready
//	cni.go        pods that the CNI plugin attaches
//	livecheck.go  a look at itself, with echo requests (echo.go)
//	logging.go    the log, which does not repeat itself
//	client.go     the other end of the socket
//	offline.go    the same API for files, without an agent
//	replay.go     a capture file through a pipeline
//
// Goroutines: the switch's own (package dataplane), runPodPorts, runObjects,
// runAudit, runBeats, runScrapes, runMend,
// runCNIConfig, and the API's server. Packets never come here, except those that an entry
// sends to the controller.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/ports/underlay"
)

// podRing is the slots of a pod port's rings: the frames of a whole TCP window
// of a megabyte wait there while the worker is busy elsewhere.
const podRing = 1024

// Agent is a running agent.
type Agent struct {
	config *Config
	log    *slog.Logger
	*pipeline
	kernel offload        // closed when the switch is
	memory *afxdp.Memory  // of AF_XDP ports; nil before the pods' ports are known
	tunnel *underlay.Port // nil: there is none
	host   *host.Host
	pods   *podPorts
	live   *live // nil with flow files
	ready  atomic.Bool
	beats  beats
	// auditFile is where the log of policies goes.
	auditFile *auditFile
}

// Run runs an agent until ctx ends; then it stops the switch and takes back
// everything it made on the Node: ports, addresses, routes, sysctls, nftables
// table and socket.
func Run(ctx context.Context, c *Config, log *slog.Logger) error {
	ln, err := listen(c.Socket)
	if err != nil {
		return err
	}
	defer os.Remove(c.Socket)
	a := &Agent{config: c, log: log}
	err = a.start(ctx)
	if err == nil {
		err = a.serve(ctx, ln)
	}
	return errors.Join(err, closeListener(ln), a.stop())
}

// closeListener closes the API's socket, if the server has not done so.
func closeListener(ln net.Listener) error {
	if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// start makes everything that stays: pipeline, gateway, tunnel, the Node's
// side. With the API, it waits until that has told of the Node.
func (a *Agent) start(ctx context.Context) error {
	c := a.config
	if err := c.CNI.installPlugin(); err != nil {
		return err
	}
	a.kernel = c.openOffload(a.log)
	pods, err := a.load(ctx)
	if err != nil {
		return err
	}
	a.memory = afxdp.NewMemory(podRing, len(pods))
	a.openAudit()
	if err := a.openGateway(); err != nil {
		return err
	}
	if err := a.openTunnel(); err != nil {
		return err
	}
	if a.host, err = host.Up(c.host()); err != nil {
		return err
	}
	a.pods = newPodPorts(pods, a.sw, a.openPod, a.log)
	if a.live != nil {
		a.live.setPorts, a.live.setNode = a.pods.set, a.setNode
		a.followCNI()
		a.live.followNode()
	}
	return nil
}

// load makes the switch with its pipeline, and tells the pods' ports.
func (a *Agent) load(ctx context.Context) (pods []Port, err error) {
	c, from := a.config, a.config.Flows
	pods = c.Ports
	o := c.options()
	if c.Kubernetes != nil {
		if o.cluster, err = c.joinCluster(ctx, a.log); err != nil {
			return nil, err
		}
	}
	if o.seed, err = loadSeed(c.seedFile()); err != nil {
		return nil, err
	}
	if o.clock, err = bootClock(); err != nil {
		return nil, err
	}
	o.ctFile, o.snapshot = c.arenaFile(), c.snapshotFile()
	o.offload = a.kernel
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
		logRestored(a.log, o.ctFile, a.ct.Stats().Restored)
		a.log.Info("pipeline loaded", "node", c.NodeName, "from", from, "entries", len(a.sw.Flows()))
	}
	return pods, err
}

// openAudit begins the log of policies; its file is made with the first line.
func (a *Agent) openAudit() {
	c := &a.config.AuditLog
	a.auditFile = &auditFile{path: c.Path, max: int64(c.MaxSizeMB) * 1e6, keep: *c.Keep}
	a.packets.audit = newAudit(a.auditFile, a.objects, c.LinesPerSecond, a.log)
}

func (a *Agent) openGateway() error {
	g := &a.config.Gateway
	p, err := tap.Open(tap.Options{Name: g.Name, MAC: g.MAC, MTU: g.MTU, Marks: true})
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	return a.addPort(g.OFPort, g.Name, p)
}

// addPort gives the switch a port that stays, or closes it.
func (a *Agent) addPort(no uint32, name string, p ports.Port) error {
	if err := a.sw.AddPort(no, p); err != nil {
		return errors.Join(fmt.Errorf("port %s: %w", name, err), p.Close())
	}
	i := p.Info()
	a.log.Info("port added", "port", name, "ofPort", no, "driver", i.Driver, "mode", i.Mode)
	return nil
}

// runPods looks after the pods' ports until ctx ends. The agent is ready when
// those that are there are in the switch.
func (a *Agent) runPods(ctx context.Context) {
	a.pods.reconcile()
	a.ready.Store(true)
	a.log.Info("ready", "node", a.config.NodeName, "socket", a.config.Socket)
	a.pods.runPodPorts(ctx)
}

// serve runs switch, pod ports, manifests and API until ctx ends or one of them
// fails, and returns when all have stopped.
func (a *Agent) serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: a.routes(), ReadHeaderTimeout: 10 * time.Second}
	parts := []func() error{
		func() error { return a.sw.Run(ctx) },
		func() error { return runServer(server, ln) },
		func() error { a.runPods(ctx); return nil },
		func() error { a.packets.audit.runAudit(ctx); return nil },
		func() error { a.runTooLong(ctx); return nil },
		func() error { a.runBeats(ctx); return nil },
		func() error { return a.runMend(ctx) },
	}
	if *a.config.Metrics.Listen {
		parts = append(parts, func() error { a.runScrapes(ctx); <-ctx.Done(); return nil })
	}
	if a.live != nil {
		parts = append(parts,
			func() error { return a.live.runObjects(ctx) },
			func() error { a.runCNIConfig(ctx); <-ctx.Done(); return nil },
			func() error { a.runRejudge(ctx); <-ctx.Done(); return nil },
			func() error { a.runSnapshots(ctx); <-ctx.Done(); return nil })
	}
	ended := make(chan error, len(parts))
	for _, run := range parts {
		go func() { ended <- run() }()
	}
	var errs []error
	select {
	case <-ctx.Done():
		a.log.Info("stopping")
	case err := <-ended:
		errs = append(errs, err)
		a.log.Error("stopping: a part of the agent ended", "error", err)
	}
	cancel()
	server.Close()
	for range cap(ended) - len(errs) {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// runServer answers for the agent until the server is closed.
func runServer(s *http.Server, ln net.Listener) error {
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// stop takes back what start made, as far as it came.
func (a *Agent) stop() error {
	var errs []error
	if a.live != nil {
		errs = append(errs, a.live.cni.node.Close())
	}
	if a.host != nil {
		errs = append(errs, a.host.Down())
	}
	if a.pipeline != nil {
		errs = append(errs, a.pipeline.close())
	}
	errs = append(errs, a.kernel.close())
	if a.memory != nil {
		errs = append(errs, a.memory.Close())
	}
	if a.auditFile != nil {
		errs = append(errs, a.auditFile.Close())
	}
	return errors.Join(errs...)
}

// host is the Node's side of this configuration. Peers' pods of a family that this
// Node's pods do not have are nobody's here.
func (c *Config) host() host.Config {
	h := host.Config{
		Gateway: c.Gateway.Name, Addresses: c.Gateway.Addresses, PodCIDRs: c.PodCIDRs,
		Tunnel: c.outer(), Masquerade: *c.Masquerade,
		MarkMAC: tap.MarkMAC, Virtual: c.Gateway.virtual(), Underlay: c.Tunnel.LocalAddress,
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
