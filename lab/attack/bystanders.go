package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// The other pods ping, connect and stream during an attack. Their traffic is measured in
// windows, one for each attack.

// path is a path of the other pods' traffic. Policies allow each.
type path struct {
	from, to string
	port     int // TCP; 0 for ping
}

var (
	pingPaths    = []path{{from: "db-a", to: "web-a"}, {from: "db-a", to: "web-b"}}
	connectPaths = []path{{"web-a", "db-a", dbPort}, {"client-b", "web-a", webPort}, {"db-a", "client-b", sinkPort}}
	streamPaths  = []path{{"web-a", "db-a", dbPort}, {"db-a", "client-b", sinkPort}}
)

// Ports of the servers in the pods.
const (
	webPort  = 80
	dbPort   = 3306
	sinkPort = 5001
)

var servers = []path{{to: "web-a", port: webPort}, {to: "web-b", port: webPort}, {to: "db-a", port: dbPort}, {to: "client-b", port: sinkPort}}

// waitAtMost bounds a connection or an answer. With retransmitted SYNs it allows three
// losses. It only matters if something fails.
const waitAtMost = 8 * time.Second

// Others is what the other pods saw during an attack. Times are in milliseconds.
type Others struct {
	// OneNode and Across are pings between pods of one Node, and of two.
	OneNode Pings `json:"oneNode"`
	Across  Pings `json:"acrossNodes"`
	// Connects is the number of TCP connects, Failed how many of them got no greeting from
	// the server.
	Connects int `json:"connects"`
	Failed   int `json:"connectsFailed"`
	// Streamed are the bytes of TCP streams, Stall the longest time without any on one of
	// them.
	Streamed int64   `json:"streamedBytes"`
	Stall    float64 `json:"streamStallMs"`
	// Why is one of the failures.
	Why string `json:"why,omitempty"`
}

// Pings are echo requests and the 99th percentile of their round trips.
type Pings struct {
	Sent int     `json:"sent"`
	Lost int     `json:"lost"`
	P99  float64 `json:"p99Ms"`
}

// others is the traffic of the other pods, by one address family.
type others struct {
	s       *stage
	cancel  context.CancelFunc
	running sync.WaitGroup
	closers []io.Closer

	pings    []*pinging
	connects []*connecting
	streams  []*streaming
}

// startOthers starts servers and traffic. It goes on until stop.
func startOthers(ctx context.Context, s *stage) (*others, error) {
	ctx, cancel := context.WithCancel(ctx)
	o := &others{s: s, cancel: cancel}
	err := o.listen(ctx)
	if err == nil {
		err = o.open()
	}
	if err != nil {
		o.stop()
		return nil, err
	}
	for _, p := range o.pings {
		o.running.Go(p.runReceive)
		o.running.Go(func() { p.runSend(ctx) })
	}
	for _, p := range connectPaths {
		c := &connecting{path: p, s: s}
		o.connects = append(o.connects, c)
		o.running.Go(func() { c.runConnects(ctx) })
	}
	for _, p := range streamPaths {
		t := &streaming{path: p, s: s}
		o.streams = append(o.streams, t)
		o.running.Go(func() { t.runStream(ctx) })
	}
	return o, nil
}

// open opens the pingers, before any traffic runs.
func (o *others) open() error {
	for i, p := range pingPaths {
		one, err := openPinging(o.s, p, uint16(i))
		if err != nil {
			return err
		}
		o.pings = append(o.pings, one)
		o.closers = append(o.closers, one)
	}
	return nil
}

// listen starts the servers.
func (o *others) listen(ctx context.Context) error {
	for _, at := range servers {
		err := o.s.lab.In(at.to, func() error {
			ln, err := net.Listen("tcp", o.s.target(at))
			if err != nil {
				return err
			}
			o.closers = append(o.closers, ln)
			o.running.Go(func() { runServer(ctx, ln) })
			return nil
		})
		if err != nil {
			return fmt.Errorf("server in %s: %w", at.to, err)
		}
	}
	return nil
}

// target is the address that a path leads to.
func (s *stage) target(p path) string {
	return net.JoinHostPort(s.pod(p.to).address.String(), fmt.Sprint(p.port))
}

// stop ends the traffic and waits until it has ended.
func (o *others) stop() {
	o.cancel()
	for _, c := range o.closers {
		c.Close()
	}
	o.running.Wait()
}

// beginWindow begins a window.
func (o *others) beginWindow() {
	for _, p := range o.pings {
		p.beginWindow()
	}
	for _, c := range o.connects {
		c.beginWindow()
	}
	for _, t := range o.streams {
		t.beginWindow()
	}
}

// end ends the window, waits for running connects, and returns the measurements. The errors
// are about broken streams.
func (o *others) end() (seen Others, err error) {
	for i, p := range o.pings {
		to := &seen.OneNode
		if i > 0 {
			to = &seen.Across
		}
		*to = p.end()
	}
	for _, c := range o.connects {
		tried, failed, why := c.end()
		seen.Connects, seen.Failed = seen.Connects+tried, seen.Failed+failed
		if why != nil {
			seen.Why = why.Error()
		}
	}
	for _, t := range o.streams {
		bytes, stall, why := t.end()
		seen.Streamed, seen.Stall = seen.Streamed+bytes, max(seen.Stall, milliseconds(stall))
		err = errors.Join(err, why)
	}
	return seen, err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// percentile is the value that percent % of the values do not exceed. It sorts them.
func percentile(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, len(all)*percent/100)]
}
