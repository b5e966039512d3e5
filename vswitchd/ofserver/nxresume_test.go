package ofserver

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// resumed is a packet-in (NXT_PACKET_IN2) as a controller gives it back (NXT_RESUME).
func resumed(packetIn []byte) []byte {
	b := bytes.Clone(packetIn)
	const subtype, resume = 12, 28
	binary.BigEndian.PutUint32(b[subtype:], resume)
	return b
}

// TestResume: a controller returns a paused packet, which continues with its registers. ovs-ofctl
// reads the continuation.
func TestResume(t *testing.T) {
	r := newRig(t)
	c := r.connect(t, openflow.V15)
	c.write(flowMod(t, 2, "priority=3,ip,actions=load:0x7->NXM_NX_REG1[],controller(userdata=01.02,pause),resubmit(,1),output:3"))
	c.write(flowMod(t, 3, "table=1,priority=3,ip,reg1=0x7,actions=output:2"))
	c.wantPacketIns()
	frame := packettest.UDP4(packettest.Options{SrcPort: 1000, DstPort: 53})
	if err := r.ports[1].Send(frame); err != nil {
		t.Fatal(err)
	}
	r.sw.Poll()
	packetIn := c.next()
	if text := ofpPrint(t, packetIn); !strings.Contains(text, ",resubmit(,1),output:3") {
		t.Errorf("%q has no continuation", text)
	}
	c.write(resumed(packetIn))
	c.barrier()
	for no, want := range map[uint32]int{1: 0, 2: 1, 3: 1} {
		sent := r.ports[no].CollectAll()
		if len(sent) != want || want == 1 && !bytes.Equal(sent[0].Bytes(), frame) {
			t.Errorf("port %d sent %d frames, want %d as they came", no, len(sent), want)
		}
	}
}

// TestResumedCookie: a packet-in of the actions behind a pause has the cookie of their entry, and
// ovs-ofctl reads the cookie in the continuation.
func TestResumedCookie(t *testing.T) {
	r := newRig(t)
	c := r.connect(t, openflow.V15)
	c.write(flowMod(t, 2, "cookie=0x1234,priority=3,ip,actions=controller(userdata=01.02,pause),controller(userdata=03)"))
	c.wantPacketIns()
	if err := r.ports[1].Send(packettest.UDP4(packettest.Options{SrcPort: 1000, DstPort: 53})); err != nil {
		t.Fatal(err)
	}
	r.sw.Poll()
	packetIn := c.next()
	if text := ofpPrint(t, packetIn); !strings.Contains(text, "cookie=0x1234") || !strings.Contains(text, "unroll_xlate(table=0, cookie=4660)") {
		t.Errorf("%q has no cookie of the entry", text)
	}
	c.write(resumed(packetIn))
	c.barrier()
	r.sw.Poll()
	if text := ofpPrint(t, c.next()); !strings.Contains(text, "cookie=0x1234") || !strings.Contains(text, "userdata=03") {
		t.Errorf("after the resume: %q", text)
	}
}

// TestResumeRefused: a resumed packet without its frame, and one with an unknown property, are
// errors.
func TestResumeRefused(t *testing.T) {
	r := newRig(t)
	c := r.connect(t, openflow.V15)
	head := []byte{0, 0, 0x23, 0x20, 0, 0, 0, 28}
	c.write(bundleMessage(4, 7, head...))
	c.wantError(7, 1, 6)                                                   // OFPBRC_BAD_LEN
	c.write(bundleMessage(4, 8, append(head, 0, 99, 0, 4, 0, 0, 0, 0)...)) // an unknown property
	c.wantError(8, 14, 0)                                                  // OFPBPC_BAD_TYPE
}
