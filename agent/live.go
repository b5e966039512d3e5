package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/kube"
)

// live keeps the switch and the pods' ports as the manifests say. Whatever is
// wrong with manifests, the last good state stays; a pod whose entries are not
// in the switch sends and receives nothing.
type live struct {
	config    *Config
	store     *control.Store
	manifests *control.Manifests // nil with the API
	api       *kube.Source       // nil with manifests
	objects   *control.Reconciler
	log       *slog.Logger
	// setPorts is told the ports that the switch is to have, by one at a time.
	setPorts func([]Port)
	portsMu  sync.Mutex
	cni      *plugs
	// progressed says that policies may have come further.
	progressed signal
	shield     shield
	// setNode is told what the switch asks of the Node.
	setNode   func(*control.NodeSide) error
	nodeMu    sync.Mutex        // one at a time makes the Node's side
	node      *control.NodeSide // what the Node has; nil: not known
	nodeError error             // why it has not what was last asked for

	updating sync.Mutex       // held while switch and ports are brought to a snapshot
	seen     *control.Cluster // that snapshot; nil: none yet
	// unfit are the NodeConfig or Node of a snapshot that was left out.
	unfit atomic.Pointer[control.RefusedEdits]

	told   map[string]bool // problems that were logged and are still there
	missed bool            // a snapshot was left out

	restored []Port        // of the flow snapshot that the switch began with
	begun    bool          // with the API: the first state of all resources is there
	synced   chan struct{} // closed when the switch has what the manifests say
	sync     sync.Once     // closes it

	// wrong are the problems of the manifests now.
	wrong atomic.Pointer[[]control.Problem]
}

// retryTime is how long what the switch did not take waits for the next try.
const retryTime = 2 * time.Second

// loadLive makes the switch with what the agent before it had, or else with what
// the manifests say now; with the API, else with nothing. The error is for what
// the agent cannot begin with: manifests without this Node, or another Node's.
func loadLive(c *Config, o options, log *slog.Logger) (*pipeline, *live, error) {
	p, err := newPipeline(o)
	if err != nil {
		return nil, nil, err
	}
	failed := p.beginAsking()
	l := &live{
		config: c, store: control.NewStore(control.DeriveEndpoints), log: log, told: map[string]bool{},
		shield: newShield(p), synced: make(chan struct{}),
	}
	l.objects = l.newObjects(p)
	if o.cluster != nil {
		l.store, l.api = o.cluster.store, o.cluster.api
	}
	if err = l.openCNI(); err == nil {
		err = l.beginWith(p, &o)
	}
	if away := failed(); away != nil { // what the switch has is not known
		err = errors.Join(ErrAgain, away, err)
	}
	p.objects, p.api = l.objects, l.api
	p.observeDelays()
	p.problems = l.problems
	if err != nil {
		return p, nil, err
	}
	return p, l, nil
}

// beginWith fills the switch before packets move: with what the agent before has left, or
// with what the manifests say.
func (l *live) beginWith(p *pipeline, o *options) error {
	err := l.restore(p, o.snapshot)
	if err != nil && p.remote != nil && p.sw.Names() != nil {
		// The numbers of objects are lost, but what nobody asks for goes with the first change.
		if err := l.objects.Recall(&control.Memory{}, installed(p.sw)); err != nil {
			return err
		}
	}
	if err != nil && l.api == nil {
		return l.load(p)
	}
	return nil
}

// newObjects is what keeps a switch in step with objects.
func (l *live) newObjects(p *pipeline) *control.Reconciler {
	r := control.NewReconciler(l.config.NodeName, installer{p}, time.Now)
	r.ShowRefusedEdits(l.refusedEdits)
	return r
}

// load installs what the manifests say now.
func (l *live) load(p *pipeline) (err error) {
	c := l.config
	if l.manifests, err = control.NewManifests(c.Manifests, l.store); err != nil {
		return err
	}
	l.report(l.manifests.Problems())
	cluster := l.store.Snapshot()
	if err := c.fits(cluster.NodeConfig(c.NodeName)); err != nil {
		return fmt.Errorf("%s: %w", c.Manifests, err)
	}
	if err := l.objects.Update(cluster, nil); err != nil {
		if p.sw.Names() == nil {
			return fmt.Errorf("%s: %w", c.Manifests, err)
		}
		l.log.Warn("not all objects are in the switch", "error", err)
	}
	l.tellSynced()
	l.shield.update(cluster)
	l.seen = cluster
	return nil
}

