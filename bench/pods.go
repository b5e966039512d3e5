package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/lab"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// podPair is two pods, and something between them that is to be measured.
type podPair struct {
	name           string
	only           string                           // the profile in which it takes part; "": in all
	client, server func(func() error) error         // run a function in the pod's network namespace
	address        string                           // of the server's pod, with a port that its policies allow
	warm           func(context.Context, int) error // waits until so many streams pass as they will for long; nil: at once
	switches       []string                         // numbers of the processes that forward; none where the kernel does
	agent          *agent.Client                    // of a lab's Node
	rests          func(yes bool) error             // what never sleeps rests while others are measured; nil: nothing is to be done
	close          func() error
}

// awake measures while the pair takes part.
func (p *podPair) awake(measure func() ([]reading, error)) ([]reading, error) {
	if p.rests == nil {
		return measure()
	}
	if err := p.rests(false); err != nil {
		return nil, err
	}
	readings, err := measure()
	return readings, errors.Join(err, p.rests(true))
}

// podMTU is that of the labs' pods, and so of all.
const podMTU = 1450

// podPairs are the contenders of profiles with sockets, on one Node. They are
// made when the first profile asks, and stay for the others.
func (r *rig) podPairs(ctx context.Context, c *Comparison) ([]*podPair, error) {
	if r.pods == nil {
		if err := r.openPods(ctx); err != nil {
			return nil, err
		}
	}
	c.Notes = append(c.Notes, podsNote)
	c.Notes = append(c.Notes, r.absent...)
	return r.pods, nil
}

const podsNote = "Two pods on one Node, MTU 1450, each in a network namespace. antrail: a real agent, with the entries of examples/two-nodes. " +
	"Open vSwitch: userspace datapath with userspace-tso-enable, AF_PACKET ports, the very same entries, groups and meters; and the same with AF_XDP ports and the pods' transmit checksum offload off, at rest while others are measured."

func (r *rig) openPods(ctx context.Context) error {
	dir, err := writeExamples()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // the agents have read them when their labs are up
	openers := []opener{{bridgeName, openBridge}, {directName, openDirect}}
	for _, kind := range []string{kindSystem, kindXDP} {
		openers = append(openers, opener{ovsPodsName(kind), func() (*podPair, error) { return openOVSPods(ctx, kind) }})
	}
	r.pods, r.absent, err = r.open(append(openers, r.labOpeners(ctx, dir)...))
	return err
}

// labOpeners are those of labs with each way of carrying frames; the agents read
// the entries in dir.
func (r *rig) labOpeners(ctx context.Context, dir string) (list []opener) {
	for _, o := range []lab.Options{
		{Driver: agent.DriverAFPacket, Offload: agent.OffloadOff},
		{Driver: agent.DriverAFPacket, Offload: agent.OffloadAuto},
		{Driver: agent.DriverAFXDP, Offload: agent.OffloadOff},
		{Driver: agent.DriverAFXDP, Offload: agent.OffloadOff, KeepAwake: agent.KeepAwakeOff},
	} {
		list = append(list, opener{labName(&o), func() (*podPair, error) { return r.openLab(ctx, dir, o) }})
	}
	return list
}

// opener makes the contender of a name.
type opener struct {
	name string
	open func() (*podPair, error)
}

// open makes the contenders that take part; absent says which ones the machine
// has not. Those that were made are given back with an error as well.
func (r *rig) open(openers []opener) (pairs []*podPair, absent []string, err error) {
	for _, o := range openers {
		if !r.wants(o.name) {
			continue
		}
		p, err := o.open()
		var missing missingError
		switch {
		case errors.As(err, &missing):
			absent = append(absent, missing.Error())
			r.say("%v", missing)
		case err != nil:
			return pairs, absent, err
		default:
			pairs = append(pairs, p)
		}
	}
	return pairs, absent, nil
}

// missingError is a contender that this machine has not.
type missingError struct {
	name string
	why  error
}

func (e missingError) Error() string { return fmt.Sprintf("%s: not present (%v).", e.name, e.why) }

func (r *rig) closePods() error {
	var errs []error
	for _, p := range r.pods {
		errs = append(errs, p.close())
	}
	r.pods = nil
	return errors.Join(errs...)
}

