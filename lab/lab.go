// Package lab is a small cluster on one machine: Nodes, their pods and a host outside. Each
// is a network namespace, with a real `antrail agent` process for each Node.
//
//	   client-a  web-a  db-a               client-b  web-b  db-b
//	       |       |      |                    |       |      |
//	     +------------------+                +------------------+
//	     | node-a  (agent)  |                | node-b  (agent)  |
//	     +------------------+                +------------------+
//	       | 192.168.77.102                    | 192.168.77.103
//	-------+-------------- underlay -----------+-------+-------
//	                                                   | 192.168.77.1
//	                                                outside
//
// All of them have IPv6 addresses, too: fd00:77::102, fd00:10:10::26 and so on. The
// underlay is a bridge in its own namespace. The outside host has no route to any pod, so
// pods reach it only masqueraded. It sends the outside addresses of Services to Nodes, as a
// load balancer would.
//
// Each namespace is called antrail-ID-…, where ID is the lab's. The lab does not touch the
// machine's own namespace. The state file in the lab's directory is made first and removed
// last. So `lab down` can remove everything that an interrupted `lab up` left.
//
//	labtopology.go            the plan: Nodes, pods, addresses
//	lab.go, labstate.go       up and down; the state on disk
//	namespace.go, links.go    namespaces and the links between them
//	mounts.go                 namespaces whose mounts are hidden by others
//	uplink.go, loops.go       kinds of a Node's eth0; ports whose frames come back
//	agents.go, labprocess.go  the Nodes' agents; ending processes
//	switches.go               switches in processes of their own
//	exec.go, labstatus.go     a command inside; the state of Nodes and pods
//	counted.go                a Node's packet counters
package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/switchd/local"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tunnel"
)

// Lab is one lab, up or not. One goroutine at a time may use it; several may read it.
type Lab struct {
	// Dir has the state file, and the agents' configurations, sockets and logs.
	Dir      string
	State    State
	Topology Topology

	progress io.Writer
	began    time.Time
}

// Options of Up. The zero value of each has a meaning.
type Options struct {
	Nodes  int    // 1 or 2; 0 is 2
	Binary string // the antrail binary; "" is the running one
	// Manifests is a file or directory of the cluster's objects, which the agents
	// watch; "" is a copy of examples/web-app in the lab's directory.
	Manifests string
	// FlowsDir has NODE.flows, NODE.groups and NODE.meters. It replaces Manifests.
	FlowsDir string
	// IPv6Underlay makes the tunnel use IPv6. The NodeConfigs in Manifests must agree:
	// their transportIPs are then the Nodes' IPv6 addresses.
	IPv6Underlay bool
	// Tunnel is the type of the tunnel: geneve, vxlan or gre; "" is geneve.
	Tunnel string
	// TunnelDriver is the tunnel's driver: kernel, afxdp or auto; "" is
	// DefaultTunnelDriver().
	TunnelDriver string
	// Uplink is the kind of the Nodes' eth0; "" is UplinkPlain.
	Uplink Uplink
	// EncapMode is the agents' trafficEncapMode: encap, noEncap or hybrid; "" is encap.
	// With hybrid, both Nodes are in one subnet. The NodeConfigs in Manifests must agree.
	// The built-in ones are changed.
	EncapMode string
	// UnderlayOffloads makes the Nodes leave checksums and segments to the underlay, as to
	// a card. A capture there then shows wrong checksums and large segments.
	UnderlayOffloads bool
	// Driver is the driver of the pods' ports: auto, afxdp or afpacket; "" is
	// DefaultDriver().
	Driver string
	// Walk turns the agents' exact-match cache off: every packet walks.
	Walk bool
	// Offload is auto or off; "" is DefaultOffload().
	Offload string

	// KeepAwake is the agents' setting of that name; "" is its default.
	KeepAwake string
	// Conntrack is the agents' conntrack section.
	Conntrack config.Conntrack

	// Page is the address of each agent's page, in its Node's namespace.
	Page config.Page

	StateDir string    // "" is StateDir()
	Progress io.Writer // one line per step; nil for none
	// Transient labs live no longer than the process that made them. If it dies, the next
	// Sweep or `lab down` removes them.
	Transient bool
}

