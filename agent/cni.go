package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/cni/node"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tables/layout"
	"github.com/containernetworking/cni/pkg/types"
)

// Pods that the CNI plugin attaches (package cni/node). Their ports are objects of a separate
// source. The store adds them to the Pods, so a Pod's entries and ports change as with any
// other object. For a program, which has no objects, see programpods.go.

// cniSource is the name of that source.
const cniSource = "cni"

// A call of the plugin waits for the switch to have the objects' entries (cniBegin). ADD waits
// for its Pod and the Pod's entries (cniWait).
const (
	cniBegin = 10 * time.Second
	cniWait  = 45 * time.Second
)

// sweepTime is how often the agent looks for sandboxes that ended without DEL. If a port's link
// goes, it looks at once.
const sweepTime = time.Minute

// pluginCalls admits and answers the plugin's calls.
type pluginCalls struct {
	node *node.Node
	// A call holds calls for reading; a handover to another agent holds it for writing.
	calls   sync.RWMutex
	begun   chan struct{} // closed when the agent follows the attached ports
	lost    chan struct{} // a port's link is gone
	changed signal
	// opened says whether a port is in the switch. status says why Pods cannot be attached.
	// Both are set before the first call.
	opened func(link string, no uint32) bool
	status func() error
}

func newPluginCalls() *pluginCalls {
	return &pluginCalls{begun: make(chan struct{}), lost: make(chan struct{}, 1)}
}

// plugs are the ports that the CNI plugin asks for. It implements node.Switch.
type plugs struct {
	*pluginCalls
	live *live

	mu  sync.Mutex
	now map[cluster.Key]*store.PodPort
}

// openCNI starts the plugin's side with the ports that pods have.
func (l *live) openCNI() (err error) {
	c := l.config
	l.cni = &plugs{pluginCalls: newPluginCalls(), live: l, now: map[cluster.Key]*store.PodPort{}}
	l.cni.node, err = node.New(pluginNode(c, c.PodCIDRs, addrsOf(c.Gateway.Addresses), l.cni, l.log))
	return err
}

// pluginNode is the configuration of the plugin's side on this Node.
func pluginNode(c *config.Config, cidrs []netip.Prefix, gateways []netip.Addr, sw node.Switch, log *slog.Logger) node.Config {
	return node.Config{
		Record: c.CNIRecord(), CIDRs: cidrs, Gateways: gateways, MTU: c.Gateway.MTU, LinkMAC: layout.LinkMAC,
		Offloads: ports.DisableTunnelSegmentation, Wait: cniWait, Switch: sw, Log: log,
	}
}

func addrsOf(all []netip.Prefix) (addrs []netip.Addr) {
	for _, p := range all {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

// followCNI connects the plugin's side to the pods' ports.
func (a *Agent) followCNI() {
	c := a.live.cni
	a.cni = c.pluginCalls
	c.opened, c.status = a.Pods.Has, a.cniStatus
	a.Pods.Opened, a.Pods.Lost = c.changed.raise, c.tellLost
}

// tellLost wakes runSweeps, because a port's link is gone.
func (c *pluginCalls) tellLost() {
	select {
	case c.lost <- struct{}{}:
	default: // a sweep is pending already
	}
}

// runSweeps releases addresses and ports of sandboxes that ended without DEL, until ctx ends.
func (c *pluginCalls) runSweeps(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.lost:
		case <-time.After(sweepTime):
		}
		if done, err := c.admit(ctx, cni.GC); err == nil {
			c.node.Sweep()
			done()
		}
	}
}

// open admits all calls of the plugin: the agent follows attached ports from now on. Before
// open, pods can only be detached.
func (c *pluginCalls) open() { close(c.begun) }

// answerCNI answers the plugin.
func (a *Agent) answerCNI(w http.ResponseWriter, r *http.Request) {
	if a.cni == nil {
		node.WriteError(w, types.NewError(cni.CodeNoObjects, "the agent knows no Pods", "its entries come from flow files, or its Node has no IPv4 pod CIDR"))
		return
	}
	done, err := a.cni.admit(r.Context(), cni.Verb(r.PathValue("verb")))
	if err != nil {
		node.WriteError(w, err)
		return
	}
	defer done()
	a.cni.node.ServeHTTP(w, r)
}

// admit waits until a call may begin:
//
//   - All calls but DEL wait until the agent follows attached ports.
//   - Calls wait while another agent is about to take over. If it takes over, the record is its
//     own.
//   - STATUS changes nothing and never waits.
//
// The caller calls done at the end of the call.
func (c *pluginCalls) admit(ctx context.Context, v cni.Verb) (done func(), err error) {
	if v == cni.Status {
		return func() {}, nil
	}
	if v != cni.Del {
		select {
		case <-c.begun:
		case <-ctx.Done():
			return nil, types.NewError(types.ErrTryAgainLater, "the call has ended", "")
		case <-time.After(cniBegin):
			return nil, types.NewError(types.ErrTryAgainLater, "the agent has not read its objects yet", "")
		}
	}
	c.calls.RLock()
	return c.calls.RUnlock, nil
}

// cniStatus answers STATUS. Without switch or ports no Pod has the network; without objects no
// further Pod can be attached.
func (a *Agent) cniStatus() error {
	for _, c := range append(a.readiness(), a.liveness()...) {
		if err := c.why(); err != nil {
			code := types.ErrLimitedConnectivity
			if c.name == api.SourceCondition {
				code = types.ErrPluginNotAvailable
			}
			return cni.Errorf(code, "the agent is not ready: "+c.name, err)
		}
	}
	return nil
}

