package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/vishvananda/netns"
)

// Open vSwitch's side of CompareConntrack. Its conntrack cannot be called
// alone, so packets go through a switch with a userspace datapath: the kernel
// makes them and sends them into a veth whose other end is a port on AF_XDP,
// one polling thread takes them, and one flow entry ends with ct(commit) and
// nothing behind it. The thread's own count of cycles per packet, less that of
// the same packets where the entry drops them, is what ct() costs.

// ovsNote says how Open vSwitch's figures come about.
const ovsNote = "Open vSwitch: its userspace datapath, one polling thread, an AF_XDP port; the thread's own cycles per packet with ct(commit), less those with drop. " +
	"Two workers: two such ports and threads; the switch is stopped while packets fill both rings and then let go, so that the threads work at the same time and nothing else does; the rates of both are added. " +
	"It has no restart with connections, and its sweep cannot be timed from outside."

// ovsConntrack is a switch with a polling thread for each of its ports.
type ovsConntrack struct {
	*ovsSwitch
	net *topology
	// from is the links out of which packets are sent to the ports, in turn:
	// the same one twice when there is one port.
	from    [2]int
	threads int
	hertz   float64 // of the cycles that the threads count
	// give sends so many packets into the switch, to be measured.
	give           func(context.Context, tuples, int) error
	known, created figure // what its rates are
	packets        int    // that a figure is taken from
}

// measureOVS is a round of Open vSwitch's side, in a namespace of its own that
// goes away with its thread.
func measureOVS(ctx context.Context, o *ConntrackOptions) (figures, error) {
	type result struct {
		figures figures
		err     error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for ever
		f, err := runOVSRound(ctx, o)
		done <- result{f, err}
	}()
	r := <-done
	return r.figures, r.err
}

func runOVSRound(ctx context.Context, o *ConntrackOptions) (f figures, err error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	net, err := newTopology(ns)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, net.close()) }()
	f = figures{}
	hertz, err := measureThread(ctx, o, net, f)
	if err != nil {
		return nil, err
	}
	return f, measureThreads(ctx, o, net, hertz, f)
}

// measureThread is the round's part with one polling thread; hertz is that of
// the cycles that threads count.
func measureThread(ctx context.Context, o *ConntrackOptions, net *topology, f figures) (hertz float64, err error) {
	c := &ovsConntrack{
		net: net, from: [2]int{net.source, net.source}, threads: 1, packets: o.Packets, known: lookupRate, created: creationRate,
	}
	c.give = c.send
	if c.ovsSwitch, err = startOVS(ctx); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	err = c.vsctl(ctx, "add-port", "br0", inLink, "--", "set", "interface", inLink, "type=afxdp", "options:xdp-mode=native")
	if err != nil {
		return 0, err
	}
	err = errors.Join(c.calibrate(ctx), c.measure(ctx, o, f))
	return c.hertz, err
}

// The flow entries.
const (
	dropped   = "ip,actions=drop"
	committed = "ip,actions=ct(commit)"
)

// measure takes all figures; f gets them.
func (c *ovsConntrack) measure(ctx context.Context, o *ConntrackOptions, f figures) error {
	bare, err := c.bareCycles(ctx, o)
	if err != nil {
		return err
	}
	before, err := residentMemory(c.pid())
	if err != nil {
		return err
	}
	if err := c.rates(ctx, o, f, bare); err != nil {
		return err
	}
	after, err := residentMemory(c.pid())
	if err != nil {
		return err
	}
	n, err := c.connections(ctx)
	if err != nil {
		return err
	}
	f[entrySize] = (after - before) / float64(n)
	return c.refusals(ctx, o, f, bare)
}

// bareCycles is the cycles per packet of what is measured, by how many clients
// there are, without ct().
func (c *ovsConntrack) bareCycles(ctx context.Context, o *ConntrackOptions) (map[uint32]threadCycles, error) {
	if err := c.flow(ctx, dropped); err != nil {
		return nil, err
	}
	bare := map[uint32]threadCycles{}
	of := []uint32{0} // in turn
	for _, n := range o.sizes() {
		of = append(of, uint32(n))
	}
	for _, n := range of {
		cycles, err := c.cycles(ctx, tuples{of: n}, c.packets)
		if err != nil {
			return nil, err
		}
		bare[n] = cycles
	}
	return bare, nil
}