func newLab(dir string, s State) *Lab {
	l := &Lab{Dir: dir, State: s, Topology: TwoNodes(), progress: io.Discard, began: time.Now()}
	l.Topology.Nodes = l.Topology.Nodes[:s.Nodes]
	l.Topology.IPv6Underlay = s.IPv6Underlay
	l.Topology.Tunnel, _ = tunnel.KindNamed(s.Tunnel)
	l.Topology.Encap, _ = tables.EncapModeNamed(s.EncapMode)
	return l
}

// Up makes a lab and returns it when its agents are ready. If that fails, or ctx ends
// first, Up removes everything again.
func Up(ctx context.Context, o Options) (*Lab, error) {
	o.setDefaults()
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("a lab's %w", err)
	}
	s := State{Nodes: o.Nodes, IPv6Underlay: o.IPv6Underlay, Tunnel: o.Tunnel, EncapMode: o.EncapMode, Uplink: o.Uplink, UnderlayOffloads: o.UnderlayOffloads, Transient: o.Transient, Driver: o.Driver}
	l, err := newState(o.StateDir, s)
	if err != nil {
		return nil, err
	}
	if o.Progress != nil {
		l.progress = o.Progress
	}
	if err := l.make(ctx, &o); err != nil {
		return nil, errors.Join(err, l.Down())
	}
	return l, nil
}

func (o *Options) setDefaults() {
	o.Nodes = cmp.Or(o.Nodes, len(TwoNodes().Nodes))
	o.Driver = cmp.Or(o.Driver, DefaultDriver())
	o.Tunnel = cmp.Or(o.Tunnel, tunnel.KindGeneve.String())
	o.TunnelDriver = cmp.Or(o.TunnelDriver, DefaultTunnelDriver())
	o.Uplink = cmp.Or(o.Uplink, UplinkPlain)
	o.StateDir = cmp.Or(o.StateDir, StateDir())
	o.Offload = cmp.Or(o.Offload, DefaultOffload())
}

// Check is an error about the first invalid option, which begins with its name as a flag.
func (o *Options) Check() error {
	if most := len(TwoNodes().Nodes); o.Nodes < 0 || o.Nodes > most {
		return fmt.Errorf("nodes: %d, not 1 to %d Nodes", o.Nodes, most)
	}
	if !local.KnownOffload(o.Offload) {
		return fmt.Errorf("offload is auto or off, not %q", o.Offload)
	}
	if _, known := tunnel.KindNamed(o.Tunnel); !known {
		return fmt.Errorf("tunnel is geneve, vxlan or gre, not %q", o.Tunnel)
	}
	if !config.KnownTunnelDriver(o.TunnelDriver) {
		return fmt.Errorf("tunnel-driver is kernel, afxdp or auto, not %q", o.TunnelDriver)
	}
	if !o.Uplink.Known() {
		return fmt.Errorf("uplink is %s, not %q", UplinkKinds, o.Uplink)
	}
	if mode, err := tables.EncapModeNamed(o.EncapMode); err != nil {
		return fmt.Errorf("encap-mode: %w", err)
	} else if mode == tables.PolicyOnly {
		return fmt.Errorf("encap-mode: %v is for Nodes with another CNI, and a lab has none", mode)
	}
	if !config.KnownDriver(o.Driver) {
		return fmt.Errorf("driver is auto, afxdp or afpacket, not %q", o.Driver)
	}
	return nil
}

// DefaultDriver is the driver of pods' ports if no option sets it: ANTRAIL_DRIVER of the
// environment, by which tests run on each driver, or auto.
func DefaultDriver() string { return cmp.Or(os.Getenv("ANTRAIL_DRIVER"), config.DriverAuto) }

