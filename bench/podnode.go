package bench

import (
	"errors"
	"fmt"
	"net"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// A Node without a switch of antrail's: namespaces, links between them, and a bridge.

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
	bareName   = "bare packet sockets"
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
