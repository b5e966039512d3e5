package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/lab"
)

// Profile tunnel: TCP and UDP between pods of two Nodes.

const tunnelNote = "Two pods on two Nodes, MTU 1450; the Nodes are namespaces with a veth each on a bridge, MTU 1500, which passes on checksums and segments that are left to a card. " +
	"antrail: two real agents, with the entries of examples/two-nodes, Geneve. Open vSwitch: two userspace datapaths with the very same entries, groups and meters, AF_PACKET ports, Geneve; without " +
	"userspace-tso-enable, which knows no tunnels, so that its pods cut segments themselves. UDP: one flow of datagrams of 64 bytes, of which at most 512 are under way."

// tunnelPairs makes the contenders of the profile.
func (r *rig) tunnelPairs(ctx context.Context, c *Comparison) (pairs []*podPair, err error) {
	c.Notes = append(c.Notes, tunnelNote)
	dir, err := writeExamples()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the agents have read them when their lab is up
	pairs, absent, err := r.open([]opener{
		{vxlanName, openVXLAN},
		{routedName, openRouted},
		{ovsVersion(), func() (*podPair, error) { return openOVSTunnel(ctx) }},
		{"antrail", func() (*podPair, error) { return r.openTwoNodes(ctx, dir) }},
	})
	c.Notes = append(c.Notes, absent...)
	if err != nil {
		return nil, errors.Join(err, closePairs(pairs))
	}
	return pairs, nil
}

func closePairs(pairs []*podPair) error {
	var errs []error
	for _, p := range pairs {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

// openTwoNodes is a lab of two Nodes: a client here, a web server there.
func (r *rig) openTwoNodes(ctx context.Context, entries string) (*podPair, error) {
	l, err := lab.Up(ctx, lab.Options{
		Binary: r.Binary, StateDir: r.StateDir, FlowsDir: entries + "/two-nodes",
		Driver: agent.DriverAFPacket, UnderlayOffloads: true, Transient: true,
	})
	if err != nil {
		return nil, err
	}
	return labPair(l, "antrail", l.Topology.Nodes[0].Pods[0], l.Topology.Nodes[1].Pods[0])
}

func runTunnel(ctx context.Context, r *rig, c *Comparison) error {
	return asOrdinary(func() error { return r.contestNodes(ctx, c) })
}

func (r *rig) contestNodes(ctx context.Context, c *Comparison) (err error) {
	pairs, err := r.tunnelPairs(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closePairs(pairs)) }()
	var sides []*side
	for _, p := range pairs {
		sides = append(sides, &side{name: p.name, measure: func(ctx context.Context) ([]reading, error) { return r.measureTunnel(ctx, p) }})
	}
	return r.contest(ctx, c, sides)
}

// measureTunnel is what streams, round trips and datagrams reach.
func (r *rig) measureTunnel(ctx context.Context, p *podPair) ([]reading, error) {
	all, err := r.measureStreams(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("streams: %w", err)
	}
	trips, err := r.measureRR(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("round trips: %w", err)
	}
	rate, err := p.datagrams(ctx, r.Window)
	if err != nil {
		return nil, fmt.Errorf("datagrams: %w", err)
	}
	return slices.Concat(all, trips, []reading{{"UDP, 64 bytes", "Mpps", rate}}), nil
}

// datagrams is how many millions of datagrams a second arrive, while one thread
// sends as many as may be under way.
func (p *podPair) datagrams(ctx context.Context, window time.Duration) (float64, error) {
	server, client, err := p.datagramSockets()
	if err != nil {
		return 0, err
	}
	var arrived atomic.Uint64
	var stop atomic.Bool
	received, sent := make(chan error, 1), make(chan error, 1)
	go func() { received <- runCounter(server, &arrived, &stop) }()
	go func() { sent <- runFlood(client, &arrived, &stop) }()
	wait(ctx, window/2)
	before, start := arrived.Load(), time.Now()
	wait(ctx, window)
	n, took := arrived.Load()-before, time.Since(start)
	stop.Store(true)
	err = errors.Join(<-sent, <-received, unix.Close(client), unix.Close(server), ctx.Err())
	if err == nil && n == 0 {
		err = errors.New("no datagram arrives")
	}
	return float64(n) / took.Seconds() / 1e6, err
}

// datagramSockets are the two ends, blocking; reading gives up after a tenth of
// a second.
func (p *podPair) datagramSockets() (server, client int, err error) {
	at, err := net.ResolveUDPAddr("udp4", p.address)
	if err != nil {
		return -1, -1, err
	}
	sa := &unix.SockaddrInet4{Port: at.Port, Addr: at.AddrPort().Addr().As4()}
	err = p.server(func() (err error) { server, err = datagramSocket(sa, unix.Bind); return err })
	if err != nil {
		return -1, -1, err
	}
	err = p.client(func() (err error) { client, err = datagramSocket(sa, unix.Connect); return err })
	if err != nil {
		return -1, -1, errors.Join(err, unix.Close(server))
	}
	tenth := unix.NsecToTimeval(int64(time.Second / 10))
	return server, client, unix.SetsockoptTimeval(server, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tenth)
}

// datagramSocket is a UDP socket that is bound or connected to an address.
func datagramSocket(sa unix.Sockaddr, to func(int, unix.Sockaddr) error) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := to(fd, sa); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// underWay is how many datagrams are sent and have not arrived: more than a
// switch takes at once, and few enough that no queue of the kernel overflows.
const underWay = 512

// lostAfter is how long nothing arrives until what is under way is given up.
const lostAfter = 5 * time.Millisecond

// runFlood sends datagrams of 64 bytes until it is told to stop.
func runFlood(fd int, arrived *atomic.Uint64, stop *atomic.Bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b := make([]byte, 64-14-20-8)
	var sent, seen uint64
	for progress := time.Now(); !stop.Load(); {
		if now := arrived.Load(); sent >= now+underWay {
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

// runCounter counts datagrams until it is told to stop.
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