// DefaultTunnelDriver is ANTRAIL_TUNNEL_DRIVER, or the kernel.
func DefaultTunnelDriver() string {
	return cmp.Or(os.Getenv("ANTRAIL_TUNNEL_DRIVER"), config.DriverKernel)
}

// DefaultOffload is the agents' offload setting if no option sets it: ANTRAIL_OFFLOAD of
// the environment, by which tests run with and without offload, or auto.
func DefaultOffload() string { return cmp.Or(os.Getenv("ANTRAIL_OFFLOAD"), config.OffloadAuto) }

// make makes the underlay and the Nodes, and starts the agents.
func (l *Lab) make(ctx context.Context, o *Options) error {
	if err := l.makeUnderlay(); err != nil {
		return err
	}
	for i := range l.Topology.Nodes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.makeNode(&l.Topology.Nodes[i]); err != nil {
			return err
		}
	}
	if err := l.startAgents(ctx, o); err != nil {
		return err
	}
	l.State.Up = true
	l.say("lab %s is up", l.State.ID)
	return l.save()
}

// SetProgress sets the writer of progress lines.
func (l *Lab) SetProgress(w io.Writer) { l.progress = w }

// say writes one progress line, with the time since the start.
func (l *Lab) say(format string, args ...any) {
	fmt.Fprintf(l.progress, "%6.2fs  %s\n", time.Since(l.began).Seconds(), fmt.Sprintf(format, args...))
}

func (l *Lab) makeUnderlay() error {
	under := l.Underlay()
	if err := under.create(); err != nil {
		return err
	}
	if err := under.Do(addBridge); err != nil {
		return err
	}
	l.say("outside host %s", l.Topology.Outside)
	if err := l.makeUnderlayHost("outside", l.Topology.Outside.Both(), nil); err != nil {
		return err
	}
	return l.namespace("outside").Do(l.routeBalanced)
}

// routeBalanced adds routes for Services' outside addresses to Nodes, in the calling
// thread's namespace.
func (l *Lab) routeBalanced() error {
	for _, b := range l.Topology.Balanced {
		for _, n := range l.Topology.Nodes {
			if n.Name != b.Node {
				continue
			}
			via := addrsOf(n.Address).Both()
			for i, a := range b.Address.Both() {
				if err := addRoute("eth0", a, via[i]); err != nil {
					return fmt.Errorf("route to %s by %s: %w", a, n.Name, err)
				}
			}
		}
	}
	return nil
}

// makeUnderlayHost makes a namespace with its eth0 on the underlay.
func (l *Lab) makeUnderlayHost(name string, addresses []netip.Prefix, gateways []netip.Addr) error {
	ns := l.namespace(name)
	if err := ns.create(); err != nil {
		return err
	}
	return l.connectUplink(ns, name, addresses, gateways)
}

