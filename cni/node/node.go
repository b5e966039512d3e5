// Package node is the agent's side of the CNI plugin: it gives sandboxes their
// interfaces, addresses and ports, and remembers who has what.
//
//	node.go     what it needs, how it begins, what is known of whom
//	attach.go   ADD
//	detach.go   DEL, GC, and what a killed agent left
//	check.go    CHECK, STATUS
//	attachmentrecord.go who has what, as a file
//	address.go  addresses, numbers, names
//	vethpair.go the veth pair
//	routes.go   addresses and routes in the sandbox
//	routed.go   attachments by layer 3
//	podnamespace.go a sandbox's network namespace
//	cniresult.go what a runtime is told
//	pluginrequests.go the verbs over HTTP
//
// Each verb can be called at any time, in any order, by many at once, and again
// after it was broken off. Calls for one interface of one sandbox take turns.
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

// Port is a Pod's port as the switch is to have it.
type Port struct {
	Pod cni.Pod
	// Further is the interface's name, unless it is the sandbox's first.
	Further string
	Name    string // of the port and of its link
	OFPort  uint32
	MAC     [6]byte
	IPs     []netip.Addr
	Routed  bool // it is attached by layer 3
}

// Switch is what attachments are ports of. Its methods may be called by many at
// once, but for Plug.
type Switch interface {
	// Pod is nil when a Pod is known and may have a port. A *types.Error is for
	// ever; any other error says what may come about yet.
	Pod(cni.Pod) error
	// Attach is how a Pod is to be attached, cni.AttachSwitched or cni.AttachRouted; "" as the
	// configuration says.
	Attach(cni.Pod) string
	// Taken is what others than a Pod have.
	Taken(cni.Pod) Taken
	// Plug says which ports there are from now on.
	Plug([]Port)
	// InForce is nil when a port is open and all entries of its Pod and of the
	// policies that apply to it are in the switch, or else says what is missing.
	InForce(Port) error
	// Changed is closed when Pod or InForce may say something else.
	Changed() <-chan struct{}
	// Status is nil when Pods can be attached; else a *types.Error.
	Status() error
}

// Config is what a Node gives its Pods.
type Config struct {
	Record   string         // file
	CIDRs    []netip.Prefix // the Pods' ranges, at most one per family
	Gateways []netip.Addr   // likewise
	MTU      int
	// LinkMAC is the address of the Node's end of the link of a Pod that is attached by
	// layer 3, by the port's number.
	LinkMAC func(ofPort uint32) [6]byte
	// Offloads turns off what the switch's end of a veth cannot take from an
	// interface of the calling thread's namespace; nil: nothing.
	Offloads func(ifname string) error
	// Wait is how long ADD waits for Pod and entries.
	Wait   time.Duration
	Switch Switch
	Log    *slog.Logger
}

// Node has the attachments of a Node. New makes one.
type Node struct {
	Config
	home   *sandbox // the Node's own namespace
	record *record

	calls sync.WaitGroup
	mu    sync.Mutex
	busy  map[cni.Attachment]chan struct{} // closed when the call ends
	// plugging is held while the switch is told its ports, plugged those that it
	// is to have.
	plugging sync.Mutex
	plugged  map[cni.Attachment]bool

	// step is called between any two steps that change something; a test ends the
	// goroutine there, as a kill does.
	step func(name string)
}

// New goes on with the record of the agent before: it clears away what that one
// left half done and what sandboxes left that are gone, and plugs the other
// attachments in. It works in the calling thread's network namespace, now and
// later.
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
		why, doubt := n.fallen(&a)
		if doubt != nil {
			n.Log.Warn("a pod's attachment cannot be looked at; it stays", "link", a.Link, "error", doubt)
		}
		if why == nil {
			n.plugged[a.Attachment] = true
			continue
		}
		n.Log.Info("a pod's attachment is cleared away", "pod", a.Pod.Namespace+"/"+a.Pod.Name, "link", a.Link, "why", why)
		if err := n.remove(&a); err != nil {
			n.Log.Error("a pod's attachment cannot be cleared away; its addresses stay taken", "link", a.Link, "error", err)
		}
	}
	n.plug()
	return n, nil
}

// Close waits for calls to end and lets go of what is open. The attachments stay.
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

// fallen says why an attachment of the record cannot stay; nil when it stands. What
// cannot be looked at stands, with the doubt: somebody may use it.
func (n *Node) fallen(a *attachment) (why, doubt error) {
	if !a.Made {
		return errors.New("ADD did not come to its end"), nil
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
		return errors.New("the sandbox is another one"), nil
	}
	return nil, nil
}

// plug tells the switch its ports: those of each Pod's newest sandbox. A Pod that
// is started anew has two for a while, and only one of them is the Pod's.
func (n *Node) plug() {
	n.plugging.Lock()
	defer n.plugging.Unlock()
	n.Switch.Plug(n.ports())
}

// setPlugged says whether an attachment is to be the switch's.
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

// ports are those that are plugged in, in the order in which they were given.
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

// port is an attachment as the switch has it.
func (a *attachment) port(further bool) Port {
	mac, _ := parseMAC(a.MAC) // made or checked by us
	p := Port{Pod: a.Pod, Name: a.Link, OFPort: a.OFPort, MAC: mac, IPs: a.addrs(), Routed: a.Routed}
	if further {
		p.Further = a.Interface
	}
	return p
}

// portOf is the port of an attachment, if it is one of the switch's.
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

// lock waits until nobody else works for an attachment. The function ends the
// turn.
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

// tryLock takes the turn, or is the end of the one that is another's.
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

// later is the error of what may come about.
func later(msg string, err error) error { return cni.Errorf(types.ErrTryAgainLater, msg, err) }

// Clean removes the links of a record, and then the record, without an agent: who
// uninstalls wants nothing left. A record that is not there is no error.
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
