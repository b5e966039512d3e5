package dataplane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// ethernet is a packet from one station to another, by the last byte of their
// addresses; 0xff is the broadcast address.
func ethernet(port, src, dst int) string {
	mac := fmt.Sprintf("02:00:00:00:00:%02x", dst)
	if dst == 0xff {
		mac = "ff:ff:ff:ff:ff:ff"
	}
	return fmt.Sprintf("in_port=%d,dl_src=02:00:00:00:00:%02x,dl_dst=%s,dl_type=0x88b5", port, src, mac)
}

// TestNormal follows a MAC learning switch through a life: each step is a
// packet and where it must go.
func TestNormal(t *testing.T) {
	r := newRig(t, "table=0 actions=NORMAL")
	for i, step := range []struct {
		packet string
		wait   time.Duration // before the packet
		want   string
	}{
		{ethernet(1, 0xa, 0xb), 0, "2 3 4"},                                                    // b is unknown
		{ethernet(2, 0xb, 0xa), 0, "1"},                                                        // a was learned
		{ethernet(1, 0xa, 0xb), 0, "2"},                                                        // and so was b
		{ethernet(1, 0xa, 0xff), 0, "2 3 4"},                                                   // broadcast
		{ethernet(3, 0xb, 0xa), 0, "1"},                                                        // b moves to port 3
		{ethernet(1, 0xa, 0xb), 0, "3"},                                                        //
		{ethernet(1, 0xc, 0xa), 0, "drop to_in_port in 0"},                                     // a is at the same port
		{ethernet(2, 0xd, 0xa), 299 * time.Second, "1"},                                        // a is not yet too old
		{ethernet(2, 0xd, 0xa), 1 * time.Second, "1 3 4"},                                      // now it is
		{ethernet(1, 0xa, 0xd), 0, "2"},                                                        // learned again
		{ethernet(1, 0xa, 0xd), 200 * time.Second, "2"},                                        // a packet keeps a young
		{ethernet(2, 0xd, 0xa), 200 * time.Second, "1"},                                        //
		{"in_port=1,dl_src=03:00:00:00:00:01,dl_dst=02:00:00:00:00:0d,dl_type=0x88b5", 0, "2"}, // NORMAL does not learn a group address
	} {
		r.warp(step.wait)
		if got := r.outcome(step.packet); got != step.want {
			t.Fatalf("step %d (%s): %q, want %q", i, step.packet, got, step.want)
		}
	}
	for _, row := range r.sw.LearnedMACs() {
		if row.MAC[0]&1 != 0 {
			t.Errorf("a group address was learned: %x", row.MAC)
		}
	}
}

// TestFloodLeavesPortsAsideOut: such a port gets what is sent to its number.
func TestFloodLeavesPortsAsideOut(t *testing.T) {
	r := newRig(t, "table=0,dl_type=0x88b5 actions=NORMAL\ntable=0,ip actions=output:8")
	r.addPort(8, memory.Options{Aside: true})
	if got := r.outcome(ethernet(1, 0xa, 0xff)); got != "2 3 4" {
		t.Errorf("a broadcast went to %q", got)
	}
	if got := r.outcome("in_port=1,ip"); got != "8" {
		t.Errorf("output:8 went to %q", got)
	}
}

// TestNormalToItself checks a packet to its own sender, in traffic and in a
// trace, which learns nothing.
func TestNormalToItself(t *testing.T) {
	r := newRig(t, "table=0 actions=NORMAL")
	in, frame := r.compose(ethernet(1, 0xa, 0xa))
	if v := r.trace(in, frame).Verdict; v.Reason != telemetry.DropToInPort {
		t.Errorf("traced: %s", v.Text(nil))
	}
	if got := r.outcomeOf(in, frame); got != "drop to_in_port in 0" {
		t.Errorf("sent: %q", got)
	}
}

// TestNormalReservedAddresses checks the sixteen addresses that a bridge keeps.
func TestNormalReservedAddresses(t *testing.T) {
	r := newRig(t, "table=0 actions=NORMAL")
	for last := range 17 {
		want := "drop reserved_mac in 0"
		if last == 16 {
			want = "2 3 4"
		}
		text := fmt.Sprintf("in_port=1,dl_src=02:00:00:00:00:0a,dl_dst=01:80:c2:00:00:%02x,dl_type=0x88b5", last)
		if got := r.outcome(text); got != want {
			t.Errorf("to 01:80:c2:00:00:%02x: %q, want %q", last, got, want)
		}
	}
}

// TestNormalLearnsByVLAN keeps the stations of two VLANs apart.
func TestNormalLearnsByVLAN(t *testing.T) {
	r := newRig(t, "table=0 actions=NORMAL")
	r.send(ethernet(2, 0xb, 0xa) + ",dl_vlan=7")
	if got := r.outcome(ethernet(1, 0xa, 0xb) + ",dl_vlan=7"); got != "2" {
		t.Errorf("in its own VLAN: %q", got)
	}
	if got := r.outcome(ethernet(1, 0xa, 0xb) + ",dl_vlan=8"); got != "2 3 4" {
		t.Errorf("in another VLAN: %q", got)
	}
}

