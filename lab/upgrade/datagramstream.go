package upgrade

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/lab/raw"
	"golang.org/x/sys/unix"
)

// path is the route of a datagram stream.
type path struct {
	from, to string // pods, or a Node
	by       string // the route, in words
}

func (p path) String() string { return fmt.Sprintf("from %s to %s", p.from, p.to) }

// datagramPaths end in pods that no policy isolates.
var datagramPaths = []path{
	{"db-a", "client-a", "on the Node"},
	{"client-a", "client-b", "to the other Node"},
	{"client-b", "client-a", "from the other Node"},
	{node, "client-a", "from the Node itself"},
}

// firstPort is the UDP port of the first path's receiver. The next path has the next port.
const firstPort = 5100

// datagrams are numbered packets on one path. The receiver answers every answerEvery-th
// packet, so that conntrack sees packets of both directions.
type datagrams struct {
	path path
	rate int // packets a second

	send *net.UDPConn
	take *net.UDPConn

	mu   sync.Mutex
	sent uint64 // packets so far, numbered from 0
	// sentAt and came are times by packet number, in nanoseconds of the clock of the
	// kernel's stamps. came is 0 until the packet arrives.
	sentAt, came []int64
	copies       int // duplicates
	last         time.Time
	// from and began are the start of the observed window, to is its end.
	from, to, copiesBefore int
	began                  time.Time
}

const (
	datagramLen = 64
	answerEvery = 100
)

// start sends and receives until ctx ends. wait returns when both goroutines have ended.
func (d *datagrams) start(ctx context.Context, l *lab.Lab) (wait func(), err error) {
	_, to, err := l.Pod(d.path.to)
	if err != nil {
		return nil, err
	}
	port := firstPort
	for _, p := range datagramPaths {
		if p == d.path {
			break
		}
		port++
	}
	at := netip.AddrPortFrom(to.Address.V4, uint16(port))
	if err := d.open(l, at); err != nil {
		return nil, errors.Join(fmt.Errorf("UDP %s: %w", d.path, err), d.Close())
	}
	var running sync.WaitGroup
	running.Go(func() { d.runReceive() })
	running.Go(func() { d.runSend(ctx) })
	return running.Wait, nil
}

// receiveBuffer is the socket's buffer for packets while the receiver does not run, in
// bytes.
const receiveBuffer = 4 << 20

// open opens both sockets.
func (d *datagrams) open(l *lab.Lab, at netip.AddrPort) error {
	err := l.In(d.path.to, func() (err error) {
		d.take, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		return err
	}
	if err := stamped(d.take); err != nil {
		return err
	}
	return l.In(d.path.from, func() (err error) {
		d.send, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(at))
		return err
	})
}

// stamped sets the socket's buffer, and makes the kernel time-stamp each datagram.
func stamped(c *net.UDPConn) error {
	sys, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = sys.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
	})
	return errors.Join(err, failed, raw.Stamp(c))
}

// mostBehind is the most packets that a sender sends at once to catch up after a pause.
const mostBehind = 64

// runSend sends at the rate until ctx ends. A packet that the Node's own stack refuses is
// lost: without the gateway there is no route.
func (d *datagrams) runSend(ctx context.Context) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began, skipped := time.Now(), uint64(0)
	var b [datagramLen]byte
	for ctx.Err() == nil {
		due := uint64(time.Since(began).Seconds()*float64(d.rate)) - skipped
		if behind := due - d.sent; behind > mostBehind {
			skipped, due = skipped+behind-mostBehind, d.sent+mostBehind
		}
		for d.sent < due {
			binary.BigEndian.PutUint64(b[:], d.number())
			d.send.Write(b[:])
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// number is the number of the next packet, and records its time.
func (d *datagrams) number() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sentAt, d.came = append(d.sentAt, time.Now().UnixNano()), append(d.came, 0)
	d.sent++
	return d.sent - 1
}

// runReceive receives packets until the socket is closed.
func (d *datagrams) runReceive() {
	b, stamp := make([]byte, 2*datagramLen), make([]byte, 128)
	for {
		n, m, _, who, err := d.take.ReadMsgUDPAddrPort(b, stamp)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n != datagramLen {
			continue
		}
		number := binary.BigEndian.Uint64(b)
		d.arrived(number, raw.StampOf(stamp[:m]))
		if number%answerEvery == 0 {
			d.take.WriteToUDPAddrPort(b[:n], who)
		}
	}
}

// arrived records a packet's arrival.
func (d *datagrams) arrived(number uint64, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case number >= d.sent:
		return // not one of these packets
	case d.came[number] != 0:
		d.copies++
		return
	}
	d.came[number], d.last = at.UnixNano(), at
}

// cameSince says whether a packet that was sent since t has arrived.
func (d *datagrams) cameSince(t time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.came) - 1; i >= 0 && d.sentAt[i] >= t.UnixNano(); i-- {
		if d.came[i] != 0 {
			return true
		}
	}
	return false
}

// beginWindow begins a window.
func (d *datagrams) beginWindow(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.from, d.copiesBefore, d.began = int(d.sent), d.copies, at
}

// straggling is how long the last packets of a window may take to arrive.
const straggling = 500 * time.Millisecond

// end ends the window.
func (d *datagrams) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to = int(d.sent)
}

// seen is the result of the window. started is when the new agent started.
func (d *datagrams) seen(started time.Time) Path {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := Path{From: d.path.from, To: d.path.to, By: d.path.by, Sent: d.to - d.from, Copies: d.copies - d.copiesBefore}
	var gap, pause, wait int64
	for i, before := d.from, d.from; i < d.to; i++ {
		if i > d.from {
			pause = max(pause, d.sentAt[i]-d.sentAt[i-1])
		}
		if d.came[i] == 0 {
			w.Lost++
			continue
		}
		gap, wait = max(gap, d.came[i]-max(d.came[before], d.began.UnixNano())), max(wait, d.came[i]-d.sentAt[i])
		before = i
		if !started.IsZero() && d.sentAt[i] >= started.UnixNano() && w.First == 0 {
			w.First = milliseconds(time.Duration(d.came[i] - started.UnixNano()))
		}
	}
	w.Gap, w.Pause, w.Wait = milliseconds(time.Duration(gap)), milliseconds(time.Duration(pause)), milliseconds(time.Duration(wait))
	return w
}

// milliseconds is a duration in the report.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Close closes the sockets.
func (d *datagrams) Close() error {
	for _, c := range []*net.UDPConn{d.send, d.take} {
		if c != nil {
			c.Close()
		}
	}
	return nil
}
