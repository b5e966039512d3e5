package pipeline

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/pcap"
)

// TestSameVerdicts: what both contenders of profiles pipeline and programs make of the packets
// of their kinds, first and known ones, is the same, byte for byte but for which of the
// Service's endpoints it goes to.
func TestSameVerdicts(t *testing.T) {
	if err := ovsMissing(); err != nil {
		t.Skip(err)
	}
	p, err := workload.ServiceProgram(1)
	if err != nil {
		t.Fatal(err)
	}
	loads, err := workload.OtherPrograms()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range append(loads, workload.ProgramLoad{Name: "antrea", Program: p, Kinds: pipelineKinds()}) {
		t.Run(l.Name, func(t *testing.T) { sameVerdicts(t, l) })
	}
}

func sameVerdicts(t *testing.T, l workload.ProgramLoad) {
	t.Helper()
	ours, err := openAntrail(l.Program, testbed.SwitchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer ours.close()
	theirs, err := openOVS(t.Context(), l.Program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := theirs.close(); err != nil {
			t.Error(err)
		}
	}()
	file := theirs.Path("sent.pcap")
	if err := errors.Join(theirs.SetResting(false), theirs.Vsctl(t.Context(), "set", "interface", testbed.Receiver().Name, "options:tx_pcap="+file)); err != nil {
		t.Fatal(err)
	}
	for _, c := range l.Kinds {
		one := *c
		one.Change, one.Connections = testbed.ChangeNone, 1
		ours.program.ct.Flush()
		if _, err := theirs.Appctl(t.Context(), "dpctl/flush-conntrack"); err != nil {
			t.Fatal(err)
		}
		for _, step := range []string{"first", "known"} {
			if got, want := ours.program.leaves(t, &one), theirs.leaves(t, &one, file); !bytes.Equal(anyEndpoint(got), anyEndpoint(want)) {
				t.Errorf("%s, %s packet:\n%x leaves antrail,\n%x Open vSwitch", c.ShortName(), step, got, want)
			}
			if c.Connections == 0 {
				break // nothing answers
			}
			if err := errors.Join(ours.program.makeKnown(&one), theirs.sendKnownWhole(t.Context(), &one)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// sendKnownWhole is sendKnown until the polling thread has received all packets. An answer that
// it receives after the connections are removed would begin another one.
func (w *ovsContender) sendKnownWhole(ctx context.Context, c *workload.Packets) error {
	before, err := w.Stats(ctx)
	if err == nil {
		err = w.sendKnown(ctx, c)
	}
	for want, deadline := float64(1+len(c.Answers)), time.Now().Add(time.Minute); err == nil; {
		var now []ovs.ThreadStats
		if now, err = w.Stats(ctx); err == nil && now[0].Packets-before[0].Packets >= want {
			break
		}
		if err == nil && time.Now().After(deadline) {
			err = fmt.Errorf("of %v packets, %s has received %v", want, ovs.Version(), now[0].Packets-before[0].Packets)
		}
	}
	return err
}

// leaves is the same for Open vSwitch, which writes the frames that leave to a file.
func (w *ovsContender) leaves(t *testing.T, c *workload.Packets, file string) []byte {
	t.Helper()
	before := len(captured(t, file))
	if err := testbed.Within(w.node.NS)(func() error { return testbed.SendFrame(w.links.Source, c.Frame) }); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); sched.Nap(testbed.SettleTime) {
		if after := captured(t, file); len(after) > before {
			return after[len(after)-1]
		}
	}
	t.Fatalf("%s: no frame left %s", c.Name, ovs.Version())
	return nil
}

// captured returns the frames of a capture, or nil without a file.
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

// anyEndpoint replaces the port of any endpoint of a Service by that of the first one.
func anyEndpoint(frame []byte) []byte {
	b := bytes.Clone(frame)
	if len(b) >= udpHeader+4 {
		if port := binary.BigEndian.Uint16(b[udpHeader+2:]); port >= firstEndpointPort && port < firstEndpointPort+endpoints {
			binary.BigEndian.PutUint16(b[udpHeader+2:], firstEndpointPort)
		}
	}
	return b
}

// udpHeader is where a frame over IPv4 has its UDP header.
const udpHeader = packet.EthernetLen + packet.IPv4Len

// The ports of the endpoints of the Service that packets go to.
const firstEndpointPort, endpoints = 20_000, 3
