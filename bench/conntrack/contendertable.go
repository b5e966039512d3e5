package conntrack

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

	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/packet"
	"golang.org/x/sys/unix"
)

// antrail's side: package conntrack alone, called from Go.

// inPorts is how many ports of a switch the connections come from.
const inPorts = 256

// never is a timeout that no measurement outlasts.
const never = 24 * time.Hour

// tableConfig is the configuration of a table for n connections. Its clock stands still.
func tableConfig(n int) conntrack.Config {
	t := proto.DefaultTimeouts()
	t.UDPSingle, t.UDPReplied = never, never
	return conntrack.Config{Max: n, NewRate: -1, Timeouts: t, Now: func() int64 { return 1 }}
}

// tracker is a worker that tracks one frame again and again.
type tracker struct {
	table   *conntrack.Table
	frame   *packet.Frame
	bytes   clientFrame
	layers  packet.Layers
	meta    conntrack.Meta
	request conntrack.Request
	now     int64
	// refused counts refused packets, by reason.
	refused map[conntrack.DropReason]int
}

func newTracker(t *conntrack.Table) *tracker {
	w := &tracker{
		table: t, frame: packet.NewFrame(make([]byte, 2048), nil), now: 1,
		request: conntrack.Request{Commit: true}, refused: map[conntrack.DropReason]int{},
	}
	w.frame.SetBytes(newClientFrame())
	w.bytes = w.frame.Bytes()
	w.layers = packet.ParseLayers(w.bytes)
	return w
}

// trackFrame tracks the frame, which is one of a client.
func (w *tracker) trackFrame(client uint32) {
	w.meta = conntrack.Meta{}
	w.request.InPort = client % inPorts
	if v := w.table.Track(w.frame, &w.layers, &w.meta, &w.request, w.now); v.Drop != conntrack.DropNone {
		w.refused[v.Drop]++
	}
}

// trackClients tracks n packets.
func (w *tracker) trackClients(t tuples, n int) {
	for i := range uint32(n) {
		client := t.client(i)
		w.bytes.setClient(client)
		w.trackFrame(client)
	}
}

// trackAnswers tracks the server's answers to the first n clients.
func (w *tracker) trackAnswers(n int) {
	for client := range uint32(n) {
		w.bytes.setClient(client)
		w.bytes.swapEnds()
		w.trackFrame(client)
		w.bytes.swapEnds()
	}
}

// makePackets makes the packets of trackClients and does not track them.
func (w *tracker) makePackets(t tuples, n int) {
	for i := range uint32(n) {
		client := t.client(i)
		w.bytes.setClient(client)
		w.meta = conntrack.Meta{}
		w.request.InPort = client % inPorts
	}
}

// timeTracking returns how long it takes to track n packets, less the time to make them.
func (w *tracker) timeTracking(t tuples, n int) time.Duration {
	start := time.Now()
	w.makePackets(t, n)
	bare := time.Since(start)
	start = time.Now()
	w.trackClients(t, n)
	return time.Since(start) - bare
}

// checkRefused returns an error unless n packets were refused, all for one reason.
func (w *tracker) checkRefused(why conntrack.DropReason, n int) error {
	if len(w.refused) > 1 || w.refused[why] != n {
		return fmt.Errorf("refused %v, want %d times %v", w.refused, n, why)
	}
	return nil
}

// checkNoneRefused returns an error if a packet was refused.
func (w *tracker) checkNoneRefused() error {
	if len(w.refused) > 0 {
		return fmt.Errorf("refused %v", w.refused)
	}
	return nil
}

// measureTable measures a round of antrail's side.
func measureTable(ctx context.Context, o *Options) (figures, error) {
	f := figures{}
	for _, part := range []func(*Options, figures) error{measureRates, measureRates2, measureRestart, measureExhausted} {
		if err := errors.Join(part(o, f), ctx.Err()); err != nil {
			return nil, err
		}
		debug.FreeOSMemory() // the tables are large
	}
	return f, nil
}

// measureRates measures one worker. At the end it measures a sweep and early drop of its connections.
func measureRates(o *Options, f figures) error {
	table := conntrack.NewTable(tableConfig(o.Entries + len(o.sizes())*o.creations()))
	w := newTracker(table)
	made := 0
	fill := func(n int) { w.trackClients(tuples{first: uint32(made)}, n-made); made = n }
	for _, n := range o.sizes() {
		if n > made {
			fill(n)
		}
		f[lookupRate.atSize(n)] = millionsPerSecond(o.Packets, w.timeTracking(tuples{of: uint32(n)}, o.Packets))
		f[creationRate.atSize(n)] = millionsPerSecond(o.creations(), w.timeTracking(tuples{first: uint32(made)}, o.creations()))
		made += o.creations()
	}
	if err := errors.Join(w.checkNoneRefused(), checkEntries(table, made)); err != nil {
		return err
	}
	start := time.Now()
	table.Sweep(1 + int64(time.Minute)) // more than a round is due
	f[sweepTime] = float64(time.Since(start)) / 1e6 * float64(o.Entries) / float64(made)
	table.SetMax(made)
	w.now = int64(time.Minute)
	f[evictionTime] = microsEach(o.Packets, w.timeTracking(tuples{first: uint32(made)}, o.Packets))
	return errors.Join(checkEvicted(table, o.Packets), w.checkNoneRefused())
}

