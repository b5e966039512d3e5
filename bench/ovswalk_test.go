package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/pcap"
)

// TestSameVerdicts: what both contenders of profile pipeline make of the packets
// of its courses, first and known ones, is the same, byte for byte but for which
// of the Service's endpoints it goes to.
func TestSameVerdicts(t *testing.T) {
	if err := ovsWalkMissing(); err != nil {
		t.Skip(err)
	}
	p, err := serviceProgram(1)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := newWalk(p, switchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer ours.close()
	theirs, err := openOVSWalk(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := theirs.close(); err != nil {
			t.Error(err)
		}
	}()
	file := theirs.path("sent.pcap")
	if err := errors.Join(theirs.rests(false), theirs.vsctl(t.Context(), "set", "interface", receiver().Name, "options:tx_pcap="+file)); err != nil {
		t.Fatal(err)
	}
	for _, c := range pipelineCourses() {
		one := *c
		one.change, one.of = changeNone, 1
		ours.program.ct.Flush()
		if _, err := theirs.appctl(t.Context(), "dpctl/flush-conntrack"); err != nil {
			t.Fatal(err)
		}
		for _, step := range []string{"first", "known"} {
			if got, want := ours.program.leaves(t, &one), theirs.leaves(t, &one, file); !bytes.Equal(anyEndpoint(got), anyEndpoint(want)) {
				t.Errorf("%s, %s packet:\n%x leaves antrail,\n%x Open vSwitch", c.short(), step, got, want)
			}
			if c.of == 0 {
				break // nothing answers
			}
			if err := errors.Join(ours.program.know(&one), theirs.know(t.Context(), &one)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// leaves is that of walker for Open vSwitch, which writes what leaves to a file.
func (w *ovsWalk) leaves(t *testing.T, c *course, file string) []byte {
	t.Helper()
	before := len(captured(t, file))
	if err := within(w.node.ns)(func() error { return sendOne(w.net.source, c.frame) }); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); nap(settle) {
		if after := captured(t, file); len(after) > before {
			return after[len(after)-1]
		}
	}
	t.Fatalf("%s: no frame left %s", c.name, ovsVersion())
	return nil
}

// leaves sends the frame of a course and returns what leaves by the receiver's port.
func (w *walker) leaves(t *testing.T, c *course) []byte {
	t.Helper()
	if err := w.from(c).Send(c.frame); err != nil {
		t.Fatal(err)
	}
	w.sw.Poll()
	n := w.out.Collect(w.taken)
	defer packet.Release(w.taken[:n])
	if n != 1 {
		t.Fatalf("%s: %d frames left", c.name, n)
	}
	return bytes.Clone(w.taken[0].Bytes())
}

// captured is the frames of a capture; none while there is no file.
func captured(t *testing.T, file string) (frames [][]byte) {
	t.Helper()
	r, err := pcap.Open(file)
	if err != nil {
		return nil
	}
	defer r.Close()
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, bytes.Clone(p.Bytes))
	}
}

// anyEndpoint is a frame with the port of a Service's first endpoint in place of
// another one's.
func anyEndpoint(frame []byte) []byte {
	b := bytes.Clone(frame)
	if len(b) >= udpAt+4 {
		if port := binary.BigEndian.Uint16(b[udpAt+2:]); port >= lowestEndpoint && port < lowestEndpoint+endpointsOfService {
			binary.BigEndian.PutUint16(b[udpAt+2:], lowestEndpoint)
		}
	}
	return b
}
