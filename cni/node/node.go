// Package node is the agent's side of the CNI plugin: it gives sandboxes their
// interfaces, addresses and ports, and keeps a record of them.
//
//	node.go     Config, start, the switch's list of ports, locks
//	attach.go   ADD
//	detach.go   DEL, GC, attachments without a sandbox
//	check.go    CHECK, STATUS
//	attachmentrecord.go the record of attachments, a file
//	address.go  addresses, numbers, names
//	vethpair.go the veth pair
//	routes.go   addresses and routes in the sandbox
//	routed.go   attachments by layer 3
//	podnamespace.go a sandbox's network namespace
//	cniresult.go the result for the runtime
//	pluginrequests.go the verbs over HTTP
//
// Several goroutines may call any verb at any time, in any order, and repeat a call
// that was interrupted. Calls for one interface of one sandbox run one after another.
package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Port is a Pod's port, as the switch gets it.
type Port struct {
	Pod cni.Pod
	// Further is the interface's name, unless it is the sandbox's first.
	Further string
	Name    string // of the port and of its link
	OFPort  uint32
	MAC     [6]byte
	IPs     []netip.Addr
	Routed  bool // attached by layer 3
}

// Switch is the switch whose ports attachments are. Several goroutines may call its methods
// at once, except Plug.
type Switch interface {
	// Pod is nil if a Pod is known and may have a port. A *types.Error is final. Any other
	// error may pass.
	Pod(cni.Pod) error
	// Attach is how a Pod's annotation says to attach it: cni.AttachSwitched,
	// cni.AttachRouted, or "" for the configuration's choice.
	Attach(cni.Pod) string
	// Taken are the addresses and ports in use by anything but the Pod.
	Taken(cni.Pod) Taken
	// Plug replaces the list of pods' ports.
	Plug([]Port)
	// InForce is nil if a port is open and the switch has all entries of its Pod and of the
	// policies that select it. Otherwise the error says what is missing.
	InForce(Port) error
	// Changed is closed when Pod or InForce may return something new.
	Changed() <-chan struct{}
	// Status is nil if Pods can be attached; otherwise a *types.Error.
	Status() error
}

// Config is what a Node gives its Pods.
type Config struct {
	Record   string         // file
	CIDRs    []netip.Prefix // the Pods' ranges, at most one per family
	Gateways []netip.Addr   // likewise
	MTU      int
	// LinkMAC is the MAC address of the Node's end of a link that is attached by layer 3,
	// by port number.
	LinkMAC func(ofPort uint32) [6]byte
	// Offloads turns off the offloads of an interface that the switch's end of a veth
	// cannot take. It runs in the interface's network namespace. nil turns off nothing.
	Offloads func(ifname string) error
	// Wait is how long ADD waits until the Pod is known and its entries are in the switch.
	Wait   time.Duration
	Switch Switch
	Log    *slog.Logger
}

// Node holds the attachments of a Node. New makes one.
type Node struct {
	Config
	home   *sandbox // the Node's own namespace
	record *record

	calls sync.WaitGroup
	mu    sync.Mutex
	busy  map[cni.Attachment]chan struct{} // closed when the call ends
	// plugging is held while Plug runs. plugged are the attachments that the switch is to
	// have.
	plugging sync.Mutex
	plugged  map[cni.Attachment]bool

	// step is called between any two steps that change something. A test ends the goroutine
	// there, as a kill would.
	step func(name string)
}

// New continues with the previous agent's record. It removes attachments that are
// unfinished or whose sandbox is gone, and plugs in the others. New and the Node's methods
// work in the network namespace of New's caller.
func New(c Config) (*Node, error) {
	n := &Node{Config: c, busy: map[cni.Attachment]chan struct{}{}, plugged: map[cni.Attachment]bool{}, step: func(string) {}}
	var err error
	if n.record, err = openRecord(c.Record); err != nil {
		return nil, err
	}
	if n.home, err = ownSandbox(); err != nil {
		return nil, fmt.Errorf("the Node's network namespace: %w", err)
	}
	for _, a := range n.record.all() {
		why, doubt := n.staleReason(&a)
		if doubt != nil {
			n.Log.Warn("a pod's attachment cannot be checked; it stays", "link", a.Link, "error", doubt)
		}
		if why == nil {
			n.plugged[a.Attachment] = true
			continue
		}
		n.Log.Info("removing a pod's attachment", "pod", a.Pod.Namespace+"/"+a.Pod.Name, "link", a.Link, "why", why)
		if err := n.remove(&a); err != nil {
			n.Log.Error("a pod's attachment cannot be removed; its addresses stay in use", "link", a.Link, "error", err)
		}
	}
	n.plug()
	return n, nil
}