// contestPods measures something of every pair in turn.
func (r *rig) contestPods(ctx context.Context, c *Comparison, measure func(context.Context, *podPair) ([]reading, error)) error {
	pairs, err := r.podPairs(ctx, c)
	if err != nil {
		return err
	}
	var sides []*side
	for _, p := range pairs {
		if p.only != "" && p.only != c.Profile {
			continue
		}
		sides = append(sides, &side{name: p.name, measure: func(ctx context.Context) ([]reading, error) {
			return p.awake(func() ([]reading, error) { return measure(ctx, p) })
		}})
	}
	return r.contest(ctx, c, sides)
}

// writeExamples writes the entries of examples/two-nodes into a new directory.
func writeExamples() (string, error) {
	dir, err := os.MkdirTemp("", "antrail-bench")
	if err != nil {
		return "", err
	}
	return dir, os.CopyFS(dir, examples.FS)
}

// labName is the name of a lab as a contender.
func labName(o *lab.Options) string {
	name := "antrail " + o.Driver
	if o.Offload == agent.OffloadAuto {
		name = "antrail offload"
	}
	if o.KeepAwake != "" {
		name += ", keepAwake " + o.KeepAwake
	}
	return name
}

// openLab is a lab of one Node, whose client and web pods talk as their
// policies allow.
func (r *rig) openLab(ctx context.Context, entries string, o lab.Options) (*podPair, error) {
	name := labName(&o)
	o.Nodes, o.Binary, o.StateDir, o.FlowsDir, o.Transient = 1, r.Binary, r.StateDir, entries+"/two-nodes", true
	l, err := lab.Up(ctx, o)
	if err != nil {
		return nil, err
	}
	node := l.Topology.Nodes[0]
	p, err := labPair(l, name, node.Pods[0], node.Pods[1])
	if err != nil {
		return nil, err
	}
	p.agent = agent.NewClient(l.Socket(node.Name))
	if o.KeepAwake != "" {
		p.only = "rr" // elsewhere it changes nothing
	}
	if o.Offload == agent.OffloadAuto {
		p.warm = offloaded(p.agent)
	}
	return p, nil
}

// offloadPatience is how long a stream may take to become the kernel's.
const offloadPatience = 10 * time.Second

// offloaded waits until an agent has given so many connections to the kernel.
func offloaded(a *agent.Client) func(context.Context, int) error {
	return func(ctx context.Context, n int) error {
		for end := time.Now().Add(offloadPatience); ; wait(ctx, 5*time.Millisecond) {
			var all []agent.Counter
			if err := errors.Join(a.JSON(ctx, "/cache", nil, &all), ctx.Err()); err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(c agent.Counter) bool { return c.Name == "offload_connections" })
			if i < 0 {
				return errors.New("the agent offloads nothing")
			}
			if all[i].Value >= uint64(n) {
				return nil
			}
			if time.Now().After(end) {
				return fmt.Errorf("%d of %d streams are offloaded after %v", all[i].Value, n, offloadPatience)
			}
		}
	}
}

// labPair is two pods of a lab; the pair's close takes the lab down.
func labPair(l *lab.Lab, name string, client, server lab.Pod) (*podPair, error) {
	from, err := l.Namespace(client.Name)
	if err != nil {
		return nil, errors.Join(err, l.Down())
	}
	to, err := l.Namespace(server.Name)
	if err != nil {
		return nil, errors.Join(err, l.Down())
	}
	p := &podPair{name: name, client: from.Do, server: to.Do, address: net.JoinHostPort(server.Address.V4.String(), "80"), close: l.Down}
	for _, a := range l.State.Agents {
		p.switches = append(p.switches, strconv.Itoa(a.Process.PID))
	}
	return p, nil
}

// node is a Node's namespace and those of its pods, without names. They go when
// they are closed and nobody uses them.
type node struct {
	ns   netns.NsHandle
	pods []netns.NsHandle
	mtu  int // of the pods' links
}

// newNode makes a Node with so many pods.
func newNode(pods int) (*node, error) {
	n := &node{ns: netns.None(), mtu: podMTU}
	var err error
	if n.ns, err = newNamespace(); err != nil {
		return nil, err
	}
	for range pods {
		ns, err := newNamespace()
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		n.pods = append(n.pods, ns)
	}
	return n, nil
}

func (n *node) close() error {
	var errs []error
	for _, ns := range append(n.pods, n.ns) {
		if ns.IsOpen() {
			errs = append(errs, ns.Close())
		}
	}
	return errors.Join(errs...)
}