// makeNode makes a Node's namespace and its pods' namespaces.
func (l *Lab) makeNode(n *Node) error {
	if err := l.makeUnderlayHost(n.Name, n.Address.Both(), addrsOf(l.Topology.Outside).Both()); err != nil {
		return err
	}
	l.say("%s %s, pods %s", n.Name, addrsOf(n.Address), n.PodCIDR)
	for _, p := range n.Pods {
		if err := l.makePod(n, &p); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) makePod(n *Node, p *Pod) error {
	ns := l.namespace(p.Name)
	if err := ns.create(); err != nil {
		return err
	}
	e := wire{
		inside: ns, outside: l.namespace(n.Name), far: l.link(p.Name), mac: p.MAC[:],
		mtu: l.Topology.MTU(), addresses: within(p.Address, n.PodCIDR), gateways: n.Gateway.Both(),
		offloads: ports.DisableTunnelSegmentation,
	}
	if l.State.Driver == config.DriverAFXDP {
		e.offloads = nil // the kernel cuts segments before XDP, and AF_XDP ports accept unfinished checksums
	}
	return e.connect()
}

// Pod finds a pod and its Node by name.
func (l *Lab) Pod(name string) (*Node, *Pod, error) {
	for i := range l.Topology.Nodes {
		n := &l.Topology.Nodes[i]
		for j := range n.Pods {
			if n.Pods[j].Name == name {
				return n, &n.Pods[j], nil
			}
		}
	}
	return nil, nil, fmt.Errorf("lab %s has no pod %q", l.State.ID, name)
}

// DeletePod removes a pod's namespace and all its processes while the agents run. The pod's
// veth vanishes from the Node.
func (l *Lab) DeletePod(name string) error {
	if _, _, err := l.Pod(name); err != nil {
		return err
	}
	ns := l.namespace(name)
	return errors.Join(end(ns.inside(), time.Second), ns.remove())
}

// AddPod makes a pod of the topology again, after DeletePod.
func (l *Lab) AddPod(name string) error {
	n, p, err := l.Pod(name)
	if err != nil {
		return err
	}
	return l.makePod(n, p)
}

// namespace is the namespace of a Node, a pod, "outside" or "underlay".
func (l *Lab) namespace(name string) Namespace { return Namespace(l.prefix() + name) }

func (l *Lab) prefix() string { return "antrail-" + l.State.ID + "-" }

// link is the name of the Node's end of a pod's veth, 15 characters at most.
func (l *Lab) link(pod string) string { return pod + "-" + l.State.ID }

// Underlay is the namespace of the underlay's bridge. All tunnel packets pass it.
func (l *Lab) Underlay() Namespace { return l.namespace("underlay") }

// Namespace finds the namespace of a pod, a Node or the outside host.
func (l *Lab) Namespace(name string) (Namespace, error) {
	ns := l.namespace(name)
	if name == "" || ns.inode() == 0 {
		return "", fmt.Errorf("lab %s has no %q; there are %s", l.State.ID, name, strings.Join(l.Names(), ", "))
	}
	return ns, nil
}

// In runs f in the namespace of a pod, a Node or the outside host. See Namespace.Do.
func (l *Lab) In(name string, f func() error) error {
	ns, err := l.Namespace(name)
	if err != nil {
		return err
	}
	return ns.Do(f)
}

// Names are the pods, the Nodes and "outside".
func (l *Lab) Names() []string {
	var names []string
	for _, n := range l.Topology.Nodes {
		for _, p := range n.Pods {
			names = append(names, p.Name)
		}
	}
	for _, n := range l.Topology.Nodes {
		names = append(names, n.Name)
	}
	return append(names, "outside")
}

// Socket is the API socket of a Node's agent.
func (l *Lab) Socket(node string) string { return filepath.Join(l.Dir, node+".sock") }

// Log is the log of a Node's agent.
func (l *Lab) Log(node string) string { return filepath.Join(l.Dir, node+".log") }

// Down removes the lab: the agents by SIGTERM, then other processes in its namespaces, then
// the namespaces with their links, then the state. If a part fails, Down removes the rest.
// If something is left, Down keeps the state, so that it can be called again.
func (l *Lab) Down() error {
	errs := []error{l.stopAgents()}
	all, err := namespaces(l.prefix())
	errs = append(errs, err)
	var rest []Process
	for _, ns := range all {
		rest = append(rest, ns.inside()...)
	}
	errs = append(errs, end(rest, time.Second))
	for _, ns := range all {
		errs = append(errs, ns.remove())
	}
	if left, err := namespaces(l.prefix()); err != nil || len(left) > 0 {
		return errors.Join(append(errs, fmt.Errorf("namespaces left: %v", left))...)
	}
	l.say("lab %s is down", l.State.ID)
	errs = append(errs, os.RemoveAll(l.Dir))
	if os.Getenv(stateEnv) == "" { // a directory that the user chose stays
		removeEmpty(filepath.Dir(l.Dir))
	}
	return errors.Join(errs...)
}