// Close waits for running calls and closes the namespace. The attachments stay.
func (n *Node) Close() error {
	n.calls.Wait()
	return n.home.close()
}

// ownSandbox is the calling thread's namespace.
func ownSandbox() (*sandbox, error) {
	ns, err := netns.Get()
	if err != nil {
		return nil, err
	}
	s := &sandbox{ns: ns}
	if s.id, err = idOf(int(ns)); err == nil {
		s.links, err = netlink.NewHandle(unix.NETLINK_ROUTE)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// staleReason says why an attachment of the record has to go; nil if it stays. If it cannot
// be checked, it stays, and doubt is the error: the Pod may still use it.
func (n *Node) staleReason(a *attachment) (why, doubt error) {
	if !a.Made {
		return errors.New("ADD did not finish"), nil
	}
	if _, err := n.home.links.LinkByName(a.Link); noLink(err) {
		return fmt.Errorf("link %s: %w", a.Link, err), nil
	} else if err != nil {
		return nil, err
	}
	s, err := openSandbox(a.Netns)
	if errors.Is(err, errGone) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	defer s.close()
	if s.id != a.NetnsID {
		return errors.New("its path now names another sandbox"), nil
	}
	return nil, nil
}

// plug gives the switch its ports: those of each Pod's newest sandbox. While a Pod restarts
// it has two sandboxes, and the older one gets no port.
func (n *Node) plug() {
	n.plugging.Lock()
	defer n.plugging.Unlock()
	n.Switch.Plug(n.ports())
}

// setPlugged adds an attachment to the switch's ports or removes it.
func (n *Node) setPlugged(k cni.Attachment, is bool) {
	n.plugging.Lock()
	if is {
		n.plugged[k] = true
	} else {
		delete(n.plugged, k)
	}
	n.plugging.Unlock()
	n.plug()
}

// ports are the ports for the switch, oldest first.
func (n *Node) ports() (all []Port) {
	type name struct{ namespace, name string }
	newest, first := map[name]string{}, map[string]bool{}
	attachments := n.record.all()
	for _, a := range attachments {
		if n.plugged[a.Attachment] {
			newest[name{a.Pod.Namespace, a.Pod.Name}] = a.Container
		}
	}
	for _, a := range attachments {
		if n.plugged[a.Attachment] && newest[name{a.Pod.Namespace, a.Pod.Name}] == a.Container {
			all = append(all, a.port(first[a.Container]))
			first[a.Container] = true
		}
	}
	return all
}

// port is an attachment as the switch gets it.
func (a *attachment) port(further bool) Port {
	mac, _ := parseMAC(a.MAC) // made or checked by us
	p := Port{Pod: a.Pod, Name: a.Link, OFPort: a.OFPort, MAC: mac, IPs: a.addrs(), Routed: a.Routed}
	if further {
		p.Further = a.Interface
	}
	return p
}

// portOf is the port of an attachment, if the switch is to have it.
func (n *Node) portOf(a *attachment) (Port, bool) {
	n.plugging.Lock()
	defer n.plugging.Unlock()
	for _, p := range n.ports() {
		if p.OFPort == a.OFPort {
			return p, true
		}
	}
	return Port{}, false
}

// lock waits until no other call works on an attachment. The function unlocks it.
func (n *Node) lock(ctx context.Context, k cni.Attachment) (func(), error) {
	for {
		turn, free := n.tryLock(k)
		if free {
			return func() { n.unlock(k, turn) }, nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return nil, later("another call for the same interface has not ended", context.Cause(ctx))
		}
	}
}

// tryLock locks an attachment, or returns the channel that closes when it is unlocked.
func (n *Node) tryLock(k cni.Attachment) (turn chan struct{}, free bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if turn, taken := n.busy[k]; taken {
		return turn, false
	}
	turn = make(chan struct{})
	n.busy[k] = turn
	return turn, true
}

func (n *Node) unlock(k cni.Attachment, turn chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.busy, k)
	close(turn)
}

// later is an error that tells the runtime to try again.
func later(msg string, err error) error { return cni.Errorf(types.ErrTryAgainLater, msg, err) }

// Clean removes the links of a record, and then the record, without an agent. Uninstalling
// uses it. If there is no record, that is not an error.
func Clean(path string, tell func(what string)) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	n := &Node{}
	var err error
	if n.record, err = openRecord(path); err != nil {
		return err
	}
	if n.home, err = ownSandbox(); err != nil {
		return err
	}
	defer n.home.close()
	for _, a := range n.record.all() {
		if err := n.removeLink(a.Link); err != nil {
			return err
		}
		tell(fmt.Sprintf("removed link %s of pod %s/%s", a.Link, a.Pod.Namespace, a.Pod.Name))
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	tell("removed " + path)
	return nil
}
