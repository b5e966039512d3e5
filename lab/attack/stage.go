package attack

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/lab/raw"
	"golang.org/x/sys/unix"
)

// The attacker, and the Nodes.
const (
	attacker = "client-a"
	nodeA    = "node-a"
	nodeB    = "node-b"
)

// nobody is the unprivileged user of attacks.
const nobody = 65534

// stage is a lab during one attack by one address family.
type stage struct {
	lab    *lab.Lab
	v6     bool
	length time.Duration // of a flood, at most
	// marker is in each packet of the attack, and in no other.
	marker []byte
	socket *raw.Socket // on the attacker's eth0
	held   []net.Conn  // connections that an attack keeps open
}

// family is the address family in words.
func (s *stage) family() string {
	if s.v6 {
		return "IPv6"
	}
	return "IPv4"
}

// host is a pod's interface, or a Node's gateway.
type host struct {
	mac     [6]byte
	address netip.Addr
	gateway [6]byte // the MAC of its Node's gateway
	node    string
}

// pod finds a pod of the lab.
func (s *stage) pod(name string) host {
	n, p, err := s.lab.Pod(name)
	if err != nil {
		panic(err) // the names are constants of this package
	}
	return host{p.MAC, p.Address.Of(s.v6), n.GatewayMAC, n.Name}
}

// gatewayOf is the gateway of a Node.
func (s *stage) gatewayOf(node string) host {
	n := s.node(node)
	return host{n.GatewayMAC, n.Gateway.Of(s.v6), n.GatewayMAC, n.Name}
}

// node finds a Node of the lab.
func (s *stage) node(name string) *lab.Node {
	nodes := s.lab.Topology.Nodes
	return &nodes[slices.IndexFunc(nodes, func(n lab.Node) bool { return n.Name == name })]
}

// agent is a client of a Node's agent.
func (s *stage) agent(node string) *api.Client { return api.NewClient(s.lab.Socket(node)) }

// asNobody runs f in a namespace, on a thread without privilege. Linux keeps users by
// thread. The thread's saved user is still root, so that it can return.
func (s *stage) asNobody(name string, f func() error) error {
	return s.lab.In(name, func() error {
		runtime.LockOSThread()
		if err := become(nobody); err != nil {
			runtime.UnlockOSThread()
			return err
		}
		err := f()
		if back := become(0); back != nil {
			return fmt.Errorf("return to root: %w", back) // the thread stays locked and ends
		}
		runtime.UnlockOSThread()
		return err
	})
}

// become changes the effective user of the calling thread.
func become(uid uintptr) error {
	const same = ^uintptr(0)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, uid, same); e != 0 {
		return fmt.Errorf("setresuid: %w", e)
	}
	return nil
}

// openSocket opens the stage's raw socket on a pod's eth0.
func (s *stage) openSocket(pod string) error {
	return s.lab.In(pod, func() (err error) {
		s.socket, err = raw.Open("eth0")
		return err
	})
}

// watcher counts the packets of an attack that arrive at an interface.
type watcher struct {
	socket *raw.Socket
	own    [6]byte
	seen   atomic.Int32
	stop   atomic.Bool
	ended  chan int
}

// watch opens a watcher on a link of a pod or Node. Frames from own, the link's MAC, do not
// count.
func (s *stage) watch(name, link string, own [6]byte) (*watcher, error) {
	w := &watcher{own: own, ended: make(chan int, 1)}
	err := s.lab.In(name, func() (err error) {
		w.socket, err = raw.Open(link)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s in %s: %w", link, name, err)
	}
	go w.runWatch(s.marker)
	return w, nil
}

// runWatch counts frames. After stop it counts those that still wait, and ends.
func (w *watcher) runWatch(marker []byte) {
	defer w.socket.Close()
	for {
		wait, last := 10*time.Millisecond, w.stop.Load()
		if last { // do not wait for further frames
			wait = 0
		}
		f, err := w.socket.Receive(wait)
		switch {
		case err != nil, f == nil && last:
			w.ended <- int(w.seen.Load())
			return
		case len(f) >= 14 && !bytes.Equal(f[6:12], w.own[:]): // a joined frame has each datagram's marker
			w.seen.Add(int32(bytes.Count(f, marker)))
		}
	}
}

// await waits until n frames have arrived, for mostAwaited at most.
func (w *watcher) await(n int) {
	for began := time.Now(); int(w.seen.Load()) < n && time.Since(began) < mostAwaited; {
		time.Sleep(10 * time.Millisecond)
	}
}

// mostAwaited is how long frames that must arrive may take. On a busy machine more than 100
// ms have been seen.
const mostAwaited = 5 * time.Second

// count stops the watcher and returns how many packets of the attack it saw.
func (w *watcher) count() int {
	w.stop.Store(true)
	return <-w.ended
}

// watchAll watches every pod except the attacker's.
func (s *stage) watchAll() (all []*watcher, err error) {
	for _, n := range s.lab.Topology.Nodes {
		for _, p := range n.Pods {
			if p.Name == attacker {
				continue
			}
			w, err := s.watch(p.Name, "eth0", p.MAC)
			if err != nil {
				countAll(all)
				return nil, err
			}
			all = append(all, w)
		}
	}
	return all, nil
}

// countAll stops watchers and adds up their counts.
func countAll(all []*watcher) (n int) {
	for _, w := range all {
		n += w.count()
	}
	return n
}

// sendAll sends frames from the attacker, all of them several times.
func (s *stage) sendAll(frames [][]byte, times int) (sent int, err error) {
	for range times {
		for _, f := range frames {
			if err := s.socket.Send(f); err != nil {
				return sent, err
			}
			sent++
		}
	}
	return sent, nil
}

// drain waits until the switch has received the frames of earlier attacks, for mostAwaited
// at most. While the port's ring is full, the attacker's echo requests are lost. When one
// arrives, the ring has room.
func (s *stage) drain() error {
	const victim = "client-b"
	own := *s
	own.marker = []byte("drained?")
	w, err := own.watch(victim, "eth0", s.pod(victim).mac)
	if err != nil {
		return err
	}
	defer w.count()
	request := s.echo(own.to(victim))
	for began := time.Now(); w.seen.Load() == 0 && time.Since(began) < mostAwaited; time.Sleep(10 * time.Millisecond) {
		if err := s.socket.Send(request); err != nil && err != unix.ENOBUFS {
			return err
		}
	}
	return nil
}

// flood sends frames until the stage's time or mostFrames is reached. next may change the
// frame before it is sent.
func (s *stage) flood(frame []byte, next func(i int)) (sent int, err error) {
	const look = 64 // frames between two checks of the clock
	for end := time.Now().Add(s.length); sent < mostFrames; sent++ {
		if sent%look == 0 && time.Now().After(end) {
			break
		}
		if next != nil {
			next(sent)
		}
		if err := s.socket.Send(frame); err != nil && err != unix.ENOBUFS {
			return sent, err
		}
	}
	return sent, nil
}

// mostFrames bounds each flood.
const mostFrames = 500_000
