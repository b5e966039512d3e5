package demo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/lab/raw"
)

// Ports of the servers in the pods.
const (
	webPort  = 80   // web pods: greets
	apiPort  = 8080 // web pods: as sinkPort of a client pod
	sinkPort = 5001 // client pods: greets, then reads bytes and answers their SHA-256
)

// waitAtMost is how long an expected answer may take, with retransmitted SYNs and on a busy
// machine. It only bounds a failing check.
const waitAtMost = 12 * time.Second

// silence is how long a check waits for an answer that must not come. Between two pods an
// answer takes less than a millisecond. A second allows one retransmission.
const silence = 1200 * time.Millisecond

// world is a lab with servers in its pods. Its clients use IPv4, or IPv6 in the world that
// ipv6 returns.
type world struct {
	lab       *lab.Lab
	v6        bool
	addresses map[string]netip.Addr // by name
	closers   []io.Closer           // listening sockets
	dialled   *atomic.Uint32        // connections so far; nil: the kernel chooses ports
}

// sourcePort is the next connection's source port: below the kernel's ephemeral ports, and
// used once. For an endpoint, connections to its Service and to itself look the same if
// they come from the same port. While one of them is remembered, the other is refused.
func (w *world) sourcePort() int {
	const first, last = 10000, 29999
	if w.dialled == nil {
		return 0
	}
	return first + int(w.dialled.Add(1)-1)%(last-first+1)
}

// ipv6 is the same world over IPv6.
func (w *world) ipv6() *world {
	return &world{lab: w.lab, v6: true, addresses: addresses(w.lab, true), closers: w.closers, dialled: w.dialled}
}

// newWorld starts the servers. Servers also listen on the ports that policies deny, so that
// only the policy refuses a connection.
func newWorld(l *lab.Lab) (*world, error) {
	w := &world{lab: l, addresses: addresses(l, false), dialled: new(atomic.Uint32)}
	for _, s := range []struct {
		pods  []string
		ports []int
		serve func(net.Conn)
	}{
		{[]string{"web-a", "web-b"}, []int{webPort, 443, 8081}, nil},
		{[]string{"web-a", "web-b"}, []int{apiPort}, digest},
		{[]string{"db-a", "db-b"}, []int{3306, 5432}, nil},
		{[]string{"outside"}, []int{webPort}, nil},
		{[]string{"client-a", "client-b"}, []int{sinkPort}, digest},
	} {
		for _, pod := range s.pods {
			for _, port := range s.ports {
				if err := w.listen(pod, port, s.serve); err != nil {
					w.close()
					return nil, err
				}
			}
		}
	}
	for _, name := range []string{"client-a", "client-b", "outside"} {
		if err := w.listenEcho(name); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// addresses are the addresses of one family by name.
func addresses(l *lab.Lab, v6 bool) map[string]netip.Addr {
	m := map[string]netip.Addr{"outside": l.Topology.Outside.Of(v6).Addr()}
	for _, n := range l.Topology.Nodes {
		m[n.Name] = n.Address.Of(v6).Addr()
		for _, p := range n.Pods {
			m[p.Name] = p.Address.Of(v6)
		}
	}
	return m
}

func (w *world) close() {
	for _, c := range w.closers {
		c.Close()
	}
}

// raw opens a raw socket on a link of a pod, a Node or "underlay".
func (w *world) raw(name, link string) (s *raw.Socket, err error) {
	err = w.lab.In(name, func() (err error) {
		s, err = raw.Open(link)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("raw socket on %s in %s: %w", link, name, err)
	}
	return s, nil
}

// listen starts a server of both families. It greets each connection with its own name and
// the client's address. If serve is not nil, it gets the connection then.
func (w *world) listen(name string, port int, serve func(net.Conn)) error {
	return w.lab.In(name, func() error {
		ln, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return fmt.Errorf("server in %s: %w", name, err)
		}
		w.closers = append(w.closers, ln)
		go runServer(ln, name, serve)
		return nil
	})
}

func runServer(ln net.Listener, name string, serve func(net.Conn)) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			fmt.Fprintln(c, name, host)
			if serve != nil {
				serve(c)
			}
		}()
	}
}

// digest reads bytes until the end, and answers with their number and SHA-256.
func digest(c net.Conn) {
	h := sha256.New()
	n, err := io.Copy(h, c)
	if err == nil {
		fmt.Fprintf(c, "%d %x\n", n, h.Sum(nil))
	}
}

// resolve turns a name as in "web-a:80" into an address.
func (w *world) resolve(target string) string {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return target // dial returns the error
	}
	if a, ok := w.addresses[host]; ok {
		host = a.String()
	}
	return net.JoinHostPort(host, port)
}

// dial connects from a pod (or Node) to a target.
func (w *world) dial(ctx context.Context, from, to string, timeout time.Duration) (net.Conn, error) {
	var c net.Conn
	err := w.lab.In(from, func() (err error) {
		c, err = (&net.Dialer{Timeout: timeout, LocalAddr: &net.TCPAddr{Port: w.sourcePort()}}).DialContext(ctx, "tcp", w.resolve(to))
		return err
	})
	return c, err
}

// greeting is a server's first line: the pod that answered, and the client's address that
// it saw.
type greeting struct{ name, source string }

// greet connects and reads the greeting.
func (w *world) greet(ctx context.Context, from, to string) (greeting, error) {
	c, err := w.dial(ctx, from, to, waitAtMost)
	if err != nil {
		return greeting{}, err
	}
	defer c.Close()
	return readGreeting(c)
}

// readGreeting reads one line, and no byte more.
func readGreeting(c net.Conn) (greeting, error) {
	c.SetReadDeadline(time.Now().Add(waitAtMost))
	defer c.SetReadDeadline(time.Time{})
	var line []byte
	for b := make([]byte, 1); len(line) < 100; line = append(line, b[0]) {
		if _, err := c.Read(b); err != nil {
			return greeting{}, fmt.Errorf("no greeting from %s: %w", c.RemoteAddr(), err)
		}
		if b[0] == '\n' {
			break
		}
	}
	name, source, ok := strings.Cut(string(line), " ")
	if !ok {
		return greeting{}, fmt.Errorf("%s said %q", c.RemoteAddr(), line)
	}
	return greeting{name, source}, nil
}

// agent is a client of a Node's agent.
func (w *world) agent(node string) *api.Client { return api.NewClient(w.lab.Socket(node)) }

// dropped counts the packets that node-a's switch has dropped in one of the tables, or for
// one of the reasons.
func (w *world) dropped(ctx context.Context, counted ...string) (uint64, error) {
	var drops []api.Drop
	if err := w.agent("node-a").JSON(ctx, "/drops", nil, &drops); err != nil {
		return 0, err
	}
	var n uint64
	for _, d := range drops {
		if slices.Contains(counted, d.Table) || slices.Contains(counted, d.Reason) {
			n += d.Packets
		}
	}
	return n, nil
}

// dropsDuring runs f and returns how many packets node-a dropped meanwhile, as in dropped.
func (w *world) dropsDuring(ctx context.Context, f func() error, counted ...string) (uint64, error) {
	before, err := w.dropped(ctx, counted...)
	if err == nil {
		err = f()
	}
	if err != nil {
		return 0, err
	}
	after, err := w.dropped(ctx, counted...)
	return after - before, err
}

// isTimeout says whether an error is a timeout rather than a refusal.
func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
