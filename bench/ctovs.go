package bench

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Open vSwitch's side of CompareConntrack. Its conntrack cannot be called
// alone, so packets go through a switch with a userspace datapath: the kernel
// makes them and sends them into a veth whose other end is a port on AF_XDP,
// one polling thread takes them, and one flow entry ends with ct(commit) and
// nothing behind it. The thread's own count of cycles per packet, less that of
// the same packets where the entry drops them, is what ct() costs.

// ovsNote says how Open vSwitch's figures come about.
const ovsNote = "Open vSwitch: its userspace datapath, one polling thread, an AF_XDP port; the thread's own cycles per packet with ct(commit), less those with drop. " +
	"Its second thread would share a processor with what makes the packets, so two workers are not measured; it has no restart with connections, and its sweep cannot be timed from outside."

// ovsConntrack is a switch, and the link by which packets come to it.
type ovsConntrack struct {
	*ovsSwitch
	net   *topology
	hertz float64 // of the cycles that the thread counts
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
	c := &ovsConntrack{}
	if c.net, err = newTopology(ns); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.net.close()) }()
	if c.ovsSwitch, err = startOVS(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.ovsSwitch.close()) }()
	err = c.vsctl(ctx, "add-port", "br0", inLink, "--", "set", "interface", inLink, "type=afxdp", "options:xdp-mode=native")
	if err != nil {
		return nil, err
	}
	f = figures{}
	return f, errors.Join(c.calibrate(ctx), c.measure(ctx, o, f))
}

