package pods

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"golang.org/x/sys/unix"
)

// mostSilence is how long no datagram may arrive before the measurement fails.
const mostSilence = 5 * time.Second

// measureUDP measures datagrams in frames of 64 bytes.
func measureUDP(ctx context.Context, p *pair, window time.Duration) ([]rig.Reading, error) {
	rate, each, err := p.measureDatagrams(ctx, window)
	if err != nil {
		return nil, fmt.Errorf("datagrams: %w", err)
	}
	return []rig.Reading{
		{Name: "UDP, 64 bytes", Unit: "Mpps", Value: rate}, {Name: "UDP, 64 bytes, processor time of a packet", Unit: "ns", Value: each},
	}, nil
}

// measureDatagrams returns how many millions of datagrams arrive a second, and the nanoseconds of
// processor time of one. One thread sends as many as may be under way.
func (p *pair) measureDatagrams(ctx context.Context, window time.Duration) (rate, each float64, err error) {
	server, client, err := p.openDatagramSockets()
	if err != nil {
		return 0, 0, err
	}
	var arrived atomic.Uint64
	var stop atomic.Bool
	received, sent := make(chan error, 1), make(chan error, 1)
	go func() { received <- runCounter(server, &arrived, &stop) }()
	go func() { sent <- runFlood(client, &arrived, &stop) }()
	sched.Wait(ctx, window/2)
	busy, err1 := p.processorTime()
	before, start := arrived.Load(), time.Now()
	n, took := uint64(0), time.Duration(0)
	for n == 0 && took < mostSilence && ctx.Err() == nil { // others may have the processors for a whole window
		sched.Wait(ctx, window)
		n, took = arrived.Load()-before, time.Since(start)
	}
	now, err2 := p.processorTime()
	stop.Store(true)
	err = errors.Join(err1, err2, <-sent, <-received, unix.Close(client), unix.Close(server), ctx.Err())
	if err == nil && n == 0 {
		err = errors.New("no datagram arrives")
	}
	return float64(n) / took.Seconds() / 1e6, float64((now - busy).Nanoseconds()) / float64(n), err
}

// openDatagramSockets opens both ends as blocking sockets. Reads of the server time out after a tenth of a
// second.
func (p *pair) openDatagramSockets() (server, client int, err error) {
	at, err := net.ResolveUDPAddr("udp4", p.address)
	if err != nil {
		return -1, -1, err
	}
	sa := &unix.SockaddrInet4{Port: at.Port, Addr: at.AddrPort().Addr().As4()}
	err = p.server(func() (err error) { server, err = openDatagramSocket(sa, unix.Bind); return err })
	if err != nil {
		return -1, -1, err
	}
	err = p.client(func() (err error) { client, err = openDatagramSocket(sa, unix.Connect); return err })
	if err != nil {
		return -1, -1, errors.Join(err, unix.Close(server))
	}
	tenth := unix.NsecToTimeval(int64(time.Second / 10))
	return server, client, errors.Join(unix.SetsockoptTimeval(server, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tenth),
		unix.SetsockoptInt(server, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, mostUnderWay*bufferOfDatagram))
}

// openDatagramSocket opens a UDP socket and binds or connects it to an address.
func openDatagramSocket(sa unix.Sockaddr, to func(int, unix.Sockaddr) error) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := to(fd, sa); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// mostUnderWay is how many datagrams may be sent before they arrive. It is more than a switch takes at
// once, and so few that no queue of the kernel overflows.
const mostUnderWay = 512

// bufferOfDatagram is more than the kernel charges a socket for a datagram in its queue, which depends
// on who forwarded it. By default a queue holds 166 to 277.
const bufferOfDatagram = 4096

// lostAfter is how long nothing must arrive until datagrams under way count as lost.
const lostAfter = 5 * time.Millisecond

// runFlood sends datagrams in frames of 64 bytes until stop.
func runFlood(fd int, arrived *atomic.Uint64, stop *atomic.Bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b := make([]byte, 64-14-20-8)
	var sent, seen uint64
	for progress := time.Now(); !stop.Load(); {
		if now := arrived.Load(); sent >= now+mostUnderWay {
			if now != seen {
				seen, progress = now, time.Now()
			} else if time.Since(progress) > lostAfter {
				sent = now
			}
			time.Sleep(10 * time.Microsecond)
			continue
		}
		switch _, err := unix.Write(fd, b); err {
		case nil:
			sent++
		case unix.EINTR, unix.ENOBUFS, unix.ECONNREFUSED:
		default:
			return err
		}
	}
	return nil
}

// runCounter receives and counts datagrams until stop.
func runCounter(fd int, arrived *atomic.Uint64, stop *atomic.Bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b := make([]byte, 64); !stop.Load(); {
		switch _, err := unix.Read(fd, b); err {
		case nil:
			arrived.Add(1)
		case unix.EINTR, unix.EAGAIN:
		default:
			return err
		}
	}
	return nil
}
