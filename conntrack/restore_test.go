package conntrack

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

var thisBoot = [16]byte{1, 2, 3}

// pages is zeroed memory of its own.
func pages(t testing.TB, size int) []byte {
	t.Helper()
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(b) })
	return b
}

// restored is a bench whose table lies over memory.
func restored(t testing.TB, memory []byte, now int64, c Config) *bench {
	t.Helper()
	b := newBench(t, c)
	b.now = now
	c.Now = func() int64 { return b.now }
	c.Capacity = (len(memory) - ArenaSize(0)) / (ArenaSize(1) - ArenaSize(0))
	if c.Max == 0 {
		c.Max = c.Capacity
	}
	table, err := Restore(c, memory, thisBoot)
	if err != nil {
		t.Fatal(err)
	}
	b.Table = table
	return b
}

// variety makes connections of every kind.
func (b *bench) variety() {
	b.Helper()
	r := commitNAT("dst=10.0.0.2:8080")
	r.Mark, r.MarkMask, r.Label, r.LabelMask = 7, 7, Label{5, 6}, Label{7, 7}
	b.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "S", seq: 1000, scale: 7}), r, "new|trk|dnat")
	b.want(tcpFrame(server, client, 8080, 1234, tcpText{flags: "SA", seq: 5000, ack: 1001, scale: 3}), unNAT, "est|rpl|trk|snat")
	b.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 5001}), unNAT, "est|trk|dnat")
	b.want(udpFrame("fd00::1", "fd00::2", 1234, 53), Request{Zone: 3, Commit: true, InPort: 9}, "new|trk")
	b.want(udpFrame(client, server, 1234, 53), commitNAT("src=10.9.9.9"), "new|trk|snat")
	b.want(sctpFrame(client, server, 1000, 2000, 0, chunk{typ: packet.SCTPInit, announce: 7}), commit, "new|trk")
	b.want(sctpFrame(server, client, 2000, 1000, 7, chunk{typ: packet.SCTPInitAck, announce: 9}), commit, "est|rpl|trk")
	b.want(echoFrame(client, server, packet.ICMPEcho, 7), commit, "new|trk")
}

const varietyCount = 5

func TestRestore(t *testing.T) { // CT-43
	memory := pages(t, ArenaSize(100))
	before := restored(t, memory, 5e9, Config{})
	if why := before.Stats().Restored.Empty; why != "it is new" {
		t.Errorf("fresh memory: %q", why)
	}
	before.variety()
	want := before.lines()
	slices.Sort(want)

	b := restored(t, memory, 6e9, Config{Seed: [2]uint64{8, 9}})
	b.now = 5e9
	if s := b.Stats(); s.Entries != varietyCount || s.Restored.Entries != varietyCount || s.Restored.Torn != 0 || s.Restored.Empty != "" {
		t.Errorf("stats %+v", s)
	}
	got := b.lines()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("restored\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	b.checkTable()
	b.want(tcpFrame(server, client, 8080, 1234, tcpText{flags: "A", seq: 5001, ack: 1001, length: 9}), unNAT, "est|rpl|trk|snat")
	b.wantTuple("src=10.96.0.10,dst=10.0.0.1,sport=80,dport=1234")
	if b.meta.Mark != 7 || b.meta.Label != (Label{5, 6}) {
		t.Errorf("mark %d label %v", b.meta.Mark, b.meta.Label)
	}
	b.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "R", seq: 999999}), unNAT, "inv|trk") // the window is known
	b.want(udpFrame(server, "10.9.9.9", 53, 1234), unNAT, "est|rpl|trk|dnat")
	if n := b.shares.ofPort(b.Table, 9).count.Load(); n != 1 {
		t.Errorf("port 9 holds %d connections", n)
	}
}