// addPod gives a pod its eth0, whose other end is a link of the Node.
func (n *node) addPod(pod netns.NsHandle, link, address string, mac net.HardwareAddr) error {
	err := within(n.ns)(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU, attrs.NumTxQueues, attrs.NumRxQueues = link, n.mtu, 1, 1
		veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerMTU: uint32(n.mtu), PeerNamespace: netlink.NsFd(pod), PeerHardwareAddr: mac}
		return errors.Join(netlink.LinkAdd(veth), setUp(link))
	})
	if err != nil {
		return err
	}
	return within(pod)(func() error { return setAddress("eth0", address) })
}

// setAddress gives a link an address and sets it up.
func setAddress(name, address string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	return errors.Join(netlink.AddrAdd(link, a), netlink.LinkSetUp(link))
}

func setUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// The pods' addresses where there is no pipeline to suit.
const plainClient, plainServer = "10.66.0.1", "10.66.0.2"

// The names of contenders that are nobody's program.
const (
	bridgeName = "Linux bridge"
	directName = "direct veth"
	vxlanName  = "Linux VXLAN"
	routedName = "routed, no tunnel"
)

// openBridge is two pods on a Linux bridge.
func openBridge() (*podPair, error) {
	n, err := newNode(2)
	if err != nil {
		return nil, err
	}
	err = within(n.ns)(func() error { return addBridge(podMTU) })
	for i, address := range []string{plainClient, plainServer} {
		link := fmt.Sprintf("pod%d", i)
		err = errors.Join(err, n.addPod(n.pods[i], link, address+"/24", nil), within(n.ns)(func() error { return enslave(link) }))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bridge: %w", err), n.close())
	}
	return n.pair(bridgeName, n.pods[0], n.pods[1]), nil
}

// openDirect is two pods with nothing but a veth between them.
func openDirect() (*podPair, error) {
	n, err := newNode(1)
	if err != nil {
		return nil, err
	}
	err = errors.Join(n.addPod(n.pods[0], "server", plainClient+"/24", nil), within(n.ns)(func() error { return setAddress("server", plainServer+"/24") }))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("direct veth: %w", err), n.close())
	}
	return n.pair(directName, n.pods[0], n.ns), nil
}

func (n *node) pair(name string, client, server netns.NsHandle) *podPair {
	return &podPair{name: name, client: within(client), server: within(server), address: plainServer + ":80", close: n.close}
}

// bridgeLink is the name of a Node's bridge.
const bridgeLink = "bridge"

// addBridge makes a bridge in the calling thread's namespace.
func addBridge(mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = bridgeLink, mtu
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: new(false)}); err != nil {
		return err
	}
	return setUp(bridgeLink)
}

// enslave makes a link a port of the bridge.
func enslave(name string) error {
	bridge, err := netlink.LinkByName(bridgeLink)
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetMaster(link, bridge)
}

// newNamespace makes a network namespace that lives as long as it is used. A
// thread that stays in it is not used again.
func newNamespace() (netns.NsHandle, error) {
	type made struct {
		ns  netns.NsHandle
		err error
	}
	done := make(chan made)
	go func() {
		runtime.LockOSThread()
		ns, err := netns.New()
		done <- made{ns, err}
	}()
	m := <-done
	return m.ns, m.err
}

// within runs functions in a namespace, each on a thread of its own that ends
// with it.
func within(ns netns.NsHandle) func(func() error) error {
	return func(f func() error) error {
		done := make(chan error)
		go func() {
			runtime.LockOSThread()
			err := netns.Set(ns)
			if err == nil {
				err = f()
			}
			done <- err
		}()
		return <-done
	}
}

// listen listens in the server's pod.
func (p *podPair) listen() (l net.Listener, err error) {
	err = p.server(func() (err error) { l, err = net.Listen("tcp4", p.address); return err })
	return l, err
}

// dial connects from the client's pod.
func (p *podPair) dial(ctx context.Context) (c net.Conn, err error) {
	err = p.client(func() (err error) {
		c, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp4", p.address)
		return err
	})
	return c, err
}

// connect makes so many connections from the client to the server.
func (p *podPair) connect(ctx context.Context, n int) (list []*connection, err error) {
	l, err := p.listen()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for range n {
		c, err := p.dial(ctx)
		if err != nil {
			return list, err
		}
		list = append(list, &connection{client: c.(*net.TCPConn)})
		s, err := l.Accept()
		if err != nil {
			return list, err
		}
		list[len(list)-1].server = s.(*net.TCPConn)
	}
	return list, nil
}

// connection is both ends of a TCP connection.
type connection struct{ client, server *net.TCPConn }

func (c *connection) close() {
	c.client.Close()
	if c.server != nil {
		c.server.Close()
	}
}