// checkEvicted returns an error if a table has evicted fewer than n connections to make room.
func checkEvicted(t *conntrack.Table, n int) error {
	if s := t.Stats(); s.EarlyDropped < uint64(n) {
		return fmt.Errorf("%d early drops for %d new connections", s.EarlyDropped, n)
	}
	return nil
}

// checkEntries returns an error unless a table holds n connections.
func checkEntries(t *conntrack.Table, n int) error {
	if s := t.Stats(); s.Entries != n {
		return fmt.Errorf("the table holds %d connections, want %d", s.Entries, n)
	}
	return nil
}

// measureRates2 measures the rates of two workers together. Each makes half of the connections and
// looks up all of them.
func measureRates2(o *Options, f figures) error {
	table := conntrack.NewTable(tableConfig(o.Entries + len(o.sizes())*o.creations()))
	pair := [2]*tracker{newTracker(table), newTracker(table)}
	made, half := 0, o.creations()/2
	for _, n := range o.sizes() {
		if n > made {
			pair[0].trackClients(tuples{first: uint32(made)}, n-made)
			made = n
		}
		f[lookupRate2.atSize(n)] = millionsPerSecond(o.Packets/2*2, timePair(&pair, o.Packets/2, func(int) tuples { return tuples{of: uint32(n)} }))
		f[creationRate2.atSize(n)] = millionsPerSecond(2*half, timePair(&pair, half, func(k int) tuples { return tuples{first: uint32(made + k*half)} }))
		made += 2 * half
	}
	return errors.Join(pair[0].checkNoneRefused(), pair[1].checkNoneRefused(), checkEntries(table, made))
}

// timePair returns how long the slower of two workers takes to track n packets, while both do so.
func timePair(pair *[2]*tracker, n int, of func(worker int) tuples) time.Duration {
	var took [2]time.Duration
	var both sync.WaitGroup
	for k, w := range pair {
		both.Go(func() { runTracker(w, of(k), n, &took[k]) })
	}
	both.Wait()
	return max(took[0], took[1])
}

// runTracker is timeTracking on a thread of its own.
func runTracker(w *tracker, t tuples, n int, took *time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	*took = w.timeTracking(t, n)
}

// measureRestart measures a table in a file of tmpfs. It fills the table with answered connections,
// restores it as the next process does, and makes more connections than it has room for.
func measureRestart(o *Options, f figures) error {
	path := filepath.Join("/dev/shm", fmt.Sprintf("antrail-bench-%d", os.Getpid()))
	defer os.Remove(path)
	room := o.Entries + o.Entries/10 // below early drop
	before, err := sched.ResidentMemory("self")
	if err != nil {
		return err
	}
	err = withArena(path, room, func(t *conntrack.Table) error {
		w := newTracker(t)
		w.trackClients(tuples{}, o.Entries)
		w.trackAnswers(o.Entries)
		after, err := sched.ResidentMemory("self")
		f[entrySize] = (after - before) / float64(o.Entries)
		return errors.Join(err, w.checkNoneRefused(), checkEntries(t, o.Entries))
	})
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	return withArena(path, room, func(t *conntrack.Table) error {
		f[restoreTime] = float64(t.Stats().Restored.Took) / 1e6
		t.SetMax(o.Entries)
		w := newTracker(t)
		f[answeredFull] = microsEach(o.Packets, w.timeTracking(tuples{first: uint32(o.Entries)}, o.Packets))
		return errors.Join(checkEntries(t, o.Entries), checkEvicted(t, o.Packets), w.checkNoneRefused())
	})
}

// withArena runs f with the table that is in a file, or with an empty one.
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

// natPorts is how many ports the range has that is exhausted.
const natPorts = 2000

// measureExhausted takes every port of a range and measures refused packets.
func measureExhausted(o *Options, f figures) error {
	table := conntrack.NewTable(tableConfig(o.Entries))
	w := newTracker(table)
	node := netip.AddrFrom4([4]byte{203, 0, 113, 1})
	for i := range uint32(natPorts) {
		w.request.NAT = &conntrack.NAT{
			Source: true, AddrMin: node, AddrMax: node, PortMin: uint16(40000 + i), PortMax: uint16(40000 + i),
		}
		w.bytes.setClient(i)
		w.trackFrame(i)
	}
	if err := errors.Join(w.checkNoneRefused(), checkEntries(table, natPorts)); err != nil {
		return err
	}
	w.request.NAT = &conntrack.NAT{Source: true, AddrMin: node, AddrMax: node, PortMin: 40000, PortMax: 40000 + natPorts - 1}
	n := o.Packets / 10
	f[refusalPortNAT] = microsEach(n, w.timeTracking(tuples{first: natPorts}, n))
	return w.checkRefused(conntrack.DropNATExhausted, n)
}