// TestTakeOver: the memory of a table in use does not change until TakeOver. All that was
// tracked until then is restored.
func TestTakeOver(t *testing.T) {
	memory := pages(t, ArenaSize(100))
	before := restored(t, memory, 5e9, Config{})
	before.variety()
	kept := slices.Clone(memory)
	c := Config{Capacity: 100, Max: 100, Now: func() int64 { return 5e9 }}
	successor, err := Await(c, memory, thisBoot)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(memory, kept) {
		t.Error("the memory was written while another process uses it")
	}
	before.want(udpFrame(client, server, 4000, 4001), Request{Zone: 3, Commit: true, InPort: 9}, "new|trk")
	want := before.lines()
	slices.Sort(want)
	successor.TakeOver()
	b := newBench(t, Config{})
	b.Table, b.now = successor, 5e9
	got := b.lines()
	slices.Sort(got)
	if s := successor.Stats(); s.Restored.Entries != varietyCount+1 || !slices.Equal(got, want) {
		t.Errorf("%+v, taken over\n%s\nwant\n%s", s.Restored, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	b.checkTable()
	for what, await := range map[string]func() (*Table, error){
		"started since": func() (*Table, error) { return Await(c, memory, [16]byte{9}) },
		"connections": func() (*Table, error) {
			return Await(Config{Capacity: 99, Max: 99, Now: c.Now}, memory[:ArenaSize(99)], thisBoot)
		},
		"it is new": func() (*Table, error) { return Await(c, pages(t, ArenaSize(100)), thisBoot) },
	} {
		if _, err := await(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
}

func TestRestoreLeavesOut(t *testing.T) {
	memory := pages(t, ArenaSize(100))
	restored(t, memory, 5e9, Config{}).variety()
	late := restored(t, slices.Clone(memory)[:len(memory):len(memory)], 5e9+int64(50*time.Second), Config{Max: 1})
	if s := late.Stats(); s.Restored.Entries != 1 || s.Restored.Expired != 3 || s.Restored.Refused != 1 {
		t.Errorf("restored %+v", s.Restored)
	}
	late.checkTable()
}

// TestRestoreWithShorterTimeouts: what the process before would have kept for
// longer is kept as long as this one keeps anything.
func TestRestoreWithShorterTimeouts(t *testing.T) {
	memory := pages(t, ArenaSize(100))
	before := restored(t, memory, 1, Config{})
	before.variety()
	short := proto.DefaultTimeouts()
	short.TCPEstablished, short.TCPHalfClosed = time.Minute, time.Minute
	b := restored(t, memory, 1, Config{Timeouts: short})
	if got, want := b.Stats().Restored, before.Stats().Entries; got.Entries != want || got.Torn != 0 {
		t.Errorf("restored %+v, want %d", got, want)
	}
	b.each(func(e *store.Entry, _ store.Handle) {
		if left := time.Duration(e.Expires - 1); left > short.Longest() {
			t.Errorf("a connection ends in %v, and no timeout is above %v", left, short.Longest())
		}
	})
	b.checkTable()
}

// TestRestoreOfManyCells: several slices of cells, of ports by turns and in rows,
// answered and not, with gaps where connections have ended, each as it was.
func TestRestoreOfManyCells(t *testing.T) {
	const n = 3<<12 + 100 // three slices of cells, and more
	memory := pages(t, ArenaSize(n))
	before := restored(t, memory, 1, Config{NewRate: -1})
	for i := range n {
		port, from := uint16(1+i%50000), uint32(i/1000)
		if i >= n/2 {
			from = uint32(i % 7)
		}
		before.want(udpFrame(client, server, port, 53), Request{Zone: 4, Commit: true, InPort: from}, "new|trk")
		if i%3 == 0 {
			before.want(udpFrame(server, client, 53, port), Request{Zone: 4}, "est|rpl|trk")
		}
	}
	before.each(func(_ *store.Entry, h store.Handle) {
		if h.Slot%11 == 5 {
			before.remove(h, whatever, 1)
		}
	})
	want := before.lines()
	b := restored(t, memory, 1, Config{NewRate: -1})
	if got := b.Stats().Restored; got.Entries != len(want) || got.Torn+got.Expired+got.Refused != 0 {
		t.Errorf("restored %+v, want %d", got, len(want))
	}
	if got := b.lines(); !slices.Equal(got, want) {
		t.Errorf("%d connections, want %d like those before", len(got), len(want))
	}
	b.checkOrder()
	b.checkShares()
}

// TestRestoreUnlocks: a process that is killed while it holds a connection's lock leaves
// the connection to the next one, and not the lock.
func TestRestoreUnlocks(t *testing.T) {
	memory := pages(t, ArenaSize(16))
	b := restored(t, memory, 1, Config{})
	h := pair(t, b.Table, 7, 1)[tuple.Original].seen.at
	b.arena.At(h.Slot).LockIf(h.Gen)
	b = restored(t, memory, 2, Config{})
	if head := b.arena.At(h.Slot).Head(); head&store.Locked != 0 || uint32(head) != h.Gen {
		t.Fatalf("the head is %x, of generation %d", head, h.Gen)
	}
	b.want(sideFrame(7, true), Request{Zone: 100, Commit: true, Mark: 1, MarkMask: 1}, "est|rpl|trk")
}

// Where things lie in a cell, in bytes.
const keysAt, keySize, sumAt = 80, 40, 168

// seal makes the checksums of all cells right.
func seal(t testing.TB, memory []byte) {
	a, err := store.OverMemory(memory)
	if err != nil {
		t.Fatal(err)
	}
	for slot := range a.Capacity() + 1 {
		fixed := a.At(uint32(slot)).FixedWords()
		binary.NativeEndian.PutUint32(memory[ArenaSize(slot-1)+sumAt:], store.Checksum(&fixed))
	}
}

// TestRestoreFindsTornCells changes each byte of what never changes in a cell,
// and puts values that cannot be into what does.
func TestRestoreFindsTornCells(t *testing.T) {
	memory := pages(t, ArenaSize(100))
	restored(t, memory, 5e9, Config{}).variety()
	spoil := func(name string, change func(cell []byte)) {
		torn := pages(t, len(memory))
		copy(torn, memory)
		change(torn[ArenaSize(0):]) // slot 1
		b := restored(t, torn, 5e9, Config{})
		if s := b.Stats().Restored; s.Torn != 1 || s.Entries != varietyCount-1 {
			t.Errorf("%s: %+v", name, s)
		}
		b.checkTable()
		b.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "S", seq: 1000}), commitNAT("dst=10.0.0.2:8080"), "new|trk|dnat")
	}
	const mark, peers = 16, 40
	for at := keysAt; at < sumAt+4; at++ {
		spoil("fixed part", func(c []byte) { c[at] ^= 0x10 })
	}
	spoil("half a connection", func(c []byte) { clear(c[sumAt : sumAt+4]) })
	spoil("flags", func(c []byte) { c[mark+4] = c[mark+4]&^byte(proto.Replied) | byte(store.Offloaded) })
	spoil("NAT flags", func(c []byte) { c[mark+4] ^= byte(store.SourceNAT) })
	spoil("SCTP state", func(c []byte) { c[mark+5] = 9 })
	spoil("what means nothing", func(c []byte) { c[mark+6] = 1 })
	spoil("TCP state", func(c []byte) { c[peers+20] = 6 })
	spoil("window scale", func(c []byte) { c[peers+21] = 15 })
	spoil("expiry", func(c []byte) { c[8+7] = 0x10 })
}

func TestRestoreRefusesHeaders(t *testing.T) {
	for _, test := range []struct {
		why    string
		change func(h []byte)
	}{
		{"it is not an arena", func(h []byte) { h[0] ^= 1 }},
		{"it was written by another version", func(h []byte) { h[8] ^= 1 }},
		{"the machine was restarted since", func(h []byte) { h[16] ^= 1 }},
		{"it was made for 99 connections, not 100", func(h []byte) { binary.NativeEndian.PutUint64(h[32:], 100) }},
		{"its mark of used cells is outside the arena", func(h []byte) { binary.NativeEndian.PutUint32(h[40:], 102) }},
		{"its mark of used cells is outside the arena", func(h []byte) { binary.NativeEndian.PutUint32(h[40:], 0) }},
	} {
		memory := pages(t, ArenaSize(100))
		restored(t, memory, 5e9, Config{}).variety()
		test.change(memory)
		b := restored(t, memory, 5e9, Config{})
		if s := b.Stats(); s.Restored.Empty != test.why || s.Entries != 0 {
			t.Errorf("%+v, want empty because %s", s.Restored, test.why)
		}
		b.variety() // over what lies there
		b.checkTable()
	}
	for _, size := range []int{0, 4096, ArenaSize(0), ArenaSize(9) + 1} {
		if _, err := Restore(Config{}, pages(t, size+4096)[:size], thisBoot); err == nil {
			t.Errorf("%d bytes were taken", size)
		}
	}
	if _, err := Restore(Config{}, pages(t, ArenaSize(9)+8)[8:], thisBoot); err == nil {
		t.Error("memory at an odd address was taken")
	}
}

// TestNewCellsBesideSweep: connections come into memory that holds those of another
// boot, and the sweep looks at each cell as soon as it may. It takes none of them for a
// connection whose time has passed: it would look for ever for its place in the index.
func TestNewCellsBesideSweep(t *testing.T) {
	const n, later = 1 << 14, 1 << 50
	for range 10 {
		memory := pages(t, ArenaSize(n+n/16)) // not crowded
		restored(t, memory, 1, Config{NewRate: -1}).fillUDP(n)
		memory[16] ^= 1 // header.boot
		b := restored(t, memory, later, Config{NewRate: -1})
		var stop atomic.Bool
		var wait sync.WaitGroup
		wait.Go(func() {
			for !stop.Load() {
				b.sweeper.at.Store(b.arena.End() - 2)
				b.sweepSlots(1, later)
			}
		})
		b.fillUDP(n)
		stop.Store(true)
		wait.Wait()
		if s := b.Stats(); s.Entries != n || s.Expired != 0 {
			t.Fatalf("%d connections are left of %d, and %d have expired", s.Entries, n, s.Expired)
		}
	}
}

// FuzzRestore lays a table over an arena whose bytes were changed, each change
// an offset of two bytes and a value. Whatever they are, the table is in order
// and works. With repair, checksums are made right afterwards, so that what
// lies behind them is met too.
func FuzzRestore(f *testing.F) {
	f.Add([]byte{0x10, 0x00, 1}, false)
	f.Add([]byte{0x10, 0xc8, 9, 0x11, 0x10, 3}, true)
	whole := pages(f, ArenaSize(8))
	restored(f, whole, 5e9, Config{}).variety()
	f.Fuzz(func(t *testing.T, changes []byte, repair bool) {
		memory := pages(t, len(whole))
		copy(memory, whole)
		for ; len(changes) >= 3; changes = changes[3:] {
			memory[int(binary.BigEndian.Uint16(changes))%len(memory)] = changes[2]
		}
		if repair {
			seal(t, memory)
		}
		b := restored(t, memory, 5e9, Config{})
		b.checkTable()
		for _, frame := range fuzzFrames {
			b.enter(frame)
			b.fuzzTrack(commit)
			b.enter(frame)
			b.fuzzTrack(unNAT)
		}
		b.checkTable()
		b.now += int64(100 * time.Hour)
		for range 3 {
			b.Sweep(b.now)
		}
		b.checkTable()
		if n := b.Stats().Entries; n != 0 {
			t.Errorf("%d connections never end", n)
		}
	})
}

// mapFile maps a file of a size, shared with other mappings of it.
func mapFile(t testing.TB, path string, size int) []byte {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		defer f.Close()
		err = f.Truncate(int64(size))
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(b) })
	return b
}