// Pod implements node.Switch.
func (c *plugs) Pod(p cni.Pod) error {
	pod := c.live.store.Snapshot().Pod(cluster.Name{Namespace: p.Namespace, Name: p.Name})
	switch {
	case pod == nil:
		return fmt.Errorf("Pod %s/%s is not known yet", p.Namespace, p.Name)
	case pod.UID != "" && p.UID != "" && pod.UID != p.UID:
		return fmt.Errorf("the Pod %s/%s that is known has UID %s, not %s", p.Namespace, p.Name, pod.UID, p.UID)
	case pod.Terminated():
		return fmt.Errorf("the Pod %s/%s that is known has ended", p.Namespace, p.Name)
	case pod.HostNetwork:
		return types.NewError(cni.CodePodUnsuited, fmt.Sprintf("Pod %s/%s is in its Node's network", p.Namespace, p.Name), "")
	case pod.Attach != "" && pod.Attach != cni.AttachSwitched && pod.Attach != cni.AttachRouted:
		return types.NewError(cni.CodePodUnsuited, fmt.Sprintf("annotation %s of Pod %s/%s is %q, want %s or %s",
			cluster.AttachAnnotation, p.Namespace, p.Name, pod.Attach, cni.AttachSwitched, cni.AttachRouted), "")
	case pod.NodeName != c.live.config.NodeName:
		return types.NewError(cni.CodePodUnsuited, fmt.Sprintf("Pod %s/%s belongs to Node %q, not to this Node", p.Namespace, p.Name, pod.NodeName), "")
	}
	return nil
}

// Attach implements node.Switch.
func (c *plugs) Attach(p cni.Pod) string {
	if pod := c.live.store.Snapshot().Pod(cluster.Name{Namespace: p.Namespace, Name: p.Name}); pod != nil {
		return pod.Attach
	}
	return ""
}

// Taken implements node.Switch. It returns the addresses of other Pods, and the port numbers of
// the NodeConfig.
func (c *plugs) Taken(p cni.Pod) node.Taken {
	t := node.Taken{Addrs: map[netip.Addr]bool{}, Ports: map[uint32]bool{}}
	cluster := c.live.store.Snapshot()
	for k, pod := range cluster.Pods {
		if pod.Terminated() || pod.HostNetwork || k.Namespace == p.Namespace && k.Name == p.Name {
			continue
		}
		for _, a := range pod.IPs {
			t.Addrs[a] = true
		}
	}
	if config := cluster.NodeConfig(c.live.config.NodeName); config != nil {
		for _, port := range config.Ports {
			t.Ports[port.OFPort] = true
		}
	}
	for _, port := range c.live.config.PortsBeside() {
		t.Addrs[port.Address], t.Ports[port.OFPort] = true, true
	}
	g, tunnel := c.live.config.Gateway.OFPort, c.live.config.Tunnel.OFPort
	t.Ports[g], t.Ports[tunnel] = true, true
	return t
}

// Plug implements node.Switch.
func (c *plugs) Plug(all []node.Port) {
	want := map[cluster.Key]*store.PodPort{}
	change := store.Change{Source: cniSource, Since: time.Now()}
	for i := range all {
		p := podPort(&all[i])
		k := p.Metadata().Key
		want[k] = p
		if had := c.now[k]; had == nil || had.SwitchPort != p.SwitchPort || had.UID != p.UID {
			change.Set = append(change.Set, p)
		}
	}
	for k := range c.now {
		if want[k] == nil {
			change.Delete = append(change.Delete, k)
		}
	}
	c.mu.Lock()
	c.now = want
	c.mu.Unlock()
	c.live.store.Apply(change)
	c.live.tellPorts() // the store may not have these Pods
}

// podPort is a port as an object.
func podPort(p *node.Port) *store.PodPort {
	return store.NewPodPort(cniSource, switchPort(p), p.IPs, p.Pod.UID)
}

func switchPort(p *node.Port) cluster.SwitchPort {
	name := p.Pod.Name
	if p.Further != "" {
		name = store.TwinName(name, p.Further)
	}
	return cluster.SwitchPort{Name: p.Name, OFPort: p.OFPort, Pod: cluster.Name{Namespace: p.Pod.Namespace, Name: name}, MAC: p.MAC, Routed: p.Routed}
}

// ports are the attached ports in order of their numbers.
func (c *plugs) ports() (all []config.Port) {
	c.mu.Lock()
	now := slices.Collect(maps.Values(c.now))
	c.mu.Unlock()
	slices.SortFunc(now, func(a, b *store.PodPort) int { return int(a.OFPort) - int(b.OFPort) })
	for _, p := range now {
		all = append(all, config.Port{Name: p.Name, Link: p.Name, OFPort: p.OFPort, Driver: c.live.config.PodDriver, MAC: p.MAC})
	}
	return all
}

// InForce implements node.Switch.
func (c *plugs) InForce(p node.Port) error {
	if err := c.live.objects.InForce(switchPort(&p)); err != nil {
		return err
	}
	if !c.opened(p.Name, p.OFPort) {
		return control.NotInForce("its link is not open yet")
	}
	return nil
}

// Changed implements node.Switch.
func (c *pluginCalls) Changed() <-chan struct{} { return c.changed.next() }

// Status implements node.Switch.
func (c *pluginCalls) Status() error { return c.status() }

// signal wakes all goroutines that wait for the next raise. The zero value is ready.
type signal struct {
	mu   sync.Mutex
	wait chan struct{}
}

// next is closed by the next raise.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wait == nil {
		s.wait = make(chan struct{})
	}
	return s.wait
}

func (s *signal) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wait != nil {
		close(s.wait)
		s.wait = nil
	}
}
