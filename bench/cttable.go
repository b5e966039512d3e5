package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/packet"
	"golang.org/x/sys/unix"
)

// antrail's side of CompareConntrack: conntrack alone, called from Go.

// ctPorts is how many ports the connections come from.
const ctPorts = 256

// never is a timeout that no measurement outlasts.
const never = 24 * time.Hour

// tableConfig is a table for n connections whose clock stands still.
func tableConfig(n int) conntrack.Config {
	t := conntrack.DefaultTimeouts()
	t.UDPSingle, t.UDPReplied = never, never
	return conntrack.Config{Max: n, NewRate: -1, Timeouts: t, Now: func() int64 { return 1 }}
}

// tracker is one worker: its frame and its table.
type tracker struct {
	table   *conntrack.Table
	frame   *packet.Frame
	bytes   ctFrame
	layers  packet.Layers
	meta    conntrack.Meta
	request conntrack.Request
	now     int64
	// refused counts the verdicts that were not to go on, by reason.
	refused map[conntrack.DropReason]int
}

func newTracker(t *conntrack.Table) *tracker {
	w := &tracker{
		table: t, frame: packet.NewFrame(make([]byte, 2048), nil), now: 1,
		request: conntrack.Request{Commit: true}, refused: map[conntrack.DropReason]int{},
	}
	w.frame.SetBytes(newCTFrame())
	w.bytes = w.frame.Bytes()
	w.layers = packet.ParseLayers(w.bytes)
	return w
}

// ct tracks the frame as it stands.
func (w *tracker) ct(client uint32) {
	w.meta = conntrack.Meta{}
	w.request.InPort = client % ctPorts
	if v := w.table.Track(w.frame, &w.layers, &w.meta, &w.request, w.now); v.Drop != conntrack.DropNone {
		w.refused[v.Drop]++
	}
}

// track sends packets through ct().
func (w *tracker) track(t tuples, n int) {
	for i := range uint32(n) {
		client := t.client(i)
		w.bytes.aim(client)
		w.ct(client)
	}
}

// answer sends the server's answers to the first n clients through ct().
func (w *tracker) answer(n int) {
	for client := range uint32(n) {
		w.bytes.aim(client)
		w.bytes.turn()
		w.ct(client)
		w.bytes.turn()
	}
}

// prepare makes the same packets without ct().
func (w *tracker) prepare(t tuples, n int) {
	for i := range uint32(n) {
		client := t.client(i)
		w.bytes.aim(client)
		w.meta = conntrack.Meta{}
		w.request.InPort = client % ctPorts
	}
}

// cost is the time that ct() of so many packets takes, without making them.
func (w *tracker) cost(t tuples, n int) time.Duration {
	start := time.Now()
	w.prepare(t, n)
	bare := time.Since(start)
	start = time.Now()
	w.track(t, n)
	return time.Since(start) - bare
}

// only fails unless so many packets were refused, all for one reason.
func (w *tracker) only(why conntrack.DropReason, n int) error {
	if len(w.refused) > 1 || w.refused[why] != n {
		return fmt.Errorf("refused %v, want %d times %v", w.refused, n, why)
	}
	return nil
}

// none fails when a packet was refused.
func (w *tracker) none() error {
	if len(w.refused) > 0 {
		return fmt.Errorf("refused %v", w.refused)
	}
	return nil
}

// measureTable is a round of antrail's side.
func measureTable(ctx context.Context, o *ConntrackOptions) (figures, error) {
	f := figures{}
	for _, part := range []func(*ConntrackOptions, figures) error{measureRates, measureRates2, measureRestart, measureExhausted} {
		if err := errors.Join(part(o, f), ctx.Err()); err != nil {
			return nil, err
		}
		debug.FreeOSMemory() // the tables are large
	}
	return f, nil
}

// measureRates is one worker, and at the end the sweep and early drop of what
// it made.
func measureRates(o *ConntrackOptions, f figures) error {
	table := conntrack.NewTable(tableConfig(o.Entries + len(o.sizes())*o.creations()))
	w := newTracker(table)
	made := 0
	fill := func(n int) { w.track(tuples{first: uint32(made)}, n-made); made = n }
	for _, n := range o.sizes() {
		if n > made {
			fill(n)
		}
		f[lookupRate.with(n)] = rate(o.Packets, w.cost(tuples{of: uint32(n)}, o.Packets))
		f[creationRate.with(n)] = rate(o.creations(), w.cost(tuples{first: uint32(made)}, o.creations()))
		made += o.creations()
	}
	if err := errors.Join(w.none(), holds(table, made)); err != nil {
		return err
	}
	start := time.Now()
	table.Sweep(1 + int64(time.Minute)) // more than a round is due
	f[sweepTime] = float64(time.Since(start)) / 1e6 * float64(o.Entries) / float64(made)
	table.SetMax(made)
	w.now = int64(time.Minute)
	f[evictionTime] = micros(o.Packets, w.cost(tuples{first: uint32(made)}, o.Packets))
	return errors.Join(evicted(table, o.Packets), w.none())
}