// BenchmarkRestore is a million connections, less those for which one port has no room.
func BenchmarkRestore(b *testing.B) {
	const n = 1_000_000
	memory := mapFile(b, filepath.Join(b.TempDir(), "ct.arena"), ArenaSize(n))
	w := restored(b, memory, 1, Config{NewRate: -1})
	w.fillUDP(n)
	want := w.Stats().Entries
	c := Config{Max: n, Now: func() int64 { return 1 }}
	for b.Loop() {
		t, err := Restore(c, memory, thisBoot)
		if err != nil {
			b.Fatal(err)
		}
		if r := t.Stats().Restored; r.Entries != want || want < n*9/10 {
			b.Fatalf("restored %+v of %d", r, want)
		}
	}
}

// BenchmarkTakeOver is the time without a switch: a thousand connections in a table of the size that a Node
// has, with page faults, as in a new process.
func BenchmarkTakeOver(b *testing.B) {
	const n = 1_000
	most := DefaultMax()
	memory := mapFile(b, filepath.Join(b.TempDir(), "ct.arena"), ArenaSize(most))
	restored(b, memory, 1, Config{NewRate: -1, Capacity: most, Max: most}).fillUDP(n)
	c := Config{Capacity: most, Max: most, Now: func() int64 { return 1 }}
	var faults int64
	for b.Loop() {
		b.StopTimer()
		debug.FreeOSMemory()
		t, err := Await(c, memory, thisBoot)
		if err != nil {
			b.Fatal(err)
		}
		before := pageFaults(b)
		b.StartTimer()
		t.TakeOver()
		b.StopTimer()
		faults += pageFaults(b) - before
		b.StartTimer()
		if r := t.Stats().Restored; r.Entries != n {
			b.Fatalf("restored %+v", r)
		}
	}
	b.ReportMetric(float64(faults)/float64(b.N), "faults/op")
}

// pageFaults is how many pages the kernel has mapped for this process.
func pageFaults(t testing.TB) int64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return usage.Minflt
}

// fillUDP makes n connections of UDP that were never answered, as fast as it
// can.
func (b *bench) fillUDP(n int) {
	b.Helper()
	b.fillFrom(0x0a000000, n, &commit)
}

// fillFrom is fillUDP with a request, and clients from an IPv4 address on.
func (b *bench) fillFrom(first uint32, n int, r *Request) {
	b.Helper()
	b.enter(udpFrame(client, server, 1, 53))
	ip := packet.IPv4(b.frame.Bytes()[packet.EthernetLen:])
	udp := packet.UDP(b.frame.Bytes()[b.layers.L4:])
	udp.SetChecksum(0)
	for i := range n {
		udp.SetSrcPort(uint16(1 + i%60000))
		binary.BigEndian.PutUint32(ip.SrcBytes(), first+uint32(i/60000))
		ip.UpdateChecksum()
		b.meta = Meta{}
		b.verdict = b.Track(b.frame, &b.layers, &b.meta, r, b.now)
		if b.verdict.Drop != DropNone {
			b.Fatalf("connection %d: %v", i, b.verdict.Drop)
		}
	}
}
