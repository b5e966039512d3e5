package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"

	"github.com/antrail/antrail/lab"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// openLab is a side of antrail: a lab of one Node, whose client and web pods
// talk as their policies allow.
func openLab(ctx context.Context, o TCPOptions, driver string) (*streamSide, error) {
	l, err := lab.Up(ctx, lab.Options{Nodes: 1, Binary: o.Binary, StateDir: o.StateDir, Driver: driver, Transient: true})
	if err != nil {
		return nil, err
	}
	const client, web = 0, 1
	pods := l.Topology.Nodes[0].Pods
	side := &streamSide{name: "antrail " + driver, close: l.Down}
	side.connect = func(ctx context.Context) (*net.TCPConn, *net.TCPConn, error) {
		from, err := l.Namespace(pods[client].Name)
		if err != nil {
			return nil, nil, err
		}
		to, err := l.Namespace(pods[web].Name)
		if err != nil {
			return nil, nil, err
		}
		return connectTCP(ctx, from.Do, to.Do, fmt.Sprintf("%s:80", pods[web].Address.V4))
	}
	return side, nil
}

// bridged is two pods on a Linux bridge, in namespaces without names.
type bridged struct{ node, client, server netns.NsHandle }

// bridgeMTU is that of the labs' pods.
const bridgeMTU = 1450

const bridgeServer = "10.66.0.2"

func openBridge() (*streamSide, error) {
	b := &bridged{netns.None(), netns.None(), netns.None()}
	if err := b.make(); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: bridge: %w", err), b.close())
	}
	side := &streamSide{name: "Linux bridge", close: b.close}
	side.connect = func(ctx context.Context) (*net.TCPConn, *net.TCPConn, error) {
		return connectTCP(ctx, within(b.client), within(b.server), bridgeServer+":80")
	}
	return side, nil
}

func (b *bridged) make() (err error) {
	for _, ns := range []*netns.NsHandle{&b.node, &b.client, &b.server} {
		if *ns, err = newNamespace(); err != nil {
			return err
		}
	}
	err = within(b.node)(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = "bridge", bridgeMTU
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			return err
		}
		return setUp("bridge")
	})
	return errors.Join(err, b.addPod("client", b.client, "10.66.0.1/24"), b.addPod("server", b.server, bridgeServer+"/24"))
}

// addPod puts a namespace on the bridge.
func (b *bridged) addPod(link string, pod netns.NsHandle, address string) error {
	err := within(b.node)(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU, attrs.NumTxQueues, attrs.NumRxQueues = link, bridgeMTU, 1, 1
		veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerMTU: bridgeMTU, PeerNamespace: netlink.NsFd(pod)}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		bridge, err := netlink.LinkByName("bridge")
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetMaster(veth, bridge), setUp(link))
	})
	if err != nil {
		return err
	}
	return within(pod)(func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrAdd(eth0, a), setUp("eth0"))
	})
}

func (b *bridged) close() error {
	var errs []error
	for _, ns := range []netns.NsHandle{b.node, b.client, b.server} {
		if ns.IsOpen() {
			errs = append(errs, ns.Close())
		}
	}
	return errors.Join(errs...)
}

func setUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
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
