// Package porttest is the conformance suite of ports. It tests the behaviour that every driver
// must have, whatever its other side. A driver's test provides functions to open a port and to
// act as its other side, and calls Run.
package porttest

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// Rig is an open port with its other side. A factory makes a fresh one for
// every test and cleans up with t.Cleanup; the suite closes the port.
type Rig struct {
	Port ports.Port
	// Get takes empty frames out of the pool to transmit with, up to
	// len(batch), and returns how many.
	Get func(batch []*packet.Frame) int
	// Free is how many frames of all pools are free. Frames is that number after the port is
	// closed and all frames are released.
	Free   func() int
	Frames int
	// Inject makes the other side send one frame to the port.
	Inject func(frame []byte) error
	// Late is how long injected frames may still be under way. Keeps says that the way keeps
	// frames for which the port has no room, and delivers them in some order later.
	Late  time.Duration
	Keeps bool
	// Observe waits briefly for a frame at the other side; nil if none came.
	Observe func(wait time.Duration) ([]byte, error)
	// Backlog is a number of frames that exceeds the port's queue while nobody receives.
	Backlog int
	// Whole is the other side as a port, for frames with undone work; nil if the port accepts
	// none.
	Whole func() ports.Port
	// Does says that the port does undone work itself. The segments of such a frame arrive,
	// joined again or not.
	Does bool
	// Outside counts the frames that the other side itself dropped on their way to the port; nil
	// if it never does.
	Outside func() uint64
}

// waitAtMost is how long a frame may take before a test counts it as dropped. It is only a limit:
// frames arrive in microseconds.
const waitAtMost = time.Minute

// etherType marks the suite's frames: IEEE 802's first value for local experiments. The suite
// ignores frames that a kernel sends.
const etherType = 0x88b5

// minFrame is the shortest frame that frame makes: header and serial number.
const minFrame = 18

// frame is an Ethernet broadcast of n bytes, its content following from its
// serial number.
func frame(serial uint32, n int) []byte {
	b := make([]byte, max(n, minFrame))
	copy(b, "\xff\xff\xff\xff\xff\xff\x02antr")
	binary.BigEndian.PutUint16(b[12:], etherType)
	binary.BigEndian.PutUint32(b[14:], serial)
	for i := minFrame; i < len(b); i++ {
		b[i] = byte(serial) + byte(i)
	}
	return b
}

func ours(b []byte) bool {
	return len(b) >= minFrame && binary.BigEndian.Uint16(b[12:]) == etherType
}

// untagged is b without the VLAN tag 7 of testForward; a kernel has taken it
// off already.
func untagged(b []byte) []byte {
	if len(b) < minFrame || string(b[12:16]) != "\x81\x00\x00\x07" {
		return b
	}
	return append(b[:12:12], b[16:]...)
}

func serialOf(b []byte) uint32 { return binary.BigEndian.Uint32(b[14:]) }

// sizes are the lengths that ordered tests walk through.
var sizes = []int{60, 18, 64, 65, 128, 333, 590, 1024, 1500, 1514}

func sizeOf(serial uint32) int { return sizes[int(serial)%len(sizes)] }

// fill takes n frames from the pool and makes frame i carry serial first+i.
func (r *Rig) fill(t *testing.T, first uint32, n int) []*packet.Frame {
	t.Helper()
	batch := make([]*packet.Frame, n)
	if got := r.Get(batch); got != n {
		t.Fatalf("the pool gave %d frames of %d", got, n)
	}
	for i, f := range batch {
		serial := first + uint32(i)
		if !f.SetBytes(frame(serial, sizeOf(serial))) {
			t.Fatalf("%d bytes do not fit into a frame of the pool", sizeOf(serial))
		}
	}
	return batch
}

// inject sends frames first to first+n-1 from the other side.
func (r *Rig) inject(t *testing.T, first uint32, n int) {
	t.Helper()
	for serial := first; serial < first+uint32(n); serial++ {
		if err := r.Inject(frame(serial, sizeOf(serial))); err != nil {
			t.Fatalf("inject frame %d: %v", serial, err)
		}
	}
	time.Sleep(r.Late)
}

// receive collects n frames of the suite from the port in batches of the given size. It fails if
// they do not come.
func (r *Rig) receive(t *testing.T, n, batchSize int) []*packet.Frame {
	t.Helper()
	var got []*packet.Frame
	batch := make([]*packet.Frame, batchSize)
	for end := time.Now().Add(waitAtMost); len(got) < n && time.Now().Before(end); {
		k := r.Port.Receive(batch[:min(batchSize, n-len(got))])
		for _, f := range batch[:k] {
			if ours(f.Bytes()) {
				got = append(got, f)
			} else {
				packet.Release([]*packet.Frame{f})
			}
		}
		if k == 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	if len(got) != n {
		t.Fatalf("received %d frames of %d; stats %+v", len(got), n, r.Port.Stats())
	}
	return got
}

// observe collects n frames of the suite at the other side.
func (r *Rig) observe(t *testing.T, n int) [][]byte {
	t.Helper()
	var got [][]byte
	for end := time.Now().Add(waitAtMost); len(got) < n && time.Now().Before(end); {
		r.Port.Flush()
		b, err := r.Observe(10 * time.Millisecond)
		if err != nil {
			t.Fatalf("observe: %v", err)
		}
		if b = untagged(b); ours(b) {
			got = append(got, b)
		}
	}
	if len(got) != n {
		t.Fatalf("%d frames of %d came out; stats %+v", len(got), n, r.Port.Stats())
	}
	return got
}

// nothingMore fails if one more frame of the suite comes out.
func (r *Rig) nothingMore(t *testing.T) {
	t.Helper()
	r.Port.Flush()
	b, err := r.Observe(20 * time.Millisecond)
	if err != nil {
		t.Fatalf("observe: %v", err)
	}
	if ours(b) {
		t.Fatalf("frame %d came out, none was due", serialOf(b))
	}
}

// transmit hands over a batch and flushes; all of it must be accepted.
func (r *Rig) transmit(t *testing.T, batch []*packet.Frame) {
	t.Helper()
	if n := r.Port.Transmit(batch); n != len(batch) {
		t.Fatalf("accepted %d frames of %d; stats %+v", n, len(batch), r.Port.Stats())
	}
	r.Port.Flush()
}

// allFree closes the port, takes the frames still on their way out, and checks that every frame
// is back in its pool.
func (r *Rig) allFree(t *testing.T) {
	t.Helper()
	if err := r.Port.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	for {
		b, err := r.Observe(0)
		if err != nil {
			t.Fatalf("observe: %v", err)
		}
		if b == nil {
			break
		}
	}
	if got := r.Free(); got != r.Frames {
		t.Errorf("%d frames of %d are free after close", got, r.Frames)
	}
}

// sameFrame compares with what frame(serial, n) made, letting a wire pad a
// short frame to 60 bytes.
func sameFrame(t *testing.T, got []byte, serial uint32, n int) {
	t.Helper()
	want := frame(serial, n)
	if len(got) > len(want) && len(got) == 60 {
		got = got[:len(want)]
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("frame %d: got %d bytes %x..., want %d bytes %x...", serial,
			len(got), got[:min(24, len(got))], len(want), want[:min(24, len(want))])
	}
}

// droppedSum is the sum of the reasons.
func droppedSum(s ports.Stats) (n uint64) {
	for _, k := range s.Reasons {
		n += k
	}
	return n
}

func chunks(batch []*packet.Frame, size int) [][]*packet.Frame {
	return slices.Collect(slices.Chunk(batch, size))
}
