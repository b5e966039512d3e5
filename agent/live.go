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

// live keeps the switch and the pods' ports in step with the objects. Objects that are wrong
// leave the last good state in place. A pod whose entries are not in the switch sends and
// receives nothing.
type live struct {
	config    *config.Config
	store     *store.Store
	manifests *store.Manifests // nil with the API
	api       *kube.Source     // nil with manifests
	objects   *control.Reconciler
	log       *slog.Logger
	// setPorts receives the ports that the switch has to have. Calls are serialized.
	setPorts func([]config.Port)
	portsMu  sync.Mutex
	cni      *plugs
	// progressed is raised when policies may have advanced.
	progressed signal
	shield     shield
	// setNode receives what the switch needs of the Node.
	setNode   func(*ledger.NodeSide) error
	nodeMu    sync.Mutex       // serializes changes of the Node's side
	node      *ledger.NodeSide // what the Node has; nil: not known
	nodeError error            // why the last request failed

	updating sync.Mutex       // held while switch and ports follow a snapshot
	seen     *cluster.Cluster // that snapshot; nil: none yet
	// unfit are the NodeConfig or Node of a snapshot that was rejected.
	unfit atomic.Pointer[store.RefusedEdits]

	told   map[string]bool // problems that were logged and persist
	missed bool            // a snapshot was rejected

	restored []config.Port // ports of the previous agent, until the objects are read
	begun    bool          // with the API: the first state of all resources is there
	applied  chan struct{} // entries have changed since the last file of assignments
	synced   chan struct{} // closed when the switch has the entries and ports of the first state
	sync     sync.Once     // closes it

	// wrong are the problems of the manifests now.
	wrong atomic.Pointer[[]manifest.Problem]
}

// retryTime is the pause before the next try of what the switch refused.
const retryTime = 2 * time.Second

// loadLive gives a switch its objects. Entries of a previous agent stay. Otherwise loadLive
// installs what the manifests say, or nothing if the objects come from the API (cluster). The
// error says why the agent cannot start: manifests without this Node, or another Node's.
func loadLive(c *config.Config, p *pipeline.Pipeline, cluster *joined, log *slog.Logger) (*live, error) {
	failed := p.BeginAsking()
	l := &live{
		config: c, store: store.NewStore(store.DeriveEndpoints), log: log, told: map[string]bool{},
		shield: newShield(p), synced: make(chan struct{}), applied: make(chan struct{}, 1),
	}
	l.objects = l.newObjects(p)
	if cluster != nil {
		l.store, l.api = cluster.store, cluster.api
	}
	err := l.openCNI()
	if err == nil {
		err = l.begin(p)
	}
	if away := failed(); away != nil { // the switch's contents are unknown
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

// begin adopts the entries that the switch has. Otherwise it installs what the manifests say,
// before packets move.
func (l *live) begin(p *pipeline.Pipeline) error {
	if err := l.restore(p); err != nil && l.api == nil {
		return l.load(p)
	}
	return nil
}

// newObjects makes the reconciler that keeps a switch in step with objects.
func (l *live) newObjects(p *pipeline.Pipeline) *control.Reconciler {
	r := control.NewReconciler(l.config.NodeName, pipeline.Installer{Pipeline: p, Applied: l.applied}, time.Now)
	r.ShowRefusedEdits(l.refusedEdits)
	return r
}

// load reads the manifests and installs what they say.
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

// tellSynced closes synced once the switch has the entries of all objects. Its caller has set
// the ports, so a goroutine that waits for synced finds the ports of the first state.
func (l *live) tellSynced() {
	if !l.objects.Inherits() {
		l.sync.Do(func() { close(l.synced) })
	}
}

// resumed says whether the switch still runs on the previous agent's entries.
func (l *live) resumed() bool {
	l.portsMu.Lock()
	defer l.portsMu.Unlock()
	return l.restored != nil
}

// ports are the ports of the objects. The configuration may give a port's link. A port that an
// object names without a Pod, and no configuration gives, becomes a tap.
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

// tellPorts sets the switch's ports to the current ones.
func (l *live) tellPorts() {
	l.portsMu.Lock()
	defer l.portsMu.Unlock()
	if l.setPorts != nil { // nil until start has set it: start reads ports itself
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

// runRetries retries what the switch or the Node refused, until done is closed.
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

// retry retries what the switch or the Node refused.
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

// update applies a new snapshot to switch and ports.
func (l *live) update(u store.Update) {
	l.updating.Lock()
	defer l.updating.Unlock()
	l.bring(u)
}

// catchUp applies changes that came before Follow, for example a pod that was detached. An
// update that waits for the lock has the same snapshot.
func (l *live) catchUp() {
	l.updating.Lock()
	defer l.updating.Unlock()
	if now := l.store.Snapshot(); now != l.seen {
		l.bring(store.Update{New: now})
	}
}

// bring applies a snapshot. The caller holds l.updating.
func (l *live) bring(u store.Update) {
	l.seen = u.New
	if err := l.fits(u.New); err != nil {
		l.log.Error("the objects are no longer this Node's; the last good state stays", "error", err)
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

// report logs new problems.
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

// problems are the current faults of the source's objects.
func (l *live) problems() []manifest.Problem {
	if l.api != nil {
		return l.api.Problems()
	}
	if wrong := l.wrong.Load(); wrong != nil {
		return *wrong
	}
	return nil
}

// refusedEdits are those of the source, and those of the Node's own objects that no longer fit.
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

// fits says why a snapshot cannot be this Node's, and records it as a refused edit.
func (l *live) fits(now *cluster.Cluster) error {
	name, edits := l.config.NodeName, store.RefusedEdits{}
	note := func(kind cluster.Kind, at cluster.Source, err error) {
		edits[cluster.Key{Kind: kind, Name: name}] = fmt.Sprintf("%s: %v; until this is corrected, the agent applies no change of any object", at, err)
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