// evicted fails when a table has evicted fewer than n connections to make room.
func evicted(t *conntrack.Table, n int) error {
	if s := t.Stats(); s.EarlyDropped < uint64(n) {
		return fmt.Errorf("%d early drops for %d new connections", s.EarlyDropped, n)
	}
	return nil
}

// holds fails when a table does not hold so many connections.
func holds(t *conntrack.Table, n int) error {
	if s := t.Stats(); s.Entries != n {
		return fmt.Errorf("the table holds %d connections, want %d", s.Entries, n)
	}
	return nil
}

// measureRates2 is measureRates' rates with two workers, each of which makes
// half of the connections and looks up all of them.
func measureRates2(o *ConntrackOptions, f figures) error {
	table := conntrack.NewTable(tableConfig(o.Entries + len(o.sizes())*o.creations()))
	pair := [2]*tracker{newTracker(table), newTracker(table)}
	made, half := 0, o.creations()/2
	for _, n := range o.sizes() {
		if n > made {
			pair[0].track(tuples{first: uint32(made)}, n-made)
			made = n
		}
		f[lookupRate2.with(n)] = rate(o.Packets/2*2, pairCost(&pair, o.Packets/2, func(int) tuples { return tuples{of: uint32(n)} }))
		f[creationRate2.with(n)] = rate(2*half, pairCost(&pair, half, func(k int) tuples { return tuples{first: uint32(made + k*half)} }))
		made += 2 * half
	}
	return errors.Join(pair[0].none(), pair[1].none(), holds(table, made))
}

// pairCost is how long two workers take for n packets each: the time that ct()
// takes the slower one.
func pairCost(pair *[2]*tracker, n int, of func(worker int) tuples) time.Duration {
	var took [2]time.Duration
	var both sync.WaitGroup
	for k, w := range pair {
		both.Go(func() { runTracker(w, of(k), n, &took[k]) })
	}
	both.Wait()
	return max(took[0], took[1])
}

func runTracker(w *tracker, t tuples, n int, took *time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	*took = w.cost(t, n)
}

// measureRestart fills a table that lies in a file of tmpfs with answered
// connections, takes it over as the next process would, and asks it for more
// when it is full.
func measureRestart(o *ConntrackOptions, f figures) error {
	path := filepath.Join("/dev/shm", fmt.Sprintf("antrail-bench-%d", os.Getpid()))
	defer os.Remove(path)
	room := o.Entries + o.Entries/10 // below early drop
	before, err := residentMemory("self")
	if err != nil {
		return err
	}
	err = withArena(path, room, func(t *conntrack.Table) error {
		w := newTracker(t)
		w.track(tuples{}, o.Entries)
		w.answer(o.Entries)
		after, err := residentMemory("self")
		f[entrySize] = (after - before) / float64(o.Entries)
		return errors.Join(err, w.none(), holds(t, o.Entries))
	})
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	return withArena(path, room, func(t *conntrack.Table) error {
		f[restoreTime] = float64(t.Stats().Restored.Took) / 1e6
		t.SetMax(o.Entries)
		w := newTracker(t)
		f[answeredFull] = micros(o.Packets, w.cost(tuples{first: uint32(o.Entries)}, o.Packets))
		return errors.Join(holds(t, o.Entries), evicted(t, o.Packets), w.none())
	})
}

// withArena runs f with the table that lies in a file.
func withArena(path string, n int, f func(*conntrack.Table) error) (err error) {
	size := conntrack.ArenaSize(n)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Truncate(int64(size)); err != nil {
		return err
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, unix.Munmap(memory)) }()
	t, err := conntrack.Restore(tableConfig(n), memory, [16]byte{1})
	if err != nil {
		return err
	}
	return f(t)
}

// natPorts is the port range that is exhausted.
const natPorts = 2000

// measureExhausted takes every port of a range, and asks for more.
func measureExhausted(o *ConntrackOptions, f figures) error {
	table := conntrack.NewTable(tableConfig(o.Entries))
	w := newTracker(table)
	node := netip.AddrFrom4([4]byte{203, 0, 113, 1})
	for i := range uint32(natPorts) {
		w.request.NAT = &conntrack.NAT{
			Source: true, AddrMin: node, AddrMax: node, PortMin: uint16(40000 + i), PortMax: uint16(40000 + i),
		}
		w.bytes.aim(i)
		w.ct(i)
	}
	if err := errors.Join(w.none(), holds(table, natPorts)); err != nil {
		return err
	}
	w.request.NAT = &conntrack.NAT{Source: true, AddrMin: node, AddrMax: node, PortMin: 40000, PortMax: 40000 + natPorts - 1}
	n := o.Packets / 10
	f[refusalPortNAT] = micros(n, w.cost(tuples{first: natPorts}, n))
	return w.only(conntrack.DropNATExhausted, n)
}