// TestNormalAccessPorts has two access ports of VLAN 7, one of VLAN 8 and two trunks. A frame
// stays in its VLAN, and has a tag on trunks only. Actions behind NORMAL have the frame as it
// came.
func TestNormalAccessPorts(t *testing.T) {
	r := newRig(t, "table=0,in_port=1,priority=9 actions=NORMAL,output:8\ntable=0,priority=1 actions=NORMAL")
	r.addPort(8, memory.Options{Aside: true})
	r.addPort(6, memory.Options{})
	r.secure(1, l2.PortSecurity{VLAN: 7})
	r.secure(2, l2.PortSecurity{VLAN: 7})
	r.secure(3, l2.PortSecurity{VLAN: 8, MACs: []packet.MAC{{2, 5: 0xd}}})
	untagged := ethernet(1, 0xa, 0xff)
	for i, step := range []struct{ packet, want string }{
		{untagged, "2:0 4:7 6:7 8:0"},                          // broadcast of VLAN 7
		{ethernet(2, 0xb, 0xa), "1:0"},                         // a was learned in VLAN 7
		{ethernet(2, 0xb, 0xd), "1:0 4:7 6:7"},                 // d is in VLAN 8: unknown in VLAN 7
		{ethernet(4, 0xc, 0xa) + ",dl_vlan=7", "1:0"},          // from a trunk, with the tag
		{ethernet(4, 0xc, 0xff) + ",dl_vlan=7", "1:0 2:0 6:7"}, // … and to the other trunk too
		{ethernet(1, 0xa, 0xc), "4:7 8:0"},                     // c was learned at the trunk
		{ethernet(4, 0xc, 0xd) + ",dl_vlan=8", "3:0"},          // the owner of an address, in its VLAN
		{ethernet(4, 0xc, 0xa), "6:0"},                         // without a tag: in no VLAN
		{ethernet(4, 0xc, 0xff) + ",dl_vlan=9", "6:9"},         // a VLAN that no access port has
		{ethernet(2, 0xa, 0xff) + ",dl_vlan=7", "vlan_tag"},    // an access port sends no tag
	} {
		before := r.sw.Drops()[telemetry.DropVLANTag]
		in, frame := r.compose(step.packet)
		var words []string
		for _, s := range r.sendFrame(in, frame) {
			words = append(words, fmt.Sprintf("%d:%d", s.port, packet.ParseLayers(s.frame).TCI&0xfff))
		}
		if r.sw.Drops()[telemetry.DropVLANTag] != before {
			words = append(words, "vlan_tag")
		}
		if got := strings.Join(words, " "); got != step.want {
			t.Errorf("step %d (%s): %q, want %q", i, step.packet, got, step.want)
		}
	}
}

// TestNormalAsksForTheTag sends a frame whose vlan_vid was written without a tag:
// it leaves untagged, so that its VLAN is none.
func TestNormalAsksForTheTag(t *testing.T) {
	r := newRig(t, "table=0,in_port=1 actions=set_field:7->reg0,move:NXM_NX_REG0[0..11]->OXM_OF_VLAN_VID[],NORMAL\ntable=0,priority=1 actions=NORMAL")
	r.send(ethernet(2, 0xb, 0xa))
	if got := r.outcome(ethernet(1, 0xa, 0xb)); got != "2" {
		t.Errorf("to a station without a tag: %q", got)
	}
	if got := r.outcome(ethernet(2, 0xb, 0xa)); got != "1" {
		t.Errorf("back: %q", got)
	}
}

// TestNormalForgetsAPort checks that the stations of a port go with it.
func TestNormalForgetsAPort(t *testing.T) {
	r := newRig(t, "table=0 actions=NORMAL")
	r.send(ethernet(2, 0xb, 0xa))
	r.check(r.sw.RemovePort(2))
	if got := r.outcome(ethernet(1, 0xa, 0xb)); got != "3 4" {
		t.Errorf("to a station whose port is gone: %q", got)
	}
}

// TestNormalTableFull: one port's stations fill half of the table. Every other port has
// its part of the other half all the same; what was refused is counted by port.
func TestNormalTableFull(t *testing.T) {
	r := newRig(t, "table=0 actions=NORMAL")
	in, frame := r.compose(ethernet(1, 0, 0xff))
	for i := range 8200 {
		frame[10], frame[11] = byte(i>>8), byte(i)
		r.sendFrame(in, frame)
	}
	if n := len(r.sw.LearnedMACs()); n != 4096 {
		t.Errorf("%d addresses were learned, want 4096", n)
	}
	if got := r.outcome(ethernet(2, 0xb, 5)); got != "1" {
		t.Errorf("to a station learned early: %q", got)
	}
	frame[8] = 1
	for i := range 1000 {
		frame[10], frame[11] = byte(i>>8), byte(i)
		r.sendFrame(3, frame)
	}
	if n, want := len(r.sw.LearnedMACs()), 4096+4096/5; n != want {
		t.Errorf("%d addresses were learned, want %d", n, want)
	}
	for no, want := range map[uint32]telemetry.MACStats{1: {Learned: 4096, Full: 8200 - 4096}, 2: {}, 3: {Learned: 4096 / 5, Full: 1000 - 4096/5}} {
		if got := r.macsOf(no); got != want {
			t.Errorf("port %d has %+v, want %+v", no, got, want)
		}
	}
}
