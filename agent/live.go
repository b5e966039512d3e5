package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/agent/podports"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/kube"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
)

// live keeps the switch and the pods' ports as the manifests say. Whatever is
// wrong with manifests, the last good state stays; a pod whose entries are not
// in the switch sends and receives nothing.
type live struct {
	config    *config.Config
	store     *store.Store
	manifests *store.Manifests // nil with the API
	api       *kube.Source     // nil with manifests
	objects   *control.Reconciler
	log       *slog.Logger
	// setPorts is told the ports that the switch is to have, by one at a time.
	setPorts func([]config.Port)
	portsMu  sync.Mutex
	cni      *plugs
	// progressed says that policies may have come further.
	progressed signal
	shield     shield
	// setNode is told what the switch asks of the Node.
	setNode   func(*ledger.NodeSide) error
	nodeMu    sync.Mutex       // one at a time makes the Node's side
	node      *ledger.NodeSide // what the Node has; nil: not known
	nodeError error            // why the last request failed

	updating sync.Mutex       // held while switch and ports are brought to a snapshot
	seen     *cluster.Cluster // that snapshot; nil: none yet
	// unfit are the NodeConfig or Node of a snapshot that was left out.
	unfit atomic.Pointer[store.RefusedEdits]

	told   map[string]bool // problems that were logged and are still there
	missed bool            // a snapshot was left out

	restored []config.Port // of the agent before, until the objects are read
	begun    bool          // with the API: the first state of all resources is there
	synced   chan struct{} // closed when the switch has the entries of the first state, and the ports are told
	sync     sync.Once     // closes it

	// wrong are the problems of the manifests now.
	wrong atomic.Pointer[[]manifest.Problem]
}

// retryTime is how long what the switch did not take waits for the next try.
const retryTime = 2 * time.Second

// loadLive gives a switch its objects. If the switch has entries of an agent before, they
// stay. Otherwise loadLive installs what the manifests say, or nothing if the objects come
// from the API (cluster). The error is for what the agent cannot begin with: manifests
// without this Node, or another Node's.
func loadLive(c *config.Config, p *pipeline.Pipeline, cluster *joined, log *slog.Logger) (*live, error) {
	failed := p.BeginAsking()
	l := &live{
		config: c, store: store.NewStore(store.DeriveEndpoints), log: log, told: map[string]bool{},
		shield: newShield(p), synced: make(chan struct{}),
	}
	l.objects = l.newObjects(p)
	if cluster != nil {
		l.store, l.api = cluster.store, cluster.api
	}
	err := l.openCNI()
	if err == nil {
		err = l.begin(p)
	}
	if away := failed(); away != nil { // what the switch has is not known
		err = errors.Join(ErrAgain, away, err)
	}
	p.Objects, p.API = l.objects, l.api
	p.ObserveDelays()
	p.Problems = l.problems
	if err != nil {
		return nil, err
	}
	return l, nil
}

// begin goes on with the entries that the switch has, or installs what the manifests say,
// before packets move.
func (l *live) begin(p *pipeline.Pipeline) error {
	if err := l.restore(p); err != nil && l.api == nil {
		return l.load(p)
	}
	return nil
}

// newObjects is what keeps a switch in step with objects.
func (l *live) newObjects(p *pipeline.Pipeline) *control.Reconciler {
	r := control.NewReconciler(l.config.NodeName, pipeline.Installer{Pipeline: p}, time.Now)
	r.ShowRefusedEdits(l.refusedEdits)
	return r
}

// load installs what the manifests say now.
func (l *live) load(p *pipeline.Pipeline) (err error) {
	c := l.config
	if l.manifests, err = store.NewManifests(c.Manifests, l.store); err != nil {
		return err
	}
	l.report(l.manifests.Problems())
	cluster := l.store.Snapshot()
	if err := c.Fits(cluster.NodeConfig(c.NodeName)); err != nil {
		return fmt.Errorf("%s: %w", c.Manifests, err)
	}
	if err := l.objects.Update(cluster, nil); err != nil {
		if p.Switch.Names() == nil {
			return fmt.Errorf("%s: %w", c.Manifests, err)
		}
		l.log.Warn("not all objects are in the switch", "error", err)
	}
	l.tellSynced()
	l.shield.update(cluster)
	l.seen = cluster
	return nil
}

