package dataplane_test

import (
	"bytes"
	"testing"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// stream is a TCP connection from port 1 of an offloadRig to port 2, after its handshake.
func (r *rig) stream() (ack packettest.Options) {
	there := packettest.Options{SrcPort: 1000, Seq: 100, TCPFlags: packet.TCPSyn}
	back := packettest.Options{
		Src: packettest.Addr("10.0.0.2"), Dst: packettest.Addr("10.0.0.1"), SrcPort: 80, DstPort: 1000,
		Seq: 500, Ack: 101, TCPFlags: packet.TCPSyn | packet.TCPAck,
	}
	r.sendFrame(1, packettest.TCP4(there))
	r.sendFrame(2, packettest.TCP4(back))
	there.Seq, there.Ack, there.TCPFlags = 101, 501, packet.TCPAck
	r.sendFrame(1, packettest.TCP4(there))
	return there
}

// wantEntries asserts how many offload entries there are.
func (r *rig) wantEntries(what string, want uint64) {
	r.Helper()
	if st := r.sw.OffloadStats(); st.Entries != want {
		r.Errorf("%s: %d offload entries, want %d: %+v", what, st.Entries, want, st)
	}
}

// TestOffersWaitForPackets: a connection's first entry is offered after enough packets, and a
// frame that is to be cut counts as its segments. The entry of other TCP flags follows at
// once, so that the packets of one direction do not overtake each other for long.
func TestOffersWaitForPackets(t *testing.T) {
	const after = 16
	k := newTrial(t)
	t.Run("whole packets", func(t *testing.T) {
		r := offloadRigAfter(t, k, k.kernel, after)
		o := r.stream()
		o.Payload = []byte("data")
		for range after / 2 {
			r.sendFrame(1, packettest.TCP4(o))
		}
		r.wantEntries("a few packets", 0)
		for range after {
			r.sendFrame(1, packettest.TCP4(o))
		}
		r.wantEntries("enough packets", 1)
		o.TCPFlags |= packet.TCPPsh
		for range 2 { // the first one walks
			r.sendFrame(1, packettest.TCP4(o))
		}
		r.wantEntries("the same connection with PSH", 2)
	})
	t.Run("frames of segments", func(t *testing.T) {
		r := offloadRigAfter(t, k, k.kernel, after)
		o := r.stream()
		o.Payload = bytes.Repeat([]byte("data"), after*250)
		for range 3 {
			r.sendWhole(1, packettest.Undone(packettest.TCP4(o), 1000))
		}
		r.wantEntries("frames of 16 segments", 1)
	})
}
