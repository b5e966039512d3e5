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

// streamPaths are where connections lead. Their names are those of the lab's pods.
var streamPaths = []struct{ from, to string }{
	{"client-a", "10.10.0.24:80"},    // web-a, on the same Node
	{"client-a", "10.105.31.235:80"}, // the Service of web-a and web-b
	{"client-a", "10.10.1.6:80"},     // web-b, on the other Node
	{"client-b", "10.10.0.24:80"},    // from the other Node
	{node, "10.10.0.24:80"},          // from the Node itself
}

// The servers' pods and port, which policies let these clients reach.
var servers = []string{"web-a", "web-b"}

const serverPort = 80

// streams are TCP connections whose server says everything again. A connection is
// lost when it ends, or says something else.
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
	answered atomic.Int64          // when the last heartbeat came back, UnixNano
	slowest  atomic.Int64          // the longest that one took, in this window
	over     atomic.Pointer[error] // by which it is lost
}

// start makes connections and has their heartbeats go until ctx ends; wait returns
// when nobody's does any more.
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
		for try := 1; try < mostTries && errors.Is(err, unix.EADDRINUSE); try++ { // of an earlier run
			one, err = s.dial(ctx, p.from, p.to, sourcePort(first, i+try*further(count)))
		}
		if err != nil {
			return running.Wait, fmt.Errorf("connection %d of %d: %s to %s: %w", i+1, count, p.from, p.to, err)
		}
		// Heartbeats begin one after another, so that they are spread over the time.
		running.Go(func() { one.runHeartbeats(ctx, s.heartbeat) })
	}
	return running.Wait, nil
}

// keep remembers what is to be closed in the end.
func (s *streams) keep(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, c)
}

// listen starts a server in a pod.
func (s *streams) listen(pod string) error {
	ns, err := s.lab.Namespace(pod)
	if err != nil {
		return err
	}
	return ns.Do(func() error {
		ln, err := net.Listen("tcp", fmt.Sprintf(":%d", serverPort))
		if err != nil {
			return fmt.Errorf("server in %s: %w", pod, err)
		}
		s.keep(ln)
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
		s.keep(c)
		go io.Copy(c, c)
	}
}

// Connections come from ports below those that the kernel chooses. A connection to
// a Service and one to its endpoint are the same to the endpoint when they come from
// the same port, so each way has its own: those of one remainder.
const (
	firstSource = 10000
	sourcePorts = 20000
	mostTries   = 20
)

// further is how far from a port the next one is tried that is of the same way and of no
// other connection of so many.
func further(count int) int {
	n := len(streamPaths)
	return (count + n - 1) / n * n
}

// sourcePort is that of a connection, by its number and that of the first.
func sourcePort(first, i int) int {
	n := len(streamPaths)
	return firstSource + (first/n*n+i)%(sourcePorts/n*n)
}

// dialTime is how long a connection may take to be made.
const dialTime = 10 * time.Second

func (s *streams) dial(ctx context.Context, from, to string, port int) (*stream, error) {
	ns, err := s.lab.Namespace(from)
	if err != nil {
		return nil, err
	}
	one := &stream{}
	err = ns.Do(func() (err error) {
		one.Conn, err = (&net.Dialer{Timeout: dialTime, KeepAlive: -1, LocalAddr: &net.TCPAddr{Port: port}}).DialContext(ctx, "tcp", to)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.keep(one)
	s.all = append(s.all, one)
	return one, nil
}

// runHeartbeats sends numbers and wants them back, until ctx ends or the connection
// does.
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

// beat is one heartbeat. It waits for as long as TCP does.
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
		return errors.New("something else came back")
	}
	return nil
}

// lost are the errors of the connections that are over.
func (s *streams) lost() (all []error) {
	for _, one := range s.all {
		if err := one.over.Load(); err != nil {
			all = append(all, *err)
		}
	}
	return all
}

// silent are the connections that are not over and have had no answer since.
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

// unanswered is what the kernel knows of a connection that is silent: one that waits
// for its next retransmission is slow, and one that has nothing under way waits for
// what the other end has not sent.
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

// reasons are errors in few words: how many there are of each kind, and one of them
// whole. Kinds are what is left without addresses and ports.
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

// Close ends servers and connections.
func (s *streams) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.closers {
		c.Close()
	}
	return nil
}