// tellSynced closes synced once the switch has the entries of all objects. The caller has
// told the ports, so a goroutine that waits for synced finds the ports of the first state.
func (l *live) tellSynced() {
	if !l.objects.Inherits() {
		l.sync.Do(func() { close(l.synced) })
	}
}

// resumed says whether the switch still goes by the entries of the agent before.
func (l *live) resumed() bool {
	l.portsMu.Lock()
	defer l.portsMu.Unlock()
	return l.restored != nil
}

// ports are those of the manifests, on the links that the configuration gives
// their names. Those that objects name and nobody else has are made.
func (l *live) ports() []config.Port {
	if l.restored != nil {
		return l.restored
	}
	if l.api != nil && !l.begun {
		return nil
	}
	given := map[string]config.Port{}
	for _, p := range l.config.Ports {
		given[p.Name] = p
	}
	var all []config.Port
	now := l.store.Snapshot()
	made := control.MadePorts(now)
	for _, p := range now.NodeConfig(l.config.NodeName).Ports {
		port, ok := given[p.Name]
		if !ok {
			port = config.Port{Name: p.Name, Link: p.Name, Driver: l.config.PodDriver}
			if m, ours := made[p.Name]; ours && p.Pod == (cluster.Name{}) {
				port.Driver, port.NoReturn = config.DriverTap, !m.Returns
			}
		}
		port.OFPort, port.MAC, port.VLAN = p.OFPort, podports.MAC(&p), p.VLAN
		all = append(all, port)
	}
	all = append(all, l.config.PortsBeside()...)
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
func (l *live) update(u store.Update) {
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
		l.bring(store.Update{New: now})
	}
}

// bring does so. l.updating is held.
func (l *live) bring(u store.Update) {
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
	l.tellPorts()
	l.tellSynced()
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
func (l *live) report(problems []manifest.Problem) {
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

// problems are the faults of the source's objects now.
func (l *live) problems() []manifest.Problem {
	if l.api != nil {
		return l.api.Problems()
	}
	if wrong := l.wrong.Load(); wrong != nil {
		return *wrong
	}
	return nil
}

// refusedEdits are those of the source, and the Node's own objects if they are another
// Node's now.
func (l *live) refusedEdits() store.RefusedEdits {
	edits := l.store.RefusedEdits()
	unfit := l.unfit.Load()
	if unfit == nil || len(*unfit) == 0 {
		return edits
	}
	all := maps.Clone(*unfit)
	maps.Copy(all, edits)
	return all
}

// fits says why a snapshot cannot be this Node's, and notes it as a refused edit.
func (l *live) fits(now *cluster.Cluster) error {
	name, edits := l.config.NodeName, store.RefusedEdits{}
	note := func(kind cluster.Kind, at cluster.Source, err error) {
		edits[cluster.Key{Kind: kind, Name: name}] = fmt.Sprintf("%s: %v; until it is mended, no change of any object is taken over", at, err)
	}
	config, node := now.NodeConfig(name), now.Node(name)
	wrongConfig, wrongNode := l.config.Fits(config), l.config.FitsNode(node)
	if wrongConfig != nil {
		at := cluster.Source{File: l.config.Manifests}
		if config != nil {
			at = config.Source
		}
		note(cluster.KindNodeConfig, at, wrongConfig)
	}
	if wrongNode != nil {
		note(cluster.KindNode, node.Source, wrongNode)
	}
	l.unfit.Store(&edits)
	return errors.Join(wrongConfig, wrongNode)
}
