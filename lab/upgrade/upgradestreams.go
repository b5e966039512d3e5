package upgrade

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/lab"
	"golang.org/x/sys/unix"
)

// streamPaths are the paths of connections: the lab's pods, and destinations.
var streamPaths = []struct{ from, to string }{
	{"client-a", "10.10.0.24:80"},    // web-a, on the same Node
	{"client-a", "10.105.31.235:80"}, // the Service of web-a and web-b
	{"client-a", "10.10.1.6:80"},     // web-b, on the other Node
	{"client-b", "10.10.0.24:80"},    // from the other Node
	{node, "10.10.0.24:80"},          // from the Node itself
}

// The servers' pods and port. Policies let these clients reach them.
var servers = []string{"web-a", "web-b"}

const serverPort = 80

// streams are TCP connections to echo servers. A connection is lost if it ends, or a wrong
// answer comes back.
type streams struct {
	lab       *lab.Lab
	heartbeat time.Duration

	mu      sync.Mutex
	closers []io.Closer
	all     []*stream
}

// stream is one connection.
type stream struct {
	net.Conn
	answered atomic.Int64          // when the last heartbeat's answer came, UnixNano
	slowest  atomic.Int64          // the longest time to an answer in this window, nanoseconds
	over     atomic.Pointer[error] // the error of a lost connection
}

// start makes connections and runs their heartbeats until ctx ends. wait returns when all
// heartbeats have ended.
func (s *streams) start(ctx context.Context, count int) (wait func(), err error) {
	var running sync.WaitGroup
	first := rand.IntN(sourcePorts)
	for _, pod := range servers {
		if err := s.listen(pod); err != nil {
			return running.Wait, err
		}
	}
	for i := range count {
		p := streamPaths[i%len(streamPaths)]
		one, err := s.dial(ctx, p.from, p.to, sourcePort(first, i))
		for try := 1; try < mostTries && errors.Is(err, unix.EADDRINUSE); try++ { // an earlier run's port
			one, err = s.dial(ctx, p.from, p.to, sourcePort(first, i+try*further(count)))
		}
		if err != nil {
			return running.Wait, fmt.Errorf("connection %d of %d: %s to %s: %w", i+1, count, p.from, p.to, err)
		}
		// The connections start one after another, so that their heartbeats are spread out.
		running.Go(func() { one.runHeartbeats(ctx, s.heartbeat) })
	}
	return running.Wait, nil
}

// closeLater records something for Close.
func (s *streams) closeLater(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, c)
}

// listen starts an echo server in a pod.
func (s *streams) listen(pod string) error {
	return s.lab.In(pod, func() error {
		ln, err := net.Listen("tcp", fmt.Sprintf(":%d", serverPort))
		if err != nil {
			return fmt.Errorf("server in %s: %w", pod, err)
		}
		s.closeLater(ln)
		go s.runServer(ln)
		return nil
	})
}

func (s *streams) runServer(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		s.closeLater(c)
		go io.Copy(c, c)
	}
}

// Source ports are below the kernel's ephemeral ports. For an endpoint, connections to its
// Service and to itself look the same if they come from the same port. So each path has
// ports of its own: those of one remainder.
const (
	firstSource = 10000
	sourcePorts = 20000
	mostTries   = 20
)

// further is the distance to the next port to try: of the same path, and of no other
// connection of count.
func further(count int) int {
	n := len(streamPaths)
	return (count + n - 1) / n * n
}

// sourcePort is the port of connection i, if first is the first port's offset.
func sourcePort(first, i int) int {
	n := len(streamPaths)
	return firstSource + (first/n*n+i)%(sourcePorts/n*n)
}

// dialTime is how long a connection may take to be established.
const dialTime = 10 * time.Second

func (s *streams) dial(ctx context.Context, from, to string, port int) (*stream, error) {
	one := &stream{}
	err := s.lab.In(from, func() (err error) {
		one.Conn, err = (&net.Dialer{Timeout: dialTime, KeepAlive: -1, LocalAddr: &net.TCPAddr{Port: port}}).DialContext(ctx, "tcp", to)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.closeLater(one)
	s.all = append(s.all, one)
	return one, nil
}

// runHeartbeats sends numbers and expects them back, until ctx or the connection ends.
func (s *stream) runHeartbeats(ctx context.Context, pause time.Duration) {
	for n := uint64(1); ctx.Err() == nil; n++ {
		sent := time.Now()
		if err := s.beat(n); err != nil {
			if ctx.Err() == nil {
				s.over.Store(&err)
			}
			return
		}
		s.answered.Store(time.Now().UnixNano())
		s.slowest.Store(max(s.slowest.Load(), int64(time.Since(sent))))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// beat is one heartbeat. It waits as long as TCP does.
func (s *stream) beat(n uint64) error {
	var sent, got [8]byte
	binary.BigEndian.PutUint64(sent[:], n)
	if _, err := s.Write(sent[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(s, got[:]); err != nil {
		return err
	}
	if got != sent {
		return errors.New("the answer differs from the heartbeat")
	}
	return nil
}

// lost are the errors of the lost connections.
func (s *streams) lost() (all []error) {
	for _, one := range s.all {
		if err := one.over.Load(); err != nil {
			all = append(all, *err)
		}
	}
	return all
}

// silent are the connections that are not lost and have not answered since a time.
func (s *streams) silent(since time.Time) (all []*stream) {
	for _, one := range s.all {
		if one.over.Load() == nil && one.answered.Load() <= since.UnixNano() {
			all = append(all, one)
		}
	}
	return all
}

// beginWindow begins a window.
func (s *streams) beginWindow() {
	for _, one := range s.all {
		one.slowest.Store(0)
	}
}

// slowest is how long the slowest heartbeat of the window took.
func (s *streams) slowest() (d time.Duration) {
	for _, one := range s.all {
		d = max(d, time.Duration(one.slowest.Load()))
	}
	return d
}

// unanswered is the kernel's state of a silent connection. If it waits for a
// retransmission, it is slow. If nothing is unacknowledged, the other end has not sent an
// answer.
func (s *stream) unanswered() error {
	tcp, is := s.Conn.(*net.TCPConn)
	if !is {
		return errors.New("no answer")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var told *unix.TCPInfo
	var failed error
	err = raw.Control(func(fd uintptr) { told, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return fmt.Errorf("%s to %s: no answer: TCP state %d, %d segments not acknowledged, sent again %d times and then every %v",
		s.LocalAddr(), s.RemoteAddr(), told.State, told.Unacked, told.Retransmits, time.Duration(told.Rto)*time.Microsecond)
}

// reasons summarizes errors: how many of each kind, and one in full. Errors of one kind
// differ only in addresses and ports.
func reasons(all []error) string {
	count, one := map[string]int{}, map[string]error{}
	for _, err := range all {
		kind := err.Error()
		for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
			kind = inner.Error()
		}
		count[kind]++
		one[kind] = err
	}
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		words = append(words, fmt.Sprintf("%d: %v", count[kind], one[kind]))
	}
	return strings.Join(words, "; ")
}

// Close closes servers and connections.
func (s *streams) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.closers {
		c.Close()
	}
	return nil
}