// The flow entries.
const (
	dropped   = "in_port=" + inLink + ",ip,actions=drop"
	committed = "in_port=" + inLink + ",ip,actions=ct(commit)"
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
func (c *ovsConntrack) bareCycles(ctx context.Context, o *ConntrackOptions) (map[uint32]float64, error) {
	if err := c.flow(ctx, dropped); err != nil {
		return nil, err
	}
	bare := map[uint32]float64{}
	of := []uint32{0} // in turn
	for _, n := range o.sizes() {
		of = append(of, uint32(n))
	}
	for _, n := range of {
		cycles, err := c.cycles(ctx, tuples{of: n}, o.Packets)
		if err != nil {
			return nil, err
		}
		bare[n] = cycles
	}
	return bare, nil
}

// rates makes connections and finds them again.
func (c *ovsConntrack) rates(ctx context.Context, o *ConntrackOptions, f figures, bare map[uint32]float64) error {
	if err := c.flow(ctx, committed); err != nil {
		return err
	}
	next := uint32(0)
	for _, n := range o.sizes() {
		if err := c.fill(ctx, n); err != nil {
			return err
		}
		known, err := c.cycles(ctx, tuples{of: uint32(n)}, o.Packets)
		if err != nil {
			return err
		}
		next = max(next, uint32(n))
		created, err := c.cycles(ctx, tuples{first: next}, o.creations())
		if err != nil {
			return err
		}
		next += uint32(o.creations())
		f[lookupRate.with(n)] = c.hertz / 1e6 / max(known-bare[uint32(n)], 1)
		f[creationRate.with(n)] = c.hertz / 1e6 / max(created-bare[0], 1)
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
func (c *ovsConntrack) refusals(ctx context.Context, o *ConntrackOptions, f figures, bare map[uint32]float64) error {
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
	f[refusalFull] = (full - bare[0]) / c.hertz * 1e6
	_, err = c.appctl(ctx, "dpctl/ct-set-maxconns", strings.TrimSpace(most))
	return errors.Join(err, c.exhaust(ctx, o, f, bare[0]))
}

// exhaust takes every port of a range, and asks for more.
func (c *ovsConntrack) exhaust(ctx context.Context, o *ConntrackOptions, f figures, bare float64) error {
	if _, err := c.appctl(ctx, "dpctl/flush-conntrack"); err != nil {
		return err
	}
	entry := fmt.Sprintf("in_port=%s,ip,actions=ct(commit,nat(src=203.0.113.1:40000-%d))", inLink, 40000+natPorts-1)
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
	f[refusalPortNAT] = (cycles - bare) / c.hertz * 1e6
	return err
}

// send sends n packets into the switch, and waits until they are through.
func (c *ovsConntrack) send(ctx context.Context, t tuples, n int) error {
	counter, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return err
	}
	defer counter.Close()
	program, err := t.program(c.net.source, counter)
	if err != nil {
		return fmt.Errorf("generator: %w", err)
	}
	defer program.Close()
	for left := n; left > 0 && ctx.Err() == nil; left -= ovsBurst {
		_, err := program.Run(&ebpf.RunOptions{
			Data: newCTFrame(), Repeat: uint32(min(left, ovsBurst)), Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES,
		})
		if err != nil {
			return fmt.Errorf("generator: %w", err)
		}
	}
	time.Sleep(20 * time.Millisecond)
	return ctx.Err()
}

// ovsBurst is how many packets are made between two looks at the context. To
// begin with them takes the kernel tens of milliseconds.
const ovsBurst = 1 << 17

// threadStats is a polling thread's own account.
type threadStats struct{ packets, idle, busy float64 }

var (
	threadLine  = regexp.MustCompile(`(?s)pmd thread .*?\n\S`)
	packetsLine = regexp.MustCompile(`packets received: (\d+)`)
	idleLine    = regexp.MustCompile(`idle cycles: (\d+)`)
	busyLine    = regexp.MustCompile(`processing cycles: (\d+)`)
)

// parseThread reads the answer to dpif-netdev/pmd-stats-show.
func parseThread(text string) (s threadStats, err error) {
	section := threadLine.FindString(text + "\n.")
	for _, f := range []struct {
		re *regexp.Regexp
		to *float64
	}{{packetsLine, &s.packets}, {idleLine, &s.idle}, {busyLine, &s.busy}} {
		m := f.re.FindStringSubmatch(section)
		if m == nil && s.packets == 0 && f.re != packetsLine {
			continue // cycles are left out while there are none
		}
		if m == nil {
			return s, fmt.Errorf("pmd-stats-show has no %q of a polling thread:\n%s", f.re, text)
		}
		if *f.to, err = strconv.ParseFloat(m[1], 64); err != nil {
			return s, err
		}
	}
	return s, nil
}

// account runs something and returns the thread's account of that time.
func (c *ovsConntrack) account(ctx context.Context, f func() error) (threadStats, error) {
	if _, err := c.appctl(ctx, "dpif-netdev/pmd-stats-clear"); err != nil {
		return threadStats{}, err
	}
	if err := f(); err != nil {
		return threadStats{}, err
	}
	return c.stats(ctx)
}

// stats is the thread's account up to now.
func (c *ovsConntrack) stats(ctx context.Context) (threadStats, error) {
	out, err := c.appctl(ctx, "dpif-netdev/pmd-stats-show")
	if err != nil {
		return threadStats{}, err
	}
	return parseThread(out)
}

// calibrate finds out how many of the thread's cycles a second has.
func (c *ovsConntrack) calibrate(ctx context.Context) error {
	for range tries {
		first, err := c.stats(ctx)
		start := time.Now()
		time.Sleep(500 * time.Millisecond)
		last, err2 := c.stats(ctx)
		c.hertz = (last.idle + last.busy - first.idle - first.busy) / time.Since(start).Seconds()
		if err := errors.Join(err, err2); err != nil || c.hertz > 0 {
			return err
		}
	}
	return errors.New("the polling thread does not run")
}

// cycles is what each of so many packets cost the thread, or of those of them
// that came through, a tenth at least.
func (c *ovsConntrack) cycles(ctx context.Context, t tuples, n int) (float64, error) {
	for range tries {
		s, err := c.account(ctx, func() error { return c.send(ctx, t, n) })
		if err != nil || s.packets >= float64(n)/10 {
			return s.busy / max(s.packets, 1), err
		}
	}
	return 0, fmt.Errorf("of %d packets not a tenth came through", n)
}