// tellSynced tells those who wait for it that the switch has what the manifests
// say, as soon as that is so.
func (l *live) tellSynced() {
	if !l.objects.Inherits() {
		l.sync.Do(func() { close(l.synced) })
	}
}

// begunBySnapshot says whether the switch still goes by the flow snapshot.
func (l *live) begunBySnapshot() bool {
	l.portsMu.Lock()
	defer l.portsMu.Unlock()
	return l.restored != nil
}

// ports are those of the manifests, on the links that the configuration gives
// their names. Those that objects name and nobody else has are made.
func (l *live) ports() []Port {
	if l.restored != nil {
		return l.restored
	}
	if l.api != nil && !l.begun {
		return nil
	}
	given := map[string]Port{}
	for _, p := range l.config.Ports {
		given[p.Name] = p
	}
	var all []Port
	cluster := l.store.Snapshot()
	made := cluster.MadePorts()
	for _, p := range cluster.NodeConfig(l.config.NodeName).Ports {
		port, ok := given[p.Name]
		if !ok {
			port = Port{Name: p.Name, Link: p.Name, Driver: l.config.PodDriver}
			if m, ours := made[p.Name]; ours && p.Pod == (control.Name{}) {
				port.Driver, port.oneWay = DriverTap, !m.Returns
			}
		}
		port.OFPort, port.MAC = p.OFPort, podMAC(&p)
		all = append(all, port)
	}
	return append(all, l.cni.ports()...)
}

// tellPorts tells the switch its ports as they are now.
func (l *live) tellPorts() {
	l.portsMu.Lock()
	defer l.portsMu.Unlock()
	if l.setPorts != nil { // else the agent asks when it begins
		l.setPorts(l.ports())
	}
}

// runObjects follows the source of objects until ctx ends.
func (l *live) runObjects(ctx context.Context) error {
	if l.api != nil {
		return l.runKube(ctx)
	}
	return l.runManifests(ctx)
}

// runManifests follows the manifests until ctx ends.
func (l *live) runManifests(ctx context.Context) error {
	if l.restored != nil && !l.firstSync(ctx) {
		return nil
	}
	_, end := l.store.Follow(l.update)
	defer end()
	l.catchUp()
	l.cni.open()
	done, err := l.manifests.Watch(ctx, l.report)
	if err != nil {
		return err
	}
	l.runRetries(done)
	return nil
}

// runRetries tries again what the switch or the Node did not take, until no more
// changes come.
func (l *live) runRetries(done <-chan struct{}) {
	again := time.NewTicker(retryTime)
	defer again.Stop()
	for {
		select {
		case <-done:
			return
		case <-again.C:
			l.retry()
		}
	}
}

// retry tries again what the switch or the Node did not take.
func (l *live) retry() {
	l.updating.Lock()
	defer l.updating.Unlock()
	if l.objects.Waiting() > 0 {
		l.warn(l.objects.Retry())
		l.tellSynced()
		l.cni.changed.raise()
		l.progressed.raise()
	}
	l.followNode()
}

// update brings switch and ports to a new snapshot.
func (l *live) update(u control.Update) {
	l.updating.Lock()
	defer l.updating.Unlock()
	l.bring(u)
}

// catchUp takes in what changed before anybody followed: a pod that was detached.
// A follower that waits meanwhile has the same snapshot.
func (l *live) catchUp() {
	l.updating.Lock()
	defer l.updating.Unlock()
	if now := l.store.Snapshot(); now != l.seen {
		l.bring(control.Update{New: now})
	}
}

// bring does so. l.updating is held.
func (l *live) bring(u control.Update) {
	l.seen = u.New
	if err := l.fits(u.New); err != nil {
		l.log.Error("the objects are not this Node's any more; what was there stays", "error", err)
		l.missed = true
		return
	}
	keys := u.Changed
	if l.missed {
		keys, l.missed = nil, false
	}
	l.warn(l.objects.UpdateSince(u.New, keys, u.Since))
	l.tellSynced()
	l.tellPorts()
	l.cni.changed.raise()
	l.progressed.raise()
	l.shield.update(u.New)
	l.followNode()
}

func (l *live) warn(err error) {
	if err != nil {
		l.log.Warn("not all objects are in the switch; trying again", "error", err)
	}
}

// report logs problems that are new.
func (l *live) report(problems []control.Problem) {
	l.wrong.Store(&problems)
	now := map[string]bool{}
	for _, p := range problems {
		if text := p.Error(); !p.Ignored {
			now[text] = true
			if !l.told[text] {
				l.log.Warn("a manifest is not in force", "problem", text)
			}
		}
	}
	l.told = now
}