// rates makes connections and finds them again.
func (c *ovsConntrack) rates(ctx context.Context, o *ConntrackOptions, f figures, bare map[uint32]threadCycles) error {
	if err := c.flow(ctx, committed); err != nil {
		return err
	}
	next := uint32(0)
	for _, n := range o.sizes() {
		if err := c.fill(ctx, n); err != nil {
			return err
		}
		known, err := c.cycles(ctx, tuples{of: uint32(n)}, c.packets)
		if err != nil {
			return err
		}
		next = max(next, uint32(n))
		created, err := c.cycles(ctx, tuples{first: next}, o.creations())
		if err != nil {
			return err
		}
		next += uint32(o.creations())
		f[c.known.with(n)] = c.rate(known, bare[uint32(n)])
		f[c.created.with(n)] = c.rate(created, bare[0])
	}
	return nil
}

// tries is how often packets are sent that got lost: on a busy machine the
// switch's thread may not run for longer than its ring holds them.
const tries = 20

// fill makes the connections of the first n clients, or nearly all of them: the
// port loses packets when its thread does not run.
func (c *ovsConntrack) fill(ctx context.Context, n int) error {
	for range tries {
		have, err := c.connections(ctx)
		if err != nil || have >= n-n/100 {
			return err
		}
		if err := c.send(ctx, tuples{}, n); err != nil {
			return err
		}
	}
	have, err := c.connections(ctx)
	if err == nil && have < n-n/100 {
		err = fmt.Errorf("%d connections, want %d", have, n)
	}
	return err
}

// connections is how many the switch has.
func (c *ovsConntrack) connections(ctx context.Context) (int, error) {
	out, err := c.appctl(ctx, "dpctl/ct-get-nconns")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

// refusals is a full table, and an exhausted port range.
func (c *ovsConntrack) refusals(ctx context.Context, o *ConntrackOptions, f figures, bare map[uint32]threadCycles) error {
	n, err := c.connections(ctx)
	if err != nil {
		return err
	}
	most, err := c.appctl(ctx, "dpctl/ct-get-maxconns")
	if err != nil {
		return err
	}
	if _, err := c.appctl(ctx, "dpctl/ct-set-maxconns", fmt.Sprint(n)); err != nil {
		return err
	}
	full, err := c.cycles(ctx, tuples{first: uint32(2 * o.Entries)}, o.Packets)
	if err != nil {
		return err
	}
	f[answeredFull] = (full[0] - bare[0][0]) / c.hertz * 1e6
	_, err = c.appctl(ctx, "dpctl/ct-set-maxconns", strings.TrimSpace(most))
	return errors.Join(err, c.exhaust(ctx, o, f, bare[0][0]))
}

// exhaust takes every port of a range, and asks for more.
func (c *ovsConntrack) exhaust(ctx context.Context, o *ConntrackOptions, f figures, bare float64) error {
	if _, err := c.appctl(ctx, "dpctl/flush-conntrack"); err != nil {
		return err
	}
	entry := fmt.Sprintf("ip,actions=ct(commit,nat(src=203.0.113.1:40000-%d))", 40000+natPorts-1)
	if err := c.flow(ctx, entry); err != nil {
		return err
	}
	for range 5 { // a search may miss a free port
		if err := c.send(ctx, tuples{}, 10*natPorts); err != nil {
			return err
		}
	}
	have, err := c.connections(ctx)
	if err != nil || have < natPorts-natPorts/100 {
		return errors.Join(err, fmt.Errorf("%d of %d ports are taken", have, natPorts))
	}
	cycles, err := c.cycles(ctx, tuples{first: 100 * natPorts}, o.Packets/10)
	if err != nil {
		return err
	}
	f[refusalPortNAT] = (cycles[0] - bare) / c.hertz * 1e6
	return nil
}
