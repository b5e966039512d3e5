package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/agent"
)

// TCPOptions bounds a comparison of TCP streams; what is zero has a default.
type TCPOptions struct {
	// Rounds is how many times each side runs; 5.
	Rounds int
	// Limit is how long a run takes; 2 seconds.
	Limit time.Duration
	// Drivers are those of antrail's sides; afpacket and afxdp when there is none.
	Drivers []string
	// Binary is the antrail binary that the labs' agents run; the running one
	// when empty.
	Binary string
	// StateDir is where the labs keep their state; the usual place when empty.
	StateDir string
}

// Check says what is wrong with the options.
func (o TCPOptions) Check() error { return o.complete() }

func (o *TCPOptions) complete() error {
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Limit == 0 {
		o.Limit = 2 * time.Second
	}
	if len(o.Drivers) == 0 {
		o.Drivers = []string{agent.DriverAFPacket, agent.DriverAFXDP}
	}
	for _, d := range o.Drivers {
		if !agent.KnownDriver(d) {
			return fmt.Errorf("bench: %q is no driver: auto, afxdp and afpacket are", d)
		}
	}
	if o.Rounds < 0 || o.Limit < 0 {
		return fmt.Errorf("bench: %d rounds of %v: both are positive", o.Rounds, o.Limit)
	}
	return nil
}

// streamSide is a pair of pods on one Node, and what is between them.
type streamSide struct {
	name    string
	connect func(context.Context) (client, server *net.TCPConn, err error)
	close   func() error
}

// CompareTCP sends one TCP stream between two pods of a Node, by a Linux bridge
// and by antrail's whole pipeline with each driver, in turn, and writes the table to w. antrail's sides are labs with real agents. All MTUs
// are the same. It needs root.
func CompareTCP(ctx context.Context, o TCPOptions, w io.Writer) (err error) {
	if err := o.complete(); err != nil {
		return err
	}
	sides, err := openStreamSides(ctx, o)
	defer func() {
		for _, s := range sides {
			err = errors.Join(err, s.close())
		}
	}()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "One TCP stream between two pods of a Node, Gbit/s, %v a run; antrail with its whole pipeline\n", o.Limit)
	fmt.Fprintf(w, "%s, %d CPUs, %s\n\n", kernelRelease(), runtime.NumCPU(), runtime.Version())
	rates := make([]series, len(sides))
	writeNames(w, sides)
	for round := range o.Rounds {
		for i, s := range sides {
			rate, err := s.measure(ctx, o.Limit)
			if err != nil {
				return fmt.Errorf("bench: round %d: %s: %w", round+1, s.name, err)
			}
			rates[i] = append(rates[i], rate)
		}
		writeRates(w, fmt.Sprint(round+1), rates, func(s series) float64 { return s[round] })
	}
	for _, line := range summary {
		writeRates(w, line.name, rates, line.of)
	}
	return nil
}

// writeNames writes the head of the table.
func writeNames(w io.Writer, sides []*streamSide) {
	var names []string
	for i, s := range sides {
		if names = append(names, s.name); i > 0 {
			names = append(names, "ratio")
		}
	}
	writeColumns(w, "round", names)
}

// writeRates writes a line: each side's rate, and for all but the first the
// ratio of the rounds to the first.
func writeRates(w io.Writer, name string, rates []series, of func(series) float64) {
	var cells []string
	for i, s := range rates {
		cells = append(cells, fmt.Sprintf("%.2f", of(s)/1e9))
		if i > 0 {
			cells = append(cells, fmt.Sprintf("%.2f", of(s.over(rates[0]))))
		}
	}
	writeColumns(w, name, cells)
}

// writeColumns writes a line of cells, those of a rate wide and those of a ratio
// narrow.
func writeColumns(w io.Writer, name string, cells []string) {
	fmt.Fprintf(w, "%-8s %12s", name, cells[0])
	for i, cell := range cells[1:] {
		fmt.Fprintf(w, " %*s", 17-10*(i%2), cell)
	}
	fmt.Fprintln(w)
}

// openStreamSides makes the sides, the bridge, with which the others are
// compared, first.
func openStreamSides(ctx context.Context, o TCPOptions) ([]*streamSide, error) {
	s, err := openBridge()
	if err != nil {
		return nil, err
	}
	sides := []*streamSide{s}
	for _, driver := range o.Drivers {
		if s, err = openLab(ctx, o, driver); err != nil {
			return sides, err
		}
		sides = append(sides, s)
	}
	return sides, nil
}

// measure is one run: bits per second that arrived, once the stream has got
// going.
func (s *streamSide) measure(ctx context.Context, limit time.Duration) (float64, error) {
	client, server, err := s.connect(ctx)
	if err != nil {
		return 0, err
	}
	var arrived atomic.Uint64
	ended := make(chan error, 2)
	go func() { ended <- runSender(client) }()
	go func() { ended <- runReceiver(server, &arrived) }()
	time.Sleep(limit / 4)
	before, start := arrived.Load(), time.Now()
	select {
	case <-ctx.Done():
	case <-time.After(limit):
	}
	bits := 8 * float64(arrived.Load()-before)
	rate := bits / time.Since(start).Seconds()
	client.Close()
	server.Close()
	<-ended
	<-ended
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if bits == 0 {
		return 0, errors.New("the stream stands still")
	}
	return rate, nil
}

// chunk is the bytes per write and per read.
const chunk = 256 << 10

func runSender(c *net.TCPConn) error {
	for b := make([]byte, chunk); ; {
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
}

func runReceiver(c *net.TCPConn, arrived *atomic.Uint64) error {
	for b := make([]byte, chunk); ; {
		n, err := c.Read(b)
		arrived.Add(uint64(n))
		if err != nil {
			return err
		}
	}
}

// connectTCP connects from one namespace to a server in another.
func connectTCP(ctx context.Context, from, to func(func() error) error, address string) (client, server *net.TCPConn, err error) {
	var l net.Listener
	if err := to(func() (err error) { l, err = net.Listen("tcp4", address); return err }); err != nil {
		return nil, nil, err
	}
	defer l.Close()
	var c net.Conn
	err = from(func() (err error) {
		c, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp4", address)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	s, err := l.Accept()
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c.(*net.TCPConn), s.(*net.TCPConn), nil
}
